"""Runs of ``experimental.optim``: parameters after some steps, and learning rates of epochs.

``record_values.py`` writes what MindSpore gives; :func:`run` is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

OPTIMIZERS = """
SGD(ps, 0.1)
SGD(ps, 0.1, momentum=0.9, dampening=0.5, weight_decay=0.1)
SGD(ps, 0.1, momentum=0.9, nesterov=True, maximize=True)
SGD([{'params': [ps[0]], 'lr': 0.5}, {'params': [ps[1]], 'weight_decay': 0.3}], lr=0.1)
Adam(ps, 0.1)
Adam(ps, 0.1, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1)
Adam(ps, 0.1, maximize=True)
AdamW(ps, 0.1)
AdamW(ps, 0.1, amsgrad=True, weight_decay=0.3)
Adadelta(ps)
Adadelta(ps, 0.5, rho=0.8, weight_decay=0.1)
Adagrad(ps, 0.1)
Adagrad(ps, 0.1, lr_decay=0.1, initial_accumulator_value=0.5)
Adamax(ps, 0.1, weight_decay=0.1)
NAdam(ps, 0.1)
NAdam(ps, 0.1, weight_decay=0.1, momentum_decay=0.1)
RAdam(ps, 0.1)
RAdam(ps, 0.1, betas=(0.7, 0.8), weight_decay=0.1)
RMSprop(ps, 0.1)
RMSprop(ps, 0.1, momentum=0.5, centered=True, weight_decay=0.1)
Rprop(ps, 0.1)
Rprop(ps, 0.1, etas=(0.3, 1.5), step_sizes=(1e-3, 0.12))
ASGD(ps, 0.1)
ASGD(ps, 0.1, lambd=0.1, t0=2.0, weight_decay=0.1)
""".strip().splitlines()

SCHEDULES = """
StepLR(o, 3, gamma=0.5)
MultiStepLR(o, [2, 5, 5], gamma=0.5)
ConstantLR(o, factor=0.5, total_iters=4)
LinearLR(o, start_factor=0.25, total_iters=4)
ExponentialLR(o, 0.8)
PolynomialLR(o, total_iters=6, power=2.0)
LambdaLR(o, lambda e: 0.9 ** e)
MultiplicativeLR(o, lambda e: 0.9)
CosineAnnealingLR(o, T_max=4, eta_min=0.01)
CosineAnnealingWarmRestarts(o, 2, T_mult=2, eta_min=0.01)
CyclicLR(o, base_lr=0.1, max_lr=0.5, step_size_up=3)
CyclicLR(o, 0.1, 0.5, step_size_up=2, step_size_down=3, mode='triangular2')
CyclicLR(o, 0.1, 0.5, step_size_up=2, mode='exp_range', gamma=0.9)
SequentialLR(o, [S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)], [4])
ReduceLROnPlateau(o, 'min', factor=0.5, patience=1, cooldown=1)
ReduceLROnPlateau(o, 'max', factor=0.5, patience=0, threshold_mode='abs', threshold=0.2)
""".strip().splitlines()

EPOCHS = 10


def run(call: str, ms: Any, optim: Any, compiled: Callable[[Any], Any] = lambda f: f) -> Any:
    """Returns the two parameters after six steps, or the rates of ten epochs."""
    starts = (numpy.array([1.0, -2.0, 3.0]), numpy.array([[0.5], [-1.5]]))
    ps = [ms.Parameter(ms.Tensor(s.astype(numpy.float32)), name=f"p{k}")
          for k, s in enumerate(starts)]  # fmt: skip
    if call in OPTIMIZERS:
        return _steps(eval(f"O.{call}", {"O": optim, "ps": ps}), ps, ms, compiled)
    o = optim.SGD(ps, 0.4)
    schedule = eval(f"S.{call}", {"S": optim.lr_scheduler, "o": o})
    metrics = [1.0, 0.9, 0.95, 0.93, 0.97, 0.5, 0.6, 0.7, 0.8, 0.9]
    step = compiled(schedule.step) if "Sequential" not in call else schedule.step
    rates = []
    for metric in metrics[:EPOCHS]:
        rates.append(o.lrs[0].asnumpy().copy())
        step(*(ms.Tensor(metric, ms.float32),) if "Plateau" in call else ())
    return numpy.array(rates)


def _steps(optimizer: Any, ps: list[Any], ms: Any, compiled: Callable[[Any], Any]) -> list[Any]:
    step = compiled(optimizer)
    for number in range(6):
        gradients = (ps[0] * 2 + 0.1 * number, ps[1] * ps[1] * ps[1] - 0.2)
        step(gradients)
    return [p.asnumpy() for p in ps]
