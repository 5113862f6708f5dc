"""Graph-kernel settings: which rewrites and fusions run beyond TVM's own.

``set_context(graph_kernel_flags=...)`` takes MindSpore's form, options separated by blanks::

    --opt_level=2 --disable_pass=rows,mul_one --enable_parallel_fusion=false

Composite operators (softmax, layer_norm, gelu, ...) are always split into basic loops when they are
lowered, and every loop nest may join its neighbours, so MindSpore's lists of operators to expand or
to cluster have nothing to choose from; those flags are refused, each with its reason.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tvmgraph.errors import ConfigError, reject
from tvmgraph.passes.table import optional_passes, switches

#: Where results of half precision are rounded: everywhere, or where a kernel stores them.
ROUNDINGS = ("eager", "fast")

_OPTIONS = (
    "--opt_level", "--enable_pass", "--disable_pass", "--enable_parallel_fusion",
    "--disable_simplify_exprs",
)  # fmt: skip
_ALL_EXPANDED = "composite operators are always split, and joined again by their loops"
_ALL_CLUSTERED = "what is joined is decided by the loops, not by the names of operators"
_PASS = "switch passes with --enable_pass and --disable_pass"
#: MindSpore's flags that have no meaning here.
_REFUSED = {
    "--enable_expand_ops": _ALL_EXPANDED,
    "--enable_expand_ops_only": _ALL_EXPANDED,
    "--disable_expand_ops": _ALL_EXPANDED,
    "--enable_cluster_ops": _ALL_CLUSTERED,
    "--enable_cluster_ops_only": _ALL_CLUSTERED,
    "--disable_cluster_ops": _ALL_CLUSTERED,
    "--enable_packet_ops_only": _ALL_CLUSTERED,
    "--enable_simplify_exprs_only": "name the rules to leave out with --disable_simplify_exprs",
    "--enable_horizontal_fusion": "it is called --enable_parallel_fusion",
    "--enable_stitch_fusion": _PASS,
    "--enable_recompute_fusion": "what is cheap is always computed again instead of stored",
    "--enable_low_precision": "use tvmgraph.amp",
    "--enable_lite_conv_tuning": "use jit_level O3, which searches",
    "--reduce_fuse_depth": _PASS,
    "--online_tuning": "use jit_level O3, which searches",
    "--repository_path": "set TVMGRAPH_TUNING_DIR",
    "--dump_as_text": "use set_context(save_graphs=2)",
    "--composite_op_limit_size": "the schedule bounds the size of a kernel",
}


#: Single rules that ``--disable_pass`` may name too; :mod:`tvmgraph.passes.rules` holds them.
RULE_NAMES = (
    "mul_one", "div_one", "sub_zero", "add_zero", "add_positive_zero", "mul_minus_one", "neg_neg",
    "add_neg", "sub_neg", "even_of_neg", "idempotent", "pow_to_mul", "pow_to_root",
    "div_by_power_of_two", "div_to_mul", "reciprocal_of_sqrt", "div_by_sqrt", "mul_constants",
    "add_constants", "common_factor", "transpose_chain", "reshape_chain", "no_change",
    "value_of_leaf", "part_of_complex",
    "cast_chain", "integer_product", "where_same", "extreme_of_same",
)  # fmt: skip


@dataclass(frozen=True)
class GraphKernel:
    """What graph-kernel fusion does; hashable, part of a compiled function's key.

    Attributes:
        passes: Switches that are on, see :func:`tvmgraph.passes.table.switches`.
        off: Other passes of the table, and single rewrite rules, that are left out.
        fast_rounding: Whether a kernel keeps float32 between operators of half precision.
    """

    passes: frozenset[str]
    off: frozenset[str] = frozenset()
    fast_rounding: bool = False

    def has(self, name: str) -> bool:
        """Whether a switch is on.

        Args:
            name: Name of the switch, see ``--enable_pass``.
        """
        return name in self.passes


@functools.cache
def at_level(level: int) -> GraphKernel:
    """Returns the settings of an opt_level, 0 to 3.

    Args:
        level: The opt_level.
    """
    return GraphKernel(frozenset(name for name, needs in switches().items() if level >= needs))


def _fail(message: str, valid: object) -> ConfigError:
    return ConfigError(message, op="graph_kernel_flags", fix=f"use {valid}")


@functools.lru_cache(maxsize=256)
def parse_flags(text: str) -> GraphKernel:
    """Reads ``graph_kernel_flags``.

    Args:
        text: The flags, such as ``"--opt_level=3 --disable_pass=rows,mul_one"``.

    Raises:
        ConfigError: for an unknown option, pass or value; the message lists the valid ones.
    """
    given: dict[str, str] = {}
    for word in shlex.split(text):
        option, equals, value = word.partition("=")
        if option in _REFUSED:
            reject(ConfigError, "graph_kernel_flags",
                   f"{option} has no meaning here: {_REFUSED[option]}",
                   fix=f"leave it out; the flags are {', '.join(_OPTIONS)}")  # fmt: skip
        if option not in _OPTIONS:
            raise _fail(f"unknown option {option!r}", f"one of {', '.join(_OPTIONS)}")
        if not equals or not value:
            raise _fail(f"{option} needs a value", f"{option}=value")
        if option in given:
            raise _fail(f"{option} is given twice", "it once")
        given[option] = value
    return _settings(given)


def settings_of(options: Mapping[str, object], jit_level: str) -> GraphKernel | None:
    """Returns the settings that the options of a JitConfig ask for, ``None`` for the level's.

    Args:
        options: The options of a JitConfig, checked.
        jit_level: ``"O0"`` to ``"O3"``, the level they come on top of.
    """
    flags = options.get("graph_kernel_flags")
    found = None if flags is None else parse_flags(flags)
    if options.get("half_rounding") != "fast":
        return found
    return replace(found or at_level(int(jit_level[1])), fast_rounding=True)


def check_rounding(value: object) -> None:
    """Raises ConfigError if ``half_rounding`` cannot be ``value``.

    Args:
        value: What the user gave.
    """
    if value not in ROUNDINGS:
        reject(ConfigError, "JitConfig", f"half_rounding cannot be {value!r}",
               fix=f"use one of {', '.join(ROUNDINGS)}")  # fmt: skip


def _settings(given: dict[str, str]) -> GraphKernel:
    level = given.get("--opt_level", "2")
    if level not in ("0", "1", "2", "3"):
        raise _fail(f"--opt_level cannot be {level!r}", "0, 1, 2 or 3")
    settings = at_level(int(level))
    known = tuple(switches())
    on = _names(given, "--enable_pass", known)
    off = _names(given, "--disable_pass", (*known, *optional_passes(), *RULE_NAMES))
    off |= _names(given, "--disable_simplify_exprs", RULE_NAMES)
    if on & off:
        raise _fail(f"{sorted(on & off)[0]!r} is enabled and disabled", "one of the two")
    parallel = given.get("--enable_parallel_fusion")
    if parallel is not None:
        if parallel not in ("true", "false"):
            raise _fail(f"--enable_parallel_fusion cannot be {parallel!r}", "true or false")
        on, off = (on | {"parallel"}, off) if parallel == "true" else (on, off | {"parallel"})
        if on & off:
            raise _fail("'parallel' is enabled and disabled", "one of the two")
    return replace(settings, passes=(settings.passes | on) - off, off=off - set(known))


def _names(given: dict[str, str], option: str, valid: tuple[str, ...]) -> frozenset[str]:
    names = frozenset(filter(None, given.get(option, "").split(",")))
    for name in sorted(names):
        if name not in valid:
            raise _fail(f"{option} names {name!r}, which is no pass", f"one of {', '.join(valid)}")
    return names
