"""What users call: ``shard``, ``redistribute`` and layouts of operators and networks."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tvmgraph.capture.checks import is_cell
from tvmgraph.capture.record import capture
from tvmgraph.capture.recorder import Recorder
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.distributed import engine, plan
from tvmgraph.distributed.layout import (
    Axes,
    Layout,
    Mesh,
    Spec,
    flat_mesh,
    layout_of,
    spec_of,
    text_of,
)
from tvmgraph.distributed.partition import partition
from tvmgraph.distributed.propagate import mesh_of
from tvmgraph.distributed.sharded import DTensor, ShardedGraph, shards_of, splits_of
from tvmgraph.errors import ArgumentError, DTypeError, KeyNotFoundError, reject
from tvmgraph.jit.function import JitFunction


def mesh_for(*strategies: object) -> Mesh | None:
    """Returns the mesh of the first layout among strategies, None without any.

    Args:
        *strategies: Layouts, or tuples, lists and dicts of them.
    """
    for s in strategies:
        if isinstance(s, Layout):
            return s.mesh
        inside = s.values() if isinstance(s, Mapping) else s if isinstance(s, (tuple, list)) else ()
        found = mesh_for(*inside)
        if found is not None:
            return found
    return None


def data_axes(cell: Any, mesh: Mesh | None = None) -> tuple[Mesh, Axes]:
    """Returns the mesh of a Cell's planned parameters, and its axes that split none of them.

    Args:
        cell: A Cell, or any function, which has no parameters.
        mesh: The mesh, if it is known; else that of integers where nothing is planned.
    """
    known = cell.get_parameters() if is_cell(cell) else ()
    planned = [p.sharding for p in known if getattr(p, "sharding", None) is not None]
    if mesh is None:
        mesh = planned[0].mesh if planned else flat_mesh(engine.world().size)
    assert mesh is not None
    used = {a for layout in planned for axes in layout.spec or () for a in axes}
    free = tuple(n for n in mesh.names if n not in used)
    return mesh, free or mesh.names


def constrain(tensor: Any, strategy: object, mesh: Mesh, what: str) -> Tensor:
    """Asks that a tensor be split like this; anything but a tensor is returned as it is.

    Args:
        tensor: The tensor.
        strategy: A Layout, or how often every axis is split.
        mesh: The mesh.
        what: What an error calls the tensor.
    """
    if not isinstance(tensor, Tensor):
        return tensor
    spec = spec_of(strategy, tensor.aval.shape, mesh, what)  # pyright: ignore[reportArgumentType]
    return F.placed_as(tensor, layout=text_of(mesh, spec))


class Sharded(JitFunction):
    """What :func:`shard` returns: the function over all processes.

    Args:
        fn: Function or Cell.
        in_strategy: Per argument how it is split.
        out_strategy: Per result how it stays split, or None.
        mesh: The processes of strategies of integers.
    """

    def __init__(
        self, fn: Callable[..., Any], in_strategy: object, out_strategy: object, mesh: Mesh
    ) -> None:
        self.target, self.mesh = fn, mesh
        self.in_strategy, self.out_strategy = in_strategy, out_strategy
        self.hardware = plan.hardware_of(None)
        self.choice: plan.Choice | None = None
        super().__init__(self._bound())

    def _bound(self) -> Any:
        bound = (self.target, self.in_strategy, self.out_strategy, self.mesh)
        called = functools.partial(_called, *bound)
        name = getattr(self.target, "__name__", type(self.target).__name__)
        called.__name__ = name  # pyright: ignore[reportAttributeAccessIssue]
        return called

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function on whole tensors or on :class:`DTensor`."""
        if self.in_strategy == "auto":
            self._choose(args)
        if state.interpreter is not None:
            return self.fn(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def _choose(self, args: Sequence[object]) -> None:
        """Searches for the cheapest splits, for ``in_strategy="auto"``."""
        if state.interpreter is not None:
            raise ArgumentError('in_strategy="auto" is decided by a call of its own', op="shard",
                                fix="call it once outside of jit")  # fmt: skip
        captured = capture(_plainly(self.target), tuple(args), {}, self.settings)
        found = plan.search(captured.graph, self.mesh, self.hardware)
        by_value = dict(zip((p.value for p in captured.graph.params), captured.holders))
        for value, spec in found.parameters.items():
            held = by_value[value]
            if isinstance(held, Parameter):
                held.sharding = layout_of(self.mesh, spec)  # pyright: ignore
        chosen = iter(layout_of(self.mesh, s) for s in found.inputs)
        self.in_strategy = tuple(next(chosen) if isinstance(a, Tensor) else None for a in args)
        self.fn = self._bound()
        self.choice = found

    def explain(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, *inputs: object, mesh: object = None, hardware: Any = None, kernels: bool = False
    ) -> str:
        """Returns what the function became, or would become on other processes.

        Per program: how inputs and parameters are split, its collectives with their bytes, what
        every process computes whole, and by a model of the hardware the memory of a process and
        the time of a call.

        Args:
            *inputs: Example arguments; by default the newest call counts. Nothing is compiled.
            mesh: A :class:`Layout` with the names of the one in the strategies and other sizes.
            hardware: ``"cpu"``, ``"h100"``, ``"a100"`` or a :class:`.plan.Hardware`.
            kernels: Also say what is known of the kernels.

        Raises:
            ArgumentError: if the mesh lacks an axis, or the hardware is unknown.
            ShapeError: if a tensor cannot be split over the mesh.
        """
        machine = plan.hardware_of(hardware)
        plans = [plan.cost(p, machine) for p in self._plans(inputs, mesh)]
        lines = [] if inputs else [super().explain(kernels)]
        return "\n".join([*lines, *map(str, plans)])

    def plan(self, *inputs: object, mesh: object = None, hardware: Any = None) -> plan.Plan:
        """Returns what a call would cost one process; arguments as :meth:`explain`.

        Args:
            *inputs: What the function is called with.
            mesh: A Layout of another mesh with the same axes.
            hardware: A name, or a :class:`tvmgraph.distributed.plan.Hardware`; by default
                ``"cpu"``.
        """
        (found,) = self._plans(inputs, mesh)[:1]
        return plan.cost(found, plan.hardware_of(hardware))

    def _plans(self, inputs: Sequence[object], mesh: object) -> list[Any]:
        if not inputs and mesh is None:
            return self.programs
        if inputs:
            captures = [capture(self.fn, tuple(inputs), {}, self.settings)]
        else:
            captures = [e.captured for kept in self.entries.values() for e in kept]
        found = []
        for captured in captures:
            graph = captured.graph
            wanted = plan.mesh_given(mesh) if mesh is not None else mesh_of(graph) or self.mesh
            graph = graph if mesh is None else plan.on_mesh(graph, wanted)
            held = [h if isinstance(h, Tensor) else None for h in captured.holders]
            found.append(partition(graph, wanted, splits_of(graph, held, wanted)))
        return found

    @property
    def programs(self) -> list[object]:
        """Graph, layouts and collectives of a process's part, for each of the newest captures."""
        found = [e.compiled for kept in self.entries.values() for e in kept]
        return [c.found for c in found if isinstance(c, ShardedGraph)]


def _plainly(fn: Callable[..., object]) -> Callable[..., object]:
    return (lambda *args: fn(*args)) if is_cell(fn) else fn


def _called(
    fn: Any, in_strategy: Any, out_strategy: object, mesh: Mesh, *args: object, **kwargs: object
) -> object:
    strategies = tuple(in_strategy)
    if len(strategies) != len(args):
        reject(ArgumentError, "shard",
               f"in_strategy has {len(strategies)} entries for {len(args)} arguments",
               repr(in_strategy))  # fmt: skip
    _, axes = data_axes(fn, mesh)
    placed = []
    for i, (a, s) in enumerate(zip(args, strategies)):
        if s is None and isinstance(a, Tensor):  # along the batch
            s = layout_of(mesh, (axes, *((),) * (a.ndim - 1)) if a.ndim else ())
        placed.append(constrain(a, s, mesh, f"argument {i}"))
    if state.interpreter is not None and not is_cell(fn):
        result = state.interpreter.call(fn, tuple(placed), kwargs)
    else:
        result = fn(*placed, **kwargs)
    return _constrained_results(result, out_strategy, mesh)


def _constrained_results(result: object, out_strategy: Any, mesh: Mesh) -> object:
    many = isinstance(result, (tuple, list))
    results = list(result) if many else [result]
    if out_strategy is None:
        return result
    if isinstance(out_strategy, Layout):
        out_strategy = (out_strategy,)
    if len(out_strategy) != len(results):
        reject(ArgumentError, "shard",
               f"out_strategy has {len(out_strategy)} entries for {len(results)} results",
               repr(out_strategy))  # fmt: skip
    found = [
        r if s is None else constrain(r, s, mesh, f"result {i}")
        for i, (r, s) in enumerate(zip(results, out_strategy))
    ]
    return type(result)(found) if many else found[0]


def shard(
    fn: object,
    in_strategy: Any,
    out_strategy: object = None,
    parameter_plan: Mapping[str, object] | None = None,
    device: str = "",
    level: int = 0,
) -> Sharded:
    """Runs a function or a Cell on all processes of the job, each of which computes a part.

    How a few tensors are split is given; the rest follows: the function is captured as a program
    of whole tensors, splits are propagated over it, and every process compiles its part with the
    collectives that are needed. Called from eager code, inside :func:`tvmgraph.jit` and inside of
    training steps; every process calls it with the same whole tensors, or with a :class:`DTensor`.

    Args:
        fn: Function or Cell.
        in_strategy: Per argument a called :class:`Layout`, a tuple of one integer per dimension
            (into how many parts), or ``None``: along the first dimension over the processes that
            no parameter is planned to be split over. ``"auto"``
            searches for the splits of arguments and parameters that cost least by the model of
            :mod:`.plan`, at the first call.
        out_strategy: The same per result; a result with a strategy comes back as a
            :class:`DTensor`. ``None`` gathers it.
        parameter_plan: The same by name of some of the Cell's parameters, such as ``"fc.weight"``
            or ``"self.fc.weight"``; the others follow.
        device: Kept for MindSpore programs.
        level: Kept for MindSpore programs.

    Returns:
        The function over all processes; ``explain()`` says what it became.

    Raises:
        ArgumentError: if a strategy does not fit a tensor or the processes.
        KeyNotFoundError: if ``parameter_plan`` names no parameter of the Cell.
        DTypeError: if ``fn`` cannot be called, or has a plan and is no Cell.

    Example:
        >>> double = ms.shard(lambda x: x * 2, in_strategy=((1, 1),))
        >>> double(Tensor([[1.0, 2.0]])).shape
        (1, 2)
    """
    if not callable(fn):
        raise DTypeError(f"shard needs a function or a Cell, not {type(fn).__name__}", op="shard")
    if isinstance(in_strategy, Layout):
        in_strategy = (in_strategy,)
    if not isinstance(in_strategy, (tuple, list)) and in_strategy != "auto":
        reject(DTypeError, "shard",
               f"in_strategy must be a tuple, not {type(in_strategy).__name__}",
               fix="one entry per argument, or 'auto'")  # fmt: skip
    mesh = mesh_for(in_strategy, out_strategy or (), parameter_plan or {})
    mesh = mesh if mesh is not None else data_axes(fn)[0]
    _plan(fn, parameter_plan or {}, mesh)
    given = in_strategy if in_strategy == "auto" else tuple(in_strategy)
    return Sharded(fn, given, out_strategy, mesh)


def _plan(fn: Any, plan: Mapping[str, object], mesh: Mesh) -> None:
    """Notes on parameters how they shall be split."""
    if plan and not is_cell(fn):
        raise DTypeError("parameter_plan needs a Cell", op="shard")
    known: dict[str, Parameter] = fn.parameters_dict() if plan else {}
    for given, strategy in plan.items():
        name = given.removeprefix("self.")  # as MindSpore's programs write it
        if name not in known:
            reject(KeyNotFoundError, "shard",
                   f"parameter_plan names {name!r}, which is no parameter",
                   fix=f"the Cell has {', '.join(known)}")  # fmt: skip
        spec = spec_of(strategy, known[name].shape, mesh, f"parameter {name!r}")
        known[name].sharding = layout_of(mesh, spec)  # pyright: ignore[reportAttributeAccessIssue]


def redistribute(tensor: Tensor, layout: object) -> Tensor:
    """Returns a tensor in another layout, moved with the collective that passes least.

    Args:
        tensor: A :class:`DTensor`, or a tensor that every process has as a whole.
        layout: A called :class:`Layout`, or integers per dimension; all ones gather.

    Raises:
        ArgumentError: if the layout does not fit.
        DTypeError: if an argument is something else.
    """
    for name, value, kinds in (
        ("tensor", tensor, (Tensor,)), ("layout", layout, (Layout, tuple, list)),
    ):  # fmt: skip
        if not isinstance(value, kinds):
            raise DTypeError(f"{name} cannot be a {type(value).__name__}", op="redistribute")
    known = shards_of(tensor)
    mesh = mesh_for(layout) or (known.mesh if known is not None else None)
    mesh = mesh or flat_mesh(engine.world().size)
    if state.interpreter is not None:
        return constrain(tensor, layout, mesh, "tensor")
    source = None if known is None else layout_of(known.mesh, known.spec)
    spec = spec_of(layout, tensor.shape, mesh, "layout", "redistribute")
    moved = _mover(text_of(mesh, spec), source, mesh)
    return moved(tensor)


reshard = redistribute


@functools.cache
def _mover(target: str, source: Layout | None, mesh: Mesh) -> JitFunction:
    def moved(x: Tensor) -> Tensor:
        start = source if source is not None else (1,) * x.ndim
        return F.placed_as(constrain(x, start, mesh, "tensor"), layout=target)

    return JitFunction(moved)


# ---- operators ----------------------------------------------------------------------------------


def shard_primitive(operator: object, in_strategy: object, out_strategy: object) -> object:
    """Lets an operator ask for the layouts of its operands and results; returns it.

    Args:
        operator: The instance; it gets a class of its own.
        in_strategy: Per operand, as :func:`shard` takes it.
        out_strategy: Per result, or None.
    """
    mesh = mesh_for(in_strategy, out_strategy)
    if mesh is None and engine.world().size == 1:
        return operator  # integers are how many of the processes take part, and there is one
    mesh = mesh or flat_mesh(engine.world().size)
    plain: type = getattr(type(operator), "_plain", type(operator))

    def call(self: object, *args: object) -> object:
        placed: Sequence[object] = args
        if in_strategy is not None:
            placed = _cheapest(functools.partial(plain.__call__, self), in_strategy, mesh, args)
        return _constrained_results(plain.__call__(self, *placed), out_strategy, mesh)

    operator.__class__ = type(plain.__name__, (plain,), {"__call__": call, "_plain": plain})
    return operator


def _cheapest(fn: Callable[..., Any], strategies: Any, mesh: Mesh, args: Sequence[Any]) -> Any:
    """Places operands so that the operator needs least traffic.

    Integers say into how many parts a dimension is cut and not along which axis of the mesh: equal
    numbers mean the same axis where the dimensions are the same to the operator.
    """
    tensors = [a for a in args if isinstance(a, Tensor)]
    given = [s for a, s in itertools.zip_longest(args, strategies) if isinstance(a, Tensor)]
    if len(given) != len(tensors):
        raise ArgumentError(f"in_strategy has {len(strategies)} entries for {len(args)} operands",
                            op="shard")  # fmt: skip
    choices = [list(_readings(s, t, mesh, i)) for i, (s, t) in enumerate(zip(given, tensors))]
    best: tuple[Spec, ...] = tuple(c[0] for c in choices)
    if mesh.size > 1 and any(len(c) > 1 for c in choices):
        recorder = Recorder("operator")
        inputs = [recorder.argument(t.aval, f"x{i}") for i, t in enumerate(tensors)]
        rest = iter(inputs)
        with state.interpreting(recorder):
            result = fn(*[next(rest) if isinstance(a, Tensor) else a for a in args])
        results = result if isinstance(result, (tuple, list)) else [result]
        graph = recorder.builder.build([recorder.value_of(r) for r in results])
        values = [p.value for p in graph.params]

        def traffic(specs: tuple[Spec, ...]) -> int:
            found = partition(graph, mesh, dict(zip(values, specs)))
            return sum(t.nbytes for t in found.transfers)

        best = min(itertools.product(*choices), key=traffic)
    rest = iter(best)
    return [F.placed_as(a, layout=text_of(mesh, next(rest))) if isinstance(a, Tensor) else a
            for a in args]  # fmt: skip


def _readings(strategy: object, tensor: Tensor, mesh: Mesh, i: int) -> Iterator[Spec]:
    """All splits that a strategy may mean, the usual one first."""
    first = spec_of(strategy, tensor.shape, mesh, f"operand {i}")
    yield first
    if strategy is None or isinstance(strategy, Layout):
        return
    for names in itertools.permutations(mesh.names):
        turned = Mesh(tuple(mesh.count((n,)) for n in names), names)
        found = spec_of(strategy, tensor.shape, turned, f"operand {i}")
        if found != first:
            yield found


__all__ = ["DTensor", "Layout", "Sharded", "redistribute", "reshard", "shard", "shard_primitive"]

_guard_module({"Layout": Layout})
