"""Kernels without loops of their own: they hand parts of a nest back, or rewrite functions."""

from __future__ import annotations

from tvmgraph.backend.cuda.kernels.device import device_memory
from tvmgraph.backend.cuda.kernels.elementwise import emit_elementwise
from tvmgraph.backend.loop_ir.fuse import fuse_points
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import Stage
from tvmgraph.backend.named import Emit, emitter_of, name_of
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.backend.target import GpuModel
from tvmgraph.backend.whole import in_place, named, unfused_stages


def _match_named(nest: Nest, _model: GpuModel) -> tuple[Nest, Emit] | Refused:
    """A kernel by name.

    Raises:
        NotImplementedError: if it has neither a kernel for GPUs nor loops.
    """
    name, _ = name_of(nest)
    if not name:
        return Refused("it asks for no kernel by name")
    emitter = emitter_of(name, "cuda")
    if emitter is not None:
        return nest, emitter
    if nest.parsed is None:  # its loops are a processor's
        raise NotImplementedError(f"no kernel for GPUs is written for {name!r}")
    return Refused("its loops have kernels as any others")


def _match_nothing(nest: Nest, _model: GpuModel) -> Stage | Refused:
    if nest.stage is None or nest.stage.points:
        return Refused("there are elements to store")
    return nest.stage


def _match_fused(nest: Nest, _model: GpuModel) -> tuple[Nest, Stage] | Refused:
    fused = None if nest.loops is None else fuse_points(nest.loops)
    if fused is None:
        return Refused("no several elementwise stages over the same loops")
    return nest, fused


def _emit_fused(found: tuple[Nest, Stage], _plan: None, writer: Writer[GpuModel]) -> None:
    nest, stage = found
    writer.write(nest.subnest([stage]))


IN_PLACE_KERNEL = in_place(lambda stage, _nest, writer: emit_elementwise(stage, writer.model))
NAMED_KERNEL = named(_match_named)
NOTHING = Kernel("nothing", _match_nothing, lambda *_: None, "results without elements")
FUSED = Kernel("elementwise_fused", _match_fused, _emit_fused, "several results in one pass")
STAGES = unfused_stages("a kernel for every stage, with intermediates in memory", device_memory)
DLIGHT = Kernel(
    "dlight", lambda nest, _model: nest, lambda *_: None,
    "TVM's own rules, which bind any loop nest to threads", rewrites=True,
)  # fmt: skip
