"""The smallest programs of any Python in which something differed from plain Python once."""

from __future__ import annotations

import textwrap

import pytest

from tests.capture.any_python import MODES, compare
from tests.capture.test_fuzz import in_numpy

#: The body of a function of ``x, y, n, o, items``.
MENDED = {
    "a generator closes though a place that it came after was hoisted": """
        acc = [next(gen(o.keep(y) * 1, 2))]
        return x, acc
    """,
    "a generator in a with block closes before the block ends": """
        with scaled(x) as w:
            for v in gen(y, 3):
                x = x + v
                if bool(x.mean() > y.mean()): break
            x = w + 1
        return x
    """,
    "a generator closes where Python runs a segment's statements": """
        with Guard(ValueError), Guard():
            x = picky(x, 0)
            x = NETS[1](next(gen(o.keep(x) * 1, 2))) + x
        return x
    """,
    "a division by a number that varies raises though nothing reads the result": """
        with Guard(ZeroDivisionError):
            x = x + x * n
            1 / (n - 1)
        with Guard(ZeroDivisionError):
            x = x + x
            5 % (n - 1)
        return x
    """,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", MENDED)
def test_programs_that_differed_once_equal_plain_python(name: str, mode: str) -> None:
    body = textwrap.indent(textwrap.dedent(MENDED[name]).strip(), "    ")
    with in_numpy():
        compare(f"def f(x, y, n, o, items):\n{body}\n", 1, ["pass"] * 5, mode)
