"""Python-level questions about a tensor's type."""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits
from tvmgraph.core.types import Dim, TensorType, tensor_type
from tvmgraph.errors import NoTensorError, require_size
from tvmgraph.ops.common.arguments import bad
from tvmgraph.ops.common.rows import NOT_DIFFERENTIABLE

__all__ = ["dyn_shape", "numel", "rank", "shape", "shape_", "size", "type_as"]


def _tensor(value: object, op: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise bad(NoTensorError, f"the argument must be a Tensor, not {type(value).__name__}", op,
                  repr(value)[:80])  # fmt: skip
    return value


def shape(input_x: Tensor) -> tuple[int, ...]:
    """Returns the shape as a tuple of ints.

    Args:
        input_x: Tensor of any shape.

    Returns:
        The size of every axis.

    Example:
        >>> ops.shape(Tensor([[1, 2]]))
        (1, 2)
    """
    return _tensor(input_x, "shape").shape


shape_ = shape


def dyn_shape(input_x: Tensor) -> Tensor:
    """Returns the shape as a tensor.

    Args:
        input_x: Tensor of any shape.

    Returns:
        int64 tensor with one element per axis.

    Example:
        >>> ops.dyn_shape(Tensor([[1, 2]]))
        Tensor(shape=[2], dtype=Int64, value= [1, 2])
    """
    return Tensor(np.array(_tensor(input_x, "dyn_shape").aval.static_shape, np.int64))


def rank(input_x: Tensor) -> int:
    """Returns the number of axes.

    Args:
        input_x: Tensor of any shape.

    Returns:
        The number of axes.

    Example:
        >>> ops.rank(Tensor([[1, 2]]))
        2
    """
    return _tensor(input_x, "rank").ndim


def size(input_x: Tensor) -> int:
    """Returns the number of elements.

    Args:
        input_x: Tensor of any shape.

    Returns:
        The number of elements.

    Example:
        >>> ops.size(Tensor([[1, 2]]))
        2
    """
    return _tensor(input_x, "size").size


def numel(input: Tensor) -> int:
    """Returns the number of elements.

    Args:
        input: Tensor of any shape.

    Returns:
        The number of elements.

    Example:
        >>> ops.numel(Tensor([[1, 2]]))
        2
    """
    return _tensor(input, "numel").size


def type_as(input: Tensor, other: Tensor) -> Tensor:
    """Converts ``input`` to the dtype of ``other``.

    Args:
        input: Tensor of any shape.
        other: Tensor that gives the dtype.

    Returns:
        Tensor of ``input``'s shape and ``other``'s dtype.

    Example:
        >>> ops.type_as(Tensor([1.5]), Tensor([1]))
        Tensor(shape=[1], dtype=Int64, value= [1])
    """
    return F.cast(_tensor(input, "type_as"), _tensor(other, "type_as").dtype)


# ---- sizes as values ----------------------------------------------------------------------------


def _lower_size_value(R: Builder, *likes: Expr, size: object, dtype: dtypes.DType) -> Expr:
    if not isinstance(size, Dim):
        return R.const(size, dtype.name)
    places: dict[str, tuple[int, int]] = {}
    for i, like in enumerate(likes):
        for axis, d in enumerate(R.type(like).shape):
            if isinstance(d, Dim):
                places.setdefault(d.text, (i, axis))

    def compute(*tensors: Expr) -> Expr:
        extents = {text: tensors[i].shape[axis] for text, (i, axis) in places.items()}
        value = extents[size.text] if size.text in extents else R.size(size, extents)
        return R.te.compute((), lambda *_: value.astype(dtype.name), name="size")

    return R.emit_te(compute, *likes)


def _onnx_size_value(O: OnnxOps, *likes: OnnxNamed, size: object, dtype: dtypes.DType) -> OnnxNamed:
    if not isinstance(size, Dim):
        return O.const(np.asarray(size, dtype.numpy))
    return O.Cast(O.size(size), to=O.dtype(dtype))


@primitive(
    infer=lambda *likes, size, dtype: tensor_type((), dtype),
    traits=Traits(Pattern.OPAQUE, Reason("it is the size of a whole tensor")),
    eager=lambda *likes, size, dtype: np.asarray(size, dtype.numpy),
    lower=_lower_size_value,
    vjp=rules.flat,  # it depends on no element
    onnx=_onnx_size_value,
    samples=[
        sample((3, 4), attrs={"size": 12, "dtype": dtypes.float32}, grad=False),
        sample((2,), (5,), attrs={"size": 7, "dtype": dtypes.int64}, grad=False),
    ],
)
def size_value(*likes: Tensor, size: object, dtype: dtypes.DType) -> Tensor:
    """Returns a size of the graph's inputs, or an expression of such, as a 0-d tensor.

    Args:
        likes: Tensors of any shapes that have the sizes which ``size`` is computed from.
        size: The size: an int, or a symbolic one.
        dtype: Element type.

    Returns:
        0-d tensor of type ``dtype``.
    """
    ...


def _eager_at_least(x: np.ndarray, *likes: np.ndarray, size: int, least: int) -> np.ndarray:
    require_size(size, least)
    return x


def _lower_at_least(R: Builder, x: Expr, *likes: Expr, size: object, least: int) -> Expr:
    if isinstance(size, Dim):
        return R.at_least(x, size, least, likes)
    return R.numpy_column("at_least", {"size": size, "least": least}, [x], [R.type(x)])


@primitive(
    infer=lambda x, *likes, size, least: x,
    traits=Traits(Pattern.OPAQUE, Reason("the size of the whole is checked"), stops=True),
    eager=_eager_at_least,
    lower=_lower_at_least,
    vjp=lambda g, y, x, *likes, size, least: (g, *[None] * len(likes)),
    onnx=lambda O, x, *likes, size, least: O.Identity(x),
    samples=[sample((3,), attrs={"size": 3, "least": 1})],
)
def at_least(*tensors: Tensor, size: object, least: int) -> Tensor:
    """Returns the first of some tensors after checking a size that the values decided.

    Args:
        tensors: What is returned, and tensors that have the sizes which ``size`` is computed from.
        size: The size: symbolic, or an int.
        least: What it must be at least.

    Raises:
        TooFewElements: if it is less.
    """
    ...


# ---- sizes from values --------------------------------------------------------------------------


def _lower_count_up(R: Builder, count: Expr, *, size: str) -> Expr:
    extent = R.bind(size, count)

    def counted() -> Expr:
        return R.te.compute((extent,), lambda i: i, name="count_up")

    # TVM cannot fuse what takes its own size with what takes that of others
    return R.emit_te(counted, primfunc_attrs={"op_pattern": 8})


def _onnx_count_up(O: OnnxOps, count: OnnxNamed, *, size: str) -> OnnxNamed:
    first, step = (O.const(np.asarray(v, np.int64)) for v in (0, 1))
    return O.Range(first, count, step)


def _infer_count_up(count: TensorType, *, size: str) -> TensorType:
    rules.require_dtype(count, (dtypes.int64,), "count")
    rules.require_ndim(count, 0, "count")
    return tensor_type((Dim(size),), dtypes.int64, count.device)


@primitive(
    infer=_infer_count_up,
    traits=Traits(Pattern.OPAQUE, Reason("the value decides how many there are"), binds="size"),
    eager=lambda count, *, size: np.arange(int(count), dtype=np.int64),
    lower=_lower_count_up,
    vjp=Reason(NOT_DIFFERENTIABLE),
    onnx=_onnx_count_up,
    samples=[sample(np.array(5), size="count"), sample(np.array(0), size="count")],
)
def count_up(count: Tensor, size: str) -> Tensor:
    """Returns the positions below a number that is only known when the graph runs.

    It makes a size of a value: operators after it are compiled for the size ``size``.

    Args:
        count: 0-d int64 tensor, not negative.
        size: What the size is called in the graph.

    Returns:
        int64 tensor of shape ``(size,)``: :math:`0, 1, ..., count - 1`.
    """
    ...
