"""Choosing a kernel for every PrimFunc of a module.

Expects a module after ``LegalizeOps``, ``AnnotateTIROpPattern``, ``FuseOps`` and ``FuseTIR``;
returns one with the same functions and signatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tvm import ir, tirx

from tvmgraph.processor import CpuModel
from tvmgraph.schedule import emit, intrinsics
from tvmgraph.schedule.analysis.addresses import straighten
from tvmgraph.schedule.analysis.contraction import (
    Contraction,
    is_window,
    match_contraction,
    prepare_first,
)
from tvmgraph.schedule.analysis.inline import has_identity_store, inline
from tvmgraph.schedule.analysis.joining import join_points
from tvmgraph.schedule.analysis.program import Program, Stage, map_loads, parse, static_shape
from tvmgraph.schedule.attention.forward import emit_attention
from tvmgraph.schedule.attention.gradient import emit_attention_gradient
from tvmgraph.schedule.convolution.blocked import (
    emit_blocked_conv,
    emit_padding,
    is_blocked_conv,
)
from tvmgraph.schedule.convolution.blocked_pairs import emit_paired_conv, is_paired_conv
from tvmgraph.schedule.convolution.depthwise import emit_depthwise, is_depthwise
from tvmgraph.schedule.convolution.depthwise_plane import emit_plane_depthwise, is_plane_depthwise
from tvmgraph.schedule.convolution.depthwise_weight_gradient import (
    emit_depthwise_gradient,
    is_depthwise_gradient,
)
from tvmgraph.schedule.convolution.direct import emit_conv, is_conv
from tvmgraph.schedule.convolution.narrow import emit_turned, is_wide_and_deep
from tvmgraph.schedule.convolution.weight_gradient import emit_weight_gradient, is_weight_gradient
from tvmgraph.schedule.convolution.winograd import emit_winograd, transformed_weight
from tvmgraph.schedule.elementwise.in_place import emit_in_place
from tvmgraph.schedule.elementwise.injective import emit_injective
from tvmgraph.schedule.elementwise.pool_grad import emit_max_pool_grad
from tvmgraph.schedule.elementwise.random_words import emit_random_words
from tvmgraph.schedule.elementwise.repeated import emit_repeated
from tvmgraph.schedule.fallback import schedule_fallback
from tvmgraph.schedule.products.gemm import emit_gemm
from tvmgraph.schedule.products.recurrent import emit_recurrent
from tvmgraph.schedule.products.recurrent_gradient import emit_recurrent_gradient
from tvmgraph.schedule.rows.kernel import emit_rows, emit_split, wants_split
from tvmgraph.schedule.rows.plan import plan_rows
from tvmgraph.schedule.rows.scan import emit_scan
from tvmgraph.schedule.rows.scatter import emit_scatter
from tvmgraph.schedule.rows.search import emit_search
from tvmgraph.schedule.rows.sort import emit_sort
from tvmgraph.schedule.rows.top import emit_top
from tvmgraph.schedule.symbolic import schedule_rows
from tvmgraph.schedule.types import IN_PLACE, SCHEDULED, WRITTEN, Buffer, Func, Index, Load, Module

#: Kernels that rows ask for by name, see :data:`WRITTEN`.
_WRITERS = {
    "attention": emit_attention,
    "attention_gradient": emit_attention_gradient,
    "max_pool_grad": emit_max_pool_grad,
    "random_bits": emit_random_words,
    "recurrent": emit_recurrent,
    "recurrent_gradient": emit_recurrent_gradient,
    "repeated": emit_repeated,
    "scan": emit_scan,
    "scatter": emit_scatter,
    "search": emit_search,
    "sort": emit_sort,
    "top": emit_top,
}
#: What kernels are written for until the processor is known.
_ANY = CpuModel(16, 16, 32 << 10, 512 << 10, 8 << 20, threads=1)


def schedule_cpu(mod: Module, model: CpuModel, level: int) -> Module:
    """Replaces the naive loops of every PrimFunc by a kernel for ``model``.

    Args:
        mod: A fused module.
        model: The processor.
        level: 0 changes nothing; 1 applies the general rules (elementwise, rows, fallback);
            2 also uses the kernels for matrix products, convolutions and pooling.

    Returns:
        The module with new functions; types, names and attributes stay.
    """
    intrinsics.install()  # TVM has no remainder of floats for LLVM at all
    if level <= 0:
        return mod
    functions = {
        var: schedule_func(func, model, level) if isinstance(func, Func) else func
        for var, func in mod.functions.items()
    }
    return ir.IRModule(functions, attrs=mod.attrs)


def written(name: str, settings: str, operands: Sequence[tuple[Sequence[Index], str]]) -> Func:
    """A function that is a kernel of :data:`_WRITERS` from the start, correct on any processor.

    It is written again for the processor at hand when it is scheduled.

    Args:
        name: Which kernel.
        settings: What the kernel takes besides its operands.
        operands: Shape and type of the inputs and of the results.
    """
    params = [
        tirx.decl_buffer([emit.index(extent) for extent in shape], dtype, f"p{i}")
        for i, (shape, dtype) in enumerate(operands)
    ]
    func = tirx.PrimFunc(params, tirx.Evaluate(0))
    kernel = emit.kernel(func, lambda: _WRITERS[name](func, settings, _ANY))
    attrs = {WRITTEN: (name, settings), "op_pattern": 8, "tirx.noalias": True}
    for key, value in attrs.items():
        kernel = kernel.with_attr(key, value)
    return kernel


def schedule_func(func: Func, model: CpuModel, level: int) -> Func:
    """The kernel for one function."""
    if func.attrs and SCHEDULED in func.attrs:
        return func
    if func.attrs and IN_PLACE in func.attrs:
        return emit_in_place(func, model)
    if func.attrs and WRITTEN in func.attrs:
        name, settings = func.attrs[WRITTEN]
        emitter = _WRITERS[str(name)]
        kernel = emit.kernel(func, lambda: emitter(func, settings, model))
        return kernel.without_attr(WRITTEN).with_attr(SCHEDULED, True)
    parsed = parse(func)
    if parsed is None:
        rows = schedule_rows(func, lambda fixed: schedule_func(fixed, model, level))
        return schedule_fallback(func, model) if rows is None else rows.with_attr(SCHEDULED, True)
    if _is_empty(parsed):
        return schedule_fallback(func, model)
    program = inline(parsed)
    if not all(has_identity_store(stage) for stage in program.stages if stage.is_reduction):
        return schedule_fallback(func, model)
    write = emit_program
    if level >= 2:
        ordered = prepare_first(program)
        if _is_product(ordered):
            program, write = ordered, emit_contraction
        elif _has_product(ordered):
            program, write = ordered, emit_product_apart
    if write is emit_program:  # products know panels by their divisions
        program = straighten(program)
    kernel = emit.kernel(func, lambda: write(program, model))
    return kernel.with_attr(SCHEDULED, True)


def emit_program(program: Program, model: CpuModel) -> None:
    """Writes a program as one row kernel if its stages share their rows, else stage by stage."""
    plan = plan_rows(program.stages)
    if plan is not None and not wants_split(plan, model):
        emit_rows(plan, model, program.is_parameter)
        return
    joined = join_points(program)
    if joined is not None:
        emit_injective(joined, model)
        return
    emit_stages(program, model)


def emit_contraction(program: Program, model: CpuModel) -> None:
    """Writes a matrix product, after the stages that prepare its operands."""
    contraction = match_contraction(program)
    if contraction is not None and is_depthwise(contraction):
        emit_depthwise(contraction, model)
        return
    if contraction is not None and is_plane_depthwise(contraction):
        emit_plane_depthwise(contraction, model)
        return
    if contraction is not None and is_depthwise_gradient(contraction):
        emit_depthwise_gradient(contraction, model)
        return
    while contraction is not None and contraction.before:
        if _is_padded_window(contraction):
            _emit_window(contraction, contraction.before[0], model)
            return
        program = replace(program, stages=_materialize(program.stages, 0))
        if is_blocked_conv(contraction) and not program.stages[0].lets:
            emit_padding(program.stages[0], contraction, model)
        else:
            _emit_stage(program.stages[0], model)
        program = replace(program, stages=program.stages[1:])
        contraction = match_contraction(program)
    assert contraction is not None
    if is_blocked_conv(contraction):
        transformed = transformed_weight(program, contraction)
        if transformed is not None:
            emit_winograd(contraction, transformed, model)
        else:
            emit_blocked_conv(contraction, model)
    elif _has_window_kernel(contraction):
        _emit_window(contraction, None, model)
    elif is_wide_and_deep(contraction):
        emit_turned(contraction, model)
    else:
        emit_gemm(contraction, model)


def emit_product_apart(program: Program, model: CpuModel) -> None:
    """Writes a matrix product into memory first, then the stages that use it.

    For what no epilogue can be: a slice of the result, or results of two shapes.
    """
    last = _product_position(program)
    later = program.stages[last + 1 :]
    stages = _materialize(program.stages, last)
    for position in range(last):
        if any(stage.reads(stages[position].buffer) for stage in later):
            stages = _materialize(stages, position)
            _emit_stage(stages[position], model)
    written = [
        s for s in stages[:last] if any(stage.reads(s.buffer) for stage in stages[last + 1 :])
    ]
    head = tuple(s for s in stages[: last + 1] if not any(s is w for w in written))
    emit_contraction(replace(program, stages=head), model)
    emit_program(replace(program, stages=stages[last + 1 :]), model)


def _product_position(program: Program) -> int:
    return next((i for i, s in enumerate(program.stages) if s.is_reduction), -1)


def _has_product(program: Program) -> bool:
    """Whether the only sums of a program are a matrix product of which it does more than store."""
    last = _product_position(program)
    if last < 0 or any(stage.is_reduction for stage in program.stages[last + 1 :]):
        return False
    return _is_product(replace(program, stages=program.stages[: last + 1]))


def _has_window_kernel(contraction: Contraction) -> bool:
    kinds = (is_paired_conv, is_conv, is_weight_gradient)
    return any(is_kind(contraction) for is_kind in kinds)


def _emit_window(contraction: Contraction, padding: Stage | None, model: CpuModel) -> None:
    if is_weight_gradient(contraction):
        emit_weight_gradient(contraction, padding, model)
    elif is_paired_conv(contraction):
        emit_paired_conv(contraction, padding, model)
    else:
        emit_conv(contraction, padding, model)


def _is_padded_window(contraction: Contraction) -> bool:
    """Whether all that is left to do before a convolution is to pad its input."""
    if len(contraction.before) != 1 or not _has_window_kernel(contraction):
        return False
    window = contraction.left if is_paired_conv(contraction) else contraction.right
    return contraction.before[0].buffer.same_as(window.load.source)


def _is_product(program: Program) -> bool:
    contraction = match_contraction(program)
    if contraction is None or not all(map(has_identity_store, contraction.before)):
        return False
    if not contraction.columns:
        return is_depthwise(contraction)
    if is_window(contraction) and not contraction.rows:
        return is_plane_depthwise(contraction) or is_depthwise_gradient(contraction)
    return True


def emit_stages(program: Program, model: CpuModel) -> None:
    """Writes every stage as a loop nest of its own, with intermediates in memory."""
    stages = program.stages
    for position, stage in enumerate(stages):
        if not all(program.is_parameter(buffer) for buffer in stage.buffers):
            stages = _materialize(stages, position)
        _emit_stage(stages[position], model)


def _materialize(stages: Sequence[Stage], position: int) -> tuple[Stage, ...]:
    """Gives the results of a stage buffers of the new kernel."""
    renamed = list(stages)
    for buffer in stages[position].buffers:
        local = emit.workspace(static_shape(buffer) or (), str(buffer.dtype))
        renamed = [_rename(stage, buffer, local) for stage in renamed]
    return tuple(renamed)


def _emit_stage(stage: Stage, model: CpuModel) -> None:
    if not stage.is_reduction:
        emit_injective(stage, model)
        return
    plan = plan_rows([stage])
    assert plan is not None  # a reduction alone always has rows
    if not (wants_split(plan, model) and emit_split(plan, model)):
        emit_rows(plan, model, lambda _: True)


def _rename(stage: Stage, old: Buffer, new: Buffer) -> Stage:
    def visit(load: Load) -> ir.Expr:
        return new[tuple(load.indices)] if load.source.same_as(old) else load

    return replace(
        stage,
        buffers=tuple(new if buffer.same_as(old) else buffer for buffer in stage.buffers),
        values=tuple(map_loads(value, visit) for value in stage.values),
        lets=tuple((var, map_loads(value, visit)) for var, value in stage.lets),
    )


def _is_empty(program: Program) -> bool:
    buffers = [*program.func.params, *(b for stage in program.stages for b in stage.buffers)]
    return any(0 in (static_shape(buffer) or ()) for buffer in buffers)
