"""Writes ``docs/static_graph_syntax.md`` from the cases of the tests."""
# ruff: noqa: E501

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import numpy as np

from tests.capture.syntax_cases import REFUSED, SUPPORTED
from tvmgraph import Tensor, jit, ops
from tvmgraph.errors import TvmgraphError

HEAD = """# The language of compiled functions

`@jit` interprets user functions and the `construct` of user Cells over their syntax tree. Python
values are real: what they decide is settled while compiling, and guarded. What a tensor decides
becomes an `if_` or `while_` node of the graph with both branches, or test and body, as regions.
Code of tvmgraph and of libraries runs natively on symbolic tensors, and so does a function without
source text (`exec`, some lambdas) and a generator; there, a decision by a tensor is an error.

What cannot be a part of one graph is an error in strict code (`jit_syntax_level="STRICT"`, or
`fullgraph=True`) and runs with graph breaks otherwise, as in plain Python: the function's own code, run by
Python, in which every run of statements that can be compiled is the call of a compiled segment. A
statement that Python must run is split, so that only the operation stays in Python that must.
`fn.explain()` lists the segments and every statement that Python runs, with the reason, and
`fn.draw()` shows the source with its segments coloured. "Not supported" below is what strict code
refuses; LAX and PIJit run all of it.

| | STRICT, `fullgraph=True` | LAX (default) | PIJit (`capture_mode="bytecode"`) |
|---|---|---|---|
| what cannot be one graph | error with line and remedy | graph break | graph break |
| `if`, loops, `return` decided by a tensor | nodes of the graph | the same; a branch whose sides do not fit is decided by Python, between segments | as LAX |
| attributes, containers, `nonlocal`, `print`, `logging` | after the compiled part, in order; where a tensor decides only what fits a graph | exact | exact |
| `int`, `float` and `item()` of one element | numbers of the graph, which wrap around at 64 bits | those of Python | those of Python |
| `items[n]` of a list, a tuple or a `CellList`, by a tensor, and `items[n] = v` of a list | chooses one, the last one for a number that is too large | as in Python | as in Python |
| `x in [y, z]` of tensors | compares them as wholes | as in Python | as in Python |
| `print` of a tensor's text, f-strings, `asnumpy()`, NumPy | error | exact, in Python | exact, in Python |
| `global` | seen by the call only, warns once (`global_writes`) | written | written |
| `raise`, `assert` decided by a tensor | nodes of the graph, for exceptions of Python with one text at most; a side of a branch that raises does nothing else | those of Python | those of Python |
| exceptions, `try`, `with`, `yield`, classes, `match` | errors of the function itself; the rest is refused | those of Python | those of Python |
| clocks, files, random numbers of Python and NumPy | error | in Python, at every call | in Python, at every call |
| a Cell or function that Python calls | | compiled on its own, with graph breaks if it must | as LAX |
| code without source text | traced once; a decision by a tensor is an error | traced, or run by Python | as LAX |

LAX and PIJit differ in name only: MindSpore documents other limits for its bytecode mode, where a
fallback loses effects; here both are exact. A function that reads its own frame (`locals()`,
`eval`) runs in Python as a whole, with its Cells compiled. In the first calls, while a function is
still taken apart, an object may end later than in Python, and a traceback that the function itself
looks at may name it twice. An argument that the caller does not hold itself (`f(Thing(), x)`) ends when the call
returns, as under every decorator that passes `*args` on. Recursions deeper than 24 calls go on in
plain Python. An object that a segment was given, and that is no Cell, is kept with it.

Rules of a graph:

* Both sides of a branch give the same shapes and dtypes, and numbers of one class: `s = 0` before
  `if c: s = x.sum()` is a graph break, since Python may see an `int` or a tensor. Strict code takes
  the wider of two numbers, a 0-d tensor for a number beside a tensor, and sizes of which the
  condition decides, if both sides have one number of axes: such a tensor is a copy. A variable that only one side sets may not be read afterwards.
* A tensor that a branch chose is that tensor: after `z = x if c else y` the graph knows `z is x`,
  and what is written to `z` is written to `x` or `y`. A loop that a tensor ends gives new tensors.
* An axis, a shape or a number of copies may be a small tensor of integers that is passed: its
  elements are a constant of the graph, and others compile again (LAX leaves an operator to Python
  that gets a fifth, and `int(n)` at once). So may what ends a recursion, in strict code. What the function computes of other tensors is not known.
* What a loop carries keeps its shape, dtype and class (start with `0.0`, not `0`, what becomes a
  `float`). A Python number that a tensor decides, or that a loop changes, stays a Python number:
  fractions are of double precision, and with a tensor it is as weak as every number. What may
  raise for some of them (`a / n` and `a ** n` of numbers) is a graph break, and so is an integer
  that may outgrow 64 bits: one that a loop multiplies (`n = n * 3`), unless a remainder, a mask,
  `min`, an `if` or the end of the loop keeps it small. What only counts or adds up stays.
* Writes to attributes, closure variables and containers from outside, and `print`, happen after the
  compiled part of every call, in order. Where a tensor decides, an attribute or variable is merged
  like a local one (so it needs a value before), a container takes what both sides of a branch do to
  it, and `print` becomes a node of the graph. Parameters may be assigned anywhere; they stay
  leaves, through which no gradient flows. Calls of `logging` make their records after the compiled
  part, too.
* A tensor is no key of a dict and no member of a set: it is found by its identity, which differs
  from call to call. An object that the function makes may not be stored outside of it, and Cells
  from outside get no other members or settings. All of that is a graph break, or an error in
  strict code.
* What a class of containers overrides (`dict`, `list`, `UserDict`, `Counter`, ...) runs as its own code; what code in
  C or without source changes of what existed before the call is a graph break. A tensor of a class of
  the user's leaves its call to Python, and so does code that raised in three captures in a row, or calls such code.
* The text of a tensor (`str`, `repr`, `format`, `%`, f-strings) is not known in a graph: give the
  tensor itself to `print` or to a logger.
* What a library finds out about the world is guarded where that is cheap: variables of the
  environment (`os.environ`, `os.getenv`), `os.path.exists` and the like, the working directory, the
  process, the thread, context variables, levels of loggers, settings of NumPy and of this package.
  Other objects of the standard library from outside, such as a `ConfigParser`, are asked by Python.
  Clocks, random numbers of Python and NumPy, files, unique names and processes are errors in strict
  code: plain Python would give something else at every call. A generator that the function seeds
  itself gives constants.
* A function of `functools.lru_cache` and a `cached_property` run as in plain Python, once, and the
  graph takes the object that they return; every later call asks again. A number that differs
  from call to call is not remembered if the function only computes. Given a tensor of the call
  they are left to Python, and so are settings of the process (`np.seterr`, `ms.set_context`),
  `delattr`, and `object.__setattr__` of what existed before.
* First values of a Cell that the function makes are drawn anew at every call, as in eager code
  (MindSpore keeps those of the first call).
* A write to a global variable is repeated after every call; in strict code it is seen by the rest
  of the call only, and warns once. `jit(..., global_writes=...)` chooses: `"replay"` repeats it,
  `"warn"` keeps it inside, `"error"` refuses it, and
  `set_context(global_writes=...)` says what counts where `jit` does not.
* Everything that was read is guarded: globals, closure variables, attributes, methods, containers,
  the training mode. When something changes, the function is captured again and `explain()` says
  what changed; what changes at every call (a cache in a dict, a log in a list) is left to Python
  after a dozen captures, unless the code is strict. So is an argument that differs at every call
  (an object made for it, a text, an array) after two dozen. Of functions that are defined anew for
  a few calls each, methods of such objects, and such Cells, two dozen are captured at once, and
  later ones after eight calls. `jit(..., attr_guard=False)` switches guards off; so does
  `ms_function`, which keeps MindSpore's documented meaning: compiled once per kind of arguments, a
  changed attribute is not seen, and the first time a warning names it.

```python
class Func:
    def __init__(self):
        self.value = 5

    @ms.jit  # with @ms.ms_function both calls give 6
    def call(self):
        return self.value + 1

func = Func()
func.call()  # 6
func.value = 1
func.call()  # 2
```

This page is written by `python -m tests.capture.syntax_page`; a test runs every example.
"""


def define(name: str, source: str) -> Any:
    """Returns the function of a case, with a file name of its own."""
    file = name.replace(" ", "_").replace("/", "-") + ".py"
    text = source.lstrip("\n")
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"ops": ops, "__name__": "example"}
    exec(compile(text, file, "exec"), scope)
    return scope["f"]


def message(name: str, source: str) -> str:
    """Returns the error text of a refused case."""
    try:
        strict = jit(define(name, source), fullgraph=True)
        strict(Tensor(np.array([0.5, 0.25], np.float32)))
    except TvmgraphError as e:
        return str(e)
    raise AssertionError(f"{name!r} was not refused")


def page() -> str:
    """Returns the page."""
    parts = [HEAD, "## Supported\n"]
    parts += [f"### {name}\n\n```python\n{s.strip()}\n```\n" for name, s in SUPPORTED.items()]
    parts.append("## Not supported\n")
    for name, s in REFUSED.items():
        text = message(name, s)
        parts.append(f"### {name}\n\n```python\n{s.strip()}\n```\n\n```\n{text}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    (Path(__file__).parents[2] / "docs" / "static_graph_syntax.md").write_text(page())
