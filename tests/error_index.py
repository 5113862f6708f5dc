"""Keeps ``docs/errors.md`` in step: every cause is run, and its message is what the page says.

``python -m tests.error_index`` writes the messages of today into the page.
"""

from __future__ import annotations

import linecache
import os
import re
import tempfile
from pathlib import Path

import numpy as np

import tvmgraph as ms
from tvmgraph import Layout, Tensor, amp, communication, dataset, nn, ops

PAGE = Path(__file__).parent.parent / "docs" / "errors.md"
ENTRY = re.compile(r"(?s)### ([^\n]*)\n((?:(?!###).)*?)```python\n(.*?)```\n\n```text\n(.*?)```")
NAMES = {
    "np": np, "ms": ms, "nn": nn, "ops": ops, "Tensor": Tensor, "dataset": dataset, "amp": amp,
    "Layout": Layout, "communication": communication, "__name__": "example",
}  # fmt: skip
WIDTH = 110


def message(cause: str, folder: Path) -> str:
    """Returns what a program's error says; long lines, addresses and counters are cut."""
    file = folder / "example.py"
    file.write_text(cause)
    linecache.checkcache(str(file))
    try:
        exec(compile(cause, str(file), "exec"), dict(NAMES))
    except Exception as error:
        said = re.sub(r"0x[0-9a-f]+", "0x...", f"{type(error).__name__}: {error}")
        said = re.sub(r"(ops\.custom_lambda__)\d+", r"\g<1>0", said)  # they are counted
        lines = [n if len(n) <= WIDTH else f"{n[: WIDTH - 4]} ..." for n in said.splitlines()]
        return "\n".join(lines) + "\n"
    finally:
        ms.reset_context()
    return "no error\n"


def main() -> None:
    """Writes the page."""
    text = PAGE.read_text()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for _, _, cause, said in ENTRY.findall(text):
            new = message(cause, Path(folder))
            text = text.replace(f"```python\n{cause}```\n\n```text\n{said}```",
                                f"```python\n{cause}```\n\n```text\n{new}```")  # fmt: skip
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
