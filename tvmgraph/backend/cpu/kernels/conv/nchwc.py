"""Convolution of images and weights that are packed in blocks of channels (NCHWc).

Blocking: the register tile holds several positions of the image times a few vectors of output
channels. Per tap and input channel it loads one vector of weights per vector of channels and
broadcasts one pixel per position, so that no lane is wasted whatever the image's size is. A work
item is one band of rows and one group of channel blocks, whose weights stay in the second-level
cache; the larger of the two operands is the one that is walked through only once. Groups of a
grouped convolution are independent of each other, like images.

Of bfloat16, a tile multiplies a pair of neighbours in memory instead of one pixel, where there are
instructions that sum two products per lane: two channels of a block, or two taps of a row of an
image without blocks. The weights are stored in the same pairs.
"""

from __future__ import annotations

from dataclasses import replace

from tvm.tirx.script import builder as T

from tvmgraph.backend.cpu.kernels.conv.emitter import ConvPlan, ConvTiles
from tvmgraph.backend.cpu.kernels.elementwise.injective import emit_injective
from tvmgraph.backend.cpu.kernels.gemm.bf16_dot import as_words, dot_functions
from tvmgraph.backend.cpu.kernels.gemm.plan import step_cycles
from tvmgraph.backend.cpu.kernels.gemm.vnni_packing import dot_type
from tvmgraph.backend.cpu.kernels.operands import contraction_of, padding_of, with_left
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.choice import choose, ranked
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.items import Split, tiled
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import Axis, Stage, product, static_shape, substitute
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

#: Operations from which workers share a convolution: below, to hand over its image costs more.
_MIN_PARALLEL_FLOPS = 800_000
#: Elements of a padded image from which workers share the copy.
_MIN_PADDED = 4096
#: Positions, and vectors of channels, of a tile where registers hold more: for shorter code.
_MAX_POSITIONS, _MAX_VECTORS = 28, 4

#: Vectors of weights that L2 delivers per cycle, where L1 does not hold them: with AVX2 on Zen 4 a
#: tile of 4 vectors and 2 positions, which wants one per cycle, computes 80 GFLOP/s of 118 in a
#: product of 1536 channels, one of 3 vectors and 4 positions 96.
_L2_VECTORS_PER_CYCLE = 0.5
#: Share of L1 for the weights of one part of the input channels, and positions whose sums wait in
#: memory meanwhile. Measured with AVX2, 384 to 96 channels of 56 x 56: 107 GFLOP/s of 118 in two
#: parts, 94 at once; 1280 to 320 of 14 x 14 in five parts 109, 97 at once.
_L1_SHARE, _MAX_BLOCKED = 0.5, 256
#: Share of L2 from which on the weights of two vectors are taken in parts where the image's rows do
#: not follow one another. Measured on Zen 3: 512 to 512 channels, 3 x 3 with stride 2 from 14 x 14
#: 57 GFLOP/s of 98 in 32 parts, 46 at once; 128 to 128 from 56 x 56 (73 KB) are as fast either way.
_L2_SHARE = 0.25
#: Share of L2 for the pixels of a work item, where a row of the image is more than L2 holds and is
#: read once per group of channels: on Zen 3 512 to 512 channels, 1 x 3 with stride 2 from 1 x 3199
#: 71 GFLOP/s of 98, with a quarter 63, of the whole row 26.
_ITEM_SHARE = 0.5
#: What smaller tiles at the end count where rows of the image run on, beside others. Tiles of 2
#: vectors and 4 positions, which divide most of these images and numbers of channels, are as fast
#: there as those of 6 (eleven 1 x 1 convolutions with AVX2: 0.99 to 1.02 of the time), and a
#: quarter less code.
_FLAT_RESTS = 2.5
#: Pixels that are broadcast per cycle: of neighbours in blocks they lie in one bank of L1. A tile
#: of 1 vector and 14 positions computes 92 GFLOP/s there, as fast as 1.6 loads per cycle let it.
_PIXELS_PER_CYCLE = 1.6


def is_packed_conv(contraction: Contraction) -> bool:
    """Whether a contraction is a convolution of an NCHWc image with a packed weight.

    Args:
        contraction: Sums of products.
    """
    known = contraction.convolution
    return known is not None and known.dot == 1 and bool(contraction.columns)


def emit_padding(stage: Stage, contraction: Contraction, model: CpuModel) -> None:
    """Writes the stage that puts zeros around the image of an NCHWc convolution.

    It is divided among the workers as the convolution is, by groups of channels or by rows, so that
    a worker finds most of what it reads in its own cache.

    Args:
        stage: The stage, whose result is the image with its zeros.
        contraction: The convolution.
        model: The processor.
    """
    divided = (0, 1 if contraction.batch else 2)
    outer = [a for a in stage.axes if any(a.var.same_as(stage.indices[d]) for d in divided)]
    extents = [axis.extent for axis in outer]
    elements = product(axis.extent for axis in stage.axes)
    if not outer or elements < _MIN_PADDED or contraction.flops < _MIN_PARALLEL_FLOPS:
        emit_injective(stage, model)
        return
    with emit.parallel(product(extents), model.threads > 1) as item:
        bound = {axis.var: at for axis, at in zip(outer, emit.unfuse(item, extents))}
        inner = replace(
            stage,
            axes=tuple(axis for axis in stage.axes if axis not in outer),
            indices=tuple(substitute(index, bound) for index in stage.indices),
            values=tuple(substitute(value, bound) for value in stage.values),
        )
        emit_injective(inner, replace(model, threads=1))


def _image(contraction: Contraction) -> tuple[Axis | None, Axis | None]:
    """The loops over rows and columns of the image, as far as there are any."""
    row, column = (None, None, *contraction.rows)[-2:]
    return row, column


def _is_flat(contraction: Contraction) -> bool:
    """Whether the pixels of neighbouring positions are neighbours, also from row to row."""
    row, column = _image(contraction)
    strides = contraction.strides(contraction.left)
    if row is None or column is None or strides is None:
        return False
    block = strides[column.var]
    taps = product(axis.extent for axis in contraction.reduce[1:])
    return strides[row.var] == column.extent * block and taps == block


def _k_blocks(contraction: Contraction, vector_bytes: int, model: CpuModel) -> int:
    """How many parts of the input channels there are, so that L1 holds two vectors of weights of
    one beside pixels and sums; 1 where that is no whole number of blocks, of pairs of bfloat16, or
    where registers hold so high a tile that L2 delivers weights in time (106 GFLOP/s either way
    with AVX-512). More than twice as many parts pass over the sums too often (280 channels in 5
    parts 91 GFLOP/s of 103, at once 96), but where L1 does not even hold three vectors of weights
    (728 in 7 parts 93, at once 65 to 81)."""
    known = contraction.convolution
    if not model.has_few_registers or known is None or known.dot != 1:
        return 1
    blocks, inner = contraction.reduce[0].extent, contraction.reduce[1:]
    stored = 2 * vector_bytes * product(axis.extent for axis in inner)
    if not _is_flat(contraction) and blocks * stored < model.l2_bytes * _L2_SHARE:
        return 1
    least = -(-blocks * stored // int(model.l1_bytes * _L1_SHARE))
    most = (3 if blocks * stored * 1.5 > model.l1_bytes else 2) * least
    return next((n for n in range(least, most) if blocks % n == 0), 1)


def _tile_costs(
    extents: tuple[int, int, int], k_size: int, vector: tuple[int, str], model: CpuModel
) -> dict[tuple[int, int, int], float]:
    """Cycles of a k-step of all tiles, by vectors, columns and rows of a tile."""
    height, width, channels = extents
    vector_bytes = vector[0] * dtype_bytes(vector[1])
    costs: dict[tuple[int, int, int], float] = {}
    for vectors in range(1, min(_MAX_VECTORS if height * width > 1 else 8, channels) + 1):
        limit = min((model.registers - 1 - vectors) // vectors, _MAX_POSITIONS)
        stored = vectors * vector_bytes * k_size
        fetch = vectors / _L2_VECTORS_PER_CYCLE if stored > model.l1_bytes else 0.0
        for tile_w in range(1, min(width, limit) + 1):
            for tile_h in range(1, (min(height, limit // tile_w) if tile_w == width else 1) + 1):
                cycles = tiled(
                    (height, width, channels), (tile_h, tile_w, vectors),
                    lambda tile_h, tile_w, vectors, fetch=fetch: max(
                        step_cycles(tile_h * tile_w, vectors, model), fetch,
                        tile_h * tile_w / _PIXELS_PER_CYCLE,
                    ),
                )  # fmt: skip
                rests = bool(width % tile_w)
                if height == 1:
                    rests = _FLAT_RESTS * (rests + bool(channels % vectors))
                cycles *= 1 + 0.02 * rests + 0.1 / (tile_h * tile_w * vectors)
                costs[vectors, tile_w, tile_h] = cycles
    return costs


def _plan(contraction: Contraction, model: CpuModel) -> ConvPlan:
    height, width = (axis.extent if axis else 1 for axis in _image(contraction))
    flat, along = _is_flat(contraction), width
    if flat:
        height, width = 1, height * width
    block = contraction.columns[-1].extent
    lanes = min(block, model.lanes_of(dtype_bytes(contraction.dtype)))
    channels = product(axis.extent for axis in contraction.columns) // lanes
    k_blocks = _k_blocks(contraction, lanes * dtype_bytes(contraction.dtype), model)
    k_blocks = choose("conv K blocks", k_blocks, tuple(dict.fromkeys((k_blocks, 1))))
    k_size = product(axis.extent for axis in contraction.reduce) // k_blocks
    costs = _tile_costs((height, width, channels), k_size, (lanes, contraction.dtype), model)
    best = ranked(costs)
    vectors, tile_w, tile_h = choose("conv tile", best[0], best)
    pixels = product(static_shape(contraction.left.load.source) or (1,))
    weights = product(static_shape(contraction.right.load.source) or (1,))
    enough = contraction.flops >= _MIN_PARALLEL_FLOPS
    parallel = model.threads > 1 and choose("conv parallel", enough, (True, False))
    outside = choose("conv weights outside", weights > pixels, (True, False))
    batch = product(axis.extent for axis in contraction.batch)
    row_bytes = pixels * dtype_bytes(contraction.dtype) // (batch * height)
    most = width
    if k_blocks > 1 and flat:
        most = _MAX_BLOCKED
    elif flat:  # about a row at a time, whose pixels L1 holds
        most = along
    elif k_blocks == 1 and row_bytes > model.l2_bytes:
        most = int(width * _ITEM_SHARE * model.l2_bytes) // row_bytes
    item = min(width, max(1, most // tile_w) * tile_w) if most < width else width
    rows = max(1, _MAX_BLOCKED // width // tile_h) if k_blocks > 1 and not flat else 1
    known = str(contraction.convolution or "")
    return ConvPlan(
        lanes, Split(channels, vectors, vectors), Split(height, min(height, rows * tile_h), tile_h),
        Split(width, item, tile_w), parallel, outside, known, flat, k_blocks,
    )  # fmt: skip


def match_packed(nest: Nest, _model: CpuModel) -> Contraction | Refused:
    """A convolution of an NCHWc image before which nothing is left to do.

    Args:
        nest: The loops of a function.
    """
    found = contraction_of(nest)
    if isinstance(found, Refused):
        return found
    if not is_packed_conv(found):
        return Refused("no convolution of an NCHWc image with a packed weight")
    return Refused("stages come before the sums") if found.before else found


def _match_dot(nest: Nest, _model: CpuModel) -> tuple[Contraction, Stage | None] | Refused:
    found = contraction_of(nest)
    if isinstance(found, Refused):
        return found
    known, strides = found.convolution, found.strides(found.left)
    pairs = known is not None and known.dot == 2 and dot_type(found) == "bfloat16"
    if not pairs or strides is None or strides[found.reduce[-1].var] != 1:
        return Refused("no convolution of bfloat16 of an NCHWc image with pairs of channels")
    padding = padding_of(found, found.left)
    return padding if isinstance(padding, Refused) else (found, padding)


def _emit_dot(
    found: tuple[Contraction, Stage | None], plan: ConvPlan, writer: Writer[CpuModel]
) -> None:
    contraction, padding = found
    if padding:
        copy, stage = as_words(padding)
        emit_injective(stage, writer.model)
        contraction = with_left(contraction, copy[tuple(contraction.left.load.indices)])
    with T.attr(0, "pragma_import_llvm", dot_functions(plan.lanes, writer.model)):
        ConvTiles(contraction, plan, *_image(contraction), dot=True).write()


_KNOBS = ("conv tile", "conv parallel", "conv weights outside", "conv K blocks")
DOT = Kernel(
    "conv_nchwc_vnni", _match_dot, _emit_dot,
    "convolution of an NCHWc image of bfloat16, dot products",
    lambda found, model: _plan(found[0], model), _KNOBS,
)  # fmt: skip
KERNEL = Kernel(
    "conv_nchwc", match_packed,
    lambda found, plan, _writer: ConvTiles(found, plan, *_image(found)).write(),
    "convolution of an NCHWc image with a packed weight", _plan, _KNOBS,
)  # fmt: skip
