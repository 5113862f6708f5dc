"""What random programs of any Python are made of: a module, and templates for its function.

In a template ``{a}`` and ``{b}`` are variables, ``{t}`` and ``{u}`` tensors, ``{n}`` is a number and
``{c}`` a condition; ``{body}`` and ``{other}`` are blocks, ``{deep}`` one that is further in.
"""
# fmt: off
# ruff: noqa

from __future__ import annotations

from tests.capture.programs import HEADER

ANY_HEADER = (
    HEADER
    + '''
import bisect, collections, contextlib, dataclasses, functools, heapq, io, itertools, json, math, operator, re, weakref
import tvmgraph as ms
from tvmgraph import Parameter, nn

class Net(nn.Cell):
    def __init__(self, k):
        super().__init__()
        self.k, self.weight, self.seen = k, Parameter(Tensor([1.0, -2.0]), name=f"w{k}"), []
    def construct(self, t):
        h = t * self.weight[:1] + self.k
        if self.k > 1:
            self.seen.append(round(float(h.sum()), 2))
        return ops.tanh(h)

class Checking(nn.Cell):
    def construct(self, t, n):
        if n > 1: raise ValueError(f"n is {n}")
        return ops.tanh(t) * n

NETS = [Net(1), Net(2)]
CHECK = Checking()
HEAP, QUEUE, ARRAY, IDS = [0.5], collections.deque([1]), np.zeros(2), itertools.count()

class Ending:
    def __init__(self, n): self.n = n
    def __del__(self): SEEN.append(("end", self.n))

class Slotted:
    __slots__ = ("v",)

SLOT = Slotted()
SLOT.v = 1

@dataclasses.dataclass
class Pair:
    a: object
    b: int = 0

class Point:
    made = 0
    def __init__(self, v): self.v = v; Point.made += 1
    def __add__(self, other): return Point(self.v + other)
    __radd__ = __add__
    def __getitem__(self, i): return self.v[i]
    def __len__(self): return 2
    def __iter__(self): yield self.v; yield self.v * 2
    def __bool__(self): return bool(self.v.sum() > 0)
    def __getattr__(self, name):
        if name == "late": return self.v + 1
        raise AttributeError(f"no {name}")
    def __call__(self, t): return t - float(self.v[0])
    @staticmethod
    def twice(t): return t * 2
    @classmethod
    def of(cls, t): return cls(t * 0.5)

class Guard:
    def __init__(self, *kinds): self.kinds = kinds
    def __enter__(self): SEEN.append("in"); return self
    def __exit__(self, kind, error, _):
        SEEN.append("out" if kind is None else f"{kind.__name__}: {error}")
        return kind is not None and issubclass(kind, self.kinds)

@contextlib.contextmanager
def scaled(t):
    SEEN.append("scaled")
    try: yield t * 2
    finally: SEEN.append("left")

def counted(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        SEEN.append(function.__name__)
        return function(*args, **kwargs)
    return inner

@counted
def loud(t, log=None):
    u = t * 2
    (SEEN if log is None else log).append(round(float(u.sum()), 3))
    return u * 0.25 + 1

def picky(t, k):
    if float(t.sum()) > k: raise ValueError(f"sum {t.sum().item():.2f}")
    return t - 1

def gen(t, k):
    try:
        for i in range(k):
            t = t * 0.5 + i
            got = yield t
            if got is not None: t = t + got
    finally:
        SEEN.append("closed")

def delegating(t):
    yield from gen(t, 1)
    return_value = yield t * 3
    if return_value is not None: yield return_value

def fact(t, k=0): return t if k > 2 or float(t.sum()) <= 1 else fact(t - 1, k + 1) * t

def pick(t): return ops.tanh if t.sum() > 0 else (lambda u: u * 3)

def star(a, *rest, k=1, **more): return sum(rest, a) * k + len(more)

def loss(a, b):
    h = ops.tanh(a) * b
    if float(h.sum()) > 0: h = h * a
    return (h * h).sum()

def early(t, k):
    for i in range(k):
        t = t + i
        if t.sum().item() > 2: return t, i
    return t, -1

EXEC = {"ops": ops}
exec("""def hidden(t):
    s = float(t.sum())
    return t * 2 if s > 0 else t - s
""", EXEC)
hidden = EXEC["hidden"]
STEP = functools.partial(star, k=2)
'''
)

#: Expressions whose value is a tensor like ``{a}``.
TENSORS: dict[str, tuple[str, ...]] = {
    "asnumpy": (
        "Tensor(({a} * 2).asnumpy())", "Tensor({t}.asnumpy()[::-1].copy())",
        "Tensor(np.array({a}.tolist(), np.float32))",
    ),
    "item": (
        "{a} * {b}.sum().item()", "{a} + {b}[0].item() * {n}", "{a} * float({b}[0])",
        "{a} - int({b}.sum() * 4)", "{a} * bool({b}.sum() > 0)", "{a} * round(float({b}.mean()), 1)",
    ),
    "numpy": (
        "Tensor(np.maximum({t}.asnumpy(), 0))", "{a} * float(np.median({b}.asnumpy()))",
        "Tensor(np.cumsum({a}.asnumpy())) + {b}", "{a} + Tensor(np.float32(np.sum({b} * 2)))",
        "{a} * math.floor(float({b}.sum()))", "Tensor(np.where({a}.asnumpy() > 0, 1, {b}.asnumpy()))",
    ),
    "builtins": (
        "max([{a}.sum(), {b}.sum()]) * {a}", "min({a}, {b}, key=lambda t: float(t.sum()))",
        "sorted([{a}, {b}], key=lambda t: t.sum().item())[0]", "abs({t})",
        "sum(map(lambda t: t * 2, ({a}, {b})), {a})", "sorted([{a}.sum(), {b}.sum()])[-1] + {a}",
        "{a} * all(t.sum() > 0 for t in ({a}, {b}))", "{a} * any([t > 0 for t in {b}])",
        "list(filter(lambda t: t.sum() > -9, ({a}, {b})))[0]", "{a} + len(list(zip({a}, {b})))",
        "functools.reduce(lambda p, q: p + q, ({a}, {b}))", "round({a}.sum().item(), 2) * {b}",
        "divmod({a}, 2)[1]", "next(iter([{a}, {b}]))", "pow({a}, 2)", "{a} + sum({b}.tolist())",
        "list(itertools.accumulate([{a}, {b}]))[-1]", "{a} + max(map(float, {b}))",
        "operator.mul({a}, float({b}[1]))", "list(reversed([{a}, {b}]))[0]",
    ),
    "index": (
        "[{a}, {b}][int({a}.sum()) % 2]", "[{a}, {b}][({a}.sum() > 0).astype(ms.int32)]",
        "{a}[int({b}.sum()) % 2] + {b}", "[{a}, {b}, {a}][({b}.sum() > 0).astype(ms.int32):][0]",
        "{{0: {a}, 1: {b}}}[int({a}.sum() > 0)]", "('p', {a}, {b})[1 + bool({a}[0] > 0)]",
    ),
    "chosen": (
        "(ops.tanh if {a}.sum() > 0 else ops.exp)({b} * 0.1)", "pick({a})({b})",
        "NETS[0 if {a}.sum() > 0 else 1]({b})", "NETS[int({a}.sum() > 0)]({t})",
        "getattr(ops, 'tanh' if float({a}.sum()) > 0 else 'exp')({b} * 0.1)",
        "{{True: ops.tanh, False: pick({b})}}[bool({a}.sum() > 0)]({a})",
    ),
    "cell": ("CHECK({t}, {n})","NETS[0]({a})", "NETS[1]({t}) + {b}", "NETS[1]({a} * {b}.sum().item())"),
    "callee": (
        "loud({a})", "loud({t}, SEEN)", "picky({a}, 3)", "fact({a})", "early({a}, 3)[0]",
        "star({a}, {b}, k={b}.sum().item())", "STEP({a}, {b}, q=1)", "star(*({a}, {b}), **dict(k=3))",
        "(lambda t, s=float({b}[0]): t * s)({a})", "loud(loud({a}))", "helper(loud({a}), {b})",
    ),
    "no source": ("hidden({a})", "hidden({t}) * {b}", "eval('t * 2', dict(t={a}))"),
    "generator": (
        "sum(gen({a}, 2), {b})", "[*gen({a}, 2)][-1]", "next(gen({t}, 2))",
        "sum(t * 2 for t in gen({a}, 2))", "list(delegating({a}))[-1]",
        "[t for t in ({a}, {b}) if float(t.sum()) > -9][0]", "{{i: t for i, t in enumerate(gen({a}, 2))}}[1]",
        "sum([t for t in ({a}, {b}) if t.sum() > 0], {a})", "{a} + len({{float(t) for t in {b}}})",
    ),
    "class": (
        "Point({a})[0] + {b}", "(Point({a}) + {b}).v", "sum(Point({a}))", "Point({t}).late",
        "Point.twice({a}) + len(Point.of({b}))", "Point({a})({b})", "dataclasses.replace(Pair({a}), b=3).a",
        "{a} if Point({b}) else {b}", "getattr(Point({a}), 'v')", "Pair({a}, int({b}.sum())).b * {a}",
        "getattr(Point({a}), 'nope', {b})", "{a} * isinstance(Point({b}), Point)", "Point({a}).nope",
    ),
    "gradient": (
        "ms.grad(lambda t: (t * t).sum())({a})", "ms.grad(loss, (0, 1))({a}, {b})[1]",
        "ms.value_and_grad(loss)({a}, {b})[0] + {a}", "ms.grad(loss)({a}, {b} * float({b}[0]))",
    ),
    "dtype": (
        "{a}.astype(ms.float64).sum().astype(ms.float32) + {b}", "{a}.astype(ms.int32) + {b}",
        "({a} if float({b}.sum()) > 0 else {a}.sum()) + {b}", "ops.concat([{a}, {b}])[:2]",
    ),
    "text": ("{a} * len(f'{{{b}}}')", "{a} + len(str({b}.sum() > 0))", "{a} * len('%.2f' % {b}.sum().item())"),
}

#: Conditions.
TESTS: dict[str, tuple[str, ...]] = {
    "value": (
        "{a}.sum().item() > {n}", "float({a}[0]) > 0", "int({a}.sum() * 2) % 2", "0 < {a}.sum() < 3",
        "{a}.asnumpy().max() > 1", "{a}.sum() > 0 and {b}.sum().item() < 1", "len(SEEN) % 2",
        "not {a}.sum()", "{a}.sum() or float({b}[0]) > 0", "np.any({a}.asnumpy() > 0.5)",
        "bool({a}.mean() > {b}.mean())", "(m := float({a}.sum())) > 0 and m < 2",
        "any(t > 0 for t in {a})", "isinstance({a}.sum().item(), float)", "{a} in ([],)",
        "float({a}.sum()) in (1.0, 2.0)", "hasattr({a}, 'nope')", "str({a}.dtype) == 'Float32'",
    ),
}

#: Statements; ``{body}`` and ``{other}`` are blocks.
STATEMENTS: dict[str, tuple[str, ...]] = {
    "print": (
        "print({a})", "print('sum', {a}.sum(), repr({b}))", "print(f'{{{a}.sum()}} {{{n}!r:>5}}')",
        "print('%.2f' % float({t}.sum()), end=';')", "print({a}.asnumpy(), {a}.shape)",
        "print(*{a}, sep=',')", "print({{'t': {a}}}, [{b}])",
    ),
    "format": (
        "SEEN.append(f'{{{a}.sum()}} and {{{b}!s:>30}}')", "SEEN.append('{{:.1f}}'.format({a}.sum().item()))",
        "SEEN.append(json.dumps(dict(v={a}.tolist())))", "SEEN.append(str({t}))",
        "SEEN.append(', '.join(str(t.item()) for t in {a}))",
    ),
    "with": (
        "with Guard():\n{body}", "with Guard(ZeroDivisionError) as g:\n{body}\n    1 / (n - 1)",
        "with scaled({a}) as w:\n{body}\n    x = w + 1", "with Guard(ValueError), Guard():\n    x = picky({a}, 0)\n{body}",
        "with contextlib.suppress(ValueError):\n    x = picky({t}, 0)\n{body}",
        "with contextlib.redirect_stdout(io.StringIO()) as out:\n    print({a})\nSEEN.append(out.getvalue())",
    ),
    "try": (
        "try:\n{body}\n    x = picky({t}, 1)\nexcept ValueError as e:\n    SEEN.append(str(e))\n{other}",
        "try:\n{body}\nfinally:\n{other}",
        "try:\n{body}\n    x = {a} * (1 / int({b}.sum()))\nexcept (ZeroDivisionError, KeyError):\n{other}\nelse:\n    y = {u}\nfinally:\n    SEEN.append('f')",
        "try:\n    x = {t}\n    x = undefined + {a}\nexcept NameError as e:\n    SEEN.append(e.args)\n{other}",
        "try:\n    try:\n        x = picky({a}, 0)\n    except ValueError as e:\n        raise KeyError({n}) from e\n    finally:\n{deep}\nexcept KeyError as k:\n    SEEN.append((str(k), str(k.__cause__)))",
        "try:\n    x = {a}.reshape(7)\nexcept Exception as e:\n    SEEN.append(type(e).__name__)\n{other}",
        "for k in range(3):\n    try:\n{deep}\n        if {c}: continue\n        x = picky({a} + k, 2)\n    except ValueError:\n        break\n    finally:\n        SEEN.append(k)",
        "try:\n    x = {t}; x[5] = 1\nexcept IndexError:\n{other}",
    ),
    "raise": (
        "if {c}: raise ValueError(f'{{{a}.sum()}}')", "if {c}: raise RuntimeError('stop')",
        "assert {c}, f'sum {{{a}.sum().item():.1f}}'", "x = picky({a}, 1)",
        "if {c}: raise StopIteration({n})",
    ),
    "containers": (
        "d = {{}}\nfor k, v in enumerate(({a}, {b}, {t})):\n    d[f'k{{k % 2}}'] = v\n    if v.sum() > 0: d['last'] = v\nacc += list(d.values())",
        "s = set()\nfor v in ({a}, {b}):\n    s |= {{int(v.sum())}}\n    s.add({n})\nacc += sorted(s)",
        "d = dict(p={a}); d.update(q={b}); x = d.pop('p') + d.setdefault('r', {b})\nacc.append(sorted(d))",
        "d = collections.defaultdict(list)\nfor v in ({a}, {b}, {t}): d[bool(v.sum() > 0)].append(v)\nacc += d[True]",
        "q = collections.deque(maxlen=2)\nfor k in range(3):\n    q.append({a} * k)\n    if {c}: q.appendleft({b})\nacc += list(q)",
        "rows = [[{a}], [{b}]]\nif {c}: rows[0].append({t})\nrows[-1] += rows[0]\nacc += rows[-1]",
        "c = collections.Counter(int(v * 2) for v in {a}); acc.append(sorted(c.items()))",
        "od = collections.OrderedDict(p={a}, q={b}); od.move_to_end('p'); acc += list(od)\nx = od['q']",
        "d = {{'n': {{}}}}\nd['n']['t'] = {t}\nd['n']['f'] = float(d['n']['t'].sum())\nacc.append(d)",
        "SEEN.append({a}); SEEN[-1] = SEEN[-1] * 2; x = SEEN.pop() + {b}",
        "TABLE['c'] = float({a}.sum()); x = x * TABLE.pop('c')",
        "for k in list(TABLE):\n    x = x * float(TABLE[k]) * 0.5\n    if {c}: TABLE[k] += 1",
    ),
    "growth": (
        "k = 0\nwhile x.sum() < 6 and k < 5:\n    k += 1\n    x = x * 1.5 + 1\n    acc.append(x.sum())",
        "k = 0\nwhile k < 4 and float(x.sum()) < 9:\n    k += 1\n    x = ops.concat([x, {b}])\nx = x[:2]",
        "h = {a}\nfor k in range(3):\n    h = h.astype(ms.float64) if k else h.sum()\n    acc.append(h)",
        "h = 0\nfor v in ({a}, {b}):\n    h = h + v\nacc.append(h)",
        "h = None\nfor k in range(3):\n    h = {t} if h is None else h * 2\nx = h",
        "parts = []\nwhile len(parts) < 5:\n    parts.append({a} + len(parts))\n    if {c}: break\nx = ops.stack(parts).sum(0)",
        "best, at = None, -1\nfor k, v in enumerate(({a}, {b}, {t})):\n    if best is None or v.sum() > best: best, at = v.sum(), k\nacc += [best, at]",
        "total = 0.0\nfor k in range(3):\n    l = (x * {b}).sum()\n    total += l.item()\n    if total > 2: break\nacc.append(total)",
    ),
    "branches": (
        "if {a}.sum() > 0: z9 = ops.concat([{a}, {b}])\nelif {b}.sum() > 0: z9 = {a}.astype(ms.int32)\nelse: z9 = 'text'\nacc.append(z9)",
        "if {c}: w9 = {t}\nelse: w9 = None\nif w9 is not None: x = w9",
        "if {c}: q9 = {t}\nSEEN.append('u')\nx = q9 + 1", "if {c}: return {{'x': {a}, 'n': {n}}}",
        "v9 = {a} if {c} else [{a}, {b}]\nacc.append(v9)", "v9 = 3 if {a}.sum() > 0 else 'no'\nacc.append(v9)",
        "v9 = {a}.sum() and {b}.sum() or 'no'\nacc.append(v9)", "if {c}:\n{body}\nelse:\n{other}",
        "match int({a}.sum()):\n    case 0: x = {t}\n    case k if k > 0:\n{deep}\n    case _: x = {u}",
        "match {a}:\n    case Tensor() if {c}: x = {t}\n    case _: acc.append('other')",
    ),
    "global": (
        "SCALE += 1; x = {a} * SCALE", "SCALE = int({a}.sum()); y = y + SCALE",
        "if {c}: SCALE = SCALE * 2", "SCALE = {t}; SEEN.append(SCALE.sum().item()); SCALE = 2",
    ),
    "nonlocal": (
        "m9 = 0; log9 = []\ndef add(t):\n    nonlocal m9\n    m9 += 1; log9.append(float(t.sum()))\n    return t * m9\nx = add({a}); y = add({b})\nacc += [m9, log9]",
        "m9 = {a}\ndef put(t):\n    nonlocal m9\n    if t.sum() > 0: m9 = t\n    return m9\nx = put({b}) + put({t})\nacc.append(m9)",
        "fs = [lambda t: t * k for k in range(3)]\nacc += [g({a}) for g in fs]",
        "fs = []\nfor k in range(2):\n    def g(t, k=k): return t + k * float(y.sum())\n    fs.append(g)\ny = {t}\nx = fs[0](x) + fs[1]({a})",
        "def rec(t, k): return t if k == 0 or t.sum() > 4 else rec(t + 1, k - 1)\nx = rec({a}, 3)",
    ),
    "generators": (
        "for v in gen({a}, 3):\n    x = x + v\n    if {c}: break", "g = gen({a}, 3); acc.append(next(g)); acc.append(g.send({b})); g.close()",
        "g = gen({a}, 1); next(g)\ntry: next(g)\nexcept StopIteration: SEEN.append('stop')",
        "w = gen({t}, 2); acc += [v.sum() for v in w if float(v.sum()) > 0]", "p, *q = gen({a}, 3)\nx = p + q[-1]",
        "acc += [w * float(v.sum()) for v in ({a}, {b}) for w in v]",
        "def local():\n    nonlocal x\n    for k in range(2):\n        x = x + {b}\n        yield x * k\nacc += list(local())",
    ),
    "classes": (
        "p = Point({a}); p.v = p.v + {t}; acc.append(p)", "p = Pair({a}); p.b += int({b}.sum()); acc.append(p)",
        "class Local:\n    base = {n}\n    def run(self, t): return t * self.base + float(t.sum())\nx = Local().run({a})",
        "o.v = o.v + int({a}.sum() > 0); o.last = {t}", "o.kind = float({a}.sum()); x = x * o.kind",
        "o.log.append({a}.sum().item()); x = x + len(o.log)", "o.table[int({a}.sum())] = {b}",
        "if {c}: del o.table['k']\nelse: o.table.setdefault('k', 5)", "o.other = Point({a}); x = o.other.v * 2",
        "Box.kind = Box.kind + 1; x = {a} * o.kind", "acc.append(o.double if {c} else o.bump())",
        "acc.append([type({a}).__name__, isinstance({a}, Tensor), callable({a})])",
        "acc.append(getattr(getattr(o, 'last'), 'shape')); setattr(o, 'v', int({a}.sum()))",
    ),
    "parameters": (
        "ops.assign(NETS[0].weight, NETS[0].weight * 0.5 + float({a}.sum()))", "NETS[0].weight[0] = {n}",
        "NETS[1].k = 2 + int({a}.sum() > 0)\nx = NETS[1]({b})", "NETS[1].weight += {a}.sum()\nx = NETS[1]({b})",
        "NETS[0].k = float({a}[0]); x = NETS[0]({t})", "NETS[1].seen.clear(); x = NETS[1]({a})",
    ),
    "in place": (
        "x = {a} + 0\nx[0] = {b}.sum().item()", "x = {t} + 0; w = x; w += 1; acc.append(w is x)",
        "x = {a} * 1\nfor k in range(2): x[k] = float(x.sum()) + k", "p9 = q9 = [{a}]; p9.append(float({b}.sum())); acc += [q9, p9 is q9]",
        "x = {a} + 0\nx[int({b}.sum()) % 2] = 3", "x, y = y, {t}", "x = y = {t}; x = x + 1", "x = {a} + 0; x[:1] += {b}[0]",
    ),
    "delete": (
        "w = {t}; del w\ntry: w\nexcept UnboundLocalError as e: SEEN.append(str(e))",
        "w = [{a}, {b}]; del w[0]; x = w[0]", "w = {t}; x = w; del w", "del x\nif {c}: x = {b}\nx = x + 1",
    ),
    "walrus": ("if (m := float({a}.sum())) > 0: x = x * m", "acc += [m for t in ({a}, {b}) if (m := float(t.sum())) > 0]",
               "while (m := float(x.sum())) < 3 and len(acc) < 4:\n    x = x + 1\n    acc.append(m)"),
    "outside": (
        "heapq.heappush(HEAP, float({a}.sum())); x = x + heapq.heappop(HEAP)", "QUEUE.append(n); QUEUE.appendleft(float({a}[0])); x = {t}",
        "bisect.insort(HEAP, n); x = {t}", "ARRAY[0] += 1; x = {a} * float(ARRAY[0]); ARRAY[1] = float({b}[0])", "x = {a} * next(IDS)",
        "SLOT.v += 1; x = {t} * SLOT.v", "operator.setitem(TABLE, 'c', n); x = {a} + TABLE.pop('c')", "list.append(SEEN, n); x = {t}",
        "list(map(SEEN.append, (n, {a}))); x = {t}", "list(map(print, ({a}, n))); x = {t}", "early.calls = getattr(early, 'calls', 0) + 1; x = {a} * early.calls",
        "acc += sorted(({a}, {b}), key=lambda t: SEEN.append(n) or t.sum())", "return {t}, SEEN, TABLE", "return {t}, QUEUE, HEAP, ARRAY",
        "setattr(SLOT, 'v', n); x = {t}", "SEEN.sort(key=str); SEEN[:1] = [n]; x = {t}; del SEEN[1:]", "globals()['SCALE'] = n; x = {t}",
    ),
    "ends": (
        "p = Ending(1)\nif n:\n{body}\np = Ending({n})\nSEEN.append('m')\nif {c}:\n{other}\np = None\nSEEN.append('l')",
        "for k in range(2):\n    p = Ending(k); x = x + k\n    if {c}: p = None\n    if n:\n{deep}\nSEEN.append('u')",
        "p, q = Ending('p'), Ending('q')\nx = {t}; p, q = q, p; p = {a}\nSEEN.append('m'); acc.append(p * 2)",
        "d = weakref.WeakValueDictionary(); p = d['a'] = Point({a})\nif n:\n{body}\nSEEN.append(sorted(d))\np = d['b'] = Point({b}); acc.append(sorted(d))",
        "p = Point({a}); r = weakref.ref(p, lambda _: SEEN.append('gone')); x = p.v * float({b}.sum())\np = {t}\nSEEN.append(r() is None)",
        "p = Point({a}); p.held = Ending({n})\nif n:\n{body}\np.held = None\nSEEN.append('h')\nx = p.v + 1",
    ),
    "leaving loops": (
        "for i in range(3):\n    for j in ({a}, {b}):\n        x = x + i * j\n        if {c}: break\n    else: continue\n    break",
        "for i in range(3):\n    x = x + i\n    if {c}: return x, i\n    else: continue",
        "k = 0\nwhile k < 3:\n    k += 1\n    for v in ({a}, {b}):\n        if v.sum() > k: continue\n        y = y + v\n        if {c}: break\n    else: x = x + 1\nelse: acc.append(k)",
        "def g(t):\n    k = 0\n    for i in range(3):\n        try:\n            t = t + 1; k += 1\n            if t.sum() > {n}: return t * 2\n            k += 10\n            return t - k\n        finally:\n            acc.append(k)\n            if {c}: continue\n    return t\nx = g({a})",
        "m9 = 2; g = (v * m9 for v in ({a}, {b})); m9 = {n}; acc.append(next(g)); m9 = 3; acc += list(g)",
        "it = iter([{a}, {b}, {t}])\nif {c}: x = next(it)\nelse: y = next(it) * 2\nacc += list(it)",
    ),
    "any object": ("return x, {{1, 2}}, Point({a}), np.float64({a}.sum().asnumpy()), re.compile('a+')",
                   "if {c}: return (t for t in [{a}]).__next__(), Pair({t})", "return lambda t: t, [{t}], b'x', ..., 1j"),
    "tensor": ("x = {t}", "y = {t}\nx = {u}", "z = {t}; acc.append(z)", "x = {t} * {a}"),
}

#: Short statements of blocks.
SIMPLE = (
    "x = {a} * 2", "x = x + {b}", "y = ops.tanh({t})", "acc.append({a})", "SEEN.append(n)",
    "x = {a} + float({b}[0])",
)

#: What happens to the outside between two calls.
CHANGES = (
    "NETS[0].weight.set_data(Tensor([2.0, 1.0]))", "globals().update(SEEN=list(SEEN))", "NETS.reverse()",
    "globals().update(TABLE=dict(TABLE), HEAP=list(HEAP))", "SEEN.clear()", "Net.construct = lambda self, t: t",
    "Point.late = 3", "globals().update(loud=ops.tanh)", "loud.__wrapped__.__defaults__ = ([],)", "ARRAY.fill(2)",
    "globals().update(picky=lambda t, k: t)", "QUEUE.clear()", "NETS[1].k = 1", "SLOT.v = 4",
)
