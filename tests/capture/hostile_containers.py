"""Small hostile programs: containers of every class, and objects with attributes, that change between calls."""
# fmt: off
# ruff: noqa: E501

from __future__ import annotations

KINDS = '''import array, collections, copy, dataclasses, enum, functools, operator, random, types, typing
class AttrDict(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__
class Shared(dict):
    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        self.__dict__ = self
class Counting(dict):
    n = 0
    def __setitem__(self, k, v): self.n += 1; super().__setitem__(k, v)
    def __delitem__(self, k): self.n += 1; super().__delitem__(k)
    def update(self, *a, **k): self.n += 1; super().update(*a, **k)
    def pop(self, *a): self.n += 1; return super().pop(*a)
class Listing(list):
    n = 0
    def append(self, v): self.n += 1; super().append(v)
    def extend(self, v): self.n += 1; super().extend(v)
    def pop(self, *a): self.n += 1; return super().pop(*a)
    def __getitem__(self, i): SEEN.append(("get", i)); return super().__getitem__(i)
class Scaled(list):
    scale = 2
class Missing(dict):
    z = 2
    def __missing__(self, k): return self.z
class Filling(dict):
    def __missing__(self, k): self[k] = len(self) + 1; return self[k]
'''
OBJECTS = KINDS + '''
class Held:
    def __init__(self, v=None): self.v = v
class Prop:
    def __init__(self, v=1): self._v = v; self.log = []
    @property
    def v(self): return self._v
    @v.setter
    def v(self, value): self.log.append(value); self._v = value
class Positive:
    def __set_name__(self, owner, name): self.name = "_" + name
    def __get__(self, owner, kind=None): return 1 if owner is None else getattr(owner, self.name, 2)
    def __set__(self, owner, value): owner.sets = getattr(owner, "sets", 0) + 1; setattr(owner, self.name, abs(value))
class Described:
    width = Positive()
class Slotted:
    __slots__ = ("v", "t")
class Both:
    __slots__ = ("v", "__dict__")
class Late:
    def __init__(self, **k): self.known = k
    def __getattr__(self, name):
        if name.startswith("_"): raise AttributeError(name)
        return self.known.get(name, 1)
class Watched:
    def __setattr__(self, name, value): SEEN.append(name); object.__setattr__(self, name, value)
@dataclasses.dataclass
class Data:
    a: object = 1
    b: list = dataclasses.field(default_factory=list)
@dataclasses.dataclass(frozen=True)
class Fixed:
    k: int = 1
    t: object = None
@dataclasses.dataclass(slots=True)
class Tight:
    a: object = 1
class Pair(typing.NamedTuple):
    first: object
    second: object = 2
    def total(self): return self.first + self.second
class Mode(enum.Enum):
    ADD = 1
    MUL = 2
    @property
    def other(self): return Mode.MUL if self is Mode.ADD else Mode.ADD
class Meta(type):
    table = {"k": 1}
    @property
    def rate(cls): return cls.table["k"]
class Made(metaclass=Meta):
    count = 0
    known = []
    def __init__(self): type(self).count += 1; Made.known.append(self.count)
'''

#: By name: code of the module, the body of a function of ``x, y, n, o, items``, and what happens
#: to the module between two calls.
PROGRAMS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    # ---- containers that are passed ----
    'defaultdict passed': (KINDS + 'o = collections.defaultdict(list)', 'o["a"].append(n)\nreturn x * len(o["a"])', ()),
    'defaultdict of tensors passed': (KINDS + 'o = collections.defaultdict(int)', 'o[n % 2] += x.sum()\nreturn x * o[n % 2]', ()),
    'Counter passed': (KINDS + 'o = collections.Counter()', 'o.update("ab")\no["a"] += n\nreturn x * o["a"], o.most_common(1)', ('o.subtract("b")',)),
    'OrderedDict passed': (KINDS + 'o = collections.OrderedDict(a=1, b=2)', 'o.move_to_end("a")\no["k"] = n\nreturn x * list(o.values())[0]', ('o.popitem()',)),
    'shuffled list passed': (KINDS + 'items = [1, 2, 3]', 'random.Random(n).shuffle(items)\nreturn x * items[0]', ()),
    'array and bytes passed': (KINDS + 'o = array.array("i"); items = bytearray(2)', 'o.append(n)\nm = memoryview(items)\nm[0] = n\nreturn x * len(o) + items[0]', ()),
    'view of an array passed': (KINDS + 'o = np.zeros(4)', 'o.reshape(2, 2)[0][1] = n\no.T[3] += n\nreturn x + float(o[1])', ()),
    'deque passed': (KINDS + 'o = collections.deque(maxlen=2)', 'o.append(x * n)\nreturn sum(o)', ()),
    'set passed': (KINDS + 'o = {1}', 'o.add(n + 5)\no |= {7}\nreturn x * len(o), sorted(o)', ('o.discard(7)',)),
    'AttrDict passed': (KINDS + 'o = AttrDict(w=Tensor([2.0]))', 'o.t = x * n\no.k = n\nreturn o.t + o.w * o["k"]', ('o.w = Tensor([3.0])', 'o = AttrDict(w=Tensor([5.0]))')),
    'dict that is its attributes passed': (KINDS + 'o = Shared(w=Tensor([2.0]), c=1)', 'o.c = o.c + n\nreturn x * o.w + o["c"]', ('o.w = Tensor([3.0])', 'o = Shared(w=Tensor([4.0]), c=9)')),
    'counting dict passed': (KINDS + 'o = Counting(k=1)', 'o["k"] = n\no.update(z=x)\no.pop("z")\nreturn x * o.n', ('o.n = 0',)),
    'counting list passed': (KINDS + 'items = Listing([1])', 'items.append(n)\nitems.extend([1])\nreturn x * items[-1] * items.n', ('items.pop()',)),
    'list with attributes passed': (KINDS + 'items = Scaled([1.0, 2.0])', 'return x * items.scale + items[1]', ('items.scale = 3', 'items[1] = 4.0', 'Scaled.scale = 5', 'items = Scaled([1.0, 2.0])')),
    'writes attributes of a list that is passed': (KINDS + 'items = Scaled([1.0])', 'items.scale = items.scale + n\nreturn x * items.scale', ()),
    'missing keys passed': (KINDS + 'o = Missing(a=1)', 'return x * o["a"] + o["q"]', ('o.z = 5', 'o["q"] = 7', 'Missing.z = 4; del o["q"]; del o.z')),
    'fills missing keys passed': (KINDS + 'o = Filling()', 'return x * o[n]', ('o.clear()',)),
    'named tuple with a list passed': (OBJECTS + 'o = Pair([1], Tensor([2.0]))', 'o.first.append(n)\nreturn x * o.second + len(o.first)', ('o.first.clear()', 'o = Pair([2], Tensor([4.0]))')),
    'UserDict passed': (KINDS + 'o = collections.UserDict(k=1)', 'o["t"] = x * n\nreturn x * o["k"] + o["t"] + len(o)', ('o["k"] = 3', 'o = collections.UserDict(k=4)')),
    'ChainMap passed': (KINDS + 'o = collections.ChainMap({}, {"k": 2})', 'z = x * o["k"]\no["k"] = n\nreturn z, "k" in o.maps[0]', ('o.maps[0].clear()', 'o.maps[1]["k"] = 5; o.maps[0].clear()')),
    'the same list twice': ('items = [1]; o = items', 'o.append(n)\nreturn x * len(items)', ()),
    'list in a list': ('items = [[1], {"k": [2]}]', 'items[0].append(n)\nitems[1]["k"] += [n]\nreturn x * len(items[1]["k"])', ('items[0] = [0]',)),
    'native code fills a list that is passed': ('import heapq, bisect\nitems = [3]', 'heapq.heappush(items, n)\nbisect.insort(items, 2)\nreturn x * items[0]', ()),
    'json fills nothing': ('import json\no = {"a": [1, 2]}', 'return x * len(json.dumps(o))', ('o["a"].append(3)',)),
    # ---- the same from outside ----
    'counters outside': (KINDS + 'c = collections.Counter(); d = collections.OrderedDict(a=1, b=2)', 'c["a"] += n\nc.update("ab")\nd.move_to_end("a")\nd["k"] = n\nreturn x + c["a"], list(d)', ()),
    'counting containers outside': (KINDS + 'd = Counting(k=1); l = Listing([1])', 'd["k"] = n\nd.update(z=1)\ndel d["z"]\nl.append(n)\nl.pop()\nl.extend([2])\nreturn x * d.n + l.n, dict(d), l[0]', ()),
    'C methods of a class with its own': (KINDS + 'd = Counting(k=1); l = Listing([1])', 'dict.__setitem__(d, "k", n)\nlist.append(l, n)\nreturn x * len(l) + d["k"], d.n, l.n', ()),
    'AttrDict outside': (KINDS + 'd = AttrDict()', 'd.t = x * n\nd.k = d.get("k", 0) + 1\nreturn d.t + d.k', ()),
    'UserList and UserDict outside': (KINDS + 'l = collections.UserList([1]); d = collections.UserDict(k=1)', 'l.append(n)\nd["a"] = x\nif "k" in d: x = x + d["k"]\nfor v in l: x = x + v\nreturn x * len(l) + sum(l), f"{d[\'k\']}"', ('l[0] = 4', 'd["k"] = 5')),
    'text of a namespace': (KINDS + 's = types.SimpleNamespace(a=1)', 'return x, f"{s}", str(s), s == types.SimpleNamespace(a=1)', ('s.a = 2', 's.a = 1')),
    'partial outside': (KINDS + 'def scaled(t, k=1): return t * k\np = functools.partial(scaled, k=2)', 'return p(x) + n', ('p.keywords["k"] = 5', 'p = functools.partial(scaled, k=7)')),
    'view of a dict outside': (KINDS + 'd = {"k": 2}; m = types.MappingProxyType(d); v = d.values()', 'return x * m["k"] + sum(v)', ('d["k"] = 3', 'd["j"] = 4')),
    'registries of Python': ('import sys', 'return x * (2 if "hostile_1" in sys.path else 1) * (3 if "hostile_1" in sys.modules else 1)', ("sys.path.append(\"hostile_1\") if \"hostile_1\" not in sys.path else None", "sys.path[:] = [p for p in sys.path if p != \"hostile_1\"]", "sys.modules[\"hostile_1\"] = sys", "sys.modules.pop(\"hostile_1\", None)")),
    'set algebra outside': ('s = {1, 2}', 's.symmetric_difference_update({n})\nt = s | {9}\nreturn x * len(t), sorted(s & t), 2 in s', ('s.clear()',)),
    'slices and deletes outside': ('l = [1, 2, 3]; d = {"a": 1}', 'l[1:] = [n, n + 1]\nif len(l) > 3: del l[0]\nl.insert(0, n)\nd.setdefault("b", n)\nd["a"] = d.pop("b")\nreturn x * l[1] * d["a"], l[::-1]', ()),
    'iterates while it fills another': ('l = [1, 2]; out = []', 'for i, v in enumerate(l): out.append((i, v * n))\nl.reverse()\nreturn x * len(out) + out[-1][1]', ()),
    'sorts by a key with effects': ('l = [3, 1, 2]', 'def key(v):\n    SEEN.append(v)\n    return -v if n % 2 else v\nl.sort(key=key)\nreturn x * l[0]', ()),
    'default list': ('', 'def add(v, kept=[]):\n    kept.append(v)\n    return kept\nreturn x * len(add(n)) + len(add(n))', ()),
    'default list of the module': ('def add(v, kept=[], *, by={}):\n    kept.append(v)\n    by[len(kept)] = v\n    return kept', 'return x * len(add(n)) + add.__kwdefaults__["by"][1]', ('add.__defaults__[0].clear()',)),
    # ---- objects ----
    'property that writes': (OBJECTS + 'p = Prop()', 'p.v = n\np.v += 1\nreturn x * p.v, len(p.log)', ('p._v = 7; p.log = []',)),
    'property of what is passed': (OBJECTS + 'o = Prop(3)', 'z = x * o.v\no.v = n\nreturn z', ('o.v = 5', 'Prop.v = property(lambda s: 9, Prop.v.fset)')),
    'descriptor': (OBJECTS + 'd = Described()', 'd.width = -n\nz = x * d.width\nd.width = 4\nreturn z + d.width, d.sets', ('d._width = 9',)),
    'slots': (OBJECTS + 's = Slotted(); s.v = 1; b = Both()', 'if hasattr(s, "t"): z = s.t\nelse: z = y\ns.t = x * n\ns.v += 1\nif not hasattr(b, "v"): b.v = n\nb.w = n\nreturn z * s.v + b.v', ('del s.t', 'del b.v', 's = Slotted(); s.v = 5')),
    'deletes a slot': (OBJECTS + 's = Slotted()', 'if hasattr(s, "v"): del s.v\nelse: s.v = n\nreturn x, hasattr(s, "v")', ()),
    'getattr that looks into a dict': (OBJECTS + 'l = Late(k=3)', 'return x * l.k + l.q', ('l.known["k"] = 4', 'l.known["q"] = 5', 'l.k = 7')),
    'setattr of the class': (OBJECTS + 'w = Watched()', 'w.a = n\nw.t = x\nreturn w.t * w.a', ('w.a = 3',)),
    'dataclass passed': (OBJECTS + 'o = Data(Tensor([2.0]))', 'o.b.append(n)\nz = o.a * x\no.a = x + n\nreturn z, len(o.b)', ('o.b = []', 'o = Data(Tensor([3.0]), [1])')),
    'frozen dataclass as a key': (OBJECTS + 'd = {}; o = Fixed(1)', 'd[Fixed(n)] = n\nreturn x * d[Fixed(n)] * o.k, o == Fixed(1), len(d)', ('o = Fixed(2)', 'd.clear()')),
    'dataclasses made inside': (OBJECTS, 'd = Data(x, [n])\ne = dataclasses.replace(d, a=y)\nt = Tight(x)\nt.a = t.a + 1\nd.b.append(1)\nreturn d.a * 2 + e.a.sum() + t.a, len(e.b), copy.copy(d).b', ()),
    'returns a dataclass': (OBJECTS, 'd = Data(x * 2, [n])\nd.b.append(d.a)\nreturn d', ()),
    'named tuples': (OBJECTS + 'p = Pair(Tensor([1.0]))', 'q = Pair(x, n)\nreturn q.total() + p.total(), q._replace(second=1), p._asdict()["second"]', ('p = Pair(Tensor([5.0]), 4)',)),
    'enum decides': (OBJECTS + 'o = Held(Mode.ADD)', 'z = x + n if o.v is Mode.ADD else x * n\no.v = o.v.other\nreturn z, o.v.name, Mode["ADD"].value, [m.value for m in Mode]', ('o.v = Mode.MUL',)),
    'classes that count their objects': (OBJECTS, 'Made()\nreturn x * Made.count + Made.known[-1]', ('Made.known.clear(); Made.count = 3',)),
    'property of a metaclass': (OBJECTS, 'return x * Made.rate', ('Meta.table["k"] = 4', 'Meta.table = {"k": 6}')),
    'class of an object assigned': (OBJECTS + 'class Other(Held): pass\no = Held(2)', 'k = 1 if type(o) is Held else 3\nreturn x * k * (1 if isinstance(o, Other) else 2)', ('o.__class__ = Other', 'o.__class__ = Held')),
    'objects made inside that hold what is outside': (OBJECTS + 'l = [1]; s = types.SimpleNamespace(k=2)', 'h = Held(l)\nh.v.append(n)\ng = Held(s)\ng.v.k = g.v.k + 1\nh.more = Held(h)\nreturn x * len(h.more.v.v) * g.v.k', ('l.clear()', 's.k = 9')),
    'objects made inside, in branches': (OBJECTS, 'h = Held(0)\nif x.sum() > 0: h.v = n\nelse: h.v = 5\nr = [Held(i) for i in range(3)]\nfor i in r: i.v = i.v + h.v\nreturn x * sum(i.v for i in r)', ()),
    'objects made inside that are kept': (OBJECTS + 'kept = []; o = Held()', 'h = Held(x * n)\nkept.append(h)\no.v = h\nreturn h.v + len(kept), kept[-1] is o.v', ('kept.clear()',)),
    'linked objects': (OBJECTS + 'o = Held(Held(Held(2)))', 'z = x * o.v.v.v\no.v.v.v += n\no.v, o.w = o.v.v, o.v\nif not isinstance(o.v, Held) or not isinstance(o.v.v, Held): o.v = Held(Held(n))\nreturn z', ('o.v = Held(Held(4))',)),
    'class attributes and their instances': (OBJECTS + 'a, b = Held(1), Held(2); Held.rate = 2', 'a.rate = a.rate + n\nHeld.rate += 1\nreturn x * a.rate * b.rate, Held.rate', ('del a.rate', 'b.rate = 1')),
    'method patched': (OBJECTS + 'class A:\n    def go(self, t): return t * 2\na = A()', 'return a.go(x) + A.go(a, y.sum()) + A().go(x)', ('A.go = lambda self, t: t * 3', 'a.go = lambda t: t * 7', 'del a.go')),
    'closures that share a cell': ('def make():\n    k = 1; log = []\n    def get(): return k\n    def put(v):\n        nonlocal k\n        log.append(k); k = v\n    return get, put, log\nget, put, log = make()', 'z = x * get()\nput(n + get())\nreturn z, list(log)', ('put(9)', 'log.clear()')),
    'closures made in a loop': ('fs = []\nfor i in range(3): fs.append(lambda t, i=i: t * i)', 'for f in fs: x = x + f(y)\nfs.append(fs[0])\nreturn x * len(fs)', ('fs.pop(0)',)),
    'parameter attributes': ('p = ms.Parameter(Tensor([1.0]), name="a")', 'return x * (2 if p.requires_grad else 1) * len(p.name)', ('p.requires_grad = False', 'p.name = "abc"')),
    'objects in a dict given to C code': (OBJECTS + 'd = {"a": types.SimpleNamespace(v=1), "b": types.SimpleNamespace(v=2)}', 'return x * max(map(operator.attrgetter("v"), d.values())), str(d)', ('d["a"].v = 5', 'd["c"] = types.SimpleNamespace(v=9)')),
    'arguments of an exception': ('e = ValueError(1)', 'z = x * e.args[0]\ne.args = (n, 2)\nreturn z', ('e.args = (7,)',)),
    'attribute None that becomes a container': (OBJECTS + 'h = Held()', 'if h.v is None: h.v = {}\nh.v["t"] = h.v.get("t", 0) + x.sum()\nreturn x * h.v["t"]', ('h.v = None',)),
    'object with a bag of attributes': (OBJECTS + 'h = Held()', 'for k in ("a", "b"): setattr(h, k, getattr(h, k, 0) + n)\nreturn x * h.a, sorted(k for k in ("a", "b", "c") if hasattr(h, k))', ('h.c = 1', 'del h.a')),
    'operators of a class': ('class V:\n    def __init__(self, v): self.v = v\n    def __add__(self, o): SEEN.append("add"); return V(self.v + o.v)\n    def __eq__(self, o): return self.v == o.v\n    def __hash__(self): return hash(self.v)\n    def __len__(self): return self.v\n    def __contains__(self, k): SEEN.append(k); return k < self.v\n    def __call__(self, t): return t * self.v\na = V(2)', 'b = a + V(n)\nreturn b(x), len(b), 1 in b, a == V(2), {a: 1}.get(V(2)), bool(b)', ('a.v = 4', 'a = V(3)')),
    'iterator of a class': ('class Up:\n    def __init__(self, n): self.n = n\n    def __iter__(self):\n        self.i = 0\n        return self\n    def __next__(self):\n        self.i += 1\n        if self.i > self.n: raise StopIteration\n        return self.i\nu = Up(2)', 'for v in u: x = x + v\nreturn x, u.i, [*Up(n)]', ('u.n = 3',)),
    'tensor of a class of its own passed': ('class T(Tensor):\n    def double(self): return self * 2\n    def __add__(self, other): return Tensor.__add__(self, other) * 1000\no = T([1.0, 2.0])[:1]; o = T(o)', 'return o.double() * x.sum(), o + n, isinstance(o, T), y * 2', ('o = Tensor([1.0])', 'o = T([2.0])')),
    'derivative with effects': ('class Rounded(nn.Cell):\n    def construct(self, t): return ops.round(t)\n    def bprop(self, t, out, dout): SEEN.append("back"); print("back"); return (dout * 2,)\ncell = Rounded()', 'return ms.value_and_grad(lambda t: (cell(t * 3) * n).sum())(x)', ()),
    'derivative of its own': ('class Rounded(nn.Cell):\n    k = 2\n    def construct(self, t): return ops.round(t)\n    def bprop(self, t, out, dout): return (dout * self.k,)\ncell = Rounded()', 'return ms.value_and_grad(lambda t: (cell(t * 3) * n).sum())(x)', ('Rounded.k = 5',)),
    'equal keys of other classes': ('KEYED = {1: 2}', '''
def kinds(d): return [type(k).__name__ for k in d]
return x * len(kinds(KEYED)), kinds(KEYED), f"{[*KEYED]}"
''', ('KEYED = {True: 2}', 'KEYED = {1.0: 2}', 'KEYED.clear(); KEYED[1] = 2', 'KEYED.clear(); KEYED[True] = 2')),
}
