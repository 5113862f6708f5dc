"""Buffers of a Cell and its state as a dict."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.state import before_change, bump_epoch
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import (
    ArgumentError,
    DTypeError,
    LoadError,
    NotFoundError,
    either,
)
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
        taken = hasattr(self, name) and name not in self._buffers
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

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> OrderedDict[str, Any]:
        """Returns all parameters and persistent buffers by path.

        Args:
            prefix: Text put before every path.
            keep_vars: Given to the hooks; the values are the Parameters themselves either way.
        """
        places = [
            (cell, f"{prefix}{path}." if path else prefix)
            for path, cell in self.cells_and_names()  # pyright: ignore
        ]
        for cell, place in places:
            for entry in entries(cell, "state_dict_pre"):
                entry.hook(cell, place, keep_vars)
        found: OrderedDict[str, object] = OrderedDict()
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
            raise LoadError(
                f"the state does not fit {type(self).__name__}: " + "; ".join(wrong),
                op="load_state_dict", fix="nothing was loaded",
            )  # fmt: skip
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


__all__ = ["IncompatibleKeys", "StateMethods"]
