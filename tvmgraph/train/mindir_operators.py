"""The operators of MindSpore's MINDIR files as functions and operator classes of this package."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.compat import mint, primitives
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import LoadError
from tvmgraph.nn.recurrent import all_steps
from tvmgraph.train.mindir_file import Monad

#: Operators of MindSpore's files that are functions of ``mint`` (else of its ``nn.functional``)
#: with the same arguments in the same order.
_AS_MINT = """
AcosExt=acos AcoshExt=acosh AddExt=add AddScalar=add Addbmm=addbmm Addmm=addmm Addmv=addmv Any=any
AnyExt=any Arange=arange ArgMaxExt=argmax ArgMinExt=argmin ArgSort=argsort AsinExt=asin
AsinhExt=asinh Atan2Ext=atan2 AtanExt=atan Baddbmm=baddbmm BatchMatMulExt=bmm BincountExt=bincount
BitwiseAndScalar=bitwise_and BitwiseAndTensor=bitwise_and BitwiseNot=bitwise_not
BitwiseOrScalar=bitwise_or BitwiseOrTensor=bitwise_or BitwiseXorScalar=bitwise_xor
BitwiseXorTensor=bitwise_xor Chunk=chunk ChunkView=chunk ClampScalar=clamp ClampTensor=clamp
Clone=clone CumminExt=cummin CumsumExt=cumsum DiagExt=diag DivMod=div DivMods=div Divs=div Dot=dot
EqScalar=eq Exp2=exp2 FlattenExt=flatten FloorDivScalar=floor_divide FmodScalar=fmod FmodTensor=fmod
Frac=frac FullLike=full_like GreaterEqualScalar=ge HistcExt=histc IndexSelect=index_select
IsNegInf=isneginf LessScalar=lt LinSpaceExt=linspace Log10=log10 Log2=log2 LogAddExp=logaddexp
LogAddExp2=logaddexp2 LogSumExp=logsumexp MatMulExt=matmul MatrixInverseExt=inverse Max=max
MaxDim=max MeanExt=mean MedianDim=median MedianExt=median Min=min MinDim=min Mm=mm Muls=mul Mv=mv
Nansum=nansum Narrow=narrow NarrowView=narrow NonZeroExt=nonzero Norm=norm
OnesLikeExt=ones_like Outer=outer
PowScalarTensor=pow PowTensorScalar=pow ProdExt=prod RemainderScalarTensor=remainder
RemainderTensorScalar=remainder RemainderTensorTensor=remainder
RepeatInterleaveInt=repeat_interleave RepeatInterleaveTensor=repeat_interleave SelectV2=where
SortExt=sort SplitTensor=split SplitTensorView=split SplitWithSize=split SplitWithSizeView=split
StackExt=stack Std=std StdMean=std_mean SubExt=sub SubScalar=sub SumExt=sum TExt=t Take=take
TopkExt=topk TraceExt=trace TransposeExtView=transpose TriangularSolve=triangular_solve
TrilExt=tril UnstackExtView=unbind Unique2=unique UniqueDim=unique Var=var VarMean=var_mean
XLogYScalarOther=xlogy XLogYScalarSelf=xlogy ZerosLikeExt=zeros_like
AdaptiveAvgPool1D=adaptive_avg_pool1d AdaptiveAvgPool2DExt=adaptive_avg_pool2d
AdaptiveAvgPool3DExt=adaptive_avg_pool3d AvgPool1D=avg_pool1d AvgPool2D=avg_pool2d
AvgPool3DExt=avg_pool3d Conv1DExt=conv1d Conv1DPadding=conv1d Conv2DExt=conv2d Conv2DPadding=conv2d
Conv3DExt=conv3d Conv3DPadding=conv3d EluExt=elu Embedding=embedding GeluExt=gelu Hardtanh=hardtanh
KLDiv=kl_div L1LossExt=l1_loss LeakyReLUExt=leaky_relu LogSigmoid=logsigmoid MSELossExt=mse_loss
MishExt=mish PixelShuffle=pixel_shuffle SeLUExt=selu SiLU=silu SoftplusExt=softplus
Threshold=threshold
"""
_MINT: dict[str, str] = {k: v for k, _, v in (p.partition("=") for p in _AS_MINT.split())}
#: Other names of operators that write to their first argument.
_INPLACE = {"AddsExt": "AddScalar"}

_WORDS: dict[str, tuple[str | None, ...]] = {
    "approximate": ("none", "tanh"),
    "coordinate_transformation_mode": ("asymmetric", "align_corners", "half_pixel"),
    "data_format": ("NCHW", "NHWC", *(None,) * 12, "NCDHW"),
    "indexing": ("ij", "xy"),
    "interpolation_mode": ("bilinear", "nearest", "bicubic"),
    "pad_mode": ("pad", "same", "valid"),
    "padding_mode": ("zeros", "border", "reflection"),
    "padding": (None, "same", "valid"),
    "reduce": ("none", "add"),
    "reduction": ("sum", "mean", "none"),
    "rounding_mode": (None, "trunc", "floor"),
}
"""What the numbers stand for that files have instead of words."""
_NUMBERS = (3, 4, 30, 32, 33, 34, 35, 37, 38, 39, 40, 42, 43, 44, 45, 51, 52)
_DTYPES: dict[int, str] = dict(zip(_NUMBERS, (
    "int32", "int64", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "float16", "float32", "float64", "bfloat16", "complex64", "complex128",
)))  # fmt: skip
_DTYPE_ARGUMENTS = ("dtype", "out_type", "output_type", "argmax_type")
_IMAGE_SIZES = ("kernel_size", "stride", "strides", "dilation", "pads")


def _lstm(
    x: Tensor, h: Tensor, c: Tensor, weights: Tensor, **attrs: int
) -> tuple[Tensor, Tensor, Tensor, None, None]:
    """The operator of MindSpore's CPU: one layer and direction, all weights in one tensor."""
    if attrs["num_layers"] != 1 or attrs["bidirectional"] or attrs.get("proj_size"):
        raise LoadError("LSTM with several layers or directions in one operator is not supported",
                        op="mindir.LSTM", fix="export it on MindSpore's CPU")  # fmt: skip
    flat, units, size = F.reshape(weights, (-1,)), attrs["hidden_size"], attrs["input_size"]
    first, second = 4 * units * size, 4 * units * units
    w_ih, w_hh, bias = flat[:first], flat[first : first + second], None
    if attrs["has_bias"]:  # one, or one for the input and one for the state
        bias = F.sum(F.reshape(flat[first + second :], (-1, 4 * units)), 0)
    projected = F.dense(x, F.reshape(w_ih, (4 * units, size)), bias)
    w_hh = F.reshape(w_hh, (4 * units, units))
    y, (h, c) = all_steps("lstm", projected, w_hh, None, (h[0], c[0]), False)
    return y, F.expand_dims(h, 0), F.expand_dims(c, 0), None, None


#: Operators that are no row of a table; they are called with the attributes, too.
_OWN: dict[str, Callable[..., object]] = {
    "Depend": lambda value, *_: value,
    "Load": lambda value, *_: value,
    "LSTM": _lstm,
    "ListGetItem": operator.getitem,
    "MakeList": lambda *items: list(items),
    "MakeTuple": lambda *items: items,
    "RealMakeTuple": lambda *items: items,
    "RealTupleGetItem": operator.getitem,
    "Return": lambda value: value,
    "TensorMove": lambda x: F.identity(x),
    "TensorToScalar": lambda x: x.item(),
    "TupleGetItem": operator.getitem,
    "UpdateState": lambda *_: Monad(),
    "make_list": lambda *items: list(items),
    "sequence_len": len,
    "BroadcastToView": lambda x, shape: F.broadcast_to(x, shape),
    "Contiguous": lambda x: F.identity(x),
    "Copy": lambda x, *_: F.identity(x),
    "ExpandDimsView": lambda x, axis: F.expand_dims(x, axis),
    "LayerNormExt": lambda *args: (mint.nn.functional.layer_norm(*args), None, None),
    "GroupNorm": lambda *args: (mint.nn.functional.group_norm(*args), None, None),
    "BatchNormExt": lambda x, weight, bias, mean, var, *rest: (
        mint.nn.functional.batch_norm(x, mean, var, weight, bias, *rest), None, None,
    ),
    "LinalgVectorNorm": lambda x, p, axis, keep, dtype=None: mint.linalg.vector_norm(
        x, p, axis, keep, dtype=_dtype(dtype)
    ),
    "MaskedFillScalar": lambda x, mask, value: F.masked_fill(x, mask, value),
    "MaxPoolWithIndices": lambda x, *args: mint.nn.functional.max_pool2d(x, *args[:5], True),
    "MaxPoolWithMask": lambda x, *args: (mint.nn.functional.max_pool2d(x, *args[:5]), None),
    "OneHotExt": lambda x, depth, on, off, axis=-1: F.one_hot(x, depth, on, off, axis),
    "SequenceConcat": lambda items, axis=0: F.concat(items, axis),
    "ToDtype": lambda x, dtype, *_: x if dtype is None else F.cast(x, _dtype(dtype)),
    "TransposeView": lambda x, axes: F.transpose(x, axes),
    "TupleToTensor": lambda items, dtype=None: Tensor(items, _dtype(dtype)),
    "View": lambda x, shape: F.reshape(x, shape),
    **{
        f"Upsample{name}": lambda x, size=None, scales=None, corners=None, mode=mode: (
            F.interpolate(x, size, scales, mode, corners if mode != "nearest" else None)
        )
        for name, mode in {
            "Bicubic2D": "bicubic", "Bilinear2D": "bilinear", "Linear1D": "linear",
            "Nearest1D": "nearest", "Nearest2D": "nearest",
        }.items()
    },
    **{
        f"Scalar{name}": function
        for name, function in {
            "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul,
            "Div": operator.truediv, "FloorDiv": operator.floordiv, "Mod": operator.mod,
            "Lt": operator.lt, "Le": operator.le, "Gt": operator.gt, "Ge": operator.ge,
            "Eq": operator.eq, "Usub": operator.neg, "Bool": bool,
        }.items()
    },
}  # fmt: skip


def _dtype(value: object) -> Any:
    """Returns the dtype that a number of a file stands for."""
    return dtypes.dtype_of(_DTYPES[value]) if isinstance(value, int) else value


def _argument(op: str, name: str, value: object) -> object:
    """Returns an argument, with words and dtypes instead of their numbers."""
    if name in _DTYPE_ARGUMENTS:
        return _dtype(value)
    if op == "TensorScatterElements" and name == "reduction":
        name = "reduce"
    words = _WORDS.get(name)
    if op in _MINT and not op.endswith("Padding") and name in (*_IMAGE_SIZES, "padding"):
        return value[0] if isinstance(value, tuple) and len(value) == 1 else value
    return words[value] if words and isinstance(value, int) else value


@functools.cache
def _function(op: str) -> tuple[Callable[..., object], tuple[inspect.Parameter, ...]]:
    """Returns the function that stands for an operator, and its parameters."""
    name = _MINT[op]
    found = getattr(mint if name in dir(mint) else mint.nn.functional, name)
    return found, tuple(inspect.signature(found).parameters.values())


@functools.cache
def _names(op: str) -> tuple[list[str], list[str]]:
    """Returns the names of the arguments of an operator class: of its call, of its constructor."""
    made = getattr(primitives, op)
    call, init = (inspect.signature(m).parameters for m in (made.__call__, made.__init__))
    return [n for n in call if n != "self"], [n for n in init if n != "self"]


def apply(op: str, attrs: dict[str, Any], values: list[Any]) -> Any:
    """Calls an operator of a file.

    Args:
        op: Its name.
        attrs: Its attributes.
        values: Its inputs: tensors, numbers, containers of them, and what orders side effects.
    """
    if op not in ("Depend", "MakeTuple"):
        values = [v for v in values if not isinstance(v, Monad)]
    if op in _OWN:
        return _OWN[op](*values, **(attrs if op == "LSTM" else {}))
    if op in _MINT:
        function, parameters = _function(op)
        named = [(p, _argument(op, p.name, v)) for p, v in zip(parameters, values)]
        args = [v for p, v in named if p.kind is not p.KEYWORD_ONLY]
        return function(*args, **{p.name: v for p, v in named if p.kind is p.KEYWORD_ONLY})
    if op not in primitives.ROWS:  # writes to its first argument
        target, *rest = values
        new = rest[0] if op == "InplaceCopy" else apply(_inplace(op), attrs, values)
        new = F.cast(new, target.dtype)
        return F.assign(target, new) if isinstance(target, Parameter) else new
    call, init = _names(op)
    config = {k: _dtype(v) if k in _DTYPE_ARGUMENTS else v for k, v in attrs.items() if k in init}
    if "data_format" in init and "format" in attrs:
        config["data_format"] = attrs["format"]
    last = config.get("data_format") == "NHWC"
    for key in _IMAGE_SIZES:  # files have sizes for the batch and the channels, too
        if len(np.shape(config.get(key, 0)) and config[key]) > 3:
            config[key] = config[key][1:-1] if last else config[key][2:]
    config |= {k: _argument(op, k, v) for k, v in zip(init, values[len(call) :])}
    given = [_argument(op, k, v) for k, v in zip(call, values)]
    given += values[len(given) :] if call[:1] == ["*"] else []
    return getattr(primitives, op)(**config)(*given)


def _inplace(op: str) -> str:
    """Returns the operator that computes what another one writes to its first argument."""
    name = op.removeprefix("Inplace")
    return _INPLACE.get(name, name)


def is_known(op: str) -> bool:
    """Whether an operator of a file can be called.

    Args:
        op: Name of the operator.
    """
    if op.startswith("Inplace") and op not in primitives.ROWS:
        return op == "InplaceCopy" or _inplace(op) in _MINT or _inplace(op) in primitives.ROWS
    return op in _OWN or op in _MINT or op in primitives.ROWS
