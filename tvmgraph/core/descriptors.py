"""What loop nests are known to be: facts of operators that kernels would else find out again.

A descriptor is written beside the loops as an annotation of their block, which fusion keeps.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

#: The annotation of a block that holds the descriptor of a convolution.
CONVOLUTION = "tvmgraph.convolution"


@dataclass(frozen=True)
class Convolution:
    """A convolution with a packed weight.

    Attributes:
        layout: Axes of the image, ``"NCHWc"`` or ``"NCHW"``.
        stride: Step of the window, per spatial axis.
        padding: Zeros ``(before, after)``, per spatial axis.
        dilation: Distance between taps, per spatial axis.
        groups: Groups of channels that are independent of each other.
        dot: Neighbouring factors that one instruction multiplies and sums; 1 if the weight is not
            packed for one.
        winograd: Rows and columns of a tile of the result by Winograd's method, for which the
            transformed weight is an operand that the block declares to read; 0 without one.
    """

    layout: str
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    groups: int
    dot: int = 1
    winograd: int = 0

    def annotation(self) -> dict[str, str]:
        """The attributes of the block."""
        return {CONVOLUTION: json.dumps(asdict(self))}

    @classmethod
    def read(cls, text: str) -> Convolution:
        """The descriptor that :meth:`annotation` wrote.

        Args:
            text: What is attached to a kernel.
        """
        fields = json.loads(text)
        fields["padding"] = tuple((before, after) for before, after in fields["padding"])
        fields["stride"], fields["dilation"] = tuple(fields["stride"]), tuple(fields["dilation"])
        return cls(**fields)

    def __str__(self) -> str:
        return (
            f"{self.layout} stride {self.stride} padding {self.padding} dilation {self.dilation} "
            f"groups {self.groups}"
        )
