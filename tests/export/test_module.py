"""Compiled modules: written, loaded without the front end, damaged, run from C++."""

# pyright: reportArgumentType=false

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tvmgraph as ms
from tests.archives import unpack
from tests.export.helpers import MAX_ERROR, eager, relative_error
from tests.models import MODELS, Model
from tests.processors import CPUS
from tvmgraph import Tensor, nn, ops
from tvmgraph.config.options import CompileOptions
from tvmgraph.errors import ArgumentError, DTypeError, ExportError, LoadError, ShapeError
from tvmgraph.export.bundle import write_bundle
from tvmgraph.export.capture import Program
from tvmgraph.export.graph_file import load_graph
from tvmgraph.export.module import save_module
from tvmgraph.machine import processor
from tvmgraph.passes.freeze import freeze as split_weights
from tvmgraph.runtime import archive, host, load
from tvmgraph.testing.samples import all_cases

#: Names a folder with the wheels of apache-tvm and apache-tvm-ffi for aarch64, unpacked.
AARCH64_PACKAGES = "TVMGRAPH_AARCH64_PACKAGES"
EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples" / "cpp"


class Small(nn.Cell):
    """A dense layer and a sort, which needs TVM's second library."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(8, 5)

    def construct(self, x: Tensor) -> Any:
        y = self.dense(x)
        return y, ops.sort(y)[0]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray, list[np.ndarray]]:
    net = Small()
    x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    path = ms.export(
        net, Tensor(x), file_name=tmp_path_factory.mktemp("small") / "net", file_format="TVM"
    )
    return path, x, eager(net, (Tensor(x),))


_SHIPPED = [
    m for m in MODELS if m.name != "resnet50"
]  # its compile takes longest, and adds nothing


@pytest.mark.parametrize(
    ("model", "frozen"),
    [(m, False) for m in _SHIPPED] + [(MODELS[0], True)],
    ids=lambda v: getattr(v, "name", f"frozen={v}"),
)
def test_model(model: Model, frozen: bool, tmp_path: Path) -> None:
    net, args = model.build(), model.inputs(2)
    expected = eager(net, args)
    path = ms.export(net, *args, file_name=tmp_path / "net", file_format="TVM", frozen=frozen)
    module = load(path)
    assert bool(module.manifest.parameters) is not frozen
    found = module(*[a.asnumpy() for a in args])
    found = found if isinstance(found, tuple) else (found,)
    assert relative_error(found, expected) <= 5e-5
    again = module(*[a.asnumpy() for a in args])
    for a, b in zip(found, again if isinstance(again, tuple) else (again,)):
        np.testing.assert_array_equal(a, b)


_RUN_ALONE = """
import sys
import numpy as np
import tvmgraph.runtime
module = tvmgraph.runtime.load(sys.argv[1])
outputs = module(np.load(sys.argv[2]))
np.savez(sys.argv[3], *outputs)
front = [m for m, module in sys.modules.items() if m == "tvm" or m.startswith(("tvm.",
         "tvmgraph.core", "tvmgraph.ops", "tvmgraph._front", "tvmgraph.nn", "onnx"))
         and type(module).__name__ != "AliasModule"]  # these are names only
print(front)
"""


def _run_alone(path: Path, x: np.ndarray, folder: Path, **environment: str) -> tuple[str, Any]:
    np.save(folder / "x.npy", x)
    command = [
        sys.executable,
        "-c",
        _RUN_ALONE,
        str(path),
        str(folder / "x.npy"),
        str(folder / "y"),
    ]
    found = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=os.environ | environment
    )
    assert found.returncode == 0, found.stderr
    with np.load(folder / "y.npz") as outputs:
        return found.stdout, [outputs[k] for k in outputs.files]


def test_runs_without_the_front_end(small: Any, tmp_path: Path) -> None:
    path, x, expected = small
    printed, outputs = _run_alone(path, x, tmp_path)
    assert printed.strip() == "[]"
    assert relative_error(outputs, expected) <= MAX_ERROR


_BFLOAT16_ALONE = """
import sys
import ml_dtypes
import numpy as np
import tvmgraph.runtime
x = np.arange(6).astype(ml_dtypes.bfloat16)
y = tvmgraph.runtime.load(sys.argv[1])(x)
assert "tvm" not in sys.modules
assert y.dtype == x.dtype
np.testing.assert_array_equal(y, x + x)
"""


@pytest.mark.parametrize("case", ["host_print-0", "all_reduced-0"])
def test_code_that_calls_python_is_refused(case: str, tmp_path: Path) -> None:
    graph = next(c for c in all_cases() if c.name == case).graph()
    with pytest.raises(ExportError, match="a module runs without Python"):
        save_module(tmp_path / "net.tvm", Program(graph, {}, ("y",)), ())
    assert not list(tmp_path.iterdir())


def test_bfloat16_without_the_front_end(tmp_path: Path) -> None:
    x = Tensor(np.zeros(6, np.float32)).astype(ms.bfloat16)
    path = ms.export(_Twice(), x, file_name=tmp_path / "net", file_format="TVM")
    command = [sys.executable, "-c", _BFLOAT16_ALONE, str(path)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert found.returncode == 0, found.stderr


class _Twice(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return x + x


def test_bundle_is_small_and_complete(small: Any, tmp_path: Path) -> None:
    path, x, expected = small
    files = write_bundle(tmp_path / "runtime")
    size = sum(f.stat().st_size for f in files)
    assert size < 15e6, f"{size / 1e6:.1f} MB"
    # an interpreter without site-packages but NumPy's own folder: a link to it
    numpy_home = tmp_path / "numpy_only"
    numpy_home.mkdir()
    for part in Path(np.__file__).parent.parent.glob("numpy*"):
        (numpy_home / part.name).symlink_to(part)
    np.save(tmp_path / "x.npy", x)
    code = (
        f"import sys; sys.path[:0] = {[str(tmp_path / 'runtime'), str(numpy_home)]}\n{_RUN_ALONE}"
    )
    command = [
        sys.executable,
        "-S",
        "-c",
        code,
        str(path),
        str(tmp_path / "x.npy"),
        str(tmp_path / "y"),
    ]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    extra = found.stderr
    assert found.returncode == 0, extra
    with np.load(tmp_path / "y.npz") as outputs:
        assert relative_error([outputs[k] for k in outputs.files], expected) <= MAX_ERROR
    with pytest.raises(ArgumentError, match="not empty"):
        write_bundle(tmp_path / "runtime")


def test_threads_at_once(small: Any) -> None:
    path, _, _ = small
    module = load(path)
    rng = np.random.default_rng(1)
    jobs = [rng.standard_normal((3, 8)).astype(np.float32) for _ in range(8)]
    expected = [[o.copy() for o in module(x)] for x in jobs]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(200):
            for found, wanted in zip(module(jobs[i]), expected[i]):
                if not np.array_equal(found, wanted):
                    wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_arguments(small: Any) -> None:
    path, x, expected = small
    module = load(path)
    assert repr(module) == "<Module Small(x: float32[3,8]) -> float32[3,5], float32[3,5]>"
    assert relative_error(module(x=x), expected) <= MAX_ERROR
    strided = np.asfortranarray(x)
    readonly = x.copy()
    readonly.flags.writeable = False
    shifted = np.concatenate([np.zeros(1, np.float32), x.ravel()])[1:].reshape(x.shape)
    for same in (strided, readonly, shifted, Tensor(x)):
        assert relative_error(module(same), expected) <= MAX_ERROR
    with pytest.raises(ShapeError, match=r"input 'x' must be float32\[3,8\]"):
        module(x[:2])
    with pytest.raises(DTypeError, match="must be float32"):
        module(x.astype(np.float64))
    for args, named in (((), {}), ((x, x), {}), ((x,), {"x": x}), ((), {"y": x})):
        with pytest.raises(ArgumentError, match="1 inputs are needed"):
            module(*args, **named)
    with pytest.raises(ArgumentError, match="threads must be positive"):
        load(path, threads=0)


def test_results_belong_to_the_caller(tmp_path: Path) -> None:
    def f(x: Tensor) -> Any:
        return x, ops.ones((3,)), x + 1

    path = ms.export(
        f, Tensor(np.zeros(3, np.float32)), file_name=tmp_path / "f", file_format="TVM"
    )
    module, x = load(path), np.zeros(3, np.float32)
    for _ in range(2):
        for found, wanted in zip(module(x), (0, 1, 1)):
            np.testing.assert_array_equal(found, np.full(3, wanted, np.float32))
            found[:] = 7
    np.testing.assert_array_equal(x, np.zeros(3))


class Counting(nn.Cell):
    """Counts its calls, and keeps its last input."""

    def __init__(self) -> None:
        super().__init__()
        self.count = ms.Parameter(Tensor(np.zeros(3, np.float32)), name="count")
        self.last = ms.Parameter(Tensor(np.zeros(3, np.float32)), name="last")
        self.scale = ms.Parameter(Tensor(np.full(3, 2, np.float32)), name="scale")

    def construct(self, x: Tensor) -> Tensor:
        self.count += 1
        y = x * self.scale + self.count - self.last
        ops.assign(self.last, x)
        return y


@pytest.mark.parametrize("frozen", [False, True])
def test_parameters_that_a_call_updates(frozen: bool, tmp_path: Path) -> None:
    inputs = [np.full(3, v, np.float32) for v in (1, 5, 2)]
    net = Counting()
    ms.export(net, Tensor(inputs[0]), file_name=tmp_path / "n", file_format="TVM", frozen=frozen)
    module = load(tmp_path / "n.tvm")
    expected = [net(Tensor(x)).asnumpy() for x in inputs]
    for _ in range(2):
        given = [x.copy() for x in inputs]
        for x, e in zip(given, expected):
            np.testing.assert_array_equal(module(x), e)
            x[:] = np.nan  # the module must not have kept the caller's array
        module.reset()


class Running(nn.Cell):
    """Keeps a sum in a plain attribute, and what no file can keep in others."""

    def __init__(self) -> None:
        super().__init__()
        self.total = Tensor(np.zeros(3, np.float32))
        self.seen = Tensor(np.zeros(0, np.float32))
        self.calls = 0

    def construct(self, x: Tensor) -> Tensor:
        self.total = self.total + x
        return self.total * 2


class Growing(Running):
    """Has attributes that a file cannot keep."""

    def construct(self, x: Tensor) -> Tensor:
        self.seen = ops.concat((self.seen, x))
        self.calls = self.calls + 1
        return super().construct(x) + self.seen.sum() + self.calls


@pytest.mark.parametrize("file_format", ["TVM", "GRAPH"])
def test_tensors_that_a_call_replaces(file_format: str, tmp_path: Path) -> None:
    inputs = [Tensor(np.full(3, v, np.float32)) for v in (1, 5, 2)]
    net = Running()
    kept = ms.load(ms.export(net, inputs[0], file_name=tmp_path / "n", file_format=file_format))
    assert net.total.asnumpy().tolist() == [0, 0, 0]
    for x in inputs:
        given = x.asnumpy() if file_format == "TVM" else x
        np.testing.assert_array_equal(np.asarray(kept(given)), net(x).asnumpy())


def test_attributes_that_no_file_keeps(tmp_path: Path) -> None:
    x = Tensor(np.ones(3, np.float32))
    with pytest.warns(UserWarning, match=r"Growing.seen, Growing.calls would change with every"):
        path = ms.export(Growing(), x, file_name=tmp_path / "n", file_format="GRAPH")
    kept = ms.load(path)
    assert [kept(x).asnumpy()[0] for _ in range(2)] == [6.0, 8.0]


def test_updated_parameters_in_other_files(tmp_path: Path) -> None:
    inputs = [Tensor(np.full(3, v, np.float32)) for v in (1, 5, 2)]
    net = Counting()
    ms.export(net, inputs[0], file_name=tmp_path / "n", file_format="GRAPH")
    with pytest.warns(UserWarning, match=r"count, last would change.* ONNX(.|\n)*test_module\.py"):
        ms.export(net, inputs[0], file_name=tmp_path / "n", file_format="ONNX")
    loaded = load_graph(tmp_path / "n.graph")
    compiled = ms.jit(load_graph(tmp_path / "n.graph"))
    for x in inputs:
        expected = net(x).asnumpy()
        np.testing.assert_array_equal(loaded(x).asnumpy(), expected)
        np.testing.assert_array_equal(compiled(x).asnumpy(), expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int64", "bool", "float64"])
def test_dtypes(dtype: str, tmp_path: Path) -> None:
    kind = ms.dtypes.dtype_of(dtype).numpy
    x = np.array([[0, 1], [1, 0]]).astype(kind)

    def twice(x: Tensor) -> Tensor:
        return ops.concat((x, x), 1)

    path = ms.export(twice, Tensor(x), file_name=tmp_path / "f", file_format="TVM")
    found = load(path)(x)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, np.concatenate([x, x], 1))


# ---- damaged and foreign files ------------------------------------------------------------------


def _rewrite(path: Path, to: Path, **changes: Any) -> Path:
    """Writes the module again with another manifest."""
    old = archive.Archive(path)
    members = {name: old.member(name) for name in old.manifest.files}
    old.close()
    archive.write(to, replace(old.manifest, **changes), members)
    return to


def test_other_machines_and_versions(small: Any, tmp_path: Path) -> None:
    path, _, _ = small
    m = archive.Archive(path).manifest
    out = tmp_path / "m.tvm"
    load(_rewrite(path, out))
    with pytest.raises(LoadError, match="compiled for mips64 linux"):
        load(_rewrite(path, out, target=m.target | {"arch": "mips64"}))
    absent = next(
        f for f, linux in processor.FEATURES.items() if linux not in processor.linux_flags()
    )
    with pytest.raises(LoadError, match=f"this processor or its system lacks {absent}"):
        load(_rewrite(path, out, target=m.target | {"features": [absent]}))
    with pytest.raises(LoadError, match=r"made with apache-tvm 0\.1\.0, installed is"):
        load(_rewrite(path, out, versions=m.versions | {"apache-tvm": "0.1.0"}))
    with pytest.raises(LoadError, match="weight nothing does not fit"):
        other = replace(m.parameters[0], name="nothing")
        load(_rewrite(path, out, parameters=(other, *m.parameters[1:])))


def test_tiles_are_asked_for_and_may_be_refused(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _, _ = small
    out = tmp_path / "m.tvm"
    target = archive.Archive(path).manifest.target
    _rewrite(path, out, target=target | {"features": ["amx-tile"]})
    monkeypatch.setattr(processor, "linux_flags", lambda: frozenset({"amx_tile"}))
    monkeypatch.setattr(processor, "permit_tiles", lambda: False)
    with pytest.raises(LoadError, match="its system lacks amx-tile"):
        load(out)
    asked = []
    monkeypatch.setattr(processor, "permit_tiles", lambda: asked.append("tiles") or True)
    load(out)
    assert asked


def test_newer_format(tmp_path: Path) -> None:
    text = json.dumps({"format": archive.FORMAT, "version": 99})
    with zipfile.ZipFile(tmp_path / "new.tvm", "w") as z:
        z.writestr(archive.MANIFEST, text)
    with pytest.raises(LoadError, match=f"version 99, this runtime reads {archive.VERSION}"):
        load(tmp_path / "new.tvm")


def test_changed_members(small: Any, tmp_path: Path) -> None:
    path, _, _ = small
    for victim in (archive.LIBRARY, archive.PARAMETERS):
        target = tmp_path / f"{victim}.tvm"
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
            for name in old.namelist():
                data = bytearray(old.read(name))
                if name == victim:
                    data[len(data) // 2] ^= 1
                new.writestr(name, bytes(data))
        with pytest.raises(LoadError, match=f"{victim} was changed since it was written"):
            load(target)


def test_no_module_at_all(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no such file"):
        load(tmp_path / "absent.tvm")
    for content in (b"", b"PK\x03\x04", b"hello", bytes(1000)):
        (tmp_path / "x.tvm").write_bytes(content)
        with pytest.raises(LoadError, match="no compiled module, or it is truncated"):
            load(tmp_path / "x.tvm")


def test_compressed_members_are_refused(small: Any, tmp_path: Path) -> None:
    path, _, _ = small
    with (
        zipfile.ZipFile(path) as old,
        zipfile.ZipFile(tmp_path / "z.tvm", "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(LoadError, match="larger than it may be"):
        load(tmp_path / "z.tvm")


def test_library_without_a_network(small: Any, tmp_path: Path) -> None:
    path, _, _ = small
    manifest = archive.Archive(path).manifest
    (tmp_path / "empty.c").write_text("int nothing;\n")
    subprocess.run(
        ["cc", "-shared", "-o", str(tmp_path / "e.so"), str(tmp_path / "empty.c")], check=True
    )
    for library in ((tmp_path / "e.so").read_bytes(), b"no library"):
        plain = replace(manifest, parameters=(), order=("input",))
        archive.write(tmp_path / "m.tvm", plain, {archive.LIBRARY: library})
        with pytest.raises(LoadError, match="its library cannot be"):
            load(tmp_path / "m.tvm")


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_files_give_errors(small: Any, tmp_path_factory: Any, data: st.DataObject) -> None:
    """Cutting and changing bytes anywhere ends in a LoadError or in a module that works."""
    path, x, expected = small
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    target = tmp_path_factory.mktemp("damaged") / "net.tvm"
    target.write_bytes(content)
    try:
        module = load(target)
    except LoadError as e:
        assert str(target) in str(e)
    else:
        assert relative_error(module(x), expected) <= MAX_ERROR


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(key=st.sampled_from([f for f in archive.Manifest.__dataclass_fields__]), value=_JSON)
def test_strange_manifests_give_errors(
    small: Any, tmp_path_factory: Any, key: str, value: Any
) -> None:
    path, _, _ = small
    manifest = archive.Archive(path).manifest
    facts = {"format": archive.FORMAT, "version": 1, **asdict(manifest), key: value}
    target = tmp_path_factory.mktemp("strange") / "net.tvm"
    with zipfile.ZipFile(target, "w") as z:
        z.writestr(archive.MANIFEST, json.dumps(facts))
    with pytest.raises(LoadError):
        load(target)


def test_an_interrupted_write_keeps_the_old_file(small: Any, tmp_path: Path) -> None:
    path, _, _ = small
    manifest = archive.Archive(path).manifest
    target = tmp_path / "m.tvm"
    target.write_bytes(b"old")
    with pytest.raises(TypeError):
        archive.write(target, replace(manifest, options={"a": object()}), {})
    with pytest.raises(TypeError):
        archive.write(target, manifest, {"model.so": None})  # pyright: ignore[reportArgumentType]
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


# ---- other languages and processors -------------------------------------------------------------


def test_cpp(tmp_path: Path) -> None:
    model = next(m for m in MODELS if m.name == "lenet")
    net, (x,) = model.build(), model.inputs(2)
    expected = eager(net, (x,))
    path = ms.export(net, x, file_name=tmp_path / "net", file_format="TVM", frozen=True)
    with zipfile.ZipFile(path) as z:
        z.extract("model.so", tmp_path)
    subprocess.run(
        ["sh", str(EXAMPLES / "build.sh"), str(tmp_path / "run")], check=True,
        env=os.environ | {"PYTHON": sys.executable},
    )  # fmt: skip
    command = [str(tmp_path / "run"), str(tmp_path / "model.so")]
    raw = x.asnumpy().tobytes()
    found = subprocess.run([*command, "2,1,32,32"], input=raw, capture_output=True)
    assert found.returncode == 0, found.stderr
    output = np.frombuffer(found.stdout, np.float32).reshape(2, 10)
    assert relative_error([output], expected) <= MAX_ERROR
    short = subprocess.run([*command, "2,1,32,32"], input=raw[:-4], capture_output=True)
    assert short.returncode == 1
    assert b"shorter than" in short.stderr
    wrong = subprocess.run([*command, "2,1,32,31"], input=raw, capture_output=True)
    assert wrong.returncode == 1
    assert wrong.stderr


def test_aarch64_objects(tmp_path: Path) -> None:
    model = next(m for m in MODELS if m.name == "lenet")
    net, args = model.build(), model.inputs(1)
    path = ms.export(net, *args, file_name=tmp_path / "net", file_format="TVM", target="aarch64")
    manifest = archive.Archive(path).manifest
    assert (manifest.target["arch"], manifest.target["system"]) == ("aarch64", "linux")
    with zipfile.ZipFile(path) as z:
        z.extract(archive.OBJECTS, tmp_path)
    names = unpack(tmp_path / archive.OBJECTS, tmp_path)
    assert len(names) >= 2
    for name in names:
        header = subprocess.run(
            ["readelf", "-h", str(tmp_path / name)], capture_output=True, text=True, check=True
        ).stdout
        assert "AArch64" in header
        assert "REL (Relocatable file)" in header
    symbols = subprocess.run(
        ["readelf", "-sW", *[str(tmp_path / n) for n in names]], capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip
    assert "conv2d" in symbols
    if host.architecture() != "aarch64":
        with pytest.raises(LoadError, match="compiled for aarch64 linux"):
            load(path)


def test_aarch64_runs_in_an_emulator(tmp_path: Path) -> None:
    """A kernel for another processor, linked by its compiler driver, computes the same."""
    compiler, emulator = _for_aarch64()
    x = np.linspace(-3, 3, 37, dtype=np.float32)
    path = ms.export(
        lambda x: ops.tanh(x) * 2 + 1, Tensor(x), file_name=tmp_path / "f", file_format="TVM",
        target="aarch64", linker=compiler,
    )  # fmt: skip
    with zipfile.ZipFile(path) as z:
        z.extract(archive.LIBRARY, tmp_path)
    library, main = tmp_path / archive.LIBRARY, tmp_path / "main"
    names = subprocess.run(
        ["readelf", "--dyn-syms", "-W", str(library)], capture_output=True, text=True, check=True
    ).stdout
    found = set(re.findall(r"(__tvm_ffi_[a-z]\w+)", names))
    (kernel,) = found - {"__tvm_ffi_tvmgraph_thread_pool"}
    headers = Path(importlib.util.find_spec("tvm_ffi").origin).parent / "include"  # pyright: ignore
    subprocess.run(
        [compiler.replace("g++", "gcc"), "-O1", "-rdynamic", f"-I{headers}", "-o", str(main),
         str(Path(__file__).parent / "kernel_main.c"), "-ldl"], check=True,
    )  # fmt: skip
    found = subprocess.run(
        [*emulator, str(main), str(library), kernel, str(x.size)],
        input=x.tobytes(), capture_output=True,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    y = np.frombuffer(found.stdout, np.float32)
    np.testing.assert_allclose(y, np.tanh(x) * 2 + 1, rtol=1e-6, atol=1e-6)


def _for_aarch64() -> tuple[str, list[str]]:
    """The cross compiler, and the command of the emulator with the compiler's libraries."""
    compiler = shutil.which("aarch64-linux-gnu-g++")
    emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if compiler is None or emulator is None:
        pytest.skip("aarch64-linux-gnu-g++ or qemu-aarch64 is not installed")
    return compiler, [emulator, "-L", "/usr/aarch64-linux-gnu"]


def test_cpp_on_aarch64_in_an_emulator(tmp_path: Path) -> None:
    """A whole network, TVM's own runtime and the example in C++, on another processor."""
    compiler, emulator = _for_aarch64()
    packages = os.environ.get(AARCH64_PACKAGES)
    if packages is None:
        pytest.skip(f"{AARCH64_PACKAGES} names no folder with TVM's wheels for aarch64, unpacked")
    model = next(m for m in MODELS if m.name == "lenet")
    net, (x,) = model.build(), model.inputs(2)
    path = ms.export(
        net, x, file_name=tmp_path / "net", file_format="TVM", frozen=True, target="aarch64",
        linker=compiler,
    )  # fmt: skip
    with zipfile.ZipFile(path) as z:
        z.extract(archive.LIBRARY, tmp_path)
    subprocess.run(
        ["sh", str(EXAMPLES / "build.sh"), str(tmp_path / "run")], check=True,
        env=os.environ | {"CXX": compiler, "PACKAGES": packages},
    )  # fmt: skip
    command = [*emulator, str(tmp_path / "run"), str(tmp_path / archive.LIBRARY), "2,1,32,32"]
    found = subprocess.run(command, input=x.asnumpy().tobytes(), capture_output=True)
    assert found.returncode == 0, found.stderr
    output = np.frombuffer(found.stdout, np.float32).reshape(2, 10)
    assert relative_error([output], eager(net, (x,))) <= MAX_ERROR


def test_smaller_target(tmp_path: Path) -> None:
    net = nn.Dense(4, 3)
    x = Tensor(np.ones((2, 4), np.float32))
    path = ms.export(net, x, file_name=tmp_path / "n", file_format="TVM", target="x86-64-v2")
    module = load(path)
    assert "avx2" not in module.manifest.target["features"]
    assert relative_error([module(x)], eager(net, (x,))) <= MAX_ERROR
    with pytest.raises(ms.errors.TvmgraphError, match="unknown target 'z80'"):
        ms.export(net, x, file_name=tmp_path / "n", file_format="TVM", target="z80")
    with pytest.raises(ms.errors.CompileError, match="no library was made"):
        ms.export(net, x, file_name=tmp_path / "n", file_format="TVM", linker="no-such-linker")


class Prepared(nn.Cell):
    """What kernels read in another order, and a parameter with the name that such weights get."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(16, 32, 3)
        self.dense = nn.Dense(32, 130)
        self.scale = ms.Parameter(Tensor(np.full(16, 2, np.float32)), name="prepared0")

    def construct(self, x: Tensor) -> Tensor:
        x = x * self.scale.reshape(1, 16, 1, 1)
        return self.dense(ops.relu(self.conv(x)).mean((2, 3)))


@pytest.mark.parametrize("cpu", CPUS)
def test_weights_lie_as_kernels_of_the_processor_read_them(cpu: str, tmp_path: Path) -> None:
    net = Prepared().set_train(False)
    x = Tensor(np.random.default_rng(0).standard_normal((3, 16, 12, 12)).astype(np.float32))
    config = ms.JitConfig(options={"cpu": cpu})
    run = ms.jit(net, jit_config=config)
    split = split_weights(run.graph(x), CompileOptions(target=cpu))
    assert split is not None
    for frozen in (False, True):
        path = ms.export(net, x, file_name=tmp_path / "n", file_format="TVM", jit_config=config,
                         frozen=frozen)  # fmt: skip
        module = load(path)
        np.testing.assert_array_equal(module(x.asnumpy()), run(x).asnumpy())  # the same kernels
        if not frozen:
            wanted = [v.type.static_shape for v in split.prepared]
            found = [entry.shape for entry in module.manifest.parameters]
            assert set(wanted) <= set(found)
            assert (32, 16, 3, 3) not in found


def test_members_lie_in_the_file_at_aligned_places(tmp_path: Path, small: Any) -> None:
    rng = np.random.default_rng(0)
    content = rng.integers(0, 256, 3 * archive.CHUNK + 5, dtype=np.uint8)
    manifest = archive.Archive(small[0]).manifest
    path, repacked = tmp_path / "large.tvm", tmp_path / "repacked.tvm"
    archive.write(path, manifest, {"odd": b"123", "weights": content.tobytes()})
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(repacked, "w") as new:
        assert old.testzip() is None
        for name in old.namelist():  # as another program would, without any padding
            new.writestr(name, old.read(name))
    for file in (path, repacked):
        found = archive.Archive(file).member("weights")
        assert np.array_equal(found, content)
        assert found.ctypes.data % 64 == 0
        assert found.flags.writeable
    found[:] = 0
    place = path.read_bytes().index(content[:64].tobytes())
    for offset in (0, archive.CHUNK, content.size - 1):
        changed = bytearray(path.read_bytes())
        changed[place + offset] ^= 4
        (tmp_path / "changed.tvm").write_bytes(changed)
        with pytest.raises(LoadError, match="weights was changed"):
            archive.Archive(tmp_path / "changed.tvm").member("weights")
