"""MindirCell: a graph of MindSpore as a Cell that calls the operators of this package."""

from __future__ import annotations

import functools
import inspect
import operator
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.capture import structured
from tvmgraph.compat import mint, primitives
from tvmgraph.compat.extended import function_of, function_of_class
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, CaptureError, LoadError, TvmgraphError, reject
from tvmgraph.nn import Cell
from tvmgraph.nn.recurrent import all_steps
from tvmgraph.onnx.table import known, to_tensor
from tvmgraph.train.mindir_file import Monad, Node, read

_CONTROL = ("Load", "Partial", "Switch")


class _Closure:
    """A function of the file with its first arguments."""

    def __init__(self, name: str, args: tuple[object, ...] = ()) -> None:
        self.name, self.args = name, args


class _Choice:
    """One of two closures, by a condition that is not known while a graph is captured."""

    def __init__(self, condition: Tensor, sides: tuple[_Closure, _Closure]) -> None:
        self.condition, self.sides = condition, sides


class _Again:
    """What the body of a loop gives instead of calling its head: the arguments of that call."""

    def __init__(self, args: tuple[object, ...]) -> None:
        self.args = args


class MindirCell(Cell):
    """A graph of MindSpore, read from a MINDIR file.

    Its weights are Parameters with MindSpore's names. It runs eagerly, compiles, differentiates
    and exports, as other Cells do.

    Args:
        path: The file; a folder with weights, as MindSpore writes it for large networks, must
            be beside it.

    Raises:
        LoadError: if the file is encrypted or damaged, or has operators that are not supported;
            the message names them.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.program = program = read(path)
        defined = {n.output for f in program.functions.values() for n in f.nodes}
        ops = [n.op for f in program.functions.values() for n in f.nodes]
        unknown = Counter(
            op for op in ops
            if not is_known(op) and op not in (*_CONTROL, *defined, *program.functions)
        )  # fmt: skip
        if unknown:
            reject(LoadError, "load",
                   f"{unknown.total()} nodes use operators that are not supported",
                   ", ".join(f"{n} ({c})" for n, c in sorted(unknown.items())),
                   "export with file_format='ONNX' in MindSpore instead")  # fmt: skip
        self.writes = any(op.startswith(("Assign", "Inplace", "Apply")) for op in ops)
        self.weights = ParameterTuple(
            Parameter(Tensor(array), name=label) for label, array in program.weights.values()
        )
        self._heads: dict[str, bool] = {}  # of the loops whose body is being recorded

    def example_inputs(self) -> tuple[Tensor, ...]:
        """Returns zeros for every input; empty when the file leaves a size open."""
        found = self.program.examples
        return () if any(e is None for e in found) else tuple(map(Tensor, found))

    def construct(self, *inputs: object) -> object:
        """Runs the graph with one tensor per input.

        Args:
            *inputs: One tensor or array per input.

        Raises:
            ArgumentError: if there are more or fewer.
        """
        program = self.program
        main = program.functions[program.main]
        if len(inputs) != len(main.inputs):
            raise ArgumentError(f"{len(main.inputs)} inputs are needed, not {len(inputs)}",
                                op=type(self).__name__)  # fmt: skip
        return _map(to_tensor, self._run(program.main, inputs))

    def _run(self, name: str, args: Any, look: bool = False) -> object:
        """Runs a function; with ``look``, its last choice between two functions is not followed."""
        function = self.program.functions[name]
        made = {node.output for node in function.nodes}
        last = next((n for n in reversed(function.nodes) if n.op in made), None) if look else None
        env = dict(zip(self.program.weights, self.weights))
        env.update(zip(function.inputs, args, strict=True))
        for node in function.nodes:
            values = [self._value(env, name) for name in node.inputs]
            env[node.output] = self._step(env, node, values, node is last)
        results = [self._value(env, name) for name in function.outputs]
        return results[0] if len(results) == 1 else tuple(results)

    def _value(self, env: Mapping[str, object], name: str) -> object:
        if name in env:
            return env[name]
        if name in self.program.constants:
            return _map(to_tensor, self.program.constants[name])
        if name in self.program.functions:
            return _Closure(name)
        raise LoadError(f"nothing defines the value {name!r}", op="mindir",
                        fix="the file is damaged: export it again")  # fmt: skip

    def _step(self, env: Mapping[str, object], node: Node, values: list[Any], look: bool) -> Any:
        """Computes one node."""
        if node.op in env or node.op in self.program.functions:
            callee = self._value(env, node.op)
            if look and isinstance(callee, _Choice):
                return callee
            return self._invoke(callee, values)
        if node.op == "Partial":
            return _Closure(values[0].name, (*values[0].args, *values[1:]))
        if node.op == "Switch":
            return _switch(*values)
        if node.op == "Load":  # its value now, if it may be written later
            return F.identity(values[0]) if self.writes else values[0]
        try:
            return apply(node.op, dict(node.attrs), values)
        except TvmgraphError:
            raise
        except Exception as e:  # a file that breaks the rules may cause anything
            raise LoadError(f"the node cannot be computed ({type(e).__name__}: {e})",
                            op=f"mindir.{node.op}", got=node.scope) from e  # fmt: skip

    # ---- control flow -----------------------------------------------------------------------

    def _invoke(self, callee: Any, values: Any = ()) -> object:
        """Calls a function, or one of two functions."""
        if isinstance(callee, _Choice):
            return self._branch(callee, tuple(values))
        name, args = callee.name, (*callee.args, *values)
        if name in self._heads:
            return _Again(args)
        if self.program.functions[name].is_loop and structured.can_record():
            return self._loop(name, args)
        return self._run(name, args)

    def _branch(self, choice: _Choice, values: tuple[object, ...]) -> object:
        if not structured.can_record():
            raise CaptureError("a branch depends on a value that is not known", op="mindir",
                               fix="run it eagerly")  # fmt: skip
        shapes: list[object] = []

        def side(closure: _Closure) -> list[Tensor]:
            leaves: list[Any] = []

            def keep(value: object) -> object:
                if isinstance(value, (_Again, _Choice, _Closure)):
                    raise self._refused(closure.name)
                if isinstance(value, Monad):
                    return value
                plain = isinstance(value, (bool, int, float))
                leaves.append(to_tensor(np.asarray(value) if plain else value))
                return None

            shapes.append(_map(keep, self._invoke(closure, values)))
            return leaves

        found = structured.branch(choice.condition, *(lambda c=c: side(c) for c in choice.sides))
        leaves = iter(found if isinstance(found, tuple) else (found,))
        return _map(lambda v: next(leaves) if v is None else v, shapes[0])

    def _loop(self, name: str, args: tuple[Tensor, ...]) -> object:
        """Records a loop: a function that calls itself at the end of one of two branches."""
        places = [
            i for i, a in enumerate(args) if isinstance(a, Tensor) and not isinstance(a, Parameter)
        ]

        def head(state: Any) -> _Choice:
            now = list(args)
            for i, value in zip(places, state):
                now[i] = value
            found = self._run(name, now, look=True)
            if not isinstance(found, _Choice):
                raise self._refused(name)
            return found

        def test(state: object) -> list[Tensor]:
            return [F.reshape(head(state).condition, ())]

        def body(state: object) -> list[Any]:
            found = head(state)
            self._heads[name] = True
            try:
                again = self._invoke(found.sides[0])
            finally:
                del self._heads[name]
            if not isinstance(again, _Again):
                raise self._refused(name)
            return [to_tensor(again.args[i]) for i in places]

        end = structured.loop([args[i] for i in places], test, body)
        assert end is not None
        return self._invoke(head(end if isinstance(end, tuple) else (end,)).sides[1])

    def _refused(self, name: str) -> CaptureError:
        return CaptureError(f"the control flow of {name!r} has no form that can be compiled",
                            op="mindir", fix="run it eagerly")  # fmt: skip


def _switch(condition: object, *sides: _Closure) -> _Closure | _Choice:
    """Chooses one of two functions, at once if the condition is known."""
    value = condition if isinstance(condition, bool) else known(condition)
    if value is None:
        return _Choice(condition, sides)  # pyright: ignore[reportArgumentType]  (two of them)
    return sides[0 if np.asarray(value).reshape(-1)[0] else 1]


def _map(function: Callable[[object], object], value: object) -> object:
    """Applies a function to the leaves of tuples and lists."""
    if isinstance(value, (tuple, list)):
        return type(value)(_map(function, v) for v in value)
    return function(value)


# ---- The operators of MindSpore's MINDIR files as functions and operator classes of this package

#: Operators that are functions of ``mint`` by names that :mod:`tvmgraph.compat.extended` lacks.
_MINT = {
    "Any": "any", "ArgSort": "argsort", "Conv1DPadding": "conv1d", "Conv2DPadding": "conv2d",
    "Conv3DPadding": "conv3d", "EluExt": "elu", "SelectV2": "where", "StackExt": "stack",
    "Unique2": "unique", "UniqueDim": "unique", "UnstackExtView": "unbind",
}  # fmt: skip
#: Other names of operators that write to their first argument.
_INPLACE = {"AddsExt": "AddScalar"}

_WORDS: dict[str, tuple[str | None, ...]] = {
    "approximate": ("none", "tanh"),
    "coordinate_transformation_mode": ("asymmetric", "align_corners", "half_pixel"),
    "data_format": ("NCHW", "NHWC", *(None,) * 12, "NCDHW"),
    "indexing": ("ij", "xy"),
    "interpolation_mode": ("bilinear", "nearest", "bicubic"),
    "pad_mode": ("pad", "same", "valid"),
    "padding_mode": ("zeros", "border", "reflection"),
    "padding": (None, "same", "valid"),
    "reduce": ("none", "add"),
    "reduction": ("sum", "mean", "none"),
    "rounding_mode": (None, "trunc", "floor"),
}
"""What the numbers stand for that files have instead of words."""
_NUMBERS = (3, 4, 30, 32, 33, 34, 35, 37, 38, 39, 40, 42, 43, 44, 45, 51, 52)
_DTYPES: dict[int, str] = dict(zip(_NUMBERS, (
    "int32", "int64", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "float16", "float32", "float64", "bfloat16", "complex64", "complex128",
)))  # fmt: skip
_DTYPE_ARGUMENTS = ("dtype", "out_type", "output_type", "argmax_type")
_IMAGE_SIZES = ("kernel_size", "stride", "strides", "dilation", "pads")


def _lstm(
    x: Tensor, h: Tensor, c: Tensor, weights: Tensor, **attrs: int
) -> tuple[Tensor, Tensor, Tensor, None, None]:
    """The operator of MindSpore's CPU: one layer and direction, all weights in one tensor."""
    if attrs["num_layers"] != 1 or attrs["bidirectional"] or attrs.get("proj_size"):
        raise LoadError("LSTM with several layers or directions in one operator is not supported",
                        op="mindir.LSTM", fix="export it on MindSpore's CPU")  # fmt: skip
    flat, units, size = F.reshape(weights, (-1,)), attrs["hidden_size"], attrs["input_size"]
    first, second = 4 * units * size, 4 * units * units
    w_ih, w_hh, bias = flat[:first], flat[first : first + second], None
    if attrs["has_bias"]:  # one, or one for the input and one for the state
        bias = F.sum(F.reshape(flat[first + second :], (-1, 4 * units)), 0)
    projected = F.dense(x, F.reshape(w_ih, (4 * units, size)), bias)
    w_hh = F.reshape(w_hh, (4 * units, units))
    y, (h, c) = all_steps("lstm", projected, w_hh, None, (h[0], c[0]), False)
    return y, F.expand_dims(h, 0), F.expand_dims(c, 0), None, None


#: Operators that are no row of a table; they are called with the attributes, too.
_OWN: dict[str, Callable[..., object]] = {
    "Depend": lambda value, *_: value,
    "Load": lambda value, *_: value,
    "LSTM": _lstm,
    "ListGetItem": operator.getitem,
    "MakeList": lambda *items: list(items),
    "MakeTuple": lambda *items: items,
    "RealMakeTuple": lambda *items: items,
    "RealTupleGetItem": operator.getitem,
    "Return": lambda value: value,
    "TensorMove": lambda x: F.identity(x),
    "TensorToScalar": lambda x: x.item(),
    "TupleGetItem": operator.getitem,
    "UpdateState": lambda *_: Monad(),
    "make_list": lambda *items: list(items),
    "sequence_len": len,
    "BroadcastToView": lambda x, shape: F.broadcast_to(x, shape),
    "Contiguous": lambda x: F.identity(x),
    "Copy": lambda x, *_: F.identity(x),
    "ExpandDimsView": lambda x, axis: F.expand_dims(x, axis),
    "LayerNormExt": lambda *args: (mint.nn.functional.layer_norm(*args), None, None),
    "GroupNorm": lambda *args: (mint.nn.functional.group_norm(*args), None, None),
    "BatchNormExt": lambda x, weight, bias, mean, var, *rest: (
        mint.nn.functional.batch_norm(x, mean, var, weight, bias, *rest), None, None,
    ),
    "LinalgVectorNorm": lambda x, p, axis, keep, dtype=None: mint.linalg.vector_norm(
        x, p, axis, keep, dtype=_dtype(dtype)
    ),
    "MaskedFillScalar": lambda x, mask, value: F.masked_fill(x, mask, value),
    "MaxPoolWithIndices": lambda x, *args: mint.nn.functional.max_pool2d(x, *args[:5], True),
    "MaxPoolWithMask": lambda x, *args: (mint.nn.functional.max_pool2d(x, *args[:5]), None),
    "OneHotExt": lambda x, depth, on, off, axis=-1: F.one_hot(x, depth, on, off, axis),
    "SequenceConcat": lambda items, axis=0: F.concat(items, axis),
    "ToDtype": lambda x, dtype, *_: x if dtype is None else F.cast(x, _dtype(dtype)),
    "TransposeView": lambda x, axes: F.transpose(x, axes),
    "TupleToTensor": lambda items, dtype=None: Tensor(items, _dtype(dtype)),
    "View": lambda x, shape: F.reshape(x, shape),
    **{
        f"Upsample{name}": lambda x, size=None, scales=None, corners=None, mode=mode: (
            F.interpolate(x, size, scales, mode, corners if mode != "nearest" else None)
        )
        for name, mode in {
            "Bicubic2D": "bicubic", "Bilinear2D": "bilinear", "Linear1D": "linear",
            "Nearest1D": "nearest", "Nearest2D": "nearest",
        }.items()
    },
    **{
        f"Scalar{name}": function
        for name, function in {
            "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul,
            "Div": operator.truediv, "FloorDiv": operator.floordiv, "Mod": operator.mod,
            "Lt": operator.lt, "Le": operator.le, "Gt": operator.gt, "Ge": operator.ge,
            "Eq": operator.eq, "Usub": operator.neg, "Bool": bool,
        }.items()
    },
}  # fmt: skip


def _dtype(value: object) -> Any:
    """Returns the dtype that a number of a file stands for."""
    return dtypes.dtype_of(_DTYPES[value]) if isinstance(value, int) else value


def _argument(op: str, name: str, value: object) -> object:
    """Returns an argument, with words and dtypes instead of their numbers."""
    if name in _DTYPE_ARGUMENTS:
        return _dtype(value)
    if op == "TensorScatterElements" and name == "reduction":
        name = "reduce"
    words = _WORDS.get(name)
    if _of_mint(op) and not op.endswith("Padding") and name in (*_IMAGE_SIZES, "padding"):
        return value[0] if isinstance(value, tuple) and len(value) == 1 else value
    return words[value] if words and isinstance(value, int) else value


@functools.cache
def _of_mint(op: str) -> tuple[Callable[..., object], list[str]] | None:
    """Returns the function of mint that stands for an operator, and its parameters in order."""
    if op in _OWN or (op in primitives.ROWS and op not in _MINT):
        return None
    found = function_of(f"{_MINT[op]}_ext") if op in _MINT else function_of_class(op)
    return None if found is None else (found, list(inspect.signature(found).parameters))


@functools.cache
def _names(op: str) -> tuple[list[str], list[str]]:
    """Returns the names of the arguments of an operator class: of its call, of its constructor."""
    made = getattr(primitives, op)
    call, init = (inspect.signature(m).parameters for m in (made.__call__, made.__init__))
    return [n for n in call if n != "self"], [n for n in init if n != "self"]


def apply(op: str, attrs: dict[str, Any], values: list[Any]) -> Any:
    """Calls an operator of a file.

    Args:
        op: Its name.
        attrs: Its attributes.
        values: Its inputs: tensors, numbers, containers of them, and what orders side effects.
    """
    if op not in ("Depend", "MakeTuple"):
        values = [v for v in values if not isinstance(v, Monad)]
    if op in _OWN:
        return _OWN[op](*values, **(attrs if op == "LSTM" else {}))
    if found := _of_mint(op):
        function, parameters = found
        return function(*(_argument(op, p, v) for p, v in zip(parameters, values)))
    if op not in primitives.ROWS:  # writes to its first argument
        target, *rest = values
        new = rest[0] if op == "InplaceCopy" else apply(_inplace(op), attrs, values)
        new = F.cast(new, target.dtype)
        return F.assign(target, new) if isinstance(target, Parameter) else new
    call, init = _names(op)
    config = {k: _dtype(v) if k in _DTYPE_ARGUMENTS else v for k, v in attrs.items() if k in init}
    if "data_format" in init and "format" in attrs:
        config["data_format"] = attrs["format"]
    last = config.get("data_format") == "NHWC"
    for key in _IMAGE_SIZES:  # files have sizes for the batch and the channels, too
        if len(np.shape(config.get(key, 0)) and config[key]) > 3:
            config[key] = config[key][1:-1] if last else config[key][2:]
    config |= {k: _argument(op, k, v) for k, v in zip(init, values[len(call) :])}
    given = [_argument(op, k, v) for k, v in zip(call, values)]
    given += values[len(given) :] if call[:1] == ["*"] else []
    return getattr(primitives, op)(**config)(*given)


def _inplace(op: str) -> str:
    """Returns the operator that computes what another one writes to its first argument."""
    name = op.removeprefix("Inplace")
    return _INPLACE.get(name, name)


def is_known(op: str) -> bool:
    """Whether an operator of a file can be called.

    Args:
        op: Name of the operator.
    """
    if op.startswith("Inplace") and op not in primitives.ROWS:
        return op == "InplaceCopy" or is_known(_inplace(op))
    return op in _OWN or op in primitives.ROWS or _of_mint(op) is not None
