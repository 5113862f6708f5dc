"""Profiles as HTML: one page without scripts, with bars for shares and a timeline as SVG."""

from __future__ import annotations

import html
from collections.abc import Sequence

from tvmgraph.core.notebook import style
from tvmgraph.debug.profile import KernelTime, Peaks, Profile
from tvmgraph.debug.recorder import Event
from tvmgraph.debug.report import micro, rates, share, size

_HEADINGS = ("µs", "share", "calls", "GFLOP/s", "of peak", "GB/s", "of memory", "computes")
_COLOURS = {"call": "#cfe5ff", "kernel": "#54aeff", "operator": "#4ac26b", "step": "#eaeef2",
            "compile": "#f0b429", "phase": "#f7d983"}  # fmt: skip
_LANES = ("step", "compile", "phase", "call", "kernel", "operator")
_WIDTH, _LANE = 1100, 24
_MOST = 3000  # rectangles of a timeline; the trace file holds everything


def page(title: str, body: str) -> str:
    """Returns a page of its own.

    Args:
        title: Title of the page.
        body: HTML.
    """
    title = html.escape(title)
    head = f'<meta charset="utf-8"><title>{title}</title>'
    inside = section(f"<h1>{title}</h1>{body}")
    return (
        f'<!doctype html><html lang="en" style="color-scheme:light dark">{head}'
        f'<body style="margin:2em">{inside}</html>\n'
    )


def section(body: str) -> str:
    """Returns what a notebook shows, or the inside of a page.

    Args:
        body: HTML.
    """
    sheets = style("core/notebook.css") + style("debug/profile.css")
    return f'<div class="tvmgraph profile"><style>{sheets}</style>{body}</div>'


def profile_page(profile: Profile) -> str:
    """Returns the page of one call.

    Args:
        profile: The profile.
    """
    return page(f"Profile of {profile.name}", _body(profile))


def profile_fragment(profile: Profile) -> str:
    """Returns what a notebook shows.

    Args:
        profile: The profile.
    """
    return section(_body(profile))


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
    """Returns named facts, one per line.

    Args:
        facts: The facts by name.
    """
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
    """Returns events as an SVG, one lane per kind; empty without events.

    Args:
        events: The events.
    """
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
        f'<text x="-8" y="{i * _LANE + 15}" text-anchor="end">{kind}</text>'
        for i, kind in enumerate(lanes)
    )
    height = len(lanes) * _LANE
    return (
        f"<h3>Timeline, {span * 1e3:.2f} ms with instruments</h3>"
        f'<svg viewBox="-80 0 {_WIDTH + 90} {height}" width="100%" '
        f'xmlns="http://www.w3.org/2000/svg">{names}{"".join(rectangles)}</svg>'
    )
