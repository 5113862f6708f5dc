"""Numbers that are only known when compiled code is called: sizes of axes and Python scalars.

While a function is captured, a :class:`Dim` stands for the size of an axis and a :class:`Scalar`
for a Python number, where those differ from call to call. Neither is an ``int`` or a ``float``:
arithmetic gives another symbol, a comparison is decided by the values of the call at hand and
noted as a condition for using the graph again, and whatever needs the number itself raises
:class:`Specialise`, upon which the function is captured with that number as a constant. So a value
seen while capturing can never get into a graph by accident.

The text of a symbol is a Python expression of its roots (``s0 * 4 + 1``); that is how its value is
computed at a call.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Container, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Self, TypeAlias, TypeVar

from tvmgraph.core.arguments import is_sequence, literal
from tvmgraph.core.state import meanwhile, state
from tvmgraph.errors import CaptureError, user_source


class Specialise(BaseException):
    """The number of a symbol is needed while a function is captured.

    It is no error, and no ``except Exception`` of captured code may stop it.

    Attributes:
        roots: The roots that must be constants.
        at: The user's ``file.py:line`` that needs it.
    """

    def __init__(self, roots: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(roots)))
        self.roots = roots
        self.at = user_source()


class TooSmall(BaseException):
    """Something is possible if a size that only the values decide is large enough.

    Attributes:
        root: The size.
        least: What it must be at least.
    """

    def __init__(self, root: str, least: int) -> None:
        super().__init__(root, least)
        self.root, self.least = root, least


@dataclass
class SymbolScope:
    """The symbols of one capture.

    Attributes:
        values: Value of every root in the call at hand.
        conditions: Comparisons that were decided, with their outcomes.
        decided: Roots of those.
        possible: Numbers that were computed in a way that raises for some values.
        bound: Roots that an operator binds when it has run: no call decides anything by them.
        inferring: Whether the rule of an operator compares, and not the user's code: a size that
            must be a certain number for the operator to be possible is that number.
        hoping: Whether a comparison that holds once a size of values is large enough raises
            :class:`TooSmall`: whoever asked has that checked when the graph runs.
        assumed: Sizes that are checked when the graph runs, with the least number they are.
        sizes: Expressions that are sizes of tensors, so that they are not negative.
        ships: Whether the graph is for a file, which refuses sizes that it does not fit.
        narrows: Whether what is decided there may hold from a size on, in a file.
        ends: Whether it may hold up to a size only, where a table of so many elements ends.
        describes: Whether the graph is only written down and not compiled here; it narrows, too.
        least: From which size on a file takes an axis, by root, if not from 1 on.
        most: Up to which size it takes it, by root, if there is an end.
    """

    values: Mapping[str, object]
    conditions: dict[str, bool] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    possible: dict[str, None] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    inferring: bool = False
    hoping: bool = False
    assumed: dict[str, int] = field(default_factory=dict)
    sizes: tuple[object, ...] = ()
    ships: bool = False
    narrows: bool = False
    ends: bool = False
    describes: bool = False
    least: dict[str, int] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)

    def narrow(self, root: str, least: int, equal: bool) -> bool:
        """Notes for which sizes a comparison comes out as it did, and returns whether it could.

        Args:
            root: The size.
            least: From where on the outcome is one, and up to where it is the other.
            equal: Whether it is the other one at one size only.
        """
        if self.values[root] < least:  # pyright: ignore[reportOperatorIssue] - a size
            if self.ends and not equal:
                self.most[root] = min(least - 1, self.most.get(root, least))
            return self.ends and not equal
        if self.describes and self.inferring:  # whoever runs the operator refuses smaller ones
            self.assumed[root] = max(least, self.assumed.get(root, 1))
        else:
            self.begin_at(root, least)
        return True

    def begin_at(self, root: str, least: int) -> None:
        """Notes that a file does not take smaller sizes of an axis.

        Args:
            root: The size.
            least: The smallest that it takes.
        """
        self.least[root] = max(least, self.least.get(root, 1))


def bound(roots: frozenset[str]) -> bool:
    """Whether a size depends on roots that only the values of tensors decide.

    Args:
        roots: Roots of the size.
    """
    here = scope()
    return here is not None and not here.bound.isdisjoint(roots)


def needed(roots: frozenset[str]) -> BaseException:
    """Returns what is raised where the numbers of some roots are needed during a capture.

    That is :class:`Specialise`, or an error if only the values of tensors decide one of them.

    Args:
        roots: The roots.
    """
    return _unknown(roots) if bound(roots) else Specialise(roots)


def _unknown(roots: frozenset[str]) -> CaptureError:
    return CaptureError(
        f"this needs a size that depends on values ({', '.join(sorted(roots))}), which is only "
        "known when the operator before it has run",
        op="jit",
        fix="compute with the tensor as a whole, or ask for its size outside",
    )


def scope() -> SymbolScope | None:
    """Returns the symbols of the capture that is going on in this thread."""
    return getattr(state.interpreter, "symbols", None)


@contextmanager
def inferring() -> Generator[None]:
    """While the rule of an operator compares sizes."""
    here = scope()
    if here is None:
        yield
        return
    here.inferring = here.hoping = True
    try:
        yield
    finally:
        here.inferring = here.hoping = False


def described() -> bool:
    """Whether operators take symbolic axes for which there are no kernels, see ``describes``."""
    here = scope()
    return here is not None and here.describes


def large_enough(decide: Callable[[], object]) -> dict[str, int]:
    """Returns how large sizes of values must be for something to be decided.

    Args:
        decide: Compares sizes, and raises an error where they do not fit.
    """
    here = scope()
    least: dict[str, int] = {}
    while here is not None:
        here.hoping = True
        try:
            with assuming(least):
                decide()
            break
        except TooSmall as e:
            least[e.root] = e.least
        finally:
            here.hoping = False
    return least


def assuming(least: Mapping[str, int]) -> AbstractContextManager[None]:
    """While sizes of values are known to be large enough, because that is checked.

    Args:
        least: The least number that each of them is, by root.
    """
    here = scope()
    if here is None or not least:
        return nullcontext()
    return meanwhile(here, assumed={**here.assumed, **least})


def narrowing(ends: bool = False) -> AbstractContextManager[None]:
    """While a graph for a file may be one of sizes from some size on, as a slice within an axis.

    Args:
        ends: Whether it may be one of sizes up to some size, too, as a slice of a table.
    """
    here = scope()
    if here is None or not here.ships:
        return nullcontext()
    return meanwhile(here, narrows=True, ends=ends)


def being_sizes(*sizes: object) -> AbstractContextManager[None]:
    """While expressions are known to be sizes of tensors, so that they are not negative.

    Args:
        *sizes: Sizes, symbolic or not.
    """
    here = scope()
    return nullcontext() if here is None else meanwhile(here, sizes=(*here.sizes, *sizes))


#: What arithmetic with a symbol gives: mostly another one.
Number: TypeAlias = "int | float | Symbol"
T = TypeVar("T")


def _operators(symbol: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Returns the methods of a binary operator for a symbol on its left and on its right."""

    def method(self: Symbol, other: object) -> object:
        return _combine(symbol, self, other)

    def reflected(self: Symbol, other: object) -> object:
        return _combine(symbol, other, self)

    return method, reflected


def _decision(symbol: str) -> Callable[[Symbol, object], bool]:
    """Makes the method of a comparison, whose outcome is decided."""

    def method(self: Symbol, other: object) -> bool:
        return decide(symbol, self, other) if is_number(other) else NotImplemented

    return method


class Symbol:
    """What :class:`Dim` and :class:`Scalar` have in common.

    Attributes:
        text: A Python expression of the roots.
        roots: Names of the roots it depends on.
        kind: ``int`` or ``float``.
        traced: Whether its value is one of the graph, so that no code knows it while capturing.
    """

    traced = False

    __slots__ = ("_code", "kind", "roots", "text")

    text: str
    roots: frozenset[str]
    kind: type

    __array_ufunc__ = None  # NumPy scalars leave arithmetic to the symbol

    def _set(self, text: str, roots: frozenset[str], kind: type) -> None:
        self.text, self.roots, self.kind = text, roots, kind
        self._code: CodeType | None = None

    def evaluate(self, values: Mapping[str, object]) -> Any:
        """Returns the number for these values of the roots.

        Args:
            values: A number, or anything that has arithmetic, by root.
        """
        return eval(self._compiled(), NAMESPACE, dict(values))

    def is_arithmetic(self, names: Container[str]) -> bool:
        """Whether it is made of some names by operators alone, without functions.

        Args:
            names: The names.
        """
        return all(name in names for name in self._compiled().co_names)

    def _compiled(self) -> CodeType:
        if self._code is None:
            self._code = compile(self.text, "<symbol>", "eval")
        return self._code

    def current(self) -> int | float:
        """Returns the value in the call at hand; only to decide something that is noted."""
        raise NotImplementedError

    def exactly(self, symbol: str, a: object, b: object) -> Number | None:
        """Returns the result of a binary operator where it has a form of its own, else ``None``.

        Args:
            symbol: The operator, as ``"+"``.
            a: Its left operand.
            b: Its right operand.
        """
        return None

    def always(self, symbol: str, a: object, b: object, outside: bool) -> bool | None:
        """Returns the outcome of a comparison that is the same in every call, else ``None``.

        Args:
            symbol: The operator.
            a: Its left operand.
            b: Its right operand.
            outside: Whether no capture is going on, so that nothing can be noted.
        """
        return None

    def needs(self, symbol: str, a: object, b: object) -> TooSmall | None:
        """Returns from which size of values on a comparison always comes out alike, if any.

        Args:
            symbol: The operator, as ``"<="``.
            a: Its left operand.
            b: Its right operand.
        """
        return None

    def settled(self, symbol: str, a: object, b: object) -> tuple[str, int] | None:
        """Returns a root, and from which value of it on a comparison comes out alike, if any.

        Args:
            symbol: The operator, as ``"<="``.
            a: Its left operand.
            b: Its right operand.
        """
        return None

    def specialise(self) -> int | float:
        """Returns the number, or asks for a capture in which it is a constant."""
        if scope() is not None:
            raise needed(self.roots)
        return self.current()

    # ---- what needs the number --------------------------------------------------------------

    def __index__(self) -> int:
        number = self.specialise()
        if isinstance(number, float):
            raise TypeError("'float' object cannot be interpreted as an integer")
        return number

    def __int__(self) -> int:
        return int(self.specialise())

    def __float__(self) -> float:
        return float(self.specialise())

    def __round__(self, ndigits: int | None = None) -> Scalar:
        return apply_function("round", self, *(() if ndigits is None else (ndigits,)))

    def __trunc__(self) -> int:
        return math.trunc(self.specialise())

    def __floor__(self) -> int:
        return math.floor(self.specialise())

    def __ceil__(self) -> int:
        return math.ceil(self.specialise())

    def __str__(self) -> str:
        return self.text if scope() is None else str(self.specialise())

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(self.text if scope() is None else self.specialise(), spec)

    def __hash__(self) -> int:
        if scope() is not None:  # a look-up in user code: the key is the number
            raise needed(self.roots)
        return hash(self.text)

    # ---- decisions --------------------------------------------------------------------------

    def __bool__(self) -> bool:
        return decide("!=", self, 0)

    __eq__, __ne__ = _decision("=="), _decision("!=")
    __lt__, __le__ = _decision("<"), _decision("<=")
    __gt__, __ge__ = _decision(">"), _decision(">=")

    # ---- arithmetic -------------------------------------------------------------------------

    __add__, __radd__ = _operators("+")
    __sub__, __rsub__ = _operators("-")
    __mul__, __rmul__ = _operators("*")
    __truediv__, __rtruediv__ = _operators("/")
    __floordiv__, __rfloordiv__ = _operators("//")
    __mod__, __rmod__ = _operators("%")
    __pow__, __rpow__ = _operators("**")
    __and__, __rand__ = _operators("&")
    __or__, __ror__ = _operators("|")
    __xor__, __rxor__ = _operators("^")
    __lshift__, __rlshift__ = _operators("<<")
    __rshift__, __rrshift__ = _operators(">>")

    def __divmod__(self, other: object) -> tuple[Number, Number]:
        return self // other, self % other

    def __neg__(self) -> Any:
        return _combine("-", 0, self) if self.kind is int else apply_function("neg", self)

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self


class Scalar(Symbol):
    """A Python number that differs from call to call.

    Args:
        text: A Python expression of the roots.
        roots: The roots.
        value: The value in the call at hand. Code that meets the symbol outside of its capture,
            in another thread, works with that.
    """

    __slots__ = ("value",)

    def __init__(self, text: str, roots: frozenset[str], value: object) -> None:
        if type(value) is not int and type(value) is not float:
            raise needed(roots)
        self._set(text, roots, type(value))
        self.value: int | float = value

    def current(self) -> int | float:
        """Returns the value in the call that is captured."""
        return self.value

    def __deepcopy__(self, memo: dict[int, object]) -> Scalar:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return (_same, (self.specialise(),))


def _same(value: T) -> T:
    return value


_OPERATORS: dict[str, Callable[[Any, Any], int | float]] = {
    symbol: getattr(operator, name)
    for symbol, name in {
        "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod",
        "**": "pow", "&": "and_", "|": "or_", "^": "xor", "<<": "lshift", ">>": "rshift",
        "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
    }.items()
}  # fmt: skip

_DIVISIONS = ("/", "//", "%")
_POWERS = ("**", "<<", ">>")

#: Functions of Python numbers that a scalar passes through.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "float": float, "int": int, "round": round, "neg": operator.neg,
    **{f"math.{n}": f for n, f in vars(math).items() if callable(f) and not n.startswith("_")},
}  # fmt: skip
NAMESPACE: dict[str, object] = {
    "__builtins__": {}, "inf": math.inf, "nan": math.nan,
    **{n.replace("math.", "math_"): f for n, f in FUNCTIONS.items()},
}  # fmt: skip


def is_number(value: object) -> bool:
    """Whether a value is a symbol, or a Python number that symbols can be compared with.

    Args:
        value: Any object.
    """
    return isinstance(value, Symbol) or value.__class__ in (int, float, bool)


def current(value: object) -> Any:
    """Returns the value of a number or symbol in the call at hand.

    Args:
        value: A number or symbol.
    """
    return value.current() if isinstance(value, Symbol) else value


def text_of(value: object) -> str:
    """Returns the Python expression of a number or symbol.

    Args:
        value: A number or symbol.
    """
    return value.text if isinstance(value, Symbol) else literal(value)


def roots_of(*values: object) -> frozenset[str]:
    """Returns the roots of all symbols among some values.

    Args:
        *values: Any objects.
    """
    return frozenset[str]().union(*[v.roots for v in values if isinstance(v, Symbol)])


def _combine(symbol: str, a: object, b: object) -> Number:
    """Applies a binary operator to numbers of which one is a symbol."""
    if not (is_number(a) and is_number(b)):
        return NotImplemented
    for x in (a, b):
        found = x.exactly(symbol, a, b) if isinstance(x, Symbol) else None
        if found is not None:
            return found
    value = _OPERATORS[symbol](current(a), current(b))
    made = Scalar(f"({_operand(a)} {symbol} {_operand(b)})", roots_of(a, b), value)
    if symbol in _POWERS or (symbol in _DIVISIONS and (isinstance(b, Symbol) or not b)):
        _note_possible(made)
    return made


_SINGLE = re.compile(r"[\w.]+")  # a name or a number


def _operand(value: object) -> str:
    """The text of a number within an expression: a sum, or what has a sign, is in parentheses."""
    text = text_of(value)
    return text if isinstance(value, Scalar) or _SINGLE.fullmatch(text) else f"({text})"


def apply_function(name: str, *args: object) -> Scalar:
    """Applies one of :data:`FUNCTIONS` to numbers of which one is a symbol.

    Args:
        name: Name of the function, as ``"round"`` or ``"math.sqrt"``.
        *args: Its arguments.
    """
    value = FUNCTIONS[name](*map(current, args))
    text = f"{name.replace('math.', 'math_')}({', '.join(map(text_of, args))})"
    made = Scalar(text, roots_of(*args), value)
    if name not in ("neg", "float"):
        _note_possible(made)
    return made


def _note_possible(symbol: Scalar) -> None:
    """Notes that a number was computed: where that raises, the graph does not fit, used or not."""
    here = scope()
    if here is not None and here.bound.isdisjoint(symbol.roots):
        here.possible[symbol.text] = None


# ---- decisions ----------------------------------------------------------------------------------


def decide(symbol: str, a: object, b: object) -> bool:
    """Decides a comparison, noting it as a condition unless it always comes out like that.

    Args:
        symbol: The operator, as ``"<="``.
        a: Its left operand.
        b: Its right operand.

    Raises:
        Specialise: if the outcome needs a number that this capture keeps open.
        CaptureError: if it depends on a size that only the values of tensors decide.
    """
    here = scope()
    for x in (a, b):
        known = x.always(symbol, a, b, here is None) if isinstance(x, Symbol) else None
        if known is not None:
            return known
    if bound(roots_of(a, b)):
        few = (x.needs(symbol, a, b) for x in (a, b) if isinstance(x, Symbol))
        hope = next(few) if here is not None and here.hoping else None
        raise hope or needed(roots_of(a, b))
    outcome = bool(_OPERATORS[symbol](current(a), current(b)))
    if here is not None:
        if here.inferring and outcome == (symbol == "==") and symbol in ("==", "!="):
            _require_number(a, b)
        if here.narrows or here.describes:
            found = (x.settled(symbol, a, b) for x in (a, b) if isinstance(x, Symbol))
            root, least = next(found) or ("", 0)
            if root and here.narrow(root, least, symbol in ("==", "!=")):
                return outcome
        here.conditions[f"({text_of(a)} {symbol} {text_of(b)})"] = outcome
        here.decided |= roots_of(a, b)
    return outcome


def _require_number(a: object, b: object) -> None:
    """Two sizes must be equal: if one is a number, the other is a constant."""
    if not (isinstance(a, Symbol) and isinstance(b, Symbol)):
        raise needed(roots_of(a, b))


def contains_symbol(value: object) -> bool:
    """Whether a value or nested tuple or list holds a symbol.

    Args:
        value: Any object; slices are looked into, too.
    """
    if is_sequence(value):
        return any(map(contains_symbol, value))
    if isinstance(value, slice):
        return any(map(contains_symbol, (value.start, value.stop, value.step)))
    return isinstance(value, Symbol)


def specialise_inside(value: object) -> None:
    """Makes sure that no symbol hides in an object that is stored or returned.

    Args:
        value: Any object: a slice, or one with attributes.

    Raises:
        Specialise: if one does.
    """
    if isinstance(value, slice):
        parts: Iterable[object] = (value.start, value.stop, value.step)
    else:
        parts = getattr(value, "__dict__", {}).values() if not callable(value) else ()
    for part in parts:
        if isinstance(part, Symbol):
            part.specialise()
