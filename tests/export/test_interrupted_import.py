"""Ctrl-C while the ONNX library is imported: later exports of the process work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tvmgraph as ms

_PROGRAM = '''
import os, signal, sys
import numpy as np
import tvmgraph as ms
from tvmgraph import Tensor, nn

class Interrupt:
    """Sends Ctrl-C while the library is being imported, when its C++ part is there already."""
    def find_spec(self, name, path=None, target=None):
        if name == "onnx.onnx_ml_pb2":
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

net, x = nn.Dense(3, 2), Tensor(np.ones((1, 3), np.float32))
sys.meta_path.insert(0, Interrupt())
try:
    ms.export(net, x, file_name="a.onnx")
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
for name in ("a.graph", "a.onnx"):
    ms.export(net, x, file_name=name, file_format=name[2:].upper())
print("exported")
'''
_OTHER_FORMATS = """
import sys
import numpy as np
import tvmgraph as ms
from tvmgraph import Tensor, nn

ms.export(nn.Dense(3, 2), Tensor(np.ones((1, 3), np.float32)), file_name="a.graph",
          file_format="GRAPH")
print("onnx" in sys.modules)
"""


def _run(program: str, folder: Path) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(ms.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=folder, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_exports_work_after_an_interrupted_import(tmp_path: Path) -> None:
    assert _run(_PROGRAM, tmp_path) == ["interrupted", "exported"]


def test_other_formats_need_no_onnx(tmp_path: Path) -> None:
    assert _run(_OTHER_FORMATS, tmp_path) == ["False"]
