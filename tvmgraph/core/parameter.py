"""Parameter: a named tensor that training changes and that graphs keep as a parameter."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, TypeVar

from tvmgraph import dtypes, hooks
from tvmgraph.core.deferred import Deferred
from tvmgraph.core.notebook import parameters_html, tensor_html
from tvmgraph.core.op import OPS, F
from tvmgraph.core.state import before_change, bump_epoch, state
from tvmgraph.core.storage import aligned_copy
from tvmgraph.core.tensor import Tensor, first_elements, renew
from tvmgraph.core.tensor_copies import unpickle
from tvmgraph.errors import ArgumentError, DTypeError, TvmgraphError, TypeOrValueError, reject

T = TypeVar("T")
_DEFAULT_NAME = "Parameter"


class ParamInfo:
    """What MindSpore's compiler knows of a parameter: its settings, which can be set here, too.

    Args:
        parameter: The parameter.
    """

    _SHARED = ("name", "requires_grad", "layerwise_parallel", "parallel_optimizer", "comm_fusion")

    def __init__(self, parameter: Parameter) -> None:
        self.obj = parameter

    @property
    def parameter_shape(self) -> list[int]:
        """The sizes of the parameter."""
        return list(self.obj.shape)

    def clone(self) -> ParamInfo:
        """Returns the same settings for another parameter, whose ``param_info`` it is set to."""
        twin = ParamInfo(self.obj)
        settings = {name: getattr(self.obj, name) for name in self._SHARED}
        twin.__dict__["obj"] = SimpleNamespace(shape=self.obj.shape, **settings)
        return twin

    def settle(self, parameter: Parameter) -> None:
        """Makes a parameter have these settings; they are that parameter's from then on.

        Args:
            parameter: The parameter.
        """
        for name in self._SHARED:
            setattr(parameter, name, getattr(self.obj, name))
        self.__dict__["obj"] = parameter

    def __getattr__(self, name: str) -> object:
        if name not in self._SHARED:
            raise AttributeError(f"param_info has no attribute {name!r}")
        return getattr(self.obj, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name in self._SHARED:
            setattr(self.obj, name, value)
        else:
            super().__setattr__(name, value)


class Parameter(Tensor):
    """A tensor with a name that belongs to a Cell.

    Args:
        default_input: Tensor, array, list or number with the first value; copied.
        name: Its name; a Cell that registers it prefixes its own.
        requires_grad: Whether training updates it.
        layerwise_parallel: Kept for MindSpore programs; read by distributed training only.
        parallel_optimizer: Kept for MindSpore programs; read by distributed training only.
        storage_format: Kept for MindSpore programs.
        device: ``"CPU"`` or ``"GPU"``; by default where ``default_input`` is.

    Example:
        >>> Parameter(Tensor([1.0, 2.0]), name="scale").name
        'scale'
    """

    #: Kept for MindSpore programs. Whether a parameter server keeps a cache of it, in which group
    #: its gradients are reduced, whether states are split and gathered again.
    cache_enable = parallel_optimizer_comm_recompute = sliced = is_in_parallel = False
    requires_aggr = True
    comm_fusion = 1
    #: Whether a device has it already, which programs set; values are where they are needed.
    is_init = False

    def __init__(
        self,
        default_input: Any,
        name: str | None = None,
        requires_grad: bool = True,
        layerwise_parallel: bool = False,
        parallel_optimizer: bool = True,
        storage_format: str = "",
        device: str | None = None,
    ) -> None:
        if isinstance(default_input, Tensor):
            self._ffi = self._token = None
            if isinstance(default_input._device, Deferred) and state.interpreter is None:
                self.aval, self._device = default_input.aval, default_input._device
            else:
                self._bind(aligned_copy(first_elements(self, default_input)))
            self._settle(default_input.device if device is None else device)
        else:
            narrow = isinstance(default_input, int) and not isinstance(default_input, bool)
            super().__init__(default_input, dtypes.int32 if narrow else None, device=device)
            first_elements(self, self)
        self.name = name
        self._requires_grad = _require(requires_grad, bool, "requires_grad")
        self._gradient_hooks: tuple[object, ...] = ()
        self.layerwise_parallel = layerwise_parallel
        self.parallel_optimizer = parallel_optimizer

    @property
    def name(self) -> str:
        """The parameter's name; unique within a network."""
        return self._name

    @name.setter
    def name(self, value: str | None) -> None:
        if value is not None:
            _require(value, str, "a parameter's name", error=TypeOrValueError)
        before_change(self)
        self._name = value or _DEFAULT_NAME

    @property
    def requires_grad(self) -> bool:
        """Whether training updates it."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        before_change(self)
        self._requires_grad = _require(value, bool, "requires_grad")
        bump_epoch()

    @property
    def gradient_hooks(self) -> tuple[Any, ...]:
        """What ``register_hook`` put here; seen by compiled functions as a change."""
        return self._gradient_hooks

    @gradient_hooks.setter
    def gradient_hooks(self, value: tuple[object, ...]) -> None:
        self._gradient_hooks = value
        bump_epoch()

    @property
    def param_info(self) -> ParamInfo:
        """The parameter's settings, as MindSpore's compiler has them."""
        return self.__dict__.setdefault("_info", ParamInfo(self))

    @param_info.setter
    def param_info(self, value: ParamInfo) -> None:
        value.settle(self)
        self.__dict__["_info"] = value

    @property
    def data(self) -> Parameter:
        """The parameter itself; what it is set to becomes its value."""
        return self

    @data.setter
    def data(self, value: Tensor) -> None:
        self.set_data(value)

    def rebind(self, new: Tensor) -> Parameter:
        """Makes this parameter denote ``new``'s elements; it stays a leaf.

        No gradient flows through it to what it was computed from. Gradients by the parameter are
        those of all its reads, before and after.

        Args:
            new: Tensor of this shape and dtype.
        """
        if new.aval is self.aval and (state.interpreter or state.tapes or state.paused):
            return super().rebind(leaf_value(self, new))
        super().rebind(new)
        self._token = None  # a value of its own, not the one that `new` is
        return self

    def value(self) -> Tensor:
        """Returns the current value as a plain tensor."""
        return self.snapshot()

    def clone(self, init: object = "same") -> Parameter:
        """Returns a copy with the same name; ``init`` other than ``"same"`` refills it.

        Args:
            init: ``"same"``, or what :func:`tvmgraph.common.initializer.initializer` takes: a name,
                a number, an Initializer or a Tensor.
        """
        same = init == "same"
        source: Any = self.array if same else hooks.initializer(init, self.shape, self.dtype)
        twin = Parameter(source if isinstance(source, Tensor) else Tensor(source), self.name)
        twin.__dict__.update(self.__attributes() | {"_gradient_hooks": ()})
        return twin

    def copy(self) -> Tensor:
        """Returns a Parameter with the same name and elements.

        Where operators are recorded it is a tensor, so that gradients flow through it.
        """
        is_recorded = state.interpreter is not None or state.tapes
        return super().copy() if is_recorded else self.clone()

    def __attributes(self) -> dict[str, object]:
        """Returns all attributes but what compiled code sees of the storage, and views of it."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_exclusive", "_info")}

    def __copy__(self) -> Parameter:
        twin = self.clone()
        twin.__dict__.update(self.__attributes())
        return twin

    def __deepcopy__(self, memo: dict[int, object]) -> Parameter:
        twin = memo[id(self)] = self.clone()
        twin.__dict__.update(copy.deepcopy(self.__attributes(), memo))
        return twin

    def __reduce__(self) -> tuple[object, ...]:
        _, given = super().__reduce__()
        return (_unpickle_parameter, given, self.__attributes())

    def __repr__(self) -> str:
        return (
            f"Parameter (name={self.name}, shape={self.shape}, dtype={self.dtype}, "
            f"requires_grad={self.requires_grad})"
        )

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        return tensor_html(self, self.name, "trained" if self.requires_grad else "not trained")


def _require(
    value: object, kind: type[T], what: str, *,
    op: str = "Parameter", error: type[TvmgraphError] = DTypeError,
) -> T:  # fmt: skip
    """Returns ``value`` if it is an instance of ``kind``; ``what`` names it in the error."""
    if not isinstance(value, kind):
        raise error(
            f"{what} must be a {kind.__name__}, not {type(value).__name__}", op=op,
            got=f"{value!r:.60}",
        )  # fmt: skip
    return value


def leaf_value(parameter: Tensor, new: Tensor) -> Tensor:
    """Returns the value of ``new``, for a parameter to denote, as active tapes shall see it.

    Args:
        parameter: The Parameter that is assigned to.
        new: Its new value.
    """
    if state.interpreter is not None:
        with state.computing_in(None):  # it is stored as it is, whatever type weights compute in
            value = F.leaf_value(parameter, new)
        tapes = state.paused
    else:
        value = new.snapshot()
        renew(value)
        tapes = (*state.paused, *state.tapes)
    for tape in tapes:
        tape.record(OPS["leaf_value"], (parameter, new), {}, (value,))
    return value


def _unpickle_parameter(*given: Any) -> Parameter:
    return Parameter(unpickle(*given))


class ParameterTuple(tuple[Parameter, ...]):
    """A tuple of parameters, as gradient functions take them.

    Raises:
        DTypeError: if an entry is not a Parameter.
        ArgumentError: if two Parameters have one name. Those without a name are numbered.
    """

    def __new__(cls, iterable: Iterable[Parameter]) -> ParameterTuple:
        items = tuple(
            [_require(p, Parameter, "every entry", op="ParameterTuple") for p in iterable]
        )
        for i, p in enumerate(items, 1):
            if p.name == _DEFAULT_NAME:
                p.name = f"{_DEFAULT_NAME}${i}"
        _require_names(items)
        return super().__new__(cls, items)

    def _repr_html_(self) -> str:
        return parameters_html(self, "ParameterTuple")

    def clone(self, prefix: str, init: object = "same") -> ParameterTuple:
        """Returns copies whose names start with ``prefix.``.

        Args:
            prefix: What the names of the copies begin with.
            init: ``"same"``, or what refills every copy, see :meth:`Parameter.clone`.

        Raises:
            ArgumentError: if ``prefix`` is empty.
        """
        if not prefix:
            raise ArgumentError("prefix must not be empty", op="ParameterTuple.clone")
        clones = [p.clone(init) for p in self]
        for c in clones:
            c.name = f"{prefix}.{c.name}"
        return ParameterTuple(clones)


def _require_names(params: tuple[Parameter, ...]) -> None:
    places: dict[str, int] = {}
    for i, p in enumerate(params):
        first = places.setdefault(p.name, i)
        if params[first] is not p:
            reject(ArgumentError, "ParameterTuple",
                   f"entries {first} and {i} are different Parameters, both named {p.name!r}",
                   f"{params[first].aval} and {p.aval}",
                   "give each a name of its own: Parameter(value, name=...)")  # fmt: skip


class Buffer:
    """What a Cell's attribute is set to in order to be a buffer: a tensor that is not trained.

    ``cell.mask = Buffer(tensor)`` is ``cell.register_buffer("mask", tensor)``.

    Args:
        tensor: The tensor.
        persistent: Whether the state of the Cell contains it.
    """

    def __init__(self, tensor: Tensor, *, persistent: bool = True) -> None:
        self.tensor, self.persistent = tensor, persistent


if "IPython" in sys.modules:  # plain lists of Parameters, as Cell.trainable_params() returns
    from tvmgraph.core.notebook import show_lists

    show_lists(Parameter)
