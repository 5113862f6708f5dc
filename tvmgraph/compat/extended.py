"""Names of MindSpore's generated operators that stand for functions of mint, as ``SumExt``.

Files of MindSpore's own, and zoos that import from ``ops.auto_generate``, call what mint computes
by names with a suffix, and give by position what mint's functions take by keyword.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Mapping

from tvmgraph.compat.primitives.base import Primitive
from tvmgraph.core.explained import speaks_for_users
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import NotFoundImportError

_ROOMS = ("compat.mint.nn.functional", "compat.mint")
_SUFFIXES = ("_view", "_ext")
#: Functions that are methods of tensors here.
_METHODS: dict[str, Callable[..., object]] = {
    "contiguous": Tensor.contiguous, "copy": Tensor.copy,
}  # fmt: skip
#: Functions whose function of mint has another name.
_RENAMED = {"transpose_view": "permute"}
#: Parameters that have other names there.
_CALLED = {
    "mean_ext": {"axis": "dim", "keep_dims": "keepdim"},
    "split_ext": {"split_size": "split_size_or_sections"}, "transpose_view": {"input_perm": "dims"},
}  # fmt: skip
#: Classes whose function is not their own name in lower case.
_OTHERWISE = {
    "Col2ImExt": "fold", "Im2ColExt": "unfold", "MatMulExt": "matmul", "NonZeroExt": "nonzero",
    "BatchMatMulExt": "bmm", "LinSpaceExt": "linspace", "ArgMaxExt": "argmax",
    "ArgMinExt": "argmin", "LeakyReLUExt": "leaky_relu", "SeLUExt": "selu", "TExt": "t",
    "MatrixInverseExt": "inverse", "SplitTensorView": "split", "SplitWithSizeView": "split",
    "TransposeExtView": "transpose", "TransposeView": "permute", "MSELossExt": "mse_loss",
    "L1LossExt": "l1_loss",
}  # fmt: skip
_PLAIN = """
Addbmm Addmm Addmv Arange Baddbmm BitwiseNot Chunk Clone ConvTbc Dot Embedding Empty EmptyLike Exp2
Frac FullLike GroupNorm Hardtanh IndexSelect Kthvalue Log10 Log2 Max Min Mm Mv Nansum Narrow Norm
Outer PixelShuffle Scatter Std StdMean Take Threshold TriangularSolve Var VarMean Vdot
AdaptiveAvgPool1D:adaptive_avg_pool1d AdaptiveMaxPool1D:adaptive_max_pool1d AddScalar:add
Atan2Ext:atan2 AvgPool1D:avg_pool1d AvgPool2D:avg_pool2d BitwiseAndScalar:bitwise_and
BitwiseAndTensor:bitwise_and BitwiseOrScalar:bitwise_or BitwiseOrTensor:bitwise_or
BitwiseXorScalar:bitwise_xor BitwiseXorTensor:bitwise_xor ClampScalar:clamp ClampTensor:clamp
ConvTranspose2D:conv_transpose2d DivMod:div DivMods:div Divs:div EqScalar:eq
FloorDivScalar:floor_divide FmodScalar:fmod FmodTensor:fmod GreaterEqualScalar:ge
IsNegInf:isneginf KLDiv:kl_div LessScalar:lt LogAddExp2:logaddexp2 LogAddExp:logaddexp
LogSigmoid:logsigmoid LogSumExp:logsumexp MaxDim:max MedianDim:median MinDim:min Muls:mul
PowScalarTensor:pow PowTensorScalar:pow RemainderScalarTensor:remainder
RemainderTensorScalar:remainder RemainderTensorTensor:remainder
RepeatInterleaveInt:repeat_interleave RepeatInterleaveTensor:repeat_interleave SiLU:silu
SplitTensor:split SplitWithSize:split SubScalar:sub XLogYScalarOther:xlogy
XLogYScalarSelf:xlogy
"""
#: Names without a suffix, too: a word, or a class and its function.
_OTHERWISE |= {name: function for name, _, function in (w.partition(":") for w in _PLAIN.split())}
#: Classes that are not called like the function of their name: with seeds, tuples, other orders.
_OTHER_ARGUMENTS = frozenset({
    "BatchNormExt", "BernoulliExt", "Dropout2dExt", "DropoutExt", "EinsumExt",
    "MultinomialExt", "RandExt", "RandLikeExt", "RandpermExt",
})  # fmt: skip


def function_of(name: str) -> Callable[..., object] | None:
    """Returns the function of mint that a name with a suffix stands for, or None.

    Args:
        name: Such as ``softmax_ext``.
    """
    if name in _METHODS:
        return _METHODS[name]
    plain = functools.reduce(str.removesuffix, _SUFFIXES, name)
    for room in _ROOMS if plain != name else ():
        try:
            found = getattr(importlib.import_module(f"tvmgraph.{room}"), _RENAMED.get(name, plain))
            return _positional(found, _CALLED.get(name, {}))
        except (AttributeError, NotFoundImportError):
            continue
    return None


def function_of_class(name: str) -> Callable[..., object] | None:
    """Returns the function of mint that the name of an operator class stands for, or None.

    Args:
        name: Such as ``SoftmaxExt``.
    """
    if name in _OTHER_ARGUMENTS:
        return None
    words = re.sub(r"([a-z])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])", r"\1\2_", name).lower()
    return function_of(f"{_OTHERWISE[name] or words}_ext" if name in _OTHERWISE else words)


def class_of(name: str) -> type[Primitive] | None:
    """Returns the operator class that a name with a suffix stands for, or None.

    Args:
        name: Such as ``SoftmaxExt``; an instance is called like the function of mint.
    """
    function = function_of_class(name)
    if function is None:
        return None

    def call(self: Primitive, *args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)

    speaks_for_users(call)

    def init(self: Primitive) -> None:
        Primitive.__init__(self, name)

    doc = f"Class form of ``mint.{function.__name__}``."
    return type(name, (Primitive,), {"__init__": init, "__call__": call, "__doc__": doc})


def _positional(
    function: Callable[..., object], called: Mapping[str, str]
) -> Callable[..., object]:
    """Lets parameters that are keywords only be given by position, too, and by other names."""
    parameters = inspect.signature(function).parameters.values()
    kinds, named = [p.kind for p in parameters], inspect.Parameter.KEYWORD_ONLY
    if inspect.Parameter.VAR_POSITIONAL in kinds or (named not in kinds and not called):
        return function
    count = kinds.index(named) if named in kinds else len(kinds)
    names = [p.name for p in parameters][count:]

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        more = {called.get(name, name): value for name, value in kwargs.items()}
        return function(*args[:count], **dict(zip(names, args[count:])), **more)

    speaks_for_users(call)
    return call
