"""Random programs over the operator table, as source code that runs eagerly and compiled.

A program is a list of steps, each a few lines of Python with the names that they read and define.
Every step was run eagerly when it was chosen, so a program is one that eager code accepts; a step
can be left out by making what it defines an input.
"""

from __future__ import annotations

import itertools
import linecache
import re
import sys
import types
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, dtypes, nn, ops
from tvmgraph.core.op import OPS, Reason
from tvmgraph.testing.samples import Case, all_cases

MOST_ELEMENTS = 4096  # of a value: programs are many and small
_MOST_INPUTS = 6
_COLLECTIVE = "tvmgraph.ops.collective."  # rows that several processes compute together
#: Rows that are no functions of tensors alone, or whose samples cannot be written as source.
_LEFT_OUT = {
    "if_",
    "while_",
    "while_grad",
    "host_print",
    "computed_after",
    "leaf_value",
    "random_bits",
    "complex",  # programs hold real numbers
    "complex_part",
    "spectrum",
    "signal_of_half",
}


@dataclass(frozen=True)
class Step:
    """Some lines of a program.

    Attributes:
        code: The lines.
        reads: Names that they read.
        defines: Names that they define or change.
        rows: Rows of the table that they were made from.
    """

    code: str
    reads: tuple[str, ...]
    defines: tuple[str, ...]
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """A Cell's ``construct`` with its arguments and parameters.

    Attributes:
        seed: What it was generated from.
        inputs: Arrays of the arguments, by name.
        parameters: Arrays of the parameters, by attribute.
        steps: The lines, in order.
        outputs: Names that are returned.
        values: What every name held when it was last defined, in eager code.
    """

    seed: int
    inputs: dict[str, np.ndarray]
    parameters: dict[str, np.ndarray]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    values: dict[str, np.ndarray] = field(repr=False, default_factory=dict)

    def source(self) -> str:
        """Returns the module that defines ``Net``."""
        made = [
            f"        self.{name} = ms.Parameter(Tensor({name}), name={name!r})"
            for name in self.parameters
        ]
        body = [f"        {line}" for step in self.steps for line in step.code.splitlines()]
        results = ", ".join(self.outputs) + ("," if len(self.outputs) == 1 else "")
        return "\n".join([
            "class Net(nn.Cell):",
            f"    def __init__(self{''.join(', ' + p for p in self.parameters)}):",
            "        super().__init__()", *made, "",
            f"    def construct(self{''.join(', ' + x for x in self.inputs)}):", *body,
            f"        return {results}", "",
        ])  # fmt: skip

    def script(self, level: str = "O2") -> str:
        """Returns a runnable script that compares eager code with compiled code."""
        again = f"generated({self.seed}).all()"
        arrays = [
            f"{k} = {_array(a) if a.size <= MOST_ELEMENTS else f'{again}[{k!r}]'}"
            for k, a in {**self.parameters, **self.inputs}.items()
        ]
        args = ", ".join(f"Tensor({x})" for x in self.inputs)
        net = f"Net({', '.join(self.parameters)})"
        return "\n".join([
            f"# seed {self.seed}", "import numpy as np", "import ml_dtypes", "",
            "import tvmgraph as ms", "from tvmgraph import Tensor, jit, nn, ops",
            "from tests.fuzz.campaign import generated", "from tests.fuzz.programs import R",
            "", "", self.source(), *arrays, "ms.set_seed(1)",
            f"eager = {net}({args})", "ms.set_seed(1)",
            f"compiled = jit({net}, jit_level={level!r})({args})",
            "for e, c in zip(eager, compiled):", "    print(repr(e), repr(c), sep='\\n')",
        ])  # fmt: skip

    def all(self) -> dict[str, np.ndarray]:
        """Returns every array of the program by its name."""
        return {**self.values, **self.parameters, **self.inputs}

    def net(self) -> nn.Cell:
        """Returns a new Cell that runs the program."""
        return define(self.source())["Net"](*self.parameters.values())

    def arguments(self) -> list[Tensor]:
        """Returns new tensors of its inputs."""
        return [Tensor(a.copy()) for a in self.inputs.values()]

    def rows(self) -> set[str]:
        """Returns the rows that its steps were made from."""
        return {row for step in self.steps for row in step.rows}

    def without(self, position: int) -> Program | None:
        """Returns the program without a step; what it defined becomes inputs where it is read."""
        step = self.steps[position]
        steps = self.steps[:position] + self.steps[position + 1 :]
        before = {n for s in self.steps[:position] for n in s.defines} | set(self.inputs)
        read = {n for s in self.steps[position + 1 :] for n in s.reads} | set(self.outputs)
        lost = [n for n in step.defines if n in read and n not in before]
        if any(n.startswith("self.") for n in lost):
            return None
        inputs = {**self.inputs, **{n: self.values[n] for n in lost}}
        return replace(self, steps=steps, inputs=inputs).trimmed()

    def with_input(self, name: str) -> Program:
        """Returns the program with an argument instead of a parameter."""
        steps = tuple(
            replace(
                s,
                code=re.sub(rf"self\.{name}\b", name, s.code),
                reads=tuple(name if r == f"self.{name}" else r for r in s.reads),
                defines=tuple(name if d == f"self.{name}" else d for d in s.defines),
            )
            for s in self.steps
        )
        kept = {k: a for k, a in self.parameters.items() if k != name}
        inputs = {**self.inputs, name: self.parameters[name]}
        return replace(self, steps=steps, inputs=inputs, parameters=kept).trimmed()

    def decides(self) -> bool:
        """Whether tensors decide what is executed: a derivative has the parts that are not, too."""
        return any(re.search(r"^(if|while) |break", s.code, re.MULTILINE) for s in self.steps)

    def trimmed(self) -> Program:
        """Returns the program without arguments and parameters that nothing reads."""
        text = "\n".join(s.code for s in self.steps) + " " + " ".join(self.outputs)
        words = set(re.findall(r"\w+", text))
        inputs = {k: a for k, a in self.inputs.items() if k in words}
        parameters = {k: a for k, a in self.parameters.items() if f"self.{k}" in text}
        return replace(self, inputs=inputs, parameters=parameters)


_modules = itertools.count()


def define(source: str) -> dict[str, Any]:
    """Executes source code so that it can be captured; returns its names."""
    name = f"<program {next(_modules)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    module = types.ModuleType(name)
    module.__dict__.update(ms=ms, nn=nn, ops=ops, Tensor=Tensor, np=np, R=R)
    sys.modules[name] = module
    exec(compile(source, name, "exec"), module.__dict__)
    return module.__dict__


def forget() -> None:
    """Drops what :func:`define` registered."""
    for name in [n for n in sys.modules if n.startswith("<program ")]:
        del sys.modules[name]
        linecache.cache.pop(name, None)


class _Rows(types.SimpleNamespace):
    """The function of every row, by its name in the table."""


R = _Rows(**{name: op.fn for name, op in OPS.items()})


def _array(a: np.ndarray) -> str:
    kind = f"ml_dtypes.{a.dtype}" if a.dtype.kind == "V" else f"np.{a.dtype.name}"
    kind = "ml_dtypes.bfloat16" if a.dtype.name == "bfloat16" else kind.replace("np.bool", "bool")
    wide = a.astype(np.float64) if a.dtype.name == "bfloat16" else a
    values = str(wide.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
    return f"np.array({values}, {kind}).reshape({a.shape})"


# ---- what samples of rows give ------------------------------------------------------------------


def literal(value: Any) -> str:
    """Returns the source of an attribute.

    Raises:
        ValueError: There is none.
    """
    if isinstance(value, dtypes.DType):
        return f"ms.{value.name.rstrip('_')}" if value.name != "bool" else "ms.bool_"
    if value is None or value is Ellipsis or isinstance(value, (bool, int, str)):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if np.isfinite(value) else f"float({str(value)!r})"
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(literal, value)) + ("," if len(value) == 1 else "")
        return f"({inner})" if isinstance(value, tuple) else f"[{inner.rstrip(',')}]"
    if isinstance(value, slice):
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    raise ValueError(value)


def _templates() -> dict[str, list[Case]]:
    """Samples by row, of the rows that a compiled program of one process may use."""
    found: dict[str, list[Case]] = {}
    for case in all_cases():
        op = case.op
        if op.name in _LEFT_OUT or isinstance(op.lower, Reason) or op.regions:
            continue
        if op.fn.__module__.startswith(_COLLECTIVE):
            continue
        try:
            literal(tuple(case.sample.attrs.values()))
        except ValueError:
            continue
        sizes = [
            np.prod(np.shape(s) if isinstance(s, np.ndarray) else s) for s in case.sample.shapes
        ]
        if max(sizes, default=0) <= MOST_ELEMENTS:
            found.setdefault(op.name, []).append(case)
    return found


TEMPLATES = _templates()
