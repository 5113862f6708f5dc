"""Helpers of MindSpore that begin with an underscore and that model zoos import nevertheless."""

from __future__ import annotations

import importlib
from typing import Any

from tvmgraph.compat.parallel import ParallelMode
from tvmgraph.core.rules import broadcast_shapes


class RowTensor:
    """Rows of a tensor at some indices, which MindSpore programs name where gradients are sparse.

    Gradients here are always dense; the class only holds what it is given.

    Args:
        indices: Which rows.
        values: The rows.
        shape: Shape of the whole tensor.
        row_tensor: Another one, which is copied.
    """

    def __init__(
        self, indices: Any = None, values: Any = None, shape: Any = None, row_tensor: Any = None
    ) -> None:
        if row_tensor is not None:
            indices, values, shape = row_tensor.indices, row_tensor.values, row_tensor.dense_shape
        self.indices, self.values, self.dense_shape = indices, values, shape


def get_broadcast_shape(
    x_shape: Any, y_shape: Any, prim_name: str = "", shape_type: str = "", arg_name1: str = "",
    arg_name2: str = "",
) -> list[Any]:  # fmt: skip
    """Returns the shape that two shapes broadcast to.

    Raises:
        ShapeError: if they do not.
    """
    return list(broadcast_shapes(tuple(x_shape), tuple(y_shape)))


def _get_device_num() -> int:
    return 1


def _get_global_rank() -> int:
    return 0


def _get_gradients_mean() -> bool:
    return False


def _get_parallel_mode() -> str:
    return ParallelMode.STAND_ALONE


def _get_pipeline_stages() -> int:
    return 1


def _get_enable_parallel_optimizer() -> bool:
    return False


def _is_sharding_propagation() -> bool:
    return False


def _get_cache_prim(primitive: Any) -> Any:
    """Returns what makes a Primitive: making one costs nothing worth keeping here."""
    return primitive


def cell_attr_register(fn: Any = None, attrs: Any = None) -> Any:
    """Decorates an ``__init__`` whose arguments MindSpore's compiler asks for; this one does not.

    Args:
        fn: The method, which is returned.
        attrs: Names of the attributes that MindSpore remembers.
    """
    return (lambda method: method) if fn is None else fn


class auto_parallel_context:  # noqa: N801  (MindSpore's name)
    """What training Cells of MindSpore 1.x ask about devices; the answers are those of one."""

    def get_device_num_is_set(self) -> bool:
        """Returns whether ``device_num`` was set; programs that hear no ask for the group."""
        return False

    def get_parallel_mode(self) -> str:
        """Returns the mode of ``set_auto_parallel_context``."""
        return _get_parallel_mode()

    def get_pipeline_stages(self) -> int:
        """Returns how many parts the network is cut into."""
        return 1

    def set_all_reduce_fusion_split_indices(self, indices: Any, group: str = "") -> None:
        """Takes which gradients MindSpore sends together, which changes no result."""


class _PynativeExecutor:
    """Stands for the queue of eager operators, which are computed at once here."""

    def sync(self) -> None:
        """Waits until the device has finished what it was given."""
        importlib.import_module("tvmgraph.compat.hal").synchronize()


class _CellGraphExecutor:
    """Stands for MindSpore's compiler of Cells."""

    def compile(self, obj: Any, *args: Any, **kwargs: Any) -> tuple[Any, bool]:
        """Compiles a Cell for these arguments, as :meth:`tvmgraph.nn.Cell.compile` does.

        Args:
            obj: The Cell.
            args: Arguments as of a call.
            kwargs: Arguments by name; MindSpore's own settings of a compile are passed over.

        Returns:
            The Cell, which is its own phase, and that it was compiled.
        """
        own = ("phase", "do_convert", "jit_config_dict", "auto_parallel_mode")
        obj.compile(*args, **{k: v for k, v in kwargs.items() if k not in own})
        return obj, True


_pynative_executor, _cell_graph_executor = _PynativeExecutor(), _CellGraphExecutor()


class FileSystem:
    """How checkpoints are opened: as any file, since there is no other file system here."""

    backend = "basic"
    create = open = staticmethod(open)
    create_args, open_args = ("ab",), ("rb",)


def _register_basic_file_system(fs: FileSystem) -> bool:
    """Lets files be opened by Python's ``open``, which they are."""
    return fs.backend == "basic"


def _register_mindio_file_system(fs: FileSystem) -> bool:
    """Returns that the file system MindIO is not here."""
    return False
