"""How loops and their reversal become functions of a module.

TVM has no loop, and a function that calls itself once per iteration overflows the stack after some
thousand. So the iterations are halved: a function of level ``k`` runs at most ``2**k`` of them by
two calls of level ``k - 1``. The lowest levels are functions of their own; above them one function
takes the level as a number, which keeps the code short and its stack as deep as there are levels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from tvmgraph import dtypes
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.graph import Graph

_LEVELS = 6  # levels with a function of their own: up to 64 iterations without counting levels
_TRIED = (0, 3)  # levels that are tried first, since many loops are short
_COUNT = tensor_type((), dtypes.int64)


class _Doubling(ABC):
    """Functions that run ``2**level`` iterations each, and the one that runs all of them.

    Args:
        R: The builder.
        types: Types of the operands.
        unit: What the functions of a level are called.
        whole: What the function of all iterations is called.
    """

    def __init__(self, R: Builder, types: Sequence[TensorType], unit: str, whole: str) -> None:
        self.R, self.types, self._unit, self._whole = R, list(types), unit, whole
        self.levels: list[Expr] = []
        self.at_most: Expr

    @abstractmethod
    def _stub(self, *args: Expr) -> Expr:
        """Returns the results before any iteration."""

    @abstractmethod
    def _one(self, *args: Expr) -> Expr:
        """Runs one iteration if there is one."""

    @abstractmethod
    def _halves(self, inner: Expr, level: Sequence[Expr], args: Sequence[Expr]) -> Expr:
        """Calls the function of the level below twice.

        Args:
            inner: That function.
            level: Its level, where one function is that of all levels.
            args: The operands.
        """

    @abstractmethod
    def _tried(self, level: int | Expr, args: Sequence[Expr]) -> tuple[Expr, Sequence[Expr], Expr]:
        """Runs a level: whether that was not enough, operands to go on with, results if it was."""

    def _define_levels(self) -> None:
        R = self.R
        self.levels.append(R.define(self._unit, self.types, self._one))
        for _ in range(_LEVELS):

            def twice(*args: Expr, inner: Expr = self.levels[-1]) -> Expr:
                return self._halves(inner, [], args)

            self.levels.append(R.define(self._unit, self.types, twice))
        self.at_most = self._recursive(self._unit, self._by_level)

    def _by_level(self, itself: Expr) -> Callable[..., Expr]:
        """``f(level, *operands)``: the lowest at level 0, else halves of the level below."""
        R = self.R

        def split(level: Expr, *args: Expr) -> Expr:
            below = R.emit(R.op.subtract(level, R.const(1, "int64")))
            return self._halves(itself, [below], args)

        both = R.define(self._unit, [_COUNT, *self.types], split)

        def choose(level: Expr, *args: Expr) -> Expr:
            at_bottom = R.emit(R.op.equal(level, R.const(0, "int64")))
            own = R.invoke(self.levels[-1], args)
            return R.branch(at_bottom, own, R.invoke(both, [level, *args]))

        return choose

    def _recursive(self, name: str, define: Callable[[Expr], Callable[..., Expr]]) -> Expr:
        def stub(_level: Expr, *args: Expr) -> Expr:
            return self._stub(*args)

        return self.R.define_recursive(name, [_COUNT, *self.types], stub, define)

    def whole(self) -> Expr:
        """Defines the function of all iterations."""
        R, chosen = self.R, self._endless()
        for level in reversed(_TRIED):

            def climb(*args: Expr, level: int = level, higher: Expr = chosen) -> Expr:
                unfinished, onward, own = self._tried(level, args)
                return R.branch(unfinished, R.invoke(higher, onward), own)

            chosen = R.define(self._whole, self.types, climb)
        return chosen

    def _endless(self) -> Expr:
        """Defines the function that doubles the number of iterations until the loop is over."""
        R = self.R

        def define(itself: Expr) -> Callable[..., Expr]:
            def climb(level: Expr, *args: Expr) -> Expr:
                unfinished, onward, own = self._tried(level, args)
                above = R.emit(R.op.add(level, R.const(1, "int64")))
                return R.branch(unfinished, R.invoke(itself, [above, *onward]), own)

            return climb

        climb = self._recursive(self._whole, define)

        def start(*args: Expr) -> Expr:
            return R.invoke(climb, [R.const(0, "int64"), *args])

        return R.define(self._whole, self.types, start)

    def call(self, level: int | Expr, args: Sequence[Expr]) -> Expr:
        """Calls the function of a level.

        Args:
            level: Its number, or a value that holds it.
            args: The operands.
        """
        if isinstance(level, int):
            return self.R.invoke(self.levels[level], args)
        return self.R.invoke(self.at_most, [level, *args])


class LoopFunctions(_Doubling):
    """The functions that run a loop.

    Args:
        R: The builder.
        types: Types of the operands: the state, then what stays fixed.
        cond: The loop's condition.
        body: The loop's body.
    """

    def __init__(self, R: Builder, types: Sequence[TensorType], cond: Graph, body: Graph) -> None:
        super().__init__(R, types, "loop", "climb")
        self.count = len(body.outputs)
        self.test, self.step = R.outline(cond), R.outline(body)
        self._define_levels()

    def advance(self, call: Expr, args: Sequence[Expr]) -> tuple[Expr, list[Expr]]:
        """Emits some iterations; returns whether there are more, and the operands after them.

        Args:
            call: The call of a function that does the iterations.
            args: Its operands, the state first.
        """
        R = self.R
        more = [*R.unpack(R.emit(call), self.count), *args[self.count : len(self.types)]]
        return R.emit(R.invoke(self.test, more)), more

    def _stub(self, *args: Expr) -> Expr:
        return self.R.pack(args[: self.count])

    def _one(self, *args: Expr) -> Expr:
        going_on = self.R.emit(self.R.invoke(self.test, args))
        return self.R.branch(going_on, self.R.invoke(self.step, args), self._stub(*args))

    def _halves(self, inner: Expr, level: Sequence[Expr], args: Sequence[Expr]) -> Expr:
        going_on, more = self.advance(self.R.invoke(inner, [*level, *args]), args)
        return self.R.branch(going_on, self.R.invoke(inner, [*level, *more]), self._stub(*more))

    def _tried(self, level: int | Expr, args: Sequence[Expr]) -> tuple[Expr, Sequence[Expr], Expr]:
        unfinished, more = self.advance(self.call(level, args), args)
        return unfinished, more, self._stub(*more)


class SweepFunctions(_Doubling):
    """The functions that reverse a loop without a stack of states.

    The state in the middle of ``2**k`` iterations is computed again, then the second half is
    reversed, then the first: memory grows with the logarithm of the number of iterations only.

    Args:
        R: The builder.
        types: Types of the loop's operands, then of the cotangents.
        loop: The functions of the loop.
        pull_back: The reverse of one iteration.
    """

    def __init__(
        self, R: Builder, types: Sequence[TensorType], loop: LoopFunctions, pull_back: Graph
    ) -> None:
        super().__init__(R, types, "back", "sweep")
        self.loop, self.forward = loop, len(loop.types)
        self.reverse = R.outline(pull_back)
        self._define_levels()

    def _stub(self, *args: Expr) -> Expr:
        return self.R.pack(args[self.forward :])

    def _one(self, *args: Expr) -> Expr:
        ran = self.R.emit(self.R.invoke(self.loop.test, args[: self.forward]))
        return self.R.branch(ran, self.R.invoke(self.reverse, args), self._stub(*args))

    def _halves(self, inner: Expr, level: Sequence[Expr], args: Sequence[Expr]) -> Expr:
        """Reverses the second half, then the first."""
        R, forward, cotangents = self.R, args[: self.forward], args[self.forward :]
        half = self.loop.call(level[0] if level else len(self.levels) - 1, forward)
        reached, middle = self.loop.advance(half, forward)
        second = R.invoke(inner, [*level, *middle, *cotangents])
        found = R.emit(R.branch(reached, second, R.pack(cotangents)))
        return R.invoke(inner, [*level, *forward, *R.unpack(found, len(cotangents))])

    def _tried(self, level: int | Expr, args: Sequence[Expr]) -> tuple[Expr, Sequence[Expr], Expr]:
        forward = args[: self.forward]
        unfinished, _ = self.loop.advance(self.loop.call(level, forward), forward)
        return unfinished, args, self.call(level, args)
