"""Calls of transforms whose results are compared with what MindSpore gave.

A call is an expression over :func:`inputs` and the packages ``vision``, ``transforms``, ``text`` and
``audio`` (of ``mindspore.dataset``), ``ms`` and ``np`` (NumPy).
"""

from __future__ import annotations

from typing import Any

import numpy

from tests.compat.cases import calls

ROOMS = ("vision", "transforms", "text", "audio")


def inputs() -> dict[str, Any]:
    """Returns the arrays by the names that the calls use."""
    rng = numpy.random.default_rng(5)
    ramp = numpy.add.outer(numpy.arange(13) * 9, numpy.arange(17) * 5)[..., None] + [0, 30, 60]
    return {
        "img": rng.integers(0, 256, (11, 14, 3)).astype(numpy.uint8),
        "tiny": rng.integers(0, 256, (8, 9, 3)).astype(numpy.uint8),
        "ramp": (ramp % 256).astype(numpy.uint8),
        "gray": rng.integers(0, 256, (9, 7)).astype(numpy.uint8),
        "one": rng.integers(0, 256, (9, 7, 1)).astype(numpy.uint8),
        "flt": rng.uniform(0, 1, (6, 7, 3)).astype(numpy.float32),
        "chw": rng.uniform(0, 1, (3, 5, 4)).astype(numpy.float32),
        "batch": rng.integers(0, 256, (3, 4, 5, 3)).astype(numpy.uint8),
        "boxes": numpy.array([[1, 2, 5, 4], [0, 0, 9, 8]], numpy.float32),
        "row": numpy.array([3, 1, 2, 3, 1], numpy.int32),
        "pieces": ["fav", "##or", "##ite", "hello", ","],
        "sound": numpy.random.default_rng(6).uniform(-0.9, 0.9, (2, 300)),
        "short": numpy.random.default_rng(7).uniform(-0.9, 0.9, 100).astype(numpy.float32),
        "loud": numpy.random.default_rng(8).uniform(0.1, 2, (2, 33, 6)).astype(numpy.float32),
        "waves": numpy.random.default_rng(9).normal(size=(5, 6, 2)).astype(numpy.float32),
        "words": numpy.array(["to", "be", "or", "not", "to", "be"]),
    }


_ADJUST = [
    f"vision.Adjust{name}({factor})(img)"
    for name in ("Brightness", "Contrast", "Saturation", "Sharpness")
    for factor in ("0", "0.3", "1.0", "2.5")
] + [f"vision.AdjustHue({h})(img)" for h in ("-0.5", "-0.2", "0", "0.1", "0.5")]
_SIZES = "7 (5, 20) (22, 9) (11, 28) (30, 30) (4, 4) (1, 1) 20".replace(", ", ",").split()
_INTERS = ("NEAREST", "BILINEAR", "BICUBIC", "AREA", "PILCUBIC")
_RESIZE = [
    f"vision.Resize({size}, vision.Inter.{inter})({image})"
    for inter in _INTERS
    for size in _SIZES
    for image in (("img", "tiny", "ramp") if inter in ("NEAREST", "BILINEAR") else ("img",))
] + [
    f"vision.Resize({size}, vision.Inter.{inter})({image})"
    for inter in _INTERS[:4]
    for size in ("(5,3)", "13")
    for image in ("gray", "one", "flt")
]  # fmt: skip
_WARPS = [
    call
    for inter in ("NEAREST", "BILINEAR", "BICUBIC", "AREA")
    for call in calls(f"""
vision.Rotate(30, vision.Inter.{inter})(img)
vision.Rotate(90, vision.Inter.{inter})(img)
vision.Rotate(-45.5, vision.Inter.{inter}, True)(ramp)
vision.Rotate(100, vision.Inter.{inter}, True, None, (1, 2, 3))(img)
vision.Rotate(10, vision.Inter.{inter}, False, (3, 2), 7)(img)
vision.RandomRotation((20, 20), vision.Inter.{inter}, False, None, 9)(img)
vision.Affine(15, (0.1, 0.2), 1.2, (10, 5), vision.Inter.{inter}, 5)(img)
vision.Affine(0, (-1, 1), 0.7, 20, vision.Inter.{inter})(ramp)
vision.RandomAffine((10, 10), None, (1.5, 1.5), (5, 5), vision.Inter.{inter}, (3, 4, 5))(img)
""")
] + [
    f"vision.Perspective([[0, 0], [13, 0], [13, 10], [0, 10]], {ends}, vision.Inter.{inter})(img)"
    for inter in ("NEAREST", "BILINEAR", "BICUBIC", "AREA")
    for ends in (
        "[[1, 2], [12, 1], [11, 9], [2, 10]]", "[[0, 0], [13, 0], [13, 10], [0, 10]]",
    )
]  # fmt: skip

DATASET = (
    _ADJUST
    + _RESIZE
    + _WARPS
    + calls("""
vision.AdjustGamma(0.5)(img)
vision.AdjustGamma(2.2, 1.3)(img)
vision.AdjustGamma(0.5, 0.8)(flt)
vision.AdjustBrightness(1.5)(flt)
vision.AdjustContrast(1.5)(flt)
vision.AdjustSaturation(1.5)(flt)
vision.AutoContrast()(img)
vision.AutoContrast(10.0, [10, 20])(img)
vision.AutoContrast(5.0)(gray)
vision.AutoContrast(20.0, 255)(ramp)
vision.RandomAutoContrast(5.0, None, 1.0)(img)
vision.CenterCrop(5)(img)
vision.CenterCrop((6, 9))(img)
vision.CenterCrop(20)(img)
vision.CenterCrop((13, 5))(img)
vision.CenterCrop(4)(gray)
vision.CenterCrop(3)(batch)
vision.ConvertColor(vision.ConvertMode.COLOR_RGB2BGR)(img)
vision.ConvertColor(vision.ConvertMode.COLOR_RGB2RGBA)(img)
vision.ConvertColor(vision.ConvertMode.COLOR_RGB2BGRA)(img)
vision.ConvertColor(vision.ConvertMode.COLOR_RGB2GRAY)(img)
vision.ConvertColor(vision.ConvertMode.COLOR_BGR2GRAY)(img)
vision.ConvertColor(vision.ConvertMode.COLOR_GRAY2RGB)(one)
vision.ConvertColor(vision.ConvertMode.COLOR_GRAY2RGBA)(one)
vision.ConvertColor(vision.ConvertMode.COLOR_RGB2GRAY)(flt)
vision.Crop((1, 2), (5, 6))(img)
vision.Crop((0, 0), 4)(gray)
vision.Equalize()(img)
vision.Equalize()(ramp)
vision.Equalize()(gray)
vision.RandomEqualize(1.0)(img)
vision.Erase(1, 2, 5, 4, 7)(img)
vision.Erase(1, 2, 5, 4, (1, 2, 3))(img)
vision.Erase(0, 0, 2, 2)(flt)
vision.GaussianBlur(3)(img)
vision.GaussianBlur(5, 1.5)(img)
vision.GaussianBlur((3, 5), (0.8, 2.0))(img)
vision.GaussianBlur(7, 3)(ramp)
vision.GaussianBlur(3, 1)(gray)
vision.GaussianBlur((5, 1), 1)(flt)
vision.HorizontalFlip()(img)
vision.HorizontalFlip()(gray)
vision.HorizontalFlip()(batch)
vision.VerticalFlip()(img)
vision.VerticalFlip()(batch)
vision.RandomHorizontalFlip(1.0)(img)
vision.RandomVerticalFlip(1.0)(gray)
vision.HWC2CHW()(img)
vision.HWC2CHW()(one)
vision.HsvToRgb(True)(flt)
vision.HsvToRgb()(chw)
vision.RgbToHsv(True)(flt)
vision.RgbToHsv()(chw)
vision.RgbToHsv(True)(img)
vision.Invert()(img)
vision.RandomInvert(1.0)(img)
vision.LinearTransformation(np.eye(60)[::-1] * 2, np.arange(60) / 60)(chw)
vision.Normalize([10, 20, 30], [2, 3, 4])(img)
vision.Normalize([0.1, 0.2, 0.3], [0.2, 0.3, 0.4], False)(chw)
vision.Normalize([0.5], [0.2])(one)
vision.NormalizePad([10, 20, 30], [2, 3, 4])(img)
vision.NormalizePad([10, 20, 30], [2, 3, 4], 'float16')(img)
vision.NormalizePad([0.1, 0.2, 0.3], [2, 3, 4], 'float32', False)(chw)
vision.Pad(2)(img)
vision.Pad((1, 2), 9)(img)
vision.Pad((1, 2, 3, 4), (1, 2, 3))(img)
vision.Pad((1, 2, 3, 4), 0, vision.Border.EDGE)(img)
vision.Pad((1, 2, 3, 4), 0, vision.Border.REFLECT)(img)
vision.Pad((1, 2, 3, 4), 0, vision.Border.SYMMETRIC)(gray)
vision.CenterCrop((14, 17))(img)
vision.CenterCrop((14, 5))(gray)
vision.RandomRotation((20, 20), fill_value=(3, 4, 5))(img)
vision.Resize((64, 48))(ramp)
vision.Resize((5, 20), vision.Inter.PILCUBIC)(ramp)
vision.PadToSize((16, 17))(img)
vision.PadToSize(20, 3, 5)(img)
vision.PadToSize((16, 17), (2, 1), (1, 2, 3))(img)
vision.PadToSize((16, 17), None, 0, vision.Border.SYMMETRIC)(img)
vision.Posterize(4)(img)
vision.Posterize(0)(img)
vision.Posterize(8)(gray)
vision.RandomPosterize((3, 3))(img)
vision.RandomAdjustSharpness(2.0, 1.0)(img)
vision.RandomSharpness((0.4, 0.4))(img)
vision.RandomColor((0.4, 0.4))(img)
vision.RandomColor((1.7, 1.7))(img)
vision.RandomColorAdjust((1.5, 1.5))(img)
vision.RandomColorAdjust((1, 1), (0.5, 0.5))(img)
vision.RandomColorAdjust((1, 1), (1, 1), (0.5, 0.5))(img)
vision.RandomColorAdjust((1, 1), (1, 1), (1, 1), (0.1, 0.1))(img)
vision.RandomLighting(0.0)(img)
vision.RandomSolarize((100, 100))(img)
vision.RandomCrop((11, 14))(img)
vision.RandomErasing(0.0)(flt)
vision.Rescale(1 / 255, -0.5)(img)
vision.Rescale(2.0, 1.0)(flt)
vision.ResizedCrop(1, 2, 6, 7, (4, 5))(img)
vision.ResizedCrop(0, 0, 5, 5, 9, vision.Inter.NEAREST)(img)
vision.SlicePatches(2, 3)(img)
vision.SlicePatches(3, 2, vision.SliceMode.DROP)(img)
vision.SlicePatches(3, 2, vision.SliceMode.PAD, 9)(img)
vision.Solarize((50, 150))(img)
vision.Solarize(100)(img)
vision.Solarize((10, 20))(gray)
vision.ToTensor()(img)
vision.ToTensor()(gray)
vision.ToTensor('float16')(one)
vision.ToNumpy()(vision.ToPIL()(img))
vision.ToType(np.float32)(img)
vision.ToTensor()(vision.Grayscale(3)(vision.ToPIL()(img)))
vision.ToTensor()(vision.Grayscale()(vision.ToPIL()(img)))
vision.ToTensor()(vision.RandomGrayscale(1.0)(vision.ToPIL()(img)))
vision.ToTensor()(vision.Resize((5, 6))(vision.ToPIL()(img)))
vision.ToTensor()(vision.Resize(7, vision.Inter.ANTIALIAS)(vision.ToPIL()(img)))
vision.ToTensor()(vision.Resize(20, vision.Inter.BICUBIC)(vision.ToPIL()(img)))
vision.ToTensor()(vision.CenterCrop(6)(vision.ToPIL()(img)))
vision.ToTensor()(vision.Pad(2)(vision.ToPIL()(img)))
[vision.ToTensor()(i) for i in vision.FiveCrop(5)(vision.ToPIL()(img))]
[vision.ToTensor()(i) for i in vision.TenCrop((5, 4))(vision.ToPIL()(img))]
[vision.ToTensor()(i) for i in vision.TenCrop(5, True)(vision.ToPIL()(img))]
vision.get_image_size(img)
vision.get_image_num_channels(img)
vision.get_image_num_channels(gray)
vision.Decode()(np.frombuffer(bytes(vision.encode_png(img)), np.uint8))
vision.RandomHorizontalFlipWithBBox(1.0)(img, boxes)
vision.RandomVerticalFlipWithBBox(1.0)(img, boxes)
vision.ResizeWithBBox((22, 28))(img, boxes)
""")
)
DATASET += calls("""
transforms.Concatenate(0, np.array([1, 2], np.int32), np.array([9], np.int32))(row)
transforms.Mask(transforms.Relational.GT, 1)(row)
transforms.Mask(transforms.Relational.EQ, 3, ms.int32)(row)
transforms.Mask(transforms.Relational.LE, 2, ms.float32)(row)
transforms.PadEnd([7], 10)(row)
transforms.PadEnd([3])(row)
transforms.Slice(slice(1, 4))(row)
transforms.Slice([0, 2])(row)
transforms.Slice(slice(0, 2), slice(1, 3))(gray)
transforms.Slice(3)(row)
transforms.Slice(...)(row)
transforms.Slice(None)(row)
transforms.Fill(4)(row)
transforms.Duplicate()(row)
transforms.OneHot(5)(np.array(3))
transforms.OneHot(5)(row)
transforms.OneHot(5, 0.1)(np.array(2, np.int32))
transforms.TypeCast(ms.float32)(row)
transforms.Compose([transforms.Fill(2), transforms.TypeCast('float16')])(row)
transforms.RandomApply([transforms.Fill(2)], 1.0)(row)
transforms.RandomChoice([transforms.Fill(2)])(row)
transforms.RandomOrder([transforms.Fill(2), transforms.Fill(2)])(row)
""")
DATASET += calls("""
text.AddToken('[CLS]')(words)
text.AddToken('[END]', False)(words)
text.BasicTokenizer()("Hello, World's  naïve 北京 [CLS]!")
text.BasicTokenizer(True)("Hello, WORLD's  naïve 北京!")
text.BasicTokenizer(False, True)("a, b  c")
text.BasicTokenizer(True, with_offsets=True)("a, B  c")
text.CaseFold()("Straße HELLO")
text.Lookup(text.Vocab.from_list(['to', 'be', 'or', 'not']))(words)
text.Lookup(text.Vocab.from_list(['to', 'be'], ['<unk>']), '<unk>', ms.int64)(words)
text.Ngram(2)(words)
text.Ngram([1, 3], ('_', 2), ('*', 1), '-')(words)
text.NormalizeUTF8()("ﬁ é Å ①")
text.NormalizeUTF8(text.NormalizeForm.NFD)("ﬁ é Å ①")
text.NormalizeUTF8(text.NormalizeForm.NFC)("ﬁ é Å ①")
text.NormalizeUTF8(text.NormalizeForm.NFKD)("ﬁ é Å ①")
text.NormalizeUTF8(text.NormalizeForm.NONE)("ﬁ é Å ①")
text.PythonTokenizer(lambda s: s.split('-'))(np.array("a-b-c"))
text.RegexReplace('o+', '0')("foo boo")
text.RegexReplace('o+', '0', False)("foo boo")
text.RegexReplace('(.)b', '<$1>')("ab cb")
text.RegexTokenizer('\\\\s+')("Hello big  world")
text.RegexTokenizer('\\\\s+', '\\\\s+')("Hello big  world")
text.RegexTokenizer('[,.]', '[,]', True)("a,b.c")
text.SlidingWindow(3)(row)
text.SlidingWindow(2, 0)(words)
text.ToNumber(ms.int8)(np.array(['1', '-2']))
text.ToNumber(ms.float32)(np.array(['1.5', '-2e3']))
text.Truncate(3)(words)
text.Truncate(9)(words)
text.TruncateSequencePair(5)(row, row)
text.TruncateSequencePair(4)(np.array([1, 2]), row)
text.TruncateSequencePair(3)(words, words)
text.UnicodeCharTokenizer()("Wel 来!")
text.UnicodeCharTokenizer(True)("Wel 来!")
text.UnicodeScriptTokenizer()("Welcome to 北京 αβγ, ok? 12")
text.UnicodeScriptTokenizer(True)("Welcome to 北京 αβγ, ok? 12")
text.UnicodeScriptTokenizer(True, True)("Welcome  to 北京")
text.WhitespaceTokenizer()("  Welcome to\\t北京 ")
text.WhitespaceTokenizer(True)("  Welcome to\\t北京 ")
text.WordpieceTokenizer(text.Vocab.from_list(pieces))(np.array(['my', 'favorite', 'x']))
text.WordpieceTokenizer(text.Vocab.from_list(pieces), unknown_token='')(np.array(['fav', 'xy']))
text.WordpieceTokenizer(text.Vocab.from_list(pieces), with_offsets=True)(np.array(['favor', 'x']))
text.BertTokenizer(text.Vocab.from_list(pieces), lower_case=True)("Hello, Favorite my")
text.Vocab.from_list(['a', 'b'], ['<pad>', '<unk>']).tokens_to_ids(['a', '<pad>', '<unk>', 'b'])
text.Vocab.from_list(['a', 'b'], ['<pad>'], False).tokens_to_ids(['a', '<pad>', '<unk>', 'b'])
text.Vocab.from_dict({'a': 3, 'b': 7}).ids_to_tokens([7, 3])
text.Vocab.from_list(['a', 'b']).tokens_to_ids(['b', 'a', 'zz'])
text.to_str(text.to_bytes(np.array(['ab', 'c'])))
text.to_str(np.array([b'ab', b'c']))
""")
DATASET += calls("""
audio.AllpassBiquad(44100, 200.0, 0.3)(sound)
audio.AmplitudeToDB()(loud)
audio.AmplitudeToDB(audio.ScaleType.MAGNITUDE, 2.0, 1e-5, 6.0)(loud)
audio.Angle()(waves)
audio.BandBiquad(44100, 200.0)(sound)
audio.BandBiquad(44100, 200.0, 0.5, True)(sound)
audio.BandpassBiquad(44100, 200.0)(sound)
audio.BandpassBiquad(44100, 200.0, 0.707, True)(sound)
audio.BandrejectBiquad(44100, 200.0)(sound)
audio.BassBiquad(44100, 20.0, 100.0)(sound)
audio.Biquad(0.01, 0.02, 0.13, 1.0, 0.12, 0.3)(sound)
audio.Biquad(0.01, 0.02, 0.13, 1.0, 0.12, 0.3)(short)
audio.ComplexNorm(2.0)(waves)
audio.ComputeDeltas()(loud)
audio.ComputeDeltas(7, audio.BorderType.REFLECT)(loud)
audio.ComputeDeltas(7, audio.BorderType.CONSTANT)(loud)
audio.Contrast(75.0)(short)
audio.DBToAmplitude(0.7, 0.5)(loud)
audio.DCShift(0.5)(short)
audio.DCShift(0.8, 0.02)(short)
audio.DeemphBiquad(44100)(sound)
audio.EqualizerBiquad(44100, 1500.0, 5.5)(sound)
audio.Fade(30, 20)(short)
audio.Fade(30, 20, audio.FadeShape.EXPONENTIAL)(short)
audio.Fade(30, 20, audio.FadeShape.LOGARITHMIC)(short)
audio.Fade(30, 20, audio.FadeShape.QUARTER_SINE)(short)
audio.Fade(30, 20, audio.FadeShape.HALF_SINE)(short)
audio.Filtfilt([1.0, 0.1, 0.2], [0.1, 0.2, 0.3])(sound)
audio.FrequencyMasking(False, 3, 1)(loud)
audio.Gain(1.5)(short)
audio.HighpassBiquad(4000, 1500.0, 0.7)(sound)
audio.LFilter([1.0, 0.1, 0.2], [2.1, 2.2, 0.3])(sound)
audio.LFilter([1.0, 0.1, 0.2, 0.05], [0.1, 0.2, 0.3, 0.4], False)(short)
audio.LowpassBiquad(4000, 1500.0, 0.7)(sound)
audio.Magphase(1.5)(waves)
audio.MaskAlongAxis(1, 3, 5.0, 1)(loud)
audio.MaskAlongAxis(2, 4, 5.0, 2)(loud)
audio.MelScale(8, 16000, 0.0, None, 33)(loud)
audio.MelSpectrogram(16000, 64, n_mels=8)(short)
audio.MelSpectrogram(16000, 64, n_mels=8, norm=audio.NormType.SLANEY, power=1.0)(short)
audio.MuLawDecoding()(audio.MuLawEncoding()(short))
audio.MuLawEncoding()(short)
audio.RiaaBiquad(44100)(sound)
audio.Spectrogram(64)(short)
audio.Spectrogram(64, 40, 16, 5, audio.WindowType.HAMMING, 1.0, True)(short)
audio.Spectrogram(64, power=0.0)(short)
audio.Spectrogram(64, center=False, window=audio.WindowType.BLACKMAN)(short)
audio.Spectrogram(64, window=audio.WindowType.BARTLETT)(short)
audio.Spectrogram(64, window=audio.WindowType.KAISER)(short)
audio.TimeMasking(False, 3, 1, 2.0)(loud)
audio.TrebleBiquad(44100, -20.0)(sound)
audio.Vol(0.7)(short)
audio.Vol(3.0, audio.GainType.DB)(short)
audio.Vol(3.0, audio.GainType.POWER)(short)
""")
