"""The training loop: a real task, callbacks, errors."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.models.resnet import resnet18
from tvmgraph import Tensor, nn, train
from tvmgraph.data import load_digits
from tvmgraph.dataset import NumpySlicesDataset
from tvmgraph.errors import ArgumentError, DTypeError


@pytest.fixture
def graph_mode() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def linear(rows: int = 32, batch: int = 8) -> tuple[train.Model, Any]:
    ms.set_seed(0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 3)).astype(np.float32)
    y = x @ np.array([[1.0], [2.0], [-1.0]], np.float32)
    net = nn.Dense(3, 1)
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    model = train.Model(net, nn.MSELoss(), optimizer, {"mse", "loss", "mae"})
    return model, NumpySlicesDataset({"x": x, "y": y}).batch(batch)


@pytest.mark.slow
def test_lenet_on_the_digits_reaches_98_percent(graph_mode: None) -> None:
    images, labels = load_digits()
    order = np.random.default_rng(1).permutation(len(images))
    x = (images[order, None].astype(np.float32) - 8) / 8
    y = labels[order].astype(np.int32)
    ms.set_seed(1)
    net = nn.SequentialCell(
        nn.Conv2d(1, 16, 3, has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Conv2d(16, 32, 3, has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
        nn.Dense(128, 128), nn.ReLU(), nn.Dropout(p=0.4), nn.Dense(128, 10),
    )  # fmt: skip
    training = NumpySlicesDataset({"x": x[360:], "y": y[360:]}).batch(32, drop_remainder=True)
    test = NumpySlicesDataset({"x": x[:360], "y": y[:360]}, shuffle=False).batch(360)
    steps = training.get_dataset_size()
    rate = nn.cosine_decay_lr(1e-4, 0.08, 25 * steps, 1, 25 * steps)
    optimizer = nn.Momentum(net.trainable_params(), rate, 0.9, weight_decay=1e-4)
    model = train.Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
    model.train(25, training)
    assert model.eval(test)["accuracy"] >= 0.98
    assert net.training is False
    assert model.train_network._graph_mode.compile_count == 1


@pytest.mark.slow
def test_resnet_learns_the_digits(graph_mode: None) -> None:
    images, labels = load_digits()
    order = np.random.default_rng(1).permutation(len(images))
    large = ((images[order].astype(np.float32) - 8) / 8).repeat(4, 1).repeat(4, 2)
    x = np.repeat(large[:, None], 3, 1)
    y = labels[order].astype(np.int32)
    ms.set_seed(1)
    net = resnet18(10)
    training = NumpySlicesDataset({"x": x[360:], "y": y[360:]}).batch(32, drop_remainder=True)
    test = NumpySlicesDataset({"x": x[:360], "y": y[:360]}, shuffle=False).batch(120)
    steps = training.get_dataset_size()
    rate = nn.cosine_decay_lr(1e-4, 0.02, steps, 1, steps)
    optimizer = nn.Momentum(net.trainable_params(), rate, 0.9)
    model = train.Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
    model.train(1, training)
    assert model.eval(test)["accuracy"] >= 0.8
    assert model.train_network._graph_mode.compile_count == 1


def test_fit_keeps_history_and_improves(capsys: pytest.CaptureFixture[str]) -> None:
    model, data = linear()
    history = train.History()
    model.fit(5, data, data, callbacks=[history, train.LossMonitor(2), train.TimeMonitor()])
    assert history.epoch == {"epoch": [1, 2, 3, 4, 5]}
    assert history.history["mse"][-1] < 0.1 * history.history["mse"][0]
    printed = capsys.readouterr().out
    assert "epoch: 1 step: 2, loss is " in printed and "Train epoch time: " in printed
    x = ms.ops.ones((1, 3))
    assert model.predict(x).item() == pytest.approx(2.0, abs=0.5)
    assert set(model.eval(data)) == {"mse", "loss", "mae"}


def test_checkpoints_are_kept_and_continue(tmp_path: Path) -> None:
    model, data = linear()
    config = train.CheckpointConfig(4, keep_checkpoint_max=2, append_info=["epoch_num"])
    saver = train.ModelCheckpoint("net", tmp_path, config)
    model.train(3, data, callbacks=saver)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net-2_4.ckpt", "net-3_4.ckpt"]
    loaded = ms.load_checkpoint(saver.latest_ckpt_file_name)
    assert int(loaded["epoch_num"]) == 3
    other, _ = linear()
    ms.load_param_into_net(other.train_network, loaded)
    assert int(other.optimizer.global_step.asnumpy()[0]) == 12
    np.testing.assert_array_equal(other.network.weight.asnumpy(), model.network.weight.asnumpy())


def test_how_checkpoints_are_named_and_written(tmp_path: Path) -> None:
    model, data = linear()

    def saver(**options: Any) -> train.ModelCheckpoint:
        return train.ModelCheckpoint("net", tmp_path, train.CheckpointConfig(4, **options))

    for format in ("ckpt", "safetensors", "ckpt"):  # what earlier runs left stays
        model.train(1, data, callbacks=saver(format=format))
    names = ["net-1_4.ckpt", "net_1-1_4.safetensors", "net_2-1_4.ckpt"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names
    loaded = ms.load_checkpoint(str(tmp_path / names[1]), format="safetensors")
    assert "weight" in loaded

    class Fails(train.Callback):
        def on_train_step_end(self, run_context: train.RunContext) -> None:
            if run_context.original_args().cur_step_num == 3:
                raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        model.train(1, data, callbacks=[saver(exception_save=True), Fails()])
    assert (tmp_path / "net_3-1_3_breakpoint.ckpt").is_file()
    for wrong in ({"format": "zip"}, {"enc_key": b"0" * 16}, {"remove_redundancy": True}):
        with pytest.raises(ArgumentError):
            train.CheckpointConfig(**wrong)


def test_checkpoints_by_neither_steps_nor_seconds_are_not_saved(tmp_path: Path) -> None:
    model, data = linear()
    for number, steps in enumerate((None, 0)):
        config = train.CheckpointConfig(save_checkpoint_steps=steps, save_checkpoint_seconds=None)
        model.train(1, data, callbacks=train.ModelCheckpoint(f"n{number}", tmp_path, config))
    assert list(tmp_path.iterdir()) == []
    config = train.CheckpointConfig(None, save_checkpoint_seconds=100)
    model.train(1, data, callbacks=train.ModelCheckpoint("net", tmp_path, config))
    assert [p.name for p in tmp_path.iterdir()] == ["net-1_4.ckpt"]
    with pytest.raises(ArgumentError, match="is needed"):
        train.CheckpointConfig(None, keep_checkpoint_max=None)


def test_metrics_get_all_results_of_an_evaluation_network() -> None:
    _, data = linear()
    net = nn.Dense(3, 1, weight_init="ones", bias_init="zeros")

    class Results(nn.Cell):
        def __init__(self, *kinds: str) -> None:
            super().__init__()
            self.net, self.kinds = net, kinds

        def construct(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
            found = self.net(x)
            known = {"x": x, "found": found, "y": y, "loss": (found - y).abs().mean()}
            return tuple(known[kind] for kind in self.kinds)

    def error(kinds: str, metric: Any = None, indexes: Any = None) -> Any:
        names: Any = {"m": metric or train.MAE()}
        model = ms.Model(net, eval_network=Results(*kinds.split()), metrics=names,
                         eval_indexes=indexes)  # fmt: skip
        return model.eval(data)["m"]

    wanted = error("found y")
    assert wanted > 0.1
    assert error("x found y", train.MAE().set_indexes([1, 2])) == wanted
    assert error("y x found", indexes=[1, 0, 2]) == wanted
    assert error("x y found", train.MAE().set_indexes([1, 0]), [0, 1, 2]) == wanted
    for loss in (error("loss y", train.Loss()), error("y x loss", train.Loss(), [2, 0, 1])):
        assert abs(loss - wanted) < 1e-5
    with pytest.raises(ValueError, match="3 results"):
        error("found y", indexes=[0, 1, 2])
    with pytest.raises(ValueError, match="places of loss, output and label"):
        error("found y", indexes=[0, 1])


def test_the_first_epoch_lies_below_the_last_one() -> None:
    model, data = linear()
    for first in (2, 5, -1, 0.5, True):
        with pytest.raises((ValueError, TypeError), match="initial_epoch"):
            model.train(2, data, initial_epoch=first)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", ["F1", "eval_recall", "top_1_accuracy", "dice"])
def test_what_is_no_loss_or_error_is_better_when_it_is_larger(name: str) -> None:
    assert train.EarlyStopping(name).improves(0.5)
    for watch in (train.EarlyStopping(name, min_delta=-0.1), train.ReduceLROnPlateau(name)):
        assert [watch.improves(v) for v in (0.5, 0.4, 0.7)] == [True, False, True]
    for smaller in ("loss", "eval_loss", "mae", "eval_mse", "perplexity"):
        watch = train.EarlyStopping(smaller, min_delta=-0.1)
        assert [watch.improves(v) for v in (0.5, 0.45, 0.3, 0.7)] == [True, False, True, False]


def test_the_first_and_newest_checkpoint_of_some_minutes_stay(tmp_path: Path) -> None:
    model, data = linear()
    config = train.CheckpointConfig(1, keep_checkpoint_max=0, keep_checkpoint_per_n_minutes=5)
    model.train(2, data, callbacks=train.ModelCheckpoint("net", tmp_path, config))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net-1_1.ckpt", "net-2_4.ckpt"]
    assert train.CheckpointConfig(1, keep_checkpoint_max=0).keep_checkpoint_max == 1


def test_training_goes_on_from_a_backup(tmp_path: Path) -> None:
    model, data = linear()

    class Stops(train.Callback):
        def on_train_epoch_begin(self, run_context: train.RunContext) -> None:
            if run_context.original_args().cur_epoch_num == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.train(3, data, callbacks=[train.BackupAndRestore(str(tmp_path)), Stops()])
    reached = model.network.weight.asnumpy().copy()
    other, _ = linear()
    seen: list[np.ndarray] = []
    note = train.LambdaCallback(
        on_train_epoch_begin=lambda _: seen.append(other.network.weight.asnumpy().copy())
    )
    other.train(1, data, callbacks=[train.BackupAndRestore(str(tmp_path), 1), note])
    np.testing.assert_array_equal(seen[0], reached)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ArgumentError, match="save_freq"):
        train.BackupAndRestore(str(tmp_path), "week")


def test_runs_end_when_they_are_asked_to(tmp_path: Path) -> None:
    model, data = linear()
    asked, steps, before = tmp_path / "asked.json", [], signal.getsignal(signal.SIGUSR1)
    asked.write_text('{"GracefulExit": 0}')
    leave = partial(train.OnRequestExit, save_mindir=False, directory=str(tmp_path),
                    config_file=asked, sig=signal.SIGUSR1)  # fmt: skip
    note = train.LambdaCallback(
        on_train_step_begin=lambda c: steps.append(c.original_args().cur_step_num),
        on_train_step_end=lambda _: os.kill(os.getpid(), signal.SIGUSR1) if len(steps) == 2 else 0,
    )
    try:
        model.train(9, data, callbacks=[note, leave()])
        assert steps == [1, 2] and [f.name for f in (tmp_path / "rank_0").iterdir()] == [
            "Net_train.ckpt"]  # fmt: skip
        other, _ = linear()
        asked.write_text('{"GracefulExit": 1}')
        other.train(9, data, callbacks=[leave(save_ckpt=False), note])
        assert len(steps) == 3
        other.eval(data, callbacks=leave())
    finally:
        signal.signal(signal.SIGUSR1, before)
    np.testing.assert_array_equal(other.network.weight.asnumpy(), model.network.weight.asnumpy())
    with pytest.raises(ArgumentError, match="ends a process at once"):
        train.OnRequestExit(sig=signal.SIGKILL)
    with pytest.raises(DTypeError, match="save_ckpt must be of bool"):
        train.OnRequestExit(save_ckpt=1)


def test_what_stopping_and_slowing_print(capsys: pytest.CaptureFixture[str]) -> None:
    model, data = linear()
    slower = train.ReduceLROnPlateau("loss", 0.5, patience=0, verbose=True, min_delta=1e9)
    stop = train.EarlyStopping("loss", min_delta=1e9, patience=0, verbose=True)
    model.fit(3, data, data, callbacks=[stop, slower])
    lines = capsys.readouterr().out.splitlines()
    assert "Epoch 00002: ReduceLROnPlateau reducing learning rate to 0.05." in lines
    assert lines[-1] == "Epoch 00002: early stopping"


def test_early_stopping_restores_the_best_weights() -> None:
    model, data = linear()
    values = iter([3.0, 1.0, 2.0, 2.0, 2.0, 2.0])
    seen: list[np.ndarray] = []

    class Fixed(nn.Metric):
        def clear(self) -> None: ...
        def update(self, *_: Any) -> None: ...
        def eval(self) -> float:
            seen.append(model.network.weight.asnumpy().copy())
            return next(values)

    model.metrics = {"fixed": Fixed()}
    stop = train.EarlyStopping("eval_fixed", 0, 1, mode="min", restore_best_weights=True)
    model.fit(6, data, data, callbacks=stop)
    assert stop.stopped_epoch == 3 and len(seen) == 3
    np.testing.assert_array_equal(model.network.weight.asnumpy(), seen[1])
    with pytest.raises(ArgumentError, match="no metric"):
        model.metrics = {"loss": nn.Loss()}
        model.fit(1, data, data, callbacks=train.EarlyStopping("beauty"))


def test_learning_rates_by_callback() -> None:
    model, data = linear()
    rates: list[float] = []
    note = train.LambdaCallback(
        on_train_step_end=lambda c: rates.append(float(c.original_args().optimizer.get_lr()))
    )
    halve = train.LearningRateScheduler(lambda lr, step: lr * 0.5 if step % 4 == 0 else lr)
    model.train(1, data, callbacks=[halve, note])
    np.testing.assert_allclose(rates, [0.1, 0.1, 0.1, 0.05], rtol=1e-6)
    plateau = train.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=1e9)
    model.train(3, data, callbacks=plateau)
    assert float(model.optimizer.get_lr()) == pytest.approx(0.05 * 0.5**2)
    with pytest.raises(ArgumentError, match="no event"):
        train.LambdaCallback(on_lunch=print)


def test_a_callback_is_entered_and_may_evaluate() -> None:
    model, data = linear()
    seen: list[Any] = []

    class Evaluates(train.Callback):
        def __enter__(self) -> train.Callback:
            seen.append("enter")
            return self

        def __exit__(self, *_: object) -> None:
            seen.append("exit")

        def on_train_begin(self, run_context: Any) -> None:
            super().on_train_begin(run_context)  # what MindSpore's callbacks do

        def begin(self, run_context: Any) -> None:
            seen.append("begin")

        def on_train_step_begin(self, run_context: Any) -> None:
            seen.append(model.train_network.training and model.network.training)

        def on_train_step_end(self, run_context: Any) -> None:
            seen.append(model.network.training)

        def on_train_epoch_end(self, run_context: Any) -> None:
            model.eval(data)

    model.fit(2, data.batch(2), data.batch(2), callbacks=[Evaluates()])
    first = [True, True] * 2
    assert seen[:2] == ["enter", "begin"]
    assert seen.count("enter") == seen.count("exit") == 1
    assert seen[2 : 2 + len(first)] == first
    assert all(seen[i + 1] for i, v in enumerate(seen) if v is False)


def test_progress_bar(capsys: pytest.CaptureFixture[str]) -> None:
    model, data = linear()
    model.train(2, data, callbacks=train.ProgressBar(every=1))
    assert "8/8" in capsys.readouterr().out


def test_graph_mode_compiles_one_step(graph_mode: None) -> None:
    model, data = linear()
    model.train(3, data)
    assert model.train_network._graph_mode.compile_count == 1
    assert model.eval(data)["mse"] < 1.0


@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
def test_amp_levels_train(level: str, graph_mode: None) -> None:
    ms.set_seed(0)
    _, data = linear()
    net = nn.SequentialCell(nn.Dense(3, 16), nn.Tanh(), nn.Dense(16, 1))
    scale = ms.amp.DynamicLossScaleManager(2.0**8, 2, 100)
    model = train.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.05), {"mse"},
                        amp_level=level, loss_scale_manager=scale)  # fmt: skip
    before = model.eval(data)["mse"]
    model.train(8, data)
    assert model.eval(data)["mse"] < 0.2 * before
    assert all(p.dtype == ms.float32 for p in net.get_parameters())


def test_errors_say_what_to_do() -> None:
    model, data = linear()
    for call, kind, text in (
        (lambda: model.train(0, data), ArgumentError, "epoch"),
        (lambda: model.train(1, [1, 2]), DTypeError, "dataset"),
        (lambda: model.train(1, data, callbacks=3), DTypeError, "Callback"),
        (lambda: train.Model(nn.Dense(1, 1)).eval(data), ArgumentError, "metrics"),
        (lambda: train.Model(3), DTypeError, "network"),
        (lambda: train.Model(nn.Dense(1, 1), amp_level="O9"), ArgumentError, "amp_level"),
        (lambda: train.Model(nn.Dense(1, 1), metrics={"beauty"}), ArgumentError, "beauty"),
    ):
        with pytest.raises(kind, match=text):
            call()


class _Seen(train.Callback):
    """Notes the epoch, the step and the first input of every batch."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, float]] = []
        self.batch_nums: set[int] = set()

    def step_end(self, run_context: Any) -> None:
        p = run_context.original_args()
        first = float(p.train_dataset_element[0].asnumpy().flat[0])
        self.steps.append((p.cur_epoch_num, p.cur_step_num, first))
        self.batch_nums.add(p.batch_num)


def _seen(sink: bool, size: int, epochs: int) -> _Seen:
    x = np.repeat(np.arange(3, dtype=np.float32), 2).reshape(6, 1)
    data = NumpySlicesDataset({"x": x, "y": x}, shuffle=False).batch(2)
    net = nn.Dense(1, 1)
    model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
    seen = _Seen()
    model.train(epochs, data, callbacks=seen, dataset_sink_mode=sink, sink_size=size)
    return seen


def test_a_data_set_is_what_does_what_data_sets_do() -> None:
    model, data = linear()

    class Mine:
        create_tuple_iterator = staticmethod(data.create_tuple_iterator)
        get_dataset_size = staticmethod(data.get_dataset_size)
        get_init_step = staticmethod(data.get_init_step)

    before = model.eval(data)["mse"]
    model.train(2, Mine())
    assert model.eval(Mine())["mse"] < before
    with pytest.raises(DTypeError, match="the dataset is a list"):
        model.train(1, [])


def test_sink_size_is_the_length_of_an_epoch() -> None:
    seen = _seen(True, 2, 3)  # an epoch goes on where the last one ended
    assert seen.steps == [
        (1, 1, 0.0),
        (1, 2, 1.0),
        (2, 3, 2.0),
        (2, 4, 0.0),
        (3, 5, 1.0),
        (3, 6, 2.0),
    ]
    assert seen.batch_nums == {2}
    longer = _seen(True, 4, 2)
    assert [first for *_, first in longer.steps] == [0, 1, 2, 0, 1, 2, 0, 1]
    assert _seen(True, -1, 2).steps == _seen(False, 2, 2).steps  # without sinking it does not count
    for size in (0, -2, 1.5, True):
        with pytest.raises((ArgumentError, DTypeError), match="sink_size must be a"):
            _seen(True, size, 1)  # pyright: ignore[reportArgumentType]


def test_a_network_without_an_optimizer_is_called() -> None:
    data = NumpySlicesDataset(np.arange(6, dtype=np.float32), shuffle=False).batch(2)
    seen: list[list[float]] = []

    class Note(train.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            seen.append(run_context.original_args()["net_outputs"].asnumpy().tolist())

    train.Model(nn.ReLU()).train(1, data, Note())
    assert seen == [[0, 1], [2, 3], [4, 5]]


def test_a_run_goes_on_at_a_step() -> None:
    def steps(first: int) -> list[tuple[int, int, float]]:
        ms.dataset.config.set_seed(3)
        data = NumpySlicesDataset(np.arange(8, dtype=np.float32)).batch(2)
        data.set_init_step(first)
        assert data.get_init_step() == first
        seen = _Seen()
        train.Model(nn.ReLU()).train(3, data, seen, initial_epoch=first // 4)
        return seen.steps

    assert len(steps(0)) == 12
    assert steps(6) == steps(0)[6:]


def test_callbacks_as_one() -> None:
    arguments = train.callback._InternalCallbackParam(cur_epoch_num=0)
    arguments.eval_results = {"eval_loss": 1.0}
    assert arguments["eval_results"] == arguments.get("eval_results")
    with pytest.raises(AttributeError, match="nothing"):
        arguments.nothing
    stop = train.EarlyStopping(patience=2)
    with train.callback._CallbackManager([stop, train.LambdaCallback()]) as together:
        context = train.RunContext(arguments)
        together.on_train_begin(context)
        for arguments.cur_epoch_num in range(9):
            together.on_train_epoch_end(context)
            if context.get_stop_requested():
                break
    assert arguments.cur_epoch_num == stop.stopped_epoch == 2


@pytest.mark.parametrize(
    ("rest", "rates"), [(0, [1, 1, 3, 3, 5]), (1, [1, 1, 3, 3, 5]), (2, [1, 1, 3, 3, 3])]
)
def test_a_lowered_rate_rests(rest: int, rates: list[int]) -> None:
    net = nn.Dense(1, 1)
    arguments = train.callback._InternalCallbackParam(eval_results={"eval_loss": 1.0})
    arguments.optimizer = nn.SGD(net.trainable_params(), 1.0)
    lower = train.ReduceLROnPlateau(factor=0.1, patience=2, cooldown=rest)
    lower.on_train_begin(context := train.RunContext(arguments))
    found = []
    for arguments.cur_epoch_num in range(5):
        lower.on_train_epoch_end(context)
        found.append(1 - 2 * round(np.log10(arguments.optimizer.learning_rate.item())))
    assert found == rates


def test_callbacks_see_the_values_of_metrics() -> None:
    model, data = linear()
    seen: list[dict[str, float]] = []

    class Look(train.Callback):
        """Looks at the arguments of evaluation and of training epochs."""

        def on_eval_end(self, run_context: train.RunContext) -> None:
            seen.append(dict(run_context.original_args().metrics))

        def on_train_epoch_end(self, run_context: train.RunContext) -> None:
            seen.append(dict(run_context.original_args().metrics))

    assert seen == [] and [model.eval(data, callbacks=[Look()])] == seen
    seen.clear()
    model.fit(1, data, data, callbacks=[Look()])
    assert len(seen) == 2 and seen[0] == seen[1] and set(seen[0]) == {"mse", "loss", "mae"}


ROWS = [(1, 2), (3, 4)]
OFFERED = {
    "Model": (lambda **o: ms.Model(nn.Dense(2, 1), **o), "keep_batchnorm_fp32"),
    "build_train_network": (
        lambda **o: ms.amp.build_train_network(
            (net := nn.Dense(2, 1)), nn.SGD(net.trainable_params()), nn.MSELoss(), **o
        ),
        "cast_model_type",
    ),
    "CheckpointConfig": (train.CheckpointConfig, "crc_check"),
    "GeneratorDataset": (
        lambda **o: ms.dataset.GeneratorDataset(ROWS, ["a", "b"], **o), "max_rowsize",
    ),
    "batch": (
        lambda **o: ms.dataset.GeneratorDataset(ROWS, ["a", "b"]).batch(2, **o), "max_rowsize",
    ),
    "map": (
        lambda **o: ms.dataset.GeneratorDataset(ROWS, ["a", "b"]).map(lambda a: a, **o), "offload",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OFFERED)
def test_an_argument_that_does_not_exist_is_named(name: str) -> None:
    make, kept = OFFERED[name]
    make(**{kept: True})
    make(cache=None)
    with pytest.raises(ArgumentError, match="there is no argument 'shufle'") as e:
        make(shufle=True)
    assert isinstance(e.value, TypeError) and e.value.op == name


def test_a_checkpoint_is_not_read_with_a_key(tmp_path: Path) -> None:
    path = str(tmp_path / "a.ckpt")
    ms.save_checkpoint({"a": ms.Tensor([1.0])}, path)
    assert list(ms.load_checkpoint(path, dec_mode="AES-GCM", crc_check=True)) == ["a"]
    with pytest.raises(ArgumentError, match="dec_key"):
        ms.load_checkpoint(path, dec_key=b"0123456789abcdef")
    with pytest.raises(TypeError):
        ms.load_param_into_net(nn.Dense(2, 1), {}, strict=True)  # pyright: ignore[reportCallIssue]
