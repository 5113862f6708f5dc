"""Writes ``training_losses.json``: the first losses of every training row, in float64.

Run ``python -m benchmarks.training_losses`` where PyTorch is installed.
"""

import json

import torch

from benchmarks.peers.torch_training import training_step
from benchmarks.training_rows import LOSSES, TRAINING


def main() -> None:
    """Compute and write the losses."""
    found: dict[str, list[float]] = {}
    for name, make in TRAINING.items():
        work = make()
        step = training_step(work, dtype=torch.float64)
        found[name] = [float(step()) for _ in range(work.calls)]
    LOSSES.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
