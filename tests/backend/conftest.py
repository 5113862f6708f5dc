"""Makes the helpers of this directory importable; kernels are tested for every processor."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from tests.processors import CPUS
from tvmgraph.machine.targets import CPU_VARIABLE, HOST


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs tests for every processor, but once where they choose it themselves or need none."""
    alone = metafunc.definition.get_closest_marker("any_processor")
    metafunc.parametrize("cpu", [HOST] if alone else CPUS, indirect=True)


@pytest.fixture(autouse=True)
def cpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The processor that kernels are compiled for where a test names none."""
    if request.param != HOST:
        monkeypatch.setenv(CPU_VARIABLE, request.param)
    return request.param
