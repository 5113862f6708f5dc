"""A machine with no compiler and no linker: everything works, nothing is kept, and that is said."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = """
    import numpy as np
    import tvmgraph as ms
    from tvmgraph import JitConfig, Tensor, nn, ops
    from tvmgraph.cli.doctor import run_doctor

    x = Tensor(np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8))
    net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4))
    f = ms.jit(net)
    np.testing.assert_allclose(f(x).asnumpy(), net(x).asnumpy(), atol=1e-5)
    print(f.history[0].disk)

    step = ms.jit(nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1)
    ))
    label = Tensor(np.ones((4, 4), np.float32))
    assert step(x, label).item() > step(x, label).item()

    @ms.jit
    def halved(x):
        while x.sum() > 1:
            x = x / 2
        return x
    assert halved(Tensor([8.0])).item() == 1

    searched = ms.jit(
        lambda a: ops.matmul(a, a.T), jit_config=JitConfig("O3", options={"search_trials": 2})
    )
    np.testing.assert_allclose(searched(x).asnumpy(), x.asnumpy() @ x.asnumpy().T, atol=1e-5)

    assert ms.jit(lambda x: Tensor([1.0]))(x).item() == 1  # no kernel

    ms.export(net, x, file_name="net", file_format="ONNX")
    try:
        ms.export(net, x, file_name="net", file_format="TVM")
    except ms.errors.CompileError as e:
        print(e)
    assert run_doctor()
"""

MODULE = """
    import numpy as np
    import tvmgraph as ms
    from tvmgraph import Tensor, ops

    x = Tensor(np.linspace(-1, 1, 32, dtype=np.float32))
    f = ms.jit(ops.tanh)
    f(x)
    ms.export(ops.tanh, x, file_name="net", file_format="TVM")
    np.testing.assert_allclose(ms.load("net.tvm")(x), np.tanh(x.asnumpy()), atol=1e-5)
    print(f.history[0].disk)
"""


def run(folder: Path, program: str) -> str:
    """What a program prints in a process that finds no command, in a folder."""
    surroundings = os.environ | {
        "PATH": "", "COLUMNS": "400", "TVMGRAPH_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join([str(folder), str(Path(__file__).parents[2])]),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=folder, capture_output=True,
        text=True, env={k: v for k, v in surroundings.items() if k not in ("CC", "CXX")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_but_compiled_modules_works_without_a_linker(tmp_path: Path) -> None:
    hidden = '\n    import sys; sys.modules["ziglang"] = None'
    out = run(tmp_path, hidden + PROGRAM)
    assert "not kept: no linker was found (looked for ld, ld.lld, cc, clang" in out
    assert "export: no linker was found" in out
    assert "pip install 'tvmgraph[linker]'" in out.partition("processor")[2]  # of the doctor
    assert "in this process: no linker was found" in out
    assert not list(tmp_path.rglob("*.so"))


def test_a_linker_of_a_package_is_enough(tmp_path: Path) -> None:
    ld = shutil.which("ld")
    if ld is None:
        pytest.skip("no ld in PATH")
    package = tmp_path / "ziglang"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "zig").write_text(f'#!/bin/sh\n[ "$1" = ld.lld ] && shift && exec {ld} "$@"\n')
    (package / "zig").chmod(0o755)
    assert run(tmp_path, MODULE) == "kept\n"
