"""JitConfig, the process context (``set_context``) and the registry of flags.

A setting is looked up in this order: argument of ``@jit``, ``Cell.set_jit_config``,
``set_context(jit_config=...)``, then the ``default`` preset of ``configs/jit.toml``.
"""

from __future__ import annotations

import functools
import importlib.resources
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from tvmgraph import hooks
from tvmgraph.config.flag_registry import active
from tvmgraph.config.graph_kernel import GraphKernel, check_rounding, parse_flags, settings_of
from tvmgraph.errors import (
    ConfigError,
    ConfigTypeError,
    DTypeError,
    either,
    reject,
    user_source,
    warn_user,
)
from tvmgraph.machine.targets import HOST, check_cpu, target_names

GRAPH_MODE = 0
PYNATIVE_MODE = 1

STRICT, COMPATIBLE, LAX = 0, 1, 2

#: What a write to a global variable in compiled code does.
GLOBAL_WRITES = ("warn", "error", "replay")

CHOICES: Mapping[str, tuple[str, ...]] = {
    "jit_level": ("O0", "O1", "O2", "O3"),
    "exec_mode": ("auto", "sink", "no_sink"),
    "jit_syntax_level": ("STRICT", "LAX"),
    "debug_level": ("RELEASE", "DEBUG"),
}


@dataclass(frozen=True)
class JitConfig:
    """How a function is compiled and run.

    Args:
        jit_level: How hard to optimize: ``"O0"`` (one kernel per operator) to ``"O3"``; see the
            table in the README.
        exec_mode: ``"sink"`` runs the graph as one call, ``"no_sink"`` node by node with the
            failing operator named, ``"auto"`` decides per graph; ``explain()`` says what it chose.
        jit_syntax_level: ``"STRICT"`` turns everything that cannot be compiled into an error,
            ``"LAX"`` may run parts in Python; ``"COMPATIBLE"`` is another word for it.
        debug_level: With ``"DEBUG"``, ``auto`` runs node by node and captured graphs are checked;
            ``"RELEASE"`` runs as fast as it can.
        infer_boost: ``"off"``; MindSpore's ``"on"`` is refused, since networks in inference are
            always prepared from ``O2`` on.
        options: Backend options: ``cpu`` names the processor whose instructions, registers and
            caches code for the CPU is made for (``"x86-64-v3"``; a row of
            ``configs/targets.toml`` that this machine can run; by default ``TVMGRAPH_CPU``, else
            this machine), ``target`` names any row, also a GPU,
            ``device_id`` says which GPU runs code for one, ``fast_math`` (False) whether its
            arithmetic may be inexact, as with nvcc's ``--use_fast_math``, ``tf32`` (False) whether
            its products of float32 may round the factors to tf32, which tensor cores multiply
            (a mantissa of 10 bits; sums stay float32), ``library_dispatch`` (False) whether
            products go to NVIDIA's cuBLASLt where that is measured to be faster on the GPU at hand,
            ``deterministic`` (False) whether kernels of a processor are divided alike for any
            number of threads, so that equal calls give equal bits on all of them, ``tiered``
            (False) whether the first calls are answered by eager operators while the code is made
            in the background (processors only),
            ``half_rounding`` where float16 and bfloat16 are rounded (``"eager"``: the result of
            every operator, as in eager code; ``"fast"``: kernels keep float32 between operators, as
            with torch.compile, and round what they store and what is cast explicitly),
            ``graph_kernel_flags`` says which rewrites and fusions run (see
            :mod:`tvmgraph.config.graph_kernel`), ``search_trials`` how many kernels the search of
            ``O3`` builds and times for each kernel of a graph.

    Raises:
        ConfigError: for an unknown key or value; the message lists the valid ones.

    Example:
        >>> JitConfig(jit_level="O1").jit_level
        'O1'
    """

    jit_level: str = "O2"
    exec_mode: str = "auto"
    jit_syntax_level: str = "LAX"
    debug_level: str = "RELEASE"
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Names of the settings that are given; the others are those of the default preset.
    given: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        jit_level: str = "",
        exec_mode: str = "",
        jit_syntax_level: str = "",
        debug_level: str = "",
        infer_boost: str = "off",
        *,
        options: Mapping[str, object] | None = None,
        **more: Any,
    ) -> None:
        exec_mode = exec_mode or more.pop("exc_mode", "")  # MindSpore's own spelling
        if more:
            raise _unknown("JitConfig", next(iter(more)), [f.name for f in fields(self)])
        given = {
            "jit_level": jit_level,
            "exec_mode": exec_mode,
            "jit_syntax_level": "LAX" if jit_syntax_level == "COMPATIBLE" else jit_syntax_level,
            "debug_level": debug_level,
        }
        defaults = presets()["default"]
        for name, value in given.items():
            object.__setattr__(self, name, _choice(name, defaults[name] if value == "" else value))
        object.__setattr__(self, "given", frozenset(k for k, v in given.items() if v != ""))
        if infer_boost != "off":
            raise ConfigError(
                f"infer_boost cannot be {infer_boost!r}", op="JitConfig",
                fix="leave it out: from O2 on, networks in inference are always prepared",
            )  # fmt: skip
        object.__setattr__(self, "options", _check_options({} if options is None else options))
        _check_together(self)

    @classmethod
    def preset(cls, name: str, path: str | os.PathLike[str] | None = None) -> JitConfig:
        """Reads a named preset from ``configs/jit.toml``, or from the user's own file.

        Args:
            name: Name of a table in the file.
            path: A TOML file; by default the package's.

        Raises:
            ConfigError: if there is no such preset or it holds unknown keys.
        """
        table = presets() if path is None else tomllib.loads(Path(path).read_text())
        if name not in table:
            raise _unknown("JitConfig.preset", name, list(table))
        return cls(**table[name])

    @property
    def jit_config_dict(self) -> dict[str, object]:
        """The settings as a dict."""
        return {name: getattr(self, name) for name in CHOICES} | dict(self.options)

    @property
    def key(self) -> tuple[Any, ...]:
        """The part of a compiled function's key that comes from its configuration."""
        return (*(getattr(self, name) for name in CHOICES), tuple(self.options.items()))

    @property
    def target(self) -> str:
        """Name of the compilation target."""
        return self.options.get("target") or self.options.get("cpu", HOST)

    @property
    def graph_kernel(self) -> GraphKernel | None:
        """The graph-kernel settings, ``None`` for those of the level."""
        return settings_of(self.options, self.jit_level)

    @property
    def search_trials(self) -> int:
        """Kernels that the search may try per kernel; 0 below ``O3``."""
        return self.options.get("search_trials", _TRIALS) if self.jit_level == "O3" else 0

    def replace(self, **changes: Any) -> JitConfig:
        """Returns a copy with some settings changed."""
        own = {name: getattr(self, name) for name in self.given}  # not those left to the defaults
        return JitConfig(**{"options": self.options, **own, **changes})


_OPTIONS = (
    "target", "cpu", "device_id", "fast_math", "tf32", "library_dispatch", "half_rounding",
    "graph_kernel_flags", "search_trials", "deterministic", "tiered",
)  # fmt: skip
_BOOL_OPTIONS = ("fast_math", "tf32", "library_dispatch", "deterministic", "tiered")
#: Kernels that the search of O3 builds and times per kernel, unless ``search_trials`` is given.
_TRIALS = 16


def _check_options(options: object) -> dict[str, object]:
    if not isinstance(options, Mapping):
        reject(ConfigTypeError, "JitConfig",
               f"options must be a dict, not {type(options).__name__}",
               fix="write options={'cpu': 'x86-64-v3'}")  # fmt: skip
    for name, value in options.items():
        if name not in _OPTIONS:
            raise _unknown("JitConfig options", name, list(_OPTIONS))
        if name == "graph_kernel_flags":
            parse_flags(value)
        if name == "cpu":
            check_cpu(value, "cpu")
        if name in _BOOL_OPTIONS and not isinstance(value, bool):
            raise ConfigError(f"{name} must be a bool, not {value!r}", op="JitConfig")
        if name == "half_rounding":
            check_rounding(value)
        if name == "search_trials" and (type(value) is not int or value < 0):
            raise ConfigError(
                f"search_trials cannot be {value!r}", op="JitConfig",
                fix="use a number of kernels to try, such as 16; 0 uses what was found before",
            )  # fmt: skip
    return dict(options)


def _check_together(config: JitConfig) -> None:
    """Raises ConfigError for settings that contradict each other."""

    def fail(option: str, levels: str, why: str) -> ConfigError:
        return ConfigError(
            f"{option} contradicts jit_level={config.jit_level!r}: {why}", op="JitConfig",
            fix=f"use jit_level={levels}, or leave {option} out",
        )  # fmt: skip

    if config.debug_level == "DEBUG" and config.exec_mode == "sink":
        reject(ConfigError, "JitConfig",
               "debug_level='DEBUG' contradicts exec_mode='sink': it runs node by node",
               fix="use exec_mode='auto' or 'no_sink'")  # fmt: skip
    if {"cpu", "target"} <= config.options.keys() and config.options["target"] in target_names(
        "llvm"
    ):
        reject(ConfigError, "JitConfig", "target and cpu both name a processor",
               fix="leave one of them out")  # fmt: skip
    if "search_trials" in config.options and config.jit_level != "O3":
        raise fail("search_trials", "'O3'", "only O3 searches")
    flags = parse_flags(config.options.get("graph_kernel_flags", "--opt_level=0"))
    if config.jit_level == "O0" and (flags.has("rows") or flags.has("parallel")):
        raise fail("graph_kernel_flags", "'O1', 'O2' or 'O3'", "O0 fuses nothing")


@functools.cache
def presets() -> Mapping[str, Mapping[str, Any]]:
    """Returns the presets of ``configs/jit.toml`` by name."""
    text = (importlib.resources.files("tvmgraph") / "configs" / "jit.toml").read_text()
    return tomllib.loads(text)


def _unknown(where: str, name: str, valid: list[str]) -> ConfigError:
    return ConfigError(f"unknown key {name!r}", op=where, fix=f"use one of {', '.join(valid)}")


def _choice(name: str, value: Any) -> str:
    if value not in CHOICES[name]:
        reject(ConfigError, "JitConfig", f"{name} cannot be {value!r}",
               fix=f"use one of {', '.join(CHOICES[name])}")  # fmt: skip
    return value


def as_jit_config(value: object) -> JitConfig:
    """Converts a JitConfig, preset name or dict.

    Args:
        value: What the user gave.

    Raises:
        DTypeError: for anything else.
    """
    if isinstance(value, JitConfig):
        return value
    if isinstance(value, str):
        return JitConfig.preset(value)
    if isinstance(value, Mapping):
        settings: Mapping[str, Any] = {str(name): setting for name, setting in value.items()}
        return JitConfig(**settings)
    raise DTypeError(f"a JitConfig is needed, not {type(value).__name__}", op="jit_config")


# ---- context ------------------------------------------------------------------------------------


@dataclass
class Context:
    """Process-wide settings; change them with :func:`set_context`."""

    mode: int = PYNATIVE_MODE
    device_target: str = "CPU"
    device_id: int = 0
    save_graphs: int = 0
    save_graphs_path: str = "tvmgraph_graphs"  # in the current folder, made when it is needed
    enable_graph_kernel: bool = False
    graph_kernel_flags: str = ""
    jit_config: JitConfig | None = None
    jit_syntax_level: int = LAX
    global_writes: str = ""
    max_call_depth: int = 1000
    deterministic: str = "OFF"
    thread_num: int = 0
    pynative_synchronize: bool = True
    debug_level: int = 0
    enable_compile_cache: bool = True
    compile_cache_path: str = ""
    compile_worker: bool = True
    compile_progress: bool = True
    eager_kernels: bool = True
    check_numerics: int = 0

    def __setattr__(self, name: str, value: Any) -> None:
        global settings_version
        if name == "check_numerics" and value != getattr(self, name):
            active.replace(numerics=value)
        super().__setattr__(name, value)
        settings_version += 1


#: Changes with every setting.
settings_version = 0
context = Context()

_WORDS = {"deterministic": ("ON", "OFF"), "global_writes": ("", *GLOBAL_WRITES)}
_DEVICES = ("CPU", "GPU", "CUDA")
#: What MindSpore raises for its devices that are not there.
_ELSEWHERE: dict[str, type] = dict.fromkeys(
    ("Ascend", "Davinci"), either(ConfigError, RuntimeError)
)
#: How many there are, and their names.
_LEVELS = {
    "jit_syntax_level": (3, "STRICT (0), COMPATIBLE (1) or LAX (2)"),
    "debug_level": (2, "context.RELEASE (0) or context.DEBUG (1)"),
}
_SWITCHES = (
    "enable_graph_kernel", "pynative_synchronize", "enable_compile_cache", "compile_worker",
    "compile_progress", "eager_kernels",
)  # fmt: skip
#: Settings of other MindSpore devices, accepted without effect, and what MindSpore has for each.
_IGNORED: dict[str, object] = {
    "aoe_config": {}, "aoe_tune_mode": "", "ascend_config": {}, "auto_tune_mode": "NO_TUNE",
    "check_bprop": False, "disable_format_transform": False, "enable_mem_offload": False,
    "enable_profiling": False, "enable_reduce_precision": True, "env_config_path": "",
    "exec_order": "bfs", "gpu_config": {}, "graph_memory_max_size": "0",
    "inter_op_parallel_num": 0, "max_device_memory": 1024.0, "memory_offload": "OFF",
    "memory_optimize_level": 0, "mempool_block_size": 1.0, "op_timeout": 900,
    "print_file_path": "", "profiling_options": "", "reserve_class_name_in_scope": True,
    "support_binary": False, "variable_memory_max_size": "0",
}  # fmt: skip
_ALIASES = {"runtime_num_threads": "thread_num"}
_given: dict[str, object] = {}


def _check_context(name: str, value: Any) -> object:
    """Validates one setting and returns the value to store."""

    def fail(rule: str, kind: type[Exception] = ConfigError) -> Exception:
        return kind(f"{name} {rule}, not {value!r}", op="set_context", at=user_source())  # pyright: ignore

    number = ConfigTypeError if isinstance(value, str) else ConfigError
    if name == "mode":
        if value not in (GRAPH_MODE, PYNATIVE_MODE) or isinstance(value, str):
            raise fail("must be GRAPH_MODE (0) or PYNATIVE_MODE (1)", number)
    elif name == "device_target":
        if value not in _DEVICES:
            raise fail("must be one of CPU, GPU, CUDA", _ELSEWHERE.get(str(value), ConfigError))
        return "GPU" if value == "CUDA" else value
    elif name == "save_graphs":
        value = {False: 0, True: 2}[value] if isinstance(value, bool) else value
        if value not in (0, 1, 2, 3):
            raise fail("must be False, True, 0, 1, 2 or 3", number)
    elif name == "jit_config":
        return as_jit_config(value)
    elif name in _LEVELS and value not in range(_LEVELS[name][0]):
        raise fail(f"must be {_LEVELS[name][1]}", number)
    elif name == "device_id" and (type(value) is not int or value < 0):
        raise fail("must be the number of a device")
    elif name in _WORDS and value not in _WORDS[name]:
        raise fail(f"must be one of {', '.join(map(repr, _WORDS[name]))}")
    elif name in ("max_call_depth", "thread_num"):  # 0 threads: as many as there are cores
        least = int(name == "max_call_depth")
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise fail(f"must be an int from {least} on")
    elif name in _SWITCHES and not isinstance(value, bool):
        raise fail("must be a bool", DTypeError)
    elif name == "graph_kernel_flags":
        if not isinstance(value, str):
            raise fail("must be a str", DTypeError)
        parse_flags(value)
    elif name == "check_numerics" and value not in (0, 1, 2):
        raise fail("must be False, True, 0, 1 or 2")
    elif name in ("save_graphs_path", "compile_cache_path"):
        if not isinstance(value, (str, os.PathLike)):
            raise fail("must be a path", DTypeError)
        return os.path.abspath(str(value))
    return int(value) if name == "check_numerics" else value


def set_context(**settings: object) -> None:
    """Changes process-wide settings.

    Args:
        **settings: ``mode`` (``ms.GRAPH_MODE`` or ``ms.PYNATIVE_MODE``), ``device_target``,
            ``device_id``, ``save_graphs``, ``save_graphs_path``, ``enable_graph_kernel``,
            ``graph_kernel_flags``, ``jit_config``, ``jit_syntax_level``, ``max_call_depth``,
            ``deterministic`` (``True`` or ``"ON"``: compiled code gives equal bits for any number
            of threads), ``thread_num`` (of kernels; also called ``runtime_num_threads``),
            ``global_writes`` (what writing a global does in
            compiled code: ``"warn"``, ``"error"`` or ``"replay"``; empty is ``"warn"`` for STRICT
            and ``"replay"`` for LAX), ``check_numerics`` (as the
            flag ``TVMGRAPH_NUMERICS``: an operator that makes NaN or infinities is an error),
            ``eager_kernels`` (whether eager operators that take NumPy long get machine code).
            Settings of other MindSpore devices are accepted with a warning and have no effect.

    Raises:
        ConfigError: for an unknown key or value; nothing is changed then.
        DeviceError: for ``device_target="GPU"`` (or ``"CUDA"``) without a usable GPU.

    Example:
        >>> ms.set_context(mode=ms.GRAPH_MODE)
    """
    names = [f.name for f in fields(Context)]
    checked: dict[str, Any] = {}
    for given, value in settings.items():
        name = _ALIASES.get(given, given)
        if name == "jit_level":  # one of the settings of jit_config
            own = checked.get("jit_config", context.jit_config) or JitConfig()
            checked["jit_config"] = own.replace(jit_level=value)
        elif name in _IGNORED:
            warn_user(f"set_context: {name} has no effect in tvmgraph")
            _given[name] = value
        elif name not in names:
            raise _unknown("set_context", name, names)
        else:
            if name == "deterministic" and isinstance(value, bool):
                value = "ON" if value else "OFF"
            checked[name] = _check_context(name, value)
    if "device_target" in checked or "device_id" in checked:
        target = checked.get("device_target", context.device_target)
        if target != "CPU":
            hooks.use_gpu(checked.get("device_id", context.device_id))
    for name, value in checked.items():
        setattr(context, name, value)


def get_context(attr_key: str) -> Any:
    """Returns one setting.

    Args:
        attr_key: Its name; of settings without effect as well, for which MindSpore's default or
            what was given is returned.

    Raises:
        ConfigError: if there is no such setting.
    """
    names = [f.name for f in fields(Context)]
    attr_key = _ALIASES.get(attr_key, attr_key)
    if attr_key == "jit_level":
        return context.jit_config.jit_level if context.jit_config else ""
    if attr_key == "jit_config":  # what was given, as MindSpore has it
        own = context.jit_config
        return {k: getattr(own, k) for k in own.given} | dict(own.options) if own else {}
    if attr_key in _IGNORED:
        return _given.get(attr_key, _IGNORED[attr_key])
    if attr_key == "enable_ge":  # whether Ascend's graph engine compiles
        return False
    if attr_key not in names:
        raise _unknown("get_context", attr_key, names)
    return getattr(context, attr_key)


def reset_context() -> None:
    """Puts every setting back to its default."""
    for f in fields(Context):
        setattr(context, f.name, f.default)


def effective_jit_config(*candidates: JitConfig | None) -> JitConfig:
    """Returns the first given configuration, else the context's, else the default preset.

    ``enable_graph_kernel`` asks for fusion, so it lifts O0 to O1 and runs the graph-kernel passes
    of ``graph_kernel_flags`` (of its own configuration, else of the context).

    Args:
        *candidates: Configurations, the most specific one first; ``None`` where none was given.
    """
    for c in (*candidates, context.jit_config):
        if c is not None:
            break
    else:
        c = _once(None, ("default",), JitConfig)
    if context.enable_graph_kernel:
        c = _with_fusion(c)
    if context.deterministic == "ON" and "deterministic" not in c.options:
        c = _reproducible(c)
    return c if context.device_target == "CPU" or "target" in c.options else _on_device(c)


_derived: dict[tuple[object, ...], tuple[JitConfig | None, JitConfig]] = {}


def _once(
    config: JitConfig | None, key: tuple[object, ...], derive: Callable[[], JitConfig]
) -> JitConfig:
    """Returns the one object derived from a configuration: entries compare by identity.

    Threads that ask at once get the same.
    """
    place = (id(config), *key)
    if place not in _derived:
        # the configuration is kept, so that its id stays its own
        _derived.setdefault(place, (config, derive()))
    return _derived[place][1]


def _on_device(config: JitConfig) -> JitConfig:
    """Returns the configuration with the context's GPU as its target."""

    def derive() -> JitConfig:
        target = hooks.gpu_target(context.device_id)
        options = {"target": target, "device_id": context.device_id, **config.options}
        return config.replace(options=options)

    return _once(config, ("device", context.device_id), derive)


def _reproducible(config: JitConfig) -> JitConfig:
    options = {"deterministic": True, **config.options}
    return _once(config, ("deterministic",), lambda: config.replace(options=options))


def _with_fusion(config: JitConfig) -> JitConfig:
    options = {"graph_kernel_flags": context.graph_kernel_flags} | dict(config.options)
    level = "O1" if config.jit_level == "O0" else config.jit_level
    return _once(
        config, ("fusion", context.graph_kernel_flags),
        lambda: config.replace(jit_level=level, options=options),
    )  # fmt: skip


__all__ = [
    "COMPATIBLE", "GLOBAL_WRITES", "GRAPH_MODE", "LAX", "PYNATIVE_MODE", "STRICT", "Context",
    "JitConfig", "as_jit_config", "context", "effective_jit_config", "get_context",
    "reset_context", "set_context",
]  # fmt: skip
