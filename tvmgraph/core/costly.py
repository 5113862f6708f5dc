"""Eager operators that NumPy takes long for: each gets machine code of its own once that pays.

The plan of a call with large operands has a :class:`Costly`, which adds up what NumPy took. Once
it is enough, the code is asked for and made aside (:mod:`tvmgraph.compiler.eager`); NumPy goes on
meanwhile. When it is there, it first runs beside NumPy; if it is faster it stays, else NumPy does
until it is tried again.
An operator changes at most once in a process, and gives the same from then on.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Generator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tvmgraph import hooks
from tvmgraph.config import context
from tvmgraph.core.op import Op, Reason
from tvmgraph.core.traits import Pattern

if TYPE_CHECKING:
    from tvmgraph.core.tensor import Tensor
    from tvmgraph.core.types import TensorType

#: Elements of operands and results from which on NumPy takes more than some microseconds.
LARGE = 1 << 13
_WORTH = 1e-3  # seconds in NumPy after which code for large tensors is asked for
#: And for small ones, whose calls are what takes long: they are more, and code gains less.
_WORTH_SMALL = 20e-3
_WORTH_STARTING = 20e-3  # and of all of them together before the first is
_USES = 2  # at least
_CHEAP, _PATIENCE = 10e-6, 16  # seconds of a call, and calls, after which code would not pay
#: Calls beside NumPy; the first ones load the code and get memory.
TRIALS = 5

#: Environment variable that switches it off, as ``set_context(eager_kernels=False)`` does.
VARIABLE = "TVMGRAPH_EAGER_KERNELS"

Code = Callable[[tuple["Tensor", ...]], tuple["Tensor", ...]]


def costly(
    op: Op,
    inputs: tuple[TensorType, ...],
    attrs: Mapping[str, object],
    outputs: tuple[TensorType | None, ...],
) -> Costly | None:
    """Returns what watches a call of an operator, ``None`` if it is small or has no code.

    Args:
        op: The operator.
        inputs: Types of its operands.
        attrs: Its attributes.
        outputs: Types of its results.
    """
    types = [t for t in (*inputs, *outputs) if t is not None and t.is_static]
    if len(types) < len(inputs) + len(outputs) or not inputs or sum(t.size for t in types) < LARGE:
        return None
    traits = op.traits
    unfit = (
        isinstance(op.lower, Reason) or op.regions or traits.pattern is Pattern.VIEW
        or traits.effect or traits.collective or traits.places or traits.alias or traits.binds
        or traits.stops or any(not t.size for t in types)
    )  # fmt: skip
    if unfit:
        return None
    graph = functools.partial(hooks.one_node, op, inputs, attrs, types[len(inputs) :])
    check = None if op.check_values is None else functools.partial(op.check_values, **attrs)
    return Costly(graph, check)


class Costly:
    """What is computed again and again of large tensors of some types.

    Args:
        graph: Returns it as a graph of the tensors.
        check: Raises what NumPy's column raises for some values of the tensors.
        small: Whether all of the tensors together have less than :data:`LARGE` elements.

    Attributes:
        graph: As given.
        code: What computes it, once it was made.
        asked: Whether the code was asked for.
        trials: How often it is still to run beside NumPy.
    """

    __slots__ = (
        "_again", "_best", "_check", "_fastest", "_small", "_spent", "_uses", "asked", "code",
        "graph", "trials",
    )  # fmt: skip

    def __init__(
        self, graph: Callable[[], Any], check: Callable[..., None] | None = None,
        small: bool = False,
    ) -> None:  # fmt: skip
        self.graph, self._check, self._small = graph, check, small
        self.code: Code | None = None
        self.asked = False
        self._uses, self._again, self.trials, self._spent = 0, 0, TRIALS, 0.0
        self._best = self._fastest = float("inf")  # seconds of NumPy and of the code

    def run(self, args: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        """Runs the code; ``None`` while there is none, or where it is switched off.

        Args:
            args: Operands of the types that the code is for.

        Raises:
            OutOfRangeError: as NumPy's column does for values that it refuses.
        """
        if self.trials or not switched_on():
            return None
        assert self.code is not None
        if self._check is not None:
            self._check(*[a.array for a in args])
        return self.code(args)

    def took(self, args: tuple[Tensor, ...], seconds: float) -> bool:
        """Notes what NumPy took for a call; returns whether code may still pay.

        Args:
            args: Operands of the types that the code is for.
            seconds: How long the call took.
        """
        self._uses += 1
        self._spent += seconds
        self._best = min(self._best, seconds)
        if self.code is not None:
            self._try(args)
        elif not self.asked:
            if self._uses >= _PATIENCE and self._best < _CHEAP:
                return False
            worth = _WORTH_SMALL if self._small else _WORTH
            if self._uses >= _USES and self._spent >= worth and _together(seconds):
                if os.environ.get(VARIABLE, "1") == "0":
                    return False
                self.asked = switched_on()
                if self.asked:
                    hooks.eager_kernel(self)
        return True

    def _try(self, args: tuple[Tensor, ...]) -> None:
        """Runs the code beside NumPy."""
        if not switched_on() or self._uses < self._again:
            return
        assert self.code is not None
        start = perf_counter()
        self.code(args)
        self._fastest = min(self._fastest, perf_counter() - start)
        if self.trials > 1 or self._pays():
            self.trials -= 1
        else:  # other processes may have been in the way: once more after as many calls
            self.trials, self._again = TRIALS, 2 * self._uses
            self._best = self._fastest = float("inf")

    def _pays(self) -> bool:
        return self._fastest < self._best


def switched_on() -> bool:
    """Whether eager operators may have code of their own."""
    return context.eager_kernels and context.deterministic == "OFF"


@contextlib.contextmanager
def unasked() -> Generator[None]:
    """While the compiler makes something better of what eager operators compute."""
    global _compiling
    _compiling += 1
    try:
        yield
    finally:
        _compiling -= 1


_compiling = 0
_spent = 0.0


def _together(seconds: float) -> bool:
    global _spent
    _spent += seconds
    return not _compiling and _spent >= _WORTH_STARTING
