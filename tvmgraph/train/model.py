"""Model: the training loop."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeGuard

from tvmgraph.amp import build_train_network
from tvmgraph.amp.levels import LEVELS
from tvmgraph.compat.paths import as_package
from tvmgraph.core.arguments import is_sequence
from tvmgraph.core.shown import Shown
from tvmgraph.core.tensor import Tensor
from tvmgraph.dataset.base import Dataset
from tvmgraph.distributed.context import settings
from tvmgraph.errors import ArgumentError, DTypeError, either, reject, require_offered
from tvmgraph.nn.cell import Cell
from tvmgraph.nn.wrap import WithEvalCell, WithLossCell
from tvmgraph.train.callback.base import Callbacks, RunArguments, RunContext
from tvmgraph.train.metrics.basic import Loss
from tvmgraph.train.metrics.more import metrics_of
from tvmgraph.train.parallel import AutoParallel, Shared, begin

#: What a data set, be it somebody else's, must have.
_METHODS = ("create_tuple_iterator", "get_dataset_size", "get_init_step")


class Model(Shown):
    """Trains, evaluates and applies a network.

    In GRAPH_MODE a training step (forward, loss, backward, update, batch statistics) is one
    compiled graph, and so is a step of evaluation; in PYNATIVE_MODE everything runs eagerly.

    Args:
        network: The network.
        loss_fn: The loss, of output and label; None if the network returns it.
        optimizer: What updates the parameters; without one :meth:`train` calls the network, which
            may hold its own, and its loss.
        metrics: Names such as ``{"accuracy"}``, or a dict of metrics by name.
        eval_network: Returns (loss, output, label) in place of the built one.
        eval_indexes: Where loss, output and label are in what ``eval_network`` returns. Without
            them its first result is the loss, and metrics get all results.
        amp_level: See :func:`tvmgraph.amp.auto_mixed_precision`.
        boost_level: Kept for MindSpore programs.
        loss_scale_manager: How the loss is scaled, see :mod:`tvmgraph.amp`.
        options: ``keep_batchnorm_fp32`` and ``boost_config_dict``, kept for MindSpore programs.

    Raises:
        DTypeError: if an argument has the wrong class.
        ArgumentError: for an unknown level, metric or argument.

    Example:
        >>> net = nn.Dense(2, 1)
        >>> model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), {"mse"})
        >>> arrays = (np.ones((8, 2), np.float32), np.ones((8, 1), np.float32))
        >>> rows = ms.dataset.NumpySlicesDataset(arrays, ["x", "y"]).batch(4)
        >>> model.train(5, rows)
        >>> sorted(model.eval(rows))
        ['mse']
    """

    def __init__(
        self,
        network: Cell,
        loss_fn: Callable[..., Tensor] | None = None,
        optimizer: Cell | None = None,
        metrics: object = None,
        eval_network: object = None,
        eval_indexes: list[int] | None = None,
        amp_level: str = "O0",
        boost_level: str = "O0",
        loss_scale_manager: Any = None,
        **options: object,
    ) -> None:
        require_offered("Model", options, ("boost_config_dict", "keep_batchnorm_fp32"))
        if not isinstance(network, Cell):
            reject(DTypeError, "Model", f"network must be a Cell, not {type(network).__name__}")
        if amp_level not in LEVELS:
            kind = ArgumentError if isinstance(amp_level, str) else DTypeError
            reject(kind, "Model", f"amp_level cannot be {amp_level!r}",
                   fix=f"use {', '.join(LEVELS)}")  # fmt: skip
        self.__options = settings
        if isinstance(network, AutoParallel):
            network, self.__options = network.network, network.options
        self.network, self.loss_fn, self.optimizer = network, loss_fn, optimizer
        self.metrics = metrics_of(metrics)
        self.__shared: dict[object, Shared] = {}
        self.eval_indexes = eval_indexes
        self.__places = (0, 1, 2) if eval_network is None else _places(eval_indexes)
        self.train_network: Cell = network if loss_fn is None else WithLossCell(network, loss_fn)
        if optimizer is not None:
            self.train_network = build_train_network(
                network, optimizer, loss_fn, amp_level, loss_scale_manager=loss_scale_manager
            )
        self.__trains = True
        self.eval_network: Any = eval_network
        if eval_network is None and loss_fn is not None:
            self.eval_network = WithEvalCell(network, loss_fn, add_cast_fp32=amp_level != "O0")

    @property
    def predict_network(self) -> Cell:
        """The network that :meth:`predict` calls."""
        return self.network

    def _training(self) -> Cell:
        return self.train_network

    def _evaluating(self) -> Cell:
        return self.eval_network

    def _set_mode(self, cell: Cell, train: bool) -> None:
        cell.set_train(train)
        self.__trains = train

    def _shared(self, cell: Cell) -> Cell | Shared:
        """The cell itself, or in ``semi_auto_parallel`` as one program over all processes."""
        if not self.__options.one_program:
            return cell
        found = self.__shared.get(cell)
        if found is None:
            found = self.__shared[cell] = Shared(cell, self.__options)
        return found

    # ---- training ---------------------------------------------------------------------------

    def train(
        self,
        epoch: int,
        train_dataset: object,
        callbacks: object = None,
        dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        """Trains.

        Args:
            epoch: Number of the last epoch.
            train_dataset: Batches; the columns are the inputs of network and loss.
            callbacks: A Callback or a list of them.
            dataset_sink_mode: Whether ``sink_size`` counts; a thread prepares batches anyway.
            sink_size: Batches per epoch: an epoch goes on where the last one ended, and the dataset
                starts again when it is over. With -1 an epoch is the whole dataset.
            initial_epoch: Epochs that are over already.

        Raises:
            ArgumentError: if ``epoch`` is not positive, ``initial_epoch`` not from 0 to below it,
                or ``sink_size`` neither positive nor -1.
            DTypeError: if ``train_dataset`` is no dataset.
        """
        size = _sink_size("Model.train", dataset_sink_mode, sink_size)
        self._loop(epoch, train_dataset, None, 1, callbacks, initial_epoch, size)

    def fit(
        self,
        epoch: int,
        train_dataset: object,
        valid_dataset: object = None,
        valid_frequency: object = 1,
        callbacks: object = None,
        dataset_sink_mode: bool = False,
        valid_dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        """Trains and evaluates in turn.

        Args:
            epoch: Number of the last epoch.
            train_dataset: Batches to train with.
            valid_dataset: Batches to evaluate with.
            valid_frequency: Every how many epochs, or a list of epochs.
            callbacks: A Callback or a list of them; they see the results as ``eval_results``
                and ``metrics``.
            dataset_sink_mode: As in :meth:`train`.
            valid_dataset_sink_mode: Kept for MindSpore programs.
            sink_size: As in :meth:`train`.
            initial_epoch: Epochs that are over already.

        Raises:
            ArgumentError: as :meth:`train`.
        """
        size = _sink_size("Model.fit", dataset_sink_mode, sink_size)
        self._loop(
            epoch, train_dataset, valid_dataset, valid_frequency, callbacks, initial_epoch, size
        )

    def _loop(
        self, epochs: int, data: Any, valid: object, frequency: Any, callbacks: object, done: int,
        size: int | None,
    ) -> None:  # fmt: skip
        _check_epochs(epochs, done)
        hooks = Callbacks(callbacks)
        begin(self.train_network)
        p = self._parameters("train", data, hooks, epochs)
        p.cur_epoch_num, p.valid_dataset = done, valid
        p.dataset_sink_mode = size is not None
        over = data.get_init_step() % max(1, p.batch_num)
        p.batch_num = size or p.batch_num
        p.cur_step_num = done * p.batch_num + over
        context = RunContext(p)
        self._set_mode(self._training(), True)
        batches = _epochs_of(data, epochs - done, size)
        with hooks.around("train", "", context):
            while p.cur_epoch_num < epochs and not context.stop_requested:
                p.cur_epoch_num += 1
                p.metrics = p.eval_results = {}
                hooks.call("train", "epoch_begin", context)
                self._epoch(next(batches), p, context, hooks)
                every = isinstance(frequency, int) and p.cur_epoch_num % frequency == 0
                listed = not isinstance(frequency, int) and p.cur_epoch_num in frequency
                if valid is not None and (every or listed):
                    p.metrics = p.eval_results = self.eval(valid, hooks)
                hooks.call("train", "epoch_end", context)

    def _epoch(self, batches: Any, p: RunArguments, context: RunContext, hooks: Callbacks) -> None:
        for batch in batches:
            p.cur_step_num += 1
            p.train_dataset_element = batch
            hooks.call("train", "step_begin", context)
            if not self.__trains:  # a callback has evaluated or predicted
                self._set_mode(self._training(), True)
            p.net_outputs = self._shared(self.train_network)(*batch)
            hooks.call("train", "step_end", context)
            if context.stop_requested:
                return

    def _parameters(self, mode: str, data: object, hooks: Callbacks, epochs: int) -> RunArguments:
        if not _is_dataset(data):
            fix = "use ms.dataset.NumpySlicesDataset or GeneratorDataset, with .batch(n)"
            reject(either(DTypeError, AttributeError), f"Model.{mode}",
                   f"the dataset is a {type(data).__name__}", fix=fix)  # fmt: skip
        return RunArguments(
            mode=mode, network=self.network, train_network=self.train_network,
            eval_network=self.eval_network, optimizer=self.optimizer, loss_fn=self.loss_fn,
            metrics={}, train_dataset=data, valid_dataset=None,
            batch_num=data.get_dataset_size(), epoch_num=epochs, cur_epoch_num=0, cur_step_num=0,
            net_outputs=None, eval_results={}, list_callback=hooks.items,
            parallel_mode=self.__options.parallel_mode, device_number=1,
            train_dataset_element=None, eval_dataset_element=None, last_save_ckpt_step=None,
            latest_ckpt_file=None, initial_step=0,
        )  # fmt: skip

    # ---- evaluation -------------------------------------------------------------------------

    def eval(
        self, valid_dataset: Any, callbacks: object = None, dataset_sink_mode: bool = False
    ) -> dict[str, object]:
        """Evaluates the metrics.

        Args:
            valid_dataset: Batches; the columns are the inputs of network and loss.
            callbacks: A Callback or a list of them.
            dataset_sink_mode: Kept for MindSpore programs.

        Returns:
            The metrics by name.

        Raises:
            ArgumentError: if there are no metrics, or neither a loss nor an ``eval_network``.
            DTypeError: if ``valid_dataset`` is no dataset.
        """
        if not self.metrics:
            reject(ArgumentError, "Model.eval", "evaluation needs metrics",
                   fix='Model(..., metrics={"accuracy"})')  # fmt: skip
        if self.eval_network is None:
            reject(ArgumentError, "Model.eval", "evaluation needs a loss_fn or an eval_network")
        hooks = Callbacks(callbacks)
        p = self._parameters("eval", valid_dataset, hooks, 1)
        context = RunContext(p)
        self._set_mode(self._evaluating(), False)
        for metric in self.metrics.values():
            metric.clear()
        with hooks.around("eval", "", context), hooks.around("eval", "epoch_", context):
            for batch in valid_dataset.create_tuple_iterator(num_epochs=1):
                p.cur_step_num += 1
                p.eval_dataset_element = batch
                with hooks.around("eval", "step_", context):
                    p.net_outputs = self._shared(self._evaluating())(*batch)
                    self._update_metrics(p.net_outputs)
                if context.get_stop_requested():
                    break
            p.metrics = p.eval_results = {n: m.eval() for n, m in self.metrics.items()}
        return p.eval_results

    def _update_metrics(self, outputs: object) -> None:
        parts = outputs if isinstance(outputs, tuple) else (outputs,)
        loss, *rest = self.__places or (0, *range(len(parts)))
        if self.__places and len(parts) < 3:
            reject(ArgumentError, "Model.eval", "eval_indexes need an eval_network with 3 results",
                   f"{len(parts)} of them", "leave eval_indexes out")  # fmt: skip
        for metric in self.metrics.values():
            alone = isinstance(metric, Loss) and (self.__places or metric.indexes is None)
            metric.update(*[parts[i] for i in ([loss] if alone else rest)])

    def predict(
        self, *predict_data: Tensor, backend: object = None, config: object = None
    ) -> object:
        """Applies the network.

        Args:
            predict_data: Its inputs.
            backend: None or ``"lite"``, which changes nothing here; nor does ``config``.

        Returns:
            What the network returns.

        Raises:
            ArgumentError: if ``backend`` is another one.
        """
        if backend not in (None, "lite"):
            reject(ArgumentError, "Model.predict",
                   f"backend must be None or 'lite', not {backend!r}")  # fmt: skip
        self._set_mode(self.network, False)
        return self.network(*predict_data)

    def build(self, *_: object, **__: object) -> None:
        """Kept for MindSpore programs: compiles at the first call instead.

        Args:
            *_: Left aside, as the keyword arguments are.
        """


__all__ = ["Model"]


def _places(indexes: object) -> Sequence[int] | None:
    """Returns where loss, output and label are; None if metrics get all results."""
    if indexes is not None and not (is_sequence(indexes) and len(indexes) == 3):
        reject(ArgumentError, "Model", "eval_indexes must be the places of loss, output and label, "
               f"not {indexes!r}")  # fmt: skip
    return indexes  # pyright: ignore[reportReturnType]


def _check_epochs(epochs: int, done: int) -> None:
    op = "Model.train"
    for name, value, kind in (("epoch", epochs, "positive"), ("initial_epoch", done, "natural")):
        least = int(kind == "positive")
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            reject(ArgumentError, op, f"{name} must be a {kind} int, not {value!r}")
    if done >= epochs:
        reject(ArgumentError, op, f"initial_epoch {done} must be below epoch {epochs}",
               fix="epoch is the number of the last one")  # fmt: skip


def _sink_size(op: str, sink: bool, size: object) -> int | None:
    """Batches per epoch, or None for the whole dataset."""
    if isinstance(size, bool) or not isinstance(size, int) or (size < 1 and size != -1):
        reject(ArgumentError, op, f"sink_size must be a positive int or -1, not {size!r}",
               fix="-1 takes the whole dataset in every epoch")  # fmt: skip
    return size if sink and size > 0 else None


def _is_dataset(data: object) -> TypeGuard[Dataset]:
    """Whether an object does what data sets do, be it one of the package's or not."""
    return all(hasattr(data, method) for method in _METHODS)


def _epochs_of(data: Dataset, epochs: int, size: int | None) -> Iterator[Iterable[object]]:
    """Yields the batches of each epoch.

    Args:
        data: The dataset.
        epochs: How many.
        size: Batches per epoch, which go on from one epoch to the next; None for all of them.
    """
    if epochs < 1:
        return
    passes = epochs
    if size is not None:
        passes = math.ceil(epochs * size / max(1, data.get_dataset_size()))
    batches = data.create_tuple_iterator(num_epochs=passes)
    endless = itertools.chain.from_iterable(batches for _ in range(passes))
    for _ in range(epochs):
        yield batches if size is None else itertools.islice(endless, size)


__path__, __getattr__ = as_package(__name__, "compat.parallel")  # a package in MindSpore
