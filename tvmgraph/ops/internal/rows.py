"""What rows that only the compiler makes have in common."""

from __future__ import annotations

from collections.abc import Sequence

from tvmgraph.core.columns import EagerColumn, InferColumn, LowerColumn
from tvmgraph.core.op import Reason, Sample
from tvmgraph.core.primitive import RowDecorator, primitive
from tvmgraph.core.traits import INTERNAL, Traits

#: Why such a row has no derivative and no ONNX form.
NO_DERIVATIVE, NO_ONNX = (
    Reason(f"only compiled graphs hold it; the graph it was made from is {done}")
    for done in ("differentiated", "exported")
)


def internal_row(
    infer: InferColumn, eager: EagerColumn, lower: LowerColumn, *, samples: Sequence[Sample],
    multi: bool = False, traits: Traits = INTERNAL,
) -> RowDecorator:  # fmt: skip
    """Adds a row that graphs have only while they are compiled.

    Args:
        infer: Its column of that name, as all others.
        eager: What NumPy computes.
        lower: Its lowering.
        samples: Its samples.
        multi: Whether it has several results.
        traits: What kind of operator it is.
    """
    return primitive(
        infer=infer, traits=traits, eager=eager, lower=lower, vjp=NO_DERIVATIVE, onnx=NO_ONNX,
        samples=samples, multi=multi,
    )  # fmt: skip
