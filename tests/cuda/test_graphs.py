"""``exec_mode="sink"``: calls that are replayed as CUDA graphs."""

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor, nn, ops
from tvmgraph.errors import DeviceError

_SINK = JitConfig(exec_mode="sink")
_RNG = np.random.default_rng(0)


@pytest.fixture
def on_gpu(gpu):
    ms.set_context(device_target="GPU")
    return gpu


class _Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(20, 30), nn.Dense(30, 10)

    def construct(self, x):
        return self.second(ops.relu(self.first(x)))


def _image():
    return _RNG.standard_normal((4, 20)).astype(np.float32)


def _plain(net):
    """The same network, its kernels launched one by one."""
    return ms.jit(net)


def test_a_call_is_one_launch_from_the_second_one_on(on_gpu):
    net, x = _Net(), Tensor(_image()).to("GPU")
    compiled = ms.jit(net, jit_config=_SINK)
    expected = _plain(net)(x).asnumpy()
    for count in (0, 1, 2, 3):
        y = compiled(x)
        assert np.array_equal(y.asnumpy(), expected)
        assert on_gpu.get("graph_launches") == count
    assert "sink, CUDA graph (as configured)" in compiled.explain()


def test_results_that_somebody_holds_are_not_written_to_again(on_gpu):
    net, images = _Net(), [_image() for _ in range(6)]
    x = Tensor(images[0]).to("GPU")
    compiled = ms.jit(net, jit_config=_SINK)
    outputs = []
    for image in images:
        ms.runtime.synchronize()
        x.copy_(Tensor(image).to("GPU"))
        outputs.append(compiled(x))
    for image, y in zip(images, outputs):
        assert np.array_equal(y.asnumpy(), _plain(net)(Tensor(image)).asnumpy())


def test_inputs_may_lie_somewhere_else_in_every_call(on_gpu):
    net, held = _Net(), []
    compiled = ms.jit(net, jit_config=_SINK)
    for _ in range(12):
        held.append(Tensor(_image()).to("GPU"))
        found = compiled(held[-1])
        assert np.array_equal(found.asnumpy(), _plain(net)(held[-1]).asnumpy())
    assert on_gpu.get("graph_launches") >= 5


def test_new_weights_and_other_memory_are_noticed(on_gpu):
    net, x = _Net(), Tensor(_image()).to("GPU")
    compiled = ms.jit(net, jit_config=_SINK)
    for round in range(3):
        for _ in range(3):
            y = compiled(x)
        assert np.array_equal(y.asnumpy(), _plain(net)(x).asnumpy())
        net.second.bias.set_data(Tensor(np.full(10, round, np.float32)))
        ms.runtime.empty_cache()
        others = [Tensor(np.ones((4, n), np.float32)).to("GPU") for n in (10, 20, 30, 40)]
        again = compiled(x)
        assert np.array_equal(again.asnumpy(), _plain(net)(x).asnumpy())
        assert all((o.asnumpy() == 1).all() for o in others)
    assert on_gpu.get("graph_launches") >= 3


def _train(config, steps):
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 4))
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
    step = ms.jit(cell, jit_config=config)
    data = np.random.default_rng(0)
    x, y = data.standard_normal((6, 8), np.float32), data.integers(0, 4, 6).astype(np.int32)
    x, y = Tensor(x).to("GPU"), Tensor(y).to("GPU")
    losses = [float(step(x, y).asnumpy()) for _ in range(steps)]
    return losses, [p.asnumpy() for p in net.trainable_params()]


def test_a_training_step_writes_its_weights_in_place(on_gpu):
    expected = _train(JitConfig(), 6)
    before = on_gpu.get("graph_launches")
    found = _train(_SINK, 6)
    assert found[0] == expected[0]
    assert all(np.array_equal(a, b) for a, b in zip(found[1], expected[1]))
    assert on_gpu.get("graph_launches") - before >= 4


def test_work_of_another_stream_has_recordings_of_its_own(on_gpu):
    net, x = _Net(), Tensor(_image()).to("GPU")
    compiled = ms.jit(net, jit_config=_SINK)
    expected = _plain(net)(x).asnumpy()
    for stream in (None, ms.runtime.Stream()):
        with ms.runtime.StreamCtx(stream):
            for _ in range(3):
                assert np.array_equal(compiled(x).asnumpy(), expected)
    assert on_gpu.get("graph_launches") == 4


def test_what_cannot_be_recorded_says_so(on_gpu):
    @ms.jit(jit_config=_SINK)
    def branch(x):
        return x + 1 if x.sum() > 0 else x - 1

    assert branch(Tensor([1.0, 2.0])).tolist() == [2.0, 3.0]
    assert "branches and loops are decided on the host" in branch.explain()
    double = ms.jit(lambda x: x * 2, jit_config=_SINK)
    held = []  # else the next one lies where recordings know it
    for function, failure, text in (
        ("cudaStreamBeginCapture", "invalid device", "cudaStreamBeginCapture failed"),
        ("cudaGraphInstantiate", "out of memory", "the GPU is out of memory"),
        ("cudaGraphLaunch", "illegal address", "cudaGraphLaunch failed"),
        ("cuLaunchKernel", "illegal address", "cannot be recorded as a CUDA graph"),
    ):
        held += [x := Tensor([1.0, 2.0]).to("GPU"), double(x)]
        with on_gpu.failing(function, failure), pytest.raises(DeviceError, match=text):
            double(x)
        on_gpu.reset()
        assert double(x).tolist() == [2.0, 4.0]


def test_a_module_replays_its_calls(gpu, tmp_path):
    net, image = _Net(), _image()
    expected = net(Tensor(image)).asnumpy()
    path = tmp_path / "net.tvm"
    ms.export(
        net, Tensor(image), file_name=path, file_format="TVM", target="sm_90", jit_config=_SINK
    )
    module = ms.load(path)
    for _ in range(3):
        assert np.allclose(module(image), expected, atol=1e-5)
    x = ms.from_dlpack(Tensor(image).to("GPU"))
    call = module.bound(x)
    before = gpu.get("graph_launches")
    for _ in range(3):
        (y,) = call()
        assert np.allclose(ms.from_dlpack(y).asnumpy(), expected, atol=1e-5)
    assert gpu.get("graph_launches") - before >= 2
    with pytest.raises(ms.errors.ArgumentError, match="bound to tensors, which are there"):
        module.bound(image)
