"""Records what PyTorch gives for the calls of :mod:`.cases`: ``python -m tests.mint.record``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.mint.cases import CALLS, inputs

EXPECTED = Path(__file__).with_name("expected.npz")


def arrays(value: Any) -> list[np.ndarray]:
    """Flattens nested results."""
    if isinstance(value, (tuple, list)):
        return [a for v in value for a in arrays(v)]
    return [np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value)]


def main() -> None:
    """Writes the file."""
    import torch  # not a dependency: only needed to record

    scope = inputs(torch.tensor) | {
        "M": torch, "N": torch.nn, "F": torch.nn.functional, "f16": torch.float16,
    }  # fmt: skip
    found = {}
    for number, call in enumerate(CALLS):
        value = eval(call, dict(scope))
        detached = torch.utils._pytree.tree_map(  # pyright: ignore
            lambda v: v.detach().numpy() if isinstance(v, torch.Tensor) else v, value
        )
        for part, array in enumerate(arrays(detached)):
            found[f"{number}.{part}"] = array
    np.savez_compressed(EXPECTED, **found)  # pyright: ignore


if __name__ == "__main__":
    main()
