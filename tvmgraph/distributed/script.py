"""``python -m tvmgraph.distributed.script``: one process's part of :mod:`~.launch`.

mpi4py ends all processes when one leaves with an error, but launchers drop what was written in the
moment before: a process says first that it leaves, and why.
"""

from __future__ import annotations

from mpi4py import run

from tvmgraph.distributed.engine import is_joined, say_who_leaves


def main() -> None:
    """Runs the script, ``-m module`` or ``-c command`` that the arguments name."""
    try:
        run.main()
    except SystemExit as left:
        if is_joined() and left.code not in (None, 0):
            say_who_leaves(left.code if isinstance(left.code, int) else 1)
        raise


if __name__ == "__main__":
    main()
