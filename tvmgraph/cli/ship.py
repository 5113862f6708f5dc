"""The commands for networks as files, from ``tvmgraph compile`` to ``bundle``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tvmgraph.cli.guard import guarded, users_code
from tvmgraph.cli.options import Config, Inputs, Json, Level, Output, Target, Threads, answer
from tvmgraph.errors import ArgumentError

_Model = Annotated[str, typer.Argument(help="model.onnx, model.graph, or file.py:Name of a Cell.")]
_Dynamic = Annotated[
    list[str] | None, typer.Option(help="An axis of variable size, as name:0=batch.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the command line.

    Args:
        app: The command line.
    """
    for command in (compile_, export, run, bench, serve, bundle):
        app.command(command.__name__.rstrip("_"))(guarded(command))


def compile_(
    model: _Model,
    input: Inputs = None,
    output: Output = "model.tvm",
    target: Target = "",
    level: Level = "",
    config: Config = "",
    linker: Annotated[str, typer.Option(help="Compiler driver of another target.")] = "",
    frozen: Annotated[bool, typer.Option(help="Put the weights into the code.")] = False,
    dynamic: _Dynamic = None,
    sign: Annotated[str, typer.Option(help="PEM file with the private Ed25519 key.")] = "",
    json: Json = False,
) -> None:
    """Compile a model into one file that runs without Python code of the model."""
    from tvmgraph.cli.model_argument import find_config

    options = {
        "target": target, "jit_level": level, "jit_config": find_config(config),
        "linker": linker, "frozen": frozen, "dynamic": axes_of(dynamic or []),
        "sign": sign or None,
    }  # fmt: skip
    _write(model, input, output, "TVM", options, json)


def export(
    model: _Model,
    input: Inputs = None,
    output: Output = "model.onnx",
    opset: Annotated[int, typer.Option(help="Version of the standard operators.")] = 20,
    dynamic: _Dynamic = None,
    json: Json = False,
) -> None:
    """Write a model as ONNX, or as a graph file when the output ends in .graph."""
    kind = "GRAPH" if output.endswith(".graph") else "ONNX"
    options: dict[str, object] = {}
    if kind == "ONNX":
        options = {"opset": opset, "dynamic": axes_of(dynamic or [])}
    _write(model, input, output, kind, options, json)


def axes_of(texts: list[str]) -> dict[str, dict[int, str]]:
    """Reads variable axes: ``name:axis=label``.

    Args:
        texts: One text per axis.

    Raises:
        ArgumentError: if a text has another form.
    """
    axes: dict[str, dict[int, str]] = {}
    for text in texts:
        name, _, rest = text.rpartition(":")
        number, _, label = rest.partition("=")
        if not name or not number.isdecimal() or not label:
            raise ArgumentError(f"{text!r} is not name:axis=label", op="tvmgraph export",
                                fix="write --dynamic x:0=batch")  # fmt: skip
        axes.setdefault(name, {})[int(number)] = label
    return axes


def _write(
    model: str, inputs: list[str] | None, output: str, kind: str, options: dict[str, object],
    json: bool,
) -> None:  # fmt: skip
    from rich.console import Console

    import tvmgraph as ms
    from tvmgraph.cli.model_argument import example_inputs, find_model

    net, known, _ = find_model(model)
    args = example_inputs(net, inputs or [], known)
    with Console(stderr=True).status(f"writing {output}"), users_code(model.rpartition(":")[0]):
        path = ms.export(net, *args, file_name=output, file_format=kind, **options)
    size = path.stat().st_size
    answer(json, {"path": path, "bytes": size}, f"{path}  {size / 1e6:.1f} MB")


def run(
    module: Annotated[str, typer.Argument(help="A compiled module.")],
    input: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", help="x.npy or name:x.npy, once per input."),
    ] = None,
    output: Output = "",
    threads: Threads = 0,
    json: Json = False,
) -> None:
    """Run a compiled module on arrays from files."""
    from tvmgraph.cli.run_module import run_module

    run_module(module, input or [], output, threads or None, json)


def bench(
    model: Annotated[
        str, typer.Argument(help="A compiled module, or a model: .onnx, .graph, file.py:Name.")
    ],
    input: Inputs = None,
    vs: Annotated[
        str, typer.Option(help="Also time onnxruntime, torch (separated by commas).")
    ] = "",
    config: Config = "",
    repeat: Annotated[int, typer.Option(min=1, help="How many calls of each.")] = 100,
    threads: Threads = 0,
    onnx: Annotated[str, typer.Option(help="The ONNX file of a compiled module, for --vs.")] = "",
    json: Json = False,
) -> None:
    """Time a model, compiled, on random inputs; turns are taken with the others in --vs."""
    from tvmgraph.cli.bench import bench_model

    bench_model(model, input or [], vs, config, repeat, threads or None, onnx, json)


def serve(
    module: Annotated[str, typer.Argument(help="A compiled module.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8000,
    name: Annotated[
        str, typer.Option(help="Of the model in addresses; the file's by default.")
    ] = "",
    max_rows: Annotated[int, typer.Option(min=1, help="Rows of one call.")] = 32,
    max_wait_ms: Annotated[float, typer.Option(min=0, help="To wait for other requests.")] = 2.0,
    max_queue: Annotated[int, typer.Option(min=1, help="Requests that may wait.")] = 1024,
    calls: Annotated[int, typer.Option(min=1, help="Calls at the same time.")] = 1,
    threads: Threads = 0,
    public_key: Annotated[str, typer.Option(help="PEM file; the module must be signed.")] = "",
    json: Json = False,
) -> None:
    """Serve a compiled module over HTTP (the Open Inference Protocol), batching requests."""
    from tvmgraph.runtime.serving import listen, run_server
    from tvmgraph.runtime.serving import serve as prepared

    app, served = prepared(
        module, threads or None, public_key or None, name=name, max_rows=max_rows,
        max_wait=max_wait_ms / 1e3, max_queue=max_queue, calls=calls,
    )  # fmt: skip
    taken, url = listen(host, port, served)
    answer(json, {"url": url}, url)
    run_server(app, taken)


def bundle(
    folder: Annotated[str, typer.Argument(help="A new folder.")],
    json: Json = False,
) -> None:
    """Copy the files a machine needs to run compiled modules (NumPy aside) into a folder."""
    from tvmgraph.export.bundle import write_bundle

    files = write_bundle(Path(folder))
    size = sum(f.stat().st_size for f in files)
    facts = {"path": folder, "files": len(files), "bytes": size}
    answer(json, facts, f"{len(files)} files, {size / 1e6:.1f} MB")
