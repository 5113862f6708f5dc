"""The base of the optimizers: groups of parameters, their settings and learning rates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.nn.cell import Cell
from tvmgraph.optim._checks import fraction, non_negative, reject
from tvmgraph.optim.base import new_scalar

_UNCOUNTED = Tensor(0.0)


class Optimizer(Cell):
    """Base class: called with gradients, it changes the parameters of all groups.

    ``param_groups`` is a list of dicts with ``params``, ``lr`` (a Parameter, so that a new value
    needs no new compilation) and every other setting of the group.

    Args:
        params: Parameters, or groups: dicts with ``params`` and any of the settings.
        defaults: Settings of groups that lack them.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter, over all groups.

    Outputs:
        bool, True.

    Raises:
        DTypeError: if ``params`` holds anything but Parameters.
        ArgumentError: if there are none, or one is in two groups.

    Example:
        >>> from tvmgraph.experimental import optim
        >>> p = ms.Parameter(Tensor([1.0]), name="p")
        >>> _ = optim.SGD([p], lr=0.5)((Tensor([1.0]),))
        >>> p.asnumpy()
        array([0.5], dtype=float32)
    """

    parameters: Any
    step_t: Parameter  # the number of steps, where it is counted
    _counts = False

    def __init__(self, params: object, defaults: dict[str, object]) -> None:
        super().__init__(auto_prefix=False)
        groups = self.__groups(params)
        self.defaults = defaults
        self.state: dict[object, dict[str, object]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self.parameters = ()
        self.lrs: list[Parameter] = []
        self.group_start_id = [0]
        for group in groups:
            self.add_param_group(group)
        self.parameters = ParameterTuple(self.parameters)

    def __groups(self, params: Any) -> list[dict[str, object]]:
        try:
            groups = list(params)
        except TypeError:
            reject(DTypeError, self.cls_name, "params must be an iterable of Parameters or dicts",
                   f"params={params!r}")  # fmt: skip
        if not groups:
            reject(ArgumentError, self.cls_name, "params must not be empty")
        return [dict(g) for g in groups] if isinstance(groups[0], dict) else [{"params": groups}]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group; what it lacks are the defaults.

        Args:
            param_group: Dict with ``params`` and any of the settings.
        """
        if not isinstance(param_group, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            reject(DTypeError, self.cls_name, "a group must be a dict", f"{param_group!r}")
        given = param_group["params"]
        params = [given] if isinstance(given, Parameter) else list(given)
        for p in params:
            if not isinstance(p, Parameter):
                reject(DTypeError, self.cls_name, "only Parameters can be trained", f"{p!r}")
        if {id(p) for p in params} & {id(p) for p in self.parameters}:
            reject(ArgumentError, self.cls_name, "a parameter is in more than one group")
        group = {"params": params, **self.defaults, **param_group} | {"params": params}
        group["lr"] = self.__rate(group["lr"])
        group["weight_decay"] = non_negative(
            self.cls_name, "weight_decay", group.get("weight_decay", 0.0)
        )
        self.lrs.append(group["lr"])
        self.parameters = (*self.parameters, *params)
        self.param_groups.append(group)
        self.group_start_id.append(len(self.parameters))

    def __rate(self, lr: object) -> Parameter:
        value = float(lr.item()) if isinstance(lr, Tensor) else lr
        rate = non_negative(self.cls_name, "lr", value)
        return new_scalar(f"learning_rate_group_{len(self.lrs)}", rate)

    def state_of(self, prefix: str, init: object = "zeros") -> ParameterTuple:
        """Returns a Parameter like each trained one, named ``prefix.<name>``.

        Args:
            prefix: First part of the names.
            init: The first values, as :func:`~tvmgraph.common.initializer.initializer` takes them.
        """
        return ParameterTuple(self.parameters).clone(prefix, init)

    def count_steps(self, name: str = "step_t") -> None:
        """Counts the steps in a Parameter, which checkpoints have where MindSpore's do.

        Args:
            name: Name of the Parameter.
        """
        self.step_t, self._counts = Parameter(Tensor(np.zeros((), np.int32)), name), True

    def scalars_of(self, prefix: str, value: float) -> list[Parameter]:
        """Returns a 0-d Parameter per trained one, named ``prefix<name>``.

        Args:
            prefix: First part of the names.
            value: The first value.
        """
        return [new_scalar(prefix + p.name, value) for p in self.parameters]

    def construct(self, gradients: Sequence[Tensor]) -> bool:
        if not isinstance(gradients, (tuple, list, Tensor)):
            kind = type(gradients).__name__
            reject(DTypeError, self.cls_name, f"gradients must be a tuple of Tensors, not {kind}")
        gradients = (gradients,) if isinstance(gradients, Tensor) else tuple(gradients)
        if len(gradients) != len(self.parameters):
            reject(ArgumentError, self.cls_name, "one gradient per parameter is needed",
                   f"{len(gradients)} gradients, {len(self.parameters)} parameters")  # fmt: skip
        step = _UNCOUNTED
        if self._counts:
            F.assign_add(self.step_t, 1)
            step = F.cast(self.step_t, dtypes.float32)
        for number, group in enumerate(self.param_groups):
            start = self.group_start_id[number]
            for place, param in enumerate(group["params"], start):
                gradient = -gradients[place] if group.get("maximize") else gradients[place]
                gradient = self.decayed(gradient, param, group)
                self.update(place, param, gradient, step, group)
        return True

    def decayed(self, gradient: Tensor, param: Parameter, group: dict[str, object]) -> Tensor:
        """Returns the gradient with the weight decay of its group.

        Args:
            gradient: The gradient, of the shape of the parameter.
            param: The parameter.
            group: Settings of its group.
        """
        decay = group["weight_decay"]
        return gradient + param * decay if decay else gradient

    def update(
        self, index: int, param: Parameter, gradient: Tensor, step: Tensor, group: dict[str, object]
    ) -> None:
        """Changes one parameter; every subclass writes its own, or ``construct``.

        Args:
            index: Position of the parameter.
            param: The parameter.
            gradient: Its gradient, decayed, its sign changed where the group maximizes.
            step: Number of the step, from 1, as a 0-d float32 tensor; 0 unless steps are counted.
            group: Settings of its group.

        Raises:
            NotImplementedError: in the base class.
        """
        raise NotImplementedError(f"{self.cls_name} needs construct(gradients)")

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for number, group in enumerate(self.param_groups):
            text += f"\nParameter Group {number}\n"
            for key in sorted(k for k in group if k != "params"):
                value = group[key]
                shown = str(value.asnumpy()) if isinstance(value, Tensor) else value  # 0.1, float32
                text += f"    {key}: {shown}\n"
        return text + ")"


def check_betas(op: str, betas: Sequence[float]) -> None:
    """Checks two rates of decay.

    Args:
        op: Name of the optimizer in messages.
        betas: Both rates, in [0, 1).

    Raises:
        ArgumentError: if one is outside [0, 1).
    """
    for i, beta in enumerate(betas):
        fraction(op, f"betas[{i}]", beta, "[)")


__all__ = ["Optimizer", "check_betas"]
