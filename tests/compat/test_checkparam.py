"""``mindspore._checkparam`` and other helpers that model zoos import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tvmgraph import _checkparam, ops
from tvmgraph._checkparam import Rel, Validator
from tvmgraph.common.initializer import _calculate_correct_fan, _calculate_gain
from tvmgraph.errors import ArgumentError, DTypeError

GOOD = [
    (Validator.check_positive_int, (3, "size", "Net"), 3),
    (Validator.check_int, (3, 3, Rel.GE, "size"), 3),
    (_checkparam.check_int_range, (3, 1, 3, _checkparam.INC_BOTH), 3),
    (_checkparam.check_float_range, (0.5, 0.0, 1.0, _checkparam.INC_NEITHER, "rate"), 0.5),
    (_checkparam.check_value_type, ("size", True, [bool, int]), True),
    (_checkparam.check_string, ("same", ["same", "valid"], "pad_mode"), "same"),
    (_checkparam.check_positive_int_sequence, ((1, 2), "sizes"), (1, 2)),
    (_checkparam.check, ("size", 3, "channels", 3), 3),
    (_calculate_correct_fan, ((3, 4, 5), "fan_in"), 20),
    (_checkparam.check_input_format, ("NCHW",), "NCHW"),
    (_checkparam._expand_tuple(2), (5,), (5, 5)),
    (_checkparam.twice, ([3, 4],), (3, 4)),
]
BAD = [
    (Validator.check_positive_int, (0, "size", "Net"), ArgumentError, "greater than 0"),
    (Validator.check_positive_int, (1.0, "size"), DTypeError, "size must be of type int"),
    (Validator.check_bool, (1, "flag"), DTypeError, "bool"),
    (_checkparam.check_int_range, (3, 1, 3, Rel.INC_LEFT, "size"), ArgumentError, r"in \[1, 3\)"),
    (_checkparam.check_value_type, ("size", True, [int], "Net"), DTypeError, "Net: size"),
    (_checkparam.check_string, ("x", ["a"], "mode"), ArgumentError, "mode"),
    (_checkparam.check_positive_int_sequence, ((1, 0), "sizes"), ArgumentError, r"sizes\[1\]"),
    (_checkparam.check, ("size", 2, "channels", 3), ArgumentError, "equal to channels"),
    (_checkparam.check_subclass, ("kind", int, str, "Net"), DTypeError, "kind"),
    (_calculate_gain, ("step",), ArgumentError, "nonlinearity"),
    (_checkparam.check_input_format, ("NHWC",), ArgumentError, "data format"),
    (_checkparam._expand_tuple(2), ((1, 2, 3),), DTypeError, "2 of them"),
    (_checkparam._expand_tuple(2), (True,), DTypeError, "an int or 2"),
    (_checkparam.twice, (0.5,), DTypeError, "an int or 2"),
]


@pytest.mark.parametrize("check, args, expected", GOOD)
def test_good_values_come_back(check, args, expected) -> None:
    assert check(*args) == expected


@pytest.mark.parametrize("check, args, kind, text", BAD)
def test_bad_values_are_named(check, args, kind, text) -> None:
    with pytest.raises(kind, match=text):
        check(*args)


def test_other_helpers_are_where_zoos_import_them_from() -> None:
    from tvmgraph.ops._primitive_cache import _get_cache_prim
    from tvmgraph.ops._utils import get_broadcast_shape
    from tvmgraph.parallel._utils import _get_device_num, _get_gradients_mean
    from tvmgraph.train._utils import check_value_type

    assert get_broadcast_shape((3, 1), (4,), "Net") == [3, 4]
    assert (_get_device_num(), _get_gradients_mean()) == (1, False)
    assert _get_cache_prim(ops.Squeeze)(1)(ops.ones((2, 1, 3))).shape == (2, 3)
    with pytest.raises(DTypeError, match="size"):
        check_value_type("size", "3", int)


def test_folders_are_made(tmp_path: Path) -> None:
    from tvmgraph.train._utils import _make_directory

    folder = tmp_path / "a" / "b"
    for _ in range(2):
        assert _make_directory(str(folder)) == str(folder.resolve())
    assert folder.is_dir()
    (folder / "file").touch()
    for path, kind in ((str(folder / "file"), OSError), (" ", ValueError), (3, TypeError)):
        with pytest.raises(kind):
            _make_directory(path)


def test_validator_has_checks_only() -> None:
    with pytest.raises(AttributeError, match="no check"):
        _ = Validator.compare
    assert (Validator.EQ, Validator.INC_BOTH) == (Rel.EQ, Rel.INC_BOTH)


def test_private_rooms_are_attributes_of_the_package() -> None:
    code = "import tvmgraph as ms; ms._checkparam.Rel, ms._c_expression, ms._extends"
    subprocess.run([sys.executable, "-c", code], check=True)
