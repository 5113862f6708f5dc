"""Operators with an effect: assignment to parameters, in-place functions, and printing."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.random import Generator
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.core.traits import ELEMENTWISE, Pattern, Traits
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.errors import DTypeError, reject
from tvmgraph.ops.common.arguments import require_same_kind

__all__ = [
    "assign", "assign_add", "assign_sub", "bernoulli_", "clamp_", "erfinv_", "exponential_",
    "normal_", "print_", "put_", "random_", "tanh_", "uniform_", "zero_",
]  # fmt: skip


def _target(variable: object, op: str) -> Tensor:
    if not isinstance(variable, Tensor):
        reject(DTypeError, f"ops.{op}",
               f"variable must be a Parameter or Tensor, not {type(variable).__name__}",
               repr(variable)[:80])  # fmt: skip
    return variable


def _like(value: Tensor, variable: Tensor) -> Tensor:
    if value.ndim != variable.ndim and value.size == variable.size == 1:
        value = F.reshape(value, variable.shape)
    return value if value.dtype is variable.dtype else F.cast(value, variable.dtype)


def values_of(*variables: Tensor) -> Any:
    """Returns what variables denote now, as tensors of their own; that of a single one alone.

    Args:
        *variables: Parameters, at least one.
    """
    values = [v.snapshot() for v in variables]
    return tuple(values) if len(values) > 1 else values[0]


def _set(variable: Tensor, value: Tensor) -> Tensor:
    return values_of(variable.rebind(value))


def assign(variable: Tensor, value: object) -> Tensor:
    """Gives a parameter a new value.

    Args:
        variable: Parameter or Tensor.
        value: Tensor of the same shape, a tensor of one element, or a number; converted to the
            variable's dtype.

    Returns:
        The new value, as a tensor of its own.

    Raises:
        ShapeError: if the shapes differ.
        DTypeError: if ``variable`` is no tensor, or integers are given floats.

    Example:
        >>> ops.assign(ms.Parameter(Tensor([1.0, 2.0])), Tensor([3.0, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  4.00000000e+00])
    """
    target = _target(variable, "assign")
    require_same_kind("assign", value, target)
    new = _like(value if isinstance(value, Tensor) else Tensor(value, target.dtype), target)
    if new.size == 1 and new.shape != target.shape:
        new = F.broadcast_to(F.reshape(new, ()), target.shape)
    return _set(target, new)


def assign_add(variable: Tensor, value: object) -> Tensor:
    r"""Adds to a parameter: :math:`variable = variable + value`.

    Args:
        variable: Parameter or Tensor.
        value: Tensor that broadcasts to the variable's shape, or a number.

    Returns:
        The new value, as a tensor of its own.

    Raises:
        ShapeError: if the sum has another shape than the variable.
        DTypeError: if ``variable`` is no tensor, or integers are given floats.

    Example:
        >>> ops.assign_add(ms.Parameter(Tensor([1.0, 2.0])), 1)
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  3.00000000e+00])
    """
    target = _target(variable, "assign_add")
    require_same_kind("assign_add", value, target)
    return _set(target, _like(F.add(target, value), target))


def assign_sub(variable: Tensor, value: object) -> Tensor:
    r"""Subtracts from a parameter: :math:`variable = variable - value`.

    Args:
        variable: Parameter or Tensor.
        value: Tensor that broadcasts to the variable's shape, or a number.

    Returns:
        The new value, as a tensor of its own.

    Raises:
        ShapeError: if the difference has another shape than the variable.
        DTypeError: if ``variable`` is no tensor, or integers are given floats.

    Example:
        >>> ops.assign_sub(ms.Parameter(Tensor([1.0, 2.0])), 1)
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.00000000e+00])
    """
    target = _target(variable, "assign_sub")
    require_same_kind("assign_sub", value, target)
    return _set(target, _like(F.sub(target, value), target))


def print_(*input_x: object) -> None:
    """Prints each argument on a line of its own; tensors with their shapes and dtypes.

    Args:
        input_x: Tensors, numbers, strings and tuples.

    Example:
        >>> ops.print_("loss:", Tensor(1.5))
        loss:
        Tensor(shape=[], dtype=Float32, value= 1.5)
    """
    for x in input_x:
        print(repr(x) if isinstance(x, Tensor) else x, flush=state.interpreter is None)


@primitive(
    infer=rules.same_as_first,
    traits=Traits(Pattern.VIEW, ELEMENTWISE.factors, alias=True),
    eager=lambda before, value: value,
    lower=lambda R, before, value: value,
    vjp=lambda g, y, before, value: (g, None),
    onnx=lambda O, before, value: O.Identity(value),
    samples=[sample(s, s, grad=False) for s in ((3, 4), (), (0, 2))],
)
def leaf_value(before: Tensor, value: Tensor) -> Tensor:
    """Returns the value that a Parameter is given: its cotangent is the Parameter's own.

    Args:
        before: What the Parameter was, of any shape.
        value: What it becomes, of the same shape and dtype.

    Returns:
        ``value``.
    """
    ...


# ---- functions that change their first argument; each is the method of that name -----------------


def bernoulli_(input: Tensor, p: object = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fills with ones of probability ``p`` and zeros.

    Args:
        input: Tensor of any shape.
        p: Probability in :math:`[0, 1]`, a number or a tensor that broadcasts.
        generator: Where the numbers come from; by default the global stream.

    Returns:
        ``input``.
    """
    return input.bernoulli_(p, generator=generator)


def clamp_(input: Tensor, min: object = None, max: object = None) -> Tensor:
    """Draws elements into :math:`[min, max]`.

    Args:
        input: Tensor of any shape.
        min: Lower limit, a number or tensor; ``None`` for none.
        max: Upper limit, a number or tensor; ``None`` for none.

    Returns:
        ``input``.
    """
    return input.clamp_(min, max)


def erfinv_(input: Tensor) -> Tensor:
    """Replaces elements by their inverse error function.

    Args:
        input: Tensor of any shape with elements in :math:`[-1, 1]`.

    Returns:
        ``input``.
    """
    return input.erfinv_()


def exponential_(input: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fills with numbers of an exponential distribution of rate ``lambd``.

    Args:
        input: Tensor of any shape.
        lambd: The rate.
        generator: Where the numbers come from; by default the global stream.

    Returns:
        ``input``.
    """
    return input.exponential_(lambd, generator=generator)


def normal_(
    input: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None
) -> Tensor:
    """Fills with normal numbers.

    Args:
        input: Tensor of any shape.
        mean: The mean.
        std: The standard deviation.
        generator: Where the numbers come from; by default the global stream.

    Returns:
        ``input``.
    """
    return input.normal_(mean, std, generator=generator)


def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Writes (or adds) ``source`` at places of the flattened tensor.

    Args:
        input: Tensor of any shape.
        index: Positions, integers of any shape; negative ones count from the end.
        source: As many elements as ``index`` has.
        accumulate: Whether to add.

    Returns:
        ``input``.
    """
    return input.put_(index, source, accumulate)


def random_(
    input: Tensor, from_: int = 0, to: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Fills with whole numbers of ``[from_, to)``.

    Args:
        input: Tensor of any shape.
        from_: The lower end.
        to: The upper end, excluded; by default the largest number up to which the dtype holds every
            integer.
        generator: Where the numbers come from; by default the global stream.

    Returns:
        ``input``.
    """
    return input.random_(from_, to, generator=generator)


def tanh_(input: Tensor) -> Tensor:
    """Replaces elements by their hyperbolic tangent.

    Args:
        input: Tensor of any shape.

    Returns:
        ``input``.
    """
    return input.tanh_()


def uniform_(
    input: Tensor, from_: float = 0, to: float = 1, *, generator: Generator | None = None
) -> Tensor:
    """Fills with numbers of ``[from_, to)``.

    Args:
        input: Tensor of any shape.
        from_: The lower end.
        to: The upper end, excluded.
        generator: Where the numbers come from; by default the global stream.

    Returns:
        ``input``.
    """
    return input.uniform_(from_, to, generator=generator)


def zero_(input: Tensor) -> Tensor:
    """Fills the tensor with zeros, in place.

    Args:
        input: Tensor of any shape.

    Returns:
        ``input``.
    """
    return input.zero_()


# ---- printing as a part of a graph, where a tensor decides whether something is printed ----------
# The row takes and gives a token, which orders it among others of its kind and keeps it alive.

TOKEN = tensor_type((), dtypes.int64)
Words = tuple[str | None, ...]


def _infer_print(
    *types: TensorType, words: Words, end: str, numbers: tuple[str, ...]
) -> TensorType:
    if not types or types[0] is not TOKEN:
        raise DTypeError(f"the token must be int64[], not {types[0] if types else 'absent'}")
    return TOKEN


def show(arrays: Sequence[np.ndarray], words: Words, end: str, numbers: tuple[str, ...]) -> None:
    """Prints tensors between words.

    Args:
        arrays: Elements of the tensors.
        words: Text pieces in order; ``None`` stands for the next tensor.
        end: What comes last.
        numbers: For every tensor the class of the Python number it stands for, ``"Tensor"`` for
            its representation, or ``""``.
    """
    texts = {"": str, "Tensor": repr}
    shown = iter(
        [
            texts[kind](tensor_from_numpy(a)) if kind in texts else str(a.item())
            for a, kind in zip(arrays, numbers)
        ]
    )
    print("".join([next(shown) if w is None else w for w in words]), end=end)


def _eager_print(
    token: np.ndarray, *arrays: np.ndarray, words: Words, end: str, numbers: tuple[str, ...]
) -> np.ndarray:
    show(arrays, words, end, numbers)
    return token


def _lower_print(R: Builder, *args: Expr, words: Words, end: str, numbers: tuple[str, ...]) -> Expr:
    def call(_token: np.ndarray, *arrays: np.ndarray) -> None:
        show(arrays, words, end, numbers)

    return R.host_call(call, f"print {words!r} {end!r} {numbers!r}", args)


_NONE = {"words": ("nothing",), "end": "\n", "numbers": ()}


@primitive(
    infer=_infer_print, eager=_eager_print, lower=_lower_print,
    traits=Traits(Pattern.OPAQUE, Reason("it prints whole tensors"), effect=True),
    vjp=Reason("what is printed has no derivative"),
    onnx=Reason("ONNX has no operator that prints"),
    samples=[
        sample(np.array(0), attrs=_NONE),
        sample(
            np.array(0), (2,), (), dtype=("int64", "float32", "float64"),
            attrs={"words": ("x = ", None, " ", None), "end": "\n", "numbers": ("", "float")},
        ),
        sample(np.array(0.0), dtype="float32", attrs=_NONE, raises=DTypeError),
    ],
)  # fmt: skip
def host_print(*operands: Tensor, words: Words, end: str, numbers: tuple[str, ...]) -> Tensor:
    """Prints tensors, then returns the first operand.

    Args:
        *operands: The token that the print before returned, ``int64[]``, then what is printed.
        words: Text pieces in order; ``None`` stands for the next value.
        end: What comes last.
        numbers: For every value the class of the Python number it stands for, ``"Tensor"`` for
            its representation, or ``""``.

    Returns:
        The token for the next print, ``int64[]``.

    Raises:
        DTypeError: if the token is not ``int64[]``.

    Example:
        >>> ms.jit(lambda x: print(x) if x.sum() > 0 else None)(Tensor([1.0]))
        [1.]
    """
    ...


def _infer_raise(*types: TensorType, kind: str, message: str) -> TensorType:
    if types != (TOKEN, _TRUTH):
        raise DTypeError(f"a token int64[] and a bool[] are needed, not {list(map(str, types))}")
    return TOKEN


def _eager_raise(token: np.ndarray, truth: np.ndarray, kind: str, message: str) -> np.ndarray:
    if truth.item():
        raise getattr(builtins, kind)(*filter(None, (message,)))
    return token


def _lower_raise(R: Builder, *args: Expr, kind: str, message: str) -> Expr:
    def call(token: np.ndarray, truth: np.ndarray) -> None:
        _eager_raise(token, truth, kind, message)

    return R.host_call(call, f"raise {kind} {message!r}", args)


_TRUTH = tensor_type((), dtypes.bool_)
_REFUSED = {"kind": "ValueError", "message": "refused"}


@primitive(
    infer=_infer_raise, eager=_eager_raise, lower=_lower_raise,
    traits=Traits(Pattern.OPAQUE, Reason("it decides about a whole call"), effect=True),
    vjp=Reason("an error has no derivative"),
    onnx=Reason("ONNX has no operator that raises"),
    samples=[
        sample(np.array(0), np.array(False), attrs=_REFUSED),
        sample(np.array(0), np.array(0), attrs=_REFUSED, raises=DTypeError),
    ],
)  # fmt: skip
def host_raise(token: Tensor, truth: Tensor, *, kind: str, message: str) -> Tensor:
    """Raises an exception where a tensor is true, then returns the token.

    Args:
        token: What the effect before returned, ``int64[]``.
        truth: Whether to raise, ``bool[]``.
        kind: Name of a builtin exception.
        message: Its text.

    Returns:
        The token for the next effect, ``int64[]``.

    Raises:
        DTypeError: if an operand is of another type.

    Example:
        >>> from tvmgraph.core.op import F
        >>> F.host_raise(Tensor(0), Tensor(False), kind="ValueError", message="negative").item()
        0
    """
    ...
