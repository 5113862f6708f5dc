"""Batch normalisation: statistics over the batch in training, running statistics otherwise.

And layer, group and instance normalisation: statistics over one sample.
"""

from __future__ import annotations

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.nn._checks import (
    boolean,
    choice,
    float_dtype,
    integer,
    is_int,
    positive,
    real,
    reject,
    require_axes,
)
from tvmgraph.nn._parameters import new_parameter
from tvmgraph.nn.cell import Cell

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "LayerNorm", "SyncBatchNorm",
]  # fmt: skip


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


# ---- layers, groups and instances ---------------------------------------------------------------


class LayerNorm(Cell):
    r"""Normalises over the last axes:
    :math:`y = \gamma (x - E[x]) / \sqrt{Var[x] + \epsilon} + \beta`.

    Args:
        normalized_shape: Shape of scale and shift: the sizes of the axes from
            ``begin_params_axis`` on.
        begin_norm_axis: First axis over which the statistics go.
        begin_params_axis: First axis that scale and shift cover.
        gamma_init: Initial scale.
        beta_init: Initial shift.
        epsilon: Added to the variance.
        dtype: Type of the parameters.

    Inputs:
        - **input_x** (Tensor) - Any shape that ends in ``normalized_shape``, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        DTypeError: if an argument has the wrong class.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.LayerNorm((3,))(ops.ones((2, 3))).shape
        (2, 3)
    """

    _shown = "normalized_shape begin_norm_axis begin_params_axis gamma beta"

    def __init__(
        self,
        normalized_shape: object,
        begin_norm_axis: int = -1,
        begin_params_axis: int = -1,
        gamma_init: object = "ones",
        beta_init: object = "zeros",
        epsilon: float = 1e-7,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        shape = normalized_shape
        if not isinstance(shape, (tuple, list)) or not all(is_int(s) for s in shape):
            reject(DTypeError, "LayerNorm", "normalized_shape must be a tuple of ints",
                   f"normalized_shape={shape!r}", "pass (size,) for one axis")  # fmt: skip
        if not shape:
            reject(ArgumentError, "LayerNorm", "normalized_shape must not be empty")
        self.normalized_shape = tuple(int(s) for s in shape)
        self.begin_norm_axis = integer("LayerNorm", "begin_norm_axis", begin_norm_axis)
        self.begin_params_axis = integer("LayerNorm", "begin_params_axis", begin_params_axis)
        self.epsilon = float(real("LayerNorm", "epsilon", epsilon, 0))
        kind = float_dtype("LayerNorm", dtype)
        self.gamma = new_parameter("LayerNorm", "gamma", gamma_init, self.normalized_shape, kind)
        self.beta = new_parameter("LayerNorm", "beta", beta_init, self.normalized_shape, kind)

    def construct(self, input_x: Tensor) -> Tensor:
        rank = input_x.ndim
        for name, axis in (("begin_norm_axis", self.begin_norm_axis),
                           ("begin_params_axis", self.begin_params_axis)):  # fmt: skip
            if not -rank <= axis < rank:
                reject(ShapeError, "LayerNorm", f"{name}={axis} is no axis of the input",
                       f"input_x={input_x.aval}")  # fmt: skip
        norm, params = self.begin_norm_axis % rank, self.begin_params_axis % rank
        if input_x.shape[params:] != self.normalized_shape:
            reject(ShapeError, "LayerNorm",
                   f"the axes from {params} on must be {self.normalized_shape}, "
                   f"not {input_x.shape[params:]}", f"input_x={input_x.aval}",
                   "set begin_norm_axis and begin_params_axis to the first of them")  # fmt: skip
        gamma, beta = self.compute(self.gamma), self.compute(self.beta)
        if norm == params:
            return F.layer_norm(input_x, self.normalized_shape, gamma, beta, self.epsilon)
        plain = F.layer_norm(input_x, input_x.shape[norm:], None, None, self.epsilon)
        return plain * gamma + beta


class GroupNorm(Cell):
    r"""Normalises over groups of channels:
    :math:`y = \gamma (x - E[x]) / \sqrt{Var[x] + \epsilon} + \beta`.

    Args:
        num_groups: Number of groups; it divides ``num_channels``.
        num_channels: Number of channels.
        eps: Added to the variance.
        affine: Whether scale and shift are trained.
        gamma_init: Initial scale.
        beta_init: Initial shift.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, *)`, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if the groups do not divide the channels.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.GroupNorm(2, 4)(ops.ones((1, 4, 3, 3))).shape
        (1, 4, 3, 3)
    """

    _shown = "num_groups num_channels"

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        gamma_init: object = "ones",
        beta_init: object = "zeros",
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        self.num_groups = positive("GroupNorm", "num_groups", num_groups)
        self.num_channels = positive("GroupNorm", "num_channels", num_channels)
        if num_channels % num_groups:
            reject(ArgumentError, "GroupNorm",
                   f"num_groups={num_groups} must divide num_channels={num_channels}")  # fmt: skip
        self.eps = float(real("GroupNorm", "eps", eps, 0))
        self.affine = boolean("GroupNorm", "affine", affine)
        kind, shape = float_dtype("GroupNorm", dtype), (num_channels,)
        self.gamma = new_parameter("GroupNorm", "gamma", gamma_init, shape, kind, affine)
        self.beta = new_parameter("GroupNorm", "beta", beta_init, shape, kind, affine)

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            found = x.shape[1] if x.ndim > 1 else "no channel axis"
            reject(ShapeError, "GroupNorm",
                   f"the input must have num_channels={self.num_channels} channels, not {found}",
                   f"x={x.aval}")  # fmt: skip
        return self._cal_output(x)

    def _cal_output(self, x: Tensor) -> Tensor:
        """Computes the layer; what adds an activation to it in zoos calls this."""
        return F.group_norm(
            x, self.num_groups, self.compute(self.gamma), self.compute(self.beta), self.eps
        )


class _InstanceNorm(_RunningStatistics):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        gamma_init: object = "ones",
        beta_init: object = "zeros",
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        inits = ("zeros", "ones", gamma_init, beta_init)
        super().__init__(num_features, eps, momentum, affine, inits, dtype)
        self.momentum = momentum

    def construct(self, x: Tensor) -> Tensor:
        self._check_input(x)
        wide = widened(x)
        axes = tuple(range(2, x.ndim))
        mean = F.mean(wide, axes, True)
        centered = wide - mean
        variance = F.mean(centered * centered, axes, True)
        if self.training:
            self._observe(self.moving_mean, mean)
            self._observe(self.moving_variance, variance)
        shape = (1, self.num_features, *(1 for _ in axes))
        scale = F.rsqrt(variance + self.eps) * F.reshape(self.gamma, shape)
        return F.cast(centered * scale + F.reshape(self.beta, shape), x.dtype)

    def _observe(self, state: Tensor, seen: Tensor) -> None:
        """Moves a running statistic towards the average over the batch."""
        average = F.mean(F.reshape(seen, seen.shape[:2]), (0,), False)
        average = F.stop_gradient(F.cast(average, state.dtype))
        state.set_data(state * self.momentum + average * (1.0 - self.momentum))

    def extend_repr(self) -> str:
        """Returns the arguments."""
        return self._text(self.momentum)


class InstanceNorm1d(_InstanceNorm):
    r"""Normalises every channel of every sequence by itself, in training and evaluation.

    Args:
        num_features: Number of channels.
        eps: Added to the variance.
        momentum: Share of the old value in the running statistics.
        affine: Whether scale and shift are trained.
        gamma_init: Initial scale.
        beta_init: Initial shift.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, L)`, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if an argument is out of range.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.InstanceNorm1d(3)(ops.ones((2, 3, 4))).shape
        (2, 3, 4)
    """

    _ranks = (3,)


class InstanceNorm2d(_InstanceNorm):
    r"""Normalises every channel of every image by itself, in training and evaluation.

    Args:
        num_features: Number of channels.
        eps: Added to the variance.
        momentum: Share of the old value in the running statistics.
        affine: Whether scale and shift are trained.
        gamma_init: Initial scale.
        beta_init: Initial shift.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, H, W)`, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if an argument is out of range.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.InstanceNorm2d(3)(ops.ones((2, 3, 4, 4))).shape
        (2, 3, 4, 4)
    """

    _ranks = (4,)


class InstanceNorm3d(_InstanceNorm):
    r"""Normalises every channel of every volume by itself, in training and evaluation.

    Args:
        num_features: Number of channels.
        eps: Added to the variance.
        momentum: Share of the old value in the running statistics.
        affine: Whether scale and shift are trained.
        gamma_init: Initial scale.
        beta_init: Initial shift.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, D, H, W)`, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if an argument is out of range.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.InstanceNorm3d(3)(ops.ones((2, 3, 2, 2, 2))).shape
        (2, 3, 2, 2, 2)
    """

    _ranks = (5,)
