"""Where a tensor's elements live: on the host, on a GPU, or (unchanged) on both.

What a GPU needs is loaded when the first tensor goes there; see :mod:`tvmgraph.runtime`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tvmgraph import hooks
from tvmgraph.core.state import state
from tvmgraph.core.storage import lend
from tvmgraph.errors import DeviceError, either, reject

if TYPE_CHECKING:
    from tvmgraph.core.tensor import Tensor

_NAME = re.compile(r"(cpu|gpu|cuda)(?::(\d+))?", re.IGNORECASE)
_ON_GPU = 2  # DLPack's number of CUDA


def device_index(name: object, op: str) -> int | None:
    """Reads a device name.

    Args:
        name: ``"CPU"``, ``"GPU"``, ``"GPU:1"``, ``"CUDA:0"``; upper or lower case.
        op: Who asks, for the error.

    Returns:
        The number of the GPU, by default the context's; ``None`` for the CPU.

    Raises:
        DeviceError: for any other name.
    """
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None or (match[1].lower() == "cpu" and match[2] not in (None, "0")):
        reject(either(DeviceError, ValueError), op, f"there is no device {name!r}",
               fix="use 'CPU', 'GPU' or 'GPU:<number>'")  # fmt: skip
    if match[1].lower() == "cpu":
        return None
    from tvmgraph.config import context

    return int(match[2]) if match[2] else context.device_id


class DeviceMethods:
    """What a tensor has to do with devices."""

    __slots__ = ()

    _device: Any
    array: np.ndarray
    if TYPE_CHECKING:  # what Tensor itself adds

        def asnumpy(self) -> np.ndarray: ...

    @property
    def device(self) -> str:
        """Where the elements live, such as ``"CPU"`` or ``"GPU:0"``."""
        return f"GPU:{self._device.index}" if self.on_gpu else "CPU"

    @property
    def on_gpu(self) -> bool:
        """Whether the elements live on a GPU; the host's may have a copy there, too."""
        return self._device is not None and not self._device.copied

    def placed(self, name: str) -> Tensor | Self:
        """Returns a tensor of the same elements on another device; see :meth:`Tensor.to`.

        Args:
            name: ``"CPU"``, ``"GPU"`` or ``"GPU:<number>"``.

        Raises:
            DeviceError: if there is no such device, or it has not enough memory.
        """
        index = device_index(name, "Tensor.to")
        if state.interpreter is not None:  # a graph runs where it is compiled for
            return self
        if index is None:
            return self.cpu()
        if self.on_gpu and self._device.index == index:
            return self
        return hooks.to_gpu(self, index)

    def cpu(self) -> Tensor | Self:
        """Returns a tensor of the same elements in the host's memory."""
        if not self.on_gpu or state.interpreter is not None:
            return self
        from tvmgraph.core.tensor import tensor_from_numpy

        return tensor_from_numpy(self._device.numpy(implicit=False))

    def duplicate(self) -> Tensor:
        """Returns a tensor of the same elements in other memory of the same GPU."""
        return hooks.copy_on_gpu(self, self._device.index)

    def cuda(self, device: int | None = None) -> Tensor | Self:
        """Returns a tensor of the same elements on a GPU, by default the context's.

        Args:
            device: Number of the GPU.
        """
        return self.placed("GPU" if device is None else f"GPU:{device}")

    def _settle(self, device: str | None) -> Self:
        """Moves a new tensor to where ``Tensor(..., device=...)`` wants it."""
        if device is not None and state.interpreter is None:
            index = device_index(device, "Tensor")
            if index is not None:
                moved = self.placed(device)
                del self.array
                self._device = moved._device
        return self

    # ---- other libraries --------------------------------------------------------------------

    def __dlpack__(self, **kwargs: Any) -> object:
        if not self.on_gpu:
            return self.asnumpy().__dlpack__(**kwargs)
        storage = self._device
        hooks.wait_for_reader(storage.index, kwargs.get("stream"))
        return storage.handle.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        if not self.on_gpu:
            return self.array.__dlpack_device__()
        return _ON_GPU, self._device.index

    def to_dlpack(self) -> object:
        """Returns a DLPack capsule of the elements."""
        return self.__dlpack__()

    @staticmethod
    def from_dlpack(dlpack: Any) -> Tensor:
        """Builds a tensor from any object with ``__dlpack__``, sharing its memory.

        Args:
            dlpack: A tensor of another library, on the CPU or a GPU.
        """
        from tvmgraph.core.tensor import tensor_from_numpy

        place = getattr(dlpack, "__dlpack_device__", None)
        if place is not None and place()[0] == _ON_GPU:
            return hooks.adopt_on_gpu(dlpack)
        tensor = tensor_from_numpy(np.from_dlpack(dlpack))
        lend(tensor.array)
        return tensor
