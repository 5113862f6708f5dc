"""What notebooks show: tables that follow light and dark, nothing computed, no network."""

from __future__ import annotations

import functools
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, ParameterTuple, Tensor, nn
from tvmgraph.core.notebook import parameters_html, tensor_html
from tvmgraph.debug import progress
from tvmgraph.errors import ArgumentError, NotFoundError

ROOT = Path(__file__).parent.parent.parent


def small_net() -> nn.Cell:
    return nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Dense(8, 3))


def trained_history() -> ms.train.History:
    history = ms.train.History()
    history.epoch = {"epoch": [1, 2, 3]}
    history.history = {"net_output": [1.0, 0.5, 0.25], "accuracy": [0.2, 0.6, 0.9]}
    return history


def confusion() -> Any:
    matrix = nn.ConfusionMatrix(3)
    matrix.update(Tensor([0, 1, 2, 2]), Tensor([0, 1, 1, 2]))
    return matrix


#: What the pages of the objects say.
WORDS = {
    "tensor": ("int64[2,3]", "48 B", ">5<"),
    "scalar": ("bfloat16[]", ">1.5<"),
    "complex": ("complex128[1]", "1+2j"),
    "empty": ("float64[0,3]", "no elements"),
    "placeholder": ("a placeholder",),
    "parameter": ("float32[2,1,3,3]", "0.weight", "trained"),
    "parameters": ("3.bias", "float32[3,8]"),
    "cell": ("Conv2d", "Dense", "45 parameters", "180 B"),
    "layer": ("weight", "float32[3,2]"),
    "dataset": ("NumpySlicesDataset", "BatchDataset", "a, b"),
    "optimizer": ("0.5", "0.1", "3 parameters"),
    "history": ("epoch", "accuracy", "0.9"),
    "confusion": ("predicted 2", "true 1"),
    "explanation": ("first call", "float32[3,5]", "<details>"),
    "profile": ("kernel", "share"),
    "drawing": ("<svg", "mul"),
}


@functools.cache
def shown_objects() -> dict[str, Any]:
    net = small_net()
    double = ms.jit(lambda x: x * 2.0)
    double(Tensor(np.ones((3, 5), np.float32)))
    data = ms.dataset.NumpySlicesDataset((np.ones((4, 2)), np.ones(4)), ["a", "b"]).batch(2)
    groups = [{"params": net.trainable_params()[:1], "lr": 0.5},
              {"params": net.trainable_params()[1:]}]  # fmt: skip
    return {
        "tensor": Tensor(np.arange(6).reshape(2, 3)),
        "scalar": Tensor(1.5, ms.bfloat16),
        "complex": Tensor(np.array([1 + 2j])),
        "empty": Tensor(np.ones((0, 3))),
        "placeholder": Tensor(shape=[None, 3], dtype=ms.float32),
        "parameter": net.trainable_params()[0],
        "parameters": ParameterTuple(net.trainable_params()),
        "cell": net,
        "layer": nn.Dense(2, 3),
        "dataset": data,
        "optimizer": nn.Momentum(groups, 0.1, 0.9),
        "history": trained_history(),
        "confusion": confusion(),
        "explanation": double.explain(),
        "profile": double.profile(Tensor(np.ones((3, 5), np.float32))),
        "drawing": double.graph().draw(),
    }


@pytest.mark.parametrize("name", WORDS)
def test_objects_show_themselves(name: str) -> None:
    html = shown_objects()[name]._repr_html_()
    for word in WORDS[name]:
        assert word in html
    for tag in ("div", "table", "style", "td", "span"):
        assert html.count(f"<{tag}>") + html.count(f"<{tag} ") >= html.count(f"</{tag}>")
    assert "prefers-color-scheme:dark" in html
    assert "<script" not in html
    assert not re.findall(r"(?:src|href)=|https?://(?!www\.w3\.org/)|@import|url\((?!#)", html)


def test_text_is_escaped() -> None:
    p = Parameter(Tensor([1.0]), name="<script>alert(1)</script>")
    for html in (p._repr_html_(), parameters_html([p], "list")):
        assert "<script" not in html
        assert "&lt;script&gt;" in html


def test_a_large_tensor_is_not_gone_through() -> None:
    """Only what is shown is looked at: the rest of the elements may stay on the disk."""
    array = np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (4, 1 << 20, 1 << 10), (0,) * 3)
    tensor = Tensor([1.0])
    tensor.aval, tensor.array = ms.Tensor(shape=array.shape, dtype=ms.float32).aval, array
    html = tensor_html(tensor)
    assert "16.00 GiB" in html
    assert html.count("<td") == 9 * 9


def test_lists_of_parameters_are_tables_in_notebooks() -> None:
    """By the notebook's own formatter, which shows all other lists as before."""
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "import tvmgraph as ms\n"
        "net = ms.nn.Dense(2, 3)\n"
        "format = shell.display_formatter.format\n"
        "assert '<table>' in format(net.trainable_params())[0]['text/html']\n"
        "assert '<table>' in format(tuple(net.get_parameters()))[0]['text/html']\n"
        "for other in ([], (), [1, 2], (net,)):\n"
        "    assert 'text/html' not in format(other)[0], other\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)


def test_an_explanation_is_a_text() -> None:
    double = ms.jit(lambda x: x * 2.0)
    double(Tensor([1.0]))
    text = double.explain()
    assert isinstance(text, str)
    again = pickle.loads(pickle.dumps(text))
    assert (again, again.history) == (text, text.history)


# ---- pictures by matplotlib ---------------------------------------------------------------------


def test_plots() -> None:
    pytest.importorskip("matplotlib").use("agg")
    ax = trained_history().plot()
    assert [line.get_label() for line in ax.lines] == ["net_output", "accuracy"]
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), [0.2, 0.6, 0.9])
    assert trained_history().plot("accuracy", ax=ax) is ax
    with pytest.raises(ArgumentError, match="no value is called 'speed'"):
        trained_history().plot("speed")
    ax = confusion().plot(labels=["a", "b", "c"])
    assert [t.get_text() for t in ax.texts] == ["1", "0", "0", "0", "1", "1", "0", "0", "1"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "b", "c"]
    with pytest.raises(ArgumentError, match="2 labels for 3 classes"):
        confusion().plot(labels=["a", "b"])


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(NotFoundError, match=r"tvmgraph\[plot\]"):
        trained_history().plot()


# ---- progress of long compiles ------------------------------------------------------------------

LONG = """
import sys, time
import numpy as np, tvmgraph as ms
from tvmgraph.debug import progress
progress._AFTER, progress._EVERY, progress._ADVICE_AFTER = 0.05, 0.02, 0.0
from tvmgraph import Tensor, ops
@ms.jit
def slow(x):
    return ops.tanh(x) * 2.0
slow(Tensor(np.ones((8, 8), np.float32)))
print("done", flush=True)
"""


def _on_a_terminal(code: str) -> str:
    """Runs Python with a terminal as its output and returns what it showed."""
    import pty

    shown = bytearray()
    pid, fd = pty.fork()
    if pid == 0:
        everything = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "200",
                      "TVMGRAPH_CACHE_MB": "0"}  # fmt: skip
        os.execve(sys.executable, [sys.executable, "-c", code], everything)
    with suppress(OSError):  # which it is when the other side closes
        while data := os.read(fd, 4096):
            shown.extend(data)
    os.close(fd)
    os.waitpid(pid, 0)
    return shown.decode(errors="replace")


@pytest.mark.slow
def test_progress_on_a_terminal() -> None:
    text = _on_a_terminal(LONG)
    assert "compiling slow" in text
    assert re.search(r"(codegen|schedule|fuse|kernel|start worker)", text)
    assert 'jit_level="O1" compiles in less time' in text
    assert text.rpartition("compiling")[2].count("\x1b[2K") >= 1  # the line is gone again
    assert text.rstrip().endswith("done")


def test_progress_is_off_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not progress.looked_at()  # the standard error of tests is no terminal
    monkeypatch.setattr(progress, "_display", lambda: nullcontext)
    assert progress.looked_at()
    monkeypatch.setenv(progress.VARIABLE, "0")
    assert not progress.looked_at()
    monkeypatch.delenv(progress.VARIABLE)
    ms.set_context(compile_progress=False)
    try:
        assert not progress.looked_at()
    finally:
        ms.set_context(compile_progress=True)


def test_an_interrupted_compile_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line goes, and the next compile shows its own."""
    lines: list[str] = []
    states: list[str] = []

    class Display:
        def __enter__(self) -> Any:
            states.append("shown")
            return lines.append

        def __exit__(self, *_: object) -> None:
            states.append("gone")

    monkeypatch.setattr(progress, "_AFTER", 0.0)
    monkeypatch.setattr(progress, "_EVERY", 0.005)
    monkeypatch.setattr(progress, "_display", lambda: Display)
    from tvmgraph.debug import announce

    for name in ("first", "second"):
        with pytest.raises(KeyboardInterrupt), progress.watched(name, 1200, ["advice"]):
            announce.tell("begins", "codegen")
            while not any(name in line and "codegen" in line for line in lines):
                pass
            raise KeyboardInterrupt
    assert states == ["shown", "gone"] * 2
    assert lines[0].startswith("compiling first (1,200 operators): ")


# ---- in a browser -------------------------------------------------------------------------------

_COLOUR = """(selector) => {
    const all = getComputedStyle(document.querySelector(selector)).color.match(/[\\d.]+/g);
    return all.slice(0, 3).reduce((a, b) => a + Number(b), 0) / 3;
}"""


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(offline=True)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("where", ["page", "JupyterLab", "VS Code"])
def test_colours_follow_the_notebook(where: str, dark: bool, page: Any, tmp_path: Path) -> None:
    """Text is light on dark and dark on light; the browser's preference is that of no notebook."""
    body = "".join(
        value._repr_html_() for name, value in shown_objects().items() if name in _COLOURED
    )
    text = "#fff" if dark else "#000"
    attributes = {
        "page": "",
        "JupyterLab": f'data-jp-theme-light="{str(not dark).lower()}"'
        f' style="--jp-ui-font-color1:{text};--jp-ui-font-color2:{text}"',
        "VS Code": f'class="vscode-{"dark" if dark else "light"}" style='
        f'"--vscode-editor-foreground:{text};--vscode-descriptionForeground:{text}"',
    }
    file = tmp_path / "page.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body {attributes[where]}>{body}")
    preferred = dark if where == "page" else not dark
    page.emulate_media(color_scheme="dark" if preferred else "light")
    page.goto(file.as_uri())
    for selector in (".tvmgraph td", ".tvmgraph b", ".tvmgraph .dim"):
        assert (page.evaluate(_COLOUR, selector) > 128) == dark, selector
    shown = "getComputedStyle(document.querySelector('.tvmgraph-drawing')).filter"
    assert (page.evaluate(shown) != "none") == dark


_COLOURED = ("tensor", "cell", "profile", "drawing")


def test_the_viewer_in_a_notebook(page: Any, tmp_path: Path) -> None:
    """In a frame without rights, without a network, on a dark page too."""
    double = ms.jit(lambda x: ms.ops.exp(x) * 2.0)
    viewer = double.viewer(Tensor(np.ones((3, 5), np.float32)))
    assert [m["title"] for m in viewer.models] == ["Cell scope", "kernel"]
    file = tmp_path / "page.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{viewer._repr_html_()}")
    page.emulate_media(color_scheme="dark")
    page.goto(file.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("#canvas svg .n").first.wait_for()
    assert "exp" in " ".join(frame.locator("#canvas svg .n").all_text_contents())
    assert viewer.save(tmp_path / "viewer.html").read_text() == viewer.html()
