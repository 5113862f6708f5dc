"""Transforms of images: arrays of shape (height, width, channels), uint8 or float."""

from typing import Any

from tvmgraph.compat.paths import look
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.dataset.transforms import not_random
from tvmgraph.dataset.vision.boxes import (
    BoundingBoxAugment,
    RandomCropWithBBox,
    RandomHorizontalFlipWithBBox,
    RandomResizedCropWithBBox,
    RandomResizeWithBBox,
    RandomVerticalFlipWithBBox,
    ResizeWithBBox,
)
from tvmgraph.dataset.vision.color import (
    AdjustBrightness,
    AdjustContrast,
    AdjustGamma,
    AdjustHue,
    AdjustSaturation,
    AdjustSharpness,
    AutoContrast,
    Equalize,
    GaussianBlur,
    Invert,
    Posterize,
    Solarize,
)
from tvmgraph.dataset.vision.erasing import (
    CutOut,
    Erase,
    RandomErasing,
)
from tvmgraph.dataset.vision.files import (
    Decode,
    RandomCropDecodeResize,
    encode_jpeg,
    encode_png,
    get_image_num_channels,
    get_image_size,
    read_file,
    read_image,
    write_file,
    write_jpeg,
    write_png,
)
from tvmgraph.dataset.vision.geometry import (
    CenterCrop,
    Crop,
    Pad,
    PadToSize,
    RandomCrop,
    RandomResize,
    RandomResizedCrop,
    Resize,
    ResizedCrop,
)
from tvmgraph.dataset.vision.kinds import (
    AutoAugmentPolicy,
    Border,
    ConvertMode,
    ImageBatchFormat,
    ImageReadMode,
    Inter,
    SliceMode,
)
from tvmgraph.dataset.vision.mixing import (
    CutMixBatch,
    MixUp,
    MixUpBatch,
)
from tvmgraph.dataset.vision.parts import (
    FiveCrop,
    SlicePatches,
    TenCrop,
)
from tvmgraph.dataset.vision.pixels import (
    resize,
)
from tvmgraph.dataset.vision.policies import (
    AutoAugment,
    RandAugment,
    RandomSelectSubpolicy,
    TrivialAugmentWide,
    UniformAugment,
)
from tvmgraph.dataset.vision.random_color import (
    RandomAdjustSharpness,
    RandomAutoContrast,
    RandomColor,
    RandomColorAdjust,
    RandomEqualize,
    RandomInvert,
    RandomLighting,
    RandomPosterize,
    RandomSharpness,
    RandomSolarize,
)
from tvmgraph.dataset.vision.values import (
    HWC2CHW,
    ConvertColor,
    Grayscale,
    HsvToRgb,
    LinearTransformation,
    Normalize,
    NormalizePad,
    RandomGrayscale,
    Rescale,
    RgbToHsv,
    ToNumpy,
    ToPIL,
    ToTensor,
    ToType,
)
from tvmgraph.dataset.vision.warps import (
    Affine,
    HorizontalFlip,
    Perspective,
    RandomAffine,
    RandomHorizontalFlip,
    RandomPerspective,
    RandomRotation,
    RandomVerticalFlip,
    Rotate,
    VerticalFlip,
)


def __getattr__(name: str) -> Any:
    return look(__name__, name, __all__)


__all__ = [
    "HWC2CHW", "AdjustBrightness", "AdjustContrast", "AdjustGamma", "AdjustHue",
    "AdjustSaturation", "AdjustSharpness", "Affine", "AutoAugment", "AutoAugmentPolicy",
    "AutoContrast", "Border", "BoundingBoxAugment", "CenterCrop", "ConvertColor", "ConvertMode",
    "Crop", "CutMixBatch", "CutOut", "Decode", "Equalize", "Erase", "FiveCrop", "GaussianBlur",
    "Grayscale", "HorizontalFlip", "HsvToRgb", "ImageBatchFormat", "ImageReadMode", "Inter",
    "Invert", "LinearTransformation", "MixUp", "MixUpBatch", "Normalize", "NormalizePad", "Pad",
    "PadToSize", "Perspective", "Posterize", "RandAugment", "RandomAdjustSharpness",
    "RandomAffine", "RandomAutoContrast", "RandomColor", "RandomColorAdjust", "RandomCrop",
    "RandomCropDecodeResize", "RandomCropWithBBox", "RandomEqualize", "RandomErasing",
    "RandomGrayscale", "RandomHorizontalFlip", "RandomHorizontalFlipWithBBox", "RandomInvert",
    "RandomLighting", "RandomPerspective", "RandomPosterize", "RandomResize",
    "RandomResizeWithBBox", "RandomResizedCrop", "RandomResizedCropWithBBox", "RandomRotation",
    "RandomSelectSubpolicy", "RandomSharpness", "RandomSolarize", "RandomVerticalFlip",
    "RandomVerticalFlipWithBBox", "Rescale", "Resize", "ResizeWithBBox", "ResizedCrop",
    "RgbToHsv", "Rotate", "SliceMode", "SlicePatches", "Solarize", "TenCrop", "ToNumpy",
    "ToPIL", "ToTensor", "ToType", "TrivialAugmentWide", "UniformAugment", "VerticalFlip",
    "encode_jpeg", "encode_png", "get_image_num_channels", "get_image_size", "not_random",
    "read_file", "read_image", "resize", "write_file", "write_jpeg", "write_png",
]  # fmt: skip

_guard_module(globals(), "dataset.vision")
