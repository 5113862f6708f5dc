"""A module compiled for a CUDA device, called with tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Any

import numpy as np
import tvm_ffi

from tvmgraph import forking
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.runtime import cublaslt, cuda, native
from tvmgraph.runtime.device_copy import translated
from tvmgraph.runtime.device_graph import Replay
from tvmgraph.runtime.device_image import DeviceImage, add_images
from tvmgraph.runtime.device_tensor import handle_on, to_device, wrap
from tvmgraph.runtime.executable import Executable
from tvmgraph.runtime.ownership import for_writing_on


class DeviceExecutable(Executable):
    """One or more functions compiled for a CUDA device.

    Building one takes no GPU: the code is loaded when it is run for the first time.

    Args:
        module: The program and the host's code.
        images: The device's code.
        arch: The architecture the code is for.
        kernels: Names of the kernels.
        device_id: The device to run on.

    Attributes:
        images: The device's code.
        arch: The architecture the code is for.
        moving: Positions of the arguments that may lie somewhere else in every call of ``main``,
            which is then replayed as a CUDA graph; ``None`` to launch its kernels one by one.
    """

    on_host = False

    def __init__(
        self,
        module: object,
        images: Sequence[DeviceImage],
        arch: str,
        kernels: tuple[str, ...] = (),
        device_id: int = 0,
    ) -> None:
        super().__init__(module, tvm_ffi.device("cuda", device_id), kernels)
        self.images = tuple(images)
        self.arch = arch
        self.device_id = device_id
        self.moving: tuple[int, ...] | None = None
        self._lock = forking.lock()
        self._loaded = False

    def function(self, name: str = "main") -> Callable[..., Any]:
        """Returns this thread's entry point ``name``, loading the code first if nobody did.

        Args:
            name: A function of the module.

        Raises:
            DeviceError: if there is no such device, or the code is not for it.
        """
        if not self._loaded:
            with self._lock:
                if not self._loaded:
                    self._load()
                    self._loaded = True
        return super().function(name)

    def _entered(self, function: Callable[..., object], name: str) -> Callable[..., object]:
        def guarded(*given: object) -> object:
            try:
                return function(*given)
            except Exception as e:
                raise translated(e) from e

        if self.moving is None or name != "main":
            return guarded
        return Replay(guarded, self.instrumented, self.device_id, self.moving)

    def _load(self) -> None:
        cuda.check_arch(self.arch, cuda.device(self.device_id))
        native.use_runtime()
        cublaslt.register()
        add_images(getattr(self._module, "mod", self._module), self.images)

    @forking.enters_compiled
    def call(
        self, handles: Sequence[object], name: str = "main", kept: list[object] | None = None
    ) -> Any:
        """Calls a function with what :meth:`handles` returned, on the device.

        Args:
            handles: What the code gets.
            name: A function of the module.
            kept: Gets what the code returned, so that an interrupted call can be completed.
        """
        function = self.function(name)
        if kept is None:
            return function(*handles)
        kept.extend(starmap(function, (handles,)))
        return kept[0]

    def for_writing(
        self, args: Sequence[Tensor], places: Sequence[int], consume: bool
    ) -> list[Tensor]:
        """Returns arguments on the device of which those at ``places`` may be written to.

        Args:
            args: The arguments of a call.
            places: Numbers of those that the code overwrites.
            consume: Whether their memory may be overwritten, because nobody reads the old values.
        """
        return for_writing_on(args, places, consume, self.device_id)

    def handle(self, tensor: Tensor) -> tvm_ffi.Tensor:
        """Returns what the compiled code gets of a tensor.

        Args:
            tensor: An argument; copied to the device if it is elsewhere.
        """
        return handle_on(tensor, self.device_id)

    def to_device(self, array: np.ndarray) -> Tensor:
        """Returns an array as a tensor on the device.

        Args:
            array: Its elements on the host.
        """
        return wrap(
            to_device(tensor_from_numpy(array), self.device_id, implicit=False).handle,
            tensor_type(array.shape, array.dtype),
        )

    def wrapped(self, output: object, type: TensorType) -> Tensor:
        """Returns what the compiled code returned as a tensor.

        Args:
            output: A tensor of TVM's.
            type: Its type in the graph.
        """
        return wrap(output, type)
