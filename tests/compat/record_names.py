"""Records MindSpore's public names and signatures: ``python tests/compat/record_names.py``.

It runs where MindSpore is installed and writes ``mindspore_names.txt.xz``: a line ``[namespace]``,
then a line per name, ``name kind`` and, where Python can tell them, the parameters of the call.
For a class these are its constructor's; those of an operator's call follow a second ``|``.
"""

from __future__ import annotations

import importlib
import inspect
import lzma
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

NAMES = Path(__file__).with_name("mindspore_names.txt.xz")

#: Namespace below ``mindspore`` -> the module that has it, where the two differ.
MODULES = """
amp common common.initializer communication communication.comm_func context dataset dataset.audio
dataset.text dataset.transforms dataset.vision experimental.optim experimental.optim.lr_scheduler
hal log mindrecord mint mint.distributed mint.linalg mint.nn mint.nn.functional mint.optim
mint.special multiprocessing nn nn.probability.bijector nn.probability.distribution numpy ops
parallel profiler rewrite runtime scipy.linalg scipy.optimize train train.callback utils
""".split()  # noqa: SIM905  (one word each)
CLASSES = ("Cell", "Parameter", "Tensor")


def public(room: Any) -> list[str]:
    """Returns the public names: ``__all__`` as far as it exists, else everything but modules."""
    names = [n for n in dir(room) if not n.startswith("_")]
    listed = getattr(room, "__all__", None)
    if listed:
        return sorted(set(listed) & set(names))
    return [n for n in names if not isinstance(getattr(room, n), ModuleType)]


def parameters(function: Any, skip: int = 0) -> str | None:
    """Returns ``a, b=1, *, c``, or None when the signature says nothing."""
    try:
        found = list(inspect.signature(function).parameters.values())[skip:]
    except (TypeError, ValueError):
        return None
    if [p.kind for p in found][:1] == [inspect.Parameter.VAR_POSITIONAL] and len(found) < 3:
        return None
    return ", ".join(_written(found))


def _written(found: list[inspect.Parameter]) -> Iterator[str]:
    starred = False
    for p in found:
        if p.kind is p.VAR_POSITIONAL:
            starred = True
            yield f"*{p.name}"
        elif p.kind is p.VAR_KEYWORD:
            yield f"**{p.name}"
        else:
            if p.kind is p.KEYWORD_ONLY and not starred:
                starred = True
                yield "*"
            yield p.name + ("" if p.default is p.empty else f"={default(p.default)}")


def default(value: Any) -> str:
    """Returns the text of a default; objects are named by their type."""
    if isinstance(value, (bool, int, float, str, type(None))) or type(value) is tuple:
        return repr(value)
    if type(value).__module__.startswith(("mindspore", "tvmgraph", "numpy", "builtins")):
        text = str(value)
        return text.lower() if text[:1].isalpha() and " " not in text else type(value).__name__
    return type(value).__name__


def line(name: str, found: Any) -> str:
    """Returns the line of one name."""
    if isinstance(found, type):
        calls = [parameters(found.__init__, 1)]
        if any(c.__name__ == "Primitive" for c in found.__mro__):
            calls.append(parameters(found.__call__, 1))
        kind = "class"
    elif callable(found):
        calls, kind = [parameters(found)], "function"
    else:
        calls, kind = [], "value"
    return " | ".join([f"{name} {kind}", *("?" if c is None else c for c in calls)]).rstrip()


def listing() -> Iterator[str]:
    """Yields the lines of the file."""
    import mindspore  # pyright: ignore[reportMissingImports]  # only needed to record

    rooms = {"": mindspore}
    rooms |= {m: importlib.import_module(f"mindspore.{m}") for m in MODULES}
    rooms |= {c: getattr(mindspore.nn if c == "Cell" else mindspore, c) for c in CLASSES}
    for path, room in rooms.items():
        yield f"[{path}]"
        for name in public(room):
            found = getattr(room, name)
            member = path in CLASSES and not isinstance(found, type)
            yield line(name, inspect.getattr_static(room, name) if member else found)


def main() -> None:
    """Writes the file."""
    NAMES.write_bytes(lzma.compress("\n".join(listing()).encode()))


if __name__ == "__main__":
    main()
