"""Frozen networks that turn photographs into feature maps."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rotating_features._check import InputError, check_shape
from rotating_features.features.fingerprint import fingerprint, weights_id

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

Spec = dict[str, Any]
"""What :func:`rotating_features.features.open_backbone` needs to open a backbone again."""


class Backbone(nn.Module):
    """A network that gives a feature map for images, frozen.

    It stays in evaluation mode whatever is asked of the model around it, its weights do not
    train, and no gradients pass through it. The values of the first batch and the shape of its
    features are checked; after that a call only launches work on the device, so it can be
    captured in a CUDA graph.

    Args:
        module: Normalised images (b, 3, h, w) to features (b, channels, h / stride, w / stride).
            It is taken over, not copied: its weights are frozen and get the given type.
        channels: Channels of the features.
        stride: Pixels per step of the grid; the patch size of a vision transformer.
        mean, std: What each colour was normalised with where ``module`` was trained.
        name: What results call it.
        dtype: The type ``module`` computes in, float32 by default.
        spec: How to open it again; None for a module of your own, which then cannot be saved
            along with a model.
        settings: What the features depend on and the weights do not show.
        weights_id: What the weights are told by, where ``module`` has them in another form than
            they were published in.

    Shape:
        (b, 3, h, w), either uint8 or floating point in [0, 1] -> (b, channels, h / stride,
        w / stride) float32. Sides have to be multiples of ``stride``: padding would put
        features into the map that belong to no picture.

    Example:
        >>> backbone = Backbone(nn.Conv2d(3, 8, 16, stride=16), channels=8, stride=16)
        >>> backbone(torch.rand(2, 3, 64, 96)).shape
        torch.Size([2, 8, 4, 6])
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        module: nn.Module,
        *,
        channels: int,
        stride: int,
        mean: Sequence[float] = IMAGENET_MEAN,
        std: Sequence[float] = IMAGENET_STD,
        name: str = "own module",
        dtype: torch.dtype | None = None,
        spec: Spec | None = None,
        settings: Mapping[str, Any] | None = None,
        weights_id: str | None = None,
    ) -> None:
        super().__init__()
        _check_settings(channels, stride, mean, std, dtype)
        self.dtype = dtype or torch.float32
        self.module = module.to(self.dtype).requires_grad_(False)
        self.channels = channels
        self.stride = stride
        self.name = name
        self.spec = spec
        self.register_buffer("mean", torch.tensor(mean).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(3, 1, 1), persistent=False)
        self._settings = dict(settings or {})
        self._fingerprint: str | None = None
        self._weights_id = weights_id
        self._checked = False
        self.eval()

    def train(self, mode: bool = True) -> "Backbone":  # noqa: ARG002 (a frozen network has one mode)
        return super().train(False)

    def grid(self, size: int | Sequence[int]) -> tuple[int, int]:
        """Rows and columns of the features for images of a size: (height, width), or one side."""
        height, width = (size, size) if isinstance(size, int) else (int(side) for side in size)
        if min(height, width) < self.stride or height % self.stride or width % self.stride:
            fit = [max(1, round(side / self.stride)) * self.stride for side in (height, width)]
            raise InputError(
                f"{self.name} takes images with sides that are multiples of {self.stride}, "
                f"got {height} x {width}.\n  Resize or crop them, say to {fit[0]} x {fit[1]}."
            )
        return height // self.stride, width // self.stride

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        check_shape("images", x, "b c h w", c=3)
        grid = self.grid(x.shape[2:])
        self._check_input(x)
        x = x.float() / 255 if x.dtype == torch.uint8 else x.float()
        features = self.module(((x - self.mean.float()) / self.std.float()).to(self.dtype))
        wanted = (len(x), self.channels, *grid)
        if not isinstance(features, Tensor) or features.shape != wanted:
            came = (
                tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
            )
            raise InputError(
                f"{self.name} should give features of shape {wanted} for images of shape "
                f"{tuple(x.shape)}, got {came}.\n"
                f"  Its module should return one tensor (b, c, h, w) with channels="
                f"{self.channels} and stride={self.stride}."
            )
        return features.float()

    def fingerprint(self) -> str:
        """16 digits that change when the weights do, or anything else the features depend on.

        The device is nothing they depend on. Computed when first asked for.
        """
        if self._fingerprint is None:
            own = {"channels": self.channels, "stride": self.stride, "dtype": str(self.dtype)}
            own |= {"mean": self.mean.tolist(), "std": self.std.tolist()}
            self._fingerprint = fingerprint(self.module, {**self._settings, **own})
        return self._fingerprint

    def weights_id(self) -> str | None:
        """16 digits that stand for the weights, the same in float32 and bfloat16; else None."""
        if self.dtype not in (torch.float32, torch.bfloat16):
            return None  # rounded otherwise, and once more they would be others
        self._weights_id = self._weights_id or weights_id(self.module)
        return self._weights_id

    def spec_to_save(self) -> Spec:
        """``spec``, or an ``InputError`` that says why there is none."""
        if self.spec is None:
            raise InputError(
                f"The backbone {self.name!r} was made from a module of your own, which cannot be "
                "saved by name.\n  Save the model that takes its features alone; or use a backbone "
                "from open_backbone."
            )
        return self.spec

    def extra_repr(self) -> str:
        return f"{self.name!r}, channels={self.channels}, stride={self.stride}, dtype={self.dtype}"

    def _check_input(self, x: Tensor) -> None:
        if x.dtype != torch.uint8 and not x.is_floating_point():
            raise InputError(
                f"images should be uint8 or floating point in [0, 1], got {x.dtype}.\n"
                "  Convert them with images.to(torch.uint8)."
            )
        if x.device != self.mean.device:
            raise InputError(
                f"images are on {x.device} and {self.name} is on {self.mean.device}.\n"
                f"  Move one of them: images.to({str(self.mean.device)!r})."
            )
        if self._checked or (x.is_cuda and torch.cuda.is_current_stream_capturing()):
            return
        if x.is_floating_point():
            low, high = (float(value) for value in x.aminmax())
            if not (low >= -0.5 and high <= 1.5):  # resizing may overshoot; also true of nan
                raise InputError(
                    f"images should lie in [0, 1], got values from {low:.4g} to {high:.4g}.\n"
                    "  Do not normalise them; pass numbers from 0 to 255 as uint8."
                )
        self._checked = True


def _check_settings(
    channels: int,
    stride: int,
    mean: Sequence[float],
    std: Sequence[float],
    dtype: torch.dtype | None,
) -> None:
    if channels < 1 or stride < 1:
        raise InputError(f"channels and stride should be at least 1, got {channels} and {stride}.")
    if len(mean) != 3 or len(std) != 3 or not min(std) > 0:
        raise InputError(
            f"mean and std should be three numbers each, std above 0, got {mean} and {std}."
        )
    if dtype is not None and not dtype.is_floating_point:
        raise InputError(
            f"dtype should be a floating-point type, for example torch.bfloat16, got {dtype}."
        )
