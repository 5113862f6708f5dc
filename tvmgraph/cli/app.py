"""The commands; each imports what it needs when it runs, so that ``--help`` is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from tvmgraph.cli import ship
from tvmgraph.cli.guard import guarded

Inputs = Annotated[
    list[str] | None, typer.Option(help="Type of an argument, such as 'float32[8,3]'.")
]

app = typer.Typer(
    help="Write a neural network as a Cell, debug it eagerly, compile it with TVM.",
    no_args_is_help=True,
    add_completion=False,
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
def demo(
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training images.")] = 12,
    graph: Annotated[bool, typer.Option(help="Train compiled instead of eagerly.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights and shuffling.")] = 1,
) -> None:
    """Train a LeNet on handwritten digits, compile it, and compare eager with compiled."""
    from tvmgraph.cli.demo import run_demo

    if not run_demo(epochs=epochs, graph=graph, seed=seed):
        raise typer.Exit(1)


@app.command()
@guarded
def ops(
    name: Annotated[str, typer.Argument(help="Show one operator, or all that contain this.")] = "",
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Write Markdown.")] = False,
) -> None:
    """Show the operator table: which columns every row has, and the reason where one is missing."""
    from tvmgraph.cli.ops_table import markdown, print_table

    if as_markdown:
        print(markdown(), end="")
    elif not print_table(name):
        raise typer.Exit(1)


@app.command()
@guarded
def check(
    name: Annotated[str, typer.Argument(help="Check the operators whose name contains this.")] = "",
    target: Annotated[str, typer.Option(help="A name from configs/targets.toml.")] = "host",
    level: Annotated[str, typer.Option(help="O0, O1, O2 or O3.")] = "O2",
) -> None:
    """Compile every operator and compare it with its NumPy column.

    For a target that this machine cannot run, operators are only compiled.
    """
    from tvmgraph.cli.check import run_check

    if not run_check(name, target, level):
        raise typer.Exit(1)


cache = typer.Typer(help="The executables kept on disk.", no_args_is_help=True)
app.add_typer(cache, name="cache")


@cache.command()
@guarded
def info() -> None:
    """Show where executables are kept, how many, and how large they are."""
    from tvmgraph.cli.cache import show_info

    show_info()


@cache.command()
@guarded
def kernels() -> None:
    """Show what the search of jit_level O3 found."""
    from tvmgraph.cli.cache import show_kernels

    show_kernels()


@cache.command()
@guarded
def clear() -> None:
    """Delete all executables that are kept on disk."""
    from tvmgraph.cli.cache import clear_all

    clear_all()


@app.command()
@guarded
def doctor() -> None:
    """Show versions, the processor as the compiler sees it, and compile one function."""
    from tvmgraph.cli.doctor import run_doctor

    if not run_doctor():
        raise typer.Exit(1)


@app.command()
@guarded
def passes(
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Write Markdown.")] = False,
) -> None:
    """Show the passes of a compile in order: from which level on, and what each is for."""
    from tvmgraph.cli.passes_table import markdown, print_passes

    if as_markdown:
        print(markdown(), end="")
    else:
        print_passes()


@app.command()
@guarded
def flags() -> None:
    """Show the debugging flags: environment variable, value in force, what every value means."""
    from tvmgraph.cli.flags import print_flags

    print_flags()


@app.command()
@guarded
def show(
    target: Annotated[str, typer.Argument(help="file.py:name of a function, a Cell or a Graph.")],
    input: Inputs = None,
    output: Annotated[str, typer.Option(help="File to write; name.html by default.")] = "",
    kernels: Annotated[bool, typer.Option(help="Compile and time it, to show its kernels.")] = True,
) -> None:
    """Write a viewer of a function's graph: one HTML file that needs no network."""
    from tvmgraph.cli.show import show as write

    print(write(target, input or [], output, kernels))


@app.command()
@guarded
def explain(
    target: Annotated[str, typer.Argument(help="file.py:name of a function or a Cell.")],
    input: Inputs = None,
    draw: Annotated[str, typer.Option(help="SVG file for the source with its segments.")] = "",
) -> None:
    """Say what of a function is compiled, what Python runs, and why."""
    from tvmgraph.cli.explain import explain as text

    print(text(target, input or [], draw))


ship.register(app)

if __name__ == "__main__":
    app()
