"""Cell: a network or a part of one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from types import MemberDescriptorType
from typing import Any, NoReturn, Self

from tvmgraph import dtypes, hooks
from tvmgraph.autodiff.custom import call_with_bprop, recomputed
from tvmgraph.autodiff.kept import keeping
from tvmgraph.capture.checks import is_library
from tvmgraph.compat.elsewhere import NoAttributeError
from tvmgraph.config import GRAPH_MODE, context
from tvmgraph.core.explained import explained
from tvmgraph.core.op import F
from tvmgraph.core.parameter import _DEFAULT_NAME, Buffer, Parameter, ParameterTuple
from tvmgraph.core.state import before_change, bump_epoch, call_user, state
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import (
    ArgumentError,
    CaptureError,
    DTypeError,
    KeyNotFoundError,
    NotFoundError,
    TvmgraphError,
    either,
    reject,
    user_source,
)
from tvmgraph.nn.cell_hooks import HookedCall, HookMethods
from tvmgraph.nn.cell_state import SettingMethods, StateMethods
from tvmgraph.nn.inner import member
from tvmgraph.nn.shown import cell_html
from tvmgraph.signatures import python_signature


class Cell(HookMethods, SettingMethods, StateMethods):
    """Base class of networks and layers: subclass it, register sub-cells and parameters as
    attributes in ``__init__`` and write the computation in ``construct``.

    Args:
        auto_prefix: Whether parameter names get the attribute path as a prefix.
        flags: Flags set on the cell and readable as attributes.

    Example:
        >>> class Net(nn.Cell):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.dense = nn.Dense(3, 4)
        ...     def construct(self, x):
        ...         return self.dense(x)
        >>> Net()(Tensor(np.ones((2, 3), np.float32))).shape
        (2, 4)
    """

    _is_cell = True  # lets lower rooms recognise a Cell without importing this one
    _params: dict[str, Parameter]
    _cells: dict[str, Cell | None]
    training: bool
    phase = "train"  # or "predict", by set_train
    _shown = ""  # attributes in the printed tree; `label=name` where it calls them otherwise
    _graph_mode: object

    def __init__(self, auto_prefix: Any = True, flags: Mapping[str, object] | None = None) -> None:
        set_ = object.__setattr__
        set_(self, "_params", OrderedDict())
        set_(self, "_cells", OrderedDict())
        set_(self, "_auto_prefix", auto_prefix)
        set_(self, "_flags", dict(flags or {}))
        set_(self, "training", False)
        set_(self, "requires_grad", False)
        set_(self, "jit_config", None)
        set_(self, "_graph_mode", None)
        set_(self, "_to_float", None)
        set_(self, "_output_float", None)
        set_(self, "_precision", None)
        set_(self, "_hooks", ())
        set_(self, "_buffers", {})
        set_(self, "param_prefix", "")
        if state.interpreter is not None:
            state.interpreter.made_cell(self)

    # ---- attributes -------------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        """Registers Parameters and Cells; every other value is a plain attribute."""
        cells = self.__dict__.get("_cells")
        if cells is None:
            if not isinstance(value, (Cell, Parameter, ParameterTuple)):
                object.__setattr__(self, name, value)  # as MindSpore allows
                return
            reject(either(CaptureError, AttributeError), type(self).__name__,
                   f"cannot assign {name!r} before super().__init__()",
                   fix="call super().__init__() first in your __init__")  # fmt: skip
        if state.interpreter is not None:
            state.interpreter.before_attribute(self, name)
        params = self._params
        if isinstance(value, Parameter) and params.get(name) is value:
            return  # as `self.p = ops.depend(self.p, done)` does
        if isinstance(value, _MEMBERS) or (value is None and (name in params or name in cells)):
            before_change(self)
        if isinstance(value, Parameter):
            self.__require_free(name, "Parameter", cells)
            self.__drop(name, keep="_params")
            self.insert_param_to_cell(name, value)
        elif isinstance(value, Cell):
            self.__require_free(name, "Cell", params)
            self.__drop(name, keep="_cells")
            cells[name] = value
            self.__require_other(name, value)
            if self._auto_prefix:
                value.update_parameters_name(f"{name}.")
        elif isinstance(value, ParameterTuple):
            self.__insert_tuple(name, value)
        elif isinstance(value, Buffer):
            self.register_buffer(name, value.tensor, value.persistent)
        elif name in params:
            self.__assign_param(name, value)
        elif name in cells and value is None:
            cells[name] = None
        else:
            self.__keep(name, value)
        bump_epoch()

    def __require_other(self, name: str, value: Cell) -> None:
        """Refuses a sub-cell that contains this one."""
        if any(c is self for _, c in value.cells_and_names()):
            raise ArgumentError(
                f"a Cell cannot hold itself: {name!r}", op=type(self).__name__,
                got=f"{name}={type(value).__name__}",
                fix="keep what is no part of the network in a list, or pass it to construct",
            )  # fmt: skip

    def __require_free(self, name: str, kind: str, others: Mapping[str, object]) -> None:
        """Refuses a name that a member of the other kind has, or that the class uses itself."""
        other = others.get(name)
        own = getattr(type(self), name, None)
        if other is None and (
            isinstance(own, MemberDescriptorType) or not hasattr(type(self), name)
        ):
            return
        what = "an attribute of the class" if other is None else f"a {type(other).__name__}"
        raise either(ArgumentError, KeyError)(
            f"{name!r} is {what} and cannot become a {kind}", op=type(self).__name__,
            fix="use another name",
        )  # fmt: skip

    def __insert_tuple(self, name: str, value: ParameterTuple) -> None:
        """Registers the Parameters of a tuple; names that nobody gave are numbered."""
        params = self._params
        for p in value:
            if p.name.startswith(f"{_DEFAULT_NAME}$") and params.get(p.name, p) is not p:
                free = (n for i in count(1) if (n := f"{_DEFAULT_NAME}${i}") not in params)
                p.name = next(free)
            self.insert_param_to_cell(p.name, p, check_name_contain_dot=False)
        self.__dict__[name] = value

    def __keep(self, name: str, value: object) -> None:
        """Sets a plain attribute, by its setter or in its slot where the class has one."""
        if isinstance(self._cells.get(name), Cell) and not callable(value):
            reject(DTypeError, type(self).__name__,
                   f"{name!r} is a Cell and cannot become a {type(value).__name__}",
                   fix="assign a Cell or None")  # fmt: skip
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], Parameter):
            self.__require_names(name, value)
        self.__drop(name)
        own = getattr(type(self), name, None)
        if isinstance(own, MemberDescriptorType) or getattr(own, "fset", None) is not None:
            object.__setattr__(self, name, value)
        else:
            self.__dict__[name] = value

    def __require_names(self, name: str, values: Sequence[object]) -> None:
        """Refuses a list of Parameters of which two have one name of their own."""
        found: dict[str, tuple[int, Parameter]] = {}
        for i, param in enumerate(values):
            if not isinstance(param, Parameter):
                return
            if param.name == _DEFAULT_NAME:
                continue
            j, other = found.setdefault(param.name, (i, param))
            if other is not param:
                self._refuse_names(f"{name}[{j}]", other, f"{name}[{i}]", param)

    def __drop(self, name: str, keep: str = "") -> None:
        """Removes other registrations of an attribute that changes its kind."""
        self.__dict__.pop(name, None)
        for table in ("_params", "_cells"):
            if table != keep:
                self.__dict__[table].pop(name, None)

    def __assign_param(self, name: str, value: object) -> None:
        if isinstance(value, Tensor):
            self._params[name].set_data(value)
        elif value is None:
            del self._params[name]
            self.__dict__[name] = None
        else:
            reject(DTypeError, type(self).__name__,
                   f"{name!r} is a Parameter and cannot become a {type(value).__name__}",
                   fix="assign a Tensor or a Parameter")  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        table = self.__dict__.get("_params")
        if table is None:
            raise NotFoundError(
                f"{type(self).__name__} has no attribute {name!r} before super().__init__()",
                at=user_source(), fix="call super().__init__() first in your __init__",
            )  # fmt: skip
        if name in table:
            return table[name]
        if name in self._cells:
            return self._cells[name]
        flags = self.__dict__.get("_flags", {})  # which may be what __init__ could not take
        if name in flags:
            return flags[name]
        found = None if name.startswith("_") else member(self, name)
        if found is not None:
            return found
        if name in _LOOKS and state.interpreter is None:
            return self.__looked_at(name)
        raise NoAttributeError(self, name)

    def __delattr__(self, name: str) -> None:
        for table in (self._params, self._cells, self.__dict__):
            if name in table:
                before_change(self)
                del table[name]
                bump_epoch()
                return
        raise NoAttributeError(self, name)

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self._params, *self._cells, *self._flags]

    # ---- calling ----------------------------------------------------------------------------

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """The computation; every subclass writes its own.

        Args:
            *args: What the Cell is called with.
            **kwargs: The same by name.
        """
        raise either(CaptureError, AttributeError)(
            f"{type(self).__name__} has no construct method", at=user_source(),
            fix="define `def construct(self, ...)` in the class",
        )  # fmt: skip

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs ``construct``, as a compiled graph in GRAPH_MODE."""
        if state.interpreter is not None:
            return self.__call_in_scope(args, kwargs)
        if context.mode == GRAPH_MODE and not state.scope:
            try:
                return self.__compiled()(*args, **kwargs)
            except TvmgraphError:
                raise
            except Exception as e:
                given = self.__named(args, kwargs)
                raise explained(e, type(self).__name__, given, self.construct)  # noqa: B904
        if state.broken is not None and state.broken is not self:
            from tvmgraph.jit.graph_breaks import compiled_cell

            return compiled_cell(self)(*args, **kwargs)
        outer = state.scope
        state.scope = outer or (type(self).__name__,)
        try:
            return self.__run(args, kwargs)
        except Exception as e:
            given = self.__named(args, kwargs)
            raise explained(e, type(self).__name__, given, self.construct)  # noqa: B904
        finally:
            state.scope = outer

    def __named(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, object]:
        """Returns the arguments of a call by the names that ``construct`` gives them."""
        try:
            return python_signature(self.construct).bind(*args, **kwargs).arguments
        except TypeError:
            return {f"argument {i}": a for i, a in enumerate(args)} | kwargs

    def __call_in_scope(self, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """Calls under a recorder, which notes the cell and its place in the tree."""
        assert state.interpreter is not None
        outer = state.scope
        state.scope = (*outer, state.interpreter.enter_cell(self, outer))
        try:
            return self.__run(args, kwargs)
        finally:
            state.scope = outer

    def __run(self, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        if self._to_float is not None:
            args = tuple(_cast_floats(a, self._to_float) for a in args)
        if self._precision is not None and state.precision is not self._precision:
            with state.computing_in(self._precision):
                return self.__run(args, kwargs)
        try:
            if self._hooks:
                value = HookedCall(self).run(self.__differently, args, kwargs)
            elif self._bprop is not None or "recompute" in self._flags:
                value = self.__differently(args, kwargs)
            elif self.requires_grad and self.training and not state.tapes and not kwargs:
                value = keeping(self, self.__construct, args)
            elif state.interpreter is not None:
                value = self.__construct(*args, **kwargs)
            elif state.broken is self:  # it could not be compiled as a whole
                from tvmgraph.jit.graph_breaks import compiled_cell
                from tvmgraph.jit.regions.segment import enter

                value = enter(self.construct, compiled_cell(self))(*args, **kwargs)
            else:
                value = self.construct(*args, **kwargs)
            return value if self._output_float is None else _cast_floats(value, self._output_float)
        except TypeError as e:
            self.__explain_arity(e, args, kwargs)
            raise

    def __construct(self, *args: object, **kwargs: object) -> object:
        return call_user(self.construct, args, kwargs)

    def __differently(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        """Calls ``construct`` with the cell's own derivative, if any, or recomputing it."""
        if self._bprop is None and "recompute" not in self._flags:
            return self.__construct(*args, **kwargs)
        bound = python_signature(self.construct).bind(*args, **kwargs)
        if bound.kwargs or (not state.tapes and state.interpreter is None):
            return self.construct(*args, **kwargs)
        if self._bprop is not None:
            return call_with_bprop(
                self.cls_name, self.__construct, bound.args, self._bprop,
                user=not is_library(type(self).__module__),
            )  # fmt: skip
        params = list(self.get_parameters())
        return recomputed(self.cls_name, self.__construct, bound.args, params)

    @property
    def _bprop(self) -> Callable[..., object] | None:
        """The method ``bprop(self, *inputs, out, dout)``, if the class has one."""
        return getattr(self, "bprop", None) if hasattr(type(self), "bprop") else None

    def __explain_arity(
        self, e: TypeError, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        """Replaces Python's text about a wrong call of ``construct`` by one with a location."""
        raised_inside = e.__traceback__ is not None and e.__traceback__.tb_next is not None
        if isinstance(e, DTypeError) or raised_inside:
            return
        try:
            python_signature(self.construct).bind(*args, **kwargs)
        except TypeError as wrong:
            raise DTypeError(
                f"construct() {wrong}", op=type(self).__name__,
                got=f"{len(args)} positional arguments, keywords {list(kwargs)}",
                fix=f"construct{python_signature(self.construct)}",
            ) from None  # fmt: skip

    def __compiled(self) -> Callable[..., object]:
        """Returns the compiled form of this cell's ``construct``."""
        if self._graph_mode is None:
            from tvmgraph.jit import jit

            object.__setattr__(self, "_graph_mode", jit(self))
        compiled: Any = self._graph_mode
        return compiled

    def __looked_at(self, name: str) -> object:
        """Returns a method of what ``construct`` was compiled to, where the class has no such name.

        That is what GRAPH_MODE or :meth:`compile` made, or the ``construct`` that ``@jit`` marks.
        """
        if context.mode == GRAPH_MODE or self._graph_mode is not None:
            return getattr(self.__compiled(), name)
        found = getattr(self.construct, name, None)
        if found is None:
            raise NotFoundError(
                f"{type(self).__name__} has no attribute {name!r}: {name}() shows compiled code, "
                "and nothing of this Cell was compiled", at=user_source(),
                fix=f"set_context(mode=ms.GRAPH_MODE) and call it, or ms.jit(net).{name}()",
            )  # fmt: skip
        return found

    # ---- the tree ---------------------------------------------------------------------------

    def insert_param_to_cell(
        self, param_name: str, param: Parameter | None, check_name_contain_dot: bool = True
    ) -> None:
        """Registers a parameter under an attribute name.

        Args:
            param_name: The attribute's name.
            param: The parameter, or None.
            check_name_contain_dot: Whether a name with a dot is an error.

        Raises:
            DTypeError: if ``param`` is not a Parameter.
            ArgumentError: if the name contains a dot.
            KeyNotFoundError: if something that is no parameter has the name.
        """
        if param is not None and not isinstance(param, Parameter):
            raise DTypeError(f"a Parameter is needed, not {type(param).__name__}",
                             op="insert_param_to_cell")  # fmt: skip
        if not param_name or (check_name_contain_dot and "." in param_name):
            reject(either(ArgumentError, KeyError), "insert_param_to_cell",
                   f"the name {param_name!r} contains a dot or nothing")  # fmt: skip
        if param is None:
            return setattr(self, param_name, None)
        held = self._cells.get(param_name), self.__dict__.get(param_name)
        if any(v is not None for v in held):
            reject(KeyNotFoundError, "insert_param_to_cell",
                   f"{param_name!r} is the name of something that is no parameter")  # fmt: skip
        if param.name == _DEFAULT_NAME:
            param.name = param_name
        before_change(self)
        self._params[param_name] = param
        bump_epoch()

    def check_names(self) -> None:
        """Checks that no two Parameters of the network have one name.

        Raises:
            ArgumentError: naming both.
        """
        known: dict[str, tuple[str, Parameter]] = {}
        for path, p in self.parameters_and_names():
            first, held = known.setdefault(p.name, (path, p))
            if held is not p:
                self._refuse_names(first, held, path, p)

    def check_names_and_refresh_name(self) -> None:
        """Names all parameters by their paths where two have one name.

        Cells that containers get after these are part of a network do not know its path.
        """
        names = [p.name for p in self.get_parameters()]
        if self._auto_prefix and len(set(names)) < len(names):
            self.update_parameters_name()

    def _refuse_names(self, first: str, held: Parameter, second: str, param: Parameter) -> NoReturn:
        reject(ArgumentError, self.cls_name,
               f"the Parameters {first!r} and {second!r} are both named {param.name!r}: "
               "checkpoints would hold one of them", f"{held.aval} and {param.aval}",
               "give each a name of its own: Parameter(value, name=...)")  # fmt: skip

    def insert_child_to_cell(self, child_name: str, child_cell: Cell) -> None:
        """Registers a sub-cell under an attribute name.

        Args:
            child_name: The attribute's name, without a dot.
            child_cell: The Cell, or None to keep the name for one.
        """
        if not isinstance(child_name, str):
            raise DTypeError(f"child_name must be a string, not {type(child_name).__name__}",
                             op="insert_child_to_cell")  # fmt: skip
        if not child_name or "." in child_name:
            reject(KeyNotFoundError, "insert_child_to_cell",
                   f"{child_name!r} must not be empty or hold a dot")  # fmt: skip
        if child_cell is None:
            before_change(self)
            self._cells[child_name] = None
            return
        if not isinstance(child_cell, Cell):
            raise DTypeError(f"a Cell is needed, not {type(child_cell).__name__}",
                             op="insert_child_to_cell")  # fmt: skip
        setattr(self, child_name, child_cell)

    def parameters_and_names(
        self, name_prefix: str = "", expand: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yields ``(path, parameter)``; a shared parameter comes once.

        Args:
            name_prefix: What paths begin with.
            expand: Whether those of sub-cells come, too.
        """
        cells = self.cells_and_names(name_prefix=name_prefix) if expand else [(name_prefix, self)]
        seen: set[int] = set()
        for prefix, cell in cells:
            for name, p in cell._params.items():
                if p is not None and id(p) not in seen:
                    seen.add(id(p))
                    yield (f"{prefix}.{name}" if prefix else name), p

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """Yields all parameters.

        Args:
            expand: Whether those of sub-cells come, too.
        """
        return (p for _, p in self.parameters_and_names(expand=expand))

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Returns the parameters with ``requires_grad``.

        Args:
            recurse: Whether those of sub-cells come, too.
        """
        self.check_names_and_refresh_name()
        return [p for p in self.get_parameters(expand=recurse) if p.requires_grad]

    def set_comm_fusion(self, fusion_type: int, recurse: bool = True) -> Self:
        """Sets ``comm_fusion`` of the trainable parameters; only MindSpore's compiler reads it.

        Args:
            fusion_type: The group in which gradients would be reduced together, at least 0.
            recurse: Whether parameters of cells inside are set, too.

        Returns:
            The cell.

        Raises:
            ArgumentError: for a number below 0, or no int.
        """
        if type(fusion_type) is not int or fusion_type < 0:
            reject(ArgumentError, "Cell.set_comm_fusion",
                   "fusion_type must be an int of at least 0", repr(fusion_type),
                   "pass a number of a group")  # fmt: skip
        for parameter in self.trainable_params(recurse):
            parameter.comm_fusion = fusion_type
        return self

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Returns the parameters without ``requires_grad``.

        Args:
            recurse: Whether those of sub-cells come, too.
        """
        return [p for p in self.get_parameters(expand=recurse) if not p.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """Returns the parameters by their names.

        Args:
            recurse: Whether those of sub-cells come, too.

        Raises:
            ArgumentError: if two have one name.
        """
        self.check_names_and_refresh_name()
        self.check_names()
        return OrderedDict((p.name, p) for p in self.get_parameters(expand=recurse))

    def cells(self) -> Iterable[Cell]:
        """Returns the direct sub-cells."""
        return self.name_cells().values()

    def name_cells(self) -> OrderedDict[str, Cell]:
        """Returns the direct sub-cells by attribute name."""
        seen: set[int] = set()
        result: OrderedDict[str, Cell] = OrderedDict()
        for name, cell in self._cells.items():
            if cell is not None and id(cell) not in seen:
                seen.add(id(cell))
                result[name] = cell
        return result

    def cells_and_names(
        self, cells: set[int] | None = None, name_prefix: str = ""
    ) -> Iterator[tuple[str, Cell]]:
        """Yields ``(path, cell)`` of this cell and all below it, each once.

        Args:
            cells: Identities (``id``) of cells to leave out; what is yielded is added.
            name_prefix: What paths begin with.
        """
        seen = cells if cells is not None else set()
        if id(self) in seen:
            return
        seen.add(id(self))
        yield name_prefix, self
        for name, cell in self._cells.items():
            if cell is not None:
                path = f"{name_prefix}.{name}" if name_prefix else name
                yield from cell.cells_and_names(seen, path)

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Names every parameter ``prefix`` followed by its path in this cell.

        Args:
            prefix: What names begin with.
            recurse: Whether those of sub-cells are renamed, too.
        """
        for path, p in self.parameters_and_names(expand=recurse):
            p.name = prefix + path

    def update_cell_prefix(self) -> None:
        """Gives every cell its path as ``param_prefix``."""
        for path, cell in self.cells_and_names():
            object.__setattr__(cell, "param_prefix", path)

    def apply(self, fn: Callable[[Cell], Any]) -> Self:
        """Calls ``fn`` on every sub-cell, then on this one.

        Args:
            fn: A function of a Cell; what it returns is ignored.
        """
        if not callable(fn):
            raise DTypeError(f"fn must be a function, not {type(fn).__name__}", op="Cell.apply")
        for cell in self.cells():
            cell.apply(fn)
        fn(self)
        return self

    # ---- compiling and facts ----------------------------------------------------------------

    def shard(
        self, in_strategy: object, out_strategy: object = None, parameter_plan: object = None,
        device: str = "", level: int = 0,
    ) -> Any:  # fmt: skip
        """Returns the Cell over all processes; see :func:`tvmgraph.shard`.

        Args:
            in_strategy: A layout or strategy for each argument.
            out_strategy: Those of the results; propagated by default.
            parameter_plan: Layouts of parameters by name.
            device: Kept for MindSpore programs.
            level: Kept for MindSpore programs.
        """
        return hooks.shard(self, in_strategy, out_strategy, parameter_plan)

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict[Parameter, Parameter]:
        """Returns every parameter by itself: they are always initialised.

        Args:
            auto_parallel_mode: Kept for MindSpore programs.
        """
        return {p: p for p in self.get_parameters()}

    def compile(self, *args: object, **kwargs: object) -> None:
        """Compiles ``construct`` for these arguments without keeping the result.

        Args:
            args: Arguments as of a call; values do not count.
            kwargs: Arguments by name.
        """
        self.__compiled().compile(*args, **kwargs)  # pyright: ignore[reportFunctionMemberAccess]

    @property
    def cls_name(self) -> str:
        """Name of the class."""
        return type(self).__name__

    @property
    def parameter_layout_dict(self) -> dict[str, object]:
        """Layouts of distributed parameters; empty on one device."""
        return {}

    # ---- printing, copying ------------------------------------------------------------------

    def extend_repr(self) -> str:
        """Returns what a subclass adds to its line in the printed tree."""
        words = (word.partition("=") for word in self._shown.split())
        return ", ".join(f"{label}={getattr(self, name or label)}" for label, _, name in words)

    def __repr__(self) -> str:
        own = self.extend_repr()
        cells = self.name_cells()
        if not cells:
            return f"{type(self).__name__}({own})"
        lines = [f"{type(self).__name__}("]
        if own:
            lines.append(f"  {own}")
        for name, cell in cells.items():
            lines.append(f"  ({name}): " + repr(cell).replace("\n", "\n  "))
        return "\n".join([*lines, ")"])

    def _repr_html_(self) -> str:
        return cell_html(self)

    def __getstate__(self) -> dict[str, object]:
        kept = dict(self.__dict__)
        kept["_graph_mode"] = None
        return {k: v for k, v in kept.items() if not k.startswith("_jit_bound_")}

    def __setstate__(self, kept: Mapping[str, object]) -> None:
        self.__dict__.update(kept)
        bump_epoch()


#: Methods of compiled code that a Cell has, too, unless its class uses the name.
_LOOKS = ("graph", "explain", "draw")
#: What a Cell registers.
_MEMBERS = (Parameter, Cell, ParameterTuple, Buffer)


def _cast_floats(value: object, dtype: dtypes.DType) -> Any:
    if isinstance(value, Tensor) and value.dtype.is_float:
        return F.cast(value, dtype)
    if isinstance(value, (tuple, list)):
        return type(value)(_cast_floats(v, dtype) for v in value)
    return value
