"""Drawing: a graph as SVG, laid out by ELK inside an embedded JavaScript engine."""

from __future__ import annotations

import html
import importlib.resources
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tvmgraph.core.notebook import style
from tvmgraph.errors import GraphError, reject
from tvmgraph.graph.ir import Graph
from tvmgraph.view.model import Kernel, Model, model_of

if TYPE_CHECKING:
    from py_mini_racer import MiniRacer

_VISIBLE = 400  # nodes drawn before boxes stay closed
_TIMEOUT = 60.0  # seconds for one layout
_lock = threading.Lock()


def resource(name: str) -> str:
    """Returns a text file of this room.

    Args:
        name: Name of the file.
    """
    return (importlib.resources.files("tvmgraph") / "view" / name).read_text(encoding="utf-8")


class Drawing:
    """A picture that notebooks show.

    Attributes:
        svgs: The pictures, side by side, as ``(title, svg)``.
    """

    def __init__(self, svgs: Sequence[tuple[str, str]]) -> None:
        self.svgs = tuple(svgs)

    @property
    def svg(self) -> str:
        """The first picture as SVG."""
        return self.svgs[0][1]

    def _repr_svg_(self) -> str | None:
        return self.svg if len(self.svgs) == 1 else None

    def _repr_html_(self) -> str:
        parts = [
            f"<figure style='margin:0'><figcaption>{html.escape(title)}</figcaption>{svg}</figure>"
            for title, svg in self.svgs
        ]
        return (
            f"<div class='tvmgraph-drawing'><style>{style('view/drawing.css')}</style>"
            f"<div style='display:flex;gap:2em'>{''.join(parts)}</div></div>"
        )

    def save(self, path: str | Path) -> Path:
        """Writes the picture: ``.svg`` for a single one, ``.html`` for any.

        Args:
            path: The file; missing folders are made.

        Raises:
            GraphError: for another suffix, or two pictures in one SVG file.
        """
        path = Path(path)
        if path.suffix not in (".svg", ".html"):
            reject(GraphError, "Drawing.save",
                   f"a picture cannot be written as {path.suffix or path.name!r}",
                   fix="use .svg or .html")  # fmt: skip
        if path.suffix == ".svg" and len(self.svgs) > 1:
            reject(GraphError, "Drawing.save", "two pictures do not fit one SVG file",
                   fix="save them as .html")  # fmt: skip
        text = self.svg if path.suffix == ".svg" else (
            "<!doctype html><html lang='en' style='color-scheme:light dark'>"
            f"<meta charset='utf-8'>{self._repr_html_()}</html>"
        )  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


def draw(graph: Graph, kernels: Sequence[Kernel] = ()) -> Drawing:
    """Draws a graph, nested by Cell scope, or by kernel if kernels are given.

    Args:
        graph: The graph.
        kernels: Which nodes every kernel computes.

    Raises:
        GraphError: if the JavaScript engine that runs the layout is not installed.
    """
    return Drawing([(graph.name, _svg(model_of(graph, kernels)))])


def draw_pair(before: Graph, after: Graph, kernels: Sequence[Kernel]) -> Drawing:
    """Draws a graph as it was captured beside the kernels that it became.

    Args:
        before: The captured graph.
        after: The compiled graph.
        kernels: Its kernels.
    """
    left = f"captured: {len(before.nodes)} operators"
    right = f"compiled: {len(after.nodes)} operators in {len(kernels)} kernels"
    return Drawing([
        (left, _svg(model_of(before, title=left))),
        (right, _svg(model_of(after, kernels, title=right))),
    ])  # fmt: skip


def _svg(model: Model) -> str:
    try:
        from py_mini_racer import MiniRacer
    except ImportError as e:
        raise GraphError(
            "drawing needs a JavaScript engine for the layout", op="graph.draw",
            fix="pip install 'tvmgraph[draw]', or use `tvmgraph show`, which draws in the browser",
        ) from e  # fmt: skip
    with _lock:
        engine = MiniRacer()
        try:
            engine.eval(f"{resource('draw.js')}{resource('elk.bundled.js')};0")
            engine.eval(f"{resource('view.js').replace('const View', 'var View')};0")
            engine.eval(f"draw({json.dumps(model)}, {_VISIBLE}); 0")
            return _wait(engine)
        finally:
            engine.close()  # its threads would keep the process alive


def _wait(engine: MiniRacer) -> str:
    end = time.monotonic() + _TIMEOUT
    while time.monotonic() < end:
        result = str(engine.eval("result"))
        if result.startswith("ok"):
            return result[2:]
        if result:
            raise GraphError(f"the layout failed: {result[2:]}", op="graph.draw")
        time.sleep(0.005)
    raise GraphError("the layout took too long", op="graph.draw", fix="use `tvmgraph show`")
