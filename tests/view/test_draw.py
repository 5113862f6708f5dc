"""graph.draw(): SVG that is well-formed and shows what the graph holds."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.errors import GraphError

SVG = "{http://www.w3.org/2000/svg}"


def network() -> nn.SequentialCell:
    inner = nn.SequentialCell(nn.Dense(8, 8), nn.Tanh())
    return nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), inner)


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def shapes(svg: str, kind: str) -> dict[str, ET.Element]:
    root = ET.fromstring(svg)
    groups = (g for g in root.iter(f"{SVG}g") if kind in g.get("class", "").split())
    return {g.get("data-id", ""): g.find(f"{SVG}rect") for g in groups}  # pyright: ignore


def inside(inner: ET.Element, outer: ET.Element) -> bool:
    def edges(r: ET.Element) -> tuple[float, ...]:
        x, y, w, h = (float(r.get(k, "nan")) for k in ("x", "y", "width", "height"))
        return x, y, x + w, y + h

    a, b = edges(inner), edges(outer)
    return a[0] >= b[0] and a[1] >= b[1] and a[2] <= b[2] and a[3] <= b[3]


def test_boxes_nest_by_scope_and_edges_carry_shapes() -> None:
    graph = ms.record(network(), ones(2, 4))
    svg = graph.draw().svg
    boxes, nodes = shapes(svg, "b"), shapes(svg, "n")
    scopes = {n.scope for n in graph.nodes}
    assert {"/" + s.replace(".", "/") for s in scopes} <= set(boxes)
    for i, node in enumerate(graph.nodes):
        assert inside(nodes[f"n{i}"], boxes["/" + node.scope.replace(".", "/")])
    for name, box in boxes.items():
        parent = boxes.get(name.rpartition("/")[0])
        assert parent is None or inside(box, parent)
    texts = [t.text for t in ET.fromstring(svg).iter(f"{SVG}text")]
    assert texts.count("float32[2,8]") >= 4
    assert {"matmul", "relu", "tanh", "2.0.weight"} <= set(texts)
    assert len([p for p in ET.fromstring(svg).iter(f"{SVG}g") if p.get("class") == "e"]) >= 10


def test_nodes_do_not_overlap() -> None:
    rects = list(shapes(ms.record(network(), ones(2, 4)).draw().svg, "n").values())
    spans = [[float(r.get(k, "nan")) for k in ("x", "y", "width", "height")] for r in rects]
    for i, (x, y, w, h) in enumerate(spans):
        for a, b, c, d in spans[:i]:
            assert x >= a + c or a >= x + w or y >= b + d or b >= y + h


def test_before_and_after_fusion_side_by_side(tmp_path: Path) -> None:
    f = jit(lambda x: ops.softmax(ops.matmul(ops.exp(x) * 2, x) * 3 + 1, -1))
    drawing = f.draw(ones(48, 48))
    (before, captured), (after, compiled) = drawing.svgs
    assert before == "captured: 6 operators"
    assert after == f"compiled: 6 operators in {len(f.kernels())} kernels"
    boxes, nodes = shapes(compiled, "kernel"), shapes(compiled, "n")
    assert len(boxes) == len(f.kernels())
    operators = [n for n in nodes if n.startswith("n")]
    assert all(any(inside(nodes[n], b) for b in boxes.values()) for n in operators)
    assert not shapes(captured, "kernel")
    html = drawing._repr_html_()
    assert html.count("<svg") == 2
    assert drawing.save(tmp_path / "pair.html").read_text().count("<svg") == 2
    with pytest.raises(GraphError, match=r"\.html"):
        drawing.save(tmp_path / "pair.svg")


def test_saving(tmp_path: Path) -> None:
    drawing = ms.record(lambda x: x * 2, ones(2)).draw()
    assert drawing.save(tmp_path / "new" / "g.svg").read_text().startswith("<svg")
    with pytest.raises(GraphError, match=r"use \.svg or \.html"):
        drawing.save(tmp_path / "g.png")


def test_large_graphs_stay_closed() -> None:
    def deep(x: Tensor) -> Tensor:
        for _ in range(1200):
            x = ops.tanh(x)
        return x

    svg = ms.record(deep, ones(2)).draw().svg
    assert len(shapes(svg, "n")) + len(shapes(svg, "b")) < 450
    assert len(shapes(svg, "closed")) >= 9


def test_markup_in_names_is_escaped() -> None:
    w = ms.Parameter(np.ones(2, np.float32), name='<b>&"w')
    svg = ms.record(lambda x: x * w, ones(2)).draw().svg
    assert "<b>" not in svg
    assert '<b>&"w' in [t.text for t in ET.fromstring(svg).iter(f"{SVG}text")]


def test_without_the_engine_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "py_mini_racer", None)
    with pytest.raises(GraphError, match=r"tvmgraph\[draw\]"):
        ms.record(lambda x: x * 2, ones(2)).draw()
