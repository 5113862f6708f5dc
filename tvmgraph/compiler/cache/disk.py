"""Executables on disk: a second process starts without compiling, and without the compiler.

An entry is a shared library with the virtual machine's program, the kernels and the constants of
one graph. Its name is a digest of everything that decides what is in it: the graph, the settings,
the processor, the number of threads, the versions of TVM and of this package, and the state of this
package's own source files. Code for a device, if any, and a description follow the library in the
same file.

Writing one takes a linker. Without one nothing is kept, and :func:`why_not` says so.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from tvmgraph import partial
from tvmgraph.config import context
from tvmgraph.core.op import CUSTOM
from tvmgraph.errors import ConfigError, reject
from tvmgraph.graph import Graph
from tvmgraph.machine.threads import configure_threads
from tvmgraph.machine.tiles import permit_tiles
from tvmgraph.runtime import native, trust
from tvmgraph.runtime.store import Store
from tvmgraph.runtime.tensors import mapped_bytes

#: Environment variables: the folder, and its size in MiB (0 switches the cache off).
FOLDER_VARIABLE, LIMIT_VARIABLE = "TVMGRAPH_CACHE_DIR", "TVMGRAPH_CACHE_MB"
_LIMIT_MB = 1024
#: Linkers in order of preference, with their arguments for a shared library whose symbols are all
#: looked up when it is loaded: a missing one must be an error there, not the end of the process.
_LINKERS = {
    "ld": ("-shared", "-z", "now", "-S"),
    "ld.lld": ("-shared", "-z", "now", "-S"),
    "cc": ("-shared", "-Wl,-z,now,-S"),
    "clang": ("-shared", "-Wl,-z,now,-S"),
}
#: A package that has LLVM's linker, for machines with none of these.
_LINKER_PACKAGE = "ziglang"
#: Rooms whose source decides what a graph is compiled to.
_ROOMS = (
    "backend", "compiler", "core", "graph", "lowering", "machine", "numerics", "ops", "passes",
    "runtime",
)  # fmt: skip
_SOURCES = (".py", ".ll")
_MAGIC = b"tvmgraph-executable"
_DIGEST = 16  # bytes of XXH3, which finds every accident and is as fast as memory
_TAIL = _DIGEST + 8 + len(_MAGIC)  # the digest, the length of the description


def folder() -> Path:
    """Where executables are kept."""
    given = context.compile_cache_path or os.environ.get(FOLDER_VARIABLE)
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tvmgraph" / "executables"


def limit() -> int:
    """Bytes that executables may take together; 0 when the cache is switched off.

    Raises:
        ConfigError: if the environment variable is no number.
    """
    text = os.environ.get(LIMIT_VARIABLE, str(_LIMIT_MB))
    if not text.isdigit():
        reject(ConfigError, "cache", f"{LIMIT_VARIABLE} cannot be {text!r}",
               fix="set it to a number of MiB; 0 switches the cache off")  # fmt: skip
    return int(text) << 20


def store() -> Store:
    """The executables on disk."""
    return Store(folder(), limit())


@functools.cache
def linker() -> tuple[str, ...] | None:
    """The command that makes a shared library of object files, or None."""
    if platform.system() != "Linux":
        return None
    for name, arguments in _LINKERS.items():
        found = shutil.which(name)
        if found:
            return (found, *arguments)
    spec = importlib.util.find_spec(_LINKER_PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        return (str(Path(place) / "zig"), "ld.lld", *_LINKERS["ld.lld"])
    return None


def why_no_linker() -> str:
    """Says where :func:`linker` has looked."""
    looked = f"{', '.join(_LINKERS)}, and the package {_LINKER_PACKAGE}"
    return f"no linker was found (looked for {looked})"


def why_not(graph: Graph | None = None) -> str | None:
    """Returns why executables (that of ``graph``) are not kept on disk, or None when they are.

    Args:
        graph: A graph, or None to ask whether any is kept.
    """
    if not context.enable_compile_cache:
        return "set_context(enable_compile_cache=False)"
    if limit() == 0:
        return f"{LIMIT_VARIABLE}=0"
    if linker() is None:
        return why_no_linker()
    if not trust.is_trusted(folder()):
        return trust.why_not(folder())
    if not _is_text(folder()):
        return f"the name of {os.fsencode(folder())!r} is no UTF-8 text, which libraries need"
    return None if graph is None else why_bound(graph)


def _is_text(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def why_unwritten() -> str | None:
    """Returns why nothing can be kept on disk now, having tried it; None when it can."""
    reason = why_not()
    if reason is not None:
        return reason
    try:
        with store().workspace():
            return None
    except OSError as e:
        return f"nothing can be written: {e}"


def why_bound(graph: Graph) -> str | None:
    """Returns why a graph means something in this process only, or None when it does not.

    Args:
        graph: A graph.
    """
    if not _is_of_the_table(graph):
        return "it has operators of your own, whose kernels may change at any time"
    if any(node.op.traits.effect for node in graph.walk()):
        return "it calls Python"
    return None


def key_of(graph: Graph, options: object, extra: str = "") -> str:
    """The name of the entry of a graph.

    Args:
        graph: The graph.
        options: How it is compiled.
        extra: What else decides, such as the version of another compiler.
    """
    return key_of_text(graph.structural_hash(), options, extra)


def key_of_text(text: str, options: object, extra: str = "") -> str:
    """The name of the entry of what a text stands for; else as :func:`key_of`.

    Args:
        text: The graph's canonical text, or another text that decides what is compiled.
        options: What the compile may depend on, by its representation.
        extra: Anything else that the entry depends on.

    Returns:
        64 hexadecimal digits.
    """
    threads = configure_threads(context.thread_num or None)
    parts = (text, repr(options), str(threads), extra, *_surroundings())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def load(key: str) -> tuple[Any, dict[str, object], bytes] | None:
    """Returns module, description and payload of an entry; None when there is none that works.

    Args:
        key: From :func:`key_of`.
    """
    path = store().find(key)
    if path is None:
        return None
    content = _read_entry(path, key)
    if content is None:
        store().discard(key)
        return None
    try:
        module = native.load(path)
        module["vm_load_executable"]  # another library has none
        return module, *content
    except Exception:  # whatever is wrong with the file, it can be compiled again
        store().discard(key)
        return None


def opened(path: Path, key: str | None = None) -> tuple[Any, dict[str, object], bytes]:
    """Returns module, description and payload of an entry that was just made.

    Args:
        path: The file, from :func:`link` or :func:`keep`.
        key: Where it was kept, if it was.

    Raises:
        OSError: if it is damaged.
    """
    content = _read_entry(path, key or "")
    if content is None:
        raise OSError(f"{path} is damaged")
    return native.load(path), *content


def write_private(path: Path, text: str) -> None:
    """Writes a file beside the entries, all at once, which only this user may read.

    Args:
        path: The file.
        text: What it will hold.

    Raises:
        OSError: if the disk is full, or the folder cannot be written to.
    """
    trust.make_folder(path.parent)
    with partial.replacing(path, 0o600) as part:
        part.write_text(text)


def join(objects: Sequence[str | Path], library: str | Path) -> None:
    """Links object files into a shared library.

    Args:
        objects: The object files.
        library: The file to write.

    Raises:
        OSError: if there is no linker, if it fails, or the disk is full.
    """
    if (command := linker()) is None:
        raise OSError(why_no_linker())
    done = subprocess.run(
        [*command, "-o", library, *objects], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise OSError(f"{command[0]} failed: {done.stderr.strip()}")


def link(
    objects: Sequence[Path], facts: dict[str, object], workspace: Path, payload: bytes = b""
) -> Path:
    """Links object files into an entry.

    Args:
        objects: The object files.
        facts: The description; JSON.
        workspace: A folder for the file.
        payload: Further bytes that belong to it, such as code for a device.

    Raises:
        OSError: if the linker fails, or the disk is full.
    """
    library = workspace / "executable.so"
    join(objects, library)
    text = json.dumps({**facts, "payload": len(payload)}).encode()
    with library.open("ab") as file:
        file.write(payload + text)
    digest = xxhash.xxh3_128(mapped_bytes(library)).digest()
    with library.open("ab") as file:
        file.write(digest + len(text).to_bytes(8, "little") + _MAGIC)
    return library


def save(
    key: str,
    objects: Sequence[Path],
    facts: dict[str, object],
    workspace: Path,
    payload: bytes = b"",
) -> Path:
    """Links object files into the entry of a key, from :func:`key_of`; see :func:`link`.

    Args:
        key: From :func:`key_of`.
        objects: Object files.
        facts: What the entry says of the executable, as JSON.
        workspace: A folder for files that are needed meanwhile.
        payload: Code for a GPU, which is appended.

    Returns:
        The entry.
    """
    return keep(key, link(objects, facts, workspace, payload))


def keep(key: str, library: Path) -> Path:
    """Moves what :func:`link` made into the store; it ends with its key, so that it cannot be taken
    for the entry of another graph.

    Args:
        key: From :func:`key_of`.
        library: The file, which is moved.

    Returns:
        The entry.
    """
    with library.open("ab") as file:
        file.write(bytes.fromhex(key))
    return store().put(key, library)


def digest_of(content: bytes | np.ndarray, key: str) -> bytes:
    """What a file of a store ends with: it finds every accident, and files under another name.

    Args:
        content: What is before it.
        key: What the file is found by.
    """
    digest = xxhash.xxh3_128(content)
    digest.update(key.encode())
    return digest.digest()


def _read_entry(path: Path, key: str) -> tuple[dict[str, object], bytes] | None:
    """Description and payload, at the end of an entry, or None when the file is damaged."""
    name = bytes.fromhex(key)
    try:
        content = mapped_bytes(path)
    except (OSError, ValueError):
        return None
    if content[content.size - len(name) :].tobytes() != name:
        return None
    content = content[: content.size - len(name)]
    tail = content[-_TAIL:].tobytes()
    if content.size < _TAIL or not tail.endswith(_MAGIC):
        return None
    size = int.from_bytes(tail[_DIGEST : _DIGEST + 8], "little")
    end = content.size - _TAIL
    if size > end or xxhash.xxh3_128(content[:end]).digest() != tail[:_DIGEST]:
        return None
    try:
        facts = json.loads(content[end - size : end].tobytes())
        start = end - size - facts["payload"]
        whole = isinstance(facts["kernels"], list) and isinstance(facts["native"], bool)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not whole or not 0 <= start <= end - size:
        return None
    return facts, content[start : end - size].tobytes()


def _is_of_the_table(graph: Graph) -> bool:
    """Whether all operators are this package's own; a user's kernels may change at any time."""
    for node in graph.nodes:
        if node.op.name in CUSTOM:
            return False
        module = getattr(node.op.lower, "__module__", "tvmgraph") if callable(node.op.lower) else ""
        if module and not module.startswith("tvmgraph"):
            return False
        if not all(map(_is_of_the_table, node.regions)):
            return False
    return True


@functools.cache
def _surroundings() -> tuple[str, ...]:
    """Everything but the graph and its settings that decides what it is compiled to."""
    names = ("apache-tvm", "apache-tvm-ffi", "tvmgraph")
    versions = [f"{name} {_version(name)}" for name in names]
    return (*versions, _processor(), f"tiles: {permit_tiles()}", _sources())


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def _processor() -> str:
    """The processor with all that it can do, as the system reports it."""
    try:
        first = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU part")
    return "\n".join(line for line in first.splitlines() if line.split("\t")[0] in wanted)


def _sources() -> str:
    """The sizes and times of the source files, so that an edited package compiles again."""
    root = Path(__file__).parents[2]
    rooms = (p for room in _ROOMS for p in sorted((root / room).rglob("*")) if p.suffix in _SOURCES)
    files = (*sorted(root.glob("*.py")), *rooms, *sorted((root / "configs").glob("*.toml")))
    states = ((p.relative_to(root), p.stat()) for p in files)
    return "\n".join(f"{p} {s.st_size} {s.st_mtime_ns}" for p, s in states)
