"""Networks of libraries other than timm and transformers, with random weights.

Made where the library is: ``pip install --no-deps ultralytics ultralytics-thop
segmentation-models-pytorch diffusers monai torchaudio``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

Built = tuple[Any, tuple[Any, ...]]


def _random(*shape: int) -> Any:
    import torch  # pyright: ignore

    return torch.randn(shape)


def _made(maker: str, *args: Any, **settings: Any) -> Any:
    """Calls what ``module.name`` is."""
    module, _, name = maker.rpartition(".")
    return getattr(importlib.import_module(module), name)(*args, **settings).eval()


def _called(net: Any, call: Callable[..., Any]) -> Any:
    """A module that calls another one in its own way."""
    import torch  # pyright: ignore

    class Called(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return call(self.net, *args)

    module = Called()
    module.net = net
    return module


def _yolo(name: str) -> Built:
    kind = "SegmentationModel" if name.endswith("-seg") else "DetectionModel"
    net = _made(f"ultralytics.nn.tasks.{kind}", f"{name}.yaml", verbose=False)
    for module in net.modules():  # boxes only, as its own export writes them
        if hasattr(module, "export"):
            module.export, module.format = True, "onnx"
    return net, (_random(1, 3, 320, 320),)


def _segmented(name: str, encoder: str) -> Built:
    net = _made(f"segmentation_models_pytorch.{name}", encoder, encoder_weights=None, classes=3)
    return net, (_random(1, 3, 256, 256),)


def _decoder() -> Built:
    """The decoder of latent images."""
    down, up = ("DownEncoderBlock2D",) * 3, ("UpDecoderBlock2D",) * 3
    net = _made("diffusers.AutoencoderKL", block_out_channels=(32, 64, 64), layers_per_block=1,
                down_block_types=down, up_block_types=up)  # fmt: skip
    call = _called(net, lambda net, z: net.decode(z, return_dict=False)[0])
    return call, (_random(1, 4, 32, 32),)


def _denoiser() -> Built:
    """A U-Net that text conditions."""
    import torch  # pyright: ignore

    cross = "CrossAttnDownBlock2D", "CrossAttnUpBlock2D"
    net = _made(
        "diffusers.UNet2DConditionModel", sample_size=32, block_out_channels=(64, 128, 128),
        layers_per_block=1, cross_attention_dim=256, attention_head_dim=8,
        down_block_types=(cross[0], cross[0], "DownBlock2D"),
        up_block_types=("UpBlock2D", cross[1], cross[1]),
    )  # fmt: skip
    call = _called(net, lambda net, x, t, text: net(x, t, text, return_dict=False)[0])
    return call, (_random(1, 4, 32, 32), torch.tensor([10]), _random(1, 77, 256))


def _flow() -> Built:
    net = _made("torchvision.models.optical_flow.raft_small", weights=None)
    call = _called(net, lambda net, a, b: net(a, b, num_flow_updates=3)[-1])
    return call, (_random(1, 3, 128, 160), _random(1, 3, 128, 160))


def _volume(name: str, **settings: Any) -> Built:
    net = _made(f"monai.networks.nets.{name}", in_channels=1, out_channels=2, **settings)
    return net, (_random(1, 1, 48, 48, 48),)


def _sound() -> Built:
    net = _made("torchaudio.models.ConvTasNet", msk_num_feats=64, msk_num_hidden_feats=128,
                msk_num_layers=4, msk_num_stacks=2)  # fmt: skip
    return net, (_random(1, 1, 8000),)


OTHERS: dict[str, Callable[[], Built]] = {
    "yolov8n": lambda: _yolo("yolov8n"),
    "yolov8n-seg": lambda: _yolo("yolov8n-seg"),
    "yolov10n": lambda: _yolo("yolov10n"),
    "yolo11n": lambda: _yolo("yolo11n"),
    "unet_resnet18": lambda: _segmented("Unet", "resnet18"),
    "unetplusplus_resnet18": lambda: _segmented("UnetPlusPlus", "resnet18"),
    "deeplabv3plus_mobilenet_v2": lambda: _segmented("DeepLabV3Plus", "mobilenet_v2"),
    "segformer_mit_b0": lambda: _segmented("Segformer", "mit_b0"),
    "autoencoder_kl_decoder": _decoder,
    "unet2d_condition": _denoiser,
    "raft_small": _flow,
    "segresnet_3d": lambda: _volume("SegResNet", spatial_dims=3, init_filters=8),
    "unetr_3d": lambda: _volume("UNETR", img_size=(48, 48, 48), feature_size=8, hidden_size=192,
                                mlp_dim=384, num_heads=6),
    "conv_tasnet": _sound,
}  # fmt: skip
