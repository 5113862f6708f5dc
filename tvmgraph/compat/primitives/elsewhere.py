"""Operators of other processors, which programs make on every device and call on theirs."""

from __future__ import annotations

from typing import NoReturn

from tvmgraph.compat.primitives.base import Primitive
from tvmgraph.errors import DeviceError

#: Classes of MindSpore's files of operators that zoos import everywhere and call on Ascend only.
_ASCEND = frozenset(
    """
    ApplyRotaryPosEmb DSDMatmul Dequant DynamicQuantExt FusedAddTopKDiv GroupTopk GroupedMatmul
    GroupedMatmulV4 IncreFlashAttention KVCacheScatterUpdate MatmulDDS MoeComputeExpertTokens
    MoeDistributeCombine MoeDistributeDispatch MoeFinalizeRouting MoeGatingTopKSoftmax
    MoeInitRouting MoeInitRoutingV2 MoeTokenPermute MoeTokenUnpermute NPUClearFloatStatusV2
    NPUGetFloatStatusV2 PagedAttention PagedAttentionMask PromptFlashAttention Quant
    QuantBatchMatmul QuantV2 ReshapeAndCache RotaryPositionEmbedding TopKRouter
    WeightQuantBatchMatmul
    """.split()  # noqa: SIM905  (one word each)
)


def refuse(name: str, processors: str, instead: str) -> NoReturn:
    """Says that an operator was called which there is on other processors only.

    Args:
        name: The operator.
        processors: Where MindSpore has it.
        instead: What to call here.

    Raises:
        DeviceError: always.
    """
    raise DeviceError(f"ops.{name} runs on {processors} only", op=name, fix=f"call {instead}")


def class_of(name: str) -> type[Primitive] | None:
    """Returns the class of an operator of Ascend processors, which can be made and not called.

    Args:
        name: Such as ``GroupedMatmul``; others give None.
    """
    if name not in _ASCEND:
        return None

    def init(self: Primitive, *_args: object, **_kwargs: object) -> None:
        Primitive.__init__(self, name)

    def call(self: Primitive, *_args: object, **_kwargs: object) -> NoReturn:
        raise DeviceError(f"ops.{name} runs on Ascend processors only", op=name,
                          fix="choose the zoo's way for other processors")  # fmt: skip

    doc = "An operator of Ascend processors: it can be made, and says so when it is called."
    return type(name, (Primitive,), {"__init__": init, "__call__": call, "__doc__": doc})


class ParallelStrategyMap:
    """Where MindSpore's compiler put the parts of parameters, which it writes beside checkpoints.

    Raises:
        DeviceError: always; ``ms.shard`` and ``nn.DistributedGradReducer`` split programs here.
    """

    def __init__(self) -> None:
        raise DeviceError("MindSpore's compiler writes strategies of parameters, there are none "
                          "here", op="ParallelStrategyMap",
                          fix="save whole parameters by save_checkpoint")  # fmt: skip


def float_status(name: str) -> NoReturn:
    """Says that there is no register of overflows to ask.

    Args:
        name: The operator that was called.

    Raises:
        DeviceError: always.
    """
    refuse(name, "Ascend processors", "amp.all_finite or ops.isfinite with the gradients")
