"""ONNX files: whole programs with options, written atomically and checked."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tvmgraph import partial
from tvmgraph.core.onnx_library import helper, numpy_helper, onnx
from tvmgraph.core.sizes import LEAST
from tvmgraph.core.symbols import Specialise
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.errors import ArgumentError, ExportError, TvmgraphError, reject, warn_user
from tvmgraph.export.capture import capture_program, unwrapped
from tvmgraph.export.onnx import OPSET, ExternalData, make_node, to_onnx
from tvmgraph.export.variable import (
    Dynamic,
    VariableInputs,
    given_axes,
    given_inputs,
    variable_inputs,
)
from tvmgraph.graph import simplify as passes
from tvmgraph.nn import Cell

OLDEST_OPSET = 17
_EXTERNAL_BYTES = 1 << 30  # protobuf messages end at 2 GiB; half of it leaves room for all else


def save_onnx(
    path: Path,
    net: object,
    args: tuple[object, ...],
    *,
    opset: int = OPSET,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    training: bool = False,
    external_data_bytes: int = _EXTERNAL_BYTES,
) -> None:
    """Captures a network and writes it as ONNX.

    Args:
        path: Where to write.
        net: What to capture.
        args: Example arguments.
        opset: Version of the standard operators, 17 or newer.
        dynamic: Names of variable axes by argument name and axis.
        training: Whether to capture in training mode.
        external_data_bytes: Weights above this total go into ``<name>.data`` beside the file.

    Raises:
        ExportError: if an operator has no ONNX form in this opset.
    """
    external = None
    if _weight_bytes(net) > external_data_bytes:
        external = ExternalData(path.name + ".data")
    args = given_inputs(net, args)
    _write(path, onnx_model(net, args, opset, dynamic, training, external), external)


def _weight_bytes(net: object) -> int:
    cell = getattr(net, "owner", None) or unwrapped(net)
    params = cell.get_parameters() if isinstance(cell, Cell) else ()
    return sum(p.array.nbytes for p in params)


def onnx_model(
    net: object,
    args: tuple[object, ...],
    opset: int = OPSET,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    training: bool = False,
    external: ExternalData | None = None,
) -> onnx.ModelProto:
    """Captures a network and returns it as an ONNX model.

    Args:
        net: A Cell, a function of tensors, or what ``jit`` returned.
        args: Example inputs.
        opset: Opset of the model, from ``OLDEST_OPSET`` to the newest that the package ``onnx``
            knows.
        dynamic: Names of the axes whose sizes vary, by axis and by name of the input.
        training: Whether the network is captured as it trains.
        external: Where the weights go; by default into the model.

    Raises:
        ArgumentError: if the opset is not offered.
    """
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= opset <= newest:
        reject(ArgumentError, "export", f"opset {opset} is not offered",
               fix=f"use {OLDEST_OPSET} to {newest}")  # fmt: skip
    variable = variable_inputs(net, args, dynamic)
    if variable is not None:
        _warn_of_ones(net, variable, training)
        return dynamic_model(net, variable.args, opset, variable.axes, training, external)
    program = capture_program(net, args, training=training).without_state()
    return to_onnx(passes.simplify(program.graph), program.parameters, opset, external)


def _warn_of_ones(net: object, variable: VariableInputs, training: bool) -> None:
    """Warns of axes where the code does something else for size 1, which the file cannot tell."""
    try:
        program = capture_program(
            net, variable.args, training=training, promotion=variable.promotion
        )
    except (TvmgraphError, Specialise):
        return  # the sizes themselves are needed
    ones = sorted(variable.names[root] for root, least in program.least.items() if least == LEAST)
    if ones:
        warn_user(
            f"export: the file computes sizes of at least {LEAST} of {', '.join(ones)} only: the "
            "code decides by smaller ones; export once more for them, with examples of that size"
        )


def _write(path: Path, model: onnx.ModelProto, external: ExternalData | None) -> None:
    """Writes and checks a model; an interrupted write leaves no half file behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with partial.workspace(path.parent) as folder:
        onnx.save_model(model, folder / path.name)
        if external is not None:
            external.write(folder)
            onnx.checker.check_model(str(folder / path.name))
            os.replace(folder / external.location, path.parent / external.location)
        os.replace(folder / path.name, path)


# ---- ONNX models with named axes of variable size ------------------------------------------------
# The network is captured for several sizes of every named axis. Whatever is the same in all
# captures stays; the numbers that follow the sizes (the shapes in reshapes, bounds of slices, zero
# states, ranges of positions) are expressed by the sizes, as polynomials without squares, and
# computed in the model from its inputs. One more capture, not used for finding them, checks the
# result.

Sizes = dict[str, int]


def dynamic_model(
    net: object,
    args: tuple[object, ...],
    opset: int,
    dynamic: Dynamic,
    training: bool,
    external: ExternalData | None = None,
) -> onnx.ModelProto:
    """Exports a network whose inputs have axes of variable size.

    Args:
        net: What to capture.
        args: Example arguments, all tensors.
        opset: Version of the standard operators.
        dynamic: Names of variable axes by argument name and axis; axes of one name are equal.
        training: Whether to capture in training mode.
        external: Where large weights go.

    Raises:
        ArgumentError: if an argument or axis does not exist.
        ExportError: if something follows the sizes in a way that ONNX cannot compute.
    """
    labels = [p.label for p in capture_program(net, args, training=training).graph.inputs]
    base = _base_sizes(labels, args, dynamic)
    names = list(base)
    corners = [
        {n: base[n] * (1 + up) for n, up in zip(names, ups)}
        for ups in itertools.product((0, 1), repeat=len(names))
    ]
    check = {n: base[n] * 3 for n in names}
    probes = [*corners, check]
    models = []
    for sizes in probes:
        resized = _resize(labels, args, dynamic, sizes)
        program = capture_program(net, resized, training=training).without_state()
        # folding stops at a number of elements: it would give other graphs for other sizes
        plain = passes.dce(program.graph)
        models.append(to_onnx(plain, program.parameters, opset, external))
    merged = _Merge(names, probes, models, labels, dynamic).model()
    if external is None:
        onnx.checker.check_model(merged)
    return merged


def _base_sizes(labels: list[str], args: tuple[object, ...], dynamic: Dynamic) -> Sizes:
    sizes: Sizes = {}
    for _, axis, name, tensor in given_axes(labels, args, dynamic):
        size = max(2, tensor.shape[axis])  # one of 1 would be taken for broadcasting
        if sizes.setdefault(name, size) != size:
            reject(ArgumentError, "export",
                   f"axis {name!r} has two sizes in the examples: {sizes[name]} and {size}",
                   fix="give examples that agree")  # fmt: skip
    return sizes


def _resize(
    labels: list[str], args: tuple[object, ...], dynamic: Dynamic, sizes: Sizes
) -> tuple[object, ...]:
    resized = []
    for label, a in zip(labels, args):
        axes = dynamic.get(label, {})
        if axes and isinstance(a, Tensor):  # _base_sizes raised for others
            shape = [sizes[axes[i]] if i in axes else d for i, d in enumerate(a.shape)]
            a = tensor_from_numpy(np.zeros(shape, a.array.dtype))
        resized.append(a)
    return tuple(resized)


@dataclass
class _Merge:
    """Finds out how the captures differ and writes one model for all sizes."""

    names: list[str]
    probes: list[Sizes]
    models: list[onnx.ModelProto]
    labels: list[str]
    dynamic: Dynamic
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    consts: list[onnx.TensorProto] = field(default_factory=list)
    known: dict[object, str] = field(default_factory=dict)

    def model(self) -> onnx.ModelProto:
        """Returns the merged model."""
        first = self.models[0].graph
        for other in self.models[1:]:
            self._require_equal_nodes(first, other.graph)
        weights = self._initializers()
        outputs = [self._output(i) for i in range(len(first.output))]
        graph = helper.make_graph(
            [*self.nodes, *first.node], first.name, [self._input(v) for v in first.input],
            outputs, [*weights, *self.consts],
        )  # fmt: skip
        return helper.make_model(
            graph, opset_imports=self.models[0].opset_import, producer_name="tvmgraph",
            ir_version=self.models[0].ir_version,
        )  # fmt: skip

    def _require_equal_nodes(self, a: onnx.GraphProto, b: onnx.GraphProto) -> None:
        if len(a.node) != len(b.node):
            raise self._fail("the operators themselves depend on the size (a loop over it?)")
        for m, n in zip(a.node, b.node):
            _forget_sizes(m, n)
            if m != n:
                raise self._fail(f"the attributes or inputs of a {m.op_type} depend on the size")

    def _fail(self, why: str) -> ExportError:
        return ExportError(
            why, op="export", got=f"dynamic={ {k: dict(v) for k, v in self.dynamic.items()} }",
            fix="export without `dynamic`, once for every size",
        )  # fmt: skip

    # ---- initializers -----------------------------------------------------------------------

    def _initializers(self) -> list[onnx.TensorProto]:
        kept = []
        tables = [{t.name: t for t in m.graph.initializer} for m in self.models]
        for name, proto in tables[0].items():
            versions = [t[name] for t in tables]
            if all(v == proto for v in versions[1:]):
                kept.append(proto)
            else:
                self._express(name, [numpy_helper.to_array(v) for v in versions])
        return kept

    def _express(self, name: str, arrays: list[np.ndarray]) -> None:
        """Adds nodes that compute an initializer that follows the sizes."""
        if len({a.shape for a in arrays}) == 1 and arrays[0].dtype == np.int64:
            result = self._polynomial(arrays, name)
        else:
            if len({a.ndim for a in arrays}) != 1:
                raise self._fail(f"the rank of the constant {name} depends on the size")
            result = self._sized(arrays, name)
        self.nodes.append(helper.make_node("Identity", [result], [name]))

    def _sized(self, arrays: list[np.ndarray], name: str) -> str:
        """A constant whose shape follows the sizes: one number everywhere, or a range."""
        shapes = [np.array(a.shape, np.int64) for a in arrays]
        shape = self._polynomial(shapes, name)
        values = {a.ravel()[:1].tobytes() for a in arrays}
        if len(values) == 1 and all((a == a.ravel()[0]).all() for a in arrays):
            return self._node("Expand", [self._const(arrays[0].ravel()[0]), shape])
        axis = next(i for i in range(arrays[0].ndim) if len({a.shape[i] for a in arrays}) > 1)
        starts = {a.ravel()[0].item() for a in arrays}
        if len(starts) != 1 or not all(_is_range(a, axis) for a in arrays):
            raise self._fail(f"the elements of the constant {name} follow the size irregularly")
        dtype = arrays[0].dtype
        count = self._node("Gather", [shape, self._const(np.int64(axis))])
        step = _step(max(arrays, key=lambda a: a.shape[axis]), axis)
        ends = self._node("Range", [self._const(np.int64(0)), count, self._const(np.int64(1))])
        cast = self._node("Cast", [ends], to=helper.np_dtype_to_tensor_dtype(dtype))
        scaled = self._node("Mul", [cast, self._const(step)])
        line = self._node("Add", [scaled, self._const(np.asarray(starts.pop(), dtype))])
        along = np.array([-1 if i == axis else 1 for i in range(arrays[0].ndim)], np.int64)
        return self._node("Expand", [self._node("Reshape", [line, self._const(along)]), shape])

    def _polynomial(self, arrays: list[np.ndarray], name: str) -> str:
        """An int64 tensor: the sum of products of sizes, with constant coefficients."""
        terms = self._fit(arrays, name)
        total = ""
        for subset, coefficient in terms:
            part = self._const(coefficient)
            for n in subset:
                part = self._node("Mul", [part, self._size(n)])
            total = self._node("Add", [total, part]) if total else part
        return total or self._const(np.zeros_like(arrays[0]))

    def _fit(self, arrays: list[np.ndarray], name: str) -> list[tuple[tuple[str, ...], np.ndarray]]:
        subsets = [
            s for r in range(len(self.names) + 1) for s in itertools.combinations(self.names, r)
        ]
        matrix = np.array([[math.prod(p[n] for n in s) for s in subsets] for p in self.probes])
        flat = np.stack([a.ravel() for a in arrays]).astype(np.float64)
        found = np.rint(np.linalg.solve(matrix[:-1], flat[:-1]))
        if not (matrix @ found == flat).all():
            raise self._fail(f"the constant {name} is no product of sizes")
        return [
            (s, row.astype(np.int64).reshape(arrays[0].shape))
            for s, row in zip(subsets, found) if row.any()
        ]  # fmt: skip

    # ---- nodes ------------------------------------------------------------------------------

    def _size(self, name: str) -> str:
        """The value of a named size: read from the shape of the first input that has it."""
        for label, axes in self.dynamic.items():
            for axis, n in axes.items():
                if n == name:
                    shape = self._node("Shape", [label])
                    return self._node("Gather", [shape, self._const(np.int64(axis))])
        raise AssertionError(name)

    def _const(self, value: object) -> str:
        array = np.asarray(value)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.known:
            self.known[key] = f"dynamic_{len(self.known)}"
            self.consts.append(numpy_helper.from_array(array, self.known[key]))
        return self.known[key]

    def _node(self, op_type: str, inputs: Sequence[str], **attrs: object) -> str:
        key = (op_type, tuple(inputs), tuple(attrs.items()))
        if key not in self.known:
            self.known[key] = f"dynamic_{len(self.known)}"
            self.nodes.append(make_node(op_type, inputs, [self.known[key]], attrs))
        return self.known[key]

    # ---- inputs and outputs -----------------------------------------------------------------

    def _input(self, info: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
        axes = self.dynamic.get(info.name, {})
        kind = info.type.tensor_type
        dims = [axes.get(i, d.dim_value) for i, d in enumerate(kind.shape.dim)]
        return helper.make_tensor_value_info(info.name, kind.elem_type, dims)

    def _output(self, i: int) -> onnx.ValueInfoProto:
        infos = [m.graph.output[i] for m in self.models]
        shapes = [
            np.array([d.dim_value for d in v.type.tensor_type.shape.dim], np.int64) for v in infos
        ]
        dims: list[int | str] = []
        of_values = [d.dim_param for d in infos[0].type.tensor_type.shape.dim]
        for axis, column in enumerate(np.stack(shapes).T):
            same = (column == column[0]).all()
            size = int(column[0]) if same else self._dim_name(column, f"output{i}_{axis}")
            dims.append(of_values[axis] or size)
        kind = infos[0].type.tensor_type.elem_type
        return helper.make_tensor_value_info(infos[0].name, kind, dims)

    def _dim_name(self, column: np.ndarray, fallback: str) -> str:
        for n in self.names:
            if all(p[n] == c for p, c in zip(self.probes, column)):
                return n
        return fallback


def _forget_sizes(m: onnx.NodeProto, n: onnx.NodeProto) -> None:
    """Removes sizes in which the borders of two nodes' inner graphs differ."""
    for a, b in zip(m.attribute, n.attribute):
        for x, y in zip([*a.g.input, *a.g.output], [*b.g.input, *b.g.output]):
            for d, e in zip(x.type.tensor_type.shape.dim, y.type.tensor_type.shape.dim):
                if d != e:
                    d.Clear()
                    e.Clear()
        for inner in zip(a.g.node, b.g.node):
            _forget_sizes(*inner)


def _is_range(a: np.ndarray, axis: int) -> bool:
    """Whether an array grows evenly along one axis and is the same along the others."""
    along = [-1 if i == axis else 1 for i in range(a.ndim)]
    line = np.arange(a.shape[axis]).astype(a.dtype) * _step(a, axis) + a.ravel()[0]
    return a.dtype != np.bool_ and bool((a == line.reshape(along)).all())


def _step(a: np.ndarray, axis: int) -> np.ndarray:
    line = np.moveaxis(a, axis, 0).reshape(a.shape[axis], -1)[:, 0]
    return np.asarray(line[1] - line[0] if len(line) > 1 else 0, a.dtype)
