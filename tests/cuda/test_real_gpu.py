"""What only a real GPU can show; skipped, with the reason, where there is none."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tvmgraph as ms
from benchmarks import gpu_bundle
from tvmgraph import JitConfig, Tensor, nn, ops
from tvmgraph.backend.cuda import nvcc
from tvmgraph.errors import DeviceError
from tvmgraph.testing.samples import Case, all_cases, assert_close, has_column, tolerance

_SCRIPT = Path(gpu_bundle.__file__).with_name("gpu.sh")
pytestmark = [
    pytest.mark.skipif(not Path("/dev/nvidia0").exists(), reason="this machine has no NVIDIA GPU"),
    pytest.mark.skipif(nvcc.find() is None, reason="no CUDA compiler (nvcc) is installed"),
]
_RNG = np.random.default_rng(0)
_EAGER = [c for c in all_cases() if has_column(c.op, "lower") and c.index == 0][3::13]


@pytest.fixture(autouse=True)
def on_gpu():
    ms.set_context(device_target="GPU")
    yield
    ms.reset_context()


def _normal(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("case", _EAGER, ids=lambda case: case.name)
def test_eager_operators(case: Case):
    expected = case.call(case.tensors())
    try:
        found = case.call([t.to("GPU") for t in case.tensors()])
    except DeviceError as e:
        pytest.skip(str(e).splitlines()[0])
    for actual, wanted in zip(found, expected, strict=True):
        close = max(tolerance(case, wanted.dtype), 1e-5)
        assert_close(actual.asnumpy(), wanted.asnumpy(), close, case.name)


class _LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell(
            nn.Conv2d(1, 8, 5, pad_mode="valid"), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Flatten(), nn.Dense(8 * 12 * 12, 64), nn.GELU(), nn.Dense(64, 10),
        )  # fmt: skip

    def construct(self, x):
        return self.body(x)


def _losses(device: str, compiled: bool, steps: int = 4) -> list[float]:
    ms.set_context(device_target=device)
    ms.set_seed(1)
    net = _LeNet()
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Adam(net.trainable_params(), 1e-3)
    )
    run = ms.jit(step, jit_config=JitConfig(exec_mode="sink")) if compiled else step
    rng = np.random.default_rng(2)
    x = Tensor(rng.standard_normal((16, 1, 28, 28)).astype(np.float32))
    labels = Tensor(rng.integers(0, 10, 16).astype(np.int32))
    return [float(run(x, labels).asnumpy()) for _ in range(steps)]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "CUDA graph"])
def test_a_training_loop_goes_as_on_the_processor(compiled):
    assert np.allclose(_losses("GPU", compiled), _losses("CPU", False), rtol=1e-3)


def test_cuda_graphs_follow_inputs_and_weights():
    net = nn.SequentialCell(nn.Dense(300, 512), nn.GELU(), nn.Dense(512, 10))
    compiled = ms.jit(net, jit_config=JitConfig(exec_mode="sink"))
    for turn in range(8):
        x = Tensor(_normal(64, 300)).to("GPU")
        if turn == 5:
            net[0].weight.set_data(net[0].weight * 2)
        assert np.allclose(compiled(x).asnumpy(), net(x).asnumpy(), atol=1e-3)
    assert "CUDA graph" in compiled.explain()


def test_streams_and_events():
    x = Tensor(_normal(512, 512)).to("GPU")
    stream = ms.runtime.Stream()
    start, end = (ms.runtime.Event(enable_timing=True) for _ in range(2))
    with ms.runtime.StreamCtx(stream):
        start.record()
        y = ops.relu(x) @ x
        end.record()
    end.synchronize()
    assert 0 < start.elapsed_time(end) < 1000
    assert np.allclose(y.asnumpy(), np.maximum(x.asnumpy(), 0) @ x.asnumpy(), atol=1e-2)


def test_tensors_of_pytorch_share_their_memory():
    torch = pytest.importorskip("torch")
    theirs = torch.arange(12, dtype=torch.float32, device="cuda").reshape(3, 4)
    ours = ms.from_dlpack(theirs)
    theirs += 1
    torch.cuda.synchronize()
    assert ours.device == "GPU:0" and np.array_equal(ours.asnumpy(), theirs.cpu().numpy())
    back = torch.from_dlpack(ours * 2)
    assert back.is_cuda and torch.equal(back, theirs * 2)


def test_memory_that_is_not_there_is_an_error_and_nothing_more():
    row = Tensor(_normal(1 << 18)).to("GPU")
    with pytest.raises(DeviceError, match="out of memory"):
        row.broadcast_to((1 << 17, 1 << 18)) + 1
    assert float((Tensor([1.0]).to("GPU") + 1).asnumpy()[0]) == 2.0
    before = ms.runtime.memory_allocated()
    x = Tensor(_normal(1 << 20)).to("GPU")
    assert ms.runtime.memory_allocated() - before == 4 << 20
    del x
    assert ms.runtime.memory_allocated() == before


def test_modules_run_where_their_arguments_are(tmp_path):
    net, x = nn.SequentialCell(nn.Dense(40, 64), nn.ReLU(), nn.Dense(64, 8)), _normal(5, 40)
    expected = net(Tensor(x)).asnumpy()
    file = tmp_path / "net.tvm"
    ms.export(net, Tensor(x), file_name=file, file_format="TVM", target="sm_90")
    module = ms.load(file)
    assert np.allclose(module(x), expected, atol=1e-4)
    assert module(Tensor(x).to("GPU")).device == "GPU:0"


def test_products_of_the_library():
    a, b = (Tensor(_normal(2048, 2048)).astype(ms.bfloat16).to("GPU") for _ in range(2))
    plain = ms.jit(ops.matmul)(a, b).asnumpy().astype(np.float32)
    config = JitConfig(options={"library_dispatch": True})
    found = ms.jit(ops.matmul, jit_config=config)(a, b).asnumpy().astype(np.float32)
    assert np.abs(found - plain).max() <= 1e-2 * np.abs(plain).max()


def test_a_profile_times_every_kernel():
    x = Tensor(_normal(64, 300)).to("GPU")
    compiled = ms.jit(nn.SequentialCell(nn.Dense(300, 512), nn.GELU(), nn.Dense(512, 10)))
    assert "matmul" in str(compiled.profile(x))


def test_the_check_finds_everything_right(tmp_path):
    path, out = tmp_path / "bundle.tar", tmp_path / "out"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    rows = "lenet,training_step"
    gpu_bundle.main(path, target="sm_80", samples=1, size=24, python=python, only=rows)
    done = subprocess.run(["bash", str(_SCRIPT), str(path), str(out)], check=False)
    report = json.loads((out / "results.json").read_text())
    assert done.returncode == 0, (out / "results.md").read_text()
    assert sum(r["checked"] for r in report["results"].values()) > 500
