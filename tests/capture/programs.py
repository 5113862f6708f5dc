"""Random programs over tensors and Python values, for comparing compiled with plain Python."""

from __future__ import annotations

import random

HEADER = """
SCALE = 2
TABLE = {"a": 1, "b": 2.0}
SEEN = []

class Box:
    kind = 1
    def __init__(self, v, last):
        self.v, self.last, self.log, self.table = v, last, [], {"k": 1}
    def bump(self, by=1):
        self.v = self.v + by
        return self.v
    def keep(self, t):
        if t.sum() > 0:
            self.last = t
        else:
            self.last = -t
        return self.last
    @property
    def double(self):
        return self.v * 2

def helper(a, b):
    if a.sum() > b.sum():
        return a
    return b

def power(t, k):
    return t if k <= 0 else power(t * 0.5, k - 1)
"""


class Program:
    """Writes the source of one random function ``f(x, y, n, o, items)``.

    Args:
        seed: Seed of all choices.
    """

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.lines: list[str] = []
        self.tensors = ["x", "y"]
        self.numbers = ["n", "o.v", "SCALE", "o.double", "len(items)", "TABLE['a']", "o.kind"]
        self.count = 0
        self.writes_global = False

    def source(self) -> str:
        """Returns the module that defines the function."""
        self.lines = []
        self.block(1, self.r.randint(2, 6), loop=False)
        names = ", ".join(sorted(set(self.tensors)))
        result = f"return {names}, len(acc), o.v" if self.r.random() < 0.7 else "return x"
        head = ["def f(x, y, n, o, items):"]
        if self.writes_global:
            head.append("    global SCALE")
        return HEADER + "\n".join([*head, "    acc = []", *self.lines, "    " + result]) + "\n"

    def changes(self) -> list[str]:
        """Returns what happens to the outside between the calls."""
        choices = [
            "o.v += 1", "o.v = 5", "items.append(1)", "globals().update(SCALE=3)", "o.log.clear()",
            "TABLE.update(a=4)", "o.last = Tensor(np.array([1, 2], np.float32))", "Box.kind = 3",
            "items.clear()", "globals().update(helper=lambda a, b: a - b)", "pass", "pass",
        ]  # fmt: skip
        return [self.r.choice(choices) for _ in range(4)]

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def tensor(self) -> str:
        r = self.r
        a, b, k = r.choice(self.tensors), r.choice(self.tensors), r.choice(self.numbers)
        return r.choice([
            f"{a} + {b}", f"{a} * 0.5", f"{a} - {k}", f"ops.tanh({a})", f"{a} * {b} * 0.1",
            f"({a} if {self.test()} else {b})", f"helper({a}, {b})", f"(lambda t: t + 1)({a})",
            f"ops.minimum({a}, {b})", f"sum([{a}, {b}], {a})", "o.last * 1", f"o.keep({a}) * 1",
            f"power({a}, {r.randint(0, 3)})", f"{a} * TABLE['b']", f"[{a}, {b}][{r.randint(0, 1)}]",
            f"sum([t * i for i, t in enumerate(({a}, {b}))])", f"({a}, {b})[-1] + {k}",
            f"{a}[::-1]", f"dict(p={a}, q={b})['{r.choice('pq')}']", f"{a} + (y := {b})[0]",
        ])  # fmt: skip

    def test(self) -> str:
        r = self.r
        a, b = r.choice(self.tensors), r.choice(self.tensors)
        return r.choice([
            f"{a}.sum() > {r.randint(-2, 2)}", f"n > {r.randint(0, 3)}",
            f"o.v == {r.randint(0, 2)}", f"{a}[0] < 0.3 and n < 3", f"not {a}.sum() > 1",
            f"-1 < {a}.mean() < 1", f"{a}.sum() > 0 or {b}.sum() < 0", "len(acc) > 1",
            "SCALE > 2", "items and items[0] > 2", f"isinstance({a}, Tensor)", "'a' in TABLE",
            f"{a}.sum() > o.v", "o.double < 9", f"{a} is {b}", "hasattr(o, 'late')",
        ])  # fmt: skip

    def block(self, depth: int, count: int, *, loop: bool) -> None:
        for _ in range(count):
            self.statement(depth, loop=loop)

    def statement(self, depth: int, *, loop: bool) -> None:
        kinds = ["assign"] * 4 + ["aug", "set", "append", "tuple", "attribute", "print"]
        if depth < 4:
            kinds += ["if", "if", "for", "while", "early", "nested", "container"]
        if depth == 1:
            kinds += ["items", "shared", "fail", "attempt", "comprehension"]
        if loop:
            kinds += ["break", "continue"]
        getattr(self, "do_" + self.r.choice(kinds))(depth, loop)

    def do_assign(self, depth: int, loop: bool) -> None:
        name = self.r.choice(["x", "y", "z"] if depth == 1 else self.tensors)
        self.emit(depth, f"{name} = {self.tensor()}")
        if depth == 1:
            self.tensors = sorted({*self.tensors, name})

    def do_aug(self, depth: int, loop: bool) -> None:
        self.emit(depth, f"{self.r.choice(self.tensors)} {self.r.choice(['+=', '*='])} 0.5")

    def do_set(self, depth: int, loop: bool) -> None:
        name = self.r.choice(self.tensors)
        self.emit(depth, f"{name} = {name} + 0")
        index = self.r.choice(["0", "1", "-1", "1:", ":"])
        self.emit(depth, f"{name}[{index}] = {self.r.randint(0, 3)}")

    def do_append(self, depth: int, loop: bool) -> None:
        self.emit(depth, f"acc.append({self.r.choice(self.tensors)})")

    def do_tuple(self, depth: int, loop: bool) -> None:
        self.emit(depth, self.r.choice(["x, y = y, x", "x, *_ = y, x, y", "x = y = x + y"]))

    def do_if(self, depth: int, loop: bool) -> None:
        self.emit(depth, f"if {self.test()}:")
        self.block(depth + 1, self.r.randint(1, 2), loop=loop)
        if self.r.random() < 0.2:
            self.emit(depth, f"elif {self.test()}:")
            self.block(depth + 1, 1, loop=loop)
        if self.r.random() < 0.5:
            self.emit(depth, "else:")
            self.block(depth + 1, 1, loop=loop)

    def do_for(self, depth: int, loop: bool) -> None:
        over = self.r.choice([
            "range(3)", "range(6)", "range(n)", "[x, y]", "enumerate(items[:3])", "x",
            "zip((1, 2), (x, y))", "TABLE.items()", "reversed([1, 2])",
        ])  # fmt: skip
        self.count += 1
        pair = "enum" in over or "zip" in over or "items()" in over
        self.emit(depth, f"for {f'i{self.count}, _' if pair else f'i{self.count}'} in {over}:")
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
        if self.r.random() < 0.2:
            self.emit(depth, "else:")
            self.block(depth + 1, 1, loop=loop)

    def do_early(self, depth: int, loop: bool) -> None:
        self.emit(depth, f"if {self.test()}:")
        self.emit(depth + 1, f"return {self.r.choice(['x', 'y', 'x + y', 'x, y', 'o.v'])}")

    def do_nested(self, depth: int, loop: bool) -> None:
        self.count += 1
        name, writes = f"g{self.count}", depth == 1 and self.r.random() < 0.4
        self.emit(depth, f"def {name}(t, s=0.5, *rest, by=1):")
        if writes:
            self.emit(depth + 1, "nonlocal y")
        if self.r.random() < 0.5:
            self.emit(depth + 1, "if t.sum() > 0:")
            self.emit(depth + 2, "y = t * s" if writes else "return t * s")
        self.emit(depth + 1, "return t - s * by")
        arguments = self.r.choice(["", ", 2", ", s=3", ", 2, 3, by=2"])
        self.emit(depth, f"x = {name}({self.r.choice(self.tensors)}{arguments})")

    def do_break(self, depth: int, loop: bool) -> None:
        self.emit(depth, f"if {self.test()}: break")

    def do_continue(self, depth: int, loop: bool) -> None:
        self.emit(depth, f"if {self.test()}: continue")

    def do_attribute(self, depth: int, loop: bool) -> None:
        t = self.r.choice(self.tensors)
        self.emit(depth, self.r.choice([
            "o.v = n + 1", f"o.last = {t}", "o.v += 1", "o.bump()", f"o.keep({t})",
            f"o.log.append({t})", "o.table['k'] = n", "setattr(o, 'v', 3)",
        ]))  # fmt: skip

    def do_print(self, depth: int, loop: bool) -> None:
        self.emit(depth, self.r.choice([
            "print('n is', n)", "print(x)", "print('x', x.sum(), sep='=', end=';')",
            "print(f'{o.v:03d}')", "print()",
        ]))  # fmt: skip

    def do_items(self, depth: int, loop: bool) -> None:
        self.emit(depth, self.r.choice([
            "items.append(n)", "items[0] = n", "items.extend([1, 2])", "items.insert(0, 7)",
            "last = items.pop() if items else 0", "SEEN.append(n)", "items.sort(reverse=True)",
        ]))  # fmt: skip

    def do_shared(self, depth: int, loop: bool) -> None:
        self.writes_global = True
        self.emit(depth, self.r.choice(["SCALE = n + 1", "SCALE += 1", "SCALE = SCALE * 2"]))

    def do_container(self, depth: int, loop: bool) -> None:
        self.emit(depth, self.r.choice([
            "d = {'p': x, 'q': y}; d['p'] = d['q'] + 1; x = d['p']",
            "s = {1, 2}; s.add(n); x = x + len(s)", "acc[:] = []", "pair = (x, y); x, y = pair",
            "rows = [[x], [y]]; rows[0][0] = y; x = rows[0][0]", "acc += [x]",
        ]))  # fmt: skip

    def do_comprehension(self, depth: int, loop: bool) -> None:
        self.emit(depth, self.r.choice([
            "acc = [t * 2 for t in (x, y)]", "acc = list({i: x for i in range(3) if i}.values())",
            "x = sum(t for t in (x, y))", "acc = [a for a in acc]",
        ]))  # fmt: skip

    def do_fail(self, depth: int, loop: bool) -> None:
        self.emit(depth, self.r.choice([
            f"assert n < {self.r.randint(1, 3)}, 'too large'", "if n > 1: raise ValueError(n)",
            "items[9]", "x.reshape(7)", "TABLE['missing'] if n > 1 else 0",
        ]))  # fmt: skip

    def do_attempt(self, depth: int, loop: bool) -> None:
        if self.r.random() < 0.9:  # always refused
            return self.do_assign(depth, loop)
        self.emit(depth, "try:")
        self.emit(depth + 1, "x = x + 1")
        self.emit(depth, "finally:")
        self.emit(depth + 1, "x = x + 2")
