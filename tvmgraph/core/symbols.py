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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tvmgraph.core.state import state
from tvmgraph.errors import GraphError

#: The least size that an axis of the arguments has where it is symbolic (``s0``, ``s1``, ...).
LEAST = 2

Terms = dict[tuple[str, ...], int]  # coefficient by product of roots; () is the constant


class Specialise(BaseException):
    """The number of a symbol is needed while a function is captured.

    It is no error, and no ``except Exception`` of captured code may stop it.

    Attributes:
        roots: The roots that must be constants.
    """

    def __init__(self, roots: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(roots)))
        self.roots = roots


@dataclass
class SymbolScope:
    """The symbols of one capture.

    Attributes:
        values: Value of every root in the call at hand.
        conditions: Comparisons that were decided, with their outcomes.
        decided: Roots of those.
    """

    values: Mapping[str, Any]
    conditions: dict[str, bool] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)


def scope() -> SymbolScope | None:
    """Returns the symbols of the capture that is going on in this thread."""
    return getattr(state.interpreter, "symbols", None)


class Symbol:
    """What :class:`Dim` and :class:`Scalar` have in common.

    Attributes:
        text: A Python expression of the roots.
        roots: Names of the roots it depends on.
        kind: ``int`` or ``float``.
    """

    __slots__ = ("_code", "kind", "roots", "text")

    text: str
    roots: frozenset[str]
    kind: type

    __array_ufunc__ = None  # NumPy scalars leave arithmetic to the symbol

    def _set(self, text: str, roots: frozenset[str], kind: type) -> None:
        self.text, self.roots, self.kind = text, roots, kind
        self._code: Any = None

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Returns the number for these values of the roots."""
        if self._code is None:
            self._code = compile(self.text, "<symbol>", "eval")
        return eval(self._code, NAMESPACE, dict(values))

    def current(self) -> Any:
        """Returns the value in the call at hand; only to decide something that is noted."""
        raise NotImplementedError

    def specialise(self) -> Any:
        """Returns the number, or asks for a capture in which it is a constant."""
        if scope() is not None:
            raise Specialise(self.roots)
        return self.current()

    # ---- what needs the number --------------------------------------------------------------

    def __index__(self) -> int:
        return operator.index(self.specialise())

    def __int__(self) -> int:
        return int(self.specialise())

    def __float__(self) -> float:
        return float(self.specialise())

    def __round__(self, ndigits: int | None = None) -> Any:
        return self._call("round", self, *(() if ndigits is None else (ndigits,)))

    def __trunc__(self) -> Any:
        return math.trunc(self.specialise())

    def __floor__(self) -> Any:
        return math.floor(self.specialise())

    def __ceil__(self) -> Any:
        return math.ceil(self.specialise())

    def __str__(self) -> str:
        return self.text if scope() is None else str(self.specialise())

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(self.text if scope() is None else self.specialise(), spec)

    def __hash__(self) -> int:
        if scope() is not None:  # a look-up in user code: the key is the number
            raise Specialise(self.roots)
        return hash(self.text)

    # ---- decisions --------------------------------------------------------------------------

    def __bool__(self) -> bool:
        return decide("!=", self, 0)

    def __eq__(self, other: object) -> Any:
        return decide("==", self, other) if is_number(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return decide("!=", self, other) if is_number(other) else NotImplemented

    def __lt__(self, other: Any) -> Any:
        return decide("<", self, other) if is_number(other) else NotImplemented

    def __le__(self, other: Any) -> Any:
        return decide("<=", self, other) if is_number(other) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return decide(">", self, other) if is_number(other) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return decide(">=", self, other) if is_number(other) else NotImplemented

    # ---- arithmetic -------------------------------------------------------------------------

    @staticmethod
    def _call(function: str, *args: Any) -> Any:
        return apply_function(function, *args)

    def __add__(self, other: Any) -> Any:
        return _combine("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return _combine("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return _combine("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _combine("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return _combine("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _combine("*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _combine("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _combine("/", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _combine("//", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _combine("//", other, self)

    def __mod__(self, other: Any) -> Any:
        return _combine("%", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _combine("%", other, self)

    def __pow__(self, other: Any) -> Any:
        return _combine("**", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _combine("**", other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __neg__(self) -> Any:
        return _combine("-", 0, self) if self.kind is int else apply_function("neg", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self


class Dim(Symbol):
    """The size of an axis that differs from call to call; equal expressions are one object.

    Args:
        name: Name of a root. ``s0``, ``s1``, ... are sizes of arguments, at least :data:`LEAST`;
            any other name is a size that only the data decide.
    """

    __slots__ = ("terms",)
    _interned: ClassVar[dict[str, Dim]] = {}

    terms: Terms

    def __new__(cls, name: str) -> Dim:
        return cls._of({(name,): 1})

    @classmethod
    def _of(cls, terms: Terms) -> Any:
        """Returns the dim with these terms, or an ``int``."""
        terms = {k: c for k, c in sorted(terms.items(), key=lambda i: (not i[0], i[0])) if c}
        if not any(terms):  # nothing but a constant
            return terms.get((), 0)
        text = _text_of(terms)
        found = cls._interned.get(text)
        if found is None:
            found = super().__new__(cls)
            roots = frozenset(r for k in terms for a in k for r in _roots_of(a))
            found._set(text, roots, int)
            found.terms = terms
            found = cls._interned.setdefault(text, found)
        return found

    @staticmethod
    def parse(text: str) -> Any:
        """Returns the dim or ``int`` of a text such as ``2*s0 + 1``.

        Raises:
            GraphError: if the text is no expression of sizes.
        """
        return _parse(text)

    @property
    def name(self) -> str:
        """The expression, a single name for a root."""
        return self.text

    @property
    def is_root(self) -> bool:
        """Whether it is a name and no expression."""
        return self.text.isidentifier()

    def current(self) -> int:
        found = scope()
        if found is None:
            raise GraphError(f"the size {self.text} is only known when the graph runs")
        try:
            return self.evaluate(found.values)
        except NameError:
            raise GraphError(f"the size {self.text} is only known when the graph runs") from None

    def substitute(self, sizes: Mapping[str, int]) -> Any:
        """Returns the size with roots replaced by numbers."""
        return _parse(self.text, sizes) if self.roots & sizes.keys() else self

    def __reduce__(self) -> tuple[object, ...]:
        return (_parse, (self.text,))


class Scalar(Symbol):
    """A Python number that differs from call to call.

    Args:
        text: A Python expression of the roots.
        roots: The roots.
        value: The value in the call at hand. Code that meets the symbol outside of its capture,
            in another thread, works with that.
    """

    __slots__ = ("value",)

    def __init__(self, text: str, roots: frozenset[str], value: Any) -> None:
        if type(value) not in (int, float):
            raise Specialise(roots)
        self._set(text, roots, type(value))
        self.value = value

    def current(self) -> Any:
        return self.value

    def __deepcopy__(self, memo: dict[int, Any]) -> Scalar:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return (_same, (self.specialise(),))


def _same(value: Any) -> Any:
    return value


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip

#: Functions of Python numbers that a scalar passes through.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "float": float, "int": int, "round": round, "neg": operator.neg,
    **{f"math.{n}": f for n, f in vars(math).items() if callable(f) and not n.startswith("_")},
}  # fmt: skip
NAMESPACE: dict[str, Any] = {
    "__builtins__": {}, "inf": math.inf, "nan": math.nan,
    **{n.replace("math.", "math_"): f for n, f in FUNCTIONS.items()},
}  # fmt: skip


def is_number(value: Any) -> bool:
    """Whether a value is a symbol, or a Python number that symbols can be compared with."""
    return isinstance(value, Symbol) or value.__class__ in (int, float, bool)


def current(value: Any) -> Any:
    """Returns the value of a number or symbol in the call at hand."""
    return value.current() if isinstance(value, Symbol) else value


def _text(value: Any) -> str:
    return value.text if isinstance(value, Symbol) else repr(value)


def _roots(*values: Any) -> frozenset[str]:
    return frozenset().union(*[v.roots for v in values if isinstance(v, Symbol)])


def _combine(symbol: str, a: Any, b: Any) -> Any:
    """Applies a binary operator to numbers of which one is a symbol."""
    if not (is_number(a) and is_number(b)):
        return NotImplemented
    if all(isinstance(x, Dim) or x.__class__ is int for x in (a, b)):
        found = _combine_sizes(symbol, a, b)
        if found is not None:
            return found
    value = _OPERATORS[symbol](current(a), current(b))
    return Scalar(f"({_text(a)} {symbol} {_text(b)})", _roots(a, b), value)


def apply_function(name: str, *args: Any) -> Any:
    """Applies one of :data:`FUNCTIONS` to numbers of which one is a symbol."""
    value = FUNCTIONS[name](*map(current, args))
    text = f"{name.replace('math.', 'math_')}({', '.join(map(_text, args))})"
    return Scalar(text, _roots(*args), value)


# ---- sizes --------------------------------------------------------------------------------------


def _terms(value: int | Dim) -> Terms:
    return value.terms if isinstance(value, Dim) else {(): value}


def _combine_sizes(symbol: str, a: Any, b: Any) -> Any:
    """Returns the size, or None where the result is no size."""
    if symbol in "+-":
        sign = 1 if symbol == "+" else -1
        terms = dict(_terms(a))
        for k, c in _terms(b).items():
            terms[k] = terms.get(k, 0) + sign * c
        return Dim._of(terms)
    if symbol == "*":
        terms = {}
        for (k, c), (m, d) in ((x, y) for x in _terms(a).items() for y in _terms(b).items()):
            key = tuple(sorted(k + m))
            terms[key] = terms.get(key, 0) + c * d
        return Dim._of(terms)
    if symbol == "**" and b.__class__ is int and 0 <= b <= 4:
        return math.prod([a] * b)
    if symbol in ("//", "%") and not (b.__class__ is int and b == 0):
        exact = _quotient(a, b)
        if exact is not None:
            return exact if symbol == "//" else 0
        positive = b > 0 if isinstance(b, int) else proven(">", b, 0)
        if positive and proven(">=", a, 0):
            return Dim._of({(f"({_wrapped(a)}{symbol}{_wrapped(b)})",): 1})
        if positive and symbol == "//" and proven("<=", a, 0):  # -(-n // k): rounded up
            return -((b - 1 - a) // b)
    return None


def _quotient(a: Any, b: Any) -> Any:
    """Returns ``a / b`` where it is a polynomial, else None."""
    if a is b:
        return 1
    divisor = _terms(b)
    if len(divisor) != 1:
        return None
    ((product, factor),) = divisor.items()
    terms: Terms = {}
    for k, c in _terms(a).items():
        rest = list(k)
        for r in product:
            if r not in rest:
                return None
            rest.remove(r)
        if c % factor:
            return None
        terms[tuple(rest)] = c // factor
    return Dim._of(terms)


def _wrapped(value: int | Dim) -> str:
    text = _text(value)
    return text if text.isalnum() else f"({text})"


def _text_of(terms: Terms) -> str:
    parts = []
    for product, c in terms.items():
        factors = [*product] if c == 1 and product else [str(c), *product]
        parts.append("*".join(factors))
    return "+".join(parts).replace("+-", "-")


def _roots_of(atom: str) -> set[str]:
    return {atom} if atom.isidentifier() else set(compile(atom, "<size>", "eval").co_names)


def _parse(text: str, values: Mapping[str, int] | None = None) -> Any:
    try:
        code = compile(text, "<size>", "eval")
        names = {n: Dim(n) for n in code.co_names}
        harmless = all(c.isalnum() or c in "_ +-*/%()" for c in text)
        found = eval(code, {"__builtins__": {}}, {**names, **(values or {})}) if harmless else None
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError):
        found = None
    if not isinstance(found, (int, Dim)) or isinstance(found, bool):
        raise GraphError(f"{text!r:.60} is no size of an axis")
    return found


# ---- decisions ----------------------------------------------------------------------------------


def decide(symbol: str, a: Any, b: Any) -> bool:
    """Decides a comparison, noting it as a condition unless it always comes out like that."""
    known = proven(symbol, a, b)
    if known is not None:
        return known
    here = scope()
    if here is None and (isinstance(a, Dim) or isinstance(b, Dim)):
        if symbol in ("==", "!="):  # no two expressions are known to be equal
            return symbol == "!="
        raise GraphError(f"whether {_text(a)} {symbol} {_text(b)} is only known at run time")
    outcome = bool(_OPERATORS[symbol](current(a), current(b)))
    if here is not None:
        here.conditions[f"({_text(a)} {symbol} {_text(b)})"] = outcome
        here.decided |= _roots(a, b)
    return outcome


def proven(symbol: str, a: Any, b: Any) -> bool | None:
    """Returns the outcome of a comparison of sizes that is the same for all sizes, else None."""
    if not all(isinstance(x, Dim) or x.__class__ in (int, bool) for x in (a, b)):
        return None
    difference = _combine_sizes("-", a, b)
    if isinstance(difference, int):
        return bool(_OPERATORS[symbol](difference, 0))
    low, high = bounds(difference)
    if low is not None and low > 0:
        return symbol in (">", ">=", "!=")
    if high is not None and high < 0:
        return symbol in ("<", "<=", "!=")
    if low == 0 and symbol in (">=", "<"):
        return symbol == ">="
    if high == 0 and symbol in ("<=", ">"):
        return symbol == "<="
    return None


def bounds(size: Dim) -> tuple[int | None, int | None]:
    """Returns the least and the greatest value an expression can have, ``None`` if unbounded."""
    low: int | None = 0
    high: int | None = 0
    for product, c in size.terms.items():
        least = math.prod(_least(a) for a in product) * c
        low = None if low is None or (c < 0 and product) else low + least
        high = None if high is None or (c > 0 and product) else high + least
    return low, high


def _least(atom: str) -> int:
    return LEAST if atom[:1] == "s" and atom[1:].isdigit() else 0


def contains_symbol(value: Any) -> bool:
    """Whether a value or nested tuple or list holds a symbol."""
    if isinstance(value, (tuple, list)):
        return any(map(contains_symbol, value))
    return isinstance(value, (Symbol, slice)) and (
        isinstance(value, Symbol)
        or any(map(contains_symbol, (value.start, value.stop, value.step)))
    )


def specialise_inside(value: Any) -> None:
    """Makes sure that no symbol hides in an object that is stored or returned."""
    if isinstance(value, slice):
        parts: Any = (value.start, value.stop, value.step)
    else:
        parts = getattr(value, "__dict__", {}).values() if not callable(value) else ()
    for part in parts:
        if isinstance(part, Symbol):
            part.specialise()
