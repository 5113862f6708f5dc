"""What the kernels for sums of products ask of a nest before they look at its shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tvm import tirx

from tvmgraph.backend.cpu.kernels.elementwise.injective import emit_injective
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.contraction import (
    Contraction,
    Operand,
    match_contraction,
    operand_of,
)
from tvmgraph.backend.loop_ir.inline import has_identity_store
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import Axis, Stage, substitute
from tvmgraph.backend.loop_ir.types import Expr, Var, dtype_of
from tvmgraph.backend.table import Refused
from tvmgraph.machine.processor import CpuModel

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


def with_left_copied(
    contraction: Contraction, value: Callable[[dict[Var, Expr]], Expr], model: CpuModel
) -> Contraction:
    """Writes a copy of the left operand in the order of its axes, and reads that instead.

    Args:
        contraction: The sum.
        value: The element that is kept, for values of the batch, row and reduction axes.
        model: The processor.
    """
    axes = (*contraction.batch, *contraction.rows, *contraction.reduce)
    fresh = tuple(Axis(tirx.Var("at", "int64"), axis.extent) for axis in axes)
    copied = value({old.var: new.var for old, new in zip(axes, fresh)})
    buffer = emit.workspace([axis.extent for axis in axes], dtype_of(copied))
    indices = tuple(axis.var for axis in fresh)
    emit_injective(Stage("left", fresh, (), (buffer,), indices, (copied,), None), model)
    load = buffer[tuple(axis.var for axis in axes)]
    return replace(contraction, left=operand_of(load, load, contraction.axes))


def with_plain_left(contraction: Contraction, model: CpuModel) -> Contraction:
    """The contraction with its left operand in the type of the sums, copied where it is not.

    Args:
        contraction: A matrix product, whose left operand may be cast or computed.
        model: The processor, whose threads share the copy.
    """
    left = contraction.left
    if left.is_plain:
        return contraction
    return with_left_copied(contraction, lambda bound: substitute(left.expr, bound), model)
