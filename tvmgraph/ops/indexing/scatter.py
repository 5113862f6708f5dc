"""Updating slices and elements by integer tensors, as users call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvmgraph import dtypes
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.ops.common.arguments import (
    bad,
    require,
    require_same_kind,
    require_tensor,
    resolve_axis,
)
from tvmgraph.ops.indexing.advanced import index_update
from tvmgraph.ops.indexing.basic import WHOLE, basic_index
from tvmgraph.ops.indexing.elements import scatter_along
from tvmgraph.ops.indexing.gather import as_index, split_columns
from tvmgraph.ops.indexing.getitem import put_at
from tvmgraph.ops.indexing.select import like

__all__ = [
    "index_add", "index_fill", "index_put", "inplace_add", "inplace_index_add", "inplace_sub",
    "inplace_update", "scatter", "scatter_add", "scatter_div", "scatter_max", "scatter_min",
    "scatter_mul", "scatter_nd", "scatter_nd_add", "scatter_nd_div", "scatter_nd_max",
    "scatter_nd_min", "scatter_nd_mul", "scatter_nd_sub", "scatter_nd_update", "scatter_sub",
    "scatter_update", "tensor_scatter_add", "tensor_scatter_div", "tensor_scatter_elements",
    "tensor_scatter_max", "tensor_scatter_min", "tensor_scatter_mul", "tensor_scatter_sub",
    "tensor_scatter_update",
]  # fmt: skip

#: What every kind of update does, for the documentation.
FORMULAS = {
    "update": ("Replaces", "updates"),
    "add": ("Adds to", "x + updates"),
    "sub": ("Subtracts from", "x - updates"),
    "mul": ("Multiplies", "x * updates"),
    "div": ("Divides", "x / updates"),
    "max": ("Takes the larger of its operands in", "max(x, updates)"),
    "min": ("Takes the smaller of its operands in", "min(x, updates)"),
}


def _values(name: str, value: object, x: Tensor) -> Tensor:
    require_same_kind(name, value, x, "updates")
    return like(value, x)


def combine(
    name: str, x: Tensor, value: object, indices: list[Tensor], axes: tuple[int, ...], how: str
) -> Tensor:
    """Applies one kind of update; the value takes ``x``'s dtype.

    Args:
        name: Name of the public function.
        x: The tensor.
        value: A tensor or number that broadcasts to what is addressed.
        indices: One integer tensor per axis; their shapes broadcast.
        axes: The axes that they index, sorted.
        how: ``"update"``, ``"add"``, ``"sub"``, ``"mul"``, ``"div"``, ``"max"`` or ``"min"``.
    """
    value = _values(name, value, x)
    if how == "sub":
        return index_update(x, F.neg(value), *indices, axes=axes, mode="add")
    if how == "div":
        product = index_update(F.ones_like(x), value, *indices, axes=axes, mode="mul")
        return F.div(x, product) if x.aval.dtype.is_float else F.truncate_div(x, product)
    mode = "set" if how == "update" else how
    return index_update(x, value, *indices, axes=axes, mode=mode)


def _first_axis(name: str, x: Tensor, indices: object, updates: object, how: str) -> Tensor:
    require_tensor(name, x, "input_x")
    index = as_index(name, indices, "indices")
    expected = (*index.aval.shape, *x.aval.shape[1:])
    if isinstance(updates, Tensor) and updates.aval.shape != expected and updates.ndim:
        raise bad(ShapeError, f"updates must have the shape {list(expected)}", name,
                  f"input_x={x.aval}, indices={index.aval}, updates={updates.aval}",
                  "its shape is indices.shape + input_x.shape[1:]")  # fmt: skip
    return combine(name, x, updates, [index], (0,), how)


def _coordinates(name: str, x: Tensor, indices: object, updates: object, how: str) -> Tensor:
    require_tensor(name, x, "input_x")
    columns = split_columns(name, x, indices)
    return combine(name, x, updates, columns, tuple(range(len(columns))), how)


def _stored(target: Tensor, new: Tensor) -> Tensor:
    """Makes the updated parameter or tensor denote ``new``, and returns the new value."""
    target.rebind(new)
    return new


_TENSOR_DOC = r"""{verb} the slices whose coordinates stand in the last axis of ``indices``.

    In a copy of ``input_x``, :math:`x_{{indices_i}}` becomes :math:`{formula}`; repeated
    coordinates are applied one after the other.

    Args:
        input_x: Tensor of at least one axis.
        indices: Integer Tensor of shape :math:`(..., k)` with :math:`k` coordinates per slice.
        updates: Tensor that broadcasts to ``indices.shape[:-1] + input_x.shape[k:]``.

    Returns:
        Tensor of ``input_x``'s type.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: if floats are given for integers.
        OutOfRangeError: if a coordinate lies outside its axis.

    Example:
        >>> ops.{name}(Tensor([1.0, 2.0]), Tensor([[0]]), Tensor([4.0])).tolist()
        [{result}, 2.0]
    """

_ND_DOC = r"""{verb} slices of a parameter, whose coordinates stand in ``indices``' last axis.

    :math:`x_{{indices_i}}` becomes :math:`{formula}`; repeated coordinates are applied one after
    the other.

    Args:
        input_x: Parameter or Tensor, changed in place.
        indices: Integer Tensor of shape :math:`(..., k)` with :math:`k` coordinates per slice.
        updates: Tensor that broadcasts to ``indices.shape[:-1] + input_x.shape[k:]``.
        use_locking: Without effect; updates never race.

    Returns:
        Tensor: the new value.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: if floats are given for integers.
        OutOfRangeError: if a coordinate lies outside its axis.

    Example:
        >>> ops.{name}(ms.Parameter(Tensor([1.0, 2.0])), Tensor([[0]]), Tensor([4.0])).tolist()
        [{result}, 2.0]
    """

_FIRST_DOC = r"""{verb} slices along the first axis of a parameter.

    :math:`x_{{indices_i}}` becomes :math:`{formula}`; repeated indices are applied one after the
    other.

    Args:
        input_x: Parameter or Tensor of at least one axis, changed in place.
        indices: Integer Tensor of positions on the first axis.
        updates: Tensor of shape ``indices.shape + input_x.shape[1:]``, or 0-d.

    Returns:
        Tensor: the new value.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: if floats are given for integers.
        OutOfRangeError: if an index lies outside the axis.

    Example:
        >>> ops.{name}(ms.Parameter(Tensor([1.0, 2.0])), Tensor([0]), Tensor([4.0])).tolist()
        [{result}, 2.0]
    """

#: Of the examples: what 1 becomes with the update 4.
_RESULTS = {"update": 4.0, "add": 5.0, "sub": -3.0, "mul": 4.0, "div": 0.25, "max": 4.0, "min": 1.0}


def _described(
    function: Callable[..., object], name: str, how: str, doc: str
) -> Callable[..., Any]:
    verb, formula = FORMULAS[how]
    function.__name__ = function.__qualname__ = name
    # error messages name the function by its code
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
    function.__doc__ = doc.format(verb=verb, formula=formula, name=name, result=_RESULTS[how])
    return function


def _tensor_scatter(how: str) -> Callable[..., Tensor]:
    name = f"tensor_scatter_{how}"

    def function(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
        return _coordinates(name, input_x, indices, updates, how)

    return _described(function, name, how, _TENSOR_DOC)


def _scatter_nd(how: str) -> Callable[..., Tensor]:
    name = f"scatter_nd_{how}"

    def function(
        input_x: Tensor, indices: Tensor, updates: Tensor, use_locking: bool = False
    ) -> Tensor:
        return _stored(input_x, _coordinates(name, input_x, indices, updates, how))

    return _described(function, name, how, _ND_DOC)


def _scatter(how: str) -> Callable[..., Tensor]:
    name = f"scatter_{how}"

    def function(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
        return _stored(input_x, _first_axis(name, input_x, indices, updates, how))

    return _described(function, name, how, _FIRST_DOC)


tensor_scatter_update = _tensor_scatter("update")
tensor_scatter_add = _tensor_scatter("add")
tensor_scatter_sub = _tensor_scatter("sub")
tensor_scatter_mul = _tensor_scatter("mul")
tensor_scatter_div = _tensor_scatter("div")
tensor_scatter_max = _tensor_scatter("max")
tensor_scatter_min = _tensor_scatter("min")
scatter_nd_update = _scatter_nd("update")
scatter_nd_add = _scatter_nd("add")
scatter_nd_sub = _scatter_nd("sub")
scatter_nd_mul = _scatter_nd("mul")
scatter_nd_div = _scatter_nd("div")
scatter_nd_max = _scatter_nd("max")
scatter_nd_min = _scatter_nd("min")
scatter_update = _scatter("update")
scatter_add = _scatter("add")
scatter_sub = _scatter("sub")
scatter_mul = _scatter("mul")
scatter_div = _scatter("div")
scatter_max = _scatter("max")
scatter_min = _scatter("min")


def scatter_nd(indices: Tensor, updates: Tensor, shape: Any) -> Tensor:
    r"""Adds updates into zeros at the coordinates in the last axis of ``indices``.

    Args:
        indices: Integer Tensor of shape :math:`(..., k)` with :math:`k` coordinates per slice.
        updates: Tensor that broadcasts to ``indices.shape[:-1] + shape[k:]``.
        shape: Shape of the result.

    Returns:
        Tensor of shape ``shape`` and ``updates``' dtype.

    Raises:
        ShapeError: if the shapes do not fit.
        OutOfRangeError: if a coordinate lies outside its axis.

    Example:
        >>> ops.scatter_nd(Tensor([[1], [1]]), Tensor([9.0, 1.0]), (3,))
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  1.00000000e+01,  0.00000000e+00])
    """
    require_tensor("scatter_nd", updates, "updates")
    shape = tuple(shape.tolist()) if isinstance(shape, Tensor) else tuple(shape)
    zeros = F.zeros(shape, updates.aval.dtype)
    return _coordinates("scatter_nd", zeros, indices, updates, "add")


# ---- one index per element ----------------------------------------------------------------------


def scatter(input: Tensor, axis: int, index: Tensor, src: object) -> Tensor:
    r"""Replaces one element per index along an axis: :math:`out_{index_{ij}, j} = src_{ij}`.

    Args:
        input: Tensor of at least one axis.
        axis: Axis the indices address.
        index: Integer Tensor of as many axes, nowhere larger than ``input`` except along
            ``axis``; negative entries count from the end.
        src: Number, or Tensor at least as large as ``index`` on every axis.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: if floats are given for integers.
        OutOfRangeError: if the axis does not exist, or an index lies outside it.

    Example:
        >>> ops.scatter(Tensor([[1, 2], [3, 4]]), 0, Tensor([[1, 0]]), Tensor([[8, 9]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 9],
         [8, 4]])
    """
    axis = resolve_axis("scatter", input, axis)
    index = as_index("scatter", index, "index")
    value = _values("scatter", src, input)
    if value.ndim == 0:
        value = F.broadcast_to(value, index.shape)
    elif value.ndim == index.ndim and value.aval.shape != index.aval.shape:
        value = basic_index(value, tuple((0, n, 1) for n in index.aval.static_shape))
    return scatter_along(input, index, value, axis, "set")


def tensor_scatter_elements(
    input_x: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "none"
) -> Tensor:
    r"""Replaces, or adds to, one element per index along an axis.

    Args:
        input_x: Tensor of at least one axis.
        indices: Integer Tensor of as many axes. Negative entries count from the end; entries past
            either end of the axis are ignored.
        updates: Tensor of ``indices``' shape.
        axis: Axis the indices address.
        reduction: ``"none"`` or ``"add"``.

    Returns:
        Tensor of ``input_x``'s type.

    Raises:
        ArgumentError: if ``reduction`` is unknown.
        ShapeError: if the shapes do not fit.
        DTypeError: if floats are given for integers.
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.tensor_scatter_elements(Tensor([1.0, 2.0]), Tensor([1]), Tensor([9.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  9.00000000e+00])
    """
    name = "tensor_scatter_elements"
    axis = resolve_axis(name, input_x, axis)
    reduction = str(reduction).lower()
    require(reduction in ("none", "add"), "reduction must be 'none' or 'add'", name, ArgumentError,
            reduction=reduction)  # fmt: skip
    mode = "set" if reduction == "none" else "add"
    index = as_index(name, indices, "indices")
    return _scattered(input_x, index, _values(name, updates, input_x), axis, mode)


@fusible
def _scattered(x: Tensor, index: Tensor, updates: Tensor, axis: int, mode: str) -> Tensor:
    """What is ignored adds -0.0, which changes nothing, or goes to a slice behind the end."""
    size = x.aval.shape[axis]
    index = F.cast(index, dtypes.int64)
    index = F.where(F.less(index, 0), index + size, index)
    if mode == "add" and size and x.dtype not in dtypes.COMPLEX:
        exists = F.logical_and(F.greater_equal(index, 0), F.less(index, size))
        updates = F.where(exists, updates, -0.0 if x.dtype.is_float else 0)
        return scatter_along(x, F.where(exists, index, 0), updates, axis, mode)
    index = F.where(F.less(index, 0), size, F.minimum(index, size))
    room = [1 if a == axis else d for a, d in enumerate(x.shape)]
    larger = F.concat([x, F.zeros(tuple(room), x.aval.dtype)], axis)
    y = scatter_along(larger, index, updates, axis, mode)
    return basic_index(y, (*[WHOLE] * axis, (0, size, 1)))


# ---- along one axis -----------------------------------------------------------------------------


def index_add(
    x: Tensor,
    indices: Tensor,
    y: Tensor,
    axis: int,
    use_lock: bool = True,
    check_index_bound: bool = True,
) -> Tensor:
    r"""Adds slices to a parameter: slice :math:`indices_i` along ``axis`` gains slice :math:`i`.

    Args:
        x: Parameter or Tensor, changed in place.
        indices: 1-d integer Tensor.
        y: Tensor of ``x``'s shape with ``indices``' size on ``axis``.
        axis: Axis the indices address.
        use_lock: Without effect; updates never race.
        check_index_bound: Without effect; indices are always checked outside compiled code.

    Returns:
        Tensor: the new value.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: if floats are given for integers.
        OutOfRangeError: if the axis does not exist, or an index lies outside it.

    Example:
        >>> ops.index_add(ms.Parameter(Tensor([1.0, 2.0])), Tensor([1]), Tensor([3.0]), 0)
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  5.00000000e+00])
    """
    return _stored(x, index_added(x, indices, y, axis))


def index_added(x: Tensor, indices: Tensor, y: Tensor, axis: int) -> Tensor:
    """Returns what :func:`index_add` stores.

    Args:
        x: Tensor.
        indices: 1-d integer Tensor.
        y: Tensor of ``x``'s shape with ``indices``' size on ``axis``.
        axis: Axis the indices address.
    """
    axis = resolve_axis("index_add", x, axis)
    index = F.reshape(as_index("index_add", indices, "indices"), (-1,))
    return combine("index_add", x, y, [index], (axis,), "add")


def inplace_index_add(var: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Tensor:
    r"""Adds slices to a parameter: slice :math:`indices_i` along ``axis`` gains slice :math:`i`.

    Args:
        var: Parameter or Tensor, changed in place.
        indices: 1-d integer Tensor.
        updates: Tensor of ``var``'s shape with ``indices``' size on ``axis``.
        axis: Axis the indices address.

    Returns:
        Tensor: the new value.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: if floats are given for integers.
        OutOfRangeError: if the axis does not exist, or an index lies outside it.

    Example:
        >>> ops.inplace_index_add(ms.Parameter(Tensor([1.0, 2.0])), Tensor([1]), Tensor([3.0]), 0)
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  5.00000000e+00])
    """
    return index_add(var, indices, updates, axis)


def index_fill(x: Tensor, axis: int, index: Tensor, value: object) -> Tensor:
    r"""Returns ``x`` with whole slices along an axis set to one number.

    Args:
        x: Tensor of at least one axis.
        axis: Axis the indices address.
        index: 0-d or 1-d integer Tensor; negative entries count from the end.
        value: Number or 0-d Tensor, converted to ``x``'s dtype.

    Returns:
        Tensor of ``x``'s type.

    Raises:
        OutOfRangeError: if the axis does not exist, or an index lies outside it.

    Example:
        >>> ops.index_fill(Tensor([[1, 2], [3, 4]]), 1, Tensor([0]), 9)
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[9, 2],
         [9, 4]])
    """
    axis = resolve_axis("index_fill", x, axis)
    index = F.reshape(as_index("index_fill", index, "index"), (-1,))
    return combine("index_fill", x, value, [index], (axis,), "update")


def index_put(input: Tensor, indices: object, values: object, accumulate: bool = False) -> Tensor:
    r"""Returns ``input`` with ``values`` stored at, or added to, ``input[indices]``.

    Args:
        input: Tensor of at least one axis.
        indices: Tuple of integer or bool Tensors for the leading axes.
        values: Tensor that broadcasts to the region, converted to ``input``'s dtype.
        accumulate: Whether to add; repeated positions then add up.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ShapeError: if ``values`` do not fit.
        OutOfRangeError: if an index lies outside its axis.

    Example:
        >>> ops.index_put(Tensor([1.0, 2.0]), (Tensor([0, 0]),), Tensor([3.0, 4.0]), True)
        Tensor(shape=[2], dtype=Float32, value= [ 8.00000000e+00,  2.00000000e+00])
    """
    require_tensor("index_put", input)
    if not isinstance(indices, (tuple, list)):
        raise bad(
            ArgumentError, "indices must be a tuple of tensors", "index_put", f"{indices!r:.60}"
        )
    return put_at("index_put", input, tuple(indices), values, "add" if accumulate else "set")


def _inplace(name: str, x: Tensor, v: Tensor, indices: object, how: str) -> Tensor:
    require_tensor(name, x, "x")
    index = as_index(name, [indices] if isinstance(indices, int) else indices, "indices")
    return combine(name, x, v, [F.reshape(index, (-1,))], (0,), how)


def inplace_update(x: Tensor, v: Tensor, indices: object) -> Tensor:
    r"""Returns ``x`` with the slices ``indices`` of the first axis replaced by ``v``.

    Args:
        x: Tensor of at least one axis.
        v: Tensor of one slice per index.
        indices: Int, tuple of ints, or 1-d integer Tensor.

    Returns:
        Tensor of ``x``'s type.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: if floats are given for integers.
        OutOfRangeError: if an index lies outside the axis.

    Example:
        >>> ops.inplace_update(Tensor([[1, 2], [3, 4]]), Tensor([[8, 9]]), 0)
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[8, 9],
         [3, 4]])
    """
    return _inplace("inplace_update", x, v, indices, "update")


def inplace_add(x: Tensor, v: Tensor, indices: object) -> Tensor:
    r"""Returns ``x`` with ``v`` added to the slices ``indices`` of the first axis.

    Args:
        x: Tensor of at least one axis.
        v: Tensor of one slice per index.
        indices: Int, tuple of ints, or 1-d integer Tensor.

    Returns:
        Tensor of ``x``'s type.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: if floats are given for integers.
        OutOfRangeError: if an index lies outside the axis.

    Example:
        >>> ops.inplace_add(Tensor([[1, 2], [3, 4]]), Tensor([[8, 9]]), 0)
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[ 9, 11],
         [ 3,  4]])
    """
    return _inplace("inplace_add", x, v, indices, "add")


def inplace_sub(x: Tensor, v: Tensor, indices: object) -> Tensor:
    r"""Returns ``x`` with ``v`` subtracted from the slices ``indices`` of the first axis.

    Args:
        x: Tensor of at least one axis.
        v: Tensor of one slice per index.
        indices: Int, tuple of ints, or 1-d integer Tensor.

    Returns:
        Tensor of ``x``'s type.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: if floats are given for integers.
        OutOfRangeError: if an index lies outside the axis.

    Example:
        >>> ops.inplace_sub(Tensor([[1, 2], [3, 4]]), Tensor([[8, 9]]), 0)
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[-7, -7],
         [ 3,  4]])
    """
    return _inplace("inplace_sub", x, v, indices, "sub")
