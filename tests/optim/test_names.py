"""Names of Parameters and of what optimizers keep for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, ParameterTuple, Tensor, nn
from tvmgraph.errors import ArgumentError


def _ones(name: str | None = None) -> Parameter:
    value = Tensor(np.ones(3, np.float32))
    return Parameter(value) if name is None else Parameter(value, name=name)


class _Scale(nn.Cell):
    def __init__(self, first: str | None = None, second: str | None = None) -> None:
        super().__init__()
        self.weight = _ones(first)
        self.bias = _ones(second)


def test_two_parameters_of_one_name() -> None:
    net = _Scale("x", "x")  # no error of a Cell, as in MindSpore: a network around it renames both
    assert net.weight.name == net.bias.name == "x"
    with pytest.raises(ArgumentError, match="'weight' and 'bias' are both named 'x'") as caught:
        net.check_names()
    assert isinstance(caught.value, ValueError)
    assert "test_names.py" in str(caught.value)
    assert [p.name for p in nn.SequentialCell(net).get_parameters()] == ["0.weight", "0.bias"]
    assert list(_Scale("x", "x").parameters_dict()) == ["weight", "bias"]
    with pytest.raises(ArgumentError, match=r"entries 0 and 2 .* both named 'x'"):
        ParameterTuple([_ones("x"), _ones("y"), _ones("x")])
    with pytest.raises(ArgumentError, match=r"entries 0 and 1 .* both named"):
        nn.Momentum([_ones("x"), _ones("x")], 0.1, 0.9)
    with pytest.raises(ArgumentError, match="'learning_rate' is the name of a Parameter"):
        nn.Momentum([_ones("learning_rate")], 0.1, 0.9)
    shared = _ones("x")
    assert len(ParameterTuple([shared, shared])) == 2


def test_parameters_of_a_tuple_get_names_in_a_cell() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.a = _ones()
            self.first = ParameterTuple([_ones(), _ones("x")])
            self.second = ParameterTuple([_ones()])

    assert [p.name for p in Net().trainable_params()] == ["a", "Parameter$1", "x", "Parameter$2"]
    states = nn.Momentum([_ones(), _ones()], 0.1, 0.9).moments
    assert [s.name for s in states] == ["moments.Parameter$1", "moments.Parameter$2"]


def test_states_are_called_after_their_parameters(tmp_path: Path) -> None:
    def trained() -> nn.Momentum:
        return nn.Momentum(_Scale().trainable_params(), 0.1, 0.9)

    optimizer = trained()
    wanted = ["moments.weight", "moments.bias"]
    assert [name for name, _ in optimizer.parameters_and_names()][-2:] == wanted
    assert [p.name for p in optimizer.moments] == wanted
    optimizer((Tensor(np.full(3, 2, np.float32)), Tensor(np.full(3, 3, np.float32))))
    ms.save_checkpoint(optimizer, tmp_path / "optimizer.ckpt")
    other = trained()
    missing, unexpected = ms.load_param_into_net(
        other, ms.load_checkpoint(tmp_path / "optimizer.ckpt")
    )
    assert not missing
    assert not unexpected
    for a, b in zip(optimizer.moments, other.moments, strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    assert other.moments[1].asnumpy()[0] == 3


class _Branches(nn.Cell):
    def __init__(self, shared: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self.left = _Scale()
        self.right = _Scale()
        if shared:
            self.right.weight, self.right.bias = self.left.weight, self.left.bias


def test_parameters_of_one_name_in_two_cells(tmp_path: Path) -> None:
    net = _Branches()
    text = r"'left\.weight' and 'right\.weight' are both named 'weight'"
    uses = (
        net.check_names,
        net.parameters_dict,
        lambda: ms.save_checkpoint(net, tmp_path / "net.ckpt"),
        lambda: ms.load_param_into_net(net, {"weight": _ones()}),
    )
    for use in uses:
        with pytest.raises(ArgumentError, match=text) as caught:
            use()
        assert isinstance(caught.value, ValueError)
        assert "test_names.py" in str(caught.value)
    with pytest.raises(ArgumentError, match=r"entries 0 and 2 .* both named 'weight'"):
        nn.Adam(net.trainable_params())
    assert not list(tmp_path.iterdir())


def test_one_parameter_on_two_paths() -> None:
    net = _Branches(shared=True)
    net.check_names()
    assert list(net.parameters_dict()) == ["weight", "bias"]
    assert [s.name for s in nn.Momentum(net.trainable_params(), 0.1, 0.9).moments] == [
        "moments.weight",
        "moments.bias",
    ]


def test_lists_of_parameters_have_names_of_their_own() -> None:
    class Net(nn.Cell):
        def __init__(self, *names: str) -> None:
            super().__init__()
            self.kept = tuple(Parameter(Tensor([1.0]), name=n) for n in names)

    assert [p.name for p in Net("a", "b").kept] == ["a", "b"]
    text = r"'kept\[0\]' and 'kept\[2\]' are both named 'a'"
    with pytest.raises(ArgumentError, match=text):
        Net("a", "b", "a")
