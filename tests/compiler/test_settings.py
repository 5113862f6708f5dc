"""Every setting of JitConfig changes what it claims: kernels, instructions, passes, path."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor, jit, ops
from tvmgraph.errors import ConfigError, DeviceError, TvmgraphError
from tvmgraph.machine.processor import missing_features

X = Tensor(np.random.default_rng(0).standard_normal((48, 64)).astype(np.float32))


@pytest.fixture(autouse=True)
def fresh_context():
    yield
    ms.reset_context()


def product(x: Tensor) -> Tensor:
    return ops.softmax(ops.matmul(x * 1.0, x.T) + 1.0) / 3.0


def test_levels(tmp_path: Path) -> None:
    """Graph rules, kernels, vectors and register tiles come one after the other."""
    operators, kernels, vectors = {}, {}, {}
    for level in ("O0", "O1", "O2", "O3"):
        folder = tmp_path / level
        ms.set_context(save_graphs=3, save_graphs_path=str(folder))
        run = jit(product, jit_config=JitConfig(jit_level=level, options=trials(level)))
        close(run(X), product(X))
        (text,) = folder.rglob("*simplified_graph.txt")
        operators[level] = re.findall(r"= (?:\w+_)?(mul|div)\(", text.read_text())
        kernels[level] = len(run.kernels())
        (assembly,) = folder.rglob("*assembly.s")
        vectors[level] = len(re.findall(r"[yz]mm\d+|v\d+\.4s", assembly.read_text()))
    assert operators == {"O0": ["mul", "div"], "O1": ["div"], "O2": ["div"], "O3": ["mul"]}
    assert kernels["O0"] > kernels["O1"] >= kernels["O2"] == kernels["O3"]
    assert vectors["O0"] < vectors["O1"] < vectors["O2"]


def close(got: Tensor, want: Tensor) -> None:
    """Compares results of :func:`product`; denormal ones have few digits."""
    tiny = float(np.finfo(np.float32).tiny)
    np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-4, atol=tiny)


def trials(level: str) -> dict[str, int]:
    return {"search_trials": 0} if level == "O3" else {}


def assembly_of(folder: Path, config: JitConfig) -> str:
    ms.set_context(save_graphs=3, save_graphs_path=str(folder))
    run = jit(product, jit_config=config)
    close(run(X), product(X))
    (file,) = folder.rglob("*assembly.s")
    return file.read_text()


@pytest.mark.skipif(bool(missing_features(["avx2", "fma"])), reason="an x86-64-v3 is needed")
def test_a_lesser_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its instructions are used, by option and by environment variable, and nothing else's."""
    by_option = JitConfig(options={"cpu": "x86-64-v3"})
    option = assembly_of(tmp_path / "option", by_option)
    monkeypatch.setenv("TVMGRAPH_CPU", "x86-64-v2")
    variable = assembly_of(tmp_path / "variable", JitConfig())
    assert "%ymm" in option and "%zmm" not in option
    assert "%xmm" in variable and "%ymm" not in variable and "vfmadd" not in variable


@pytest.mark.skipif(not missing_features(["amx-int8"]), reason="this machine can run them all")
def test_processors_that_this_machine_cannot_be() -> None:
    with pytest.raises(DeviceError, match=r"cannot run code for sapphirerapids: it lacks .*amx"):
        jit(product, jit_config=JitConfig(options={"cpu": "sapphirerapids"}))(X)
    with pytest.raises(ConfigError, match=r"cpu cannot be 'z80'"):
        JitConfig(options={"cpu": "z80"})
    with pytest.raises(ConfigError, match="both name a processor"):
        JitConfig(options={"cpu": "x86-64-v3", "target": "host"})


def test_execution_modes() -> None:
    paths = {}
    for mode in ("sink", "no_sink", "auto"):
        run = jit(lambda x: ops.tanh(x * 2) + x, jit_config=JitConfig(exec_mode=mode))
        run(X)
        paths[mode] = (run.history[0].path, len(run.kernels()))
    assert paths["sink"] == ("sink, native host code (as configured)", 1)
    assert paths["no_sink"] == ("no_sink (as configured)", 3)
    assert paths["auto"] == ("sink, bytecode (auto: only 3 operators)", 1)


@pytest.mark.parametrize(
    ("size", "wanted"), [(8, "native host code"), (32, "native host code"), (64, "bytecode")]
)
def test_auto_says_what_it_chose(size: int, wanted: str) -> None:
    """Calls by machine code pay where kernels are short."""

    def chain(x: Tensor) -> Tensor:
        for _ in range(4):
            x = ops.softmax(ops.matmul(x, x))
        return x

    run = jit(chain)
    run(Tensor(np.ones((size, size), np.float32)))
    assert wanted in run.history[0].path
    assert f"8 operators of {'only ' * (size < 64)}{size * size} elements" in run.explain()


def test_syntax_levels() -> None:
    def find(x: Tensor) -> Tensor:
        return ops.matrix_exp(x[:48, :48])

    lax = jit(find, jit_config=JitConfig(jit_syntax_level="LAX"))
    strict = jit(find, jit_config=JitConfig(jit_syntax_level="STRICT"))
    np.testing.assert_array_equal(lax(X).asnumpy(), find(X).asnumpy())
    with pytest.raises(TvmgraphError, match=r"test_settings\.py:\d+"):
        strict(X)


def test_debug_level() -> None:
    run = jit(lambda x: ops.tanh(x * 2), jit_config=JitConfig(debug_level="DEBUG"))
    run(X)
    assert run.history[0].path == "no_sink (auto: debug_level DEBUG)"
    assert len(run.kernels()) == 2
    assert JitConfig().debug_level == "RELEASE"
    assert JitConfig.preset("debug").debug_level == "DEBUG"


def test_mindspore_arguments() -> None:
    """The order of MindSpore's parameters, and its own spelling of exec_mode."""
    config = JitConfig("O1", "no_sink", "STRICT", "DEBUG", "off")
    assert config.jit_config_dict == {
        "jit_level": "O1", "exec_mode": "no_sink", "jit_syntax_level": "STRICT",
        "debug_level": "DEBUG",
    }  # fmt: skip
    assert JitConfig(exc_mode="sink").exec_mode == "sink"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"debug_level": "VERBOSE"}, "use one of RELEASE, DEBUG"),
        ({"infer_boost": "on"}, "infer_boost cannot be 'on'"),
        ({"debug_level": "DEBUG", "exec_mode": "sink"}, "contradicts exec_mode='sink'"),
        ({"options": {"targte": "host"}}, "target, .*graph_kernel_flags, search_trials"),
    ],
)
def test_wrong_settings(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        JitConfig(**settings)


def test_a_configuration_counts_as_a_whole() -> None:
    """What the nearest configuration leaves out is its default, not that of a farther one."""
    ms.set_context(jit_config=JitConfig(jit_level="O0", exec_mode="no_sink"))
    near = jit(lambda x: ops.tanh(x * 2) + x, jit_config=JitConfig(jit_level="O1"))
    far = jit(lambda x: ops.tanh(x * 2) + x)
    near(X), far(X)
    assert near.history[0].path.startswith("sink")
    assert far.history[0].path.startswith("no_sink")


def test_a_file_of_presets(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[small]\njit_level = "O1"\n[bad]\njit_levle = "O1"\n')
    assert JitConfig.preset("small", path).jit_level == "O1"
    with pytest.raises(ConfigError, match="jit_levle"):
        JitConfig.preset("bad", path)
    with pytest.raises(ConfigError, match="small, bad"):
        JitConfig.preset("smal", path)
