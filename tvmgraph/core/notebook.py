"""What notebooks show of objects: HTML tables that follow the notebook's colours.

JupyterLab and VS Code say their colours in CSS variables; where there are none (a saved page),
the browser's preference for light or dark counts. No scripts, nothing from a network.
"""

from __future__ import annotations

import functools
import html
import importlib.resources
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tvmgraph import dtypes

if TYPE_CHECKING:
    from tvmgraph.core.parameter import Parameter
    from tvmgraph.core.tensor import Tensor

_EDGE = 4  # items shown at either end of an axis
_MOST = 200  # rows of a table
_LONG = 50  # characters of a cell that is not broken into lines


@functools.cache
def style(file: str) -> str:
    """Returns a style sheet without its line breaks.

    Args:
        file: Its path below the package. That of notebooks names its class twice, to count for more
            than what they say of all tables; its colours are JupyterLab's or VS Code's if there
            are any.
    """
    text = (importlib.resources.files("tvmgraph") / file).read_text(encoding="utf-8")
    return "".join(line.strip() for line in text.splitlines())


def fragment(body: str) -> str:
    """Returns HTML for a notebook's cell around some body.

    Args:
        body: HTML.
    """
    return f'<div class="tvmgraph"><style>{style("core/notebook.css")}</style>{body}</div>'


def heading(kind: str, *facts: str) -> str:
    """Returns a line: what it is, and what is known of it.

    Args:
        kind: What it is; it is escaped, as the facts are.
        *facts: What is known of it; empty ones are left out.
    """
    rest = " · ".join(html.escape(fact) for fact in facts if fact)
    return f'<p><b>{html.escape(kind)}</b> <span class="dim">{rest}</span></p>'


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], most: int = _MOST) -> str:
    """Returns a table; numbers stand at the right, and long ones end with how many follow.

    Args:
        heads: Headings; none are shown if all are empty.
        rows: Values; numbers get thousands' separators, texts are escaped.
        most: Rows that are shown.
    """
    rows = list(rows)
    numeric = [
        any(_is_number(row[i]) for row in rows) and all(_is_number(row[i]) or row[i] == ""
                                                       for row in rows)
        for i in range(len(heads))
    ]  # fmt: skip
    long = [any(len(str(row[i])) > _LONG for row in rows) for i in range(len(heads))]
    marks = ("number" if n else "long" if w else "" for n, w in zip(numeric, long))
    mark = [f' class="{m}"' if m else "" for m in marks]
    lines: list[str] = []
    if any(heads):
        cells = "".join(f"<th{m}>{html.escape(h)}</th>" for h, m in zip(heads, mark))
        lines.append(f"<thead><tr>{cells}</tr></thead>")
    lines.append("<tbody>")
    for row in rows[:most]:
        cells = "".join(f"<td{m}>{_cell(v)}</td>" for v, m in zip(row, mark))
        lines.append(f"<tr>{cells}</tr>")
    if len(rows) > most:
        rest = f"{len(rows) - most:,} more"
        lines.append(f'<tr><td class="dim" colspan="{len(heads)}">{rest}</td></tr>')
    return f"<table>{''.join(lines)}</tbody></table>"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if _is_number(value) else html.escape(str(value))


def size(count: int) -> str:
    """Bytes with a unit.

    Args:
        count: Bytes.
    """
    number = float(count)
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{count} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.2f} GiB"


# ---- tensors ------------------------------------------------------------------------------------


def tensor_html(tensor: Tensor, *facts: str) -> str:
    """Returns a tensor: type, size, and the ends of its last two axes. Nothing is computed.

    Args:
        tensor: The tensor; elements of one on a GPU are not fetched.
        facts: What else the heading says.
    """
    kind = type(tensor).__name__
    if not tensor.aval.is_static:
        return fragment(heading(kind, str(tensor.aval), "a placeholder", *facts))
    about = (str(tensor.aval), size(tensor.nbytes), *facts)
    if tensor.on_gpu:
        return fragment(heading(kind, *about, "on a GPU: asnumpy() fetches its elements"))
    array = getattr(tensor, "array", None)
    if array is None:
        return fragment(heading(kind, *about))
    if array.size == 0:
        return fragment(heading(kind, *about, "no elements"))
    lead = array.ndim - 2
    if lead > 0:
        at = ", ".join(["0"] * lead)
        about = (*about, f"[{at}, :, :] of it")
        array = array[(0,) * lead]
    return fragment(heading(kind, *about) + _values(np.atleast_2d(array)))


def _values(array: np.ndarray) -> str:
    rows, columns = (_ends(n) for n in array.shape)
    shown: list[str] = []
    for i in rows:
        cells = ["⋮" if i is None else "…" if j is None else _number(array[i, j]) for j in columns]
        shown.append(f"<tr>{''.join(f'<td class=number>{c}</td>' for c in cells)}</tr>")
    return f"<table><tbody>{''.join(shown)}</tbody></table>"


def _ends(count: int) -> list[int | None]:
    """The numbers of the items that are shown, None between the ends."""
    if count <= 2 * _EDGE + 1:
        return list(range(count))
    return [*range(_EDGE), None, *range(count - _EDGE, count)]


def _number(value: np.generic) -> str:
    if dtypes.dtype_of(value.dtype).kind in "fc":
        return f"{value:.4g}" if value.dtype.kind == "c" else f"{float(value):.4g}"
    return str(value)


def parameters_html(parameters: Sequence[Parameter], kind: str) -> str:
    """Returns parameters: name, type, elements, bytes, whether they are trained.

    Args:
        parameters: The parameters, of which the first ones are shown.
        kind: What they are parameters of.
    """
    rows = [
        (p.name, str(p.aval), p.size, size(p.nbytes), "yes" if p.requires_grad else "no")
        for p in parameters[:_MOST]
    ]
    total = sum(p.size for p in parameters)
    nbytes = size(sum(p.nbytes for p in parameters))
    head = heading(kind, f"{len(parameters):,} parameters", f"{total:,} elements", nbytes)
    more = len(parameters) - _MOST
    rest = f'<p class="dim">{more:,} more</p>' if more > 0 else ""
    names = ("name", "type", "elements", "size", "trained")
    return fragment(head + table(names, rows) + rest)


# ---- lists --------------------------------------------------------------------------------------


def show_lists(member: type[Parameter]) -> None:
    """Lets this notebook show plain lists and tuples of Parameters as tables, others as before.

    Args:
        member: The class of Parameters, which knows of this module and not the other way round.
    """
    import IPython

    shell: Any = IPython.get_ipython()
    if shell is None:
        return
    formatter = shell.display_formatter.formatters["text/html"]
    for kind in (list, tuple):
        before = formatter.for_type(kind)
        formatter.for_type(kind, functools.partial(_list_html, member=member, before=before))


def _list_html(
    values: Sequence[Parameter],
    member: type[Parameter],
    before: Callable[[object], str | None] | None,
) -> str | None:
    if values and all(isinstance(v, member) for v in values):
        return parameters_html(values, type(values).__name__)
    return before(values) if before is not None else None
