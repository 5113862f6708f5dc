"""Helpers of MindSpore that begin with an underscore and that model zoos import nevertheless."""

from __future__ import annotations

import contextlib
import gc
import importlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from tvmgraph import dtypes
from tvmgraph.autodiff.custom import call_with_bprop
from tvmgraph.autodiff.tape import paused
from tvmgraph.compat.composite import MultitypeFuncGraph
from tvmgraph.compat.parallel import ParallelMode
from tvmgraph.core.op import F
from tvmgraph.core.rules import broadcast_shapes
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import CaptureError, DTypeError, either, reject
from tvmgraph.jit import jit
from tvmgraph.jit.function import JitFunction
from tvmgraph.nn.cell import Cell
from tvmgraph.nn.wrap import _OutputTo32, _VirtualDatasetCell  # noqa: F401

T = TypeVar("T")
#: Functions that MindSpore's pipelines register and zoos add signatures to.
grad_scale, shard_grad_scale = (
    MultitypeFuncGraph("grad_scale"),
    MultitypeFuncGraph("shard_grad_scale"),
)
#: Whether gradients overflow: 1 for those with an infinity or a NaN.
_grad_overflow = MultitypeFuncGraph("_grad_overflow")


@_grad_overflow.register("Tensor")
def _overflow_of_one(grad: Tensor) -> Tensor:
    return F.expand_dims(F.cast(~F.isfinite(grad).all(), dtypes.float32), 0)


#: What MindSpore's operators return before they are computed; here they are computed at once.
StubTensor = TensorPy = Tensor
#: Whether MindSpore was built to write no files of its own.
security = SimpleNamespace(enable_security=lambda: False)


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
        self,
        indices: Tensor | None = None,
        values: Tensor | None = None,
        shape: Sequence[int] | None = None,
        row_tensor: RowTensor | None = None,
    ) -> None:
        if row_tensor is not None:
            indices, values, shape = row_tensor.indices, row_tensor.values, row_tensor.dense_shape
        self.indices, self.values, self.dense_shape = indices, values, shape


RowTensorInner = RowTensor
#: What MindSpore compiled of every Cell; Cells keep that themselves here.
cells_compile_cache: dict[int, object] = {}


def _reset_op_id() -> None:
    """Numbers MindSpore's operators anew; they have no numbers here."""


def get_broadcast_shape(
    x_shape: Sequence[int],
    y_shape: Sequence[int],
    prim_name: str = "",
    shape_type: str = "",
    arg_name1: str = "",
    arg_name2: str = "",
) -> list[object]:
    """Returns the shape that two shapes broadcast to.

    Args:
        x_shape: The one shape.
        y_shape: The other shape.
        prim_name: Name of what was called in messages.
        shape_type: Kept for MindSpore programs.
        arg_name1: Name of the one argument in messages.
        arg_name2: Name of the other one.

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


def _is_role_sched() -> bool:
    return False


_is_role_pserver = _is_role_worker = _is_role_sched


def _is_in_auto_parallel_mode() -> bool:
    return False


def _set_rp_matmul_mem_coef(coef: float) -> None:
    """Takes what MindSpore's search for splits believes of products' memory."""


def set_cost_model_context(**kwargs: object) -> None:
    """Takes what MindSpore's search for splits believes of devices, which changes nothing here."""


def _set_multi_subgraphs(multi_subgraph: bool = True) -> None:
    """Takes whether MindSpore's graph is split in several, which changes nothing here."""


def set_cur_net(net: Cell) -> None:
    """Takes the network that MindSpore's callbacks save; here they are given it in every call.

    Args:
        net: The network.
    """


#: What a transform of one's own says of a picture that is not Pillow's.
augment_error_message = "img must be a Pillow image, not {}; use Decode() or ToPIL() before"


def is_pil(img: object) -> bool:
    """Returns whether a picture is Pillow's.

    Args:
        img: Any object.
    """
    return isinstance(img, importlib.import_module("PIL.Image").Image)


def is_numpy(img: object) -> bool:
    """Returns whether a picture is an array of NumPy.

    Args:
        img: Any object.
    """
    return isinstance(img, np.ndarray)


def hwc_to_chw(img: np.ndarray) -> np.ndarray:
    """Returns a picture with its channels first; one without channels stays as it is.

    Args:
        img: The picture [H, W, C] or [H, W].

    Raises:
        DTypeError: if it is no array of two or three axes.
    """
    if not is_numpy(img) or img.ndim not in (2, 3):
        reject(DTypeError, "hwc_to_chw", "img must be an array of 2 or 3 axes", repr(type(img)))
    return img if img.ndim == 2 else img.transpose(2, 0, 1).copy()


def _get_cache_prim(primitive: object) -> object:
    """Returns what makes a Primitive: making one costs nothing worth keeping here."""
    return primitive


def _function_forbid_reuse(func: T) -> T:
    """Decorates a function that MindSpore's compiler copies for every call, as is always done.

    Args:
        func: The function, which is returned.
    """
    return func


def cell_attr_register(fn: object = None, attrs: object = None) -> Any:
    """Decorates an ``__init__`` whose arguments MindSpore's compiler asks for; this one does not.

    Args:
        fn: The method, which is returned.
        attrs: Names of the attributes that MindSpore remembers.
    """
    return (lambda method: method) if fn is None else fn


class _CustomVjp(Cell):
    """A function whose derivative is what ``defbwd`` was given."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def construct(self, *args: object) -> Any:
        """Computes the function."""
        return self.function(*args)

    def defbwd(self, bwd: Callable[..., object]) -> None:
        """Takes ``bwd(*inputs, out, dout)``, which returns one gradient per input."""
        self.bwd = bwd

    def bprop(self, *args: object) -> object:
        """Computes the gradients."""
        return self.bwd(*args)


def custom_vjp(fn: Callable[..., object] | None = None) -> Any:
    """Decorates a function that gets a derivative of its own by its ``defbwd``.

    Args:
        fn: The function.
    """
    return _CustomVjp if fn is None else _CustomVjp(fn)


class _no_grad(contextlib.ContextDecorator):  # noqa: N801  (MindSpore's name)
    """What is computed inside is constant to gradients: a context, or a decorator."""

    def __enter__(self) -> None:
        self._open = paused()
        self._open.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self._open.__exit__(*raised)


class _Function:
    """A function with a derivative of its own: a class with ``forward`` and ``backward``.

    ``forward(ctx, *args)`` computes it and may keep what it likes as attributes of ``ctx``, an
    instance of the class; ``backward(ctx, *gradients)`` gets one gradient per result and returns
    one per argument. Programs call ``apply(*args)``.
    """

    saved_tensors: tuple[object, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()
    non_differentiable: tuple[object, ...] = ()
    materialize_grads = True

    @staticmethod
    def forward(ctx: object, *args: object, **kwargs: object) -> object:
        """Computes the function; every class writes its own."""
        raise NotImplementedError("forward of a _Function")

    @staticmethod
    def backward(ctx: object, *grad_outputs: object) -> object:
        """Computes the gradients; every class writes its own."""
        raise NotImplementedError("backward of a _Function")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Computes the function.

        Args:
            args: Arguments of ``forward``, which have gradients.
            kwargs: Arguments of ``forward`` that have none.
        """
        context = cls()
        context.needs_input_grad = tuple(isinstance(a, Tensor) for a in args)

        def backward(*given: object) -> object:
            results, gradients = (v if isinstance(v, (tuple, list)) else (v,) for v in given[-2:])
            if context.materialize_grads:
                pairs = zip(results, gradients)
                gradients = [F.zeros_like(r) if g is None else g for r, g in pairs]
            found = cls.backward(context, *gradients)
            count = len(found) if isinstance(found, tuple) else 1
            if count != len(args):
                reject(either(DTypeError, RuntimeError), f"{cls.__name__}.backward",
                       f"Function backward return a wrong number of gradients: {count} for "
                       f"{len(args)} inputs")  # fmt: skip
            return found

        constant: list[bool] = []

        def forward(*args: object) -> object:
            value = cls.forward(context, *args, **kwargs)
            given = value if isinstance(value, tuple) else (value,)
            constant[:] = [any(v is m for m in context.non_differentiable) for v in given]
            return value

        value = call_with_bprop(cls.__name__, forward, args, backward, partial=True)
        if not any(constant):
            return value
        given = value if isinstance(value, tuple) else (value,)
        found = tuple(F.stop_gradient(v) if c else v for v, c in zip(given, constant))
        return found if isinstance(value, tuple) else found[0]

    def save_for_backward(self, *tensors: object) -> None:
        """Keeps tensors for ``backward``, as ``saved_tensors``."""
        self.saved_tensors = tensors

    def mark_dirty(self, *args: object) -> None:
        """Says which arguments ``forward`` changed; they are seen to have been."""

    def mark_non_differentiable(self, *args: object) -> None:
        """Says which results have no gradient: they are constants to what follows."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Says whether the gradient of a result that nothing uses is zeros for ``backward``.

        Args:
            value: True, the default, for zeros, or False for None.
        """
        self.materialize_grads = value


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

    def set_all_reduce_fusion_split_indices(self, indices: object, group: str = "") -> None:
        """Takes which gradients MindSpore sends together, which changes no result.

        Args:
            indices: Where gradients are split.
            group: Name of the group of processes.
        """


class _PynativeExecutor:
    """Stands for the queue of eager operators, which are computed at once here."""

    def __init__(self) -> None:
        self._pause: contextlib.AbstractContextManager[None] | None = None

    def sync(self) -> None:
        """Waits until the device has finished what it was given."""
        importlib.import_module("tvmgraph.compat.hal").synchronize()

    def enable_grad(self) -> bool:
        """Returns whether what is computed has gradients."""
        return self._pause is None

    def set_enable_grad(self, flag: bool) -> None:
        """Lets what is computed from now on have gradients, or be constant to them.

        Args:
            flag: Whether it has; programs give back here what ``enable_grad`` returned.
        """
        if flag == self.enable_grad():
            return
        if self._pause is None:
            self._pause = paused()
            self._pause.__enter__()
        else:
            self._pause.__exit__(None, None, None)
            self._pause = None

    set_grad_flag = set_enable_grad


Unsupported = CaptureError  # of what is no part of a graph, with fullgraph=True


class PIJitCaptureContext:
    """Decorates a function that is captured from its bytecode.

    Args:
        fullgraph: Whether what cannot be one graph is an error.
        jit_config: MindSpore's settings of that capture, which change no result.
    """

    def __init__(self, fullgraph: bool = False, jit_config: object = None) -> None:
        self.fullgraph = fullgraph

    def __call__(self, fn: Any) -> Any:
        return jit(fn, capture_mode="bytecode", fullgraph=self.fullgraph)


def get_code_extra(function: Any) -> dict[str, Any] | None:
    """Returns what became of a function that was compiled, in MindSpore's words.

    Args:
        function: The function, or what ``jit`` returned for it.

    Returns:
        Its state, captures and the places that Python runs; None if it was not compiled.
    """
    plain = getattr(function, "fn", function)
    plain = getattr(plain, "__func__", plain)
    found = [f for f in gc.get_objects() if type(f) is JitFunction and _is_of(f, plain)]
    captures = sum(f.compile_count for f in found)
    breaks = sum(len(f.breaks()) for f in found)
    if not captures and not breaks:
        return None
    return {
        "stat": "GRAPH_CALLABLE", "break_count_": breaks, "compile_count_": captures,
        "code": {"phase_": plain.__qualname__, "call_count_": captures},
    }  # fmt: skip


def _is_of(function: JitFunction, plain: object) -> bool:
    return plain in (function.fn, getattr(function.fn, "__func__", None))


def _take(*settings: object, **more: object) -> None:
    """Takes settings of what MindSpore does behind programs, which are without effect."""


jit_mode_pi_enable = jit_mode_pi_disable = update_pijit_default_config = _take
_cleanup = _unset_iterator_cleanup = _take  # iterators of data end when nobody refers to them


class MSContext:
    """What MindSpore's extension knows of the machine."""

    @classmethod
    def get_instance(cls) -> MSContext:
        """Returns the context."""
        return cls()

    def get_ascend_soc_version(self) -> str:
        """Returns the kind of the Ascend processor: there is none."""
        return ""

    def is_ascend_plugin_loaded(self) -> bool:
        """Returns whether Ascend processors can be used."""
        return False


def _auto_black_list(network: Cell, black_list: Sequence[type], dtype: dtypes.DType) -> Cell:
    """Lets all layers but those of some classes compute in a short type; returns the network."""
    levels = importlib.import_module("tvmgraph.amp.levels")
    levels.custom_mixed_precision(network, black_list=list(black_list), dtype=dtype)
    return network.set_output_float(dtype)


class _CellGraphExecutor:
    """Stands for MindSpore's compiler of Cells."""

    def compile(self, obj: Cell, *args: object, **kwargs: object) -> tuple[object, bool]:
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
