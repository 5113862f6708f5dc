"""Older forms of ONNX operators, for opsets below the one the rows are written for."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from tvmgraph.core.onnx_library import onnx
from tvmgraph.errors import ExportError

if TYPE_CHECKING:
    from tvmgraph.export.onnx import OnnxBuilder, OnnxValue

_AXES_AS_INPUT = 18  # until then most reductions had their axes as an attribute
_REDUCTIONS = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd")


def gelu(O: OnnxBuilder, x: OnnxValue, approximate: str = "none") -> OnnxValue:
    """Gelu before opset 20.

    Args:
        O: The model so far.
        x: The operand.
        approximate: ``"none"`` for the error function, ``"tanh"`` for its approximation.
    """
    if approximate == "tanh":
        cube = O.Mul(O.Mul(x, x), x)
        inner = O.Add(x, O.Mul(cube, O.like(0.044715, x)))
        curve = O.Tanh(O.Mul(inner, O.like(math.sqrt(2 / math.pi), x)))
    else:
        curve = O.Erf(O.Mul(x, O.like(math.sqrt(0.5), x)))
    return O.Mul(O.Mul(x, O.like(0.5, x)), O.Add(curve, O.like(1.0, x)))


def mish(O: OnnxBuilder, x: OnnxValue) -> OnnxValue:
    """Mish before opset 18.

    Args:
        O: The model so far.
        x: The operand.
    """
    return O.Mul(x, O.Tanh(O.Softplus(x)))


def reduction(
    op_type: str, O: OnnxBuilder, x: OnnxValue, axes: object = None, **attrs: object
) -> OnnxValue | tuple[OnnxValue, ...]:
    """A reduction with its axes as an attribute.

    Args:
        op_type: Name of the reduction.
        O: The model so far.
        x: The operand.
        axes: A constant of axes; ``None`` for all.
        **attrs: Attributes of the present form; ``noop_with_empty_axes`` is resolved here.

    Raises:
        ExportError: if the axes are computed when the model runs.
    """
    found = O.constant_of(axes)
    if axes is not None and found is None:
        raise ExportError(f"{op_type} with computed axes needs opset {_AXES_AS_INPUT}")
    if found is not None and not found.size and attrs.pop("noop_with_empty_axes", 0):
        return O.Identity(x)
    if found is not None and found.size:
        attrs["axes"] = [int(a) for a in found]
    return O.add_node(op_type, (x,), 1, attrs)


OlderForm = Callable[..., "OnnxValue | tuple[OnnxValue, ...]"]
_OLDER: dict[str, tuple[int, OlderForm]] = {
    "Gelu": (20, gelu),
    "Mish": (18, mish),
    **{name: (_AXES_AS_INPUT, functools.partial(reduction, name)) for name in _REDUCTIONS},
}


def older_form(op_type: str, opset: int) -> OlderForm | None:
    """Returns how to write an operator in an opset that lacks its present form, or ``None``.

    Args:
        op_type: Name of the operator.
        opset: Opset of the model.
    """
    since, form = _OLDER.get(op_type, (0, None))
    return form if form is not None and opset < since else None


def require(op_type: str, opset: int) -> None:
    """Checks that an opset has an operator.

    Args:
        op_type: Name of the operator.
        opset: Opset of the model.

    Raises:
        ExportError: naming the opset that introduced it.
    """
    if onnx.defs.has(op_type, max_inclusive_version=opset):
        return
    since = onnx.defs.get_schema(op_type).since_version if onnx.defs.has(op_type) else None
    raise ExportError(
        f"ONNX opset {opset} has no {op_type}",
        fix=f"export with opset={since} or newer" if since else "use other operators",
    )
