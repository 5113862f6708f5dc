"""MindirCell: a graph of MindSpore as a Cell that calls the operators of this package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tvmgraph.capture import structured
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, CaptureError, LoadError, TvmgraphError
from tvmgraph.nn import Cell
from tvmgraph.onnx.table import known, to_tensor
from tvmgraph.train.mindir_file import Monad, Node, read
from tvmgraph.train.mindir_operators import apply, is_known

_CONTROL = ("Load", "Partial", "Switch")


class _Closure:
    """A function of the file with its first arguments."""

    def __init__(self, name: str, args: tuple[object, ...] = ()) -> None:
        self.name, self.args = name, args


class _Choice:
    """One of two closures, by a condition that is not known while a graph is captured."""

    def __init__(self, condition: Tensor, sides: tuple[_Closure, _Closure]) -> None:
        self.condition, self.sides = condition, sides


class _Again:
    """What the body of a loop gives instead of calling its head: the arguments of that call."""

    def __init__(self, args: tuple[object, ...]) -> None:
        self.args = args


class MindirCell(Cell):
    """A graph of MindSpore, read from a MINDIR file.

    Its weights are Parameters with MindSpore's names. It runs eagerly, compiles, differentiates
    and exports, as other Cells do.

    Args:
        path: The file; a folder with weights, as MindSpore writes it for large networks, must
            be beside it.

    Raises:
        LoadError: if the file is encrypted or damaged, or has operators that are not supported;
            the message names them.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.program = program = read(path)
        defined = {n.output for f in program.functions.values() for n in f.nodes}
        ops = [n.op for f in program.functions.values() for n in f.nodes]
        unknown = Counter(
            op for op in ops
            if not is_known(op) and op not in (*_CONTROL, *defined, *program.functions)
        )  # fmt: skip
        if unknown:
            raise LoadError(
                f"{unknown.total()} nodes use operators that are not supported", op="load",
                got=", ".join(f"{n} ({c})" for n, c in sorted(unknown.items())),
                fix="export with file_format='ONNX' in MindSpore instead",
            )  # fmt: skip
        self.writes = any(op.startswith(("Assign", "Inplace", "Apply")) for op in ops)
        self.weights = ParameterTuple(
            Parameter(Tensor(array), name=label) for label, array in program.weights.values()
        )
        self._heads: dict[str, bool] = {}  # of the loops whose body is being recorded

    def example_inputs(self) -> tuple[Tensor, ...]:
        """Returns zeros for every input; empty when the file leaves a size open."""
        found = self.program.examples
        return () if any(e is None for e in found) else tuple(map(Tensor, found))

    def construct(self, *inputs: object) -> object:
        """Runs the graph with one tensor per input.

        Args:
            *inputs: One tensor or array per input.

        Raises:
            ArgumentError: if there are more or fewer.
        """
        program = self.program
        main = program.functions[program.main]
        if len(inputs) != len(main.inputs):
            raise ArgumentError(f"{len(main.inputs)} inputs are needed, not {len(inputs)}",
                                op=type(self).__name__)  # fmt: skip
        return _map(to_tensor, self._run(program.main, inputs))

    def _run(self, name: str, args: Any, look: bool = False) -> object:
        """Runs a function; with ``look``, its last choice between two functions is not followed."""
        function = self.program.functions[name]
        made = {node.output for node in function.nodes}
        last = next((n for n in reversed(function.nodes) if n.op in made), None) if look else None
        env = dict(zip(self.program.weights, self.weights))
        env.update(zip(function.inputs, args, strict=True))
        for node in function.nodes:
            values = [self._value(env, name) for name in node.inputs]
            env[node.output] = self._step(env, node, values, node is last)
        results = [self._value(env, name) for name in function.outputs]
        return results[0] if len(results) == 1 else tuple(results)

    def _value(self, env: Mapping[str, object], name: str) -> object:
        if name in env:
            return env[name]
        if name in self.program.constants:
            return _map(to_tensor, self.program.constants[name])
        if name in self.program.functions:
            return _Closure(name)
        raise LoadError(f"nothing defines the value {name!r}", op="mindir",
                        fix="the file is damaged: export it again")  # fmt: skip

    def _step(self, env: Mapping[str, object], node: Node, values: list[Any], look: bool) -> Any:
        """Computes one node."""
        if node.op in env or node.op in self.program.functions:
            callee = self._value(env, node.op)
            if look and isinstance(callee, _Choice):
                return callee
            return self._invoke(callee, values)
        if node.op == "Partial":
            return _Closure(values[0].name, (*values[0].args, *values[1:]))
        if node.op == "Switch":
            return _switch(*values)
        if node.op == "Load":  # its value now, if it may be written later
            return F.identity(values[0]) if self.writes else values[0]
        try:
            return apply(node.op, dict(node.attrs), values)
        except TvmgraphError:
            raise
        except Exception as e:  # a file that breaks the rules may cause anything
            raise LoadError(f"the node cannot be computed ({type(e).__name__}: {e})",
                            op=f"mindir.{node.op}", got=node.scope) from e  # fmt: skip

    # ---- control flow -----------------------------------------------------------------------

    def _invoke(self, callee: Any, values: Any = ()) -> object:
        """Calls a function, or one of two functions."""
        if isinstance(callee, _Choice):
            return self._branch(callee, tuple(values))
        name, args = callee.name, (*callee.args, *values)
        if name in self._heads:
            return _Again(args)
        if self.program.functions[name].is_loop and structured.can_record():
            return self._loop(name, args)
        return self._run(name, args)

    def _branch(self, choice: _Choice, values: tuple[object, ...]) -> object:
        if not structured.can_record():
            raise CaptureError("a branch depends on a value that is not known", op="mindir",
                               fix="run it eagerly")  # fmt: skip
        shapes: list[object] = []

        def side(closure: _Closure) -> list[Tensor]:
            leaves: list[Any] = []

            def keep(value: object) -> object:
                if isinstance(value, (_Again, _Choice, _Closure)):
                    raise self._refused(closure.name)
                if isinstance(value, Monad):
                    return value
                plain = isinstance(value, (bool, int, float))
                leaves.append(to_tensor(np.asarray(value) if plain else value))
                return None

            shapes.append(_map(keep, self._invoke(closure, values)))
            return leaves

        found = structured.branch(choice.condition, *(lambda c=c: side(c) for c in choice.sides))
        leaves = iter(found if isinstance(found, tuple) else (found,))
        return _map(lambda v: next(leaves) if v is None else v, shapes[0])

    def _loop(self, name: str, args: tuple[Tensor, ...]) -> object:
        """Records a loop: a function that calls itself at the end of one of two branches."""
        places = [
            i for i, a in enumerate(args) if isinstance(a, Tensor) and not isinstance(a, Parameter)
        ]

        def head(state: Any) -> _Choice:
            now = list(args)
            for i, value in zip(places, state):
                now[i] = value
            found = self._run(name, now, look=True)
            if not isinstance(found, _Choice):
                raise self._refused(name)
            return found

        def test(state: object) -> list[Tensor]:
            return [F.reshape(head(state).condition, ())]

        def body(state: object) -> list[Any]:
            found = head(state)
            self._heads[name] = True
            try:
                again = self._invoke(found.sides[0])
            finally:
                del self._heads[name]
            if not isinstance(again, _Again):
                raise self._refused(name)
            return [to_tensor(again.args[i]) for i in places]

        end = structured.loop([args[i] for i in places], test, body)
        assert end is not None
        return self._invoke(head(end if isinstance(end, tuple) else (end,)).sides[1])

    def _refused(self, name: str) -> CaptureError:
        return CaptureError(f"the control flow of {name!r} has no form that can be compiled",
                            op="mindir", fix="run it eagerly")  # fmt: skip


def _switch(condition: object, *sides: _Closure) -> _Closure | _Choice:
    """Chooses one of two functions, at once if the condition is known."""
    value = condition if isinstance(condition, bool) else known(condition)
    if value is None:
        return _Choice(condition, sides)  # pyright: ignore[reportArgumentType]  (two of them)
    return sides[0 if np.asarray(value).reshape(-1)[0] else 1]


def _map(function: Callable[[object], object], value: object) -> object:
    """Applies a function to the leaves of tuples and lists."""
    if isinstance(value, (tuple, list)):
        return type(value)(_map(function, v) for v in value)
    return function(value)
