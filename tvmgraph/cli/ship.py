"""``tvmgraph compile``, ``export``, ``run``, ``bench``, ``bundle``: networks as files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

_Model = Annotated[str, typer.Argument(help="model.onnx, model.graph, or file.py:Name of a Cell.")]
_Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", help="name:1x3x224x224 or name:1x3:int32, once per input, in order."),
]
_Output = Annotated[str, typer.Option("--output", "-o", help="File to write.")]


def register(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    for command in (compile_, export, run, bench, bundle):
        app.command(command.__name__.rstrip("_"))(command)


def _guarded(work: Callable[[], Any]) -> Any:
    """Turns an error of this package into a message and exit status 1."""
    from tvmgraph.errors import TvmgraphError

    try:
        return work()
    except TvmgraphError as e:
        typer.echo(str(e), err=True)
        raise typer.Exit(1) from None


def compile_(
    model: _Model,
    input: _Inputs = None,
    output: _Output = "model.tvm",
    target: Annotated[str, typer.Option(help="A name from configs/targets.toml.")] = "host",
    level: Annotated[str, typer.Option(help="O0, O1, O2 or O3.")] = "O2",
    linker: Annotated[str, typer.Option(help="Compiler driver of another target.")] = "",
    frozen: Annotated[bool, typer.Option(help="Put the weights into the code.")] = False,
) -> None:
    """Compile a model into one file that runs without Python code of the model."""
    options = {"target": target, "jit_level": level, "linker": linker, "frozen": frozen}
    _write(model, input, output, "TVM", options)


def export(
    model: _Model,
    input: _Inputs = None,
    output: _Output = "model.onnx",
    opset: Annotated[int, typer.Option(help="Version of the standard operators.")] = 20,
    dynamic: Annotated[
        list[str] | None, typer.Option(help="A variable axis, as name:0=batch.")
    ] = None,
) -> None:
    """Write a model as ONNX, or as a graph file when the output ends in .graph."""
    kind = "GRAPH" if output.endswith(".graph") else "ONNX"
    options: dict[str, Any] = {}
    if kind == "ONNX":
        options = {"opset": opset, "dynamic": _guarded(lambda: _axes(dynamic or []))}
    _write(model, input, output, kind, options)


def _axes(texts: list[str]) -> dict[str, dict[int, str]]:
    from tvmgraph.errors import ArgumentError

    axes: dict[str, dict[int, str]] = {}
    for text in texts:
        name, _, rest = text.rpartition(":")
        number, _, label = rest.partition("=")
        if not name or not number.isdigit() or not label:
            raise ArgumentError(f"{text!r} is not name:axis=label", op="tvmgraph export",
                                fix="write --dynamic x:0=batch")  # fmt: skip
        axes.setdefault(name, {})[int(number)] = label
    return axes


def _write(
    model: str, inputs: list[str] | None, output: str, kind: str, options: dict[str, Any]
) -> None:
    def work() -> None:
        from rich.console import Console

        import tvmgraph as ms
        from tvmgraph.cli.model_argument import example_inputs, find_model

        net = find_model(model)
        args = example_inputs(net, inputs or [])
        with Console(stderr=True).status(f"writing {output}"):
            path = ms.export(net, *args, file_name=output, file_format=kind, **options)
        typer.echo(f"{path}  {path.stat().st_size / 1e6:.1f} MB")

    _guarded(work)


def run(
    module: Annotated[str, typer.Argument(help="A compiled module.")],
    input: Annotated[
        list[str] | None, typer.Option("--input", help="x.npy or name=x.npy, once per input.")
    ] = None,
    output: _Output = "",
    threads: Annotated[int, typer.Option(min=0, help="Workers; 0 for all cores.")] = 0,
) -> None:
    """Run a compiled module on arrays from files."""

    def work() -> None:
        from tvmgraph.cli.run_module import run_module

        run_module(module, input or [], output, threads or None)

    _guarded(work)


def bench(
    module: Annotated[str, typer.Argument(help="A compiled module.")],
    repeat: Annotated[int, typer.Option(min=1, help="How many calls.")] = 100,
    threads: Annotated[int, typer.Option(min=0, help="Workers; 0 for all cores.")] = 0,
    vs: Annotated[str, typer.Option(help="An ONNX file to time in ONNX Runtime too.")] = "",
) -> None:
    """Time a compiled module on random inputs."""

    def work() -> None:
        from tvmgraph.cli.run_module import bench_module

        bench_module(module, repeat, threads or None, vs)

    _guarded(work)


def bundle(
    folder: Annotated[str, typer.Argument(help="A new folder.")],
) -> None:
    """Copy the files a machine needs to run compiled modules (NumPy aside) into a folder."""

    def work() -> None:
        from pathlib import Path

        from tvmgraph.export.bundle import write_bundle

        files = write_bundle(Path(folder))
        typer.echo(f"{len(files)} files, {sum(f.stat().st_size for f in files) / 1e6:.1f} MB")

    _guarded(work)
