"""What programs say of an operator of their own: dtypes, formats, attributes, processor.

``ops.Custom`` takes the description and does not need it: dtypes are what ``out_dtype`` says.
"""

from __future__ import annotations

from typing import Self

from tvmgraph.errors import ArgumentError, reject

_KINDS = {
    "None": "", "BOOL": "bool", "C64": "complex64", "C128": "complex128", "BF16": "bfloat16",
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"{s}{b}": f"{k}int{b}" for s, k in (("I", ""), ("U", "u")) for b in (8, 16, 32, 64)},
}  # fmt: skip
#: Formats that are called otherwise in the names.
_FORMATS = {
    "None": "", "Default": "DefaultFormat", "5HD": "NC1HWC0", "FracZ": "FRACTAL_Z",
    "FracNZ": "FRACTAL_NZ", "FracZNLSTM": "FRACTAL_ZN_LSTM", "FracZNRNN": "FRACTAL_ZN_RNN",
    "ND_RNNBIAS": "ND_RNN_BIAS",
}  # fmt: skip
_PLAIN = "C1HWNCoC0 ChannelLast DHWCN FRACTAL_Z_3D HWCN NC1HWC0 NCDHW NCHW NDC1HWC0 NDHWC NHWC"


class _Formats(type):
    """Reads names of formats when they are asked for; there are some hundreds."""

    def __getattr__(cls, name: str) -> tuple[str, ...]:
        kind, _, layout = name.partition("_")
        layout, _, many = layout.partition("Default_") if "Default_" in layout else (layout, "", "")
        format = "DefaultFormat" if many else _FORMATS.get(layout, layout)
        known = format in _FORMATS.values() or format in _PLAIN.split()
        if kind not in _KINDS or not known or many not in ("", "Tuple", "List"):
            raise AttributeError(f"DataType has no format {name!r}")
        return (_KINDS[kind], format, *([many.lower()] if many else ()))


class DataType(metaclass=_Formats):
    """Pairs of a dtype and a format: ``DataType.F16_Default`` is ``("float16", "DefaultFormat")``.

    Example:
        >>> ops.DataType.I8_NHWC
        ('int8', 'NHWC')
    """


class CustomRegOp:
    """Collects what an operator takes and gives, for ``ops.Custom(reg_info=...)``.

    Args:
        op_name: Its name.

    Raises:
        ArgumentError: if the name is no text or blank.

    Example:
        >>> info = ops.CustomRegOp("twice").input(0, "x").output(0, "y").target("CPU")
        >>> info.dtype_format(("float32", "NCHW"), ("float32", "NCHW")).get_op_info()["outputs"]
        [{'index': 0, 'name': 'y', 'paramType': 'required'}]
    """

    def __init__(self, op_name: str = "Custom") -> None:
        if not isinstance(op_name, str) or not op_name.strip():
            reject(ArgumentError, "CustomRegOp", f"op_name cannot be {op_name!r}")
        self._info: dict[str, object] = {"op_name": op_name}
        self._inputs: list[dict[str, object]] = []
        self._outputs: list[dict[str, object]] = []
        self._attrs: list[dict[str, object]] = []
        self._formats: list[tuple[tuple[str, ...], ...]] = []
        self._target: str | None = "UnKnown"

    def input(
        self, index: int | None = None, name: str | None = None,
        param_type: str | None = "required", **kwargs: object,
    ) -> Self:  # fmt: skip
        """Says what an input is.

        Args:
            index: Which.
            name: Its name.
            param_type: ``"required"``, ``"optional"``, or ``"dynamic"`` for several tensors.
            kwargs: Whatever else is to be kept of it.
        """
        self._inputs.append(_described(index, name, paramType=param_type) | kwargs)
        return self

    def output(
        self, index: int | None = None, name: str | None = None,
        param_type: str | None = "required", **kwargs: object,
    ) -> Self:  # fmt: skip
        """Says what an output is.

        Args:
            index: Which.
            name: Its name.
            param_type: ``"required"``, ``"optional"``, or ``"dynamic"`` for several tensors.
            kwargs: Whatever else is to be kept of it.
        """
        self._outputs.append(_described(index, name, paramType=param_type) | kwargs)
        return self

    def attr(
        self, name: str | None = None, param_type: str | None = None,
        value_type: str | None = None, default_value: str | None = None, **kwargs: object,
    ) -> Self:  # fmt: skip
        """Says what an attribute is.

        Args:
            name: Its name.
            param_type: ``"required"`` or ``"optional"``.
            value_type: Such as ``"int"`` or ``"listFloat"``.
            default_value: What it is where none is given, as text.
            kwargs: Whatever else is to be kept of it.
        """
        words = {"paramType": param_type, "type": value_type, "defaultValue": default_value}
        self._attrs.append(_described(None, name, **words) | kwargs)
        return self

    def dtype_format(self, *args: tuple[str, ...]) -> Self:
        """Adds one combination of dtypes and formats.

        Args:
            args: A pair for every input and output, as :class:`DataType` has them.

        Raises:
            ArgumentError: if there are more or fewer pairs, or one is no pair.
        """
        count = len(self._inputs) + len(self._outputs)
        if len(args) != count:
            reject(ArgumentError, "CustomRegOp.dtype_format",
                   f"{count} inputs and outputs have {len(args)} formats")  # fmt: skip
        for pair in args:
            if not isinstance(pair, tuple) or len(pair) not in (2, 3):
                reject(ArgumentError, "CustomRegOp.dtype_format",
                       f"{pair!r} is no pair of dtype and format")  # fmt: skip
        self._formats.append(args)
        return self

    def target(self, target: str | None = None) -> Self:
        """Says for which processor the description holds.

        Args:
            target: ``"CPU"``, ``"GPU"`` or ``"Ascend"``; None for the current one.
        """
        self._target = target
        return self

    def get_op_info(self) -> dict[str, object]:
        """Returns what was said as a dict with the keys of MindSpore's."""
        return self._info | {
            "inputs": self._inputs, "outputs": self._outputs, "attr": self._attrs,
            "fusion_type": "", "dtype_format": self._formats, "target": self._target,
        }  # fmt: skip


def _described(index: int | None, name: str | None, **words: str | None) -> dict[str, object]:
    """The words that were given; None leaves one out."""
    return {k: v for k, v in {"index": index, "name": name, **words}.items() if v is not None}


__all__ = ["CustomRegOp", "DataType"]
