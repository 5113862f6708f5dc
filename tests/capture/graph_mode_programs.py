"""Small programs in the style of MindSpore's tests of graph mode; each has a function ``f``."""

#: What the programs share.
PRELUDE = """\
import contextlib
import dataclasses
from typing import NamedTuple

import numpy as np

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, nn, ops

K = 3


SCALE = Tensor(np.float32(2))


TABLE = {'a': 1, 'b': 2}


NAMES = ('p', 'q')


@contextlib.contextmanager
def ctx(l):
    l.append('in')
    yield 5
    l.append('out')


class Net(nn.Cell):

    def __init__(s):
        super().__init__()
        s.w = Parameter(Tensor(np.ones((2, 3), np.float32)), name='w')
        s.c = Parameter(Tensor(0, ms.int32), name='c', requires_grad=False)
        s.k = 0
        s.last = None

    def construct(s, x):
        s.k += 1
        s.last = x * 2
        setattr(s, 'z', s.k * 2)
        return (s.w * x + s.k, getattr(s, 'z'), s.last)


class PBranch(Net):

    def construct(s, x):
        if x.sum() > 3:
            s.w = s.w + 1
            s.c += 1
        else:
            ops.assign(s.w, s.w * 2)
        for _ in range(2):
            s.c = s.c + 1
        return (s.w * x, s.c)


class PLoop(Net):

    def construct(s, x):
        while s.c < 4:
            s.w += x
            s.c += 1
        return s.w


def _tr(x, n):
    if n <= 0:
        return x
    return _tr(x + n, n - 1)


@dataclasses.dataclass
class D:
    a: object
    b: int = 2

    def both(s):
        return s.a * s.b


class NT(NamedTuple):
    a: object
    b: int = 2


add = ops.MultitypeFuncGraph("add")


@add.register("Tensor", "Tensor")
def _tensors(a, b):
    return a + b


@add.register("Number", "Number")
def _numbers(a, b):
    return a * b


hm = ops.HyperMap(add)
"""
#: Programs by what they are about.
PROGRAMS: dict[str, str] = {
    "while with break and else": """
def f(x):
    n = 0
    while n < 6:
        if x.sum() > 20:
            break
        x = x * 2
        n += 1
    else:
        x = x - 1
    return (x, n)
""",
    "while with continue": """
def f(x):
    i = 0
    s = x * 0
    while i < 5:
        i += 1
        if i % 2 == 0:
            continue
        if x[0, 0] * i > 2:
            continue
        s = s + x * i
    return s
""",
    "nested while over tensors": """
def f(x):
    i = Tensor(0)
    t = x * 0
    while i < 3:
        j = Tensor(0)
        while j < i:
            t = t + x * j
            j = j + 1
        i = i + 1
    return (t, i)
""",
    "enumerate the rows of a tensor": """
def f(x):
    s = 0.0
    for i, row in enumerate(x):
        if row.sum() > 3:
            s = s + row.sum() * i
        else:
            s = s - row.max()
    return s
""",
    "zip of tensors": """
def f(x):
    s = x[0] * 0
    for a, b, c in zip(x, x + 1, range(5)):
        s = s + a * b - c
    return s
""",
    "range of a tensor": """
def f(x):
    n = (x > 0).sum()
    s = x * 0
    for i in range(n):
        s = s + i
    return s
""",
    "nested ranges of tensors": """
def f(x):
    n = ops.shape(x)[0]
    m = x[0, 1].astype(ms.int32)
    c = 0
    for i in range(m, n + m):
        for j in range(i):
            c = c + j
    return c + x
""",
    "starred loop target": """
def f(x):
    out = []
    for a, *r in [(x, 1, 2), (x + 1, 3)]:
        out.append(a * sum(r))
    return out
""",
    "dict methods": """
def f(x):
    d = {'x': x}
    d['y'] = x + 1
    d.update(z=x * 2)
    for k in list(d):
        d[k] = d[k] * len(k)
    v = d.pop('x')
    return (v, d['y'], len(d), sorted(d))
""",
    "dict item written in a branch": """
def f(x):
    d = {'v': x}
    if x.sum() > 3:
        d['v'] = d['v'] * 2
    else:
        d['v'] = -d['v']
    return d['v']
""",
    "list operators": """
def f(x):
    l = [x, x + 1]
    l += [x * 2]
    l[0] = l[-1]
    l = l[::-1]
    l.extend((x,))
    m = l * 2
    return (ops.stack(m), len(m), l.index(l[1]) if False else 0)
""",
    "tuple operators": """
def f(x):
    t = (x,) + (x + 1,)
    a, b = t
    t2 = t[1:] + t[:1]
    return (t2, a is t[0], len(t2))
""",
    "closures made in a loop": """
def f(x):

    def make(k):

        def g(v):
            return v * k + K
        return g
    fs = [make(i) for i in range(3)]
    for f in fs:
        x = f(x)
    return x
""",
    "lambda with all kinds of arguments": """
def f(x):
    f = lambda a, b=2, *c, **d: a * b + sum(c) + d.get('e', 0)
    return (f(x), f(x, 3, 4, 5, e=6), (lambda: x)())
""",
    "map, filter, sorted": """
def f(x):
    a = list(map(lambda v: v * 2, [x, x + 1]))
    b = list(filter(lambda i: i > 1, [1, 2, 3]))
    return a, b, max([1, 5, 2]), sorted([3, 1, 2], reverse=True)
""",
    "star arguments": """
def f(x):

    def g(*a, k=1, **kw):
        return sum(a) * k + kw['z']
    args = (x, x + 1)
    kw = {'k': 2, 'z': x}
    return g(*args, **kw)
""",
    "default arguments": """
def f(x, y=None, *, flag=True):
    if y is None:
        y = x
    return x + y if flag else x - y
""",
    "comprehensions with conditions": """
def f(x):
    a = [x * i for i in range(4) if i != 2]
    d = {k: x * v for k, v in TABLE.items() if v > 1}
    s = {i % 2 for i in range(5)}
    return (ops.stack(a), d['b'], len(s), sum((i * x for i in range(3))))
""",
    "nested comprehension": """
def f(x):
    return [[x[i, j] for j in range(2)] for i in range(2)]
""",
    "string formatting": """
def f(x):
    n = x.shape[0]
    s = f'{n:03d}-{NAMES[0]!r}-{x.dtype}'
    t = '%d %s' % (n, 'a')
    u = '{}:{}'.format(1, 2)
    return (x * len(s), s, t, u, s.upper().split('-')[0])
""",
    "isinstance": """
def f(x):
    r = 0
    for v in (x, 1, 'a', (1,), None):
        if isinstance(v, Tensor):
            r = r + v
        elif isinstance(v, (int, tuple)):
            r = r + 1
        elif v is None:
            r = r + 10
    return r
""",
    "conditional expressions": """
def f(x):
    return (x if x.sum() > 3 else -x) * (1 if x.ndim == 2 else 2) + (x.max() if x.min() < 0 else 0)
""",
    "chained comparison": """
def f(x):
    a = x.sum()
    if 0 < a <= 100 and (not (a == 7 or a > 50)):
        return x + 1
    return x - 1
""",
    "assignment expression": """
def f(x):
    if (n := x.sum()) > 3:
        x = x / n
    return ([(y := (x * 2)), y + 1], n)
""",
    "try and except": """
def f(x):
    try:
        y = x.reshape(7, -1)
    except (ValueError, RuntimeError, Exception):
        y = x
    return y * 2
""",
    "try and finally": """
def f(x):
    log = []
    try:
        log.append(1)
        y = x * 2
    finally:
        log.append(2)
    return (y, log)
""",
    "with": """
def f(x):
    l = []
    with ctx(l) as v:
        x = x * v
    return (x, l)
""",
    "assert": """
def f(x):
    assert x.ndim == 2, f'bad {x.ndim}'
    assert x.sum() < 1000, 'too large'
    return x
""",
    "raise": """
def f(x):
    if x.sum() < -100:
        raise ValueError('neg')
    if x.ndim != 2:
        raise TypeError(f'{x.ndim}')
    return x + 1
""",
    "raise that a tensor decides": """
def f(x):
    if x.sum() > 3:
        raise ValueError('pos')
    return x
""",
    "global constants": """
def f(x):
    return x * K + SCALE * len(NAMES) + TABLE['b']
""",
    "recursion by a number": """
def f(x):

    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)
    return x * fib(7)
""",
    "nested recursion by a number": """
def f(x):

    def f(v, n):
        if n <= 0:
            return v
        return f(v * 2, n - 1)
    return f(x, 3)
""",
    "recursion by a tensor": """
def f(x, n=Tensor(3)):
    return _tr(x, n)
""",
    "dataclass made inside": """
def f(x):
    d = D(x)
    d.b += 1
    return (d.both(), d.b)
""",
    "dataclass as argument": """
def f(d):
    return d.both() + 1
""",
    "NamedTuple as argument": """
def f(t):
    a, b = t
    return (t.a * b, t._replace(b=5).b, NT(a, 3))
""",
    "HyperMap and MultitypeFuncGraph": """
def f(x):
    return (hm(((x, x + 1), 2), ((x * 2, x), 3)), ops.HyperMap()(add, (x,), (x,)))
""",
    "grad and value_and_grad inside": """
def f(x):

    def f(v, k):
        return (v ** 2 * k).sum()
    return (ops.grad(f)(x, 3), ops.value_and_grad(f, 0)(x, 2.0))
""",
    "grad through control flow": """
def f(x):

    def f(v):
        s = v * 0
        for i in range(3):
            if v[0, 0] > i:
                s = s + v * v * i
            else:
                s = s - v
        while s.sum() < 5:
            s = s + ops.abs(v) + 1
        return s.sum()
    return ops.grad(f)(x)
""",
    "second derivative": """
def f(x):
    def inner(v):
        return ops.grad(lambda u: (u ** 3).sum())(v).sum()
    return ops.grad(inner)(x)
""",
    "vmap inside": """
def f(x):
    return ops.vmap(lambda a, b: (a * b).sum() + a.max(), in_axes=(0, None))(x, x[0])
""",
    "vmap of grad": """
def f(x):
    return ops.vmap(ops.grad(lambda a: (a * a * a).sum()))(x)
""",
    "writes to slices and masks": """
def f(x):
    y = x.copy()
    y[0, 1] = 5
    y[:, 0] = y[:, 2]
    y[y > 4] = 0
    y[1] += 1
    return y
""",
    "shape decides": """
def f(x):
    b, c = x.shape
    if b * c > 5:
        x = x.reshape(c, b)
    return (x.view(-1), x.size, x.shape)
""",
    "None in results": """
def f(x):
    r = None
    if x.ndim == 2:
        r = x * 2
    return (r, None)
""",
    "early return in a loop": """
def f(x):
    for i in range(4):
        if x.sum() > i * 10:
            continue
        if x.max() > 2:
            return x * i
    return x
""",
    "index of the first": """
def f(x):
    idx = -1
    for i in range(x.shape[1]):
        if x[0, i] > 1:
            idx = i
            break
    return idx
""",
    "bisection": """
def f(x):
    lo = Tensor(0.0)
    hi = Tensor(10.0)
    n = 0
    while hi - lo > 0.1 and n < 50:
        mid = (lo + hi) / 2
        if mid * mid > x.sum():
            hi = mid
        else:
            lo = mid
        n = n + 1
    return lo
""",
    "swap": """
def f(x):
    a, b = (x, x + 1)
    for _ in range(3):
        a, b = (b, a + b)
    return (a, b)
""",
    "functions in a dict": """
def f(x):
    acts = {'relu': ops.relu, 'abs': ops.abs}
    return [acts[n](x) for n in ('relu', 'abs')]
""",
    "nonlocal": """
def f(x):
    c = 0
    t = x * 0

    def inc(v):
        nonlocal c, t
        c += 1
        t = t + v
    for i in range(3):
        inc(x * i)
    return (c, t)
""",
    "a tensor chooses a function": """
def f(x):
    f = ops.relu if x.sum() > 3 else ops.abs
    return f(x)
""",
    "in": """
def f(x):
    return (2 in [1, 2, 3], 'a' in TABLE, x.shape[0] in (2, 4), [1] == [1])
""",
    "numbers in a loop": """
def f(x):
    s = 0
    for i in range(10):
        if i % 3 == 0:
            continue
        if i > 7:
            break
        s += i ** 2 // 2
    return (x * s, divmod(s, 3), round(s / 7, 2), abs(-s), bool(s))
""",
    "int, float, bool, item": """
def f(x):
    return (int(x.sum()) + 1, float(x[0, 0]) * 2, bool(x.sum() > 3), x.sum().item())
""",
    "dict with tuple keys": """
def f(x):
    m = {}
    for i in range(2):
        for j in range(2):
            m[i, j] = x[i, j] * 10
    return (m[0, 1] + m[1, 0], len(m))
""",
    "list built in a while": """
def f(x):
    out = []
    i = 0
    while i < 3:
        out.append(x * i)
        i += 1
    return out
""",
    "list grows where a tensor decides": """
def f(x):
    out = []
    for i in range(3):
        if x[0, i] > 0:
            out.append(x[0, i])
    return out
""",
    "list methods": """
def f(x):
    l = [1, 2, 3]
    l.pop(0)
    l.insert(1, x)
    l.remove(2)
    l.append(l[0])
    l.reverse()
    return l
""",
    "indexing": """
def f(x):
    return x[..., 1:], x[:, None], x[-1, ::2], x[Tensor([1, 0])], x[x > 1]
""",
}
#: Cells by what they are about, with their names in the prelude.
CELLS = {
    "attributes written": "Net",
    "Parameters written in a branch": "PBranch",
    "Parameters written in a loop": "PLoop",
}
#: What a program is called with beside the tensor, or in its place.
ARGUMENTS = {
    "recursion by a tensor": "(x, Tensor(3))",
    "dataclass as argument": "(D(x, 4),)",
    "NamedTuple as argument": "(NT(x, 4),)",
}
#: Programs that strict code refuses, with a part of what it says.
REFUSED = {
    "nested ranges of tensors": "may need more than 64 bits",
    "try and except": "`try` is not supported",
    "try and finally": "`try` is not supported",
    "with": "`with` is not supported",
    "list grows where a tensor decides": "a list becomes a list with 1 item on one side",
}
