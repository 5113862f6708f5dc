"""One program per kind of thing outside of a function that can change; imported afresh per test."""

from __future__ import annotations

import enum
import functools
import logging
import operator
import os
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tvmgraph import Parameter, Tensor, nn

SCALE = 2
TABLE = {"k": 3.0}
FACTOR = Tensor([2.0])
VARIABLE = "TVMGRAPH_GUARDED"
module = types.ModuleType("settings")
module.scale = 2.0  # pyright: ignore[reportAttributeAccessIssue]


def helper(x: Tensor) -> Tensor:
    return x * 2


def other_helper(x: Tensor) -> Tensor:
    return x * 7


def plus(a: float, b: float) -> float:
    return a + b


def times(a: float, b: float) -> float:
    return a * b


class Mode(enum.Enum):
    ADD = 1
    MUL = 2


class Plain:
    shared = 2.0

    def __init__(self) -> None:
        self.value = 2.0
        self.inner = types.SimpleNamespace(k=2.0)

    def method(self, x: Tensor) -> Tensor:
        return x * self.value


class Net(nn.Cell):
    shared = 2.0

    def __init__(self) -> None:
        super().__init__()
        self.value = 2.0
        self.items = [1.0, 2.0]
        self.array = np.array([2.0], np.float32)
        self.mode = Mode.ADD
        self.layer: nn.Cell = nn.Dropout(p=0.5)
        self.weight = Parameter(Tensor([2.0]), name="weight")
        self.history: list[Any] = []
        self.note = "unread"

    def extra(self, x: Tensor) -> Tensor:
        return x

    def construct(self, x: Tensor) -> Tensor:
        x = x * self.value * self.items[1] + Tensor(self.array) + self.shared
        x = x + 1 if self.mode is Mode.ADD else x * 10
        return self.extra(self.layer(x)) * self.weight


net = Net()
plain = Plain()
logger = logging.Logger("guarded", 10)


def closure_maker() -> tuple[Callable[[Tensor], Tensor], Callable[[float], None]]:
    k = 2.0

    def f(x: Tensor) -> Tensor:
        return x * k

    def change(value: float) -> None:
        nonlocal k
        k = value

    return f, change


closed, change_closed = closure_maker()


def setter(owner: Any, name: str, value: Any) -> Callable[[], None]:
    return lambda: setattr(owner, name, value)


def adder(name: str, value: Any) -> Callable[[], None]:
    return lambda: globals().__setitem__(name, value)


def default_argument(x: Tensor, k: float = 2.0) -> Tensor:
    return x * k


def swap_code() -> None:
    helper.__code__ = other_helper.__code__


def swap_plus() -> None:
    plus.__code__ = times.__code__


PROGRAMS: dict[str, tuple[Callable[[Tensor], Any], list[Callable[[], None]]]] = {
    "global": (lambda x: x * SCALE, [adder("SCALE", 5)]),
    "global container": (lambda x: x * TABLE["k"], [lambda: TABLE.update(k=7.0)]),
    "builtin that becomes a global": (lambda x: x * abs(-2), [adder("abs", lambda v: 9)]),
    "member of a module": (lambda x: x * module.scale, [setter(module, "scale", 5.0)]),
    "function of the module": (lambda x: helper(x), [swap_code, adder("helper", lambda x: x * 3)]),
    "closure": (closed, [lambda: change_closed(5.0)]),
    "default": (default_argument, [setter(default_argument, "__defaults__", (5.0,))]),
    "object": (
        lambda x: plain.method(x) * plain.inner.k * plain.shared,
        [
            setter(plain, "value", 5.0), setter(plain.inner, "k", 3.0),
            setter(plain, "inner", types.SimpleNamespace(k=4.0)), setter(plain, "shared", 9.0),
            setter(Plain, "method", lambda self, x: x * 100),
        ],
    ),
    "object that C code reads": (
        lambda x: x * operator.attrgetter("value")(plain), [setter(plain, "value", 7.0)],
    ),
    "function that C code calls": (
        lambda x: x * functools.reduce(plus, [2.0, 3.0]), [swap_plus],
    ),
    "variable of the environment": (
        lambda x: x * len(os.environ.get(VARIABLE, "")),
        [lambda: os.environ.update({VARIABLE: "abc"}), lambda: os.environ.pop(VARIABLE)],
    ),
    "value of a tensor": (
        lambda x: x * 3 if FACTOR.item() > 1 else x, [lambda: FACTOR.set_data(Tensor([0.5]))],
    ),
    "object of a library": (
        lambda x: x * logger.level * (2 if net.weight.requires_grad else 1),
        [lambda: logger.setLevel(20), setter(net.weight, "requires_grad", False)],
    ),
    "attribute there or not": (
        lambda x: x * getattr(plain, "late", 2.0) * (3 if hasattr(net, "later") else 1),
        [setter(plain, "late", 5.0), setter(net, "later", 1)],
    ),
    "cell": (
        lambda x: net(x),
        [
            setter(net, "value", 5.0), lambda: net.items.append(0.0),
            lambda: net.items.__setitem__(1, 4.0), lambda: net.array.fill(3.0),
            setter(Net, "shared", 3.0), setter(net, "shared", 4.0), setter(net, "mode", Mode.MUL),
            setter(net, "layer", nn.ReLU()), setter(Net, "extra", lambda self, x: x * 11),
            setter(net, "weight", Parameter(Tensor([7.0]), name="other")),
            setter(Net, "construct", lambda self, x: x * self.value),
            setter(net, "construct", lambda x: x * 13),
        ],
    ),
}  # fmt: skip
