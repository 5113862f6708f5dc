"""Chrome's trace format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

Reference: "Trace Event Format", the Chromium project. Complete events (``"ph": "X"``) carry
microseconds; events of one thread nest, so a call encloses its kernels.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from tvmgraph.debug.recorder import Event

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
