"""Multi-dSprites: drawn here, every sample is what SPEC 2 says; published, it is read as stored."""

import hashlib
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import label as components

from rotating_features._check import InputError
from rotating_features.data.multi_dsprites import MultiDSprites, PublishedMultiDSprites
from rotating_features.data.published import Parts
from rotating_features.data.sample import SPLITS
from rotating_features.data.sprites import RADII, REACH, SHAPES, TURNS, sprites

CHECKSUM = {
    ("train", 0): "6c400d7b48cfc3a084bce37f5cafd3f2",
    ("test", 1): "c6bcd236573f86d38e901d665ba96628",
}
FILE = "multi_dsprites_colored_on_grayscale.tfrecords"
MASKS = sprites().reshape(len(SHAPES), len(RADII), TURNS, 2 * REACH + 1, 2 * REACH + 1)


@given(
    st.lists(st.integers(0, 319), min_size=1, max_size=6),
    st.sampled_from(SPLITS),
    st.integers(0, 10**9),
)
def test_a_sample_depends_on_seed_split_and_index_alone(indices, split, seed) -> None:
    batch = MultiDSprites(split, seed=seed).draw(indices)
    for place, index in sorted(enumerate(indices), key=lambda pair: pair[1]):  # another order
        image, instances, _ = MultiDSprites(split, seed=seed)[index]
        assert torch.equal(image, batch.image[place])
        assert torch.equal(instances, batch.instances[place])


@pytest.mark.parametrize(("split", "seed"), CHECKSUM)
def test_the_dataset_never_changes(split, seed: int) -> None:
    image, instances, _ = MultiDSprites(split, seed=seed).draw([0, 1, 2, 319])
    content = (image * 255).round().byte().numpy().tobytes() + instances.byte().numpy().tobytes()
    assert hashlib.sha256(content).hexdigest()[:32] == CHECKSUM[split, seed]


def test_splits_and_seeds_share_no_images() -> None:
    datasets = [MultiDSprites(split, seed=seed) for split in SPLITS for seed in range(3)]
    drawn = torch.cat([dataset.draw(range(20)).instances for dataset in datasets])
    assert len(drawn.unique(dim=0)) == len(drawn)


def test_sizes_are_those_of_the_paper() -> None:
    assert [len(MultiDSprites(split)) for split in SPLITS] == [60_000, 10_000, 320]


def test_a_sample_has_the_promised_types() -> None:
    dataset = MultiDSprites("train")
    image, instances, classes = dataset[3]
    assert image.shape == (dataset.channels, *dataset.size) == (3, 64, 64)
    assert instances.shape == dataset.size
    assert (image.dtype, instances.dtype, classes) == (torch.float32, torch.int64, None)


def test_there_are_two_to_five_sprites_and_no_overlap_label() -> None:
    instances = MultiDSprites("train").draw(range(1_000)).instances
    assert instances.unique().tolist() == [0, 1, 2, 3, 4, 5]
    highest = instances.flatten(1).amax(1)  # the last is covered by nothing
    share = torch.bincount(highest, minlength=6) / 1_000
    assert share[:2].sum() == 0
    torch.testing.assert_close(share[2:], torch.full((4,), 0.25), atol=0.06, rtol=0)


def test_every_object_has_one_colour_and_the_background_is_grey() -> None:
    image, instances, _ = MultiDSprites("train").draw(range(100))
    for picture, labels in zip(image, instances, strict=True):
        for label in labels.unique():
            colors = picture[:, labels == label].unique(dim=1)
            assert colors.shape[1] == 1
            if label == 0:
                assert len(colors.unique()) == 1
            else:
                assert colors.max() >= 0.495
                assert colors.min() <= colors.max() / 2 + 0.01


def test_backgrounds_have_every_brightness_and_sprites_every_hue() -> None:
    image, instances, _ = MultiDSprites("train").draw(range(1_000))
    grey = torch.stack(
        [picture[0][labels == 0][0] for picture, labels in zip(image, instances, strict=True)]
    )
    assert torch.histc(grey, 10, 0, 1).min() > 60
    last = torch.stack(
        [
            picture[:, labels == labels.max()][:, 0]
            for picture, labels in zip(image, instances, strict=True)
        ]
    )
    for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]):
        first, second, third = last[:, order].unbind(1)
        assert ((first > second) & (second > third)).float().mean() > 0.1  # a sixth each


def test_the_sprite_on_top_is_whole_and_one_of_the_shapes() -> None:
    known = {np.ascontiguousarray(cut(mask)).tobytes() for mask in MASKS.reshape(-1, 29, 29)}
    instances = MultiDSprites("train").draw(range(300)).instances.numpy()
    for labels in instances:
        assert np.ascontiguousarray(cut(labels == labels.max())).tobytes() in known


def test_a_covered_sprite_is_part_of_a_shape() -> None:
    """Its visible pixels never span more than the largest sprite."""
    instances = MultiDSprites("train").draw(range(300)).instances.numpy()
    for labels in instances:
        for label in range(1, labels.max() + 1):
            if (labels == label).any():
                assert max(cut(labels == label).shape) <= 2 * REACH + 1


def test_shapes_are_what_they_are_called() -> None:
    """Upright: how wide each is in its rows, from top to bottom."""
    ellipse, heart, square = MASKS[:, -1, 0]
    assert cut(square).all()
    assert cut(square).shape == (21, 21)
    wide = cut(ellipse).sum(1)
    assert (wide == wide[::-1]).all()
    assert cut(ellipse).shape == (17, 29)
    assert (heart == heart[:, ::-1]).all()
    top, bottom = cut(heart)[0], cut(heart)[-1]
    assert components(top)[1] == 2  # two bows
    assert bottom.sum() == 1  # one tip


@pytest.mark.parametrize("shape", range(3), ids=SHAPES)
def test_half_a_turn_turns_the_mask_around(shape: int) -> None:
    np.testing.assert_array_equal(MASKS[shape, :, 20:], MASKS[shape, :, :20, ::-1, ::-1])


def test_masks_are_in_one_piece_and_within_their_circle() -> None:
    offset = np.arange(-REACH, REACH + 1)
    distance = np.hypot(offset, offset[:, None])
    for size, radius in enumerate(RADII):
        assert distance[MASKS[:, size].any((0, 1))].max() <= radius
        for mask in MASKS[:, size].reshape(-1, 29, 29):
            assert components(mask, np.ones((3, 3)))[1] == 1  # corners touch, too


def test_five_thousand_images_take_a_few_seconds() -> None:
    dataset = MultiDSprites("train")
    start = time.process_time()
    for first in range(0, 5_000, 500):
        dataset.draw(np.arange(first, first + 500))
    assert time.process_time() - start < 4


def test_an_unknown_split_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\['train', 'val', 'test'\], got 'dev'"):
        MultiDSprites("dev")
    with pytest.raises(InputError, match=r"\['train', 'val', 'test'\], got 'dev'"):
        PublishedMultiDSprites("dev", folder=tmp_path)


@pytest.mark.parametrize("index", [-1, 320])
def test_an_index_outside_is_explained(index: int) -> None:
    with pytest.raises(IndexError, match=rf"index {index} is outside 'test' \(0..319\)"):
        MultiDSprites("test")[index]


def cut(mask: np.ndarray) -> np.ndarray:
    rows, columns = mask.any(1).nonzero()[0], mask.any(0).nonzero()[0]
    return mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


@pytest.fixture
def folder(records, tmp_path: Path, monkeypatch) -> Path:
    """Nine of our images in the published format: one byte a value, masks last, 255 for inside."""
    monkeypatch.setattr(PublishedMultiDSprites, "parts", Parts(set_aside=1, test=2, val=2, train=3))
    image, instances, _ = MultiDSprites("train").draw(range(9))
    bytes_ = (image * 255).round().byte().permute(0, 2, 3, 1).numpy()
    masks = (instances[..., None] == torch.arange(6)).byte().mul(255).numpy()
    nothing = np.zeros(6, dtype=np.float32)
    records.write(
        tmp_path / FILE,
        (
            records.example({"x": nothing, "image": one, "mask": mask, "visibility": nothing})
            for one, mask in zip(bytes_, masks, strict=True)
        ),
    )
    return tmp_path


@pytest.mark.parametrize(
    ("split", "first", "length"), [("test", 1, 2), ("val", 3, 2), ("train", 5, 3)]
)
def test_the_published_file_is_read_as_it_was_stored(folder: Path, split, first, length) -> None:
    read = PublishedMultiDSprites(split, folder=folder)
    assert (len(read), read.channels, read.size) == (length, 3, (64, 64))
    wanted = MultiDSprites("train").draw(range(first, first + length))
    got = read.draw(range(length))
    assert torch.equal(got.image, wanted.image)
    assert torch.equal(got.instances, wanted.instances)
    assert torch.equal(read[length - 1].image, wanted.image[-1])


def test_images_may_also_be_one_string_of_bytes(records, folder: Path) -> None:
    image, instances, _ = MultiDSprites("val").draw(range(8))
    bytes_ = (image * 255).round().byte().permute(0, 2, 3, 1).numpy()
    masks = (instances[..., None] == torch.arange(6)).byte().mul(255).numpy()
    records.write(
        folder / FILE,
        (
            records.example({"image": [one.tobytes()], "mask": [mask.tobytes()]})
            for one, mask in zip(bytes_, masks, strict=True)
        ),
        zipped=False,
    )
    read = PublishedMultiDSprites("test", folder=folder).draw(range(2))
    assert torch.equal(read.image, image[1:3])
    assert torch.equal(read.instances, instances[1:3])


def test_the_parts_are_those_of_the_paper() -> None:
    parts = PublishedMultiDSprites.parts
    assert [parts.span(split) for split in ("test", "val", "train")] == [
        (64, 384),
        (384, 10_384),
        (10_384, 70_384),
    ]
