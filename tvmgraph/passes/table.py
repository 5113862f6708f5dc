"""Which passes run: the only pipeline, in order, from a captured graph to machine code.

A row says at which levels and for which backends a pass runs, what function it is and what it is
for. Flags (``--disable_pass``), dumps, ``fn.explain()`` and the documents use its name. The rows
name their functions by path, so that reading the table imports nothing: whoever runs a stage
imports what runs. ``tvmgraph passes`` prints the table.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Protocol

from tvmgraph.errors import ConfigError, reject

BACKENDS = ("cpu", "cuda")


@dataclass(frozen=True)
class Level:
    """What a ``jit_level`` means beside its passes.

    Attributes:
        kernels: How kernels are made, in words.
        schedule: The same for :func:`tvmgraph.backend.cpu.schedule.schedule_cpu`.
        llvm_opt: LLVM's level. Its level 3 makes the kernels of ``O2`` no faster, since they are
            unrolled and vectorized when it gets them, but takes up to a third longer.
        search: Whether kernels are chosen by timing them.
    """

    kernels: str
    schedule: int
    llvm_opt: int
    search: bool = False


#: The levels are this project's; TVM has none of that meaning.
LEVELS = {
    "O0": Level("as TVM lowers them", 0, 1),
    "O1": Level("parallel and vectorized", 1, 2),
    "O2": Level("also register-tiled matrix products and convolutions", 2, 2),
    "O3": Level("as O2, each searched around", 2, 3, search=True),
}


class Stage(enum.Enum):
    """What a pass is given and returns."""

    PREPARE = "prepare"  # a graph, once per compiled function, before it is looked up
    GRAPH = "graph"  # a graph
    RELAX = "relax"  # a module: from operators to calls of fused loop nests
    LOOPS = "loops"  # a module: scheduled loop nests
    CALLS = "calls"  # a module: from calls to the virtual machine's program
    CODE = "code"  # loop nests, up to what LLVM or a CUDA compiler takes
    HOST = "host"  # the functions that launch kernels of a device
    DEVICE = "device"  # the kernels of a device


@dataclass(frozen=True)
class Pass:
    """A row of the table.

    Attributes:
        name: What flags, dumps and documents call it.
        stage: What it is given.
        run: Its function, or several in order: ``"module:function"``, ``"tir.Name(arguments)"``
            for TVM's own, or the function itself.
        why: What it is for.
        cpu: The first level at which it runs for processors; empty for none.
        cuda: The same for GPUs.
        last: The last level at which it runs.
        switches: What ``--enable_pass`` and ``--disable_pass`` call its parts, with the
            ``--opt_level`` from which each is on; the pass runs if one of them is.
        optional: Whether results are right without it, so that flags may leave it out.
        when: Facts of a compile without which it does not run.
        unless: Facts of a compile with which it does not run.
        reads_options: Whether its function takes the options of the compile, too.
        cleans: Whether :func:`.simplify.simplify` follows where it changed a graph.
        rounds: How often it runs as long as it changes something.
        within: The pass whose walk it is a step of.
        again: Why it runs more than once per compile, if it does.
    """

    name: str
    stage: Stage
    run: tuple[str | Callable[..., Any], ...]
    why: str
    cpu: str = "O0"
    cuda: str = "O0"
    last: str = "O3"
    switches: tuple[tuple[str, int], ...] = ()
    optional: bool = False
    when: frozenset[str] = frozenset()
    unless: frozenset[str] = frozenset()
    reads_options: bool = False
    cleans: bool = False
    rounds: int = 1
    within: str = ""
    again: str = ""

    def runs_at(self, level: str, backend: str) -> bool:
        """Whether it is one of a level and a backend.

        Args:
            level: ``"O0"`` to ``"O3"``.
            backend: ``"cpu"``, or another one for its GPU kernels.
        """
        first = self.cpu if backend == "cpu" else self.cuda
        return bool(first) and first <= level <= self.last


class Switches(Protocol):
    """Graph-kernel settings, see :class:`tvmgraph.config.graph_kernel.GraphKernel`."""

    @property
    def off(self) -> frozenset[str]:
        """Passes and rules that are left out."""
        ...

    def has(self, name: str) -> bool:
        """Whether a switch is on.

        Args:
            name: A switch of ``graph_kernel_flags``.
        """
        ...


class Options(Protocol):
    """What decides which passes run; :class:`tvmgraph.config.options.CompileOptions`."""

    @property
    def level(self) -> str:
        """``"O0"`` to ``"O3"``."""
        ...

    @property
    def backend(self) -> str:
        """One of :data:`BACKENDS`."""
        ...

    @property
    def settings(self) -> Switches:
        """Graph-kernel settings."""
        ...

    @property
    def facts(self) -> frozenset[str]:
        """What else is so, see :attr:`Pass.when`."""
        ...


P, G, R, L, C, X = Stage.PREPARE, Stage.GRAPH, Stage.RELAX, Stage.LOOPS, Stage.CALLS, Stage.CODE
_PASSES, _RELAX = "tvmgraph.passes", "tvmgraph.compiler.relax"
_CODEGEN, _LOOP_IR = "tvmgraph.backend.cpu.codegen", "tvmgraph.backend.loop_ir"


def _facts(*names: str) -> frozenset[str]:
    return frozenset(names)


_TABLE: list[Pass] = [
    # ---- what depends on parameters alone, once per compiled function
    Pass("byte_products", P, (f"{_PASSES}.rewrite:match_byte_products",),
         "products of bytes are found before the casts of their weights are computed ahead",
         cpu="O2", cuda="O2", optional=True, cleans=True,
         again="`simplify` has the rule, too, for graphs that are not frozen"),
    Pass("dilation", P, (f"{_PASSES}.dilation:skip_padding",),
         "taps of dilated convolutions that read nothing but padding are skipped",
         cpu="O2", cuda="", optional=True, cleans=True,
         again="`skip_padding` does the same to graphs that are not frozen"),
    Pass("freeze", P, (f"{_PASSES}.freeze:freeze",),
         "what depends on parameters alone is computed once per version of them",
         cpu="O2", cuda="O2", optional=True),
    Pass("fold_scale", P, (), "the scale of a normalization goes into the weights before it",
         cpu="O2", cuda="O2", optional=True, within="freeze"),
    Pass("split_transposed", P, (), "a transposed convolution becomes plain ones, one per phase",
         cpu="O2", cuda="O2", optional=True, within="freeze"),
    Pass("panels", P, (), "weights of products are packed as the processor's kernels read them",
         cpu="O2", cuda="", optional=True, within="freeze"),
    Pass("layout", P, (f"{_PASSES}.freeze:arrange",),
         "images stay in blocks of channels (CPU), or with channels last (GPU); Winograd's weights",
         cpu="O2", cuda="O2", optional=True, within="freeze",
         again="a graph that is not frozen gets it in `arrange` (CPU) or `channels_last` (GPU)"),
    # ---- graph to graph
    Pass("canonicalize", G, ("tvmgraph.graph.simplify:simplify",),
         "constants are folded, transposes read in place, equal nodes merged, dead ones dropped",
         again="before `freeze`, too, and after passes that leave dead or constant nodes"),
    Pass("simplify", G, (f"{_PASSES}.rewrite:apply_rules",),
         "algebraic rules: exact ones, and with `reassociate` those that round otherwise",
         switches=(("simplify", 1), ("reassociate", 3)), reads_options=True, cleans=True, rounds=8,
         again="rules enable each other"),
    Pass("attention", G, (f"{_PASSES}.attention:match_attention",),
         "product, softmax, product become one operator, without a matrix of scores",
         switches=(("attention", 2),), reads_options=True, cleans=True),
    Pass("gates", G, (f"{_PASSES}.rewrite:match_gates",),
         "x * sigmoid(x) becomes one operator, which has no subnormal results",
         cpu="O2", cuda="O2", optional=True, cleans=True),
    Pass("skip_padding", G, (f"{_PASSES}.dilation:skip_padding",),
         "taps of dilated convolutions that read nothing but padding are skipped",
         cpu="O2", cuda="", optional=True, cleans=True),
    Pass("fourier", G, (f"{_PASSES}.rewrite:use_fourier_kernel",),
         "Fourier transforms become a kernel of passes in registers instead of matrix products",
         cpu="O1", cuda="", optional=True),
    Pass("prefixes", G, (f"{_PASSES}.rewrite:share_prefixes",),
         "long concatenations start with an earlier one of the same first operands",
         cpu="O1", cuda="O1", optional=True),
    Pass("channels_last", G, (f"{_PASSES}.channels_last:channels_last",),
         "convolutions, and what follows them, on images with channels last",
         cpu="", cuda="O2", optional=True),
    Pass("recompute", G, (f"{_PASSES}.recompute:recompute_cheap",),
         "cheap values are computed by everyone who reads them", cpu="", cuda="O2", optional=True),
    Pass("library_dispatch", G, ("tvmgraph.compiler.cuda.library_products:use_library",),
         "products go to cuBLASLt where it was measured to be faster",
         cpu="", optional=True, when=_facts("library"), reads_options=True),
    # ---- Relax operators to calls of fused loop nests
    Pass("normalize", R, ("relax.CanonicalizeBindings",), "names for names are resolved"),
    Pass("named_kernels", R, (f"{_RELAX}.named:write_named",),
         "sorts of integers and scatters get the project's kernels", cuda=""),
    Pass("legalize", R, ("relax_backend.DispatchSortScan", f"{_RELAX}.legalize:legalize_operators",
                         "relax.AnnotateTIROpPattern"),
         "operators become calls of loop nests, equal ones of one"),
    Pass("fuse_operators", R, ("relax.FuseOps", f"{_RELAX}.order:bind_sizes_first",
                               "relax.FuseTIR"), "TVM's fusion", cpu="O1", cuda="O1"),
    Pass("clean_loops", R, ("relax.DeadCodeElimination", f"{_RELAX}.legalize:drop_scope_pragmas"),
         "what fusion replaced and what TVM's operators leave in their loops goes"),
    Pass("rows", R, (f"{_RELAX}.fusion:fuse_kernels",),
         "producers and consumers of reductions become one kernel per row; with `parallel` "
         "kernels that read the same operands become one", cpu="O1", cuda="O1",
         switches=(("rows", 2), ("parallel", 2)), reads_options=True),
    Pass("views", R, ("relax.RewriteDataflowReshape", "relax.DeadCodeElimination"),
         "kernels that only change a shape become names; they are known by their plain loops",
         cpu="O1", cuda="O1", again="`program` meets those that appear when kernels are called"),
    Pass("order_updates", R, (f"{_RELAX}.order:order_updates",),
         "parameters are updated as soon as their gradients are known, which frees those",
         cpu="O1", cuda="O1", optional=True, unless=_facts("timed")),
    Pass("in_place", R, (f"{_RELAX}.in_place:mark_updates",),
         "kernels that may write new parameters over the old ones are marked",
         cpu="O1", cuda="O1", optional=True, unless=_facts("timed")),
    # ---- scheduled loop nests
    Pass("bind_updates", L, (f"{_RELAX}.in_place:bind_updates",),
         "kernels that were marked take the old parameter as their result"),
    Pass("fast_rounding", L, (f"{_LOOP_IR}.half_rounding:keep_wide",),
         "half precision is rounded where it is stored", when=_facts("fast_rounding")),
    # ---- calls of kernels to the program of the virtual machine
    Pass("program", C, ("relax.RewriteDataflowReshape", "relax.ToNonDataflow",
                        "relax.RemovePurityChecking", "relax.CallTIRRewrite"),
         "calls get memory for their results"),
    Pass("plan_memory", C, ("tvmgraph.backend.memory:PlanMemory", "relax.StaticPlanBlockMemory"),
         "results that do not live at the same time share memory"),
    Pass("finish_program", C, ("relax.LowerAllocTensor", "relax.KillAfterLastUse",
                               "relax.LowerRuntimeBuiltin", "relax.ComputePrimValue",
                               "relax.VMShapeLower", "relax.AttachGlobalSymbol"),
         "what is left becomes calls of the runtime"),
    Pass("trust_callers", C, (f"{_CODEGEN}.entry:drop_entry_checks",),
         "arguments are checked before the call", unless=_facts("checked")),
    # ---- loop nests of a processor to what LLVM takes
    Pass("large_pages", X, (f"{_CODEGEN}.huge_pages:advise_huge_pages",),
         "large buffers ask for large pages", cuda=""),
    Pass("blocks_to_loops", X, (
        f"{_CODEGEN}.loops:keep_library_calls", "s_tir.CanonicalizeLoop", "s_tir.LowerInitBlock"),
        "blocks lose their iterators", cuda=""),
    Pass("place_buffers", X, ("s_tir.PlanAndUpdateBufferAllocationLocation",),
         "buffers are allocated where they are used", cuda="", when=_facts("blocks")),
    Pass("open_blocks", X, (
        "s_tir.ConvertBlocksToOpaque", f"{_CODEGEN}.remainders:keep_remainders"),
         "blocks become statements; remainders stay as they were written", cuda=""),
    Pass("shrink_buffers", X, ("s_tir.CompactBufferAllocation",),
         "buffers hold what one iteration needs", cuda="", when=_facts("blocks")),
    Pass("flatten", X, ("s_tir.LowerMatchBuffer", "s_tir.LowerOpaqueBlock", "tir.ConvertSSA",
                        "tir.FlattenBuffer", f"{_CODEGEN}.loops:keep_booleans"),
         "buffers have one dimension", cuda=""),
    Pass("half_precision", X, (f"{_CODEGEN}.half_arithmetic:compute_half_in_single",
                               f"{_LOOP_IR}.half_rounding:round_halves", "tir.BF16ComputeLegalize"),
         "half precision is computed in float32 and rounded", cuda=""),
    Pass("vectorize", X, ("tir.NarrowDataType(32)", "s_tir.LoopPartition", "tir.VectorizeLoop",
                          "tir.StorageRewrite", f"{_CODEGEN}.loops:keep_stack", "tir.UnrollLoop",
                          "s_tir.RenormalizeSplitPattern", "s_tir.RewriteUnsafeSelect"),
         "vectors, shared buffers and unrolled loops", cuda=""),
    Pass("exact_indices", X, (f"{_CODEGEN}.pipeline:tidy_vectors",
                              f"{_CODEGEN}.wrapping:wrap_integers"),
         "indices of vectors are simplified; integers wrap around", cuda=""),
    Pass("formulas", X, (f"{_CODEGEN}.loops:write_formulas",),
         "elementary functions and roundings are written out", cuda=""),
    Pass("outer_loops", X, (f"{_CODEGEN}.outer_loops:keep_outer_loops",),
         "loops around long loops stay loops", cuda=""),
    Pass("arguments", X, ("tir.SplitHostDevice", "tir.MakePackedAPI"),
         "functions that the runtime calls", cuda=""),
    Pass("skip_asserts", X, ("tir.SkipAssert",), "kernels trust their callers",
         cuda="", unless=_facts("checked")),
    Pass("functions", X, ("tvmgraph.backend.memory:apply_offsets", "tir.BF16StorageLegalize",
                          "tir.LowerTVMBuiltin", "tir.LowerIntrin"),
         "tensors begin at their offsets; what LLVM knows", cuda=""),
    # ---- loop nests of a GPU: kernels, and the functions that launch them
    Pass("device_loops", X, ("s_tir.CanonicalizeLoop", "s_tir.LowerCrossThreadReduction",
                             "s_tir.LowerInitBlock", "s_tir.PlanAndUpdateBufferAllocationLocation",
                             "s_tir.ConvertBlocksToOpaque",
                             f"{_CODEGEN}.remainders:keep_remainders"),
         "blocks become statements", cpu=""),
    Pass("device_threads", X, ("s_tir.LiftThreadBinding", "s_tir.ManifestSharedMemoryLocalStage",
                               "tvmgraph.backend.cuda.codegen:compact_buffers",
                               "s_tir.LowerAutoCopy", "s_tir.UnifyThreadBinding"),
         "threads and shared memory", cpu=""),
    Pass("device_flatten", X, ("s_tir.LowerMatchBuffer", "s_tir.InjectPermutedLayout",
                               "s_tir.AnnotateIrregularLoop", "s_tir.InjectSoftwarePipeline",
                               "s_tir.TransformMmaBufferLayout", "s_tir.LowerOpaqueBlock",
                               "tir.FlattenBuffer", f"{_LOOP_IR}.half_rounding:separate_products",
                               "tir.BF16ComputeLegalize"),
         "buffers have one dimension; products are rounded before they are added", cpu=""),
    Pass("device_vectorize", X, ("tir.NarrowDataType(32)", "s_tir.LoopPartition",
                                 "tir.VectorizeLoop", "s_tir.InjectVirtualThread",
                                 "s_tir.InjectDoubleBuffer", "tir.StorageRewrite",
                                 "s_tir.HoistIfThenElse", "tir.UnrollLoop",
                                 "s_tir.RenormalizeSplitPattern", "tir.RemoveNoOp",
                                 "s_tir.RewriteUnsafeSelect"),
         "vectors, buffers in turns and unrolled loops", cpu=""),
    Pass("device_barriers", X, ("tir.FP8ComputeLegalize", "tir.VerifyMemory",
                                "tir.AnnotateEntryFunc", "s_tir.ThreadSync('shared')",
                                "s_tir.ThreadSync('shared.dyn')", "s_tir.ThreadSync('warp')",
                                "s_tir.InferFragment", "s_tir.LowerThreadAllreduce",
                                "s_tir.MergeSharedMemoryAllocations"),
         "threads wait for each other; shared memory is one allocation", cpu=""),
    Pass("device_functions", X, ("tir.SplitHostDevice", "tir.MakePackedAPI",
                                 "tvmgraph.backend.memory:apply_offsets", "tir.FP8StorageLegalize",
                                 "tir.BF16StorageLegalize"),
         "kernels apart from the functions that launch them", cpu=""),
    Pass("host_code", Stage.HOST, ("tir.LowerTVMBuiltin", "tir.LowerIntrin", "tir.SkipAssert"),
         "what LLVM knows", cpu=""),
    Pass("device_code", Stage.DEVICE, ("tir.LowerWarpMemory", "tir.LowerIntrin",
                                       "tvmgraph.backend.cuda.codegen:short_quotients"),
         "what CUDA C++ knows", cpu=""),
]  # fmt: skip

_added: tuple[Pass, ...] = ()


def passes() -> tuple[Pass, ...]:
    """All rows in order."""
    return tuple(_TABLE)


def added() -> tuple[Pass, ...]:
    """The rows that were added by :func:`add_pass`."""
    return _added


def get_pass(name: str) -> Pass:
    """The row of a name.

    Args:
        name: Its name in the table.

    Raises:
        ConfigError: There is none.
    """
    for row in _TABLE:
        if row.name == name:
            return row
    known = ", ".join(row.name for row in _TABLE)
    raise ConfigError(f"there is no pass {name!r}", op="passes", fix=f"use one of {known}")


def switches() -> dict[str, int]:
    """The switches of ``graph_kernel_flags`` with the ``--opt_level`` that turns each on."""
    return {name: level for row in _TABLE for name, level in row.switches}


def optional_passes() -> tuple[str, ...]:
    """What ``--disable_pass`` may name beside switches and rules."""
    return tuple(row.name for row in _TABLE if row.optional)


def is_on(row: Pass, options: Options) -> bool:
    """Whether a pass runs in a compile.

    Args:
        row: The pass.
        options: Level, backend, flags and facts of the compile, each of which may leave it out.
    """
    if not row.runs_at(options.level, options.backend) or row.name in options.settings.off:
        return False
    if not row.when <= options.facts or row.unless & options.facts:
        return False
    return not row.switches or any(options.settings.has(name) for name, _ in row.switches)


def runs(name: str, options: Options) -> bool:
    """Whether the pass of a name runs in a compile.

    Args:
        name: Its name in the table.
        options: What the compile may depend on.
    """
    return is_on(get_pass(name), options)


def chosen(stage: Stage, options: Options) -> tuple[Pass, ...]:
    """The passes of a stage that run in a compile, in order; without steps of other passes.

    Args:
        stage: On what they work: graphs, Relax, loops, ...
        options: What the compile may depend on.
    """
    return tuple(
        row for row in _TABLE if row.stage is stage and not row.within and is_on(row, options)
    )


def chosen_for(stage: Stage, backend: str, facts: Iterable[str] = ()) -> tuple[Pass, ...]:
    """The passes of a stage that run for a backend at every level.

    Args:
        stage: On what they work.
        backend: ``"cpu"`` or ``"cuda"``.
        facts: What is known of the compile, in the words of the rows' ``when`` and ``unless``.
    """
    known = frozenset(facts)
    return tuple(
        row for row in _TABLE
        if row.stage is stage and row.runs_at("O0", backend)
        and row.when <= known and not row.unless & known
    )  # fmt: skip


def described(options: Options) -> str:
    """The passes of a compile that may be left out, as ``fn.explain()`` lists them.

    Args:
        options: What the compile may depend on.
    """
    names: list[str] = []
    for row in _TABLE:
        if is_on(row, options):
            on = [name for name, _ in row.switches if options.settings.has(name)]
            names += on or ([row.name] if row.optional else [])
    return ", ".join(names) or "none"


def function_of(path: str | Callable[..., Any]) -> Callable[..., Any]:
    """The function that a row names by ``"module:function"``.

    Args:
        path: Module and name with a colon between, or the function itself.
    """
    return path if callable(path) else resolve_name(path)


# ---- passes from outside ------------------------------------------------------------------------


def add_pass(
    name: str,
    run: Callable[..., object],
    why: str,
    after: str = "attention",
    level: str = "O1",
    backends: Iterable[str] = BACKENDS,
) -> Pass:
    """Adds a pass of your own to every compile from now on.

    It runs in this process. What it takes part in is not kept on disk, since your function may
    change at any time.

    Args:
        name: A new name for flags, dumps and ``fn.explain()``.
        run: ``graph -> graph``; it returns the graph itself where it changes nothing. After a
            change, constants are folded and dead nodes dropped.
        why: What it is for, one sentence.
        after: The pass of the stage ``graph`` that it follows.
        level: The first ``jit_level`` at which it runs.
        backends: For which backends, of :data:`BACKENDS`.

    Returns:
        The new row.

    Raises:
        ConfigError: The name is taken, or ``after``, ``level`` or a backend is unknown.

    Example:
        >>> from tvmgraph.passes.table import add_pass, remove_pass
        >>> add_pass("mine", lambda graph: graph, "does nothing", level="O2").name
        'mine'
        >>> remove_pass("mine")
    """
    global _added
    place, kinds = get_pass(after), frozenset(backends)
    if any(row.name == name for row in _TABLE) or name in switches():
        raise ConfigError(f"there is a pass {name!r} already", op="add_pass", fix="choose a name")
    if place.stage is not Stage.GRAPH:
        known = ", ".join(row.name for row in _TABLE if row.stage is Stage.GRAPH)
        raise ConfigError(f"{after!r} takes no graph", op="add_pass", fix=f"use one of {known}")
    if level not in LEVELS or not kinds <= set(BACKENDS):
        reject(ConfigError, "add_pass", f"no level {level!r} or backend of {sorted(kinds)}",
               fix=f"use one of {', '.join(LEVELS)} and some of {', '.join(BACKENDS)}")  # fmt: skip
    row = Pass(
        name, Stage.GRAPH, (run,), why, level if "cpu" in kinds else "",
        level if "cuda" in kinds else "", optional=True, cleans=True,
    )  # fmt: skip
    _TABLE.insert(_TABLE.index(place) + 1, row)
    _added = (*_added, row)
    return row


def remove_pass(name: str) -> None:
    """Takes a pass out of the table that :func:`add_pass` added.

    Args:
        name: The name that it was added by.

    Raises:
        ConfigError: It is none of those.
    """
    global _added
    row = get_pass(name)
    if row not in _added:
        raise ConfigError(f"{name!r} is a pass of the compiler", op="remove_pass",
                          fix=f"leave it out with --disable_pass={name}")  # fmt: skip
    _TABLE.remove(row)
    _added = tuple(other for other in _added if other is not row)
