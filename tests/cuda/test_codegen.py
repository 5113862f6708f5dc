"""Code for GPUs, generated and compiled where there is none."""

import os
import re

import numpy as np
import pytest
import tvm
from tvm import tirx

import tvmgraph as ms
from benchmarks.gpu_cases import item_of, operator_items
from tvmgraph import Tensor, nn, ops
from tvmgraph.backend.cuda import nvcc
from tvmgraph.backend.cuda.schedule import schedule_for_cuda
from tvmgraph.backend.target import gpu_model, make_target
from tvmgraph.compiler import pipeline
from tvmgraph.compiler.compile import clear_cache, compile_graph
from tvmgraph.config.options import CompileOptions
from tvmgraph.errors import CompileError, DeviceError
from tvmgraph.lowering import lower
from tvmgraph.passes.channels_last import channels_last
from tvmgraph.runtime.device_image import DeviceImage, Kernel, assemble, describe
from tvmgraph.testing.samples import all_cases

needs_nvcc = pytest.mark.skipif(nvcc.find() is None, reason="no CUDA compiler (nvcc) is installed")
ITEMS = {item.name: item for item in operator_items(1, 24)}
#: Rows whose kernels on a GPU take f16 and bf16 only; for f32 their composites serve.
HOST_ONLY = ("attention_gradient", "attention_with_statistics")
WHOLE_TABLE = os.environ.get("TVMGRAPH_GPU_TABLE") == "1"


def _graph(function, *shapes):
    return ms.jit(function).graph(*[Tensor(np.ones(s, np.float32)) for s in shapes])


def _build(graph, monkeypatch, target="sm_90"):
    """Generates code without compiling it; returns the build and its sources."""
    sources = []

    def keep(units, *_):
        sources.extend(units)
        return tuple(DeviceImage(b"", u.kernels) for u in units)

    monkeypatch.setattr(nvcc, "compile_all", keep)
    return pipeline.build(lower(graph), CompileOptions(target=target)), sources


def test_a_chain_of_operators_is_one_kernel(monkeypatch):
    built, (source,) = _build(_graph(lambda x: ops.relu(x * x + 1), (100, 33)), monkeypatch)
    assert len(built.kernels) == 1
    (kernel,) = source.kernels
    assert kernel.arguments == ("handle", "handle")
    assert "threadIdx.x" in kernel.launch
    assert f"{kernel.name}(float* __restrict__" in source.text


@pytest.mark.parametrize("function", [lambda x: ops.relu(x) + 1, lambda x: x.sum()])
def test_elements_that_32_bits_cannot_count_are_addressed_with_64(monkeypatch, function):
    large = Tensor(shape=[3, 1000, 1000, 1001], dtype=ms.float16)
    _, sources = _build(ms.jit(function).graph(large), monkeypatch)
    text = "\n".join(s.text for s in sources)
    addresses = re.findall(r"p0\w*_ptr \+ (.*blockIdx.*)\);", text)
    assert addresses and all("(int64_t)((int)blockIdx.x)" in found for found in addresses)


def test_quotients_of_halves_take_no_subroutine(monkeypatch):
    def text(function):
        x = Tensor(np.ones((64, 8), np.float16))
        return _build(ms.jit(function).graph(x, x), monkeypatch)[1][0].text

    assert "tvmgraph_quotient(" in text(lambda x, y: ops.gelu(x) + y)
    assert "tvmgraph_quotient(" not in text(ops.floor_div)  # whose last bit decides


def test_padding_is_read_where_the_image_lies(monkeypatch):
    pool = nn.MaxPool2d(3, 2, pad_mode="same")
    net = nn.SequentialCell(nn.Conv2d(8, 64, 3), pool, nn.Conv2d(64, 8, 1)).to_float(ms.float16)
    graph = ms.jit(net).graph(Tensor(np.ones((2, 8, 32, 32), np.float16)))
    built, _ = _build(channels_last(graph), monkeypatch)
    assert len([name for name in built.kernels if "max_pool" in name]) == 1


def test_loops_that_no_thread_takes_are_an_error():
    source, result = (tirx.decl_buffer((8,), "float32", name=name) for name in ("a", "b"))
    index = tirx.Var("i", "int32")
    store = tirx.BufferStore(result, source[index] + 1.0, [index])
    func = tirx.PrimFunc([source, result], tirx.For(index, 0, 8, tirx.ForKind.SERIAL, store))
    module = tvm.IRModule({"untaken": func.with_attr("tirx.is_scheduled", True)})
    with pytest.raises(NotImplementedError, match="no kernel for GPUs is written for 'untaken'"):
        schedule_for_cuda(module, gpu_model("sm_90"), make_target("sm_90"))


def _is_listed(case):
    return any(f"{case.name}.0" in item.outputs for item in ITEMS.values())


@needs_nvcc
def test_one_operator_of_every_family_becomes_machine_code():
    cases = [c for c in all_cases() if _is_listed(c) and c.op.name not in HOST_ONLY]
    first = {c.op.module.split(".")[2]: c for c in cases}
    item = item_of("families", list(first.values()))
    executable, stats = compile_graph(item.program.graph, options=CompileOptions("O2", "sm_90"))
    assert stats.kernels >= len(first) // 2
    assert all(len(image.code) > 1000 for image in executable.images)


@pytest.mark.parametrize("name", HOST_ONLY)
def test_kernels_that_only_the_cpu_has_are_an_error_that_names_them(name, monkeypatch):
    case = next(c for c in all_cases() if c.op.name == name)
    with pytest.raises(DeviceError, match=rf"ops\.{name}: it has no code for GPUs"):
        compile_graph(case.graph(), options=CompileOptions("O2", "sm_90"))


@pytest.mark.skipif(not WHOLE_TABLE, reason="TVMGRAPH_GPU_TABLE=1 generates code for all operators")
def test_every_operator_has_code(monkeypatch):
    for case in all_cases():
        if case.index == 0 and case.op.name not in HOST_ONLY and _is_listed(case):
            _, sources = _build(case.graph(), monkeypatch)
            assert all("__global__" in s.text for s in sources), case.name


@needs_nvcc
def test_machine_code_for_several_architectures_and_ptx(tmp_path):
    graph = _graph(lambda x: ops.exp(x), (64,))
    executable, _ = compile_graph(graph, options=CompileOptions("O2", "sm_80,sm_90"))
    code = executable.images[0].code
    one, _ = compile_graph(graph, options=CompileOptions("O2", "sm_80"))
    assert len(code) > len(one.images[0].code)
    commands = nvcc._generate(("sm_80", "sm_90"))
    assert commands[-1] == "-gencode=arch=compute_80,code=compute_80"
    assert nvcc._generate(("sm_90a",)) == ["-gencode=arch=compute_90a,code=sm_90a"]


@needs_nvcc
def test_arithmetic_is_exact_unless_asked():
    graph = _graph(lambda x: ops.exp(x) / (x + 2.0), (64,))
    exact, _ = compile_graph(graph, options=CompileOptions("O2", "sm_90"))
    fast, _ = compile_graph(graph, options=CompileOptions("O2", "sm_90", fast_math=True))
    assert exact.images[0].code != fast.images[0].code


@needs_nvcc
def test_code_is_kept_on_disk():
    graph = _graph(lambda x: ops.tanh(x) - 3, (5, 7))
    options = CompileOptions("O2", "sm_90")
    made, first = compile_graph(graph, options=options)
    clear_cache()
    loaded, second = compile_graph(graph, options=options)
    assert (first.disk, second.disk) == ("kept", "loaded")
    assert [i.as_record() for i in loaded.images] == [i.as_record() for i in made.images]


def test_a_compiler_that_fails_is_an_error_with_its_message(monkeypatch, tmp_path):
    fake = tmp_path / "nvcc"
    fake.write_text("#!/bin/sh\necho 'kernels.cu(7): error: no such thing' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(nvcc, "find", lambda: fake)
    with pytest.raises(CompileError, match="no such thing"):
        compile_graph(_graph(ops.sinh, (3,)), options=CompileOptions("O2", "sm_90"))


def test_without_a_compiler_it_says_how_to_get_one(monkeypatch):
    monkeypatch.setattr(nvcc, "find", lambda: None)
    with pytest.raises(CompileError, match="no CUDA compiler") as info:
        compile_graph(_graph(ops.cosh, (3,)), options=CompileOptions("O2", "sm_90"))
    assert "tvmgraph[cuda]" in str(info.value)


def test_a_training_step_overwrites_its_weights(monkeypatch):
    net = nn.Dense(8, 4)
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    graph = ms.jit(step).graph(
        Tensor(np.ones((2, 8), np.float32)), Tensor(np.ones((2, 4), np.float32))
    )
    built, _ = _build(graph, monkeypatch)
    assert [name for name in built.kernels if re.search("in_place", name)]


def test_images_survive_being_described():
    images = (
        DeviceImage(b"abc", (Kernel("f", ("handle", "int32"), ("blockIdx.x",)),)),
        DeviceImage(b"de", (Kernel("g", ("handle",), ("threadIdx.x",)),)),
    )
    again = assemble(describe(images), b"abcde")
    assert again == images
    with pytest.raises(ValueError, match="4 bytes of device code, 5 are described"):
        assemble(describe(images), b"abcd")
