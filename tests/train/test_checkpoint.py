"""Checkpoints: round trips, damage, mismatches, other programs' files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, nn
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.train import mindspore_checkpoint
from tvmgraph.train.serialization import (
    CheckpointError,
    load_checkpoint,
    load_param_into_net,
    load_torch,
    save_checkpoint,
)


def make_net() -> nn.SequentialCell:
    return nn.SequentialCell(nn.Dense(3, 4), nn.BatchNorm1d(4), nn.Dense(4, 2))


def values(cell: nn.Cell) -> dict[str, np.ndarray]:
    return {p.name: p.asnumpy().copy() for p in cell.get_parameters()}


def test_round_trip_with_optimizer_state_and_appendix(tmp_path: Path) -> None:
    net = make_net()
    optimizer = nn.Adam(net.trainable_params(), 0.1)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    step.set_train()
    x, y = ms.ops.ones((5, 3)), ms.ops.ones((5, 2))
    for _ in range(3):
        step(x, y)
    file = tmp_path / "deep" / "all"
    save_checkpoint(step, file, append_dict={"epoch": 7, "lr": 0.1, "note": "hallo", "ok": True})
    before = values(step)
    for _ in range(2):
        step(x, y)
    expected = values(step)
    loaded = load_checkpoint(f"{file}.ckpt")
    assert int(loaded["epoch"]) == 7 and loaded["note"] == "hallo" and bool(loaded["ok"])
    assert float(loaded["lr"]) == np.float32(0.1)
    missing, unused = load_param_into_net(step, loaded)
    assert missing == [] and set(unused) == {"epoch", "lr", "note", "ok"}
    for name, value in values(step).items():
        np.testing.assert_array_equal(value, before[name])
    assert int(optimizer.global_step.asnumpy()[0]) == 3
    for _ in range(2):  # continues as if nothing had happened
        step(x, y)
    for name, value in values(step).items():
        np.testing.assert_array_equal(value, expected[name])


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16",
              "float32", "float64"],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)])
def test_every_dtype_and_shape(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    kind = ms.dtypes.dtype_of(dtype)
    array = np.random.default_rng(0).normal(size=shape).astype(kind.numpy)
    save_checkpoint({"x": Tensor(array)}, tmp_path / "x.safetensors", format="safetensors")
    found = load_checkpoint(tmp_path / "x.safetensors")["x"]
    assert found.dtype is kind and found.shape == shape
    np.testing.assert_array_equal(found.asnumpy(), array)


@pytest.mark.parametrize("format", ["ckpt", "safetensors"])
def test_every_truncation_is_an_error_and_names_the_parameter(tmp_path: Path, format: str) -> None:
    file = tmp_path / f"net.{format}"
    net = make_net()
    save_checkpoint(net, file, format=format)
    content = file.read_bytes()
    before = values(net)
    for length in range(0, len(content), 7):
        file.write_bytes(content[:length])
        with pytest.raises(CheckpointError, match="damaged"):
            load_checkpoint(file, net)
    file.write_bytes(content[:-22])
    with pytest.raises(CheckpointError, match="inside parameter '"):
        load_checkpoint(file, net)
    for name, value in values(net).items():
        np.testing.assert_array_equal(value, before[name])
    with pytest.raises(CheckpointError, match="no file"):
        load_checkpoint(tmp_path / "nothing.ckpt")


def test_a_mismatch_changes_nothing() -> None:
    net = make_net()
    before = values(net)
    good = {name: Tensor(v + 1) for name, v in before.items()}
    with pytest.raises(ShapeError, match=r"'2\.bias' has another shape"):
        load_param_into_net(net, {**good, "2.bias": Tensor(np.zeros(5, np.float32))})
    with pytest.raises(DTypeError, match="dtype"):
        load_param_into_net(net, {**good, "2.bias": Tensor(np.zeros(2, np.int32))})
    with pytest.raises(DTypeError, match="dtype"):
        load_param_into_net(net, {**good, "2.bias": Tensor(np.zeros(2))}, strict_load=True)
    for name, value in values(net).items():
        np.testing.assert_array_equal(value, before[name])
    load_param_into_net(net, {**good, "2.bias": Tensor(np.full(2, 0.5))})  # float64 to float32
    np.testing.assert_array_equal(values(net)["2.bias"], [0.5, 0.5])


def test_values_of_a_larger_network_lose_their_prefix() -> None:
    net = make_net()
    saved = {f"network.backbone.{name}": Tensor(v + 1) for name, v in values(net).items()}
    bias = saved.pop("network.backbone.2.bias")
    before = values(net)
    assert load_param_into_net(net, saved, strict_load=True)[1] == list(saved)
    with pytest.warns(UserWarning, match="begin with 'network.backbone.'"):
        missing, unused = load_param_into_net(net, {**saved, "other.2.bias2": bias})
    assert (missing, unused) == (["2.bias"], [*saved, "other.2.bias2"])
    for name, value in values(net).items():
        np.testing.assert_array_equal(value, before[name] + (name != "2.bias"))
    with pytest.warns(UserWarning, match="1 parameters get values whose names begin with 'other.'"):
        load_param_into_net(net, {**net.parameters_dict(), "other.2.bias": bias} | {"2.bias": ""})
    np.testing.assert_array_equal(values(net)["2.bias"], bias.asnumpy())


def test_a_program_with_a_way_of_loading_of_its_own_takes_prefixes_away() -> None:
    from tvmgraph.train.serialization import (  # pyright: ignore[reportPrivateUsage]
        _load_dismatch_prefix_params,
    )

    net, left = make_net(), ["2.weight", "2.bias"]
    with pytest.warns(UserWarning, match="'net.'"):
        _load_dismatch_prefix_params(net, {"net.2.bias": Tensor([7.0, 8.0])}, left, False)
    assert left == ["2.weight"] and values(net)["2.bias"].tolist() == [7, 8]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.ckpt"
    save_checkpoint({"a": Tensor([1.0])}, file)

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save_checkpoint({"a": Tensor([2.0])}, file)
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == ["a.ckpt"]
    assert load_checkpoint(file)["a"].item() == 1.0


def test_what_can_be_saved(tmp_path: Path) -> None:
    p = Parameter(Tensor([1.0]), name="p")
    for thing in ({"p": p}, [p], [{"name": "p", "data": p}]):
        save_checkpoint(thing, tmp_path / "p.ckpt")
        assert list(load_checkpoint(tmp_path / "p.ckpt")) == ["p"]
    with pytest.raises(ArgumentError, match="two parameters"):
        save_checkpoint([p, Parameter(Tensor([2.0]), name="p")], tmp_path / "p")
    with pytest.raises(DTypeError):
        save_checkpoint(3, tmp_path / "p")
    save_checkpoint(make_net(), tmp_path / "n", choice_func=lambda n: n.startswith("0."))
    assert set(load_checkpoint(tmp_path / "n.ckpt")) == {"0.weight", "0.bias"}
    assert load_checkpoint(tmp_path / "n.ckpt", filter_prefix="0.w").keys() == {"0.bias"}
    for nothing in ({"filter_prefix": ["0", "2"]}, {"choice_func": lambda n: n == "x"}):
        with pytest.raises(ArgumentError, match="none of the 2 parameters in the file is wanted"):
            load_checkpoint(tmp_path / "n.ckpt", **nothing)
    for unknown in ({"format": "x"}, {"filter_prefix": ""}, {"specify_prefix": ["0", ""]}):
        with pytest.raises(ArgumentError, match=next(iter(unknown))):
            load_checkpoint(tmp_path / "n.ckpt", **unknown)
    save_checkpoint(make_net(), tmp_path / "n", format="safetensors")
    assert set(load_file(tmp_path / "n.safetensors")) == set(values(make_net()))


#: What MindSpore 2.10 writes for {"w": float32 [[1, 2]], "n": int64 number 3, "b": bool [True]}
#: and a text "note" by append_dict, with crc_check=True.
MINDSPORE = bytes.fromhex(
    "0a1c0a01771217080108021207466c6f617433321a080000803f000000400a160a016e12111205496e7436341a"
    "0803000000000000000a100a0162120b08011204426f6f6c1a01010a250a046e6f7465121d080012037374721a14"
    "68000000610000006c0000006c0000006f0000006372635f6e756d0000000000000269aa4b"
)


def test_a_file_of_mindspore(tmp_path: Path) -> None:
    file = tmp_path / "theirs.ckpt"
    file.write_bytes(MINDSPORE)
    found = load_checkpoint(file)
    assert list(found) == ["w", "n", "b", "note"] and found["note"] == "hallo"
    np.testing.assert_array_equal(found["w"].asnumpy(), np.array([[1, 2]], np.float32))
    assert found["n"].dtype is ms.int64 and found["n"].shape == () and int(found["n"]) == 3
    assert found["b"].asnumpy().tolist() == [True]
    file.write_bytes(MINDSPORE.replace(b"w\x12", b"v\x12"))
    with pytest.raises(CheckpointError, match="its checksum is another"):
        load_checkpoint(file)


def test_every_dtype(tmp_path: Path) -> None:
    """Through MindSpore's format, numbers and empty tensors included."""
    dtypes = [ms.bool_, ms.uint8, ms.int8, ms.int16, ms.int32, ms.int64, ms.float16, ms.bfloat16,
              ms.float32, ms.float64, ms.uint16, ms.uint32, ms.uint64, ms.complex64,
              ms.complex128]  # fmt: skip
    given = {str(d): Tensor(np.arange(6).reshape(2, 3), d) for d in dtypes}
    given |= {"number": Tensor(np.float32(1.5)), "empty": Tensor(np.zeros((0, 2), np.float32))}
    save_checkpoint(given, tmp_path / "all.ckpt")
    found = load_checkpoint(tmp_path / "all.ckpt")
    assert list(found) == list(given)
    for name, tensor in given.items():
        assert found[name].dtype is tensor.dtype and found[name].shape == tensor.shape
        np.testing.assert_array_equal(found[name].asnumpy(), tensor.asnumpy())


def test_large_tensors_are_several_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mindspore_checkpoint, "_SLICE", 64)
    large = np.arange(100, dtype=np.float32)
    save_checkpoint({"a": Tensor(large), "b": Tensor(large[:3])}, tmp_path / "x.ckpt")
    assert (tmp_path / "x.ckpt").read_bytes().count(b"Float32") == 8
    found = load_checkpoint(tmp_path / "x.ckpt")
    np.testing.assert_array_equal(found["a"].asnumpy(), large)
    np.testing.assert_array_equal(found["b"].asnumpy(), large[:3])


def test_files_of_pytorch(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    file = tmp_path / "torch.safetensors"
    theirs = {
        "0.weight": rng.normal(size=(4, 3)), "0.bias": rng.normal(size=4),
        "1.weight": rng.normal(size=4), "1.bias": rng.normal(size=4),
        "1.running_mean": rng.normal(size=4), "1.running_var": rng.uniform(1, 2, 4),
        "out.weight": rng.normal(size=(2, 4)), "out.bias": rng.normal(size=2),
        "extra": np.zeros(1),
    }  # fmt: skip
    theirs = {k: v.astype(np.float32) for k, v in theirs.items()}
    save_file(theirs, file)
    net = make_net()
    with pytest.raises(CheckpointError, match=r"'2\.weight'"):
        load_torch(net, file)
    renamed = {"2.weight": "out.weight", "2.bias": "out.bias"}
    assert load_torch(net, file, renamed) == ([], ["extra"])
    np.testing.assert_array_equal(values(net)["1.moving_variance"], theirs["1.running_var"])
    np.testing.assert_array_equal(values(net)["2.weight"], theirs["out.weight"])
    x = rng.normal(size=(6, 3)).astype(np.float32)
    hidden = x @ theirs["0.weight"].T + theirs["0.bias"]
    scale = theirs["1.weight"] / np.sqrt(theirs["1.running_var"] + 1e-5)
    hidden = (hidden - theirs["1.running_mean"]) * scale + theirs["1.bias"]
    expected = hidden @ theirs["out.weight"].T + theirs["out.bias"]
    np.testing.assert_allclose(net(Tensor(x)).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    conv = nn.Conv1d(2, 3, 5, has_bias=True)
    save_file({"weight": np.ones((3, 2, 5), np.float32), "bias": np.ones(3, np.float32)}, file)
    assert load_torch(conv, file) == ([], [])


def test_names_come_back_in_the_order_they_were_saved_in(tmp_path: Path) -> None:
    net = nn.SequentialCell(nn.Dense(2, 3), nn.BatchNorm1d(3))
    path = tmp_path / "net.ckpt"
    ms.save_checkpoint(net, path, append_dict={"epoch": 1, "note": "x"})
    expected = [p.name for p in net.get_parameters()] + ["epoch", "note"]
    assert list(ms.load_checkpoint(path)) == expected


def test_a_target_network_keeps_its_values_when_the_other_one_trains() -> None:
    net, target = nn.Dense(2, 2, weight_init="ones"), nn.Dense(2, 2)
    ms.load_param_into_net(target, net.parameters_dict())
    optimizer = nn.Adam(net.trainable_params(), 0.1)
    optimizer(ms.grad(lambda x: net(x).sum(), None, optimizer.parameters)(ms.ops.ones((1, 2))))
    assert net.weight.asnumpy().max() < 1 and (target.weight.asnumpy() == 1).all()


@pytest.mark.parametrize("how", [True, "thread", "process"])
def test_files_are_complete_however_they_are_saved(how: bool | str, tmp_path: Path) -> None:
    file = str(tmp_path / "a.ckpt")
    ms.save_checkpoint({"w": Tensor([1.0])}, file, async_save=how)
    assert ms.load_checkpoint(file)["w"].tolist() == [1.0]
    with pytest.raises(ArgumentError, match="'thread' or 'process'"):
        ms.save_checkpoint({"w": Tensor([1.0])}, file, async_save="fiber")


def test_texts_are_chosen_by_name_too(tmp_path: Path) -> None:
    file = str(tmp_path / "net.ckpt")
    ms.save_checkpoint(nn.Dense(2, 2), file, append_dict={"note": "x", "weight_note": "y"})
    assert sorted(ms.load_checkpoint(file, specify_prefix="w")) == ["weight", "weight_note"]
    rest = ms.load_checkpoint(file, filter_prefix="note")
    assert ms.load_param_into_net(nn.Dense(2, 2), rest) == ([], ["weight_note"])


def test_whole_numbers_take_no_fractions() -> None:
    count = ms.Parameter(1, name="count")
    with pytest.raises(DTypeError, match="cannot take a fraction"):
        count.set_data(2.5)
    count.set_data(2)
    assert count.item() == 2
    with pytest.raises(ArgumentError, match="backend must be None or 'lite'"):
        ms.Model(nn.Dense(2, 2)).predict(ms.Tensor([[1.0, 2.0]]), backend="gpu")


def test_arguments_by_position_are_mindspores(tmp_path: Path) -> None:
    net, path = nn.Dense(2, 3), str(tmp_path / "net.ckpt")
    ms.save_checkpoint(net, path, True, False, None, None, "AES-GCM", lambda n: n == "bias", True)
    assert list(ms.load_checkpoint(path)) == ["bias"]
    ms.save_checkpoint(net, path)
    given = (path, None, False, None, None, "AES-GCM")
    assert list(ms.load_checkpoint(*given, "wei")) == ["weight"]
    assert list(ms.load_checkpoint(*given, None, lambda n: n == "bias", True, False)) == ["bias"]
