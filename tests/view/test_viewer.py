"""The viewer in a real browser: opening boxes, searching, selecting, thousands of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tvmgraph as ms
from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.cli import app
from tvmgraph.view import model_of, viewer_page

PROGRAM = """
import numpy as np
from tvmgraph import Tensor, nn, ops

class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(8, 8)

    def construct(self, x):
        return ops.softmax(self.dense(x) * 2.0, -1)

net = nn.SequentialCell(Block(), Block())
example_inputs = [Tensor(np.ones((4, 8), np.float32))]
"""


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda e: problems.append(str(e)))
    page.on("request", lambda r: None if r.url.startswith("file:") else problems.append(r.url))
    yield page
    page.close()
    assert not problems


def load(page: Any, path: Path) -> None:
    page.goto(path.absolute().as_uri())
    page.wait_for_selector("body[data-ready]:not([data-ready=''])", timeout=60_000)


def settled(page: Any, act: Any) -> None:
    before = page.evaluate("document.body.dataset.ready")
    act()
    page.wait_for_function(
        "b => document.body.dataset.ready !== '' && document.body.dataset.ready !== b",
        arg=before, timeout=60_000,
    )  # fmt: skip


def test_show_writes_a_viewer(page: Any, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    output = tmp_path / "net.html"
    result = CliRunner().invoke(
        app, ["show", f"{tmp_path / 'program.py'}:net", "--output", str(output)]
    )
    assert result.exit_code == 0, result.output
    load(page, output)
    assert page.locator("#view option").all_inner_texts() == ["Cell scope", "kernel"]
    assert page.locator("[data-id='/SequentialCell/0/dense']").count() == 1

    page.locator(".n:has-text('matmul')").first.click()
    details = page.locator("#details").inner_text()
    for fact in ("float32[4,8]", "SequentialCell.0.dense"):
        assert fact in details

    settled(page, lambda: page.select_option("#view", label="kernel"))
    assert page.locator(".b.kernel").count() >= 2
    page.locator(".n:has-text('softmax')").first.click()
    details = page.locator("#details").inner_text()
    assert "kernel time" in details
    assert "program.py:11" in details
    page.locator("#details summary").first.click()
    chosen = page.locator("#details details").first.inner_text()
    assert "softmax -> reduce_rows: " in chosen
    assert "in_place: its results do not overwrite" in chosen
    assert (
        "return ops.softmax(self.dense(x) * 2.0, -1)" in page.locator("#details mark").inner_text()
    )


def test_boxes_open_and_close(page: Any, tmp_path: Path) -> None:
    net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU())
    graph = ms.record(net, Tensor(np.ones((2, 4), np.float32)))
    path = tmp_path / "net.html"
    path.write_text(viewer_page([model_of(graph)], "a <net>"))
    load(page, path)
    assert page.title() == "a <net>"
    opened = page.locator(".n").count()
    title = page.locator("[data-id='/SequentialCell/0'] text")
    settled(page, title.click)
    assert page.locator(".n").count() < opened
    assert page.locator("[data-id='/SequentialCell/0'].closed").count() == 1
    settled(page, page.locator("[data-id='/SequentialCell/0'] text").first.click)
    assert page.locator(".n").count() == opened
    settled(page, page.locator("#collapse").click)
    assert page.locator("[data-id='/SequentialCell'].closed").count() == 1


def test_thousands_of_nodes_can_be_searched(page: Any, tmp_path: Path) -> None:
    class Step(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            for _ in range(20):
                x = ops.sin(x) + 1.0
            return ops.cosh(x) if x.shape[0] == 7 else x

    net = nn.SequentialCell(*[Step() for _ in range(125)])
    graph = ms.record(net, Tensor(np.ones(3, np.float32)))
    assert len(graph.nodes) == 5000
    path = tmp_path / "large.html"
    path.write_text(viewer_page([model_of(graph)], "large"))
    load(page, path)
    assert page.locator(".n, .b").count() < 400
    took = page.locator("#state").inner_text()
    assert took.startswith("5002 nodes")

    page.fill("#search", "sin sequentialcell.57")
    assert page.locator("#found p").inner_text() == "20 found"
    assert page.locator("[data-id='/SequentialCell/57'].closed").count() == 1
    settled(page, page.locator("#found button").nth(3).click)
    assert page.locator(".sel").count() == 1
    assert page.locator("[data-id='/SequentialCell/57'].closed").count() == 0
    assert "SequentialCell.57" in page.locator("#details").inner_text()
    settled(page, page.locator("#expand").click)
    assert 200 < page.locator(".n, .b").count() < 1200
    page.locator("#fit").click()
    width = page.evaluate("document.querySelector('#canvas svg').getBoundingClientRect().width")
    assert width <= page.evaluate("document.querySelector('#canvas').clientWidth")
    page.mouse.move(300, 400)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_function(
        "w => document.querySelector('#canvas svg').getBoundingClientRect().width > w", arg=width
    )
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"


def test_branches_and_loops_are_boxes(page: Any, tmp_path: Path) -> None:
    @jit
    def control(x: Tensor) -> Tensor:
        y = ops.tanh(x) * 2 if x.sum() > 0 else ops.exp(x)
        while y.mean() > 0.1:
            y = y * 0.5
        return y

    control(Tensor(np.ones(3, np.float32)))
    graph, kernels = control.fused_graph()
    path = tmp_path / "control.html"
    path.write_text(viewer_page([model_of(graph), model_of(graph, kernels)], "control"))
    load(page, path)
    boxes = page.locator(".b.control > text").all_text_contents()
    assert [b for b in boxes if "test_viewer.py" not in b] == ["then", "orelse", "cond", "body"]
    assert page.locator(".n.control").count() == 2
    settled(page, lambda: page.select_option("#view", index=1))
    assert page.locator(".b.kernel").count() == len({k.nodes for k in kernels})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py:f"], "there is no file"),
        (["nothing"], "is not file.py:"),
        (["{file}:nobody"], "has no 'nobody'"),
        (["{file}:net", "--input", "float32(3)"], "write it like float32[8,3]"),
    ],
)
def test_wrong_targets(arguments: list[str], message: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    result = CliRunner().invoke(app, ["show", *(a.format(file=file) for a in arguments)])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
