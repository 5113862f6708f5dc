"""GPUs for the tests: an emulated one everywhere, the real one where there is one."""

from collections.abc import Iterator

import pytest

from tests.cuda import emulator


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[emulator.Device]:
    """An emulated H100, for which g++ takes the place of nvcc."""
    import tvmgraph as ms
    from tvmgraph.backend.cuda import nvcc

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
