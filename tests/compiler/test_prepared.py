"""Prepared weights on disk: mapped by other processes, never stale, never in the way."""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.compiler.cache import disk, prepared
from tvmgraph.config.options import CompileOptions
from tvmgraph.passes.freeze import Frozen, freeze
from tvmgraph.runtime.store import EXECUTABLE, WEIGHTS, Store

SIZE = 1100  # 4.8 MB of weights


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(SIZE, SIZE)

    def construct(self, x):
        return self.dense(x)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(disk.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.delenv(disk.LIMIT_VARIABLE, raising=False)
    return tmp_path


@pytest.fixture
def computed(monkeypatch):
    """Counts computations; those of a graph's weights are what the disk saves."""
    calls = []
    compute = Frozen.prepare
    monkeypatch.setattr(Frozen, "prepare", lambda *a: calls.append(1) or compute(*a))
    return calls


def frozen():
    graph = jit(Net().set_train(False)).graph(Tensor(np.ones((8, SIZE), np.float32)))
    found = freeze(graph)
    assert found is not None
    return found


def weights(seed):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((SIZE, SIZE)).astype(np.float32)]


def prepare(half, arrays):
    found = prepared.prepare(half, arrays)
    for thread in threading.enumerate():  # the writer
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    return found


def test_the_second_time_they_are_mapped(folder, computed):
    first = prepare(frozen(), weights(0))
    second = prepare(frozen(), weights(0))  # another graph object of the same structure
    assert len(computed) == 1
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert all(a.ctypes.data % 64 == 0 and a.flags.writeable for a in second)
    second[0][:] = 0  # whoever writes to them gets pages of their own
    third = prepare(frozen(), weights(0))
    assert len(computed) == 1
    assert np.array_equal(first[0], third[0])


def test_other_weights_are_computed(folder, computed):
    changed = weights(0)
    changed[0][-1, -1] += 1
    first, second = (prepare(frozen(), w)[0] for w in (weights(0), changed))
    assert len(computed) == 2
    assert not np.array_equal(first, second)
    assert len(list(folder.glob(f"*{WEIGHTS}"))) == 2


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "longer"])
def test_damaged_files_are_made_again(folder, computed, damage):
    right = prepare(frozen(), weights(0))
    (path,) = folder.glob(f"*{WEIGHTS}")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1 if damage == "flip" else 0
    changed = {"flip": content, "cut": content[:-1], "empty": b"", "longer": content + b"x"}[damage]
    path.write_bytes(changed)
    again = prepare(frozen(), weights(0))
    assert len(computed) == 2
    assert np.array_equal(right[0], again[0])
    assert path.read_bytes() != bytes(changed)


def test_a_file_under_the_name_of_another_is_made_again(folder, computed):
    right = prepare(frozen(), weights(0))
    (path,) = folder.glob(f"*{WEIGHTS}")
    other = prepare(frozen(), weights(1))
    (wrong,) = set(folder.glob(f"*{WEIGHTS}")) - {path}
    os.replace(wrong, path)
    again = prepare(frozen(), weights(0))
    assert len(computed) == 3
    assert np.array_equal(right[0], again[0]) and not np.array_equal(right[0], other[0])


def test_small_results_and_a_small_cache_keep_nothing(folder, monkeypatch):
    monkeypatch.setattr(prepared, "_LEAST", 8 << 20)
    prepare(frozen(), weights(0))
    monkeypatch.setattr(prepared, "_LEAST", 0)
    monkeypatch.setenv(disk.LIMIT_VARIABLE, "5")  # the file would take more than half of it
    prepare(frozen(), weights(0))
    monkeypatch.setenv(disk.LIMIT_VARIABLE, "0")
    prepare(frozen(), weights(0))
    assert not list(folder.iterdir())


def test_weights_make_room_before_executables(folder):
    def put(store, key, age):
        with store.workspace() as place:
            file = place / "file"
            file.write_bytes(bytes(400))
            os.utime(store.put(key, file), (age, age))

    code, data = (Store(folder, 1000, kind) for kind in (EXECUTABLE, WEIGHTS))
    put(code, "old", 1)
    put(data, "young", 3)
    assert code.usage().entries == data.usage().entries == 2
    put(code, "new", 2)
    assert {p.name for p in folder.iterdir()} == {f"old{EXECUTABLE}", f"new{EXECUTABLE}"}
    assert code.clear().entries == 2


FULL = f"""
    import numpy as np
    from tvmgraph import Tensor, jit, nn, set_seed
    set_seed(1)
    net = nn.Dense({SIZE}, {SIZE}).set_train(False)
    x = Tensor(np.ones((8, {SIZE}), np.float32))
    f = jit(net)
    assert np.allclose(f(x).asnumpy(), net(x).asnumpy(), atol=1e-4)
    print(f.history[0].disk)
"""


@pytest.mark.skipif(disk.linker() is None, reason="there is no linker here")
@pytest.mark.parametrize(
    ("room", "kept"), [("4k", "not kept"), ("24k", "not kept"), ("1m", "kept")]
)
def test_a_full_disk_is_no_error(folder, room, kept):
    """No room for the first object file, for the library, or for the weights only."""
    mount = f"mount -t tmpfs -o size={room},mode=0700 none {folder} && "
    look = f' && find {folder} -name "*{WEIGHTS}" -o -name ".part-*"'
    unshare = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if subprocess.run([*unshare, mount + "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody mount a small disk")
    command = f"{mount}{sys.executable} -c '{textwrap.dedent(FULL)}'{look}"
    done = subprocess.run([*unshare, command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(kept)
    assert len(done.stdout.splitlines()) == 1  # nothing unfinished is left
    assert not done.stderr


def test_a_jitted_cell_sees_new_weights_after_mapping(folder, computed):
    x = Tensor(np.ones((8, SIZE), np.float32))
    net = Net().set_train(False)
    jit(net)(x)
    prepare(frozen(), weights(9))  # waits for the writer
    before = len(computed)
    compiled = jit(net)
    assert np.allclose(compiled(x).asnumpy(), net(x).asnumpy(), atol=1e-4)
    assert len(computed) == before
    net.dense.weight.set_data(ops.ones((SIZE, SIZE)))
    assert np.allclose(compiled(x).asnumpy(), net(x).asnumpy(), atol=1e-4)
    assert len(computed) == before + 1


def test_every_processor_has_its_own(folder, computed):
    """Panels for a processor with narrower vectors are others, of the same weights."""
    graph = jit(Net().set_train(False)).graph(Tensor(np.ones((8, SIZE), np.float32)))
    halves = [freeze(graph, CompileOptions(target=name)) for name in ("x86-64-v3", "x86-64-v4")]
    shapes = [prepare(half, weights(0))[0].shape for half in halves]
    assert len(computed) == 2
    assert shapes[0][2] < shapes[1][2]
    assert [prepare(half, weights(0))[0].shape for half in halves] == shapes
    assert len(computed) == 2
