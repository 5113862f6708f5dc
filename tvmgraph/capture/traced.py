"""TracedTensor: stands for a graph value while a function is captured."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tvmgraph import dtypes
from tvmgraph.capture.deciding import settled
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter, leaf_value
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import Shape, TensorType
from tvmgraph.errors import CaptureError, user_source

if TYPE_CHECKING:
    from tvmgraph.capture.identity import Choice
    from tvmgraph.capture.recorder import Recorder
    from tvmgraph.graph.ir import Value


def no_value(what: str, fix: str, at: str = "") -> NoReturn:
    """Raises the error for what needs the elements of a tensor that is not computed yet.

    Args:
        what: What needs the elements.
        fix: What the user may do.
        at: The user's line; that of now by default.
    """
    raise CaptureError(
        f"{what} needs the value of a tensor, which is not known while a function is compiled",
        op="jit", at=at or user_source(), fix=fix,
    )  # fmt: skip


_TEXT_OUTSIDE = "pass the tensor itself to print() or to a logger, or format it outside"
#: The remedy for most of it.
OUTSIDE = "do this outside the compiled function, or return the tensor and convert it there"


#: The remedy for an axis, a size or another setting.
AS_NUMBER = "pass it as a Python number, which is a constant of the graph, or compute it outside"


def _is_own(asking: Mapping[str, object]) -> bool:
    """Whether code is the package's own, and does not run code of the user's for it.

    Args:
        asking: The globals of the code.
    """
    package, _, rest = str(asking.get("__name__")).partition(".")
    return package == "tvmgraph" and rest.partition(".")[0] != "capture"


class TracedTensor(Tensor):
    """A tensor with a type but no elements.

    Attributes:
        value: The graph value it denotes now.
        recorder: The capture it belongs to.
        number: ``bool``, ``int`` or ``float`` where a loop carries it for a Python number.
        passed: The Parameter that was passed, where it stands for one.
        choice: The tensors of which it is one, where a tensor decided which.
    """

    __slots__ = ("choice", "number", "passed", "recorder", "value")

    value: Value
    recorder: Recorder
    number: type | None
    choice: Choice | None
    passed: Parameter | None

    def __init__(self, recorder: Recorder, value: Value) -> None:
        self.recorder = recorder
        self.value = value  # pyright: ignore[reportIncompatibleMethodOverride]
        self.number = self.choice = self.passed = None
        self.aval: TensorType = value.type
        self._ffi = None

    @property
    def shape(self) -> tuple[Any, ...]:
        """Size of every axis; a :class:`Dim` where it differs from call to call."""
        return self.aval.shape

    @property
    def size(self) -> Any:
        """Number of elements; a :class:`Dim` where it differs from call to call."""
        return math.prod(self.aval.shape)

    @property
    def strides(self) -> Shape:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Bytes to step along every axis."""
        return tuple([math.prod(self.shape[i:]) * self.itemsize for i in range(1, self.ndim + 1)])

    @property
    def shown_type(self) -> type:
        """The type of what it stands for."""
        return Tensor if self.passed is None else Parameter

    @property
    def array(self) -> NoReturn:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Raises: there are no elements yet."""
        no_value("this", OUTSIDE)

    @property
    def token(self) -> object:
        """Identity of the value it denotes now."""
        return self.value

    def rebind(self, new: Tensor) -> Tensor:
        """Makes it denote ``new``; what stands for a Parameter stays a leaf, as that does."""
        if self.passed is not None and new.aval is self.aval:
            new = leaf_value(self, new)
        return super().rebind(new)

    def snapshot(self) -> TracedTensor:
        """Returns a tensor that keeps denoting the current value."""
        return TracedTensor(self.recorder, self.value)

    def _known(self, what: str, fix: str) -> Tensor:
        """Returns it with its elements where they are known, or raises.

        Args:
            what: What needs the elements.
            fix: What the user may do.
        """
        by_operator = _is_own(sys._getframe(2).f_globals)
        known = settled(self, by_operator)
        if known is None and by_operator:
            no_value("a setting of an operator", AS_NUMBER)
        return no_value(what, fix) if known is None else known

    def __bool__(self) -> bool:
        fix = "choose with ops.where(condition, a, b), or decide outside the compiled function"
        return bool(self._known("a Python `if`, `while`, `and`, `or`, `not` or `assert`", fix))

    def __int__(self) -> int:
        return int(self._known("int()", OUTSIDE))

    def __float__(self) -> float:
        return float(self._known("float()", OUTSIDE))

    def __index__(self) -> int:
        fix = "index with the tensor itself: x[i]"
        return self._known("using a tensor as a Python index", fix).__index__()

    def as_tensor(self) -> Tensor:
        """Returns itself: what holds it."""
        return self

    def as_size(self) -> object:
        """Returns the integer that it is as a size, which the graph binds when it runs.

        As indices out of range are clamped, a negative one is 0.
        """
        if not self.dtype.is_integer or self.ndim:
            return self.__index__()
        known = self.recorder.known(self)
        if known is not None:
            return max(int(known), 0)
        count = F.maximum(F.cast(self, dtypes.int64), 0)
        return F.count_up(count, "counted").aval.shape[0]

    def item(self, *index: int) -> bool | int | float | complex:
        """Returns one element where constants alone decide it."""
        return self._known("item()", OUTSIDE).item(*index)

    def asnumpy(self) -> np.ndarray:
        """Returns the elements where constants alone decide them."""
        return self._known("asnumpy()", OUTSIDE).asnumpy()

    numpy = asnumpy

    def tolist(self) -> object:
        """Returns the elements where constants alone decide them."""
        return self._known("tolist()", OUTSIDE).tolist()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NoReturn:
        no_value("a NumPy function", "use the operator from tvmgraph.ops instead")

    def __contains__(self, value: object) -> bool:
        no_value("`in`", "use (x == value).any()")

    def __hash__(self) -> int:
        if _is_own(sys._getframe(1).f_globals):
            raise TypeError("the elements count")  # a setting of an operator
        raise CaptureError(  # it is found by its identity, which is another one at every call
            "a tensor as a key of a dict, or in a set, is not supported in a static graph",
            op="jit", at=user_source(), fix="use a number or a string, or keep tensors in a list",
        )  # fmt: skip

    def __deepcopy__(self, memo: dict[int, object]) -> TracedTensor:
        return self.snapshot()

    def __copy__(self) -> TracedTensor:
        return self.snapshot()

    def __reduce__(self) -> tuple[object, ...]:
        no_value("pickle", OUTSIDE)

    def __str__(self) -> str:
        return self._text(sys._getframe(1).f_globals)

    def __repr__(self) -> str:
        return self._text(sys._getframe(1).f_globals)

    def __format__(self, spec: str) -> str:
        return self._text(sys._getframe(1).f_globals)

    def _text(self, asking: Mapping[str, object]) -> str:
        """Describes it to this package's own messages; anybody else wants its elements.

        Args:
            asking: The globals of the code that asks, also on behalf of a container or a format.
        """
        if not _is_own(asking) and state.interpreter is not None:
            interpreter = getattr(self.recorder.call, "__self__", None)
            at = interpreter.line() if interpreter is not None else ""
            no_value("the text of a tensor's elements", _TEXT_OUTSIDE, at)
        return f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, value=<%{self.value.name}>)"
