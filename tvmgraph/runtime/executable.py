"""A compiled module that is called with tensors.

Crossing the border costs a fraction of a microsecond per tensor: inputs are handed over through
DLPack without a copy (they are moved to aligned memory once if need be) and outputs are viewed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.state import turn
from tvmgraph.core.storage import ALIGNMENT, aligned_copy
from tvmgraph.core.tensor import Tensor, elements_of, tensor_from_numpy
from tvmgraph.core.types import TensorType
from tvmgraph.errors import DeviceError, DTypeError
from tvmgraph.forking import enters_compiled
from tvmgraph.runtime import callback as callback  # compiled code may call it
from tvmgraph.runtime import native
from tvmgraph.runtime.ffi import tvm_ffi
from tvmgraph.runtime.ownership import for_writing, share
from tvmgraph.runtime.workers import affinity

if TYPE_CHECKING:
    import tvm_ffi

_from_dlpack = tvm_ffi.from_dlpack
_new = object.__new__


class Executable:
    """One or more compiled functions.

    A TVM virtual machine may only be used by one thread at a time, so every thread gets its own
    over the shared code.

    Args:
        module: What the compiler built, or a module loaded from a file.
        device: The TVM device to run on.
        kernels: Names of the kernels in the order in which they were generated.

    Attributes:
        local: This thread's entry points by name, once they were asked for, and as ``entry`` what
            a call needs that is to be quick: ``main``, and the thread's affinity and its word.
        on_host: Whether it runs on the CPU.
    """

    on_host = True

    def __init__(self, module: object, device: object, kernels: tuple[str, ...] = ()) -> None:
        self._module = module
        self._device = device
        self.local = threading.local()
        self.kernels = kernels

    def __reduce__(self) -> tuple[object, ...]:
        raise DTypeError(
            "machine code cannot be pickled or copied", op="pickle",
            fix="pickle the function or Cell, which compiles where it is called, or export it",
        )  # fmt: skip

    def for_writing(
        self, args: Sequence[Tensor], places: Sequence[int], consume: bool
    ) -> list[Tensor]:
        """Returns arguments of which those at ``places`` may be written to.

        Args:
            args: The arguments of a call.
            places: Numbers of those that the code overwrites.
            consume: Whether their memory may be overwritten, because nobody reads the old values.
        """
        return for_writing(args, places, consume)

    def handle(self, tensor: Tensor) -> tvm_ffi.Tensor:
        """Returns what the compiled code gets of a tensor.

        Args:
            tensor: An argument.
        """
        return tensor._ffi or to_ffi(tensor)

    def to_device(self, array: np.ndarray) -> Tensor:
        """Returns an array as a tensor that lies where the code runs.

        Args:
            array: Its elements on the host.
        """
        return tensor_from_numpy(array)

    def wrapped(self, output: object, type: TensorType) -> Tensor:
        """Returns what the compiled code returned as a tensor.

        Args:
            output: A tensor of TVM's.
            type: Its type in the graph, which knows symbolic sizes and complex elements.
        """
        return from_ffi(output, type)

    def function(self, name: str = "main") -> Callable[..., Any]:
        """Returns this thread's entry point ``name``.

        Args:
            name: A function of the module.
        """
        functions = self.local.__dict__
        found = functions.get(name)
        if found is None:
            vm = functions.get("vm ")
            if vm is None:
                vm = functions["vm "] = native.start(self._module, self._device)
            found = functions[name] = self._entered(vm[name], name)
            if name == "main":
                here = affinity()
                functions["entry"] = (found, here.core, here)
        return found

    def _entered(self, function: Callable[..., object], _name: str) -> Callable[..., Any]:
        """Returns what is called for a function of the virtual machine."""
        return function

    def run(
        self,
        args: Sequence[Tensor],
        types: Sequence[TensorType],
        name: str = "main",
        kept: Sequence[object] | None = None,
    ) -> list[Tensor]:
        """Calls a function with tensors.

        Args:
            args: One tensor per parameter.
            types: The output types, as the graph declares them.
            name: Which function.
            kept: Gets what the code returned, see :meth:`call`.

        Returns:
            One tensor per output.
        """
        return self.results(self.call(self.handles(args), name, kept), types)

    def handles(self, args: Sequence[Tensor]) -> list[tvm_ffi.Tensor]:
        """Returns what the compiled code gets of tensors, all of one state of their values.

        Args:
            args: The arguments of a call.
        """
        with turn:
            share(args)
            return [self.handle(a) for a in args]

    @enters_compiled
    def call(
        self, handles: Sequence[object], name: str = "main", kept: list[object] | None = None
    ) -> Any:
        """Calls a function with what :meth:`handles` returned.

        Args:
            handles: The arguments.
            name: Which function.
            kept: Gets what the code returned before a signal's handler can run, which may raise.

        Returns:
            What the code returned, for :meth:`results`.
        """
        function, here = self.function(name), affinity()
        if here.core[0] != here.home:
            here.move()
        if kept is None:
            return function(*handles)
        kept.extend(starmap(function, (handles,)))
        return kept[0]

    def results(self, outputs: Any, types: Sequence[TensorType]) -> list[Tensor]:
        """Returns what the code returned as tensors.

        Args:
            outputs: A tensor of TVM's, or an array of several.
            types: Types of the outputs.
        """
        if len(types) == 1:
            return [self.wrapped(outputs, types[0])]
        return [self.wrapped(o, t) for o, t in zip(outputs, types)]

    def instrumented(self, instrument: Callable[..., object], name: str = "main") -> Any:
        """Returns this thread's entry point ``name`` on a machine that reports every call.

        Args:
            instrument: Called before and after everything the program calls.
            name: Which function.
        """
        functions = self.local.__dict__
        machine = functions.get("instrumented vm ")
        if machine is None:
            machine = functions["instrumented vm "] = native.start(self._module, self._device)
        machine["set_instrument"](instrument)
        return machine[name]


def call_statements(args: str, keeps: bool) -> list[str]:
    """What :meth:`Executable.call` does, as statements of a function that is generated for a call.

    Adding two tensors takes 1.6 us by these and by :func:`wrap_statements`. Calling
    :meth:`Executable.call` instead would add 0.3 us, calling :func:`from_ffi` 0.6 (EPYC).

    Args:
        args: The handles, as arguments of a call; the executable is called ``executable``.
        keeps: Whether the result is put into the list ``kept`` before a signal's handler can run.

    Returns:
        Statements that assign ``result``.
    """
    call = [f"result = run({args})"]
    if keeps:
        call = [f"kept.extend(starmap(run, (({args},),)))", "[result] = kept"]
    return [
        "try:",
        "    run, core, affinity = executable.local.entry",
        "except AttributeError:",  # this thread's first call
        "    executable.function()",
        "    run, core, affinity = executable.local.entry",
        "if core[0] != affinity.home:",
        "    affinity.move()",
        *call,
    ]


def wrap_statements(name: str, value: str, type: TensorType, known: str) -> list[str]:
    """What :func:`from_ffi` does, as statements, see :func:`call_statements`.

    Args:
        name: Which variable is assigned.
        value: What the code returned.
        type: The type of the result.
        known: Under which name the function knows the type.
    """
    if not type.is_static or type.dtype is dtypes.bfloat16:
        return [f"{name} = from_ffi({value}, {known})"]
    return [
        f"{name} = new(Tensor)",
        f"{name}._ffi, {name}._token, {name}.aval = {value}, None, {known}",
    ]


def to_ffi(tensor: Tensor) -> tvm_ffi.Tensor:
    """Returns the TVM view of a tensor's storage, aligning the storage first if it must.

    Args:
        tensor: A tensor on the CPU.

    Raises:
        DeviceError: if the tensor lives on a GPU; weights are copied, which is counted.
    """
    if tensor.__class__ is Tensor and tensor.on_gpu:
        raise DeviceError(
            f"an argument is on {tensor.device}, but the function is compiled for the CPU",
            op="jit", got=str(tensor.aval),
            fix="use set_context(device_target='GPU'), or move the argument with .to('CPU')",
        )  # fmt: skip
    array = _seen(tensor)
    as_bfloat16 = tensor.aval.dtype is dtypes.bfloat16
    if not array.size:  # NumPy gives empty arrays strides that TVM does not take for compact
        steps = [math.prod(array.shape[i + 1 :]) * array.itemsize for i in range(array.ndim)]
        array = np.lib.stride_tricks.as_strided(np.empty(1, array.dtype), array.shape, steps)
        ffi = _from_dlpack(array)
        return native.view(ffi, "bfloat16") if as_bfloat16 else ffi
    if array.__array_interface__["data"][0] % ALIGNMENT:  # cheaper than an exception about it
        tensor.array = aligned_copy(tensor.array)
        array = _seen(tensor)
    try:
        ffi = _from_dlpack(array, require_alignment=ALIGNMENT, require_contiguous=True)
    except (RuntimeError, ValueError, BufferError):
        tensor.array = aligned_copy(tensor.array)
        ffi = _from_dlpack(_seen(tensor))
    if as_bfloat16:
        ffi = native.view(ffi, "bfloat16")
    tensor._ffi = ffi  # pyright: ignore[reportAttributeAccessIssue]
    return ffi


def _seen(tensor: Tensor) -> np.ndarray:
    """A tensor's elements as TVM sees them: complex ones as pairs, along a last axis."""
    array, dtype = tensor.array, tensor.aval.dtype
    if dtype is dtypes.bfloat16:  # NumPy's DLPack does not know bfloat16
        return array.view(np.uint16)
    if dtype in dtypes.COMPLEX:
        return array[..., None].view(np.float32 if dtype is dtypes.complex64 else np.float64)
    return array


def from_ffi(output: object, type: TensorType) -> Tensor:
    """Wraps an output of compiled code without copying it, or looking at it.

    Args:
        output: A tensor of TVM's.
        type: Its type in the graph.
    """
    if type.dtype is not dtypes.bfloat16 and type.is_static:
        tensor = _new(Tensor)
        tensor.aval, tensor._token, tensor._device = type, None, None
    elif type.dtype is not dtypes.bfloat16:
        tensor = tensor_from_numpy(elements_of(output, type.dtype))
    else:  # NumPy's DLPack does not know it
        array = np.from_dlpack(native.view(output, "uint16")).view(type.dtype.numpy)
        tensor = tensor_from_numpy(array, type if type.is_static else None)
    tensor._ffi = output  # pyright: ignore[reportAttributeAccessIssue] - core knows no TVM
    return tensor


def cpu() -> tvm_ffi.Device:
    """Returns the TVM device of the host."""
    return tvm_ffi.device("cpu", 0)
