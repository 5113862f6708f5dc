"""``tvmgraph doctor``: is this machine ready?"""

from __future__ import annotations

import importlib.metadata
import platform
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

import tvmgraph as ms
from tvmgraph import Tensor
from tvmgraph.cli.options import print_json
from tvmgraph.compiler import worker
from tvmgraph.compiler.cache import disk
from tvmgraph.compiler.measuring.host import describe_host
from tvmgraph.compiler.measuring.machine import peaks
from tvmgraph.errors import CompileError, reject

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
        reject(CompileError, "run_check", "the installation gives wrong results", str(result),
               "run `tvmgraph doctor` and look at the versions")  # fmt: skip
    print(f"tvmgraph version: {importlib.metadata.version('tvmgraph')}")
    print(f"The result of a compiled function is right on {ms.get_context('device_target')}.")


def run_doctor(as_json: bool = False) -> bool:
    """Prints versions and the target, compiles one function; returns whether it works.

    Args:
        as_json: Whether it is printed as JSON.
    """
    facts, problems = _facts()
    start = time.perf_counter()
    result = _compiled_result()
    seconds = time.perf_counter() - start
    works = bool(np.array_equal(result, _EXPECTED))
    facts["compile and run x * 2 + 1"] = f"{seconds * 1e3:.0f} ms"
    facts["result"] = "right" if works else f"wrong: {result}"
    if as_json:
        print_json({**facts, "works": works, "problems": problems})
        return works
    table = Table("what", "value", show_header=False)
    for name, value in facts.items():
        bad = name in problems or (name == "result" and not works)
        good = name == "result" and works
        style = "red" if bad else "green" if good else ""
        table.add_row(name, Text(value, style=style))
    Console().print(table)
    return works


def _facts() -> tuple[dict[str, str], list[str]]:
    """Returns what is known of the machine, and the names of what is not as it should be."""
    facts, problems = {"python": platform.python_version()}, []
    for name in PACKAGES:
        try:
            facts[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            facts[name] = "not installed"
            problems.append(name)
    facts.update(describe_host())
    command, off, here = disk.linker(), disk.why_unwritten(), worker.why_here()
    advice = "none: install binutils, or pip install 'tvmgraph[linker]'"
    facts["linker"] = " ".join(command) if command else advice
    facts["disk cache"] = str(disk.folder()) if off is None else f"off: {off}"
    facts["compiler"] = "in a process of its own" if here is None else f"in this process: {here}"
    facts["measured peaks"] = str(peaks(again=True))
    wrong = {"linker": not command, "disk cache": off is not None, "compiler": here is not None}
    return facts, problems + [name for name, is_wrong in wrong.items() if is_wrong]
