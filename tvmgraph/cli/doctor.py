"""``tvmgraph doctor``: is this machine ready?"""

from __future__ import annotations

import importlib.metadata
import platform
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import tvmgraph as ms
from tvmgraph import Tensor
from tvmgraph.compiler import worker
from tvmgraph.compiler.cache import disk
from tvmgraph.compiler.measuring.host import describe_host
from tvmgraph.compiler.measuring.machine import peaks
from tvmgraph.errors import CompileError

PACKAGES = ("tvmgraph", "apache-tvm", "apache-tvm-ffi", "numpy", "onnx", "ml_dtypes")


_EXPECTED = (1, 3, 5, 7)


def _compiled_result() -> np.ndarray:
    function = ms.jit(lambda x: x * 2.0 + 1.0)
    return function(Tensor(np.arange(4, dtype=np.float32))).asnumpy()


def run_check() -> None:
    """Compiles one function, runs it and prints whether its result is right.

    Raises:
        CompileError: if it cannot be compiled, or gives a wrong result.
    """
    result = _compiled_result()
    if not np.array_equal(result, _EXPECTED):
        raise CompileError(
            "the installation gives wrong results", op="run_check", got=str(result),
            fix="run `tvmgraph doctor` and look at the versions",
        )  # fmt: skip
    print(f"tvmgraph version: {importlib.metadata.version('tvmgraph')}")
    print(f"The result of a compiled function is right on {ms.get_context('device_target')}.")


def run_doctor() -> bool:
    """Prints versions and the target, compiles one function; returns whether it works."""
    console = Console()
    table = Table("what", "value", show_header=False)
    table.add_row("python", platform.python_version())
    for name in PACKAGES:
        try:
            table.add_row(name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            table.add_row(name, "[red]not installed[/]")
    for name, value in describe_host().items():
        table.add_row(name, value)
    command = disk.linker()
    advice = "[red]none: install binutils, or pip install 'tvmgraph\\[linker]'[/]"
    table.add_row("linker", " ".join(command) if command else advice)
    reason = disk.why_unwritten()
    table.add_row("disk cache", str(disk.folder()) if reason is None else f"[red]off: {reason}[/]")
    here = worker.why_here()
    where = "in a process of its own" if here is None else f"[red]in this process: {here}[/]"
    table.add_row("compiler", where)
    table.add_row("measured peaks", str(peaks(again=True)))
    start = time.perf_counter()
    result = _compiled_result()
    works = bool(np.array_equal(result, _EXPECTED))
    table.add_row("compile and run x * 2 + 1", f"{(time.perf_counter() - start) * 1e3:.0f} ms")
    table.add_row("result", "[green]right[/]" if works else f"[red]wrong: {result}[/]")
    console.print(table)
    return works
