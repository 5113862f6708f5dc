"""Peak memory of one training step: ``python -m benchmarks.peers.memory PEER ROW`` prints bytes.

What is counted is what a framework allocates for tensors: parameters, optimizer states, the batch,
gradients and intermediate results, as its own memory report or profiler gives them.
"""

import sys

from benchmarks.training_rows import TRAINING
from benchmarks.workloads import Workload

WARM_STEPS = 2


def of_tvmgraph(work: Workload) -> int:
    """Bytes of a compiled step as ``memory`` reports them."""
    import tvmgraph as ms
    from benchmarks.peers.cells import build_cell

    step = ms.jit(build_cell(ms, work))
    args = [ms.Tensor(a) for a in work.args]
    for _ in range(WARM_STEPS):
        step(*args)
    return step.memory(*args).peak


def of_torch(work: Workload) -> int:
    """Bytes of an eager step by PyTorch's profiler."""
    from torch.profiler import ProfilerActivity, profile  # pyright: ignore[reportMissingImports]

    from benchmarks.peers.torch_training import training_step

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        step = training_step(work)
        for _ in range(WARM_STEPS + 1):
            step()
    live = peak = 0
    events = found.profiler.kineto_results.events()  # pyright: ignore[reportOptionalMemberAccess]
    for event in sorted(events, key=lambda e: e.start_ns()):
        if event.name() == "[memory]":
            live += event.nbytes()
            peak = max(peak, live)
    # parameters and batch are memory of NumPy's, which the profiler does not see
    return peak + sum(a.nbytes for a in (*work.params.values(), *work.args))


MEASURES = {"tvmgraph": of_tvmgraph, "torch": of_torch}

if __name__ == "__main__":
    print(MEASURES[sys.argv[1]](TRAINING[sys.argv[2]]()))
