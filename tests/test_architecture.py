"""The structure of the package: import direction, file and function length, documentation."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tvmgraph"
RULES = tomllib.loads((ROOT / "configs" / "layers.toml").read_text())
LEVELS: dict[str, int] = RULES["levels"]
LAZY = {(e["from"], e["to"]) for e in RULES["lazy"]}
FILES = sorted(p for p in PACKAGE.rglob("*.py"))
MAX_FILE, MAX_FUNCTION = 500, 40


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0]


def imports(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yields ``(module, lazy)`` of every import; lazy ones stand inside a function."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    lazy = {id(n) for f in ast.walk(tree) if isinstance(f, functions) for n in ast.walk(f)}
    typing_only = {
        id(n)
        for i in ast.walk(tree)
        if isinstance(i, ast.If) and ast.unparse(i.test) == "TYPE_CHECKING"
        for n in ast.walk(i)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in lazy
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "tvmgraph":
                for alias in node.names:
                    yield f"tvmgraph.{alias.name}", id(node) in lazy
            else:
                yield node.module, id(node) in lazy


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    room = room_of(path)
    if room in ("__init__", "__main__", "_front"):  # the package itself
        return
    assert room in LEVELS, f"room {room!r} is missing from configs/layers.toml"
    for module, lazy in imports(ast.parse(path.read_text())):
        if module.split(".")[0] == "tvm" or module.split(".")[0] == "tvm_ffi":
            assert room in RULES["tvm"]["rooms"], f"{path}: room {room} must not import tvm"
        parts = module.split(".")
        if parts[0] != "tvmgraph" or len(parts) < 2 or parts[1] == room:
            continue
        other = parts[1]
        if other not in LEVELS and LEVELS[room] == max(LEVELS.values()):
            continue  # the top room uses the package as its users do
        allowed = LEVELS.get(other, 99) < LEVELS[room] or (lazy and (room, other) in LAZY)
        assert allowed, f"{path}: {room} (level {LEVELS[room]}) imports {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MAX_FILE, f"{path} is too long"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = [n for n in node.body if not _is_docstring(n)]
            length = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert length <= MAX_FUNCTION, f"{path}:{node.lineno} {node.name} has {length} lines"


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_public_names_are_documented(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), f"{path} has no docstring"
    missing = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                missing.append(node.name)
            if isinstance(node, ast.ClassDef):
                missing += [
                    f"{node.name}.{m.name}"
                    for m in node.body
                    if isinstance(m, ast.FunctionDef)
                    and not m.name.startswith("_")
                    and not ast.get_docstring(m)
                    and m.name != "construct"
                    and not any("setter" in ast.unparse(d) for d in m.decorator_list)
                ]
    assert not missing, f"{path}: no docstring on {missing}"


def test_import_is_light() -> None:
    """``import tvmgraph`` and eager code load no TVM, no ONNX and no command line library."""
    code = (
        "import sys, numpy as np, tvmgraph as ms\n"
        "from tvmgraph import nn, ops, Tensor\n"
        "net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU())\n"
        "net(Tensor(np.ones((2, 3), np.float32))).asnumpy()\n"
        "print([m for m in ('tvm', 'tvm_ffi', 'onnx', 'typer', 'rich') if m in sys.modules])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]", result.stdout


def test_operator_names_of_tensor_resolve() -> None:
    from tvmgraph import Tensor
    from tvmgraph.core.op import F

    source = (PACKAGE / "core" / "tensor.py").read_text()
    names = [
        n.args[0].value
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Name)
        and n.func.id in ("binary", "unary")
        and isinstance(n.args[0], ast.Constant)
    ]
    assert len(names) > 20
    for name in names:
        assert callable(getattr(F, str(name))), name
    assert Tensor.__add__ is not None
