"""The page of a profile in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tvmgraph import Tensor, jit, nn


def test_page_of_a_profile(browser: Any, tmp_path: Path) -> None:
    net = nn.SequentialCell(nn.Dense(16, 32), nn.ReLU(), nn.Dense(32, 4))
    profile = jit(net).profile(Tensor(np.ones((8, 16), np.float32)), repeat=2)
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda e: problems.append(str(e)))
    page.goto(profile.save(tmp_path / "p.html").absolute().as_uri())
    assert page.locator("tr").count() == 1 + len(profile.kernels) + 2
    assert page.locator("svg rect").count() == 1 + len(profile.kernels)
    assert "GFLOP/s" in page.locator("th").all_inner_texts()
    page.close()
    assert not problems
