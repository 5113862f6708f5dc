"""The viewer: one HTML file that needs no network."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from tvmgraph.view.draw import resource


def viewer_page(models: Sequence[dict[str, Any]], title: str) -> str:
    """Returns the HTML of a viewer.

    Args:
        models: What :func:`tvmgraph.view.model_of` gave, one per way of grouping.
        title: Heading of the page.
    """
    data = json.dumps(list(models)).replace("</", "<\\/")  # a string must not end the script
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
