"""Sums of products of pairs of bfloat16, in vectors of any length, as functions of LLVM.

Processors with AVX512-BF16 have an instruction for it. On others it is two multiplications in
float32, whose upper half a bfloat16 is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.program import Stage, is_choice, static_shape
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load
from tvmgraph.machine.processor import CpuModel

_any: Any = T

#: Vectors of the instruction, in pairs.
_NATIVE = (4, 8, 16)


def dot_functions(lanes: int, model: CpuModel) -> str:
    """``tvmgraph_bf16_dot{lanes}``, ``(sums, pairs, pairs) -> sums``, and loads of pairs.

    ``tvmgraph_bf16_pair`` loads one, ``tvmgraph_bf16_pairs{lanes}`` a vector.

    Args:
        lanes: Pairs of a vector.
        model: The processor.
    """
    pairs, native = f"<{lanes} x i32>", "bfloat16" in model.dot_types and lanes in _NATIVE
    return f"""{dot_function(f"tvmgraph_bf16_dot{lanes}", lanes, native)}
define internal i32 @tvmgraph_bf16_pair(ptr %at) alwaysinline {{
  %r = load i32, ptr %at, align 1
  ret i32 %r
}}
define internal {pairs} @tvmgraph_bf16_pairs{lanes}(ptr %at) alwaysinline {{
  %r = load {pairs}, ptr %at, align 1
  ret {pairs} %r
}}
"""


def dot_function(name: str, lanes: int, native: bool) -> str:
    """A function ``(sums, pairs, pairs) -> sums``.

    Args:
        name: Its name.
        lanes: Pairs of a vector.
        native: Whether the processor has an instruction for it.
    """
    sums, pairs = f"<{lanes} x float>", f"<{lanes} x i32>"
    body = _instruction(lanes) if native else _multiplications(lanes)
    declaration = f"declare {_intrinsic(lanes)}\n" if native else ""
    return f"""{declaration}
define internal {sums} @{name}({sums} %c, {pairs} %a, {pairs} %b) alwaysinline {{
{body}
  ret {sums} %r
}}"""


def accumulate_dot(sums: Expr, left: Expr, right: Expr, lanes: int) -> Expr:
    """``sums`` plus the products of both members of the pairs.

    Args:
        sums: Vector of float32.
        left: Vector of as many pairs of bfloat16, as int32.
        right: The same of the other operand.
        lanes: Lanes of the vectors.
    """
    return _any.call_pure_extern(f"float32x{lanes}", f"tvmgraph_bf16_dot{lanes}", sums, left, right)


def load_bf16_pairs(element: Load, lanes: int = 1) -> Expr:
    """A vector of pairs from where an element of 16 bits is.

    Args:
        element: The first element of the first pair.
        lanes: Pairs; one gives an int32 that is no vector.
    """
    dtype, name = (f"int32x{lanes}", f"bf16_pairs{lanes}") if lanes > 1 else ("int32", "bf16_pair")
    return _any.call_pure_extern(dtype, f"tvmgraph_{name}", _any.address_of(element))


def word(value: Expr) -> Expr:
    """The bits of a bfloat16; of 0 where ``value`` chooses that.

    Args:
        value: An expression of bfloat16.

    Returns:
        An expression of uint16.
    """
    if is_choice(value):
        return _any.if_then_else(value.args[0], word(value.args[1]), tirx.const(0, "uint16"))
    return _any.reinterpret("uint16", value)


def as_words(stage: Stage) -> tuple[Buffer, Stage]:
    """A temporary for a stage, and the stage that writes it; TVM would widen one of bfloat16.

    Args:
        stage: An elementwise stage whose result is bfloat16.
    """
    copy = emit.workspace(static_shape(stage.buffer) or (), "uint16")
    return copy, replace(stage, buffers=(copy,), values=(word(stage.value),))


def words_of(image: Buffer, padding: Stage | None) -> tuple[Callable[..., Expr], Stage | None]:
    """How an image of bfloat16 is read as words, and the stage that pads it, if there is one.

    Args:
        image: The image, padded.
        padding: The stage that writes it.
    """
    if padding is None:
        return lambda *at: word(image[at]), None
    words, padding = as_words(padding)
    return lambda *at: words[at], padding


def pair(first: Expr, second: Expr) -> Expr:
    """Two words as one number.

    Args:
        first: A uint16, which becomes the lower half.
        second: A uint16, which becomes the upper half.
    """
    low, high = (tirx.Cast("int32", value) for value in (first, second))
    return tirx.bitwise_or(low, tirx.shift_left(high, tirx.const(16, "int32")))


def _intrinsic(lanes: int, names: tuple[str, str, str] = ("", "", "")) -> str:
    """The instruction's signature, or with names of operands the body of its call."""
    types = (f"<{lanes} x float>", *[f"<{2 * lanes} x bfloat>"] * 2)
    operands = ", ".join(f"{kind} {name}".strip() for kind, name in zip(types, names))
    return f"{types[0]} @llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}({operands})"


def _instruction(lanes: int) -> str:
    pairs, halves = f"<{lanes} x i32>", f"<{2 * lanes} x bfloat>"
    return f"""  %x = bitcast {pairs} %a to {halves}
  %y = bitcast {pairs} %b to {halves}
  %r = call {_intrinsic(lanes, ("%c", "%x", "%y"))}"""


def _multiplications(lanes: int) -> str:
    sums, pairs = f"<{lanes} x float>", f"<{lanes} x i32>"
    half, mask = (
        "<" + ", ".join([f"i32 {value}"] * lanes) + ">" for value in (16, -(1 << 16))
    )  # fmt: skip
    lines = []
    for name in ("a", "b"):
        lines += [
            f"  %{name}l = shl {pairs} %{name}, {half}",
            f"  %{name}h = and {pairs} %{name}, {mask}",
            f"  %{name}0 = bitcast {pairs} %{name}l to {sums}",
            f"  %{name}1 = bitcast {pairs} %{name}h to {sums}",
        ]
    return "\n".join(
        [
            *lines,
            f"  %p = fmul contract {sums} %a0, %b0",
            f"  %s = fadd contract {sums} %c, %p",
            f"  %q = fmul contract {sums} %a1, %b1",
            f"  %r = fadd contract {sums} %s, %q",
        ]
    )
