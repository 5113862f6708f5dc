"""What MindSpore programs subclass and reach into, and the classes of the errors they catch."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, dataset, nn, ops
from tvmgraph.errors import ArgumentError, DTypeError

X = Tensor(np.array([[1.0, 2], [3, 4]], np.float32))


def test_an_optimizer_of_ones_own_uses_the_members_of_the_base() -> None:
    class Descent(nn.Optimizer):
        def __init__(self, params: Any, rate: float) -> None:
            super().__init__(rate, params, weight_decay=0.5, loss_scale=2.0)
            self.hyper_map = ops.HyperMap()  # as programs do: their own hides the offered one

        def construct(self, gradients: Any) -> Any:
            gradients = self.flatten_gradients(gradients)
            gradients = self.scale_grad(self.decay_weight(gradients))
            self.assignadd(self.global_step, self.global_step_increase_tensor)
            rate = self.get_lr()
            return self.map_(lambda p, g: ops.assign_sub(p, g * rate), self.parameters, gradients)

    p = ms.Parameter(Tensor([2.0]), name="p")
    own = Descent([p], 0.1)
    assert (own.need_scale, own.reciprocal_scale, own.weight_decay) == (True, 0.5, 1.0)
    assert (own.target, own.parameter_length) == ("CPU", 1)
    assert own._is_dynamic_lr_or_weight_decay() is False
    ms.jit(own)((Tensor([4.0]),))
    np.testing.assert_allclose(p.asnumpy(), [2.0 - 0.1 * (4.0 / 2 + 0.5 * 2.0)], rtol=1e-6)
    assert own.global_step.asnumpy().tolist() == [1]


def test_a_training_cell_of_ones_own_uses_the_members_of_the_base() -> None:
    class Step(nn.TrainOneStepCell):
        def construct(self, *inputs: Any) -> Any:
            loss = self.network(*inputs)
            sens = ops.fill(loss.dtype, loss.shape, self.sens)
            gradients = self.grad(self.network, self.weights)(*inputs, sens)
            if self.reducer_flag:
                gradients = self.grad_reducer(gradients)
            self.optimizer(gradients)
            return loss

    def trained(kind: type[nn.Cell], run: Any) -> np.ndarray:
        ms.set_seed(0)
        net = nn.SequentialCell(nn.Dense(2, 2), nn.BatchNorm1d(2), nn.Dropout(0.3), nn.Dense(2, 1))
        own: Any = kind(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))  # pyright: ignore
        own.set_train()
        call = run(own)
        for _ in range(3):  # one forward pass each: statistics move once, masks are drawn once
            call(X, Tensor([[1.0], [0.0]]))
        return np.concatenate([p.asnumpy().ravel() for p in net.get_parameters()])

    for run in (lambda cell: cell, ms.jit):
        np.testing.assert_allclose(trained(Step, run), trained(nn.TrainOneStepCell, run), rtol=1e-5)


def test_a_kept_pass_is_not_used_for_other_values() -> None:
    net = nn.Dense(2, 1).set_train().set_grad()
    grad = ms.grad(net, 0, net.trainable_params())
    x = Tensor([[1.0, 2.0]])
    net(x)
    net.weight.set_data(Tensor([[3.0, 4.0]]))
    assert grad(x)[0].asnumpy().tolist() == [[3.0, 4.0]]
    net(x)
    x += 1.0
    assert grad(x)[1][0].asnumpy().tolist() == [[2.0, 3.0]]
    y = net(x)
    y *= 5.0
    dx, (dw, _) = grad(x)
    assert dx.asnumpy().tolist() == [[3.0, 4.0]]
    assert dw.asnumpy().tolist() == [[2.0, 3.0]]


def test_a_model_trains_a_training_cell() -> None:
    net = nn.Dense(2, 1)
    before = net.weight.asnumpy().copy()
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1)
    )
    data = dataset.NumpySlicesDataset(
        {"x": np.ones((4, 2), np.float32), "y": np.ones((4, 1), np.float32)}
    )
    ms.Model(step).train(1, data.batch(2))
    assert not np.array_equal(before, net.weight.asnumpy())


def test_attributes_before_the_initialization_of_the_base() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            self.size = 3
            super().__init__()
            self.dense = nn.Dense(2, self.size)

        def construct(self, x: Tensor) -> Tensor:
            return self.dense(x) * self.size

    net = Net()
    assert ms.jit(net)(X).shape == (2, 3)
    assert [p.name for p in net.trainable_params()] == ["dense.weight", "dense.bias"]

    class Wrong(nn.Cell):
        def __init__(self) -> None:
            self.dense = nn.Dense(2, 3)

    with pytest.raises(RuntimeError, match="before super"):
        Wrong()


def test_members_of_containers() -> None:
    net = nn.SequentialCell(nn.Dense(2, 3), nn.ReLU())
    assert [type(c).__name__ for c in net.cell_list] == ["Dense", "ReLU"]


def test_functions_of_several_types_know_classes_by_name() -> None:
    act = ops.MultitypeFuncGraph("act")

    @act.register("Tensor", "RowTensor")
    def sparse(a: Any, b: Any) -> str:
        return "sparse"

    @act.register("Tensor", "Tensor")
    def dense(a: Any, b: Any) -> str:
        return "dense"

    class RowTensor: ...

    assert (act(X, X), act(X, RowTensor())) == ("dense", "sparse")


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "std", "var", "all", "any"])
def test_numpys_reductions_take_tensors(name: str) -> None:
    reduce = getattr(np, name)
    x = X > 2 if name in ("all", "any") else X
    for axis in (None, 0):
        want = reduce(x.asnumpy(), axis)
        np.testing.assert_allclose(np.asarray(reduce(x, axis)), want, rtol=1e-6)
    with pytest.raises(DTypeError, match="not written into"):
        reduce(x, out=np.zeros(()))


NET = nn.Dense(2, 3)
MISTAKES: list[tuple[Callable[[], Any], type[Exception]]] = [
    (lambda: ms.set_context(mode="x"), TypeError),
    (lambda: ms.set_context(mode=2), ValueError),
    (lambda: ms.set_context(save_graphs="2"), TypeError),
    (lambda: ms.set_context(enable_graph_kernel=1), TypeError),
    (lambda: ms.set_context(device_target="TPU"), ValueError),
    (lambda: nn.SGD(NET.trainable_params(), -0.1), ValueError),
    (lambda: nn.SGD(NET.trainable_params(), "a"), TypeError),
    (lambda: nn.SGD(None, 0.1), ValueError),
    (lambda: nn.SGD([], 0.1), ValueError),
    (lambda: ms.Parameter(1.0, name=1), ValueError),  # pyright: ignore[reportArgumentType]
    (lambda: NET.insert_child_to_cell("a.b", nn.ReLU()), KeyError),
    (lambda: NET.to_float(ms.int8), ValueError),
    (lambda: NET.set_train(1), ValueError),  # pyright: ignore[reportArgumentType]
    (lambda: ms.load_checkpoint("nothing.ckpt"), ValueError),
    (lambda: nn.CellList([1]), TypeError),
    (lambda: ms.amp.auto_mixed_precision(NET, "O9"), ValueError),
    (lambda: ms.set_seed("a"), TypeError),  # pyright: ignore[reportArgumentType]
    (lambda: X[5], IndexError),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_errors_are_of_the_class_that_mindspore_raises(number: int) -> None:
    mistake, kind = MISTAKES[number]
    with pytest.raises(kind) as caught:
        mistake()
    assert "\n" in str(caught.value) or str(caught.value)[0] not in "'\""  # a sentence, no repr


def test_gradients_are_accumulated_over_steps() -> None:
    weight = Parameter(Tensor([1.0]), name="w")
    boost = importlib.import_module("tvmgraph.boost")
    step = boost.GradientAccumulation(2, nn.SGD([weight], 0.5))
    found = []
    for gradient in (1.0, 3.0, 1.0, 1.0):
        step(Tensor(0.0), (Tensor([gradient]),))
        found.append(weight.asnumpy().item())
    assert found == [1.0, 0.0, 0.0, -0.5]
    assert boost.AutoBoost("O0").network_auto_process_train(step, None) == (step, None)
    with pytest.raises(ArgumentError):
        boost.AutoBoost("O1")


def test_members_that_subclasses_of_optimizers_set() -> None:
    class Placed(nn.SGD):
        @nn.Optimizer.target.setter
        def target(self, value: str) -> None:
            self._set_base_target(value)

    own = Placed([Parameter(Tensor([1.0]), name="w")], 0.5)
    own.target = "CPU"
    assert own.target == "CPU"
    assert own.params is own.parameters
    assert (own.cache_enable, own.optim_filter, own.group_lr) == ((False,), (True,), [])
    assert own._preprocess_single_lr(0.25) == 0.25
    with pytest.raises(ArgumentError):
        own.target = "Ascend"


@pytest.mark.parametrize("show", [ops.Print(), ops.print_], ids=["class", "function"])
def test_compiled_code_prints_values_in_every_call(show: Any, capsys: Any) -> None:
    def doubled(x: Tensor) -> Tensor:
        y = x * 2
        show("y", y)
        return y.sum()

    compiled = ms.jit(doubled)
    compiled(Tensor([1.0, 2]))
    compiled(Tensor([3.0, 4]))
    ms.jit(ms.grad(doubled))(Tensor([5.0, 6]))
    values = ([2, 4], [6, 8], [10, 12])
    shown = "".join(f"y\n{Tensor(v, ms.float32)!r}\n" for v in values)
    assert capsys.readouterr().out == shown
    decided = ms.jit(lambda x: show("positive", x) if x.sum() > 0 else x)
    decided(Tensor([1.0]))
    assert capsys.readouterr().out == f"positive\n{Tensor([1.0])!r}\n"


def test_optimizers_show_their_groups_and_states() -> None:
    p = ms.Parameter(Tensor([1.0, 2.0]), name="p")
    for rooms in (ms.experimental.optim, ms.mint.optim):
        sgd = rooms.SGD([p], 0.1, 0.9)
        assert next(iter(sgd.param_groups[0])) == "params"
        assert sgd.param_groups[0]["params"] == [p]
        assert "    lr: 0.1\n    maximize: False\n" in repr(sgd)
        sgd.add_param_group({"params": [ms.Parameter(Tensor([3.0]), name="q")], "lr": 0.5})
        assert [float(lr) for lr in sgd.lrs] == pytest.approx([0.1, 0.5])
        assert all(s.requires_grad for s in sgd.get_parameters())
    adam = nn.Adam([p], [0.1, 0.2])
    assert all(s.requires_grad for s in adam.get_parameters())
    assert (p.comm_fusion, p.sliced, p.parallel_optimizer_comm_recompute) == (1, False, False)


def test_parameters_that_programs_give_by_name() -> None:
    t = ms.tensor([1.0], ms.float32, const_arg=True, device="CPU")
    assert t.item() == 1 and ms.mint.randint_like(t.int(), 3, device="CPU").shape == (1,)
    net, kept = nn.Dense(2, 1), {"old": t}
    assert net.state_dict(destination=kept, prefix="a.") is kept
    assert list(kept) == ["old", "a.weight", "a.bias"]
    assert list(net.state_dict({}, "b.")) == ["b.weight", "b.bias"]
    assert ms.Model(net).predict(X, config={}).shape == (2, 1)
    sampler = dataset.RandomSampler(False, 2, shuffle=dataset.Shuffle.GLOBAL)
    assert len(list(dataset.NumpySlicesDataset([1, 2, 3], sampler=sampler))) == 2
    assert ms.hal.memory_stats(device_target="CPU")["total_allocated_memory"] == 0
    assert ms.hal.max_memory_allocated("CPU") == 0
    assert "CPU" in ms.hal.memory_summary("CPU")


def test_settings_of_parameters_by_the_names_of_mindspores_compiler() -> None:
    p = Parameter(Tensor(np.ones((2, 3), np.float32)), name="w")
    info = p.param_info
    assert (info.name, info.requires_grad, info.parameter_shape) == ("w", True, [2, 3])
    assert (info.comm_fusion, info.parallel_optimizer, info.obj is p) == (1, True, True)
    info.requires_grad, info.name, info.own = False, "v", 3
    assert (p.requires_grad, p.name, info.own) == (False, "v", 3)
    assert not hasattr(info, "other")
    assert not p.is_init
    p.is_init = True
    assert p.is_init and not Parameter(Tensor([1.0]), name="w").is_init
    assert p.set_dtype(ms.float16) is ms.float16 and p.dtype is ms.float16


def test_settings_of_a_parameter_are_cloned_for_another() -> None:
    p = Parameter(Tensor(np.ones((2, 3), np.float32)), name="w", requires_grad=False)
    p.param_info.cloned = []  # MindFormers' optimizers keep there what they cloned
    state = Parameter(Tensor(np.zeros(3, np.float32)))
    state.param_info = p.param_info.clone()
    state.name = "moment." + state.name
    assert (state.name, state.requires_grad, state.shape) == ("moment.w", False, (3,))
    assert (p.name, p.param_info.cloned, p.param_info.obj is p) == ("w", [], True)
    assert state.param_info.name == "moment.w" and state.param_info.parameter_shape == [3]
    twin = copy.deepcopy(p)
    twin.param_info.name = "twin"
    assert (twin.name, p.name, twin.param_info.obj is twin) == ("twin", "w", True)
