"""Kernels of every backend without loops of their own: they hand parts of a nest back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.fuse import Allocate, materialize
from tvmgraph.backend.loop_ir.in_place import write_in_place
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import Stage
from tvmgraph.backend.loop_ir.types import IN_PLACE, Func
from tvmgraph.backend.named import Emit, name_of
from tvmgraph.backend.table import Kernel, Refused, Writer


def in_place(write: Callable[[Stage, Nest, Writer[Any]], None]) -> Kernel:
    """The kernel for functions whose results overwrite their operands.

    Args:
        write: Writes an elementwise stage of a nest.
    """

    def match(nest: Nest, _model: object) -> Nest | Refused:
        asked = nest.is_whole and nest.func.attrs and IN_PLACE in nest.func.attrs
        return nest if asked else Refused("its results do not overwrite its operands")

    def emit_stages(nest: Nest, _plan: None, writer: Writer[object]) -> Func:
        return write_in_place(nest.func, lambda stage: write(stage, nest, writer))

    why = "elementwise, results overwrite operands"
    return Kernel("in_place", match, emit_stages, why, rewrites=True)


def named(match: Callable[[Nest, Any], tuple[Nest, Emit] | Refused]) -> Kernel[Any]:
    """The kernel that an operator asks for by name.

    Args:
        match: Finds who writes it for the backend.
    """

    def emit_named(found: tuple[Nest, Emit], _plan: str, writer: Writer[object]) -> None:
        nest, emitter = found
        emitter(nest.func, name_of(nest)[1], writer.model)

    return Kernel(
        "named", match, emit_named, "a kernel that the operator asks for by name",
        lambda found, _model: "{} {}".format(*name_of(found[0])),
    )  # fmt: skip


def unfused_stages(why: str, allocate: Allocate = emit.workspace) -> Kernel:
    """The kernel that writes every stage as a loop nest of its own.

    Args:
        why: What that means for the backend.
        allocate: Makes the memory of intermediates.
    """

    def match(nest: Nest, _model: object) -> Nest | Refused:
        return Refused("its loops are not known") if nest.loops is None else nest

    def emit_stages(nest: Nest, _plan: None, writer: Writer[object]) -> None:
        assert nest.loops is not None
        stages = nest.loops.stages
        for position, stage in enumerate(stages):
            if not all(map(nest.loops.is_parameter, stage.buffers)):
                stages = materialize(stages, position, allocate)
            writer.write(nest.subnest([stages[position]]))

    return Kernel("unfused_stages", match, emit_stages, why)
