"""Hooks, buffers and the state dict of a Cell; expected values are MindSpore's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph.core.parameter import Buffer
from tvmgraph.errors import ArgumentError, DTypeError, LoadError

X = Tensor(np.array([1.0, -2.0], np.float32))


class Two(nn.Cell):
    """Two outputs and a keyword."""

    def construct(self, x: Any, y: Any = 2.0) -> Any:
        return x * 3 * y, x + 1


def _list(value: Any) -> Any:
    return [_list(v) for v in value] if isinstance(value, tuple) else value.asnumpy().tolist()


def test_forward_hooks_change_inputs_and_outputs_in_order() -> None:
    net, seen = Two(), []
    net.register_forward_pre_hook(lambda cell, args: seen.append(_list(args)))
    net.register_forward_pre_hook(lambda cell, args: (args[0] * 10,), prepend=True)
    net.register_forward_hook(lambda cell, args, out: seen.append(_list(out)))
    net.register_forward_hook(lambda cell, args, out: (out[0] * 0, out[1]), prepend=True)
    assert _list(net(X)) == [[0, 0], [11, -19]]
    assert seen == [[[10, -20]], [[0, 0], [11, -19]]]


def test_hooks_with_keywords() -> None:
    net, seen = Two(), []
    net.register_forward_pre_hook(lambda cell, args, kw: (args, {"y": 5.0}), with_kwargs=True)
    net.register_forward_hook(lambda cell, args, kw, out: seen.append(kw), with_kwargs=True)
    assert _list(net(X, y=1.0))[0] == [15, -30]
    assert seen == [{"y": 5.0}]
    net.register_forward_pre_hook(lambda cell, args, kw: 3, with_kwargs=True)
    with pytest.raises(ArgumentError, match="returns None or"):
        net(X)


@pytest.mark.parametrize("changed", [lambda g: (g[0] * 7,), lambda g: g[0] * 7])
def test_backward_hooks(changed: Any) -> None:
    net, seen = nn.ReLU(), []
    loss = lambda x: (net(x) * 2).sum()  # noqa: E731

    def note(cell: Any, grad_input: Any, grad_output: Any) -> None:
        seen.append((_list(grad_input), _list(grad_output)))

    watch = net.register_backward_hook(note)
    assert _list(ms.grad(loss)(X)) == [2, 0]
    assert seen == [([[2, 0]], [[2, 2]])]
    watch.remove()
    handle = net.register_backward_hook(lambda cell, gi, go: changed(gi))
    assert _list(ms.grad(loss)(X)) == [14, 0]
    assert _list(ms.jit(ms.grad(loss))(X)) == [14, 0]
    handle.remove()
    handle.remove()
    assert _list(ms.grad(loss)(X)) == [2, 0]
    net.register_backward_pre_hook(lambda cell, go: (go[0] * 3,))
    assert _list(ms.grad(loss)(X)) == [6, 0]


def test_a_hook_is_seen_by_compiled_code() -> None:
    net = nn.ReLU()
    run = ms.jit(lambda x: net(x))
    assert _list(run(X)) == [1, 0]
    handle = net.register_forward_hook(lambda cell, args, out: out + 1)
    assert _list(run(X)) == [2, 1]
    handle.remove()
    assert _list(run(X)) == [1, 0]


def test_wrong_hooks() -> None:
    net = nn.ReLU()
    with pytest.raises(DTypeError, match="a hook is a function, not int"):
        net.register_forward_hook(3)  # pyright: ignore
    net.register_backward_hook(lambda cell, gi, go: (gi[0], gi[0]))
    with pytest.raises(ArgumentError, match="2 gradients for 1 inputs"):
        ms.grad(lambda x: net(x).sum())(X)


def test_buffers_and_state() -> None:
    net = nn.SequentialCell(nn.Dense(2, 1, weight_init="ones"), nn.BatchNorm1d(1))
    net.register_buffer("mask", X)
    net.register_buffer("scratch", X + 1, persistent=False)
    assert [name for name, _ in net.named_buffers()] == ["mask", "scratch"]
    assert net.get_buffer("mask") is net.mask
    names = ["0.weight", "0.bias", "1.moving_mean", "1.moving_variance", "1.gamma", "1.beta"]
    assert list(net.state_dict()) == ["mask", *names]
    found = net.load_state_dict({"0.weight": ops.full((1, 2), 3.0, dtype=ms.float32)}, strict=False)
    assert found.missing_keys == ["mask", *names[1:]] and found.unexpected_keys == []
    assert _list(net[0].weight) == [[3, 3]]
    with pytest.raises(LoadError, match=r"missing: 0\.bias.*unexpected: other"):
        net.load_state_dict({"0.weight": net[0].weight * 0, "other": X})
    assert _list(net[0].weight) == [[3, 3]]
    with pytest.raises(LoadError, match=r"0\.weight: shape \[3\] does not fit \[1, 2\]"):
        net.load_state_dict({"0.weight": ops.ones(3)}, strict=False)
    with pytest.raises(ArgumentError, match="is taken"):
        net.register_buffer("construct", X)


def test_an_attribute_becomes_a_buffer() -> None:
    net = nn.Dense(2, 1)
    net.mask = Buffer(X, persistent=False)
    assert net.mask is X and [n for n, _ in net.named_buffers()] == ["mask"]
    assert "mask" not in net.state_dict()
    for name, kind in ((3, TypeError), ("a.b", KeyError)):
        with pytest.raises(kind, match="name"):
            net.register_buffer(name, X)  # pyright: ignore[reportArgumentType]


def test_to_converts_parameters_and_buffers() -> None:
    net = nn.Dense(2, 1)
    net.register_buffer("mask", X)
    net.to(ms.float16)
    assert net.weight.dtype == ms.float16 and net.mask.dtype == ms.float16
    assert net(X.astype(ms.float16).expand_dims(0)).dtype == ms.float16


def test_a_hook_may_be_called_for_calls_that_raise_too() -> None:
    class Fails(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            raise ValueError("no")

    net, seen = Fails(), []
    net.register_forward_hook(lambda cell, args, out: seen.append(("never", out)))
    net.register_forward_hook(lambda cell, args, out: seen.append(out), always_call=True)
    with pytest.raises(ValueError, match="no"):
        net(ops.ones(2))
    assert seen == [None]


def test_backward_hooks_stand_around_forward_hooks() -> None:
    net, seen = nn.ReLU(), []
    net.register_forward_hook(lambda cell, args, out: out * 10)
    net.register_forward_pre_hook(lambda cell, args: (args[0] * 3,))
    net.register_backward_hook(lambda cell, gi, go: seen.append((_list(gi), _list(go))))
    for gradient in (ms.grad(net), ms.jit(ms.grad(net))):
        seen.clear()
        assert _list(gradient(X)) == [30, 0]
        assert seen[-1] == ([[10, 0]], [[1, 1]])


def test_hooks_that_are_always_called_follow_a_hook_that_raises() -> None:
    net, seen = nn.ReLU(), []

    def fails(cell: Any, args: Any, out: Any) -> None:
        raise ValueError("no")

    def note(cell: Any, args: Any, out: Any) -> None:
        seen.append(None if out is None else _list(out))

    net.register_forward_hook(note, always_call=True)
    handle = net.register_forward_hook(fails)
    net.register_forward_hook(note, always_call=True)
    with pytest.raises(ValueError, match="no"):
        net(X)
    assert seen == [[1, 0], [1, 0]]  # each of them once
    handle.remove()
    net.register_forward_pre_hook(lambda cell, args: fails(cell, args, None))
    with pytest.raises(ValueError, match="no"):
        net(X)
    assert seen[2:] == [None, None]


@pytest.mark.parametrize("kind", ["register_backward_hook", "register_backward_pre_hook"])
def test_backward_hooks_return_a_gradient_for_each_tensor(kind: str) -> None:
    net = nn.ReLU()

    def gradient(found: object) -> Any:
        handle = getattr(net, kind)(lambda cell, *gradients: found)
        try:
            return ms.grad(lambda x: net(x).sum())(X)
        finally:
            handle.remove()

    assert _list(gradient((X * 2,))) == _list(gradient(X * 2))  # alone or in a tuple
    with pytest.raises(TypeError, match=f"{kind}: the hook returned 2 gradients for 1"):
        gradient((X, X))
    with pytest.raises(TypeError, match=f"{kind}: the hook returned int for a gradient"):
        gradient(1)
