"""Sizes of axes that differ from call to call: polynomials of named roots, integer coefficients.

Sums, differences and products are kept in one normal form, so that equal sizes are one object;
a quotient or remainder that is no polynomial is an atom of it.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeGuard

from tvmgraph.core.symbols import (
    Symbol,
    SymbolScope,
    TooSmall,
    bound,
    current,
    needed,
    roots_of,
    scope,
    text_of,
)
from tvmgraph.errors import GraphError

#: The least size that an axis of the arguments has where it is symbolic (``s0``, ``s1``, ...).
LEAST = 2

Terms = dict[tuple[str, ...], int]  # coefficient by product of roots; () is the constant
_COMPARE = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip


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
        return cls._intern({(name,): 1})

    @classmethod
    def of(cls, terms: Terms) -> int | Dim:
        """Returns the dim with these terms, or an ``int``.

        Args:
            terms: Coefficients by product of roots; those that are 0 are left out.
        """
        terms = {k: c for k, c in sorted(terms.items(), key=lambda i: (not i[0], i[0])) if c}
        if not any(terms):  # nothing but a constant
            return terms.get((), 0)
        return cls._intern(terms)

    @classmethod
    def _intern(cls, terms: Terms) -> Dim:
        """Returns the one dim with these terms, which are in normal form."""
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
    def parse(text: str) -> int | Dim:
        """Returns the dim or ``int`` of a text such as ``2*s0 + 1``.

        Args:
            text: The text; roots are names.

        Raises:
            GraphError: if the text is no expression of sizes.
        """
        # the text may come from a file: it must not be so long that it takes forever
        return _parse(text if len(text) <= _LONGEST else "")

    def exactly(self, symbol: str, a: object, b: object) -> int | Dim | None:
        """Returns the result as a size, or ``None`` where it is none.

        Args:
            symbol: The operator, as ``"+"``.
            a: Its left operand.
            b: Its right operand.
        """
        return _combine_sizes(symbol, a, b) if _is_size(a) and _is_size(b) else None

    def always(self, symbol: str, a: object, b: object, outside: bool) -> bool | None:
        """Returns the outcome for all sizes; outside of a capture equal means written alike.

        Args:
            symbol: The operator, as ``"<="``.
            a: Its left operand.
            b: Its right operand.
            outside: Whether no capture is going on, so that nothing can be noted.

        Raises:
            GraphError: outside of a capture, if the order of two sizes is not known.
        """
        known = proven(symbol, a, b)
        here = scope()
        if known is not None and here is not None and here.ships and not here.inferring:
            _begin_where_proven(here, symbol, a, b)
        if known is None and outside:
            if symbol in ("==", "!="):  # two expressions that are not known to be equal
                return symbol == "!="
            raise GraphError(f"whether {text_of(a)} {symbol} {text_of(b)} is not known here")
        return known

    def needs(self, symbol: str, a: object, b: object) -> TooSmall | None:
        """Returns from which size on an order is certain, or that there is some element.

        Args:
            symbol: The operator, as ``"<="``.
            a: Its left operand.
            b: Its right operand.
        """
        terms = dict(_terms(_sum(a, b, -1))) if _is_size(a) and _is_size(b) else {}
        constant = terms.pop((), 0)
        if len(terms) != 1 or any(len(k) != 1 or not k[0].isidentifier() for k in terms):
            return None
        (((root,), factor),) = terms.items()
        if factor < 0:
            symbol, factor, constant = _MIRRORED.get(symbol, symbol), -factor, -constant
        open_ends = symbol not in (">=", "<")
        least = -constant // factor + 1 if open_ends else -(constant // factor)
        if symbol in ("==", "!=") and least > 1:
            return None
        return TooSmall(root, least)

    def settled(self, symbol: str, a: object, b: object) -> tuple[str, int] | None:
        """Returns a root, and from which size on a comparison comes out alike, if any.

        Args:
            symbol: The operator, as ``"<="``.
            a: Its left operand.
            b: Its right operand.
        """
        terms = dict(_terms(_sum(a, b, -1))) if _is_size(a) and _is_size(b) else {}
        constant = terms.pop((), 0)
        if len(terms) != 1 or any(len(product) != 1 for product in terms):
            return None
        (((atom,), factor),) = terms.items()
        if factor < 0:
            symbol, factor, constant = _MIRRORED.get(symbol, symbol), -factor, -constant
        closed = symbol in (">=", "<")  # else it is another one beyond the last that is equal
        least = -(constant // factor) if closed else -constant // factor + 1
        if atom.isidentifier():
            return atom, least
        divided = _divided(atom)
        return None if divided is None else self.settled(">=", divided[0], least * divided[1])

    @property
    def name(self) -> str:
        """The expression, a single name for a root."""
        return self.text

    @property
    def is_root(self) -> bool:
        """Whether it is a name and no expression."""
        return self.text.isidentifier()

    def current(self) -> int:
        """Returns the size in the call that is captured.

        Raises:
            GraphError: if none is captured, or only the data decide the size.
        """
        found = scope()
        if found is None:
            raise GraphError(f"the size {self.text} is only known when the graph runs")
        if bound(self.roots):
            raise needed(self.roots)
        try:
            return self.evaluate(found.values)
        except NameError:
            raise GraphError(f"the size {self.text} is only known when the graph runs") from None

    def substitute(self, sizes: Mapping[str, object]) -> int | Dim:
        """Returns the size with roots replaced by numbers or other sizes.

        Args:
            sizes: Numbers or sizes by name of the root; other roots stay.
        """
        return _parse(self.text, sizes) if self.roots & sizes.keys() else self

    def __reduce__(self) -> tuple[object, ...]:
        return (_parse, (self.text,))


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


# ---- arithmetic ---------------------------------------------------------------------------------


def _is_size(value: object) -> TypeGuard[int | Dim]:
    return isinstance(value, Dim) or value.__class__ is int


def _terms(value: int | Dim) -> Terms:
    return value.terms if isinstance(value, Dim) else {(): value}


def _combine_sizes(symbol: str, a: int | Dim, b: int | Dim) -> int | Dim | None:
    """Returns the size, or None where the result is no size."""
    if symbol in "+-":
        return _sum(a, b, 1 if symbol == "+" else -1)
    if symbol == "*":
        terms: Terms = {}
        for (k, c), (m, d) in ((x, y) for x in _terms(a).items() for y in _terms(b).items()):
            key = tuple(sorted(k + m))
            terms[key] = terms.get(key, 0) + c * d
        return Dim.of(terms)
    if symbol == "**" and b.__class__ is int and 0 <= b <= 4:
        return math.prod([a] * b)
    if symbol in ("//", "%") and not (b.__class__ is int and b == 0):
        exact = _quotient(a, b)
        if exact is not None:
            return exact if symbol == "//" else 0
        positive = b > 0 if isinstance(b, int) else proven(">", b, 0)
        if positive and proven(">=", a, 0):
            if symbol == "//" and isinstance(a, Dim) and isinstance(b, int):
                return _rounded_down(a, b)
            return Dim.of({(f"({_wrapped(a)}{symbol}{_wrapped(b)})",): 1})
        if positive and symbol == "//" and proven("<=", a, 0):  # -(-n // k): rounded up
            return -((b - 1 - a) // b)
    return None


def _rounded_down(a: Dim, b: int) -> int | Dim:
    """Returns ``a // b`` in one form: ``(n-1)//2 + 1`` is ``(n+1)//2``, ``n//2//2`` is ``n//4``."""
    whole = Dim.of({k: c // b for k, c in a.terms.items() if not k or c % b == 0})
    rest = _sum(a, _combine_sizes("*", whole, b) or 0, -1)
    if not proven(">=", rest, 0):
        whole, rest = 0, a
    if isinstance(rest, int):
        return _sum(whole, rest // b, 1)
    inner = dict(rest.terms)
    constant = inner.pop((), 0)
    product, factor = next(iter(inner.items()))
    divided = _divided(product[0]) if len(inner) == factor == len(product) == 1 else None
    if divided is not None:  # (x // k + c) // b is (x + c * k) // (k * b)
        x, k = divided
        rest, b = _sum(x, constant * k, 1), k * b
    return _sum(whole, Dim.of({(f"({_wrapped(rest)}//{b})",): 1}), 1)


def _sum(a: int | Dim, b: int | Dim, sign: int) -> int | Dim:
    """Returns ``a + sign * b``."""
    terms = dict(_terms(a))
    for k, c in _terms(b).items():
        terms[k] = terms.get(k, 0) + sign * c
    return Dim.of(terms)


def _quotient(a: int | Dim, b: int | Dim) -> int | Dim | None:
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
    return Dim.of(terms)


def _wrapped(value: int | Dim) -> str:
    text = text_of(value)
    return text if text.isalnum() else f"({text})"


def _text_of(terms: Terms) -> str:
    parts: list[str] = []
    for product, c in terms.items():
        factors = [*product] if c == 1 and product else [str(c), *product]
        parts.append("*".join(factors))
    return "+".join(parts).replace("+-", "-")


def _roots_of(atom: str) -> set[str]:
    return {atom} if atom.isidentifier() else set(compile(atom, "<size>", "eval").co_names)


_LONGEST = 1000  # characters of the text of a size


def _parse(text: str, values: Mapping[str, object] | None = None) -> int | Dim:
    # nor may it have calls, or powers
    harmless = all(c.isalnum() or c in "_ +-*/%()" for c in text) and "**" not in text
    found = None
    try:
        if harmless:
            code = compile(text, "<size>", "eval")
            names = {n: Dim(n) for n in code.co_names}
            found = eval(code, {"__builtins__": {}}, {**names, **(values or {})})
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError):
        pass
    if not isinstance(found, (int, Dim)) or isinstance(found, bool):
        raise GraphError(f"{text!r:.60} is no size of an axis")
    return found


# ---- comparison ---------------------------------------------------------------------------------


def proven(symbol: str, a: object, b: object) -> bool | None:
    """Returns the outcome of a comparison of sizes that is the same for all sizes, else None.

    Args:
        symbol: The operator, as ``"<="``.
        a: Its left operand.
        b: Its right operand.
    """
    if not ((_is_size(a) or isinstance(a, bool)) and (_is_size(b) or isinstance(b, bool))):
        return None
    difference = _sum(a, b, -1)
    if isinstance(difference, int):
        return bool(_COMPARE[symbol](difference, 0))
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
    """Returns the least and the greatest value an expression can have, ``None`` if unbounded.

    Args:
        size: A symbolic size; its roots are at least as large as their scope says.
    """
    low, high = _bounds_by_terms(size)
    if low is None:
        low = _least_of_divided(size)
    if high is None:
        greatest = _least_of_divided(_sum(0, size, -1))
        high = None if greatest is None else -greatest
    return low, high


def _bounds_by_terms(size: Dim) -> tuple[int | None, int | None]:
    low: int | None = 0
    high: int | None = 0
    here = scope()
    most = {} if here is None else here.most
    for product, c in size.terms.items():
        near = math.prod(_least(a) for a in product) * c
        far = math.prod(most[a] for a in product) * c if most.keys() >= set(product) else None
        least, greatest = (near, far) if c > 0 else (far, near)
        low = None if low is None or least is None else low + least
        high = None if high is None or greatest is None else high + greatest
    for s in here.sizes if here is not None else ():
        if not isinstance(s, Dim):
            continue
        above, below = _sum(size, s, -1), _sum(size, s, 1)
        low = above if low is None and isinstance(above, int) else low
        high = below if high is None and isinstance(below, int) else high
    return low, high


def _least(atom: str) -> int:
    here = scope()
    if atom[:1] == "s" and atom[1:].isdigit():
        known = () if here is None else (here.least, here.assumed)
        return max([LEAST, *(least.get(atom, LEAST) for least in known)])
    divided = _divided(atom)
    if divided is not None:
        size, divisor = divided
        low = size if isinstance(size, int) else bounds(size)[0]
        return 0 if low is None else max(low, 0) // divisor
    return 0 if here is None else here.assumed.get(atom, 0)


_QUOTIENT = re.compile(r"\((.+)//(\d+)\)")


@functools.cache
def _divided(atom: str) -> tuple[int | Dim, int] | None:
    """Returns what an atom such as ``(s0//2)`` divides, and by which number."""
    found = _QUOTIENT.fullmatch(atom)
    return None if found is None else (_parse(found[1]), int(found[2]))


def _least_of_divided(size: int | Dim) -> int | None:
    """Returns the least value by ``a - k < k * (a // k) <= a``, None if that gives none."""
    for product, c in _terms(size).items():
        divided = _divided(product[0]) if len(product) == 1 else None
        if divided is None:
            continue
        whole, k = divided
        near = whole if c < 0 else _sum(whole, k - 1, -1)
        rest = _sum(size, Dim.of({product: c}), -1)
        least = Dim.of({p: k * n for p, n in _terms(rest).items()})
        least = _sum(least, Dim.of({p: -c * n for p, n in _terms(near).items()}), -1)
        low = least if isinstance(least, int) else bounds(least)[0]
        return None if low is None else -(-low // k)
    return None


def _begin_where_proven(here: SymbolScope, symbol: str, a: object, b: object) -> None:
    """Has a file refuse axes of size 1 where a comparison is only certain without them."""
    roots = sorted(r for r in roots_of(a, b) if here.least.get(r, 1) < LEAST)
    values = {r: Dim(r) - 1 for r in roots}  # the least of these is 1
    a, b = (x.substitute(values) if isinstance(x, Dim) else x for x in (a, b))
    if roots and proven(symbol, a, b) is None:
        for r in roots:
            here.begin_at(r, LEAST)


def same_size(a: int | Dim, b: int | Dim) -> bool:
    """Whether two sizes are equal.

    Args:
        a: A size.
        b: Another one.

    Raises:
        Specialise: if symbolic sizes that are equal in the call at hand may differ in another.
    """
    if a is b or not (isinstance(a, Dim) or isinstance(b, Dim)):
        return a == b
    known = proven("==", a, b)
    if known is None and scope() is not None and current(a) == current(b):
        raise needed(roots_of(a, b))
    return bool(known)


def is_one(size: int | Dim) -> bool:
    """Whether an axis broadcasts. One whose size only the values decide does not, as its rule.

    Args:
        size: A size.
    """
    if not isinstance(size, Dim):
        return size == 1
    if bound(size.roots):
        return False
    known = proven("==", size, 1)  # not as a decision: one element is read for all, or for itself
    return bool(size == 1) if known is None else known


def same_form(a: Sequence[int | Dim], b: Sequence[int | Dim]) -> bool:
    """Whether two shapes are written alike, which decides nothing about symbolic sizes.

    Args:
        a: A shape.
        b: Another one.
    """
    return len(a) == len(b) and all(
        x is y or (isinstance(x, int) and isinstance(y, int) and x == y) for x, y in zip(a, b)
    )
