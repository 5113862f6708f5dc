"""Small hostile programs: when objects end, closures, attributes and classes that change between calls."""
# fmt: off
# ruff: noqa: E501

from __future__ import annotations

ENDING = '''import weakref, gc
class Ending:
    def __init__(self, n): self.n = n; self.t = None
    def __del__(self): SEEN.append(("end", self.n))
class Held:
    def __init__(self, v=None): self.v = v
'''
CONFIG = '''class Cfg:
    rate = 2
    def __init__(self): self.w = 1.0; self.rows = [1, 2]; self.d = {"k": 2}; self.sub = Sub()
class Sub:
    def __init__(self): self.v = 3; self.t = None
cfg = Cfg()
'''

#: By name: code of the module, the body of a function of ``x, y, n, o, items``, and what happens
#: to the module between two calls.
PROGRAMS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    'rebound dels': (ENDING, '''
p = Ending(1)
z = x * 2
print(float(z.sum()))
p = Ending(2)
SEEN.append("after")
z = z + 1
p = None
SEEN.append("last")
return z
''', ()),
    'weakref callback at rebind': (ENDING, '''
p = Held(x * 2)
r = weakref.ref(p, lambda _: SEEN.append("gone"))
z = p.v * float(p.v.sum())
p = Held(z)
SEEN.append("after")
z = p.v + y
p = 3
SEEN.append(r() is None)
return z
''', ()),
    'weakvaluedict': (ENDING, '''
d = weakref.WeakValueDictionary()
p = Held(x); d["a"] = p
z = x * 2 + y
SEEN.append(sorted(d))
p = Held(z); d["b"] = p
SEEN.append(sorted(d))
z = z * p.v
p = None
SEEN.append(sorted(d))
return z, len(d)
''', ()),
    'loop var object': (ENDING, '''
z = x
for i in range(3):
    p = Ending(i)
    z = z + i
    SEEN.append(("loop", i))
SEEN.append("done")
return z
''', ()),
    'weakset in loop': (ENDING, '''
live = weakref.WeakSet()
z = x
for i in range(4):
    p = Held(z); live.add(p)
    z = z + len(live)
return z, len(live)
''', ()),
    'del tensor weakref': (ENDING, '''
t = x * 2
r = weakref.ref(t)
z = t + y
t = z * 3
SEEN.append(r() is None)
return t, r() is None
''', ()),
    'rebound inside if': (ENDING, '''
p = Ending("a")
if x.sum() > 0:
    p = Ending("b")
    x = x + 1
else:
    x = x - 1
    p = None
SEEN.append("mid")
x = x * 2
return x
''', ()),
    'argument object replaced': (ENDING, '''
def g(p, t):
    t = t * 2
    p = None
    SEEN.append("in g")
    return t + 1
return g(Ending(5), x) + g(Ending(6), y)
''', ()),
    'attribute replaced ends': (ENDING, '''
h = Held(Ending(1))
z = x * 2
SEEN.append("before")
h.v = None
SEEN.append("after")
return z + 1
''', ()),
    'outside attribute replaced ends': (ENDING, '''
o.last = Ending(n)
z = x * 2
SEEN.append("a")
o.last = z
SEEN.append("b")
return z + 1
''', ()),
    'list item replaced ends': (ENDING, '''
acc = [Ending(1), x]
acc[0] = y * 2
SEEN.append("b")
z = acc[0] + acc[1]
return z
''', ()),
    'exception clears name': (ENDING, '''
try:
    raise ValueError(float(x.sum()))
except ValueError as e:
    err = e
    z = x * 2
try: e
except NameError as u: SEEN.append(str(u))
err = None
return z
''', ()),
    'traceback holds locals': (ENDING, '''
def g(t):
    p = Ending("g")
    t = t * 2
    if float(t.sum()) > -1e9: raise ValueError("x")
    return t
try: g(x)
except ValueError as e:
    SEEN.append("caught")
SEEN.append("out")
return x + y
''', ()),
    'generator dropped midway': (ENDING, '''
def gg():
    try:
        yield x * 1
        yield x * 2
    finally: SEEN.append("closed")
g = gg()
z = next(g)
g = None
SEEN.append("after")
z = z + y
return z
''', ()),
    'held in dict then popped': (ENDING, '''
d = {"p": Ending(1)}
z = x * 2
d.pop("p")
SEEN.append("popped")
d["p"] = Ending(2)
z = z + y
d["p"] = Ending(3)
SEEN.append("set")
d.clear()
SEEN.append("cleared")
return z
''', ()),
    'tuple swap objects': (ENDING, '''
p, q = Ending("p"), Ending("q")
x = x + y
p, q = q, p
p = None
SEEN.append(1)
x = x * 2
q = None
SEEN.append(2)
return x
''', ()),
    'refcycle and gc': (ENDING, '''
p = Held(); p.me = p; r = weakref.ref(p)
x = x * 2
p = None
SEEN.append(r() is None)
return x + 1
''', ()),
    'augmented object': (ENDING, '''
class Acc:
    def __init__(self, t): self.t = t
    def __iadd__(self, v): SEEN.append("iadd"); self.t = self.t + v; return self
    def __del__(self): SEEN.append("end")
a = Acc(x)
a += y
a += 1
z = a.t * 2
a = None
SEEN.append("x")
return z
''', ()),
    'end in argument temp': ("", '''
class T:
    def __init__(self, v): self.v = v
    def __del__(self): SEEN.append(("T", float(self.v.sum())))
    def use(self, t): return t * self.v
z = T(x).use(y)
SEEN.append("1")
z = z + T(z).use(x)
SEEN.append("2")
return z
''', ()),
    'param rebound': ("", '''
o = None
x = x * 2
items = [1]
SEEN.append(len(items))
return x + 1
''', ()),
    'cell_contents outside': ('''
def make():
    k = 2
    def g(t): return t * k
    return g
g = make()
h = make()
def k2(t): return h(t)
''', 'return g(x) + g(y) * k2(x)', ('g.__closure__[0].cell_contents = 5', 'h.__closure__[0].cell_contents = 7', 'g.__closure__[0].cell_contents = 1.5', 'pass', 'g.__closure__[0].cell_contents = 2',)),
    'cell_contents inside': ('''
def make():
    k = 2
    def g(t): return t * k
    return g
g = make()
''', '''
g.__closure__[0].cell_contents = n + 1
z = g(x)
g.__closure__[0].cell_contents = float(z.sum())
return z + g(y)
''', ('g.__closure__[0].cell_contents = 5', 'pass', 'pass',)),
    'cell_contents of local': ("", '''
k = 2
def g(t): return t * k
a = g(x)
g.__closure__[0].cell_contents = 4
b = g(x)
return a, b, k
''', ()),
    'cell_contents read': ('''
def make():
    k = 2
    def g(t): return t * k
    return g
g = make()
''', '''
c = g.__closure__[0]
return x * c.cell_contents + len(SEEN)
''', ('g.__closure__[0].cell_contents = 5', 'g.__closure__[0].cell_contents = 3.5', 'del g.__closure__[0].cell_contents', 'g.__closure__[0].cell_contents = 2',)),
    'own closure cell': ('''
def make():
    v = 1
    def get(): return v
    def put(k):
        nonlocal v
        v = v + k
        return v
    return get, put
K = make()
''', 'return x * K[0]() + K[1](n)', ('K[0].__closure__[0].cell_contents = 10', 'K[1](3)', 'pass',)),
    'code swapped': ('''
def g(t): return t * 2
def g2(t): return t + 100
''', 'return g(x) + y', ('g.__code__ = g2.__code__', 'g.__defaults__ = ()', 'g.__code__ = (lambda t: t).__code__',)),
    'kwdefaults and defaults': ('''
def g(t, k=2): return t * k
def h(t, *, k=3): return t * k
''', 'return g(x) + h(y)', ('g.__defaults__ = (4,)', "h.__kwdefaults__['k'] = 7", "h.__kwdefaults__ = {'k': 1}",)),
    'function attrs': ('def g(t): return t', '''
g.count = getattr(g, "count", 0) + 1
return x * g.count
''', ('g.count = 10', 'del g.count', "g.__dict__['count'] = 3",)),
    'object: attribute': (CONFIG, '''
c = cfg
print(float(x.sum()))
z = x * c.w + c.rate * c.sub.v
return z + sum(c.rows) * c.d["k"]
''', ('cfg.w = 3.0', 'cfg.rows.append(5)', "cfg.d['k'] = 9", 'cfg.sub.v = 8', 'Cfg.rate = 6',)),
    'object: dunder dict': (CONFIG, '''
c = cfg
print(float(x.sum()))
z = x * c.w + c.rate * c.sub.v
return z + len(c.rows) * c.d["k"]
''', ("cfg.__dict__['w'] = 3.0", "cfg.__dict__['rate'] = 5", 'cfg.sub = Sub(); cfg.sub.v = 1', 'cfg.rows = []', "cfg.__dict__.update(d={'k': 0})",)),
    'object as argument default': (CONFIG, '''
def g(t, c=cfg):
    return t * c.w + sum(c.rows)
print(float(x.sum()))
return g(x) + g(y, c=o.last if False else cfg)
''', ('cfg.w = 3.0', 'cfg.rows[0] = 50', 'cfg.rows.clear()', 'cfg.w = -1',)),
    'object in list in object': (CONFIG, '''
c = cfg
c.stack = getattr(c, "stack", [])
c.stack.append(n)
z = x * len(c.stack)
print(z)
c.sub.t = z
return z + c.sub.t + c.stack[-1]
''', ('cfg.stack = [7]', 'cfg.stack.extend([1, 2])', 'cfg.sub = Sub()', 'del cfg.stack',)),
    'object property descriptor': ('''
class D:
    def __get__(self, obj, kind=None): return 5 if obj is None else obj.raw + 1
    def __set__(self, obj, v): SEEN.append(v); obj.raw = v
class A:
    q = D()
    def __init__(self): self.raw = 2
    @property
    def p(self): return self.raw * 2
a, b = A(), A()
''', 'return x * a.p + a.q * b.p', ('a.q = 7', 'b.raw = 3', 'A.p = 4', 'A.q = 9', "a.__dict__['p'] = 33",)),
    'getattr dunder': ('''
class A:
    def __getattr__(self, name): SEEN.append(name); return len(name)
a = A()
''', '''
z = x * a.foo + a.bar
a.foo = 2
return z, a.foo
''', ('del a.foo', 'a.bar = 10', 'A.bar = 7; del a.bar', 'a.foo = 5',)),
    'getattribute': ('''
class A:
    def __init__(self): self.foo = 3
    def __getattribute__(self, name):
        if name != "__dict__": SEEN.append(name)
        return object.__getattribute__(self, name)
a = A()
''', 'return x * a.foo + a.foo', ('a.foo = 2', 'pass',)),
    'setattr dunder': ('''
class A:
    def __setattr__(self, name, v): SEEN.append((name, v)); object.__setattr__(self, name, v)
a = A()
''', '''
a.foo = float(x.sum())
z = x * a.foo
a.bar = n
return z + a.bar
''', ()),
    'slots and class var': ('''
class S:
    __slots__ = ("v", "w")
s = S(); s.v = 1; s.w = 2
''', '''
s.v = s.v + n
s.w += 1
z = x * s.v
print(z.sum())
return z + s.w
''', ('s.v = 10', 's.w = 0', 's = S(); s.v = 5; s.w = 5',)),
    'class swaps': ('''
class W:
    def __init__(self, t): self.t = t
    def __add__(self, o): return W(self.t + o.t)
    @classmethod
    def made(cls, t): return t + 5
    def get(self): return self.t * 2
''', '''
z = W(x)
w = z + W(y)
return w.t, W.made(x), z.get()
''', ("W.__init__ = lambda self, t: setattr(self, 't', t * 3)", 'W.__add__ = lambda self, o: self', 'W.get = lambda self: 4', 'W.made = staticmethod(lambda t: -t)',)),
    'namedtuple returned type': ("", '''
Pt = collections.namedtuple("Pt", "a b")
p = Pt(x * 2, y); print(float(p.a.sum()))
q = Pt(p.b + 1, p)
return q, q.b.a, isinstance(q, tuple), type(p) is type(q)
''', ()),
    'setitem object': ("", '''
class Store:
    def __init__(self): self.d = {}
    def __setitem__(self, k, v): SEEN.append(k); self.d[k] = v
    def __getitem__(self, k): return self.d[k]
    def __delitem__(self, k): SEEN.append(("del", k)); del self.d[k]
    def __contains__(self, k): return k in self.d
    def __len__(self): return len(self.d)
s = Store()
s["a"] = x * 2; s[n] = y
s["a"] += 1
if "a" in s: z = s["a"] * len(s)
del s["a"]
return z, "a" in s, bool(s)
''', ()),
    'global object list mutated in loop': ('''
class L: pass
LOG = L(); LOG.items = []; LOG.hits = 0
''', '''
for i in range(3):
    LOG.items.append(x.sum() * i)
    if LOG.items[-1] > 1: LOG.hits += 1
return x * LOG.hits, len(LOG.items), LOG.items[0]
''', ('LOG.items = LOG.items[:2]', 'LOG.hits = 10', 'LOG.items.clear()', 'LOG = L(); LOG.items = [Tensor([1.0])]; LOG.hits = 1',)),
    'object replaced by equal': ('''
class K: 
    def __eq__(self, o): return True
    __hash__ = None
    def __init__(self, k): self.k = k; self.t = Tensor(np.array([k, k], np.float32))
C = K(1)
''', '''
c = C
z = x * c.k
print(float(z.sum()))
return z + c.k * c.t
''', ('C = K(2)', 'C = K(3)', 'C.t = Tensor(np.array([9, 9], np.float32))', 'C.t[0] = 4', 'C.k = 2.0', 'C.k = True',)),
    'object passed as argument': ('''
class K:
    def __init__(self, k): self.k = k; self.log = []
C = K(1)
''', '''
def g(c, t):
    h = t * c.k
    c.log.append(c.k)
    s = float(h.sum())
    if s > 1: c.k = c.k + 1
    return h + c.k + len(c.log)
return g(C, x), g(C, y), C.k
''', ('C.k = 5', 'C.log.append(1)', 'C.log = []', 'C.k = 1', "C.__dict__ = {'k': 2, 'log': [1, 2]}",)),
    'object dict swap': ('''
class K: pass
C = K(); C.k = 2
''', 'return x * C.k + len(C.__dict__)', ("C.__dict__ = {'k': 5, 'j': 1}", 'C.j = 3; C.i = 4', "vars(C)['k'] = 7", 'C.__dict__.clear(); C.k = 1',)),
    'dict of objects': ('''
class K:
    def __init__(self, k): self.k = k
CS = {"a": K(1), "b": K(2)}
''', '''
z = x
for k, c in CS.items():
    z = z * c.k
    print(k, float(z.sum()))
return z + CS["a"].k
''', ("CS['a'].k = 3", "CS['c'] = K(2)", "CS.pop('b')", "CS['a'] = K(5)",)),
    'simple namespace': ('''
import types
NS = types.SimpleNamespace(k=2)
''', '''
import types
ns = types.SimpleNamespace(a=x, n=n)
ns.b = ns.a * 2
print(float(ns.b.sum()))
ns.a = ns.b + ns.n
return ns.a, vars(ns).keys() == {"a", "n", "b"}, NS.k * x
''', ('NS.k = 3', "NS.__dict__['k'] = 4",)),
    'userdict chainmap': ("CM = collections.ChainMap({}, {'k': 2})", '''
d = collections.ChainMap({"a": x}, {"b": y, "a": 1})
u = collections.UserDict(k=x * 2)
u["j"] = d["b"] + d["a"]
c = collections.Counter("abca"); c.update(b=n)
return u["j"], dict(c), sorted(d), CM["k"] * x
''', ("CM['k'] = 5", 'CM.maps.pop(0)', "CM.maps[0]['k'] = 7",)),
    'tensors of a loop and after it': (ENDING, '''
ends = []
for i in range(n + 1):
    t = x * i
    weakref.finalize(t, ends.append, i)
t = None
count = len(ends)
return x + 1, count, list(ends)
''', ()),
    'tensor rebound in a loop': (ENDING, '''
ends = []
for i in range(n + 2):
    t = x + i
    weakref.finalize(t, ends.append, i)
    u = t * 2
    x = u - t
    SEEN.append(list(ends))
t = u
return x, list(ends)
''', ()),
    'tensor of a branch': (ENDING, '''
ends = []
if float(x.sum()) > 0:
    t = x + 1
    weakref.finalize(t, ends.append, 1)
    t = t + 1
    SEEN.append(list(ends))
t = y * 2
SEEN.append(list(ends))
del y
return t * x, list(ends)
''', ()),
    'object of a loop and after it': (ENDING, '''
for i in range(n):
    p = Ending(i)
    z = x * i
    if float(z.sum()) > 2:
        break
w = x * 2
SEEN.append("before")
p = None
w = w + y
SEEN.append("after")
return w
''', ()),
    'object of a branch with a handler': (ENDING, '''
if n > 1:
    p = Ending(n)
try:
    z = x + 1
    p = z * float(z.sum())
    SEEN.append("in")
    z = p / n if n else undefined
except NameError:
    SEEN.append("caught")
    z = y
return z * 2
''', ()),
    'maybe unbound and read first': (ENDING, '''
if n > 1:
    p = Ending(n)
    q = x
z = x * 2
SEEN.append("one")
if n == 1:
    z = z + q
q = z + 1
p = 0
SEEN.append("two")
return q * y
''', ()),
    'items of a while loop': (ENDING, '''
while n >= 0:
    p = [Ending(n)]
    z = x * n
    x = z + float(z.sum())
    n -= 1
    p = z - 1
    SEEN.append(("turn", n))
    q = p * 2
else:
    SEEN.append("else")
    p = q
return p
''', ()),
    'attribute of an object that ends here': (ENDING, '''
p = Held(); p.v = x * 2
q = Held(p); q.v.v = p.v + y
q.count = n
return q.v.v
''', ()),
    'exception whose text reads its attributes': ('''
class Bad(Exception):
    def __init__(self, code): self.code = code
    def __str__(self): return f"code {self.code}"
''', '''
z = x * 2
if n > 1:
    raise Bad(n)
try:
    if n:
        raise Bad(z)
except Bad as e:
    z = z + len(str(e)[:4])
return z
''', ()),
    'hook that reads values': ('''
from tvmgraph import nn
class Twice(nn.Cell):
    def construct(self, t): return t * 2
net = Twice()
''', '''
h = net.register_forward_hook(lambda c, i, out: SEEN.append(float(out.sum())))
z = net(x)
k = net.register_forward_hook(lambda c, i, out: out + 1)
z = net(z) * float(z.sum())
h.remove(); k.remove()
return net(z)
''', ()),
}
