"""Coverage-guided fuzzing: ``python -m tests.fuzz TARGET SECONDS [folder]``; needs ``atheris``.

The folder keeps what reached new code, so that a later run goes on from there. Input that makes
a target fail is written to the folder; put it into ``findings/`` as ``target__what``.

``python -m tests.fuzz programs SECONDS [folder]`` runs random programs over the operator table
instead, see :mod:`tests.fuzz.campaign`; ``graphs`` for ``programs`` compiles none of them, which
takes a tenth of the time, and ``mixed`` one batch of twenty. All go on where they were left in the
folder. ``python -m tests.fuzz coverage [seed]`` counts the rewrite rules, decisions about kernels
and rows that 300 programs from a seed on reach.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

_MEGABYTES = 3000
_SECONDS_PER_INPUT = 20
#: Of so many batches of random programs one is compiled.
_COMPILED_EVERY = {"programs": 1, "mixed": 20, "graphs": 0}


def main(name: str, seconds: int, folder: Path) -> None:
    """Fuzzes one target."""
    import atheris  # pyright: ignore[reportMissingImports]

    with atheris.instrument_imports(include=["tvmgraph.onnx", "tvmgraph.graph", "tvmgraph.runtime",
                                             "tvmgraph.export", "tvmgraph.cli"]):  # fmt: skip
        from tests.fuzz.targets import TARGETS
    function, seeds = TARGETS[name]
    corpus = folder / name
    corpus.mkdir(parents=True, exist_ok=True)
    for i, data in enumerate(seeds()):
        (corpus / f"seed{i}").write_bytes(data)
    options = [
        f"-max_total_time={seconds}", f"-rss_limit_mb={_MEGABYTES}",
        f"-timeout={_SECONDS_PER_INPUT}", f"-artifact_prefix={folder}/{name}-", "-len_control=0",
        "-max_len=20000",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], function)
    atheris.Fuzz()


if __name__ == "__main__":
    if sys.argv[1] == "coverage":
        from tests.fuzz.coverage import table

        print(table(int(sys.argv[2]) if len(sys.argv) > 2 else 0))
        sys.exit()
    where = Path(sys.argv[3]) if len(sys.argv) > 3 else Path(tempfile.mkdtemp(prefix="fuzz-"))
    if sys.argv[1] in _COMPILED_EVERY:
        from tests.fuzz.campaign import run

        run(int(sys.argv[2]), where, every=_COMPILED_EVERY[sys.argv[1]])
    else:
        main(sys.argv[1], int(sys.argv[2]), where)
