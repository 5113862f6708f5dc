"""Batch normalisation: statistics over the batch in training, running statistics otherwise."""

from __future__ import annotations

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError, ShapeError
from tvmgraph.nn._checks import boolean, choice, float_dtype, positive, real, reject, require_axes
from tvmgraph.nn._parameters import new_parameter
from tvmgraph.nn.cell import Cell


def widened(x: Tensor) -> Tensor:
    """Returns half-precision inputs as float32, in which statistics are computed.

    Args:
        x: Tensor of any dtype.
    """
    return F.cast(x, dtypes.float32) if x.dtype in (dtypes.float16, dtypes.bfloat16) else x


class _RunningStatistics(Cell):
    """Scale, shift and running statistics of a normalisation over channels."""

    _ranks: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float,
        affine: bool,
        inits: tuple[object, object, object, object],
        dtype: DTypeLike,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        self.num_features = positive(op, "num_features", num_features)
        self.eps = float(real(op, "eps", eps, 0))
        real(op, "momentum", momentum, 0, 1)
        self.affine = boolean(op, "affine", affine)
        kind, shape = float_dtype(op, dtype), (num_features,)
        mean, variance, gamma, beta = inits
        self.moving_mean = new_parameter(op, "mean", mean, shape, kind, False)
        self.moving_variance = new_parameter(op, "variance", variance, shape, kind, False)
        self.gamma = new_parameter(op, "gamma", gamma, shape, kind, affine)
        self.beta = new_parameter(op, "beta", beta, shape, kind, affine)

    def _check_input(self, x: Tensor, axis: int = 1) -> None:
        op = type(self).__name__
        if self._ranks:
            require_axes(op, x, *self._ranks)
        if x.ndim < 2 or x.shape[axis] != self.num_features:
            found = x.shape[axis] if x.ndim > 1 else "no channel axis"
            reject(ShapeError, op,
                   f"the input must have num_features={self.num_features} channels, not {found}",
                   f"x={x.aval}")  # fmt: skip
        if not x.dtype.is_float:
            reject(DTypeError, op, "the input must have a float dtype", f"x={x.aval}",
                   "cast it: x.astype(ms.float32)")  # fmt: skip

    def _text(self, momentum: float) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={momentum:g}, "
            f"gamma={self.gamma}, beta={self.beta}, moving_mean={self.moving_mean}, "
            f"moving_variance={self.moving_variance}"
        )


class _BatchNorm(_RunningStatistics):
    """Batch normalisation over any number of axes.

    Attributes:
        momentum: Share of a new observation in the running statistics.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: object = "ones",
        beta_init: object = "zeros",
        moving_mean_init: object = "zeros",
        moving_var_init: object = "ones",
        use_batch_statistics: bool | None = None,
        data_format: str = "NCHW",
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        inits = (moving_mean_init, moving_var_init, gamma_init, beta_init)
        super().__init__(num_features, eps, momentum, affine, inits, dtype)
        op = type(self).__name__
        self.momentum = 1.0 - momentum
        self.data_format = choice(op, "data_format", data_format, ("NCHW", "NHWC"))
        if use_batch_statistics is not None:
            boolean(op, "use_batch_statistics", use_batch_statistics)
        self.use_batch_statistics = use_batch_statistics

    def construct(self, x: Tensor) -> Tensor:
        last = self.data_format == "NHWC" and x.ndim > 2
        self._check_input(x, x.ndim - 1 if last else 1)
        if last:
            x = F.moveaxis(x, -1, 1)
        from_batch = self.training
        if self.use_batch_statistics is not None:
            from_batch = self.use_batch_statistics
        y = F.batch_norm(x, self.moving_mean, self.moving_variance, self.gamma, self.beta,
                         from_batch, self.momentum, self.eps)  # fmt: skip
        return F.moveaxis(y, 1, -1) if last else y

    def extend_repr(self) -> str:
        """Returns the arguments."""
        return self._text(1.0 - self.momentum)


class BatchNorm1d(_BatchNorm):
    r"""Normalises features over the batch:
    :math:`y = \gamma (x - E[x]) / \sqrt{Var[x] + \epsilon} + \beta`.

    Args:
        num_features: Number of channels.
        eps: Added to the variance.
        momentum: Share of the old value in the running statistics.
        affine: Whether scale and shift are trained.
        gamma_init: Initial scale.
        beta_init: Initial shift.
        moving_mean_init: Initial running mean.
        moving_var_init: Initial running variance.
        use_batch_statistics: True normalises by the batch always, False never, ``None`` in
            training only.
        data_format: ``"NCHW"``: channels on axis 1; ``"NHWC"``: channels on the last axis.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C)` or :math:`(N, C, L)`, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if an argument is out of range.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.BatchNorm1d(3).set_train()(ops.ones((4, 3))).shape
        (4, 3)
    """

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    r"""Normalises channels of images over the batch:
    :math:`y = \gamma (x - E[x]) / \sqrt{Var[x] + \epsilon} + \beta`.

    Args:
        num_features: Number of channels.
        eps: Added to the variance.
        momentum: Share of the old value in the running statistics.
        affine: Whether scale and shift are trained.
        gamma_init: Initial scale.
        beta_init: Initial shift.
        moving_mean_init: Initial running mean.
        moving_var_init: Initial running variance.
        use_batch_statistics: True normalises by the batch always, False never, ``None`` in
            training only.
        data_format: ``"NCHW"``: channels on axis 1; ``"NHWC"``: channels on the last axis.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, H, W)`, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if an argument is out of range.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.BatchNorm2d(3).set_train()(ops.ones((4, 3, 2, 2))).shape
        (4, 3, 2, 2)
    """

    _ranks = (4,)


class BatchNorm3d(Cell):
    r"""Normalises channels of volumes over the batch, through a :class:`BatchNorm2d`.

    Args:
        num_features: Number of channels.
        eps: Added to the variance.
        momentum: Share of the old value in the running statistics.
        affine: Whether scale and shift are trained.
        gamma_init: Initial scale.
        beta_init: Initial shift.
        moving_mean_init: Initial running mean.
        moving_var_init: Initial running variance.
        use_batch_statistics: True normalises by the batch always, False never, ``None`` in
            training only.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, D, H, W)`, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if an argument is out of range.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.BatchNorm3d(3)(ops.ones((4, 3, 2, 2, 2))).shape
        (4, 3, 2, 2, 2)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: object = "ones",
        beta_init: object = "zeros",
        moving_mean_init: object = "zeros",
        moving_var_init: object = "ones",
        use_batch_statistics: bool | None = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        self.bn2d = BatchNorm2d(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init,
            moving_var_init, use_batch_statistics, "NCHW", dtype,
        )  # fmt: skip

    def construct(self, x: Tensor) -> Tensor:
        require_axes("BatchNorm3d", x, 5)
        n, c, d, h, w = x.shape
        return F.reshape(self.bn2d(F.reshape(x, (n, c, d * h, w))), x.shape)


class SyncBatchNorm(_BatchNorm):
    r"""Batch normalisation with statistics over all devices; on one device the ordinary one.

    Args:
        num_features: Number of channels.
        eps: Added to the variance.
        momentum: Share of the old value in the running statistics.
        affine: Whether scale and shift are trained.
        gamma_init: Initial scale.
        beta_init: Initial shift.
        moving_mean_init: Initial running mean.
        moving_var_init: Initial running variance.
        use_batch_statistics: True normalises by the batch always, False never, ``None`` in
            training only.
        process_groups: Kept for MindSpore programs; there is one device.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, *)`, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if an argument is out of range.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.SyncBatchNorm(3)(ops.ones((4, 3))).shape
        (4, 3)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: object = "ones",
        beta_init: object = "zeros",
        moving_mean_init: object = "zeros",
        moving_var_init: object = "ones",
        use_batch_statistics: bool | None = None,
        process_groups: object = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, gamma_init, beta_init,
                         moving_mean_init, moving_var_init, use_batch_statistics, "NCHW",
                         dtype)  # fmt: skip
        self.process_groups = process_groups


__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"]
