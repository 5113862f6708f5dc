"""The operator table as machine code for another processor, run on it (or emulated) against NumPy.

    python -m benchmarks.foreign build aarch64 table.so aarch64-linux-gnu-g++
    qemu-aarch64 -L ROOT ROOT/usr/bin/python3 -m benchmarks.foreign run table.so

The second command needs packages of that processor: NumPy, ml_dtypes, safetensors, xxhash,
apache-tvm-ffi and TVM's runtime. It exits with the number of samples that differ.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

from tvmgraph.config.options import CompileOptions
from tvmgraph.testing.samples import (
    Case,
    all_cases,
    assert_close,
    derived_cases,
    has_column,
    kinds,
    tolerance,
)


def cases() -> list[Case]:
    """The first sample of every row with every combination of dtypes.

    Printing calls back into the process that compiled, so it is left out.
    """
    rows = (c for c in (*all_cases(), *derived_cases()) if c.op.name != "host_print")
    found = [c for c in rows if has_column(c.op, "lower")]
    return list({(c.op.name, kinds(c.sample)): c for c in reversed(found)}.values())


def name_of(case: Case) -> str:
    """The name of a case's function."""
    return case.name.replace("-", "_")


def build(target: str, path: str, linker: str) -> None:
    """Writes a shared library with one function per case."""
    from tvm.support import cc

    from tvmgraph.compiler import pipeline
    from tvmgraph.lowering import lower_many

    module = lower_many({name_of(case): case.graph() for case in cases()})
    options, request = CompileOptions(target=target, native=False), pipeline.Request(checked=True)
    made = pipeline.build(module, options, request=request)
    made.executable.export_library(path, fcompile=cc.cross_compiler(linker))
    print(f"{len(cases())} samples, {len(made.kernels)} kernels for {target}")


def run(path: str) -> None:
    """Compares the functions of a library with eager operators."""
    from tvmgraph.core.tensor import Tensor
    from tvmgraph.runtime import callback, native  # noqa: F401  (registers what kernels call)
    from tvmgraph.runtime.executable import Executable, cpu

    executable, differing = Executable(native.load(path), cpu()), 0
    for case in cases():
        try:
            wanted = [t.asnumpy() for t in case.call(case.tensors())]
            types = [value.type for value in case.graph().outputs]
            inputs = [Tensor(array) for array in case.cast_arrays()]
            outputs = executable.run(inputs, types, name_of(case))
            for got, want, t in zip(outputs, wanted, types, strict=True):
                assert_close(got.asnumpy(), want, tolerance(case, t.dtype), case.name)
        except Exception as e:
            differing += 1
            print(case.name, type(e).__name__, *str(e).split("\n")[:4])
    print(f"{len(cases())} samples, {differing} differ")
    sys.exit(differing)


COMMANDS: dict[str, Callable[..., None]] = {"build": build, "run": run}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    COMMANDS[sys.argv[1]](*sys.argv[2:])
