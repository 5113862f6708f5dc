"""Graph to ONNX: a fold over the nodes, each mapped by its row's ``onnx`` column."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, cast, overload

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.onnx_library import helper, numpy_helper, onnx
from tvmgraph.core.op import Reason
from tvmgraph.core.types import Dim, TensorType, tensor_type
from tvmgraph.errors import ExportError, GraphError, ShapeError
from tvmgraph.graph.ir import Graph, Node, Role, Value

OPSET = 20
_OLDEST_IR_VERSION = 10
_PAGE = 4096


class OnnxValue:
    """A value of the ONNX graph being built.

    Attributes:
        name: Its name.
        type: Its type where the graph declares it (operands of a row), else ``None``.
    """

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: TensorType | None = None) -> None:
        self.name = name
        self.type = type


class ExternalData:
    """Weights that stand in a file beside the model, because a message holds at most 2 GiB.

    Args:
        location: Name of that file.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self.arrays: dict[str, tuple[int, np.ndarray]] = {}
        self._end = 0

    def reference(self, name: str, array: np.ndarray) -> onnx.TensorProto:
        """Returns an initializer that points into the file.

        Args:
            name: Name of the weight; the same name refers to the same bytes.
            array: Its elements, which are written by :meth:`write`.
        """
        if name not in self.arrays:
            start = -(-self._end // _PAGE) * _PAGE  # so that readers can map it into memory
            self.arrays[name] = (start, array)
            self._end = start + array.nbytes
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        proto = onnx.TensorProto(name=name, data_type=kind, dims=array.shape)
        proto.data_location = onnx.TensorProto.EXTERNAL
        offset = self.arrays[name][0]
        facts = (("location", self.location), ("offset", offset), ("length", array.nbytes))
        for key, value in facts:
            proto.external_data.add(key=key, value=str(value))
        return proto

    def write(self, folder: Path) -> None:
        """Writes the file into a folder.

        Args:
            folder: The folder of the model's file.
        """
        with open(folder / self.location, "wb") as stream:
            for start, array in self.arrays.values():
                stream.seek(start)
                np.ascontiguousarray(array).tofile(stream)


class _Size:
    """A size that is computed in the graph; arithmetic adds nodes."""

    def __init__(self, builder: OnnxBuilder, value: OnnxValue) -> None:
        self.builder, self.value = builder, value

    def _with(self, op_type: str, left: object, right: object) -> _Size:
        pair = [v.value if isinstance(v, _Size) else np.asarray(v, np.int64) for v in (left, right)]
        return _Size(self.builder, self.builder.add(op_type, pair, 1, {}))

    def __add__(self, other: object) -> _Size:
        return self._with("Add", self, other)

    def __sub__(self, other: object) -> _Size:
        return self._with("Sub", self, other)

    def __rsub__(self, other: object) -> _Size:
        return self._with("Sub", other, self)

    def __mul__(self, other: object) -> _Size:
        return self._with("Mul", self, other)

    def __neg__(self) -> _Size:
        return self._with("Sub", 0, self)

    def __floordiv__(self, other: object) -> _Size:  # sizes that are divided are not negative
        return self._with("Div", self, other)

    def __mod__(self, other: object) -> _Size:
        return self._with("Mod", self, other)

    __radd__, __rmul__ = __add__, __mul__


class _Operator:
    """An operator of ONNX; a call adds a node, see :class:`OnnxBuilder`."""

    def __init__(self, builder: OnnxBuilder, op_type: str) -> None:
        self._builder, self._op_type = builder, op_type

    @overload
    def __call__(self, *inputs: object, outputs: Literal[1] = 1, **attrs: object) -> OnnxValue: ...
    @overload
    def __call__(
        self, *inputs: object, outputs: int, **attrs: object
    ) -> OnnxValue | tuple[OnnxValue, ...]: ...
    def __call__(
        self, *inputs: object, outputs: int = 1, **attrs: object
    ) -> OnnxValue | tuple[OnnxValue, ...]:
        return self._builder.add(self._op_type, inputs, outputs, attrs)


class OnnxBuilder:
    """What a row may use to map itself: ``O.Softmax(x, axis=1)`` adds a node.

    Calling any ONNX op_type as a method adds a node; positional arguments are values, NumPy
    arrays (stored as initializers) or ``None`` for an omitted input, keywords are attributes. The
    keyword ``outputs`` asks for several outputs and gives a tuple.

    Args:
        opset: Version of the standard operators.
        taken: Names that no new value may have.
        sizes: What the roots of symbolic sizes are called in the file, where not as in the graph.
    """

    def __init__(
        self, opset: int = OPSET, taken: Iterable[str] = (), sizes: Mapping[str, str] | None = None
    ) -> None:
        self.opset = opset
        self._sizes = sizes or {}
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        self._taken = set(taken)
        self._count = 0
        self._places: dict[str, tuple[str, int]] = {}  # values and axes that have a size

    def dtype(self, d: dtypes.DType) -> int:
        """Returns ONNX's number of a dtype.

        Args:
            d: A dtype of this package.
        """
        return helper.np_dtype_to_tensor_dtype(d.numpy)

    def const(self, value: object, dtype: DTypeLike | None = None) -> OnnxValue:
        """Stores an array (int64 for Python integers) and returns its value.

        Args:
            value: A number, sequence or array.
            dtype: dtype of the elements; by default NumPy's for ``value``.

        Raises:
            ExportError: if there are symbolic sizes among them.
        """
        array = (
            np.asarray(value) if dtype is None else np.asarray(value, dtypes.dtype_of(dtype).numpy)
        )
        if array.dtype == object:  # of sizes that vary
            raise ExportError("its ONNX form needs known sizes")
        name = self._fresh("const")
        self.initializers[name] = numpy_helper.from_array(
            np.ascontiguousarray(array).reshape(array.shape), name
        )
        return OnnxValue(name, tensor_type(array.shape, array.dtype))

    def __getattr__(self, op_type: str) -> _Operator:
        if not op_type[:1].isupper():
            raise AttributeError(op_type)
        return _Operator(self, op_type)

    def note_sizes(self, x: OnnxValue) -> None:
        """Remembers the symbolic sizes that a value has.

        Args:
            x: A value whose type is known.
        """
        for axis, d in enumerate(x.type.shape if x.type is not None else ()):
            if isinstance(d, Dim) and d.is_root:
                self._places.setdefault(d.text, (x.name, axis))

    def size(self, size: int | Dim) -> OnnxValue:
        """Returns a size as a 0-d int64 value: a constant, or computed from the shapes it is of.

        Args:
            size: A number, or a symbolic size whose roots are sizes of noted values.
        """
        if not isinstance(size, Dim):
            return self.const(np.asarray(size, np.int64))
        roots = {}
        for root in size.roots:
            name, axis = self._places[root]
            shape = self.add("Shape", [OnnxValue(name)], 1, {})
            at = np.asarray(axis, np.int64)
            roots[root] = _Size(self, self.add("Gather", [shape, at], 1, {"axis": 0}))
        return size.evaluate(roots).value

    def named(self, size: int | Dim) -> int | str:
        """Returns how a size stands in the type of a value.

        Args:
            size: A number, or a symbolic size.
        """
        if not isinstance(size, Dim):
            return size
        return re.sub(r"[A-Za-z_]\w*", lambda root: self._sizes.get(root[0], root[0]), size.text)

    def shape(self, sizes: Sequence[int | Dim]) -> OnnxValue:
        """Returns sizes as a 1-d int64 value.

        Args:
            sizes: Numbers and symbolic sizes.
        """
        if not any(isinstance(d, Dim) for d in sizes):
            return self.const(np.asarray(sizes, np.int64))
        one = np.asarray([1], np.int64)
        parts = [self.add("Reshape", [self.size(d), one], 1, {}) for d in sizes]
        return self.add("Concat", parts, 1, {"axis": 0})

    def full(self, sizes: Sequence[int | Dim], value: object, dtype: DTypeLike) -> OnnxValue:
        """Returns a tensor of one number: a constant where its sizes are known.

        Args:
            sizes: Numbers and symbolic sizes.
            value: The number.
            dtype: Element type.
        """
        if any(isinstance(d, Dim) for d in sizes):
            return self.add("Expand", [self.const(value, dtype), self.shape(sizes)], 1, {})
        return self.const(np.full(cast("Sequence[int]", sizes), value), dtype)

    def positions(self, count: int | Dim) -> OnnxValue:
        """Returns ``0, 1, ..., count - 1`` as int64 values.

        Args:
            count: How many there are.
        """
        return self.add("Range", [self.size(n) for n in (0, count, 1)], 1, {})

    @overload
    def add(
        self, op_type: str, inputs: Sequence[object], outputs: Literal[1], attrs: dict[str, object]
    ) -> OnnxValue: ...
    @overload
    def add(
        self, op_type: str, inputs: Sequence[object], outputs: int, attrs: dict[str, object]
    ) -> OnnxValue | tuple[OnnxValue, ...]: ...
    def add(
        self, op_type: str, inputs: Sequence[object], outputs: int, attrs: dict[str, object]
    ) -> OnnxValue | tuple[OnnxValue, ...]:
        """Adds one operator and returns its output, or a tuple when ``outputs`` is not 1.

        Args:
            op_type: Name of the operator in the newest opset this package writes.
            inputs: Values, arrays and numbers, which become constants, or ``None`` for what is
                omitted.
            outputs: How many outputs it has.
            attrs: Attributes; those that are ``None`` are left out.

        Raises:
            ExportError: if the opset lacks the operator.
        """
        older = older_form(op_type, self.opset)
        if older is not None:
            return older(self, *inputs, **attrs)
        require(op_type, self.opset)
        return self.add_node(op_type, inputs, outputs, attrs)

    def add_node(
        self, op_type: str, inputs: Sequence[object], outputs: int, attrs: dict[str, object]
    ) -> OnnxValue | tuple[OnnxValue, ...]:
        """Adds one node as it is written here.

        Args:
            op_type: Name of the operator, which the opset has to have.
            inputs: Values, arrays and numbers, which become constants, or ``None`` for what is
                omitted.
            outputs: How many outputs it has.
            attrs: Attributes; those that are ``None`` are left out.
        """
        names = [self._operand(x) for x in inputs]
        results = [OnnxValue(self._fresh(op_type.lower())) for _ in range(outputs)]
        self.nodes.append(make_node(op_type, names, [r.name for r in results], attrs))
        return results[0] if outputs == 1 else tuple(results)

    def constant_of(self, x: object) -> np.ndarray | None:
        """Returns the elements of an operand when they are known.

        Args:
            x: A value, an array or number, or ``None``.

        Returns:
            Its elements; ``None`` for what is computed when the model runs.
        """
        if x is None or not isinstance(x, OnnxValue):
            return None if x is None else np.asarray(x)
        found = self.initializers.get(x.name)
        return None if found is None else numpy_helper.to_array(found)

    def inline(self, graph: Graph, args: Sequence[OnnxValue]) -> list[OnnxValue]:
        """Adds the nodes of a closed graph and returns its outputs.

        Args:
            graph: A graph without weights: a region of control flow.
            args: What its parameters stand for.
        """
        values = {
            p.value: OnnxValue(a.name, p.value.type)
            for p, a in zip(graph.params, args, strict=True)
        }
        for v in values.values():
            self.note_sizes(v)
        map_nodes(self, graph, values)
        return [OnnxValue(values[v].name, v.type) for v in graph.outputs]

    def subgraph(
        self, name: str, inputs: Sequence[TensorType], body: Callable[..., Sequence[OnnxValue]]
    ) -> onnx.GraphProto:
        """Builds the value of a graph attribute; it may read every value outside of it.

        Args:
            name: Its name.
            inputs: Types of its inputs.
            body: Adds its nodes; takes the inputs, returns the outputs with their types.
        """
        outer, self.nodes = self.nodes, []
        places = dict(self._places)  # values from outside may be read, and not the other way round
        try:
            given = [OnnxValue(self._fresh(f"{name}_in"), t) for t in inputs]
            results = [
                OnnxValue(self.Identity(r).name, r.type)  # an output must be made inside
                for r in body(*given)
            ]
            ins, outs = ([self._info(v) for v in vs] for vs in (given, results))
            return helper.make_graph(self.nodes, self._fresh(name), ins, outs)
        finally:
            self.nodes, self._places = outer, places

    def _info(self, v: OnnxValue) -> onnx.ValueInfoProto:
        assert v.type is not None
        return _value_info(v.name, v.type, self)

    def like(self, number: float, x: OnnxValue) -> OnnxValue:
        """Returns a number in the element type of ``x``.

        Args:
            number: The number.
            x: The value whose element type it gets.
        """
        if x.type is not None:
            return self.const(number, x.type.dtype)
        return self.CastLike(self.const(np.float32(number)), x)

    def _operand(self, x: object) -> str:
        if x is None:
            return ""
        return x.name if isinstance(x, OnnxValue) else self.const(x).name

    def _fresh(self, prefix: str) -> str:
        while True:
            self._count += 1
            name = f"{prefix}_{self._count}"
            if name not in self._taken:
                return name


def make_node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], attrs: Mapping[str, object]
) -> onnx.NodeProto:
    """Makes one node; an attribute that is ``None`` is left out.

    Args:
        op_type: Name of the operator.
        inputs: Names of the inputs; ``""`` for what is omitted.
        outputs: Names of the outputs.
        attrs: Attributes.
    """
    node = helper.make_node(op_type, inputs, outputs)
    given = {k: v for k, v in sorted(attrs.items()) if v is not None}
    node.attribute.extend(helper.make_attribute(k, v) for k, v in given.items())
    return node


def to_onnx(
    graph: Graph,
    parameters: dict[str, np.ndarray] | None = None,
    opset: int = OPSET,
    external: ExternalData | None = None,
    sizes: Mapping[str, str] | None = None,
) -> onnx.ModelProto:
    """Converts a graph.

    Args:
        graph: The graph; INPUT parameters become model inputs.
        parameters: Elements of the other parameters by label; they become initializers.
        opset: ONNX operator-set version.
        external: Where weights of more than a page go; the model is checked as a file then.
        sizes: The user's name of every symbolic size.

    Returns:
        A checked model.

    Raises:
        ExportError: naming the user's line of an operator that has no mapping.
    """
    O = OnnxBuilder(opset, [p.label for p in graph.params], sizes)
    values: dict[Value, OnnxValue] = {}
    inputs: list[onnx.ValueInfoProto] = []
    for p in graph.params:
        v = OnnxValue(p.label, p.value.type)
        values[p.value] = v
        O.note_sizes(v)
        if p.role is Role.INPUT:
            inputs.append(_value_info(p.label, p.value.type, O))
        else:
            O.initializers[p.label] = _initializer(p.label, (parameters or {})[p.label], external)
    map_nodes(O, graph, values)
    outputs = _outputs(O, graph, values)
    used = set(_names_read(O.nodes))
    weights = [t for name, t in O.initializers.items() if name in used]
    proto = helper.make_graph(O.nodes, graph.name, inputs, outputs, weights)
    imports = [helper.make_opsetid("", opset)]
    ir_version = max(_OLDEST_IR_VERSION, helper.find_min_ir_version_for(imports))
    model = helper.make_model(
        proto, opset_imports=imports, ir_version=ir_version, producer_name="tvmgraph"
    )
    if external is None:
        onnx.checker.check_model(model)
    return model


def _initializer(name: str, array: np.ndarray, external: ExternalData | None) -> onnx.TensorProto:
    if external is not None and array.nbytes > _PAGE:
        return external.reference(name, array)
    return numpy_helper.from_array(array, name)


def _names_read(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    """Yields what nodes and the graphs inside them read."""
    for node in nodes:
        yield from node.input
        for a in node.attribute:
            yield from _names_read(a.g.node)


def map_nodes(O: OnnxBuilder, graph: Graph, values: dict[Value, OnnxValue]) -> None:
    """Adds constants and nodes of a graph whose parameters are in ``values``.

    Args:
        O: The model so far.
        graph: Whose nodes are added.
        values: What stands for every value of the graph; constants and results are added to it.
    """
    for value, array in graph.consts.items():
        values[value] = O.const(array)
    for node in graph.nodes:
        _map_node(O, node, values)


def _map_node(O: OnnxBuilder, node: Node, values: dict[Value, OnnxValue]) -> None:
    column = node.op.onnx
    if isinstance(column, Reason):
        raise ExportError(
            f"this operator has no ONNX form: {column}", op=f"ops.{node.op.name}", at=node.source
        )
    args = [values[v] for v in node.inputs]
    try:
        if isinstance(column, str):
            result = O.add(column, args, len(node.outputs), dict(node.attrs))
        else:
            result = column(O, *args, **node.keywords)
    except (ExportError, GraphError, ShapeError) as e:
        got = ", ".join(str(v.type) for v in node.inputs)
        if not isinstance(e, ExportError):
            e = ExportError(f"its ONNX form needs known sizes ({e.message})")
        raise e.locate(f"ops.{node.op.name}", got, node.source) from None
    results = result if isinstance(result, (tuple, list)) else (result,)
    for v, r in zip(node.outputs, results, strict=True):
        values[v] = OnnxValue(r.name, v.type)
        O.note_sizes(values[v])


def _outputs(
    O: OnnxBuilder, graph: Graph, values: dict[Value, OnnxValue]
) -> list[onnx.ValueInfoProto]:
    """Declares the outputs under names of their own (an input may also be an output)."""
    count = len(graph.outputs) - len(graph.writes)
    infos: list[onnx.ValueInfoProto] = []
    for i, v in enumerate(graph.outputs[:count]):
        name = _free(f"output{i}", {p.label for p in graph.params})
        O.nodes.append(helper.make_node("Identity", [values[v].name], [name]))
        infos.append(_value_info(name, v.type, O))
    return infos


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _value_info(name: str, t: TensorType, O: OnnxBuilder) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, O.dtype(t.dtype), [O.named(d) for d in t.shape])


# ---- older forms of ONNX operators, for opsets below the one the rows are written for ------------

_AXES_AS_INPUT = 18  # until then most reductions had their axes as an attribute
_REDUCTIONS = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd")


def gelu(O: OnnxBuilder, x: OnnxValue, approximate: str = "none") -> OnnxValue:
    """Gelu before opset 20.

    Args:
        O: The model so far.
        x: The operand.
        approximate: ``"none"`` for the error function, ``"tanh"`` for its approximation.
    """
    if approximate == "tanh":
        cube = O.Mul(O.Mul(x, x), x)
        inner = O.Add(x, O.Mul(cube, O.like(0.044715, x)))
        curve = O.Tanh(O.Mul(inner, O.like(math.sqrt(2 / math.pi), x)))
    else:
        curve = O.Erf(O.Mul(x, O.like(math.sqrt(0.5), x)))
    return O.Mul(O.Mul(x, O.like(0.5, x)), O.Add(curve, O.like(1.0, x)))


def mish(O: OnnxBuilder, x: OnnxValue) -> OnnxValue:
    """Mish before opset 18.

    Args:
        O: The model so far.
        x: The operand.
    """
    return O.Mul(x, O.Tanh(O.Softplus(x)))


def reduction(
    op_type: str, O: OnnxBuilder, x: OnnxValue, axes: object = None, **attrs: object
) -> OnnxValue | tuple[OnnxValue, ...]:
    """A reduction with its axes as an attribute.

    Args:
        op_type: Name of the reduction.
        O: The model so far.
        x: The operand.
        axes: A constant of axes; ``None`` for all.
        **attrs: Attributes of the present form; ``noop_with_empty_axes`` is resolved here.

    Raises:
        ExportError: if the axes are computed when the model runs.
    """
    found = O.constant_of(axes)
    if axes is not None and found is None:
        raise ExportError(f"{op_type} with computed axes needs opset {_AXES_AS_INPUT}")
    if found is not None and not found.size and attrs.pop("noop_with_empty_axes", 0):
        return O.Identity(x)
    if found is not None and found.size:
        attrs["axes"] = [int(a) for a in found]
    return O.add_node(op_type, (x,), 1, attrs)


OlderForm = Callable[..., "OnnxValue | tuple[OnnxValue, ...]"]
_OLDER: dict[str, tuple[int, OlderForm]] = {
    "Gelu": (20, gelu),
    "Mish": (18, mish),
    **{name: (_AXES_AS_INPUT, functools.partial(reduction, name)) for name in _REDUCTIONS},
}


def older_form(op_type: str, opset: int) -> OlderForm | None:
    """Returns how to write an operator in an opset that lacks its present form, or ``None``.

    Args:
        op_type: Name of the operator.
        opset: Opset of the model.
    """
    since, form = _OLDER.get(op_type, (0, None))
    return form if form is not None and opset < since else None


def require(op_type: str, opset: int) -> None:
    """Checks that an opset has an operator.

    Args:
        op_type: Name of the operator.
        opset: Opset of the model.

    Raises:
        ExportError: naming the opset that introduced it.
    """
    if onnx.defs.has(op_type, max_inclusive_version=opset):
        return
    since = onnx.defs.get_schema(op_type).since_version if onnx.defs.has(op_type) else None
    raise ExportError(
        f"ONNX opset {opset} has no {op_type}",
        fix=f"export with opset={since} or newer" if since else "use other operators",
    )
