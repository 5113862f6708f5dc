"""Machine code for a CUDA device, in the form in which TVM's runtime takes it."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvmgraph.runtime import host

if TYPE_CHECKING:
    import tvm_ffi

_HOST_KINDS = ("llvm", "library")  # of TVM's modules that hold host code
#: DLPack's codes of the types a kernel may take.
_CODES = {"int": 0, "uint": 1, "float": 2, "handle": 3, "bfloat": 4, "bool": 6}


@dataclass(frozen=True)
class Kernel:
    """What a launch of one kernel needs to know.

    Attributes:
        name: Its symbol.
        arguments: The type of every argument, ``"handle"`` for a pointer.
        launch: Names of the extents that follow the arguments, such as ``"blockIdx.x"``.
    """

    name: str
    arguments: tuple[str, ...]
    launch: tuple[str, ...]

    def as_json(self) -> list[object]:
        """Returns it as plain data."""
        return [self.name, list(self.arguments), list(self.launch)]

    @classmethod
    def from_json(cls, data: Sequence[object]) -> Kernel:
        """Reads what :meth:`as_json` returned.

        Args:
            data: A name, a list of arguments and one of the launch, as JSON has them.
        """
        name, arguments, launch = data
        return cls(name, tuple(arguments), tuple(launch))


@dataclass(frozen=True)
class DeviceImage:
    """Machine code of some kernels.

    Attributes:
        code: A fat binary: one cubin per architecture, and PTX.
        kernels: The functions in it.
    """

    code: bytes
    kernels: tuple[Kernel, ...]

    def as_record(self) -> bytes:
        """Returns the bytes from which TVM's runtime makes a module.

        The layout is that of ``CUDAModuleNode::SaveToBytes`` in TVM 0.27: the format, then by name
        every function's symbol, argument types, launch parameters and argument tags, then the code.
        """
        parts = [_text("fatbin"), _count(len(self.kernels))]
        for kernel in sorted(self.kernels, key=lambda k: k.name):
            parts += [_text(kernel.name), _text(kernel.name), _count(len(kernel.arguments))]
            parts += [_type(a) for a in kernel.arguments]
            parts += [_count(len(kernel.launch)), *map(_text, kernel.launch)]
            parts += [_count(len(kernel.arguments)), bytes(4 * len(kernel.arguments))]
        return b"".join([*parts, _count(len(self.code)), self.code])


def describe(images: Iterable[DeviceImage]) -> list[list[object]]:
    """Returns everything but the code as plain data, for :func:`assemble`.

    Args:
        images: The images of one library, in order.
    """
    return [[len(i.code), [k.as_json() for k in i.kernels]] for i in images]


def assemble(description: list[Any], code: bytes) -> tuple[DeviceImage, ...]:
    """Puts images together again.

    Args:
        description: From :func:`describe`.
        code: The code of all images, one after the other.

    Raises:
        ValueError: if the description does not fit the code.
    """
    images: list[DeviceImage] = []
    start = 0
    for size, kernels in description:
        images.append(
            DeviceImage(code[start : start + size], tuple(map(Kernel.from_json, kernels)))
        )
        start += size
    if start != len(code):
        raise ValueError(f"{len(code)} bytes of device code, {start} are described")
    return tuple(images)


def add_images(module: object, images: Sequence[DeviceImage]) -> None:
    """Gives host code the device's code that it launches.

    Args:
        module: A module of TVM's runtime, some part of which is host code.
        images: The device's code.

    Raises:
        DeviceError: without a usable GPU.
    """
    make = host.load_cuda().get_global_func("ffi.Module.load_from_bytes.cuda")
    library = next((m for m in modules_in(module) if m.kind in _HOST_KINDS), None)
    for image in images if library is not None else ():
        library.import_module(make(image.as_record()))  # pyright: ignore[reportOptionalMemberAccess]


def modules_in(module: tvm_ffi.Module) -> Iterator[tvm_ffi.Module]:
    """A module of TVM's runtime and all those that it imports.

    Args:
        module: The root.
    """
    yield module
    for inner in module.imports:
        yield from modules_in(inner)


def _count(value: int) -> bytes:
    return struct.pack("<Q", value)


def _text(value: str) -> bytes:
    data = value.encode()
    return _count(len(data)) + data


def _type(name: str) -> bytes:
    kind = name.rstrip("0123456789")
    bits = int(name[len(kind) :] or (8 if kind == "bool" else 64))
    return struct.pack("<BBH", _CODES[kind], bits, 1)
