"""Writes random programs: rows of the table on each other's results, and Python around them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

import tvmgraph as ms
from tests.fuzz.phrases import (
    AIMED,
    CONTRACTIONS,
    IDIOMS,
    REDUCTIONS,
    SAME,
    TESTS,
    VIEWS,
    WRITES,
)
from tests.fuzz.programs import MOST_ELEMENTS, TEMPLATES, Program, R, Step, literal
from tvmgraph import Tensor, dtypes, nn, ops
from tvmgraph.core import storage
from tvmgraph.errors import TvmgraphError
from tvmgraph.testing.samples import Case, _generate

_MOST_INPUTS = 6
_TURNS = 4  # of so many large programs one is aimed at a kernel
_ATTEMPTS = 8
_HALF = ("float16", "bfloat16")
_DTYPES = ("float32",) * 6 + ("float16", "bfloat16", "float64", "int32", "int64", "uint8", "int8",
                              "int16", "uint32", "bool")  # fmt: skip
_ROWS = sorted(TEMPLATES)
_SLOW = frozenset(("igamma", "igammac", "zeta", "lgamma"))  # to compile
#: Rows and words whose differences say nothing of a derivative.
_STEPPING = frozenset(("floor", "ceil", "trunc", "round", "sign", "fmod", "floor_mod",
                       "floor_divide", "trunc_div", "gradient_barrier"))  # fmt: skip
_NOT_SMOOTH = ("rand", "dropout", "uniform", "bernoulli", "ms.", "floor", "ceil", "trunc", "round",
               "sign", "%", "//")  # fmt: skip
_SIZES = (1, 1, 2, 3, 3, 4, 5, 7, 8, 16, 17, 33)
#: Elements from which on loops are divided among threads, and reductions over all of them.
_PARALLEL = (1 << 15, 1 << 16)
_MOST_LARGE = 1 << 18  # of a large program's values
_MOST_PAIRS = 1 << 22  # ONNX's form of a search compares every value with the whole sequence
#: All but one of the sizes of large programs; the last is what makes them parallel.
_OUTER = ((), (17,), (64,), (200,), (256,), (2, 33), (3, 100), (8, 8), (16, 16))
_SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 65504.0, 0.5)


class Generator:
    """Writes one program.

    Args:
        seed: Seed of all choices.
        smooth: Only float64 and no random draws: a program whose gradient has finite differences.
        large: Values are large enough for several threads and for tiles.
        turn: Number among the large programs, which take turns with :data:`AIMED`.
    """

    def __init__(self, seed: int, smooth: bool = False, large: bool = False, turn: int = 0) -> None:
        self.r = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.seed, self.smooth, self.large, self.turn = seed, smooth, large, turn
        self.steps: list[Step] = []
        self.inputs: dict[str, np.ndarray] = {}
        self.parameters: dict[str, np.ndarray] = {}
        self.names: list[str] = []  # what a step may read, newest last
        self.holder = nn.Cell()
        self.env: dict[str, Any] = {
            "ms": ms, "np": np, "ops": ops, "nn": nn, "Tensor": Tensor, "R": R, "self": self.holder,
        }  # fmt: skip
        self.shape = self.large_shape() if large else self.small_shape()
        palette = ("float64",) if smooth else _DTYPES
        self.dtypes = [self.r.choice(palette) for _ in range(self.r.randint(1, 3))]
        self.count = 0

    # ---- values -----------------------------------------------------------------------------

    def small_shape(self) -> tuple[int, ...]:
        """Returns the shape that values have or broadcast to."""
        sizes = [self.r.choice(_SIZES) for _ in range(3)]
        if self.r.random() < 0.06:
            sizes[self.r.randrange(3)] = 0
        return tuple(sizes[: self.r.randint(1, 3)])

    def large_shape(self) -> tuple[int, ...]:
        """Returns a shape of more elements than one thread works on, rarely a multiple of lanes."""
        outer = self.r.choice(_OUTER)
        last = self.r.choice(_PARALLEL) // math.prod(outer) + self.r.choice((1, 2, 7, 16, 33))
        return tuple(self.r.sample((*outer, last), len(outer) + 1))

    def run(self) -> Program:
        """Returns the program."""
        if self.large and is_aimed(self.turn):
            self.aimed(*AIMED[self.turn // _TURNS % len(AIMED)])
        for _ in range(self.r.randint(1, 2)):
            self.given(self.random_array(shape=self.shape if self.large else None))
        wanted = min(self.r.randint(3, 12), self.r.randint(3, 12))
        for _ in range(4 * wanted):
            if len(self.steps) >= wanted:
                break
            self.step()
        if not self.inputs and all("." in n for s in self.steps for n in s.defines):
            x, new = self.names[-1], self.fresh()  # all that it has done is write to parameters
            self.attempt(f"{new} = {x} + 0", (x,), (new,))
        return self.program()

    def program(self) -> Program:
        """Returns what is there so far as a program."""
        read = {n for s in self.steps for n in s.reads if n not in s.defines}
        made = list(dict.fromkeys(n for s in self.steps for n in s.defines if "." not in n))
        outputs = [n for n in made if n not in read]
        outputs += [n for n in made if n in read and self.r.random() < 0.15]
        outputs = outputs or made or list(self.inputs)
        values = {n: v.asnumpy().copy() for n, v in self.env.items() if type(v) is Tensor}
        program = Program(
            self.seed, self.inputs, self.parameters, tuple(self.steps), tuple(outputs), values
        )
        return program.trimmed()

    def random_array(self, dtype: str = "", shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Returns numbers of a dtype of the program, in a shape that broadcasts with its shape."""
        kind = dtypes.dtype_of(dtype or self.r.choice(self.dtypes))
        if shape is None:
            shape = tuple(d if self.r.random() < 0.8 else 1 for d in self.shape)
            shape = shape[self.r.choice((0, 0, 0, 1, 2)) :]
        if kind is dtypes.bool_:
            return self.rng.random(shape) < 0.5
        if kind.is_integer:
            low = 0 if kind.name.startswith("u") else -5
            return self.rng.integers(low, 6, shape).astype(kind.numpy)
        scale = self.r.choice((1.0, 1.0, 1.0, 0.1, 10.0))
        array = np.asarray(self.rng.standard_normal(shape) * scale)
        if self.r.random() < 0.2:
            array = np.round(array)
        if self.r.random() < 0.05 and not self.smooth and array.size:
            array.flat[self.rng.integers(array.size)] = self.r.choice(_SPECIAL)
        with np.errstate(over="ignore"):
            return np.asarray(array.astype(kind.numpy))

    def given(self, array: np.ndarray, argument: bool = False) -> str:
        """Returns the name of a new argument or parameter (unless told) with this value."""
        if (
            not argument
            and dtypes.dtype_of(array.dtype).is_float
            and array.size
            and self.r.random() < 0.25
        ):
            name = f"p{len(self.parameters)}"
            self.parameters[name] = array
            setattr(self.holder, name, ms.Parameter(Tensor(array.copy()), name=name))
            self.names.append(f"self.{name}")
            return f"self.{name}"
        name = f"x{len(self.inputs)}"
        self.inputs[name] = array
        self.env[name] = Tensor(array.copy())
        self.names.append(name)
        return name

    def value(self, name: str) -> Tensor:
        """Returns what a name holds in eager code."""
        return getattr(self.holder, name[5:]) if name.startswith("self.") else self.env[name]

    def pick(self) -> str:
        """Returns a name, a recent one more often."""
        n = len(self.names)
        if n >= 1 and self.r.random() < 0.9:
            return self.names[max(self.r.randrange(n) for _ in range(3))]
        return self.given(self.random_array()) if len(self.inputs) < _MOST_INPUTS else self.names[0]

    def fresh(self) -> str:
        """Returns a new name."""
        self.count += 1
        return f"v{self.count}"

    # ---- steps ------------------------------------------------------------------------------

    def step(self) -> None:
        """Adds a step, if what was chosen is accepted."""
        kinds: list[tuple[Callable[[], Any], float]] = [
            (self.row_on_values, 5), (self.row_like_sample, 5), (self.idiom, 5), (self.view, 1),
            (self.write, 1), (self.dense, 0.4), (self.convolution, 0.2), (self.branch, 0.7),
            (self.loop, 0.4), (self.assign, 0.5),
        ]  # fmt: skip
        if self.large:  # what brings values to the sizes of samples is left out
            kinds = [
                (self.row_on_values, 5), (self.idiom, 3), (self.reduction, 4),
                (self.contraction, 2), (self.view, 1), (self.write, 3), (self.dense, 1.5),
                (self.convolution, 1.5), (self.branch, 0.5), (self.loop, 0.3), (self.assign, 1),
            ]  # fmt: skip
        choose = self.r.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
        choose()

    def attempt(
        self, code: str, reads: Sequence[str], defines: Sequence[str], rows: Sequence[str] = ()
    ) -> bool:
        """Runs lines eagerly, and adds them if they are accepted and their results are fit."""
        copies = {n: v.asnumpy().copy() for n, v in self.env.items() if type(v) is Tensor}
        stored = {p: getattr(self.holder, p).asnumpy().copy() for p in self.parameters}
        try:
            exec(code, self.env)
            if all(self.fits(n) for n in defines):
                self.steps.append(Step(code, tuple(reads), tuple(defines), tuple(rows)))
                self.names += [n for n in defines if n not in self.names]
                return True
        except (TvmgraphError, IndexError, OverflowError, TypeError, ValueError):
            pass
        self.restore(copies, stored, defines)
        return False

    def restore(
        self, copies: dict[str, Any], stored: dict[str, Any], defines: Sequence[str]
    ) -> None:
        """Undoes what refused lines have changed."""
        for n in defines:
            self.env.pop(n, None)
        for n, a in copies.items():
            self.env[n] = Tensor(a)
        for p, a in stored.items():
            setattr(self.holder, p, ms.Parameter(Tensor(a), name=p))

    def fits(self, name: str) -> bool:
        """Whether a result is a tensor that further steps may use."""
        found = self.value(name)
        if not isinstance(found, Tensor) or found.asnumpy().dtype.kind == "c":
            return False
        array = found.asnumpy()
        if array.size > (_MOST_LARGE if self.large else MOST_ELEMENTS):
            return False
        if array.dtype.kind not in "fV" or not array.size:
            return True
        if self.smooth and array.dtype != np.float64:
            return False
        lost = not np.any(np.isfinite(array.astype(np.float64)))
        return not lost or (not self.smooth and self.r.random() < 0.02)

    def sample(self) -> Case:
        """Returns a sample of some row."""
        while True:
            name = self.r.choice(_ROWS)
            case = self.r.choice(TEMPLATES[name])
            if name in _SLOW and self.r.random() < 0.8:
                continue
            if name == "digamma" and self.large:  # one of a thousand values is at a pole
                continue
            if not self.smooth or (case.sample.grad and name not in _STEPPING):
                return case

    def row_on_values(self) -> None:
        """A row on values as they are."""
        for _ in range(_ATTEMPTS):
            case = self.sample()
            operands = [self.pick() for _ in case.sample.shapes]
            if self.call(case, operands):
                return

    def call(self, case: Case, given: Sequence[str]) -> bool:
        """Adds the call of a row on named operands."""
        before, operands = [], given
        op, attrs = case.op, case.sample.attrs
        if op.name == "search_sorted":
            sequence, values = map(self.value, given)
            if sequence.shape[-1:] and sequence.shape[-1] * values.size > _MOST_PAIRS:
                return False
            new = self.fresh()
            before, operands = [f"{new} = ops.sort({given[0]})[0]"], [new, *given[1:]]
        named = [f"{t}={o}" for t, o in zip(op.tensors, operands)]
        args = [*operands] if op.variadic else named
        args += [f"{k}={literal(v)}" for k, v in attrs.items()]
        count = len(case.graph().outputs)
        names = [self.fresh() for _ in range(count)]
        target = f"{', '.join(names)}{',' if op.multi and count == 1 else ''}"
        code = "\n".join([*before, f"{target} = R.{op.name}({', '.join(args)})"])
        return self.attempt(code, given, names, (op.name,))

    def row_like_sample(self) -> None:
        """A row on values that were brought to the shapes and dtypes of one of its samples."""
        case = self.sample()
        s = case.sample
        kinds = s.dtype if isinstance(s.dtype, tuple) else (s.dtype,) * len(s.shapes)
        if self.smooth:
            kinds = tuple("float64" if dtypes.dtype_of(k).is_float else k for k in kinds)
        elif kinds and self.r.random() < 0.5:  # another dtype that the row declares
            other = self.r.choice(self.dtypes)
            kinds = tuple(other if k == kinds[0] else k for k in kinds)
        operands = [self.operand(shape, kind, case) for shape, kind in zip(s.shapes, kinds)]
        self.call(case, operands)

    def operand(self, shape: Any, kind: str, case: Case) -> str:
        """Returns the name of a value that suits an argument of a sample."""
        if isinstance(shape, np.ndarray):
            return self.given(shape.astype(np.float64) if self.smooth and shape.dtype.kind == "f"
                              else shape)  # fmt: skip
        if self.r.random() < 0.6:
            found = self.brought(self.pick(), tuple(shape), dtypes.dtype_of(kind), case)
            if found:
                return found
        low = max(case.sample.low, 0) if kind.startswith("u") else case.sample.low
        usual = replace(case.sample, low=low, high=max(case.sample.high, low + 1))
        return self.given(_generate(self.rng, shape, kind, usual))

    def brought(self, name: str, shape: tuple[int, ...], kind: Any, case: Case) -> str | None:
        """Adds steps that give a value another shape and dtype; returns the result's name."""
        value = self.value(name)
        array, wanted = value.asnumpy(), int(np.prod(shape))
        if wanted and not array.size:
            return None
        text = name
        if array.shape != shape:
            flat, count = f"{text}.reshape(-1)", -(-wanted // max(array.size, 1))
            flat = f"ops.tile({flat}, ({count},))" if count > 1 else flat
            same = array.size == wanted
            text = f"{text}.reshape({shape})" if same else f"{flat}[:{wanted}].reshape({shape})"
        if value.dtype is not kind:
            if value.dtype.is_float and not kind.is_float:
                return None
            text = f"ops.cast({text}, {literal(kind)})"
        if kind.is_float and array.size and kind.name not in _HALF:
            low, high = case.sample.low, case.sample.high
            wide = array.astype(np.float64)
            if not np.all((wide >= low) & (wide <= high)):
                text = f"ops.clamp({text}, {low}, {high})"
        elif kind.is_integer:
            text = f"ops.clamp({text}, {int(case.sample.low)}, {int(case.sample.high)})"
        if text == name:
            return name
        new = self.fresh()
        return new if self.attempt(f"{new} = {text}", (name,), (new,)) else None

    def idiom(self) -> None:
        """An expression as people write it, or as rules rewrite it."""
        self.expression(IDIOMS)

    def reduction(self) -> None:
        """Something that is computed of many elements each."""
        self.expression(REDUCTIONS)

    def contraction(self) -> None:
        """A product of values with each other."""
        self.expression(CONTRACTIONS)

    def expression(self, texts: Sequence[str]) -> None:
        """One of some expressions of two values."""
        for _ in range(_ATTEMPTS):
            x, y, new = self.pick(), self.pick(), self.fresh()
            text = self.r.choice(texts).format(x=x, y=y)
            if self.smooth and any(word in text for word in _NOT_SMOOTH):
                continue
            if self.attempt(f"{new} = {text}", (x, y), (new,)):
                return

    def weight(self, *shape: int, dtype: str = "") -> str:
        """Returns the name of a new parameter."""
        name = f"p{len(self.parameters)}"
        kind = dtypes.dtype_of(dtype or ("float64" if self.smooth else "float32")).numpy
        self.parameters[name] = np.asarray(self.rng.standard_normal(shape).astype(kind))
        setattr(self.holder, name, ms.Parameter(Tensor(self.parameters[name].copy()), name=name))
        self.names.append(f"self.{name}")
        return f"self.{name}"

    def dense(self) -> None:
        """A product with a parameter, narrow or wide."""
        x, new = self.pick(), self.fresh()
        if self.value(x).ndim < 2 or self.value(x).dtype.name not in ("float32", "float64"):
            return
        w = self.weight(int(self.value(x).shape[-1]), self.r.choice((3, 8, 70)))
        text = self.r.choice(("ops.matmul({x}, {w})", "ops.relu(ops.matmul({x}, {w}))"))
        self.attempt(f"{new} = {text.format(x=x, w=w)}", (x, w), (new,), ("matmul",))

    def convolution(self) -> None:
        """A convolution with parameters, scaled or not."""
        channels, width = self.r.choice((1, 3, 16)), self.r.choice((4, 16))
        sides = (self.r.choice((28, 41)), self.r.choice((28, 37))) if self.large else (6, 5)
        x = self.given(self.random_array("float64" if self.smooth else "float32",
                                         (self.r.choice((1, 2)), channels, *sides)))  # fmt: skip
        kind, new = self.r.choice(("convolution", "conv_transpose")), self.fresh()
        transposed = kind == "conv_transpose"
        order = (channels, width) if transposed else (width, channels)
        w, scale = self.weight(*order, 3, 3), self.weight(width, 1, 1)
        steps = self.r.choice(((1, 1), (2, 2)))
        more = ", output_padding=(0, 0)" if transposed else ""
        text = (
            f"R.{kind}(input={x}, weight={w}, stride={steps}, padding=((1, 1), (1, 1)){more}, "
            f"dilation=(1, 1), groups=1)"
        )
        text = self.r.choice(("{t}", "{t} * {s}", "ops.relu({t} * {s} + {s})")).format(
            t=text, s=scale
        )
        self.attempt(f"{new} = {text}", (x, w, scale), (new,), (kind,))

    def aimed(self, code: str, dtype: str, inputs: Any, weights: Any) -> None:
        """Code with arguments and parameters of its own."""
        names = {k: self.given(self.random_array(dtype, s), True) for k, s in zip("xyz", inputs)}
        names |= {k: self.weight(*s, dtype=dtype) for k, s in zip("pq", weights)}
        new = self.fresh()
        written = [names["p"]] if code.startswith("{p} =") else []
        self.attempt(code.format(v=new, **names), [*names.values()], [new, *written])

    def view(self) -> None:
        """A part of a value, which shares its memory when it is written to."""
        for _ in range(_ATTEMPTS):
            x, new = self.pick(), self.fresh()
            if self.attempt(f"{new} = {self.r.choice(VIEWS).format(x=x)}", (x,), (new,)):
                return

    def write(self) -> None:
        """Changes a value in place."""
        for _ in range(_ATTEMPTS):
            x, y, k = self.pick(), self.pick(), self.r.choice((0, 1, 3))
            if x.startswith("x"):  # an argument belongs to the caller
                continue
            text = self.r.choice(WRITES).format(x=x, y=y, k=k)
            if self.attempt(text, (x, y), (x,)):
                return

    def assign(self) -> None:
        """Gives a parameter a new value."""
        if not self.parameters:
            return
        name = f"self.{self.r.choice(list(self.parameters))}"
        for _ in range(_ATTEMPTS):
            x = self.pick()
            text = self.r.choice(("{p} = {v}", "ops.assign({p}, {v})", "{p} += {v}"))
            value = self.r.choice(("{p} * 0.5", "{p} + {x}", "ops.tanh({p})", "{x}"))
            text = text.format(p=name, v=value.format(p=name, x=x))
            if self.value(x).aval is self.value(name).aval and self.attempt(
                text, (x, name), (name,)
            ):
                return

    def same_kind(self, target: str, depth: int) -> str:
        """Returns a line that gives ``target`` a new value of its type."""
        text = self.r.choice(SAME).format(x=target, y=self.pick())
        return "    " * depth + f"{target} = {text}"

    def branch(self) -> None:
        """An ``if`` that a tensor decides."""
        x, y, new = self.pick(), self.pick(), self.fresh()
        test = self.r.choice(TESTS).format(x=y)
        lines = [f"{new} = {x} + 0", f"if {test}:", self.same_kind(new, 1)]
        if self.r.random() < 0.6:
            lines += ["else:", self.same_kind(new, 1)]
        self.control(lines, (x, y), new)

    def loop(self) -> None:
        """A ``while`` or ``for`` that a tensor decides, or whose body a tensor decides."""
        x, y, new = self.pick(), self.pick(), self.fresh()
        count, test = self.r.randint(1, 4), self.r.choice(TESTS).format(x=new)
        start = f"{new} = {x} + 0"
        if self.r.random() < 0.5:
            lines = [start, f"n{new} = Tensor({count})", f"while n{new} > 0:",
                     self.same_kind(new, 1), f"    n{new} = n{new} - 1"]  # fmt: skip
        else:
            lines = [start, f"for _ in range({count}):", self.same_kind(new, 1), f"    if {test}:"]
            lines += [self.same_kind(new, 2)] if self.r.random() < 0.5 else ["        break"]
        self.control(lines, (x, y), new)

    def control(self, lines: list[str], reads: tuple[str, ...], new: str) -> None:
        """Adds control flow whose branches give values of one type."""
        code = "\n".join(lines)
        start = dict(self.env)
        exec_ok = True
        try:
            exec(lines[0], start)
            kind = start[new].aval
            for line in lines[1:]:
                if line.strip().startswith(f"{new} ="):
                    scope = dict(self.env)
                    scope[new] = start[new]
                    exec(line.strip(), scope)
                    exec_ok = exec_ok and scope[new].aval is kind
        except (TvmgraphError, IndexError, OverflowError, TypeError, ValueError):
            return
        names = [n for n in self.names if n in code]
        if exec_ok:
            self.attempt(code, tuple(dict.fromkeys((*reads, *names))), (new,))


def generate(seed: int, smooth: bool = False, large: bool = False, turn: int = 0) -> Program:
    """Returns the program of a seed, see :class:`Generator`."""
    ms.set_seed(seed)
    with mock.patch.object(storage, "_available", lambda: 0):  # an outer product may be gigabytes
        return Generator(seed, smooth, large, turn).run()


def is_aimed(turn: int) -> bool:
    """Whether the large program of a number begins with an entry of :data:`.phrases.AIMED`."""
    return turn % _TURNS == _TURNS - 1


def aimed(number: int) -> Program:
    """Returns the program of nothing but an entry of :data:`.phrases.AIMED`."""
    generator = Generator(2 * number + 1, large=True)  # odd seeds are not of float64
    generator.aimed(*AIMED[number])
    return generator.program()
