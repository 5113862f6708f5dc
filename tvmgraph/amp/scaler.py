"""Loss scales: short floats lose small gradients, so the loss is multiplied before."""

from __future__ import annotations

from typing import Any

from tvmgraph import dtypes, ops
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.shown import Shown
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError
from tvmgraph.optim import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell

all_finite = ops.all_finite


def _check(op: str, name: str, value: Any, low: float, whole: bool = False) -> Any:
    number = float(value)
    if not number >= low or (whole and number != int(number)):
        kind = "an int" if whole else "a number"
        raise ArgumentError(f"{name} must be {kind} of at least {low:g}, not {value!r}",
                            op=f"amp.{op}")  # fmt: skip
    return int(number) if whole else value if isinstance(value, int) else number


def _map(function: Any, inputs: object) -> object:
    if isinstance(inputs, (tuple, list)):
        return type(inputs)(_map(function, v) for v in inputs)
    return function(inputs)


class LossScaler(Shown):
    """Base class of scalers: ``scale`` before the gradient, ``unscale`` after, ``adjust``."""

    scale_value: Parameter

    def scale(self, inputs: object) -> Any:
        """Multiplies by the scale.

        Args:
            inputs: Tensor, or (nested) tuple or list of tensors.
        """
        return _map(lambda t: t * F.cast(self.scale_value, t.dtype), inputs)

    def unscale(self, inputs: object) -> object:
        """Divides by the scale.

        Args:
            inputs: Tensor, or (nested) tuple or list of tensors.
        """
        return _map(lambda t: t * F.cast(1.0 / self.scale_value, t.dtype), inputs)

    def adjust(self, grads_finite: object) -> bool:
        """Adapts the scale.

        Args:
            grads_finite: Whether all gradients of the step are finite, bool Tensor.
        """
        raise NotImplementedError


def _scale(value: float) -> Parameter:
    return Parameter(Tensor(value, dtypes.float32), "scale_value", requires_grad=False)


class StaticLossScaler(LossScaler):
    """A constant scale.

    Args:
        scale_value: The scale, at least 1.

    Raises:
        ArgumentError: if it is smaller.

    Example:
        >>> float(ms.amp.StaticLossScaler(8).scale(Tensor(2.0)))
        16.0
    """

    def __init__(self, scale_value: float) -> None:
        self.scale_value = _scale(_check("StaticLossScaler", "scale_value", scale_value, 1))

    def adjust(self, grads_finite: object) -> bool:
        """Leaves the scale alone; returns False.

        Args:
            grads_finite: Left aside.
        """
        return False


class DynamicLossScaler(LossScaler):
    """A scale that shrinks when gradients overflow and grows after a window without.

    It may be used inside a compiled step: scale and counter are parameters of the graph.

    Args:
        scale_value: First scale, at least 1.
        scale_factor: Factor between scales, at least 1.
        scale_window: Steps without overflow before the scale grows.

    Raises:
        ArgumentError: if an argument is smaller than it may be.

    Example:
        >>> scaler = ms.amp.DynamicLossScaler(8, 2, 1)
        >>> scaler.adjust(Tensor(False)), float(scaler.scale_value)
        (True, 4.0)
    """

    def __init__(self, scale_value: float, scale_factor: int, scale_window: int) -> None:
        op = "DynamicLossScaler"
        self.scale_value = _scale(_check(op, "scale_value", scale_value, 1))
        self.scale_factor = float(_check(op, "scale_factor", scale_factor, 1))
        self.scale_window = _check(op, "scale_window", scale_window, 1, whole=True)
        self.counter = Parameter(Tensor(0, dtypes.int32), "counter", requires_grad=False)

    def adjust(self, grads_finite: object) -> bool:
        """Adapts the scale; returns True.

        Args:
            grads_finite: Whether all gradients of the step are finite, bool Tensor.
        """
        fine = grads_finite if isinstance(grads_finite, Tensor) else Tensor(grads_finite)
        scale, counter = self.scale_value, self.counter
        larger = scale * self.scale_factor
        larger = F.where(F.isfinite(larger), larger, scale)
        due = F.equal(counter, self.scale_window - 1)
        good = F.where(due, larger, scale)
        F.assign(scale, F.where(fine, good, F.maximum(scale / self.scale_factor, 1.0)))
        following = F.floor_mod(counter + 1, self.scale_window)
        F.assign(counter, F.where(fine, following, F.zeros_like(following)))
        return True


class LossScaleManager(Shown):
    """Base class of what a :class:`tvmgraph.train.Model` takes as ``loss_scale_manager``."""

    def get_loss_scale(self) -> float:
        """Returns the scale now."""
        raise NotImplementedError

    def get_update_cell(self) -> Any:
        """Returns the cell that adapts the scale, or None."""
        return None


class FixedLossScaleManager(LossScaleManager):
    """A constant scale.

    Args:
        loss_scale: The scale, at least 1.
        drop_overflow_update: Whether steps whose gradients overflow are skipped.

    Raises:
        ArgumentError: if the scale is smaller.

    Example:
        >>> ms.amp.FixedLossScaleManager(1024.0).get_loss_scale()
        1024.0
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        self.loss_scale = _check("FixedLossScaleManager", "loss_scale", loss_scale, 1)
        self.drop_overflow_update = drop_overflow_update

    def get_loss_scale(self) -> float:
        """Returns the scale."""
        return self.loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Whether steps whose gradients overflow are skipped."""
        return self.drop_overflow_update

    def get_update_cell(self) -> Any:
        """Returns a cell that keeps the scale; None if overflows are not looked for."""
        return FixedLossScaleUpdateCell(self.loss_scale) if self.drop_overflow_update else None


class DynamicLossScaleManager(LossScaleManager):
    """A scale that adapts.

    Args:
        init_loss_scale: First scale, at least 1.
        scale_factor: Factor between scales, an integer of at least 2.
        scale_window: Steps without overflow before the scale grows.

    Raises:
        ArgumentError: if an argument is smaller than it may be.

    Example:
        >>> ms.amp.DynamicLossScaleManager().get_loss_scale()
        16777216
    """

    def __init__(
        self, init_loss_scale: float = 2**24, scale_factor: int = 2, scale_window: int = 2000
    ) -> None:
        op = "DynamicLossScaleManager"
        self.loss_scale = _check(op, "init_loss_scale", init_loss_scale, 1)
        self.scale_factor = _check(op, "scale_factor", scale_factor, 2, whole=True)
        self.scale_window = _check(op, "scale_window", scale_window, 1, whole=True)
        self._good = 0  # steps without overflow since the scale changed

    def get_loss_scale(self) -> float:
        """Returns the scale."""
        return self.loss_scale

    def update_loss_scale(self, overflow: bool) -> None:
        """Lowers the scale after an overflow, and raises it after enough steps without one.

        Args:
            overflow: Whether a gradient was infinite or NaN.
        """
        self._good = 0 if overflow else self._good + 1
        if overflow:
            self.loss_scale = max(self.loss_scale / self.scale_factor, 1.0)
        elif self._good == self.scale_window:
            self.loss_scale, self._good = self.loss_scale * self.scale_factor, 0

    def get_drop_overflow_update(self) -> bool:
        """Whether steps whose gradients overflow are skipped: they are."""
        return True

    def get_update_cell(self) -> Any:
        """Returns the cell that adapts the scale."""
        return DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)


__all__ = [
    "DynamicLossScaleManager", "DynamicLossScaler", "FixedLossScaleManager", "LossScaleManager",
    "LossScaler", "StaticLossScaler", "all_finite",
]  # fmt: skip
