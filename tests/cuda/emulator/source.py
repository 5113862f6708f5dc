"""CUDA C, as TVM writes it, as C++ for the emulated device."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from tests.cuda.emulator.ptx import Asm

_ASM = re.compile(r"\b(?:__asm__|asm)\s*(?:__volatile__|volatile)?\s*\(")
_INCLUDE = re.compile(r"#\s*include\s*<(?:cuda|mma|math_constants|sm_61|cooperative)[^>]*>")
_ALIGNED = r"(?:(?:__align__|alignas)\((?P<align>\d+)\)\s*)?"
_DYNAMIC = re.compile(rf"extern\s+__shared__\s+{_ALIGNED}(?P<type>[\w ]+?)\s+(?P<name>\w+)\[\];")
_STATIC = re.compile(
    rf"__shared__\s+{_ALIGNED}(?P<type>[\w: ]+?)\s+(?P<name>\w+)\[(?P<count>[^\]]+)\];"
)
_KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(")


def to_host(source: str) -> str:
    """Translates a source file: inline PTX, shared memory, and a descriptor of every kernel."""
    source = _INCLUDE.sub("", source)
    source = "".join(_without_asm(source))
    source = _DYNAMIC.sub(_dynamic, source)
    numbers = itertools.count()
    source = _STATIC.sub(lambda match: _static(match, next(numbers)), source)
    kernels = dict.fromkeys(_KERNEL.findall(source))
    ends = "\n".join(f"EMULATOR_KERNEL({name})" for name in kernels)
    return f'#include "kernel.h"\n#line 1 "kernel.cu"\n{source}\n{ends}\n'


def _dynamic(match: re.Match[str]) -> str:
    word, name, align = match["type"], match["name"], match["align"] or 16
    return f"{word}* const {name} = static_cast<{word}*>(emulator_dynamic_shared({align}));"


def _static(match: re.Match[str], number: int) -> str:
    word, count, align = (
        match["type"],
        match["count"],
        match["align"] or f"alignof({match['type']})",
    )
    return (
        f"{word} (&{match['name']})[{count}] = *static_cast<{word} (*)[{count}]>("
        f"emulator_static_shared({number}, sizeof({word}) * ({count}), {align}));"
    )


def _without_asm(source: str) -> Iterator[str]:
    position = 0
    while found := _ASM.search(source, position):
        yield source[position : found.start()]
        end = _closing(source, found.end())
        yield _parse(source[found.end() : end]).translate()
        yield "\n" * source.count("\n", found.start(), end)
        position = end + 1
    yield source[position:]


def _closing(text: str, start: int) -> int:
    """The position of the parenthesis that closes the one before ``start``."""
    depth, position = 1, start
    while True:
        character = text[position]
        if character == '"':
            position = _string_end(text, position)
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if not depth:
                return position
        position += 1


def _string_end(text: str, start: int) -> int:
    position = start + 1
    while text[position] != '"':
        position += 2 if text[position] == "\\" else 1
    return position


def _parse(text: str) -> Asm:
    sections = [*_split(text, ":"), "", "", ""]
    strings = re.findall(r'"(?:[^"\\]|\\.)*"', sections[0])
    template = "".join(ast.literal_eval(item) for item in strings)
    return Asm(template, _operands(sections[1]), _operands(sections[2]))


def _operands(section: str) -> list[tuple[str, str]]:
    found = []
    for item in _split(section, ","):
        if item.strip():
            parts = re.fullmatch(r'\s*"([^"]*)"\s*\((.*)\)\s*', item, re.DOTALL)
            assert parts, item
            constraint, expression = parts.groups()
            found.append((constraint, f"({expression})"))
    return found


def _split(text: str, separator: str) -> list[str]:
    """Splits outside of strings and brackets; ``::`` separates nothing when it names a scope."""
    parts, last, position, depth = [], 0, 0, 0
    while position < len(text):
        character = text[position]
        if character == '"':
            position = _string_end(text, position)
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == separator and not depth:
            parts.append(text[last:position])
            last = position + 1
        position += 1
    return [*parts, text[last:]]
