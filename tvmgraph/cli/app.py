"""The commands; each imports what it needs when it runs, so that ``--help`` is quick."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tvmgraph.cli import ship
from tvmgraph.cli.guard import guarded
from tvmgraph.cli.options import (
    EXIT_CODES,
    Config,
    Inputs,
    Json,
    Level,
    Markdown,
    Operator,
    Output,
    Target,
    answer,
    only_json,
    print_json,
)

_Function = Annotated[str, typer.Argument(help="file.py:name of a function or a Cell.")]

app = typer.Typer(
    help="Write a neural network as a Cell, debug it eagerly, compile it with TVM.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        import tvmgraph

        typer.echo(f"tvmgraph {tvmgraph.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Write a neural network as a Cell, debug it eagerly, compile it with TVM."""


@app.command()
@guarded
def new(
    name: Annotated[str, typer.Argument(help="Name of the project, and of its new folder.")],
    json: Json = False,
) -> None:
    """Write a small project that runs: a Cell, training, export, a test."""
    from tvmgraph.cli.new import next_steps, write_project

    files = write_project(name)
    answer(json, {"path": name, "files": files}, next_steps(name, files))


@app.command()
@guarded
def demo(
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training images.")] = 12,
    graph: Annotated[bool, typer.Option(help="Train compiled instead of eagerly.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights and shuffling.")] = 1,
    json: Json = False,
) -> None:
    """Train a LeNet on handwritten digits, compile it, and compare eager with compiled."""
    from tvmgraph.cli.demo import run_demo

    if not run_demo(epochs=epochs, graph=graph, seed=seed, as_json=json):
        raise typer.Exit(1)


@app.command()
@guarded
def ops(name: Operator = "", json: Json = False, markdown: Markdown = False) -> None:
    """Show the operator table: which columns every row has, and the reason where one is missing."""
    from tvmgraph.cli import ops_table

    if markdown:
        print(ops_table.markdown(), end="")
    elif json:
        print_json(ops_table.facts(name))
    else:
        ops_table.print_table(name)


@app.command()
@guarded
def check(
    name: Operator = "", target: Target = "host", level: Level = "O2", json: Json = False
) -> None:
    """Compile every operator and compare it with its NumPy column.

    For a target that this machine cannot run, operators are only compiled.
    """
    from tvmgraph.cli.check import run_check

    if not run_check(name, target, level, json):
        raise typer.Exit(1)


cache = typer.Typer(help="The executables kept on disk.", no_args_is_help=True)
app.add_typer(cache, name="cache")


@cache.command()
@guarded
def info(json: Json = False) -> None:
    """Show where executables are kept, how many, and how large they are."""
    from tvmgraph.cli.cache import show_info

    show_info(json)


@cache.command()
@guarded
def kernels(json: Json = False) -> None:
    """Show what the search of jit_level O3 found."""
    from tvmgraph.cli.cache import show_kernels

    show_kernels(json)


@cache.command()
@guarded
def clear(json: Json = False) -> None:
    """Delete all executables that are kept on disk."""
    from tvmgraph.cli.cache import clear_all

    clear_all(json)


@app.command()
@guarded
def doctor(json: Json = False) -> None:
    """Show versions, the processor as the compiler sees it, and compile one function."""
    from tvmgraph.cli.doctor import run_doctor

    if not run_doctor(json):
        raise typer.Exit(1)


@app.command()
@guarded
def passes(json: Json = False, markdown: Markdown = False) -> None:
    """Show the passes of a compile in order: from which level on, and what each is for."""
    from tvmgraph.cli import passes_table

    if markdown:
        print(passes_table.markdown(), end="")
    elif json:
        print_json(passes_table.facts())
    else:
        passes_table.print_passes()


@app.command()
@guarded
def flags(json: Json = False) -> None:
    """Show the debugging flags: environment variable, value in force, what every value means."""
    from tvmgraph.cli.flags import facts, print_flags

    if json:
        print_json(facts())
    else:
        print_flags()


@app.command()
@guarded
def show(
    target: Annotated[str, typer.Argument(help="file.py:name of a function, a Cell or a Graph.")],
    input: Inputs = None,
    output: Output = "",
    kernels: Annotated[bool, typer.Option(help="Compile and time it, to show its kernels.")] = True,
    json: Json = False,
) -> None:
    """Write a viewer of a function's graph: one HTML file that needs no network."""
    from tvmgraph.cli.show import show as write

    path = write(target, input or [], output, kernels)
    answer(json, {"path": path}, str(path))


@app.command()
@guarded
def explain(
    target: _Function,
    input: Inputs = None,
    draw: Annotated[str, typer.Option(help="SVG file for the source with its segments.")] = "",
    json: Json = False,
) -> None:
    """Say what of a function is compiled, what Python runs, and why."""
    from tvmgraph.cli.explain import explain as ask

    with only_json(json):
        function = ask(target, input or [], draw)
    text = function.explain()
    answer(json, {"compiles": list(map(vars, function.history)), "text": text}, text)


@app.command()
@guarded
def why(
    target: _Function,
    input: Inputs = None,
    config: Config = "",
    calls: Annotated[int, typer.Option(min=1, help="Calls that gains are reckoned for.")] = 1000,
    json: Json = False,
) -> None:
    """Say what a function's time goes to, and what to change, in order of gain."""
    from tvmgraph.cli.why import examine, print_findings

    with only_json(json):
        found = examine(target, input or [], config, calls)
    if json:
        print_json(asdict(found))
    else:
        print_findings(found)


ship.register(app)

if __name__ == "__main__":
    app()
