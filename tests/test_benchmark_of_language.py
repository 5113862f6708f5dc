"""The measurement of generated text: what it takes, and that all forms compute the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.language import _interpreters, app
from benchmarks.peers import language
from benchmarks.report import render
from benchmarks.results import Results

TINY = language.Size(hidden=64, wide=128, layers=2, heads=4, kept=2, words=512)


@pytest.mark.slow
def test_forms_write_the_same_text_and_become_a_section(monkeypatch: pytest.MonkeyPatch) -> None:
    """The section has the heading that the README links to."""
    monkeypatch.setitem(language.SIZES, "125M", TINY)
    monkeypatch.setattr(language, "bandwidth", lambda: 1e10)
    forms = ("tvmgraph, float32", "tvmgraph, int4", "ONNX Runtime, float32", "ONNX Runtime, int4")
    rows = {form: language.measure(form, TINY, 1) for form in forms}
    assert rows["tvmgraph, float32"]["text"] == rows["ONNX Runtime, float32"]["text"]
    text = render(Results(language={"125M": {"read": 1e10, "rows": rows}}))
    assert "## Language models, a token at a time" in text
    assert all(f"| {form} |" in text for form in forms)


def test_interpreters() -> None:
    found = _interpreters(["/all", "torch=/torch"])
    assert (found["torch"], found["llama_cpp"]) == ("/torch", "/all")
    assert found["tvmgraph"] != "/all"


@pytest.mark.parametrize(
    "options", [("--size", "7B"), ("--rows", "fastai"), ("--python", "fastai=/python")]
)
def test_wrong_options(options: tuple[str, str], tmp_path: Path) -> None:
    found = CliRunner().invoke(app, options)
    assert found.exit_code == 2
    assert "known: " in " ".join(found.output.split())
