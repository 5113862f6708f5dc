"""What a compile is at, shown to people who wait for it: from one second on, where they look.

On a terminal it is a line of standard error, in a notebook an output of the cell; both are gone
when the compile ends, however it ends. Nothing is shown where nobody looks (files, pipes).
"""

from __future__ import annotations

import html
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tvmgraph import forking
from tvmgraph.config import context
from tvmgraph.debug import announce

#: Environment variable that switches it off, as ``set_context(compile_progress=False)`` does.
VARIABLE = "TVMGRAPH_COMPILE_PROGRESS"
_AFTER = 1.0  # seconds
_EVERY = 0.2
_ADVICE_AFTER = 3.0
_NAMED = 60  # characters of what it is at
_one = forking.lock()


@contextmanager
def watched(name: str, operators: int, advice: Sequence[str]) -> Iterator[None]:
    """Shows what happens inside, if it takes longer than a second; see :func:`looked_at`.

    Args:
        name: What is compiled.
        operators: How many it has.
        advice: What would make it shorter.
    """
    show = _display()
    if show is None or not _one.acquire(blocking=False):
        yield
        return
    line = _Line(name, operators, advice)
    announce.listen(line.hear)
    done = threading.Event()
    thread = threading.Thread(target=line.show, args=(done, show), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        announce.leave(line.hear)
        _one.release()
        thread.join()


def looked_at() -> bool:
    """Whether progress is switched on, and somebody looks."""
    wanted = context.compile_progress and os.environ.get(VARIABLE, "1") != "0"
    return wanted and _display() is not None


class _Line:
    """What is shown."""

    def __init__(self, name: str, operators: int, advice: Sequence[str]) -> None:
        self.start = time.perf_counter()
        self.what = f"compiling {name} ({operators:,} operators)"
        self.advice = advice
        self.at: list[str] = []
        self.newest = "starting"

    def hear(self, kind: str, what: str) -> None:
        """Notes what begins and ends, from any thread."""
        if kind == "begins":
            self.at.append(what)
            self.newest = what
        elif what in self.at:
            self.at.remove(what)

    def text(self) -> str:
        """Returns the line of now."""
        spent = time.perf_counter() - self.start
        at = (self.at[-1:] or [self.newest])[0]
        kernels = at.removeprefix(announce.KERNEL).split(", ")
        if len(kernels) > 1:
            at = f"code of {len(kernels)} kernels"
        parts = [f"{self.what}: {at[:_NAMED]}, {spent:.0f} s"]
        if spent > _ADVICE_AFTER:
            parts += self.advice
        return " · ".join(parts)

    def show(self, done: threading.Event, display: Any) -> None:
        """Shows the line until the compile is done; the work of a thread."""
        if done.wait(_AFTER):
            return
        with display() as update:
            while not done.wait(_EVERY):
                update(self.text())


def _display() -> Any:
    """Returns what shows a line here, ``None`` where nobody looks."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and hasattr(shell, "kernel"):
        return _in_notebook
    stderr = sys.stderr
    return _on_terminal if stderr is not None and stderr.isatty() else None


@contextmanager
def _on_terminal() -> Iterator[object]:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    with Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False,
              redirect_stderr=False) as live:  # fmt: skip
        yield lambda text: live.update(Text(text, style="dim"), refresh=True)


@contextmanager
def _in_notebook() -> Iterator[object]:
    from IPython.display import display

    def bundle(text: str) -> dict[str, str]:
        shown = html.escape(text)
        return {"text/plain": text, "text/html": f"<span style='opacity:.7'>{shown}</span>"}

    handle: Any = display(bundle(""), raw=True, display_id=True)
    try:
        yield lambda text: handle.update(bundle(text), raw=True)
    finally:
        handle.update({"text/plain": "", "text/html": ""}, raw=True)
