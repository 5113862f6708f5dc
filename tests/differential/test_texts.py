"""Text of tensors in compiled code: the value in the order of effects, at every call, or an error
that names the line and says what to do."""

from __future__ import annotations

import logging
import random
import re
from typing import Any

import numpy as np
import pytest

from tests.differential.harness import MANY, SEED, defined, in_numpy
from tvmgraph import Tensor, jit
from tvmgraph.errors import CaptureError

COUNT = 60 * MANY
HEADER = """
import logging, string, sys
log = logging.getLogger("differential")
SEEN = []
class Box:
    def __init__(self, value):
        self.value = value
    def __repr__(self):
        return f"Box({self.value})"
"""
#: Statements whose text is known only when the graph runs, and that have it then.
SHOWN = (
    "print({t})", "print('a', {t}, 3, sep='-')", "print([{t}, 1])", "log.info('%s', {t})",
    "log.warning('%s and %s', {t}, n)", "log.info('nothing')", "print('nothing', n)",
    "logging.warning('%s', {t})", "SEEN.append(n)", "print({{'a': {t}}})",
    "log.log(logging.ERROR, '%s', {t})", "log.debug('%s', {t})",
)  # fmt: skip
#: Statements that need the text itself.
REFUSED = (
    "SEEN.append('{{}}'.format({t}))", "SEEN.append(str({t}))", "SEEN.append(repr([{t}]))",
    "SEEN.append('%s' % ({t},))", "SEEN.append(f'{{{t}}}')", "print(str({t}))",
    "SEEN.append(format({t}))", "print(Box({t}))", "log.info(str({t}))", "log.info(f'{{{t}}}')",
    "sys.stdout.write(str({t}))", "SEEN.append(string.Template('$a').substitute(a={t}))",
    "SEEN.append(len(str({t})))", "log.info('%s', Box({t}))", "SEEN.append(str(Box({t})))",
    "x = x + 1 if '1' in str({t}) else x", "SEEN.append(', '.join(map(str, [{t}])))",
    "raise ValueError(str({t}))",
)  # fmt: skip


def source_of(seed: int, refused: bool) -> tuple[str, int]:
    """Returns a program, and the line of the statement that must be refused, if any."""
    r = random.Random(seed)
    lines = [r.choice(SHOWN) for _ in range(r.randint(1, 4))]
    at = r.randrange(len(lines) + 1)
    if refused:
        lines.insert(at, REFUSED[seed % len(REFUSED)])
    texts = [line.format(t=r.choice(["x", "(x * 2)", "x.sum()", "y"])) for line in lines]
    body = "".join(f"    {text}\n    y = y + x\n" for text in texts)
    line = HEADER.count("\n") + 2 + 2 * at
    return f"{HEADER}def f(x, y, n):\n{body}    return y\n", line


class World:
    """What a program prints, logs and notes."""

    def __init__(self, capsys: Any, caplog: Any) -> None:
        self.capsys, self.caplog = capsys, caplog

    def call(self, function: Any, names: dict[str, Any], seed: int) -> Any:
        rng = np.random.default_rng(seed)
        found: list[Any] = []
        for n in (1, 1, 2):
            names["SEEN"].clear()
            self.caplog.clear()
            x, y = (Tensor(v) for v in rng.uniform(-1, 1, (2, 3)).astype(np.float32))
            found.append(function(x, y, n).asnumpy().tolist())
            records = [(r.levelname, r.getMessage(), r.lineno) for r in self.caplog.records]
            found += [self.capsys.readouterr().out, records, list(names["SEEN"])]
        return found


@pytest.fixture
def world(capsys: Any, caplog: Any) -> World:
    caplog.set_level(logging.INFO)
    return World(capsys, caplog)


def test_what_is_shown_is_the_value_in_order_at_every_call(world: World) -> None:
    for seed in range(SEED, SEED + COUNT):
        source, _ = source_of(seed, refused=False)
        with defined(source) as names, in_numpy():
            wanted = world.call(names["f"], names, seed)
            found = world.call(jit(names["f"]), names, seed)
        for a, b in zip(wanted, found, strict=True):
            if a and isinstance(a, list) and isinstance(a[0], tuple):  # a module's has no line here
                a, b = ([r[:2] if "logging.w" in source or "log.log" in source else r for r in rs]
                        for rs in (a, b))  # fmt: skip
            assert a == b, f"seed {seed}\n{source}"


def test_text_that_code_needs_is_an_error_at_its_line(world: World) -> None:
    for seed in range(SEED, SEED + COUNT):
        source, line = source_of(seed, refused=True)
        with defined(source) as names, in_numpy(), pytest.raises(CaptureError) as e:
            world.call(jit(names["f"], fullgraph=True), names, seed)
        text = str(e.value)
        assert "text of a tensor" in text and "fix:" in text, f"seed {seed}\n{source}\n{text}"
        place = re.search(r"at:.*?:(\d+)", text)
        inside = HEADER.split("\n").index("    def __repr__(self):") + 2
        assert place and int(place[1]) in (line, inside), f"seed {seed}, {line}\n{source}\n{text}"


def test_in_pieces_text_is_python_s_own() -> None:
    def f(x: Tensor) -> str:
        return f"{x * 2}"

    run = jit(f, capture_mode="bytecode")
    assert [run(Tensor([v])) for v in (1.0, 2.0)] == ["[2.]", "[4.]"]


def test_a_tensor_decides_about_a_record() -> None:
    def f(x: Tensor) -> Tensor:
        if x.sum() > 0:
            logging.info("%s", x)
        return x

    with pytest.raises(CaptureError, match="logging where a tensor decides"):
        jit(f, fullgraph=True)(Tensor([1.0]))


def test_an_exception_carries_the_tensor() -> None:
    def f(x: Tensor) -> Tensor:
        if x.shape[0] > 1:
            raise ValueError("bad", x * 2)
        return x

    with pytest.raises(ValueError, match="bad") as e:
        jit(f)(Tensor([1.0, 2.0]))
    np.testing.assert_array_equal(e.value.args[1].asnumpy(), [2, 4])
