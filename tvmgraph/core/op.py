"""The operator row and the table of all rows; :mod:`.primitive` adds them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from tvmgraph.core.traits import Reason as Reason
from tvmgraph.core.traits import Traits
from tvmgraph.core.types import TensorType
from tvmgraph.errors import NotFoundError


@dataclass(frozen=True)
class Sample:
    """Arguments on which the derived checks run one row.

    Attributes:
        shapes: Shape of every tensor argument (or a NumPy array, taken as it is).
        attrs: Attributes of the call.
        dtype: dtype of the generated arrays; a tuple gives one per argument.
        low: Smallest generated value (inclusive).
        high: Largest generated value (exclusive for integers).
        raises: The exception class this sample must raise, or ``None``.
        grad: Whether finite differences are checked on it.
        rtol: Relative tolerance of compiled against eager, ``None`` for the dtype's default.
    """

    shapes: tuple[object, ...]
    attrs: dict[str, object]
    dtype: str | tuple[str, ...] = "float32"
    low: float = -2.0
    high: float = 2.0
    raises: type[Exception] | None = None
    grad: bool = True
    rtol: float | None = None


def sample(
    *shapes: object,
    attrs: Mapping[str, object] | None = None,
    dtype: str | tuple[str, ...] = "float32",
    low: float = -2.0,
    high: float = 2.0,
    raises: type[Exception] | None = None,
    grad: bool = True,
    rtol: float | None = None,
    **more_attrs: object,
) -> Sample:
    """Builds a :class:`Sample`.

    Every other keyword is an attribute of the call; attributes whose names clash with the
    sample's own (such as ``dtype``) go into ``attrs``.

    Args:
        *shapes: Shape of every tensor argument, or a NumPy array, taken as it is.
        attrs: Attributes whose names are those of other parameters here.
        dtype: dtype of the generated arrays; a tuple gives one per argument.
        low: Smallest generated value.
        high: Largest generated value, excluded for integers.
        raises: The exception that the call must raise, if any.
        grad: Whether finite differences are checked.
        rtol: Relative tolerance of compiled against eager; ``None`` for the dtype's.
        **more_attrs: More attributes of the call.
    """
    return Sample(shapes, {**(attrs or {}), **more_attrs}, dtype, low, high, raises, grad, rtol)


InferRule = Callable[..., TensorType | tuple[TensorType, ...]]


class RegionColumn(Protocol):
    """The ``lower`` column of control flow: functions of its regions first, then their calls."""

    @property
    def define(self) -> Callable[..., object]:
        """Defines the functions that a node's regions become."""
        ...

    @property
    def emit(self) -> Callable[..., object]:
        """Calls them."""
        ...


#: NumPy's function of complex operands, with the attributes as keywords.
OfComplex = Callable[..., np.ndarray | tuple[np.ndarray, ...]]
#: A callable, a name, or why there is none.
Column = Callable[..., Any] | str | Reason


@dataclass(eq=False)
class Op:
    """One row of the table; every room of the project interprets it.

    Attributes:
        name: Unique name, the key of the table.
        infer: ``(*TensorType, **attrs) -> TensorType | tuple`` or raises a shape or dtype error.
        eager: NumPy implementation ``(*ndarray, **attrs) -> ndarray | tuple``.
        lower: A ``relax.op`` name, or ``(R, *expr, **attrs) -> expr | tuple``.
        vjp: ``(g, y, *inputs, **attrs) -> tuple`` of input cotangents (``None`` where there is
            none); with several outputs ``g`` and ``y`` are tuples. It may use any operator.
        onnx: An ONNX op_type, or ``(O, *value, **attrs) -> value | tuple``.
        samples: Inputs of the derived checks.
        traits: What kind of operator it is, see :mod:`.traits`.
        promote: How mixed dtypes are unified before ``infer`` (see :mod:`.promotion`).
        variadic: Whether the tensors arrive as ``*args``.
        tensors: Names of the tensor arguments.
        attrs: Names of the attributes, in order.
        kinds: What the attributes must be, by name, where their annotations say it.
        regions: Names of the sub-graphs of a control-flow row; every column gets them as keywords.
        multi: Whether the operator always returns a tuple.
        check_values: ``(*ndarray, **attrs)`` raises what the NumPy column raises for values of its
            operands; compiled code takes any.
        form: What it is of complex operands, ``(*Tensor, **attrs)``: other operators on their
            parts. Without one, its NumPy column is asked.
        of_complex: What NumPy computes of complex operands at once, ``(*ndarray, **attrs)``, where
            nobody has to see the operators of the form.
        of_bools: Which row it is where all operands are bools, if it takes numbers only.
        indices: Which operands are indices or conditions, which have no parts.
        fn: The public function of the row.
        module: Module that defines it.
    """

    name: str
    infer: InferRule
    eager: Callable[..., Any]
    lower: Any  # a Column or a RegionColumn, as the row has regions or none
    vjp: Any  # a Column
    onnx: Column
    samples: Sequence[Sample]
    traits: Traits
    promote: str | None
    tensors: tuple[str, ...]
    attrs: tuple[str, ...]
    variadic: bool
    module: str
    doc: str
    multi: bool = False
    regions: tuple[str, ...] = ()
    check_values: Callable[..., None] | None = field(default=None, repr=False)
    form: Callable[..., Any] | None = field(default=None, repr=False)
    of_bools: str | None = None
    of_complex: OfComplex | None = field(default=None, repr=False)
    indices: tuple[int, ...] = ()
    fn: Callable[..., Any] = field(init=False, repr=False)
    cache: dict[object, Any] = field(default_factory=dict, repr=False)
    kinds: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"Op({self.name})"

    def types(self, *inputs: TensorType, **attrs: Any) -> tuple[TensorType, ...]:
        """Returns the types of the results.

        Args:
            *inputs: Types of the operands.
            **attrs: The attributes.
        """
        found = self.infer(*inputs, **attrs)
        return found if isinstance(found, tuple) else (found,)

    @property
    def reads_transposed(self) -> bool:
        """Whether it is a matrix product that reads either operand transposed."""
        return "transpose_a" in self.attrs

    def __reduce__(self) -> tuple[object, ...]:
        return (get_op, (self.name,))


OPS: dict[str, Op] = {}
CUSTOM: dict[str, Op] = {}  # operators that users made: no rows of the table, but found by name


def get_op(name: str) -> Op:
    """Returns the row called ``name``.

    Args:
        name: Name of the row.

    Raises:
        NotFoundError: if the table has no such row.
    """
    found = OPS.get(name) or CUSTOM.get(name)
    if found is None:
        load_table()
        found = OPS.get(name)
    if found is None:
        raise NotFoundError(f"there is no operator {name!r} in the table")
    return found


#: The package of the rows. It stands above this file and is found by name when it is needed.
TABLE = "tvmgraph.ops"


def load_table() -> ModuleType:
    """Returns the package of the rows; importing it fills the table."""
    return importlib.import_module(TABLE)


class OpNamespace:
    """Resolves operator functions by name at call time, so that rooms need no import cycle.

    ``F.matmul`` is the public function ``tvmgraph.ops.matmul``; rows may use it in their VJPs.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        found = getattr(load_table(), name, None)
        if found is None and name in OPS:
            found = OPS[name].fn
        if found is None:
            raise NotFoundError(f"there is no operator function {name!r}")
        setattr(self, name, found)
        return found


F = OpNamespace()
