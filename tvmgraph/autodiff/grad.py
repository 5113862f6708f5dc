"""``grad``, ``value_and_grad`` and ``GradOperation`` with MindSpore's signatures."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, TypeAlias

from tvmgraph.autodiff.hooks import gradient_hooks, run_hooks
from tvmgraph.autodiff.kept import taken
from tvmgraph.autodiff.tape import GradTape, backward, recording, snapshot
from tvmgraph.capture import tree
from tvmgraph.capture.promotion import CONTAINERS, MutableFloat, MutableInt
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.compat.sparse import SparseMatrix
from tvmgraph.config import GRAPH_MODE, context
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.shown import Shown
from tvmgraph.core.state import call_user, state
from tvmgraph.core.symbols import Scalar
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, CaptureError, DTypeError, ShapeError, either, reject
from tvmgraph.interruption import noticed
from tvmgraph.signatures import python_signature

#: Parameters to differentiate by.
Weights: TypeAlias = "Parameter | Iterable[Parameter] | None"


class _NotingTape(GradTape):
    """A tape that also notes which trainable parameters were read, in the order of first use."""

    def __init__(self) -> None:
        super().__init__()
        self.read: dict[int, Parameter] = {}
        self.at_start: dict[int, Tensor] = {}

    def denoted(
        self, args: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Notes the parameters among the operands; returns snapshots of operands and results."""
        for a in args:
            if isinstance(a, Parameter) and a.requires_grad and id(a) not in self.read:
                self.read[id(a)], self.at_start[id(a)] = a, snapshot(a)
        return super().denoted(args, outputs)


class _Run:
    """One recorded call of a function, ready to be differentiated.

    Args:
        fn: The function or Cell.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        positions: Which arguments to differentiate by.
        weights: Parameters to differentiate by; None for those that the call reads.
        keywords: Which keyword arguments to differentiate by.
    """

    @noticed()
    def __init__(
        self,
        fn: Callable[..., Any],
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        positions: Sequence[int],
        weights: Sequence[Parameter] | None,
        keywords: Sequence[str] = (),
    ) -> None:
        self.is_eager = not _is_captured()
        self.tape = GradTape() if weights is not None else _NotingTape()
        given = tensors_in([args[i] for i in positions] + [kwargs[k] for k in keywords])
        args = _distinct(args, positions)
        self.arguments = [args[i] for i in positions] + [kwargs[k] for k in keywords]
        self.inputs = [snapshot(t) for t in tensors_in(self.arguments)]
        self.weights = [snapshot(w) for w in weights or ()]
        self.trained = [w.requires_grad for w in weights or ()]
        self.hooks = [gradient_hooks(t) for t in (*given, *(weights or ()))]
        # what is asked for has a gradient even if it is integer; others (indices, labels) have none
        asked = (*self.inputs, *self.weights)
        self.kinds = "fciu" if any(x.dtype.kind in "iu" for x in asked) else "fc"
        kept = taken(fn, args, kwargs) if weights is not None else None
        if kept is not None:
            self.tape, self.value = kept.tape, kept.value
        else:
            with recording(self.tape):
                self.value = call_user(fn, args, kwargs)
        if isinstance(self.tape, _NotingTape):
            self.tape.denoted(tuple(tensors_in(self.value)), ())  # one that is returned is read
            self.weights = list(self.tape.at_start.values())
            self.trained = [True] * len(self.weights)
            self.hooks += [gradient_hooks(p) for p in self.tape.read.values()]

    @noticed()
    def differentiate(
        self, outputs: Sequence[Tensor], sens: Sequence[Tensor] | None
    ) -> tuple[list[Any], list[Tensor]]:
        """Returns the gradients of the arguments, in their structure, and of the weights.

        Raises:
            CaptureError: if the call was recorded before the function that is being compiled.
        """
        if self.is_eager and _is_captured():
            reject(CaptureError, "vjp",
                   "a derivative of what was computed outside the compiled function",
                   fix="call the transform in the same function")  # fmt: skip
        results = [snapshot(o) for o in outputs]
        if sens is None:
            sens = [F.ones_like(r) for r in results]
        trained = [w for w, trained in zip(self.weights, self.trained) if trained]
        found = backward(self.tape, results, sens, self.kinds, [*self.inputs, *trained])

        def pick(x: Tensor, wanted: bool = True) -> Tensor:
            g = found.get(id(x.token)) if wanted else None
            return F.zeros_like(x) if g is None else g

        if isinstance(self.tape, _NotingTape):  # of what was read, that which results depend on
            reached = [id(w.token) in found for w in self.weights]
            self.weights = list(compress(self.weights, reached))
            self.hooks[len(self.inputs) :] = compress(self.hooks[len(self.inputs) :], reached)
            self.trained = [True] * len(self.weights)
        gradients = [pick(x) for x in self.inputs]
        gradients += [pick(w, trained) for w, trained in zip(self.weights, self.trained)]
        gradients = [run_hooks(hooks, g) for hooks, g in zip(self.hooks, gradients)]
        of_inputs = iter(gradients[: len(self.inputs)])
        structured = [_structured(a, of_inputs) for a in self.arguments]
        return structured, gradients[len(self.inputs) :]


def _structured(argument: object, gradients: Iterator[Tensor]) -> Any:
    """Returns gradients in the structure of an argument, with 0 for what is no tensor.

    Those of a sparse matrix are one with the same places, whose values are the gradients.
    """
    if isinstance(argument, SparseMatrix):
        return argument.with_values([next(gradients) for _ in tensors_in(argument)][-1])
    if type(argument) in (tuple, list):
        return type(argument)(_structured(a, gradients) for a in argument)  # pyright: ignore
    return tree.replace(argument, gradients, lambda _: 0)


def _is_captured() -> bool:
    """Whether operators become a graph; those inside ``vmap`` of eager code do not."""
    interpreter: object = state.interpreter
    while hasattr(interpreter, "interpreter"):  # that of a vmap has the one around it
        interpreter = interpreter.interpreter  # pyright: ignore
    return interpreter is not None


def _is_whole_graph() -> bool:
    """Whether calls are compiled: MindSpore notes what a Cell reads where it runs step by step."""
    return context.mode == GRAPH_MODE or _is_captured()


def _distinct(args: tuple[object, ...], positions: Sequence[int]) -> tuple[object, ...]:
    """Gives a value that is passed twice, as one tensor or as two, one identity per place."""
    times = Counter(id(t.token) for t in tensors_in(args))
    if all(count == 1 for count in times.values()):
        return args
    result = list(args)
    for i in positions:
        own = [F.identity(t) if times[id(t.token)] > 1 else t for t in tensors_in(args[i])]
        result[i] = tree.replace(args[i], iter(own))
    return tuple(result)


def require_positions(positions: object, name: str) -> tuple[int, ...]:
    """Returns ``grad_position`` as a tuple, empty for None.

    Args:
        positions: What the user passed as ``grad_position``.
        name: The function that was called, for the message.

    Raises:
        DTypeError: if it is neither an int nor a tuple of ints.
        ArgumentError: if it is empty or names an argument twice.
    """
    if positions is None:
        return ()
    items = (positions,) if isinstance(positions, int) else positions
    if not isinstance(items, tuple) or not all(type(i) is int for i in items):
        reject(DTypeError, name,
               f"grad_position must be an int or a tuple of ints, not {positions!r}")  # fmt: skip
    if not items or len(set(items)) < len(items):
        reject(either(ArgumentError, RuntimeError), name,
               "grad_position must name every argument at most once, and at least one",
               f"grad_position={positions!r}")  # fmt: skip
    return items


def _spoken(fn: Callable[..., object], position: int) -> str:
    """Names a positional argument of a function in messages."""
    try:
        names = list(python_signature(fn).parameters)
    except (TypeError, ValueError):
        names = []
    return f"argument {position}" + (f" ({names[position]})" if position < len(names) else "")


def _check_positions(
    positions: int | Sequence[int] | None,
    args: tuple[object, ...],
    name: str,
    fn: Callable[..., object],
    nested: bool = False,
) -> tuple[int, ...]:
    """Returns the positions; with ``nested``, arguments may be containers of tensors.

    Of several positions, those without tensors are left out, as MindSpore does.
    """
    items = require_positions(positions, name)
    for i in items:
        if not 0 <= i < len(args):
            raise either(either(ArgumentError, RuntimeError), IndexError)(
                f"grad_position {i} is outside the {len(args)} positional arguments", op=name
            )
    found = tuple(
        i for i in items
        if (_marked(args[i]) or tensors_in(args[i]) if nested else isinstance(args[i], Tensor))
    )  # fmt: skip
    without = [i for i in items if i not in found]
    varying = any(isinstance(args[i], Scalar) for i in without)  # captured again, as a constant
    if without and (varying or not (nested and found)):
        i = without[0]
        reject(DTypeError, name,
               f"{_spoken(fn, i)} is a {type(args[i]).__name__}, which has no gradient",
               fix="pass a Tensor, or leave it out of grad_position")  # fmt: skip
    return found


def _marked(value: object) -> bool:
    """Whether numbers are marked by :func:`tvmgraph.mutable`: their gradients are 0."""
    items = value if isinstance(value, (tuple, list)) else (value,)
    return any(isinstance(v, (MutableInt, MutableFloat)) for v in items)


def _weights(weights: object) -> tuple[Parameter, ...]:
    if weights is None:
        return ()
    if isinstance(weights, Parameter) or not isinstance(weights, Iterable):
        weights = (weights,)
    items: list[Parameter] = []
    for w in weights:
        if isinstance(w, TracedTensor) and w.passed is not None:
            w.recorder.aliasing_matters = True  # what is called reads it by itself
            w = w.passed
        if not isinstance(w, Parameter):
            reject(DTypeError, "grad", f"weights must be Parameters, not {type(w).__name__}",
                   fix="pass net.trainable_params()")  # fmt: skip
        items.append(w)
    return tuple(items)


def tensors_in(value: object, outer: tuple[int, ...] = ()) -> list[Tensor]:
    """Returns the tensors of nested tuples, lists and dicts, in order.

    Args:
        value: The structure.
        outer: Identities of the containers around it, which are not looked at again.
    """
    if isinstance(value, Tensor):
        return [value]
    if not isinstance(value, (tuple, list, dict)) or id(value) in outer:
        return []
    items = value.values() if isinstance(value, dict) else value
    return [t for v in items for t in tensors_in(v, (*outer, id(value)))]


def value_and_grad(
    fn: Callable[..., object],
    grad_position: int | Sequence[int] | None = 0,
    weights: Weights = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]:
    """Returns a function that computes ``fn`` and its gradient.

    The gradient of a non-scalar (or of several outputs) is that of the sum of all elements.
    Numbers that are no tensors add nothing, so a function that returns only such has gradients 0.

    Args:
        fn: Function or Cell.
        grad_position: Positional arguments to differentiate by; a single one, as an int or a
            tuple, gives a bare gradient, several give a tuple; of several, those without tensors
            are left out. The gradient of a tuple, list or dict of tensors has its structure, with 0
            for what is no tensor; that of a sparse matrix is one with the gradients of its values;
            that of a number of :func:`tvmgraph.mutable` is 0, as in MindSpore.
        weights: Parameters to differentiate by.
        has_aux: Whether only the first output is differentiated and the rest passed through.
        return_ids: Whether every gradient comes as ``(position or name, gradient)``.
        sens_param: Whether the last positional argument of the call is the cotangent of the output.

    Returns:
        A function returning ``(value, gradients)``, where gradients is ``dx``, ``dw`` or
        ``(dx, dw)``.

    Raises:
        ArgumentError: if both ``grad_position`` and ``weights`` are None.
        DTypeError: if ``fn`` returns nothing or only text.

    Example:
        >>> value, dx = ms.value_and_grad(lambda x: x * x)(Tensor(3.0))
        >>> float(value), float(dx)
        (9.0, 6.0)
    """
    return _value_and_grad(
        "value_and_grad", fn, grad_position, weights, has_aux, return_ids, sens_param
    )


def _value_and_grad(
    name: str,
    fn: Callable[..., object],
    grad_position: int | Sequence[int] | None,
    weights: Weights,
    has_aux: bool,
    return_ids: bool,
    sens_param: bool,
) -> Callable[..., Any]:
    """``value_and_grad``, whose errors name the function ``name`` that the user called."""
    if grad_position is None and weights is None:
        raise ArgumentError("grad_position and weights cannot both be None", op=name)
    if not isinstance(has_aux, bool):
        raise DTypeError(f"has_aux must be a bool, not {type(has_aux).__name__}", op=name)
    require_function(fn, name)
    require_positions(grad_position, name)
    params = _weights(weights)

    @functools.wraps(fn, updated=())
    def run(*args: object, **kwargs: object) -> tuple[Any, Any]:
        args, sens = (args[:-1], args[-1]) if sens_param else (args, None)
        positions = _check_positions(grad_position, args, name, fn, nested=True)
        r = _Run(fn, args, kwargs, positions, params)
        if has_aux and (not isinstance(r.value, (tuple, list)) or len(r.value) < 2):
            reject(ArgumentError, name,
                   "with has_aux the function must return the value and something beside it",
                   fix="return (loss, other), or leave has_aux out")  # fmt: skip
        first = r.value[0] if has_aux else r.value
        outputs = _numeric(first, fn, [args[i] for i in positions])
        dx, dw = r.differentiate(outputs, _sens(outputs, sens) if sens_param else None)
        inputs: Any = tuple(zip(positions, dx)) if return_ids else tuple(dx)
        names: Any = tuple((w.name, g) for w, g in zip(params, dw)) if return_ids else tuple(dw)
        if len(positions) == 1:
            inputs = inputs[0]
        if isinstance(weights, Parameter):
            names = names[0]
        if weights is None:
            return r.value, inputs
        return r.value, names if grad_position is None else (inputs, names)

    return run


def require_function(fn: object, name: str) -> None:
    """Raises :class:`DTypeError` for something that cannot be called.

    Args:
        fn: What is to be differentiated.
        name: The function that was given it.
    """
    if not callable(fn):
        reject(DTypeError, name, f"fn must be a function or a Cell, not {type(fn).__name__}",
               f"fn={fn!r}"[:80])  # fmt: skip


def _numeric(value: object, fn: object, inputs: Sequence[object] = ()) -> list[Tensor]:
    """Returns the tensors of a result that gradients come from: all but bools.

    A number has none where it follows from ``inputs`` marked by :func:`tvmgraph.mutable`.

    Raises:
        DTypeError: if the result holds no Tensor at all, as that of a function without ``return``
            or with a loss that was made a number of Python.
    """
    found = tensors_in(value)
    if not found and not (isinstance(value, (int, float)) and any(map(_marked, inputs))):
        name = getattr(fn, "__qualname__", type(fn).__name__)
        reject(DTypeError, "grad", f"{name} returned {value!r:.60}, which has no derivative",
               f"fn={name}", "return the loss as a Tensor")  # fmt: skip
    return [o for o in found if o.dtype.kind in "fciu"]


def _differentiable(value: object) -> list[Tensor]:
    outputs = tensors_in(value)
    if not outputs:
        reject(DTypeError, "grad",
               f"the function returned {type(value).__name__}, which holds no Tensor",
               fix="return the loss as a Tensor")  # fmt: skip
    return [o for o in outputs if o.dtype.kind in "fc"] or outputs


def grad(
    fn: Callable[..., object],
    grad_position: int | Sequence[int] | None = 0,
    weights: Weights = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]:
    """Returns a function that computes the gradient of ``fn``.

    Args:
        fn: Function or Cell.
        grad_position: Positional arguments to differentiate by.
        weights: Parameters to differentiate by.
        has_aux: Whether only the first output is differentiated; the others are returned as
            ``(gradients, (aux, ...))``.
        return_ids: Whether every gradient comes as ``(position or name, gradient)``.
        sens_param: Whether the last positional argument of the call is the cotangent of the output.

    Example:
        >>> float(ms.grad(lambda x: x * x)(Tensor(3.0)))
        6.0
    """
    both = _value_and_grad("grad", fn, grad_position, weights, has_aux, return_ids, sens_param)

    @functools.wraps(fn, updated=())
    def run(*args: object, **kwargs: object) -> object:
        value, gradients = both(*args, **kwargs)
        return (gradients, tuple(value[1:])) if has_aux else gradients

    return run


class GradOperation(Shown):
    """Builds gradient functions, MindSpore's older interface.

    Args:
        get_all: Differentiate by all inputs that are tensors, or what :func:`tvmgraph.mutable`
            made of containers of them, instead of the first.
        get_by_list: Differentiate by the parameters given in the call. Without any, by those that
            results depend on, in the order in which the function reads them, as MindSpore does in
            PYNATIVE_MODE; by the trainable ones of a Cell in GRAPH_MODE, where MindSpore gives
            nothing.
        sens_param: The last positional argument, or ``sens``, is the cotangent of the output.

    Example:
        >>> dx, dy = ops.GradOperation(get_all=True)(ops.mul)(Tensor(2.0), Tensor(3.0))
        >>> float(dx), float(dy)
        (3.0, 2.0)
    """

    def __init__(
        self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False
    ) -> None:
        for name, flag in (
            ("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)
        ):  # fmt: skip
            if not isinstance(flag, bool):
                raise DTypeError(f"{name} must be a bool, not {type(flag).__name__}",
                                 op="GradOperation")  # fmt: skip
        self.get_all = get_all
        self.get_by_list = get_by_list
        self.sens_param = sens_param

    def _differentiates_by(self, value: object) -> bool:
        """Whether an argument has a gradient: of "all", as in MindSpore, marked containers only."""
        if self.get_all and type(value) in CONTAINERS:
            return _marked(value)
        return bool(tensors_in(value)) or _marked(value)

    def __call__(self, fn: Callable[..., object], weights: Weights = None) -> Callable[..., Any]:
        """Returns the gradient function of ``fn``."""
        require_function(fn, "GradOperation")
        trainable = getattr(fn, "trainable_params", None)
        chosen = None if weights is None else _weights(weights)

        def run(*args: object, **kwargs: object) -> object:
            params = chosen if self.get_by_list else ()
            if params is None and trainable is not None and _is_whole_graph():
                params = _weights(trainable())
            sens = kwargs.pop("sens", None) if self.sens_param else None
            if self.sens_param and sens is None:
                args, sens = args[:-1], args[-1]
            positions = [i for i, a in enumerate(args) if self._differentiates_by(a)]
            keywords = [k for k, v in kwargs.items() if self._differentiates_by(v)]
            if not self.get_all:
                first = 0 if self.get_by_list else 1
                positions, keywords = positions[:first], keywords[: first - len(positions[:first])]
            r = _Run(fn, args, kwargs, positions, params, keywords)
            outputs = _numeric(r.value, fn, args)
            dx, dw = r.differentiate(outputs, _sens(outputs, sens) if self.sens_param else None)
            inputs: Any = tuple(dx) if self.get_all else (dx[0] if dx else ())
            if not self.get_by_list:
                return inputs
            by_weights = dw[0] if isinstance(weights, Parameter) else tuple(dw)
            return (inputs, by_weights) if self.get_all else by_weights

        return run


def get_grad(gradients: object, identifier: int | Parameter) -> Tensor:
    """Finds a gradient in what :func:`grad` gives with ``return_ids``.

    Args:
        gradients: The gradients with their positions and names.
        identifier: The position of an argument, or the Parameter.

    Raises:
        DTypeError: if ``identifier`` is something else.
        ArgumentError: if there is no such gradient.

    Example:
        >>> found = ms.grad(lambda x, y: x * y, (0, 1), return_ids=True)(Tensor(2.0), Tensor(3.0))
        >>> float(ms.get_grad(found, 1))
        2.0
    """
    key = identifier.name if isinstance(identifier, Parameter) else identifier
    if isinstance(key, bool) or not isinstance(key, (int, str)):
        raise DTypeError(
            f"identifier must be an int or a Parameter, not {type(identifier).__name__}",
            op="get_grad",
        )
    todo, seen = [gradients], set()
    while todo:
        item = todo.pop()
        if not isinstance(item, (tuple, list)) or id(item) in seen:
            continue
        seen.add(id(item))
        if len(item) == 2 and type(item[0]) is type(key) and isinstance(item[1], Tensor):
            if item[0] == key:
                return item[1]
        else:
            todo.extend(item)
    reject(either(ArgumentError, RuntimeError), "get_grad", f"there is no gradient for {key!r}",
           fix="differentiate by it, with return_ids=True")  # fmt: skip


def _sens(outputs: list[Tensor], given: object) -> list[Tensor]:
    """Checks the cotangents of the outputs; a number stands for a 0-d tensor."""
    if isinstance(given, (int, float)) and len(outputs) == 1:
        given = Tensor(given, outputs[0].dtype)
    sens = tensors_in(given)
    if [s.shape for s in sens] != [o.shape for o in outputs]:
        reject(ShapeError, "grad", "the sensitivity must have the shape of the output",
               f"sens={[s.shape for s in sens]}, outputs={[o.shape for o in outputs]}")  # fmt: skip
    return sens
