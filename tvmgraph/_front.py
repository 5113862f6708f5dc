"""The public names of the front end; :mod:`tvmgraph` hands them out on first use."""

import importlib
from typing import Any

from tvmgraph.autodiff import (
    GradOperation,
    custom_vjp,
    get_grad,
    grad,
    jacfwd,
    jacrev,
    jvp,
    recompute,
    value_and_grad,
    vjp,
    vmap,
)
from tvmgraph.capture import record
from tvmgraph.common import dtype
from tvmgraph.common.dtype import (
    byte,
    double,
    dtype_to_nptype,
    dtype_to_pytype,
    half,
    intc,
    intp,
    pytype_to_dtype,
    short,
    single,
    ubyte,
    uintc,
    uintp,
    ushort,
)
from tvmgraph.common.mutable import mutable
from tvmgraph.common.seed import get_seed, set_seed
from tvmgraph.compat.absent import not_found
from tvmgraph.config import (
    COMPATIBLE,
    GRAPH_MODE,
    LAX,
    PYNATIVE_MODE,
    STRICT,
    JitConfig,
    get_context,
    reset_context,
    set_context,
)
from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.random import (
    Generator,
    default_generator,
    get_rng_state,
    set_rng_state,
)
from tvmgraph.core.tensor import Tensor, tensor
from tvmgraph.dtypes import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tvmgraph.flag_registry import flags
from tvmgraph.graph import Graph
from tvmgraph.jit import jit, jit_class, ms_function
from tvmgraph.jit.watch import assert_max_compiles

manual_seed = set_seed
from_numpy = Tensor.from_numpy
from_dlpack = Tensor.from_dlpack


def is_tensor(value: Any) -> bool:
    """Whether ``value`` is a Tensor (or Parameter)."""
    return isinstance(value, Tensor)


def set_device(device_target: str, device_id: int = 0) -> None:
    """Chooses the device; the same as ``set_context(device_target=..., device_id=...)``."""
    set_context(device_target=device_target, device_id=device_id)


def export(
    net: Any, *inputs: Any, file_name: Any, file_format: str = "ONNX", **options: Any
) -> Any:
    """Writes a network to one file; see :func:`tvmgraph.export.api.export`."""
    from tvmgraph.export.api import export as write

    return write(net, *inputs, file_name=file_name, file_format=file_format, **options)


def load(path: Any, public_key: Any = None) -> Any:
    """Loads what :func:`export` wrote; see :func:`tvmgraph.export.api.load`."""
    from tvmgraph.export.api import load as read

    return read(path, public_key)


def load_hf(folder: Any) -> Any:
    """Loads a local Hugging Face folder; see :func:`tvmgraph.models.hub.load_hf`."""
    from tvmgraph.models.hub import load_hf as load

    return load(folder)


_TRAINING = (
    "Accuracy", "Callback", "CheckpointConfig", "ConfusionMatrix", "EarlyStopping", "F1", "Fbeta",
    "History", "LambdaCallback", "LearningRateScheduler", "Loss", "LossMonitor", "MAE", "MSE",
    "Metric", "Model", "ModelCheckpoint", "Perplexity", "Precision", "ROC", "Recall",
    "ReduceLROnPlateau", "RunContext", "TimeMonitor", "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "auc", "get_metric_fn",
    "load_checkpoint", "load_param_into_net", "save_checkpoint",
)  # fmt: skip
_PRECISION = (
    "DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager", "build_train_network",
)  # fmt: skip
# names of the wider front end that are found when used: their rooms take time to import
_LATER: dict[str, str] = {
    **{name: "train" for name in _TRAINING},
    **{name: "amp" for name in _PRECISION},
    "constexpr": "ops",
    "run_check": "cli.doctor",
    "Profiler": "profiler",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"tvmgraph.{_LATER[name]}"), name)
    raise not_found("tvmgraph", name, [*__all__, *_LATER])


__all__ = [
    "COMPATIBLE",
    "GRAPH_MODE",
    "LAX",
    "PYNATIVE_MODE",
    "STRICT",
    "Generator",
    "GradOperation",
    "Graph",
    "JitConfig",
    "Parameter",
    "ParameterTuple",
    "Tensor",
    "assert_max_compiles",
    "bfloat16",
    "bool_",
    "byte",
    "complex64",
    "complex128",
    "custom_vjp",
    "default_generator",
    "double",
    "dtype",
    "dtype_to_nptype",
    "dtype_to_pytype",
    "export",
    "flags",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "from_numpy",
    "get_context",
    "get_grad",
    "get_rng_state",
    "get_seed",
    "grad",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "intc",
    "intp",
    "is_tensor",
    "jacfwd",
    "jacrev",
    "jit",
    "jit_class",
    "jvp",
    "load",
    "load_hf",
    "manual_seed",
    "ms_function",
    "mutable",
    "pytype_to_dtype",
    "recompute",
    "record",
    "reset_context",
    "set_context",
    "set_device",
    "set_rng_state",
    "set_seed",
    "short",
    "single",
    "tensor",
    "ubyte",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uintc",
    "uintp",
    "ushort",
    "value_and_grad",
    "vjp",
    "vmap",
]  # fmt: skip
