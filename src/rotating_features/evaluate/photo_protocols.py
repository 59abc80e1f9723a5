"""How photographs are scored, by name: what a model is shown and what its labels are held against.

Sizes, kinds of resizing and what becomes of unlabelled pixels differ from project to project, and
so do the scores of one and the same model. A protocol says them all.
"""

from dataclasses import asdict, dataclass, replace
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from rotating_features._check import InputError, check_shape
from rotating_features.data.resize import (
    Nearest,
    center_crop,
    resize_nearest,
    resize_short,
    short_size,
)
from rotating_features.data.sample import BACKGROUND, IGNORE
from rotating_features.evaluate.protocols import object_scores
from rotating_features.evaluate.resize import resize_labels
from rotating_features.evaluate.smooth import mode_filter
from rotating_features.metrics import mean_best_overlap


@dataclass(frozen=True, kw_only=True)
class PhotoProtocol:
    """Settings that decide a photograph's score.

    Images and masks are resized to a short side and cropped to the centre square. Scores are of
    single images; one without objects or classes has none, and is left out of the mean and counted.
    """

    name: str
    description: str
    image_side: int = 224
    """Of the square that the model gets, in pixels."""
    image_resize: Literal["nearest", "bicubic", "pillow-bilinear"]
    """PyTorch's nearest, PyTorch's bicubic (which takes no mean over the pixels it skips) clamped
    to [0, 1], or Pillow's bilinear (which does) on 8 bits."""
    mask_side: int = 320
    """Of the square of the mask that scores are taken on, in pixels."""
    mask_resize: Nearest
    """Whose nearest pixel."""
    unlabelled: Literal["ignored", "background"]
    """Pixels without a label (255 in VOC's files) do not count at all, or count in the unions of
    MBO as background does. ARI-BG leaves out both."""
    label_resize: Literal["nearest", "bilinear"]
    """From the model's grid to the mask: see :func:`resize_labels`."""
    smooth: bool
    """Whether a mode filter of radius ``mask_side // height of the grid`` follows."""

    def settings(self) -> dict[str, str | int | bool]:
        """All that can change a score, for files of scores."""
        return asdict(self)

    def at(self, image_side: int) -> "PhotoProtocol":
        """The same with images of another size, which is another protocol and so has a new name."""
        if image_side == self.image_side:
            return self
        name = f"{self.name.partition('@')[0]}@{image_side}"
        return replace(self, name=name, image_side=image_side)

    def fit_labels(self, labels: Tensor) -> Tensor:
        """Labels of a grid at the masks' size, (b, h, w) -> (b, side, side)."""
        height, side = labels.shape[-2], self.mask_side
        if labels.shape[-2:] == (side, side):
            return labels
        labels = resize_labels(labels.int(), (side, side), self.label_resize)  # short is quick
        return mode_filter(labels, side // height) if self.smooth else labels

    def score(self, labels: Tensor, instances: Tensor, classes: Tensor) -> dict[str, Tensor]:
        """Scores of each image from labels and masks of one size, (b,) float64 each."""
        return {
            **object_scores(labels, instances),
            "mbo_c": mean_best_overlap(labels, classes),
        }


PHOTO_PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        PhotoProtocol(
            name="rf2023",
            description="As in the paper and its released code: images are resized without any "
            "smoothing, the labels are smoothed with a mode filter, and unlabelled pixels are "
            "ignored. Unlike there, an image without objects is left out of ARI-BG, where it "
            "counted as 1, and no partial batch is dropped.",
            image_resize="nearest",
            mask_resize="nearest",
            unlabelled="ignored",
            label_resize="nearest",
            smooth=True,
        ),
        PhotoProtocol(
            name="dinosaur",
            description="As DINOSAUR's authors score centre crops of VOC. Unlabelled pixels are "
            "background, so they count in the unions of MBO: the configuration they released "
            "ignores them, but the scores they published for block masks (MBO_i .247, MBO_c .259) "
            "come out with 6 blocks this way alone; ignored, it would be .261 and .273. Soft masks "
            "are resized bilinearly there; for labels that means planes of zeros and ones. That "
            "bicubic resizing takes no mean over skipped pixels follows from the version of "
            "torchvision they name. Unlike there, an image without objects is left out of ARI-BG, "
            "where it counted as 1.",
            image_resize="bicubic",
            mask_resize="nearest-exact",
            unlabelled="background",
            label_resize="bilinear",
            smooth=False,
        ),
        PhotoProtocol(
            name="spot",
            description="As in SPOT's released evaluation on VOC. Unlabelled pixels are "
            "background, so they count in the unions of MBO. Soft masks are resized bilinearly "
            "there; for labels that means planes of zeros and ones. Unlike there, an image without "
            "objects is left out of ARI-BG, where it counted as 1.",
            image_resize="pillow-bilinear",
            mask_resize="pillow",
            unlabelled="background",
            label_resize="bilinear",
            smooth=False,
        ),
    )
}


def find_protocol(protocol: str | PhotoProtocol) -> PhotoProtocol:
    """The protocol of that name."""
    if isinstance(protocol, PhotoProtocol):
        return protocol
    if protocol not in PHOTO_PROTOCOLS:
        names = list(PHOTO_PROTOCOLS)
        raise InputError(f"A protocol for photographs should be one of {names}, got {protocol!r}.")
    return PHOTO_PROTOCOLS[protocol]


def prepare_image(image: Tensor, protocol: PhotoProtocol) -> Tensor:
    """What the model is shown, (3, h, w) uint8 -> (3, side, side), uint8 or float32 in [0, 1]."""
    check_shape("image", image, "c h w", c=3)
    side = protocol.image_side
    if protocol.image_resize == "bicubic":
        size = short_size((image.shape[1], image.shape[2]), side)
        x = F.interpolate(image[None].float() / 255, size, mode="bicubic")[0]
        return center_crop(x, side).clamp(0, 1)
    how = "nearest" if protocol.image_resize == "nearest" else "bilinear"
    return center_crop(resize_short(image, side, how), side).contiguous()


def prepare_mask(mask: Tensor, protocol: PhotoProtocol) -> Tensor:
    """What labels are held against, (h, w) -> (side, side), int64."""
    check_shape("mask", mask, "h w")
    side = protocol.mask_side
    size = short_size((mask.shape[0], mask.shape[1]), side)
    mask = center_crop(resize_nearest(mask, size, protocol.mask_resize), side)
    if protocol.unlabelled == "background":
        mask = torch.where(mask == IGNORE, BACKGROUND, mask)
    return mask.long().contiguous()
