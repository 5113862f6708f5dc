"""How loops and their reversal become functions of a module.

TVM has no loop, and a function that calls itself once per iteration overflows the stack after some
thousand. So the iterations are halved: a function of level ``k`` runs at most ``2**k`` of them by
two calls of level ``k - 1``. The lowest levels are functions of their own; above them one function
takes the level as a number, which keeps the code short and its stack as deep as there are levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvmgraph import dtypes
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.graph import Graph

_LEVELS = 6  # levels with a function of their own: up to 64 iterations without counting levels
_TRIED = (0, 3)  # levels that are tried first, since many loops are short
_COUNT = tensor_type((), dtypes.int64)


def _by_level(
    R: Builder,
    name: str,
    types: Sequence[TensorType],
    lowest: Expr,
    stub: Callable[..., Expr],
    halves: Callable[..., Expr],
) -> Expr:
    """Defines ``f(level, *operands)``: ``lowest`` at level 0, else ``halves`` of the level below.

    ``halves(f, below, operands)`` emits the two calls of a level.
    """

    def define(itself: Expr) -> Callable[..., Expr]:
        def split(level: Expr, *args: Expr) -> Expr:
            return halves(itself, R.emit(R.op.subtract(level, R.const(1, "int64"))), args)

        both = R.define(name, [_COUNT, *types], split)

        def choose(level: Expr, *args: Expr) -> Expr:
            at_bottom = R.emit(R.op.equal(level, R.const(0, "int64")))
            own = R.invoke(lowest, args)
            return R.branch(at_bottom, own, R.invoke(both, [level, *args]))

        return choose

    return R.define_recursive(name, [_COUNT, *types], stub, define)


class LoopFunctions:
    """The functions that run a loop.

    Args:
        R: The builder.
        types: Types of the operands: the state, then what stays fixed.
        cond: The loop's condition.
        body: The loop's body.
    """

    def __init__(self, R: Builder, types: Sequence[TensorType], cond: Graph, body: Graph) -> None:
        self.R = R
        self.types = list(types)
        self.count = len(body.outputs)
        self.test, self.step = R.outline(cond), R.outline(body)
        self.levels = self._levels()
        self.at_most = self._at_most()

    def whole(self) -> Expr:
        """Defines the function that runs all iterations."""
        R, chosen = self.R, self._endless()
        for level in reversed(_TRIED):

            def climb(*args: Expr, level: int = level, higher: Expr = chosen) -> Expr:
                unfinished, more = self.advance(R.invoke(self.levels[level], args), args)
                return R.branch(unfinished, R.invoke(higher, more), R.pack(more[: self.count]))

            chosen = R.define("climb", self.types, climb)
        return chosen

    def advance(self, call: Expr, args: Sequence[Expr]) -> tuple[Expr, list[Expr]]:
        """Emits some iterations; returns whether there are more, and the operands after them.

        Args:
            call: The call of a function that does the iterations.
            args: Its operands, the state first.
        """
        R = self.R
        more = [*R.unpack(R.emit(call), self.count), *args[self.count : len(self.types)]]
        return R.emit(R.invoke(self.test, more)), more

    def _levels(self) -> list[Expr]:
        R = self.R

        def lowest(*args: Expr) -> Expr:
            going_on = R.emit(R.invoke(self.test, args))
            return R.branch(going_on, R.invoke(self.step, args), R.pack(args[: self.count]))

        levels = [R.define("loop", self.types, lowest)]
        for _ in range(_LEVELS):

            def twice(*args: Expr, inner: Expr = levels[-1]) -> Expr:
                going_on, more = self.advance(R.invoke(inner, args), args)
                return R.branch(going_on, R.invoke(inner, more), R.pack(more[: self.count]))

            levels.append(R.define("loop", self.types, twice))
        return levels

    def _at_most(self) -> Expr:
        """Defines ``at_most(level, *operands)``: levels above those with their own function."""
        R = self.R

        def halves(itself: Expr, below: Expr, args: Sequence[Expr]) -> Expr:
            going_on, more = self.advance(R.invoke(itself, [below, *args]), args)
            rest = R.invoke(itself, [below, *more])
            return R.branch(going_on, rest, R.pack(more[: self.count]))

        return _by_level(R, "loop", self.types, self.levels[-1], self._stub, halves)

    def _endless(self) -> Expr:
        """Defines the function that doubles the number of iterations until the loop is over."""
        R = self.R

        def define(itself: Expr) -> Callable[..., Expr]:
            def climb(level: Expr, *args: Expr) -> Expr:
                call = R.invoke(self.at_most, [level, *args])
                unfinished, more = self.advance(call, args)
                above = R.emit(R.op.add(level, R.const(1, "int64")))
                higher = R.invoke(itself, [above, *more])
                return R.branch(unfinished, higher, R.pack(more[: self.count]))

            return climb

        climb = R.define_recursive("climb", [_COUNT, *self.types], self._stub, define)

        def start(*args: Expr) -> Expr:
            return R.invoke(climb, [R.const(0, "int64"), *args])

        return R.define("climb", self.types, start)

    def _stub(self, _level: Expr, *args: Expr) -> Expr:
        return self.R.pack(args[: self.count])


class SweepFunctions:
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
        self.R, self.types, self.loop = R, list(types), loop
        self.forward = len(loop.types)
        self.reverse = R.outline(pull_back)
        self.levels = self._levels()
        self.at_most = self._at_most()

    def whole(self) -> Expr:
        """Defines the function that reverses all iterations."""
        R, chosen = self.R, self._endless()
        for level in reversed(_TRIED):

            def climb(*args: Expr, level: int = level, higher: Expr = chosen) -> Expr:
                forward = args[: self.forward]
                unfinished, _ = self.loop.advance(
                    R.invoke(self.loop.levels[level], forward), forward
                )
                own = R.invoke(self.levels[level], args)
                return R.branch(unfinished, R.invoke(higher, args), own)

            chosen = R.define("sweep", self.types, climb)
        return chosen

    def _levels(self) -> list[Expr]:
        R = self.R

        def lowest(*args: Expr) -> Expr:
            ran = R.emit(R.invoke(self.loop.test, args[: self.forward]))
            return R.branch(ran, R.invoke(self.reverse, args), R.pack(args[self.forward :]))

        levels = [R.define("back", self.types, lowest)]
        for loop in self.loop.levels[:-1]:

            def halves(*args: Expr, loop: Expr = loop, inner: Expr = levels[-1]) -> Expr:
                return self._halves(args, loop, inner, [])

            levels.append(R.define("back", self.types, halves))
        return levels

    def _halves(self, args: Sequence[Expr], loop: Expr, inner: Expr, level: Sequence[Expr]) -> Expr:
        """Reverses the second half, then the first."""
        R, forward, cotangents = self.R, args[: self.forward], args[self.forward :]
        reached, middle = self.loop.advance(R.invoke(loop, [*level, *forward]), forward)
        second = R.invoke(inner, [*level, *middle, *cotangents])
        found = R.emit(R.branch(reached, second, R.pack(cotangents)))
        return R.invoke(inner, [*level, *forward, *R.unpack(found, len(cotangents))])

    def _at_most(self) -> Expr:
        def halves(itself: Expr, below: Expr, args: Sequence[Expr]) -> Expr:
            return self._halves(args, self.loop.at_most, itself, [below])

        return _by_level(self.R, "back", self.types, self.levels[-1], self._stub, halves)

    def _endless(self) -> Expr:
        R = self.R

        def define(itself: Expr) -> Callable[..., Expr]:
            def climb(level: Expr, *args: Expr) -> Expr:
                forward = args[: self.forward]
                call = R.invoke(self.loop.at_most, [level, *forward])
                unfinished, _ = self.loop.advance(call, forward)
                above = R.emit(R.op.add(level, R.const(1, "int64")))
                higher = R.invoke(itself, [above, *args])
                return R.branch(unfinished, higher, R.invoke(self.at_most, [level, *args]))

            return climb

        climb = R.define_recursive("sweep", [_COUNT, *self.types], self._stub, define)

        def start(*args: Expr) -> Expr:
            return R.invoke(climb, [R.const(0, "int64"), *args])

        return R.define("sweep", self.types, start)

    def _stub(self, _level: Expr, *args: Expr) -> Expr:
        return self.R.pack(args[self.forward :])
