"""Inline PTX as calls of the emulated instructions.

An ``asm`` statement becomes a block of C++ that reads its operands, runs its instructions one by
one and writes its results. What is not known raises an error with the instruction.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

_WORDS = {"b8": "uint8_t", "u8": "uint8_t", "s8": "int8_t", "b16": "uint16_t", "u16": "uint16_t"}
_WORDS |= {"s16": "int16_t", "b32": "uint32_t", "u32": "uint32_t", "s32": "int32_t"}
_WORDS |= {"b64": "uint64_t", "u64": "uint64_t", "s64": "int64_t", "f32": "float", "f64": "double"}
_WORDS |= {"f16": "half", "bf16": "nv_bfloat16", "pred": "bool"}
_CONSTRAINTS = {"h": "uint16_t", "r": "uint32_t", "l": "uint64_t", "f": "float", "d": "double"}
_ELEMENTS = {"f16": "F16", "bf16": "BF16", "tf32": "TF32", "s8": "S8", "u8": "U8"}
_ELEMENTS |= {"e4m3": "E4M3", "e5m2": "E5M2"}
_SPECIAL = {"%laneid": "emulator_current->lane", "%warpid": "emulator_current->warp"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BINARY = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>"}
_IGNORED = (
    "wgmma.fence",
    "fence.",
    "membar.",
    "prefetch",
    "createpolicy",
    "griddepcontrol",
    "discard",
)
_counter = itertools.count()


class UnknownInstruction(Exception):
    """An instruction that is not emulated."""


@dataclass(frozen=True)
class Asm:
    """An ``asm`` statement: its text, and (constraint, expression) of its operands."""

    text: str
    outputs: list[tuple[str, str]]
    inputs: list[tuple[str, str]]

    def translate(self) -> str:
        """The statement as C++."""
        number = next(_counter)
        names = [f"ptx{number}_{i}" for i in range(len(self.outputs) + len(self.inputs))]
        lines, stores = [], []
        for name, (constraint, expression) in zip(names, self.outputs):
            word = _CONSTRAINTS[constraint.strip("=+&")]
            start = f" = ptx_bits<{word}>({expression})" if "+" in constraint else "{}"
            lines.append(f"{word} {name}{start};")
            stores.append(f"ptx_store({expression}, {name});")
        for name, (constraint, expression) in zip(names[len(self.outputs) :], self.inputs):
            if constraint == "n":
                lines.append(f"constexpr auto {name} = {expression};")
            else:
                lines.append(f"auto {name} = ptx_bits<{_CONSTRAINTS[constraint]}>({expression});")
        body = _Body(names, number)
        return " ".join(["{", *lines, *map(body.statement, _split(self.text)), *stores, "}"])


def _split(text: str) -> list[str]:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"(?<![%\w,\s])\s*\{(?=\s*(\.reg|\n|$))|^\s*\{(?!.*\}.*;)", "", text.strip())
    pieces = [piece.strip() for piece in text.replace("\n", " ").split(";")]
    return [piece for piece in pieces if piece and piece not in "{}"]


class _Body:
    """Translates the instructions of one statement."""

    def __init__(self, names: list[str], number: int) -> None:
        self.names, self.number = names, number
        self.registers: dict[str, str] = {}

    def statement(self, text: str) -> str:
        text = text.strip().lstrip("{").strip()
        label = re.match(r"(\w[\w%=]*):\s*", text)
        prefix = ""
        if label:
            prefix = f"{self._label(label[1])}: ;"
            text = text[label.end() :]
        if not text or text == "}":
            return prefix
        if text.startswith(".reg"):
            return prefix + self._declare(text)
        guard = re.match(r"@(!?)([%\w]+)\s+", text)
        code = self._instruction(text[guard.end() :] if guard else text)
        if guard:
            code = f"if ({guard[1]}{self._operand(guard[2])}) {{ {code} }}"
        return prefix + code

    def _label(self, name: str) -> str:
        return f"ptx_label{self.number}_{re.sub(r'[^A-Za-z0-9_]', '_', name)}"

    def _declare(self, text: str) -> str:
        match = re.match(r"\.reg\s+\.(\w+)\s+(.*)", text)
        assert match, text
        word, lines = _WORDS[match[1]], []
        for name in match[2].split(","):
            many = re.match(r"(%?\w+)<(\d+)>", name.strip())
            every = [f"{many[1]}{i}" for i in range(int(many[2]))] if many else [name.strip()]
            for one in every:
                self.registers[one] = f"ptx{self.number}_r{one.lstrip('%')}"
                lines.append(f"{word} {self.registers[one]}{{}};")
        return " ".join(lines)

    def _operand(self, text: str) -> str:
        text = text.strip()
        if re.fullmatch(r"%\d+", text):
            return self.names[int(text[1:])]
        if text in self.registers:
            return self.registers[text]
        if text in _SPECIAL:
            return _SPECIAL[text]
        if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", text):
            return f"__uint_as_float(0x{text[2:]}u)"
        if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)U?", text):
            return text
        raise UnknownInstruction(f"operand {text!r}")

    def _address(self, text: str, shared: bool = False) -> str:
        match = re.fullmatch(r"\[\s*([%\w]+)\s*(?:\+\s*(\w+))?\s*\]", text.strip())
        if not match:
            raise UnknownInstruction(f"address {text!r}")
        offset = f" + {match[2]}" if match[2] else ""
        address = f"(static_cast<uint64_t>({self._operand(match[1])}){offset})"
        if shared:
            return f"reinterpret_cast<uint64_t>(emulator_shared_address{address})"
        return address

    def _list(self, text: str) -> list[str]:
        return [self._operand(item) for item in text.strip().strip("{}").split(",")]

    def _instruction(self, text: str) -> str:
        parts = text.split(None, 1)
        opcode, rest = parts[0], parts[1] if len(parts) > 1 else ""
        arguments = [a.strip() for a in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*", rest)]
        for pattern, method in _TABLE:
            match = re.fullmatch(pattern, opcode)
            if match:
                return method(self, match, arguments)
        if opcode.startswith(_IGNORED):
            return ";"
        raise UnknownInstruction(f"PTX instruction {text!r} is not emulated")

    # ---- one method per family ----
    def mma(self, match: re.Match[str], arguments: list[str]) -> str:
        k, d, a, b = int(match[1]), match[2], match[3], match[4]
        result, left, right, start = (self._list(argument) for argument in arguments)
        word = {"f32": "float", "s32": "int32_t", "f16": "uint32_t"}[d]
        call = "multiply_f16" if d == "f16" else "multiply"
        kinds = f"emulator::{_ELEMENTS[a]}, emulator::{_ELEMENTS[b]}"
        kinds += f", {k}" if d == "f16" else f", {word}, {k}"
        stores = " ".join(f"{name} = ptx_d[{i}];" for i, name in enumerate(result))
        return (
            f"{{ {word} ptx_d[{len(result)}]; "
            f"{_array('uint32_t', 'ptx_a', left)} {_array('uint32_t', 'ptx_b', right)} "
            f"{_array(word, 'ptx_c', start)} "
            f"emulator::{call}<{kinds}>(ptx_d, ptx_a, ptx_b, ptx_c); {stores} }}"
        )

    def ldmatrix(self, match: re.Match[str], arguments: list[str]) -> str:
        result, transposed = self._list(arguments[0]), "true" if match[2] else "false"
        stores = " ".join(f"{name} = ptx_d[{i}];" for i, name in enumerate(result))
        return (
            f"{{ uint32_t ptx_d[{len(result)}]; emulator::load_matrices(ptx_d, "
            f"{self._address(arguments[1], shared=True)}, {transposed}); {stores} }}"
        )

    def group_mma(self, match: re.Match[str], arguments: list[str]) -> str:
        columns, kind = int(match[1]), _ELEMENTS[match[2]]
        if arguments[1].startswith("{"):
            return self._group_mma_of_registers(columns, kind, arguments)
        sums, (left, right, add, *_) = self._list(arguments[0]), map(self._operand, arguments[1:])
        turned = ", ".join("true" if flag == "1" else "false" for flag in arguments[6:8])
        stores = " ".join(f"ptx_store({name}, ptx_d[{i}]);" for i, name in enumerate(sums))
        word = "int32_t" if "8" in match[2] else "float"
        call = f"emulator::multiply_group<emulator::{kind}, {columns}>"
        return (
            f"{{ {_array(word, 'ptx_d', sums)} "
            f"{call}(ptx_d, {left}, {right}, {add}, {turned or 'false, false'}); {stores} }}"
        )

    def _group_mma_of_registers(self, columns: int, kind: str, arguments: list[str]) -> str:
        sums, left = self._list(arguments[0]), self._list(arguments[1])
        right, add = map(self._operand, arguments[2:4])
        turned = "true" if arguments[6:7] == ["1"] else "false"
        stores = " ".join(f"ptx_store({name}, ptx_d[{i}]);" for i, name in enumerate(sums))
        call = f"emulator::multiply_group<emulator::{kind}, {columns}>"
        return (
            f"{{ {_array('float', 'ptx_d', sums)} {_array('uint32_t', 'ptx_a', left)} "
            f"{call}(ptx_d, ptx_a, {right}, {add}, {turned}); {stores} }}"
        )

    def stmatrix(self, match: re.Match[str], arguments: list[str]) -> str:
        transposed = "true" if match[2] else "false"
        values = _array("uint32_t", "ptx_a", self._list(arguments[1]))
        address = self._address(arguments[0], shared=True)
        return f"{{ {values} emulator::store_matrices({address}, ptx_a, {transposed}); }}"

    def cp_async(self, _match: re.Match[str], arguments: list[str]) -> str:
        size = self._operand(arguments[2])
        filled = self._operand(arguments[3]) if len(arguments) > 3 else size
        return (
            f"emulator_copy_later(reinterpret_cast<void*>({self._address(arguments[0], True)}), "
            f"reinterpret_cast<const void*>({self._address(arguments[1])}), {size}, {filled});"
        )

    def commit(self, _match: re.Match[str], _arguments: list[str]) -> str:
        return "emulator_close_copies();"

    def wait(self, _match: re.Match[str], arguments: list[str]) -> str:
        return f"emulator_wait_copies({self._operand(arguments[0]) if arguments else -1});"

    def publish(self, _match: re.Match[str], _arguments: list[str]) -> str:
        return "emulator_publish();"

    def commit_group(self, _match: re.Match[str], _arguments: list[str]) -> str:
        return "emulator_close_group();"

    def wait_group(self, _match: re.Match[str], arguments: list[str]) -> str:
        return f"emulator_wait_group({self._operand(arguments[0])});"

    def barrier(self, _match: re.Match[str], arguments: list[str]) -> str:
        if len(arguments) == 1:
            return "emulator_sync_block(__LINE__);"
        barrier, threads = map(self._operand, arguments)
        return f"emulator_sync_named({barrier}, {threads});"

    def move(self, match: re.Match[str], arguments: list[str]) -> str:
        target, source = arguments
        if source.startswith("{"):
            low, high = self._list(source)
            return f"ptx_pack({self._operand(target)}, {low}, {high});"
        if target.startswith("{"):
            low, high = self._list(target)
            return f"ptx_unpack({self._operand(source)}, {low}, {high});"
        return f"{self._operand(target)} = ptx_bits<{_WORDS[match[1]]}>({self._operand(source)});"

    def convert(self, match: re.Match[str], arguments: list[str]) -> str:
        target, sources = self._operand(arguments[0]), [self._operand(a) for a in arguments[1:]]
        to, origin = match[1], match[2]
        if to in ("f16x2", "bf16x2"):
            kind = "half" if to == "f16x2" else "nv_bfloat16"
            return f"ptx_pack({target}, {kind}({sources[1]}).code, {kind}({sources[0]}).code);"
        if to == "tf32":
            return f"{target} = ptx_tf32({sources[0]});"
        value = f"static_cast<{_WORDS[to]}>(ptx_bits<{_WORDS[origin]}>({sources[0]}))"
        return f"ptx_store({target}, {value});"

    def address_space(self, match: re.Match[str], arguments: list[str]) -> str:
        target, source = map(self._operand, arguments)
        if match[0].startswith("cvta.to.shared"):
            source = f"emulator_shared_offset(reinterpret_cast<const void*>({source}))"
        elif match[0].startswith("cvta.shared"):
            source = f"reinterpret_cast<uint64_t>(emulator_shared_address({source}))"
        return f"{target} = {source};"

    def compare(self, match: re.Match[str], arguments: list[str]) -> str:
        target, left, right = map(self._operand, arguments)
        word = _WORDS[match[2]]
        return f"{target} = {word}({left}) {_COMPARE[match[1]]} {word}({right});"

    def select(self, _match: re.Match[str], arguments: list[str]) -> str:
        target, left, right, condition = map(self._operand, arguments)
        return f"{target} = {condition} ? {left} : {right};"

    def binary(self, match: re.Match[str], arguments: list[str]) -> str:
        target, left, right = map(self._operand, arguments)
        word = _WORDS[match[2]]
        return f"{target} = {word}({left}) {_BINARY[match[1]]} {word}({right});"

    def function(self, match: re.Match[str], arguments: list[str]) -> str:
        target, *values = map(self._operand, arguments)
        return f"ptx_store({target}, ptx_{match[1]}({', '.join(values)}));"

    def dot(self, match: re.Match[str], arguments: list[str]) -> str:
        target, left, right, start = map(self._operand, arguments)
        kinds = f"emulator::{match[1].upper()}8, emulator::{match[2].upper()}8"
        return f"{target} = emulator::dp4a<{kinds}>({left}, {right}, {start});"

    def load(self, match: re.Match[str], arguments: list[str]) -> str:
        targets, word = self._list(arguments[0]), _WORDS[match[2]]
        whole = f"emulator::Aligned<{word}, {len(targets)}>"
        stores = " ".join(f"ptx_store({t}, ptx_v.at[{i}]);" for i, t in enumerate(targets))
        address = self._address(arguments[1], shared=".shared" in match[0])
        return f"{{ auto ptx_v = *reinterpret_cast<const {whole}*>({address}); {stores} }}"

    def store(self, match: re.Match[str], arguments: list[str]) -> str:
        sources, word = self._list(arguments[1]), _WORDS[match[2]]
        values = ", ".join(f"ptx_bits<{word}>({source})" for source in sources)
        whole = f"emulator::Aligned<{word}, {len(sources)}>"
        address = self._address(arguments[0], shared=".shared" in match[0])
        return f"*reinterpret_cast<{whole}*>({address}) = {whole}{{{{{values}}}}};"

    def branch(self, _match: re.Match[str], arguments: list[str]) -> str:
        return f"goto {self._label(arguments[0])};"


def _array(word: str, name: str, values: list[str]) -> str:
    items = ", ".join(f"ptx_bits<{word}>({value})" for value in values)
    return f"{word} {name}[{len(values)}] = {{{items}}};"


_MMA = r"mma\.sync\.aligned\.m16n8k(\d+)\.row\.col(?:\.satfinite)?\.(\w+)\.(\w+)\.(\w+)\.\w+"
_SPACE = r"(?:\.\w+)??\.(?:shared|global|volatile)((?:(?:::|\.)(?!v\d|[bsuf]\d)[\w:]+)*)"
_TABLE = [
    (
        r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(?:16|32)\.\w32\.(b?f16|[su]8)\.\w+",
        _Body.group_mma,
    ),
    (r"wgmma\.commit_group\.sync\.aligned", _Body.commit_group),
    (r"wgmma\.wait_group\.sync\.aligned", _Body.wait_group),
    (r"fence\.proxy\.async(?:\.shared::cta)?", _Body.publish),
    (_MMA, _Body.mma),
    (r"ldmatrix\.sync\.aligned\.m8n8\.x(\d)(\.trans)?\.shared(?:::cta)?\.b16", _Body.ldmatrix),
    (r"stmatrix\.sync\.aligned\.m8n8\.x(\d)(\.trans)?\.shared(?:::cta)?\.b16", _Body.stmatrix),
    (r"cp\.async\.c[ag]\.shared(?:::cta|::cluster)?\.global(?:\.L2::\w+)?", _Body.cp_async),
    (r"cp\.async\.commit_group", _Body.commit),
    (r"cp\.async\.wait_(?:group|all)", _Body.wait),
    (r"(?:bar|barrier)(?:\.cta)?\.sync(?:\.aligned)?", _Body.barrier),
    (r"mov\.(\w+)", _Body.move),
    (r"cvta\.to\.(?:shared|global)\.u(?:32|64)|cvta\.\w+\.u64", _Body.address_space),
    (r"cvt(?:\.r\w+)?(?:\.satfinite|\.sat|\.ftz)?\.(\w+)\.(\w+)", _Body.convert),
    (r"setp\.(\w\w)\.(\w+)", _Body.compare),
    (r"selp\.\w+", _Body.select),
    (r"(add|sub|and|or|xor|shl|shr)\.(?:rn\.)?(\w+)", _Body.binary),
    (r"(ex2|lg2|rcp|tanh|sqrt|rsqrt)\.approx(?:\.ftz)?\.f32", _Body.function),
    (r"(fma|mul|max|min|div)(?:\.rn|\.full)?(?:\.ftz)?(?:\.NaN)?\.f32", _Body.function),
    (rf"ld{_SPACE}(?:\.v\d)?\.(\w+)", _Body.load),
    (rf"st{_SPACE}(?:\.v\d)?\.(\w+)", _Body.store),
    (r"dp4a\.([us])32\.([us])32", _Body.dot),
    (r"bra(?:\.uni)?", _Body.branch),
]
