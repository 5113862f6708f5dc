"""Words of MindSpore about parallel training that programs name without using several devices."""

from __future__ import annotations


class ParallelMode:
    """How training is shared out; one process has ``STAND_ALONE``."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = (STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL)


__all__ = ["ParallelMode"]
