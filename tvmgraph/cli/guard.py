"""Errors as the command line reports them: a message and an exit status, no traceback.

| status | meaning |
|---|---|
| 0 | done; for a check: everything agrees |
| 1 | right input, but it cannot be done (no ONNX form of an operator), or a check fails |
| 2 | wrong input: no such file, no such name, a bad shape, an unknown target |
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from tvmgraph.errors import (
    ArgumentError,
    CaptureError,
    CompileError,
    ExportError,
    NumericsError,
    TvmgraphError,
    interprets,
)

_CANNOT = (CaptureError, CompileError, ExportError, NumericsError)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Makes a command end in a message and an exit status where it would raise.

    Args:
        command: The function of the command.
    """

    def run(*args: object, **kwargs: object) -> None:
        try:
            command(*args, **kwargs)
        except TvmgraphError as e:
            typer.echo(str(e), err=True)
            raise typer.Exit(1 if isinstance(e, _CANNOT) else 2) from None
        except BrokenPipeError:  # as in `tvmgraph ops | head`: click ends quietly
            raise
        except OSError as e:
            name = f"{e.filename}: " if e.filename else ""
            typer.echo(f"tvmgraph: {name}{e.strerror or e}", err=True)
            raise typer.Exit(2) from None

    interprets(run.__code__, lambda _: "")  # the command line is nobody's line of code
    return functools.wraps(command)(run)


@contextmanager
def users_code(file: str) -> Iterator[None]:
    """Reports what a user's file raises with the line of that file.

    Args:
        file: The file that is run inside.

    Raises:
        ArgumentError: for any other exception than this package's own.
    """
    try:
        yield
    except (TvmgraphError, OSError):
        raise
    except Exception as e:
        path = str(Path(file).resolve())
        lines = [f.lineno for f in traceback.extract_tb(e.__traceback__) if f.filename == path]
        line = e.lineno if isinstance(e, SyntaxError) else lines[-1] if lines else None
        raise ArgumentError(
            f"{type(e).__name__}: {e}", op="tvmgraph", at=f"{file}:{line}" if line else file,
            fix="this comes from the file itself",
        ) from e  # fmt: skip
