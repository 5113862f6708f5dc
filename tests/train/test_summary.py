"""Event files: what TensorBoard reads of a training run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph.errors import ArgumentError, DTypeError

loader = pytest.importorskip("tensorboardX.record_writer")
events = pytest.importorskip("tensorboardX.proto.event_pb2")


def read(folder: Path) -> list[tuple[int, str, Any]]:
    """Returns step, name and value of everything in the files of a folder."""
    found = []
    for path in folder.glob("events*"):
        data, at = path.read_bytes(), 0
        while at < len(data):
            size = int.from_bytes(data[at : at + 8], "little")
            event = events.Event.FromString(data[at + 12 : at + 12 + size])
            found += [(event.step, v.tag, v) for v in event.summary.value]
            at += size + 16
    return found


class _Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.scalar, self.histogram = ops.ScalarSummary(), ops.HistogramSummary()

    def construct(self, x: Tensor) -> Tensor:
        y = x * 2
        self.scalar("total", y.sum())
        self.histogram("values", y)
        return y


@pytest.mark.parametrize("compiled", [False, True])
def test_what_a_network_records(tmp_path: Path, compiled: bool) -> None:
    net = ms.jit(_Net()) if compiled else _Net()
    with ms.SummaryRecord(str(tmp_path), max_file_size=10**6) as record:
        for step in (1, 2, 3):
            net(Tensor([1.0, step]))
            assert record.record(step)
        assert not record.record(4)
    found = {(s, n): v for s, n, v in read(tmp_path)}
    assert [found[s, "total"].simple_value for s in (1, 2, 3)] == [4.0, 6.0, 8.0]
    assert found[3, "values"].histo.num == 2
    assert found[3, "values"].histo.max == 6.0


def test_values_that_are_added(tmp_path: Path) -> None:
    record = ms.SummaryRecord(str(tmp_path), export_options={"tensor_format": "npy"})
    record.add_value("image", "picture", Tensor(np.ones((2, 3, 4, 4), np.float32)))
    record.add_value("tensor", "matrix", Tensor([[1.0, 2.0]]))
    record.set_mode("eval")
    record.record(7)
    record.close()
    found = {n: v for _, n, v in read(tmp_path)}
    assert found["eval/picture"].image.height == 4
    assert list(found["eval/matrix"].tensor.double_val) == [1.0, 2.0]
    assert np.load(next(tmp_path.rglob("matrix_7.npy"))).tolist() == [[1.0, 2.0]]


def test_collector(tmp_path: Path) -> None:
    data = ms.dataset.NumpySlicesDataset((np.ones((8, 2), np.float32), np.ones((8, 1), np.float32)))
    net = nn.Dense(2, 1)
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    collector = ms.SummaryCollector(str(tmp_path), collect_freq=2)
    model.train(1, data.batch(2), callbacks=[collector])
    found = [(s, n) for s, n, _ in read(tmp_path)]
    assert {s for s, n in found if n == "loss"} == {1, 2, 4}
    assert {(4, "weight"), (4, "learning_rate")} <= set(found)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda r: r.add_value("sound", "a", Tensor(1.0)), ArgumentError),
        (lambda r: r.add_value("scalar", "", Tensor(1.0)), ArgumentError),
        (lambda r: r.add_value("scalar", "a", 1.0), DTypeError),
        (lambda r: r.add_value("scalar", None, Tensor(1.0)), DTypeError),
        (lambda _: ms.SummaryRecord(""), ArgumentError),
        (lambda _: ms.SummaryRecord("x", raise_exception=32), ArgumentError),
        (lambda r: r.record(1.5), DTypeError),
        (lambda _: ms.SummaryCollector("x", collect_freq=0), ArgumentError),
        (lambda _: ms.SummaryCollector("x", collect_specified_data={"loss": True}), ArgumentError),
    ],
)
def test_refused(tmp_path: Path, call: Any, error: type[Exception]) -> None:
    with ms.SummaryRecord(str(tmp_path)) as record, pytest.raises(error):
        call(record)
