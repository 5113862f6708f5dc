"""What a user reads when the GPU, its driver or its memory is not as needed."""

import ctypes

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, ops
from tvmgraph.errors import ConfigError, DeviceError
from tvmgraph.runtime import cuda


@pytest.fixture
def forgetful(gpu):
    """Lets every test look for the devices anew."""
    for function in (cuda._driver, cuda.devices):
        function.cache_clear()
    yield gpu
    for function in (cuda._driver, cuda.devices):
        function.cache_clear()


def _refused(**settings):
    with pytest.raises(DeviceError) as info:
        ms.set_context(**settings)
    assert ms.get_context("device_target") == "CPU"
    return str(info.value)


def test_no_driver(forgetful, monkeypatch):
    def missing(name, *_):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    text = _refused(device_target="GPU")
    assert "no NVIDIA driver was found (libcuda.so.1)" in text
    assert "device_target='CPU'" in text and "test_errors.py" in text
    assert not ms.runtime.is_available()


def test_no_gpu(forgetful, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    forgetful.set(devices=0)
    text = _refused(device_target="GPU")
    assert "sees no GPU" in text and "CUDA_VISIBLE_DEVICES=''" in text


def test_no_such_number(forgetful):
    text = _refused(device_target="GPU", device_id=3)
    assert "there is no GPU:3" in text and "device_id 0 to 0" in text


@pytest.mark.parametrize("how", ["reported", "refused"])
def test_driver_too_old(forgetful, how):
    forgetful.set(driver_version=12040)
    if how == "reported":
        text = _refused(device_target="GPU")
    else:
        with forgetful.failing("cuInit", "old driver"):
            text = _refused(device_target="GPU")
    assert "supports CUDA 12.4, 13.0 is needed" in text and "580 or newer" in text


def test_gpu_too_old(forgetful):
    forgetful.set(capability=70)
    with pytest.raises(DeviceError, match="too old") as info:
        cuda.row_of(cuda.device(0))
    assert "8.0 is needed" in str(info.value)


def test_wrong_architecture(forgetful):
    forgetful.set(capability=80)
    with pytest.raises(DeviceError, match="code for sm_90 does not run on") as info:
        cuda.check_arch("sm_90", cuda.device(0))
    assert "compile for sm_80" in str(info.value)
    cuda.check_arch("sm_90,sm_80", cuda.device(0))


@pytest.mark.parametrize(
    ("arch", "capability", "runs"),
    [("sm_80", (8, 6), True), ("sm_90", (8, 9), False), ("sm_80", (10, 0), True),
     ("sm_90a", (9, 0), True), ("sm_90a", (10, 0), False)],
)  # fmt: skip
def test_which_code_fits(arch, capability, runs):
    assert cuda.fits(arch, capability) is runs


def test_out_of_memory(forgetful):
    x = Tensor(np.zeros(1 << 20, np.float32))
    forgetful.set(memory=1 << 20)
    with pytest.raises(DeviceError, match="the GPU is out of memory") as info:
        x.to("GPU")
    assert "4.0 MiB were asked for" in str(info.value) and "smaller batch" in str(info.value)
    assert x.device == "CPU"


def test_an_operator_without_code_is_not_run_elsewhere(forgetful):
    x = Tensor(np.array([3.0, 1.0, 3.0], np.float32)).to("GPU")
    with pytest.raises(DeviceError, match="depends on values") as info:
        ops.nonzero(x)
    assert "ops.nonzero" in str(info.value) and ".to('CPU')" in str(info.value)


def test_unknown_devices():
    with pytest.raises(DeviceError, match="no device 'TPU'"):
        Tensor([1.0]).to("TPU")
    with pytest.raises(DeviceError, match="no device 'cpu:1'"):
        Tensor([1.0], device="cpu:1")
    with pytest.raises(ConfigError, match="device_target must be one of CPU, GPU, CUDA"):
        ms.set_context(device_target="TPU")
    with pytest.raises(ConfigError, match="device_id must be the number"):
        ms.set_context(device_id=-1)
