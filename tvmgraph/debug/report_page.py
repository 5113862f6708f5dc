"""Profiles as HTML: one page without scripts, with bars for shares and a timeline as SVG."""

from __future__ import annotations

import html
from collections.abc import Sequence

from tvmgraph.debug.profile import KernelTime, Peaks, Profile
from tvmgraph.debug.recorder import Event
from tvmgraph.debug.report import micro, rates, share, size

_STYLE = """
.profile{font:14px/1.5 system-ui,sans-serif;color:#1f2328;max-width:76em}
.profile table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
.profile th{font-weight:600;text-align:right;border-bottom:2px solid #d0d7de;padding:.3em .6em}
.profile td{text-align:right;border-bottom:1px solid #eaeef2;padding:.25em .6em;
  white-space:nowrap}
.profile td:first-child,.profile th:first-child,.profile td:last-child,.profile th:last-child
  {text-align:left;white-space:normal;overflow-wrap:anywhere}
.profile code{font:12px ui-monospace,Menlo,Consolas,monospace}
.profile .bar{background:linear-gradient(#8ec5ff,#8ec5ff) no-repeat left/var(--w) 70%}
.profile .facts{color:#57606a;margin:.3em 0 1em}
.profile .facts b{color:#1f2328;font-weight:600}
.profile svg text{font:11px ui-monospace,Menlo,Consolas,monospace}
.profile tr.sum td{font-weight:600;border-top:2px solid #d0d7de}
"""
_HEADINGS = ("µs", "share", "calls", "GFLOP/s", "of peak", "GB/s", "of memory", "computes")
_COLOURS = {"call": "#cfe5ff", "kernel": "#54aeff", "operator": "#4ac26b", "step": "#eaeef2",
            "compile": "#f0b429", "phase": "#f7d983"}  # fmt: skip
_LANES = ("step", "compile", "phase", "call", "kernel", "operator")
_WIDTH, _LANE = 1100, 24
_MOST = 3000  # rectangles of a timeline; the trace file holds everything


def page(title: str, body: str) -> str:
    """Returns a page of its own."""
    title = html.escape(title)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f'<body style="margin:2em"><div class="profile"><style>{_STYLE}</style>'
        f"<h1>{title}</h1>{body}</div></html>\n"
    )


def profile_page(profile: Profile) -> str:
    """Returns the page of one call."""
    return page(f"Profile of {profile.name}", _body(profile))


def profile_fragment(profile: Profile) -> str:
    """Returns what a notebook shows."""
    return f'<div class="profile"><style>{_STYLE}</style>{_body(profile)}</div>'


def _body(profile: Profile) -> str:
    total = max(profile.seconds, profile.kernel_seconds, 1e-12)
    m, spent = profile.memory, profile.overhead_seconds
    facts = {"one call": f"{micro(profile.seconds)} µs", "runs as": profile.path}
    if m.peak:
        facts["memory"] = (
            f"{size(m.planned)} planned ({size(m.unplanned)} without sharing), "
            f"{size(m.arguments)} arguments, peak {size(m.peak)}"
        )
    if profile.peaks is not None:
        facts["machine"] = str(profile.peaks)
    extra = [("overhead of the host", spent), ("call", profile.seconds)]
    return (
        facts_html(facts) + kernels_html(profile.kernels, total, profile.peaks, extra)
        + timeline(profile.events)
    )  # fmt: skip


def facts_html(facts: dict[str, str]) -> str:
    """Returns named facts, one per line."""
    lines = [f"<b>{html.escape(k)}</b> {html.escape(v)}" for k, v in facts.items()]
    return f'<p class="facts">{"<br>".join(lines)}</p>'


def kernels_html(
    rows: Sequence[KernelTime], total: float, peaks: Peaks | None,
    extra: Sequence[tuple[str, float]] = (), first: str = "kernel",
) -> str:  # fmt: skip
    """Returns a table of kernels or operators.

    Args:
        rows: What to show.
        total: Seconds that shares refer to.
        peaks: What rates are compared with.
        extra: Further rows, ``(name, seconds)``.
        first: Heading of the first column.
    """
    heads = "".join(f"<th>{h}" for h in (first, *_HEADINGS))
    lines = []
    for k in rows:
        part = share(k.seconds, total)
        cells = [micro(k.seconds), part, str(k.calls), *rates(k, peaks), html.escape(k.where)]
        cells[1] = f'<span class="bar" style="--w:{part};display:block">{part}</span>'
        lines.append(f"<tr><td><code>{html.escape(k.name)}</code>" + _cells(cells))
    for name, spent in extra:
        cells = [micro(spent), share(spent, total), "", "", "", "", "", ""]
        lines.append(f'<tr class="sum"><td>{html.escape(name)}' + _cells(cells))
    return f"<table><tr>{heads}{''.join(lines)}</table>"


def _cells(values: Sequence[str]) -> str:
    return "".join(f"<td>{v}" for v in values)


def timeline(events: Sequence[Event]) -> str:
    """Returns events as an SVG, one lane per kind; empty without events."""
    if not events:
        return ""
    start = min(e.start for e in events)
    span = max(max(e.start + e.seconds for e in events) - start, 1e-9)
    lanes = [kind for kind in _LANES if any(e.kind == kind for e in events)]
    shown = sorted(events, key=lambda e: -e.seconds)[:_MOST]
    rectangles = []
    for e in sorted(shown, key=lambda e: e.start):
        x, w = (e.start - start) / span * _WIDTH, max(e.seconds / span * _WIDTH, 0.5)
        y = lanes.index(e.kind) * _LANE
        tip = html.escape(f"{e.name}: {e.seconds * 1e6:.1f} µs")
        text = f'<text x="{x + 3:.1f}" y="{y + 15}">{html.escape(e.name[: int(w / 7)])}</text>'
        rectangles.append(
            f'<g><title>{tip}</title><rect x="{x:.1f}" y="{y + 2}" width="{w:.2f}" '
            f'height="{_LANE - 4}" rx="2" fill="{_COLOURS[e.kind]}"/>{text if w > 24 else ""}</g>'
        )
    names = "".join(
        f'<text x="-8" y="{i * _LANE + 15}" text-anchor="end" fill="#57606a">{kind}</text>'
        for i, kind in enumerate(lanes)
    )
    height = len(lanes) * _LANE
    return (
        f"<h3>Timeline, {span * 1e3:.2f} ms with instruments</h3>"
        f'<svg viewBox="-80 0 {_WIDTH + 90} {height}" width="100%" '
        f'xmlns="http://www.w3.org/2000/svg">{names}{"".join(rectangles)}</svg>'
    )
