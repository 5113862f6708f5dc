"""Containers: cells in sequence, in a list, in a dictionary; a Cell around a graph."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeAlias

from tvmgraph.capture.replay import replay
from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.sizes import Dim
from tvmgraph.core.state import before_change, bump_epoch
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import (
    ArgumentError,
    CaptureError,
    DTypeError,
    OutOfRangeError,
    ShapeError,
    either,
)
from tvmgraph.nn._checks import is_int, reject
from tvmgraph.nn._offered import offered
from tvmgraph.nn.cell import Cell
from tvmgraph.ops import assign

__all__ = ["CellDict", "CellList", "SequentialCell"]

#: The place of a cell, or of several.
_Index: TypeAlias = "int | Tensor | slice[int | None, int | None, int | None]"
#: What a container without an order is when it is called.
_NotCalled = either(CaptureError, NotImplementedError)


def _place(cells: Mapping[str, Any]) -> tuple[str, int]:
    """Returns what precedes the keys in parameters' names, and how many parts that are.

    A container does not know its own path: it is read off the names of the parameters
    of the first two cells that have some, as MindSpore does it. So a container that was
    empty when it became an attribute has none, and names of checkpoints stay MindSpore's.
    """
    firsts = ((key, next(cell.get_parameters(), None)) for key, cell in cells.items())
    named = [(key, p.name.split(".")) for key, p in firsts if p is not None][:2]
    found = ("", 0)
    for i, part in enumerate(named[0][1] if named else ()):
        if part == named[0][0]:
            found = ("".join(f"{n}." for n in named[0][1][:i]), i)
            if len(named) == 2 and named[1][1][i : i + 1] == [named[1][0]]:
                break
    return found


def _hold(container: Cell, key: str, cell: Cell) -> None:
    """Adds a cell to a container and names its parameters as those of the others."""
    own, _ = _place(container._cells)
    setattr(container, key, cell)
    if container._auto_prefix and own:
        cell.update_parameters_name(f"{own}{key}.")


class _Ordered(Cell):
    """What SequentialCell and CellList share: cells by position."""

    def _adopt(self, cells: Iterable[tuple[str, Cell]]) -> None:
        """Replaces all cells, and names the parameters of those whose places are new."""
        before = {id(cell): key for key, cell in self._cells.items()}
        own, depth = _place(self._cells)
        kept = OrderedDict((key, self._checked(cell)) for key, cell in cells)
        before_change(self)
        object.__setattr__(self, "_cells", kept)
        for key, cell in kept.items() if self._auto_prefix else ():
            if id(cell) not in before:
                cell.update_parameters_name(f"{own}{key}.")
            elif before[id(cell)] != key:
                for p in cell.get_parameters():
                    p.name = ".".join([f"{own}{key}", *p.name.split(".")[depth + 1 :]])
        bump_epoch()

    def _renumber(self, cells: Iterable[Any]) -> None:
        self._adopt((str(i), cell) for i, cell in enumerate(cells))

    def _checked(self, cell: object) -> Cell:
        if not isinstance(cell, Cell):
            reject(DTypeError, type(self).__name__,
                   f"every item must be a Cell, not {type(cell).__name__}", repr(cell)[:80],
                   "wrap a function in a Cell")  # fmt: skip
        return cell

    def _members(self) -> list[Any]:
        return list(self._cells.values())

    def _position(self, index: Any) -> int:
        n = len(self._cells)
        if isinstance(index, Tensor) and index.ndim == 0 and index.dtype.is_integer:
            index = int(index)  # code is compiled for each value
        if not is_int(index):
            reject(DTypeError, type(self).__name__,
                   f"an index must be an int or a slice, not {type(index).__name__}")  # fmt: skip
        if not -n <= index < n:
            reject(OutOfRangeError, type(self).__name__,
                   f"index {index} is out of range for {n} cells")  # fmt: skip
        return int(index) % n

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._members())

    def __getitem__(self, index: _Index) -> Any:
        if not isinstance(index, slice):
            return self._members()[self._position(index)]
        part = (SequentialCell if isinstance(self, SequentialCell) else CellList)()
        kept = list(self._cells.items())[index]
        named = not all(key.isdigit() for key, _ in kept)
        for i, (key, cell) in enumerate(kept):  # the parameters keep the names of the whole
            part._cells[key if named else str(i)] = cell
        object.__setattr__(part, "training", self.training)
        return part

    def __setitem__(self, index: _Index, cell: Any) -> None:
        keys, members = list(self._cells), self._members()
        if isinstance(index, slice):
            members[index] = list(cell)
            self._renumber(members)
            return
        members[self._position(index)] = cell
        self._adopt(zip(keys, members))

    def __delitem__(self, index: _Index) -> None:
        keys, members = list(self._cells), self._members()
        if not isinstance(index, slice):
            index = self._position(index)
        if all(key.isdigit() for key in keys):
            del members[index]
            self._renumber(members)
        else:
            del keys[index], members[index]
            self._adopt(zip(keys, members))

    def append(self, cell: Cell) -> None:
        """Adds a cell at the end.

        Raises:
            DTypeError: if ``cell`` is not a Cell.
        """
        key = str(len(self._cells))
        if key in self._cells:
            raise ArgumentError(f"a cell is already called {key!r}", op=type(self).__name__)
        _hold(self, key, self._checked(cell))

    def insert(self, index: int, cell: Cell) -> None:
        """Adds a cell before position ``index``.

        Raises:
            DTypeError: if ``cell`` is not a Cell or ``index`` no int.
            OutOfRangeError: if ``index`` is outside ``[-len, len]``.
        """
        members = self._members()
        if index != len(members):
            index = self._position(index)
        members.insert(index, self._checked(cell))
        self._renumber(members)


class SequentialCell(_Ordered):
    """Applies cells one after the other: :math:`y = f_n(\\dots f_1(x))`.

    Args:
        args: Cells, or one list of cells, or one ``OrderedDict`` of names and cells.

    Inputs:
        - **input_data** - What the first cell takes.

    Outputs:
        What the last cell returns.

    Raises:
        DTypeError: if an item is not a Cell.
        OutOfRangeError: for an index outside the sequence.

    Example:
        >>> net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2))
        >>> [p.name for p in net.trainable_params()]
        ['0.weight', '0.bias', '2.weight', '2.bias']
    """

    def __init__(self, *args: object) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            self._adopt(args[0].items())
        elif len(args) == 1 and isinstance(args[0], (list, tuple)):
            self._renumber(args[0])
        else:
            self._renumber(args)

    @offered
    def cell_list(self) -> list[Cell]:
        """The cells in order."""
        return self._members()

    def construct(self, input_data: Any) -> Any:
        """Applies the cells in order.

        Args:
            input_data: What the first cell is called with.

        Returns:
            What the last one returns.
        """
        for cell in self._members():
            input_data = cell(input_data)
        return input_data


class CellList(_Ordered):
    """Holds cells in a list, so that their parameters belong to the network.

    Args:
        args: One list (or other iterable) of cells; nothing for an empty list.
        kwargs: ``auto_prefix``, as for :class:`Cell`.

    Raises:
        DTypeError: if an item is not a Cell.
        OutOfRangeError: for an index outside the list.

    Example:
        >>> layers = nn.CellList([nn.Dense(3, 3) for _ in range(2)])
        >>> layers.append(nn.ReLU())
        >>> len(layers)
        3
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(kwargs.get("auto_prefix", True))
        cells = args[0] if len(args) == 1 and not isinstance(args[0], Cell) else args
        if not isinstance(cells, Iterable):
            reject(DTypeError, "CellList", f"a list of cells is needed, not {type(cells).__name__}")
        self._renumber(cells)

    def extend(self, cells: Iterable[Cell]) -> Self:
        """Adds several cells at the end and returns the list.

        Args:
            cells: The cells, in their order.

        Raises:
            DTypeError: if ``cells`` is not iterable or holds something else.
        """
        if not isinstance(cells, Iterable):
            reject(DTypeError, "CellList",
                   f"extend needs a list of cells, not {type(cells).__name__}")  # fmt: skip
        for cell in list(cells):
            self.append(cell)
        return self

    __iadd__ = extend

    def each_model(self) -> list[Cell]:
        """The members, which :func:`tvmgraph.vmap` runs on one element each."""
        return self._members()

    def construct(self, *inputs: Any) -> Any:
        """Refuses: a list has no computation of its own.

        Args:
            *inputs: Anything.

        Raises:
            CaptureError: always.
        """
        reject(_NotCalled, "CellList", "a CellList cannot be called",
               fix="loop over it in construct, or use SequentialCell")  # fmt: skip


_BadName = either(ArgumentError, KeyError)


class CellDict(Cell):
    """Holds cells by name, so that their parameters belong to the network.

    Args:
        args: One dictionary, ``CellDict`` or list of ``(name, cell)`` pairs; or nothing.
        kwargs: ``auto_prefix``, as for :class:`Cell`.

    Raises:
        DTypeError: if a name is not a str or a value not a Cell.
        ArgumentError: if a name is empty, contains a dot or hides an attribute.

    Example:
        >>> heads = nn.CellDict({"a": nn.Dense(2, 3), "b": nn.ReLU()})
        >>> list(heads.keys())
        ['a', 'b']
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(kwargs.get("auto_prefix", True))
        if len(args) > 1:
            reject(ArgumentError, "CellDict",
                   f"one dictionary is needed, not {len(args)} arguments")  # fmt: skip
        if args:
            self.update(args[0])

    def __getitem__(self, key: str) -> Any:
        if key not in self._cells:
            names = ", ".join(self._cells) or "none"
            reject(either(OutOfRangeError, KeyError), "CellDict", f"there is no cell {key!r}",
                   f"cells: {names}")  # fmt: skip
        return self._cells[key]

    def __setitem__(self, key: str, cell: Cell) -> None:
        if not isinstance(key, str):
            reject(DTypeError, "CellDict", f"a name must be a str, not {type(key).__name__}")
        if not key or "." in key:
            reject(_BadName, "CellDict", f"a name must not be empty or contain a dot: {key!r}")
        if key not in self._cells and key in dir(self):
            reject(_BadName, "CellDict", f"{key!r} is an attribute of CellDict",
                   fix="use another name")  # fmt: skip
        if not isinstance(cell, Cell):
            reject(DTypeError, "CellDict", f"every value must be a Cell, not {type(cell).__name__}")
        _hold(self, key, cell)

    def __delitem__(self, key: str) -> None:
        self[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._cells)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __contains__(self, key: object) -> bool:
        return key in self._cells

    def keys(self) -> Iterable[str]:
        """Returns the names."""
        return self._cells.keys()

    def values(self) -> Iterable[Any]:
        """Returns the cells."""
        return self._cells.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Returns names and cells."""
        return self._cells.items()

    def pop(self, key: str) -> Cell:
        """Removes a cell and returns it.

        Args:
            key: Name of the cell.

        Raises:
            NotFoundError: if there is no cell of this name.
        """
        cell = self[key]
        delattr(self, key)
        return cell

    def clear(self) -> None:
        """Removes all cells."""
        for key in list(self._cells):
            delattr(self, key)

    def update(self, cells: object) -> None:
        """Adds or replaces the cells of a dictionary, ``CellDict`` or list of pairs.

        Args:
            cells: Cells by name, or (name, cell) pairs.

        Raises:
            DTypeError: if ``cells`` is nothing of that.
        """
        pairs = cells.items() if isinstance(cells, (dict, CellDict)) else cells
        if not isinstance(pairs, Iterable):
            reject(DTypeError, "CellDict",
                   f"a dictionary of cells is needed, not {type(cells).__name__}")  # fmt: skip
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                reject(DTypeError, "CellDict", "every item must be a (name, cell) pair",
                       repr(pair)[:80])  # fmt: skip
            self[pair[0]] = pair[1]

    def construct(self, *inputs: Any) -> Any:
        """Refuses: a dictionary has no computation of its own.

        Args:
            *inputs: Anything.

        Raises:
            CaptureError: always.
        """
        reject(_NotCalled, "CellDict", "a CellDict cannot be called",
               fix="choose a cell by name in construct")  # fmt: skip


# ---- a graph as a Cell --------------------------------------------------------------------------


class GraphCell(Cell):
    """A cell that runs a :class:`tvmgraph.graph.Graph`, with parameters by label.

    Args:
        graph: The graph; its PARAMETER parameters take their values from ``params_init``, and a
            call updates those that the graph writes. Or the Cell that ``ms.load`` returns.
        params_init: Values by label; for a Cell, new values of some of its parameters.
        least: The smallest sizes of axes that the graph takes, by name, where that is not 1.
        most: The largest ones, by name, where there are any.
    """

    def __init__(
        self, graph: Any, params_init: Mapping[str, object] | None = None,
        least: Mapping[str, int] | None = None, most: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(auto_prefix=False)
        self.graph, self.least, self.most = graph, dict(least or {}), dict(most or {})
        values = params_init or {}
        if isinstance(graph, Cell):
            for name, p in graph.parameters_and_names():
                if p.name in values or name in values:
                    p.set_data(Tensor(values[p.name if p.name in values else name]))
            return
        self.weights = ParameterTuple(
            Parameter(values[p.label], name=p.label) for p in graph.parameters
        )

    def construct(self, *inputs: Tensor) -> Any:
        """Applies every node of the graph.

        Args:
            *inputs: One tensor per input of the graph.

        Returns:
            Its output, or a tuple of several.
        """
        if isinstance(self.graph, Cell):
            return self.graph(*inputs)
        self.__require_sizes(inputs)
        outputs = replay(self.graph, inputs, self.weights)
        if self.graph.writes:  # new values of parameters are the last outputs
            count = len(outputs) - len(self.graph.writes)
            weights = {w.name: w for w in self.weights}
            for label, value in zip(self.graph.writes, outputs[count:]):
                assign(weights[label], value)
            outputs = outputs[:count]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def __require_sizes(self, inputs: Sequence[Tensor]) -> None:
        """Raises ShapeError if the graph does not take a size."""
        limited = self.least or self.most
        for value, param in zip(inputs, self.graph.inputs if limited else ()):
            for size, d in zip(value.shape, param.value.type.shape):
                name = d.text if isinstance(d, Dim) else ""
                least, most = self.least.get(name, 0), self.most.get(name, size)
                if not least <= size <= most:
                    bound = f"least {least}" if size < least else f"most {most}"
                    reject(ShapeError, self.graph.name, f"{d} must be at {bound}: the code decides "
                           "by the size, or slices beyond it",
                           f"{d}={size}", "export the network for this size")  # fmt: skip
