"""Random transforms: their ranges, their seed, and what they do to labels and boxes."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tvmgraph import Tensor, dataset
from tvmgraph.dataset import config, transforms, vision
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError

IMAGE = np.random.default_rng(0).integers(0, 256, (20, 24, 3)).astype(np.uint8)
JPEG = vision.encode_jpeg(IMAGE)

SAME_SHAPE: list[Any] = [
    vision.AutoAugment(), vision.AutoAugment(vision.AutoAugmentPolicy.CIFAR10),
    vision.AutoAugment(vision.AutoAugmentPolicy.SVHN), vision.RandAugment(3, 20),
    vision.TrivialAugmentWide(), vision.RandomAffine(20, (0.2, 0.2), (0.8, 1.2), 10),
    vision.RandomRotation(30), vision.RandomPerspective(prob=1.0), vision.RandomColor(),
    vision.RandomColorAdjust(0.4, 0.4, 0.4, 0.1), vision.RandomSharpness(),
    vision.RandomSolarize(), vision.RandomPosterize((3, 8)), vision.RandomLighting(0.5),
    vision.CutOut(6, 2), vision.RandomCrop((20, 24), 4),
    vision.RandomSelectSubpolicy([[(vision.Invert(), 0.5)], [(vision.Equalize(), 0.5)]]),
    vision.UniformAugment([vision.Invert(), vision.Equalize(), vision.Posterize(3)], 2),
    transforms.RandomOrder([vision.Invert(), vision.Posterize(3)]),
]  # fmt: skip


@pytest.mark.parametrize("transform", SAME_SHAPE, ids=lambda t: type(t).__name__)
def test_random_transforms_follow_the_seed(transform: Any) -> None:
    def draw(seed: int) -> list[np.ndarray]:
        found = []
        for row in range(8):
            config.set_seed(seed)
            with config.row_randomness(row):
                found.append(transform(IMAGE))
        return found

    try:
        first, again, other = draw(1), draw(1), draw(2)
    finally:
        config._settings.seed = None
    assert all(f.shape == IMAGE.shape and f.dtype == np.uint8 for f in first)
    assert all(np.array_equal(a, b) for a, b in zip(first, again))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other))


def test_random_parts_are_parts() -> None:
    for _ in range(10):
        part = vision.RandomCrop((7, 9))(IMAGE)
        places = np.lib.stride_tricks.sliding_window_view(IMAGE, (7, 9, 3))[:, :, 0]
        assert (places == part).all((2, 3, 4)).any()
    assert vision.RandomResizedCrop(6)(IMAGE).shape == (6, 6, 3)
    assert vision.RandomCropDecodeResize((6, 5))(JPEG).shape == (6, 5, 3)
    erased = vision.RandomErasing(1.0, (0.1, 0.1), (1, 1), 7)(np.zeros((3, 20, 24), np.float32))
    assert (erased == 7).sum() == 3 * 7 * 7  # 48 pixels, a square of seven
    noise = vision.RandomErasing(1.0, value="random")(np.zeros((3, 20, 24), np.float32))
    assert len(np.unique(noise)) > 3


def test_batches_are_mixed_with_their_labels() -> None:
    images = np.stack([np.full((6, 8, 3), v, np.float32) for v in (0, 10, 20, 30)])
    labels = np.eye(4, dtype=np.float32)
    for mix in (vision.MixUp(4, 1.0), vision.MixUpBatch(1.0), vision.MixUp(4, 1.0, False)):
        mixed, shares = mix(images, labels)
        np.testing.assert_allclose(shares.sum(1), 1, 1e-6)
        np.testing.assert_allclose(mixed.mean((1, 2, 3)), shares @ [0, 10, 20, 30], 1e-4, 1e-4)
    for form, data in (
        (vision.ImageBatchFormat.NHWC, images),
        (vision.ImageBatchFormat.NCHW, images.transpose(0, 3, 1, 2)),
    ):
        mixed, shares = vision.CutMixBatch(form)(data, labels)
        np.testing.assert_allclose(mixed.mean((1, 2, 3)), shares @ [0, 10, 20, 30], 1e-4, 1e-4)
    with pytest.raises(ShapeError, match="OneHot"):
        vision.MixUpBatch()(images, np.arange(4))
    one, share = vision.MixUp(2, 1.0, False)(images[0], labels[:1])  # as often as batch_size says
    assert one.shape == (2, 6, 8, 3) and share.shape == (2, 4)
    data = dataset.NumpySlicesDataset({"x": images, "y": labels}).batch(4)
    row = next(data.map(vision.MixUpBatch(), ["x", "y"]).create_dict_iterator(output_numpy=True))
    assert row["x"].shape == images.shape and row["y"].dtype == np.float32


def test_boxes_stay_with_their_pixels() -> None:
    marked = np.zeros((20, 24, 3), np.uint8)
    marked[5:9, 3:10] = 255
    boxes = np.array([[3, 5, 7, 4]], np.float32)
    for transform in (
        vision.RandomHorizontalFlipWithBBox(1.0), vision.RandomVerticalFlipWithBBox(1.0),
        vision.RandomCropWithBBox((18, 20), 2), vision.RandomCropWithBBox(30, None, True),
        vision.ResizeWithBBox((40, 48), vision.Inter.NEAREST),
    ):  # fmt: skip
        image, (box,) = transform(marked, boxes)
        x, y, w, h = box.astype(int)
        assert image[y : y + h, x : x + w].all()
        assert image.astype(bool).sum() == 3 * w * h, type(transform).__name__
    cut, (box,) = vision.RandomCropWithBBox((2, 2))(marked[:, 15:], boxes - [15, 0, 0, 0])
    assert not cut.any() and not box.any()
    changed, same = vision.BoundingBoxAugment(vision.Invert(), 1.0)(marked, boxes)
    assert not changed.any() and np.array_equal(same, boxes)
    image, _ = vision.RandomResizedCropWithBBox(9)(marked, boxes)
    assert image.shape == (9, 9, 3)


def test_pillow_images_stay_pillow_images() -> None:
    picture = vision.Decode(to_pil=True)(JPEG)
    smaller = vision.Resize((8, 6))(picture)
    assert smaller.size == (6, 8) and vision.get_image_num_channels(smaller) == 3
    assert vision.RandomGrayscale(1.0)(picture).mode == "RGB"
    gray = vision.Grayscale()(picture)
    np.testing.assert_array_equal(np.asarray(gray), np.asarray(picture.convert("L")))
    assert vision.ToTensor()(gray).shape == (1, 20, 24)
    batch = vision.Resize((5, 5))(np.stack([IMAGE, IMAGE]))
    assert batch.shape == (2, 5, 5, 3)
    assert vision.Normalize([0.5] * 3, [0.5] * 3)(Tensor(IMAGE)).dtype == np.float32


def test_files(tmp_path: Path) -> None:
    vision.write_png(tmp_path / "a.png", IMAGE)
    np.testing.assert_array_equal(vision.read_image(tmp_path / "a.png"), IMAGE)
    gray = vision.read_image(tmp_path / "a.png", vision.ImageReadMode.GRAYSCALE)
    assert gray.shape == (20, 24, 1)
    vision.write_jpeg(tmp_path / "a.jpg", IMAGE, 90)
    read = vision.read_image(tmp_path / "a.jpg", vision.ImageReadMode.COLOR)
    assert abs(read.mean() - IMAGE.mean()) < 5
    with pytest.raises(ArgumentError, match="no file"):
        vision.read_file(tmp_path / "b.png")
    for damaged in (np.zeros(5, np.uint8), JPEG[:-100], JPEG[:-2], vision.encode_png(IMAGE)[:-99]):
        with pytest.raises(ArgumentError, match="no image") as caught:
            vision.Decode()(damaged)
        assert isinstance(caught.value, RuntimeError)
    deep = BytesIO()
    Image.fromarray(IMAGE[..., 0].astype(np.uint16) * 200).save(deep, "PNG")
    gray = IMAGE[..., 0].astype(int) * 200 >> 8  # the high byte, as MindSpore
    np.testing.assert_array_equal(vision.Decode()(deep.getvalue())[..., 1], gray)


def test_jpeg_files_are_decoded_as_by_pillow() -> None:
    picture = Image.fromarray(IMAGE)
    turned = Image.Exif()
    turned[0x112] = 6  # MindSpore leaves images as they are stored
    for image, options in (
        (picture, {}), (picture, {"progressive": True}), (picture, {"exif": turned}),
        (picture.convert("L"), {}), (picture.convert("CMYK"), {}),
    ):  # fmt: skip
        file = BytesIO()
        image.save(file, "JPEG", **options)
        found = vision.Decode()(np.frombuffer(file.getvalue(), np.uint8))
        np.testing.assert_array_equal(found, np.asarray(Image.open(file).convert("RGB")))


def _marked(array: np.ndarray) -> float:
    """Returns a sum of numbers that tells their places apart."""
    flat = array.astype(np.float64).ravel()
    return float((flat * (1 + np.arange(flat.size) % 97)).sum())


_PIXELS = (np.arange(41 * 57 * 3) * 37 % 251).reshape(41, 57, 3).astype(np.uint8)
_CORNERS = [[0, 0], [56, 0], [56, 40], [0, 40]]

#: Transforms of an array of bytes and the sum of what MindSpore 2.10 gives, then of its floats.
OF_ARRAYS = [
    (vision.Resize((20, 33)), 11960349, 11971467.4),
    (vision.Resize((74, 100)), 135776643, 135920382),
    (vision.Resize((20, 33), vision.Inter.CUBIC), 11960124, 11961697.8),
    (vision.Resize((45, 30), vision.Inter.CUBIC), 24733041, 24725336.6),
    (vision.Resize((74, 100), vision.Inter.NEAREST), 135983379, 135983379),
    (vision.Resize((20, 33), vision.Inter.AREA), 11981655, 11981470.5),
    (vision.Resize((45, 30), vision.Inter.AREA), 24689409, 24713226.4),
    (vision.Rotate(33.3, vision.Inter.LINEAR, True), 42928187, 42920870),
    (vision.Affine(-40.5, (0.1, -0.2), 1.3, (5, -12.5), vision.Inter.CUBIC, (10, 20, 30)),
     40262364, 40256407.7),
    (vision.RandomAffine((15, 15), None, (1.1, 1.1), (5, 5, 3, 3), vision.Inter.LINEAR),
     41183742, 41179560.1),
    (vision.Perspective(_CORNERS, [[1, 1], [50, 3], [55, 38], [2, 35]], vision.Inter.CUBIC),
     33640732, 33470234.9),
    (vision.GaussianBlur((1, 3)), 42804017, 42804000.3),
    (vision.GaussianBlur((3, 7), (0.8, 2.2)), 42815777, 42815919.8),
    (vision.AdjustContrast(2.7), 43327137, 42781524.2),
    (vision.AdjustSaturation(2.7), 44474018, 42799185.2),
    (vision.AdjustSharpness(2.7), 43193065, 42766901.1),
    (vision.ConvertColor(vision.ConvertMode.COLOR_RGB2BGRA), 71976223, 42956215),
]  # fmt: skip


@pytest.mark.parametrize(("transform", "of_bytes", "of_floats"), OF_ARRAYS, ids=str)
def test_pixels_are_those_of_mindspore(transform: Any, of_bytes: int, of_floats: float) -> None:
    found = transform(_PIXELS)
    assert found.dtype == np.uint8 and _marked(found) == of_bytes
    found = transform(_PIXELS.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(_marked(found), of_floats, 1e-7)


def test_images_that_opencv_refuses_are_named() -> None:
    for dtype in (np.int32, np.int64, np.float16):
        with pytest.raises(ArgumentError, match=np.dtype(dtype).name) as caught:
            vision.Resize((4, 5))(_PIXELS.astype(dtype))
        assert isinstance(caught.value, RuntimeError)  # as MindSpore's
    mask = _PIXELS[..., 0] > 100
    found = vision.Resize((4, 5), vision.Inter.NEAREST)(mask)
    assert (found == mask[[0, 10, 20, 30]][:, [0, 11, 22, 34, 45]]).all()
    assert vision.Resize((4, 5))(_PIXELS[::-1, :, :1]).shape == (4, 5, 1)


@pytest.mark.parametrize("is_hwc", [True, False])
def test_rows_are_normalized_channel_by_channel(is_hwc: bool) -> None:
    mean, std = np.array([1.5, 100, 7], np.float32), np.array([2, 0.3, 60], np.float32)
    image = IMAGE[::2, ::-1]
    want = (image.astype(np.float32) - mean) / std
    given = image if is_hwc else image.transpose(2, 0, 1)
    found = vision.Normalize(mean.tolist(), std.tolist(), is_hwc)(given)
    assert isinstance(found, np.ndarray)
    front = np.asarray(vision.HWC2CHW()(found)) if is_hwc else found
    assert front.flags.c_contiguous
    assert (found == (want if is_hwc else want.transpose(2, 0, 1))).all()
    one = vision.Normalize((3.0,), (2.0,), is_hwc)(given)
    assert (one == (given.astype(np.float32) - 3) / 2).all()


#: Transforms of an image of Pillow, and a sum of the bytes that MindSpore 2.10 gives, by place.
OF_PILLOW = [
    (vision.AdjustBrightness(1.5), 3997452),
    (vision.AdjustContrast(1.5), 2994956),
    (vision.AdjustSaturation(0.5), 2980232),
    (vision.AdjustHue(0.2), 3153278),
    (vision.AutoContrast(5.0), 3021918),
    (vision.Equalize(), 2973951),
    (vision.CenterCrop((5, 7)), 598974),
    (vision.RandomResizedCrop(6, (1.0, 1.0), (14 / 12, 14 / 12)), 604138),
    (vision.Perspective([[0, 0], [13, 0], [13, 11], [0, 11]],
                        [[1, 1], [12, 0], [13, 10], [0, 11]]), 2729378),
    (vision.RandomColor((1.4, 1.4)), 2994088),
    (vision.RandomSharpness((1.5, 1.5)), 2978727),
    (vision.RandomAffine((15, 15), None, (1.3, 1.3), (10, 10, 5, 5), vision.Inter.BILINEAR),
     2980545),
    (vision.RandomRotation((15, 15), vision.Inter.BICUBIC, True, None, (9, 8, 7)), 3301072),
]  # fmt: skip


@pytest.mark.parametrize(("transform", "wanted"), OF_PILLOW, ids=lambda v: type(v).__name__)
def test_images_of_pillow_are_transformed_by_pillow(transform: Any, wanted: int) -> None:
    pixels = (np.arange(12 * 14 * 3) * 37 % 251).reshape(12, 14, 3).astype(np.uint8)
    found = transform(Image.fromarray(pixels))
    assert isinstance(found, Image.Image)
    assert _marked(np.asarray(found)) == wanted


def test_some_transforms_make_arrays_of_images_of_pillow() -> None:
    image = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
    for transform in (vision.HorizontalFlip(), vision.Posterize(3), vision.RandomInvert(0.0),
                      vision.RandomInvert(1.0), vision.Crop((0, 0), 2)):  # fmt: skip
        assert isinstance(transform(image), np.ndarray)
    for transform in (vision.RandomHorizontalFlip(1.0), vision.RandomHorizontalFlip(0.0),
                      vision.RandomColorAdjust(0.5, 0.5)):  # fmt: skip
        assert isinstance(transform(image), Image.Image)


def test_halves_are_rounded_as_in_mindspore() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 50, 3)).astype(np.uint8)
    weights = 1 + np.arange(pixels.size) % 97
    for transform, wanted in (
        (vision.AdjustSaturation(1.7), 37120049), (vision.RandomColor((0.3, 0.3)), 37321747),
        (vision.AdjustSharpness(1.7), 37128470),
    ):  # fmt: skip
        assert (np.asarray(transform(pixels)).astype(int).ravel() * weights).sum() == wanted


def test_crop_names_a_corner_of_one_number() -> None:
    with pytest.raises(DTypeError, match="a top and a left"):
        vision.Crop([0], [28])  # pyright: ignore


def test_a_normalized_plane_has_two_axes() -> None:
    plane = np.ones((2, 3))
    for image in (plane, plane.astype(np.uint8)):
        np.testing.assert_allclose(vision.Normalize([0.5], [0.1])(image), np.full((2, 3), 5.0))
    assert vision.Normalize([0.5], [0.1], False)(plane).shape == (2, 3)
    assert vision.NormalizePad([0.5], [0.1])(plane).shape == (2, 3, 2)
    with pytest.raises(RuntimeError, match="2 means for an image with 3 channels"):
        vision.Normalize([0.5, 0.5], [0.1, 0.1])(np.ones((2, 3, 3)))


def test_arrays_that_leave_a_pipeline_are_contiguous() -> None:
    rows = dataset.NumpySlicesDataset([np.ones((2, 3, 4), np.uint8)], ["x"])
    rows = rows.map(vision.Normalize([0.5], [0.1]))
    (row,) = rows.create_dict_iterator(output_numpy=True)
    assert row["x"].flags.c_contiguous


@pytest.mark.parametrize("name", [
    "RandomCrop", "RandomResizedCrop", "RandomHorizontalFlip", "RandomVerticalFlip", "RandomResize",
])  # fmt: skip
def test_an_image_and_its_mask_are_transformed_alike(name: str) -> None:
    image = np.random.default_rng(3).integers(0, 255, (16, 16, 3), np.uint8)
    make = getattr(vision, name)
    transform = make(0.5) if "Flip" in name else make(5)
    columns = dataset.NumpySlicesDataset(([image] * 8, [image[..., :1]] * 8), ["x", "m"])
    rows = columns.map(transform, ["x", "m"]).create_tuple_iterator(output_numpy=True)
    found = [(x, m) for x, m in rows]
    assert all(np.array_equal(x[..., 0], m.reshape(x.shape[:2])) for x, m in found)
    assert len({x.tobytes() for x, _ in found}) > 1
    if "Crop" in name:
        with pytest.raises(RuntimeError, match="sizes"):
            transform(image, image[1:])


def test_a_policy_hands_on_several_values() -> None:
    twice = [(transforms.Duplicate(), 1.0), (transforms.Concatenate(), 1.0)]
    assert vision.RandomSelectSubpolicy([twice])(np.arange(2)).tolist() == [0, 1, 0, 1]


def test_a_border_of_a_gray_image_has_the_first_number() -> None:
    padded = vision.Pad(1, (7, 8, 9))(np.zeros((2, 2, 1), np.uint8))
    assert padded.shape == (4, 4, 1) and padded[0, 0] == 7


def test_boxes_are_scaled_in_float32() -> None:
    image = np.zeros((2268, 4032, 3), np.uint8)
    boxes = np.array([[1168, 405, 2102, 1617]], np.float32)
    resized, found = vision.ResizeWithBBox(100)(image, boxes)
    assert resized.shape == (100, 177, 3)
    wanted = [51.27381134033203, 17.857141494750977, 92.27529907226562, 71.29629516601562]
    assert found.tolist() == [wanted]  # MindSpore's
