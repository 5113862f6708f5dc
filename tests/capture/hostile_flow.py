"""Small hostile programs: exceptions, loops, generators, scopes, and what the standard library keeps."""
# fmt: off
# ruff: noqa: E501

from __future__ import annotations

#: By name: code of the module, the body of a function of ``x, y, n, o, items``, and what happens
#: to the module between two calls.
PROGRAMS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    'singledispatch': ('''
import functools
@functools.singledispatch
def g(v): return 1
@g.register
def _(v: int): return v * 2
@g.register(list)
def _(v): return len(v)
@g.register(Tensor)
def _(v): return v * float(v.sum())
''', 'return g(x) + g(n) + g([1]), g(None)', ('g.register(int, lambda v: 100)', "g.register(type(None), lambda v: 'none')",)),
    'lru_cache': ('''
import functools
@functools.lru_cache
def g(k): SEEN.append(k); return k + 1
''', 'return x * g(n) + g(2)', ('g.cache_clear()', 'pass',)),
    'cached_property': ('''
import functools
class A:
    def __init__(self): self.r = 2
    @functools.cached_property
    def p(self): SEEN.append("computed"); return self.r * 3
a = A()
''', '''
z = x * a.p
SEEN.append("p" in a.__dict__)
return z + a.p
''', ('del a.p', 'a.r = 5', "a.__dict__.pop('p')", 'a.p = 1',)),
    'partial reduce': ("", '''
p = functools.partial(star, x, k=2)
z = functools.reduce(lambda a, b: a * b, [x, y, x], p(y))
q = functools.partial(p, y, k=float(z.sum()) > 0)
return z, q(), q.args[0] is x, q.keywords
''', ()),
    'try finally return': ("", '''
def g(t):
    try:
        t = t * 2
        if float(t.sum()) > 0: return t
        t = t + 1
        return t - 5
    finally:
        SEEN.append("fin")
        if n == 2: return t * 100
return g(x), g(y)
''', ()),
    'finally overrides exception': ("", '''
for k in range(3):
    try:
        x = x + k
        if x.sum() > k: raise KeyError(k)
    finally:
        SEEN.append(k)
        if k == 1: continue
        if n == 0: break
else:
    SEEN.append("else")
return x
''', ()),
    'with suppress and return': ("", '''
class Sup:
    def __enter__(self): SEEN.append("enter"); return self
    def __exit__(self, *a): SEEN.append(str(a[0])); return True
with Sup():
    x = x * 2
    if y.sum() > 0: raise ValueError("inside")
    return x + 1
return x - 1
''', ()),
    'nested exitstack': ("", '''
with contextlib.ExitStack() as st:
    st.callback(SEEN.append, "cb1")
    z = x * 2
    st.callback(lambda: SEEN.append(float(z.sum())))
    z = z + y
    if float(z.sum()) > 1: raise RuntimeError("many")
return z
''', ()),
    'exception traceback line': ("", '''
z = x * 2
z = z + y
w = z[0]
if float(w) > -100:
    q = z.sum()
    raise ValueError(f"{n}")
return z
''', ()),
    'exception from op line': ("", '''
z = x * 2
w = z.reshape(
    (7, n)
)
return w
''', ()),
    'index error line': ("", '''
acc = [x * 2, y]
z = acc[0] + acc[1]
q = acc[n + 1]
return z + q
''', ()),
    'key error in nested': ("", '''
def g(d, k): return d[k] * 2
z = x + y
d = {0: z, 1: x}
return g(d, n) + g(d, n + 1 - (n > 1))
''', ()),
    'exception group': ("", '''
try:
    z = x * 2
    raise ExceptionGroup("g", [ValueError(1), TypeError(float(z.sum()))])
except* ValueError as e:
    SEEN.append(len(e.exceptions))
except* TypeError as e:
    SEEN.append(str(e.exceptions[0]))
return z + 1
''', ()),
    'reraise bare': ("", '''
try:
    try:
        picky(x, 0)
    except ValueError as e:
        SEEN.append(str(e)); y = y * 2
        raise
    y = y + 1
except ValueError as e2:
    SEEN.append(e2.__traceback__.tb_lineno > 0)
    return y
return y
''', ()),
    'chained compare side effects': ("", '''
def t(v, tag): SEEN.append(tag); return v
a = t(0, "a") < t(x.sum(), "b") < t(float(y.sum()), "c")
b = t(1, "d") < t(n, "e") <= t(2, "f") != t(3, "g")
return a, b, x * 2
''', ()),
    'bool short circuit': ("", '''
def t(v, tag): SEEN.append(tag); return v
a = t(x.sum() > 0, 1) and t(y, 2) or t(n, 3)
b = not t(x.sum(), 4) or t([], 5) or t(x, 6)
return a, b
''', ()),
    'walrus scopes': ("", '''
z = [w := x * k for k in range(2) if (m := float(x.sum())) > -9]
q = {(j := k): w + j for k in range(2)}
if (r := len(z)) > 1 and (s := y * r) is not None: x = s + m
return z, q, w, j, x
''', ()),
    'star unpack': ("", '''
a, *b, c = [x, y, x * 2, y * 2]
d, (e, *h), *_ = (1, (2, 3, 4), x, y)
[*g] = x
def v(*args, k=1, **kw): return sum(args) * k + len(kw)
return v(*b, *h, **{"k": 2, "z": 1}), a + c, [*b, *g], {**{"a": d}, "b": e}
''', ()),
    'match statement': ("", '''
class Pt:
    __match_args__ = ("a", "b")
    def __init__(self, a, b): self.a, self.b = a, b
def g(v):
    match v:
        case Pt(a, b) if b: return a * 2
        case {"k": t, **rest}: return t + len(rest)
        case [a, *rest]: return a * len(rest)
        case str() as s: return x + len(s)
        case int(k) | float(k): return x * k
        case None: return x
        case _: return v
return [g(v) for v in (Pt(x, y.sum() > 0), {"k": y, "z": 1}, [x, 1, 2], "abc", 3, 2.5, None, x)]
''', ()),
    'class body': ("", '''
class A:
    t = x * 2
    k = float(t.sum())
    items = [i * k for i in range(2)]
    def m(self): return self.t + self.k
    @classmethod
    def c(cls): return cls.t
    @staticmethod
    def s(v): return v + 1
class B(A):
    def m(self): return super().m() * 2
    def __init_subclass__(cls): SEEN.append(cls.__name__)
class C(B): pass
return B().m(), C.c(), A.s(y), [c.__name__ for c in C.__mro__]
''', ()),
    'metaclass': ("", '''
class M(type):
    def __call__(cls, *a): SEEN.append("call"); return super().__call__(*a)
    def __len__(cls): return 3
class A(metaclass=M):
    def __init__(self, t): self.t = t
return A(x).t * len(A)
''', ()),
    'nonlocal chain': ("", '''
c = 0; last = x
def a():
    nonlocal c
    def b(t):
        nonlocal c, last
        c += 1
        last = last + t * c
        return last
    return b
f1, f2 = a(), a()
f1(y); c = 10; f2(y)
z = f1(last) * c
return z, c, last
''', ()),
    'late binding loop': ("", '''
fs = []
for i in range(3):
    t = x * i
    fs.append(lambda v: v + t * i)
t = y
return [g(x) for g in fs]
''', ()),
    'generator two-way': ("", '''
def acc():
    total = 0
    while True:
        got = yield total
        if got is None: return total
        total = total + got
g = acc(); next(g)
a = g.send(x); b = g.send(y)
try: g.send(None)
except StopIteration as e: return a, b, e.value
''', ()),
    'generator throw': ("", '''
def gg():
    t = x
    while True:
        try: t = t + (yield t)
        except ValueError as e: t = t * float(str(e))
        except GeneratorExit: SEEN.append("exit"); raise
g = gg()
a = next(g); b = g.send(y); c = g.throw(ValueError("3")); d = g.send(1)
g.close()
return a, b, c, d
''', ()),
    'generator expression laziness': ("", '''
k = 1
g = (t * k for t in (x, y))
k = 5
return list(g), sum(v.sum() for v in (x, y) if v.sum() > 0)
''', ()),
    'yield from return value': ("", '''
def a():
    r = yield from b()
    yield r * 2
def b():
    yield x
    return y + 1
return [*a()]
''', ()),
    'async loop': ("", '''
import asyncio
class CM:
    async def __aenter__(self): SEEN.append("in"); return x * 2
    async def __aexit__(self, *a): SEEN.append("out")
async def work(t):
    async with CM() as v:
        await asyncio.sleep(0)
        return v + t
async def main(): return await asyncio.gather(work(x), work(y))
return asyncio.run(main())
''', ()),
    'recursion on tensor': ("", '''
def collatz(t, depth=0):
    SEEN.append(depth)
    if float(t.sum()) < 1 or depth > 5: return t
    return collatz(t * 0.5, depth + 1) + 1
def even(t, k): return t if k == 0 else odd(t * 2, k - 1)
def odd(t, k): return -t if k == 0 else even(t + 1, k - 1)
return collatz(x), even(y, 3)
''', ()),
    'iter consumed in branches': ("", '''
it = iter([x, y, x * 2])
if x.sum() > 0: a = next(it)
else: a = next(it) * 2
return a, list(it)
''', ()),
    'genexp consumed in branches': ("", '''
it = (t * 2 for t in (x, y, x))
if x.sum() > 0: a = next(it)
else: a = next(it) * 2
return a, list(it)
''', ()),
    'genexp any effects': ("", '''
a = any(SEEN.append(float(n)) or k > 0 for k in (0, n, 5))
b = all([SEEN.append(k) or k < 1 for k in range(3)])
c = any(SEEN.append(k) or k < 1 for k in range(3))
return a, b, c, x * 2
''', ()),
    'genexp partial error': ("", '''
g = (1 / k for k in (1, n, 0, 2))
a = next(g)
return x * a
''', ()),
    'map lazy': ("", '''
k = 1
g = map(lambda t: t * k, (x, y))
k = 3
f9 = filter(lambda t: t is not None, (t * k for t in (x, y)))
k = 4
return list(g), list(f9)
''', ()),
    'stdlib state': ('''
import threading, queue
EV = threading.Event(); QU = queue.Queue(); BUF = io.StringIO()
''', '''
EV.set(); QU.put(n); BUF.write(f"{n};")
z = x * QU.qsize()
print(float(z.sum()))
EV.clear()
return z, EV.is_set(), QU.get(), BUF.getvalue()
''', ('BUF.truncate(0)', 'QU.put(7)',)),
    'stdlib local state': ("", '''
import threading, queue
ev = threading.Event(); q = queue.SimpleQueue(); b = io.StringIO()
q.put(x * 2); q.put(y); b.write("a"); ev.set()
z = q.get() + 1
if ev.is_set(): z = z * 2
return z, b.getvalue(), q.empty()
''', ()),
    'parameter identity': ("", '''
net = NETS[0]
w = net.weight
z = net(x)
return z, w is net.weight, w is NETS[0].weight
''', ()),
    'parameter identity 2': ("", '''
net = NETS[0]
w = net.weight
w[0] = 3
return w is net.weight, x * w[0]
''', ()),
    'for else continue': ("", '''
for i in range(3):
    for j in range(3):
        x = x + i * j
        if x.sum() > 4: break
    else: continue
    break
return x, i, j
''', ()),
    'return or continue': ("", '''
for i in range(3):
    x = x + i
    if x.sum() > 4: return x, i
    else: continue
return x, -1
''', ()),
    'unbound keeps older value': ("", '''
if n > 1: p = 5
print(float(x.sum()))
if y.sum() > 0: p = 6; x = x + 1
try: return p, x
except UnboundLocalError as e: return str(e)
''', ()),
    'unbound keeps older tensor': ("", '''
if n > 1: p = x * 5
print(float(x.sum()))
for i in range(2):
    if y[i] > 0.5: p = y * i
    x = x + 1
try: return p, x
except UnboundLocalError as e: return str(e)
''', ()),
    'finally reads': ("", '''
acc = []
def g(t):
    k = 0
    for i in range(4):
        try:
            t = t + 1; k = k + 1
            if t.sum() > 6: return t * 2
            k = k + 10
            if float(t.sum()) > 5: continue
            t = t * 1.5
        finally:
            acc.append(k)
            if k > 20 and n == 2: break
    return t - k
return g(x), g(y), acc
''', ()),
    'with reads after return': ("", '''
class CM:
    def __enter__(self): return self
    def __exit__(self, *a): SEEN.append(float(box[0].sum()) if box else None)
box = []
def g(t):
    with CM():
        t = t * 2; box[:] = [t]
        t = t + 1
        return t
return g(x), g(y)
''', ()),
    'exception object held': ("", '''
err = None
try:
    z = x * 2
    if float(z.sum()) > 2: raise ValueError(z)
except ValueError as e:
    err = e
    z = e.args[0] + 1
if err is not None: z = z + err.args[0]
return z, type(err).__name__
''', ()),
    'a parameter is compared where another segment wrote it': ("", '''
net = NETS[0]
w = net.weight
z = net(x)
w[0] = 3
z = z + net(y) * w[1]
net.k = net.k + 1
return z + net(x), w is net.weight
''', ()),
    'a parameter is compared after a print': ("", '''
net = NETS[0]
w = net.weight
z = net(x)
print(float(x.sum()))
return z, w is net.weight
''', ()),
    'a parameter is compared and read in one segment': ("", '''
net = NETS[0]
w = net.weight
print(float(x.sum()))
z = w * x
return z + net.weight, w is net.weight
''', ()),
    'a tensor of the module is compared after a print': ('T = Tensor(np.array([1, 2], np.float32))', '''
w = T
print(float(x.sum()))
z = w * x
return z + T, w is T, w is not T
''', ()),
    'a variable that nobody reads is bound again after a compiled segment': ("", '''
acc = []
x = y + 1
if x[0] < 0.3 and n < 3:
    if y.sum() > -1: return o.v
    x = y
else:
    x = sum([x, y], x)
items[0] = n
z = x + SCALE
acc = list({i: x for i in range(3) if i}.values())
return x
''', ()),
}
