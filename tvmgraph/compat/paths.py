"""Import paths of MindSpore 1.x and 2.x that have no file of that path here.

Each path stands for the rooms in which its names live. Modules of such paths are registered when
the package is imported and import nothing before one of their names is asked for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from importlib.machinery import ModuleSpec
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from tvmgraph.compat.absent import AbsentFinder, not_found
from tvmgraph.errors import NotFoundImportError

#: Files of MindSpore below a path whose names are all in the path's rooms.
_FILES = {
    "nn.layer": """activation basic channel_shuffle combined container conv dense embedding image
        math normalization padding pooling rnn_cells rnns timedistributed transformer""",
    "nn.metrics": """accuracy auc bleu_score confusion_matrix confusion_matrix_metric
        cosine_similarity dice error fbeta loss metric perplexity precision recall roc topk""",
    "nn.optim": """ada_grad adadelta adafactor adam adamax asgd ftrl lamb lars lazyadam momentum
        proximal_ada_grad rmsprop rprop sgd""",
    "ops.function": """array_func clip_func debug_func fft_func grad grad.grad_func image_func
        linalg_func math_func nn_func other_func parameter_func random_func reshard_func
        spectral_func vmap_func""",
    "ops.operations": """_infer_ops array_ops comm_ops control_ops custom_ops debug_ops image_ops
        inner_ops linalg_ops math_ops nn_ops other_ops random_ops sparse_ops spectral_ops""",
    "train.callback": """_backup_and_restore _callback _checkpoint _early_stop _history
        _lambda_callback _loss_monitor _lr_scheduler_callback _reduce_lr_on_plateau
        _summary_collector _time_monitor""",
}

#: Rooms, in the order in which they are searched and below ``tvmgraph``, -> paths of their names.
_BY_ROOMS = {
    "compat.checkparam": "_checkparam",
    "compat.checkparam compat.whole": "train._utils",
    "compat.private compat.random_arrays compat.whole": "_c_expression",
    "compat.strategy": "_c_expression.amp",
    "compat.typing": "_c_expression.typing",
    "compat.whole": """ops._grad_experimental ops._grad_experimental.grad_comm_ops
        parallel.strategy""",
    "compat.private compat.whole": "common.file_system",
    "compat.private": """_extends common._grad_function common._stub_tensor common._pijit_context
        graph.api dataset.vision.py_transforms_util ops._primitive_cache ops._utils
        parallel._auto_parallel_context parallel._cost_model_context parallel._ps_context
        parallel._utils""",
    "compat.compiler_names": "_extends.parse.standard_method ops.signature",
    "compat.private compat.compiler_names": "_extends.parse",
    "config": "common.jit_config",
    "_front": "common.device common.lazy_inline utils.dlpack",
    "_front compat.whole": "utils",
    "compat.sparse compat.private": "common.sparse_tensor",
    "core.random": "common.generator",
    "compat.boost amp train": "boost",
    "compat.boost": "boost.boost boost.grad_accumulation",
    "compat.communication": "communication communication._comm_helper communication.management",
    "compat.comm_func": "communication.comm_func",
    "dataset.audio": "dataset.audio.transforms dataset.audio.utils",
    "dataset": "dataset.core dataset.engine",
    "dataset.config": "dataset.core.config",
    "dataset dataset.stages": "dataset.engine.datasets",
    "dataset.iterator compat.private": "dataset.engine.iterators",
    "context": "dataset.context",
    "dataset.text": "dataset.text.utils",
    "dataset.transforms": """dataset.transforms.c_transforms dataset.transforms.py_transforms
        dataset.transforms.transforms""",
    "dataset.vision dataset.transforms": """dataset.vision.c_transforms dataset.vision.py_transforms
        dataset.vision.transforms dataset.vision.utils""",
    "compat.device_context": "device_context",
    "compat.device_context._ascend": "device_context.ascend",
    "compat.device_context._cpu": "device_context.cpu",
    "compat.device_context._gpu": "device_context.gpu",
    "compat.hal": "hal",
    "compat.log": "log",
    "dataset.mindrecord_writer dataset.mindrecord": "mindrecord",
    "compat.mint": "mint",
    "compat.mint.nn.functional": "mint.functional mint.nn.functional",
    "compat.mint.distributed": "mint.distributed mint.distributed.distributed ops.communication",
    "compat.mint.linalg": "mint.linalg",
    "compat.mint.nn": "mint.nn",
    "compat.mint.optim": "mint.optim",
    "compat.mint.special": "mint.special",
    "experimental.optim": """experimental.optim.adam experimental.optim.adamw
        experimental.optim.optimizer experimental.optim.sgd""",
    "numpy": "numpy.array_creations numpy.array_ops numpy.logic_ops numpy.math_ops",
    "compat.numpy_utils": "numpy.utils numpy.utils_const",
    "optim": "nn.dynamic_lr nn.learning_rate_schedule nn.optim",
    "nn": "nn.grad nn.grad.cell_grad nn.wrap.grad_reducer",
    "nn.cosine nn": "nn.layer",
    "train": "nn.metrics",
    "optim compat.optimizer": "nn.optim.optimizer",
    "nn.probability.distribution": "nn.probability.distribution.distribution",
    "nn.initialisation": "nn.utils nn.utils.init",
    "nn compat.private nn.wrap": "nn.wrap.cell_wrapper",
    "nn compat.private": "nn.wrap.loss_scale",
    "compat.inner_ops": "ops._utils.arg_dtype_cast ops.operations._sequence_ops",
    "compat.composite": "ops.composite",
    "ops compat.primitives compat.mint compat.grad_ops": """ops.auto_generate
        ops.auto_generate.gen_ops_def ops.auto_generate.gen_ops_prim""",
    "compat.composite compat.compiler_names": "ops.composite.base",
    "ops": "ops.function",
    "compat.mint ops": "ops.functional_overload",
    "compat.functional": "ops.functional",
    "compat.primitives": "ops.operations ops.operations._rl_inner_ops",
    "compat.grad_ops": "ops.operations._grad_ops",
    "compat.inner_ops compat.primitives": "ops.operations._inner_ops",
    "compat.primitives compat.functional": "ops.operations.manually_defined",
    "compat.primitives.base": "ops.primitive",
    "compat.primitives.elsewhere": "train.node_strategy_pb2",
    "compat.parallel distributed.api distributed.context train.parallel": "parallel",
    "train.parallel": "parallel.auto_parallel",
    "distributed.api": "parallel.function",
    "distributed.api distributed.layout compat.whole": "parallel.shard",
    "profiler": """profiler.common profiler.common.constant profiler.profiler
        profiler.profiling""",
    "runtime": "runtime.memory",
    "amp amp.levels amp.network compat.private": "train.amp",
    "train.summary": "train.summary.summary_record",
    "train.callback": "train.callback._callback",
    "train.sink": "train.dataset_helper",
    "amp": "train.loss_scale_manager",
}
#: Path -> rooms that are searched for its names.
PATHS: dict[str, tuple[str, ...]] = {
    path: tuple(rooms.split()) for rooms, paths in _BY_ROOMS.items() for path in paths.split()
}
for _device in ("ascend", "cpu", "gpu"):
    _FILES[f"device_context.{_device}"] = "device op_debug op_precision op_tuning"
_ROOMS = {
    **PATHS, "ops.operations": ("compat.primitives", "ops"), "train.callback": ("train.callback",),
}  # fmt: skip
#: Classes with an underscore that zoos subclass stand in the files of the layers.
_LAYERS = {f"nn.layer.{f}": ("nn", f"nn.{f}") for f in ("activation", "conv", "normalization")}
_LAYERS["nn.layer.rnn_cells"] = ("nn", "nn.recurrent")
PATHS = PATHS | {f"{path}.{file}": _ROOMS[path] for path in _FILES for file in _FILES[path].split()}
PATHS["ops.function.nn_func"] = ("ops", "compat.attention")
PATHS["ops.function.grad.grad_func"] = ("compat.private", "ops")
PATHS = PATHS | _LAYERS | {"nn.loss.loss": ("nn", "nn.loss")}


#: How names of MindSpore's files of operators end that stand for functions of mint or methods.


#: What is no name of a room; ``None`` may be one, as ``numpy.newaxis``.
_MISSING = object()


#: Packages whose names are offered as our own, such as the dtypes of NumPy.
_OFFERED = ("tvmgraph", "numpy", "ml_dtypes", "builtins")


def own_names(room: ModuleType) -> list[str]:
    """Returns the names of a room without those it imports to be written: ``Any``, ``functools``.

    Args:
        room: The module.
    """
    said = None if "__dir__" in vars(room) else getattr(room, "__all__", None)
    known = dir(room) if said is None else said
    return [n for n in known if n[0] != "_" and not is_foreign(n, vars(room).get(n))]


def is_foreign(name: str, value: object) -> bool:
    """Whether a name of a module is imported from elsewhere: no completion should offer it.

    Args:
        name: The name.
        value: What it stands for.
    """
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] != "tvmgraph"
    made = isinstance(value, (type, FunctionType, BuiltinFunctionType))  # others are instances
    module = str(getattr(value if made else type(value), "__module__", None))
    root = module.partition(".")[0]
    return name == "TYPE_CHECKING" or (
        root not in _OFFERED if made else root in ("__future__", "types", "typing")
    )


class AliasModule(ModuleType):
    """A module that has the names of other modules.

    Args:
        path: Its path below ``tvmgraph``.
        rooms: Where its names are.
    """

    def __init__(self, path: str, rooms: tuple[str, ...]) -> None:
        super().__init__(f"tvmgraph.{path}", f"MindSpore's ``mindspore.{path}``.")
        self.__spec__ = ModuleSpec(self.__name__, None, is_package=True)
        self.__path__ = []
        self._rooms = rooms

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":  # what a star import binds
            rooms = [importlib.import_module(f"tvmgraph.{room}") for room in self._rooms]
            return sorted({n for r in rooms for n in getattr(r, "__all__", None) or own_names(r)})
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = find(self.__name__, name) or self._found(name)
        if found is _MISSING:
            return look(self.__name__, name, dir(self))
        setattr(self, name, found)
        return found

    def _found(self, name: str) -> object:
        for room in self._rooms:
            try:
                return getattr(importlib.import_module(f"tvmgraph.{room}"), name)
            except (AttributeError, NotFoundImportError):
                continue
        if self.__name__.startswith("tvmgraph.ops."):
            extended = importlib.import_module("tvmgraph.compat.extended")
            if not name[0].isupper():
                return extended.function_of(name) or _MISSING
            elsewhere = importlib.import_module("tvmgraph.compat.primitives.elsewhere")
            own = elsewhere.class_of(name) if self.__name__ != "tvmgraph.ops.operations" else None
            return extended.class_of(name) or own or _MISSING
        return _MISSING

    def __dir__(self) -> list[str]:
        rooms = [importlib.import_module(f"tvmgraph.{room}") for room in self._rooms]
        return sorted({name for room in rooms for name in own_names(room)})


def install() -> None:
    """Registers the paths, so that ``import tvmgraph.nn.metrics`` finds them or says why not."""
    for path, rooms in PATHS.items():
        sys.modules.setdefault(f"tvmgraph.{path}", AliasModule(path, rooms))
    sys.meta_path.append(AbsentFinder)


def as_package(path: str, *rooms: str) -> tuple[list[str], Callable[[str], object]]:
    """Returns ``__path__`` and ``__getattr__`` of a file that is a package in MindSpore.

    Args:
        path: The file, as a module: its ``__name__``.
        rooms: Where the names are that MindSpore has there and the file has not.
    """
    return [], AliasModule(path.removeprefix("tvmgraph."), rooms).__getattr__


def find(parent: str, name: str) -> ModuleType | None:
    """Returns the module of a path, for packages that are asked for ``parent.name``.

    Args:
        parent: The package, such as ``tvmgraph.nn``.
        name: Name of the module in it.
    """
    path = f"{parent}.{name}".removeprefix("tvmgraph.")
    return sys.modules[f"tvmgraph.{path}"] if path in PATHS else None


def look(parent: str, name: str, known: Iterable[str]) -> ModuleType:
    """Returns the module of a path, for a package that lacks a name.

    Args:
        parent: The package, such as ``tvmgraph.nn``.
        name: The name that it lacks.
        known: The names that it has.

    Raises:
        NotFoundError: when there is none; it says why (see :func:`.absent.not_found`).
    """
    if name.startswith("__"):
        raise AttributeError(f"module {parent!r} has no attribute {name!r}")
    path = find(parent, name)
    if path is None:
        raise not_found(parent, name, known)
    return path
