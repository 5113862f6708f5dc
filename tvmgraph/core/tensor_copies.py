"""Copying and pickling tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tvmgraph.core.storage import aligned_copy
from tvmgraph.dtypes import DType

if TYPE_CHECKING:
    from tvmgraph.core.tensor import Tensor
    from tvmgraph.core.types import TensorType


class CopyMethods:
    """What ``copy`` and ``pickle`` call."""

    __slots__ = ()

    if TYPE_CHECKING:  # what Tensor defines
        aval: TensorType
        array: np.ndarray

        @property
        def dtype(self) -> DType: ...
        @property
        def device(self) -> str: ...
        @property
        def on_gpu(self) -> bool: ...
        def host(self) -> np.ndarray: ...
        def duplicate(self) -> Tensor: ...

    def __reduce__(self) -> tuple[object, ...]:
        placeholder = not self.aval.is_static
        raw = None if placeholder else self.array.tobytes()
        device = "CPU" if placeholder else self.device
        return (unpickle, (raw, self.aval.shape, self.dtype, device))

    def __copy__(self) -> Tensor:
        from tvmgraph.core.tensor import Tensor, tensor_from_numpy

        if not self.aval.is_static:
            return Tensor(shape=self.aval.shape, dtype=self.dtype)
        return self.duplicate() if self.on_gpu else tensor_from_numpy(aligned_copy(self.host()))

    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        return self.__copy__()


def unpickle(raw: bytes | None, shape: tuple[int, ...], dtype: DType, device: str) -> Tensor:
    """Makes a tensor of its parts.

    Args:
        raw: Its elements in row-major order; ``None`` for a placeholder.
        shape: Its shape, which may be symbolic for a placeholder.
        dtype: Its dtype.
        device: Where it lived.

    Raises:
        DeviceError: if it lived on a GPU that is not there.
    """
    from tvmgraph.core.tensor import Tensor, tensor_from_numpy

    if raw is None:
        return Tensor(shape=shape, dtype=dtype)
    array = np.frombuffer(raw, dtype.numpy).reshape(shape)
    tensor = tensor_from_numpy(aligned_copy(array))
    return tensor if device == "CPU" else tensor.placed(device)
