"""Named ways to score photographs: what the model is shown, and what counts."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from skimage.filters.rank import modal
from skimage.morphology import disk
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.evaluate import PHOTO_PROTOCOLS, mode_filter
from rotating_features.evaluate.photo_protocols import find_protocol, prepare_image, prepare_mask
from rotating_features.metrics import adjusted_rand_index, mean_best_overlap

SIZES = [(281, 500), (500, 333), (320, 320), (151, 200)]
RF, DINOSAUR, SPOT = (PHOTO_PROTOCOLS[name] for name in ("rf2023", "dinosaur", "spot"))


def draw_image(h: int, w: int) -> torch.Tensor:
    return torch.randint(0, 256, (3, h, w), dtype=torch.uint8)


def draw_mask(h: int, w: int) -> torch.Tensor:
    return torch.randint(-1, 5, (h, w))


def crop(x: torch.Tensor, side: int) -> torch.Tensor:
    top, left = (round((n - side) / 2) for n in x.shape[-2:])
    return x[..., top : top + side, left : left + side]


def to_short_side(h: int, w: int, side: int) -> tuple[int, int]:
    return (side, int(side * w / h)) if h < w else (int(side * h / w), side)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PHOTO_PROTOCOLS)
def test_images_and_masks_are_squares_of_the_protocols_size(name: str, size) -> None:
    protocol = PHOTO_PROTOCOLS[name]
    assert prepare_image(draw_image(*size), protocol).shape == (3, 224, 224)
    mask = prepare_mask(draw_mask(*size), protocol)
    assert mask.shape == (320, 320)
    assert mask.dtype == torch.int64


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("protocol", "mode"), [(RF, "nearest"), (DINOSAUR, "nearest-exact")])
def test_masks_are_those_of_pytorch(protocol, mode: str, size: tuple[int, int]) -> None:
    mask = draw_mask(*size).clamp(min=0)
    resized = F.interpolate(mask[None, None].float(), to_short_side(*size, 320), mode=mode)[0, 0]
    assert torch.equal(prepare_mask(mask, protocol), crop(resized, 320).long())


@pytest.mark.parametrize("size", SIZES)
def test_spots_masks_and_images_are_those_of_pillow(size: tuple[int, int]) -> None:
    mask, image = draw_mask(*size).clamp(min=0), draw_image(*size)
    h, w = to_short_side(*size, 320)
    resized = Image.fromarray(mask.numpy().astype(np.uint8)).resize(
        (w, h), Image.Resampling.NEAREST
    )
    assert torch.equal(prepare_mask(mask, SPOT), crop(torch.tensor(np.array(resized)), 320).long())
    h, w = to_short_side(*size, 224)
    picture = Image.fromarray(image.movedim(0, -1).numpy())
    shown = np.array(picture.resize((w, h), Image.Resampling.BILINEAR))
    assert torch.equal(prepare_image(image, SPOT), crop(torch.tensor(shown).movedim(-1, 0), 224))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("protocol", "mode"), [(RF, "nearest"), (DINOSAUR, "bicubic")])
def test_images_are_those_of_pytorch(protocol, mode: str, size: tuple[int, int]) -> None:
    image = draw_image(*size)
    x = F.interpolate(image[None] / 255, to_short_side(*size, 224), mode=mode)[0].clamp(0, 1)
    found = prepare_image(image, protocol)
    found = found / 255 if found.dtype == torch.uint8 else found
    torch.testing.assert_close(found, crop(x, 224))


@pytest.mark.parametrize("name", PHOTO_PROTOCOLS)
def test_image_and_mask_show_the_same_place(name: str) -> None:
    """A bright square left of the centre of a wide photograph, as an image and as its own mask."""
    mask = torch.zeros(240, 400, dtype=torch.int64)
    mask[60:120, 100:180] = 1
    protocol = PHOTO_PROTOCOLS[name].at(320)
    image = prepare_image((255 * mask).to(torch.uint8).expand(3, -1, -1), protocol)
    bright = image[0] > (0.5 if image.is_floating_point() else 127)
    assert (bright != prepare_mask(mask, protocol).bool()).sum() < 4 * 320


def test_unlabelled_pixels_are_ignored_or_background() -> None:
    mask = draw_mask(320, 320)
    assert torch.equal(prepare_mask(mask, RF), mask)
    assert torch.equal(prepare_mask(mask, SPOT), mask.clamp(min=0))


def test_unlabelled_pixels_count_in_unions_only_as_background() -> None:
    mask = torch.zeros(320, 320, dtype=torch.int64)
    mask[:80], mask[80:160] = 1, -1
    everywhere = torch.zeros(1, 320, 320, dtype=torch.int64)
    for protocol, wanted in ((RF, 80 / 240), (SPOT, 80 / 320)):
        masks = prepare_mask(mask, protocol)[None]
        scores = protocol.score(everywhere, masks, masks)
        assert scores["mbo_i"].item() == scores["mbo_c"].item() == pytest.approx(wanted)
        assert scores["ari_bg"].item() == 1


def test_labels_of_a_14_x_14_grid_are_smoothed_with_the_papers_disk() -> None:
    grid = torch.randint(4, (2, 14, 14))
    resized = F.interpolate(grid[:, None].float(), (320, 320)).numpy().astype(np.uint8)[:, 0]
    wanted = np.stack([modal(image, disk(22)) for image in resized])
    assert np.array_equal(RF.fit_labels(grid).numpy(), wanted)


def test_labels_of_the_masks_size_are_left_alone() -> None:
    labels = torch.randint(4, (1, 320, 320))
    assert all(torch.equal(p.fit_labels(labels), labels) for p in PHOTO_PROTOCOLS.values())


def test_only_rf2023_smooths() -> None:
    grid = torch.randint(4, (1, 14, 14))
    for protocol in (DINOSAUR, SPOT):
        found = protocol.fit_labels(grid)
        assert not torch.equal(found, mode_filter(found, 22))


@pytest.mark.parametrize("name", PHOTO_PROTOCOLS)
def test_scores_are_those_of_the_metrics(name: str) -> None:
    labels, instances, classes = torch.randint(0, 4, (3, 5, 320, 320)).unbind()
    scores = PHOTO_PROTOCOLS[name].score(labels, instances, classes)
    assert torch.equal(scores["ari_bg"], adjusted_rand_index(labels, instances, skip=(0, -1)))
    assert torch.equal(scores["mbo_i"], mean_best_overlap(labels, instances))
    assert torch.equal(scores["mbo_c"], mean_best_overlap(labels, classes))


@pytest.mark.parametrize("name", PHOTO_PROTOCOLS)
def test_settings_can_be_written_and_say_what_becomes_of_unlabelled_pixels(name: str) -> None:
    settings = json.loads(json.dumps(PHOTO_PROTOCOLS[name].settings()))
    assert settings["name"] == name
    assert settings["unlabelled"] in settings["description"]


def test_another_image_size_is_another_protocol() -> None:
    other = RF.at(448)
    assert (other.name, other.image_side, other.mask_side) == ("rf2023@448", 448, 320)
    assert other.at(224) == RF.at(224).at(448).at(224)
    assert RF.at(224) is RF


def test_an_unknown_protocol_is_explained() -> None:
    with pytest.raises(InputError, match=r"rf2023.*dinosaur.*spot.*'fair'"):
        find_protocol("fair")
