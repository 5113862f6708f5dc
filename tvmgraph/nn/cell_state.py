"""Buffers of a Cell, its state as a dict, and its settings."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tvmgraph import dtypes
from tvmgraph.config import JitConfig, as_jit_config
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.precision import mixed, weights
from tvmgraph.core.state import Precision, before_change, bump_epoch
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import (
    ArgumentError,
    DTypeError,
    LoadError,
    NotFoundError,
    TypeOrValueError,
    either,
    reject,
)
from tvmgraph.jit.signature import check_specs
from tvmgraph.nn.cell_hooks import entries

if TYPE_CHECKING:
    from tvmgraph.nn.cell import Cell

#: The last part of the path of a cell's extra state.
EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """What :meth:`StateMethods.load_state_dict` did not find on one side."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


class StateMethods:
    """The part of Cell that holds buffers and hands its state out."""

    _buffers: dict[str, bool]  # name of the attribute -> whether it belongs to the state

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is part of the cell but not trained.

        Args:
            name: The attribute that holds it.
            tensor: The tensor, or None.
            persistent: Whether :meth:`state_dict` contains it.

        Raises:
            DTypeError: if ``tensor`` is neither a Tensor nor None, or the name no string.
            ArgumentError: if the name is empty, has a dot or is taken.
        """
        if not isinstance(name, str):
            raise DTypeError(f"the buffer name should be a string, not {type(name).__name__}",
                             op="register_buffer")  # fmt: skip
        if tensor is not None and (not isinstance(tensor, Tensor) or isinstance(tensor, Parameter)):
            raise DTypeError(f"a buffer is a Tensor or None, not {type(tensor).__name__}",
                             op="register_buffer")  # fmt: skip
        taken = name in dir(self) and name not in self._buffers
        if not name or "." in name or taken:
            why = "is taken" if taken else 'must not be empty or contain "."'
            raise either(ArgumentError, KeyError)(f"the name {name!r} {why}", op="register_buffer")
        before_change(self)
        setattr(self, name, tensor)
        self._buffers[name] = bool(persistent)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yields ``(path, buffer)`` of this cell and, with ``recurse``, of all below.

        Args:
            prefix: What paths begin with.
            recurse: Whether those of sub-cells come, too.
            remove_duplicate: Whether a buffer that is in two places comes once.
        """
        seen: set[int] = set()
        for path, _, buffer in self.__buffers(prefix, recurse):
            if not (remove_duplicate and id(buffer) in seen):
                seen.add(id(buffer))
                yield path, buffer

    def __buffers(self, prefix: str, recurse: bool) -> Iterator[tuple[str, bool, Tensor]]:
        tree: Any = self.cells_and_names(name_prefix=prefix) if recurse else [(prefix, self)]  # pyright: ignore
        for place, cell in tree:
            for name, persistent in cell._buffers.items():
                value = getattr(cell, name, None)
                if isinstance(value, Tensor):
                    yield (f"{place}.{name}" if place else name), persistent, value

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yields the buffers.

        Args:
            recurse: Whether those of sub-cells come, too.
        """
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_buffer(self, target: str) -> Tensor:
        """Returns the buffer at a path such as ``"layer.0.mask"``.

        Args:
            target: The path.

        Raises:
            NotFoundError: if there is none.
        """
        for path, buffer in self.named_buffers(remove_duplicate=False):
            if path == target:
                return buffer
        raise NotFoundError(f"the Cell has no attribute {target!r} that is a buffer",
                            op="get_buffer")  # fmt: skip

    def get_sub_cell(self, target: str) -> Cell:
        """Returns the cell at a path such as ``"layer.0"``; the cell itself for ``""``.

        Args:
            target: The path.

        Raises:
            NotFoundError: if there is none.
        """
        for path, cell in self.cells_and_names():  # pyright: ignore
            if path == target:
                return cell
        raise NotFoundError(f"there is no cell {target!r}", op="get_sub_cell")

    def state_dict(
        self, *args: object, destination: MutableMapping[str, object] | None = None,
        prefix: str = "", keep_vars: bool = False,
    ) -> MutableMapping[str, Any]:  # fmt: skip
        """Returns all parameters and persistent buffers by path.

        Args:
            args: The next three by their places.
            destination: What they are put into; a new dict by default.
            prefix: Text put before every path.
            keep_vars: Given to the hooks; the values are the Parameters themselves either way.
        """
        given: tuple[Any, ...] = (*args, *(destination, prefix, keep_vars)[len(args) :])
        destination, prefix, keep_vars = given
        places = [
            (cell, f"{prefix}{path}." if path else prefix)
            for path, cell in self.cells_and_names()  # pyright: ignore
        ]
        for cell, place in places:
            for entry in entries(cell, "state_dict_pre"):
                entry.hook(cell, place, keep_vars)
        found: MutableMapping[str, object] = OrderedDict() if destination is None else destination
        seen: set[int] = set()
        for cell, place in places:
            for name, p in cell._params.items():
                if p is not None and id(p) not in seen:
                    seen.add(id(p))
                    found[place + name] = p
            for name, persistent, buffer in cell.__buffers("", recurse=False):
                if persistent:
                    found[place + name] = buffer
        for cell, place in places:
            if type(cell).get_extra_state is not StateMethods.get_extra_state:
                found[place + EXTRA] = cell.get_extra_state()
        for cell, place in reversed(places):
            for entry in entries(cell, "state_dict_post"):
                changed = entry.hook(cell, found, place, {})
                found = found if changed is None else changed
        return found

    def get_extra_state(self) -> object:
        """Returns what :meth:`state_dict` keeps of this cell besides its tensors.

        Raises:
            NotFoundError: unless a subclass defines it.
        """
        raise NotFoundError("the cell defines no extra state", op="get_extra_state")

    def set_extra_state(self, state: object) -> None:
        """Takes over what :meth:`get_extra_state` returned.

        Args:
            state: The extra state.

        Raises:
            NotFoundError: unless a subclass defines it.
        """
        raise NotFoundError("the cell defines no extra state", op="set_extra_state",
                            got=f"state={state!r:.60}")  # fmt: skip

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True
    ) -> IncompatibleKeys:
        """Copies values into the parameters and buffers of the same paths.

        Args:
            state_dict: Tensors by path, as :meth:`state_dict` returns them.
            strict: Whether missing and unexpected paths are errors.

        Returns:
            The missing and the unexpected paths.

        Raises:
            LoadError: if paths or shapes do not fit; nothing is loaded then.
        """
        state_dict, errors = dict(state_dict), []
        cells = dict(self.cells_and_names())  # pyright: ignore
        for path, cell in cells.items():
            for entry in entries(cell, "load_state_dict_pre"):
                place = f"{path}." if path else ""
                entry.hook(cell, state_dict, place, {}, strict, [], [], errors)
        own = self.state_dict(keep_vars=True)
        missing = [k for k in own if k not in state_dict]
        unexpected = [k for k in state_dict if k not in own]
        wrong = errors + [
            f"{k}: shape {list(state_dict[k].shape)} does not fit {list(t.shape)}"
            for k, t in own.items()
            if k in state_dict
            and k.rpartition(".")[2] != EXTRA
            and tuple(state_dict[k].shape) != tuple(t.shape)
        ]
        if strict:
            wrong += [f"missing: {k}" for k in missing] + [f"unexpected: {k}" for k in unexpected]
        if wrong:
            reject(LoadError, "load_state_dict",
                   f"the state does not fit {type(self).__name__}: " + "; ".join(wrong),
                   fix="nothing was loaded")  # fmt: skip
        for path, target in own.items():
            place, _, name = path.rpartition(".")
            if path in state_dict and name == EXTRA:
                cells[place].set_extra_state(state_dict[path])
            elif path in state_dict:
                target.set_data(state_dict[path])
        keys = IncompatibleKeys(missing, unexpected)
        for cell in cells.values():
            for entry in entries(cell, "load_state_dict_post"):
                entry.hook(cell, keys)
        return keys

    def to_empty(self, *, device: str | None = None, recurse: bool = True) -> Self:
        """Moves parameters and buffers to a device; their elements are not to be relied on.

        Args:
            device: ``"CPU"``, ``"GPU"`` or ``"GPU:<number>"``.
            recurse: Kept for MindSpore programs; inner cells move, too.
        """
        return self.to(device=device)

    def to(self, *args: object, device: str | None = None, dtype: Any = None) -> Self:
        """Converts all float parameters and buffers to another float type or device, in place.

        Args:
            *args: A dtype, or a device and a dtype.
            device: ``"CPU"``, ``"GPU"`` or ``"GPU:<number>"``.
            dtype: The float type.

        Raises:
            DTypeError: if ``dtype`` is not a float type.
            DeviceError: if there is no such device.
        """
        for given in args:
            device, dtype = (given, dtype) if isinstance(given, str) else (device, given)
        if device is not None:
            for tensor in (*self.get_parameters(), *self.buffers()):  # pyright: ignore
                tensor.set_data(tensor.placed(device))
        if dtype is None:
            return self
        wanted = dtypes.dtype_of(dtype)
        if not wanted.is_float:
            raise DTypeError(f"a cell cannot be of type {wanted.name}", op="Cell.to",
                             fix="use a float type")  # fmt: skip
        for p in self.get_parameters():  # pyright: ignore
            if p.dtype.is_float:
                p.set_dtype(wanted)
        for _, cell in self.cells_and_names():  # pyright: ignore
            for name in cell._buffers:
                value = getattr(cell, name)
                if isinstance(value, Tensor) and value.dtype.is_float:
                    setattr(cell, name, F.cast(value, wanted))
        bump_epoch()
        return self


# ---- settings of a Cell: training mode, flags, number types, how it is compiled ------------------

#: Flags by which MindSpore programs choose the type that a cell computes in.
_PRECISIONS = {"fp16": dtypes.float16, "bf16": dtypes.bfloat16, "fp32": dtypes.float32}


def _compute_in(cell: SettingMethods, dtype: dtypes.DType) -> None:
    object.__setattr__(cell, "_to_float", dtype)
    object.__setattr__(cell, "_precision", weights(dtype))


class SettingMethods:
    """The part of Cell that changes how it computes."""

    if TYPE_CHECKING:  # what Cell itself has
        jit_config: JitConfig | None
        _flags: dict[str, object]
        _to_float: dtypes.DType | None
        _precision: Precision | None
        cells_and_names: Callable[..., Iterable[tuple[str, Cell]]]

    def set_train(self, mode: bool = True) -> Self:
        """Switches training mode (dropout, batch statistics) of this cell and all below.

        Args:
            mode: Whether to train; else to evaluate.

        Raises:
            ArgumentError: if ``mode`` is no bool.
        """
        if not isinstance(mode, bool):
            raise ArgumentError(f"mode must be a bool, not {mode!r}", op="Cell.set_train")
        for _, cell in self.cells_and_names():
            if cell.training is not mode:
                before_change(cell)
                object.__setattr__(cell, "training", mode)
        self.__dict__["phase"] = "train" if mode else "predict"  # of this cell alone
        bump_epoch()
        return self

    def set_grad(self, requires_grad: bool = True) -> Self:
        """Sets the flag that marks the cell for gradients; kept for MindSpore programs.

        Args:
            requires_grad: The flag.
        """
        object.__setattr__(self, "requires_grad", requires_grad)
        return self

    def set_jit_config(self, jit_config: JitConfig) -> None:
        """Sets how this cell is compiled.

        Args:
            jit_config: How; the name of a preset will do.

        Raises:
            DTypeError: if ``jit_config`` is not a JitConfig.
        """
        config = as_jit_config(jit_config)
        object.__setattr__(self, "jit_config", config)
        object.__setattr__(self, "_graph_mode", None)
        bump_epoch()

    @property
    def jit_config_dict(self) -> dict[str, object]:
        """The cell's own JitConfig as a dict, empty when it has none."""
        return self.jit_config.jit_config_dict if self.jit_config else {}

    def add_flags(self, **flags: object) -> Self:
        """Sets flags that can be read as attributes; ``fp16=True`` is :meth:`to_float`'s float16.

        Args:
            flags: The flags. ``fp16``, ``bf16`` and ``fp32`` that are true choose the type that
                this cell alone computes in.
        """
        before_change(self)
        self._flags.update(flags)
        for flag, dtype in _PRECISIONS.items():
            if flags.get(flag):
                _compute_in(self, dtype)
        bump_epoch()
        return self

    def add_flags_recursive(self, **flags: object) -> Self:
        """Sets flags on this cell and all below."""
        for _, cell in self.cells_and_names():
            cell.add_flags(**flags)
        return self

    def get_flags(self) -> dict[str, object]:
        """Returns the flags."""
        return self._flags

    def to_float(self, dst_type: object) -> Self:
        """Computes in another float type: inputs and weights are cast, weights stay stored.

        Args:
            dst_type: ``ms.float16``, ``ms.bfloat16`` or ``ms.float32``, or its name.

        Raises:
            DTypeError: if ``dst_type`` is not float16, bfloat16 or float32.
        """
        allowed = (dtypes.float16, dtypes.bfloat16, dtypes.float32)
        dtype = next((d for d in allowed if dst_type in (d, d.name)), None)
        if dtype is None:
            reject(TypeOrValueError, "Cell.to_float", f"a cell cannot compute in {dst_type!s}",
                   fix="use float16, bfloat16 or float32")  # fmt: skip
        for _, cell in self.cells_and_names():
            before_change(cell)
            _compute_in(cell, dtype)
        bump_epoch()
        return self

    def set_output_float(self, dst_type: object) -> Self:
        """Casts float results to another float type.

        Args:
            dst_type: float16, bfloat16, float32 or float64.
        """
        before_change(self)
        object.__setattr__(self, "_output_float", dtypes.dtype_of(dst_type))
        bump_epoch()
        return self

    def set_precision(self, dtype: dtypes.DType) -> None:
        """Computes in mixed precision, see level ``"auto"`` of ``amp.auto_mixed_precision``.

        Args:
            dtype: The short float type of products. What :meth:`to_float` said counts more.
        """
        if self._to_float is None:
            before_change(self)
            object.__setattr__(self, "_precision", mixed(dtype))
            bump_epoch()

    def compute(self, weight: Tensor) -> Tensor:
        """Returns a weight in the type chosen by :meth:`to_float`.

        Args:
            weight: A parameter or tensor.
        """
        return weight if self._to_float is None else F.cast(weight, self._to_float)

    def set_inputs(self, *inputs: object, **kwargs: object) -> None:
        """Declares the arguments of ``construct`` for compiled calls.

        Sizes that are ``None`` in a placeholder are symbolic from the first call on, so that one
        compile serves all of them; axes with one name have equal sizes. A compiled call whose
        arguments do not fit is an error. Eager calls are not checked.

        Args:
            inputs: One placeholder such as ``Tensor(shape=[None, 3], dtype=ms.float32)`` per
                argument, nested like the arguments, or ``None`` for one that may be anything.
            kwargs: The same by name.

        Raises:
            DTypeError: if an input is something else.

        Example:
            >>> net = nn.Dense(16, 4)
            >>> net.set_inputs(Tensor(shape=[None, 16], dtype=ms.float32))
        """
        check_specs((*inputs, *kwargs.values()), f"{type(self).__name__}.set_inputs")
        object.__setattr__(self, "_inputs", (inputs, kwargs))
        object.__setattr__(self, "_graph_mode", None)  # calls are checked when they are compiled
        for name in [n for n in self.__dict__ if n.startswith("_jit_bound_")]:
            del self.__dict__[name]

    def get_inputs(self) -> tuple[object, ...] | None:
        """Returns what :meth:`set_inputs` was given; None before."""
        return self.__dict__.get("_inputs", (None, {}))[0]

    _dynamic_shape_inputs = property(get_inputs)

    def recompute(self, **kwargs: object) -> Self:
        """Computes this cell again in the reverse pass instead of keeping what happens inside.

        It saves memory, eagerly and in compiled steps (``fn.memory(x)``), for the time of a second
        forward pass of the cell. Results are the same; statistics are updated once.

        Args:
            kwargs: ``mode=False`` switches it off again; other words of MindSpore's are ignored.
        """
        if kwargs.get("mode", True):
            return self.add_flags(recompute=True)
        before_change(self)
        self._flags.pop("recompute", None)
        return self
