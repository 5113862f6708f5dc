"""One step of every kind of recurrent cell, on projected inputs."""

from __future__ import annotations

from collections.abc import Callable

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor

State = tuple[Tensor, ...]
# (input projection, hidden projection, state) -> new state; its first entry is the output
Step = Callable[[Tensor, Tensor, State], State]


def tanh_step(x: Tensor, h: Tensor, state: State) -> State:
    r""":math:`h' = \tanh(x + h)`.

    Args:
        x: Projected input, of shape (N, hidden).
        h: Projected state, of shape (N, hidden).
        state: The states before the step.
    """
    return (F.tanh(x + h),)


def relu_step(x: Tensor, h: Tensor, state: State) -> State:
    r""":math:`h' = \max(x + h, 0)`.

    Args:
        x: Projected input, of shape (N, hidden).
        h: Projected state, of shape (N, hidden).
        state: The states before the step.
    """
    return (F.relu(x + h),)


def lstm_step(x: Tensor, h: Tensor, state: State) -> State:
    r""":math:`c' = f c + i g,\; h' = o \tanh(c')` with the gates in the order i, f, g, o.

    Args:
        x: Projected input, of shape (N, 4 * hidden).
        h: Projected state, of shape (N, 4 * hidden).
        state: :math:`h` and :math:`c` before the step, of shape (N, hidden).
    """
    i, f, g, o = F.split(x + h, state[0].shape[-1], axis=-1)
    c = F.sigmoid(f) * state[1] + F.sigmoid(i) * F.tanh(g)
    return F.sigmoid(o) * F.tanh(c), c


def gru_step(x: Tensor, h: Tensor, state: State) -> State:
    r""":math:`n = \tanh(x_n + r h_n),\; h' = (1 - z) n + z h`; the gates are r, z, n in order.

    Args:
        x: Projected input, of shape (N, 3 * hidden).
        h: Projected state, of shape (N, 3 * hidden).
        state: :math:`h` before the step, of shape (N, hidden).
    """
    size = state[0].shape[-1]
    x_r, x_z, x_n = F.split(x, size, axis=-1)
    h_r, h_z, h_n = F.split(h, size, axis=-1)
    r, z = F.sigmoid(x_r + h_r), F.sigmoid(x_z + h_z)
    n = F.tanh(x_n + r * h_n)
    return (n + z * (state[0] - n),)


STEPS: dict[str, tuple[Step, int, int]] = {  # mode: step, gates, tensors of the state
    "rnn_tanh": (tanh_step, 1, 1),
    "rnn_relu": (relu_step, 1, 1),
    "lstm": (lstm_step, 4, 2),
    "gru": (gru_step, 3, 1),
}
