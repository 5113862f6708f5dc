"""Control flow inside graphs: a branch, a loop, and the derivative of a loop.

A region is a closed graph: everything it reads comes as one of its parameters. That keeps every
interpreter of the table simple, and the derivative of a branch is again a branch. Code that is
captured writes these rows; they are not meant to be called by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tvmgraph import dtypes, hooks
from tvmgraph.core import state as thread
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.op import F, Sample, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import REGIONS, Slot, Tie
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.errors import DTypeError, ShapeError
from tvmgraph.graph import Graph, GraphBuilder
from tvmgraph.graph.ir import Value
from tvmgraph.graph.simplify import quiet
from tvmgraph.ops.control_flow import onnx as _control_onnx
from tvmgraph.ops.control_flow.lowering import LoopFunctions, SweepFunctions
from tvmgraph.ops.elementwise.arithmetic import add, mul
from tvmgraph.ops.elementwise.comparison import less
from tvmgraph.ops.math.power import exp
from tvmgraph.ops.math.trigonometric import cos, sin

__all__: list[str] = []


@dataclass(frozen=True)
class Outlined:
    """How a row with regions is lowered: functions first, then a call in the body.

    Attributes:
        define: ``(R, types, **regions)`` defines functions and returns what ``emit`` needs.
        emit: ``(R, functions, args)`` returns the expression.
    """

    define: Callable[..., object]
    emit: Callable[..., object]


def _types(graph: Graph) -> tuple[list[TensorType], tuple[TensorType, ...]]:
    return [p.value.type for p in graph.params], tuple(v.type for v in graph.outputs)


def _require(what: str, got: Sequence[TensorType], wanted: Sequence[TensorType]) -> None:
    if list(got) != list(wanted):
        same = [t.shape for t in got] == [t.shape for t in wanted]
        raise (DTypeError if same else ShapeError)(
            f"{what}: {', '.join(map(str, got))} where {', '.join(map(str, wanted))} is needed"
        )


def _require_flag(t: TensorType) -> None:
    if t.shape != () or t.dtype is not dtypes.bool_:
        raise DTypeError(f"the condition must be bool[], not {t}")


def _is_float(t: TensorType) -> bool:
    return t.dtype.kind in "fc"


# ---- branch -------------------------------------------------------------------------------------


def _infer_if(*types: TensorType, then: Graph, orelse: Graph) -> tuple[TensorType, ...]:
    if not types:
        raise DTypeError("a branch needs a condition")
    _require_flag(types[0])
    for region in (then, orelse):
        _require("a branch's operands", types[1:], _types(region)[0])
    _require("the results of the second branch", _types(orelse)[1], _types(then)[1])
    return _types(then)[1]


def _eager_if(
    condition: np.ndarray, *arrays: np.ndarray, then: Graph, orelse: Graph
) -> tuple[np.ndarray, ...]:
    return tuple(hooks.evaluate(then if condition.item() else orelse, arrays))


def _define_if(
    R: Builder, types: Sequence[object], then: Graph, orelse: Graph
) -> tuple[Expr, Expr]:
    return R.outline(then), R.outline(orelse)


def _emit_if(R: Builder, functions: Expr, args: Sequence[Expr]) -> Expr:
    condition, *rest = args
    return R.branch(condition, *(R.invoke(f, rest) for f in functions))


def _vjp_if(
    g: Sequence[Tensor | None],
    y: object,
    condition: Tensor,
    *xs: Tensor,
    then: Graph,
    orelse: Graph,
) -> tuple[Tensor | None, ...]:
    wanted = [i for i, x in enumerate(xs) if thread.has_cotangent(x.dtype)]
    given = [i for i, c in enumerate(g) if c is not None]
    if not wanted:
        return (None, *[None for _ in xs])
    found = F.if_(
        condition, *xs, *[g[i] for i in given],
        then=hooks.reverse(then, wanted, given), orelse=hooks.reverse(orelse, wanted, given),
    )  # fmt: skip
    by_position = dict(zip(wanted, found))
    return (None, *[by_position.get(i) for i in range(len(xs))])


def _ties_if(inputs: int, outputs: int, then: Graph, orelse: Graph) -> list[Tie]:
    taken = [
        (Slot(0, False, i + 1), Slot(1, False, i), Slot(2, False, i)) for i in range(inputs - 1)
    ]
    return [*taken, *[tuple(Slot(r, True, i) for r in range(3)) for i in range(outputs)]]


def _region(name: str, types: Sequence[TensorType], body: Callable[..., list[Value]]) -> Graph:
    """Builds a sample region: ``body(call, *values)`` returns its outputs."""
    b = GraphBuilder(name)
    params = [b.param(t) for t in types]

    def call(row: Any, *xs: Value, **attrs: object) -> Value:
        return b.call(row.op, xs, **attrs)[0]

    return b.build(body(call, b, *params))


_F23 = tensor_type((2, 3), dtypes.float32)
_F64 = tensor_type((2, 3), dtypes.float64)
_I = tensor_type((), dtypes.int64)
_TRUE, _FALSE = np.array(True), np.array(False)


def _if_samples() -> list[Sample]:
    def regions(t: TensorType) -> dict[str, Graph]:
        return {
            "then": _region("then", [t, t], lambda call, b, x, y: [call(mul, x, y), y]),
            "orelse": _region("orelse", [t, t], lambda call, b, x, y: [call(exp, y), x]),
        }

    other = _region("orelse", [_F23, _F23], lambda call, b, x, y: [x])
    return [
        sample(_TRUE, (2, 3), (2, 3), dtype=("bool", "float64", "float64"), attrs=regions(_F64)),
        sample(_FALSE, (2, 3), (2, 3), dtype=("bool", "float64", "float64"), attrs=regions(_F64)),
        sample(_TRUE, (2, 3), (2, 3), dtype=("bool", "float32", "float32"), attrs=regions(_F23),
               grad=False),
        sample(np.array(1.0), (2, 3), (2, 3), dtype="float32", attrs=regions(_F23),
               raises=DTypeError),
        sample(_TRUE, (2, 3), (2, 3), dtype=("bool", "float32", "float32"),
               attrs={**regions(_F23), "orelse": other}, raises=ShapeError),
    ]  # fmt: skip


@primitive(
    infer=_infer_if, eager=_eager_if, lower=Outlined(_define_if, _emit_if), vjp=_vjp_if,
    traits=replace(REGIONS, ties=_ties_if),
    onnx=_control_onnx.branch, samples=_if_samples(), multi=True,
)  # fmt: skip
def if_(*operands: Tensor, then: Graph, orelse: Graph) -> tuple[Tensor, ...]:
    """Runs one of two regions: ``then(*operands[1:]) if operands[0] else orelse(*operands[1:])``.

    Args:
        *operands: The condition ``bool[]``, then what both regions take.
        then: Region for a true condition.
        orelse: Region for a false condition, with results of the same types.

    Returns:
        The results of the region that ran.

    Raises:
        DTypeError: if the condition is not ``bool[]``.
        ShapeError: if the regions' parameters or results differ.

    Example:
        >>> ms.jit(lambda x: x * 2 if x.sum() > 0 else x)(Tensor([1.0])).asnumpy()
        array([2.], dtype=float32)
    """
    ...


# ---- loop ---------------------------------------------------------------------------------------


def _infer_while(*types: TensorType, cond: Graph, body: Graph) -> tuple[TensorType, ...]:
    state = _types(body)[1]
    for region in (cond, body):
        _require("the loop's operands", types, _types(region)[0])
    _require("the loop's new state", state, types[: len(state)])
    if len(cond.outputs) != 1:
        raise DTypeError(f"the condition region must give one result, not {len(cond.outputs)}")
    _require_flag(cond.outputs[0].type)
    return state


def _eager_while(*arrays: np.ndarray, cond: Graph, body: Graph) -> tuple[np.ndarray, ...]:
    count = len(body.outputs)
    state, fixed = list(arrays[:count]), arrays[count:]
    while hooks.evaluate(cond, [*state, *fixed])[0].item():
        state = hooks.evaluate(body, [*state, *fixed])
    return tuple(state)


def _define_while(R: Builder, types: Sequence[TensorType], cond: Graph, body: Graph) -> Expr:
    return LoopFunctions(R, types, cond, body).whole()


def _ties_while(inputs: int, outputs: int, cond: Graph, body: Graph) -> list[Tie]:
    ties = [tuple(Slot(r, False, i) for r in range(3)) for i in range(inputs)]
    ends = [(Slot(2, True, i), Slot(0, True, i)) for i in range(outputs)]
    return [*[t + e for t, e in zip(ties, ends)], *ties[outputs:]]


def _emit_call(R: Builder, function: Expr, args: Sequence[Expr]) -> Expr:
    return R.invoke(function, args)


def _vjp_while(
    g: Sequence[Tensor | None], y: object, *xs: Tensor, cond: Graph, body: Graph
) -> tuple[Tensor | None, ...]:
    cond, body = quiet(cond), quiet(body)  # its iterations run again
    count = len(body.outputs)
    whole = any(c is not None and not _is_float(c.aval) for c in g)
    kinds = _KINDS[1] if whole else thread.state.cotangents
    moving, fixed = _with_cotangent([x.aval for x in xs], count, kinds)
    if not moving:
        return tuple(None for _ in xs)
    ends = [F.zeros_like(xs[i]) if g[i] is None else g[i] for i in moving]
    start = [*ends, *[F.zeros_like(xs[i]) for i in fixed]]
    found = F.while_grad(
        *xs, *start, cond=cond, body=body, pull_back=hooks.reverse_step(body, moving, fixed)
    )
    by_position = dict(zip([*moving, *fixed], found))
    return tuple(by_position.get(i) for i in range(len(xs)))


_KINDS = ("fc", "fciu")  # of what has cotangents: floats, or all numbers


def _with_cotangent(
    types: Sequence[TensorType], count: int, kinds: str
) -> tuple[list[int], list[int]]:
    """Returns which of ``count`` state values and of the fixed operands have cotangents."""
    found = [i for i, t in enumerate(types) if t.dtype.kind in kinds]
    return [i for i in found if i < count], [i for i in found if i >= count]


def _loop_regions(t: TensorType) -> dict[str, Graph]:
    """Samples: ``while i < n: x = x * w + sin(x); i += 1``."""

    def body(
        call: Callable[..., Value], b: GraphBuilder, i: object, x: object, n: object, w: object
    ) -> list[Any]:
        one = b.const(np.array(1, np.int64))
        return [call(add, i, one), call(add, call(mul, x, w), call(sin, x))]

    types = [_I, t, _I, t]
    test = _region("cond", types, lambda call, b, i, x, n, w: [call(less, i, n)])
    return {"cond": test, "body": _region("body", types, body)}


def _while_arrays(trips: int) -> tuple[np.ndarray, tuple[int, int], np.ndarray, tuple[int, int]]:
    return (np.array(0), (2, 3), np.array(trips), (2, 3))


def _while_samples() -> list[Sample]:
    wide = ("int64", "float64", "int64", "float64")
    narrow = ("int64", "float32", "int64", "float32")
    good = [
        sample(*_while_arrays(n), dtype=wide, attrs=_loop_regions(_F64), low=-0.5, high=0.5)
        for n in (0, 1, 2, 5, 9)
    ]
    wrong = {**_loop_regions(_F23), "cond": _region("cond", [_I, _F23, _I, _F23],
                                                     lambda call, b, i, x, n, w: [x])}  # fmt: skip
    return [
        *good,
        sample(*_while_arrays(3), dtype=narrow, attrs=wrong, raises=DTypeError),
        sample(*_while_arrays(3), dtype=narrow, attrs=_loop_regions(_F64), raises=DTypeError),
    ]


@primitive(
    infer=_infer_while, eager=_eager_while, lower=Outlined(_define_while, _emit_call),
    traits=replace(REGIONS, ties=_ties_while),
    vjp=_vjp_while, onnx=_control_onnx.loop, samples=_while_samples(), multi=True,
)  # fmt: skip
def while_(*operands: Tensor, cond: Graph, body: Graph) -> tuple[Tensor, ...]:
    """Repeats ``state = body(*state, *fixed)`` while ``cond(*state, *fixed)`` holds.

    Args:
        *operands: The state, as many as ``body`` has results, then what stays fixed.
        cond: Region that gives ``bool[]``.
        body: Region that gives the next state, of the types of the state.

    Returns:
        The final state.

    Raises:
        DTypeError: if the condition is not ``bool[]``.
        ShapeError: if the state would change its type.

    Example:
        >>> ops.WhileLoop()(lambda x: x < 9, lambda x: x * 2, Tensor(1)).item()
        16
    """
    ...


# ---- derivative of a loop -----------------------------------------------------------------------


def _split(body: Graph, pull_back: Graph) -> tuple[int, int]:
    """Returns how many operands are state, and how many are not cotangents."""
    return len(body.outputs), len(body.params)


def _infer_while_grad(
    *types: TensorType, cond: Graph, body: Graph, pull_back: Graph
) -> tuple[TensorType, ...]:
    _, forward = _split(body, pull_back)
    _infer_while(*types[:forward], cond=cond, body=body)
    _require("the reverse step's operands", types, _types(pull_back)[0])
    _require("the reverse step's results", _types(pull_back)[1], types[forward:])
    return tuple(types[forward:])


def _eager_while_grad(
    *arrays: np.ndarray, cond: Graph, body: Graph, pull_back: Graph
) -> tuple[np.ndarray, ...]:
    count, forward = _split(body, pull_back)
    state, fixed, found = list(arrays[:count]), arrays[count:forward], list(arrays[forward:])
    states = []
    while hooks.evaluate(cond, [*state, *fixed])[0].item():
        states.append(state)
        state = hooks.evaluate(body, [*state, *fixed])
    for before in reversed(states):
        found = hooks.evaluate(pull_back, [*before, *fixed, *found])
    return tuple(found)


def _ties_while_grad(
    inputs: int, outputs: int, cond: Graph, body: Graph, pull_back: Graph
) -> list[Tie]:
    count, forward = _split(body, pull_back)
    loop = _ties_while(forward, count, cond, body)
    ends = tuple(Slot(0, True, i) for i in range(count))
    ran = [(*(s for s in t if s not in ends), Slot(3, False, i)) for i, t in enumerate(loop)]
    found = [
        (Slot(0, False, forward + i), Slot(3, False, forward + i), Slot(3, True, i),
         Slot(0, True, i)) for i in range(outputs)
    ]  # fmt: skip
    return [*ran, *found]


def _define_while_grad(
    R: Builder, types: Sequence[TensorType], cond: Graph, body: Graph, pull_back: Graph
) -> Expr:
    loop = LoopFunctions(R, types[: len(body.params)], cond, body)
    return SweepFunctions(R, types, loop, pull_back).whole()


def _vjp_while_grad(
    g: Sequence[Tensor | None],
    y: object,
    *operands: Tensor,
    cond: Graph,
    body: Graph,
    pull_back: Graph,
) -> tuple[Tensor | None, ...]:
    """The reversed loop is linear in its cotangents: its derivative by them is the loop of
    directions, and its derivative by the state is that of the loop of directions."""
    count, forward = _split(body, pull_back)
    state, rest = operands[:count], operands[count:forward]
    types = [x.aval for x in operands[:forward]]
    both = (_with_cotangent(types, count, kinds) for kinds in _KINDS)
    moving, fixed = next(p for p in both if len(p[0]) + len(p[1]) == len(operands) - forward)
    m, f = len(moving), len(fixed)
    test, step = hooks.tangent_loop(cond, body, pull_back, moving, fixed)
    g = [F.zeros_like(x) if c is None else c for c, x in zip(g, operands[forward:])]
    start = [*state, *g[:m], *rest, *g[m:]]
    directions = F.while_(*start, cond=test, body=step)[count:]
    carried = [*moving, *range(count, count + m)]
    constant = [*[i + m for i in fixed], *range(len(start) - f, len(start))]
    cotangents = [
        *[F.zeros_like(state[i]) for i in moving], *operands[forward : forward + m],
        *[F.zeros_like(start[i]) for i in constant],
    ]  # fmt: skip
    found = F.while_grad(
        *start,
        *cotangents,
        cond=test,
        body=step,
        pull_back=hooks.reverse_step(step, carried, constant),
    )
    by_position = dict(zip([*moving, *fixed], [*found[:m], *found[2 * m : 2 * m + f]]))
    return (*[by_position.get(i) for i in range(forward)], *directions, *g[m:])


def _while_grad_samples() -> list[Sample]:
    def back(
        call: Callable[..., Value],
        b: object,
        i: object,
        x: object,
        n: object,
        w: object,
        g: object,
        gw: object,
    ) -> list[Value]:
        slope = call(add, w, call(cos, x))
        return [call(mul, g, slope), call(add, gw, call(mul, g, x))]

    attrs = _loop_regions(_F64)
    attrs["pull_back"] = _region("pull_back", [_I, _F64, _I, _F64, _F64, _F64], back)
    wide = ("int64", "float64", "int64", "float64", "float64", "float64")
    good = [
        sample(*_while_arrays(n), (2, 3), (2, 3), dtype=wide, attrs=attrs, low=-0.5, high=0.5)
        for n in (0, 1, 3, 8, 13)
    ]
    bad = sample(*_while_arrays(3), (2, 3), dtype=wide[:5], attrs=attrs, raises=ShapeError)
    return [*good, bad]


@primitive(
    infer=_infer_while_grad, eager=_eager_while_grad,
    traits=replace(REGIONS, ties=_ties_while_grad),
    lower=Outlined(_define_while_grad, _emit_call),
    vjp=_vjp_while_grad,
    onnx=_control_onnx.loop_grad, samples=_while_grad_samples(), multi=True,
)  # fmt: skip
def while_grad(*operands: Tensor, cond: Graph, body: Graph, pull_back: Graph) -> tuple[Tensor, ...]:
    """Reverses a loop: repeats ``found = pull_back(*state, *fixed, *found)`` over its iterations,
    last one first, with the state each iteration started from.

    Args:
        *operands: State and fixed operands of the loop, then the cotangents of its float state
            and the sums for its float fixed operands.
        cond: The loop's condition.
        body: The loop's body.
        pull_back: Region that gives cotangents and sums before one iteration.

    Returns:
        Cotangents of the initial float state and of the float fixed operands.

    Raises:
        ShapeError: if the regions do not fit each other.

    Example:
        >>> double = ms.jit(lambda x: ops.WhileLoop()(lambda v: v < 9, lambda v: v * 2, x))
        >>> ms.grad(double)(Tensor(1.0)).item()
        16.0
    """
    ...
