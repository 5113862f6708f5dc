"""Which tensor a variable holds after a branch, where a tensor decided which.

After ``z = x if c else y`` the capture has a value for ``z``, but ``z is x`` depends on ``c``, and
what is written to ``z`` is written to ``x`` or to ``y``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tvmgraph.capture import tree
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import CaptureError
from tvmgraph.graph import Value

if TYPE_CHECKING:
    from tvmgraph.capture.recorder import Recorder
    from tvmgraph.capture.traced import TracedTensor


@dataclass(frozen=True, eq=False)
class Choice:
    """What a tensor is the same as.

    Attributes:
        condition: A ``bool[]``.
        then: The tensor that it is where the condition is true.
        orelse: The one that it is elsewhere.
    """

    condition: Tensor
    then: Tensor
    orelse: Tensor


def choice_of(value: object) -> Choice | None:
    """Returns what a tensor is the same as, ``None`` for one that is just itself.

    Args:
        value: A tensor, or any object.
    """
    return getattr(value, "choice", None) if isinstance(value, Tensor) else None


def identical(a: object, b: object) -> bool | Tensor:
    """Returns ``a is b``: a bool, or a ``bool[]`` where a tensor decides.

    Args:
        a: An object.
        b: Another one.
    """
    known: dict[tuple[int, int], bool | Tensor] = {}  # choices share what they choose between

    def same(a: object, b: object) -> bool | Tensor:
        if a is b:
            return True
        found = known.get((id(a), id(b)))
        if found is None:
            found = known[id(a), id(b)] = decided(a, b)
        return found

    def decided(a: object, b: object) -> bool | Tensor:
        for x, y in ((a, b), (b, a)):
            choice = choice_of(x)
            if choice is not None:
                then, orelse = same(choice.then, y), same(choice.orelse, y)
                if then is orelse:
                    return then
                return F.where(choice.condition, *map(_flag, (then, orelse)))
        return False

    return same(a, b)


def _flag(value: bool | Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor(np.asarray(value))


def may_be(value: Tensor) -> dict[int, Tensor]:
    """Returns all tensors that one may be, itself included, by ``id``.

    Args:
        value: The tensor.
    """
    todo, found = [value], dict[int, Tensor]()
    while todo:
        t = todo.pop()
        if id(t) in found:  # choices share what they choose between
            continue
        found[id(t)] = t
        choice = choice_of(t)
        if choice is not None:
            todo += [choice.then, choice.orelse]
    return found


def write(recorder: Recorder, target: Tensor, new: Tensor) -> None:
    """Makes a tensor denote something else, and so whatever else may be the same tensor.

    Args:
        recorder: Of the capture.
        target: The tensor that is written to.
        new: What it denotes from here on.
    """
    others: dict[int, Tensor] = {}
    mine = may_be(target)
    for t in recorder.chosen:
        group = may_be(t)
        if not mine.keys().isdisjoint(group):
            others |= group
    del others[id(target)]
    changes: list[tuple[Tensor, Tensor]] = []
    for t in others.values():
        try:
            same = identical(target, t)
            if same is not False:
                changes.append((t, F.where(same, new, recorder.snapshot(t))))
        except CaptureError:  # known within a branch or loop that is over
            continue
    recorder.denote(target, new)
    for t, value in changes:
        recorder.denote(t, value)


def check_compared(recorder: Recorder, *pair: object) -> None:
    """Leaves it to Python whether two tensors are one, if that depends on how often a loop ran.

    Args:
        recorder: The recorder of the capture.
        *pair: Both tensors.
    """
    if pair[0] is not pair[1] and all(isinstance(t, Tensor) for t in pair):
        _check(recorder.moving, *pair)


def check_returned(recorder: Recorder, results: Iterable[Tensor]) -> None:
    """Leaves a loop to Python if how often it ran decides which tensors the results are.

    Args:
        recorder: The recorder of the capture.
        results: The tensors that the function returns.
    """
    for t in results:
        _check(recorder.moving, t)


def check_written(recorder: Recorder, target: Tensor) -> None:
    """Leaves a write to Python if how often a loop ran decides which tensors it changes.

    Args:
        recorder: The recorder of the capture.
        target: The tensor that is written.
    """
    _check(recorder.moved, target)


def _check(known: dict[int, tuple[Tensor, Callable[[], None]]], *tensors: Any) -> None:
    for t in tensors:
        for i in may_be(t) if known else ():
            if i in known:
                known[i][1]()


@dataclass(frozen=True, eq=False)
class Carried:
    """A tensor that a loop carries.

    Attributes:
        start: What it is before the loop.
        bound: What stands for it in the body.
        after: What the body makes of it.
    """

    start: Tensor
    bound: Tensor
    after: Tensor


def unsettled(
    leaves: list[Carried], inside: Callable[[Tensor], bool], alone: Callable[[Tensor], bool]
) -> list[Carried]:
    """Returns what may be, or not be, the same as other tensors after a few iterations.

    Args:
        leaves: All that a loop carries.
        inside: Whether a tensor came into being in the body.
        alone: Whether nothing else is the same as a tensor from before the loop.
    """
    bound = {id(c.bound) for c in leaves}
    starts = Counter(id(c.start) for c in leaves)
    ends = [{i for i in may_be(c.after) if i != id(c.bound)} for c in leaves]
    shared = Counter(i for found in ends for i in found)

    def settled(c: Carried, found: set[int]) -> bool:
        made = all(inside(t) for i, t in may_be(c.after).items() if i != id(c.bound))
        own = starts[id(c.start)] == 1 and all(shared[i] == 1 for i in found)
        return own and made and found.isdisjoint(bound) and alone(c.start)

    return [c for c, found in zip(leaves, ends) if not settled(c, found)]


def chosen_leaves(
    recorder: Recorder, leaf: Callable[[object], tree.Leaf], results: Iterable[Tensor],
    outputs: list[Value],
) -> Callable[..., tree.Leaf]:  # fmt: skip
    """Returns what describes results: a tensor that may be one of others becomes that one.

    Others are those from outside, and the results that were described before.

    Args:
        recorder: Of the capture.
        leaf: Describes a result as a tensor of its own.
        results: The tensors that the function returns.
        outputs: The results of the graph so far.
    """
    known = [*results, *recorder.arguments, *[t for t, _ in recorder.captured]]
    seen = {id(t) for t in known}
    made: dict[tuple[int, int], tree.Leaf] = {}
    owned: list[tree.Leaf] = []  # keeps them alive, so ids stay unique

    def side(t: Tensor, own: tree.Leaf) -> tree.Leaf:
        if id(t) in seen and choice_of(t) is None:
            return leaf(t)
        found = made.get((id(t), id(own)))
        if found is None:
            found = made[id(t), id(own)] = chosen(t, own)
        return found

    def chosen(t: Tensor, own: tree.Leaf) -> tree.Leaf:
        choice = choice_of(t)
        if choice is None or seen.isdisjoint(may_be(t).keys() - {id(t)}):
            return own
        try:
            condition = recorder.value_of(choice.condition)
        except CaptureError:  # known within a branch that is over
            return own
        outputs.append(condition)
        flag = len(outputs) - 1
        return tree.Leaf("chosen", (flag, side(choice.then, own), side(choice.orelse, own)))

    def shares(a: Tensor, b: Tensor) -> bool:
        return not may_be(a).keys() & may_be(b).keys() <= seen

    earlier: list[tuple[Tensor, tree.Leaf]] = []

    def described(x: Any) -> tree.Leaf:
        own = leaf(x)
        owned.append(own)
        if choice_of(x) is None:
            return own
        found = _joined(recorder, x, side(x, own), [e for e in earlier if shares(x, e[0])], outputs)
        earlier.append((x, found))
        return found

    return described


def _joined(
    recorder: Any, x: Tensor, found: tree.Leaf, others: list[tuple[Tensor, tree.Leaf]],
    outputs: list[Value],
) -> tree.Leaf:  # fmt: skip
    """Describes a result as one of others where it is the same tensor, which a branch made."""
    for other, its in others:
        same = identical(other, x)
        if same is True:
            return its
        if isinstance(same, Tensor):
            outputs.append(recorder.value_of(same))
            found = tree.Leaf("chosen", (len(outputs) - 1, its, found))
    return found


#: Which arguments are one tensor or views, see :func:`aliases_of`.
Aliases = tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, int, str], ...]]


def aliases_of(leaves: Sequence[Tensor], owned: Container[int]) -> Aliases | None:
    """Returns which arguments are the same tensor, or one that the function reads itself.

    Args:
        leaves: The tensors among the arguments.
        owned: The ids of those that some capture holds.

    Returns:
        For every tensor the number of the first that it is, the ids of those that are owned, and
        which are views of others, with the index; ``None`` if all are different.
    """
    first: dict[int, int] = {}
    pattern = tuple([first.setdefault(id(t), i) for i, t in enumerate(leaves)])
    own = tuple([id(t) for t in leaves if id(t) in owned])
    views = tuple([
        (i, first[id(base[0])], repr(base[1])) for i, t in enumerate(leaves)
        if isinstance(base := t._base, tuple) and id(base[0]) in first
    ])  # fmt: skip
    return (pattern, own, views) if own or views or len(first) < len(leaves) else None


def keep_views(given: Iterable[Tensor], arguments: Mapping[int, TracedTensor]) -> None:
    """Makes arguments of a capture views of each other where the tensors of the call are.

    Args:
        given: The tensors of the call.
        arguments: What stands for them, by their ``id``.
    """
    for t in given:
        base = t._base
        if isinstance(base, tuple) and id(base[0]) in arguments:
            arguments[id(t)]._base = (arguments[id(base[0])], base[1])


def view_leaves(
    recorder: Recorder, leaf: Callable[[object], tree.Leaf], results: Iterable[Tensor]
) -> Callable[..., tree.Leaf]:
    """Returns what describes results: a slice of a tensor that the caller has stays its view.

    Args:
        recorder: Of the capture.
        leaf: Describes a result as a tensor of its own.
        results: The tensors that the function returns.
    """
    known = {id(t) for t in (*results, *recorder.arguments, *[t for t, _ in recorder.captured])}

    def whole(t: Tensor) -> tree.Leaf | None:
        if id(t) in known:
            return described(t)
        base = _base_of(t)
        around = None if base is None else whole(base[0])
        return None if around is None or base is None else tree.Leaf("part", (around, base[1]))

    def described(x: object) -> tree.Leaf:
        found, base = leaf(x), _base_of(x)
        if base is None or found.kind != "output":
            return found
        around = whole(base[0])
        return found if around is None else tree.Leaf("view", (found, around, base[1]))

    return described


def _base_of(x: object) -> tuple[Tensor, object] | None:
    """Returns of what a tensor is a view and its index, if the index is the same in all calls."""
    base = getattr(x, "_base", None) if isinstance(x, Tensor) else None
    return base if isinstance(base, tuple) and _is_fixed(base[1]) else None


def _is_fixed(index: object) -> bool:
    if isinstance(index, tuple):
        return all(map(_is_fixed, index))
    if isinstance(index, slice):
        return all(map(_is_fixed, (index.start, index.stop, index.step)))
    return index is None or index is ... or type(index) is int
