"""Targets and processor models."""

import os
import subprocess
import sys

import pytest

from tvmgraph.backend import target
from tvmgraph.backend.target import make_target, target_names
from tvmgraph.errors import TvmgraphError
from tvmgraph.machine import processor
from tvmgraph.machine.processor import cache_sizes, cpu_model, host_features
from tvmgraph.machine.targets import CPU_VARIABLE
from tvmgraph.machine.threads import configure_threads, thread_count

pytestmark = pytest.mark.any_processor


def test_host_target_names_every_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CPU_VARIABLE, raising=False)
    attributes = {str(item) for item in make_target("host").attrs["mattr"]}
    # With arithmetic of halves LLVM would round a product and a sum of them once.
    refused = {"avx512fp16"} & set(host_features())
    assert {f"-{feature}" for feature in refused} <= attributes
    assert {f"+{feature}" for feature in {*host_features()} - refused} <= attributes


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
    monkeypatch.setenv("TVMGRAPH_NUM_THREADS", "4")
    assert thread_count() == 4
    assert thread_count(3) == 3
    monkeypatch.delenv("TVMGRAPH_NUM_THREADS")
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
    def workers(context, environment, variable="TVM_NUM_THREADS"):
        env = {**os.environ, "TVMGRAPH_CACHE_MB": "0", variable: environment}
        command = [sys.executable, "-c", _COUNT_WORKERS, context]
        out = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
        before, after = map(int, out.split())
        return after - before

    one = workers("1", "4")  # the context goes before the environment
    assert workers("-", "3") == workers("-", "3", "TVMGRAPH_NUM_THREADS") == one + 2


def test_tiles_are_used_only_where_the_system_permits_them(monkeypatch):
    features = frozenset({"avx512f", "amx-tile", "amx-bf16", "amx-complex"})
    monkeypatch.setattr(target, "llvm_features", lambda: features)
    monkeypatch.setattr(
        processor, "linux_flags", lambda: frozenset({"avx512f", "amx_tile", "amx_bf16"})
    )
    monkeypatch.setattr(processor, "permit_tiles", lambda: False)
    assert target.usable_features() == {"avx512f"}
    monkeypatch.setattr(processor, "permit_tiles", lambda: True)
    assert target.usable_features() == features


def test_half_precision_is_not_left_to_arithmetic_that_rounds_once():
    assert "-avx512fp16" in target.make_target("sapphirerapids").attrs["mattr"]
    assert "+avx512fp16" not in target.make_target("host").attrs["mattr"]


def test_linux_and_llvm_agree_on_this_processor():
    found = target.llvm_features() & processor.FEATURES.keys()
    tiles = {f for f in found if f.startswith("amx-") and not processor.permit_tiles()}
    assert processor.host_features() == found - tiles


_V3 = "fma avx avx2 f16c bmi1 bmi2 abm movbe"
#: Processors by /proc/cpuinfo: vendor, family, model, flags; then vectors, registers, multiply-adds
#: per cycle.
_PROCESSORS = {
    "Zen": ("AuthenticAMD", 23, 1, _V3, 32, 16, 1),
    "Zen 2": ("AuthenticAMD", 23, 0x31, _V3, 32, 16, 2),
    "Zen 3": ("AuthenticAMD", 25, 0x21, _V3, 32, 16, 2),
    "Zen 4": ("AuthenticAMD", 25, 0x61, _V3 + " avx512f avx512bw avx512_vnni", 64, 32, 1),
    "Zen 5": ("AuthenticAMD", 26, 2, _V3 + " avx512f avx512bw avx_vnni avx512_vnni", 64, 32, 2),
    "Haswell": ("GenuineIntel", 6, 60, _V3, 32, 16, 2),
    "Alder Lake": ("GenuineIntel", 6, 151, _V3 + " avx_vnni", 32, 16, 2),
    "Sandy Bridge": ("GenuineIntel", 6, 42, "avx sse4_2", 16, 16, 1),
}


@pytest.mark.parametrize("name", _PROCESSORS)
def test_models_of_processors(name, monkeypatch):
    vendor, family, number, flags, vector, registers, fma = _PROCESSORS[name]
    facts = {"vendor_id": vendor, "cpu family": str(family), "model": str(number), "flags": flags}
    monkeypatch.setattr(processor, "_cpuinfo", lambda: facts)
    monkeypatch.setattr(processor, "linux_flags", lambda: frozenset(flags.split()))
    model = processor._host_model(4)
    assert (model.vector_bytes, model.registers) == (vector, registers)
    assert (model.fma_per_cycle, model.threads) == (fma, 4)
    assert model.dot_types == ({"int8"} if "avx512_vnni" in flags else set())
    assert not model.tile_types
