"""One optimizer step on parameters, as the operator classes ``Apply...`` compute it.

Every function stores the new values in the parameters it is given and returns them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvmgraph.core.columns import NumberLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import float32
from tvmgraph.ops.effects.assignment import values_of


def apply_momentum(
    variable: Tensor,
    accumulation: Tensor,
    learning_rate: NumberLike,
    gradient: Tensor,
    momentum: NumberLike,
    use_nesterov: bool,
    gradient_scale: float,
) -> Tensor:
    """``a = momentum a + g``, then ``v -= lr a`` (Nesterov: ``v -= lr (g + momentum a)``).

    Args:
        variable: The parameters, which are written.
        accumulation: The step before, of the same shape; written.
        learning_rate: The learning rate.
        gradient: The gradient, of the shape of the parameters.
        momentum: Factor of the step before.
        use_nesterov: Whether the step looks ahead by its momentum.
        gradient_scale: Factor of the gradient.
    """
    g = gradient * gradient_scale if gradient_scale != 1 else gradient
    a = F.assign(accumulation, accumulation * momentum + g)
    step = g + a * momentum if use_nesterov else a
    return F.assign_sub(variable, step * learning_rate)


def sgd(
    parameters: Tensor,
    gradient: Tensor,
    learning_rate: NumberLike,
    accum: Tensor,
    momentum: NumberLike,
    stat: Tensor,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
) -> Tensor:
    """Stochastic gradient descent with momentum; ``stat`` is 1 before the first step.

    Args:
        parameters: The parameters, which are written.
        gradient: The gradient, of the shape of the parameters.
        learning_rate: The learning rate.
        accum: The step before, of the same shape; written.
        momentum: Factor of the step before.
        stat: Ones before the first step, of the same shape; written with zeros.
        dampening: Share of the gradient that does not go into ``accum``.
        weight_decay: Factor of the parameters that are added to the gradient.
        nesterov: Whether the step looks ahead by its momentum.
    """
    g = gradient + parameters * weight_decay if weight_decay else gradient
    later = accum * momentum + g * (1 - dampening)
    a = F.assign(accum, F.where(F.greater(stat, 0), g, later))
    F.assign(stat, F.zeros_like(stat))
    step = g + a * momentum if nesterov else a
    return F.assign_sub(parameters, step * learning_rate)


def adam(
    var: Tensor,
    m: Tensor,
    v: Tensor,
    beta1_power: NumberLike,
    beta2_power: NumberLike,
    lr: NumberLike,
    beta1: NumberLike,
    beta2: NumberLike,
    epsilon: NumberLike,
    gradient: Tensor,
    use_nesterov: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Adam; ``beta1_power`` and ``beta2_power`` are the powers after this step.

    Args:
        var: The parameters, which are written.
        m: Running mean of the gradient, of the shape of the parameters; written.
        v: Running mean of its square, of the same shape; written.
        beta1_power: ``beta1`` to the power of the number of steps.
        beta2_power: ``beta2`` to the power of the number of steps.
        lr: The learning rate.
        beta1: Decay of the mean.
        beta2: Decay of the mean square.
        epsilon: What is added to the divisor.
        gradient: The gradient, of the shape of the parameters.
        use_nesterov: Whether the step looks ahead by its momentum.
    """
    scale = lr * F.sqrt(_tensor(1 - beta2_power)) / (1 - beta1_power)
    new_m = F.assign(m, m + (gradient - m) * (1 - beta1))
    new_v = F.assign(v, v + (F.square(gradient) - v) * (1 - beta2))
    step = new_m * beta1 + gradient * (1 - beta1) if use_nesterov else new_m
    F.assign_sub(var, step * scale / (F.sqrt(new_v) + epsilon))
    return values_of(var, m, v)


def adam_weight_decay(
    var: Tensor,
    m: Tensor,
    v: Tensor,
    lr: NumberLike,
    beta1: NumberLike,
    beta2: NumberLike,
    epsilon: NumberLike,
    decay: NumberLike,
    gradient: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Adam without bias correction and with decoupled weight decay.

    Args:
        var: The parameters, which are written.
        m: Running mean of the gradient, of the shape of the parameters; written.
        v: Running mean of its square, of the same shape; written.
        lr: The learning rate.
        beta1: Decay of the mean.
        beta2: Decay of the mean square.
        epsilon: What is added to the divisor.
        decay: Factor of the parameters that are added to the step.
        gradient: The gradient, of the shape of the parameters.
    """
    new_m = F.assign(m, m * beta1 + gradient * (1 - beta1))
    new_v = F.assign(v, v * beta2 + F.square(gradient) * (1 - beta2))
    step = new_m / (F.sqrt(new_v) + epsilon) + var * decay
    F.assign_sub(var, step * lr)
    return values_of(var, m, v)


def apply_rms_prop(
    var: Tensor,
    mean_square: Tensor,
    moment: Tensor,
    learning_rate: NumberLike,
    grad: Tensor,
    rho: NumberLike,
    momentum: NumberLike,
    epsilon: NumberLike,
    mean_gradient: Tensor | None = None,
) -> Tensor:
    """RMSProp: divides by the root of a running mean of squares, or of a running variance.

    Args:
        var: The parameters, which are written.
        mean_square: Running mean of the squared gradient, of the same shape; written.
        moment: The step before, of the same shape; written.
        learning_rate: The learning rate.
        grad: The gradient, of the shape of the parameters.
        rho: Decay of the means.
        momentum: Factor of the step before.
        epsilon: What is added to the divisor.
        mean_gradient: Running mean of the gradient, of the same shape, written: with it, the
            divisor is of the variance.
    """
    grad = F.cast(grad, var.dtype)
    s = F.assign(mean_square, mean_square * rho + F.square(grad) * (1 - rho))
    if mean_gradient is not None:
        s = s - F.square(F.assign(mean_gradient, mean_gradient * rho + grad * (1 - rho)))
    a = F.assign(moment, moment * momentum + grad * learning_rate / F.sqrt(s + epsilon))
    return F.assign_sub(var, a)


def sparse_rms_prop(
    var: Tensor, mean_square: Tensor, moment: Tensor, learning_rate: NumberLike, grad: Tensor,
    rho: NumberLike, momentum: NumberLike, epsilon: NumberLike,
) -> None:  # fmt: skip
    """RMSProp of some rows: as in MindSpore, a gradient of zero leaves its mean square alone.

    Args:
        var: The rows, which are written.
        mean_square: Their running mean of the squared gradient; written.
        moment: Their step before; written.
        learning_rate: The learning rate.
        grad: The gradient of the rows.
        rho: Decay of the mean.
        momentum: Factor of the step before.
        epsilon: What is added to the divisor.
    """
    before = F.identity(mean_square)
    apply_rms_prop(var, mean_square, moment, learning_rate, grad, rho, momentum, epsilon)
    F.assign(mean_square, F.where(F.equal(grad, 0), before, mean_square))


def apply_adagrad(
    var: Tensor,
    accum: Tensor,
    lr: NumberLike,
    grad: Tensor,
    update_slots: bool,
    epsilon: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Adagrad: divides by the root of the sum of squares.

    Args:
        var: The parameters, which are written.
        accum: Sum of squared gradients, of the shape of the parameters; written.
        lr: The learning rate.
        grad: The gradient, of the shape of the parameters.
        update_slots: Whether ``accum`` is written.
        epsilon: What is added to the divisor.
    """
    grad = F.cast(grad, var.dtype)  # before it is multiplied by numbers, which do not widen it
    a = F.assign_add(accum, F.square(grad)) if update_slots else accum
    F.assign_sub(var, grad * lr / (F.sqrt(a) + epsilon if epsilon else F.sqrt(a)))
    return values_of(var, accum)


def apply_adadelta(
    var: Tensor,
    accum: Tensor,
    accum_update: Tensor,
    lr: NumberLike,
    rho: NumberLike,
    epsilon: NumberLike,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Adadelta: the step size follows the running mean of past steps.

    Args:
        var: The parameters, which are written.
        accum: Running mean of the squared gradient, of the same shape; written.
        accum_update: Running mean of the squared step, of the same shape; written.
        lr: The learning rate.
        rho: Decay of both means.
        epsilon: What is added to the divisor.
        grad: The gradient, of the shape of the parameters.
    """
    a = F.assign(accum, accum * rho + F.square(grad) * (1 - rho))
    step = F.sqrt(accum_update + epsilon) / F.sqrt(a + epsilon) * grad
    F.assign(accum_update, accum_update * rho + F.square(step) * (1 - rho))
    F.assign_sub(var, step * lr)
    return values_of(var, accum, accum_update)


def apply_ada_max(
    var: Tensor,
    m: Tensor,
    v: Tensor,
    beta1_power: NumberLike,
    lr: NumberLike,
    beta1: NumberLike,
    beta2: NumberLike,
    epsilon: NumberLike,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """AdaMax: Adam with the maximum norm.

    Args:
        var: The parameters, which are written.
        m: Running mean of the gradient, of the shape of the parameters; written.
        v: Decaying maximum of the absolute gradient, of the same shape; written.
        beta1_power: ``beta1`` to the power of the number of steps.
        lr: The learning rate.
        beta1: Decay of the mean.
        beta2: Decay of the mean square.
        epsilon: What is added to the divisor.
        grad: The gradient, of the shape of the parameters.
    """
    new_m = F.assign(m, m * beta1 + grad * (1 - beta1))
    new_v = F.assign(v, F.maximum(v * beta2, F.abs(grad)))
    F.assign_sub(var, new_m * (lr / (1 - beta1_power)) / (new_v + epsilon))
    return values_of(var, m, v)


def proximal(v: Tensor, rate: NumberLike, l1: NumberLike, l2: NumberLike) -> Tensor:
    """Returns ``v`` drawn to 0 by ``l1`` and divided by ``1 + rate l2``.

    Args:
        v: Tensor of any shape.
        rate: The learning rate, a number or a tensor of that shape.
        l1: Strength of the absolute values.
        l2: Strength of the squares.
    """
    return F.sign(v) * F.maximum(F.abs(v) - rate * l1, 0.0) / (1 + rate * l2)


def apply_proximal_adagrad(
    var: Tensor, accum: Tensor, lr: NumberLike, l1: NumberLike, l2: NumberLike, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """Adagrad with proximal steps.

    Args:
        var: The parameters, which are written.
        accum: Sum of squared gradients, of the shape of the parameters; written.
        lr: The learning rate.
        l1: Strength of the absolute values.
        l2: Strength of the squares.
        grad: The gradient, of the shape of the parameters.
    """
    grad = F.cast(grad, var.dtype)
    a = F.assign_add(accum, F.square(grad))
    rate = lr / F.sqrt(a)
    F.assign(var, proximal(var - grad * rate, rate, l1, l2))
    return values_of(var, accum)


def apply_adagrad_da(
    var: Tensor,
    total: Tensor,
    squares: Tensor,
    grad: Tensor,
    lr: NumberLike,
    l1: NumberLike,
    l2: NumberLike,
    step: Tensor,
) -> Tensor:
    """Adagrad by the sums of all gradients.

    Args:
        var: The parameters, which are written.
        total: Sum of all gradients, of the same shape; written.
        squares: Sum of their squares, of the same shape; written.
        grad: The gradient, of the shape of the parameters.
        lr: The learning rate.
        l1: Strength of the absolute values.
        l2: Strength of the squares.
        step: Number of this step.
    """
    g, s = F.assign_add(total, grad), F.assign_add(squares, F.square(grad))
    drawn = F.sign(g) * F.maximum(F.abs(g) - l1 * step, 0.0)
    F.assign(var, F.neg(drawn * lr) / (F.sqrt(s) + l2 * step * lr))
    return values_of(var)


def apply_ftrl(
    var: Tensor,
    accum: Tensor,
    linear: Tensor,
    grad: Tensor,
    lr: NumberLike,
    l1: NumberLike,
    l2: NumberLike,
    power: NumberLike,
) -> Tensor:
    """Follow the regularized leader.

    Args:
        var: The parameters, which are written.
        accum: Sum of squared gradients, of the shape of the parameters; written.
        linear: Linear part of the bound, of the same shape; written.
        grad: The gradient, of the shape of the parameters.
        lr: The learning rate.
        l1: Strength of the absolute values.
        l2: Strength of the squares.
        power: Exponent of ``accum`` in the learning rate, negative or 0.
    """
    new = accum + F.square(grad)
    before, after = (F.pow(a, -power) for a in (accum, new))
    z = linear + grad - (after - before) / lr * var
    F.assign(var, (F.clamp(z, -l1, l1) - z) / (after / lr + 2 * l2))
    F.assign(linear, z)
    F.assign(accum, new)
    return values_of(var)


def apply_sign(
    var: Tensor,
    m: Tensor,
    lr: NumberLike,
    beta: NumberLike,
    grad: Tensor,
    factor: Callable[[Tensor], object],
) -> tuple[Tensor, Tensor]:
    """Scales the gradient by whether its sign agrees with that of the running mean.

    Args:
        var: The parameters, which are written.
        m: Running mean of the gradient, of the shape of the parameters; written.
        lr: The learning rate.
        beta: Decay of the mean.
        grad: The gradient, of the shape of the parameters.
        factor: The factor of the gradient, of the product of both signs.
    """
    mean = F.assign(m, m * beta + grad * (1 - beta))
    F.assign_sub(var, grad * factor(F.sign(grad) * F.sign(mean)) * lr)
    return values_of(var, m)


def apply_amsgrad(
    var: Tensor,
    m: Tensor,
    v: Tensor,
    vhat: Tensor,
    beta1_power: NumberLike,
    beta2_power: NumberLike,
    lr: NumberLike,
    beta1: NumberLike,
    beta2: NumberLike,
    epsilon: NumberLike,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Adam with the largest mean square so far; the powers are those after this step.

    Args:
        var: The parameters, which are written.
        m: Running mean of the gradient, of the shape of the parameters; written.
        v: Running mean of its square, of the same shape; written.
        vhat: The largest mean square so far, of the same shape; written.
        beta1_power: ``beta1`` to the power of the number of steps.
        beta2_power: ``beta2`` to the power of the number of steps.
        lr: The learning rate.
        beta1: Decay of the mean.
        beta2: Decay of the mean square.
        epsilon: What is added to the divisor.
        grad: The gradient, of the shape of the parameters.
    """
    mean = F.assign(m, m * beta1 + grad * (1 - beta1))
    square = F.assign(v, v * beta2 + F.square(grad) * (1 - beta2))
    most = F.assign(vhat, F.maximum(vhat, square))
    rate = lr * F.sqrt(F.cast(1 - beta2_power, float32)) / (1 - beta1_power)
    F.assign_sub(var, mean * rate / (F.sqrt(most) + epsilon))
    return values_of(var, m, v, vhat)


def on_rows(
    step: Callable[..., object], variables: tuple[Tensor, ...], gradient: Tensor, indices: Tensor
) -> Tensor | tuple[Tensor, ...]:
    """Makes a step with the rows of parameters that ``indices`` name, and leaves the others alone.

    Args:
        step: Gets these rows of every variable, to which it assigns, and their gradient.
        variables: Parameters of one shape.
        gradient: The gradients of the rows, one per index; those of one row are added up.
        indices: Numbers of the rows.

    Returns:
        The new values of the variables.
    """
    total = F.gather(scattered(variables[0], gradient, indices), indices, 0)
    rows = [F.gather(v, indices, 0) for v in variables]
    step(*rows, total)
    for variable, row in zip(variables, rows, strict=True):
        F.assign(variable, F.tensor_scatter_update(variable, F.expand_dims(indices, -1), row))
    return values_of(*variables)


def scattered(variable: Tensor, gradient: Tensor, indices: Tensor) -> Tensor:
    """Returns the gradient of all rows: 0 for those that are not named.

    Args:
        variable: The parameters.
        gradient: Gradients of the named rows, one per index; those of one row are added up.
        indices: Numbers of the rows.
    """
    return F.tensor_scatter_add(F.zeros_like(variable), F.expand_dims(indices, -1), gradient)


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor(float(value))
