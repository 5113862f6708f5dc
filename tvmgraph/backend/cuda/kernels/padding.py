"""Images with padding around them: read where they lie instead of being copied with the padding."""

from __future__ import annotations

from dataclasses import replace

from tvm import tirx

from tvmgraph.backend.cuda.kernels.iteration import same
from tvmgraph.backend.loop_ir.inline import has_identity_store, inline_into
from tvmgraph.backend.loop_ir.program import Program, Stage, is_choice
from tvmgraph.backend.loop_ir.types import Load

#: A padded element is read by this many results or taps at most: of a window of 3 x 3, with some
#: room. Others are better served by a copy.
_MAX_READS = 16


def merge_padding(program: Program) -> Program:
    """The program with padding merged into the windows that read it.

    Args:
        program: Stages, of which those that cost nothing were merged already. The limits there are
            those of processors, which copy an image within their caches; here the copy would be
            written to memory and read again.
    """
    stages = list(program.stages)
    for stage in program.stages:
        consumers = [s for s in stages if s.reads(stage.buffer) and s is not stage]
        if program.is_parameter(stage.buffer) or not _is_padding(stage) or not consumers:
            continue
        if any(_reads(consumer, stage) > _MAX_READS for consumer in consumers):
            continue
        stages = [
            inline_into(s, stage) if s.reads(stage.buffer) else s for s in stages if s is not stage
        ]
    return replace(program, stages=tuple(stages))


def _is_padding(stage: Stage) -> bool:
    """Whether a stage stores elements of one buffer, or a constant around them."""
    if stage.is_reduction or stage.lets or not has_identity_store(stage):
        return False
    value = stage.value
    if not is_choice(value):
        return False
    _, element, fill = value.args
    return isinstance(element, Load) and isinstance(fill, (tirx.FloatImm, tirx.IntImm))


def _reads(consumer: Stage, stage: Stage) -> float:
    """How often an element of the padded image is read: by taps, or by iterations."""
    taps: list[Load] = []
    for load in consumer.loads:
        if load.source.same_as(stage.buffer) and not any(same(load, tap) for tap in taps):
            taps.append(load)
    return max(len(taps), len(taps) * consumer.work / max(1, stage.points))
