"""What changes outside between two calls is seen, in every mode, as in plain Python."""

from __future__ import annotations

import contextlib
import decimal
import linecache
import logging
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.capture.changed_outside import CASES
from tests.capture.test_fuzz import in_numpy
from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.capture import cell_state, checks, guards
from tvmgraph.capture.guards import Guards
from tvmgraph.capture.impure import ImpureCalls

MODES: dict[str, Any] = {"ast": jit, "bytecode": lambda f: jit(f, capture_mode="bytecode")}


@contextlib.contextmanager
def fresh_settings() -> Iterator[None]:
    """Restores the settings of the process that programs change."""
    digits, logger = sys.get_int_max_str_digits(), logging.getLogger("chg")
    with decimal.localcontext(), np.printoptions():
        yield
    sys.set_int_max_str_digits(digits)
    logging.disable(logging.NOTSET)
    logger.handlers.clear()
    logger.setLevel(logging.NOTSET)
    logger.disabled = False


def outcomes(name: str, wrap: Any) -> list[str]:
    source, changes = CASES[name]
    module = types.ModuleType("changed_outside_program")
    file = f"<changed outside: {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    vars(module).update(np=np, Tensor=Tensor, ops=ops, nn=nn)
    exec(compile(source, file, "exec"), vars(module))
    f, found = wrap(vars(module)["f"]), []
    for change in ("", *changes):
        exec(change, vars(module))
        for _ in range(2):
            try:
                found.append(str(f(Tensor(np.array([1.0, 2.0], np.float32)))))
            except Exception as e:
                found.append(f"{type(e).__name__}: {e}")
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_a_change_is_seen(name: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "changed_outside_program", types.ModuleType("x"))
    with fresh_settings():
        expected = outcomes(name, lambda f: f)
    with fresh_settings(), in_numpy():
        assert outcomes(name, MODES[mode]) == expected
    assert len(set(expected)) > 1


def _no_key(*start: object) -> Any:
    """Returns what drops all guards whose keys begin like this."""

    def drop(monkeypatch: pytest.MonkeyPatch) -> None:
        settle = Guards.settle

        def forgetful(self: Guards) -> None:
            settle(self)
            for key in [k for k in self._always if _begins(k, start)]:
                del self._always[key]

        monkeypatch.setattr(Guards, "settle", forgetful)

    return drop


def _begins(key: Any, start: tuple[object, ...]) -> bool:
    flat = (key[0], *(key[1] if isinstance(key[1], tuple) else key[1:2]), *key[2:])
    return all(s in (..., k) for s, k in zip(start, flat, strict=False))


def _without(owner: Any, name: str, result: object = None) -> Any:
    """Returns what replaces a method by one that does nothing."""
    return lambda monkeypatch: monkeypatch.setattr(owner, name, lambda *_, **__: result)


def _ignoring(*kinds: type) -> Any:
    """Returns what makes values of some classes count as the same, whatever they are."""

    def drop(monkeypatch: pytest.MonkeyPatch) -> None:
        real = checks.check_of

        def check_of(value: object, *args: Any, **kwargs: Any) -> Any:
            return _anything if isinstance(value, kinds) else real(value, *args, **kwargs)

        for module in (checks, cell_state, guards):
            monkeypatch.setattr(module, "check_of", check_of)

    return drop


def _anything(value: object) -> bool:
    return True


def _without_names(names: str) -> Any:
    return lambda monkeypatch: monkeypatch.setattr(guards, names, frozenset())


#: What is dropped, and the programs that notice it.
DROPPED = {
    "bases": (_no_key("given", ..., "__mro__"), ("bases", "bases super", "bases isinstance")),
    "names of classes": (_without_names("_OF_CLASSES"), ("names of a class",)),
    "members of functions": (_no_key("given"), ("annotations",)),
    "class of an object": (_no_key("class of"), ("class of an object",)),
    "weak references": (_no_key("weak"), ("weakref",)),
    "decimal context": (_no_key("result", "decimal"), ("decimal getcontext",)),
    "text of arrays": (_no_key("result", "printoptions"), ("text of arrays",)),
    "flags of arrays": (_no_key("result", "flags"), ("flags.writeable",)),
    "abstract classes": (_no_key("result", "abc"), ("abc register",)),
    "results": (
        _no_key("result"),
        ("single dispatch", "function of C that is a setting", "context variable"),
    ),
    "special methods": (_without(Guards, "_add_method"), ("operators", "equality", "descriptor")),
    "attributes": (_no_key("attribute"), ("enum value", "enum name", "module getattr", "slots")),
    "makers of named tuples": (_without(Guards, "add_object"), ("namedtuple defaults",)),
    "library objects": (
        _without(ImpureCalls, "_is_asked", False),
        ("gen frame", "gen running", "gen f_lasti", "decimal ctx attr", "exitstack", "logger"),
    ),
    "arrays": (_ignoring(np.ndarray), ("array",)),
    "slices": (_ignoring(slice), ("slice",)),
    "numbers of NumPy": (_ignoring(np.generic), ("number of NumPy",)),
    "numbers and texts": (_ignoring(int, str), ("enum value", "names of a class")),
    "buffers": (_ignoring(memoryview, bytearray), ("memoryview",)),
    "sets": (_ignoring(set), ("set",)),
    "views": (_ignoring(types.MappingProxyType), ("view",)),
    "the whole environment": (
        _without(Guards, "add_environment"),
        ("whole environment", "environment in code without source"),
    ),
    "names in code without source": (
        _without(Guards, "_add_names"), ("environment in code without source",),
    ),
    "members in code without source": (
        _without(Guards, "_add_members"), ("members in code without source",),
    ),
    "functions of C": (
        _without(Guards, "add_builtin"),
        ("functions of C in code without source", "clock in code without source"),
    ),
    "what is handed out": (
        _without(ImpureCalls, "hand_out"), ("decimal ctx", "decimal create", "decimal arg ctx"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", DROPPED)
def test_each_guard_is_needed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drop, programs = DROPPED[what]
    drop(monkeypatch)
    for name in programs:
        with pytest.raises(AssertionError):
            test_a_change_is_seen(name, "ast", monkeypatch)
