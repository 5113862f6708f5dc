"""What ``profile`` says of calls on a GPU."""

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn


@pytest.fixture
def on_gpu(gpu):
    ms.set_context(device_target="GPU")
    return gpu


def test_every_kernel_has_its_time_on_the_device(on_gpu):
    net = nn.SequentialCell(nn.Dense(6, 5), nn.ReLU(), nn.Dense(5, 4)).set_train(False)
    compiled, x = ms.jit(net), Tensor(np.ones((3, 6), np.float32)).to("GPU")
    profile = compiled.profile(x, repeat=2)
    assert sum(k.flops for k in profile.kernels) >= 2 * 3 * (6 * 5 + 5 * 4)
    assert all(k.seconds > 0 and "test_profile.py" in k.where for k in profile.kernels)
    assert profile.peaks.processor == "Emulated NVIDIA H100"
    assert profile.peaks.flops("bfloat16") > profile.peaks.flops("float32") > 0
    launched = [k.name for k in on_gpu.launches]
    assert all(any(n.startswith(k.name) for n in launched) for k in profile.kernels)
    assert "(a copy)" in str(profile)


def test_a_training_step_takes_effect_once(on_gpu):
    net = nn.Dense(4, 2, weight_init="ones", bias_init="zeros")
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9)
    )
    step.set_train()
    x, y = Tensor(np.ones((3, 4), np.float32)), Tensor(np.zeros((3, 2), np.float32))
    before = net.weight.asnumpy().copy()
    profile = ms.jit(step).profile(x, y, repeat=3)
    after = net.weight.asnumpy()
    np.testing.assert_allclose(before - after, 0.1 * (2 / 6 * 3 * 4), rtol=1e-5)
    assert profile.memory.peak > 0 and len(profile.kernels) > 2


def test_node_by_node_each_operator_is_waited_for(on_gpu):
    config = ms.JitConfig(jit_level="O0", exec_mode="no_sink")
    compiled = ms.jit(lambda x: ms.ops.exp(x) + 1, jit_config=config)
    profile = compiled.profile(Tensor(np.ones((3, 4), np.float32)).to("GPU"), repeat=1)
    assert [k.name for k in profile.kernels] == ["exp", "add"]
