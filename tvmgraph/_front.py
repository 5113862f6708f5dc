"""The public names of the front end; :mod:`tvmgraph` hands them out on first use."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

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
    cdouble,
    cfloat,
    double,
    dtype_to_nptype,
    dtype_to_pytype,
    get_py_obj_dtype,
    half,
    intc,
    intp,
    long,
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
from tvmgraph.config.flag_registry import flags
from tvmgraph.core.arguments import PathLike
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.limits import Symbol
from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.random import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
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
    qint4x2,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tvmgraph.errors import ArgumentError, reject
from tvmgraph.graph import Graph
from tvmgraph.jit import enable_dynamic, jit, jit_class, ms_function
from tvmgraph.jit.recompiles import assert_max_compiles

if TYPE_CHECKING:
    from tvmgraph.nn.cell import Cell

from_numpy = Tensor.from_numpy
from_dlpack = Tensor.from_dlpack


def to_dlpack(tensor: Tensor) -> Tensor:
    """Returns what other libraries' ``from_dlpack`` take: the tensor, which has the protocol.

    Args:
        tensor: The tensor.
    """
    return tensor


def is_tensor(obj: object) -> bool:
    """Whether ``obj`` is a Tensor (or Parameter).

    Args:
        obj: Anything.
    """
    return isinstance(obj, Tensor)


def set_device(device_target: str, device_id: int | None = None) -> None:
    """Chooses the device; the same as ``set_context(device_target=..., device_id=...)``.

    Args:
        device_target: ``"CPU"`` or ``"GPU"``.
        device_id: Which GPU; 0 by default.
    """
    set_context(device_target=device_target, device_id=device_id or 0)


class DeviceCtx:
    """Chooses the device of what a block makes.

    Args:
        name: ``"CPU"`` or ``"GPU"``; ``"meta"``, tensors without values, is refused.
        device_id: Which GPU; 0 by default.

    Raises:
        ArgumentError: when the block begins, if there is no such device.

    Example:
        >>> with ms.DeviceCtx("CPU"):
        ...     print(ops.ones(2).device)
        CPU
    """

    def __init__(self, name: str, device_id: int | None = None) -> None:
        self.name, self.device_id = name, device_id
        self._before: list[tuple[str, int]] = []

    def __enter__(self) -> Self:
        if self.name not in ("CPU", "GPU"):
            reject(ArgumentError, "DeviceCtx", f"name cannot be {self.name!r}",
                   fix="use CPU or GPU; tensors have values here")  # fmt: skip
        if (self.device_id or 0) < 0:
            reject(ArgumentError, "DeviceCtx", f"device_id is {self.device_id}, below 0")
        before = get_context("device_target"), get_context("device_id")
        set_device(self.name, self.device_id)
        self._before.append(before)
        return self

    def __exit__(self, *error: object) -> None:
        set_device(*self._before.pop())


def export(
    net: object, *inputs: object, file_name: PathLike, file_format: str = "ONNX", **options: object
) -> Path:
    """Writes a network to one file; see :func:`tvmgraph.export.api.export`.

    Args:
        net: A Cell, a function of tensors, or what ``jit`` returned.
        inputs: Example arguments; shapes and dtypes count, values do not. Sizes that vary are
            written ``Tensor(shape=["batch", 3])``.
        file_name: Where to write; the suffix of the format is added when it is missing.
        file_format: ``"ONNX"``, ``"TVM"`` (a compiled module), ``"GRAPH"`` (the graph alone) or
            ``"MINDIR"`` (written as a graph file).
        options: Settings of the format, such as ``opset`` and ``dynamic`` of ONNX, ``target``,
            ``jit_level`` and ``frozen`` of a module.
    """
    from tvmgraph.export.api import export as write

    return write(net, *inputs, file_name=file_name, file_format=file_format, **options)


def load(file_name: Any, public_key: Any = None, **kwargs: Any) -> Any:
    """Loads what :func:`export` wrote, or MINDIR; see :func:`tvmgraph.export.api.load`.

    Args:
        file_name: A ``.graph``, ``.onnx``, ``.tvm`` or ``.mindir`` file.
        public_key: A PEM file with the Ed25519 key that must have signed a ``.tvm`` file.
        kwargs: ``dec_key`` and ``dec_mode`` of MindSpore programs are refused: encrypted files are
            not read.
    """
    from tvmgraph.export.api import load as read

    return read(file_name, public_key, **kwargs)


def load_hf(folder: PathLike) -> "Cell":
    """Loads a local Hugging Face folder; see :func:`tvmgraph.models.hub.load_hf`.

    Args:
        folder: A folder with ``config.json`` and weights in safetensors, of a BERT or a GPT-2.
    """
    from tvmgraph.models.hub import load_hf as load

    return load(folder)


def set_deterministic(deterministic: bool) -> None:
    """Lets compiled code give equal bits for any number of threads; see :func:`set_context`.

    Args:
        deterministic: Whether they shall be equal.
    """
    set_context(deterministic="ON" if deterministic else "OFF")


def set_recursion_limit(recursion_limit: int = 1000) -> None:
    """Sets how deeply calls may nest; the same as ``set_context(max_call_depth=...)``.

    Args:
        recursion_limit: How many calls may be inside of each other.
    """
    set_context(max_call_depth=recursion_limit)


class DeviceInfo(NamedTuple):
    """A device: its kind, and which one of that kind."""

    device_target: str
    device_id: int


def get_current_device() -> DeviceInfo:
    """Returns the device that operators run on."""
    return DeviceInfo(get_context("device_target"), get_context("device_id"))


def frombuffer(
    buffer: Any, *, dtype: Any = float32, count: int = -1, offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Returns a tensor of one axis that holds a copy of a buffer's elements.

    Args:
        buffer: Anything with the buffer protocol, such as bytes.
        dtype: How its bytes are read.
        count: How many elements; -1 takes all.
        offset: Bytes to leave out at the beginning.
        requires_grad: Kept for MindSpore programs.
    """
    return Tensor(np.frombuffer(buffer, dtype_to_nptype(dtype), count, offset).copy())


def lazy_inline(fn: object = None, attrs: object = None, policy: object = None) -> Any:
    """Decorates a Cell's ``__init__`` in MindSpore programs; equal layers are found without it.

    Args:
        fn: The function, if the decorator has no arguments of its own.
        attrs: Left aside.
        policy: Left aside.
    """
    return fn if callable(fn) else lazy_inline


no_inline = lazy_inline

_LATER = {
    name: room
    for room, names in {
        "amp": "DynamicLossScaleManager FixedLossScaleManager LossScaleManager build_train_network",
        "cli.doctor": "run_check",
        "compat.log": "get_level get_log_config",
        "compat.parallel": "ParallelMode",
        "distributed.api": "DTensor Layout redistribute reshard shard",
        "distributed.context": """get_algo_parameters get_auto_parallel_context
            reset_algo_parameters reset_auto_parallel_context set_algo_parameters
            set_auto_parallel_context""",
        "compat.private": "RowTensor",
        "compat.whole": """flops_collection get_ckpt_path_with_strategy mindio_preload
            set_mindio_server_info""",
        "compat.sparse": "COOTensor CSRTensor",
        "hal": """Event Stream StreamCtx current_stream default_stream empty_cache
            max_memory_allocated max_memory_reserved memory_allocated memory_reserved memory_stats
            memory_summary reset_max_memory_allocated reset_max_memory_reserved
            reset_peak_memory_stats set_cur_stream synchronize""",
        "common.api": "ms_class",
        "common.dtype": "QuantDtype TensorType Type float_ int_ list_ tensor_type tuple_ type_none",
        "ops": "constexpr",
        "profiler": "Profiler",
        "runtime": "launch_blocking",
        "train.mindir_file": "load_mindir save_mindir",
        "train": """Accuracy BackupAndRestore BleuScore Callback CheckpointConfig
            ConfusionMatrix ConfusionMatrixMetric CosineSimilarity DatasetHelper Dice EarlyStopping
            F1 Fbeta History LambdaCallback LearningRateScheduler Loss LossMonitor MAE MSE Metric
            Model ModelCheckpoint OnRequestExit Perplexity Precision ROC Recall
            ReduceLROnPlateau RunContext
            TimeMonitor Top1CategoricalAccuracy Top5CategoricalAccuracy TopKCategoricalAccuracy
            async_ckpt_thread_status auc ckpt_to_safetensors connect_network_with_dataset data_sink
            get_metric_fn get_metrics load_checkpoint load_checkpoint_async load_param_into_net
            names rearrange_inputs safetensors_to_ckpt save_checkpoint SummaryCollector
            SummaryRecord HausdorffDistance MeanSurfaceDistance OcclusionSensitivity
            RootMeanSquareDistance""",
    }.items()
    for name in names.split()
}
"""Names that are found when used: their rooms take time to import."""


def __getattr__(name: str) -> Any:
    if name in ("bool", "float", "int"):  # as globals they would hide Python's in this file
        return getattr(dtype, name)
    if name in _LATER:
        return getattr(importlib.import_module(f"tvmgraph.{_LATER[name]}"), name)
    raise not_found("tvmgraph", name, [*__all__, *_LATER])


__all__ = [
    "COMPATIBLE", "GRAPH_MODE", "LAX", "PYNATIVE_MODE", "STRICT", "DeviceCtx", "Generator",
    "GradOperation", "Graph", "JitConfig", "Parameter", "ParameterTuple", "Symbol",
    "Tensor",
    "assert_max_compiles",
    "bfloat16", "bool_", "byte", "cdouble", "cfloat", "complex64", "complex128", "custom_vjp",
    "default_generator", "double", "dtype", "dtype_to_nptype", "dtype_to_pytype", "enable_dynamic",
    "export", "flags",
    "float16", "float32", "float64", "from_dlpack", "from_numpy", "frombuffer", "get_context",
    "get_current_device", "get_grad", "get_py_obj_dtype", "get_rng_state", "get_seed", "grad",
    "half", "initial_seed", "int8", "int16", "int32", "int64", "intc", "intp", "is_tensor",
    "jacfwd", "jacrev", "jit", "jit_class", "jvp", "lazy_inline", "load", "load_hf", "long",
    "manual_seed", "ms_function", "mutable", "no_inline", "pytype_to_dtype", "qint4x2", "recompute",
    "record", "reset_context", "seed", "set_context", "set_deterministic", "set_device",
    "set_recursion_limit", "set_rng_state", "set_seed", "short", "single", "string", "tensor",
    "to_dlpack", "ubyte", "uint8", "uint16", "uint32", "uint64", "uintc", "uintp", "ushort",
    "value_and_grad", "vjp", "vmap",
]  # fmt: skip

_guard_module(globals())
