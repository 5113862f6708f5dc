"""Builds the site into ``site/``: ``python docs/site/build.py``, which needs no network.

Every warning is an error: a link, a reference or a name that leads nowhere. Notebooks are shown as
their last run left them; those that have not run since they were changed run now.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

from sphinx.cmd.build import main as sphinx

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.notebooks import SOURCES, executed  # noqa: E402


def main() -> int:
    """Builds; returns the exit status."""
    begin = time.monotonic()
    docs, site = ROOT / "docs", ROOT / "site"
    shown = docs / "notebooks"
    shown.mkdir(exist_ok=True)
    for old in shown.glob("*.ipynb"):
        old.unlink()
    for source in SOURCES:
        text = executed(source).read_text().replace("](../docs/", "](../")  # a place of docs now
        (shown / f"{source.stem}.ipynb").write_text(text)
    shutil.rmtree(site, ignore_errors=True)  # pages of source are not written anew
    options = ["-j", "auto", "-W", "--keep-going", "-q", "-E"]
    status = sphinx([*options, "-c", str(docs / "site"), str(docs), str(site)])
    shutil.rmtree(ROOT / "jupyter_execute", ignore_errors=True)  # MyST-NB's copies of pictures
    print(f"{site / 'index.html'} in {time.monotonic() - begin:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
