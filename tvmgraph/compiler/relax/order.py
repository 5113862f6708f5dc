"""The order of kernels in a training step: parameters are updated as soon as that is possible.

As it is written, a step computes all gradients before it updates the first parameter, so that all
of them live at the same time. Moved to where its gradient is known, an update frees it at once. It
still waits for everything else that reads the parameter, so that it can write in its place.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

import tvm
from tvm import relax

from tvmgraph.backend.memory import size_of
from tvmgraph.compiler.relax.in_place import Reader, is_view, main_block, reads_of, writes_of

_SMALL = 4096  # bytes of a result that may live longer than it has to


def order_updates(mod: tvm.IRModule) -> tvm.IRModule:
    """Moves the kernels that only serve to replace parameters forward, if that saves memory.

    Args:
        mod: A fused module. Its ``main`` may carry the attribute ``WRITES``: pairs of an output
            and the parameter that it replaces.
    """
    main = main_block(mod)
    if main is None or not writes_of(main):
        return mod
    steps = _Steps(main)
    order = steps.early()
    if steps.peak(order) >= steps.peak(range(len(steps.bindings))):
        return mod
    block = relax.DataflowBlock([steps.bindings[i] for i in order])
    body = relax.SeqExpr([block], main.body.body)
    mod[mod.get_global_var("main")] = relax.Function(
        main.params, body, main.ret_ty, main.is_pure, main.attrs
    )
    return mod


@tvm.transform.module_pass(opt_level=0, name="BindSizesFirst")
def bind_sizes_first(mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
    """Puts what binds a size before what has it: TVM's fusion orders by reads of tensors alone.

    Args:
        mod: A Relax module.
    """
    for gv, function in list(mod.functions.items()):
        if isinstance(function, relax.Function) and isinstance(function.body, relax.SeqExpr):
            blocks = [_sizes_first(block) for block in function.body.blocks]
            if not all(map(lambda a, b: a is b, blocks, function.body.blocks)):
                body = relax.SeqExpr(blocks, function.body.body)
                mod[gv] = relax.Function(
                    function.params, body, function.ret_ty, function.is_pure, function.attrs
                )
    return mod


def _sizes_first(block: relax.BindingBlock) -> relax.BindingBlock:
    """Returns the block itself where no size is bound."""
    bindings = list(block.bindings)
    if not any(isinstance(b, relax.MatchCast) for b in bindings):
        return block
    position = {b.var: i for i, b in enumerate(bindings)}
    needs = [{position[v] for v in read if v in position} for read in reads_of(bindings)]
    order: dict[int, None] = {}
    waiting = list(reversed(range(len(bindings))))
    while waiting:
        missing = needs[waiting[-1]] - order.keys()
        if missing:
            waiting += sorted(missing, reverse=True)
        else:
            order.setdefault(waiting.pop())
    return type(block)([bindings[i] for i in order])


class _Steps:
    """The bindings of a function, what each needs, and what needs it."""

    def __init__(self, main: relax.Function) -> None:
        reader = Reader(main)
        self.bindings = reader.bindings
        count = len(self.bindings)
        self.needs: list[set[int]] = [set() for _ in range(count)]
        self.users: list[set[int]] = [set() for _ in range(count)]
        for var, readers in reader.readers.items():
            maker = reader.defined.get(var)
            if maker is not None:
                self.users[maker].update(readers)
                for i in readers:
                    self.needs[i].add(maker)
        #: Positions of the kernels that replace parameters, with the parameters.
        self.replaced: dict[int, list[relax.Var]] = defaultdict(list)
        written = set()
        for output, param in writes_of(main):
            var = reader.outputs[output]
            written.add(var)
            maker = _kernel_of(reader, var)
            if maker is not None:
                self.replaced[maker].append(param)
        self.last = reader.defined.get(main.body.body)
        self.kept = {reader.defined.get(v) for v in reader.outputs if v not in written}
        self.sizes = [
            0 if i in self.replaced or self._is_name(b.value) else _bytes(b.var.ty)
            for i, b in enumerate(self.bindings)
        ]  # fmt: skip
        self.readers = reader.readers

    @staticmethod
    def _is_name(value: relax.Expr) -> bool:
        """Whether an expression gives a new name to what is there already."""
        return isinstance(value, (relax.Tuple, relax.TupleGetItem, relax.Var)) or is_view(value)

    def early(self) -> list[int]:
        """Returns an order in which updates, and what only they need, come as early as they can."""
        moved = self._movable()
        waiting = self._with_readers(moved)
        after: dict[int, list[int]] = defaultdict(list)
        for i, before in enumerate(waiting):
            for j in before:
                after[j].append(i)
        left = [len(before) for before in waiting]
        ready = [i for i in moved if not left[i]]
        heapq.heapify(ready)
        others = iter([i for i in range(len(self.bindings)) if i not in moved])
        order: list[int] = []
        while len(order) < len(self.bindings):
            i = heapq.heappop(ready) if ready else next(others)
            order.append(i)
            for j in after[i]:
                left[j] -= 1
                if not left[j] and j in moved:
                    heapq.heappush(ready, j)
        return order

    def _movable(self) -> set[int]:
        """The updates, and what is small and serves nothing else, such as the learning rate."""
        found: set[int] = set()
        for i in reversed(range(len(self.bindings))):
            users = self.users[i] - {self.last}
            serves = i != self.last and i not in self.kept and users <= found
            if serves and (i in self.replaced or self.sizes[i] <= _SMALL):
                found.add(i)
        return found

    def _with_readers(self, moved: set[int]) -> list[set[int]]:
        """What must come before every binding if parameters are to be replaced in place."""
        needs = [set(before) for before in self.needs]
        for i, params in self.replaced.items():
            if i not in moved:
                continue
            later = self._after(i)
            for param in params:
                readers = set(self.readers.get(param, ())) - {i}
                if not readers & later:
                    needs[i] |= readers
        return needs if _is_acyclic(needs) else self.needs

    def _after(self, position: int) -> set[int]:
        """Everything that needs a binding."""
        found: set[int] = set()
        todo = [position]
        while todo:
            new = self.users[todo.pop()] - found
            found |= new
            todo.extend(new)
        return found

    def peak(self, order: Sequence[int]) -> int:
        """Returns the largest sum of bytes that live at one time in an order."""
        position_of = {i: n for n, i in enumerate(order)}
        freed: dict[int, list[int]] = defaultdict(list)
        for i, ends in self._last_uses(order, position_of).items():
            freed[ends].append(self.sizes[i])
        live = peak = 0
        for n, i in enumerate(order):
            live += self.sizes[i] + self._copies(i, position_of)
            peak = max(peak, live)
            live -= sum(freed[n])
        return peak

    def _copies(self, position: int, position_of: dict[int, int]) -> int:
        """Bytes of the new parameters that cannot take the place of the old ones."""
        return sum(
            _bytes(param.ty)
            for param in self.replaced.get(position, ())
            if any(position_of[r] > position_of[position] for r in self.readers.get(param, ()))
        )

    def _last_uses(self, order: Sequence[int], position_of: dict[int, int]) -> dict[int, int]:
        """Where in an order the memory of every binding is used last, under any of its names."""
        last: dict[int, int] = {}
        for i in reversed(order):
            last[i] = position_of[i]
            for user in self.users[i]:
                is_name = self._is_name(self.bindings[user].value) and user != self.last
                last[i] = max(last[i], last[user] if is_name else position_of[user])
        return last


def _is_acyclic(needs: Sequence[set[int]]) -> bool:
    try:
        TopologicalSorter(dict(enumerate(needs))).prepare()
    except CycleError:
        return False
    return True


def _kernel_of(reader: Reader, var: relax.Var) -> int | None:
    """The position of the kernel call whose result, or part of it, a variable is."""
    position = reader.defined.get(var)
    if position is not None:
        value = reader.bindings[position].value
        if isinstance(value, relax.TupleGetItem):
            position = reader.defined.get(value.tuple_value)
    return position


def _bytes(ty: object) -> int:
    """The bytes of a value's tensors; those of unknown size count as none."""
    if isinstance(ty, relax.TupleType):
        return sum(_bytes(field) for field in ty.fields)
    if not isinstance(ty, relax.TensorType) or ty.shape is None or not ty.dtype:
        return 0
    return size_of(ty.shape, ty.dtype) or 0
