"""Evaluates expressions: Python values are real, tensors are traced."""

# pyright: reportGeneralTypeIssues=false
# (a part of Interpreter: `self` is the whole of it)
from __future__ import annotations

import ast
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Sized
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from tvmgraph.capture import builtin
from tvmgraph.capture.checks import is_cell, is_cell_class, is_function
from tvmgraph.capture.frame import Chosen, Frame, Unset
from tvmgraph.capture.function_source import bound_names, describe
from tvmgraph.capture.identity import check_compared, identical
from tvmgraph.capture.impure import is_environment
from tvmgraph.capture.merge import as_tensor
from tvmgraph.capture.nested import NestedFunction
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.capture.traced_number import TracedNumber, positions
from tvmgraph.core.arguments import is_sequence
from tvmgraph.core.op import F
from tvmgraph.core.symbols import Symbol
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import CaptureError, either

if TYPE_CHECKING:
    from tvmgraph.capture.interpreter import Interpreter

Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.MatMult: operator.matmul, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}  # fmt: skip
IN_PLACE: dict[type, Callable[[object, object], object]] = {
    kind: getattr(operator, f"i{function.__name__.rstrip('_')}")
    for kind, function in BINARY.items()
}
_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
# methods of containers that do what they do whatever is in there
_BLIND = frozenset({"append", "extend", "add", "clear", "update"})
_SUBSTITUTES = {
    "eval": "write the expression itself",
    "exec": "write the statements themselves",
    "locals": "name the variables you need",
    "globals": "name the variables you need",
    "vars": "name the attributes you need",
    "breakpoint": "use jit_level='O0' with exec_mode='no_sink', or call the function without jit",
}


class Expressions:
    """The part of the interpreter that evaluates expressions."""

    def evaluate(self: Interpreter, node: ast.expr, frame: Frame) -> Any:
        """Returns the value of an expression.

        Args:
            node: The expression.
            frame: The frame in which that code runs.
        """
        method = getattr(self, "_" + type(node).__name__, None)
        if method is None:
            self.refuse(node, frame, f"`{type(node).__name__}` expressions")
        frame.node = node
        return method(node, frame)

    # ---- names and attributes ---------------------------------------------------------------

    def _Constant(self: Interpreter, node: ast.Constant, frame: Frame) -> object:
        return node.value

    def _Name(self: Interpreter, node: ast.Name, frame: Frame) -> object:
        name = frame.source.mangle(node.id)
        value = self.load(name, frame)
        if isinstance(value, Unset):
            self.blamed = value.node if frame is self.root else None
            self.refuse(
                node, frame, f"{name!r} cannot be read here: {value.why}",
                "give it a value of one shape and dtype on every path", "",
                either(CaptureError, value.kind),
            )  # fmt: skip
        return value

    def load(self: Interpreter, name: str, frame: Frame) -> object:
        """Returns what a name denotes.

        Args:
            name: Name of a variable.
            frame: The frame in which that code runs.

        Raises:
            UnboundLocalError: if a local variable has no value.
            NameError: if there is no such name.
        """
        owner = frame.owner(name)
        if owner is not None:
            if name not in owner.names:
                raise UnboundLocalError(
                    f"cannot access local variable {name!r} where it is not associated with a value"
                )
            return owner.names[name]
        return self.read_outside(name, frame)

    def store(self: Interpreter, name: str, value: object, frame: Frame) -> None:
        """Binds a name.

        Args:
            name: Name of a variable.
            value: What it denotes from here on.
            frame: The frame in which that code runs.
        """
        name = frame.source.mangle(name)
        owner = frame.owner(name)
        if owner is not None:
            owner.names[name] = value
            return
        self.write_outside(name, value, frame)

    def _Attribute(self: Interpreter, node: ast.Attribute, frame: Frame) -> object:
        owner = self.evaluate(node.value, frame)
        frame.node = node
        return self.attribute(owner, frame.source.mangle(node.attr))

    def _NamedExpr(self: Interpreter, node: ast.NamedExpr, frame: Frame) -> object:
        value = self.evaluate(node.value, frame)
        self.store(node.target.id, value, frame)
        return value

    # ---- operators --------------------------------------------------------------------------

    def _BinOp(self: Interpreter, node: ast.BinOp, frame: Frame) -> object:
        left, right = self.evaluate(node.left, frame), self.evaluate(node.right, frame)
        frame.node = node
        return self.operate(BINARY[type(node.op)], left, right)

    def _UnaryOp(self: Interpreter, node: ast.UnaryOp, frame: Frame) -> object:
        value = self.evaluate(node.operand, frame)
        frame.node = node
        if isinstance(node.op, ast.Not):
            truth = self.truth(value)
            return self.number_of(F.logical_not(truth)) if isinstance(truth, Tensor) else not truth
        self.impure.look_into(value)
        return _UNARY[type(node.op)](value)

    def _BoolOp(self: Interpreter, node: ast.BoolOp, frame: Frame) -> object:
        return self._bool_op(node, node.values, frame)

    def _bool_op(
        self: Interpreter,
        node: ast.BoolOp,
        values: list[ast.expr],
        frame: Frame,
        truth_only: bool = False,
    ) -> object:
        first = (self.condition if truth_only else self.evaluate)(values[0], frame)
        if len(values) == 1:
            return first
        frame.node = node
        truth = first if truth_only else self.truth(first)
        conjunction = isinstance(node.op, ast.And)

        def rest() -> object:
            return self._bool_op(node, values[1:], frame, truth_only)

        if not isinstance(truth, Tensor):
            return rest() if bool(truth) is conjunction else first
        sides = [rest, lambda: first]
        if truth_only:
            sides = [lambda: as_tensor(rest()), lambda: as_tensor(not conjunction)]
        then, orelse = sides if conjunction else sides[::-1]
        return self.choose(truth, then, orelse, node, frame)

    def condition(self: Interpreter, node: ast.expr, frame: Frame) -> Any:
        """Evaluates a test, of which only the truth counts: a Python bool or a ``bool[]``.

        Args:
            node: The expression.
            frame: The frame in which that code runs.
        """
        if isinstance(node, ast.BoolOp):
            return self._bool_op(node, node.values, frame, truth_only=True)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            truth = self.condition(node.operand, frame)
            return F.logical_not(truth) if isinstance(truth, Tensor) else not truth
        return self.truth(self.evaluate(node, frame))

    def _Compare(self: Interpreter, node: ast.Compare, frame: Frame) -> object:
        left = self.evaluate(node.left, frame)
        return self._compare(node, left, list(zip(node.ops, node.comparators)), frame)

    def _compare(
        self: Interpreter, node: ast.Compare, left: object, rest: Any, frame: Frame
    ) -> object:
        (op, comparator), *more = rest
        right = self.evaluate(comparator, frame)
        frame.node = node
        if is_environment(right):
            self.call(right.__contains__, (left,), {})
        if not isinstance(op, (ast.Is, ast.IsNot)):
            self.impure.look_into(left, right)
        result = self._compared(op, left, right)
        if not more:
            return result
        truth = self.truth(result)

        def following() -> Any:
            return self._compare(node, right, more, frame)

        if isinstance(truth, Tensor):
            return self.choose(truth, following, lambda: result, node, frame)
        return following() if truth else result

    def _compared(self: Interpreter, op: ast.cmpop, *pair: object) -> object:
        """Compares; what a size that only values decide is compared with, the graph decides."""
        if isinstance(op, (ast.Is, ast.IsNot)):
            self._refuse_copies(*pair)
            pair = tuple([self._argument(v) for v in pair])
            check_compared(self.recorder, *pair)
            same = identical(*pair)
            if same is not True and all(isinstance(v, Tensor) for v in pair):
                self.recorder.aliasing_matters = True
                for v in pair:  # an argument of a later call may be the one from outside
                    if isinstance(v, Tensor) and not isinstance(v, TracedTensor):
                        self.recorder.value_of(v)
            if isinstance(op, ast.Is):
                return self.number_of(same)
            return self.number_of(F.logical_not(same)) if isinstance(same, Tensor) else not same
        if isinstance(op, (ast.In, ast.NotIn)) and not self.settings.lax:
            value, items = pair
            if is_sequence(items) and any(map(self.is_symbolic, (value, *items))):
                return builtin.contains(self, items, value, isinstance(op, ast.NotIn))
        numbers = all(isinstance(v, Symbol) or type(v) in (int, float) for v in pair)
        bound = any(map(self.recorder.is_bound, pair))
        if not (numbers and bound):
            return _COMPARE[type(op)](*pair)
        return self.number_of(_COMPARE[type(op)](*map(self.recorder.size_as_tensor, pair)))

    def _argument(self: Interpreter, value: object) -> object:
        """Returns the argument that a tensor from outside is, if it is one."""
        return self.recorder.same_as(value, value) if isinstance(value, Tensor) else value

    def _refuse_copies(self: Interpreter, a: object, b: object) -> None:
        """Leaves it to Python to compare an argument, which is a copy here, with a container."""
        kinds = list, dict, set
        if not (self.settings.lax and isinstance(a, kinds) and isinstance(b, kinds)) or a is b:
            return
        frame = self.current
        if frame is not None and (self.effects.is_argument(a) or self.effects.is_argument(b)):
            self.refuse(
                frame.node or frame.source.node, frame, "`is` of a container that is passed"
            )

    def _IfExp(self: Interpreter, node: ast.IfExp, frame: Frame) -> object:
        return self.either(node, frame)

    def either(self: Interpreter, node: ast.IfExp, frame: Frame, named: bool = False) -> object:
        """Returns the value of a conditional expression.

        Args:
            node: The expression.
            frame: The frame in which that code runs.
            named: Whether a variable gets the value, which may then be a function or Cell that a
                tensor chose.
        """
        truth = self.condition(node.test, frame)
        sides = node.body, node.orelse
        if isinstance(truth, Tensor):
            if named and all(_names_function(side, frame) for side in sides):
                then, orelse = (self._side(side, frame) for side in sides)
                why = f"it is one of two functions, as a tensor decides at line {node.lineno}"
                return then if then is orelse else Chosen(why, node, truth, then, orelse)
            return self.choose(
                truth, lambda: self.evaluate(node.body, frame),
                lambda: self.evaluate(node.orelse, frame), node, frame,
            )  # fmt: skip
        return self.evaluate(node.body if truth else node.orelse, frame)

    def _side(self: Interpreter, node: ast.expr, frame: Frame) -> object:
        """Evaluates a function that is named, or chosen again."""
        if isinstance(node, ast.IfExp):
            return self.either(node, frame, named=True)
        return self.evaluate(node, frame)

    # ---- subscripts -------------------------------------------------------------------------

    def _Subscript(self: Interpreter, node: ast.Subscript, frame: Frame) -> object:
        owner, index = self.evaluate(node.value, frame), self.evaluate(node.slice, frame)
        return self.taken_out(owner, index, node, frame)

    def taken_out(
        self: Interpreter, owner: Any, index: object, node: ast.AST, frame: Frame
    ) -> object:
        """Returns what a subscript means.

        Args:
            owner: What is indexed.
            index: Index or key.
            node: The subscript.
            frame: The frame in which that code runs.
        """
        frame.node = node
        if is_environment(owner):
            return self.call(owner.__getitem__, (index,), {})
        return self.item(owner, index, node, frame)

    def place_in(self: Interpreter, owner: object, index: object) -> Tensor | None:
        """Returns which item of a sequence a tensor chooses in strict code, from 0 on.

        Args:
            owner: What is indexed.
            index: The index; None is returned for one that is no such tensor.
        """
        if self.settings.lax or not isinstance(index, (TracedNumber, TracedTensor)):
            return None
        cells = is_cell(owner) and hasattr(owner, "__getitem__")
        count = len(owner) if isinstance(owner, Sized) and (cells or is_sequence(owner)) else 0
        number = index.tensor if isinstance(index, TracedNumber) else index
        if not count or number.ndim or not number.dtype.is_integer:
            return None
        return F.minimum(F.where(number < 0, number + count, number), count - 1)

    def item(
        self: Interpreter, owner: object, index: object, node: ast.AST, frame: Frame
    ) -> object:
        """Returns an item, in strict code also one that a tensor chooses.

        Args:
            owner: What it belongs to.
            index: Index or key; a number that is too large is that of the last item.
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
        """
        number = self.place_in(owner, index)
        if number is None or not isinstance(owner, Sized):
            return self.subscript(owner, positions(owner, index))
        items = [self.subscript(owner, i) for i in range(len(owner))]
        called = all(is_function(v) or is_cell_class(v) for v in items)
        found = items.pop()
        for i, item in reversed([*enumerate(items)]):
            at = number <= i
            if called:
                found = Chosen("a tensor chooses a function", node, at, item, found)
            else:
                found = self.choose(at, lambda v=item: v, lambda v=found: v, node, frame)
        return found

    def subscript(self: Interpreter, owner: Any, key: object) -> object:
        """Returns an item.

        Args:
            owner: What it belongs to.
            key: Index or key.
        """
        self.impure.look_into(owner)
        made = isinstance(owner, defaultdict) and not dict.__contains__(owner, key)
        if made and self.effects.is_outside(owner):
            self.refuse_here(
                f"making the missing item {key!r} of a {type(owner).__name__} from outside"
            )
        return self.effects.item(owner, owner[key])

    def _Slice(self: Interpreter, node: ast.Slice, frame: Frame) -> object:
        parts = (node.lower, node.upper, node.step)
        return slice(*[None if p is None else self.evaluate(p, frame) for p in parts])

    # ---- containers -------------------------------------------------------------------------

    def elements(self: Interpreter, nodes: list[ast.expr], frame: Frame) -> list[Any]:
        """Evaluates a list of expressions in which ``*x`` is unpacked.

        Args:
            nodes: The expressions.
            frame: The frame in which that code runs.
        """
        result: list[object] = []
        for n in nodes:
            if isinstance(n, ast.Starred):
                result.extend(self.iterate(self.evaluate(n.value, frame), n, frame))
            else:
                result.append(self.evaluate(n, frame))
        return result

    def _Tuple(self: Interpreter, node: ast.Tuple, frame: Frame) -> object:
        return tuple(self.elements(node.elts, frame))

    def _List(self: Interpreter, node: ast.List, frame: Frame) -> object:
        return self.elements(node.elts, frame)

    def _Set(self: Interpreter, node: ast.Set, frame: Frame) -> object:
        return set(self.elements(node.elts, frame))

    def _Dict(self: Interpreter, node: ast.Dict, frame: Frame) -> object:
        result: dict[object, object] = {}
        for key, value in zip(node.keys, node.values):
            if key is None:
                items = self.evaluate(value, frame)
                self.impure.hand_out(items)
                result.update(items)
            else:
                name = self.evaluate(key, frame)
                result[name] = self.evaluate(value, frame)
        return result

    def _JoinedStr(self: Interpreter, node: ast.JoinedStr, frame: Frame) -> str:
        return "".join(
            [
                self._formatted(v, node, frame)
                if isinstance(v, ast.FormattedValue)
                else self.evaluate(v, frame)
                for v in node.values
            ]
        )

    def _formatted(
        self: Interpreter, node: ast.FormattedValue, whole: ast.JoinedStr, frame: Frame
    ) -> Any:
        value = self.evaluate(node.value, frame)
        if node.conversion != -1:
            value = {"s": str, "r": repr, "a": ascii}[chr(node.conversion)](value)
        spec = self.evaluate(node.format_spec, frame) if node.format_spec is not None else ""
        frame.node = node
        self.impure.look_into(value)
        self.impure.show(value)
        if self.is_symbolic(value):
            self.refuse(  # Python 3.11 knows no place within the string
                whole, frame, "the text of a tensor's elements",
                "pass the tensor itself to print(), or format it outside",
            )  # fmt: skip
        return format(value, spec)

    def _Lambda(self: Interpreter, node: ast.Lambda, frame: Frame) -> NestedFunction:
        return self.nested(node, "<lambda>", frame)

    def nested(
        self: Interpreter, node: ast.Lambda | ast.FunctionDef, name: str, frame: Frame
    ) -> NestedFunction:
        """Makes a function that is defined inside interpreted code.

        Args:
            node: The definition.
            name: Name of a variable.
            frame: The frame in which that code runs.
        """
        outer = frame.source
        source = describe(node, outer.file, name, outer.class_name)
        a = node.args
        defaults = [self.evaluate(d, frame) for d in a.defaults]
        keyword = [None if d is None else (self.evaluate(d, frame),) for d in a.kw_defaults]
        return NestedFunction(self, source, frame, defaults, keyword)

    # ---- comprehensions ---------------------------------------------------------------------

    def _scopes(self: Interpreter, node: Comprehension, frame: Frame) -> Iterator[Frame]:
        """Yields the scope of a comprehension once for every item, when that is asked for.

        Only what the outermost ``for`` iterates over is evaluated at once.
        """
        targets = [n for g in node.generators for n in ast.walk(g.target)]
        own = frozenset(bound_names(targets))
        scope = type(frame.source)(
            frame.source.node, frame.source.file, frame.source.name, frame.source.class_name, own
        )
        inner = Frame(scope, frame.globals, parent=frame)
        first = self.evaluate(node.generators[0].iter, frame)

        def run(i: int) -> Iterator[Frame]:
            if i == len(node.generators):
                yield inner
                return
            g = node.generators[i]
            if g.is_async:
                self.refuse(node, frame, "an asynchronous comprehension")
            source = self.evaluate(g.iter, inner) if i else first
            for item in self.iterate(source, g.iter, frame):
                self.assign(g.target, item, inner)
                if all(self._passes(test, inner, frame) for test in g.ifs):
                    yield from run(i + 1)

        return run(0)

    def _passes(self: Interpreter, test: ast.expr, inner: Frame, frame: Frame) -> bool:
        truth = self.condition(test, inner)
        if isinstance(truth, Tensor):
            self.refuse(
                test, frame, "a comprehension that keeps items by a tensor's value",
                "use ops.where or ops.masked_fill; the number of items must be known",
            )  # fmt: skip
        return bool(truth)

    def _ListComp(self: Interpreter, node: ast.ListComp, frame: Frame) -> object:
        return [self.evaluate(node.elt, f) for f in self._scopes(node, frame)]

    def _GeneratorExp(self: Interpreter, node: ast.GeneratorExp, frame: Frame) -> object:
        scopes = self._scopes(node, frame)
        return (self.evaluate(node.elt, f) for f in scopes)

    def _SetComp(self: Interpreter, node: ast.SetComp, frame: Frame) -> object:
        return {self.evaluate(node.elt, f) for f in self._scopes(node, frame)}

    def _DictComp(self: Interpreter, node: ast.DictComp, frame: Frame) -> object:
        scopes = self._scopes(node, frame)
        return {self.evaluate(node.key, f): self.evaluate(node.value, f) for f in scopes}

    # ---- calls ------------------------------------------------------------------------------

    def _Call(self: Interpreter, node: ast.Call, frame: Frame) -> object:
        function = self._callee(node, frame)
        args = self.elements(node.args, frame)
        kwargs: dict[str, object] = {}
        for k in node.keywords:
            value = self.evaluate(k.value, frame)
            if k.arg is None:
                self.impure.hand_out(value)
            kwargs.update(value if k.arg is None else {k.arg: value})
        frame.node = node
        name = getattr(function, "__name__", "")
        if name in _SUBSTITUTES and getattr(function, "__module__", "") == "builtins":
            self.refuse(node, frame, f"{name}()", _SUBSTITUTES[name])
        return self._invoke_chosen(function, tuple(args), kwargs, node, frame)

    def _invoke_chosen(
        self: Interpreter, function: object, args: tuple[object, ...], kwargs: dict[str, object],
        node: ast.Call, frame: Frame,
    ) -> object:  # fmt: skip
        """Calls a function, or in a branch each of those that tensors choose between."""
        if isinstance(function, _Sides):
            then, orelse = (
                lambda side=side: self._invoke_chosen(
                    self._called(side, frame), args, kwargs, node, frame
                )
                for side in (function.node.body, function.node.orelse)
            )
            return self.choose(function.condition, then, orelse, node, frame)
        if not isinstance(function, Chosen):
            return self.invoke(function, args, kwargs, node, frame)
        return self.choose(
            function.condition,
            lambda: self._invoke_chosen(function.then, args, kwargs, node, frame),
            lambda: self._invoke_chosen(function.orelse, args, kwargs, node, frame), node, frame,
        )  # fmt: skip

    def _callee(self: Interpreter, node: ast.Call, frame: Frame) -> object:
        f = node.func
        if (
            isinstance(f, ast.Name)
            and f.id == "super"
            and not node.args
            and frame.owner("super") is None
        ):
            return lambda: self.parent_class(frame)
        if isinstance(f, ast.Attribute) and f.attr in _BLIND:
            owner = self._container(f.value, frame)
            frame.node = f
            return self.attribute(owner, frame.source.mangle(f.attr))
        if isinstance(f, ast.Name):
            found = frame.names.get(frame.source.mangle(f.id))
            if isinstance(found, Chosen):
                return found
        return self._called(f, frame)

    def _called(self: Interpreter, node: ast.expr, frame: Frame) -> object:
        """Evaluates a function; of a conditional one that a tensor decides, the test alone."""
        if not isinstance(node, ast.IfExp):
            return self.evaluate(node, frame)
        truth = self.condition(node.test, frame)
        if isinstance(truth, Tensor):
            return _Sides(truth, node)
        return self._called(node.body if truth else node.orelse, frame)

    def _container(self: Interpreter, node: ast.expr, frame: Frame) -> object:
        """Evaluates what is likely to be a container that is changed whatever it holds."""
        read: Callable[[], Any] = lambda: self.evaluate(node, frame)  # noqa: E731
        if isinstance(node, ast.Subscript) and _is_path(node):
            owner, index = self._container(node.value, frame), self.evaluate(node.slice, frame)
            found = self.effects.container_in(owner, index)
            return read() if found is None else found
        if isinstance(node, ast.Attribute):
            owner, name = self.evaluate(node.value, frame), frame.source.mangle(node.attr)
            read = lambda: self.attribute(owner, name)  # noqa: E731
            if name not in getattr(owner, "__dict__", ()):
                return read()
        elif not isinstance(node, ast.Name):
            return read()
        with self.recorder.guards.looking_away():
            value = read()
        return value if type(value) in (list, dict, set) else read()  # a user's class may look


class _Sides(NamedTuple):
    """A conditional expression that is called: the function of each side is looked up there."""

    condition: Tensor
    node: ast.IfExp


def _names_function(node: ast.expr, frame: Frame) -> bool:
    """Whether an expression names a function, or a Cell inside of a Cell, or chooses between such.

    A choice may be made although another one decides against it: its test does nothing else.
    """
    if isinstance(node, ast.IfExp):
        sides = all(_names_function(side, frame) for side in (node.body, node.orelse))
        return sides and _only_computes(node.test, frame)
    if isinstance(node, ast.Name):
        name = frame.source.mangle(node.id)
        return is_function(frame.names.get(name, frame.globals.get(name)))
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return False
    owner = frame.names.get(node.value.id, frame.globals.get(node.value.id))
    if isinstance(owner, ModuleType):
        return is_function(getattr(owner, node.attr, None))
    return is_function(owner) and node.attr in getattr(owner, "_cells", ())


def _only_computes(test: ast.expr, frame: Frame) -> bool:
    """Whether evaluating a test for nothing does no harm: it asks numbers and variables."""
    for node in ast.walk(test):
        if isinstance(node, (ast.Subscript, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
            return False
        if isinstance(node, ast.Call):
            f = node.func
            if not isinstance(f, ast.Attribute) or f.attr.endswith("_"):
                return False
            owner = f.value
            if not isinstance(owner, ast.Name) or not isinstance(frame.names.get(owner.id), Tensor):
                return False
    return True


def _is_path(node: ast.expr) -> bool:
    """Whether evaluating something twice does no harm."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Constant, ast.Name)):
            return False
        node = node.value
    return isinstance(node, ast.Name)
