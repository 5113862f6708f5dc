"""Settings of a Cell: training mode, flags, number types, how it is compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Self

from tvmgraph import dtypes
from tvmgraph.config import JitConfig, as_jit_config
from tvmgraph.core.op import F
from tvmgraph.core.state import before_change, bump_epoch
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, TypeOrValueError
from tvmgraph.jit.signature import check_specs

if TYPE_CHECKING:
    from tvmgraph.nn.cell import Cell

#: Flags by which MindSpore programs choose the type that a cell computes in.
_PRECISIONS = {"fp16": dtypes.float16, "bf16": dtypes.bfloat16, "fp32": dtypes.float32}


class SettingMethods:
    """The part of Cell that changes how it computes."""

    if TYPE_CHECKING:  # what Cell itself has
        jit_config: JitConfig | None
        _flags: dict[str, object]
        _to_float: dtypes.DType | None
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
                object.__setattr__(self, "_to_float", dtype)
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
            raise TypeOrValueError(
                f"a cell cannot compute in {dst_type!s}", op="Cell.to_float",
                fix="use float16, bfloat16 or float32",
            )  # fmt: skip
        for _, cell in self.cells_and_names():
            before_change(cell)
            object.__setattr__(cell, "_to_float", dtype)
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


__all__ = ["SettingMethods"]
