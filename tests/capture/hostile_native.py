"""Small hostile programs: code that is not interpreted changes what is older than the call."""
# fmt: off
# ruff: noqa: E501

from __future__ import annotations

LIBRARY = '''import collections, copy, dataclasses, functools, weakref
class Plain: pass
class Held:
    def __init__(self, v=None): self.v = v
'''
FROZEN = LIBRARY + '''
@dataclasses.dataclass(frozen=True)
class State:
    h: object = None
    def put(self, v): object.__setattr__(self, "h", v)
state = State()
'''
CACHED = LIBRARY + '''
class Model:
    def __init__(self): self.scale = 3
    @functools.cached_property
    def mask(self): SEEN.append("mask"); return Tensor([1.0, 2.0])[:1] * self.scale
    @functools.cached_property
    def width(self): return self.scale + 1
class Net(nn.Cell):
    @functools.cached_property
    def mask(self): return Tensor([2.0]) * 3
    def construct(self, t): return t * self.mask
m = Model()
net = Net()
'''
TABLES = LIBRARY + '''
@functools.lru_cache
def positions(n): SEEN.append(("made", n)); return ops.arange(n).astype(ms.float32) + 1
@functools.cache
def width(n): return n + 1
@functools.lru_cache
def scaled(t, by=2): return t * by
@functools.lru_cache(maxsize=1)
def last(n): SEEN.append(("made", n)); return [n]
class Table:
    @functools.lru_cache
    def at(self, n): SEEN.append(("at", n)); return Tensor([1.0, 2.0])[:1] * n
table = Table()
def known(function): return function.cache_info().currsize
'''
SETTINGS = '''import signal, numpy as np
class Meta(type): pass
class Cls(metaclass=Meta): q = 0
def settings():
    return (np.geterr()["divide"], np.get_printoptions()["precision"],
            signal.getsignal(signal.SIGUSR1).name, ms.get_context("max_call_depth"), Cls.q)
'''
PRINTING = '''import csv, io
class Writer:
    def __init__(self): self.texts = []
    def write(self, text): self.texts.append(text)
writer = Writer()
'''

#: By name: code of the module, the body of a function of ``x, y, n, o, items``, and what happens
#: to the module between two calls.
PROGRAMS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    'weak key dictionary': (LIBRARY + 'kept = weakref.WeakKeyDictionary()', '''
if Plain in kept: SEEN.append(kept[Plain])
kept[Plain] = x * 4
return x + n
''', ()),
    'weak set': (LIBRARY + 'kept = weakref.WeakSet(); known = [Held(1), Held(2)]', '''
kept.add(known[n % 2])
return x * len(kept)
''', ()),
    'object.__setattr__ of what is frozen': (FROZEN, '''
SEEN.append(state.h)
state.put(x * n)
return state.h + y.sum()
''', ()),
    'object.__setattr__ of what the call makes': (FROZEN, '''
new = State(n)
new.put(x * n)
return new.h + 1
''', ()),
    'object.__setattr__ where a tensor decides': (FROZEN, '''
if x.sum() > 1: object.__setattr__(state, "h", n)
return x, state.h
''', ()),
    'object.__setattr__ of a Cell': (CACHED, '''
if not hasattr(net, "k"): object.__setattr__(net, "k", [n])
net.k.append(n)
return net(x), list(net.k)
''', ()),
    'type.__setattr__': (LIBRARY, '''
type.__setattr__(Held, "q", n)
return x * Held.q
''', ()),
    'delattr': (LIBRARY + 'p = Plain()', '''
had = hasattr(p, "q")
if had: delattr(p, "q")
else: p.q = n
return x, had, hasattr(p, "q")
''', ()),
    'del of several': (LIBRARY, '''
a, b, p = n, x * 2, Plain()
p.q, p.r = n, [1, 2]
c = [a, b]
del (a, [p.q, p.r[0]]), c[1]
SEEN.append((vars(p), len(c)))
try: a
except NameError as e: SEEN.append(str(e))
return b
''', ()),
    'vars': (LIBRARY + 'p = Plain()', '''
SEEN.append(getattr(p, "q", None))
vars(p)["q"] = x + 1
return y
''', ()),
    'notes of an exception': ('e = ValueError("x")', '''
e.add_note(str(n))
return x + 1
''', ("SEEN.append((list(e.__notes__), e.args))",) * 7),
    'cached_property': (CACHED, 'return x.sum() * m.mask * n, m.width + n', ('m.scale = 5', 'del m.mask', 'm = Model()')),
    'cached_property of a Cell': (CACHED, 'return net(x.sum()) * n', ('', 'del net.mask')),
    'cached_property where a tensor decides': (CACHED, '''
z = y.sum()
if x.sum() > 1: z = z * m.mask
return z
''', ()),
    'cached_property of what the call makes': (CACHED, '''
new = Model()
return x.sum() * new.mask + new.mask, new.width
''', ()),
    'lru_cache of tensors': (TABLES, '''
z = x * positions(x.shape[0])
return z * n + positions(2).sum() + known(positions)
''', ('', 'positions.cache_clear()')),
    'lru_cache of numbers': (TABLES, '''
z = x * width(n)
return z, width(2)
''', ()),
    'lru_cache given a tensor': (TABLES, 'return scaled(x) + scaled(y, by=n)', ()),
    'lru_cache that holds one result': (TABLES, """
kept = last(n)
return x * len(kept), kept is last(n)
""", ()),
    'lru_cache where a tensor decides': (TABLES, """
z = y.sum()
if x.sum() > 1: z = z * positions(2)
print("n", n)
return z, width(n), last(n)[0]
""", ()),
    'lru_cache of a method': (TABLES, 'return x.sum() * table.at(n)', ('', 'table = Table()')),
    'lru_cache that is cleared': (TABLES, """
if n == 2: width.cache_clear(); last.cache_clear()
return x * width(n), last(n), known(width)
""", ()),
    'settings of the process': (SETTINGS, '''
np.seterr(divide="ignore" if n == 1 else "warn")
np.set_printoptions(precision=8 if n == 1 else 7)
signal.signal(signal.SIGUSR1, signal.SIG_IGN if n == 1 else signal.SIG_DFL)
ms.set_context(max_call_depth=1000 if n == 1 else 999)
type.__setattr__(Cls, "q", n)
SEEN.append(settings())
z = x + 1
np.seterr(divide="warn"); np.set_printoptions(precision=8); ms.set_context(max_call_depth=1000)
signal.signal(signal.SIGUSR1, signal.SIG_DFL)
return z
''', ()),
    'print to a buffer': (PRINTING, '''
s = io.StringIO()
s.write("a"); print("n", n, file=s); csv.writer(s).writerow([n, 2])
return x + len(s.getvalue()), s.getvalue()
''', ()),
    'print a tensor to a buffer': (PRINTING, '''
s = io.StringIO()
z = x * 2
print(z.shape, z, file=s, end=";")
return z + 1, s.getvalue()
''', ()),
    'print to a writer': (PRINTING, '''
print("a", n, file=writer)
return x * len(writer.texts), writer.texts[-2:]
''', ()),
    'copy of an object is the own': (LIBRARY + 'p = Held(2)', '''
q = copy.copy(p)
delattr(q, "v")
object.__setattr__(q, "v", x + n)
return q.v * p.v
''', ()),
}
