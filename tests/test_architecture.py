"""The structure of the package: import direction, file and function length, documentation."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tvmgraph import hooks, wiring

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tvmgraph"
RULES = tomllib.loads((ROOT / "configs" / "layers.toml").read_text())
LEVELS: dict[str, int] = RULES["levels"]
FILES = sorted(p for p in PACKAGE.rglob("*.py"))
MAX_FILE, MAX_FUNCTION = 700, 40


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@pytest.fixture(scope="module", autouse=True)
def trees_are_let_go() -> Iterator[None]:
    """Every tree is read by many tests; all of them take hundreds of megabytes."""
    yield
    parsed.cache_clear()
    _classes.cache_clear()


def room_of(path: Path) -> str:
    return room_named(path.relative_to(PACKAGE).with_suffix("").parts)


def room_named(parts: tuple[str, ...]) -> str:
    """The room that a module is of: the longest path that has a level."""
    paths = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next((path for path in paths if path in LEVELS), parts[0])


@functools.cache
def imports(path: Path, typing: bool = False) -> tuple[tuple[str, bool], ...]:
    """Returns ``(module, lazy)`` of every import; lazy ones stand inside a function.

    Those that are for type checkers only count with ``typing``.
    """
    found = _imports(parsed(path), lazy=False, typed=False)
    return tuple((module, lazy) for module, lazy, typed in found if typing or not typed)


def _imports(node: ast.AST, lazy: bool, typed: bool) -> Iterator[tuple[str, bool, bool]]:
    """Yields the imports below a node that stands in a function, or is for type checkers only."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, lazy, typed) for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        own = node.module.split(".")[0] == "tvmgraph"
        names = [f"{node.module}.{a.name}" for a in node.names] if own else [node.module]
        yield from ((name, lazy, typed) for name in names)
    lazy = lazy or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    typed = typed or (isinstance(node, ast.If) and _is_named(node.test, "TYPE_CHECKING"))
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield from _imports(child, lazy, typed)


def _is_named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    room = room_of(path)
    if room in ("__init__", "__main__", "_front", "wiring"):  # the package itself
        return
    assert room in LEVELS, f"room {room!r} is missing from configs/layers.toml"
    for module, _ in imports(path, typing=True):
        if module.split(".")[0] == "tvm" or module.split(".")[0] == "tvm_ffi":
            assert room in RULES["tvm"]["rooms"], f"{path}: room {room} must not import tvm"
        parts = tuple(module.split("."))
        if parts[0] != "tvmgraph" or len(parts) < 2:
            continue
        other = room_named(parts[1:])
        if other == room:
            continue
        if other not in LEVELS and LEVELS[room] == max(LEVELS.values()):
            continue  # the top room uses the package as its users do
        assert LEVELS.get(other, 99) < LEVELS[room], (
            f"{path}: {room} (level {LEVELS[room]}) imports {other}"
        )


def test_every_hook_has_a_provider() -> None:
    declared = {id(h) for h in vars(hooks).values() if isinstance(h, hooks.Hook)}
    assert declared == {id(h) for h in wiring.PROVIDERS}
    for hook in wiring.PROVIDERS:
        assert callable(hook.function)


#: Files of the largest circle of imports: those that run when a module is loaded, with those that
#: are for type checkers only, with those inside of functions, with both. May only become smaller.
CIRCLES = {"loading": 1, "typing": 9, "calls": 5, "all": 10}


@pytest.mark.parametrize("kind", CIRCLES)
def test_circles_of_files_do_not_grow(kind: str) -> None:
    edges = {_module_of(path): set(_imported_files(path, kind)) for path in FILES}
    circle = max(_circles(edges), key=len)
    assert len(circle) <= CIRCLES[kind], f"{len(circle)} files: {', '.join(sorted(circle))}"
    assert len(circle) > CIRCLES[kind] * 0.8, f"it is {len(circle)} files now: lower the number"


def _module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_module_of(path) for path in FILES}


def _imported_files(path: Path, kind: str) -> Iterator[str]:
    typing, calls = kind in ("typing", "all"), kind in ("calls", "all")
    for module, lazy in imports(path, typing=typing):
        found = module if module in MODULES else module.rpartition(".")[0]
        if found in MODULES and found != _module_of(path) and (calls or not lazy):
            yield found


def _circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """The strongly connected parts of a graph (Tarjan)."""
    order, low = dict[str, int](), dict[str, int]()
    stack, found = list[str](), list[set[str]]()

    def visit(v: str) -> None:
        order[v] = low[v] = len(order)
        stack.append(v)
        for w in edges[v]:
            if w not in order:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == order[v]:
            at = stack.index(v)
            found.append(set(stack[at:]))
            del stack[at:]

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    for v in edges:
        if v not in order:
            visit(v)
    sys.setrecursionlimit(limit)
    return found


def test_folders_of_tests_are_packages() -> None:
    """Two files of one name in folders that are none cannot be collected in one run."""
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    assert not [str(f) for f in folders if not (f / "__init__.py").exists()]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MAX_FILE, f"{path} is too long"
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef):
            body = [n for n in node.body if not _is_docstring(n)]
            length = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert length <= MAX_FUNCTION, f"{path}:{node.lineno} {node.name} has {length} lines"


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_public_names_are_documented(path: Path) -> None:
    tree = parsed(path)
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
                    and not any(
                        ast.unparse(d).endswith(("setter", "overload")) for d in m.decorator_list
                    )
                ]
    assert not missing, f"{path}: no docstring on {missing}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_arguments_are_documented(path: Path) -> None:
    """Public functions and methods have ``Args:``, with shapes and units if there are any.

    A method may leave that to the class it overrides, ``construct`` to the ``Inputs:`` of its own.
    Rewrite rules have none: all take the match. Commands have the help of their options, and the
    sources that ``loader`` makes of functions the meanings that it has in a table.
    """
    missing = [
        f"{owner.name + '.' if owner else ''}{node.name}"
        for node, owner in _public_functions(parsed(path).body)
        if _takes_arguments(node, owner) and not _documents_arguments(node, owner)
    ]
    assert not missing, f"{path}: {', '.join(missing)}"


def _public_functions(
    body: list[ast.stmt], owner: ast.ClassDef | None = None
) -> Iterator[tuple[ast.FunctionDef, ast.ClassDef | None]]:
    """Yields functions and methods, these with the class that they stand in."""
    for node in body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node, owner
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _public_functions(node.body, node)


def _takes_arguments(node: ast.FunctionDef, owner: ast.ClassDef | None) -> bool:
    decorators = [ast.unparse(d) for d in node.decorator_list]
    if any(
        d.startswith(("rule(", "loader(")) or d.endswith(("overload", "setter")) for d in decorators
    ):
        return False
    if "app.callback()" in decorators or _is_command(node):
        return False
    args = node.args
    filled_in = int(owner is not None and "staticmethod" not in decorators)
    return bool([*args.posonlyargs, *args.args, *args.kwonlyargs][filled_in:] or args.vararg)


def _is_command(node: ast.FunctionDef) -> bool:
    """Whether a function is a command: all of them can print JSON, and `tests/cli` reads help."""
    return any(a.annotation and ast.unparse(a.annotation) == "Json" for a in node.args.args)


def _documents_arguments(node: ast.FunctionDef, owner: ast.ClassDef | None) -> bool:
    if "Args:" in (ast.get_docstring(node) or ""):
        return True
    if owner is None:
        return False
    if node.name == "construct" and "Inputs:" in (ast.get_docstring(owner) or ""):
        return True
    return any(_documents_arguments(*found) for found in _overridden(owner, node.name))


def _overridden(owner: ast.ClassDef, name: str) -> Iterator[tuple[ast.FunctionDef, ast.ClassDef]]:
    """Yields the methods of this name in the bases of a class, with the classes they stand in."""
    names = [ast.unparse(b).partition("[")[0].rpartition(".")[2] for b in owner.bases]
    for base in (c for n in names for c in _classes().get(n, ()) if c is not owner):
        own = [n for n in base.body if isinstance(n, ast.FunctionDef) and n.name == name]
        yield from ((n, base) for n in own) if own else _overridden(base, name)


@functools.cache
def _classes() -> dict[str, list[ast.ClassDef]]:
    found: dict[str, list[ast.ClassDef]] = {}
    for node in (n for path in FILES for n in parsed(path).body):
        if isinstance(node, ast.ClassDef):
            found.setdefault(node.name, []).append(node)
    return found


#: Uses of ``Any`` in the package without the lines that import it: may only become fewer.
ANY_LEFT = 1288


def test_types_say_something() -> None:
    """``Any`` stands where a type checker cannot be told more, and nowhere new."""
    found = sum(_is_named(n, "Any") for path in FILES for n in ast.walk(parsed(path)))
    assert found <= ANY_LEFT, f"{found} uses of Any: give the new ones types"
    assert found > ANY_LEFT * 0.95, f"{found} uses are left: lower the number"


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


#: Rooms that handle rows of the operator table, apart from the rows' own room.
READERS = (
    "autodiff", "capture", "compiler", "core", "debug", "eager", "export", "graph", "jit",
    "lowering", "passes", "runtime", "view",
)  # fmt: skip
#: Files that compare with the name of one operator, or list names that only look like some.
NAMES_ALLOWED = {
    "capture/logs.py": "methods of logging",
    "capture/changes.py": "methods of containers",
    "capture/expressions.py": "Python's operators",
    "capture/ranges.py": "what the operators of Python's numbers are recorded as",
    "capture/replay.py": "leaf_value is what capture itself records when a Parameter is assigned",
    "compiler/cuda/library_products.py": "recognizes the products and epilogues the library has",
    "compiler/relax/legalize.py": "operators of Relax",
    "compiler/provenance.py": "functions of the C library",
    "core/symbols.py": "methods of Python's numbers",
    "core/tensor_access.py": "modes of a scatter",
    "export/module.py": "leaf_value is what capture records when a Parameter is assigned",
    "export/onnx.py": "words of an ONNX attribute",
    "graph/simplify.py": "transposes go into products; leaf_value reads one operand",
    "passes/attention.py": "recognizes handwritten attention",
    "passes/attention_grad.py": "recognizes the derivative of handwritten attention",
    "passes/channels_last.py": "rewrites convolutions and their derivatives",
    "passes/freeze.py": "rewrites convolutions and products of weights",
    "passes/layout.py": "rewrites convolutions; pooling by maxima is worth an order of its own",
    "passes/ranks.py": "rewrites convolutions",
    "passes/rules.py": "the operator that a rule rewrites",
    "passes/rewrite.py": "the operators that its rule rewrites",
    "passes/dilation.py": "the operator that its rule rewrites",
    "runtime/cublaslt.py": "epilogues of cuBLASLt",
}


def operator_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields line and value of every operator's name in a display, comparison or case."""
    from tvmgraph.core.op import OPS, get_op

    get_op("add")  # loads the table
    for node in ast.walk(tree):
        found: list[ast.expr | None] = []
        if isinstance(node, (ast.Set, ast.Tuple, ast.List)):
            found = [*node.elts]
        elif isinstance(node, ast.Dict):
            found = [*node.keys]
        elif isinstance(node, ast.Compare):
            found = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            found = [node.value]
        for n in found:
            if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value in OPS:
                yield n.lineno, n.value


def test_what_an_operator_is_stands_in_its_row() -> None:
    """No list of operators' names outside their rows: traits say what passes may do with them."""
    seen = set()
    for path in FILES:
        name = str(path.relative_to(PACKAGE))
        if room_of(path) not in READERS:
            continue
        for line, value in operator_names(parsed(path)):
            seen.add(name)
            assert name in NAMES_ALLOWED, f"{path}:{line} names {value!r}: read a trait of the row"
    assert seen == set(NAMES_ALLOWED), f"not needed: {set(NAMES_ALLOWED) - seen}"
