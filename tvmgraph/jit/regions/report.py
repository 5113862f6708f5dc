"""What :meth:`JitFunction.explain` and ``draw`` tell about a function with graph breaks."""

from __future__ import annotations

import ast
import html
import linecache
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tvmgraph.errors import TvmgraphError, file_name
from tvmgraph.jit.regions.split import is_temporary

if TYPE_CHECKING:
    from tvmgraph.jit.introspection import Inspectable
    from tvmgraph.jit.regions.program import Program
    from tvmgraph.jit.regions.segment import Segment

CHANGE = "; to compile it: "  # between a reason and what to change
_LABELS = 8  # guards that are shown
_WIDTH = 60  # characters of a statement that are shown
_COLORS = ("#d7ecff", "#dff5d8", "#fff0c9", "#eadcff", "#ffdfe8", "#d3f3ee")
_NATIVE = "#e8e8e8"
_LINE, _CHARACTER = 18, 7.8


def reason(error: BaseException) -> str:
    """Returns why something stays in Python, and what to change, in one line.

    Args:
        error: What a capture, or evaluating the node, raised.
    """
    if not isinstance(error, TvmgraphError):
        try:
            text = f": {error}"
        except Exception:  # it reads what was undone when the capture was given up
            text = ""
        return f"it raised {type(error).__name__}{text}".splitlines()[0]
    text = error.message.splitlines()[0]
    return f"{text}{CHANGE}{error.fix}" if error.fix else text


def describe(program: Program) -> list[str]:
    """Returns lines about the segments, and about the statements that Python runs.

    Args:
        program: What is known of the function's statements.
    """
    file = file_name(program.source.file)
    used = used_segments(program)
    lines = ["  compiled segments:"] if used else []
    for s in used:
        first, last = span(s.statements)
        where = f"{file}:{first}" + (f"-{last}" if last > first else "")
        ins, outs = (
            ", ".join(n for n in names if not is_temporary(n)) for names in (s.ins, s.outs)
        )
        sizes = ", ".join(f"{r.operators} operator(s)" for r in s.history[-1:])
        count = len(s.history)
        more = f", captured {count} times, last because {s.history[-1].why}" if count > 1 else ""
        stopped = f", not any more: {s.stopped}" if s.stopped else ""
        lines.append(f"    {where}  ({ins}) -> ({outs}): {sizes}{more}{stopped}")
        lines += [f"    {line}" for line in described_cache(s)]
    found = breaks(program)
    if found:
        lines.append("  in Python:")
    changes: dict[str, int] = {}
    for b in found:
        number = f" [{changes.setdefault(b.change, len(changes) + 1)}]" if b.change else ""
        lines.append(f"    {b.where}  {b.statement}  because {b.because}{number}")
    if changes:
        lines.append("  to compile more:")
    return [*lines, *(f"    [{number}] {change}" for change, number in changes.items())]


@dataclass(frozen=True)
class Break:
    """A statement, or a part of one, that Python runs between compiled segments.

    Attributes:
        where: File and line.
        statement: Its source.
        because: Why it is not compiled.
        change: What to do to have it compiled, empty if nothing is known.
    """

    where: str
    statement: str
    because: str
    change: str


def breaks(program: Program) -> list[Break]:
    """Returns what Python runs of a function with graph breaks, by line.

    Args:
        program: What is known of the function's statements.
    """
    file = file_name(program.source.file)
    breaks = [(n, why) for n, why in program.why.values() if id(n) in program.python_only]
    found = []
    for node, why in sorted(breaks, key=lambda x: x[0].lineno):  # pyright: ignore
        text, _, change = why.partition(CHANGE)
        where = f"{file}:{node.lineno}"  # pyright: ignore[reportAttributeAccessIssue]
        found.append(Break(where, _shown(program, node), text, change))
    return found


def described_cache(function: Inspectable) -> list[str]:
    """Returns lines about what the newest capture depends on, and about forgotten captures.

    Args:
        function: A jitted function or segment.
    """
    newest = next(reversed(function.entries.values()), None)
    labels = newest[0].captured.guards.labels() if newest else []
    more = f" and {len(labels) - _LABELS} more" if len(labels) > _LABELS else ""
    lines = [f"  guards: {', '.join(labels[:_LABELS])}{more}"] if labels else []
    if function.evicted:
        lines.append(
            f"  forgotten: {function.evicted} capture(s), the least recently used first; calls "
            "differ too often"
        )
    return lines


def used_segments(program: Program) -> list[Segment]:
    """Returns the segments of the newest outline that were compiled.

    Args:
        program: What is known of the function's statements.

    Returns:
        The segments by line.
    """
    made = [s for name, s in program.segments.values() if name in program.used]
    return sorted([s for s in made if s.history and s.entries], key=lambda s: span(s.statements))


def span(statements: list[ast.stmt]) -> tuple[int, int]:
    """Returns the first and last line of statements.

    Args:
        statements: At least one statement.
    """
    nodes = [n for s in statements for n in ast.walk(s) if hasattr(n, "lineno")]
    lines = [n.lineno for n in nodes]  # pyright: ignore[reportAttributeAccessIssue]
    return min(lines), max([n.end_lineno for n in nodes])  # pyright: ignore


def _shown(program: Program, node: ast.AST) -> str:
    """Returns the source of a statement, or of the operation that was split off it."""
    lines = linecache.getlines(program.source.file)
    value = node.value if isinstance(node, ast.Assign) and _is_split(node) else node
    text = (ast.get_source_segment("".join(lines), value) or "") if lines else ast.unparse(value)
    first = text.split("\n")[0]
    return first if len(first) <= _WIDTH else first[: _WIDTH - 3] + "..."


def _is_split(node: ast.Assign) -> bool:
    target = node.targets[0]
    return isinstance(target, ast.Name) and is_temporary(target.id)


def picture(program: Program) -> str:
    """Returns the source as SVG: every segment in a colour of its own, Python's statements grey.

    Args:
        program: What is known of the function's statements.
    """
    node = program.node
    first, last = node.lineno, node.end_lineno or node.lineno
    lines = [linecache.getline(program.source.file, i).rstrip("\n") for i in range(first, last + 1)]
    color: dict[int, str] = {}
    for i, s in enumerate(used_segments(program)):
        start, end = span(s.statements)
        color.update(dict.fromkeys(range(start, end + 1), _COLORS[i % len(_COLORS)]))
    for n, _ in program.why.values():
        if id(n) in program.python_only:
            color[n.lineno] = _NATIVE  # pyright: ignore[reportAttributeAccessIssue]
    width, height = max(map(len, lines)) * _CHARACTER + 60, len(lines) * _LINE + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        'font-family="monospace" font-size="13">'
    ]
    for i, text in enumerate(lines):
        y, number = i * _LINE + 4, first + i
        fill = color.get(number)
        if fill:
            parts.append(
                f'<rect x="44" y="{y}" width="{width:.0f}" height="{_LINE}" fill="{fill}"/>'
            )
        shown = html.escape(text).replace(" ", "\u00a0")
        parts.append(f'<text x="4" y="{y + 13}" fill="#888">{number}</text>')
        parts.append(f'<text x="50" y="{y + 13}">{shown}</text>')
    return "\n".join([*parts, "</svg>"])
