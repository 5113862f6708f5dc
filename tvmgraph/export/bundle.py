"""The files a machine needs to run compiled modules, and no others."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path

import tvmgraph
from tvmgraph.errors import ArgumentError, NotFoundError
from tvmgraph.runtime import host

_OWN = (
    "__init__.py", "compat/__init__.py", "compat/absent.py", "compat/absent.rows",
    "compat/elsewhere.py", "compat/paths.py", "errors.py", "forking.py", "hooks.py", "machine",
    "partial.py", "runtime", "version.py", "wiring.py",
)  # fmt: skip
#: Installed packages that the runtime imports, with what of them it does not use.
_PACKAGES = {
    "tvm_ffi": ("include", "3rdparty", "share", "stub", "testing", "src", "cython", "__pycache__"),
    "safetensors": ("__pycache__", "torch.py", "tensorflow.py", "flax.py", "mlx.py", "paddle.py"),
    "ml_dtypes": ("__pycache__", "tests", "include"),
}
_MODULES = ("typing_extensions",)  # of a single file
_LIBRARIES = ("tvm_runtime", "tvm_runtime_extra", "tvm_runtime_cuda")


def write_bundle(folder: Path) -> list[Path]:
    """Copies the runtime into a new folder; with it on ``sys.path`` compiled modules run.

    NumPy is not copied: install it on the target.

    Args:
        folder: Where to write; it must be empty or missing.

    Returns:
        The files written.

    Raises:
        ArgumentError: if the folder holds something.
        NotFoundError: if a package is not installed.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ArgumentError("the folder is not empty", op="bundle", got=str(folder))
    written = [_copy(source, folder / target) for source, target in _files()]
    return sorted(written)


def _copy(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    return target


def _files() -> Iterator[tuple[Path, Path]]:
    package = Path(tvmgraph.__file__).parent
    for name in _OWN:
        for source in _walk(package / name, ("__pycache__", "executable.py")):
            yield source, Path("tvmgraph") / source.relative_to(package)
    for folder in host.library_folders():
        for source in sorted(folder.glob("*")):
            if source.name.split(".")[0] in {f"lib{n}" for n in _LIBRARIES}:
                yield source, Path("tvmgraph") / "runtime" / "lib" / source.name
    yield from _installed()


def _installed() -> Iterator[tuple[Path, Path]]:
    """Yields the files of installed packages."""
    for name in [*_PACKAGES, *_MODULES]:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise NotFoundError(f"{name} is not installed", op="bundle")
        origin = Path(spec.origin)
        if name in _MODULES:
            yield origin, Path(origin.name)
            continue
        for source in _walk(origin.parent, _PACKAGES[name]):
            yield source, Path(name) / source.relative_to(origin.parent)
        if name == "tvm_ffi":  # the runtime compares versions
            site = origin.parent.parent
            for info in sorted(site.glob("apache_tvm*.dist-info/METADATA")):
                yield info, info.relative_to(site)


def _walk(path: Path, unused: tuple[str, ...]) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for child in sorted(path.iterdir()):
        if child.name not in unused:
            yield from _walk(child, unused)
