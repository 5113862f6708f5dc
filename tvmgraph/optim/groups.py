"""Parameter groups: what a user writes, turned into one setting per parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, TypeOrValueError, either
from tvmgraph.nn.cell import Cell
from tvmgraph.optim._checks import boolean, is_number, non_negative, reject
from tvmgraph.optim.schedule import LearningRateSchedule

_KEYS = ("params", "lr", "weight_decay", "grad_centralization", "order_params")


@dataclass(frozen=True)
class Setting:
    """How one parameter is updated.

    Attributes:
        param: The parameter.
        lr: A 0-d Parameter or a schedule.
        weight_decay: A number, or a Cell of the step.
        decays: Whether weight decay applies.
        centralize: Whether the mean of a convolution's gradient is removed.
    """

    param: Parameter
    lr: Parameter | LearningRateSchedule
    weight_decay: float | Cell
    decays: bool
    centralize: bool


class IteratorLearningRate(LearningRateSchedule):
    """The i-th element of a list at step i; the last one once the list is used up.

    Args:
        rates: A 1-d float32 tensor.
        name: Name of the parameter that holds it.
    """

    def __init__(self, rates: Tensor, name: str) -> None:
        super().__init__(auto_prefix=False)
        self.learning_rate = Parameter(rates, name=name)

    def construct(self, global_step: Tensor) -> Tensor:
        last = F.minimum(global_step, self.learning_rate.shape[0] - 1)
        return F.reshape(F.gather(self.learning_rate, last, 0), ())


def rate_of(op: str, value: object, name: str) -> Parameter | LearningRateSchedule:
    """Turns a learning rate as users give it into a Parameter or a schedule.

    Args:
        op: Name of the optimizer.
        value: The learning rate.
        name: Name of the Parameter.

    Raises:
        DTypeError: if it is none of a number, Tensor, list and schedule.
        ArgumentError: if it is negative, empty or has more than one axis.
    """
    if isinstance(value, LearningRateSchedule):
        return value
    if is_number(value):
        return Parameter(Tensor(non_negative(op, "learning_rate", value), dtypes.float32), name)
    if isinstance(value, Tensor):
        rates = value.asnumpy()
    elif isinstance(value, (np.ndarray, Iterable)) and not isinstance(value, (str, bytes, dict)):
        rates = np.asarray(list(value))
    else:
        reject(TypeOrValueError, op, f"learning_rate cannot be a {type(value).__name__}",
               fix="pass a number, a Tensor, a list or a LearningRateSchedule")  # fmt: skip
    rates = rates.astype(np.float32)
    if rates.ndim > 1 or rates.size == 0:
        reject(ArgumentError, op, "learning_rate must be a number or a list with one per step",
               f"learning_rate has shape {rates.shape}")  # fmt: skip
    if (rates < 0).any():
        reject(ArgumentError, op, "learning_rate must not be negative", f"minimum {rates.min()}")
    tensor = Tensor(rates)
    if rates.ndim == 0:
        return Parameter(tensor, name)
    return IteratorLearningRate(tensor, name)


def decay_of(op: str, value: object) -> float | Cell:
    """Checks a weight decay: a number that is at least 0, or a Cell of the step.

    Args:
        op: Name of the optimizer.
        value: The weight decay.

    Raises:
        DTypeError: if it is something else.
        ArgumentError: if it is negative.
    """
    return value if isinstance(value, Cell) else non_negative(op, "weight_decay", value)


def settings_of(
    op: str, parameters: object, learning_rate: object, weight_decay: object
) -> tuple[list[Setting], bool]:
    """Reads the first argument of an optimizer.

    Args:
        op: Name of the optimizer, for errors.
        parameters: Parameters, or dicts with the keys ``params``, ``lr``, ``weight_decay``,
            ``grad_centralization``; or one dict with ``order_params``.
        learning_rate: What groups without ``lr`` use.
        weight_decay: What groups without ``weight_decay`` use.

    Returns:
        One setting per parameter, and whether the parameters came in groups.

    Raises:
        DTypeError: if an entry is neither Parameter nor dict.
        ArgumentError: if there is none, one comes twice, a group has an unknown key, or lists of
            learning rates differ in length.
    """
    if isinstance(parameters, (Tensor, str, dict)) or not isinstance(parameters, Iterable):
        kind = TypeOrValueError if parameters is None else DTypeError
        reject(kind, op, f"params must be a list, not {type(parameters).__name__}",
               fix="pass net.trainable_params()")  # fmt: skip
    items = list(parameters)
    if not items:
        reject(ArgumentError, op, "params must not be empty", fix="pass net.trainable_params(); "
               "those of Cells in a plain list count if it is an nn.CellList")  # fmt: skip
    default = rate_of(op, learning_rate, "learning_rate")
    decay = decay_of(op, weight_decay)
    members = [p for p in items if isinstance(p, Parameter)]
    if len(members) == len(items):
        found = [
            Setting(p, default, decay, "beta" not in p.name and "gamma" not in p.name, False)
            for p in members
        ]
        return _distinct(op, found), False
    groups = [g for g in items if isinstance(g, dict)]
    if len(groups) < len(items):
        reject(DTypeError, op, "params must hold only Parameters or only dicts",
               ", ".join(sorted({type(p).__name__ for p in items})))  # fmt: skip
    order: Sequence[Parameter] | None = None
    found = []
    for number, group in enumerate(groups):
        _check_group(op, group)
        if "order_params" in group:
            order = list(group["order_params"])
        else:
            found += _read_group(op, group, number, default, decay)
    return _ordered(op, _of_one_length(op, _distinct(op, found)), order), True


def _check_group(op: str, group: Mapping[str, object]) -> None:
    unknown = [k for k in group if k not in _KEYS]
    if unknown:
        reject(either(ArgumentError, KeyError), op, f"a parameter group has no key {unknown[0]!r}",
               fix=f"use {', '.join(_KEYS)}")  # fmt: skip
    if "order_params" in group and len(group) > 1:
        reject(ArgumentError, op, "a group with order_params has no other key", str(list(group)))
    if "order_params" not in group and "params" not in group:
        reject(either(ArgumentError, KeyError), op, "a parameter group needs the key 'params'",
               str(list(group)))  # fmt: skip


def _read_group(
    op: str, group: dict[str, Any], number: int, default: Any, decay: float | Cell
) -> list[Setting]:
    lr = rate_of(op, group["lr"], f"learning_rate_group_{number}") if "lr" in group else default
    own = decay_of(op, group["weight_decay"]) if "weight_decay" in group else decay
    central = boolean(op, "grad_centralization", group.get("grad_centralization", False))
    decays = isinstance(own, Cell) or own > 0
    found = []
    for p in list(group["params"]):
        if not isinstance(p, Parameter):
            reject(DTypeError, op, f"group {number} holds a {type(p).__name__}, not a Parameter")
        found.append(Setting(p, lr, own, decays, central))
    if not found:
        reject(ArgumentError, op, f"group {number} holds no Parameter")
    return found


def _distinct(op: str, settings: list[Setting]) -> list[Setting]:
    seen: set[int] = set()
    for s in settings:
        if id(s.param) in seen:
            reject(either(ArgumentError, RuntimeError), op,
                   f"parameter {s.param.name!r} is given twice")  # fmt: skip
        seen.add(id(s.param))
    return settings


def _of_one_length(op: str, settings: list[Setting]) -> list[Setting]:
    """Makes lists of numbers beside lists: MindSpore's checkpoints and programs have them so."""
    lists = [s.lr.learning_rate for s in settings if isinstance(s.lr, IteratorLearningRate)]
    if len({rates.shape for rates in lists}) > 1:
        reject(ArgumentError, op, "lists of learning rates must have the same length",
               " and ".join(sorted({f"{rates.shape[0]}" for rates in lists})))  # fmt: skip
    if not lists:
        return settings
    made = {
        id(s.lr): IteratorLearningRate(F.broadcast_to(s.lr, lists[0].shape), s.lr.name)
        for s in settings if isinstance(s.lr, Parameter)
    }  # fmt: skip
    return [replace(s, lr=made.get(id(s.lr), s.lr)) for s in settings]


def _ordered(op: str, settings: list[Setting], order: Sequence[Parameter] | None) -> list[Setting]:
    if order is None:
        return settings
    by_id = {id(s.param): s for s in settings}
    if len(order) != len(settings) or any(id(p) not in by_id for p in order):
        reject(ArgumentError, op, "order_params must hold exactly the parameters of the groups",
               f"{len(order)} in order_params, {len(settings)} in groups")  # fmt: skip
    return [by_id[id(p)] for p in order]
