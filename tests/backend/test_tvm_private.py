"""What is used of TVM beyond its promises is there, and a TVM without it is told apart."""

import pytest
import tvm

from tvmgraph.backend import tvm_private
from tvmgraph.backend.tvm_private import FUNCTIONS, GLOBALS, private
from tvmgraph.errors import TvmgraphError

pytestmark = pytest.mark.any_processor


@pytest.mark.parametrize("name", [*FUNCTIONS, *GLOBALS])
def test_this_tvm_has_it(name: str) -> None:
    assert callable(private(name))


@pytest.mark.parametrize("table", ["FUNCTIONS", "GLOBALS"])
def test_another_tvm_is_an_error_that_names_it(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "tvm.relax.vm_build:_gone.away" if table == "FUNCTIONS" else "tvm.gone"
    monkeypatch.setitem(getattr(tvm_private, table), name, "nothing")
    with pytest.raises(TvmgraphError, match=f"TVM {tvm.__version__} has no {name}") as e:
        private(name)
    assert "apache-tvm>=0.27" in str(e.value)
