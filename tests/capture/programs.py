"""Random programs over tensors and Python values, for comparing compiled with plain Python."""

from __future__ import annotations

import random


class Program:
    """Writes the source of one random function ``f(x, y, n, o, items)``.

    Args:
        seed: Seed of all choices.
    """

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.lines: list[str] = []
        self.tensors = ["x", "y"]
        self.numbers = ["n", "o.v"]
        self.count = 0

    def source(self) -> str:
        """Returns the function's source."""
        self.lines = ["def f(x, y, n, o, items):", "    acc = []"]
        self.block(1, self.r.randint(2, 5), loop=False)
        names = ", ".join(sorted(set(self.tensors)))
        self.emit(1, f"return {names}, len(acc)" if self.r.random() < 0.7 else "return x")
        return "\n".join(self.lines) + "\n"

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def tensor(self) -> str:
        r = self.r
        a, b = r.choice(self.tensors), r.choice(self.tensors)
        return r.choice([
            f"{a} + {b}", f"{a} * 0.5", f"{a} - {r.choice(self.numbers)}", f"ops.tanh({a})",
            f"{a} * {b} * 0.1", f"({a} if {self.test()} else {b})", f"helper({a}, {b})",
            f"(lambda t: t + 1)({a})", f"ops.minimum({a}, {b})", f"sum([{a}, {b}], {a})",
        ])  # fmt: skip

    def test(self) -> str:
        r = self.r
        a = r.choice(self.tensors)
        return r.choice([
            f"{a}.sum() > {r.randint(-2, 2)}", f"n > {r.randint(0, 3)}",
            f"o.v == {r.randint(0, 2)}",
            f"{a}[0] < 0.3 and n < 3", f"not {a}.sum() > 1", f"-1 < {a}.mean() < 1",
            f"{a}.sum() > 0 or {r.choice(self.tensors)}.sum() < 0", "len(acc) > 1",
        ])  # fmt: skip

    def block(self, depth: int, count: int, *, loop: bool) -> None:
        for _ in range(count):
            self.statement(depth, loop=loop)

    def statement(self, depth: int, *, loop: bool) -> None:
        r = self.r
        kinds = ["assign"] * 4 + ["aug", "set", "append", "tuple"]
        if depth < 4:
            kinds += ["if", "if", "for", "while", "early", "nested"]
        if depth == 1:
            kinds += ["attribute", "items", "counter"]
        if loop:
            kinds += ["break", "continue"]
        getattr(self, "do_" + r.choice(kinds))(depth, loop)

    def do_assign(self, depth: int, loop: bool) -> None:
        self.emit(
            depth,
            f"{self.r.choice(['x', 'y', 'z'] if depth == 1 else self.tensors)} = {self.tensor()}",
        )
        if depth == 1:
            last = self.lines[-1].split("=")[0].strip()
            self.tensors = sorted({*self.tensors, last})

    def do_aug(self, depth: int, loop: bool) -> None:
        self.emit(depth, f"{self.r.choice(self.tensors)} {self.r.choice(['+=', '*='])} 0.5")

    def do_set(self, depth: int, loop: bool) -> None:
        name = self.r.choice(self.tensors)
        self.emit(depth, f"{name} = {name} + 0")
        self.emit(depth, f"{name}[{self.r.randint(0, 1)}] = {self.r.randint(0, 3)}")

    def do_append(self, depth: int, loop: bool) -> None:
        self.emit(depth, f"acc.append({self.r.choice(self.tensors)})")

    def do_tuple(self, depth: int, loop: bool) -> None:
        self.emit(depth, "x, y = y, x")

    def do_if(self, depth: int, loop: bool) -> None:
        self.emit(depth, f"if {self.test()}:")
        self.block(depth + 1, self.r.randint(1, 2), loop=loop)
        if self.r.random() < 0.5:
            self.emit(depth, "else:")
            self.block(depth + 1, 1, loop=loop)

    def do_for(self, depth: int, loop: bool) -> None:
        over = self.r.choice(["range(3)", "range(6)", "range(n)", "[x, y]", "enumerate(items)"])
        self.count += 1
        target = "i, _" if "enum" in over else f"i{self.count}"
        self.emit(depth, f"for {target} in {over}:")
        self.block(depth + 1, self.r.randint(1, 2), loop=True)
        if self.r.random() < 0.2:
            self.emit(depth, "else:")
            self.block(depth + 1, 1, loop=loop)

    def do_while(self, depth: int, loop: bool) -> None:
        self.count += 1
        k, limit = f"k{self.count}", self.r.randint(1, 8)
        self.emit(depth, f"{k} = 0")
        tensor = self.r.random() < 0.6
        test = f"x.sum() < 9 and {k} < {limit}" if tensor else f"{k} < {limit}"
        self.emit(depth, f"while {test}:")
        self.emit(depth + 1, f"{k} += 1")
        self.block(depth + 1, self.r.randint(1, 2), loop=True)

    def do_early(self, depth: int, loop: bool) -> None:
        self.emit(depth, f"if {self.test()}:")
        self.emit(depth + 1, f"return {self.r.choice(['x', 'y', 'x + y'])}")

    def do_nested(self, depth: int, loop: bool) -> None:
        self.count += 1
        name = f"g{self.count}"
        self.emit(depth, f"def {name}(t, s=0.5):")
        if self.r.random() < 0.5:
            self.emit(depth + 1, "if t.sum() > 0:")
            self.emit(depth + 2, "return t * s")
        self.emit(depth + 1, "return t - s")
        self.emit(depth, f"x = {name}({self.r.choice(self.tensors)})")

    def do_break(self, depth: int, loop: bool) -> None:
        self.emit(depth, f"if {self.test()}: break")

    def do_continue(self, depth: int, loop: bool) -> None:
        self.emit(depth, f"if {self.test()}: continue")

    def do_attribute(self, depth: int, loop: bool) -> None:
        self.emit(depth, self.r.choice(["o.v = n + 1", "o.last = x", "o.v += 1"]))

    def do_items(self, depth: int, loop: bool) -> None:
        self.emit(depth, self.r.choice(["items.append(n)", "items[0] = n", "items.extend([1, 2])"]))

    def do_counter(self, depth: int, loop: bool) -> None:
        self.emit(depth, "print('n is', n)")
