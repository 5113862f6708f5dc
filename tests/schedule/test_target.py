"""Targets and processor models."""

import os
import subprocess
import sys

import pytest

from tvmgraph.errors import TvmgraphError
from tvmgraph.schedule import (
    cache_sizes,
    configure_threads,
    cpu_model,
    host_features,
    make_target,
    target_names,
    thread_count,
)


def test_host_target_names_every_feature():
    attributes = {str(item) for item in make_target("host").attrs["mattr"]}
    assert {f"+{feature}" for feature in host_features()} <= attributes


@pytest.mark.parametrize("name", target_names("llvm"))
def test_every_target_has_a_model(name):
    model = cpu_model(name, threads=3)
    assert make_target(name).kind.name == "llvm"
    assert model.threads == 3
    assert model.lanes * 4 == model.vector_bytes
    assert model.lanes_of(8) * 2 == model.lanes
    assert model.l1_bytes <= model.l2_bytes <= model.l3_bytes
    assert model.flops_per_cycle == 2 * model.lanes * model.fma_per_cycle


def test_unknown_target_lists_the_known_ones():
    with pytest.raises(TvmgraphError, match="unknown target 'z80'") as info:
        make_target("z80")
    assert "x86-64-v3" in str(info.value)


def test_thread_count_prefers_argument_then_environment(monkeypatch):
    monkeypatch.setenv("TVM_NUM_THREADS", "5")
    assert thread_count() == 5
    assert thread_count(3) == 3
    monkeypatch.delenv("TVM_NUM_THREADS")
    assert 1 <= thread_count() <= (os.cpu_count() or 1)
    with pytest.raises(TvmgraphError, match="must be positive"):
        thread_count(0)


def test_configure_threads_sets_the_pool_up(monkeypatch):
    for name in ("TVM_NUM_THREADS", "TVM_BIND_THREADS", "TVM_THREAD_POOL_SPIN_COUNT"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    assert configure_threads(2) == 2
    assert os.environ["TVM_NUM_THREADS"] == "2"
    assert os.environ["TVM_BIND_THREADS"] == "0"
    assert int(os.environ["TVM_THREAD_POOL_SPIN_COUNT"]) > 0


def test_cache_sizes_grow():
    l1, l2, l3 = cache_sizes()
    assert 8 << 10 <= l1 <= l2 <= l3


_COUNT_WORKERS = """
import os, sys
import numpy as np
import tvmgraph as ms
if sys.argv[1] != "-":
    ms.set_context(thread_num=int(sys.argv[1]))
x = ms.Tensor(np.ones((1024, 1024), np.float32))
f = ms.jit(lambda x: x * 2 + 1)
before = len(os.listdir("/proc/self/task"))
f(x)
print(before, len(os.listdir("/proc/self/task")))
"""


def test_the_pool_has_as_many_workers_as_asked_for():
    def workers(context, environment):
        env = {**os.environ, "TVMGRAPH_CACHE_MB": "0", "TVM_NUM_THREADS": environment}
        command = [sys.executable, "-c", _COUNT_WORKERS, context]
        out = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
        before, after = map(int, out.split())
        return after - before

    assert workers("-", "3") == workers("1", "4") + 2  # the context goes before the environment


def test_tiles_are_used_only_where_the_system_permits_them(monkeypatch):
    from tvmgraph.schedule import target

    features = frozenset({"avx512f", "amx-tile", "amx-bf16"})
    monkeypatch.setattr(target, "permit_tiles", lambda: False)
    assert target._permitted(features) == {"avx512f"}
    monkeypatch.setattr(target, "permit_tiles", lambda: True)
    assert target._permitted(features) == features
