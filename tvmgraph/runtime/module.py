"""Compiled modules from files: loaded and called without the network's Python code."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from tvmgraph import forking, partial
from tvmgraph.errors import ArgumentError, DTypeError, LoadError, ShapeError, reject
from tvmgraph.machine.processor import missing_features
from tvmgraph.machine.threads import configure_threads
from tvmgraph.runtime import host, pool
from tvmgraph.runtime.archive import LIBRARY, OBJECTS, PARAMETERS, Archive, Entry, Manifest
from tvmgraph.runtime.tensors import ALIGNMENT, BadTensors, aligned_bytes
from tvmgraph.runtime.tensors import views as tensor_views
from tvmgraph.runtime.trust import Key
from tvmgraph.runtime.workers import affinity

if TYPE_CHECKING:
    import tvm_ffi

    from tvmgraph.runtime.device_graph import Replay
    from tvmgraph.runtime.device_module import OnGpu

_CPU, _CUDA = 1, 2  # DLPack's numbers
_POOLED = 2  # TVM's allocator that keeps freed blocks


class Module:
    """A compiled network.

    It may be called from several threads at once: every thread gets a virtual machine of its own
    over the shared code and weights.

    A pickled module names its file, which must be there where it is unpickled.

    Args:
        path: The file.
        threads: Workers of one call, ``None`` for the usable cores.
        device_id: The GPU that runs a module compiled for one.
        public_key: A PEM file with the Ed25519 key that must have signed the file.

    Attributes:
        manifest: What the file says about itself.

    Raises:
        LoadError: if the file is damaged or made for another machine or version.
        DeviceError: if the module needs a GPU and there is none that fits.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        threads: int | None = None,
        device_id: int = 0,
        public_key: Key | None = None,
    ) -> None:
        if threads is not None and threads < 1:
            raise ArgumentError("threads must be positive", op="runtime.load", got=str(threads))
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise DTypeError(f"path must name a file, not {type(path).__name__}", op="runtime.load")
        self._given = (os.path.abspath(path), threads, device_id, public_key)  # for pickling
        archive = Archive(path, public_key)
        try:
            self.manifest: Manifest = archive.manifest
            _check_machine(archive)
            configure_threads(threads)
            self._ffi = host.ffi()
            self._gpu = _gpu(archive, device_id)
            self._parameters = self._load_parameters(archive)
            self._library = _load_library(archive)
            if self._gpu is not None:
                self._gpu.attach(self._library)
        finally:
            archive.close()
        self._initial = tuple(self._parameters)
        self._lock = forking.lock() if self.manifest.written else contextlib.nullcontext()
        self._local = threading.local()
        self._fail = archive.fail
        self._function()  # a file that holds no such function must fail now

    def __reduce__(self) -> tuple[object, ...]:
        if any(now is not first for now, first in zip(self._parameters, self._initial)):
            reject(DTypeError, "runtime.Module",
                   "a module whose calls have changed its parameters cannot be pickled or copied",
                   fix="call reset() before, or load its file where you need it")  # fmt: skip
        return (Module, self._given)

    def __repr__(self) -> str:
        m = self.manifest
        inputs = ", ".join(f"{e.name}: {e}" for e in m.inputs)
        return f"<Module {m.name}({inputs}) -> {', '.join(map(str, m.outputs))}>"

    def _load_parameters(self, archive: Archive) -> list[Any]:
        if not self.manifest.parameters:
            return []
        try:
            arrays = tensor_views(archive.member(PARAMETERS))
        except BadTensors as e:
            raise archive.fail(str(e), "export the network again") from None
        views = []
        for entry in self.manifest.parameters:
            array = arrays.get(entry.name)
            if array is None or _describe(array) != str(entry):
                raise archive.fail(f"the weight {entry.name} does not fit", "export it again")
            views.append(self._view(array))
        return views

    @forking.enters_compiled
    def _function(self) -> Any:
        found = self._local.__dict__.get("main")
        if found is None:
            try:
                machine = self._library["vm_load_executable"]()
                machine["vm_initialization"](*self._devices())
                affinity()  # starts the workers
                found = machine["main"]
                if self._gpu is not None and self.manifest.options.get("replay"):
                    found = self._replayed(found)
            except (AttributeError, RuntimeError) as e:
                raise self._fail(f"its library cannot be started: {e}", "export it again") from e
            self._local.machine, self._local.main = machine, found
        return found

    def _replayed(self, function: object) -> Replay:
        """Returns a function whose calls are recorded and replayed as CUDA graphs."""
        from tvmgraph.runtime.device_graph import Replay

        machine = self._library["vm_load_executable"]()
        machine["vm_initialization"](*self._devices())

        def instrumented(instrument: object) -> object:
            machine["set_instrument"](instrument)
            return machine["main"]

        moving = [i for i, kind in enumerate(self.manifest.order) if kind == "input"]
        assert self._gpu is not None
        return Replay(function, instrumented, self._gpu.index, moving)

    def _devices(self) -> tuple[int, ...]:
        """What the virtual machine is told: kind, number and allocator of every device."""
        cpu = (_CPU, 0, _POOLED)
        return cpu if self._gpu is None else (_CUDA, self._gpu.index, _POOLED, *cpu)

    def __call__(self, *inputs: object, **named: object) -> Any:
        """Runs the network.

        Args:
            inputs: NumPy arrays, or anything ``np.asarray`` takes, shaped as the manifest says.
                A module for a GPU also takes tensors that are there (anything with DLPack).
            named: Inputs by name.

        Returns:
            One NumPy array, or a tuple of them. When every input is on the GPU the results stay
            there, as tensors that other libraries take through DLPack.

        Raises:
            ArgumentError: if inputs are missing, unknown or too many.
            ShapeError: if the shape of an input differs.
            DTypeError: if its dtype differs.
        """
        bound = self._bind(inputs, named)
        arrays = [self._view(a) for a in bound]
        with self._lock:  # calls that update parameters come one after another
            found = self._run(arrays)
        outputs = self._results(found, bound)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def bound(self, *inputs: object) -> Callable[[], list[Any]]:
        """Returns a call of the network on the same memory again and again.

        Args:
            inputs: Tensors on the GPU; what is written to them in between counts.

        Returns:
            A function without arguments that returns the results, on the GPU.

        Raises:
            ArgumentError: if the module is not for a GPU, or an input is not there.
        """
        gpu = self._gpu
        if gpu is None or not all(map(gpu.has, inputs)):
            reject(ArgumentError, self.manifest.name,
                   "only a module for a GPU can be bound to tensors, which are there",
                   fix="move them to the GPU, or call the module itself")  # fmt: skip
        arrays = self._bind(inputs, {})

        def call() -> list[Any]:
            with self._lock:
                found = self._run(arrays)
            for i in self.manifest.copied:
                found[i] = gpu.copy(found[i])
            return found

        return call

    def reset(self) -> None:
        """Gives parameters that calls update the values that they have in the file."""
        with self._lock:
            self._parameters = list(self._initial)

    @forking.enters_compiled
    def _run(self, arrays: Sequence[object]) -> list[Any]:
        """Runs the code, keeps new values of parameters and returns the outputs."""
        m = self.manifest
        given, weights = iter(arrays), iter(self._parameters)
        args = [next(given) if kind == "input" else next(weights) for kind in m.order]
        function = self._function()
        here = affinity()
        if here.core[0] != here.home:
            here.move()
        result = function(*args) if self._gpu is None else self._gpu.call(function, args)
        count = len(m.outputs)
        found = [result] if count + len(m.written) == 1 else list(result)
        for i, parameter in enumerate(m.written, count):
            self._parameters[parameter] = self._owned(found[i], i, parameter)
        return found[:count]

    def _owned(self, value: object, index: int, parameter: int) -> object:
        """Returns a new value of a parameter, on its own where others may write to it."""
        if index not in self.manifest.copied:
            return value
        if self._gpu is not None:
            return self._gpu.copy(value)
        return self._view(_to_numpy(value, self.manifest.parameters[parameter].dtype).copy())

    def _results(self, found: list[Any], inputs: Sequence[object]) -> list[Any]:
        if self._gpu is None:
            outputs = [_to_numpy(o, e.dtype) for o, e in zip(found, self.manifest.outputs)]
            for i in self._copied():  # these belong to the code or the caller
                outputs[i] = outputs[i].copy()
            return outputs
        if inputs and all(map(self._gpu.has, inputs)):
            for i in self._copied():
                found[i] = self._gpu.copy(found[i])
            return found
        return [self._gpu.get(o) for o in found]

    def _copied(self) -> list[int]:
        return [i for i in self.manifest.copied if i < len(self.manifest.outputs)]

    def _bind(self, inputs: tuple[object, ...], named: Mapping[str, object]) -> list[np.ndarray]:
        entries = self.manifest.inputs
        names = [e.name for e in entries]
        given = dict(zip(names, inputs))
        unknown = [n for n in named if n not in names or n in given]
        given |= named
        if len(inputs) > len(names) or unknown or len(given) != len(names):
            reject(ArgumentError, self.manifest.name, f"{len(names)} inputs are needed",
                   f"{len(inputs)} by position, {list(named)} by name",
                   f"the inputs are {', '.join(f'{e.name}: {e}' for e in entries)}")  # fmt: skip
        sizes: dict[str, int] = {}
        found = [self._checked(self._as_array(given[e.name]), e, sizes) for e in entries]
        beyond = self.manifest.beyond(sizes)
        if beyond:
            reject(ShapeError, self.manifest.name, f"{beyond}: the code decides by the size, or "
                   "slices beyond it", fix="export the network for this size")  # fmt: skip
        return found

    def _as_array(self, value: object) -> object:
        """Returns an input as an array, or as TVM's view of memory on the GPU."""
        if self._gpu is not None and self._gpu.has(value):
            return self._gpu.taken(self._ffi.from_dlpack(value, require_contiguous=True))
        return np.asarray(value)

    def _checked(self, array: Any, entry: Entry, sizes: dict[str, int]) -> Any:
        shape = tuple(array.shape)
        fits = shape == entry.shape or _fits(shape, entry.shape, sizes)
        if str(array.dtype) == entry.dtype and fits:
            return array
        kind = DTypeError if fits else ShapeError
        known = ", ".join(f"{name}={size}" for name, size in sizes.items())
        empty = [w for n, w in zip(shape, entry.shape) if not n and isinstance(w, str)]
        known = known or (f"{empty[0]} of at least 1" if empty else "")
        raise kind(f"input {entry.name!r} must be {entry}" + (f" with {known}" if known else ""),
                   op=self.manifest.name, got=_describe(array),
                   fix="convert the array, or export the network for this kind")  # fmt: skip

    def _view(self, array: Any) -> Any:
        """Returns TVM's view of an array, copying it where it is not aligned and contiguous."""
        if self._gpu is not None:
            return array if self._gpu.has(array) else self._gpu.put(array)
        raw = array.view(np.uint16) if array.dtype == ml_dtypes.bfloat16 else array
        flags = raw.flags
        ready = flags.c_contiguous and flags.writeable and not raw.ctypes.data % ALIGNMENT
        if not ready or not raw.size:
            raw = _aligned(raw)
        view = self._ffi.from_dlpack(raw)
        return host.view(view, "bfloat16") if raw.dtype != array.dtype else view


def load(
    path: str | os.PathLike[str],
    threads: int | None = None,
    device_id: int = 0,
    public_key: Key | None = None,
) -> Module:
    """Loads a compiled module that ``tvmgraph.export(..., file_format="TVM")`` wrote.

    The manifest is data: reading it runs nothing. The library beside it is machine code, so load
    files of people you trust.

    Args:
        path: The file.
        threads: Workers of one call, ``None`` for the usable cores.
        device_id: The GPU that runs a module compiled for one.
        public_key: A PEM file with the Ed25519 key that must have signed the file.

    Returns:
        A :class:`Module`, called with NumPy arrays.

    Raises:
        LoadError: if the file is damaged or made for another machine or version.
        DeviceError: if the module needs a GPU and there is none that fits.
    """
    return Module(path, threads, device_id, public_key)


def _gpu(archive: Archive, index: int) -> OnGpu | None:
    if "device" not in archive.manifest.target:
        return None
    from tvmgraph.runtime.device_module import OnGpu

    return OnGpu(archive, index)


def _check_machine(archive: Archive) -> None:
    m = archive.manifest
    here = (host.architecture(), host.system())
    target = (m.target["arch"], m.target["system"])
    if target != here:
        raise archive.fail(
            f"it was compiled for {' '.join(target)}, this is {' '.join(here)}",
            "export it with the target of this machine",
        )
    missing = missing_features(m.target["features"])
    if missing:
        raise archive.fail(
            f"this processor or its system lacks {', '.join(missing)}",
            "export it with a smaller target",
        )
    for package, version in host.package_versions().items():
        made = m.versions.get(package)
        if made != version:
            raise archive.fail(
                f"it was made with {package} {made}, installed is {version}",
                f"install {package}=={made}, or export it again",
            )


@forking.enters_compiled
def _load_library(archive: Archive) -> tvm_ffi.Module:
    """Loads the shared library through a file that is gone right afterwards."""
    if LIBRARY not in archive.manifest.files and OBJECTS in archive.manifest.files:
        raise archive.fail(
            f"it holds objects ({OBJECTS}) that were not linked",
            "export it with linker=..., or link the objects on the target",
        )
    partial.sweep(tempfile.gettempdir())
    handle, name = tempfile.mkstemp(suffix=".so", prefix=partial.prefix("tvmgraph"))
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(archive.member(LIBRARY))
        return pool.load(name)
    except (RuntimeError, OSError, ValueError) as e:
        if isinstance(e, LoadError):
            raise
        raise archive.fail(f"its library cannot be loaded: {e}", "export it again") from e
    finally:
        with contextlib.suppress(OSError):
            Path(name).unlink()


def _fits(shape: tuple[int, ...], wanted: tuple[int | str, ...], sizes: dict[str, int]) -> bool:
    """Whether sizes are as wanted; sizes of one name are equal, and at least 1."""
    if len(shape) != len(wanted):
        return False
    for size, w in zip(shape, wanted):
        if size != (sizes.setdefault(w, size) if isinstance(w, str) and size else w):
            return False
    return True


def _aligned(array: np.ndarray) -> np.ndarray:
    raw = aligned_bytes(max(array.nbytes, array.itemsize))
    if not array.size:  # NumPy gives empty arrays strides that TVM does not take for compact
        strides, step = [], array.itemsize
        for d in reversed(array.shape):
            strides.insert(0, step)
            step *= d
        base = raw.view(array.dtype)
        return np.lib.stride_tricks.as_strided(base, array.shape, strides)
    out = raw.view(array.dtype).reshape(array.shape)
    np.copyto(out, array)
    return out


def _to_numpy(output: object, dtype: str) -> np.ndarray:
    if dtype == "bfloat16":
        return np.from_dlpack(host.view(output, "uint16")).view(ml_dtypes.bfloat16)
    return np.from_dlpack(output)


def _describe(array: Any) -> str:
    return f"{array.dtype!s}[{','.join(map(str, array.shape))}]"
