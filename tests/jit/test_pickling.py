"""Pickled things do in another process what they did here, and so do their copies."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.jit import pickled
from tests.jit.pickled import MAKERS, X
from tvmgraph import Parameter, Tensor, jit, nn
from tvmgraph.errors import CaptureError, DTypeError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything, pickled by one process and used by a second one."""
    path = tmp_path_factory.mktemp("pickled")
    for what in ("write", "read"):
        program = [sys.executable, "-m", "tests.jit.pickled", what, str(path)]
        done = subprocess.run(
            program, capture_output=True, text=True, check=False, timeout=300,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
        assert not done.returncode, done.stderr[-3000:]
    return path


@pytest.mark.parametrize("name", MAKERS)
def test_another_process_and_a_copy_do_the_same(name: str, folder: Path) -> None:
    _, copied, wanted = pickle.loads((folder / name).read_bytes())
    assert copied == wanted
    assert pickle.loads((folder / f"{name} there").read_bytes()) == wanted


def test_shared_parameters_stay_shared() -> None:
    net = pickled.Net()
    optimizer = nn.Adam(net.trainable_params(), 0.1)
    for twin, other in (
        pickle.loads(pickle.dumps((net, optimizer))),
        copy.deepcopy((net, optimizer)),
    ):
        assert twin.dense.weight is other.parameters[0]
        before = twin.dense.weight.asnumpy().copy()
        other(tuple(ms.ops.ones_like(p) for p in other.parameters))
        assert (twin.dense.weight.asnumpy() != before).all()


def test_copies_of_parameters_keep_attributes_but_no_storage() -> None:
    p = Parameter(X, "p", layerwise_parallel=True, parallel_optimizer=False)
    p.comm_fusion = 3  # pyright: ignore[reportAttributeAccessIssue]
    for twin in (copy.copy(p), copy.deepcopy(p), pickle.loads(pickle.dumps(p)), p.clone()):
        assert (twin.layerwise_parallel, twin.parallel_optimizer, twin.comm_fusion) == (
            True, False, 3,
        )  # fmt: skip
        twin.set_data(Tensor(np.zeros((2, 3), np.float32)))
        np.testing.assert_array_equal(p.asnumpy(), X.asnumpy())


def nested() -> Any:
    factor = 3
    return jit(lambda x: x * factor)


@pytest.mark.parametrize(
    "make", [nested, lambda: jit(lambda x: x), lambda: Parameter(X).register_hook(lambda g: g)]
)
def test_what_pickle_cannot_name_is_pickles_own_error(make: Callable[[], Any]) -> None:
    error = AttributeError, pickle.PicklingError
    with pytest.raises(error, match=r"[Pp]ickle|local object"):  # Python 3.13 says the latter
        pickle.dumps(make())


def test_pickling_a_symbolic_tensor_is_refused() -> None:
    with pytest.raises(CaptureError, match="pickle needs the value of a tensor"):
        jit(lambda x: (pickle.dumps(x), x)[1], fullgraph=True)(X)


def test_modules_are_loaded_again_and_machine_code_is_refused(tmp_path: Path) -> None:
    net = pickled.Net()
    ms.export(net, X, file_name=str(tmp_path / "net"), file_format="TVM")
    module = ms.load(tmp_path / "net.tvm")
    for twin in (pickle.loads(pickle.dumps(module)), copy.deepcopy(module)):
        np.testing.assert_array_equal(twin(X.asnumpy()), module(X.asnumpy()))
    pickled.of_module(X)
    entry = next(iter(pickled.of_module.entries.values()))[0]
    with pytest.raises(DTypeError, match="machine code cannot be pickled"):
        pickle.dumps(entry.compiled.executable)


def test_a_module_with_a_changed_state_is_refused(tmp_path: Path) -> None:
    net = nn.BatchNorm1d(3).set_train()
    ms.export(net, X, file_name=str(tmp_path / "net"), file_format="TVM", training=True)
    module = ms.load(tmp_path / "net.tvm")
    first = module(X.asnumpy())
    with pytest.raises(DTypeError, match="cannot be pickled or copied") as caught:
        copy.deepcopy(module)
    assert "reset()" in str(caught.value)
    module.reset()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(module))(X.asnumpy()), first)
