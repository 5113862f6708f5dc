"""What only a real GPU can show; skipped, with the reason, where there is none."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gpu_bundle
from tvmgraph.backend.cuda import nvcc

_SCRIPT = Path(gpu_bundle.__file__).with_name("gpu.sh")
pytestmark = [
    pytest.mark.skipif(not Path("/dev/nvidia0").exists(), reason="this machine has no NVIDIA GPU"),
    pytest.mark.skipif(nvcc.find() is None, reason="no CUDA compiler (nvcc) is installed"),
]

_PROGRAM = """
import numpy as np
import tvmgraph as ms
from tvmgraph import Tensor, nn, ops

x = np.random.default_rng(0).standard_normal((64, 300)).astype(np.float32)
net = nn.SequentialCell(nn.Dense(300, 512), nn.GELU(), nn.Dense(512, 10))
expected = net(Tensor(x)).asnumpy()
ms.set_context(device_target="GPU")
eager, compiled = net(Tensor(x)), ms.jit(net)(Tensor(x))
assert eager.device == compiled.device == "GPU:0"
assert np.allclose(eager.asnumpy(), expected, atol=1e-4)
assert np.allclose(compiled.asnumpy(), expected, atol=1e-4)
stream, event = ms.runtime.Stream(), ms.runtime.Event(enable_timing=True)
with ms.runtime.StreamCtx(stream):
    y = ops.relu(compiled) * 2
    event.record()
event.synchronize()
assert np.allclose(y.asnumpy(), np.maximum(expected, 0) * 2, atol=1e-3)
try:
    Tensor(np.zeros(1, np.int8)).to("GPU").broadcast_to((1 << 46,))
except ms.errors.TvmgraphError as e:
    print(e)
"""


def test_eager_and_compiled_code_agree_with_the_cpu():
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_check_finds_everything_right(tmp_path):
    path, out = tmp_path / "bundle.tar", tmp_path / "out"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    rows = "lenet,training_step"
    gpu_bundle.main(path, target="sm_80", samples=1, size=24, python=python, only=rows)
    done = subprocess.run(["bash", str(_SCRIPT), str(path), str(out)], check=False)
    report = json.loads((out / "results.json").read_text())
    assert done.returncode == 0, (out / "results.md").read_text()
    assert sum(r["checked"] for r in report["results"].values()) > 500
