"""Pages of the reference, written from the package before Sphinx reads them.

Every public name stands on one page under one name, its home; other namespaces that hold the same
object have a table that links there. A public name without documentation ends the build.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

DOCS = Path(__file__).parent.parent
ROOT = DOCS.parent
PAGES = DOCS / "reference"
#: Documents of other folders that are chapters here.
CHAPTERS = {"README.md": "manual.md", "CHANGELOG.md": "changelog.md",
            "benchmarks/RESULTS.md": "measurements.md"}  # fmt: skip


@dataclass(frozen=True)
class Namespace:
    """A module whose names are public.

    Args:
        name: Its path below ``tvmgraph``.
        about: What is there, one line.
        owns: Beginnings of the modules whose objects have their home here.
        pages: How objects are divided into pages: the number of the part of their module's path
            that names the page; None is one page.
        rename: Names of pages by that part; equal names are one page.
    """

    name: str
    about: str
    owns: tuple[str, ...] = ()
    pages: int | None = None
    rename: dict[str, str] | None = None

    @property
    def path(self) -> str:
        """What is imported."""
        return f"tvmgraph.{self.name}".rstrip(".")

    @property
    def slug(self) -> str:
        """The beginning of the names of its pages."""
        return self.path.replace(".", "-")


LAYERS = {
    "cell": "Cells and containers", "container": "Cells and containers",
    "combined": "Dense, embedding and dropout",
    "basic": "Dense, embedding and dropout", "embedding": "Dense, embedding and dropout",
    "dropout": "Dense, embedding and dropout", "activation": "Activations",
    "activation_smooth": "Activations", "initialisation": "Cells and containers",
    "conv": "Convolutions", "conv_transpose": "Convolutions", "parametric": "Convolutions",
    "normalization": "Normalization",
    "padding": "Padding", "pooling": "Pooling", "pooling_adaptive": "Pooling",
    "recurrent": "Recurrent layers",
    "transformer": "Attention and transformers", "transformer_layers": "Attention and transformers",
    "loss": "Losses", "loss_class": "Losses", "loss_metric": "Losses",
    "wrap": "Steps of training", "wrap_grad": "Steps of training", "image": "Images",
    "image_similarity": "Images", "functions": "Functions as layers",
    "arithmetic": "Functions as layers", "base": "Optimizers", "accumulated": "Optimizers",
    "adaptive": "Optimizers", "scaled": "Optimizers", "step": "Optimizers",
    "gradient": "Optimizers", "reducer": "Optimizers", "schedule": "Learning rates",
    "dynamic_lr": "Learning rates",
}  # fmt: skip
TOP = {
    "core": "Tensors and parameters", "autodiff": "Derivatives", "jit": "Compilation",
    "config": "Settings", "capture": "Compilation", "graph": "Compilation",
    "export": "Compilation", "profiler": "Profiling",
}  # fmt: skip

NAMESPACES = (
    Namespace("ops", "Operators: functions of tensors.", ("tvmgraph.ops",), 2),
    Namespace("nn", "Layers, losses, optimizers and schedules.",
              ("tvmgraph.nn", "tvmgraph.optim"), 2, LAYERS),
    Namespace("train", "Training loop, callbacks, metrics, checkpoints.", ("tvmgraph.train",), 2,
              {"callback": "callbacks", "metrics": "metrics"}),
    Namespace("amp", "Mixed precision.", ("tvmgraph.amp",)),
    Namespace("hal", "Devices, streams and their memory.", ("tvmgraph.runtime",)),
    Namespace("communication", "Several processes.", ("tvmgraph.compat.comm",)),
    Namespace("mint.distributed", "Several processes, under PyTorch's names.",
              ("tvmgraph.compat.mint.distributed",)),
    Namespace("", "What `import tvmgraph as ms` offers.", pages=1, rename=TOP),
    Namespace("jit.function", "What `jit` returns."),
    Namespace("common", "Types, seeds and placeholders."),
    Namespace("common.initializer", "First values of parameters."),
    Namespace("context", "Settings of the process."),
    Namespace("dataset", "Data sets, samplers and their stages.", pages=2),
    Namespace("dataset.transforms", "Transforms of any data."),
    Namespace("dataset.vision", "Transforms of images.", pages=3),
    Namespace("dataset.text", "Text: tokenizers, vocabularies, transforms.", pages=3),
    Namespace("numpy", "NumPy's functions over tensors.", pages=2),
    Namespace("mint", "Operators with PyTorch's names, arguments and values.", pages=3),
    Namespace("mint.nn", "Layers with PyTorch's names and arguments."),
    Namespace("mint.nn.functional", "Functions of layers with PyTorch's names and arguments."),
    Namespace("mint.linalg", "Linear algebra with PyTorch's names."),
    Namespace("mint.special", "Special functions with PyTorch's names."),
    Namespace("mint.optim", "Optimizers with PyTorch's names and values."),
    Namespace("experimental.optim", "Optimizers of `param_groups`."),
    Namespace("experimental.optim.lr_scheduler", "Schedules for optimizers of `param_groups`."),
    Namespace("parallel", "Layouts and splitting."),
    Namespace("profiler", "Measuring."),
    Namespace("runtime", "Running compiled modules."),
    Namespace("models", "Networks of known kinds."),
    Namespace("onnx", "ONNX files."),
    Namespace("graph", "Graphs: reading, checking, drawing."),
    Namespace("boost", "MindSpore's `boost`."),
    Namespace("train.callback", "Callbacks."),
    Namespace("log", "Messages."),
    Namespace("errors", "The classes of errors."),
)  # fmt: skip


@dataclass
class Symbol:
    """A public name: where it is, and the page and name under which its object is documented."""

    space: Namespace
    name: str
    value: Any
    home: str = ""

    @property
    def path(self) -> str:
        """The whole name."""
        return f"{self.space.path}.{self.name}"

    @property
    def kind(self) -> str:
        """The kind of entry: class, function or data."""
        if inspect.isclass(self.value):
            return "exception" if issubclass(self.value, BaseException) else "class"
        return "function" if callable(self.value) and hasattr(self.value, "__name__") else "data"


def symbols() -> list[Symbol]:
    """Every public name of every namespace, with its home."""
    found = [
        Symbol(space, name, value)
        for space in NAMESPACES
        for name, value in _names_of(space)
        if not inspect.ismodule(value)
    ]
    homes: dict[Any, Symbol] = {}
    for first in (True, False):  # owners first, then whoever comes first
        for symbol in found:
            module = getattr(symbol.value, "__module__", "") or ""
            if not first or module.startswith(symbol.space.owns or ("\0",)):
                homes.setdefault(_identity(symbol), symbol)
    for symbol in found:
        symbol.home = homes[_identity(symbol)].path
    return found


def _identity(symbol: Symbol) -> Any:
    """Equal for names of one object; numbers are nobody's."""
    plain = symbol.value is None or isinstance(symbol.value, (int, float, str))
    return symbol.path if plain else id(symbol.value)


def _names_of(space: Namespace) -> Iterator[tuple[str, Any]]:
    module = importlib.import_module(space.path)
    offered = getattr(module, "__all__", None)
    lazy = "__dir__" in vars(module)
    names = sorted({*(offered or ()), *(dir(module) if lazy or offered is None else ())})
    for name in names:
        value = getattr(module, name)
        inner = getattr(value, "__module__", None)
        own_class = inspect.isclass(value) and inner == space.path
        if name.startswith("_") or (offered is None and not lazy and not own_class):
            continue
        yield name, value


def _page_of(symbol: Symbol) -> str:
    """The title of the page that a symbol's home is on."""
    space = symbol.space
    if space.pages is None or symbol.kind == "data":
        return ""
    parts = [p for p in (getattr(symbol.value, "__module__", "") or "").split(".") if p[:1] != "_"]
    if symbol.kind == "class" and parts[-1] == "operations":  # class forms of the operators
        return f"primitives {symbol.name[0].upper()}"
    part = parts[space.pages] if len(parts) > space.pages else ""
    renamed = (space.rename or {}).get(part, "" if space.rename else part)
    return renamed.replace("_", " ")


def _summary(value: Any) -> str:
    lines = (inspect.getdoc(value) or "").strip().split("\n\n")[0].split("\n")
    return " ".join(line.strip() for line in lines).replace("|", r"\|")


def _entry(symbol: Symbol) -> str:
    path = f"{symbol.space.path}::{symbol.name}" if symbol.path == "tvmgraph.jit" else symbol.path
    path = "tvmgraph::export" if symbol.path == "tvmgraph.export" else path
    if symbol.kind == "data":
        shown = f"   :value: {symbol.value!r}\n" if symbol.value is not None else ""
        return f".. py:data:: {symbol.name}\n   :module: {symbol.space.path}\n{shown}"
    members = "" if symbol.kind == "function" else f"   :members:\n{_inherited(symbol.value)}"
    if symbol.kind == "class" and any(b.__name__ == "Cell" for b in symbol.value.__mro__[1:]):
        members += "   :exclude-members: construct, extend_repr\n"  # called by calling the Cell
    members += "   :show-inheritance:\n" if symbol.kind == "exception" else ""
    return f".. auto{symbol.kind}:: {path}\n{members}"


def _inherited(value: Any) -> str:
    """The option that documents members of internal bases with a class, unless it has none."""
    bases = value.__mro__[1:]
    public = [b for b in bases if b in _public_classes()]
    own = [b for b in bases if b.__module__.startswith("tvmgraph")]
    others = [b for b in bases if b not in own or any(issubclass(p, b) for p in public)]
    if len(others) == len(bases):
        return ""
    return f"   :inherited-members: {', '.join(b.__name__ for b in others)}\n"


@functools.cache
def _public_classes() -> set[type]:
    return {s.value for s in symbols() if inspect.isclass(s.value)}


def _heading(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n"


def write_reference() -> list[Symbol]:
    """Writes every page; returns the public names.

    Raises:
        RuntimeError: if one is not documented.
    """
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir()
    found = symbols()
    bare = [s.path for s in found if s.kind != "data" and not inspect.getdoc(s.value)]
    if bare:
        raise RuntimeError(f"not documented: {', '.join(bare)}")
    index = []
    for space in NAMESPACES:
        own = [s for s in found if s.space is space]
        _write_namespace(space, own)
        index.append(f"   {space.slug}")
    lines = "\n".join(index)
    (PAGES / "index.rst").write_text(
        f"{_heading('Reference')}\n"
        "Every public name, from its documentation. Examples are run by the tests; in them\n"
        "``ms`` is ``tvmgraph``, ``np`` is NumPy, and ``nn``, ``ops``, ``mint``, ``dataset`` and\n"
        "``Tensor`` are those of ``tvmgraph``.\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n{lines}\n"
    )
    (PAGES / "commands.md").write_text(_commands())
    return found


def _write_namespace(space: Namespace, own: list[Symbol]) -> None:
    pages: dict[str, list[Symbol]] = {}
    for symbol in (s for s in own if s.home == s.path):
        pages.setdefault(_page_of(symbol), []).append(symbol)
    text = [
        _heading(space.path),
        f".. py:module:: {space.path}\n",
        f"{space.about.replace('`', '``')}\n",
    ]
    inner = sorted(title for title in pages if title)
    if inner:
        toctree = "\n".join(f"   {space.slug}-{_slug(title)}" for title in inner)
        text.append(f".. toctree::\n   :maxdepth: 1\n\n{toctree}\n")
    text += [_entry(s) for s in pages.get("", ())]
    others = [s for s in own if s.home != s.path]
    if others:
        text.append(_heading("Also under this name", "-"))
        text.append(f"Names of ``{space.path}`` that are documented elsewhere.\n")
        text.append(".. list-table::\n   :widths: 35 65\n")
        text += [f"   * - ``{s.name}``\n     - :py:obj:`{s.home}`" for s in others]
    (PAGES / f"{space.slug}.rst").write_text("\n".join(text) + "\n")
    for title in inner:
        name = f"{space.path}: {title}"
        body = "\n".join(_entry(s) for s in pages[title])
        (PAGES / f"{space.slug}-{_slug(title)}.rst").write_text(f"{_heading(name)}\n{body}\n")


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-").replace(",", "")


def _commands() -> str:
    """The commands, as Typer describes them, and the launcher's own text."""
    typer = [sys.executable, "-m", "typer", "tvmgraph.cli", "utils", "docs", "--name", "tvmgraph"]
    launcher = [sys.executable, "-m", "tvmgraph.distributed.launch", "--help"]
    text, launch = (
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
        for command in (typer, launcher)
    )
    text = re.sub(r"^# `tvmgraph`", "# Commands\n\n## `tvmgraph`", text)
    return f"{text}\n## `tvmgraph-run`\n\n```console\n{launch}```\n"


def write_chapters() -> None:
    """Copies documents of other folders, with their links as seen from here."""
    for source, target in CHAPTERS.items():
        seen = functools.partial(_seen_from_docs, Path(source).parent)
        text = (ROOT / source).read_text()
        text = text.replace("# tvmgraph\n", "# Manual\n", 1)
        (DOCS / target).write_text(re.sub(r"\]\((?![a-z]+:|#)([^)]+)\)", seen, text))


def _seen_from_docs(folder: Path, link: re.Match[str]) -> str:
    return f"]({_place(str(folder / link[1]))})"


def _place(path: str) -> str:
    name, _, anchor = path.partition("#")
    anchor = f"#{anchor}" if anchor else ""
    if name in CHAPTERS:
        return CHAPTERS[name] + anchor
    if name == "CONTRIBUTING.md":
        return "contributing.md"
    if name.startswith("docs/"):
        return name.removeprefix("docs/") + anchor
    if name.startswith("notebooks/"):
        return name + anchor
    return ("path:" if name.endswith(".md") else "") + f"../{name}{anchor}"


def _follow_chapters(app: Sphinx, name: str, text: list[str]) -> None:
    """Links of a page of ``docs`` to what is a chapter or a notebook here."""
    for source, target in CHAPTERS.items():
        text[0] = text[0].replace(f"](../{source}", f"]({target}")
    text[0] = text[0].replace("](../notebooks/", "](notebooks/")


def _resolve(
    app: Sphinx, env: BuildEnvironment, node: Any, content: nodes.Element
) -> nodes.Node | None:
    """Finds what a docstring names by where it is defined, or by its last part.

    What is in the package but not public stays text.
    """
    if node.get("refdomain") != "py":
        return None
    homes: dict[str, str] = app.tvmgraph_homes  # pyright: ignore[reportAttributeAccessIssue]
    target = node["reftarget"].lstrip("~")
    owner, _, member = target.rpartition(".")
    home = homes.get(target) or homes.get(member)
    if owner in homes:
        home = f"{homes[owner]}.{member}"
    if home is not None:
        domain = env.domains.python_domain
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", home, node, content)
    return content if _is_internal(target) else None


@functools.cache
def _is_internal(target: str) -> bool:
    leaf = target.rpartition(".")[2]
    return any(
        name.rpartition(".")[2] == leaf or leaf in vars(module)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "tvmgraph"
    )


def _prepare(app: Sphinx) -> None:
    write_chapters()
    found = write_reference()
    homes: dict[str, str] = {}
    for symbol in found:
        module = getattr(symbol.value, "__module__", "")
        homes[symbol.path] = homes[f"{module}.{symbol.name}"] = symbol.home
    for symbol in found:
        homes.setdefault(symbol.name, symbol.home)
    app.tvmgraph_homes = homes  # pyright: ignore[reportAttributeAccessIssue]
    app.tvmgraph_symbols = found  # pyright: ignore[reportAttributeAccessIssue]


def _count(app: Sphinx, env: BuildEnvironment) -> None:
    """Says how many names have an entry; one without is an error of the build."""
    entries = env.domains.python_domain.objects
    found: list[Symbol] = app.tvmgraph_symbols  # pyright: ignore[reportAttributeAccessIssue]
    missing = sorted({s.path for s in found if s.home not in entries})
    if missing:
        raise RuntimeError(f"no entry for {', '.join(missing)}")
    print(f"{len(found)} public names, {len({s.home for s in found})} objects,"
          f" {len(entries)} entries")  # fmt: skip


def _answer_to_all_names(app: Sphinx, document: nodes.document) -> None:
    """Gives entries the anchors that pages of source link back to: under any public name."""
    found: list[Symbol] = app.tvmgraph_symbols  # pyright: ignore[reportAttributeAccessIssue]
    spaces: dict[str, set[str]] = {}
    for symbol in found:
        spaces.setdefault(getattr(symbol.value, "__module__", None) or "", set()).add(
            symbol.space.path
        )
    modules = {s.path: getattr(s.value, "__module__", None) or "" for s in found}
    for entry in document.findall(addnodes.desc_signature):
        if entry.get("module"):
            home, name = entry["module"], entry["fullname"]
            module = modules.get(f"{home}.{name.partition('.')[0]}", "")
            entry["ids"] += [f"{o}.{name}" for o in sorted(spaces.get(module, set()) - {home})]


def _set_contents_aside(app: Sphinx, env: BuildEnvironment) -> None:
    """Leaves of the contents of reference pages their title.

    The tree at the left of a page is made of the contents of all pages: thousands of entries,
    copied for every page and then hidden, would be most of the build.
    """
    app.tvmgraph_contents = {}  # pyright: ignore[reportAttributeAccessIssue]
    for name, contents in env.tocs.items():
        if name.startswith("reference/"):
            app.tvmgraph_contents[name] = contents.deepcopy()
            for item in contents:
                for inner in item[1:]:
                    if not any(inner.findall(addnodes.toctree)):
                        item.remove(inner)
                    else:
                        inner[:] = list(inner.findall(addnodes.toctree))


def _show_contents(app: Sphinx, name: str, template: str, context: Any, tree: Any) -> None:
    """What stands at the right of a reference page: all of its entries."""
    contents = app.tvmgraph_contents.get(name)  # pyright: ignore[reportAttributeAccessIssue]
    if contents is None:
        return
    for node in contents.findall(nodes.reference):
        node["refuri"] = node["anchorname"] or "#"
    for node in list(contents.findall(addnodes.toctree)):
        node.parent.remove(node)
    for node in [n for n in contents.findall(nodes.bullet_list) if not n.children and n.parent]:
        node.parent.remove(node)
    context["toc"] = app.builder.render_partial(contents)["fragment"]
    context["furo_hide_toc"] = len(list(contents.findall(nodes.reference))) < 3


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects the steps of the build."""
    app.connect("builder-inited", _prepare)
    app.connect("source-read", _follow_chapters)
    app.connect("missing-reference", _resolve)
    app.connect("env-check-consistency", _count)
    app.connect("doctree-read", _answer_to_all_names)
    app.connect("env-check-consistency", _set_contents_aside)
    app.connect("html-page-context", _show_contents, priority=600)  # after the theme has looked
    return {"parallel_read_safe": True, "parallel_write_safe": True}
