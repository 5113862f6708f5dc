"""An error is of the built-in class that MindSpore 2.10 raises for the same mistake."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import COOTensor, CSRTensor, Tensor, dataset, nn, ops
from tvmgraph.compat import grad_ops
from tvmgraph.dataset import audio, text, transforms, vision
from tvmgraph.errors import DTypeError, ShapeError
from tvmgraph.experimental import optim
from tvmgraph.train import DatasetHelper, Model

LINE = Tensor(np.ones(3, np.float32))
IMAGE = Tensor(np.ones((1, 2, 8, 8), np.float32))
#: What is called, and what MindSpore 2.10 raised.
MISTAKES: dict[str, tuple[Callable[[], object], type[Exception]]] = {
    "no graph file": (lambda: ms.load("none.mindir"), ValueError),
    "a whole factor": (lambda: ms.train.ReduceLROnPlateau(factor=2), TypeError),
    "a large factor": (lambda: ms.train.ReduceLROnPlateau(factor=2.0), ValueError),
    "a large probability": (lambda: ops.dropout(LINE, p=2.0), RuntimeError),
    "a whole probability": (lambda: ops.dropout(LINE, p=2), TypeError),
    "a number as a network": (
        lambda: ms.export(3, LINE, file_name="x", file_format="ONNX"), RuntimeError
    ),
    "an unknown format": (
        lambda: ms.export(nn.ReLU(), LINE, file_name="x", file_format="FOO"), ValueError
    ),
    "a number as an input": (
        lambda: ms.export(nn.ReLU(), 3, file_name="x", file_format="ONNX"), TypeError
    ),
    "classes in floats": (lambda: ops.one_hot(LINE, 3), TypeError),
    "a number as a word": (lambda: dataset.text.Vocab.from_list([3]), TypeError),
    "fractions above one": (lambda: dataset.NumpySlicesDataset([1, 2]).split([0.5, 0.6]),
                            ValueError),
    "a number of varying length": (lambda: ms.mutable(3, dynamic_len=True), TypeError),
    "a tensor as a kernel": (lambda: ops.avg_pool2d(IMAGE, LINE), TypeError),
    "a tensor as a volume's kernel": (lambda: ops.max_pool3d(IMAGE, LINE), TypeError),
    "a tensor as a block": (lambda: ops.unfold(IMAGE, LINE), TypeError),
    "a tensor as a count": (lambda: ops.histc(LINE, LINE), TypeError),
    "a tensor as an axis": (lambda: ops.narrow(IMAGE, LINE, 0, 2), TypeError),
    "a tensor to begin with": (lambda: LINE.min(initial=LINE), TypeError),
    "no elements to compare": (lambda: LINE.max(axis=0, where=None), TypeError),
    "an int as a flag of indices": (lambda: LINE.max(axis=0, return_indices=1), TypeError),
    "a shape of two axes": (lambda: ops.zeros(Tensor([[2, 3], [4, 5]])), TypeError),
    "an integer of 65 bits": (lambda: Tensor(1 << 64, ms.int64), RuntimeError),
    "NaN as an integer": (lambda: Tensor((1, np.nan), ms.int64), TypeError),
    "a complex NaN as an integer": (lambda: Tensor((1, complex(np.nan, 1)), ms.int64), TypeError),
    "a number as a reduction": (lambda: ops.KLDivLoss(1.0), ValueError),
    "a number as a gradient's reduction": (lambda: grad_ops.SmoothL1LossGrad(1.0, 1), TypeError),
    "an unknown reduction": (lambda: grad_ops.KLDivLossGrad("median"), ValueError),
    "a gradient's unknown reduction": (lambda: grad_ops.NLLLossGrad("median"), ValueError),
    "directions of other shapes": (lambda: ms.jvp(ops.exp, LINE, (LINE, LINE)), TypeError),
    "a set of factors": (lambda: nn.MSSSIM(power_factors={0.5}), TypeError),
    "an int as a sink mode": (lambda: DatasetHelper([], dataset_sink_mode=1), TypeError),
    "a bool as a sink size": (lambda: DatasetHelper([], sink_size=True), TypeError),
    "a negative sink size": (lambda: DatasetHelper([], sink_size=-2), ValueError),
    "three numbers for two": (lambda: nn.Rprop(nn.Dense(1, 1).get_parameters(), etas=(.5, 1, 2)),
                              ValueError),
    "an int as a flag of a loss": (lambda: ops.gaussian_nll_loss(LINE, LINE, LINE, full=1),
                                   TypeError),
    "images of two dtypes": (lambda: nn.SSIM()(IMAGE, IMAGE.half()), TypeError),
    "images of two sizes": (lambda: nn.SSIM()(IMAGE, IMAGE[:, :1]), TypeError),
    "a tensor as a length": (lambda: ops.hamming_window(LINE), TypeError),
    "a word to begin a slice": (lambda: ops.slice(LINE, "a", (1,)), TypeError),
    "a number to end a slice": (lambda: ops.strided_slice(LINE, (0,), 1, (1,)), TypeError),
    "a number as an equation": (lambda: ops.einsum(1, LINE), TypeError),
    "numbers in an equation": (lambda: ops.einsum("i->", 1.5), TypeError),
    "nothing to stack": (lambda: ops.vstack([]), TypeError),
    "counts of another axis": (
        lambda: ms.mint.repeat_interleave(LINE, Tensor([1, 2]), 0), RuntimeError
    ),
    "a number among blocks": (lambda: ops.block_diag(LINE, 1.5), AttributeError),
    "a number to be like": (lambda: ops.zeros_like(1.5), AttributeError),
    "a whole smoothness": (lambda: nn.Dice(smooth=0), TypeError),
    "a list of one size": (lambda: ops.adaptive_avg_pool2d(IMAGE, [2]), TypeError),
    "a number instead of a matrix": (lambda: ops.triu(3), TypeError),
    "a number in a product": (lambda: ops.matmul(IMAGE, 1.5), TypeError),
    "a tuple of indices": (
        lambda: ops.auto_generate.index_select_ext(IMAGE, 1, (Tensor([1]),)), TypeError
    ),
    "words as a shape": (lambda: ops.StandardNormal()(("a", "b")), TypeError),
    "a shape and a number": (lambda: LINE.reshape((3,), 1), ValueError),
    "a word as a border": (lambda: ms.mint.nn.ZeroPad1d("a"), ValueError),
    "a fraction as a border": (lambda: ms.mint.nn.ReplicationPad3d(1.0), ValueError),
    "a fraction of groups": (lambda: ops.ChannelShuffle(2.5), ValueError),
    "a number that is a word": (lambda: ops.kl_div(LINE, LINE, 1), ValueError),
    "a word as a size": (
        lambda: ops.function.nn_func.adaptive_avg_pool2d_ext(IMAGE, "a"), ValueError
    ),
    "pivots that do not exist": (
        lambda: ops.lu_unpack(Tensor(np.eye(3, dtype=np.float32)), Tensor([-3, 1, 2], ms.int32)),
        ValueError,
    ),
    "no matrix to add": (lambda: ops.function.math_func.addmm_ext(IMAGE, None, IMAGE), TypeError),
    "a tuple of scores": (
        lambda: ops.function.nn_func.log_softmax_ext((LINE,), dim=-1), TypeError
    ),
    "no right side": (lambda: ms.scipy.linalg.cho_solve((LINE, False), None), TypeError),
    "no start of a search": (
        lambda: ms.scipy.optimize.minimize(ops.sum, None, method="BFGS"), TypeError
    ),
    "no image": (lambda: ops.conv2d(None, IMAGE), AttributeError),
    "no tensor": (lambda: ops.argmax(None), AttributeError),
    "a list": (lambda: ops.cov([1.0, 2.0]), AttributeError),
    "too few axes": (lambda: ops.fftn(Tensor(1.5), s=(2, 2), dim=(0, 1)), ValueError),
    "three sizes of a 2-d kernel": (lambda: nn.Conv2d(1, 2, (3, 3, 3)), TypeError),
    "an int that is no fraction": (lambda: nn.Adam(nn.Dense(1, 1).get_parameters(), beta1=1),
                                   TypeError),
    "a tensor as a flag": (lambda: optim.SGD(nn.Dense(1, 1).get_parameters(), 0.1, maximize=LINE),
                           TypeError),
    "an array as a flag": (lambda: nn.SGD(nn.Dense(1, 1).get_parameters(), nesterov=np.ones(3)),
                           TypeError),
    "a tensor as a rate": (lambda: optim.Adam(nn.Dense(1, 1).get_parameters(), eps=LINE),
                           ValueError),
    "a tensor as channels": (lambda: nn.Conv2d(LINE, 2, 3), ValueError),
    "a flag of several elements": (
        lambda: optim.AdamW(nn.Dense(1, 1).get_parameters(), maximize=LINE), ValueError),
    "no network": (lambda: nn.TrainOneStepCell(5, nn.SGD(nn.Dense(1, 1).get_parameters())),
                   AttributeError),
    "no dataset": (lambda: Model(nn.ReLU(), nn.MSELoss(), metrics={"mae"}).eval(1.5),
                   AttributeError),
    "no level": (lambda: Model(nn.ReLU(), amp_level=2), TypeError),
    "a number for predictions": (lambda: nn.MAE().update(LINE, 1.5), TypeError),
    "a tuple for labels": (lambda: nn.Recall("classification").update(IMAGE, (1, 0)), TypeError),
    "a negative number of repetitions": (lambda: ops.tile(Tensor([1, 2]), -1), TypeError),
    "a number for gradients": (lambda: optim.Adam(nn.Dense(1, 1).get_parameters())(1.5), TypeError),
    "a tensor for a dtype": (lambda: Tensor(shape=(2,), dtype=LINE, init="ones"), TypeError),
    "a tensor as a fill": (lambda: vision.Pad(1, LINE), TypeError),
    "a dict as a fill": (lambda: vision.RandAugment(2, 9, 31, vision.Inter.NEAREST, {"a": 1}),
                         TypeError),
    "no interpolation": (lambda: vision.Affine(10, [1, 1], 1.0, 0.0, 7), TypeError),
    "no word": (lambda: vision.Rotate(30.0, None), TypeError),
    "five angles": (lambda: vision.RandomRotation((1, 2, 3, 4, 5)), TypeError),
    "a tensor as a place in a sound": (lambda: audio.MaskAlongAxis(LINE, 10, 0.5, 1), TypeError),
    "a size that is no tuple": (lambda: ops.irfftn(IMAGE, s=2, dim=(0, 1, 2)), TypeError),
    "a sparse matrix of one number": (lambda: COOTensor(Tensor([[0, 1]]), Tensor(1.0), (2, 2)),
                                      IndexError),
    "a matrix of rows with one number": (
        lambda: CSRTensor(Tensor([0, 1]), Tensor([0]), Tensor(1.0), (1, 2)), IndexError),
    "axes to contract that do not exist": (
        lambda: ops.tensor_dot(IMAGE[0, 0], IMAGE[0, 0], ((0, 1), (1, 2))), ValueError),
    "one size of an image": (lambda: ops.ResizeBicubic()(IMAGE, Tensor(3)), ValueError),
    "an image of three axes": (lambda: ops.ResizeBicubic()(IMAGE[0], (3, 3)), ValueError),
    "arguments of no registered kind": (lambda: ops.MultitypeFuncGraph("f")(1), ValueError),
    "rows of several sizes": (
        lambda: list(dataset.GeneratorDataset([np.ones(1), np.ones(2)], ["x"]).batch(2)),
        RuntimeError),
    "columns of one name": (
        lambda: dataset.zip((dataset.NumpySlicesDataset([1]), dataset.NumpySlicesDataset([1]))),
        RuntimeError),
    "a label that is no class": (lambda: dataset.transforms.OneHot(3)(np.array(5)), RuntimeError),
    "a word that is not known": (
        lambda: dataset.text.Lookup(dataset.text.Vocab.from_list(["a"]))("b"), RuntimeError),
    "a float for an integer parameter": (
        lambda: ops.assign(ms.Parameter(Tensor([2])), Tensor([3.5])), TypeError),
    "a float added to an integer parameter": (
        lambda: ops.assign_add(ms.Parameter(Tensor([2])), 0.5), TypeError),
    "a float for a bool": (
        lambda: ops.assign(ms.Parameter(Tensor([True])), np.array([0.5])), TypeError),
    "floats scattered over integers": (
        lambda: ops.scatter_add(ms.Parameter(Tensor([2, 3])), Tensor([0]), Tensor([0.5])),
        TypeError),
    "floats at coordinates of integers": (
        lambda: ops.tensor_scatter_update(Tensor([2, 3]), Tensor([[0]]), Tensor([0.5])),
        TypeError),
    "floats along an axis of integers": (
        lambda: ops.tensor_scatter_elements(Tensor([2, 3]), Tensor([0]), Tensor([0.5])),
        TypeError),
    "two ways to keep moments": (
        lambda: nn.Adam(nn.Dense(1, 1).get_parameters(), use_lazy=True, use_offload=True),
        ValueError),
    "an axis that is kept but not named": (lambda: ms.mint.max(LINE, keepdim=True), TypeError),
    "an axis that is None": (lambda: ms.mint.min(LINE, dim=None, keepdim=True), TypeError),
    "a Cell as a plain class": (lambda: ms.jit_class(nn.Dense), TypeError),
    "a mask of another size": (lambda: IMAGE[Tensor([True, True])], ValueError),
    "a mask of another size to write at": (
        lambda: IMAGE.copy().__setitem__(Tensor([True, True]), 1.0), ValueError),
    "a fraction as an index": (lambda: LINE[Tensor([1.0])], IndexError),
    "a code of an interpolation": (lambda: vision.Resize(3, 2), TypeError),
    "a word that no border has": (lambda: vision.Pad(1, padding_mode="wrap"), TypeError),
    "no axis to map over": (lambda: ms.vmap(ops.add, in_axes=None)(IMAGE, IMAGE), RuntimeError),
    "an axis that is not there": (lambda: ms.vmap(ops.exp, in_axes=1)(LINE), RuntimeError),
    "an axis that no result has": (lambda: ms.vmap(ops.exp, out_axes=1)(LINE), RuntimeError),
    "axes of two lengths": (lambda: ms.vmap(ops.add)(LINE, IMAGE), RuntimeError),
    "more axes than results": (lambda: ms.vmap(ops.exp, out_axes=(0, 0, 1))(IMAGE), RuntimeError),
    "a result that differs without an axis": (
        lambda: ms.vmap(ops.exp, out_axes=None)(LINE), RuntimeError),
    "a number beyond float32": (lambda: text.ToNumber(ms.float32)("1e39"), RuntimeError),
    "a column without a name": (
        lambda: dataset.Schema().parse_columns([{"type": "int8"}]), RuntimeError),
    "a number for a file of a schema": (lambda: dataset.Schema(1), TypeError),
    "a hole longer than the image": (
        lambda: vision.CutOut(9)(np.ones((4, 4, 3), np.uint8)), RuntimeError),
    "a second axis to join along": (lambda: transforms.Concatenate(1), ValueError),
    "a table to put before": (lambda: transforms.Concatenate(0, np.ones((2, 2))), ValueError),
    "text behind numbers": (
        lambda: transforms.Concatenate(0, None, np.array(["a"]))(np.ones(2)), RuntimeError),
    "integers behind floats": (
        lambda: transforms.Concatenate(0, None, np.array([1]))(np.ones(2)), RuntimeError),
    "a table between": (
        lambda: transforms.Concatenate(0, np.ones(2))(np.ones((2, 2))), RuntimeError),
    "none of the transforms": (
        lambda: vision.UniformAugment([vision.HorizontalFlip()], 0), ValueError),
    "a complex number without parts": (lambda: audio.Magphase()(np.ones(4)), RuntimeError),
    "a matrix to convolve": (lambda: ms.numpy.convolve(IMAGE[0, 0], LINE), ValueError),
    "numbers to correlate": (lambda: ms.numpy.correlate(2, 3), ValueError),
    "no array": (lambda: ms.numpy.log2(None), AttributeError),
    "no shape": (lambda: Tensor([1.0]).reshape(), TypeError),
    "no copies": (lambda: LINE.tile(), TypeError),
    "a number as a layout": (lambda: ops.DataFormatDimMap(1), ValueError),
    "a process that is not": (lambda: ms.communication.create_group("g", [0, 1]), RuntimeError),
    "no such group": (lambda: ms.communication.destroy_group("g"), RuntimeError),
    "a group without a name": (lambda: ms.communication.create_group(1, [0]), TypeError),
    "no file to read": (lambda: vision.read_file("none"), RuntimeError),
    "no records": (lambda: ms.mindrecord.FileReader("none"), RuntimeError),
    "no images": (lambda: dataset.ImageFolderDataset("none"), RuntimeError),
    "an unknown reduction of a loss": (lambda: ms.mint.nn.L1Loss(reduction="a"), ValueError),
    "no word for a reduction": (lambda: ms.mint.nn.L1Loss(reduction=None), ValueError),
    "an operand too few": (lambda: ops.Sub()(LINE), RuntimeError),
    "an operand too many of a product": (lambda: ops.MatMul()(IMAGE, IMAGE, IMAGE), TypeError),
    "no operand at all": (lambda: ops.ScatterUpdate()(), ValueError),
    "a second operand": (lambda: ops.BesselI0()(LINE, LINE), ValueError),
    "an empty list of transforms": (lambda: vision.RandomSelectSubpolicy([[]]), ValueError),
    "a transform that is none": (lambda: vision.RandomSelectSubpolicy([[(1, 0.5)]]), TypeError),
    "a batch for one image": (
        lambda: vision.ToPIL()(np.ones((1, 2, 2, 3), np.uint8)), ValueError),
    "an operator of one's own without a function": (
        lambda: ops.Custom(1, lambda s: s, lambda d: d, "pyfunc"), TypeError),
    "an operator of one's own without a shape": (
        lambda: ops.Custom(abs, func_type="pyfunc")(LINE), TypeError),
    "an overlap of no kind": (lambda: ops.IOU(mode="giou"), KeyError),
    "a number as its kind": (lambda: ops.IOU(1), KeyError),
    "an overlap of no kind by the function": (
        lambda: ops.iou(IMAGE, IMAGE, mode="giou"), KeyError),
    "an image without columns": (lambda: vision.CenterCrop(3)(np.ones(3)), RuntimeError),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_the_class_is_that_of_mindspore(name: str) -> None:
    call, wanted = MISTAKES[name]
    with pytest.raises(wanted) as caught:
        call()
    assert type(pickle.loads(pickle.dumps(caught.value))) is type(caught.value)
    assert str(copy.copy(caught.value)) == str(caught.value)


def test_a_wrong_type_is_named_before_what_it_led_to() -> None:
    with pytest.raises(DTypeError, match="bins must be an int, not Tensor") as caught:
        ops.histc(LINE, LINE)
    assert isinstance(caught.value, ShapeError)  # of what it led to, too
    assert "ambiguous" in str(caught.value.__cause__)


def test_values_of_a_tensor_are_asked_for_elsewhere() -> None:
    with pytest.raises(ShapeError, match="ambiguous") as caught:
        bool(LINE)
    assert not isinstance(caught.value, TypeError)
