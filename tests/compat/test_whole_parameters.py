"""What programs for many devices import and ask on one."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph.common.api import flops_collection  # pyright: ignore
from tvmgraph.common.file_system import mindio_preload  # pyright: ignore
from tvmgraph.communication._comm_helper import (  # pyright: ignore
    _get_group_map,
    _remove_group_info,
)
from tvmgraph.nn.wrap.cell_wrapper import _MicroBatch  # pyright: ignore
from tvmgraph.ops._grad_experimental.grad_comm_ops import (  # pyright: ignore
    get_squared_device_local_norm_param,
)
from tvmgraph.ops.auto_generate import Scatter, SwigluGrad  # pyright: ignore
from tvmgraph.parallel.shard import Layout, _DistributedTensorInfo  # pyright: ignore
from tvmgraph.parallel.strategy import get_strategy_metadata  # pyright: ignore
from tvmgraph.train._utils import (  # pyright: ignore
    get_parameter_redundancy,
    remove_param_redundancy,
)
from tvmgraph.train.callback._checkpoint import CheckpointManager  # pyright: ignore
from tvmgraph.train.node_strategy_pb2 import ParallelStrategyMap  # pyright: ignore
from tvmgraph.train.serialization import _get_merged_param_data  # pyright: ignore
from tvmgraph.utils import stress_detect  # pyright: ignore


def test_parameters_are_whole(tmp_path: Path) -> None:
    net = nn.Dense(2, 3)
    holders = get_parameter_redundancy(net)
    assert holders == {"bias": ((0,),), "weight": ((0,),)}
    assert remove_param_redundancy(holders) == {0: {"weight", "bias"}}
    four = {"a": ((0, 1, 2, 3),), "b": ((0, 1), (2, 3)), "c": ((0, 1, 2, 3),)}
    saved = remove_param_redundancy(four)
    assert saved == {0: {"a"}, 1: {"b"}, 2: {"b"}, 3: {"c"}}
    assert get_strategy_metadata(net) is None
    merged: Any = _get_merged_param_data
    assert merged(net, {}, "weight", net.weight, True) is net.weight
    file = tmp_path / "a.ckpt"
    assert ms.get_ckpt_path_with_strategy(str(file), "") is None and not mindio_preload(str(file))
    file.touch()
    assert ms.get_ckpt_path_with_strategy(str(file), "") == str(file)
    with pytest.raises(RuntimeError, match="give it the network"):
        get_parameter_redundancy("strategy.ckpt")


def test_what_other_processors_have_says_so_when_it_is_called() -> None:
    calls: list[Callable[[], object]] = [
        flops_collection, get_squared_device_local_norm_param, stress_detect,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(RuntimeError, match="Ascend processors only"):
            call()
    with pytest.raises(RuntimeError, match="save_checkpoint"):
        ParallelStrategyMap()


def test_parts_of_a_split_tensor() -> None:
    layout = Layout((2, 2, 3), ("dp", "mp", "x"))
    split = _DistributedTensorInfo(layout("dp", ("mp", "x"), "None"))
    assert split.sharding_strategy == [2, 6, 1]


def test_groups_are_found_and_forgotten() -> None:
    ms.communication.create_group("zoo", [0])
    assert _get_group_map()["zoo"] == (0,)
    _remove_group_info("zoo")
    assert "zoo" not in _get_group_map()


def test_devices_of_a_block() -> None:
    with ms.DeviceCtx("CPU") as chosen:
        assert chosen.name == ms.get_context("device_target") == "CPU"
    assert ms.get_context("device_target") == "CPU"
    for name, number in (("meta", 0), ("CPU", -1)):
        with pytest.raises(ValueError, match="DeviceCtx"), ms.DeviceCtx(name, number):
            raise AssertionError("the block began")


def test_checkpoints_of_a_folder(tmp_path: Path) -> None:
    names = ["net-1_1.ckpt", "net-1_2.ckpt", "net-2_1.ckpt", "net-x.ckpt", "other-1_1.ckpt"]
    for time, name in enumerate(names):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000 + time, 1000 + time))
    manager = CheckpointManager()
    manager.update_ckpoint_filelist(tmp_path, "net")
    assert manager.ckpoint_num == 3
    manager.remove_oldest_ckpoint_file()
    assert sorted(Path(f).name for f in manager.ckpoint_filelist) == names[1:3]
    manager.keep_one_ckpoint_per_minutes(1, 1030)
    assert [Path(f).name for f in manager.ckpoint_filelist] == names[1:2]
    assert sorted(f.name for f in tmp_path.iterdir()) == [names[1], *names[3:]]


@pytest.mark.parametrize("wrap", [
    lambda net: nn.GradAccumulationCell(net, 2),
    lambda net: nn.PipelineCell(net, 2, {"_backbone": 0}),
    lambda net: nn.MicroBatchInterleaved(net, 2),
])  # fmt: skip
@pytest.mark.parametrize("compiled", [False, True])
def test_losses_of_parts_add_up(wrap: Callable[[nn.Cell], nn.Cell], compiled: bool) -> None:
    x, y = Tensor(np.arange(8.0, dtype=np.float32).reshape(4, 2)), Tensor(np.ones((4, 1), "f"))
    net = nn.WithLossCell(nn.Dense(2, 1, weight_init="ones"), nn.MSELoss())
    parts = wrap(net)
    assert [p.name for p in parts.trainable_params()] == [p.name for p in net.trainable_params()]
    found = (ms.jit(parts) if compiled else parts)(x, y)
    assert found.item() == pytest.approx(net(x[:2], y[:2]).item() + net(x[2:], y[2:]).item())
    grad = ms.grad(parts, None, parts.trainable_params())(x, y)[0]
    assert grad.asnumpy() == pytest.approx(2 * ms.grad(net, None, net.trainable_params())(x, y)[0])


def test_what_cannot_be_cut() -> None:
    net = nn.Dense(2, 1)
    with pytest.raises(ValueError, match="3 rows are not 2 equal parts"):
        _MicroBatch(2)(0, ops.ones((3, 2)))
    with pytest.raises(ValueError, match="micro_size must be positive"):
        nn.GradAccumulationCell(net, 0)
    with pytest.raises(TypeError, match="interleave_num must be an int"):
        nn.MicroBatchInterleaved(net, 2.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="network must be a Cell"):
        nn.PipelineCell(ops.relu, 2)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="no Cell 'head'"):
        nn.PipelineCell(net, 2, {"head": 1})


def test_descriptions_of_operators() -> None:
    info = ops.CustomRegOp("twice").input(0, "x").output(0, "y", "dynamic", shape="all")
    info = info.attr("axis", "optional", "int", "1").target("Ascend")
    info = info.dtype_format(ops.DataType.F16_Default, ops.DataType.BF16_FracNZ).get_op_info()
    assert info == {
        "op_name": "twice", "inputs": [{"index": 0, "name": "x", "paramType": "required"}],
        "outputs": [{"index": 0, "name": "y", "paramType": "dynamic", "shape": "all"}],
        "attr": [{"name": "axis", "paramType": "optional", "type": "int", "defaultValue": "1"}],
        "fusion_type": "", "target": "Ascend",
        "dtype_format": [(("float16", "DefaultFormat"), ("bfloat16", "FRACTAL_NZ"))],
    }  # fmt: skip
    assert ops.DataType.U8_Default_List == ("uint8", "DefaultFormat", "list")
    for name in ("F12_Default", "F16_Other", "F16_Default_Set"):
        assert not hasattr(ops.DataType, name)
    with pytest.raises(ValueError, match="1 inputs and outputs have 2 formats"):
        ops.CustomRegOp().input().dtype_format(("int8", ""), ("int8", ""))
    with pytest.raises(ValueError, match="no pair of dtype and format"):
        ops.CustomRegOp().input().dtype_format(("int8",))
    with pytest.raises(TypeError, match="index must be an int or None"):
        ops.CustomRegOp().input("x")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="op_name cannot be ' '"):
        ops.CustomRegOp(" ")


def test_operators_of_generated_files() -> None:
    x = Tensor(np.arange(6.0, dtype=np.float32).reshape(2, 3))
    index = Tensor([[0, 1], [1, 2]])
    assert Scatter()(x, 1, index, ops.full((2, 2), 5.0)).asnumpy().tolist() == [
        [5, 5, 2], [3, 5, 5],
    ]  # fmt: skip
    x, dy = ops.ones((2, 4)), ops.full((2, 2), 2.0)
    want = ms.grad(lambda x: (ops.swiglu(x) * dy).sum())(x)
    assert SwigluGrad()(dy, x).asnumpy() == pytest.approx(want.asnumpy())


def test_four_bits_have_a_name() -> None:
    assert copy.deepcopy(ms.qint4x2) is ms.qint4x2 and str(ms.qint4x2) == "Int4"
    with pytest.raises(TypeError, match="int4 is not a supported dtype"):
        ops.cast(ops.ones(2), ms.qint4x2)
