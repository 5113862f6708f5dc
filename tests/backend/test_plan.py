"""Planning of matrix products: who does how much, and which tiles the caches bear."""

from dataclasses import replace
from itertools import pairwise

import pytest
from tvm import tirx

from tvmgraph.backend.attention import Operand, Problem
from tvmgraph.backend.cpu.kernels.attention import forward as attention
from tvmgraph.backend.cpu.kernels.attention import plan as attention_plan
from tvmgraph.backend.cpu.kernels.conv.depthwise import rows_of_taps
from tvmgraph.backend.cpu.kernels.gemm.plan import (
    Packing,
    max_tile_rows,
    panel_columns,
    panel_vectors,
    plan_gemm,
    plan_panels,
    step_cycles,
    tile_of_panel,
)
from tvmgraph.backend.loop_ir.gemm_shape import GemmShape
from tvmgraph.backend.target import target_names
from tvmgraph.machine.processor import cpu_model

pytestmark = pytest.mark.any_processor

_MODEL = cpu_model("x86-64-v4", threads=2)
#: Every processor of the table, and some that nobody makes: nothing may be cut for one of them.
_MODELS = {name: cpu_model(name, threads=1) for name in target_names("llvm")} | {
    "24 registers": replace(_MODEL, threads=1, vector_bytes=32, registers=24),
    "64 wide registers": replace(_MODEL, threads=1, vector_bytes=128, registers=64),
    "12 registers": replace(_MODEL, threads=1, vector_bytes=16, registers=12, fma_per_cycle=1),
}
_EVERY = pytest.mark.parametrize("model", _MODELS.values(), ids=_MODELS)


@pytest.mark.parametrize("columns", [65, 80, 129, 130, 190, 517, 1024])
@pytest.mark.parametrize("rows, k_size", [(257, 513), (1024, 1024)])
def test_a_narrow_panel_is_no_equal_share(rows, k_size, columns):
    plan = plan_gemm(GemmShape(rows, columns, k_size, 1, 4), _MODEL, direct=True)
    starts = [*range(0, columns, plan.panel), columns]
    vectors = [-(-(end - start) // plan.lanes) for start, end in pairwise(starts)]
    share = -(-len(vectors) // plan.threads)
    busiest = max(sum(vectors[at : at + share]) for at in range(0, len(vectors), share))
    if plan.packing is Packing.LOCAL:  # every worker takes whole panels
        assert busiest * plan.threads <= 1.2 * sum(vectors)


def test_rows_that_share_a_set_of_l1_make_lower_tiles():
    def tile(row_bytes):
        shape = GemmShape(511, 16, 2048, 1, 4, row_bytes)
        return plan_gemm(shape, _MODEL, direct=True).tile_rows

    assert tile(8000) > 8  # 125 lines: every row in another set
    assert tile(8192) <= 8  # all in one, of eight ways


def test_few_operations_are_not_worth_a_second_region():
    small, large = (GemmShape(m, 129, 211, 1, 4) for m in (37, 1037))
    assert plan_gemm(small, _MODEL, direct=True).packing is Packing.LOCAL
    assert plan_gemm(large, _MODEL, direct=True).packing is Packing.SHARED


def test_one_row_is_shared_once_its_matrix_is_large():
    small, large = (plan_gemm(GemmShape(1, n, 200, 1, 4), _MODEL, direct=True) for n in (100, 300))
    assert not small.parallel
    assert large.parallel


@pytest.mark.parametrize("rows, k_size, columns", [(64, 784, 512), (1024, 3072, 768), (7, 33, 70)])
@pytest.mark.parametrize("itemsize", [4, 8])
@_EVERY
def test_stored_panels_fill_the_registers(model, itemsize, rows, k_size, columns):
    """With weights stored ahead the register tile is no smaller than without."""
    shape = GemmShape(rows, columns, k_size, 1, itemsize, k_size * itemsize)
    free = plan_gemm(shape, model, direct=False)
    stored = plan_panels(shape, model, panel_columns(shape, model))
    assert stored is not None and stored.packing is Packing.DONE

    def cycles(plan):
        return step_cycles(plan.tile_rows, plan.vectors, model) / (plan.tile_rows * plan.vectors)

    assert cycles(stored) <= 1.1 * cycles(free)
    assert stored.tile_rows * stored.vectors + stored.vectors < model.registers
    if rows > 2 * max_tile_rows(1, model):  # what is left over does not count
        assert cycles(stored) <= 1.05 * _fewest_cycles(model)


def _fewest_cycles(model):
    """Cycles per multiply-add of the best register tile of up to four vectors."""
    tiles = ((r, v) for v in range(1, 5) for r in range(1, max_tile_rows(v, model) + 1))
    return min(step_cycles(r, v, model) / (r * v) for r, v in tiles)


@_EVERY
def test_a_single_row_hides_the_latency(model):
    shape = GemmShape(1, 512, 512, 1, 4, 2048)
    assert panel_columns(shape, model) >= 4 * model.fma_per_cycle * model.lanes


@_EVERY
def test_tiles_of_attention_fill_the_registers(model):
    vectors = panel_vectors(model)
    rows = max_tile_rows(vectors, model)
    assert rows * vectors + vectors < model.registers
    assert step_cycles(rows, vectors, model) / (rows * vectors) <= 1.05 * _fewest_cycles(model)


@_EVERY
@pytest.mark.parametrize("taps", [3, 5, 7])
def test_sums_of_depthwise_weights_fit_the_registers(model, taps):
    rows = rows_of_taps(taps, taps, model)
    assert rows == 1 or rows * taps + 2 < model.registers
    assert rows == taps or (rows + 1) * taps + 7 > model.registers  # nor fewer than they hold


@_EVERY
def test_scores_of_attention_fit_the_first_cache(model):
    assert model.l1_bytes > attention_plan.QUERIES * attention.KEYS * 4


@_EVERY
@pytest.mark.parametrize("queries", [49, 196, 197, 384, 577, 1025])
def test_blocks_of_attention_compute_few_queries_twice(model, queries):
    shapes = ((1, 4, queries, 64), (1, 4, queries, 64), (1, 4, queries, 64), (1, 4, queries, 64))
    operands = [
        Operand(tirx.decl_buffer([tirx.IntImm("int64", n) for n in shape], "float32"), "BNSD")
        for shape in shapes
    ]
    plan = attention_plan.plan_attention(Problem(*operands, None, 1.0, None, None), model)
    assert plan.blocks * plan.queries <= queries + max(plan.tile + 2, 0.03 * queries)


@_EVERY
def test_tiles_of_a_panel_fit_the_registers(model):
    """However wide panels are, no tile waits for its own sums if there are rows enough."""
    for vectors in (1, 2, 3, 4, 6, 8, 12, 16):
        rows, part = tile_of_panel(16, vectors, model)
        assert vectors % part == 0
        assert rows * part + part < model.registers
        assert rows * part >= 4 * model.fma_per_cycle


def test_rows_that_no_cache_holds_meet_panels_in_blocks():
    """Otherwise every panel reads all rows from memory."""
    model = replace(_MODEL, l2_bytes=512 << 10, l3_bytes=16 << 20)

    def plan(rows, k_size):
        return plan_panels(GemmShape(rows, 768, k_size, 1, 4, 4 * k_size), model, 32)

    few, many = plan(384, 768), plan(1024, 3072)
    assert few.k_block == 768
    assert many.k_block < 3072 and many.rows_first
    assert many.row_block * many.k_block * 4 <= model.l2_bytes // 2
