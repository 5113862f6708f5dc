"""What the kernels for sums of products ask of a nest before they look at its shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tvm import tirx

from tvmgraph.backend.cpu.kernels.elementwise.injective import emit_injective
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.contraction import Contraction, Operand, match_contraction, operand_of
from tvmgraph.backend.loop_ir.inline import has_identity_store, inline_into
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import Axis, Stage, substitute
from tvmgraph.backend.loop_ir.types import Expr, Load, Var, dtype_of
from tvmgraph.backend.table import Refused
from tvmgraph.machine.processor import CpuModel

#: Bytes of a line of the cache.
_LINE = 64
_NO_PRODUCT = Refused("no single sum of products with an elementwise end")
_NOT_ASKED = Refused("kernels for sums of products are not asked: level O1, or a part of a nest")
_SCATTERED = Refused("a stage before the sums stores in another order than that of its loops")
_IS_GEMM = Refused("another kernel made a plain matrix product of it")
_MORE_BEFORE = Refused("more than padding of the image comes before the sums")


def contraction_of(nest: Nest) -> Contraction | Refused:
    """The sum of products that a nest is, for kernels that know more than matrix products.

    Args:
        nest: The loops of a function.
    """
    return _IS_GEMM if nest.contraction is not None else nest.once(_find_contraction)


def _find_contraction(nest: Nest) -> Contraction | Refused:
    if not nest.contracts or nest.ordered is None:
        return _NOT_ASKED
    found = match_contraction(nest.ordered)
    if found is None:
        return _NO_PRODUCT
    return found if all(map(has_identity_store, found.before)) else _SCATTERED


def padding_of(contraction: Contraction, image: Operand) -> Stage | Refused | None:
    """The stage that pads the image of a convolution, if it is all that comes before the sums.

    Args:
        contraction: A convolution.
        image: Its operand that is padded.

    Returns:
        None where nothing is padded.
    """
    if not contraction.before:
        return None
    first, *others = contraction.before
    return _MORE_BEFORE if others or not first.buffer.same_as(image.load.source) else first


def emit_copy(
    value: Callable[[dict[Var, Expr]], Expr],
    axes: Sequence[Axis],
    model: CpuModel,
    slack: int = 0,
    padding: Stage | None = None,
) -> Load:
    """Writes a copy of an operand in the order of some axes, and returns its element at them.

    Args:
        value: The element that is kept, for values of the axes.
        axes: The axes.
        model: The processor.
        slack: Zeros after the last element along the last axis.
        padding: A stage that computes what is copied, merged into the copy.
    """
    *outer, last = axes
    extents = [*(axis.extent for axis in outer), last.extent + slack]
    fresh = tuple(Axis(tirx.Var("at", "int64"), extent) for extent in extents)
    kept = value({old.var: new.var for old, new in zip(axes, fresh)})
    buffer = emit.workspace(extents, dtype_of(kept))
    if slack:
        inside = fresh[-1].var < emit.i64(last.extent)
        kept = tirx.if_then_else(inside, kept, emit.zero(dtype_of(kept)))
    indices = tuple(axis.var for axis in fresh)
    stage = Stage("copy", fresh, (), (buffer,), indices, (kept,), None)
    emit_injective(inline_into(stage, padding) if padding else stage, model)
    return buffer[tuple(axis.var for axis in axes)]


def with_left(contraction: Contraction, load: Load) -> Contraction:
    """The same sums of another left operand.

    Args:
        contraction: Sums of products.
        load: An element of the operand, in terms of their axes.
    """
    return replace(contraction, left=operand_of(load, load, contraction.axes))


def with_right(contraction: Contraction, load: Load) -> Contraction:
    """The same sums of another right operand.

    Args:
        contraction: Sums of products.
        load: An element of the operand, in terms of their axes.
    """
    return replace(contraction, right=operand_of(load, load, contraction.axes))


def _is_scattered(contraction: Contraction, model: CpuModel) -> bool:
    """Whether every step of K finds the left operand's rows in another line of the cache.

    Tiles of few registers are 6 rows high, and take 24 bytes of a line of 64. Measured on Zen 3, in
    place and copied: 3072 x 768 results of 1024 steps 17 and 45 GFLOP/s of 98, 768 x 3072 53 and
    66, 768 x 768 of 256 steps 56 and 63.
    """
    strides = contraction.strides(contraction.left)
    if not model.has_few_registers or strides is None or not contraction.reduce:
        return False
    step = strides[contraction.reduce[-1].var]
    return step * dtype_bytes(contraction.dtype) >= _LINE


def with_plain_left(contraction: Contraction, model: CpuModel) -> Contraction:
    """The contraction with its left operand in the type of the sums, copied where it is not, or
    where every step of K finds its few rows in another line of the cache.

    Args:
        contraction: A matrix product, whose left operand may be cast or computed.
        model: The processor, whose threads share the copy.
    """
    left = contraction.left
    if left.is_plain and not _is_scattered(contraction, model):
        return contraction
    axes = (*contraction.batch, *contraction.rows, *contraction.reduce)
    return with_left(contraction, emit_copy(lambda at: substitute(left.expr, at), axes, model))
