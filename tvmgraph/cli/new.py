"""``tvmgraph new``: a small project that runs."""

from __future__ import annotations

import importlib.resources
import keyword
import re
import sys
from collections.abc import Sequence
from importlib.metadata import packages_distributions
from pathlib import Path
from string import Template

import tvmgraph
from tvmgraph.errors import ArgumentError, reject

#: Files of a project, and the templates in the folder ``project`` they are written from.
_FILES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    ".gitignore": "gitignore",
    "{package}/__init__.py": "__init__.py",
    "{package}/model.py": "model.py",
    "{package}/data.py": "data.py",
    "{package}/train.py": "train.py",
    "{package}/export.py": "export.py",
    "tests/test_{package}.py": "test.py",
}


def write_project(name: str) -> list[str]:
    """Writes a project into a new folder: a Cell, data, training, export, a test.

    Args:
        name: Path of the folder; its last part is the project's name.

    Returns:
        The files, relative to the folder.

    Raises:
        ArgumentError: if the name cannot be a package's, or the folder holds something already.
    """
    folder = Path(name)
    title = folder.resolve().name  # also of `.`
    package = title.replace("-", "_")
    if not re.fullmatch(r"[A-Za-z]\w*", package, re.ASCII) or keyword.iskeyword(package):
        reject(ArgumentError, "tvmgraph new", f"{title!r} cannot be the name of a Python package",
               fix="use letters, digits, - and _, a letter first")  # fmt: skip
    taken = {"tests", "tvmgraph", *sys.stdlib_module_names, *packages_distributions()}
    if package in taken:
        raise ArgumentError(f"the name {package!r} is taken by a module that is installed",
                            op="tvmgraph new", fix="choose another one")  # fmt: skip
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ArgumentError(f"{name} is there already", op="tvmgraph new",
                            fix="choose another name, or empty the folder")  # fmt: skip
    words = {"name": title, "package": package, "version": tvmgraph.__version__}
    templates = importlib.resources.files("tvmgraph") / "cli" / "project"
    written = []
    for target, source in _FILES.items():
        text = (templates / f"{source}.txt").read_text(encoding="utf-8")
        path = folder / target.format(package=package)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template(text).substitute(words), encoding="utf-8")
        written.append(str(path.relative_to(folder)))
    return written


def next_steps(name: str, files: Sequence[str]) -> str:
    """Returns what a user does next with a project.

    Args:
        name: Name of the project.
        files: Paths of its files.
    """
    package = Path(name).resolve().name.replace("-", "_")
    return "\n".join([
        f"{name}: {len(files)} files", *(f"  {file}" for file in files), "next:",
        f"  cd {name}", f"  python -m {package}.train", f"  python -m {package}.export",
        "  python -m pytest",
    ])  # fmt: skip
