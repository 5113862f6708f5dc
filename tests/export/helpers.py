"""Running what was exported, and comparing it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

from tvmgraph import Tensor, nn
from tvmgraph.capture import tree

MAX_ERROR = 1e-5


def eager(net: Any, args: tuple[Any, ...]) -> list[np.ndarray]:
    """Runs a network, in inference mode, or a function eagerly."""
    if isinstance(net, nn.Cell):
        net.set_train(False)
    return [t.asnumpy() for t in tree.tensors(net(*args))]


def feeds(names: Sequence[str], args: Any) -> dict[str, np.ndarray]:
    """Pairs input names with the tensors among the arguments."""
    tensors = [t.asnumpy() for t in tree.tensors(args)]
    assert len(names) == len(tensors)
    return dict(zip(names, tensors))


def run_onnxruntime(model: onnx.ModelProto | Path, args: Any) -> list[np.ndarray]:
    """Runs a model or a file in ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds([i.name for i in session.get_inputs()], args))


def run_reference(model: onnx.ModelProto, args: Any) -> list[np.ndarray]:
    """Runs a model in ONNX's own reference implementation."""
    evaluator = ReferenceEvaluator(model)
    return evaluator.run(None, feeds(evaluator.input_names, args))


def relative_error(actual: Sequence[Any], expected: Sequence[np.ndarray]) -> float:
    """Returns the largest error of any output, relative to its largest element."""
    assert len(actual) == len(expected)
    worst = 0.0
    for a, e in zip(actual, expected):
        a = a.asnumpy() if isinstance(a, Tensor) else np.asarray(a)
        assert a.shape == e.shape
        assert a.dtype == e.dtype
        if e.size:
            scale = max(float(np.max(np.abs(e.astype(np.float64)))), 1e-30)
            difference = np.abs(a.astype(np.float64) - e.astype(np.float64))
            worst = max(worst, float(np.max(difference)) / scale)
    return worst
