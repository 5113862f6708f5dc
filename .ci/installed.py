"""Uses an installed tvmgraph: all files are there, one compiled call, one export.

Run from another folder, as ``python .ci/installed.py ROOT`` with the tree that it was built from.
"""

import importlib.metadata
import sys
from pathlib import Path

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, nn
from tvmgraph.data import load_alice, load_digits

root, installed = Path(sys.argv[1]).resolve(), Path(ms.__file__).parent
assert root not in installed.parents, f"this is the tree, not an installation: {installed}"
assert importlib.metadata.version("tvmgraph") == ms.__version__

# The folder configs is a link in the tree: rglob does not enter it.
wanted = [*(root / "tvmgraph").rglob("*"), *(root / "tvmgraph" / "configs").glob("*")]
names = [
    str(path.relative_to(root / "tvmgraph"))
    for path in wanted
    if path.is_file() and "__pycache__" not in path.parts
]
assert {"py.typed", "configs/targets.toml", "data/digits.npz"} <= set(names)
missing = [n for n in names if (installed / n).read_bytes() != (root / "tvmgraph" / n).read_bytes()]
assert not missing, f"differ: {missing}"
assert load_digits()[0].shape[0] == 1797 and "Alice" in load_alice()

net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4))
x = Tensor(np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8))
compiled = ms.jit(net, jit_config=ms.JitConfig.preset("default"))
np.testing.assert_allclose(compiled(x).asnumpy(), net(x).asnumpy(), atol=1e-5)

for file_format in ("TVM", "ONNX"):
    path = ms.export(net, x, file_name="net", file_format=file_format)
    loaded = ms.load(path)
    np.testing.assert_allclose(np.asarray(loaded(x)), net(x).asnumpy(), atol=1e-5)
print(f"{len(names)} files of tvmgraph {ms.__version__}, a compiled call and two exports are right")
