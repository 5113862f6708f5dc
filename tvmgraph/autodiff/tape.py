"""The gradient tape and the reverse pass.

The tape notes every operator that the dispatch point applies, with snapshots of what the operands
denoted at that moment, so that later in-place changes do not disturb it. The reverse pass calls
the rows' VJP rules, which are ordinary operators: under a recorder the derivative becomes part of
the graph, and under an outer tape it can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvmgraph.autodiff.derivative import Cotangents, derivative
from tvmgraph.core.op import F, Op, Reason
from tvmgraph.core.state import has_cotangent, meanwhile, state
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import NoGradientError, user_source
from tvmgraph.interruption import raise_noticed

PullBack = Callable[..., Cotangents]


@dataclass(slots=True, eq=False)
class Entry:
    """One recorded application.

    Attributes:
        name: The operator, for error messages.
        inputs: Snapshots of the operands.
        outputs: Snapshots of the results.
        pull_back: Maps output cotangents to input cotangents.
        source: The user's ``file.py:line`` (only kept where there is no derivative).
        partial: Whether ``pull_back`` takes None for a result without a cotangent; it gets zeros
            otherwise.
        pure: Whether ``pull_back`` does nothing else: where no input needs a cotangent it is not
            called, else it is told which do, as a second argument.
    """

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    pull_back: PullBack | Reason
    source: str = ""
    partial: bool = False
    pure: bool = False


class GradTape:
    """Collects entries while it is active (see :func:`recording`)."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def record(
        self,
        op: Op,
        args: tuple[Tensor, ...],
        attrs: dict[str, object],
        outputs: tuple[Tensor, ...],
    ) -> None:
        """Appends one operator of the table.

        Args:
            op: The row of the operator.
            args: Its operands.
            attrs: Its attributes by name.
            outputs: What it returned.
        """
        raise_noticed()
        inputs, results = self.denoted(args, outputs)
        if isinstance(op.vjp, Reason):
            self.entries.append(Entry(op.name, inputs, results, op.vjp, user_source()))
            return

        def pull_back(
            cotangents: tuple[Tensor | None, ...], wanted: tuple[bool, ...] | None = None
        ) -> Cotangents:
            return derivative(op, attrs, cotangents, results, inputs, wanted)

        pure = not op.traits.effect
        partial = bool(op.regions or op.traits.keeps)
        self.entries.append(Entry(op.name, inputs, results, pull_back, "", partial, pure))

    def record_call(
        self, name: str, args: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
        pull_back: PullBack, partial: bool = False, pure: bool = False,
    ) -> None:  # fmt: skip
        """Appends a whole call with its own derivative: a compiled function, a custom VJP.

        Args:
            name: What errors call it.
            args: Its tensors.
            outputs: What it returned.
            pull_back: Maps cotangents of the outputs to those of ``args``.
            partial: Whether it takes None for a result without a cotangent, see :class:`Entry`.
            pure: Whether it does nothing else, see :class:`Entry`.
        """
        inputs, results = self.denoted(args, outputs)
        self.entries.append(Entry(name, inputs, results, pull_back, "", partial, pure))

    def denoted(
        self, args: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Returns snapshots of operands and results.

        Args:
            args: The operands.
            outputs: The results.
        """
        return tuple([snapshot(a) for a in args]), tuple([snapshot(o) for o in outputs])


def snapshot(tensor: Tensor) -> Tensor:
    """Returns a tensor that denotes what ``tensor`` denotes now, whatever happens to it later.

    Args:
        tensor: A tensor, traced or not.
    """
    if state.interpreter is not None:
        return state.interpreter.snapshot(tensor)
    return tensor.snapshot()


def recording(tape: GradTape) -> meanwhile:
    """Makes ``tape`` the innermost active tape of this thread.

    Args:
        tape: Gets every operator until the ``with`` block ends.
    """
    return meanwhile(state, tapes=(*state.tapes, tape))


def paused() -> meanwhile:
    """Suspends all tapes of this thread; they only see what Parameters are assigned."""
    return meanwhile(state, tapes=(), paused=state.paused + state.tapes)


def backward(
    tape: GradTape,
    outputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    kinds: str | None = None,
    wanted: Sequence[Tensor] | None = None,
) -> dict[int, Tensor]:
    """Runs the reverse pass.

    Args:
        tape: What was recorded, no longer active.
        outputs: Snapshots of the differentiated results.
        cotangents: One per output, of its shape and dtype.
        kinds: Kinds of dtypes that cotangents flow to; with ``"i"`` integers have gradients too.
            By default those of the reverse pass that this one is part of.
        wanted: Snapshots of what it is for: eager code computes no cotangent that theirs do not
            depend on. By default every value.

    Returns:
        The cotangent of every value that has one, by ``id(value.token)``.

    Raises:
        NoGradientError: if a cotangent reaches an operator without a derivative.
    """
    with meanwhile(state, cotangents=kinds or state.cotangents, precision=None):
        if wanted is None or state.interpreter is not None:
            return _swept(tape, outputs, cotangents)
        return _swept(tape, outputs, cotangents, _dependent(tape, wanted))


def _dependent(tape: GradTape, sources: Sequence[Tensor]) -> set[int]:
    """Returns the tokens of the values that depend on some, or on what is asked in any case."""
    tokens = {id(x.token) for x in sources}
    for entry in tape.entries:
        if not entry.pure or any([id(x.token) in tokens for x in entry.inputs]):
            tokens.update([id(o.token) for o in entry.outputs if has_cotangent(o.dtype)])
    return tokens


def _swept(
    tape: GradTape, outputs: Sequence[Tensor], cotangents: Sequence[Tensor],
    needed: set[int] | None = None,
) -> dict[int, Tensor]:  # fmt: skip
    found: dict[int, Tensor] = {}
    for o, g in zip(outputs, cotangents, strict=True):
        _accumulate(found, o, g)
    for entry in reversed(tape.entries):
        wanted = [found.get(id(o.token)) for o in entry.outputs]
        if all(g is None for g in wanted):
            continue
        if isinstance(entry.pull_back, Reason) and all(
            o.dtype.kind in "biu" for o in entry.outputs
        ):
            continue  # comparisons, positions of maxima: steps, which are flat
        needs = [has_cotangent(x.dtype) for x in entry.inputs]
        if needed is not None and entry.pure:
            needs = [p and id(x.token) in needed for p, x in zip(needs, entry.inputs)]
        if not any(needs):
            continue  # a constant, a function of integers only, or nothing asked for depends on it
        for x, g, p in zip(entry.inputs, _pull_back(entry, wanted, needs), needs, strict=True):
            if g is not None and p:
                _accumulate(found, x, g)
    return found


def _pull_back(entry: Entry, wanted: list[Tensor | None], needs: list[bool]) -> Cotangents:
    if isinstance(entry.pull_back, Reason):
        raise NoGradientError(
            f"there is no derivative: {entry.pull_back}", op=f"ops.{entry.name}", at=entry.source,
            fix="apply ops.stop_gradient to its input",
        )  # fmt: skip
    given: Sequence[Tensor | None] = wanted
    if not entry.partial:
        given = [F.zeros_like(o) if g is None else g for o, g in zip(entry.outputs, wanted)]
    extra = (tuple(needs),) if entry.pure else ()
    return entry.pull_back(tuple(given), *extra)


def _accumulate(found: dict[int, Tensor], value: Tensor, g: Tensor) -> None:
    key = id(value.token)
    before = found.get(key)
    if g.dtype is not value.dtype:
        g = F.cast(g, value.dtype)
    found[key] = g if before is None else F.add(before, g)
