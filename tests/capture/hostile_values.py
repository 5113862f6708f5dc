"""Small hostile programs: tensors that are one, containers, texts, and the rest of the language."""
# fmt: off
# ruff: noqa: E501

from __future__ import annotations

#: By name: code of the module, the body of a function of ``x, y, n, o, items``, and what happens
#: to the module between two calls.
PROGRAMS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    'alias inplace': ("", '''
z = x
z += 1
w = x; w[0] = 9
a = y[:1]
y[0] = 5
return x, z is x, w is x, a, y
''', ()),
    'numpy view': ("", '''
a = x.asnumpy()
b = a[::-1]
c = a.copy(); c[0] = 100
x[0] = float(b[0])
t = Tensor(c) * 2
c[1] = -7
return t, x, b.copy(), Tensor(c)
''', ()),
    'numpy outside mutated': ("", '''
ARRAY[0] += float(x.sum())
t = Tensor(ARRAY.astype(np.float32))
ARRAY[1] = 3
return t * x, ARRAY.sum()
''', ('ARRAY[:] = 1', 'ARRAY[0] = 7', 'ARRAY = np.ones(2)',)),
    'inplace ops list': ("", '''
acc = [x, x]
acc[0] += 1
acc[1] *= 2
d = {"t": y}
d["t"] -= 1
o.last = y; o.last += 1
return acc, d, acc[0] is x, x, y, o.last is y
''', ()),
    'dict order': ("", '''
d = {}
for k, v in zip("bca", (x, y, x + y)):
    d[k] = v
    if v.sum() > 0: d.pop("b", None)
d["b"] = x
d |= {"c": 1}
e = dict(reversed(d.items()))
return list(d), list(e), d, {**e, "a": 0}
''', ()),
    'sets': ("", '''
s = {1, float(x.sum()), "a"}
s |= {n}
s -= {1}
f = frozenset([x.shape, y.shape])
return len(s), f, n in s, {x.shape: 1}[y.shape], x * len(s)
''', ()),
    'dataclass': ("", '''
@dataclasses.dataclass(order=True)
class R:
    k: float
    t: object = dataclasses.field(compare=False, default=None)
    rows: list = dataclasses.field(default_factory=list)
rs = sorted([R(float(x.sum()), x), R(float(y.sum()), y)], reverse=True)
rs[0].rows.append(x * 2)
a = dataclasses.replace(rs[0], t=y)
return a.t + rs[0].t, len(rs[1].rows), dataclasses.asdict(R(1.0, 2))
''', ()),
    'frozen dataclass': ("", '''
@dataclasses.dataclass(frozen=True)
class R:
    t: object
    k: int = 2
r = R(x * 2)
try: r.k = 3
except dataclasses.FrozenInstanceError as e: SEEN.append(str(e))
return r.t * r.k, repr(r)[:10]
''', ()),
    'namedtuple enum': ("", '''
import enum
class Color(enum.Enum):
    A = 1; B = 2
Pt = collections.namedtuple("Pt", "a b")
p = Pt(x, y)._replace(b=x * 2)
a, b = p
c = Color(n) if n else Color.A
return a + b * c.value, p._fields, c.name, p
''', ()),
    'itertools': ("", '''
a = list(itertools.chain([x], (y,)))
b = [p * q for p, q in itertools.product(a, a)]
c = {k: sum(v.sum() for v in g) for k, g in itertools.groupby(b, key=lambda t: float(t.sum()) > 0)}
d = list(itertools.islice(itertools.cycle(a), 3))
e = list(itertools.takewhile(lambda t: t.sum() > 0, a))
f2, g2 = itertools.tee(iter(a)); next(f2)
return b, list(c.items()), d, len(e), list(f2), list(g2), list(itertools.starmap(lambda p, q: p - q, zip(a, b)))
''', ()),
    'heapq bisect': ("", '''
h = []
for i, v in enumerate((x, y, x * y)):
    heapq.heappush(h, (float(v.sum()), i, v))
m = heapq.heappop(h)
keys = sorted(float(v) for v in x); bisect.insort(keys, 0.1)
return m[2] * 2, [k for k, *_ in sorted(h)], keys, heapq.nlargest(1, [1, 3])
''', ()),
    'logging': ("", '''
import logging
class H(logging.Handler):
    def emit(self, r): SEEN.append((r.levelname, r.getMessage(), r.funcName, r.lineno))
lg = logging.getLogger("hostile"); hd = H(); lg.addHandler(hd); lg.propagate = False
try:
    lg.warning("sum %s", x.sum())
    z = x * 2
    lg.error("z %.2f", float(z.sum()))
finally: lg.removeHandler(hd)
return z
''', ()),
    'f-strings': ("", '''
s = x.sum()
a = f"{x}|{s:.3f}|{s!r}|{n:>{n + 3}}|{float(s):+.1e}|{x.shape}"
print(a, f"{x.dtype}", sep="~", end="!")
b = "%s %5.1f" % (y, y.sum().item()) + "{0}-{1.shape}".format(n, x)
return a, b, x * len(b), f"{x=}"
''', ()),
    'type changes in loop': ("", '''
v = 0
out = []
for k in range(5):
    if k == 1: v = x
    elif k == 2: v = v.sum()
    elif k == 3: v = float(v)
    elif k == 4: v = [v, y]
    out.append(v)
return out
''', ()),
    'dtype changes in while': ("", '''
t = x; k = 0
while float(t.sum()) < 5 and k < 4:
    t = [t + 1, t.astype(ms.int32), t.astype(ms.float64), t.sum()][k] + 1
    k += 1
return t, k
''', ()),
    'while else': ("", '''
k = 0
while k < 3 + n:
    k += 1
    x = x + k
    if x.sum() > 6: break
else:
    x = -x; SEEN.append("else")
return x, k
''', ()),
    'for over changing list': ("", '''
todo = [x, y]
done = []
for t in todo:
    done.append(t)
    if len(todo) < 5 and t.sum() > 0: todo.append(t - 1)
return done, len(todo)
''', ()),
    'dict changed during iteration': ("", '''
d = {"a": x, "b": y}
try:
    for k in d:
        if d[k].sum() > -100: d[k + "2"] = d[k] * 2
except RuntimeError as e: SEEN.append(str(e))
return d
''', ()),
    'del in various': ("", '''
a = [x, y, x]; del a[1]
d = {"k": x, "j": y}; del d["k"]
t = x * 2
del t
o.tmp = y; z = o.tmp * 2; del o.tmp
return a, d, z, hasattr(o, "tmp")
''', ()),
    'global writes': ('''
COUNT = 0
LASTT = None
''', '''
global COUNT, LASTT
COUNT += 1
LASTT = x * COUNT
if LASTT.sum() > 0: COUNT += 1
return LASTT + COUNT
''', ('COUNT = 10', 'del LASTT', 'COUNT = 2.5',)),
    'shadow builtins': ('''
max = lambda a, b: 100
sum = sum
''', '''
global sum
len = lambda v: 7
z = x * len(x) + max(1, 2)
return z, sum([1, 2])
''', ("globals().pop('max')", 'sum = lambda v: 5', 'max = min',)),
    'bound methods': ("", '''
m = o.bump
a = m(2); b = m.__func__(o, 1)
k = o.keep
z = k(x) + k(y)
return a, b, z, m.__self__ is o, o.last
''', ()),
    'method swap': ('''
class A:
    def run(self, t): return t * 2
p = A()
''', 'return p.run(x) + y', ('A.run = lambda self, t: t + 1', 'p.run = lambda t: t * 10', 'del p.run', "p.__class__ = type('B', (A,), {'run': lambda self, t: -t})",)),
    'callable object': ('''
class C:
    def __init__(self): self.calls = 0
    def __call__(self, t):
        self.calls += 1
        return t * self.calls
c = C()
''', '''
z = c(x)
return c(z), c.calls
''', ('c.calls = 5', 'C.__call__ = lambda self, t: t - self.calls',)),
    'operators on object': ('''
class V:
    def __init__(self, t): self.t = t
    def __repr__(self): return "V"
    def __add__(self, o): return V(self.t + getattr(o, "t", o))
    def __sub__(self, o): return V(self.t - o)
    def __mul__(self, o): return V(self.t * getattr(o, "t", o))
    def __rmul__(self, o): SEEN.append("rmul"); return self.t * o
    def __rmatmul__(self, o): return self.t * o
    def __iadd__(self, o): SEEN.append("iadd"); self.t = self.t + o.t; return self
    def __eq__(self, o): return bool((self.t == o.t).all())
    def __hash__(self): return 1
    def __neg__(self): return -self.t
    def __invert__(self): return 5
    def __getitem__(self, i): return self.t[i]
    def __bool__(self): return bool(self.t.sum() > 0)
''', '''
a = V(x) + V(y) * 2 - 1
b = 3 @ a
a += V(y)
c = a == V(x)
return a.t, b, c, -a if n else ~a, a[0], bool(a), x * V(y) if n == 2 else 0
''', ()),
    'context var and decorator': ("", '''
@counted
def g(t): return t * 2
@functools.lru_cache(None)
def h(k): SEEN.append(k); return k + 1
with scaled(x) as w:
    z = g(w) + h(n) + h(n)
return z, g.__name__
''', ()),
    'iterator protocol': ("", '''
class It:
    def __init__(self, k): self.k = k
    def __iter__(self): return self
    def __next__(self):
        if self.k == 0: raise StopIteration
        self.k -= 1
        SEEN.append(self.k)
        return x * self.k
it = It(3)
a = next(it)
b = list(it)
return a, b, next(it, None), max(It(2), key=lambda t: float(t.sum()))
''', ()),
    'list methods with tensors': ("", '''
a = [x, y, x * 1]
a.insert(1, y * 2); a.extend([x]); a.reverse()
b = a.pop(0); a.remove(a[-1])
try: i = a.index(y)
except Exception as e: i = type(e).__name__
a.sort(key=lambda t: float(t.sum()))
return a, b, i if isinstance(i, (int, str)) else None, a[::2], a * 1, len(a)
''', ()),
    'comprehension scopes': ("", '''
k = 10
a = [k * t for k, t in enumerate((x, y))]
b = [[i * j * x for i in range(2)] for j in range(2)]
c = {k: v for k, v in zip("ab", (x, y)) if v.sum() > 0}
return a, b, c, k
''', ()),
    'zip strict and unpack errors': ("", '''
try: z = [p * q for p, q in zip([x, y], [x], strict=True)]
except ValueError as e: SEEN.append(str(e)); z = y
try: a, b, c = x
except (ValueError, IndexError) as e: SEEN.append(str(e))
return z * 2
''', ()),
    'print flush ordering': ('OUT = io.StringIO()', '''
print("a", x)
z = x * 2
print("b", float(z.sum()))
for t in (z, y): print(t.shape, end=" ")
print(*[1, 2], sep="-")
print(z if n else "none", file=OUT)
return z, OUT.getvalue()
''', ()),
    'string building': ("", '''
parts = []
for i, v in enumerate(x): parts.append(f"{i}:{float(v):.2f}")
s = ",".join(parts)
return s, x * len(s), s.split(",")[0].partition(":")[2], int(float(x[0])), str(n) * 2
''', ()),
    'integer conversion index': ("", '''
i = int(x.sum()) % 2
k = [10, 20][i]
r = list(range(k // 10))
t = x[i] * k
u = y[i:] if i else y[:1]
return t, u, r, (x, y)[i] * 2, "ab"[i]
''', ()),
    'object identity': ("", '''
a = [x]; b = a; c = list(a)
b += [y]
c += [x]
e = a == b, a is b, c is a, x is a[0], x is not y
t = (a, c)
t[0].append(n)
return a, c, e, t
''', ()),
    'default mutable': ('''
def g(t, acc=[]):
    acc.append(round(float(t.sum()), 2))
    return list(acc)
''', 'return g(x), g(y), len(g(x, []))', ('g.__defaults__[0].clear()', 'g.__defaults__ = ([5],)',)),
    'kwonly posonly star': ("", '''
def g(a, /, b, *c, d=1, **e): return a * b + sum(c) * d + len(e)
try: g(a=1, b=2)
except TypeError as e: SEEN.append(str(e))
return g(x, 2), g(x, y, 1, 2, d=3, z=1), g(*(x, 3), **{"a": 1})
''', ()),
    'global tensor mutated': ('T = Tensor(np.array([1, 2], np.float32))', '''
z = T + x
T[0] = float(z.sum())
return z, T * 1
''', ('T[1] = 9', 'T = Tensor(np.array([3, 3], np.float32))', 'T = T * 2',)),
    'nested exception context': ("", '''
try:
    try: {}["k"]
    except KeyError as e:
        z = x * 2
        picky(z, -100)
except ValueError as e:
    SEEN.append((type(e.__context__).__name__, e.__cause__))
    z = y
return z
''', ()),
    'assert messages': ("", '''
z = x * 2
assert n < 2, f"n {n} {float(z.sum()):.1f}"
assert z.sum() < 1e9
return z
''', ()),
    'warnings': ("", '''
import warnings
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("always")
    z = x * 2
    warnings.warn(f"careful {float(z.sum()):.1f}", stacklevel=1)
    z = z + 1
return z, [str(v.message) for v in w], [v.lineno for v in w]
''', ()),
    'system exit in finally': ("", '''
try:
    try:
        z = x * 2
        raise SystemExit(n)
    finally:
        SEEN.append("f")
        z = z + y
except SystemExit as e:
    return z, e.code
''', ()),
    'stop iteration leak': ("", '''
def g():
    yield x
    next(iter([]))
try: return list(g())
except RuntimeError as e: return str(e), type(e.__cause__).__name__
''', ()),
    'vararg mutation': ("", '''
def g(*a, **k):
    k["n"] = 1; a += (x,)
    return a, k
d = {"m": y}
a, k = g(y, **d)
return len(a), k, d
''', ()),
    'recursive structure': ("", '''
a = [x]
a.append(a)
d = {"a": a}; a.append(d)
return a[1][1][0] * 2, a[2]["a"] is a, len(a)
''', ()),
    'type() and isinstance': ("", '''
K = type("K", (), {"t": x, "m": lambda self: self.t * 2})
k = K()
return k.m(), isinstance(k, K), issubclass(K, object), type(k).__name__, type(x) is Tensor, isinstance(x, (int, Tensor))
''', ()),
    'cell in closure and params': ("", '''
net = NETS[0]
w = net.weight
z = net(x)
w[0] = 3
z = z + net(y) * w[1]
net.k = net.k + 1
return z + net(x), w is net.weight
''', ('NETS[0].k = 1', 'NETS[0].weight.set_data(Tensor([1.0, 1.0]))', 'NETS[0], NETS[1] = NETS[1], NETS[0]',)),
    'operator on none': ("", '''
z = x * 2
w = None
if y.sum() > 0: w = z
try: return z + w
except TypeError as e: return type(e).__name__, z
''', ()),
    'sorted stability and key errors': ("", '''
rows = [(float(v.sum()) > 0, i, v) for i, v in enumerate((x, y, x * 0))]
rows.sort(key=lambda r: r[0])
try: sorted([x, "a"], key=lambda v: v)
except TypeError as e: SEEN.append("te")
return [r[1] for r in rows], rows[0][2] * 2
''', ()),
    'pickle copy deepcopy': ("", '''
import copy
a = [x, {"t": y}]
b = copy.copy(a); c = copy.deepcopy(a)
a[1]["t"] = x * 2
c[0][0] = 50
return b[1]["t"], c, x
''', ()),
    'loop var after loop and nested break': ("", '''
for i in range(3):
    for j in range(3):
        x = x + i * j
        if x.sum() > 4: break
    else: continue
    break
return x, i, j
''', ()),
    'unbound after conditional': ("", '''
if x.sum() > 0: q = y * 2
try: return q
except UnboundLocalError as e: return str(e), x
''', ()),
    'threads local lock': ("", '''
import threading
lock = threading.Lock(); res = []
def w(t):
    u = t * 2
    with lock: res.append(float(u.sum()))
ts = [threading.Thread(target=w, args=(v,)) for v in (x, y)]
for t in ts: t.start()
for t in ts: t.join()
return sorted(res), x + len(res)
''', ()),
    'ternaries deep': ("", '''
z = (x if x.sum() > 0 else y) * (2 if n else x.sum()) + (1 if float(y.sum()) > 0 else (y if n > 1 else 0))
return z, "pos" if z.sum() > 0 else None
''', ()),
    'string keyed dispatch': ("", '''
table = {"a": lambda t: t * 2, "b": ops.tanh, "c": o.keep}
k = "abc"[int(abs(x).sum() * 4) % 3]
z = table[k](x)
return z, k, table["c"](y)
''', ()),
    'context manager rebinding self': ("", '''
class CM:
    def __init__(self): self.t = x
    def __enter__(self): self.t = self.t * 2; return self
    def __exit__(self, *a): self.t = self.t + 1
cm = CM()
with cm as c, cm as d:
    z = c.t + d.t
return z, cm.t, c is d
''', ()),
}
