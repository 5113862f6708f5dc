"""OnnxCell: an ONNX model as a Cell, and ``load``."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tvmgraph.core.onnx_library import onnx
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, CaptureError, LoadError, TvmgraphError, reject
from tvmgraph.nn import Cell
from tvmgraph.onnx import converters  # noqa: F401  (fills the table)
from tvmgraph.onnx.functions import Functions
from tvmgraph.onnx.low_precision import LowPrecision, is_low_precision, wide_dtype
from tvmgraph.onnx.order import all_nodes, in_order, names_read, require_order
from tvmgraph.onnx.parts import OnnxPart, Step, divide, first_result, result_of
from tvmgraph.onnx.shape_values import Sizes, compute_sizes
from tvmgraph.onnx.table import NodeCall, constant_of, dtype_of, find_converter, to_tensor

Env = dict[str, Any]
STANDARD = ("", "ai.onnx")
#: Operators whose floating-point inputs after the first, scales and regions, decide about shapes.
RESIZING = ("Resize", "Upsample")
#: Subgraphs that are kept ready.
_SUBGRAPHS = 256
#: What a converter raises on a node that is not as ONNX defines it.
_BROKEN_RULES = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RuntimeError,
    TypeError, ValueError,
)  # fmt: skip


def load(path: str | os.PathLike[str] | onnx.ModelProto) -> OnnxCell:
    """Loads an ONNX model as a Cell.

    Args:
        path: A file (weights in files beside it are read too), or a model.

    Returns:
        An :class:`OnnxCell`; called with one tensor per input of the model.

    Raises:
        LoadError: if the file is damaged, or uses operators that are not supported; the message
            lists all of them.

    Example:
        >>> path = ms.export(nn.ReLU(), Tensor([1.0, -1.0]), file_name="relu")
        >>> ms.onnx.load(path)(Tensor([-2.0, 3.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  3.00000000e+00])
    """
    if isinstance(path, onnx.ModelProto):
        return _cell(path, path.graph.name)
    if not Path(path).is_file():
        reject(LoadError, "onnx.load", "there is no such file", str(path), "check the path")
    try:
        model = onnx.load(str(path))
    except Exception as e:  # protobuf and external data raise many kinds
        raise LoadError(
            f"it is no ONNX model, or it is damaged ({e})", op="onnx.load", got=str(path)
        ) from None
    return _cell(model, str(path))


def _cell(model: onnx.ModelProto, got: str) -> OnnxCell:
    try:
        return OnnxCell(model)
    except TvmgraphError:
        raise
    except Exception as e:  # whatever a model that breaks ONNX's rules may cause
        why = f"the model breaks ONNX's rules ({type(e).__name__}: {e})"
        raise LoadError(why, op="onnx.load", got=got, fix="onnx.checker names the rule") from e


class _Definition:
    """What a model says, which stays as it is.

    Calls of compiled code compare what a Cell holds with what it held when it was captured. This
    is compared as one object, however many nodes and constants there are.

    Args:
        model: The model.

    Attributes:
        graph: Its nodes.
        opsets: Versions of the operators, by domain.
        functions: Operators that it defines itself.
        fixed: Constants, by name.
        weights: Attributes of the Cell that hold the Parameters, by the names of the initializers.
        kinds: Types of the inputs, by name.
        folded: What depends on constants only, by name, and the other nodes, once they are known.
        refused: First results of nodes that no graph has, because values decide about shapes.
        decisions: How often values have decided so far.
        parts: Cells that are graphs, by the nodes they run, once such nodes were met.
        steps: The parts and single nodes that the model is divided into.
        subgraphs: By identity, subgraphs with their nodes in order and their constants.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.graph = model.graph
        self.opsets = {o.domain or "": o.version for o in model.opset_import}
        self.functions = Functions(model)
        self.fixed: Env = {}
        self.weights: dict[str, str] = {}
        self.kinds = {v.name: v.type for v in model.graph.input}
        self.folded: tuple[Env, list[onnx.NodeProto]] | None = None
        self.refused: set[str] = set()
        self.decisions = 0
        self.parts: dict[tuple[str, ...], OnnxPart] = {}
        self.steps: list[Step] | None = None
        self.subgraphs: dict[int, tuple[onnx.GraphProto, list[onnx.NodeProto], Env]] = {}


class OnnxCell(Cell):
    """An ONNX model.

    Floating-point initializers become Parameters of the same name, but for scales of images, which
    decide about shapes; everything that depends on
    constants only is computed once, at the first call. Loading computes nothing.

    Args:
        model: The model.

    Attributes:
        input_names: Names of the inputs, in the order of the call.
        output_names: Names of the outputs.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        super().__init__()
        self._model = definition = _Definition(model)
        self._require_known(model)
        require_order(model.graph)
        if model.graph.sparse_initializer:
            raise LoadError("sparse initializers are not supported", op="onnx.load")
        deciding = {
            name for n in all_nodes(model.graph) if n.op_type in RESIZING for name in n.input[1:]
        }
        for proto in model.graph.initializer:
            self._add_initializer(proto, proto.name in deciding)
        given = definition.fixed.keys() | definition.weights.keys()
        self.input_names = tuple(v.name for v in model.graph.input if v.name not in given)
        self.output_names = tuple(v.name for v in model.graph.output)

    def _add_initializer(self, proto: onnx.TensorProto, decides: bool) -> None:
        try:
            array = constant_of(proto)
            dtype_of(proto.data_type, f"initializer {proto.name!r}")
        except LoadError:
            raise
        except Exception as e:
            raise LoadError(
                f"initializer {proto.name!r} is damaged ({e})", op="onnx.load"
            ) from None
        trained = isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.ndim
        model = self._model
        if trained and not decides:
            name = f"weight{len(model.weights)}"
            self.insert_param_to_cell(name, Parameter(Tensor(array), name=proto.name))
            model.weights[proto.name] = name
        else:
            model.fixed[proto.name] = array

    def _require_known(self, model: onnx.ModelProto) -> None:
        unknown: Counter[str] = Counter()
        for node in all_nodes(model.graph):
            domain = node.domain if node.domain not in STANDARD else ""
            direct = find_converter(domain, node.op_type) is not None
            known = self._model
            if not direct and not known.functions.has(node, known.opsets.get(domain, 1)):
                unknown[f"{domain}.{node.op_type}" if domain else node.op_type] += 1
        if unknown:
            listed = ", ".join(f"{name} ({count})" for name, count in sorted(unknown.items()))
            reject(LoadError, "onnx.load",
                   f"{sum(unknown.values())} nodes use operators that are not supported", listed,
                   "`tvmgraph.onnx.supported_operators()` lists those that are")  # fmt: skip

    # ---- running ----------------------------------------------------------------------------

    def _folded(self) -> tuple[Env, list[onnx.NodeProto]]:
        """Returns what depends on constants only, and the other nodes."""
        if self._model.folded is None:
            with state.interpreting(None):
                self._model.folded = self._fold()
        return self._model.folded

    def _fold(self) -> tuple[Env, list[onnx.NodeProto]]:
        fixed, rest = dict(self._model.fixed), []
        for node in in_order(self._model.graph.node):
            if _has_graphs(node) or any(i and i not in fixed for i in node.input):
                rest.append(node)
                continue
            self._run_node(node, fixed, self._model.opsets)
            for name in node.output:  # a folded result is an array, as constants are
                if name:
                    fixed[name] = _as_constant(fixed.get(name))
        return fixed, rest

    def construct(self, *inputs: Tensor) -> object:
        """Runs the model.

        Args:
            inputs: One tensor per input (a list of them for a sequence, ``None`` for an omitted
                optional one). A number or tuple of numbers is a constant: compiled, it may decide
                about shapes, and another value compiles again.
        """
        if len(inputs) != len(self.input_names):
            reject(ArgumentError, f"onnx.{self._model.graph.name}",
                   f"{len(self.input_names)} inputs are needed, not {len(inputs)}",
                   fix=f"give {', '.join(self.input_names)}")  # fmt: skip
        env, nodes = self._environment(inputs)
        model = self._model
        if model.refused and state.broken is not None:
            model.steps = steps = model.steps or divide(self, nodes)
            for step in steps:
                if isinstance(step, OnnxPart):
                    step.run_in(env)
                else:
                    self.run_nodes([step], env)
        else:
            self.run_nodes(nodes, env)
        outputs = [result_of(_value(env, name)) for name in self.output_names]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _environment(self, inputs: Sequence[object]) -> tuple[Env, list[onnx.NodeProto]]:
        """Returns what is known before a call's first node, and the nodes."""
        env, rest = self.constants(), self._folded()[1]
        env.update((n, self._argument(n, v)) for n, v in zip(self.input_names, inputs))
        return env, rest

    def constants(self) -> Env:
        """Returns what depends on constants only, and the weights, by name."""
        env = dict(self._folded()[0])
        env.update((name, getattr(self, at)) for name, at in self._model.weights.items())
        return env

    @property
    def definition(self) -> _Definition:
        """What the model says."""
        return self._model

    def run_nodes(self, nodes: Iterable[onnx.NodeProto], env: Env) -> None:
        """Runs nodes; while a graph is captured, notes all of them that it cannot have.

        Args:
            nodes: Nodes in an order in which they can run.
            env: Values by name; gets the results.

        Raises:
            CaptureError: if a graph that is captured cannot have one of them.
        """
        model = self._model
        refused: CaptureError | None = None
        missing: set[str] = set()  # results of refused nodes, and of those that read them
        for node in nodes:
            if missing and not missing.isdisjoint(names_read(node)):
                missing.update(node.output)
                continue
            decisions = model.decisions
            try:
                self._run_node(node, env, model.opsets)
            except CaptureError as e:
                if state.interpreter is None:
                    raise
                refused = refused or e
                missing.update(node.output)
                self._refuse(node)
            if model.decisions > decisions:
                self._refuse(node)
        if refused is not None:
            raise refused

    def _refuse(self, node: onnx.NodeProto) -> None:
        """Notes a node that no graph can have; the model is divided anew."""
        if first_result(node) not in self._model.refused:
            self._model.refused.add(first_result(node))
            self._model.steps = None

    def _argument(self, name: str, value: object) -> object:
        if isinstance(value, list):
            return [self._argument(name, v) for v in value]
        kind = self._model.kinds[name].tensor_type.elem_type
        if value is not None and is_low_precision(kind):
            dtype = wide_dtype(kind)
            held = value if isinstance(value, Tensor) else np.asarray(value).astype(dtype.numpy)
            return LowPrecision(F.cast(held, dtype) if isinstance(held, Tensor) else held, kind)
        if value is None or isinstance(value, (Tensor, np.ndarray)):
            return value
        return np.asarray(value, dtype_of(kind, name).numpy if kind else None)

    def _run_node(self, node: onnx.NodeProto, env: Env, opsets: dict[str, int]) -> None:
        values = [_value(env, name) if name else None for name in node.input]
        domain = node.domain if node.domain not in STANDARD else ""
        opset = opsets.get(domain, self._model.opsets.get(domain, 1))
        try:
            results = self._evaluate(node, values, env, domain, opset)
        except _BROKEN_RULES as e:
            if isinstance(e, TvmgraphError):
                raise
            raise LoadError(
                f"the node breaks ONNX's rules ({type(e).__name__}: {e})",
                op=f"onnx.{node.op_type}", got=node.name or None, fix="onnx.checker names the rule",
            ) from e  # fmt: skip
        for name, value in zip(node.output, results):
            if name:
                env[name] = value

    def _evaluate(
        self, node: onnx.NodeProto, values: Sequence[object], env: Env, domain: str, opset: int
    ) -> Sequence[object]:
        convert = find_converter(domain, node.op_type)
        constant = all(v is None or _is_constant(v) for v in values)
        constant = constant and not _has_graphs(node)
        if convert is None:
            body = self._model.functions.body(node, opset, values)
            return self._run_function(body, node, values)
        call = NodeCall(
            node, opset, values, self._model.functions.attributes(node, opset),
            lambda graph, given: self._run_graph(graph, given, env),
        )  # fmt: skip
        if any(isinstance(v, Sizes) for v in values):
            found = compute_sizes(call)
            if found is not None:
                return found if isinstance(found, tuple) else (found,)
        # what is known while a graph is captured is computed now
        with state.interpreting(None) if constant else contextlib.nullcontext():
            result = convert(call, *[to_tensor(v) for v in values])
        if not _has_graphs(node):  # a graph has branches and loops, too
            self._model.decisions += call.decided
        parts = result if isinstance(result, tuple) else (result,)
        return tuple(map(_as_constant, parts)) if constant else parts

    def _run_graph(
        self, graph: onnx.GraphProto, inputs: Sequence[object], outer: Env
    ) -> list[object]:
        nodes, constants = self._prepared(graph)
        env = outer | constants
        env.update(zip((v.name for v in graph.input), inputs))
        for node in nodes:
            self._run_node(node, env, self._model.opsets)
        return [_value(env, v.name) for v in graph.output]

    def _prepared(self, graph: onnx.GraphProto) -> tuple[Sequence[onnx.NodeProto], Env]:
        """Returns the nodes of a subgraph in order, and its constants; a loop asks every time."""
        kept = self._model.subgraphs
        if id(graph) not in kept:
            if len(kept) >= _SUBGRAPHS:  # as many views of few graphs
                kept.clear()
            constants: Env = {proto.name: constant_of(proto) for proto in graph.initializer}
            nodes: list[onnx.NodeProto] = []
            for node in in_order(graph.node):
                if node.op_type != "Constant":
                    nodes.append(node)
                else:
                    self._run_node(node, constants, self._model.opsets)
            kept[id(graph)] = graph, nodes, constants
        return kept[id(graph)][1:]

    def _run_function(
        self, body: onnx.FunctionProto, node: onnx.NodeProto, values: Sequence[object]
    ) -> list[object]:
        opsets = {o.domain or "": o.version for o in body.opset_import}
        env: Env = dict.fromkeys(body.input)
        env.update(zip(body.input, values))
        for inner in in_order(body.node):
            self._run_node(self._model.functions.bound(inner, node, body), env, opsets)
        return [env.get(name) for name in body.output]  # some outputs are optional

    def example_inputs(self) -> tuple[Tensor, ...]:
        """Returns zeros for every input; empty when the model leaves a size open."""
        examples = []
        for name in self.input_names:
            kind = self._model.kinds[name].tensor_type
            if not kind.HasField("shape") or any(not d.dim_value for d in kind.shape.dim):
                return ()
            shape = [d.dim_value for d in kind.shape.dim]
            examples.append(Tensor(np.zeros(shape, dtype_of(kind.elem_type, name).numpy)))
        return tuple(examples)

    def extend_repr(self) -> str:
        """Returns the inputs and outputs for the printed tree."""
        return f"{', '.join(self.input_names)} -> {', '.join(self.output_names)}"


def _has_graphs(node: onnx.NodeProto) -> bool:
    """Whether a node runs subgraphs, which may read more than its inputs."""
    return any(a.HasField("g") for a in node.attribute)


def _value(env: Env, name: str) -> object:
    if name not in env:
        raise LoadError(f"nothing defines the value {name!r}", op="onnx.load",
                        fix="onnx.checker names the rule that is broken")  # fmt: skip
    return env[name]


def _is_constant(value: object) -> bool:
    return isinstance(value.wide if isinstance(value, LowPrecision) else value, np.ndarray)


def _as_constant(value: object) -> Any:
    if isinstance(value, LowPrecision):
        return LowPrecision(_as_constant(value.wide), value.kind)
    return np.array(value.array) if isinstance(value, Tensor) else value
