"""Changes outside between calls that plain Python sees, and so must compiled code.

One program per kind of thing: its module, of which ``f`` is called twice, and what is done then,
before ``f`` is called twice again.
"""

CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "attributes of tensors": (
        """
A, W = Tensor([1.0]), nn.Dense(1, 1).weight
A.tag = W.tag = 3
A.more, W.more = {"k": 2.0}, [4.0]
def f(x):
    return x * (A.tag + A.more["k"]) + (W.tag + W.more[0])
""",
        (
            "A.tag = 4",
            "A.more['k'] = 5.0",
            "A.more = {'k': 6.0}",
            "W.tag = 5.0",
            "W.more = (6.0,)",
            "W.more = [8.0]",
            "W.more[0] = 9.0",
        ),
    ),
    "flags.writeable": (
        """
A = np.zeros(3)
def f(x):
    return x * (2 if A.flags.writeable else 3)
""",
        (
            "A.flags.writeable=False",
            "A.flags.writeable=True",
            "A.setflags(write=False)",
        ),
    ),
    "bases": (
        """
class P1:
    k = 2.0
    def m(self, x): return x * 2
class P2:
    k = 5.0
    def m(self, x): return x * 7
class C(P1): pass
O = C()
def f(x):
    return O.m(x) + O.k
""",
        (
            "C.__bases__ = (P2,)",
            "C.__bases__ = (P1,)",
            "C.__bases__=(P2,P1)",
        ),
    ),
    "bases cell": (
        """
class P1(nn.Cell):
    def m(self, x): return x * 2
class P2(nn.Cell):
    def m(self, x): return x * 7
class C(P1):
    def construct(self, x): return self.m(x)
O = C()
def f(x):
    return O(x)
""",
        (
            "C.__bases__ = (P2,)",
            "C.__bases__ = (P1,)",
        ),
    ),
    "bases isinstance": (
        """
class P1: pass
class P2: pass
class C(P1): pass
O = C()
def f(x):
    return x * (2 if isinstance(O, P2) else 3)
""",
        (
            "C.__bases__ = (P2,)",
            "C.__bases__ = (P1,)",
        ),
    ),
    "bases issubclass": (
        """
class P1: pass
class P2: pass
class C(P1): pass
def f(x):
    return x * (2 if issubclass(C, P2) else 3)
""",
        (
            "C.__bases__ = (P2,)",
            "C.__bases__ = (P1,)",
        ),
    ),
    "bases super": (
        """
class P1:
    def m(self, x): return x * 2
class P2:
    def m(self, x): return x * 7
class C(P1):
    def m(self, x): return super().m(x) + 1
O = C()
def f(x):
    return O.m(x)
""",
        (
            "C.__bases__ = (P2,)",
            "C.__bases__ = (P1,)",
        ),
    ),
    "enum value": (
        """
import enum
class E(enum.Enum):
    A = 1
    B = 2
def f(x):
    return x * E.A.value
""",
        (
            "E.A._value_ = 7",
            "E.A._value_ = 1",
            "E.A.__dict__['_value_'] = 9",
        ),
    ),
    "enum name": (
        """
import enum
class E(enum.Enum):
    A = 1
    B = 2
    def scale(self): return self.value * 2
def f(x):
    return x * E.B.scale(), E.B.name
""",
        (
            "E.B._value_ = 7",
            "E.B._name_ = 'Z'",
        ),
    ),
    "enum arg": (
        """
import enum
class E(enum.Enum):
    A = 1
    B = 2
CUR = [E.A]
def f(x):
    return x * CUR[0].value
""",
        (
            "E.A._value_ = 7",
            "CUR[0] = E.B",
            "E.B._value_=9",
        ),
    ),
    "gen frame": (
        """
def gen():
    yield 1
    yield 2
G = gen()
def f(x):
    return x * (2 if G.gi_frame is None else 3)
""",
        (
            "next(G)",
            "next(G)",
            "list(G)",
        ),
    ),
    "gen running": (
        """
def gen():
    yield 1
    yield 2
G = gen()
def f(x):
    return x * (2 if G.gi_running else 3), G.gi_frame is None and 1 or 2, G.gi_yieldfrom
""",
        (
            "next(G)",
            "list(G)",
        ),
    ),
    "gen f_lasti": (
        """
def gen():
    a = 1
    yield a
    a = 2
    yield a
G = gen()
def f(x):
    return x * G.gi_frame.f_locals.get('a', 5)
""",
        (
            "next(G)",
            "next(G)",
        ),
    ),
    "decimal ctx": (
        """
import decimal
CTX = decimal.Context(prec=5)
def f(x):
    return x * float(CTX.divide(decimal.Decimal(1), decimal.Decimal(3)))
""",
        (
            "CTX.prec = 2",
            "CTX.prec=9",
            "CTX.rounding = decimal.ROUND_UP",
        ),
    ),
    "decimal ctx attr": (
        """
import decimal
CTX = decimal.Context(prec=5)
def f(x):
    return x * CTX.prec
""",
        (
            "CTX.prec = 2",
            "CTX.prec=9",
        ),
    ),
    "decimal getcontext": (
        """
import decimal
def f(x):
    return x * float(decimal.Decimal(1) / decimal.Decimal(3))
""",
        (
            "decimal.getcontext().prec = 3",
            "decimal.getcontext().prec = 28",
        ),
    ),
    "decimal ctx flags": (
        """
import decimal
CTX = decimal.Context(prec=5)
def f(x):
    return x * (2 if CTX.flags[decimal.Inexact] else 3)
""",
        (
            "CTX.divide(1, 3)",
            "CTX.clear_flags()",
        ),
    ),
    "decimal localcontext": (
        """
import decimal
CTX = decimal.Context(prec=5)
def f(x):
    with decimal.localcontext(CTX):
        return x * float(decimal.Decimal(1) / 3)
""",
        (
            "CTX.prec = 2",
            "CTX.prec = 9",
        ),
    ),
    "decimal create": (
        """
import decimal
CTX = decimal.Context(prec=5)
def f(x):
    return x * float(CTX.create_decimal('1.23456789'))
""",
        (
            "CTX.prec = 2",
            "CTX.prec = 9",
        ),
    ),
    "decimal arg ctx": (
        """
import decimal
CTX = decimal.Context(prec=5)
D = decimal.Decimal('1.23456789')
def f(x):
    return x * float(D.sqrt(CTX))
""",
        (
            "CTX.prec = 2",
            "CTX.prec = 9",
        ),
    ),
    "exitstack": (
        """
import contextlib
S = contextlib.ExitStack()
def f(x):
    return x * len(S._exit_callbacks)
""",
        (
            "S.callback(print)",
            "S.callback(print)",
            "S.pop_all()",
        ),
    ),
    "exitstack push in f": (
        """
import contextlib
LOG = []
S = contextlib.ExitStack()
def f(x):
    S.callback(LOG.append, 1)
    return x * len(S._exit_callbacks), len(LOG)
""",
        (
            "S.close()",
            "pass",
            "S.close()",
        ),
    ),
    "weakref": (
        """
import weakref
class O: pass
o = O()
R = weakref.ref(o)
def f(x):
    return x * (2 if R() is None else 3)
""",
        (
            "del o; o=None",
            "pass",
        ),
    ),
    "abc register": (
        """
import abc
class I(abc.ABC): pass
class C: pass
O = C()
def f(x):
    return x * (2 if isinstance(O, I) else 3)
""",
        (
            "I.register(C)",
            "pass",
        ),
    ),
    "namedtuple defaults": (
        """
import collections
P = collections.namedtuple('P', 'a b', defaults=[3])
def f(x):
    return x * P(1).b
""",
        (
            "P.__new__.__defaults__ = (7,)",
            "P.__new__.__defaults__ = (8,)",
        ),
    ),
    "module getattr": (
        """
import types
M = types.ModuleType('M'); M.__getattr__ = lambda n: 4
def f(x):
    return x * M.k
""",
        (
            "M.k = 3",
            "del M.k",
            "M.__getattr__ = lambda n: 5",
        ),
    ),
    "annotations": (
        """
def g(x: int): return x
def f(x):
    return x * len(g.__annotations__)
""",
        (
            "g.__annotations__['y'] = 3",
            "g.__annotations__ = {}",
        ),
    ),
    "names of a class": (
        """
class C: pass
def f(x):
    return x * len(C.__name__), C.__qualname__
""",
        (
            "C.__name__ = 'Hello'",
            "C.__qualname__='u'",
        ),
    ),
    "getattr hook": (
        """
class C:
    def __getattr__(self, n): return 2
O = C()
def f(x):
    return x * O.k
""",
        (
            "C.__getattr__ = lambda s, n: 5",
            "O.k = 8",
            "del O.k",
        ),
    ),
    "logger": (
        """
import logging
L = logging.getLogger('chg'); 
def f(x):
    return x * (2 if L.isEnabledFor(logging.INFO) else 3) + len(L.handlers)
""",
        (
            "L.setLevel(logging.INFO)",
            "L.addHandler(logging.NullHandler())",
            "logging.disable(logging.CRITICAL)",
            "logging.disable(logging.NOTSET)",
            "L.disabled=True",
        ),
    ),
    "text of arrays": (
        """
A = np.array([1.23456789])
def f(x):
    return x * len(str(A))
""",
        (
            "np.set_printoptions(precision=2)",
            "np.set_printoptions(precision=8)",
        ),
    ),
    "equality": (
        """
class K:
    def __init__(self, v): self.v = v
    def __eq__(self, o): return self.v == o.v
    def __hash__(self): return 1
A, B = K(1), K(1)
def f(x):
    return x * (2 if A == B else 3)
""",
        (
            "A.v = 2",
            "K.__eq__ = lambda s, o: True",
            "K.__eq__ = lambda s, o: False",
        ),
    ),
    "operators": (
        """
class K:
    def __init__(self, v): self.v = v
    def __add__(self, o): return self.v + o
    def __getitem__(self, i): return self.v * i
    def __len__(self): return self.v
    def __contains__(self, i): return i == self.v
    def __iter__(self): return iter([self.v])
    def __bool__(self): return self.v > 2
    def __call__(self, x): return x * self.v
A = K(1)
def f(x):
    return x * (A + 1) + A[2] + len(A) + (3 in A) + sum(A) + (4 if A else 5) + A(x)
""",
        (
            "A.v = 3",
            "K.__add__ = lambda s, o: 9",
            "K.__len__ = lambda s: 4",
            "K.__contains__ = lambda s, i: True",
            "K.__bool__ = lambda s: False",
            "K.__call__ = lambda s, x: x",
            "K.__iter__ = lambda s: iter([5])",
            "K.__getitem__ = lambda s, i: 8",
        ),
    ),
    "descriptor": (
        """
class D:
    def __init__(self): self.k = 2
    def __get__(self, o, t): return self.k
class C:
    d = D()
O = C()
def f(x):
    return x * O.d
""",
        (
            "C.__dict__['d'].k = 5",
            "D.__get__ = lambda s, o, t: 9",
            "C.d = 3",
        ),
    ),
    "digits of integers": (
        """
import sys
def f(x):
    return x * sys.get_int_max_str_digits()
""",
        (
            "sys.set_int_max_str_digits(5000)",
            "sys.set_int_max_str_digits(4300)",
        ),
    ),
    "class of an object": (
        """
class A:
    def m(self, x): return x * 2
class B:
    def m(self, x): return x * 7
O = A()
def f(x):
    return O.m(x)
""",
        ("O.__class__ = B", "O.__class__ = A"),
    ),
    "single dispatch": (
        """
import functools
@functools.singledispatch
def g(a): return 2
def f(x):
    return x * g(1)
""",
        ("g.register(int, lambda a: 5)", "g.register(int, lambda a: 7)"),
    ),
    "function of C that is a setting": (
        """
import sys
def f(x):
    return x * sys.getrecursionlimit()
""",
        ("sys.setrecursionlimit(3000)", "sys.setrecursionlimit(1000)"),
    ),
    "slots": (
        """
class D:
    __slots__ = ('a',)
O = D(); O.a = 2
def f(x):
    return x * O.a
""",
        ("O.a = 4", "object.__setattr__(O, 'a', 7)", "D.a.__set__(O, 9)"),
    ),
    "context variable": (
        """
import contextvars
V = contextvars.ContextVar('V', default=2)
def f(x):
    return x * V.get()
""",
        ("V.set(5)", "V.set(2)"),
    ),
    "slice": (
        """
S = slice(0, 1)
def f(x):
    return x[S]
""",
        ("S = slice(1, 2)", "S = slice(0, 2)"),
    ),
    "number of NumPy": (
        """
K = np.float32(2)
def f(x):
    return x * K
""",
        ("K = np.float32(3)", "K = np.float64(3)"),
    ),
    "whole environment": (
        """
import os
def f(x):
    return x * len([k for k in os.environ if k.startswith('TVMGRAPH_CHANGED')])
""",
        ("os.environ['TVMGRAPH_CHANGED_A'] = '1'", "os.environ.pop('TVMGRAPH_CHANGED_A')"),
    ),
    "members in code without source": (
        """
import types
class C:
    k = 2
M = types.ModuleType('M')
M.k = 3
exec('def g(x): return x * C.k + M.k')
def f(x):
    return g(x)
""",
        ("C.k = 5", "M.k = 7"),
    ),
    "environment in code without source": (
        """
import os
exec("def g(x): return x * len(os.environ.get('TVMGRAPH_CHANGED_B', ''))")
def f(x):
    return g(x)
""",
        ("os.environ['TVMGRAPH_CHANGED_B'] = 'ab'", "os.environ.pop('TVMGRAPH_CHANGED_B')"),
    ),
    "functions of C in code without source": (
        """
import sys
exec('def g(x): return x * sys.getrecursionlimit()')
def f(x):
    return g(x)
""",
        ("sys.setrecursionlimit(3000)", "sys.setrecursionlimit(1000)"),
    ),
    "clock in code without source": (
        """
import time
exec('def g(x): return x * 2, time.time() > LATEST')
LATEST = 0
def f(x):
    global LATEST
    y, later = g(x)
    LATEST = time.time()
    return y, later
""",
        ("LATEST = time.time() + 99", "LATEST = 0"),
    ),
    "array": (
        """
A = np.arange(6.0)
B = A[1:3]
def f(x):
    return x * float(B[0]) + A.ndim
""",
        ("A[1] = 9", "A *= 2", "A.resize((2, 3), refcheck=False)", "B = A[0]"),
    ),
    "memoryview": (
        """
B = bytearray(b'abc')
M = memoryview(B)
def f(x):
    return x * M[0]
""",
        ("B[0] = 9", "M[0] = 3"),
    ),
    "set": (
        """
A = {1, 2}
def f(x):
    return x * (2 if 3 in A else 5)
""",
        ("A.add(3)", "A.discard(3)"),
    ),
    "view": (
        """
import types
A = {'a': 1}
C = types.MappingProxyType(A)
def f(x):
    return x * C['a']
""",
        ("A['a'] = 5", "A['a'] = 7"),
    ),
}
