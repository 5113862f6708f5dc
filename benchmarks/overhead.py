"""What a cached call costs besides its kernels: ``python -m benchmarks.overhead``.

Every case is timed beside the eager call of the same code and, where PyTorch is installed, its
eager and compiled call. *guards* is the time to decide that compiled code may be reused; *call* is
everything, through TVM, on tensors so small that kernels take next to nothing; *more* is what a
branch or a break costs beyond the calls of kernels that the same work takes without it.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
import typer

from tvmgraph import Parameter, Tensor, jit, nn
from tvmgraph.jit.fast import MISS

_TARGETS = {
    "guards: 2 tensors": 1.5, "guards: Cell, 20 parameters": 2.0, "call: add 3 x 3": 4.0,
    "more: a tensor decides": 4.0, "more: one break": 6.0,
}  # fmt: skip


class Sums(nn.Cell):
    """Adds its parameters to the input.

    Args:
        count: How many parameters.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        for i in range(count):
            setattr(self, f"w{i}", Parameter(Tensor(np.ones(3, np.float32)), name=f"w{i}"))

    def construct(self, x: Tensor) -> Tensor:
        """Computes ``x + w0 + w1 + ...``."""
        for i in range(self.count):
            x = x + getattr(self, f"w{i}")
        return x


def plain(x: Any) -> Any:
    """Two operators, which become one kernel."""
    return (x + 1) * 2


def decided(x: Any) -> Any:
    """A tensor decides between two kernels."""
    return x + 1 if x.sum() > 0 else x - 1


def broken(x: Any) -> Any:
    """Two kernels with a statement between them that only Python runs."""
    y = x + 1
    time.perf_counter()
    return y * 2


def microseconds(call: Callable[[], Any], number: int = 5000, repeat: int = 7) -> float:
    """Returns the least mean time of a call."""
    call()
    return min(timeit.repeat(call, number=number, repeat=repeat)) / number * 1e6


def guards(function: Any, *args: Tensor) -> Callable[[], Any]:
    """Returns a call that only decides whether compiled code may be reused.

    It is the generated function of a cached call, cut off after its conditions.
    """
    for _ in range(3):
        function(*args)
    fast = function.fast_call
    space = dict(fast.__globals__)
    text = space["source"].split("\n")
    end = next(i for i, line in enumerate(text) if line.strip().startswith("except")) + 2
    exec("\n".join([*text[:end], "    return None"]), space)
    only = space["fast"]
    assert only(args) is not MISS
    return lambda: only(args)


def cases() -> list[tuple[str, float]]:
    """Measures everything; returns names with microseconds."""
    x, y = (Tensor(np.ones((3, 3), np.float32)) for _ in range(2))
    v = Tensor(np.ones(3, np.float32))
    add = jit(lambda a, b: a + b)
    found = [
        ("guards: 2 tensors", microseconds(guards(add, x, y))),
        ("call: add 3 x 3", microseconds(lambda: add(x, y))),
        ("eager: add 3 x 3", microseconds(lambda: x + y)),
    ]
    for count in (20, 100):
        net = jit(Sums(count))
        found += [
            (f"guards: Cell, {count} parameters", microseconds(guards(net, v))),
            (f"call: Cell, {count} parameters", microseconds(lambda net=net: net(v))),
        ]
    one, two = (microseconds(lambda f=f: f(x)) for f in (jit(lambda a: a + 1), jit(plain)))
    branch, split = (microseconds(lambda f=f: f(x)) for f in (jit(decided), jit(broken)))
    found += [
        ("call: a tensor decides", branch), ("more: a tensor decides", branch - two),
        ("call: one break", split), ("more: one break", split - 2 * one),
    ]  # fmt: skip
    return found + _torch()


def _torch() -> list[tuple[str, float]]:
    try:
        import torch
    except ImportError:
        return []
    torch.set_grad_enabled(False)
    x, y = torch.ones(3, 3), torch.ones(3, 3)
    functions: list[Any] = [lambda a, b: a + b, decided, broken]
    add, branch, split = [torch.compile(f) for f in functions]
    return [
        ("PyTorch eager: add 3 x 3", microseconds(lambda: x + y)),
        ("torch.compile: add 3 x 3", microseconds(lambda: add(x, y), 2000)),
        ("torch.compile: a tensor decides", microseconds(lambda: branch(x), 2000)),
        ("torch.compile: one break", microseconds(lambda: split(x), 2000)),
    ]


def main() -> None:
    """Prints a table."""
    for name, spent in cases():
        wanted = f"  (at most {_TARGETS[name]})" if name in _TARGETS else ""
        print(f"{name:<32} {spent:7.2f} us{wanted}")


if __name__ == "__main__":
    typer.run(main)
