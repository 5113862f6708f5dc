"""The test run itself: what a crash of compiled code does to it."""

import subprocess
import sys
from pathlib import Path

_SETTINGS = Path(__file__).parent.parent / "pyproject.toml"
_TESTS = """
import os, time, pytest

@pytest.mark.parametrize("i", range(3))
def test_{name}(i):
    time.sleep(0.05)
    if {crashes} and i == 1:
        os.abort()
"""


def test_a_crash_ends_the_run(tmp_path: Path) -> None:
    for name in "abcdef":
        text = _TESTS.format(name=name, crashes=name == "a")
        (tmp_path / f"test_{name}.py").write_text(text)
    command = ["-m", "pytest", "-c", str(_SETTINGS), "--rootdir", str(tmp_path), "-n", "2"]
    done = subprocess.run(
        [sys.executable, *command, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "crashed while running 'test_a.py::test_a[1]'" in done.stdout
