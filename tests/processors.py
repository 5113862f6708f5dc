"""The processors that compiled code is tested as: this one, and lesser ones that it can be."""

from __future__ import annotations

import os

from tvmgraph.machine.processor import cpu_model, missing_features
from tvmgraph.machine.targets import CPU_VARIABLE, HOST, target_table

_V3 = "x86-64-v3"  # what most laptops and desktops are
_is_one = not missing_features(target_table()[_V3]["features"])
_is_more = cpu_model(HOST).vector_bytes > target_table()[_V3]["vector_bytes"]

#: This one, and if it has more than AVX2 also one without; just the one that is asked for, if so.
CPUS = [HOST, _V3] if _is_one and _is_more and not os.environ.get(CPU_VARIABLE) else [HOST]
