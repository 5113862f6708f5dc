"""Kernels without loops of their own: they hand parts of a nest back, or rewrite functions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from tvmgraph.backend.cpu.fallback import schedule_fallback
from tvmgraph.backend.cpu.kernels.conv import depthwise
from tvmgraph.backend.cpu.kernels.conv.nchwc import emit_padding, is_packed_conv
from tvmgraph.backend.cpu.kernels.gemm.problem import product_of
from tvmgraph.backend.cpu.symbolic import Cut, find_cuts
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.addresses import straighten
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.fuse import materialize
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import Program
from tvmgraph.backend.loop_ir.types import NAMED, SCHEDULED, Func
from tvmgraph.backend.named import Emit, emitter_of, name_of
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.backend.whole import in_place, named, unfused_stages
from tvmgraph.machine.processor import CpuModel

# ---- functions --------------------------------------------------------------------------------


def write_function(nest: Nest, writer: Writer[CpuModel]) -> Func:
    """The kernel for the function of ``nest``.

    Args:
        nest: The loops of a function.
        writer: Writes the statements of its kernel, or another function in its place.
    """
    func, rewritten = writer.function(nest, lambda body: emit.kernel(nest.func, body))
    if rewritten:
        return func
    return func.without_attr(NAMED).with_attr(SCHEDULED, True)


def _match_named(nest: Nest, _model: CpuModel) -> tuple[Nest, Emit] | Refused:
    name, _ = name_of(nest)
    emitter = emitter_of(name, "cpu")
    return Refused("it asks for no kernel by name") if emitter is None else (nest, emitter)


def _match_symbolic(nest: Nest, _model: CpuModel) -> tuple[Nest, list[Cut]] | Refused:
    if not nest.is_whole or nest.parsed is not None:
        return Refused("all its extents are known")
    cuts = find_cuts(nest.func)
    return (nest, cuts) if cuts else Refused("rows along an unknown extent are not computed alike")


def _emit_symbolic(found: tuple[Nest, list[Cut]], _plan: None, writer: Writer[CpuModel]) -> Func:
    nest, cuts = found

    def fixed(func: Func) -> Func:
        return write_function(Nest(func, nest.contracts, arrange=straighten), writer)

    made = next((made for cut in cuts if (made := cut.write(nest.func, fixed))), None)
    if made is None:
        return schedule_fallback(nest.func, writer.model)
    return made.with_attr(SCHEDULED, True)


def _match_empty(nest: Nest, _model: CpuModel) -> Nest | Refused:
    empty = nest.is_whole and nest.is_empty
    return nest if empty else Refused("all its buffers have elements")


def _match_fallback(nest: Nest, _model: CpuModel) -> Nest | Refused:
    return nest if nest.is_whole else Refused("it is a part of a function")


def _emit_fallback(nest: Nest, _plan: None, writer: Writer[CpuModel]) -> Func:
    return schedule_fallback(nest.func, writer.model)


IN_PLACE_KERNEL = in_place(lambda stage, nest, writer: writer.write(nest.subnest([stage])))
NAMED_KERNEL = named(_match_named)
SYMBOLIC = Kernel(
    "rows_of_unknown_extent", _match_symbolic, _emit_symbolic,
    "kernels for a few fixed numbers of rows, called until all are done", rewrites=True,
)  # fmt: skip
EMPTY = Kernel(
    "empty", _match_empty, _emit_fallback, "the loops as they are, over buffers without elements",
    rewrites=True,
)  # fmt: skip
FALLBACK = Kernel(
    "loops", _match_fallback, _emit_fallback,
    "the loops as they are, divided among the workers where TVM can tell that it is allowed",
    rewrites=True,
)  # fmt: skip

# ---- stages that are not fused -------------------------------------------------------------------


def _match_prologue(nest: Nest, _model: CpuModel) -> tuple[Nest, Program, Contraction] | Refused:
    found = product_of(nest)
    if isinstance(found, Refused):
        return found
    if not found.before or nest.ordered is None:
        return Refused("nothing comes before the sums")
    return nest, nest.ordered, found


def _emit_prologue(
    found: tuple[Nest, Program, Contraction], _plan: None, writer: Writer[CpuModel]
) -> None:
    nest, program, contraction = found
    first, *others = materialize(program.stages, 0)
    if is_packed_conv(contraction) and not first.lets:
        emit_padding(first, contraction, writer.model)
    else:
        writer.write(nest.subnest([first]))
    writer.write(nest.subnest(others, contracts=True))


@dataclass(frozen=True)
class _Epilogue:
    nest: Nest
    program: Program
    #: Position of the stage that sums products.
    last: int


def _match_epilogue(nest: Nest, model: CpuModel) -> _Epilogue | Refused:
    program = nest.ordered
    if not nest.contracts or program is None:
        return Refused("kernels for sums of products are not asked: level O1, or a part of a nest")
    last = next((i for i, s in enumerate(program.stages) if s.is_reduction), -1)
    if last < 0 or any(stage.is_reduction for stage in program.stages[last + 1 :]):
        return Refused("no reduction, or more than one")
    head = nest.subnest(program.stages[: last + 1], contracts=True)
    kernels = (depthwise.KERNEL, depthwise.CONVOLUTION, depthwise.WEIGHT_GRADIENT)
    found = itertools.chain([product_of(head)], (k.match(head, model) for k in kernels))
    if all(isinstance(product, Refused) for product in found):
        return Refused("what is reduced are no products")
    return _Epilogue(nest, program, last)


def _emit_epilogue(found: _Epilogue, _plan: None, writer: Writer[CpuModel]) -> None:
    last, later = found.last, found.program.stages[found.last + 1 :]
    stages = materialize(found.program.stages, last)
    for position in range(last):
        if any(stage.reads(stages[position].buffer) for stage in later):
            stages = materialize(stages, position)
            writer.write(found.nest.subnest([stages[position]]))
    written = [s for s in stages[:last] if any(t.reads(s.buffer) for t in stages[last + 1 :])]
    head = [s for s in stages[: last + 1] if not any(s is w for w in written)]
    writer.write(found.nest.subnest(head, contracts=True))
    writer.write(found.nest.subnest(stages[last + 1 :]))


UNFUSED_PROLOGUE = Kernel(
    "unfused_prologue", _match_prologue, _emit_prologue,
    "writes the first stage before a sum of products into memory, and hands the rest back",
)  # fmt: skip
UNFUSED_EPILOGUE = Kernel(
    "unfused_epilogue", _match_epilogue, _emit_epilogue,
    "writes a product into memory and then what uses it, where that is no elementwise end",
)  # fmt: skip
STAGES = unfused_stages(
    "writes every stage as a loop nest of its own, with intermediates in memory"
)
