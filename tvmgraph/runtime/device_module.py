"""What a compiled module needs to run on a GPU: its code there, its weights, and copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tvmgraph.runtime import cuda
from tvmgraph.runtime.archive import DEVICE_CODE, Archive
from tvmgraph.runtime.device_copy import aligned, download, duplicate, translated, upload
from tvmgraph.runtime.device_image import add_images, assemble

if TYPE_CHECKING:
    import tvm_ffi

_ON_GPU = 2  # DLPack's number of CUDA


class OnGpu:
    """One GPU as a compiled module sees it.

    Args:
        archive: The module's file.
        index: The number of the GPU.

    Raises:
        DeviceError: if there is no such GPU, or the module's code is not for it.
        LoadError: if the code for the GPU is damaged.
    """

    def __init__(self, archive: Archive, index: int) -> None:
        facts = archive.manifest.target["device"]
        cuda.check_arch(facts["arch"], cuda.device(index))
        try:
            self._images = assemble(facts["images"], archive.member(DEVICE_CODE))
        except (KeyError, TypeError, ValueError) as e:
            raise archive.fail(f"its code for the GPU does not fit: {e}", "export it again") from e
        self.index = index

    def attach(self, library: object) -> None:
        """Gives the host's code the code of the GPU.

        Args:
            library: The module's shared library, loaded.
        """
        add_images(library, self._images)

    def put(self, array: np.ndarray) -> tvm_ffi.Tensor:
        """Copies an array to the GPU.

        Args:
            array: Elements on the host.
        """
        return upload(array, self.index)

    def get(self, output: object) -> np.ndarray:
        """Copies a result to the host.

        Args:
            output: A tensor of TVM's on the GPU.
        """
        return download(output)

    def copy(self, output: tvm_ffi.Tensor) -> tvm_ffi.Tensor:
        """Copies a result on the GPU.

        Args:
            output: A tensor of TVM's on the GPU.
        """
        return duplicate(output)

    def taken(self, tensor: tvm_ffi.Tensor) -> tvm_ffi.Tensor:
        """Returns another library's tensor on this GPU as compiled code takes it.

        Args:
            tensor: A tensor that came by DLPack.
        """
        return aligned(tensor)

    def has(self, value: object) -> bool:
        """Whether another library's tensor is on this GPU.

        Args:
            value: Anything; only what offers DLPack can be.
        """
        place = getattr(value, "__dlpack_device__", None)
        return place is not None and tuple(place()) == (_ON_GPU, self.index)

    def call(self, function: Callable[..., object], args: Sequence[object]) -> object:
        """Runs compiled code.

        Args:
            function: The entry point.
            args: What it gets.

        Raises:
            DeviceError: if the GPU fails.
        """
        try:
            return function(*args)
        except Exception as e:
            raise translated(e) from e
