"""The smallest programs of any Python in which something differed from plain Python once."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.capture.any_python import MODES, compare
from tests.capture.test_fuzz import in_numpy
from tvmgraph import JitConfig, Tensor, jit, nn, ops
from tvmgraph.errors import CaptureError

#: The body of a function of ``x, y, n, o, items``.
MENDED = {
    "`:=` beside `and` in the test of a loop": """
        k = 0
        while (m := (x * k).abs().sum()) < 9 and k < 4: k += 1
        return m, k
    """,
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
    "an attribute is written beside a return that a tensor decides about": """
        k = 0
        while x.sum() < 9 and k < 1:
            k += 1
            if y[0] < 0.3: return x
            o.v += 1
        return x + 1
    """,
    "a list is changed on both sides of a return that a tensor decides about": """
        acc = [y]; known = {"k": acc}
        if x.sum() < 9:
            if x.sum() > 0:
                acc[0] = y + 1
                return known
            acc[0] = y * 3
        return known, acc
    """,
    "variables of the function around change beside a return that a tensor decides about": """
        m, d = y, {"k": y}
        def g(t):
            nonlocal m
            if t.sum() < 9:
                if t.sum() > 0:
                    m = d["k"] = t
                    return t
                m = t * 2
            return t + 1
        return g(x) + m, d
    """,
    "a list that was changed is one of two values": """
        acc = [y]
        if x.sum() > 0: acc[0] = y + 1; z = acc
        else: z = [x]
        return z[0], acc
    """,
    "a segment writes a variable before it reads it": """
        acc = []
        x = y + 0
        x[0] = x.sum().item()
        if y is y:
            acc = list({i: x for i in range(3) if i}.values())
            if len(acc) > 1: return x, y
        return x + x
    """,
    "the rest of a loop is recorded again for an attribute that it writes": """
        for i in range(2):
            if x.sum() > o.v: pass
            else: break
            x = x - 3
        else:
            o.last = y * 1
        return x
    """,
    "a generator closes before the function is called that gets its value": """
        return loud(next(gen(x * x * 0.1, 2)), SEEN)
    """,
    "a tensor decides which of two tensors a third one is": """
        z = x if x.sum() > 0 else y
        known = z is y, z is not x
        x[1] = 5
        z[0] = z[1] + 1
        if z is y: SEEN.append(1)
        return x, y, z, known, z is y
    """,
    "a tensor decides inside of a branch which tensor is written to": """
        z = x
        if x.sum() > 0:
            if y.sum() > 0: z = y
            elif x[0] > 0: z = y * 1
        else:
            z = o.last if y[0] > 0 else z
        z[0] = 4
        print(3)
        z[1] = 2
        return x, y, z, z is x, o.last
    """,
    "a list of a dict from outside is found, or made, and appended to": """
        TABLE.setdefault(f"k{n}", []).append(float(x.sum()))
        TABLE.setdefault("k", []).append(3)
        return x * len(TABLE)
    """,
    "what was stored outside changes afterwards": """
        row = [1]
        SEEN.append(row)
        TABLE["row"] = o.last = row
        for v in (x, y): row.append(float(v.sum()))
        TABLE["row"].append(2)
        return row, SEEN[-1] is row, TABLE.pop("row") is o.last
    """,
    "a container from outside is stored outside": """
        TABLE["items"] = items
        o.log = log = TABLE.get("log", [])
        print(x.sum().item())
        TABLE.pop("items").append(5)
        o.log.append(n)
        return items, log
    """,
    "two names of one tensor stay that after a branch": """
        p = q = x * 2
        if y.sum() > 0: p = q = y + 1
        p[0] = 9
        return p, q, p is q
    """,
    "the test of a loop writes a variable of the function around it": """
        n = 0
        def more(t):
            nonlocal n
            n += 1
            return t.sum() < 9 and n < 4
        while more(x): x = x + 1
        return x, n
    """,
    "a function that a loop calls writes variables of the function around it": """
        m, n = x * 0, 0
        def add(t):
            nonlocal m, n
            m, n = m + t, n + 1
        while x.sum() < 9:
            x = x + 1 + abs(y)
            add(x)
        return m, n
    """,
    "a statement binds the variable that it reads": """
        acc = [w := x, w := w + 1, float(w.sum())]
        return acc, w
    """,
    "a list from outside is repeated in place": """
        items *= 2
        return items, x
    """,
    "an array of an object is added to in place": """
        o.last = ARRAY
        o.last += n
        return x * float(ARRAY[0])
    """,
    "a generator from outside is sent a value": """
        if "g" not in TABLE:
            TABLE["g"] = gen(x, 90)
            next(TABLE["g"])
        return TABLE["g"].send(y) * 2
    """,
    "a thread runs a function that is defined here": """
        import threading
        acc = []
        def work(): acc.append(float(x.sum()))
        thread = threading.Thread(target=work)
        thread.start(); thread.join()
        return acc
    """,
    "asynchronous functions are defined and run": """
        import asyncio
        async def twice(t):
            for i in range(2):
                await asyncio.sleep(0)
                yield t * float(t.sum()) + i
        async def every(t): return [v * 2 async for v in twice(t) if v.sum() > 0]
        return asyncio.run(every(x + y)), every.__name__
    """,
    "a function asks who calls it": """
        import inspect
        z = x * 2
        return inspect.stack()[0].function, z
    """,
    "what is unpacked has more items than targets": """
        import itertools
        with Guard(ValueError): a, b = itertools.count()
        k = map(lambda t: SEEN.append(1) or t, [x, y, x, y])
        with Guard(ValueError): a, b = k
        return len(list(k))
    """,
    "an exception that is no Exception leaves after a print": """
        def leave(t):
            print("leaving")
            raise SystemExit(float(t.sum()))
        try: leave(x)
        except SystemExit as e: return e.code
    """,
    "a function that is defined here looks like one": """
        def g(t):
            "Doubles."
            return t * 2
        return isinstance(g, type(f)), type(g), g.__doc__, g.__qualname__, g(x)
    """,
    "a function is called with too few arguments": """
        try: return picky(x)
        except TypeError as e: SEEN.append(str(e))
        return x
    """,
    "objects end where Python ends them": """
        class Ending:
            def __init__(self, n): self.n = n
            def __del__(self): SEEN.append(("end", self.n))
        p = Ending(1)
        z = x * 2
        del p
        SEEN.append(float((z + y).sum()))
        return z
    """,
    "a slice of a list from outside is a new list": """
        acc = [4, x, "a", x * 2]
        if float(y.sum()) > 0: acc.reverse()
        known = acc[1:3], items[:1], acc.copy(), TABLE.get("l", [])
        known[1].append(n)
        return known, acc, items
    """,
    "a list of a class of its own stays one": """
        class Rows(list):
            def append(self, v): SEEN.append("row"); super().append(v)
        rows = Rows([x]); rows.append(y); rows += [n]
        return rows, rows[0] * 2, type(rows) is Rows
    """,
    "a recursion goes deeper than pieces do": """
        def deep(t, n): return t if n == 0 else deep(t + 1, n - 1)
        return deep(x, 120)
    """,
    "lambdas see what their variables become": """
        fs = []
        for i in range(3):
            if float(x.sum()) > i: fs.append(lambda t: t * i)
            else: fs.append(lambda t: t + i)
        scale = y
        known = [lambda: scale * 2, float(scale.sum())]
        if known[1] > 0: scale = x
        return [g(y) for g in fs], known[0](), i
    """,
    "a view of a dict sees what is added": """
        d = {"a": x * 2}; k = d.keys(); v = d.values()
        d["b"] = y
        if float(x.sum()) > 0: d["c"] = x + y
        return list(k), list(v), len(k)
    """,
    "every thread has attributes of its own": """
        import threading
        TABLE.setdefault("mine", threading.local())
        o.last = TABLE["mine"]
        o.last.n = getattr(o.last, "n", 0) + 1
        return x * o.last.n
    """,
    "a class notices every attribute that is asked for": """
        class Asked:
            def __init__(self, v): self.v = v
            def __getattr__(self, name):
                SEEN.append(name)
                raise AttributeError(name)
        p = Asked(x)
        x = p.v * float(y.sum())
        return x + p.v
    """,
    "a truth that a tensor decides is a key of a dict": """
        d = collections.defaultdict(list)
        for v in (x, y, x - y): d[bool(v.sum() > 0)].append(v)
        return d[True], d[False], [*d], len({bool(v.sum() > 0) for v in (x, y, -y)})
    """,
    "two tensors are one from the second iteration on": """
        k = c = 0
        while x.sum() < 9 and k < 6:
            k += 1
            if y is x: c += 1
            else: x = y = x + y
        return x, y, c
    """,
    "two tensors are one until the first iteration ends": """
        z, k, c = x, 0, 0
        while x.sum() < 90 and k < 4:
            k += 1
            if z is x: c += 1
            x = x + 1
        return x, z, c
    """,
    "a loop writes to a tensor that is the argument at first, and another variable later": """
        k = 0
        while x.sum() < 90 and k < 4:
            k += 1
            x[0] = x[1] + 1
            x = y = x + y
        return x, y
    """,
    "tensors that became one in a loop are written to after it": """
        k = 0
        while x.sum() < 90 and k < 4:
            k += 1
            x = y = x + y
        x[0] = 7
        return x, y, x is y
    """,
    "a loop may leave the argument, which is written to, as it is": """
        while x.sum() < 2:
            x = x + 1
        x[1] = 5
        return x
    """,
    "an object ends with its last name, whatever was read of it": """
        import weakref
        class Held: pass
        p = Held(); p.t = x * 2
        r = weakref.ref(p)
        z = r().t * float(x.sum())
        del p
        return z, r() is None
    """,
    "an object that compiled code took ends with its last name": """
        import weakref
        class Held: pass
        p = Held(); p.t = x; p.n = 2
        print(float(x.sum()))
        z = p.t * p.n + 1
        p.t = z * z
        r = weakref.ref(p)
        print(float(z.sum()))
        del p
        return z, r() is None
    """,
    "two names get one tensor in a branch, and Python goes on with them": """
        p, q = x, y
        if y.sum() > 0: p = q = x + 1
        else: p = x * 2
        p[0] = float(p.sum())
        return p, q, p is q
    """,
    "some of three names get one tensor in branches of branches": """
        p, q, r = x, y, x
        if y.sum() > 0:
            if x.sum() > 0: p = q = x + 1
            else: p = x + 2
        elif x.sum() > 1: q = r = y * 2
        print(float(x.sum()))
        q[1] = 4; r[0] = 1
        return p, q, r, p is q, q is r, p is r
    """,
    "items of a list become one tensor in a branch": """
        acc = [x, y]
        if x.sum() > 0: acc[0] = acc[1] = x + y
        print(float(x.sum()))
        acc[0][1] = 5
        return acc, acc[0] is acc[1]
    """,
    "a branch of a loop gives two names one tensor, and Python goes on with them": """
        p, q = x * 1, y * 1
        while p.sum() < 9:
            if y.sum() > 0: p = q = p + 1
            else: p = p + 2
            y = y + 1
        print(float(q.sum()))
        p[0] = 5
        return p, q, p is q
    """,
    "a loop that may leave the argument as it is, and Python writes to it": """
        a = x
        while x.sum() < 2: x = x + 1
        print(float(x.sum()))
        x[1] = 5
        return x, a is x
    """,
    "variables change places in a loop": """
        a, b, k = x, y, 0
        while y.sum() < 9 and k < 5:
            k += 1
            x, y = y, x
            x[0] = x[0] + 1
        x[1] = 4
        return x, y, x is a, y is b
    """,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", MENDED)
def test_programs_that_differed_once_equal_plain_python(name: str, mode: str) -> None:
    body = textwrap.indent(textwrap.dedent(MENDED[name]).strip(), "    ")
    with in_numpy():
        compare(f"def f(x, y, n, o, items):\n{body}\n", 1, ["pass"] * 5, mode)


def test_one_graph_for_a_loop_that_writes_to_a_copy() -> None:
    def written(x: Tensor) -> Tensor:
        while x.sum() < 9:
            x[0] = x[1] + 1
            x = x + 1
        x[0] = 5
        return x

    def copied(x: Tensor) -> Tensor:
        return written(x)

    def apart(x: Tensor) -> Tensor:
        x = x.copy()
        while x.sum() < 9:
            x[0] = x[1] + 1
            x = x + 1
        x[0] = 5
        return x

    strict = JitConfig(jit_syntax_level="STRICT")
    for refused in (written, copied):
        with pytest.raises(CaptureError, match=r"(?s)writing to.*x\.copy\(\)"):
            jit(refused, jit_config=strict)(Tensor([1.0, -1.0]))
    found = jit(apart, jit_config=strict)(Tensor([1.0, -1.0]))
    assert found.asnumpy().tolist() == apart(Tensor([1.0, -1.0])).asnumpy().tolist()


def test_choices_that_share_what_they_choose_between() -> None:
    """Looking at each way through them would take 2 ** 24 looks."""

    def f(x: Tensor, y: Tensor) -> Any:
        z = w = x
        for i in range(12):
            if x.sum() > i:
                z, w = w, z
            else:
                z = y
            if y.sum() > i:
                w = z
        return z, w, z is w, z is x

    x, y = Tensor([3.0, 4.0]), Tensor([1.0, 5.0])
    (a, b, *expected), (c, d, *found) = f(x, y), jit(f)(x, y)
    assert (a.asnumpy() == c.asnumpy()).all() and (b.asnumpy() == d.asnumpy()).all()
    assert [bool(v) for v in found] == expected


def _with_a_break(x: Tensor) -> Tensor:
    factor = x.sum().item()
    return (x * x).sum() * factor


@pytest.mark.parametrize("transform", [
    lambda f: ms.grad(f), lambda f: lambda x: ms.value_and_grad(f)(x)[1],
    lambda f: jit(ms.grad(f)), lambda f: lambda x: jit(ms.value_and_grad(f))(x)[1],
    lambda f: lambda x: jit(ms.jacrev(f))(x),
    lambda f: jit(lambda x: ms.vjp(f, x)[1](Tensor(1.0))[0]),
])  # fmt: skip
def test_derivatives_pass_graph_breaks(transform: Any) -> None:
    x = Tensor([1.0, 2.0])
    for _ in range(2):
        assert transform(_with_a_break)(x).asnumpy().tolist() == [6.0, 12.0]


def test_a_pullback_from_outside_is_called_by_python() -> None:
    _, pullback = ms.vjp(lambda x: (x * x).sum(), Tensor([1.0, 2.0]))
    assert jit(lambda v: pullback(v * 2)[0])(Tensor(1.0)).asnumpy().tolist() == [4.0, 8.0]
    with pytest.raises(CaptureError, match="outside the compiled function"):
        jit(lambda v: pullback(v * 2)[0], fullgraph=True)(Tensor(1.0))


def test_a_test_asks_for_a_truth_once() -> None:
    asked: list[str] = []

    class Known:
        def __init__(self, x: Tensor, label: str) -> None:
            self.x, self.label = x, label

        def __bool__(self) -> bool:
            asked.append(self.label)
            return self.x.sum().item() > 0

    def f(x: Tensor, n: int) -> Any:
        a, b, k = Known(x, "a"), Known(-x, "b"), 0
        if a and n > 0:
            x = x + 1
        if not (a or b) or (a and not b):
            x = x * 2
        y = x if a or b else -x
        while a and k < 2:
            k, a.x = k + 1, a.x - 1
        return x, y, k, b or 1

    inputs = [([1.0, 2.0], 1), ([-1.0, 0.5], 1), ([0.0, 0.0], 0), ([3.0, 1.0], 0), ([1.0, 2.0], 1)]
    compiled = jit(f)
    for values, n in inputs:
        results = []
        for function in (f, compiled):
            asked.clear()
            x, y, k, last = function(Tensor(values), n)
            results.append((x.tolist(), y.tolist(), k, type(last).__name__, list(asked)))
        assert results[0] == results[1]


class _Cache(nn.Cell):
    """Keeps what it saw in containers, as caches of keys and values do."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, Tensor] = {}
        self.log: list[int] = []

    def construct(self, x: Tensor, n: int) -> Tensor:
        if n % 6 == 0:
            self.rows.clear()
        self.rows["k"] = ops.concat((self.rows["k"], x), 0) if "k" in self.rows else x
        self.log.append(n)
        return ops.softmax(x @ self.rows["k"].T, -1) @ self.rows["k"] * len(self.log)


def test_what_differs_at_every_call_is_read_by_python() -> None:
    plain, net = _Cache(), _Cache()
    compiled = jit(net)
    counts = []
    for n in range(48):
        x = Tensor(np.full((1, 2), 1 + n % 3, np.float32))
        assert np.allclose(compiled(x, n).asnumpy(), plain(x, n).asnumpy(), rtol=1e-6)
        counts.append(compiled.compile_count)
    assert net.log == plain.log and list(net.rows) == list(plain.rows)
    assert counts[-1] == counts[23], "captured again at every call"
    assert "again and again because _Cache." in compiled.explain()


class Best(nn.Cell):
    """A Cell whose weight a segment gets as a variable and reads as an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = ms.Parameter(Tensor([1.0, 4.0]), name="weight")
        self.best = ms.Parameter(Tensor([2.0, 3.0]), name="best")

    def construct(self, x: Tensor) -> Any:
        weight = self.weight
        size = float(x.sum())
        ops.assign(self.best, ops.maximum(self.best, self.weight))
        return weight + size, self.weight, [self.weight]


def test_a_tensor_that_is_passed_and_read_as_well_is_returned_itself() -> None:
    cell = Best()
    f = jit(cell)
    for k in range(3):
        total, weight, (inner,) = f(Tensor([float(k), 1.0]))
        assert weight is inner is cell.weight
        assert total.tolist() == [2.0 + k, 5.0 + k]
    assert cell.best.tolist() == [2, 4]

    @jit
    def g(x: Tensor) -> Any:
        cell.best.set_data(x * 2)
        return x + 1, cell.weight

    assert g(cell.weight)[1] is cell.weight
    assert g(cell.weight)[1] is cell.weight


def _row_is_written(x: Tensor) -> Any:
    row = x[0]
    total = float(row.sum())
    row[1] = total
    return row


def _rows_in_a_list(x: Tensor) -> Any:
    rows = [x[i] for i in range(len(x))]
    print(x.sum())
    for row in rows:
        row[0] = 1
    return rows


def _row_of_rows(x: Tensor) -> Any:
    element = x[1:][0][-1:]
    n = x.asnumpy().size
    element[0] = n
    return x


def _of_its_own_tensor(x: Tensor) -> Any:
    y = x * 2
    part = y[:, 1]
    float(part.sum())
    part[0] = 7
    return y, part


@pytest.mark.parametrize("f", [_row_is_written, _rows_in_a_list, _row_of_rows, _of_its_own_tensor])
def test_a_slice_stays_a_view_behind_a_graph_break(f: Any) -> None:
    compiled = jit(f)
    for k in range(3):
        values = np.arange(6, dtype=np.float32).reshape(3, 2) + k
        x, same = Tensor(values.copy()), Tensor(values.copy())
        assert str(compiled(x)) == str(f(same))
        assert x.tolist() == same.tolist()


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_slice_that_compiled_code_returns_is_a_view(fullgraph: bool) -> None:
    table = Tensor(np.zeros((3, 2), np.float32))
    row = jit(lambda x, i: (x[i], table[:, i]), fullgraph=fullgraph)
    for i in range(2):
        x = Tensor(np.zeros((2, 2), np.float32))
        first, column = row(x, i)
        first[0], column[1] = 5, i + 1
        assert x[i].tolist() == [5, 0]
    assert table.tolist() == [[0, 0], [1, 2], [0, 0]]


def test_a_bare_slice_is_a_view_in_every_call() -> None:
    """Also in those that take the quick way of a repeated call."""
    table = Tensor(np.zeros((2, 2), np.float32))
    passed, read = jit(lambda x: x[:, 0]), jit(lambda: table[1])
    for i in range(5):
        x = Tensor(np.zeros((2, 2), np.float32))
        column, row = passed(x), read()
        column[1], row[0] = i, i + 1
        assert (x.tolist(), table.tolist()) == ([[0, 0], [i, 0]], [[0, 0], [i + 1, 0]])
