"""SequentialCell, CellList and CellDict: order, names, editing, errors."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

import pytest

from tests.nn.helpers import close, t
from tvmgraph import Parameter, Tensor, jit, nn
from tvmgraph.errors import ArgumentError, CaptureError, DTypeError, OutOfRangeError


def names(net: nn.Cell) -> list[str]:
    paths = [path for path, _ in net.parameters_and_names()]
    assert paths == [p.name for p in net.get_parameters()]
    return paths


def dense(n: int = 1) -> nn.Dense:
    return nn.Dense(n, n, has_bias=False)


@pytest.mark.parametrize("pack", [lambda c: c, lambda c: [c], lambda c: [tuple(c)]])
def test_sequential_applies_in_order(pack: Any) -> None:
    first, second = nn.Dense(3, 4), nn.Dense(4, 2)
    net = nn.SequentialCell(*pack([first, nn.ReLU(), second]))
    x = t(5, 3)
    hidden = x.asnumpy() @ first.weight.asnumpy().T + first.bias.asnumpy()
    expected = hidden.clip(0) @ second.weight.asnumpy().T + second.bias.asnumpy()
    close(net(x), expected)
    assert names(net) == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_sequential_of_names() -> None:
    net = nn.SequentialCell(OrderedDict([("a", dense()), ("b", nn.ReLU()), ("c", dense())]))
    assert names(net) == ["a.weight", "c.weight"]
    assert list(net.name_cells()) == ["a", "b", "c"]
    assert list(net[1:].name_cells()) == ["b", "c"]
    assert isinstance(net[0], nn.Dense)
    del net[0]
    assert names(net) == ["c.weight"]


def test_sequential_editing() -> None:
    net = nn.SequentialCell(dense())
    net.append(nn.ReLU())
    net.append(dense())
    assert names(net) == ["0.weight", "2.weight"]
    net.insert(1, dense())
    assert names(net) == ["0.weight", "1.weight", "3.weight"]
    net[3] = nn.Tanh()
    assert names(net) == ["0.weight", "1.weight"]
    del net[0]
    assert names(net) == ["0.weight"]
    assert [type(c).__name__ for c in net] == ["Dense", "ReLU", "Tanh"]
    assert len(net) == 3
    assert isinstance(net[-1], nn.Tanh)


def test_slice_shares_cells_and_leaves_names_alone() -> None:
    net = nn.SequentialCell(nn.Dense(3, 3), nn.ReLU(), nn.Dense(3, 3)).set_train()
    tail = net[1:]
    assert type(tail) is nn.SequentialCell
    assert tail[1] is net[2]
    assert tail.training
    assert [p.name for p in tail.get_parameters()] == ["2.weight", "2.bias"]
    close(tail(net[0](t(2, 3))), net(t(2, 3)).asnumpy())
    assert type(nn.CellList([nn.ReLU(), nn.ReLU()])[:1]) is nn.CellList


def test_names_inside_a_network_follow_edits() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.CellList([dense()])
            self.head = nn.SequentialCell(dense())

    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

    outer = Outer()
    outer.net.blocks.insert(0, dense(2))
    outer.net.blocks.extend([nn.ReLU(), dense(3)])
    outer.net.head.append(dense(4))
    assert names(outer) == [
        "net.blocks.0.weight", "net.blocks.1.weight", "net.blocks.3.weight",
        "net.head.0.weight", "net.head.1.weight",
    ]  # fmt: skip
    del outer.net.blocks[:2]
    assert names(outer) == ["net.blocks.1.weight", "net.head.0.weight", "net.head.1.weight"]


def test_cells_added_to_attributes_are_called_as_in_mindspore() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.CellList()
            for _ in range(2):
                self.layers.append(nn.SequentialCell(nn.ReLU(), nn.Dense(1, 1, has_bias=False)))
            self.more = nn.CellList([nn.Dense(1, 1, has_bias=False)])
            self.more.append(nn.Dense(1, 1, has_bias=False))
            self.more[0].inner = nn.Dense(1, 1, has_bias=False)
            self.heads = nn.CellDict({"a": nn.PReLU()})
            self.heads["b"] = nn.PReLU()

    net = Net()
    names = ["0.1.weight", "1.1.weight", "more.0.weight", "inner.weight", "more.1.weight"]
    assert [p.name for p in net.get_parameters()] == [*names, "heads.a.w", "heads.b.w"]
    net.again = nn.CellList()
    net.again.append(nn.SequentialCell(nn.ReLU(), nn.Dense(1, 1, has_bias=False)))
    refreshed = [p.name for p in net.trainable_params()]  # two have one name: paths are used
    assert refreshed == [path for path, _ in net.parameters_and_names()]


def test_cell_list_is_a_list() -> None:
    cells = nn.CellList([nn.ReLU()])
    cells.append(dense())
    cells.insert(0, nn.Tanh())
    assert [type(c).__name__ for c in cells] == ["Tanh", "ReLU", "Dense"]
    assert not nn.CellList() and not nn.SequentialCell()  # so `if self.blocks:` asks for some
    assert nn.CellDict() and cells
    cells[0:2] = [nn.Sigmoid()]
    assert [type(c).__name__ for c in cells] == ["Sigmoid", "Dense"]
    with pytest.raises(CaptureError, match="cannot be called") as caught:
        cells(Tensor([1.0]))
    assert isinstance(caught.value, NotImplementedError)  # as MindSpore's


def test_cell_dict_is_a_dict() -> None:
    cells = nn.CellDict({"a": dense(), "b": nn.ReLU()})
    cells["c"] = dense(2)
    cells.update([("d", nn.Tanh())])
    assert list(cells) == list(cells.keys()) == ["a", "b", "c", "d"]
    assert names(cells) == ["a.weight", "c.weight"]
    assert [type(c).__name__ for c in cells.values()] == ["Dense", "ReLU", "Dense", "Tanh"]
    assert dict(cells.items())["b"] is cells["b"]
    assert "a" in cells
    assert isinstance(cells.pop("a"), nn.Dense)
    del cells["b"]
    assert len(cells) == 2
    assert len(nn.CellDict(cells)) == 2
    cells.clear()
    assert len(cells) == 0


def test_cell_dict_is_a_dict_in_compiled_code() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.CellDict({"a": dense(), "b": nn.ReLU()})

        def construct(self, x: Tensor) -> Any:
            return self.heads.keys(), self.heads.values(), self.heads.items(), {"y": x + x}.values()

    net = Net()
    keys, cells, items, sums = jit(net)(Tensor([1.0]))
    assert keys == {"a", "b"}
    assert [*cells] == [net.heads["a"], net.heads["b"]]
    assert dict(items) == dict(net.heads.items())
    assert [s.asnumpy().item() for s in sums] == [2.0]


@pytest.mark.parametrize("name", ["", "a.b", "training"])
def test_cell_dict_has_the_errors_of_a_dict(name: str) -> None:
    cells = nn.CellDict({"a": dense()})
    with pytest.raises(KeyError, match="CellDict"):
        cells[name] = dense()
    with pytest.raises(KeyError, match="there is no cell"):
        cells["b"]


def test_copies_do_not_share() -> None:
    net = nn.SequentialCell(dense(), nn.ReLU())
    twin = copy.deepcopy(net)
    twin[0].weight.set_data(Tensor([[7.0]]))
    assert net[0].weight.asnumpy().item() != 7.0
    assert names(twin) == names(net)


def test_printing() -> None:
    net = nn.SequentialCell([nn.Dense(3, 4), nn.SequentialCell(nn.ReLU(), nn.Dense(4, 2))])
    assert repr(net) == (
        "SequentialCell(\n"
        "  (0): Dense(input_channels=3, output_channels=4, has_bias=True)\n"
        "  (1): SequentialCell(\n"
        "    (0): ReLU()\n"
        "    (1): Dense(input_channels=4, output_channels=2, has_bias=True)\n"
        "  )\n"
        ")"
    )
    assert repr(nn.SequentialCell()) == "SequentialCell()"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.SequentialCell(3), DTypeError, "must be a Cell, not int"),
        (lambda: nn.CellList([3]), DTypeError, "must be a Cell, not int"),
        (lambda: nn.CellList(3), DTypeError, "a list of cells"),
        (lambda: nn.CellList().append(3), DTypeError, "not int"),
        (lambda: nn.CellList().extend(3), DTypeError, "a list of cells"),
        (lambda: nn.SequentialCell(nn.ReLU())[3], OutOfRangeError, "index 3 is out of range"),
        (lambda: nn.SequentialCell(nn.ReLU())["a"], DTypeError, "an int or a slice"),
        (lambda: nn.CellList().insert(2, nn.ReLU()), OutOfRangeError, "index 2"),
        (lambda: nn.CellDict({"a.b": nn.ReLU()}), ArgumentError, "'a.b'"),
        (lambda: nn.CellDict({"keys": nn.ReLU()}), ArgumentError, "attribute"),
        (lambda: nn.CellDict({"a": 3}), DTypeError, "not int"),
        (lambda: nn.CellDict({3: nn.ReLU()}), DTypeError, "must be a str"),
        (lambda: nn.CellDict({"a": nn.ReLU()})["b"], LookupError, "cells: a"),
        (lambda: nn.CellDict(3), DTypeError, "a dictionary"),
        (lambda: nn.CellDict([3]), DTypeError, "pair"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as e:
        call()
    assert text in str(e.value)
    assert "test_containers.py" in str(e.value)


def test_what_a_name_holds_is_not_taken_by_another_kind() -> None:
    class Net(nn.Cell):
        part = None

        def __init__(self) -> None:
            super().__init__()
            self.layer = dense()
            self.scale = Parameter(Tensor([1.0]), name="scale")

        def shift(self) -> None: ...

    net = Net()
    for name in ("part", "shift", "to", "scale"):  # of the class, of Cell, of a Parameter
        with pytest.raises(KeyError, match=f"'{name}' is .* cannot become a Cell"):
            setattr(net, name, dense())
    with pytest.raises(KeyError, match="'layer' is a Dense and cannot become a Parameter"):
        net.layer = Parameter(Tensor([1.0]))
    for value in (3, "relu", [dense()], Tensor([1.0])):
        with pytest.raises(TypeError, match="'layer' is a Cell and cannot become"):
            net.layer = value
    net.layer = None
    net.layer = nn.ReLU()
    assert names(net) == ["scale"] and isinstance(net.layer, nn.ReLU)


def test_inserted_parameters_may_be_none() -> None:
    net = nn.SequentialCell(dense())
    net.insert_param_to_cell("scale", None)
    assert net.scale is None and names(net) == ["0.weight"]
    net.scale = Parameter(Tensor([1.0]))
    assert names(net) == ["scale", "0.weight"]


def test_parameters_are_not_inserted_over_something_else() -> None:
    net = nn.SequentialCell(dense())
    net.layer, net.mask = nn.ReLU(), Tensor([1.0])
    for name in ("layer", "mask"):
        with pytest.raises(KeyError, match="no parameter"):
            net.insert_param_to_cell(name, Parameter(Tensor([1.0])))
    for value in (1.0, 2.0):  # over a parameter
        net.insert_param_to_cell("scale", Parameter(Tensor([value])))
    assert net.scale.asnumpy().tolist() == [2.0] and names(net) == ["scale", "0.weight"]


def test_states_list_buffers_with_their_cell() -> None:
    net = nn.SequentialCell(dense())
    net.insert_param_to_cell("scale", Parameter(Tensor([1.0]), name="scale"))
    net.register_buffer("mask", Tensor([1.0]))
    assert list(net.state_dict(prefix="n.")) == ["n.scale", "n.mask", "n.0.weight"]
    assert repr(net.load_state_dict(net.state_dict())) == "<All keys matched successfully>"
    assert "mask" in repr(net.load_state_dict({}, strict=False))


def test_an_optimizer_in_a_cell_names_parameters_as_it_got_them() -> None:
    class Step(nn.Cell):
        def __init__(self, net: nn.Cell) -> None:
            super().__init__()
            optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
            self.net = net
            self.optimizer = optimizer

    found = {p.name for p in Step(nn.SequentialCell(dense())).get_parameters()}
    state = {"global_step", "learning_rate", "momentum", "moments.0.weight"}
    assert found == {f"optimizer.{name}" for name in {"0.weight", *state}}
