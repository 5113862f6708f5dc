"""The registry of debugging flags: one row each, set by the environment or by a ``with`` block.

A flag's value is that of the innermost ``with ms.flags(...)`` block, else its environment variable
(read when the package is first used), else its default. ``tvmgraph flags`` prints the registry.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from tvmgraph.errors import ConfigError, reject


@dataclass(frozen=True)
class Flag:
    """One row of the registry.

    Attributes:
        name: The keyword of :func:`flags`.
        variable: The environment variable.
        levels: What every value means; each level includes those below it.
    """

    name: str
    variable: str
    levels: tuple[str, ...]

    def parse(self, value: object, where: str) -> int:
        """Converts a value from the environment or from Python.

        Args:
            value: A level as a number, bool or text.
            where: What the error names as its place.

        Raises:
            ConfigError: listing the valid values.
        """
        text = str(int(value)) if isinstance(value, (bool, int)) else str(value).strip()
        valid = [str(i) for i in range(len(self.levels))]
        if text not in valid:
            raise ConfigError(
                f"{where} cannot be {value!r}", op="flags",
                fix=f"use one of {', '.join(valid)}; `tvmgraph flags` says what they mean",
            )  # fmt: skip
        return int(text)


REGISTRY: Mapping[str, Flag] = {
    flag.name: flag
    for flag in (
        Flag("debug", "TVMGRAPH_DEBUG", (
            "nothing is printed",
            "every compile on stderr: why it happened and its time by phase",
            "and a table per call: time and bytes of every kernel, overhead of the host",
            "and the graph after every pass; all phases are written as with save_graphs=3",
            "and the generated LLVM code",
        )),
        Flag("check", "TVMGRAPH_CHECK", (
            "nothing is checked",
            "every captured graph is verified",
            "and the graph after every pass",
            "and every compiled call is compared with NumPy; the first node that differs is named",
        )),
        Flag("save_graphs", "TVMGRAPH_SAVE_GRAPHS", (
            "nothing is written",
            "graph texts",
            "and Relax before and after fusion",
            "and scheduled loops, LLVM code and assembly",
        )),
        Flag("numerics", "TVMGRAPH_NUMERICS", (
            "NaN and infinities are values like any other",
            "the operator that makes a NaN or an infinity of finite values is an error that names "
            "it: in eager code, and where it reaches a result of compiled code",
            "and every intermediate value of compiled code is looked at, in NumPy",
        )),
    )
}  # fmt: skip


Listener = Callable[[object, object, object, object, float, float], None]


class Flags:
    """The values in force; reading one is an attribute access.

    Attributes:
        watched: Whether compiled calls must take the slower, observed path.
        watches_eager: Whether eager operators must, too.
        listeners: Who hears of every eager operator: functions of the row, its tensors, its
            attributes, its results, and the time before and after.
    """

    __slots__ = (
        "_by_name", "check", "debug", "listeners", "numerics", "save_graphs", "watched",
        "watches_eager",
    )  # fmt: skip

    def __init__(self) -> None:
        self.debug = self.check = self.save_graphs = self.numerics = 0
        self.watched = self.watches_eager = False
        self.listeners: tuple[Listener, ...] = ()
        self._by_name: dict[str, Listener] = {}
        for flag in REGISTRY.values():
            given = os.environ.get(flag.variable)
            if given:
                setattr(self, flag.name, flag.parse(given, flag.variable))
        self._settle()

    def listen(self, name: str, listener: Listener) -> None:
        """Lets somebody hear of every eager operator, and observe compiled calls.

        Args:
            name: Who listens; another listener of this name is replaced.
            listener: What is told of them.
        """
        self._by_name[name] = listener
        self._settle()

    def ignore(self, name: str) -> None:
        """Ends what :meth:`listen` began.

        Args:
            name: Who listened; a name that nobody has is left as it is.
        """
        self._by_name.pop(name, None)
        self._settle()

    def _settle(self) -> None:
        self.listeners = tuple(self._by_name.values())
        self.watches_eager = self.numerics >= 1 or bool(self.listeners)
        self.watched = self.debug >= 2 or self.check >= 3 or self.watches_eager

    def replace(self, **values: int) -> dict[str, int]:
        """Sets some flags and returns what they were."""
        before = {name: getattr(self, name) for name in values}
        for name, value in values.items():
            setattr(self, name, value)
        self._settle()
        return before


active = Flags()


@contextmanager
def flags(**settings: object) -> Iterator[Flags]:
    """Sets flags within a ``with`` block.

    Args:
        **settings: ``debug`` (0 to 4), ``check`` (0 to 3), ``save_graphs`` (0 to 3),
            ``numerics`` (0 to 2).

    Raises:
        ConfigError: for an unknown flag or value.

    Example:
        >>> with ms.flags(debug=1):
        ...     ms.jit(lambda x: x + 1)(Tensor([1.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 2.00000000e+00])
    """
    values: dict[str, int] = {}
    for name, value in settings.items():
        if name not in REGISTRY:
            reject(ConfigError, "flags", f"unknown flag {name!r}",
                   fix=f"use one of {', '.join(REGISTRY)}")  # fmt: skip
        values[name] = REGISTRY[name].parse(value, name)
    before = active.replace(**values)
    try:
        yield active
    finally:
        active.replace(**before)
