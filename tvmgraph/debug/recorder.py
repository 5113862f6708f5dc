"""What happens while a profiler listens, as a list of events on one clock."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tvmgraph import forking
from tvmgraph.config.flag_registry import active

#: What an event can be.
STEP, CALL, KERNEL = "step", "call", "kernel"
OPERATOR, COMPILE, PHASE = "operator", "compile", "phase"


@dataclass(frozen=True)
class Event:
    """Something that took time.

    Attributes:
        name: What.
        kind: ``step``, ``call`` (of a compiled graph), ``kernel``, ``operator`` (eager),
            ``compile`` or ``phase`` (of a compile).
        start: When it began, on the clock of ``time.perf_counter``.
        seconds: How long it took.
        facts: What else is known.
        thread: Identifier of the thread.
    """

    name: str
    kind: str
    start: float
    seconds: float
    facts: Mapping[str, Any] = field(default_factory=dict)
    thread: int = 0


class Recorder:
    """Collects events of all threads while it is switched on.

    Attributes:
        events: What happened so far.
        graphs: The compiled graphs that were called, by identifier, to be asked about afterwards.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.graphs: dict[int, Any] = {}

    def add(self, name: str, kind: str, start: float, seconds: float, **facts: object) -> None:
        """Notes one event of this thread.

        Args:
            name: What the event is called.
            kind: Its lane in a timeline.
            start: When it began, in seconds of ``time.perf_counter``.
            seconds: How long it took.
            **facts: What else is known about it.
        """
        self.events.append(Event(name, kind, start, seconds, facts, threading.get_ident()))

    @contextmanager
    def span(self, name: str, kind: str, **facts: object) -> Iterator[None]:
        """Notes a ``with`` block as one event.

        Args:
            name: What the event is called.
            kind: Its lane in a timeline.
            **facts: What else is known about it.
        """
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, kind, start, time.perf_counter() - start, **facts)


_lock = forking.lock()
_current: list[Recorder] = []


def current() -> Recorder | None:
    """The recorder that is switched on, if any."""
    return _current[-1] if _current else None


def switch_on(recorder: Recorder) -> None:
    """Makes compiled calls, kernels, eager operators and compiles known to a recorder.

    Args:
        recorder: The recorder.
    """
    with _lock:
        if recorder not in _current:
            _current.append(recorder)
        active.listen("profiler", _note_operator)


def switch_off(recorder: Recorder) -> None:
    """Ends what :func:`switch_on` began.

    Args:
        recorder: The recorder.
    """
    with _lock:
        _current[:] = [r for r in _current if r is not recorder]
        if not _current:
            active.ignore("profiler")


def _note_operator(op: Any, args: Any, _: object, outputs: Any, start: float, end: float) -> None:
    recorder = current()
    if recorder is not None:
        size = sum(t.array.nbytes for t in (*args, *outputs))
        shown = ", ".join(str(t.aval) for t in args)
        recorder.add(op.name, OPERATOR, start, end - start, bytes=size, inputs=shown)


# ---- Chrome's trace format, which Perfetto (ui.perfetto.dev) and chrome://tracing open -----------
# Reference: "Trace Event Format", the Chromium project. Complete events (``"ph": "X"``) carry
# microseconds; events of one thread nest, so a call encloses its kernels.

_TRACKS = {"step": 1}  # steps have a track of their own, above the threads


def chrome_trace(events: Sequence[Event]) -> dict[str, object]:
    """Returns events as the object that is written to a trace file.

    Args:
        events: The events.
    """
    pid = os.getpid()
    threads = {t: i for i, t in enumerate(dict.fromkeys(e.thread for e in events), 2)}
    found: list[dict[str, Any]] = [_meta("process_name", pid, 0, "tvmgraph")]
    if any(e.kind == "step" for e in events):
        found.append(_meta("thread_name", pid, 1, "steps"))
    found += [_meta("thread_name", pid, i, f"Python thread {t}") for t, i in threads.items()]
    origin = min((e.start for e in events), default=0.0)
    for e in sorted(events, key=lambda e: (e.start, -e.seconds)):
        found.append({
            "name": e.name, "cat": e.kind, "ph": "X", "pid": pid,
            "tid": _TRACKS.get(e.kind, threads[e.thread]),
            "ts": round((e.start - origin) * 1e6, 3), "dur": round(e.seconds * 1e6, 3),
            "args": {k: v if isinstance(v, (int, float, str)) else str(v)
                     for k, v in e.facts.items()},
        })  # fmt: skip
    return {"traceEvents": found, "displayTimeUnit": "ns"}


def trace_text(events: Sequence[Event]) -> str:
    """Returns the contents of a trace file.

    Args:
        events: The events.
    """
    return json.dumps(chrome_trace(events))


def _meta(kind: str, pid: int, tid: int, name: str) -> dict[str, object]:
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}
