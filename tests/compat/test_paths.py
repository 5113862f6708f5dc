"""Imports of real programs, with nothing but the package's name changed."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph
import tvmgraph as ms
from tvmgraph import Tensor, nn
from tvmgraph.common.api import _cell_graph_executor, _pynative_executor
from tvmgraph.compat.paths import PATHS, is_foreign
from tvmgraph.errors import NotFoundError
from tvmgraph.nn.optim.optimizer import Optimizer, opt_init_args_register  # pyright: ignore

PACKAGE = Path(tvmgraph.__file__).parent
NAMES = PACKAGE.parent / "docs" / "mindspore-names.md"
#: The packages of MindSpore's whose names are listed in docs/mindspore-names.md and that are here.
PACKAGES = [
    path for path in re.findall(r"^\| `mindspore\.([\w.]+)`", NAMES.read_text(), re.M)
    if path not in ("Cell", "Parameter", "Tensor", "multiprocessing", "rewrite")
]  # fmt: skip

IMPORTS = """
import mindspore.dataset.transforms.c_transforms as C2
import mindspore.dataset.vision.c_transforms as C
import mindspore.log as logger
import mindspore.nn as nn
from mindspore import FixedLossScaleManager, Model, Tensor, context, log, nn, ops
from mindspore.common import mutable
from mindspore._extends import cell_attr_register
from mindspore.common.api import _cell_graph_executor, _pynative_executor, jit
from mindspore.common.initializer import Normal, initializer
from mindspore.dataset.transforms import c_transforms
from mindspore.dataset.vision import Inter
from mindspore.nn.learning_rate_schedule import LearningRateSchedule, WarmUpLR
from mindspore.nn.loss.loss import LossBase
from mindspore.nn.metrics import Accuracy, Metric
from mindspore.nn.optim import Adam, Momentum
from mindspore.nn.optim.optimizer import Optimizer, opt_init_args_register
from mindspore.nn.layer.rnn_cells import RNNCellBase
from mindspore.log import _LogActionOnce
from mindspore.nn.loss import SoftmaxCrossEntropyWithLogits
from mindspore.dataset.core.config import get_seed
from mindspore.nn.loss.loss import _Loss
from mindspore.nn.grad import Jvp, Vjp
from mindspore.ops.auto_generate.gen_ops_prim import Add
from mindspore.ops.function.grad.grad_func import grad, value_and_grad
from mindspore.ops.primitive import _primexpr, constexpr
from mindspore.nn.wrap.cell_wrapper import TrainOneStepCell, WithLossCell
from mindspore.nn.wrap.grad_reducer import DistributedGradReducer
from mindspore.nn.wrap.loss_scale import TrainOneStepWithLossScaleCell
from mindspore.ops import composite, functional as F, operations as P
from mindspore.train.amp import build_train_network
from mindspore.train.callback import Callback, CheckpointConfig, LossMonitor, ModelCheckpoint
from mindspore.train.loss_scale_manager import DynamicLossScaleManager, FixedLossScaleManager
from mindspore.train.callback import _InternalCallbackParam
from mindspore.train.callback._loss_monitor import LossMonitor
from mindspore.train.model import Model, ParallelMode
from mindspore.train.summary.summary_record import SummaryRecord
from mindspore.parallel._auto_parallel_context import auto_parallel_context
from mindspore.profiler.profiling import Profiler
from mindspore._extends import cell_attr_register
from mindspore.train.serialization import export, load, load_checkpoint, load_param_into_net
from mindspore.train.serialization import Tensor, _update_param, context, tensor_to_np_type
from mindspore.train.callback import _set_cur_net
from mindspore.nn.layer.activation import _activation, get_activation
from mindspore.parallel import set_algo_parameters, _cost_model_context
from mindspore.parallel._cost_model_context import _set_multi_subgraphs, set_cost_model_context
from mindspore.parallel._ps_context import _is_role_sched
from mindspore.dataset.transforms.transforms import PyTensorOperation, TensorOperation
from mindspore.dataset.vision.py_transforms_util import augment_error_message, is_pil
from mindspore.ops.operations import ReduceOp, ScalarSummary
from mindspore import version
"""


@pytest.mark.parametrize("line", [i for i in IMPORTS.splitlines() if i])
def test_imports(line: str) -> None:
    exec(line.replace("mindspore", "tvmgraph"), {})


def test_files_that_are_packages_in_mindspore() -> None:
    for path in {path.rpartition(".")[0] for path in PATHS}:
        module = importlib.import_module(f"tvmgraph.{path}".rstrip("."))
        assert hasattr(module, "__path__"), path  # else a finder of aliases is not asked
    with pytest.raises(NotFoundError, match=r"tvmgraph.nn.loss has no 'CrossEntropyLos'"):
        nn.loss.CrossEntropyLos  # pyright: ignore[reportAttributeAccessIssue]


def test_settings_and_tables_that_programs_ask_for() -> None:
    from tvmgraph.common import dtype as mstype
    from tvmgraph.train.serialization import (  # pyright: ignore
        _update_param,
        tensor_to_ms_type,
        tensor_to_np_type,
    )

    assert ms.version.__version__.split(".")[0] == "2"  # how programs choose what to call
    assert mstype.all_types == (ms.bool_, *mstype.number_type)
    assert tensor_to_ms_type["BFloat16"] is ms.bfloat16 and tensor_to_np_type["Int8"] == np.int8
    ms.set_algo_parameters(tensor_slice_align_size=32)
    assert ms.get_algo_parameters("tensor_slice_align_size") == 32
    ms.reset_algo_parameters()
    assert ms.get_algo_parameters("tensor_slice_align_size") == 16
    for wrong in ({"fully_use_device": True}, {"fully_use_devices": 3}):
        with pytest.raises(ValueError, match="fully_use_device"):
            ms.set_algo_parameters(**wrong)
    bias = ms.Parameter(ms.Tensor([0.0, 0.0, 0.0]), name="bias")
    _update_param(bias, ms.Tensor([1.0, 2.0, 3.0], ms.float16))
    assert bias.asnumpy().tolist() == [1.0, 2.0, 3.0] and bias.dtype is ms.float32
    with pytest.raises(ValueError, match="another shape"):
        _update_param(bias, ms.Tensor([1.0]))


def test_cells_and_transforms_that_programs_derive_from() -> None:
    from tvmgraph.dataset.transforms import PyTensorOperation
    from tvmgraph.nn.wrap.cell_wrapper import _VirtualDatasetCell  # pyright: ignore

    class Twice(PyTensorOperation):
        def _execute_py(self, image: np.ndarray) -> np.ndarray:
            return image * 2

    assert Twice()(np.arange(3)).tolist() == [0, 2, 4]
    net = _VirtualDatasetCell(nn.Dense(2, 3))
    assert net(ms.ops.ones((4, 2))).shape == (4, 3)
    assert [p.name for p in net.get_parameters()] == ["weight", "bias"]


def test_private_names_of_real_programs() -> None:
    from tvmgraph._extends import cell_attr_register  # pyright: ignore
    from tvmgraph.common.api import _cell_graph_executor, _pynative_executor
    from tvmgraph.ops.primitive import _primexpr  # pyright: ignore

    class Net(nn.Cell):
        @cell_attr_register(attrs=["n"])
        def __init__(self, n):
            super().__init__()
            self.n = n

        @cell_attr_register
        def construct(self, x):
            return twice(x) * self.n

    @_primexpr
    def twice(x):
        return x * 2

    net, x = Net(3), tvmgraph.Tensor([1.0])
    _cell_graph_executor.compile(net, x)
    _pynative_executor.sync()
    assert tvmgraph.jit(net)(x).asnumpy().tolist() == [6.0]


def test_no_path_hides_a_file() -> None:
    for path in PATHS:
        place = PACKAGE / path.replace(".", "/")
        assert not place.with_suffix(".py").exists() and not place.is_dir(), path


@pytest.mark.parametrize("path", PATHS)
def test_modules(path: str) -> None:
    module = importlib.import_module(f"tvmgraph.{path}")
    names = dir(module)
    assert names
    for name in names:
        getattr(module, name)
    with pytest.raises(NotFoundError, match=f"tvmgraph.{path} has no 'nothing'"):
        module.nothing  # pyright: ignore[reportAttributeAccessIssue]


def test_paths_as_attributes() -> None:
    assert nn.metrics.Accuracy is tvmgraph.Accuracy  # pyright: ignore
    assert tvmgraph.log.get_level() == "2"  # pyright: ignore
    assert tvmgraph.get_log_config() == {"GLOG_v": "2", "GLOG_logtostderr": "1"}


def test_paths_cost_no_import() -> None:
    code = "import sys, tvmgraph; print([m for m in sys.modules if m == 'numpy'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_optimizer_remembers_its_arguments() -> None:
    class Descent(Optimizer):
        @opt_init_args_register
        def __init__(self, params, learning_rate=0.1, momentum=0.9):
            super().__init__(learning_rate, params)

    net = nn.Dense(2, 3)
    made = Descent(net.trainable_params(), momentum=0.5)
    assert made.init_learning_rate == 0.1
    assert made.init_args == {"momentum": 0.5}
    assert made.init_params["params"] == net.trainable_params()
    # MindOCR's factory refuses optimizers that show an argument `clip`
    assert list(inspect.signature(Descent.__init__).parameters) == ["self", "args", "kwargs"]
    schedule: Any = nn.CosineDecayLR(0.0, 0.1, 4)
    rate: Any = Tensor(0.5)
    assert Descent(net.trainable_params(), rate).init_learning_rate == 0.5
    assert Descent(net.trainable_params(), schedule).init_learning_rate is None


def test_the_compiler_and_the_queue_of_operators_have_names() -> None:
    net = nn.Dense(2, 3)
    assert _cell_graph_executor.compile(net, tvmgraph.ops.ones((1, 2)), phase="predict")[1]
    assert _pynative_executor.sync() is None


@pytest.mark.parametrize("path", sorted({*PATHS, *PACKAGES}))
def test_modules_list_what_is_theirs(path: str) -> None:
    """What completion offers and a star import binds has no ``Any``, ``np`` or ``functools``."""
    module = importlib.import_module(f"tvmgraph.{path}")
    listed = [n for n in dir(module) if not n.startswith("_")]
    foreign = {"Any", "Callable", "ModuleType", "Sequence", "TYPE_CHECKING", "annotations",
               "functools", "importlib", "look", "np", "sys"}  # fmt: skip
    assert listed and not foreign.intersection(listed)
    assert [n for n in listed if is_foreign(n, vars(module).get(n))] == []
