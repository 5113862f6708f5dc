"""From scheduled loops to machine code, several codegen units at once.

TVM turns a module into one LLVM module, on one thread. Here the kernels are dealt out into
codegen units of about equal size, which worker threads translate at the same time (TVM lets go of
Python's lock meanwhile). The units become object files that a linker joins into one
shared library, which can be kept on disk; without a linker they are translated in memory.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Protocol, TypeVar

import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.relax import vm_build

from tvmgraph.backend.cpu.codegen.pipeline import generate
from tvmgraph.backend.cpu.codegen.sharing import split_calls, symbol_of
from tvmgraph.backend.tvm_private import private
from tvmgraph.debug.announce import announced, kernels_of
from tvmgraph.runtime.pool import adopt

if TYPE_CHECKING:
    import tvm

#: Statements per unit. One takes LLVM half a millisecond and more, a unit by itself ten, so that
#: dividing less costs more than it saves, even for a worker that has nothing else to do.
T = TypeVar("T")
R = TypeVar("R")
_ENOUGH, _ENOUGH_FOR_THE_IDLE = 50, 10
#: Units per worker, so that an underestimated one does not hold up the others.
_UNITS_PER_WORKER = 2
#: Kernels of programs with at least this many functions are kept one by one. Of smaller ones the
#: whole program is, and forwarders to kernels in object files of their own would take longer.
_WORTH_KEEPING = 8

#: Functions of the runtime library itself, found again in any process.
_OWN_FUNCTION = re.compile(
    r"vm\.builtin\.|tvm\.contrib\.(sort|random)\.|tvmgraph\.(cublaslt\.|numpy_column$)"
)


@dataclass(frozen=True)
class Program:
    """A module ready for code generation.

    Attributes:
        builder: The bytecode of its Relax functions.
        kernels: Everything that becomes machine code.
        constants: The tensors it holds.
        native: Whether machine code calls the kernels.
        portable: Whether it calls nothing that lives in this process's Python.
    """

    builder: relax.ExecBuilder
    kernels: tvm.IRModule
    constants: dict[str, object]
    native: bool
    portable: bool


def prepare(
    mod: tvm.IRModule, target: tvm.target.Target, passes: tvm.transform.Pass, native: bool
) -> Program:
    """Lowers the calls of a scheduled module to the virtual machine.

    Args:
        mod: The module, whose kernels are scheduled.
        target: TVM's target.
        passes: A pass that turns the Relax functions into calls of the virtual machine.
        native: Whether these calls become machine code too, instead of the machine's instructions.

    Returns:
        The program, with its kernels as TensorIR and its constants.
    """
    with target:
        mod = passes(mod)
    constants = dict(mod.attrs or {}).get("const_name_to_constant", {})
    builder = relax.ExecBuilder()
    rest = private("tvm.relax.vm_build:_vmcodegen")(
        builder, mod, "compiled" if native else "bytecode"
    )
    kernels = {var: f for var, f in rest.functions.items() if isinstance(f, tirx.PrimFunc)}
    module = tvm.IRModule(kernels, attrs=rest.attrs)
    return Program(builder, module, dict(constants), native, _is_portable(mod))


def translate(
    program: Program, target: tvm.target.Target, workers: int, checked: bool = False
) -> relax.VMExecutable:
    """Translates a program in memory.

    Args:
        program: The program.
        target: The processor.
        workers: Threads that translate.
        checked: Whether kernels check their arguments.

    Returns:
        The executable, ready to run.
    """

    pool = thread_pool(target)
    if pool is not None and "mtriple" not in target.attrs:
        adopt(pool)  # before any code is generated, which would call TVM's

    def build(unit: tvm.IRModule) -> tvm.runtime.Module:
        with announced(_names(unit)):
            library = generate(unit, target, checked)
            if "mtriple" not in target.attrs:  # not for another machine
                library[_entry(unit)]  # generates the machine code now, on this thread
        return library

    # In memory, machine code can call only kernels of its own unit.
    units = deal(program.kernels, 1) if program.native else _divide(program.kernels, workers)
    libraries = in_parallel(build, units, workers)
    return join(program, target, [*libraries, pool] if pool is not None else libraries)


class ObjectCache(Protocol):
    """Where object files of kernels are kept for other graphs."""

    def take(self, symbol: str, path: Path) -> bool:
        """Writes the object file of a kernel if it is there, and says whether it is.

        Args:
            symbol: The kernel's.
            path: The file to write.
        """
        ...

    def keep(self, symbol: str, path: Path) -> None:
        """Keeps the object file of a kernel.

        Args:
            symbol: The kernel's.
            path: The file.
        """
        ...


def write_objects(
    program: Program, target: tvm.target.Target, workers: int, folder: Path,
    singly: bool = False, cache: ObjectCache | None = None,
) -> relax.VMExecutable:  # fmt: skip
    """Translates a program into object files in ``folder``.

    Args:
        program: The program.
        target: The processor.
        workers: Threads that translate.
        folder: Where.
        singly: Whether one function after the other is translated, so that it is known which.
        cache: Where kernels of other graphs are; for programs of a few kernels it is left alone.

    Returns:
        The executable, of use only to look inside once its objects are linked.
    """
    if len(program.kernels.functions) < _WORTH_KEEPING:
        cache = None
    kernels, callers = split_calls(program.kernels, by_content=cache is not None)
    one_each = singly or cache is not None
    divided = deal(kernels, len(kernels.functions), 1) if one_each else _divide(kernels, workers)
    units = divided if callers is None else [*divided, callers]
    quickly = tvm.target.Target({**target.export(), "opt-level": 0})

    def build(numbered: tuple[int, tvm.IRModule]) -> tvm.runtime.Module | None:
        number, unit = numbered
        wanted, known = (quickly, None) if unit is callers else (target, cache)
        path = folder / f"unit{number}.o"
        if known is not None and known.take(_entry(unit), path):
            return None
        with announced(_names(unit)):
            library = generate(unit, wanted)
            write_object(library, path)
        if known is not None:
            known.keep(_entry(unit), path)
        return library

    pool = thread_pool(target)
    built = in_parallel(build, list(enumerate(units)), 1 if singly else workers)
    if pool is not None:
        (folder / "thread_pool.o").write_bytes(_object(pool))
    executable = join(program, target, [library for library in built if library is not None])
    write_program(executable, target, folder)
    return executable


def write_program(executable: relax.VMExecutable, target: tvm.target.Target, folder: Path) -> None:
    """Writes what an executable is made of beside machine code as an object file.

    Args:
        executable: What :func:`join` made.
        target: TVM's target.
        folder: Where ``program.o`` goes.
    """
    pack = private("tvm.runtime:_ffi_api.ModulePackImportsToLLVM")
    packed = pack(executable.mod, False, str(target), "")
    write_object(packed, folder / "program.o")


def write_object(library: tvm.runtime.Module, path: Path) -> None:
    """Writes machine code as an object file.

    LLVM ends the process when it cannot write, so it writes to memory, and the file is copied.

    Args:
        library: A module of machine code.
        path: The file.

    Raises:
        OSError: if the disk is full.
    """
    with open(os.memfd_create(path.name), "r+b") as memory:
        library.write_to_file(f"/proc/self/fd/{memory.fileno()}", "o")
        with path.open("wb") as file:
            shutil.copyfileobj(memory, file)


@functools.cache
def _object(library: object) -> bytes:
    """Returns machine code that many programs have in common as the content of an object file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "common.o"
        write_object(library, path)
        return path.read_bytes()


def join(
    program: Program, target: tvm.target.Target, libraries: Sequence[tvm.runtime.Module]
) -> relax.VMExecutable:
    """Makes one executable of a program and the libraries of its kernels.

    Args:
        program: What :func:`prepare` made.
        target: TVM's target.
        libraries: Modules of machine code of its kernels; the first one imports the others.

    Returns:
        TVM's executable.
    """
    first = libraries[0] if libraries else None
    for other in libraries[1:]:
        libraries[0].import_module(other)
    link = private("tvm.relax.vm_build:_ffi_api.VMLink")
    linked = link(program.builder, target, first, [], program.constants)
    return vm_build.VMExecutable(linked)


def in_parallel(work: Callable[[T], R], items: Sequence[T], workers: int) -> list[R]:
    """Applies a function to every item, in at most ``workers`` threads.

    Args:
        work: The function. It should let go of Python's lock, as TVM's code generator does.
        items: What it is applied to.
        workers: Threads at most; with one it runs here.

    Returns:
        The results, in the order of the items.
    """
    if len(items) < 2 or workers < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, items))


def _divide(kernels: tvm.IRModule, workers: int) -> list[tvm.IRModule]:
    """Divides functions such that the workers have about equal amounts to do."""
    units = deal(kernels, workers * _UNITS_PER_WORKER)
    return units if len(units) >= workers else deal(kernels, workers, _ENOUGH_FOR_THE_IDLE)


def deal(kernels: tvm.IRModule, wanted: int, least: int = _ENOUGH) -> list[tvm.IRModule]:
    """Deals functions out into modules of about equal amounts of code.

    Args:
        kernels: The functions.
        wanted: How many modules there are at most.
        least: Statements per module on average at least, if there are several.
    """
    sized = [(_size(f), var, f) for var, f in kernels.functions.items()]
    sized.sort(key=lambda item: (-item[0], item[1].name_hint))
    total = sum(size for size, _, _ in sized)
    count = max(1, min(wanted, len(sized), total // least))
    units: list[dict[object, object]] = [{} for _ in range(count)]
    loads = [0] * count
    for size, var, func in sized:
        lightest = loads.index(min(loads))
        units[lightest][var] = func
        loads[lightest] += size
    return [tvm.IRModule(unit, attrs=kernels.attrs) for unit in units if unit]


def _size(func: tirx.PrimFunc) -> int:
    """Statements of a function."""
    count = 0

    def visit(_node: object) -> None:
        nonlocal count
        count += 1

    tvm_ffi.structural_walk(func.body, (tirx.Stmt, visit))
    return count


def _names(unit: tvm.IRModule) -> str:
    return kernels_of(str(var.name_hint) for var in unit.functions)


def _entry(unit: tvm.IRModule) -> str:
    return next(symbol_of(f) for f in unit.functions.values())


def _is_portable(mod: tvm.IRModule) -> bool:
    """Whether every function called by name is one of the runtime library."""
    names: set[str] = set()

    def visit(node: relax.ExternFunc) -> None:
        names.add(str(node.global_symbol))

    for func in mod.functions.values():
        if isinstance(func, relax.Function):
            tvm_ffi.structural_walk(func, (relax.ExternFunc, visit))
    return all(_OWN_FUNCTION.match(name) for name in names)


# ---- the code that divides parallel loops among threads: ``thread_pool.ll``, for a target --------
# It is LLVM's own language because it needs what TVM's has no words for (atomic operations), and
# because the process that compiles may have no other compiler.

_SOURCE = Path(__file__).with_name("thread_pool.ll")
#: By architecture: the instruction that waits a little, the numbers of Linux's calls.
_WORDS = {
    "x86_64": {"pause": "pause", "futex": 202, "gettid": 186},
    "aarch64": {"pause": "isb", "futex": 98, "gettid": 178},
}


def thread_pool(target: tvm.target.Target) -> tvm.runtime.Module | None:
    """Returns the pool's code for a target, or ``None`` where TVM's own pool has to do.

    Args:
        target: The processor.
    """
    own = f"{platform.machine()}-{platform.system()}"
    triple = str(target.attrs.get("mtriple", own))  # pyright: ignore[reportAttributeAccessIssue] - a field of the FFI
    architecture = triple.split("-")[0]
    if architecture not in _WORDS or "linux" not in triple.lower():
        return None
    return _library(str(target), architecture)


@functools.cache
def _library(target: str, architecture: str) -> tvm.runtime.Module:
    quoted = target.replace("\\", "\\5C").replace('"', "\\22")
    text = Template(_SOURCE.read_text()).substitute(_WORDS[architecture], target=quoted)
    # in memory LLVM runs only code that names the layout of data of its target
    empty = private("codegen.LLVMModuleCreate")(target, _SOURCE.stem).inspect_source("ll")
    text = "\n".join([*re.findall(r"^target .*$", empty, re.MULTILINE), text])
    with open(os.memfd_create(_SOURCE.name), "r+") as memory:
        memory.write(text)
        memory.flush()
        return private("ffi.Module.load_from_file.ll")(f"/proc/self/fd/{memory.fileno()}", "ll")
