"""Functions that cannot be one graph, written as users write Python.

Every function takes two tensors of two elements, and may change what is global here.
"""
# fmt: off
# ruff: noqa
# pyright: basic, reportGeneralTypeIssues=false

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import io
import itertools
import json
import re
from typing import Any

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, ops

COUNT = 0
LOG: list[Any] = []

def asnumpy(x, y):
    n = (x * 2).asnumpy(); n[0] = 7
    return Tensor(n) + y
def item(x, y): return x * y.sum().item()
def to_int(x, y): return x[int(y.sum()) % 2] * int(x.sum()), float(x.sum())
def printing(x, y):
    print("text", str(x + 1), repr(x.sum())); print(x); return x + y
def fstring(x, y): return f"{x.sum()} and {x!r:>30}", x * 2
def numpy_call(x, y): return Tensor(np.median((x * y).asnumpy())) + x, np.maximum(x.asnumpy(), 0).tolist()
def numpy_direct(x, y): return np.sum(x * 2), np.median(x + y)
def exp_call(x, y):
    z = np.exp((x * 2).asnumpy()); return Tensor(z) * y
class Ctx:
    def __init__(self, log): self.log = log
    def __enter__(self): self.log.append("in"); return self
    def __exit__(self, *e): self.log.append(("out", e[0].__name__ if e[0] else None)); return e[0] is KeyError
def with_block(x, y):
    with Ctx(LOG) as c:
        z = x * 2 + y
        c.log.append(round(float(z.sum()), 3))
        if z.sum() > 1: raise KeyError("k")
        z = z + 1
    return z, len(LOG)
def try_all(x, y):
    out = []
    for i in range(4):
        try:
            z = x * i
            if i == 1: continue
            if z.sum() > 3: raise ValueError(f"big {i}")
            w = 1 / (i - 2) if i != 3 else None
            out.append(z)
        except ZeroDivisionError as e: out.append(str(e)); 
        except ValueError as e: out.append(e.args); break
        else: out.append("else")
        finally: out.append("finally")
    return out
def raising(x, y):
    LOG.append("before"); z = x * 2
    LOG.append(z)
    if (z.sum() > 0): raise RuntimeError("tensor decides")
    return z
def gen_user(x, n):
    try:
        for i in range(n):
            x = x * 2 - i
            got = yield x
            if got is not None: x = x + got
    finally: LOG.append("closed")
def generators(x, y):
    tot = y
    for v in gen_user(x, 3):
        tot = tot + v
        if tot.sum() > 40: break
    g = gen_user(x, 3); a = next(g); b = g.send(y); g.close()
    return tot, a, b, sum(float(t.sum()) for t in gen_user(y, 2)), [t * 2 for t in gen_user(x, 2)]
def sets_dicts(x, y):
    d, s = {}, set()
    for i, t in enumerate([x, y, x + y]):
        d[f"k{i % 2}"] = t * i
        s |= {int(t.sum())}
        if t.sum() > 0: d["last"] = t
    d.update(z=x); d.pop("k0")
    return d, sorted(s), list(d.items())
def builtins_(x, y):
    l = [x.sum(), y.sum(), (x * y).sum()]
    return (max(l), min(l), sorted(l, key=lambda t: float(t)), all(t > 0 for t in l), any(t > 0 for t in l), abs(x), round(x.sum().item(), 2),
        list(map(lambda t: t * 2, l)), [t for t in filter(lambda t: t > 0, l)], list(zip(l, [1, 2, 3])), sum(l), len(x), list(reversed(l)))
def sort_plain(x, y): return sorted([x.sum(), y.sum()]), bool(x.sum()), divmod(x, 2)
def growth(x, y):
    out = []
    while x.sum() < 20:
        x = x * 1.5 + 1
        out.append(x.sum())
    return ops.stack(out), len(out)
def choose_fn(x, y):
    f = ops.tanh if x.sum() > 0 else (lambda t: t * 3)
    return f(x) + f(y)
def shapes(x, y):
    if x.sum() > 0: z = ops.concat([x, y])
    elif y.sum() > 0: z = x.astype(ms.int32)
    else: z = "text"
    return z
def carried(x, y):
    n = 0
    while n < 3 and x.sum() < 100:
        x = ops.concat([x, y + n]); n += 1
    h = x
    for i in range(2): h = h.astype(ms.float64) if i else h.sum()
    return x, h
@dataclasses.dataclass
class P:
    a: object; b: int = 0
class Obj:
    total = 0
    def __init__(self, v): self.v = v; self.hist = []
    def step(self, t):
        self.v = self.v + t; self.hist.append(float(t.sum())); Obj.total += 1; return self
    @property
    def mean(self): return self.v.mean()
    def __getitem__(self, i): return self.v[i]
    def __len__(self): return 3
def classes(x, y):
    o = Obj(x); o.step(y).step(x * 2)
    p = P(o.mean, len(o)); q = dataclasses.replace(p, b=5)
    return o.v, o.hist, o[0], q.a, q.b, isinstance(o, Obj), getattr(o, "nope", 4), type(p).__name__
def returns_any(x, y): return {1, 2}, P(x * 2, 3), Obj(y).v, re.compile("a+"), collections.OrderedDict(a=x), iter([1]).__next__(), np.float64(x.sum().asnumpy())
def globals_(x, y):
    global COUNT
    COUNT += 1; z = x * COUNT
    LOG.append(z.sum().item()); COUNT += int(z.sum() > 0)
    return z + COUNT
def nonlocals(x, y):
    n = 0; seen = []
    def add(t):
        nonlocal n
        n += 1; seen.append(float(t.sum())); return t * n
    a = add(x); b = add(y)
    return a + b, n, seen
def fact(x): return x if float(x.sum()) <= 1 else fact(x - 1) * x
def recursion(x, y): return fact(ops.abs(x) * 2 + 1)
def fib(t): return t if t < 2 else fib(t - 1) + fib(t - 2)
def recursion2(x, y): return fib(ops.abs(x.sum()).astype(ms.int32) % 6)
def index(x, y):
    l = ["a", "b", "c"]; i = (x.sum() > 0).astype(ms.int32)
    return l[i], l[int(i):], list(range(5))[i]
EXEC = {}
exec("def nosource(x, y):\n    n = float(x.sum())\n    return x * n if x.sum() > 0 else y\n", EXEC)
nosource = EXEC["nosource"]
def swap(x, y):
    x[0] = 5; z = x; z += 1; w = [x, z]; w[0][1] = 3
    a = b = [x]; a.append(float(y.sum())); b.append(2)
    return x, z is x, w, a is b, len(a)
def json_(x, y): return json.dumps({"v": x.tolist(), "s": float(y.sum())}), "%.2f" % x.sum().item(), "{:.1f}".format(y.sum().item())
def star(x, *args, **kw):
    a, *b = [x, *args]; d = {**kw, "n": int(x.sum())}
    return a, [t * 2 for t in b], d
def star_call(x, y): return star(x, *[y, x], k=y, **{"m": 3})
def matching(x, y):
    match int(x.sum()):
        case 0: r = x * 2
        case n if n > 0: r = y * n
        case _: r = x - y
    return r + 1
def chained(x, y): return 0 < x.sum() < 3 and y.sum() or "no", not x.sum(), x is y, x.shape == y.shape and x.sum() > 0
def walrus(x, y):
    if (n := float(x.sum())) > 0: return x * n
    return y * n, [m for t in (x, y) if (m := float(t.sum())) > 0]
def deletes(x, y):
    z = x + y; del x
    try: return x
    except UnboundLocalError as e: return str(e), z
def unbound(x, y):
    if float(x.sum()) > 0: q = x * 2
    LOG.append("u")
    return q + y
def loops(x, y):
    for i in range(3):
        for j in range(3):
            x = x + j
            if x.sum() > 10: break
            if j == 1: continue
            y = y * float(x.sum())
        else:
            y = y + 1
            continue
        LOG.append((i, j)); break
    else: y = y * 0
    while True:
        x = x - 1
        if float(x.sum()) < 0: break
    return x, y
def context_managers(x, y):
    out = io.StringIO()
    with contextlib.redirect_stdout(out): print("in", x.sum())
    with contextlib.suppress(ZeroDivisionError): x = x + 1; 1 / 0
    return out.getvalue(), x
def deque_(x, y):
    d = collections.deque(maxlen=2)
    for i in range(3): d.append(x * i)
    c = collections.Counter("aab"); c.update("b")
    return list(d), dict(c), functools.reduce(lambda a, b: a + b, [x, y, x]), list(itertools.accumulate([x, y]))
def assertion(x, y):
    assert x.sum() < 5, f"sum {x.sum().item():.1f}"
    return x * 2
def late(x, y):
    fs = [lambda t: t * i for i in range(3)]
    g = functools.partial(lambda a, b: a - b, y)
    return [f(x) for f in fs], g(x)
def sum_print(x, y):
    total = 0
    for k in range(3):
        loss = (x * y).sum() * k
        total += loss.item()
        print(f"{k}: {loss.item():.3f} {total:.3f}")
    return total


def functions() -> dict[str, Any]:
    """Returns the functions by name."""
    own = [f for f in globals().values() if getattr(f, "__module__", "") == __name__]
    plain = [f for f in own if getattr(f, "__code__", None) and f.__code__.co_varnames[:2] == ("x", "y")]
    return {f.__name__: f for f in [*plain, nosource]}
