"""The store under several writers at once, and under writers that are killed."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from tvmgraph import Tensor, jit, ops, partial
from tvmgraph.compiler.cache import disk
from tvmgraph.compiler.compile import clear_cache
from tvmgraph.runtime.store import Store

WRITER = """
    import hashlib, itertools, os, random, sys
    from pathlib import Path
    from tvmgraph.runtime.store import Store

    store, rng = Store(Path(sys.argv[1]), int(sys.argv[2])), random.Random(int(sys.argv[3]))
    print("ready", flush=True)
    for i in itertools.count():
        with store.workspace() as folder:
            body = rng.randbytes(rng.randint(1, 300_000))
            with open(folder / "x", "wb") as file:
                for start in range(0, len(body), 4096):  # a kill hits the middle of this
                    file.write(body[start : start + 4096])
                    file.flush()
                file.write(hashlib.sha256(body).digest())
            store.put(f"key{rng.randint(0, 20)}", folder / "x")
        store.find(f"key{rng.randint(0, 20)}")
"""
LIMIT = 2_000_000


def writer(folder: Path, seed: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(folder), str(LIMIT), str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def complete(path: Path) -> bool:
    """Whether an entry is all of what was written; also when it is deleted meanwhile."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return True
    return hashlib.sha256(content[:-32]).digest() == content[-32:]


def test_writers_that_are_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several processes write the same keys and are killed: no reader ever sees half an entry."""
    rng, seen = random.Random(0), 0
    for round_ in range(4):
        processes = [writer(tmp_path, 3 * round_ + k) for k in range(3)]
        for p in processes:
            assert p.stdout is not None
            assert p.stdout.readline() == b"ready\n"
        end = time.monotonic() + rng.uniform(0.1, 0.4)
        while time.monotonic() < end:
            for path in tmp_path.glob("*.so"):
                assert complete(path), path
                seen += 1
        for p in processes:
            p.send_signal(signal.SIGKILL)
        for p in processes:
            p.communicate()
        assert all(map(complete, tmp_path.glob("*.so")))
    assert seen
    leftovers = list(tmp_path.glob(".part-*"))
    assert leftovers  # somebody was in the middle of a write
    monkeypatch.setattr(partial, "AGE", -1.0)
    store = Store(tmp_path, LIMIT)
    with store.workspace() as folder:
        (folder / "x").write_bytes(b"")
        store.put("last", folder / "x")
    assert store.usage().bytes <= LIMIT
    assert set(leftovers).isdisjoint(tmp_path.glob(".part-*"))


@pytest.mark.skipif(disk.linker() is None, reason="there is no linker here")
@pytest.mark.parametrize("victim", ["os.replace", "xxhash.xxh3_128"])
def test_a_compile_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    """A process dies right before its entry gets its name, or while it is written."""
    program = f"""
        import os, signal
        import numpy as np, xxhash
        from tvmgraph import Tensor, jit, ops
        from tvmgraph.compiler.cache import disk

        def die(*_):
            os.kill(os.getpid(), signal.SIGKILL)

        link = disk.link
        def patched(*args):
            {victim} = die
            return link(*args)

        disk.link = patched
        jit(lambda x: ops.exp(x) * 2)(Tensor(np.ones(3, np.float32)))
    """
    folder = tmp_path / "cache"
    monkeypatch.setenv(disk.FOLDER_VARIABLE, str(folder))
    died = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=os.environ | {"TVMGRAPH_COMPILE_WORKER": "0"},
        check=False,
    )
    assert died.returncode == -signal.SIGKILL
    assert not list(folder.glob("*.so"))
    clear_cache()
    function = jit(lambda x: ops.exp(x) * 2)
    y = function(Tensor(np.ones(3, np.float32)))
    np.testing.assert_allclose(y.asnumpy(), np.exp(np.ones(3, np.float32)) * 2, rtol=1e-6)
    assert function.history[0].disk == "kept"
    assert len(list(folder.glob("*.so"))) == 1
    clear_cache()
