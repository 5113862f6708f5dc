"""Matrix products and convolutions, run by the emulated GPU and compared with float64 NumPy."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import sym, te, tirx

from tests.cuda import emulator
from tests.cuda.kernels import compiled
from tvmgraph.backend.cuda import codegen
from tvmgraph.backend.cuda.kernels import gemm_kernels
from tvmgraph.backend.cuda.kernels.copies import SharedTile
from tvmgraph.backend.cuda.kernels.gemm_plan import (
    GROUP_TILES,
    Extents,
    GemmPlan,
    ThreadGrid,
    WarpGrid,
    plan_gemm,
    tensor_cores,
)
from tvmgraph.backend.cuda.schedule import schedule_function
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.table import Refused
from tvmgraph.backend.target import gpu_model, make_target

_SUMS = {"int8": "int32", "uint8": "int32", "float64": "float64"}
_NUMPY = {"bfloat16": ml_dtypes.bfloat16}
_TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "float64": 1e-13}


def _shape(*extents: int) -> list[Any]:
    return [tirx.IntImm("int64", extent) for extent in extents]


def _numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if "int" in dtype:
        return rng.integers(-8 if dtype == "int8" else 0, 8, shape).astype(dtype)
    return rng.uniform(-1, 1, shape).astype(_NUMPY.get(dtype, dtype))


@dataclass(frozen=True)
class Product:
    """A case: sizes, type, which operands lie transposed, and the plan if it is not the model's."""

    rows: int
    columns: int
    k_size: int
    dtype: str = "float16"
    turned: tuple[bool, bool] = (False, False)
    batch: tuple[int, ...] = ()
    bias: bool = True
    plan: GemmPlan | None = None
    arch: str = "sm_90"
    tf32: bool = False

    def arrays(self) -> list[np.ndarray]:
        """The operands."""
        left = (self.k_size, self.rows) if self.turned[0] else (self.rows, self.k_size)
        right = (self.columns, self.k_size) if self.turned[1] else (self.k_size, self.columns)
        found = [_numbers((*self.batch, *s), self.dtype, i) for i, s in enumerate((left, right))]
        return [*found, _numbers((self.columns,), self.dtype, 2)] if self.bias else found

    def expected(self) -> np.ndarray:
        """The result in float64."""
        left, right, *bias = (array.astype(np.float64) for array in self.arrays())
        left = left.swapaxes(-1, -2) if self.turned[0] else left
        right = right.swapaxes(-1, -2) if self.turned[1] else right
        return left @ right + (bias[0] if bias else 0)

    def function(self) -> Any:
        """The product as naive loops, with the bias and a conversion to the operands' type."""
        sums = _SUMS.get(self.dtype, "float32")
        inputs = [te.placeholder(_shape(*a.shape), self.dtype) for a in self.arrays()]
        left, right = inputs[:2]
        k = te.reduce_axis((tirx.IntImm("int64", 0), tirx.IntImm("int64", self.k_size)), "k")

        def term(*index: Any) -> Any:
            *batch, i, j = index
            a = left[(*batch, k, i)] if self.turned[0] else left[(*batch, i, k)]
            b = right[(*batch, j, k)] if self.turned[1] else right[(*batch, k, j)]
            return te.sum(a.astype(sums) * b.astype(sums), axis=k)

        made = te.compute(_shape(*self.batch, self.rows, self.columns), term)
        if "int" in self.dtype:
            return te.create_prim_func([*inputs, made])

        def finish(*i: Any) -> Any:
            biased = made[i] + inputs[2][i[-1]].astype(sums) if self.bias else made[i]
            return biased.astype(self.dtype)

        return te.create_prim_func([*inputs, te.compute(made.shape, finish)])

    @property
    def result_type(self) -> Any:
        """NumPy's type of the result."""
        name = _SUMS[self.dtype] if "int" in self.dtype else self.dtype
        return _NUMPY.get(name, name)


@dataclass(frozen=True)
class Convolution:
    """A case: image, channels, window and layout; with bias, relu and a residual."""

    image: tuple[int, int, int]
    channels: tuple[int, int]
    window: int = 3
    stride: int = 1
    padding: int = 1
    dilation: int = 1
    groups: int = 1
    layout: str = "NHWC"
    dtype: str = "float16"
    plan: GemmPlan | None = None
    arch: str = "sm_90"
    tf32: bool = False
    result_type = property(lambda self: self.dtype)

    @property
    def _out(self) -> tuple[int, int, int, int]:
        reach = self.dilation * (self.window - 1) + 1
        sizes = [(s + 2 * self.padding - reach) // self.stride + 1 for s in self.image[1:]]
        return self.image[0], sizes[0], sizes[1], self.channels[1]

    def _plain(self) -> list[np.ndarray]:
        inputs, outputs = self.channels
        shapes = [(*self.image, inputs), (self.window, self.window, inputs // self.groups, outputs)]
        shapes += [(outputs,), self._out]
        return [_numbers(shape, self.dtype, i) for i, shape in enumerate(shapes)]

    def arrays(self) -> list[np.ndarray]:
        """Image, weight, bias and residual."""
        x, weight, bias, rest = self._plain()
        if self.layout == "NHWC":
            return [x, weight, bias, rest]
        turned = [x.transpose(0, 3, 1, 2), weight.transpose(3, 2, 0, 1), rest.transpose(0, 3, 1, 2)]
        x, weight, rest = map(np.ascontiguousarray, turned)
        return [x, weight, bias, rest]

    def expected(self) -> np.ndarray:
        """The result in float64."""
        x, weight, bias, rest = (a.astype(np.float64) for a in self._plain())
        pad = (self.padding, self.padding)
        x = np.pad(x, ((0, 0), pad, pad, (0, 0)))
        _, height, width, outputs = self._out
        made = np.zeros(self._out)
        own, of_group = x.shape[3] // self.groups, outputs // self.groups
        for tap in np.ndindex(self.window, self.window, self.groups):
            rows, columns, group = (*(t * self.dilation for t in tap[:2]), tap[2])
            part = x[:, rows : rows + self.stride * (height - 1) + 1 : self.stride]
            part = part[:, :, columns : columns + self.stride * (width - 1) + 1 : self.stride]
            to = slice(group * of_group, (group + 1) * of_group)
            part = part[..., group * own : (group + 1) * own]
            made[..., to] += part @ weight[tap[0], tap[1], :, to]
        made = np.maximum(made + bias, 0) + rest
        return made if self.layout == "NHWC" else made.transpose(0, 3, 1, 2)

    def function(self) -> Any:
        """The convolution as naive loops after a stage that pads."""
        sums = _SUMS.get(self.dtype, "float32")
        inputs = [te.placeholder(_shape(*a.shape), self.dtype) for a in self.arrays()]
        x, weight, bias, rest = inputs
        at = {axis: position for position, axis in enumerate(self.layout)}
        low, sizes = self.padding, {"H": self.image[1], "W": self.image[2]}

        def element(*index: Any) -> Any:
            moved = list(index)
            inside = []
            for axis, size in sizes.items():
                place = index[at[axis]]
                inside += [place >= low, place < size + low]
                moved[at[axis]] = place - low
            return tirx.if_then_else(tirx.all(*inside), x[tuple(moved)], tirx.const(0, self.dtype))

        shape = [int(e) + 2 * low * (axis in "HW") for e, axis in zip(x.shape, self.layout)]
        padded = te.compute(_shape(*shape), element) if low else x
        own, of_group = self.channels[0] // self.groups, self.channels[1] // self.groups
        extents = {"rc": own, "rh": self.window, "rw": self.window}
        names = ("rc", "rh", "rw") if self.layout == "NCHW" else ("rh", "rw", "rc")
        zero = tirx.IntImm("int64", 0)
        axes = {n: te.reduce_axis((zero, tirx.IntImm("int64", extents[n])), n) for n in names}
        rc, rh, rw = axes["rc"], axes["rh"], axes["rw"]

        def term(*index: Any) -> Any:
            n, c, h, w = (index[at[axis]] for axis in "NCHW")
            channel = tirx.floordiv(c, tirx.IntImm("int64", of_group)) * own + rc
            place = {"N": n, "C": channel if self.groups > 1 else rc}
            place["H"] = h * self.stride + rh * self.dilation
            place["W"] = w * self.stride + rw * self.dilation
            tap = (c, rc, rh, rw) if self.layout == "NCHW" else (rh, rw, rc, c)
            value = padded[tuple(place[axis] for axis in self.layout)].astype(sums)
            return te.sum(value * weight[tap].astype(sums), axis=list(axes.values()))

        made = te.compute(rest.shape, term)

        def finish(*i: Any) -> Any:
            value = te.max(made[i] + bias[i[at["C"]]].astype(sums), tirx.const(0, sums))
            return (value + rest[i].astype(sums)).astype(self.dtype)

        return te.create_prim_func([*inputs, te.compute(made.shape, finish)])


def _warps(*tile: int, k_block: int = 64, stages: int = 3, splits: int = 1) -> GemmPlan:
    return GemmPlan(WarpGrid(*tile), k_block, stages, splits)


def _groups(*tile: int, k_block: int = 64, stages: int = 3, splits: int = 1) -> GemmPlan:
    return GemmPlan(WarpGrid(*tile, is_grouped=True), k_block, stages, splits)


def _threads(*tile: int) -> GemmPlan:
    return GemmPlan(ThreadGrid(*tile), 16, 3, 1)


CASES: dict[str, Product | Convolution] = {
    "even": Product(64, 64, 128),
    "odd": Product(33, 50, 40, bias=False),
    "prime": Product(17, 31, 13),
    "vector": Product(1, 136, 200, turned=(False, True)),
    "turned": Product(72, 40, 96, turned=(True, True), batch=(2,)),
    "bfloat16 batches": Product(40, 24, 70, "bfloat16", (False, True), (2, 2)),
    "parts": Product(34, 40, 520, plan=_warps(64, 32, 2, 2, splits=3)),
    "many_parts": Product(34, 40, 2000, plan=_warps(64, 32, 2, 2, splits=19)),
    "large tile": Product(130, 72, 72, turned=(True, False), plan=_warps(64, 32, 1, 1, k_block=32)),
    "int8": Product(40, 24, 96, "int8", (False, True), bias=False),
    "uint8 odd": Product(19, 21, 35, "uint8", bias=False),
    "float32": Product(33, 50, 29, "float32", (True, False)),
    "float32 tile": Product(130, 72, 40, "float32", plan=_threads(32, 32, 2)),
    "float64": Product(20, 36, 18, "float64", (False, True)),
    "tf32": Product(33, 40, 24, "float32", (False, True), tf32=True),
    "wgmma": Product(
        70, 72, 520, plan=_groups(128, 64, 8, 1, stages=4, splits=2), arch="sm_90a"
    ),
    "wgmma turned": Product(
        72, 136, 72, "bfloat16", (True, True), plan=_groups(64, 128, 4, 1), arch="sm_90a"
    ),
    "wgmma int8": Product(
        70, 200, 272, "int8", (False, True), bias=False, plan=_groups(64, 192, 4, 1, k_block=128),
        arch="sm_90a",
    ),
    "wgmma uint8 odd": Product(
        19, 21, 35, "uint8", bias=False, plan=_groups(64, 64, 4, 1, k_block=128), arch="sm_90a"
    ),
    **{
        f"wgmma {rows} x {columns}": Product(
            rows + 2, columns + 8, 72, "float16", bias=False,
            plan=_groups(rows, columns, down, 1), arch="sm_90a",
        )
        for rows, columns, down, _ in GROUP_TILES
    },
    "a vector": Product(1, 50, 1104, turned=(False, True)),
    "columns of a vector": Product(264, 3, 300, "float32", turned=(True, True), bias=False),
    "vectors, lines apart": Product(5, 136, 520, "bfloat16", batch=(2,)),
    "a vector of doubles": Product(37, 1, 130, "float64"),
    "vectors, many lines": Product(2, 4400, 264, "float16", (True, True)),
    "conv": Convolution((2, 9, 9), (16, 24)),
    "conv strided": Convolution((1, 10, 8), (8, 10), stride=2),
    "conv odd": Convolution((1, 7, 7), (3, 5), padding=2, dilation=2),
    "conv plain images": Convolution((2, 6, 7), (8, 12), layout="NCHW"),
    "conv groups": Convolution((1, 6, 6), (16, 16), groups=2),
    "conv float32": Convolution((1, 6, 7), (6, 8), stride=2, dtype="float32"),
    "conv wgmma": Convolution(
        (1, 9, 9), (16, 64), dtype="bfloat16", plan=_groups(64, 64, 4, 1), arch="sm_90a"
    ),
}  # fmt: skip


def scheduled(case: Product | Convolution) -> Any:
    """The kernel of a case."""
    model = replace(gpu_model(case.arch), tf32=case.tf32)
    choose: Callable[..., GemmPlan] = plan_gemm
    if case.plan is not None:
        choose = lambda *_: case.plan  # noqa: E731  # pyright: ignore[reportAssignmentType]
    with mock.patch.object(gemm_kernels, "plan_gemm", choose):
        kernel = schedule_function(case.function(), model)
    assert kernel is not None
    return kernel


@cache
def _compiled() -> Any:
    """All cases as one module, so that g++ runs once."""
    kernels = {f"case{n}": scheduled(case) for n, case in enumerate(CASES.values())}
    return compiled(kernels, "sm_90a")


@pytest.fixture
def device() -> emulator.Device:
    if emulator.missing():
        pytest.skip(emulator.missing())
    found = emulator.install()
    found.reset()
    found.set(races=1)
    return found


@pytest.mark.parametrize("name", CASES)
def test_product(device: emulator.Device, name: str):
    case = CASES[name]
    expected = case.expected()
    gpu = tvm.cuda(0)
    operands = [tvm.runtime.tensor(array, gpu) for array in case.arrays()]
    unset = np.full(expected.shape, 77, case.result_type)
    result = tvm.runtime.tensor(unset, gpu)
    _compiled()[f"case{list(CASES).index(name)}"](*operands, result)
    gpu.sync()
    assert not device.message
    found = result.numpy().astype(np.float64)
    if "int" in case.dtype:
        np.testing.assert_array_equal(found, expected)
        return
    tolerance = 2e-3 if case.tf32 else _TOLERANCE[case.dtype]
    assert np.abs(found - expected).max() <= tolerance * max(1.0, np.abs(expected).max())


# ---- shared memory ---------------------------------------------------------------------------


def _bytes(tile: SharedTile, row: int, byte: int) -> int:
    return int(sym.Analyzer().simplify(tile.offset(row, byte)))


@pytest.mark.parametrize("row_bytes", [32, 64, 128, 256, 512])
def test_no_two_accesses_meet_in_a_bank(row_bytes: int):
    tile = SharedTile(mn_size=16, k_size=row_bytes // 2, itemsize=2, k_major=True)
    places = {(r, b): _bytes(tile, r, b) for r in range(16) for b in range(0, row_bytes, 16)}
    assert sorted(places.values()) == list(range(0, tile.size, 16)), "chunks overlap"
    banks = {where: place // 16 % 8 for where, place in places.items()}
    for column in range(0, row_bytes, 16):  # what ldmatrix reads at once
        for first in (0, 8):
            assert len({banks[first + r, column] for r in range(8)}) == 8
    ordered = [banks[where] for where in sorted(places)]  # what a quarter of a warp writes
    assert all(len(set(ordered[i : i + 8])) == 8 for i in range(0, len(ordered), 8))


# ---- plans and machine code ------------------------------------------------------------------


def test_plans_follow_the_problem():
    hopper, ampere = gpu_model("sm_90a"), gpu_model("sm_80")
    square = Extents(1, 8192, 8192, 8192)
    best = plan_gemm(square, tensor_cores(2, hopper), hopper)
    assert best.grid.is_grouped and best.grid.rows * best.grid.columns == 128 * 256
    best = plan_gemm(square, tensor_cores(2, ampere), ampere)
    assert not best.grid.is_grouped and best.splits == 1
    few = plan_gemm(Extents(1, 1, 4096, 4096), tensor_cores(2, ampere), ampere)
    assert few.grid.rows == 16
    deep = plan_gemm(Extents(1, 128, 128, 16384), tensor_cores(2, ampere), ampere)
    assert deep.splits > 4


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed")
@pytest.mark.parametrize(("arch", "instruction"), [("sm_90a", "wgmma"), ("sm_80", "mma.sync")])
def test_machine_code_keeps_its_sums_in_registers(tmp_path: Path, arch: str, instruction: str):
    kernel = scheduled(Product(4096, 4096, 4096, "bfloat16", arch=arch))
    target = make_target(arch)
    module = tvm.IRModule({"product": kernel.with_attr("global_symbol", "product")})
    source = codegen.generate_source(codegen.split(module, target)[1], target).text
    path = tmp_path / "product.cu"
    path.write_text(source)
    assert instruction in source
    code = f"-gencode=arch={arch.replace('sm', 'compute')},code={arch}"
    command = ["nvcc", "-std=c++17", "-cubin", code, "-Xptxas", "-v", path.name, "-o", "product"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.search(r"\b0 bytes spill stores, 0 bytes spill loads", done.stderr), done.stderr
    assert "serialized" not in done.stderr


def test_slice_of_a_product_leaves_the_product_whole():
    left, right = (te.placeholder(_shape(*s), "float16") for s in ((64, 64), (64, 96)))
    k = te.reduce_axis((tirx.IntImm("int64", 0), tirx.IntImm("int64", 64)), "k")
    sums = te.compute(
        _shape(64, 96),
        lambda i, j: te.sum(left[i, k].astype("float32") * right[k, j].astype("float32"), axis=k),
    )
    part = te.compute(_shape(64, 32), lambda i, j: (sums[i, j + 32] * 2).astype("float16"))
    function = te.create_prim_func([left, right, part])
    kernel = schedule_function(function, gpu_model("sm_90"))
    assert kernel is not None
    text = kernel.script()
    assert "mma.sync" in text or "ptx.mma" in text
    assert len(re.findall(r"blockIdx\.x", text)) == 2


def test_few_vectors_are_multiplied_without_tiles():
    names = ("a vector", "columns of a vector", "vectors, lines apart", "vectors, many lines")
    for name in names:
        text = scheduled(CASES[name]).script()
        assert not re.search(r"mma|T\.ptx\.cp", text), name
    short, odd = Product(1, 136, 200, turned=(False, True)), Product(1, 51, 1101)
    windows = Convolution((1, 19, 19), (64, 8), padding=0)
    assert all("T.ptx.cp" in scheduled(case).script() for case in (short, odd, windows))


def test_empty_products_are_left_to_others():
    for case in (Product(0, 4, 8), Product(4, 4, 0)):
        answer = gemm_kernels.GEMM.match(Nest(case.function()), gpu_model("sm_90"))
        assert isinstance(answer, Refused) and "empty" in answer.reason
