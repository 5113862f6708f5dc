"""What kind of operator a row is: what passes, ``vmap`` and sharding may do with it.

A row states its traits once. Where the type rule says enough (elementwise operators, reductions)
they come with the rule, see :mod:`tvmgraph.core.rules`. A test checks every trait against the NumPy
implementation on the samples of the row.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from tvmgraph.core.arguments import Attrs
from tvmgraph.core.types import TensorType


class Reason(str):
    """The written reason why a column of a row is missing."""

    __slots__ = ()


class Pattern(StrEnum):
    """How the elements of a result depend on those of the operands.

    ELEMENTWISE: on the elements in the same place, after operands are broadcast.
    BROADCAST: on one element, which is repeated along axes.
    REDUCTION: on all elements along some axes.
    CONTRACTION: on sums of products of two operands' elements; linear in each of them.
    VIEW: on one element; every element is in the result once, in another shape or order of axes.
    GATHER: on one element, at a place that attributes or an operand of indices give.
    OPAQUE: in another way.
    """

    ELEMENTWISE = "elementwise"
    BROADCAST = "broadcast"
    REDUCTION = "reduction"
    CONTRACTION = "contraction"
    VIEW = "view"
    GATHER = "gather"
    OPAQUE = "opaque"


class Batch(StrEnum):
    """How a row acts on a whole batch at once: what changes when operands get a first axis more.

    ELEMENTWISE: operands are given axes of size 1 until they broadcast.
    MATRICES: so are those before the last two axes.
    AXIS: the attribute ``axis`` or ``dims`` counts one further.
    PERMUTATION: ``dims`` keeps the first axis and counts one further.
    SIZED: the attribute that lists the sizes of the result gets the size of the batch.
    IMAGES: the first axis is a batch already, and joins the new one.
    """

    ELEMENTWISE = "elementwise"
    MATRICES = "matrices"
    AXIS = "axis"
    PERMUTATION = "permutation"
    SIZED = "sized"
    IMAGES = "images"


class Layout(StrEnum):
    """How a row acts on images (N, C, H, W) that are kept with channels last or in blocks.

    ELEMENTWISE: operands in the same layout, or broadcast to it.
    POOLING: windows over the axes of the image, channel by channel.
    PADDING: of axes; that of the channels may change the layout.
    REDUCTION: over the axes of the image.
    RESHAPE: of an image into groups of channels, and back.
    ROWS: each row of the last ``count`` axes by itself, whatever the order of its elements.
    CONCAT: of channels.
    INTERLEAVE: of the pixels of several images.
    AXIS: along one axis of the image, its attribute ``axis``, whatever the others hold.
    """

    ELEMENTWISE = "elementwise"
    POOLING = "pooling"
    PADDING = "padding"
    REDUCTION = "reduction"
    RESHAPE = "reshape"
    ROWS = "rows"
    CONCAT = "concat"
    INTERLEAVE = "interleave"
    AXIS = "axis"


Dims = tuple[str | None, ...]


@dataclass(frozen=True)
class Factors:
    """Which dimensions of operands and results are one and the same.

    Split along a factor, the operator computes parts: a result that has the factor is their
    concatenation, and one that lacks it their combination.

    Attributes:
        inputs: The factor of every dimension of every operand; None where it must stay whole.
        outputs: The same of the results.
    """

    inputs: tuple[Dims, ...]
    outputs: tuple[Dims, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All factors, in the order in which they appear."""
        every = [d for dims in (*self.inputs, *self.outputs) for d in dims if d]
        return tuple(dict.fromkeys(every))

    def __str__(self) -> str:
        sides = (self.inputs, self.outputs)
        return " -> ".join(", ".join(" ".join(d or "." for d in t) for t in s) for s in sides)


FactorRule = Callable[[Sequence[TensorType], Attrs], str]


class Slot(NamedTuple):
    """A place where a row with regions takes or gives a value.

    Attributes:
        region: The number of the region, from 1; 0 is the row itself.
        gives: Whether it is a result there, and no operand.
        place: Which one it is.
    """

    region: int
    gives: bool
    place: int


Tie = tuple[Slot, ...]


@dataclass(frozen=True)
class Traits:
    """The traits of a row.

    Attributes:
        pattern: How elements of the result depend on those of the operands.
        factors: How dimensions may be split: an equation such as ``... m k, ... k n -> ... m n``
            (``...`` are leading dimensions, which broadcast, ``.`` is one that stays whole, ``*``
            all that follow); a function of the operands' types and the attributes that returns
            one; or the reason why nothing can be split.
        combine: How parts of a result are combined that lacks the split factor: ``sum``, ``mean``,
            ``prod``, ``max``, ``min``, ``all`` or ``any``.
        sized: Attribute that lists the sizes of the result; a part of it has sizes of its own.
        batch: How it acts on a batch; None if it is applied element by element.
        layout: How it acts on images in another layout; None if they are put back before.
        cheap: Whether it takes one or few instructions per element, so that computing it again
            costs less than reading its result from memory.
        effect: Whether it does more than compute: it runs once per call, neither earlier nor less
            often.
        collective: Whether all processes of a group compute it together: it is not computed ahead.
        places: Whether it only says how its operand is split among processes.
        linear: Whether it is linear in all operands at once, so that terms of a sum may be added
            after it as well as before.
        alias: Whether its result may share memory with its last operand.
        binds: Attribute with the name of a size that the values decide.
        stops: Whether it may raise when a graph runs, so that nothing is computed after it.
        ties: Of a row with regions: which operands, results, and parameters and results of the
            regions stand for one another, so that they are split alike.
        keeps: Attribute with which a call returns one more tensor, that its derivative takes: it
            is set while a tape records.
        precise: Whether mixed precision computes it in float32: it loses too much in less.
    """

    pattern: Pattern
    factors: str | FactorRule | Reason
    combine: str = "sum"
    sized: str = ""
    batch: Batch | None = None
    layout: Layout | None = None
    cheap: bool = False
    effect: bool = False
    collective: bool = False
    places: bool = False
    linear: bool = False
    alias: bool = False
    binds: str = ""
    stops: bool = False
    ties: Callable[..., list[Tie]] | None = None
    keeps: str = ""
    precise: bool = False

    def split(self, types: Sequence[TensorType], attrs: Mapping[str, object]) -> Factors | None:
        """Returns how the dimensions of a call may be split, or None if nothing can be.

        Args:
            types: Types of the operands.
            attrs: Attributes of the call.
        """
        if isinstance(self.factors, Reason):
            return None
        text = self.factors if isinstance(self.factors, str) else self.factors(types, attrs)
        return _resolve(text, tuple(t.shape for t in types))


@functools.cache
def _resolve(text: str, shapes: tuple[tuple[object, ...], ...]) -> Factors:
    """The factors of an equation for operands of these shapes."""
    left, _, right = text.partition("->")
    terms = [term.split() for term in left.split(",")] if shapes else []
    leads = [len(s) - len(t) + 1 for t, s in zip(terms, shapes) if t[:1] == ["..."]]
    lead = max(leads, default=0)
    common = [f"_{i}" for i in range(lead)]
    inputs = [_dims(t, s, common) for t, s in zip(terms, shapes, strict=True)]
    rest = next((s[len(t) - 1 :] for t, s in zip(terms, shapes) if t[-1:] == ["*"]), ())
    outputs = [_whole(t.split(), common, len(rest)) for t in right.split(",")]
    sizes: dict[str, object] = {}
    for dims, shape in zip(inputs, shapes):
        for d, size in zip(dims, shape):
            if d and (size != 1 or d not in sizes):
                sizes[d] = size
    kept = [tuple(d if s == sizes.get(d or "") else None for d, s in zip(dims, shape))
            for dims, shape in zip(inputs, shapes)]  # fmt: skip
    return Factors(tuple(kept), tuple(outputs))


def _dims(term: list[str], shape: tuple[object, ...], common: list[str]) -> Dims:
    own = len(shape) - len(term) + 1 if term[:1] == ["..."] else 0
    return _whole(term, common[len(common) - own :], max(0, len(shape) - len(term) + 1))


def _whole(term: list[str], lead: list[str], rest: int) -> Dims:
    dims: list[str | None] = []
    for word in term:
        if word == "...":
            dims += lead
        elif word == "*":
            dims += [None] * rest
        else:
            dims.append(None if word == "." else word)
    return tuple(dims)


# ---- rules of factors ---------------------------------------------------------------------------


def letters(count: int) -> list[str]:
    """Returns names for the dimensions of a tensor.

    Args:
        count: How many dimensions it has.
    """
    return [string.ascii_letters[i] if i < 52 else f"d{i}" for i in range(count)]


def equation(inputs: Sequence[Sequence[str]], outputs: Sequence[Sequence[str]]) -> str:
    """Returns the text of an equation, given the words of every operand and result.

    Args:
        inputs: For every operand a word per dimension: a name, ``...`` or ``.``.
        outputs: The same for every result.
    """
    return "->".join(",".join(map(" ".join, side)) for side in (inputs, outputs))


def _named_axes(ndim: int, attrs: Attrs) -> set[int]:
    found: int | Sequence[int] = attrs["axis"] if "axis" in attrs else attrs["dims"]
    axes = found if isinstance(found, Sequence) else (found,)
    return {a % ndim for a in axes} if ndim else set()


def reduced(types: Sequence[TensorType], attrs: Mapping[str, object]) -> str:
    """The axes in ``axis`` are combined, all others stay.

    Args:
        types: Types of the operands; the first one is reduced.
        attrs: Attributes: ``axis`` or ``dims``, and ``keep_dims``.
    """
    names, axes = letters(types[0].ndim), _named_axes(types[0].ndim, attrs)
    one = ["."] if attrs["keep_dims"] else []
    kept = [w for i, n in enumerate(names) for w in (one if i in axes else [n])]
    return equation([names], [kept])


def all_but_axes(types: Sequence[TensorType], attrs: Mapping[str, object]) -> str:
    """The axes in ``axis`` or ``dims`` stay whole; all operands and the result have the others.

    Args:
        types: Types of the operands, of equally many axes.
        attrs: Attributes: ``axis`` or ``dims``.
    """
    ndim = types[0].ndim
    axes = _named_axes(ndim, attrs)
    words = ["." if i in axes else n for i, n in enumerate(letters(ndim))]
    return equation([words] * len(types), [words])


def broadcast(types: Sequence[TensorType], attrs: Mapping[str, object]) -> str:
    """All dimensions, which broadcast.

    Args:
        types: Types of the operands.
        attrs: Attributes, of which none matters.
    """
    return equation([["..."]] * len(types), [["..."]])


#: Operators on single elements; those that take one or few instructions.
ELEMENTWISE = Traits(
    Pattern.ELEMENTWISE, broadcast, batch=Batch.ELEMENTWISE, layout=Layout.ELEMENTWISE
)
CHEAP = replace(ELEMENTWISE, cheap=True)
#: Branches and loops.
REGIONS = Traits(Pattern.OPAQUE, Reason("the operators of its regions are split instead"))
#: Rows that only the compiler makes: a graph is differentiated, batched and split before.
INTERNAL = Traits(
    Pattern.OPAQUE, Reason("only compiled graphs hold it; they are split before they are compiled")
)
#: Functions of single matrices, of which there may be many.
MATRIX = Traits(Pattern.OPAQUE, "... . . -> ... . .", batch=Batch.MATRICES)


def reduction(combine: str) -> Traits:
    """Returns the traits of a reduction over ``axis`` with ``keep_dims``.

    Args:
        combine: How results of parts are combined, see :class:`Traits`.
    """
    return Traits(
        Pattern.REDUCTION, reduced, combine, batch=Batch.AXIS, layout=Layout.REDUCTION
    )  # fmt: skip


def along_axis(pattern: Pattern = Pattern.OPAQUE) -> Traits:
    """Returns the traits of a row that treats all axes but those in ``axis`` or ``dims`` alike.

    Args:
        pattern: How the operator fuses.
    """
    return Traits(pattern, all_but_axes, batch=Batch.AXIS)
