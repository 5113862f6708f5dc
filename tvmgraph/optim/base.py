"""The base of all optimizers: state, learning rates, weight decay, loss scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.config import get_context
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.notebook import fragment, heading, size, table
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.nn._offered import offered
from tvmgraph.nn.cell import Cell
from tvmgraph.optim._checks import above_zero, boolean, is_number, non_negative, reject
from tvmgraph.optim.groups import IteratorLearningRate, Setting, rate_of, settings_of
from tvmgraph.optim.schedule import LearningRateSchedule

# ---- members of MindSpore's optimizers that subclasses in model zoos read, call or set -----------


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

    @offered
    def group_weight_decay(self) -> list[Any]:
        """The weight decays of groups, times the loss scale unless they are schedules."""
        decays = [s.weight_decay for s in self._settings] if self.is_group else []
        return [d if isinstance(d, Cell) else d * self.loss_scale for d in decays]

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


def _shown(setting: object) -> str:
    """A learning rate or weight decay as people write it."""
    number = setting.item() if isinstance(setting, Tensor) else setting
    return f"{number:.6g}" if isinstance(number, float) else repr(number)


class Optimizer(Members):
    """Base class of optimizers: called with gradients, it changes the parameters.

    Everything it keeps between steps is a Parameter (the step, the learning rate, moments), so it
    is part of a compiled step, saved with checkpoints, and changing the learning rate changes the
    next step without compiling again.

    Args:
        learning_rate: A number; a Tensor; a list with one rate per step; or a
            :class:`LearningRateSchedule`.
        parameters: Parameters, or groups: dicts with ``params`` and optionally ``lr``,
            ``weight_decay`` and ``grad_centralization``; one dict may hold ``order_params``.
        weight_decay: A number, or a Cell of the step. Without groups, parameters whose name
            contains ``beta`` or ``gamma`` do not decay.
        loss_scale: The factor the loss was multiplied by; gradients are divided by it.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        DTypeError: if an argument has the wrong class.
        ArgumentError: if a number is negative or a parameter comes twice.

    Example:
        >>> class Descent(nn.Optimizer):
        ...     def update(self, index, param, gradient, lr):
        ...         ops.assign_sub(param, gradient * lr)
        >>> p = ms.Parameter(Tensor([1.0]), name="p")
        >>> _ = Descent(0.5, [p])((Tensor([1.0]),))
        >>> p.asnumpy()
        array([0.5], dtype=float32)
    """

    parameters: ParameterTuple
    exec_weight_decay = True  # False where an optimizer around this one decays the weights

    def __init__(
        self,
        learning_rate: object,
        parameters: object,
        weight_decay: object = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(auto_prefix=False)
        self.loss_scale = above_zero(self.cls_name, "loss_scale", loss_scale)
        settings, self.is_group = settings_of(
            self.cls_name, parameters, learning_rate, weight_decay
        )
        self.global_step = Parameter(Tensor(np.zeros(1, np.int32)), "global_step")
        self._settings = tuple(settings)
        self.__register_rates(settings)
        for s in settings:
            if s.param.name in self._params:
                reject(ArgumentError, self.cls_name, f"{s.param.name!r} is the name of a Parameter "
                       "of the optimizer and of one that it trains")  # fmt: skip
        self.parameters = ParameterTuple(s.param for s in settings)
        self._parameters = self.parameters
        self.__register(self.parameters)

    def _repr_html_(self) -> str:
        of_state = {id(p): p for p in self.get_parameters()}
        for p in self.parameters:
            of_state.pop(id(p), None)
        groups: dict[tuple[str, str], list[Parameter]] = {}
        for s in self._settings:
            groups.setdefault((_shown(s.lr), _shown(s.weight_decay)), []).append(s.param)
        rows = [
            (rate, decay, len(params), sum(p.size for p in params))
            for (rate, decay), params in groups.items()
        ]
        state = f"{size(sum(p.nbytes for p in of_state.values()))} of state"
        head = heading(self.cls_name, f"{len(self.parameters)} parameters", state)
        return fragment(head + table(("learning rate", "weight decay", "parameters", "elements"),
                                     rows))  # fmt: skip

    def __register(self, params: Sequence[Parameter]) -> None:
        for p in params:
            self.insert_param_to_cell(p.name, p, check_name_contain_dot=False)

    def __register_rates(self, settings: list[Setting]) -> None:
        rates = {id(s.lr): s.lr for s in settings}
        self.dynamic_lr = any(isinstance(r, LearningRateSchedule) for r in rates.values())
        self.is_group_lr = len(rates) > 1
        if not self.is_group_lr:
            self.learning_rate = settings[0].lr
            return
        self.__register([r for r in rates.values() if isinstance(r, Parameter)])
        for i, rate in enumerate(rates.values()):
            if isinstance(rate, Cell):
                setattr(self, f"learning_rate_{i}", rate)
        # not as an attribute of a Cell: `learning_rate` is the name of a Parameter, too
        object.__setattr__(self, "learning_rate", tuple(s.lr for s in settings))

    # ---- for subclasses ---------------------------------------------------------------------

    def new_state(self, prefix: str, init: object = "zeros") -> ParameterTuple:
        """Returns (and registers) one Parameter per trained parameter, named ``prefix.<name>``.

        Args:
            prefix: First part of the names.
            init: An initializer, or a number.
        """
        state = self.parameters.clone(prefix, init)
        for s in state:
            s.of_optimizer = True  # pyright: ignore[reportAttributeAccessIssue]
        self.__register(state)
        return state

    def new_scalars(self, prefix: str, value: float) -> ParameterTuple:
        """Returns (and registers) a 0-d Parameter per trained parameter, named ``prefix<name>``.

        Args:
            prefix: What the names begin with.
            value: Their first value.
        """
        state = ParameterTuple(new_scalar(prefix + p.name, value) for p in self.parameters)
        self.__register(state)
        return state

    def step_count(self) -> Tensor:
        """Returns the number of the running step, from 1, as a 0-d float32 tensor."""
        return F.reshape(F.cast(self.global_step, dtypes.float32), ())

    def begin_step(self) -> None:
        """Called once per step, after the step was counted and before any update."""

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter; every subclass writes its own.

        Args:
            index: Position of the parameter.
            param: The parameter.
            gradient: Its gradient, scaled, decayed and centralized.
            lr: The :meth:`effective_rate` of its learning rate, a 0-d tensor.

        Raises:
            NotImplementedError: in the base class.
        """
        raise NotImplementedError(f"{self.cls_name} needs update(index, param, gradient, lr)")

    def construct(self, gradients: Any) -> bool:
        gradients = self.check_gradients(gradients)
        gradients = self.decay_weight(gradients)
        gradients = self.gradients_centralization(gradients)
        return self.apply_gradients(self.scale_grad(gradients))

    def apply_gradients(self, gradients: Sequence[Tensor]) -> bool:
        """Takes one step along gradients that are scaled and decayed.

        Args:
            gradients: One per parameter, in their order.
        """
        rates = self.rates()
        F.assign_add(self.global_step, 1)
        self.begin_step()
        sizes = {id(rate): self.effective_rate(rate) for rate in rates}
        for i, (p, g) in enumerate(zip(self.parameters, gradients)):
            self.update(i, p, g, sizes[id(rates[i])])
        return True

    def effective_rate(self, rate: Tensor) -> Tensor:
        """Returns what :meth:`update` gets for a learning rate, computed once per step.

        Args:
            rate: The learning rate of a group, a Tensor without axes.
        """
        return rate

    # ---- gradients --------------------------------------------------------------------------

    def check_gradients(self, gradients: object) -> tuple[Tensor, ...]:
        """Returns the gradients as a tuple.

        Args:
            gradients: The gradients; one tensor stands for a tuple of one.

        Raises:
            DTypeError: if they are not a tuple of tensors.
            ShapeError: if their number or a shape does not fit the parameters.
        """
        if isinstance(gradients, Tensor):
            gradients = (gradients,)
        if not isinstance(gradients, (tuple, list)):
            kind = type(gradients).__name__
            reject(DTypeError, self.cls_name, f"gradients must be a tuple of Tensors, not {kind}")
        if len(gradients) != len(self.parameters):
            reject(ShapeError, self.cls_name,
                   "one gradient per parameter is needed",
                   f"{len(gradients)} gradients, {len(self.parameters)} parameters",
                   "differentiate by optimizer.parameters")  # fmt: skip
        for p, g in zip(self.parameters, gradients):
            if not isinstance(g, Tensor):
                rule = f"the gradient of {p.name!r} is a {type(g).__name__}, not a Tensor"
                reject(DTypeError, self.cls_name, rule)
            if g.shape != p.shape:
                reject(ShapeError, self.cls_name,
                       f"the gradient of {p.name!r} must have the parameter's shape",
                       f"gradient={g.aval}, parameter={p.aval}")  # fmt: skip
        return tuple(gradients)

    def decay_weight(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        r"""Adds the weight decay: :math:`g + \lambda w`.

        Args:
            gradients: One per parameter, of the scaled loss.
        """
        result = []
        for i, (p, g, decay) in enumerate(zip(self.parameters, gradients, self.decays())):
            if self.decays_weight(i):
                # the gradient is of the scaled loss, and is divided by the scale afterwards
                g = g + p * (decay * self.loss_scale)
            result.append(g)
        return tuple(result)

    def gradients_centralization(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Removes the mean over all axes but the first where the group asks for it.

        As in MindSpore, that is done where the second axis is a multiple of 16.

        Args:
            gradients: One per parameter.
        """
        return tuple(
            g - F.mean(g, axis=tuple(range(1, g.ndim)), keep_dims=True)
            if s.centralize and g.ndim > 1 and g.shape[1] % 16 == 0 else g
            for s, g in zip(self._settings, gradients)
        )  # fmt: skip

    def scale_grad(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Divides by the loss scale.

        Args:
            gradients: One per parameter, of the scaled loss.
        """
        if self.loss_scale == 1.0:
            return tuple(gradients)
        return tuple(g * (1.0 / self.loss_scale) for g in gradients)

    # ---- rates ------------------------------------------------------------------------------

    def rates(self) -> tuple[Tensor, ...]:
        """Returns the learning rate of every parameter for the coming step."""
        known: dict[int, Tensor] = {}
        for s in self._settings:
            if id(s.lr) not in known:
                known[id(s.lr)] = self.__evaluate(s.lr, self.global_step)
        return tuple(known[id(s.lr)] for s in self._settings)

    def __evaluate(self, rate: object, step: Tensor) -> Any:
        if isinstance(rate, Cell):
            value = rate(step)
            value = value if isinstance(value, Tensor) else Tensor(value, dtypes.float32)
            return F.reshape(value, ())
        return rate

    def decays(self) -> tuple[Any, ...]:
        """Returns the weight decay of every parameter for the coming step."""
        return tuple(self.__evaluate(s.weight_decay, self.global_step) for s in self._settings)

    def running_decay(self, index: int) -> Any:
        """Returns the weight decay of a parameter for the running step, which is counted already.

        Args:
            index: Position of the parameter.
        """
        return self.__evaluate(self._settings[index].weight_decay, self.global_step - 1)

    def decays_weight(self, index: int) -> bool:
        """Whether weight decay applies to a parameter.

        Args:
            index: Number of the parameter.
        """
        s = self._settings[index]
        return (
            self.exec_weight_decay
            and s.decays
            and not (isinstance(s.weight_decay, float) and s.weight_decay == 0.0)
        )

    def get_lr(self) -> tuple[Tensor, ...] | Tensor:
        """Returns the learning rate of the coming step: a 0-d tensor, a tuple with group rates."""
        rates = self.rates()
        return rates if self.is_group_lr else rates[0]

    def get_weight_decay(self) -> Any:
        """Returns the weight decay of the coming step, of the scaled loss as MindSpore's.

        Returns:
            A 0-d tensor; a tuple of them with groups.
        """
        return self._by_group(self.decays())

    def get_lr_parameter(self, param: Any) -> Any:
        """Returns the learning rate (a Parameter or schedule) of one or several parameters.

        That of a list of rates is the Parameter that holds them.

        Args:
            param: A Parameter, or a list of them.

        Raises:
            ArgumentError: if the optimizer does not train it.
        """
        if not isinstance(param, Parameter):
            return [self.get_lr_parameter(p) for p in param]
        for s in self._settings:
            if s.param is param:
                return s.lr.learning_rate if isinstance(s.lr, IteratorLearningRate) else s.lr
        reject(ArgumentError, self.cls_name, f"parameter {param.name!r} is not trained by it")

    def set_lr(self, value: float) -> None:
        """Gives every parameter the same constant learning rate, without compiling again.

        Args:
            value: The learning rate.

        Raises:
            ArgumentError: if the rate follows a list or schedule.
        """
        for s in self._settings:
            if not isinstance(s.lr, Parameter):
                reject(ArgumentError, f"{self.cls_name}.set_lr",
                       "the learning rate follows a schedule, so it cannot be set")  # fmt: skip
            s.lr.set_data(Tensor(value, dtypes.float32))


def new_scalar(name: str, value: float, shape: tuple[int, ...] = ()) -> Parameter:
    """Returns a float32 Parameter filled with ``value``.

    Args:
        name: Its name.
        value: What it is filled with.
        shape: Its shape.
    """
    return Parameter(Tensor(np.full(shape, value, np.float32)), name)


__all__ = ["Optimizer"]
