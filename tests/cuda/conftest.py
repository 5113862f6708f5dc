"""GPUs for the tests: an emulated one, or with ``TVMGRAPH_TEST_GPU=real`` that of the machine."""

import os
from collections.abc import Iterator
from typing import NoReturn

import pytest

from tests.cuda import emulator


class _Hardware:
    """A real GPU in the place of the emulated one: what only that can tell is skipped."""

    def reset(self) -> None:
        """Nothing: there is no state to set back."""

    def __getattr__(self, name: str) -> NoReturn:
        pytest.skip(f"the emulated GPU has {name!r}")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[emulator.Device]:
    """An emulated H100, for which g++ takes the place of nvcc."""
    import tvmgraph as ms
    from tvmgraph.backend.cuda import nvcc

    if os.environ.get("TVMGRAPH_TEST_GPU") == "real":
        yield _Hardware()  # pyright: ignore[reportReturnType]
        ms.reset_context()
        return
    if emulator.missing():
        pytest.skip(emulator.missing())
    device = emulator.install()
    device.reset()
    monkeypatch.setattr(nvcc, "compile_unit", lambda text, *_: emulator.compile_cuda(text))
    monkeypatch.setattr(nvcc, "find", lambda: "g++")
    monkeypatch.setattr(nvcc, "fingerprint", lambda: "emulated")
    yield device
    ms.reset_context()
    device.reset()
