"""Cells of one training step: forward, loss, backward and update together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

from tvmgraph import dtypes
from tvmgraph.autodiff import GradOperation, value_and_grad
from tvmgraph.compat import primitives
from tvmgraph.compat.composite import HyperMap
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.distributed.context import settings
from tvmgraph.errors import ArgumentError, DTypeError, either
from tvmgraph.nn._offered import offered
from tvmgraph.nn.cell import Cell
from tvmgraph.optim._checks import above_zero, boolean, positive, reject
from tvmgraph.optim.base import new_scalar
from tvmgraph.optim.reducer import DistributedGradReducer


def _require_cells(op: str, **parts: object) -> None:
    for name, part in parts.items():
        if not isinstance(part, Cell):
            kind = either(DTypeError, AttributeError)  # MindSpore reaches into what it is given
            reject(kind, op, f"{name} must be a Cell, not {type(part).__name__}")


def _as_they_are(gradients: object) -> Any:
    return gradients


class TrainOneStepCell(Cell):
    """Takes one training step: loss, gradients, update.

    Compiled (``ms.jit(step)``, or in GRAPH_MODE) it is one graph with the forward pass, the loss,
    the backward pass, the update and the statistics of batch normalization.

    Args:
        network: A Cell that returns the loss, such as :class:`WithLossCell`.
        optimizer: The optimizer; its parameters are trained.
        sens: Factor on the loss in the backward pass; divided out by the optimizer's
            ``loss_scale``.
        return_grad: Whether the gradients are returned as well.

    Inputs:
        - **inputs** (Tensor) - Inputs of the network.

    Outputs:
        Tensor, the loss; with ``return_grad`` a tuple of loss and a dict of gradients by name.

    Raises:
        DTypeError: if network or optimizer is no Cell.

    Example:
        >>> net = nn.WithLossCell(nn.Dense(3, 2), nn.MSELoss())
        >>> step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))
        >>> step(ops.ones((4, 3)), ops.ones((4, 2))).shape
        ()
    """

    def __init__(
        self, network: Any, optimizer: Any, sens: float | None = None, return_grad: bool = False
    ) -> None:
        super().__init__(auto_prefix=False)
        _require_cells(self.cls_name, network=network, optimizer=optimizer)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.sense_flag = sens is not None
        self.sens = 1.0 if sens is None else above_zero(self.cls_name, "sens", sens)
        self.return_grad = boolean(self.cls_name, "return_grad", return_grad)
        if settings.reduces_gradients:
            self._cells["grad_reducer"] = DistributedGradReducer(self.weights)

    @offered
    def weights(self) -> ParameterTuple:
        """The parameters that are trained."""
        return self.optimizer.parameters

    @property
    def reducer_flag(self) -> bool:
        """Whether gradients of several processes are reduced."""
        return self.grad_reducer is not _as_they_are

    @property
    def degree(self) -> int:
        """Of how many processes."""
        return getattr(self.grad_reducer, "degree", 1)

    @property
    def parallel_mode(self) -> str:
        """How training is shared out."""
        return settings.parallel_mode

    @offered
    def grad(self) -> Any:
        """``grad(network, weights)(*inputs, sens)`` returns the gradients of the weights."""
        return GradOperation(get_by_list=True, sens_param=True)

    @offered
    def grad_no_sens(self) -> GradOperation:
        """``grad_no_sens(network, weights)(*inputs)`` returns the gradients of the weights."""
        return GradOperation(get_by_list=True)

    @offered
    def grad_reducer(self) -> Callable[..., object] | None:
        """``grad_reducer(gradients)`` returns those of all processes."""
        return self._cells.get("grad_reducer", _as_they_are)

    def differentiate(
        self, inputs: tuple[object, ...], scale: object
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Returns the network's result and the gradients of its scaled loss.

        Args:
            inputs: What the network is called with.
            scale: Factor of the loss, ``None`` for 1.
        """

        def scaled(*given: object) -> tuple[object, object]:
            result = self.network(*given)
            loss = result[0] if isinstance(result, (tuple, list)) else result
            return (loss if scale is None else loss * F.cast(scale, loss.dtype)), result

        run = value_and_grad(scaled, None, self.weights, has_aux=True)
        (_, result), gradients = run(*inputs)
        return result, gradients

    def construct(self, *inputs: Any) -> Any:
        scale = Tensor(self.sens, dtypes.float32) if self.sense_flag else None
        loss, gradients = self.differentiate(inputs, scale)
        gradients = self.grad_reducer(gradients)
        self.optimizer(gradients)
        if self.return_grad:
            return loss, {p.name: g for p, g in zip(self.weights, gradients)}
        return loss


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """Takes one training step with a loss scale, and skips the update when a gradient overflows.

    Args:
        network: A Cell that returns the loss.
        optimizer: The optimizer; its parameters are trained.
        scale_sense: A 0-d or 1-element Tensor (constant scale), or a cell that adapts it:
            :class:`DynamicLossScaleUpdateCell` or :class:`FixedLossScaleUpdateCell`.

    Inputs:
        - **inputs** (Tensor) - Inputs of the network.

    Outputs:
        Tuple of the loss, whether an overflow happened (bool Tensor), and the scale used.

    Raises:
        DTypeError: if ``scale_sense`` is neither a Tensor nor a Cell.

    Example:
        >>> net = nn.WithLossCell(nn.Dense(3, 2), nn.MSELoss())
        >>> scale = nn.DynamicLossScaleUpdateCell(2.0 ** 10, 2, 1000)
        >>> optimizer = nn.SGD(net.trainable_params(), 0.1)
        >>> step = nn.TrainOneStepWithLossScaleCell(net, optimizer, scale)
        >>> loss, overflow, used = step(ops.ones((4, 3)), ops.ones((4, 2)))
        >>> bool(overflow), float(used)
        (False, 1024.0)
    """

    def __init__(self, network: object, optimizer: object, scale_sense: object) -> None:
        super().__init__(network, optimizer)
        self.loss_scaling_manager = None
        if isinstance(scale_sense, Cell):
            self.loss_scaling_manager = scale_sense
            first = scale_sense.get_loss_scale()  # pyright: ignore[reportCallIssue]
        elif isinstance(scale_sense, Tensor) and scale_sense.size == 1:
            first = float(scale_sense.asnumpy().reshape(()))
        elif isinstance(scale_sense, Tensor):
            reject(ArgumentError, self.cls_name, "scale_sense must have one element",
                   str(scale_sense.aval))  # fmt: skip
        else:
            kind = type(scale_sense).__name__
            reject(DTypeError, self.cls_name, f"scale_sense must be a Tensor or a Cell, not {kind}")
        self.scale_sense = new_scalar("scale_sense", first)

    def set_sense_scale(self, sens: Tensor | float) -> None:
        """Sets the scale.

        Args:
            sens: The scale, one number.
        """
        self.scale_sense.set_data(Tensor(float(sens), dtypes.float32))

    is_distributed = gpu_target = False

    @offered
    def hyper_map(self) -> HyperMap:
        """A function that applies another one to every gradient, ``hyper_map(fn, gradients)``."""
        return HyperMap()

    @offered
    def base(self) -> Tensor:
        """The sum of overflow flags from which on there is an overflow, 1."""
        return Tensor(1.0, dtypes.float32)

    @offered
    def reduce_sum(self) -> Cell:
        """The sum of overflow flags."""
        return primitives.ReduceSum()

    @offered
    def less_equal(self) -> Cell:
        """Compares the sum of overflow flags with :attr:`base`."""
        return primitives.LessEqual()

    def start_overflow_check(
        self, pre_cond: object, compute_input: object
    ) -> tuple[Tensor, object]:
        """Returns what :meth:`get_overflow_status` wants first, and ``compute_input`` as it is.

        Args:
            pre_cond: What must be computed before the check starts.
            compute_input: Input of the computation that is checked.
        """
        return Tensor([0] * 8, dtypes.int32), compute_input

    def get_overflow_status(self, status: object, compute_output: object) -> Tensor:
        """Whether any element of a result is infinite or NaN, bool 0-d.

        Args:
            status: The first result of :meth:`start_overflow_check`.
            compute_output: Tensor or tuple of Tensors.
        """
        checked = (compute_output,) if isinstance(compute_output, Tensor) else compute_output
        return F.logical_not(F.all_finite(checked))

    def process_loss_scale(self, overflow: Tensor) -> Tensor:
        """Adapts the scale to whether there was an overflow, and returns ``overflow``.

        Args:
            overflow: A bool tensor without axes.
        """
        if self.loss_scaling_manager is not None:
            self.loss_scaling_manager(self.scale_sense, overflow)
        return overflow

    def construct(self, *inputs: Any) -> Any:
        scale = self.scale_sense.snapshot()
        loss, gradients = self.differentiate(inputs, scale)
        gradients = self.grad_reducer(gradients)
        gradients = tuple(F.cast(g, dtypes.float32) / scale for g in gradients)
        overflow = self.process_loss_scale(self.get_overflow_status(None, gradients))
        update_unless(overflow, self.optimizer, gradients)
        return loss, overflow, scale


def update_unless(overflow: Tensor, optimizer: Cell, gradients: object) -> None:
    """Calls the optimizer, and leaves everything as it was where ``overflow`` is true.

    Args:
        overflow: bool Tensor, 0-d.
        optimizer: The optimizer.
        gradients: One gradient per parameter.
    """
    if state.interpreter is None:
        if not bool(overflow):
            optimizer(gradients)
        return
    params = list(optimizer.get_parameters())
    before = [p.snapshot() for p in params]
    optimizer(gradients)
    for p, old in zip(params, before):
        new = p.snapshot()
        if new.token is not old.token:
            F.assign(p, F.where(overflow, old, new))


class DynamicLossScaleUpdateCell(Cell):
    """Halves a loss scale at an overflow and raises it after a window of good steps.

    Args:
        loss_scale_value: First scale, positive.
        scale_factor: Factor between scales, above 1.
        scale_window: Good steps before the scale grows.

    Inputs:
        - **loss_scale** (Parameter) - The scale, 0-d; changed.
        - **overflow** (Tensor) - Whether the step overflowed, bool.

    Outputs:
        Tensor, ``overflow``.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> cell = nn.DynamicLossScaleUpdateCell(4.0, 2, 2)
        >>> scale = ms.Parameter(Tensor(4.0), name="scale")
        >>> _ = cell(scale, Tensor(True))
        >>> float(scale)
        2.0
    """

    def __init__(self, loss_scale_value: float, scale_factor: float, scale_window: int) -> None:
        super().__init__(auto_prefix=False)
        above_zero(self.cls_name, "loss_scale_value", loss_scale_value)
        self.loss_scale_value = loss_scale_value
        self.scale_factor = above_zero(self.cls_name, "scale_factor", scale_factor)
        if self.scale_factor <= 1:
            reject(ArgumentError, self.cls_name, "scale_factor must be above 1")
        self.scale_window = positive(self.cls_name, "scale_window", scale_window)
        self.minimum_loss_scale = 1.0
        self.cur_iter = Parameter(Tensor(1, dtypes.int32), "current_iterator_step", False)
        self.last_overflow_iter = Parameter(Tensor(0, dtypes.int32), "last_overflow_iterator_step",
                                            False)  # fmt: skip

    def get_loss_scale(self) -> float:
        """Returns the first scale."""
        return self.loss_scale_value

    def construct(self, loss_scale: Parameter, overflow: Tensor) -> Tensor:
        now, last = self.cur_iter.snapshot(), self.last_overflow_iter.snapshot()
        lower = F.maximum(loss_scale * (1.0 / self.scale_factor), self.minimum_loss_scale)
        kept = F.where(overflow, lower, loss_scale)
        due = F.less_equal(Tensor(self.scale_window, dtypes.int32), now - last)
        F.assign(self.last_overflow_iter, F.where(F.logical_or(overflow, due), now, last))
        grows = F.logical_and(due, F.logical_not(overflow))
        F.assign(loss_scale, F.where(grows, kept * float(self.scale_factor), kept))
        F.assign(self.cur_iter, now + 1)
        return overflow


class FixedLossScaleUpdateCell(Cell):
    """Keeps a loss scale as it is.

    Args:
        loss_scale_value: The scale, positive.

    Inputs:
        - **loss_scale** (Parameter) - Not used.
        - **overflow** (Tensor) - Whether the step overflowed, bool.

    Outputs:
        Tensor, ``overflow``.

    Raises:
        ArgumentError: if the scale is not positive.

    Example:
        >>> nn.FixedLossScaleUpdateCell(1024.0).get_loss_scale()
        1024.0
    """

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__(auto_prefix=False)
        above_zero(self.cls_name, "loss_scale_value", loss_scale_value)
        self.loss_scale_value = loss_scale_value

    def get_loss_scale(self) -> float:
        """Returns the scale."""
        return self.loss_scale_value

    def construct(self, loss_scale: object, overflow: Tensor) -> Tensor:
        if not isinstance(overflow, (Tensor, bool)):
            raise DTypeError(f"overflow must be a Tensor, not {type(overflow).__name__}")
        return overflow


class ForwardValueAndGrad(Cell):
    """Computes the loss and its gradients.

    Args:
        network: A Cell or a function that returns the loss.
        weights: Parameters to differentiate by; the network's trainable ones by default.
        get_all: Whether to differentiate by all tensor inputs.
        get_by_list: Whether to differentiate by the weights.
        sens_param: Whether the last input is the cotangent of the loss.

    Inputs:
        - **inputs** (Tensor) - Inputs of the network, and the cotangent with ``sens_param``.

    Outputs:
        Tuple of loss and gradients (of inputs, of weights, or a tuple of both).

    Raises:
        DTypeError: if ``network`` is neither.

    Example:
        >>> net = nn.WithLossCell(nn.Dense(3, 2), nn.MSELoss())
        >>> run = nn.ForwardValueAndGrad(net, get_by_list=True)
        >>> loss, gradients = run(ops.ones((4, 3)), ops.ones((4, 2)))
        >>> [g.shape for g in gradients]
        [(2, 3), (2,)]
    """

    def __init__(
        self,
        network: Any,
        weights: Sequence[Parameter] | None = None,
        get_all: bool = False,
        get_by_list: bool = False,
        sens_param: bool = False,
    ) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(network, (FunctionType, MethodType)):
            _require_cells(self.cls_name, network=network)
        self.network = network
        found = getattr(network, "trainable_params", tuple)() if weights is None else weights
        self.weights = tuple(found)
        self.get_all = boolean(self.cls_name, "get_all", get_all)
        self.get_by_list = boolean(self.cls_name, "get_by_list", get_by_list)
        self.sens_param = boolean(self.cls_name, "sens_param", sens_param)

    def construct(self, *inputs: Any) -> Any:
        sens = None
        if self.sens_param:
            inputs, sens = inputs[:-1], inputs[-1]

        def scaled(*given: object) -> tuple[Any, Any]:
            loss = self.network(*given)
            return (loss if sens is None else loss * sens), loss

        tensors = [i for i, x in enumerate(inputs) if isinstance(x, Tensor)]
        by_inputs = self.get_all or not self.get_by_list
        positions = tuple(tensors if self.get_all else tensors[:1]) if by_inputs else None
        weights = self.weights if self.get_by_list else None
        if not positions and weights is None:
            return self.network(*inputs), ()
        run = value_and_grad(scaled, positions or None, weights, has_aux=True)
        (_, loss), found = run(*inputs)
        if by_inputs and self.get_all and len(tensors) == 1:  # all of one are a tuple, too
            found = ((found[0],), found[1]) if self.get_by_list else (found,)
        return loss, ((), found) if by_inputs and not tensors else found


class ParameterUpdate(Cell):
    """Gives a parameter the value it is called with.

    Args:
        param: The parameter.

    Inputs:
        - **x** (Tensor) - The new value, of the parameter's shape.

    Outputs:
        Tensor, ``x``.

    Raises:
        DTypeError: if ``param`` is no Parameter.

    Example:
        >>> p = ms.Parameter(Tensor([1.0]), name="p")
        >>> _ = nn.ParameterUpdate(p)(Tensor([2.0]))
        >>> p.asnumpy()
        array([2.], dtype=float32)
    """

    def __init__(self, param: Parameter) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(param, Parameter):
            reject(DTypeError, self.cls_name,
                   f"param must be a Parameter, not {type(param).__name__}")  # fmt: skip
        self._param = param

    def construct(self, x: Tensor) -> Tensor:
        F.assign(self._param, x)
        return x


__all__ = [
    "DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell", "ForwardValueAndGrad",
    "ParameterUpdate", "TrainOneStepCell", "TrainOneStepWithLossScaleCell",
]  # fmt: skip
