"""Members of MindSpore's optimizers that subclasses in model zoos read, call or set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.config import get_context
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.op import F
from tvmgraph.core.parameter import ParameterTuple
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.nn._offered import offered
from tvmgraph.nn.cell import Cell
from tvmgraph.optim._checks import boolean, is_number, non_negative, reject
from tvmgraph.optim.groups import rate_of


class Members(Cell):
    """What subclasses find beside what :class:`.Optimizer` needs itself."""

    parameters: ParameterTuple
    loss_scale: float
    dynamic_lr: bool
    is_group: bool
    is_group_lr: bool
    learning_rate: object
    _settings: tuple[Any, ...]

    unique = True  # gradients are never sparse
    use_parallel = False
    param_rank = None
    is_group_params_ordered = True

    # ---- attributes -------------------------------------------------------------------------

    params = offered(lambda self: self.parameters)
    param_length = parameter_length = offered(lambda self: len(self.parameters))
    cache_enable = ps_parameters = offered(lambda self: (False,) * len(self.parameters))
    optim_filter = offered(lambda self: (True,) * len(self.parameters))
    grad_centralization = offered(lambda self: any(s.centralize for s in self._settings))
    group_params = offered(lambda self: list(self.parameters) if self.is_group else [])
    group_lr = offered(lambda self: [s.lr for s in self._settings] if self.is_group_lr else [])
    group_weight_decay = offered(
        lambda self: (
            [
                s.weight_decay
                if isinstance(s.weight_decay, Cell)
                else s.weight_decay * self.loss_scale
                for s in self._settings
            ]
            if self.is_group
            else []
        )
    )
    group_grad_centralization = offered(
        lambda self: [s.centralize for s in self._settings] if self.is_group else []
    )
    decay_flags = offered(lambda self: tuple(s.decays for s in self._settings))
    dynamic_decay_flags = offered(
        lambda self: tuple(isinstance(s.weight_decay, Cell) for s in self._settings)
    )
    dynamic_weight_decay = offered(lambda self: any(self.dynamic_decay_flags))
    need_scale = offered(lambda self: self.loss_scale != 1.0)
    reciprocal_scale = offered(lambda self: 1.0 / self.loss_scale)
    target = offered(lambda self: get_context("device_target"))
    map_ = offered(lambda _: F.Map())
    map_reverse = offered(lambda _: F.Map(reverse=True))
    hyper_map = offered(lambda _: F.HyperMap())
    hyper_map_reverse = offered(lambda _: F.HyperMap(reverse=True))
    assign = offered(lambda _: F.Assign())
    assignadd = offered(lambda _: F.AssignAdd())
    #: What each step adds to ``global_step``: 1.
    global_step_increase_tensor = offered(lambda _: Tensor(np.ones(1, np.int32)))

    @offered
    def weight_decay(self) -> Any:
        """The weight decay of the scaled loss, a 0-d tensor or a Cell; a tuple with groups."""
        return self._by_group(s.weight_decay for s in self._settings)

    def _by_group(self, decays: Iterable[Any]) -> Any:
        """Weight decays as optimizers use them before they divide by the loss scale."""
        found = tuple(
            d if isinstance(d, Cell)
            else d * self.loss_scale if isinstance(d, Tensor)
            else Tensor(d * self.loss_scale, dtypes.float32) for d in decays
        )  # fmt: skip
        return found if self.is_group else found[0]

    # ---- methods ----------------------------------------------------------------------------

    def flatten_gradients(self, gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        """Returns the gradients as they are: parameters are not flattened here.

        Args:
            gradients: One per parameter.
        """
        return gradients

    def _grad_sparse_indices_deduplicate(self, gradients: object) -> object:
        return gradients

    def _is_dynamic_lr_or_weight_decay(self) -> bool:
        return self.dynamic_lr or self.dynamic_weight_decay

    def _preprocess_single_lr(self, learning_rate: NumberLike) -> object:
        """Returns a learning rate as a number, a float32 tensor or a schedule."""
        found = rate_of(type(self).__name__, learning_rate, "learning_rate")
        if is_number(learning_rate):
            return float(learning_rate)
        self.dynamic_lr = self.dynamic_lr or isinstance(found, Cell)
        return found

    def _build_single_lr(self, learning_rate: object, name: str) -> object:
        """Returns a learning rate as a Parameter called ``name``, or a schedule."""
        return rate_of(type(self).__name__, learning_rate, name)

    _get_single_lr = _preprocess_single_lr

    def _preprocess_weight_decay(self, weight_decay: object) -> Cell | float:
        """Returns a weight decay for gradients of the scaled loss."""
        if isinstance(weight_decay, Cell):
            return weight_decay
        return non_negative(type(self).__name__, "weight_decay", weight_decay) * self.loss_scale

    def _preprocess_grad_centralization(self, grad_centralization: object) -> bool:
        return boolean(type(self).__name__, "grad_centralization", grad_centralization)

    def _parameters_base_check(self, parameters: object, param_info: str) -> list[object]:
        """Returns parameters as a list that is not empty."""
        if not isinstance(parameters, Iterable):
            reject(DTypeError, type(self).__name__, f"{param_info} must be parameters")
        if not (found := list(parameters)):
            reject(ArgumentError, type(self).__name__, f"{param_info} must not be empty")
        return found

    def _set_base_target(self, value: str) -> None:
        """Checks that an optimizer is to run where everything runs."""
        if value not in ("CPU", "GPU", "Ascend") or value != self.target:
            reject(ArgumentError, type(self).__name__,
                   f"target is {value!r}, but everything runs on {self.target!r}",
                   "use set_device before")  # fmt: skip

    def broadcast_params(self, optim_result: object) -> object:
        """Returns the result of an update: there are no other devices that need parameters.

        Args:
            optim_result: The result.
        """
        return optim_result


__all__ = ["Members"]
