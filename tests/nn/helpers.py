"""Arrays, tensors and the table of layers that several tests of the layers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops


def rand(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """A reproducible float32 array."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def t(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Tensor:
    """A reproducible float32 tensor."""
    return Tensor(rand(*shape, seed=seed, low=low, high=high))


def close(actual: Any, expected: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Asserts equal shapes and nearly equal values."""
    actual = actual.asnumpy() if isinstance(actual, Tensor) else np.asarray(actual)
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def randomize(net: nn.Cell, seed: int = 1) -> nn.Cell:
    """Gives every parameter reproducible values, variances positive ones."""
    rng = np.random.default_rng(seed)
    for path, p in net.parameters_and_names():
        values = rng.uniform(-0.5, 0.5, p.shape).astype(np.float32)
        p.set_data(Tensor(np.abs(values) + 0.5 if "variance" in path else values))
    return net


class Layer(NamedTuple):
    """A layer with inputs for it."""

    name: str
    build: Callable[[], nn.Cell]
    inputs: Callable[[], tuple[Any, ...]]
    train: bool = False


_IDS = np.array([[0, 3], [4, 4]], np.int32)
_CLASSES = np.array([0, 2], np.int32)


def _one(*shape: int, **kwargs: Any) -> Callable[[], tuple[Any, ...]]:
    return lambda: (t(*shape, **kwargs),)


def _pair(*shape: int) -> Callable[[], tuple[Any, ...]]:
    return lambda: (t(*shape), t(*shape, seed=1))


def _with(shape: tuple[int, ...], *arrays: Any) -> Callable[[], tuple[Any, ...]]:
    return lambda: (t(*shape), *(Tensor(a) for a in arrays))


ACTIVATIONS = [
    Layer(name, (lambda n=name: getattr(nn, n)()), _one(2, 4))
    for name in (
        "ReLU", "ReLU6", "LeakyReLU", "ELU", "CELU", "SeLU", "GELU", "FastGelu", "SiLU", "Sigmoid",
        "LogSigmoid", "Tanh", "Tanhshrink", "Softmax", "LogSoftmax", "Softmin", "Softsign",
        "SoftShrink", "HShrink", "Hardtanh", "HSwish", "HSigmoid", "Mish", "PReLU", "RReLU", "GLU",
    )
]  # fmt: skip

LAYERS = [
    *ACTIVATIONS,
    Layer("Threshold", lambda: nn.Threshold(0.1, 9.0), _one(2, 3)),
    Layer("Softmax2d", nn.Softmax2d, _one(1, 2, 3, 3)),
    Layer("GELU-exact", lambda: nn.GELU(False), _one(2, 3)),
    Layer("Dense", lambda: nn.Dense(3, 4, activation="relu"), _one(2, 3)),
    Layer("Dense-vector", lambda: nn.Dense(3, 4), _one(3)),
    Layer("Linear", lambda: nn.Linear(3, 4, bias=False), _one(2, 5, 3)),
    Layer("QuantizedDense", lambda: nn.QuantizedDense.of(nn.Dense(16, 4), 4, 8), _one(2, 16)),
    Layer("LGamma", nn.LGamma, lambda: (t(2, 3) * t(2, 3) + 0.5,)),
    Layer("DiGamma", nn.DiGamma, lambda: (t(2, 3) * t(2, 3) + 0.5,)),
    Layer("IGamma", nn.IGamma, lambda: (t(2, 3) * t(2, 3) + 0.5, t(2, 3) * t(2, 3) + 1.0)),
    Layer("LBeta", nn.LBeta, lambda: (t(2, 3) * t(2, 3) + 0.5, t(2, 3) * t(2, 3) + 1.0)),
    Layer("MatMul", nn.MatMul, _pair(3, 3)),
    Layer("MatDet", nn.MatDet, _one(3, 3)),
    Layer("MatInverse", nn.MatInverse, lambda: (t(3, 3) + ops.eye(3) * 4.0,)),
    Layer("MatrixDiag", nn.MatrixDiag, _one(2, 3)),
    Layer("MatrixDiagPart", nn.MatrixDiagPart, _one(2, 3, 3)),
    Layer("MatrixSetDiag", nn.MatrixSetDiag, lambda: (t(2, 3, 3), t(2, 3))),
    Layer("ImageGradients", nn.ImageGradients, _one(1, 2, 4, 5)),
    Layer("SSIM", lambda: nn.SSIM(filter_size=3), lambda: (t(1, 2, 8, 8), t(1, 2, 8, 8) * 0.5)),
    Layer("MSSSIM", lambda: nn.MSSSIM(power_factors=(1.0,), filter_size=3),
          lambda: (t(1, 2, 8, 8), t(1, 2, 8, 8) * 0.5)),
    Layer("TimeDistributed", lambda: nn.TimeDistributed(nn.Dense(3, 4), 1, 0), _one(2, 5, 3)),
    Layer("WithGradCell", lambda: nn.WithGradCell(nn.Dense(3, 4), nn.MSELoss()),
          lambda: (t(2, 3), t(2, 4))),
    Layer("Jvp", lambda: nn.Jvp(ops.tanh), lambda: (t(2, 3), t(2, 3, seed=1))),
    Layer("Vjp", lambda: nn.Vjp(ops.tanh), lambda: (t(2, 3), t(2, 3, seed=1))),
    Layer("BiDense", lambda: nn.BiDense(2, 3, 4), lambda: (t(5, 2), t(5, 3))),
    Layer("Flatten", nn.Flatten, _one(2, 3, 4)),
    Layer("Unflatten", lambda: nn.Unflatten(1, (2, -1)), _one(3, 6)),
    Layer("Identity", nn.Identity, _one(2)),
    Layer("Dropout", lambda: nn.Dropout(p=0.5), _one(4, 5), True),
    Layer("Dropout2d", lambda: nn.Dropout2d(0.5), _one(2, 5, 3, 3), True),
    Layer("Embedding", lambda: nn.Embedding(5, 3), lambda: (Tensor(_IDS),)),
    Layer("Embedding-one-hot", lambda: nn.Embedding(5, 3, True), lambda: (Tensor(_IDS),)),
    Layer("EmbeddingLookup", lambda: nn.EmbeddingLookup(5, 3, max_norm=0.1),
          lambda: (Tensor(_IDS),)),
    Layer("MultiFieldEmbeddingLookup", lambda: nn.MultiFieldEmbeddingLookup(5, 3, 2),
          lambda: (Tensor([[1, 2, 4]]), t(1, 3), Tensor([[0, 1, 1]]))),
    Layer("OneHot", lambda: nn.OneHot(depth=5), lambda: (Tensor(_IDS),)),
    Layer("SequentialCell", lambda: nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2)),
          _one(2, 3)),
    Layer("Conv1d", lambda: nn.Conv1d(2, 4, 3, 2, has_bias=True), _one(1, 2, 7)),
    Layer("Conv2d", lambda: nn.Conv2d(2, 4, 3, 2, group=2, has_bias=True), _one(1, 2, 7, 6)),
    Layer("Conv2d-pad", lambda: nn.Conv2d(2, 3, 3, pad_mode="pad", padding=(1, 0, 2, 1)),
          _one(1, 2, 5, 5)),
    Layer("Conv2d-NHWC", lambda: nn.Conv2d(2, 3, 3, data_format="NHWC"), _one(1, 5, 5, 2)),
    Layer("Conv3d", lambda: nn.Conv3d(1, 2, 2), _one(1, 1, 3, 3, 3)),
    Layer("Conv1dTranspose", lambda: nn.Conv1dTranspose(2, 3, 3, 2), _one(1, 2, 4)),
    Layer("Conv2dTranspose", lambda: nn.Conv2dTranspose(2, 3, 3, 2, has_bias=True),
          _one(1, 2, 3, 3)),
    Layer("Conv3dTranspose", lambda: nn.Conv3dTranspose(1, 2, 2, 2), _one(1, 1, 2, 2, 2)),
    Layer("BatchNorm1d", lambda: nn.BatchNorm1d(3), _one(4, 3)),
    Layer("BatchNorm1d-train", lambda: nn.BatchNorm1d(3), _one(4, 3), True),
    Layer("BatchNorm2d-train", lambda: nn.BatchNorm2d(3), _one(2, 3, 4, 4), True),
    Layer("BatchNorm3d-train", lambda: nn.BatchNorm3d(2), _one(2, 2, 2, 2, 2), True),
    Layer("SyncBatchNorm", lambda: nn.SyncBatchNorm(3), _one(4, 3)),
    Layer("LayerNorm", lambda: nn.LayerNorm((4,)), _one(2, 3, 4)),
    Layer("LayerNorm-two", lambda: nn.LayerNorm((3, 4), 1, 1), _one(2, 3, 4)),
    Layer("LayerNorm-mixed", lambda: nn.LayerNorm((4,), 1, -1), _one(2, 3, 4)),
    Layer("GroupNorm", lambda: nn.GroupNorm(2, 4), _one(2, 4, 3, 3)),
    Layer("InstanceNorm1d", lambda: nn.InstanceNorm1d(3), _one(2, 3, 4)),
    Layer("InstanceNorm2d-train", lambda: nn.InstanceNorm2d(3), _one(2, 3, 4, 4), True),
    Layer("InstanceNorm3d", lambda: nn.InstanceNorm3d(3), _one(2, 3, 2, 2, 2)),
    Layer("LRN", nn.LRN, _one(1, 4, 2, 2)),
    Layer("MaxPool1d", lambda: nn.MaxPool1d(2, 2), _one(1, 2, 7)),
    Layer("MaxPool2d", lambda: nn.MaxPool2d(3, 2, "same"), _one(1, 2, 7, 6)),
    Layer("MaxPool2d-ceil", lambda: nn.MaxPool2d(2, 2, "pad", 1, ceil_mode=True),
          _one(1, 2, 5, 5)),
    Layer("MaxPool3d", lambda: nn.MaxPool3d(2, 2), _one(1, 1, 4, 4, 4)),
    Layer("AvgPool1d", lambda: nn.AvgPool1d(3, 2, "same"), _one(1, 2, 7)),
    Layer("AvgPool2d", lambda: nn.AvgPool2d(3, 2, "pad", 1), _one(1, 2, 5, 5)),
    Layer("AvgPool3d", lambda: nn.AvgPool3d(2, 2), _one(1, 1, 4, 4, 4)),
    Layer("AdaptiveAvgPool1d", lambda: nn.AdaptiveAvgPool1d(2), _one(1, 2, 5)),
    Layer("AdaptiveAvgPool2d", lambda: nn.AdaptiveAvgPool2d((1, 3)), _one(1, 2, 5, 5)),
    Layer("AdaptiveAvgPool3d", lambda: nn.AdaptiveAvgPool3d(1), _one(1, 2, 2, 3, 3)),
    Layer("AdaptiveMaxPool1d", lambda: nn.AdaptiveMaxPool1d(2), _one(1, 2, 5)),
    Layer("AdaptiveMaxPool2d", lambda: nn.AdaptiveMaxPool2d(2), _one(1, 2, 5, 5)),
    Layer("AdaptiveMaxPool3d", lambda: nn.AdaptiveMaxPool3d(1), _one(1, 2, 2, 3, 3)),
    Layer("LPPool1d", lambda: nn.LPPool1d(2, 2), _one(1, 2, 6, low=0.1)),
    Layer("LPPool2d", lambda: nn.LPPool2d(2, 2), _one(1, 2, 4, 4, low=0.1)),
    Layer("FractionalMaxPool2d", lambda: nn.FractionalMaxPool2d(
        1, (2, 2), _random_samples=Tensor(np.full((1, 2, 2), 0.4, np.float32))), _one(1, 2, 5, 5)),
    Layer("MaxUnpool2d", lambda: nn.MaxUnpool2d(2),
          lambda: (t(1, 1, 1, 2), Tensor(np.array([[[[1, 7]]]], np.int64)))),
    Layer("Pad", lambda: nn.Pad(((1, 0), (0, 2))), _one(2, 3)),
    Layer("Pad-symmetric", lambda: nn.Pad(((1, 1), (1, 1)), "SYMMETRIC"), _one(2, 3)),
    Layer("ConstantPad1d", lambda: nn.ConstantPad1d((1, 2), 3.0), _one(2, 3)),
    Layer("ConstantPad3d", lambda: nn.ConstantPad3d(1, 3.0), _one(1, 2, 2, 2)),
    Layer("ZeroPad2d", lambda: nn.ZeroPad2d((1, 2, 0, 1)), _one(1, 2, 3)),
    Layer("ReflectionPad1d", lambda: nn.ReflectionPad1d(1), _one(1, 3)),
    Layer("ReflectionPad2d", lambda: nn.ReflectionPad2d(1), _one(1, 3, 3)),
    Layer("ReplicationPad2d", lambda: nn.ReplicationPad2d(2), _one(1, 3, 3)),
    Layer("ReplicationPad3d", lambda: nn.ReplicationPad3d(1), _one(1, 2, 2, 2)),
    Layer("PixelShuffle", lambda: nn.PixelShuffle(2), _one(1, 4, 2, 3)),
    Layer("ResizeBilinear", nn.ResizeBilinear, lambda: (t(1, 2, 3, 4), (5, 6))),
    Layer("PixelUnshuffle", lambda: nn.PixelUnshuffle(2), _one(1, 1, 4, 6)),
    Layer("ChannelShuffle", lambda: nn.ChannelShuffle(2), _one(1, 4, 2, 2)),
    Layer("Upsample", lambda: nn.Upsample(size=(4, 5)), _one(1, 1, 2, 3)),
    Layer("Unfold", lambda: nn.Unfold((1, 2, 2, 1), (1, 1, 2, 1), (1, 1, 1, 1), "same"),
          _one(1, 2, 3, 3)),
    Layer("CentralCrop", lambda: nn.CentralCrop(0.5), _one(1, 4, 4)),
    Layer("PSNR", nn.PSNR, _pair(2, 1, 3, 3)),
    Layer("Norm", lambda: nn.Norm(1), _one(2, 3)),
    Layer("ClipByNorm", nn.ClipByNorm, lambda: (t(2, 3), Tensor([0.5]))),
    Layer("L1Regularizer", lambda: nn.L1Regularizer(0.1), _one(2, 3)),
    Layer("ReduceLogSumExp", lambda: nn.ReduceLogSumExp(1), _one(2, 3)),
    Layer("Moments", lambda: nn.Moments(1), _one(2, 3)),
    Layer("Tril", nn.Tril, _one(3, 3)),
    Layer("Triu", nn.Triu, _one(3, 3)),
    Layer("Roll", lambda: nn.Roll(1, 0), _one(3, 2)),
    Layer("Range", lambda: nn.Range(1, 8, 2), tuple),
    Layer("Conv2dBnAct", lambda: nn.Conv2dBnAct(1, 2, 3, has_bn=True, activation="relu"),
          _one(1, 1, 4, 4)),
    Layer("DenseBnAct", lambda: nn.DenseBnAct(3, 2, has_bn=True), _one(4, 3)),
    Layer("RNN", lambda: nn.RNN(3, 4), _one(3, 2, 3)),
    Layer("LSTM", lambda: nn.LSTM(3, 4, 2, bidirectional=True), _one(3, 2, 3)),
    Layer("GRU", lambda: nn.GRU(3, 4, batch_first=True), _one(2, 3, 3)),
    Layer("LSTM-lengths", lambda: nn.LSTM(3, 4, bidirectional=True),
          lambda: (t(3, 2, 3), None, Tensor(np.array([3, 1], np.int32)))),
    Layer("RNNCell", lambda: nn.RNNCell(3, 4, nonlinearity="relu"), lambda: (t(2, 3), t(2, 4))),
    Layer("LSTMCell", lambda: nn.LSTMCell(3, 4), lambda: (t(2, 3), (t(2, 4), t(2, 4, seed=1)))),
    Layer("GRUCell", lambda: nn.GRUCell(3, 4), lambda: (t(2, 3), t(2, 4))),
    Layer("MultiheadAttention", lambda: nn.MultiheadAttention(4, 2),
          lambda: (t(3, 2, 4), t(5, 2, 4, seed=1), t(5, 2, 4, seed=2))),
    Layer("MultiheadAttention-kv",
          lambda: nn.MultiheadAttention(4, 2, kdim=3, vdim=5, add_bias_kv=True,
                                        add_zero_attn=True),
          lambda: (t(3, 2, 4), t(4, 2, 3), t(4, 2, 5))),
    Layer("TransformerEncoderLayer", lambda: nn.TransformerEncoderLayer(4, 2, 8), _one(3, 2, 4)),
    Layer("TransformerEncoder",
          lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, norm_first=True), 2),
          _one(3, 2, 4)),
    Layer("TransformerDecoderLayer", lambda: nn.TransformerDecoderLayer(4, 2, 8),
          lambda: (t(3, 2, 4), t(5, 2, 4))),
    Layer("TransformerDecoder",
          lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2),
          lambda: (t(3, 2, 4), t(5, 2, 4))),
    Layer("Transformer", lambda: nn.Transformer(4, 2, 1, 1, 8),
          lambda: (t(3, 2, 4), t(5, 2, 4))),
    Layer("WithLossCell", lambda: nn.WithLossCell(nn.Dense(3, 2), nn.MSELoss()),
          lambda: (t(4, 3), t(4, 2))),
    Layer("WithEvalCell", lambda: nn.WithEvalCell(nn.Dense(3, 2), nn.MSELoss(), True),
          lambda: (t(4, 3), t(4, 2))),
]  # fmt: skip

LOSSES = [
    *(Layer(n, (lambda n=n: getattr(nn, n)()), _pair(2, 3))
      for n in ("L1Loss", "MSELoss", "MAELoss", "RMSELoss", "SmoothL1Loss", "HuberLoss")),
    Layer("BCELoss", nn.BCELoss, lambda: (t(4, low=0.1, high=0.9), t(4, low=0, high=1, seed=1))),
    Layer("BCEWithLogitsLoss", nn.BCEWithLogitsLoss, lambda: (t(4), t(4, low=0, seed=1))),
    Layer("KLDivLoss", nn.KLDivLoss, lambda: (t(2, 3), t(2, 3, low=0.1, seed=1))),
    Layer("GaussianNLLLoss", lambda: nn.GaussianNLLLoss(full=True),
          lambda: (t(4), t(4, seed=1), t(4, low=0.1, seed=2))),
    Layer("PoissonNLLLoss", lambda: nn.PoissonNLLLoss(full=True),
          lambda: (t(4), t(4, low=0.1, high=5, seed=1))),
    Layer("CrossEntropyLoss", lambda: nn.CrossEntropyLoss(label_smoothing=0.1),
          _with((2, 3), _CLASSES)),
    Layer("SoftmaxCrossEntropyWithLogits", nn.SoftmaxCrossEntropyWithLogits,
          _with((2, 3), np.eye(3, dtype=np.float32)[_CLASSES])),
    Layer("SoftmaxCrossEntropyWithLogits-sparse",
          lambda: nn.SoftmaxCrossEntropyWithLogits(True, "mean"), _with((2, 3), _CLASSES)),
    Layer("NLLLoss", nn.NLLLoss, _with((2, 3), _CLASSES)),
    Layer("MultiMarginLoss", nn.MultiMarginLoss, _with((2, 3), _CLASSES.astype(np.int64))),
    Layer("MultiLabelSoftMarginLoss", nn.MultiLabelSoftMarginLoss,
          _with((2, 3), np.array([[1, 0, 1], [0, 0, 1]], np.float32))),
    Layer("DiceLoss", nn.DiceLoss, lambda: (t(2, 3, low=0), t(2, 3, low=0, seed=1))),
    Layer("MultiClassDiceLoss", nn.MultiClassDiceLoss,
          lambda: (t(2, 3, low=0), t(2, 3, low=0, seed=1))),
    Layer("FocalLoss", nn.FocalLoss, _with((2, 3), np.array([[1], [2]], np.int32))),
    Layer("CosineEmbeddingLoss", nn.CosineEmbeddingLoss,
          lambda: (t(2, 3), t(2, 3, seed=1), Tensor(np.array([1, -1], np.int32)))),
    Layer("MarginRankingLoss", nn.MarginRankingLoss,
          lambda: (t(3), t(3, seed=1), Tensor([1.0, -1.0, 1.0]))),
    Layer("HingeEmbeddingLoss", nn.HingeEmbeddingLoss, lambda: (t(3), Tensor([1.0, -1.0, 1.0]))),
    Layer("SoftMarginLoss", nn.SoftMarginLoss, lambda: (t(3), Tensor([1.0, -1.0, 1.0]))),
    Layer("TripletMarginLoss", lambda: nn.TripletMarginLoss(swap=True),
          lambda: (t(2, 3), t(2, 3, seed=1), t(2, 3, seed=2))),
    Layer("TripletMarginWithDistanceLoss", lambda: nn.TripletMarginWithDistanceLoss(swap=True),
          lambda: (t(2, 3), t(2, 3, seed=1), t(2, 3, seed=2))),
    Layer("CTCLoss", nn.CTCLoss,
          lambda: (ops.log_softmax(t(4, 1, 3)), Tensor(np.array([[1, 2]], np.int32)),
                   Tensor(np.array([4], np.int32)), Tensor(np.array([2], np.int32)))),
]  # fmt: skip


def set_up(layer: Layer) -> nn.Cell:
    """Builds a layer with reproducible parameters, in the right mode."""
    return randomize(layer.build()).set_train(layer.train)


def seeded(seed: int, function: Callable[..., Any], *args: Any) -> Any:
    """Calls a function with the random stream at its beginning."""
    ms.common.set_seed(seed)
    return function(*args)
