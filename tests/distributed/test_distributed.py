"""Programs on several processes; each checks itself against the computation in one."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

import tvmgraph as ms
from tests.distributed.ranks import CABLE, run, two_hosts
from tvmgraph.core.op import get_op
from tvmgraph.core.traits import Reason
from tvmgraph.errors import ConfigError


def test_collectives() -> None:
    assert run("collectives.py", 2).count("is right") == 2


def test_every_row_along_every_dimension() -> None:
    text = run("rows.py", 2)
    found = re.search(r"(\d+) of \d+ rows, (\d+) splits, 0 wrong", text)
    assert found, text
    assert int(found[1]) > 190 and int(found[2]) > 1500
    whole = re.findall(r"'(\w+)'", text.partition("not split:")[2])
    for name in whole:  # without a dimension that two processes could share
        op = get_op(name)
        known = isinstance(op.traits.factors, Reason) or op.traits.binds or not op.tensors
        assert known or name in ("placed_as", "bits_to_integers"), name


def test_sharded_functions() -> None:
    assert run("shard.py", 2).count("is right") == 2


def test_meshes_of_two_and_three_dimensions() -> None:
    assert run("mesh.py", 4).count("is right") == 4


def test_training() -> None:
    assert run("train.py", 2).count("is right") == 2


@pytest.mark.parametrize("count", [2, 4])
def test_what_is_moved_is_what_was_planned(count: int) -> None:
    text = run("bytes.py", count)
    assert text.count("is right") == count and text.count("as planned") == 6, text


SETTINGS = {
    "search_mode": ("sharding_propagation", 3), "all_reduce_fusion_config": ([85, 160], "all"),
    "strategy_ckpt_save_file": ("plan.ckpt", None), "pipeline_stages": (1, 2),
    "grad_accumulation_step": (1, 4), "gradients_mean": (True, "yes"), "device_num": (1, 8),
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_mindspore_are_taken_and_wrong_ones_are_told(name: str) -> None:
    taken, refused = SETTINGS[name]
    default = ms.get_auto_parallel_context(name)
    ms.set_auto_parallel_context(**{name: taken})
    assert ms.get_auto_parallel_context(name) == taken
    with pytest.raises(ConfigError, match=name):
        ms.set_auto_parallel_context(**{name: refused})
    ms.reset_auto_parallel_context()
    assert ms.get_auto_parallel_context(name) == default


FAULTS = {
    "error": (1, r"rank 1\] ends all 2 processes.*a mistake of the user"),
    "stuck": (71, r"rank 0\].* all_reduce\(float32\[3,5\]\).*not there yet: rank 1"),
    "programs": (1, r"run different programs for '(exp|sin)'.*rank 0: .*, rank 1: "),
    "leaves": (3, r"rank 1\] ends all 2 processes: it left with status 3"),
    "versions": (1, r"different versions: rank 0: .*rank 1: tvmgraph 0\.0\.1"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_every_process_ends_and_the_error_says_whose_fault_it_is(kind: str, tmp_path: Path) -> None:
    status, said = FAULTS[kind]
    text = run("faults.py", 2, kind, str(tmp_path), status=status, limit=3, timeout=60)
    assert re.search(said, text, re.DOTALL), text
    assert "tvmgraph-run: the time limit" not in text


def test_a_host_that_cannot_be_reached_any_more(tmp_path: Path) -> None:
    with two_hosts(tmp_path) as (before, options):
        if not before:
            pytest.skip("network namespaces are not allowed here")
        text = run("faults.py", 2, "unplugged", str(tmp_path), CABLE, status=71, limit=3,
                   timeout=60, before=before, options=options)  # fmt: skip
        assert re.search(
            r"rank 0\] DeviceError.* all_reduce\(float32\[6,2\]\)(.|\n)*reached", text
        ), text
        other = ["ip", "netns", "pids", before[-1][:-1] + "b"]
        end = time.monotonic() + 20
        while subprocess.run(other, capture_output=True, check=True).stdout:
            assert time.monotonic() < end, "a process outlived its job"
            time.sleep(0.2)


def test_training_goes_on_from_the_last_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    well = run("faults.py", 2, "well", str(tmp_path / "other"))
    text = run("faults.py", 2, "killed", str(tmp_path), status=9, timeout=60)
    assert re.search(r"tvmgraph-run: rank 1 \(PID \d+\) ended, after \d+ collectives", text), text
    text += run("faults.py", 2, "well", str(tmp_path))
    losses = [re.findall(r"step (\d) loss ([\d.]+)", t) for t in (well, text)]
    assert dict(losses[0]) == dict(losses[1])
    assert len(losses[0]) == 6


def test_the_document_runs(tmp_path: Path) -> None:
    document = Path(__file__).parents[2] / "docs" / "shard.md"
    blocks = re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL)
    script = tmp_path / "document.py"
    script.write_text("\n".join(blocks))
    assert "mesh dp=64,mp=8: 512 processes" in run(str(script), 2)
