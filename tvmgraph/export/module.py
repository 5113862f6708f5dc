"""Networks as compiled modules: one file that :func:`tvmgraph.runtime.load` runs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tvmgraph.backend.base import backend_of
from tvmgraph.capture.tree import unique
from tvmgraph.config import JitConfig, as_jit_config, context
from tvmgraph.config.options import CompileOptions
from tvmgraph.core.types import Dim, TensorType
from tvmgraph.errors import ConfigError, reject
from tvmgraph.export.capture import Program
from tvmgraph.export.variable import Dynamic, given_inputs, variable_program
from tvmgraph.graph import Graph, Role, Value
from tvmgraph.graph import simplify as passes
from tvmgraph.jit.execution import choose_path
from tvmgraph.runtime import archive, host
from tvmgraph.runtime.archive import Entry, Manifest
from tvmgraph.runtime.device_image import describe
from tvmgraph.runtime.tensors import to_bytes
from tvmgraph.runtime.trust import Key
from tvmgraph.version import PACKAGE

if TYPE_CHECKING:
    from tvmgraph.compiler.library import Library


def save_module(
    path: Path,
    net: object,
    args: tuple[object, ...],
    *,
    target: str = "",
    jit_level: str = "",
    jit_config: object = None,
    linker: str = "",
    frozen: bool = False,
    training: bool = False,
    dynamic: Dynamic | None = None,
    sign: Key | None = None,
) -> Manifest:
    """Compiles a network and writes it with its weights.

    Args:
        path: Where to write.
        net: A Cell, a function, what ``jit`` returned, or a :class:`Program`.
        args: Example arguments; placeholders have axes of variable size.
        target: A name from ``configs/targets.toml``: ``"host"``, ``"x86-64-v3"``, ``"aarch64"``,
            or a GPU such as ``"sm_90"`` or, with code for both, ``"sm_80,sm_90"``.
        jit_level: ``"O0"`` to ``"O3"``; this and ``target`` go before what ``jit_config`` says.
        jit_config: A JitConfig, or the name of a preset.
        linker: Compiler driver for another target; without it such a file holds objects.
        frozen: Whether the weights become constants of the code, which then needs nothing else.
        training: Whether to capture in training mode.
        dynamic: Names of axes of variable size by argument name and axis.
        sign: A PEM file with the private Ed25519 key that signs the file.

    Returns:
        The manifest.

    Raises:
        ConfigError: for unknown settings, or settings that a module cannot have.
        ArgumentError: for an unknown target.
        CompileError: if TVM rejects the network.
    """
    from tvmgraph.compiler.library import describe_target, write_library

    config = JitConfig() if jit_config is None else as_jit_config(jit_config)
    options = _options(config, jit_level, target)
    names: dict[str, str] = {}
    if isinstance(net, Program):
        program = net
    else:
        program, names = variable_program(net, given_inputs(net, args), dynamic, training)
    limits = program.limits(names)
    options = _replayed(options, program.graph, config)
    program = prepare(program, options)
    program = freeze(program) if frozen else program
    foreign = describe_target(options.target)[:2] != (host.architecture(), host.system())
    member = archive.OBJECTS if foreign and not linker else archive.LIBRARY
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / member
        library = write_library(_pure(program.graph), file, options, linker)
        members = {member: file.read_bytes()}
    if library.images:
        members[archive.DEVICE_CODE] = b"".join(image.code for image in library.images)
    if program.parameters:
        members[archive.PARAMETERS] = to_bytes(program.parameters)
    manifest = _manifest(program, library, options, names)
    manifest = replace(manifest, options=manifest.options | limits)
    archive.write(path, manifest, members, sign)
    return manifest


def _options(config: JitConfig, jit_level: str, target: str) -> CompileOptions:
    """Returns what the compiler is told."""
    if config.exec_mode == "no_sink":
        raise ConfigError("a compiled module is one call, so exec_mode cannot be 'no_sink'",
                          op="export", fix="use 'sink' or 'auto'")  # fmt: skip
    _agree("jit_level", jit_level, config.jit_level if "jit_level" in config.given else "")
    _agree("target", target, config.target if {"target", "cpu"} & config.options.keys() else "")
    config = config.replace(jit_level=jit_level or config.jit_level)
    return CompileOptions(
        config.jit_level, target or config.target, None, config.graph_kernel,
        fast_math=config.options.get("fast_math", False), tf32=config.options.get("tf32", False),
        deterministic=config.options.get("deterministic", context.deterministic == "ON"),
    )  # fmt: skip


def _agree(name: str, given: str, configured: str) -> None:
    """Raises ConfigError for an argument beside a configuration that says something else."""
    if given and configured and given != configured:
        reject(ConfigError, "export",
               f"{name}={given!r} contradicts jit_config, whose {name} is {configured!r}",
               fix="leave one of them out")  # fmt: skip


def _replayed(options: CompileOptions, graph: Graph, config: JitConfig) -> CompileOptions:
    """Lets a GPU replay the calls as a CUDA graph, where that was asked for and can be."""
    if not backend_of(options.target).replays or config.exec_mode != "sink":
        return options
    named = config.replace(options={**config.options, "target": options.target})
    path = choose_path(graph, named)
    return replace(options, native=path.native, replay=path.replay)


def _manifest(
    program: Program, library: Library, options: CompileOptions, names: Mapping[str, str]
) -> Manifest:
    graph, weights = program.graph, program.graph.parameters
    facts: dict[str, object] = {
        "name": options.target, "arch": library.arch, "system": library.system,
    }  # fmt: skip
    if library.images:
        facts["device"] = {"arch": options.target, "images": describe(library.images)}
    return Manifest(
        name=graph.name,
        inputs=tuple(_entry(p.label, p.value.type, names) for p in graph.inputs),
        parameters=tuple(_entry(p.label, p.value.type, names) for p in weights),
        outputs=tuple(_entry(n, v.type, names) for n, v in zip(program.outputs, graph.outputs)),
        written=tuple([p.label for p in weights].index(label) for label in graph.writes),
        order=tuple("input" if p.role is Role.INPUT else "parameter" for p in graph.params),
        copied=tuple(_shared_outputs(graph)),
        target={**facts, "features": list(library.features)},
        versions={"tvmgraph": PACKAGE, **host.package_versions()},
        options={"jit_level": options.level, "kernels": len(library.kernels)}
        | ({"replay": True} if options.replay else {}),
    )


def _pure(graph: Graph) -> Graph:
    """Returns the graph with new values of parameters as plain outputs.

    The compiler may write an update over the parameter, which in a file is read only and shared.
    """
    return Graph(graph.name, graph.params, graph.consts, graph.nodes, graph.outputs)


def _entry(name: str, t: TensorType, names: Mapping[str, str]) -> Entry:
    renamed = {symbol: Dim(given) for symbol, given in names.items()}
    sizes = [d.substitute(renamed) if isinstance(d, Dim) else d for d in t.shape]
    shape = [d.text if isinstance(d, Dim) else d for d in sizes]
    return Entry(name, tuple(shape), t.dtype.name)


def _shared_outputs(graph: Graph) -> list[int]:
    """Returns the outputs that are an argument, a constant of the code, or one another."""
    own = {v for n in graph.nodes for v in n.outputs}
    varying = {p.value for p in graph.params}
    same: dict[Value, Value] = {}  # other names of a value
    for node in graph.nodes:
        if any(v in varying for v in passes.read_by(node)):
            varying.update(node.outputs)
        if node.op.name == "leaf_value":
            given = node.inputs[1]
            same[node.outputs[0]] = same.get(given, given)
    outputs = [same.get(v, v) for v in graph.outputs]
    return [
        i for i, v in enumerate(outputs) if v not in own or v not in varying or v in outputs[:i]
    ]


def prepare(program: Program, options: CompileOptions) -> Program:
    """Returns the program for a processor, with its weights as the kernels there read them.

    Those that only such weights are computed from are left out. A GPU's read them as they are.

    Args:
        program: A captured network.
        options: How it is compiled, the processor included.
    """
    from tvmgraph.passes.freeze import arrange, prepares
    from tvmgraph.passes.freeze import freeze as split

    graph = program.graph
    if backend_of(options.target).layout_model(options) is None or not prepares(graph, options):
        return program
    halves = split(graph, options)
    if halves is None:
        return replace(program, graph=arrange(graph, options))
    labels = [graph.params[i].label for i in halves.sources]
    arrays = halves.prepare([np.asarray(program.parameters[label]) for label in labels])
    main = halves.main
    names = unique([p.label for p in main.params])  # the kept ones come first
    params = tuple(replace(p, label=name) for p, name in zip(main.params, names))
    parameters = dict(zip(names[len(halves.kept) :], arrays))
    kept = (p.label for p in params[: len(halves.kept)] if p.role is Role.PARAMETER)
    parameters |= {label: program.parameters[label] for label in kept}
    renamed = Graph(main.name, params, main.consts, main.nodes, main.outputs)
    return replace(program, graph=renamed, parameters=parameters)


def freeze(program: Program) -> Program:
    """Returns the program with its weights as constants, those that a call updates excepted.

    Args:
        program: A captured network.
    """
    graph = program.graph
    consts = dict(graph.consts)
    params, kept = [], {}
    for p in graph.params:
        if p.label in graph.writes:
            params.append(p)
            kept[p.label] = program.parameters[p.label]
        elif p.role is Role.PARAMETER:
            consts[p.value] = np.asarray(program.parameters[p.label])
        else:
            params.append(p)
    frozen = Graph(graph.name, tuple(params), consts, graph.nodes, graph.outputs, graph.writes)
    return Program(frozen, kept, program.outputs)
