"""Dropout layers: random zeros in training, nothing otherwise."""

from __future__ import annotations

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError, ShapeError
from tvmgraph.nn._checks import real, reject
from tvmgraph.nn.cell import Cell


class Dropout(Cell):
    r"""Sets elements to zero with probability :math:`p` in training and divides the others by
    :math:`1 - p`.

    Args:
        keep_prob: :math:`1 - p`, in (0, 1]; read when ``p`` is not given.
        p: Probability of a zero, in [0, 1).
        dtype: Kept for MindSpore programs; the result has the input's dtype.

    Inputs:
        - **x** (Tensor) - Any shape, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        DTypeError: if a probability is not a number.
        ArgumentError: if it is out of range.

    Example:
        >>> nn.Dropout(p=0.2)(Tensor([1.0, 2.0])).asnumpy().tolist()
        [1.0, 2.0]
    """

    def __init__(
        self, keep_prob: float = 0.5, p: float | None = None, dtype: DTypeLike = dtypes.float32
    ) -> None:
        super().__init__()
        self.p, self.keep_prob = p, keep_prob
        if p is None:
            self._rate = 1.0 - real("Dropout", "keep_prob", keep_prob, 0, 1, "(]")
        else:
            self._rate = float(real("Dropout", "p", p, 0, 1, "[)"))

    def construct(self, x: Tensor) -> Tensor:
        if not isinstance(x, Tensor):
            raise DTypeError(f"x must be a Tensor, not {type(x).__name__}")
        if not self.training or self._rate == 0:
            return x
        return F.dropout(x, p=self._rate, training=True)

    def extend_repr(self) -> str:
        """Returns the probability."""
        return f"keep_prob={self.keep_prob}" if self.p is None else f"p={self.p}"


class _ChannelDropout(Cell):
    _axes: tuple[int, ...] = ()

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = float(real(type(self).__name__, "p", p, 0, 1))

    def _zero_channels(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim not in self._axes:
            axes = " or ".join(map(str, self._axes))
            reject(ShapeError, type(self).__name__,
                   f"the input must have {axes} axes, not {x.ndim}", f"x={x.type}")  # fmt: skip
        return self._zero_channels(x) if self.training and self.p else x

    def extend_repr(self) -> str:
        """Returns the probability."""
        return f"p={self.p}"


class Dropout1d(_ChannelDropout):
    r"""Sets whole channels of sequences to zero with probability :math:`p` in training.

    Args:
        p: Probability of a zero channel, in [0, 1].

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, L)` or :math:`(C, L)`, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if ``p`` is out of range.

    Example:
        >>> nn.Dropout1d(p=0.2)(ops.ones((1, 2, 3))).shape
        (1, 2, 3)
    """

    _axes = (3, 2)

    def _zero_channels(self, x: Tensor) -> Tensor:
        return F.dropout1d(x, self.p)


class Dropout2d(_ChannelDropout):
    r"""Sets whole channels of images to zero with probability :math:`p` in training.

    Args:
        p: Probability of a zero channel, in [0, 1].

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, H, W)`, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if ``p`` is out of range.

    Example:
        >>> nn.Dropout2d(p=0.2)(ops.ones((1, 2, 3, 3))).shape
        (1, 2, 3, 3)
    """

    _axes = (4,)

    def _zero_channels(self, x: Tensor) -> Tensor:
        return F.dropout2d(x, self.p)


class Dropout3d(_ChannelDropout):
    r"""Sets whole channels of volumes to zero with probability :math:`p` in training.

    Args:
        p: Probability of a zero channel, in [0, 1].

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, D, H, W)`, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if ``p`` is out of range.

    Example:
        >>> nn.Dropout3d(p=0.2)(ops.ones((1, 2, 3, 3, 3))).shape
        (1, 2, 3, 3, 3)
    """

    _axes = (5,)

    def _zero_channels(self, x: Tensor) -> Tensor:
        return F.dropout3d(x, self.p)


__all__ = ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d"]
