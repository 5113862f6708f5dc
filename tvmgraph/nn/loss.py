"""Regression and probability losses, and the base class of all losses."""

from __future__ import annotations

from tvmgraph import dtypes
from tvmgraph.compat.paths import as_package
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError, ShapeError
from tvmgraph.nn._checks import boolean, choice, real, reject
from tvmgraph.nn.cell import Cell

REDUCTIONS = ("mean", "sum", "none")


def same_shapes(op: str, **tensors: Tensor) -> None:
    """Makes sure that all tensors have one shape.

    Args:
        op: Name of the loss.
        **tensors: The tensors by the names of the arguments.

    Raises:
        ShapeError: if they do not.
    """
    if len({t.shape for t in tensors.values()}) > 1:
        got = ", ".join(f"{name}={t.aval}" for name, t in tensors.items())
        reject(ShapeError, op, f"{' and '.join(tensors)} must have the same shape", got)


def optional_tensor(op: str, name: str, value: object) -> Tensor | None:
    """Returns a Tensor or None.

    Args:
        op: Name of the loss.
        name: Name of the argument.
        value: What was given.

    Raises:
        DTypeError: if it is something else.
    """
    if value is not None and not isinstance(value, Tensor):
        reject(DTypeError, op, f"{name} must be a Tensor or None, not {type(value).__name__}")
    return value


class LossBase(Cell):
    r"""Base class of losses: knows the reduction and applies it in :meth:`get_loss`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ArgumentError: if ``reduction`` is unknown.

    Example:
        >>> class Absolute(nn.LossBase):
        ...     def construct(self, logits, labels):
        ...         return self.get_loss((logits - labels).abs())
        >>> float(Absolute("sum")(Tensor([1.0, 2.0]), Tensor([0.0, 0.0])))
        3.0
    """

    _reductions: tuple[str, ...] = REDUCTIONS

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = choice(type(self).__name__, "reduction", reduction, self._reductions)

    def get_axis(self, x: Tensor) -> tuple[int, ...]:
        """Returns all axes of ``x``.

        Args:
            x: The loss of every element.
        """
        return tuple(range(x.ndim))

    def get_loss(self, x: Tensor, weights: object = 1.0) -> Tensor:
        """Weights the elements and reduces them.

        Args:
            x: Element losses.
            weights: A number, or a tensor that broadcasts to ``x``.
        """
        kind = x.dtype
        x = F.cast(x, dtypes.float32) * weights
        if self.reduction == "mean":
            x = F.mean(x)
        elif self.reduction == "sum":
            x = F.sum(x)
        return F.cast(x, kind)


_Loss = LossBase  # its name in MindSpore 1.x, which model zoos subclass


class L1Loss(LossBase):
    r"""Mean absolute error: :math:`|x - y|`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **logits** (Tensor) - Any shape.
        - **labels** (Tensor) - A shape that broadcasts with it.

    Outputs:
        A 0-d tensor, or the element losses for ``"none"``.

    Raises:
        ArgumentError: if ``reduction`` is unknown.

    Example:
        >>> float(nn.L1Loss()(Tensor([1.0, 3.0]), Tensor([0.0, 0.0])))
        2.0
    """

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.l1_loss(logits, labels, self.reduction)


class MSELoss(LossBase):
    r"""Mean squared error: :math:`(x - y)^2`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **logits** (Tensor) - Any shape.
        - **labels** (Tensor) - A shape that broadcasts with it.

    Outputs:
        A 0-d tensor, or the element losses for ``"none"``.

    Raises:
        ArgumentError: if ``reduction`` is unknown.

    Example:
        >>> float(nn.MSELoss()(Tensor([1.0, 3.0]), Tensor([0.0, 0.0])))
        5.0
    """

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.mse_loss(logits, labels, self.reduction)


class MAELoss(LossBase):
    r"""Mean absolute error: :math:`|x - y|`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **logits** (Tensor) - Any shape.
        - **label** (Tensor) - A shape that broadcasts with it.

    Outputs:
        A 0-d tensor, or the element losses for ``"none"``.

    Raises:
        ArgumentError: if ``reduction`` is unknown.

    Example:
        >>> float(nn.MAELoss()(Tensor([1.0, 3.0]), Tensor([0.0, 0.0])))
        2.0
    """

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        return self.get_loss(F.abs(logits - label))


class RMSELoss(LossBase):
    r"""Root of the mean squared error: :math:`\sqrt{mean((x - y)^2)}`.

    Inputs:
        - **logits** (Tensor) - Any shape.
        - **label** (Tensor) - A shape that broadcasts with it.

    Outputs:
        A 0-d tensor.

    Example:
        >>> float(nn.RMSELoss()(Tensor([3.0]), Tensor([0.0])))
        3.0
    """

    def __init__(self) -> None:
        super().__init__()

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        return F.sqrt(F.mse_loss(logits, label, "mean"))


class SmoothL1Loss(LossBase):
    r"""Smooth absolute error: :math:`d^2 / (2 \beta)` if :math:`d < \beta`, else
    :math:`d - \beta / 2`, with :math:`d = |x - y|`.

    Args:
        beta: Where the quadratic part ends; positive.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **logits** (Tensor) - Any shape.
        - **labels** (Tensor) - The same shape.

    Outputs:
        The element losses, or a 0-d tensor for ``"mean"`` and ``"sum"``.

    Raises:
        ArgumentError: if an argument is out of range.
        ShapeError: if the shapes differ.

    Example:
        >>> nn.SmoothL1Loss()(Tensor([2.0]), Tensor([0.0])).asnumpy().tolist()
        [1.5]
    """

    def __init__(self, beta: float = 1.0, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.beta = float(real("SmoothL1Loss", "beta", beta, 0, bounds="(]"))

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        same_shapes("SmoothL1Loss", logits=logits, labels=labels)
        return F.smooth_l1_loss(logits, labels, self.beta, self.reduction)


class HuberLoss(LossBase):
    r"""Huber loss: :math:`d^2 / 2` if :math:`d \le \delta`, else :math:`\delta (d - \delta / 2)`,
    with :math:`d = |x - y|`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        delta: Where the quadratic part ends; positive.

    Inputs:
        - **logits** (Tensor) - Any shape.
        - **labels** (Tensor) - A shape that broadcasts with it.

    Outputs:
        A 0-d tensor, or the element losses for ``"none"``.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> float(nn.HuberLoss()(Tensor([2.0]), Tensor([0.0])))
        1.5
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = float(real("HuberLoss", "delta", delta, 0, bounds="(]"))

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.huber_loss(logits, labels, self.reduction, self.delta)


class BCELoss(LossBase):
    r"""Binary cross entropy of probabilities: :math:`-w (y \log x + (1 - y) \log(1 - x))`.

    Args:
        weight: Tensor that broadcasts to the input, or ``None``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **logits** (Tensor) - Probabilities in [0, 1], any shape.
        - **labels** (Tensor) - The same shape.

    Outputs:
        A 0-d tensor, or the element losses for ``"none"``.

    Raises:
        DTypeError: if ``weight`` is no Tensor.
        ShapeError: if the shapes differ.

    Example:
        >>> nn.BCELoss()(Tensor([0.5]), Tensor([1.0])).shape
        ()
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = optional_tensor("BCELoss", "weight", weight)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        same_shapes("BCELoss", logits=logits, labels=labels)
        return F.binary_cross_entropy(logits, labels, self.weight, self.reduction)


class BCEWithLogitsLoss(LossBase):
    r"""Binary cross entropy of logits:
    :math:`-w (p\, y \log \sigma(x) + (1 - y) \log(1 - \sigma(x)))`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        weight: Tensor :math:`w` that broadcasts to the input, or ``None``.
        pos_weight: Tensor :math:`p` that broadcasts to the input, or ``None``.

    Inputs:
        - **input** (Tensor) - Any shape.
        - **target** (Tensor) - The same shape.

    Outputs:
        A 0-d tensor, or the element losses for ``"none"``.

    Raises:
        DTypeError: if a weight is no Tensor.
        ShapeError: if the shapes differ.

    Example:
        >>> nn.BCEWithLogitsLoss()(Tensor([0.0]), Tensor([1.0])).shape
        ()
    """

    def __init__(
        self,
        reduction: str = "mean",
        weight: Tensor | None = None,
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(reduction)
        self.weight = optional_tensor("BCEWithLogitsLoss", "weight", weight)
        self.pos_weight = optional_tensor("BCEWithLogitsLoss", "pos_weight", pos_weight)

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        same_shapes("BCEWithLogitsLoss", input=input, target=target)
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, self.pos_weight, self.reduction
        )


class KLDivLoss(LossBase):
    r"""Kullback-Leibler divergence: :math:`y (\log y - x)`, with :math:`x` a log-probability.

    Args:
        reduction: ``"mean"``, ``"batchmean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **logits** (Tensor) - Log-probabilities, any shape.
        - **labels** (Tensor) - Probabilities, the same shape.

    Outputs:
        A 0-d tensor, or the element losses for ``"none"``.

    Raises:
        ArgumentError: if ``reduction`` is unknown.
        ShapeError: if the shapes differ.

    Example:
        >>> nn.KLDivLoss()(Tensor([-1.0]), Tensor([0.5])).shape
        ()
    """

    _reductions = ("mean", "sum", "none", "batchmean")

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        same_shapes("KLDivLoss", logits=logits, labels=labels)
        return F.kl_div(logits, labels, self.reduction)


class GaussianNLLLoss(LossBase):
    r"""Negative log-likelihood of a normal distribution:
    :math:`\frac12 (\log \max(v, \epsilon) + (x - y)^2 / \max(v, \epsilon)) + c`.

    Args:
        full: Whether the constant :math:`c = \frac12 \log 2\pi` is added.
        eps: Smallest variance.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **logits** (Tensor) - Expected values, shape :math:`(N, *)`.
        - **labels** (Tensor) - Samples, the same shape or one that broadcasts.
        - **var** (Tensor) - Variances, the same shape or one that broadcasts; not negative.

    Outputs:
        A 0-d tensor, or the element losses for ``"none"``.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> one = ops.ones((2,))
        >>> float(nn.GaussianNLLLoss()(one, one, one))
        0.0
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full = boolean("GaussianNLLLoss", "full", full)
        self.eps = float(real("GaussianNLLLoss", "eps", eps, 0, bounds="(]"))

    def construct(self, logits: Tensor, labels: Tensor, var: Tensor) -> Tensor:
        return F.gaussian_nll_loss(logits, labels, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(LossBase):
    r"""Negative log-likelihood of a Poisson distribution: :math:`e^x - y x` (or
    :math:`x - y \log(x + \epsilon)`), plus Stirling's term with ``full``.

    Args:
        log_input: Whether the input is the logarithm of the rate.
        full: Whether :math:`y \log y - y + \frac12 \log 2 \pi y` is added where :math:`y > 1`.
        eps: Avoids the logarithm of zero.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **input** (Tensor) - Any shape.
        - **target** (Tensor) - A shape that broadcasts with it.

    Outputs:
        A 0-d tensor, or the element losses for ``"none"``.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> float(nn.PoissonNLLLoss()(Tensor([0.0]), Tensor([1.0])))
        1.0
    """

    def __init__(
        self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.log_input = boolean("PoissonNLLLoss", "log_input", log_input)
        self.full = boolean("PoissonNLLLoss", "full", full)
        self.eps = float(real("PoissonNLLLoss", "eps", eps, 0, bounds="(]"))

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        if self.log_input:
            loss = F.exp(input) - target * input
        else:
            loss = input - target * F.log(input + self.eps)
        if self.full:
            big = target > 1
            y = F.where(big, target, F.ones_like(target))
            stirling = y * F.log(y) - y + 0.5 * F.log(y * 6.283185307179586)
            loss = loss + F.where(big, stirling, F.zeros_like(stirling))
        return self.get_loss(loss)


__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "GaussianNLLLoss", "HuberLoss", "KLDivLoss", "L1Loss",
    "LossBase", "MAELoss", "MSELoss", "PoissonNLLLoss", "RMSELoss", "SmoothL1Loss",
]  # fmt: skip

__path__, __getattr__ = as_package(__name__, "nn")  # a package in MindSpore
