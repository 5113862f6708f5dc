"""Writes ``docs/static_graph_syntax.md`` from the cases of the tests."""

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

Rules:

* Both sides of a branch give the same shapes and dtypes; a Python number on one side becomes a 0-d
  tensor. A variable that only one side sets may not be read afterwards.
* What a loop carries keeps its shape and dtype. A Python number that a loop changes comes back as
  a Python number.
* Writes to attributes, closure variables and containers from outside, and `print`, happen after the
  compiled part of every call, in order. Where a tensor decides, an attribute or variable is merged
  like a local one (so it needs a value before), a container takes what both sides of a branch do to
  it, and `print` becomes a node of the graph. Parameters may be assigned anywhere; they stay
  leaves, through which no gradient flows. Calls of `logging` make their records after the compiled
  part, too.
* The text of a tensor (`str`, `repr`, `format`, `%`, f-strings) is not known in a graph: give the
  tensor itself to `print` or to a logger.
* What a library finds out about the world is guarded where that is cheap: variables of the
  environment (`os.environ`, `os.getenv`), `os.path.exists` and the like, the working directory, the
  process, the thread, context variables. Clocks, random numbers of Python and NumPy, files, unique
  names and processes are errors: plain Python would give something else at every call. With
  `jit(..., capture_mode="bytecode")` such a function runs as plain Python. A generator that the
  function seeds itself gives constants.
* First values of a Cell that the function makes are drawn anew at every call, as in eager code
  (MindSpore keeps those of the first call).
* A write to a global variable is seen by the rest of the call only; it warns once.
  `jit(..., global_writes="replay")` repeats it after every call, `"error"` refuses it, and
  `set_context(global_writes=...)` says what counts where `jit` does not.
* Everything that was read is guarded: globals, closure variables, attributes, methods, containers,
  the training mode. When something changes, the function is captured again and `explain()` says
  what changed. `jit(..., attr_guard=False)` switches that off; so does `ms_function`, which keeps
  MindSpore's documented meaning: compiled once per kind of arguments, a changed attribute is not
  seen, and the first time a warning names it.

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
        jit(define(name, source))(Tensor(np.array([0.5, 0.25], np.float32)))
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
