"""Random programs of what cannot be one graph: every feature that runs with graph breaks, mixed."""

from __future__ import annotations

import itertools
from typing import Any

from tests.capture.any_features import CHANGES, SIMPLE, STATEMENTS, TENSORS, TESTS
from tests.capture.programs import Program

FEATURES = (*TENSORS, *TESTS, *STATEMENTS)


class AnyProgram(Program):
    """Writes the source of one function in which any statement of Python may stand.

    Args:
        seed: Seed of all choices; counts through the features, so that every one comes often.

    Attributes:
        used: The features that are in it.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.used: set[str] = set()
        self.depth = 0
        self.wanted = FEATURES[seed % len(FEATURES)]

    def source(self) -> str:
        """Returns the definition of the function ``f``; it stands below the features' header."""
        r = self.r
        lines = [self.statement_text(self.wanted)]
        lines += [self.statement_text() for _ in range(r.choice((0, 1, 1, 2)))]
        r.shuffle(lines)
        result = r.choice(("x, acc", "x, acc", "x, y, acc, o.v", "acc, {a}", "{t}", "x"))
        body = "\n".join([*lines, "return " + self.fill(result)])
        head = ["acc = []"] if "acc" in body else []
        if r.random() < 0.15:
            head.append("x = x + n")
        if "SCALE" in body:
            head.insert(0, "global SCALE")
        return f"def f(x, y, n, o, items):\n{_indented([*head, body])}\n"

    def statement_text(self, feature: str = "") -> str:
        """Returns a statement that uses a feature, or any."""
        r = self.r
        if not feature:
            if r.random() < 0.2 and self.depth < 2:
                return self._of_the_language()
            feature = r.choice([f for f in FEATURES if f not in TESTS])
        if feature in TENSORS:
            self.used.add(feature)
            value = self.fill(r.choice(TENSORS[feature]))
            return r.choice(("x = {}", "x = {} + 1", "y = {}", "acc.append({})")).format(value)
        if feature in TESTS:
            return self.fill("if {c}:\n{body}\nelse:\n{other}")
        self.used.add(feature)
        return self.fill(r.choice(STATEMENTS[feature]))

    def _of_the_language(self) -> str:
        """Returns a statement that could be part of a graph."""
        self.lines = []
        self.statement(0, loop=False)
        return "\n".join(self.lines)

    def fill(self, template: str) -> str:
        """Fills in what a template leaves open."""
        self.depth += 1
        values = {
            "a": self._name(),
            "b": self._name(),
            "n": self.r.choice(("n", "o.v", "2", "0.5", "len(items)")),
        }
        if "{t}" in template or "{u}" in template:
            values |= {"t": self._value(), "u": self._value()}
        if "{c}" in template:
            values["c"] = self._test()
        for name, by in (("body", 1), ("other", 1), ("deep", 2)):
            if "{" + name + "}" in template:
                values[name] = _indented([self._block()], by)
        self.depth -= 1
        return template.format(**values)

    def _name(self) -> str:
        return self.r.choice(("x", "x", "y"))

    def _value(self) -> str:
        r = self.r
        if self.depth > 2 or r.random() < 0.5:
            return f"({self.tensor()})"
        feature = r.choice([*TENSORS])
        self.used.add(feature)
        return f"({self.fill(r.choice(TENSORS[feature]))})"

    def _test(self) -> str:
        if self.r.random() < 0.4:
            return self.test()
        self.used.add("value")
        return self.fill(self.r.choice(TESTS["value"]))

    def _block(self) -> str:
        if self.depth > 1 or self.r.random() < 0.4:
            return self.fill(self.r.choice(SIMPLE))
        return self.statement_text()


def _indented(lines: list[str], by: int = 1) -> str:
    flat = itertools.chain.from_iterable(s.split("\n") for s in lines)
    return "\n".join("    " * by + line for line in flat)


def changes(program: Program) -> list[Any]:
    """Returns what happens to the outside between the calls."""
    return [*program.changes(), program.r.choice(CHANGES)]
