"""Graph text: printing, the canonical form behind the structural hash, and parsing back.

::

    graph mlp(%0: float32[2,3] input "x", %1: float32[3,4] parameter "w") {
      %2: float32[] = const([2.0])
      %3: float32[2,4] = matmul(%0, %1)  # demo.py:4 (net.dense1)
      %4: float32[2,4] = mul(%3, %2)  # demo.py:5
      return %4
    }
"""

from __future__ import annotations

import ast
import base64
import hashlib
import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.op import get_op
from tvmgraph.core.types import Dim, TensorType, tensor_type
from tvmgraph.dtypes import DType
from tvmgraph.errors import GraphError, TvmgraphError
from tvmgraph.graph.ir import Graph, Node, Param, Role, Value

_INLINE_ELEMENTS = 8  # constants up to this size are written out


def format_graph(graph: Graph, *, full: bool = False, indent: str = "") -> str:
    """Formats a graph; with ``full`` the text can be parsed back.

    Args:
        graph: The graph.
        full: Whether large constants are written out, so that the text can be parsed back, instead
            of as a digest.
        indent: What every line starts with.
    """
    params = ", ".join(
        f"%{p.value.name}: {p.value.type} {p.role.value} {quote(p.label)}" for p in graph.params
    )
    lines = [f"{indent}graph {graph.name}({params}) {{"]
    for v, array in graph.consts.items():
        lines.append(f"{indent}  %{v.name}: {v.type} = {format_const(array, full=full)}")
    lines += [format_node(n, full=full, indent=indent + "  ") for n in graph.nodes]
    outputs = ", ".join(f"%{v.name}" for v in graph.outputs)
    writes = f" writes {', '.join(map(quote, graph.writes))}" if graph.writes else ""
    lines.append(f"{indent}  return {outputs}{writes}")
    lines.append(indent + "}")
    return "\n".join(lines)


def format_node(node: Node, *, full: bool = False, indent: str = "") -> str:
    """Formats one node on one line (plus its regions).

    Args:
        node: The node.
        full: Whether large constants are written out, so that the text can be parsed back, instead
            of as a digest.
        indent: What every line starts with.
    """
    outputs = ", ".join(f"%{v.name}: {v.type}" for v in node.outputs)
    arguments = [f"%{v.name}" for v in node.inputs]
    arguments += [f"{k}={format_attr(v)}" for k, v in node.attrs.items()]
    scope = f" ({node.scope})" if node.scope else ""
    comment = f"  # {node.source}{scope}" if node.source or scope else ""
    line = f"{indent}{outputs} = {node.op.name}({', '.join(arguments)}){comment}"
    regions = [format_graph(r, full=full, indent=indent + "  ") for r in node.regions]
    return "\n".join([line, *regions])


def quote(text: str) -> str:
    """Quotes a label.

    Args:
        text: The label, which may hold any character.
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def format_attr(value: Any) -> str:
    """Formats an attribute so that :func:`parse_attr` reads the same value.

    Args:
        value: A number, string, dtype, ``Dim``, or a tuple of these.
    """
    if isinstance(value, DType):
        return value.name
    if isinstance(value, Dim):
        return f"Dim({value.name!r})"
    if isinstance(value, tuple):
        parts = cast("tuple[Any, ...]", value)
        items = ", ".join(map(format_attr, parts))
        return f"({items},)" if len(parts) == 1 else f"({items})"
    if isinstance(value, np.generic):
        return format_attr(value.item())
    return repr(value)


def format_const(array: np.ndarray, *, full: bool) -> str:
    """Formats a constant: its elements when few, else base64 (``full``) or a digest.

    Args:
        array: The constant.
        full: Whether large constants are written out, so that the text can be parsed back, instead
            of as a digest.
    """
    if array.size <= _INLINE_ELEMENTS:
        items = ", ".join(repr(x) for x in array.ravel().tolist())
        return f"const([{items}])"
    raw = np.ascontiguousarray(array).tobytes()
    if full:
        return f'const(base64="{base64.b64encode(raw).decode()}")'
    return f'const(sha256="{hashlib.sha256(raw).hexdigest()[:12]}")'


def canonical_text(graph: Graph) -> str:
    """Returns a text with renumbered values and without names, sources and scopes.

    Args:
        graph: The graph; equal texts mean equal code.
    """
    numbers: dict[Value, int] = {}

    def number(v: Value) -> str:
        return f"%{numbers.setdefault(v, len(numbers))}"

    lines = [f"{number(p.value)}:{p.value.type}:{p.role.value}" for p in graph.params]
    for v, array in graph.consts.items():
        digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        lines.append(f"{number(v)}:{v.type}={digest}")
    for n in graph.nodes:
        inputs = ",".join(map(number, n.inputs))
        attrs = ",".join(f"{k}={format_attr(v)}" for k, v in n.attrs.items())
        outputs = ",".join(f"{number(v)}:{v.type}" for v in n.outputs)
        regions = "".join("{" + canonical_text(r) + "}" for r in n.regions)
        lines.append(f"{outputs}={n.op.name}({inputs};{attrs}){regions}")
    places = {p.label: number(p.value) for p in graph.params if p.role is not Role.INPUT}
    written = ",".join(places.get(label, "?") for label in graph.writes)
    lines.append("return " + ",".join(map(number, graph.outputs)) + f" writes {written}")
    return "\n".join(lines)


# ---- parsing ------------------------------------------------------------------------------------

_TYPE = r"(\w+)\[([^\]]*)\]"
_PARAM = re.compile(rf'%(\w+): {_TYPE} (input|parameter|state) "((?:[^"\\]|\\.)*)"')
_OUTPUT = re.compile(rf"%(\w+): {_TYPE}")
_HEADER = re.compile(r"graph (\w+)\((.*)\) \{$")
_NODE = re.compile(r"(?P<out>%.*?) = (?P<op>\w+)\((?P<args>.*?)\)(?:  # (?P<comment>.*))?$")
_COMMENT = re.compile(r"(?P<source>[^ ]*)(?: \((?P<scope>.*)\))?$")


#: What Python's parser, NumPy and the reading of attributes raise on text that is no graph.
_UNREADABLE = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RecursionError,
    SyntaxError, TypeError, ValueError,
)  # fmt: skip


def parse(text: str) -> Graph:
    """Parses the text of one graph (as written by ``graph.text(full=True)``).

    Args:
        text: One graph.

    Raises:
        GraphError: naming the line that cannot be read.
    """
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    parser = _Parser(lines)
    try:
        return parser.graph()
    except TvmgraphError:
        raise
    except _UNREADABLE as e:
        raise parser.fail(f"{type(e).__name__}: {e}") from None


class _Parser:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0
        self.values: dict[str, Value] = {}

    def fail(self, why: str) -> GraphError:
        return GraphError(f"line {self.at + 1}: {why}", op="graph.parse", got=self.line()[:100])

    def line(self) -> str:
        return self.lines[self.at] if self.at < len(self.lines) else ""

    def define(self, name: str, dtype: str, dims: str) -> Value:
        v = Value(name, _parse_type(dtype, dims))
        self.values[name] = v
        return v

    def use(self, name: str) -> Value:
        if name not in self.values:
            raise self.fail(f"%{name} is not defined")
        return self.values[name]

    def graph(self) -> Graph:
        header = _HEADER.match(self.line())
        if header is None:
            raise self.fail("expected 'graph name(params) {'")
        params = tuple(
            Param(self.define(n, t, dims), Role(role), _unquote(label))
            for n, t, dims, role, label in _PARAM.findall(header[2])
        )
        self.at += 1
        consts: dict[Value, np.ndarray] = {}
        nodes: list[Node] = []
        while not self.line().startswith("return"):
            match = _NODE.match(self.line())
            if match is None:
                raise self.fail("expected a node, a constant or 'return'")
            if match["op"] == "const":
                self.constant(match, consts)
            else:
                nodes.append(self.node(match))
        outputs, writes = self.result()
        return Graph(header[1], params, consts, tuple(nodes), outputs, writes)

    def constant(self, match: re.Match[str], consts: dict[Value, np.ndarray]) -> None:
        out = _OUTPUT.match(match["out"])
        if out is None:
            raise self.fail("expected '%name: type'")
        v = self.define(*out.groups())
        consts[v] = _parse_const(match["args"], v.type, self.fail)
        self.at += 1

    def node(self, match: re.Match[str]) -> Node:
        op = get_op(match["op"])
        call = ast.parse(f"f({match['args'].replace('%', '_v')})", mode="eval").body
        assert isinstance(call, ast.Call)
        inputs = tuple(self.use(a.id[2:]) for a in call.args if isinstance(a, ast.Name))
        attrs = {str(k.arg): parse_attr(k.value) for k in call.keywords}
        outputs = tuple(self.define(*m) for m in _OUTPUT.findall(match["out"]))
        comment = _COMMENT.match(match["comment"] or "")
        source, scope = (comment["source"], comment["scope"] or "") if comment else ("", "")
        self.at += 1
        regions: list[Graph] = []
        outer = dict(self.values)
        while self.line().startswith("graph "):
            regions.append(self.graph())
        self.values = outer  # a region has names of its own
        return Node(op, inputs, attrs, outputs, source, scope, tuple(regions))

    def result(self) -> tuple[tuple[Value, ...], tuple[str, ...]]:
        body, _, writes = self.line()[len("return") :].partition(" writes ")
        outputs = tuple(self.use(name) for name in re.findall(r"%(\w+)", body))
        labels = tuple(_unquote(m) for m in re.findall(r'"((?:[^"\\]|\\.)*)"', writes))
        self.at += 2  # the closing brace
        return outputs, labels


def _unquote(text: str) -> str:
    return text.replace('\\"', '"').replace("\\\\", "\\")


def _parse_type(dtype: str, dims: str) -> TensorType:
    shape = [int(d) if d.lstrip("-").isdigit() else Dim.parse(d) for d in dims.split(",") if d]
    return tensor_type(shape, dtype)


def _parse_const(text: str, type: TensorType, fail: Callable[[str], GraphError]) -> np.ndarray:
    if text.startswith("base64="):
        raw = base64.b64decode(text[len('base64="') : -1])
        return np.frombuffer(raw, type.dtype.numpy).reshape(type.static_shape).copy()
    if text.startswith("sha256="):
        raise fail("the constant was abbreviated; print the graph with text(full=True)")
    items = parse_attr(ast.parse(text, mode="eval").body)
    return np.array(items, dtype=type.dtype.numpy).reshape(type.static_shape)


_NAMED_NUMBERS = {"inf": float("inf"), "nan": float("nan")}


def parse_attr(tree: ast.expr) -> Any:
    """Evaluates an attribute: literals, tuples, dtype names, ``inf``, ``nan`` and ``Dim``.

    Args:
        tree: The attribute's expression.
    """
    if isinstance(tree, ast.Name):
        if tree.id in _NAMED_NUMBERS:
            return _NAMED_NUMBERS[tree.id]
        return dtypes.dtype_of(tree.id)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return -parse_attr(tree.operand)
    if isinstance(tree, ast.Tuple):
        return tuple(parse_attr(e) for e in tree.elts)
    if isinstance(tree, ast.List):
        return [parse_attr(e) for e in tree.elts]
    if isinstance(tree, ast.Call):
        return Dim.parse(ast.literal_eval(tree.args[0]))
    return ast.literal_eval(tree)
