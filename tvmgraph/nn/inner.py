"""The Primitives that MindSpore's layers hold, for code that subclasses a layer and calls them.

A subclass such as ``class StdConv(nn.Conv2d)`` standardizes ``self.weight`` in its ``construct``
and returns ``self.conv2d(x, weight)``. The layers here compute with functions, so their Primitives
are made when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tvmgraph.compat import primitives
from tvmgraph.core.tensor import Tensor

if TYPE_CHECKING:
    from tvmgraph.nn.cell import Cell

#: A Primitive without arguments by its name, or what makes the attribute from the layer.
Member = str | Callable[[Any], Any]


def _made(name: str, *copied: str, **given: object) -> Member:
    """A Primitive whose arguments are the layer's attributes of the same names, and given ones."""
    return lambda layer: getattr(primitives, name)(
        **{a: getattr(layer, a) for a in copied}, **given
    )


def _convolution(name: str, axes: int) -> Member:
    def make(layer: Cell) -> Any:
        pad, own = layer.padding, len(layer.kernel_size)
        pad = (pad,) * 2 * own if isinstance(pad, int) else pad
        return getattr(primitives, name)(
            layer.out_channels, _sizes(layer.kernel_size, axes), pad_mode=layer.pad_mode,
            pad=(*[0] * 2 * (axes - own), *pad),
            stride=_sizes(layer.stride, axes), dilation=_sizes(layer.dilation, axes),
            group=layer.group,
        )  # fmt: skip

    return make


def _sizes(sizes: tuple[int, ...], axes: int) -> tuple[int, ...]:
    return (*[1] * (axes - len(sizes)), *sizes)


def _batch_norm(training: bool) -> Member:
    return lambda layer: primitives.BatchNorm(
        is_training=training, epsilon=layer.eps, momentum=1.0 - layer.momentum,
        data_format=layer.data_format,
    )  # fmt: skip


def _pool(name: str) -> Member:
    return lambda layer: getattr(primitives, name)(
        kernel_size=layer.kernel_size, strides=layer.stride, pad_mode=layer.pad_mode,
        data_format=layer.data_format,
    )  # fmt: skip


_REDUCED = {"reduce_mean": "ReduceMean", "reduce_sum": "ReduceSum", "mul": "Mul", "cast": "Cast"}
_ONE_HOT: Mapping[str, Member] = {
    "one_hot": "OneHot", "on_value": lambda _: Tensor(1.0), "off_value": lambda _: Tensor(0.0),
}  # fmt: skip

#: By the name of the layer; subclasses have what their bases have.
MEMBERS: dict[str, Mapping[str, Member]] = {
    "Conv1d": {
        "conv2d": _convolution("Conv2D", 2), "bias_add": "BiasAdd", "shape": "Shape",
        "expand_dims": "ExpandDims", "squeeze": lambda _: primitives.Squeeze(2),
    },
    "Conv2d": {"conv2d": _convolution("Conv2D", 2), "bias_add": "BiasAdd"},
    "Conv3d": {"conv3d": _convolution("Conv3D", 3), "bias_add": "BiasAdd", "shape": "Shape"},
    "Conv2dTranspose": {
        "conv2d_transpose": _convolution("Conv2DTranspose", 2), "bias_add": "BiasAdd",
        "shape": "Shape", "is_valid": lambda c: c.pad_mode == "valid",
        "is_same": lambda c: c.pad_mode == "same", "is_pad": lambda c: c.pad_mode == "pad",
    },
    "Dense": {
        "reshape": "Reshape", "shape_op": "Shape", "bias_add": "BiasAdd",
        "matmul": _made("MatMul", transpose_b=True),
    },
    "LayerNorm": {
        "layer_norm": lambda c: primitives.LayerNorm(
            begin_norm_axis=c.begin_norm_axis, begin_params_axis=c.begin_params_axis,
            epsilon=c.epsilon,
        ),
    },
    "_BatchNorm": {
        "bn_train": _batch_norm(True), "bn_infer": _batch_norm(False), "shape": "Shape",
        "format": lambda c: c.data_format, "reduce_mean": _made("ReduceMean", keep_dims=True),
        "square": "Square", "sqrt": "Sqrt", "cast": "Cast", "dtype": "DType",
        "reshape": "Reshape", "sub_mean": "Sub", "sub_var": "Sub", "mul_mean": "Mul",
        "mul_var": "Mul", "assign_sub_mean": "AssignSub", "assign_sub_var": "AssignSub",
    },
    "BatchNorm3d": {"shape": "Shape", "reshape": "Reshape"},
    "Embedding": {
        "expand": "ExpandDims", "reshape_flat": "Reshape", "shp_flat": lambda _: (-1,),
        "gather": "Gather", "array_mul": "MatMul", "reshape": "Reshape", "get_shp": "Shape",
        "concat": "Concat", **_ONE_HOT,
    },
    "Dropout": {
        "dropout": lambda c: primitives.Dropout(c.keep_prob if c.p is None else 1.0 - c.p),
    },
    "MaxPool2d": {"max_pool": _pool("MaxPool"), "format": lambda c: c.data_format},
    "AvgPool2d": {"avg_pool": _pool("AvgPool"), "format": lambda c: c.data_format},
    "ReLU": {"relu": "ReLU"},
    "ReLU6": {"relu6": "ReLU6"},
    "Sigmoid": {"sigmoid": "Sigmoid"},
    "Tanh": {"tanh": "Tanh"},
    "Softmax": {"softmax": _made("Softmax", "axis")},
    "LogSoftmax": {"log_softmax": _made("LogSoftmax", "axis")},
    "HSwish": {"hswish": "HSwish"},
    "HSigmoid": {"hsigmoid": "HSigmoid"},
    "PReLU": {"prelu": "PReLU"},
    "ELU": {"elu": _made("Elu", "alpha")},
    "Mish": {"mish": "Mish"},
    "LossBase": {
        **_REDUCED, "average": lambda c: c.reduction != "sum",
        "reduce": lambda c: c.reduction != "none",
    },
    "SoftmaxCrossEntropyWithLogits": {
        "softmax_cross_entropy": "SoftmaxCrossEntropyWithLogits",
        "sparse_softmax_cross_entropy": "SparseSoftmaxCrossEntropyWithLogits",
        "is_cpugpu": lambda _: True, **_ONE_HOT,
    },
    "SmoothL1Loss": {"smooth_l1_loss": _made("SmoothL1Loss", "beta", "reduction")},
    "MAELoss": {"abs": "Abs"},
    "CosineEmbeddingLoss": {"maximum": "Maximum"},
    "DiceLoss": {"reshape": "Reshape"},
    "FocalLoss": {
        "expand_dims": "ExpandDims", "gather_d": "GatherD", "tile": "Tile", "dtype": "DType",
        "squeeze": lambda _: primitives.Squeeze(1),
    },
    "AdaptiveAvgPool2d": {"adaptive_avgpool2d": _made("AdaptiveAvgPool2D", "output_size")},
    "Norm": {"reduce_sum": _made("ReduceSum", "keep_dims"), "sqrt": "Sqrt"},
    "Pad": {"pad": _made("Pad", "paddings")},
}  # fmt: skip


def member(layer: object, name: str) -> Any:
    """Returns a Primitive, or a fact about it, that a layer holds in MindSpore.

    Args:
        layer: The layer; it may be of a user's subclass.
        name: What is asked for.

    Returns:
        ``None`` if there is no such member.
    """
    for base in type(layer).__mro__:
        if base.__module__.startswith("tvmgraph.nn."):
            found = MEMBERS.get(base.__name__, {}).get(name)
            if found is not None:
                return getattr(primitives, found)() if isinstance(found, str) else found(layer)
    return None
