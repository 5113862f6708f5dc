"""All rows by name, and the groups that ``--rows`` takes too."""

from collections.abc import Callable

from benchmarks.conv_rows import CONVOLUTIONS, VISION
from benchmarks.kernel_rows import GEMM, PASSES
from benchmarks.network_rows import NETWORKS
from benchmarks.training_rows import TRAINING
from benchmarks.workloads import BASIC, Workload

Factories = dict[str, Callable[[], Workload]]

GROUPS: dict[str, Factories] = {
    "basic": BASIC,
    "gemm": GEMM,
    "elementwise": PASSES,
    "convolution": CONVOLUTIONS,
    "vision": VISION,
    "transformer": NETWORKS,
    "training": TRAINING,
}
ROWS: Factories = {name: make for rows in GROUPS.values() for name, make in rows.items()}
