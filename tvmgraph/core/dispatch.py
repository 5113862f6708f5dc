"""The one dispatch point: promote, infer, then the current interpreter.

Every operator of every mode passes through :func:`apply`, so an error has the same text in eager
code, while capturing and while differentiating. The result of inference is cached per operator,
input types and attributes, which keeps a small eager call near the cost of NumPy's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.config.flag_registry import active
from tvmgraph.core import kinds, numerics, promotion
from tvmgraph.core.arguments import ReflectedError, is_sequence, is_tuple
from tvmgraph.core.costly import Costly, costly
from tvmgraph.core.op import OPS, F, OfComplex, Op
from tvmgraph.core.sizes import proven
from tvmgraph.core.state import scope_text, state
from tvmgraph.core.storage import require_memory
from tvmgraph.core.symbols import (
    Symbol,
    TooSmall,
    assuming,
    being_sizes,
    bound,
    contains_symbol,
    inferring,
    needed,
    scope,
)
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.core.traits import Pattern
from tvmgraph.core.types import Dim, TensorType
from tvmgraph.core.unfollowed import is_followed
from tvmgraph.errors import (
    ArgumentError,
    DTypeError,
    NoTensorError,
    NumericsError,
    TvmgraphError,
    called_operator,
    user_source,
)

_CACHE_LIMIT = 4096  # distinct (types, attrs) remembered per operator


class _Plan:
    """What inference found out for one combination of types and attributes."""

    __slots__ = ("casts", "costly", "form", "of_complex", "static_types", "types")

    def __init__(
        self,
        casts: tuple[dtypes.DType | None, ...] | None,
        types: tuple[TensorType, ...],
        form: Callable[..., Tensor | tuple[Tensor, ...]] | None = None,
        of_complex: OfComplex | None = None,
    ) -> None:
        self.casts = casts
        self.form = form  # of complex operands
        self.of_complex = of_complex  # NumPy's column of them
        self.types = types
        # a data-dependent shape is only known once the values are
        self.static_types = tuple(t if t.is_static else None for t in types)
        self.costly: Costly | None = None


def apply(op: Op, args: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Applies one operator of the table.

    Args:
        op: The row.
        args: Tensors, or numbers where the row promotes them.
        attrs: Attributes in the order of ``op.attrs``; all values hashable.

    Returns:
        A Tensor, or a tuple of Tensors for a row with several outputs.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: if a dtype or the class of an argument does not fit.
    """
    interpreter = state.interpreter
    if state.precision is not None:
        args = state.precision.operands(op, args)
    if op.traits.keeps and state.tapes and not attrs[op.traits.keeps]:
        return apply(op, args, {**attrs, op.traits.keeps: True})[:-1]
    try:
        key: Any = tuple([a.aval for a in args])
    except AttributeError:
        args = _lift_arguments(op, args, attrs)
        key = tuple([a.aval for a in args])
    if interpreter is not None and interpreter.symbols is not None and _is_symbolic(key, attrs):
        return _apply_symbolic(op, args, attrs)
    if attrs:
        key = (key, tuple(attrs.values()))
    try:
        plan = op.cache[key]
    except KeyError:
        if any([isinstance(v, (Tensor, np.generic)) for v in attrs.values()]):
            return apply(op, args, _hashable(op, args, attrs))
        plan = _plan(op, key, args, attrs)
    except TypeError:  # an attribute given as a list
        return apply(op, args, _hashable(op, args, attrs))
    if plan.casts is not None:
        if plan.form is not None:
            if plan.of_complex is None or is_followed(args):
                return plan.form(*args, **attrs)
            found = plan.of_complex(*[a.array for a in args], **attrs)
            if isinstance(found, tuple):
                return tuple(map(tensor_from_numpy, found))  # pyright: ignore
            return tensor_from_numpy(found)
        args = tuple([a if d is None else cast(a, d) for a, d in zip(args, plan.casts)])
    if interpreter is None:
        outputs = _run_eager(op, args, attrs, plan)
    else:
        outputs = interpreter.run(op, args, attrs, plan.types)
    if state.tapes:
        for tape in state.tapes:
            tape.record(op, args, attrs, outputs)
    return outputs if op.multi else outputs[0]


def _is_symbolic(types: tuple[TensorType, ...], attrs: Mapping[str, object]) -> bool:
    return any(map(contains_symbol, attrs.values())) or not all([t.is_static for t in types])


def _apply_symbolic(op: Op, args: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Applies an operator to symbolic sizes.

    Its rule is asked anew: what it decides about the sizes becomes a condition of the capture.
    """
    attrs = {k: _sizes_only(_freeze(v)) for k, v in attrs.items()}
    try:
        with inferring():
            plan = _plan_of(op, args, attrs)
    except TooSmall as e:
        checked = [at_least(a, {e.root: e.least}) for a in args]
        if all(a is b for a, b in zip(args, checked)):
            raise needed(frozenset([e.root])) from None
        with assuming({e.root: e.least}):
            return _apply_symbolic(op, tuple(checked), attrs)
    if plan.casts is not None:
        if plan.form is not None:
            return plan.form(*args, **attrs)
        args = tuple([a if d is None else cast(a, d) for a, d in zip(args, plan.casts)])
    assert state.interpreter is not None
    for d in _unproven_sizes(args, plan.types):
        if args:
            args = (_not_negative(args[0], d), *args[1:])
        elif op.traits.pattern is Pattern.BROADCAST:  # one element, of which there are many
            element = _not_negative(apply(op, (), {**attrs, op.traits.sized: ()}), d)
            with being_sizes(d):
                return F.broadcast_to(element, attrs[op.traits.sized])
        else:
            raise needed(d.roots)
    outputs = state.interpreter.run(op, args, attrs, plan.types)
    for tape in state.tapes:
        tape.record(op, args, attrs, outputs)
    return outputs if op.multi else outputs[0]


def _unproven_sizes(args: tuple[Tensor, ...], types: tuple[TensorType, ...]) -> list[Dim]:
    """Returns sizes that are computed from sizes of values and could come out negative."""
    given = [d for a in args for d in a.aval.shape]
    return [
        d for t in types for d in t.shape
        if isinstance(d, Dim) and not d.is_root and bound(d.roots)
        and not any(d is g for g in given) and not proven(">=", d, 0)
    ]  # fmt: skip


def _not_negative(x: Tensor, size: Dim) -> Tensor:
    recorder: Any = state.interpreter  # a capture: others have no symbols
    return F.at_least(x, *recorder.having(size.roots), size=size, least=0)


def at_least(x: Tensor, least: Mapping[str, int]) -> Tensor:
    """Returns a tensor whose sizes of values are checked to be large enough.

    Args:
        x: Tensor of any shape.
        least: What sizes must be at least; those that it does not have are left out.
    """
    for root, number in least.items():
        if root in x.aval.roots:
            x = F.at_least(x, size=Dim(root), least=number)
    return x


def _sizes_only(value: object) -> object:
    """Returns an attribute in which nothing but sizes may be symbolic."""
    if is_tuple(value):
        return tuple(map(_sizes_only, value))
    if isinstance(value, slice):
        return slice(*map(_sizes_only, (value.start, value.stop, value.step)))
    return value.specialise() if isinstance(value, Symbol) and not isinstance(value, Dim) else value


def cast(x: Tensor, dtype: dtypes.DType) -> Tensor:
    """Converts a tensor to ``dtype`` through the table's ``cast`` row.

    Args:
        x: Tensor of any shape and dtype.
        dtype: dtype of the result.
    """
    return x if x.aval.dtype is dtype else apply(OPS["cast"], (x,), {"dtype": dtype})


def _hashable(op: Op, args: tuple[object, ...], attrs: Mapping[str, object]) -> dict[str, object]:
    """Returns attributes with tuples for lists, and what tensors hold for tensors.

    Raises:
        DTypeError: if one is nothing that an operator is told, such as an array.
    """
    frozen = {k: _freeze(v) for k, v in attrs.items()}
    for name, value in frozen.items():
        try:
            hash(value)
        except TypeError:
            raise DTypeError(f"{name} cannot be a {type(value).__name__}").locate(
                *call_context(op, args, attrs)
            ) from None
    return frozen


def _freeze(value: object) -> object:
    if isinstance(value, Tensor):
        value = value.tolist()
    elif isinstance(value, np.generic):
        value = value.item()
    return tuple(_freeze(v) for v in value) if is_sequence(value) else value


def _plan(op: Op, key: object, args: tuple[Tensor, ...], attrs: Mapping[str, object]) -> _Plan:
    """Runs promotion and inference, and remembers the outcome."""
    plan = _plan_of(op, args, attrs)
    if op.regions:  # sub-graphs are compared by identity: remembering them would only keep them
        return plan
    if len(op.cache) >= _CACHE_LIMIT:
        op.cache.clear()
    op.cache[key] = plan
    return plan


def _plan_of(op: Op, args: tuple[Tensor, ...], attrs: Mapping[str, object]) -> _Plan:
    types = [a.aval for a in args]
    if op.of_bools is not None and all([t.dtype is dtypes.bool_ for t in types]):
        return _Plan((), (), OPS[op.of_bools].fn)
    if op.form is not None and is_complex(types, attrs):
        return _Plan((), (), op.form, numpy_column(op, types, attrs))
    try:
        casts = None
        if op.promote is not None:
            wanted = promotion.targets(op.promote, promotion.scaled(op.promote, types))
            if any(t.dtype is not d for t, d in zip(types, wanted)):
                casts = tuple(None if t.dtype is d else d for t, d in zip(types, wanted))
                types = [t.with_dtype(d) for t, d in zip(types, wanted)]
        outputs = _inferred(op, types, attrs)
        if state.interpreter is None:
            require_memory(outputs)
    except TvmgraphError as e:
        raise e.locate(*call_context(op, args, attrs)) from None
    plan = _Plan(casts, outputs)
    plan.costly = costly(op, tuple(types), attrs, plan.static_types)
    return plan


def _inferred(
    op: Op, types: list[TensorType], attrs: Mapping[str, object]
) -> tuple[TensorType, ...]:
    """Returns the types of the results, once the kinds of the attributes are right."""
    for name, words in op.kinds.items():
        kinds.require(name, attrs[name], words)
    return op.types(*types, **attrs)


def run_on_host(
    op: Op, args: tuple[Tensor, ...], attrs: Mapping[str, object], plan: _Plan
) -> tuple[Tensor, ...]:
    """Applies an operator to the host's elements: its NumPy column, or code of its own.

    Args:
        op: The row.
        args: Its operands, promoted.
        attrs: Its attributes.
        plan: What is known of calls with operands of these types.
    """
    slow, types = plan.costly, plan.static_types
    start = perf_counter() if slow is not None or active.watches_eager else 0.0
    try:
        outputs = None if slow is None else slow.run(args)
        if outputs is not None:
            if active.watches_eager:
                _observe(op, args, attrs, [t.array for t in outputs], start)
            return outputs
        result = op.eager(*[a.array for a in args], **attrs)
    except TvmgraphError as e:
        raise e.locate(*call_context(op, args, attrs)) from None
    if slow is not None and not slow.took(args, perf_counter() - start):
        plan.costly = None
    if active.watches_eager:
        _observe(op, args, attrs, result if op.multi else (result,), start)
    if op.multi:
        return tuple([tensor_from_numpy(r, t) for r, t in zip(result, types)])
    return (tensor_from_numpy(result, types[0]),)


_run_eager = run_on_host


def set_eager(
    run: Callable[[Op, tuple[Tensor, ...], Mapping[str, object], _Plan], tuple[Tensor, ...]],
) -> None:
    """Replaces what applies operators outside of any capture.

    Args:
        run: Takes what :func:`run_on_host` takes, and returns the results.
    """
    global _run_eager
    _run_eager = run


def _observe(
    op: Op,
    args: tuple[Tensor, ...],
    attrs: Mapping[str, object],
    results: Sequence[np.ndarray],
    start: float,
) -> None:
    """Tells whoever listens about an eager operator, and looks for NaN and infinities."""
    end = perf_counter()
    if active.listeners:
        outputs = tuple([tensor_from_numpy(r) for r in results])
        for listener in active.listeners:
            listener(op, args, attrs, outputs, start, end)
    if active.numerics:
        try:
            numerics.check(op, [a.array for a in args], attrs, results)
        except NumericsError as e:
            name, _, at = call_context(op, args, attrs)
            raise e.locate(name, "", at) from None


def _lift_arguments(
    op: Op, args: tuple[object, ...], attrs: Mapping[str, object]
) -> tuple[Tensor, ...]:
    """Turns Python numbers, lists and NumPy arrays among the arguments into tensors."""
    beside = None
    if len(args) == 2 and args[1].__class__ in _NUMBERS and isinstance(args[0], Tensor):
        beside = (op.promote, args[0].aval.dtype, args[1].__class__, args[1])
        found = _beside.get(beside)
        if found is not None and state.interpreter is None:
            return args[0], found
    if len(args) == 1 and not isinstance(args[0], Symbol) and _computes_one(op):
        raise NoTensorError(
            f"argument {op.tensors[0]!r} must be a Tensor, not {type(args[0]).__name__}",
            fix="wrap it in Tensor(...)",
        ).locate(*call_context(op, args, attrs))
    try:
        key = (op.promote, *[_kind(a) for a in args])
        wanted = _wanted.get(key)
    except TypeError:
        wanted = key = None
        if op.promote not in (None, "each"):
            like = next((a.aval.dtype for a in args if isinstance(a, Tensor)), None)
            args = tuple([_of_sequence(a, like) if is_sequence(a) else a for a in args])
    if wanted is None:
        try:
            wanted = promotion.targets(op.promote, _operands(op, args, attrs))
        except TvmgraphError as e:
            raise e.locate(*call_context(op, args, attrs)) from None
        if key is not None:
            _wanted[key] = wanted
    try:
        lifted = tuple([a if isinstance(a, Tensor) else lift(a, d) for a, d in zip(args, wanted)])
        if beside is not None and _lifted.get((*beside[2:], wanted[1])) is lifted[1]:
            _beside[beside] = lifted[1]
        return lifted
    except OverflowError:
        raise ArgumentError(
            f"a number does not fit {wanted[0].name}", fix="cast the tensor to a wider dtype"
        ).locate(*call_context(op, args, attrs)) from None


def _computes_one(op: Op) -> bool:
    """Whether an operator computes with one tensor, where anything else is a mistake."""
    computes = op.traits.pattern in (Pattern.ELEMENTWISE, Pattern.OPAQUE)
    return computes and op.promote != "each" and not op.variadic


_EXAMPLES = {"b": True, "i": 1, "u": 1, "f": 1.0, "c": 1j}


def _of_sequence(values: Sequence[object], like: dtypes.DType | None) -> Tensor:
    """Converts a list or tuple among the operands; its numbers are as weak as single ones."""
    if getattr(values, "__array_ufunc__", values) is None:
        kind = type(values).__name__
        raise ReflectedError(f"a {kind} is no Tensor", fix="make a Tensor of it by to_dense()")
    if any(isinstance(v, Tensor) for v in values):
        return F.stack([v if isinstance(v, Tensor) else Tensor(v) for v in values])
    t = Tensor(values)
    if like is None or not values:
        return t
    return cast(t, dtypes.promote_scalar(like, _EXAMPLES[t.aval.dtype.kind]))


_wanted: dict[object, list[dtypes.DType]] = {}  # by policy and kinds of the operands; few exist


def _kind(a: object) -> dtypes.DType | np.dtype | type:
    """What promotion looks at: a tensor's dtype, or the class of a number."""
    if isinstance(a, Tensor):
        return a.aval.dtype
    if isinstance(a, np.ndarray):
        return a.dtype
    if dtypes.is_number(a):
        return a.__class__
    if isinstance(a, Symbol):
        return a.kind
    raise TypeError


def _operands(
    op: Op, args: tuple[object, ...], attrs: Mapping[str, object]
) -> list[promotion.Operand]:
    operands: list[promotion.Operand] = []
    for i, a in enumerate(args):
        if isinstance(a, Tensor):
            operands.append(a.aval.dtype)
        elif dtypes.is_number(a):
            operands.append(a)
        elif isinstance(a, np.ndarray):
            operands.append(dtypes.dtype_of(a.dtype))
        elif isinstance(a, Symbol):
            operands.append(a.kind(1))
        else:
            name = op.tensors[0] if op.variadic else op.tensors[i]
            raise NoTensorError(
                f"argument {name!r} must be a Tensor or a number, not {type(a).__name__}",
                fix="wrap it in Tensor(...)",
            ).locate(*call_context(op, args, attrs))
    return operands


_LIFTED_LIMIT = 1024
_NUMBERS = (int, float)
#: What a number is beside a tensor: by policy, dtype of the tensor, class and value.
_beside: dict[tuple[str | None, dtypes.DType, type, object], Tensor] = {}
_lifted: dict[tuple[type, object, dtypes.DType], Tensor] = {}


def lift(value: object, dtype: dtypes.DType) -> Tensor:
    """Converts a number to a 0-d tensor; the same numbers come again and again in eager code.

    Args:
        value: A number, or a symbol while a function is captured.
        dtype: dtype of the tensor.
    """
    kind = value.__class__
    if isinstance(value, Symbol):
        return _lift_symbol(value, dtype)
    if (kind is int or kind is float) and value and state.interpreter is None:
        found = _lifted.get((kind, value, dtype))
        if found is None:
            if len(_lifted) >= _LIFTED_LIMIT:
                _lifted.clear()
                _beside.clear()
            with np.errstate(over="ignore"):  # it is infinite in half precision
                found = tensor_from_numpy(np.asarray(value, dtype=dtype.numpy))
            _lifted[(kind, value, dtype)] = found
        return found
    if isinstance(value, np.integer):  # one that does not fit is an error, as Python's is
        value = value.item()
    return tensor_from_numpy(np.asarray(value, dtype=dtype.numpy))


def _lift_symbol(value: Symbol, dtype: dtypes.DType) -> Tensor:
    """Returns a number that differs from call to call as an input of the graph.

    A derivative of a branch or loop has no call to look at; it reads sizes off its operands.
    """
    here = state.interpreter
    if here is None:
        return lift(value.current(), dtype)
    if scope() is None and not value.traced and not value.roots <= here.sizes.keys():
        return lift(value.current(), dtype)
    return here.number(value, dtype)


def call_context(
    op: Op, args: tuple[object, ...], attrs: Mapping[str, object]
) -> tuple[str, str, str]:
    """Returns what was called, what it got and where, for an error message.

    Args:
        op: The row.
        args: Its operands.
        attrs: Its attributes.
    """
    names = op.tensors
    if op.variadic:
        names = tuple(f"{op.tensors[0]}[{i}]" for i in range(len(args)))
    parts = [f"{n}={describe(a)}" for n, a in zip(names, args)]
    parts += [f"{k}={v!r}" for k, v in attrs.items()]
    scope = scope_text()
    at = (user_source() + (f"   (in {scope})" if scope else "")).lstrip()
    return called_operator(f"ops.{op.name}"), ", ".join(parts), at


def describe(value: object) -> str:
    """Returns a short description of an argument for error messages.

    Args:
        value: A tensor is described by its type, another value by its ``repr`` in at most 80
            characters.
    """
    if isinstance(value, Symbol):
        return value.text
    if isinstance(value, Tensor):
        return str(value.aval)
    first, *more = repr(value).splitlines() or [""]
    return f"{first[:77]}..." if more or len(first) > 80 else first


# ---- which calls have complex operands, and what NumPy computes of them at once ------------------


def is_complex(types: list[TensorType], attrs: Mapping[str, object]) -> bool:
    """Whether an operator gets or makes complex elements.

    Args:
        types: Types of its operands.
        attrs: Its attributes.
    """
    given = [t.dtype for t in types]
    return any(d in dtypes.COMPLEX for d in (*given, attrs.get("dtype")))


def numpy_column(op: Op, types: list[TensorType], attrs: Mapping[str, object]) -> OfComplex | None:
    """Returns what NumPy computes of complex operands; ``None`` where the form has to say it.

    It computes in one complex dtype. Numbers and parts of that dtype join in where the row
    promotes its operands. What is wrong with others, the operators of the form say.

    Args:
        op: The operator.
        types: Types of its operands, of which some are complex.
        attrs: Its attributes.
    """
    given = [t.dtype for i, t in enumerate(types) if i not in op.indices]
    wide = attrs.get("dtype", next((d for d in given if d in dtypes.COMPLEX), None))
    part = dtypes.float64 if wide is dtypes.complex128 else dtypes.float32
    mixes = op.promote is not None or "dtype" in attrs
    if op.of_complex is None or not isinstance(wide, dtypes.DType):
        return None
    if not all(d is wide or (mixes and d is part) for d in given):
        return None
    try:
        real = [t.with_dtype(part) if t.dtype is wide else t for t in types]
        require_memory([t.with_dtype(wide) for t in _inferred(op, real, attrs)])
    except TvmgraphError:
        return None
    return op.of_complex
