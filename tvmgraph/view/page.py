"""The viewer: one HTML file that needs no network."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path

from tvmgraph.view.draw import resource
from tvmgraph.view.excerpts import excerpts
from tvmgraph.view.model import Model


def viewer_page(models: Sequence[Model], title: str, files: Sequence[str] = ()) -> str:
    """Returns the HTML of a viewer.

    Args:
        models: What :func:`tvmgraph.view.model_of` gave, one per way of grouping.
        title: Heading of the page.
        files: Paths of the user's source files whose names others may have, too.
    """
    lines = excerpts((n["source"] for m in models for n in m["nodes"] if n["source"]), files)
    shown = [{**m, "code": lines if i == 0 else {}} for i, m in enumerate(models)]
    data = json.dumps(shown).replace("</", "<\\/")  # a string must not end the script
    parts = {
        "__TITLE__": html.escape(title),
        "__ELK__": resource("elk.bundled.js").replace("</script", "<\\/script"),
        "__VIEW__": resource("view.js"),
        "__MODELS__": data,
    }
    page = resource("viewer.html")
    for mark, text in parts.items():
        page = page.replace(mark, text)
    return page


class Viewer:
    """A graph to look around in, shown by notebooks in a frame of its own. It needs no network.

    Args:
        models: What :func:`tvmgraph.view.model_of` gave, one per way of grouping.
        title: Heading of the page.
        height: Pixels of the frame.
    """

    def __init__(self, models: Sequence[Model], title: str, height: int = 600) -> None:
        self.models, self.title, self.height = models, title, height

    def html(self, files: Sequence[str] = ()) -> str:
        """Returns the page.

        Args:
            files: Paths of the user's source files whose names others may have, too.
        """
        return viewer_page(self.models, self.title, files)

    def save(self, path: str | Path) -> Path:
        """Writes the page.

        Args:
            path: The file; missing folders are made.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.html(), encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html())}" sandbox="allow-scripts" '
            f'style="width:100%;height:{self.height}px;border:1px solid #8884"></iframe>'
        )
