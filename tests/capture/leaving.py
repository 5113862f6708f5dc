"""Tensors that leave compiled code inside of something, and Cells that change in it.

Every function takes ``x, y, n``; what it may change outside is in ``W``.
"""
# fmt: off
# ruff: noqa: E501

from __future__ import annotations

import collections
import contextvars
import dataclasses
import functools
import queue
import threading
import types
import weakref
from typing import Any, NamedTuple

from tvmgraph import Tensor, nn, ops


class Held:
    """An object of the user."""

    def __init__(self, t: Any) -> None:
        self.t = t

    def twice(self) -> Any:
        return self.t * 2


class Slotted:
    __slots__ = ("t",)

    def __init__(self, t: Any) -> None:
        self.t = t


@dataclasses.dataclass(frozen=True)
class Frozen:
    t: Any
    k: int = 1
    __hash__ = object.__hash__


@dataclasses.dataclass(slots=True)
class Narrow:
    t: Any


class Named(NamedTuple):
    t: Any
    k: int


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(2, 2, weight_init="ones", bias_init="zeros")
        self.k = 0

    def construct(self, t: Tensor) -> Tensor:
        self.k += 1
        return self.dense(t.reshape(1, 2)).reshape(2) * self.k


def world() -> dict[str, Any]:
    """Returns what is outside of the functions, before the first call."""
    return dict(
        d={}, l=[], s=set(), q=collections.deque(maxlen=9), c=collections.Counter(),
        dd=collections.defaultdict(list), o=Held(None), sl=Slotted(None), net=Net(),
        cells=nn.CellList([nn.Dense(2, 2, weight_init="ones", bias_init="zeros")]),
        seq=nn.SequentialCell([nn.ReLU()]), names=nn.CellDict(), fifo=queue.Queue(),
        local=threading.local(), weak=weakref.WeakKeyDictionary(), n=0, key=Tensor([9.0, 9.0]),
        var=contextvars.ContextVar("var"), od=collections.OrderedDict(), sd={"k": 1},
    )  # fmt: skip


WORLD = types.SimpleNamespace()
W: Any = WORLD
#: What is outside but cannot be looked into.
QUEUES = ("fifo", "local", "var")


@functools.lru_cache
def remembered(t: Any) -> int:
    return 5


def doubled(t: Any) -> Any:
    W.l.append(len(W.l))
    return t * 2


def count(t: Any) -> Any:
    print("count")
    W.n += 1
    return t * W.n


def generated(t: Any) -> Any:
    yield t
    yield t * 2


def cyclic(t: Any) -> Any:
    found: list[Any] = [t]
    found.append(found)
    return found[:1]


def pair(t: Tensor) -> Tensor:
    return ops.stack([t, t * 2])


#: What a tensor ``z`` is put into.
MADE = {
    "dict_key": "{z: 1}",
    "dict_keys": "{z: 1, x: 2}",
    "tuple_key": "{(z, 1): n}",
    "set": "{z, x}",
    "frozenset": "frozenset([z])",
    "set_comp": "{t for t in (z, x, z)}",
    "dict_comp": "{t: k for k, t in enumerate((x, z, x))}",
    "fromkeys": "dict.fromkeys([z, x])",
    "deque": "collections.deque([z])",
    "counter": "collections.Counter([z, z, x])",
    "defaultdict": "collections.defaultdict(list, {1: [z]})",
    "default_key": "collections.defaultdict(int, {z: n})",
    "ordered": "collections.OrderedDict({z: 1})",
    "ordered_values": "collections.OrderedDict(a=z)",
    "chain": "collections.ChainMap({1: z})",
    "keys": "{z: 1}.keys()",
    "values": "{1: z}.values()",
    "items": "{z: x}.items()",
    "frozen": "Frozen(z)",
    "narrow": "Narrow(z)",
    "slotted": "Slotted(z)",
    "held": "Held(z)",
    "named": "Named(z, n)",
    "namespace": "types.SimpleNamespace(t=z)",
    "proxy": "types.MappingProxyType({1: z})",
    "partial": "functools.partial(ops.add, z)",
    "bound": "Held(z).twice",
    "closure": "lambda: z * 2",
    "default": "lambda t=z: t + 1",
    "iterator": "iter([z, x])",
    "map": "map(lambda t: t * 2, [z])",
    "zip": "zip([z], [x])",
    "enumerate": "enumerate([z])",
    "reversed": "reversed([z, x])",
    "filter": "filter(None.__ne__, [z])",
    "generator": "generated(z)",
    "gen_exp": "(t * 2 for t in (z, x))",
    "count": "itertools.repeat(z, 2)",
    "chain_it": "itertools.chain([z], [x])",
    "slice": "slice(z, None)",
    "weakref": "[z, weakref.ref(z)]",
    "error": "ValueError(z)",
    "list_set": "[{z}, {z: z}]",
    "deep": "{1: [{z: ({z},)}]}",
    "cycle": "cyclic(z)",
    "method": "z.sum",
    "user_dict": "collections.UserDict({1: z})",
    "operator": "operator.itemgetter(0), z",
    'class': "type('Made', (), {'t': z})()",
    "property_free": "copy.copy(Held(z))",
    "made_key": "{Held(z): z}",
    "const_key": "{Tensor([1.0]): z}",
    "self_key": "{z: z}",
    "nested_key": "{Frozen(z): 1}",
    "memo": "functools.lru_cache(lambda: z)",
}
#: Where that goes.
PLACES = {
    "returned": "return {}",
    "stored": "W.o.t = {}\nreturn z",
    "appended": "W.l.append({})\nreturn z",
    'set_item': "W.d['k'] = {}\nreturn z",
    "slot": "W.sl.t = {}\nreturn z",
    "in_cell": "W.net.k2 = {}\nreturn z",
    "kept": "v = {}\ns = z.sum().item()\nreturn v, z * s",
}
#: What else a function does with ``z = x * 2``.
BODIES = {
    "requires_grad": "W.net.dense.weight.requires_grad = n > 1\nreturn z, W.net.dense.weight.requires_grad, len(W.net.trainable_params())",
    "requires_grad of all": "for p in W.net.get_parameters(): p.requires_grad = n == 2\nv = z.sum().item()\nreturn z * v, [p.requires_grad for p in W.net.get_parameters()]",
    "name of a parameter": "W.net.dense.weight.name = f'w{n}'\nreturn z, W.net.dense.weight.name",
    "in_set": "return x in W.s, z in W.s",
    "set_add": "W.s.add(z)\nreturn z in W.s, len(W.s)",
    "set_add_x": "W.s.add(x)\nreturn len(W.s), x in W.s",
    "dict_get": "W.d[x] = n\nreturn W.d.get(x), W.d.get(z), len(W.d)",
    "dict_clear": "W.d.clear(); W.d[z] = 1\nreturn z in W.d, list(W.d)[0] is z",
    "two_keys": "m = {x: 1, y: 2}\ns = x.sum().item()\nreturn z * s, y in m, m[x]",
    "lru": "return remembered(x) * z, remembered(z)",
    "weak_key": "W.weak[z] = 1\nreturn len(W.weak), z",
    "fifo": "W.fifo.put(z)\nreturn z + 1",
    "deque_append": "W.q.append(z)\nreturn z + 1",
    "deque_left": "W.q.appendleft({z: 1})\nreturn z",
    "counter_outside": "W.c[n] += 1\nreturn z * W.c[n]",
    "counter_update": "W.c.update([z, n])\nreturn z",
    "defaultdict_outside": "W.dd[n].append(z)\nreturn z",
    "local": "W.local.t = z\nreturn W.local.t + 1",
    "var": "W.var.set(z)\nreturn W.var.get() + 1",
    "held_list": "a = Held([z]); W.l.append(a.t)\nreturn z",
    "held_list2": "a = Held([]); a.t.append(z); W.l.append(a.t)\nreturn z",
    'held_dict': "a = Held({1: z}); W.d['k'] = a.t\nreturn z",
    "stored_then_read": "W.o.t = Held(z); W.l.append(W.o.t)\nreturn z",
    "stored_twice": "b = [z]; W.o.t = b; W.l.append(b); b.append(x)\nreturn z",
    "existing_object": "W.l.append(W.o); W.d[n] = W.o\nreturn W.l[0] is W.o, z",
    "existing_key": "W.d[W.o] = n\nreturn W.d[W.o], z",
    "existing_fn": "W.l.append(doubled); W.o.t = ops.add\nreturn z, W.l[-1] is doubled",
    "existing_method": "W.l.append(W.o.twice)\nreturn z",
    "existing_cell": "W.l.append(W.net); W.o.t = W.net.dense\nreturn z, W.o.t is W.net.dense",
    "existing_param": "W.l.append(W.net.dense.weight); W.d[W.net.dense.weight] = 1\nreturn z, W.net.dense.weight in W.d",
    'existing_set': "W.d['k'] = W.s; W.s.add(n)\nreturn z, W.d['k'] is W.s",
    "existing_tuple": "W.o.t = (W.o, z)\nreturn W.o.t[0] is W.o",
    "set_of_numbers": "W.o.t = {n, 1}\nreturn z, W.o.t",
    "new_object_each": "W.l.append(Held(n))\nreturn z, len({id(v) for v in W.l})",
    "array": "W.l.append(np.zeros(2)); W.l[-1][0] = n\nreturn z",
    'print_set': "print({n, 'a'}, Held)\nreturn z",
    "print_held": "print(type(Held(z)).__name__)\nreturn z",
    "global_key": "W.d[W.key] = z\nreturn W.d[W.key], W.key in W.d",
    "const_tensor_key": "t = Tensor([1.0, 2.0]); t += x\nreturn {t: 1}, t",
    "extra_attr": "f = Named(z, n); g = f._replace(k=3)\nreturn f, g",
    'swap': "W.o.t = {'a': W.o}\nreturn z",
    "key_in_loop": "s = set()\nfor t in (x, z, x): s.add(t)\nreturn len(s), z",
    "sort_key": "return max((x, z), key=lambda t: t.sum()), {x: 1}",
    "match": "m = {n: z}\nreturn m[n], {k: v for k, v in m.items()}",
    "vmap_print": "return ms.vmap(count)(pair(x))",
    "vmap_list": "return ms.vmap(doubled)(pair(x)), len(W.l)",
    "slice_arg": "s = slice(0, n)\nreturn x[s], s",
    "exc_args": "try:\n    raise KeyError(z)\nexcept KeyError as e:\n    return e.args[0] + 1, e",
    'cells_append': "W.cells.append(nn.Dense(2, 2, weight_init='ones', bias_init='zeros'))\nfor c in W.cells: z = c(z.reshape(1, 2))\nreturn z * z.sum().item(), len(W.cells)",
    "cells_extend": "if n == 2: W.cells.extend([nn.ReLU(), nn.ReLU()])\nfor c in W.cells: z = c(z.reshape(1, 2))\nreturn z * z.sum().item(), len(W.cells)",
    "cells_insert": "W.cells.insert(0, nn.ReLU())\nreturn W.cells[0](z) * z.sum().item(), len(W.cells)",
    "cells_item": "W.cells[0] = nn.ReLU() if n > 1 else nn.Tanh()\nreturn W.cells[0](z) * z.sum().item(), len(W.cells)",
    "cells_del": "if len(W.cells) and n == 2: del W.cells[0]\nv = z.sum().item()\nreturn z * v, len(W.cells)",
    "seq_append": "W.seq.append(nn.ReLU())\nv = z.sum().item()\nreturn W.seq(z) * v, len(W.seq)",
    'dict_cells': "W.names['c%d' % n] = nn.ReLU()\nreturn W.names['c%d' % n](z), len(W.names)",
    'dict_pop': "W.names['a'] = nn.ReLU()\nc = W.names.pop('a')\nreturn c(z) * x.sum().item(), len(W.names)",
    'insert_child': "if not hasattr(W.net, 'extra'): W.net.insert_child_to_cell('extra', nn.ReLU()); W.net.k = 0\nW.net.k += 1\nreturn W.net.extra(z) * z.sum().item() * W.net.k",
    "attr_cell": "W.net.other = nn.ReLU()\nreturn W.net.other(z) * z.sum().item(), len(W.net._cells)",
    "del_cell": "W.net.other = nn.ReLU()\ndel W.net.other\nreturn z * z.sum().item(), len(W.net._cells)",
    'attr_param': "W.net.p = Parameter(Tensor([1.0, 2.0]), name='p')\nv = z.sum().item()\nreturn W.net.p * z * v",
    'insert_param': "if n == 2: W.net.insert_param_to_cell('pp', Parameter(Tensor([1.0, 2.0]), name='pp'))\nv = z.sum().item()\nreturn z * v, len(W.net._params)",
    'replace_dense': "W.net.dense = nn.Dense(2, 2, weight_init='ones', bias_init='ones')\nv = z.sum().item()\nreturn W.net(z) * v",
    'buffer': "W.net.register_buffer(f'b{n}', Tensor([1.0]))\nv = z.sum().item()\nreturn z * v, len(W.net._buffers)",
    "train": "W.net.set_train(n > 1)\nv = z.sum().item()\nreturn z * v, W.net.training",
    "to_float": "W.net.to_float(ms.float16)\nv = z.sum().item()\nreturn W.net(z) * v",
    "flags": "W.net.add_flags(a=n)\nreturn z * W.net.a",
    "made_inside": "c = nn.CellList([nn.ReLU()]); c.append(nn.Tanh()); c.x = nn.ReLU()\nreturn c[1](z), len(c)",
    "made_net": "c = Net(); c.k = n\nreturn c(z), c.k",
    'raise_after': "W.cells.append(nn.ReLU())\nif n == 2: raise ValueError('no')\nreturn z, len(W.cells)",
    "param_none": "W.net.dense.bias = None\nreturn z * z.sum().item()",
    "loop_append": "for k in range(n): W.cells.append(nn.ReLU())\nreturn z, len(W.cells)",
    "branch_append": "if x.sum() > 1: W.cells.append(nn.ReLU())\nreturn z, len(W.cells)",
}
