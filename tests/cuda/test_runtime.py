"""Tensors, operators and compiled functions on a GPU, emulated."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import te

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph.backend.target import gpu_model, make_target
from tvmgraph.compiler.cuda.build import _DeviceSearch
from tvmgraph.compiler.cuda.eager import warm_up
from tvmgraph.compiler.tuning import database as tuning
from tvmgraph.compiler.tuning import search
from tvmgraph.errors import DeviceError
from tvmgraph.runtime import cuda


@pytest.fixture
def on_gpu(gpu):
    ms.set_context(device_target="GPU")
    return gpu


def test_a_tensor_moves_there_and_back(gpu):
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    moved = x.to("GPU")
    assert (x.device, moved.device) == ("CPU", "GPU:0")
    assert np.array_equal(moved.asnumpy(), x.asnumpy())
    assert moved.to("CPU").device == "CPU"
    assert gpu.get("to_device") == gpu.get("to_host") - 24 == 24


def test_operators_run_where_their_operands_are(gpu):
    x = Tensor(np.linspace(-2, 2, 50, dtype=np.float32)).to("GPU")
    y = ops.relu(x * 2 + 1)
    assert y.device == "GPU:0"
    assert np.allclose(y.asnumpy(), np.maximum(np.linspace(-2, 2, 50) * 2 + 1, 0), atol=1e-6)
    assert [launch.name for launch in gpu.launches] != []


def test_a_compiled_network_agrees_with_the_host(on_gpu):
    net = nn.SequentialCell(nn.Dense(20, 30), nn.ReLU(), nn.Dense(30, 10))
    x = Tensor(np.random.default_rng(0).standard_normal((4, 20)).astype(np.float32))
    compiled = ms.jit(net)
    found = compiled(x)
    assert found.device == "GPU:0"
    again = compiled(x)
    ms.set_context(device_target="CPU")
    expected = net(Tensor(x.asnumpy()))
    assert np.allclose(found.asnumpy(), expected.asnumpy(), atol=1e-5)
    assert np.array_equal(again.asnumpy(), found.asnumpy())


def _train(steps: int) -> tuple[list[float], list[np.ndarray]]:
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 4))
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    loss_of = nn.CrossEntropyLoss()
    step = ms.jit(nn.TrainOneStepCell(nn.WithLossCell(net, loss_of), optimizer))
    data = np.random.default_rng(0)
    x, y = data.standard_normal((6, 8), np.float32), data.integers(0, 4, 6).astype(np.int32)
    losses = [float(step(Tensor(x), Tensor(y)).asnumpy()) for _ in range(steps)]
    return losses, [p.asnumpy() for p in net.trainable_params()]


def test_training_agrees_with_the_host_and_keeps_its_weights_there(on_gpu):
    losses, weights = _train(4)
    copied = ms.runtime.copy_counts()
    ms.set_context(device_target="CPU")
    expected, expected_weights = _train(4)
    assert np.allclose(losses, expected, atol=1e-5)
    for found, wanted in zip(weights, expected_weights):
        assert np.allclose(found, wanted, atol=1e-5)
    assert copied.to_host > 0


def test_an_exported_module_runs_with_arrays_and_with_tensors_there(gpu, tmp_path):
    net = nn.SequentialCell(nn.Dense(20, 30), nn.ReLU(), nn.Dense(30, 10))
    x = np.random.default_rng(0).standard_normal((4, 20)).astype(np.float32)
    ms.export(net, Tensor(x), file_name=tmp_path / "net.tvm", file_format="TVM", target="sm_90")
    module = ms.load(tmp_path / "net.tvm")
    found = module(x)
    assert np.allclose(found, net(Tensor(x)).asnumpy(), atol=1e-5)
    there = module(Tensor(x).to("GPU"))
    assert np.array_equal(ms.from_dlpack(there).asnumpy(), found)


def test_copies_and_parameters_stay_there(gpu):
    x = Tensor([1.0, 2.0], device="GPU")
    copied, parameter = copy.deepcopy(x), ms.Parameter(x, name="w")
    assert (x.device, copied.device, parameter.device) == ("GPU:0",) * 3
    assert (copied.tolist(), parameter.asnumpy().tolist()) == ([1.0, 2.0], [1.0, 2.0])
    assert ms.from_dlpack(x).asnumpy().tolist() == [1.0, 2.0]


def test_code_for_the_cpu_takes_no_tensor_of_a_gpu(gpu):
    double = ms.jit(lambda x: x * 2)
    with pytest.raises(DeviceError, match="on GPU:0, but the function is compiled for the CPU"):
        double(Tensor([1.0], device="GPU"))


def test_every_copy_is_counted(on_gpu):
    x = Tensor(np.ones((4, 4), np.float32))
    ms.runtime.reset_copy_counts()
    y = ops.exp(x) + ops.tanh(x)  # copied once, though it is used twice
    assert (ms.runtime.copy_counts().to_device, ms.runtime.copy_counts().implicit) == (1, 1)
    y.asnumpy()
    counts = ms.runtime.copy_counts()
    assert (counts.to_host, counts.to_host_bytes, counts.implicit) == (1, 64, 1)
    assert y.item(0) == pytest.approx(np.e + np.tanh(1), abs=1e-5)
    assert ms.runtime.copy_counts().implicit == 2


def test_an_array_that_others_may_write_to_is_copied_every_time(on_gpu):
    array = np.zeros(16, np.float32)
    shared = Tensor.from_numpy(array)
    assert float((shared + 1).sum()) == 16
    shared.array[:] = 1
    assert float((shared + 1).sum()) == 32


def test_a_second_step_copies_nothing_and_allocates_nothing(on_gpu):
    net = nn.Dense(8, 4)
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    step = ms.jit(nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer))
    x, y = Tensor(np.ones((2, 8), np.float32)), Tensor(np.ones((2, 4), np.float32))
    for _ in range(3):
        step(x, y)
    ms.runtime.reset_copy_counts()
    before = on_gpu.get("allocations")
    step(x, y)
    counts = ms.runtime.copy_counts()
    assert (counts.to_device, counts.to_host) == (0, 0)
    assert on_gpu.get("allocations") == before
    assert net.weight.device == "GPU:0"
    assert 0 < ms.runtime.memory_allocated() <= ms.runtime.max_memory_allocated()
    assert ms.hal.memory_allocated("CPU") == 0 and "CPU" in ms.hal.memory_summary("CPU")


def test_operators_of_a_network_compile_together(on_gpu):
    net = nn.SequentialCell(nn.Dense(3, 5), nn.Sigmoid())
    x = Tensor(np.ones((7, 3), np.float32))
    graph = ms.jit(net).graph(x)
    assert warm_up([graph]) >= 2
    assert warm_up([graph]) == 0
    assert net(x).shape == (7, 5)


def test_streams_and_events(on_gpu):
    stream, event = ms.runtime.Stream(), ms.runtime.Event(enable_timing=True)
    assert ms.runtime.current_stream() == ms.runtime.default_stream()
    with ms.runtime.StreamCtx(stream):
        assert ms.runtime.current_stream() == stream
        y = Tensor([1.0, 2.0]) + 1
        event.record()
    assert ms.runtime.current_stream() == ms.runtime.default_stream()
    event.synchronize()
    assert event.query() and stream.query()
    assert y.tolist() == [2.0, 3.0]
    with pytest.raises(DeviceError, match="was not recorded has no time"):
        ms.runtime.Event(enable_timing=True).elapsed_time(event)
    with pytest.raises(DeviceError, match="measures no time"):
        ms.runtime.Event().elapsed_time(event)
    ms.runtime.synchronize()
    assert ms.hal.get_device_capability() == (9, 0)
    assert ms.runtime.device_count() == 1


def test_asking_whether_work_is_done_leaves_no_error_behind(on_gpu):
    event = ms.runtime.Event()
    assert event.query(), "nobody recorded it"
    event.wait()
    x = Tensor([1.0, 2.0], device="GPU")
    for ask in (event.query, ms.runtime.current_stream().query):
        x = x + 1
        event.record()
        assert not ask(), "the emulated device says once that work is under way"
        assert cuda.runtime().cudaGetLastError() == 0
        assert ask()
    assert x.tolist() == [3.0, 4.0]


@pytest.mark.parametrize("elements", [1, 4])
def test_memory_between_vectors_is_copied(on_gpu, tmp_path, elements):
    whole = Tensor(np.arange(72, dtype=np.float32), device="GPU")
    view = tvm_ffi.get_global_func("runtime.TVMTensorCreateView")
    offset = tvm_ffi.Shape((64,)), tvm_ffi.dtype("float32"), 4 * elements
    slice_ = view(whole._device.handle, *offset)
    taken = ms.from_dlpack(slice_)
    assert (taken._device.handle.data_ptr() == slice_.data_ptr()) == (elements == 4)
    expected = np.arange(elements, 64 + elements) * 2 + 1
    assert np.array_equal((taken * 2 + 1).asnumpy(), expected)
    ms.export(
        lambda x: x * 2 + 1, Tensor(np.zeros(64, np.float32)), file_name=tmp_path / "f.tvm",
        file_format="TVM", target="sm_90",
    )  # fmt: skip
    assert np.array_equal(ms.from_dlpack(ms.load(tmp_path / "f.tvm")(slice_)).asnumpy(), expected)


def test_o3_tries_other_tiles_and_keeps_what_it_found(on_gpu, monkeypatch, tmp_path):
    monkeypatch.setenv("TVMGRAPH_TUNING_DIR", str(tmp_path))
    monkeypatch.setattr(search, "_SHORTEST", 0.0)
    x, w = (Tensor(np.random.default_rng(i).random((48, 64), np.float32)) for i in range(2))
    config = ms.JitConfig(jit_level="O3", options={"search_trials": 3})
    found = ms.jit(lambda x, w: ops.matmul(x, w.T) + 1.0, jit_config=config)(x, w).asnumpy()
    assert np.allclose(found, x.asnumpy() @ w.asnumpy().T + 1, atol=1e-4)
    (record,) = tuning.records()
    assert record.trials >= 3 and set(record.decisions) <= {"product tile"}


@pytest.mark.parametrize("mode", ["auto", "sink"])
def test_weights_that_numpy_writes_to_are_read_again(on_gpu, mode):
    weight = ms.Parameter(Tensor(np.ones(3, np.float32)), name="w")
    x = Tensor(np.ones(3, np.float32)).to("GPU")
    add = ms.jit(lambda x: x + weight, jit_config=ms.JitConfig(exec_mode=mode))
    array = weight.asnumpy()  # shares memory with the weight as long as that is not on the GPU
    for _ in range(4):
        add(x)
    for value in (5, 7):
        array[:] = value
        assert add(x).tolist() == [value + 1] * 3


def test_weights_that_were_only_read_are_copied_once(on_gpu):
    net = nn.Dense(6, 4, has_bias=False)
    compiled, x = ms.jit(net), Tensor(np.ones((3, 6), np.float32)).to("GPU")
    held = net.weight.asnumpy()
    before = [compiled(x) for _ in range(3)][-1].asnumpy()
    ms.runtime.reset_copy_counts()
    compiled(x)
    assert ms.runtime.copy_counts().to_device == 1  # whoever holds it may write to it
    held *= 2
    del held
    again = [compiled(x) for _ in range(3)][-1]
    assert ms.runtime.copy_counts().to_device == 2
    np.testing.assert_allclose(again.asnumpy(), 2 * before, rtol=1e-5)


def test_what_a_search_found_counts_for_one_rounding_of_factors():
    place = te.placeholder((8,), name="x")
    func = te.create_prim_func([place, te.compute((8,), lambda i: place[i] + 1, name="y")])
    full = gpu_model("sm_90")
    target = make_target("sm_90", 1)
    keys = [
        _DeviceSearch(tvm.ir.GlobalVar("f"), func, model, 0, target).key
        for model in (full, replace(full, tf32=True), full)
    ]
    assert keys[0] == keys[2] != keys[1]
