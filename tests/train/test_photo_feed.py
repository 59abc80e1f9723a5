"""Crops and features for training: what a ticket gives, and that nothing else decides it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from rotating_features._check import InputError
from rotating_features.data.packed import Packed
from rotating_features.experiments.report import training_seconds
from rotating_features.features import Backbone
from rotating_features.models import OnFeatures, RotatingAutoEncoder
from rotating_features.train import Step, Trainee, photo_feed, train
from rotating_features.train.batches import INDEX_BITS
from rotating_features.train.photo_feed import PhotoFeed
from rotating_features.train.together import Together

CPU = torch.device("cpu")
SIDE = 16


def make_packed() -> Packed:
    """Photographs whose pixels all differ: red and green are row and column, blue the index."""
    sizes = [(SIDE, 40), (30, SIDE), (SIDE, SIDE), (SIDE, 17), (18, SIDE)]
    pictures = []
    for index, (h, w) in enumerate(sizes):
        row, column = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        blue = torch.full((h, w), index)
        pictures.append(torch.stack([row, column, blue], -1).view(-1, 3))
    heights, widths = torch.tensor(sizes).unbind(1)
    pixels, names = torch.cat(pictures).byte(), [str(index) for index in range(5)]
    return Packed(pixels, heights.clone(), widths.clone(), names, side=SIDE)


def make_feed(size: int = 8, **options) -> PhotoFeed:
    return PhotoFeed(make_packed(), CPU, size=size, **options)


def own_backbone() -> Backbone:
    torch.manual_seed(3)
    return Backbone(nn.Conv2d(3, 6, 4, stride=4), channels=6, stride=4)


def tickets(count: int, index: int) -> torch.Tensor:
    draws = np.random.default_rng(count).integers(1 << 43, size=count)
    return torch.from_numpy(draws << INDEX_BITS | index)


def cut(ticket: int, size: int, *, turn: bool) -> np.ndarray:
    """The crop of a ticket, as the bits are described and as NumPy cuts."""
    index, draw = ticket % 2**INDEX_BITS, ticket >> INDEX_BITS
    picture = make_packed().image(index).permute(1, 2, 0).numpy()
    rows, columns = (side - size + 1 for side in picture.shape[:2])
    top = (draw >> 3) % 2**20 * rows // 2**20
    left = (draw >> 23) % 2**20 * columns // 2**20
    crop = picture[top : top + size, left : left + size]
    crop = crop[:, ::-1] if draw & 1 else crop
    if turn and draw & 2:
        crop = np.rot90(crop, -1 if draw & 4 else 1)
    return crop.transpose(2, 0, 1)


@given(
    draw=st.integers(0, 2**43 - 1),
    index=st.integers(0, 4),
    size=st.integers(1, SIDE),
    turn=st.booleans(),
)
def test_a_crop_is_what_the_bits_of_its_ticket_say(draw, index, size, turn) -> None:
    ticket = draw << INDEX_BITS | index
    (crop,) = make_feed(size, quarter_turns=turn)(torch.tensor([ticket]))
    np.testing.assert_array_equal((255 * crop).round().byte(), cut(ticket, size, turn=turn))


def test_the_same_ticket_gives_the_same_crop_in_any_company() -> None:
    feed, many = make_feed(), tickets(20, 1)
    alone = torch.cat([feed(ticket.view(1)) for ticket in many])
    assert torch.equal(feed(many), alone)
    assert torch.equal(feed(many.flip(0)), alone.flip(0))


def test_different_tickets_cut_and_flip_otherwise() -> None:
    crops = make_feed()(tickets(200, 0)) * 255
    left, right = crops[:, 1, 0, 0], crops[:, 1, 0, -1]
    assert 60 < int((left > right).sum()) < 140
    assert len(torch.minimum(left, right).unique()) == 40 - 8 + 1  # every place there is


def test_quarter_turns_are_made_only_where_they_are_wanted() -> None:
    """A turned crop has its rows along the other axis."""
    turned = [
        int((crops[:, 0, 0, 0] != crops[:, 0, 0, -1]).sum())
        for crops in (make_feed(quarter_turns=turn)(tickets(200, 2)) for turn in (False, True))
    ]
    assert turned[0] == 0
    assert 60 < turned[1] < 140


def test_pixels_lie_between_0_and_1() -> None:
    crops = make_feed()(tickets(3, 4))
    assert crops.dtype == torch.float32
    assert 0 <= crops.min() <= crops.max() <= 1
    assert len(make_feed()) == 5


def test_with_a_backbone_its_features_of_the_crops_are_given() -> None:
    backbone, some = own_backbone(), tickets(4, 3)
    features = make_feed(backbone=backbone)(some)
    assert features.shape == (4, 6, 2, 2)
    torch.testing.assert_close(features, backbone(make_feed()(some)))
    assert not features.requires_grad


def test_fixed_crops_are_so_many_of_each_photograph_and_all_of_them_come() -> None:
    many = tickets(100, 1)
    feed = make_feed(crops=3)
    assert len(feed(many).flatten(1).unique(dim=0)) == 3
    assert torch.equal(feed(many), torch.cat([feed(ticket.view(1)) for ticket in many]))
    assert len(make_feed()(many).flatten(1).unique(dim=0)) > 30


def test_of_more_fixed_crops_the_first_are_the_same() -> None:
    few, more = (make_feed(crops=n)(tickets(60, 4)).flatten(1).unique(dim=0) for n in (2, 3))
    assert len(torch.cat([few, more]).unique(dim=0)) == len(more) == 3


@pytest.mark.parametrize("turn", [False, True])
def test_features_that_are_kept_are_those_of_the_fixed_crops(
    monkeypatch: pytest.MonkeyPatch, turn: bool
) -> None:
    monkeypatch.setattr(photo_feed, "LOOK_BATCH", 4)  # three batches, the last one smaller
    backbone, some = own_backbone(), torch.cat([tickets(4, index) for index in range(5)])
    feed = make_feed(backbone=backbone, crops=2, quarter_turns=turn)
    wanted = backbone(make_feed(crops=2, quarter_turns=turn)(some))
    kept = feed(some)
    assert kept.dtype == torch.float32
    assert kept.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(kept, wanted.bfloat16().float(), rtol=1e-2, atol=1e-6)


def test_the_backbone_looks_once_and_photographs_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feed = make_feed(backbone=own_backbone(), crops=2)
    assert feed.look(quiet=True) > 0
    monkeypatch.setattr(Backbone, "forward", lambda self, x: pytest.fail("it looked again"))
    assert feed.look() == 0
    assert feed(tickets(3, 2)).shape == (3, 6, 2, 2)
    assert feed.photographs is None


def test_no_step_on_kept_features_waits_for_a_number() -> None:
    """Tensors without values can be indexed only if nobody looks at values."""
    meta, some = torch.device("meta"), tickets(4, 0).to("meta")
    packed, backbone = make_packed(), own_backbone()
    backbone.weights_id()  # while it has weights
    feed = PhotoFeed(packed, meta, size=8, backbone=backbone.to(meta), crops=2)
    assert feed(some).shape == (4, 6, 2, 2)
    assert PhotoFeed(packed, meta, size=8, crops=2)(some).shape == (4, 3, 8, 8)


@pytest.mark.gpu
@pytest.mark.parametrize("backbone", [True, False], ids=["features", "pixels"])
def test_a_cuda_graph_gives_the_same_fixed_crops(backbone: bool) -> None:
    cuda = torch.device("cuda")
    makers = [own_backbone().to(where) if backbone else None for where in (CPU, cuda)]
    here = make_feed(backbone=makers[0], crops=3)
    there = PhotoFeed(make_packed(), cuda, size=8, backbone=makers[1], crops=3)
    some = torch.stack([tickets(16, 1), tickets(16, 4)])
    given = some[0].cuda()
    there(given)  # looks
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = there(given)
    given.copy_(some[1])
    graph.replay()
    torch.testing.assert_close(found.cpu(), here(some[1]), rtol=2e-2, atol=2e-2)


def test_features_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(photo_feed, "free_memory", lambda device: 400)
    make_feed(backbone=own_backbone(), crops=1).look()  # 5 photographs of 2 x 2 places, 6 channels
    with pytest.raises(InputError, match=r"(?s)2 crops of 5 photographs.*--data.crops"):
        make_feed(backbone=own_backbone(), crops=2).look()
    monkeypatch.setattr(photo_feed, "free_memory", lambda device: None)  # nobody knows
    make_feed(backbone=own_backbone(), crops=2).look()


def test_no_crops_at_all_are_refused() -> None:
    with pytest.raises(InputError, match=r"crops should be at least 1.*got 0"):
        make_feed(crops=0)


def test_a_run_goes_on_only_with_as_many_crops(tmp_path: Path) -> None:
    run(tmp_path, 1, crops=2)
    run(tmp_path, 2, crops=2)
    for crops in (None, 1):
        with pytest.raises(InputError, match="another number of crops"):
            run(tmp_path, 3, crops=crops)


def test_what_a_run_has_trained_for_has_the_look_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PhotoFeed, "look", lambda feed, quiet: 1000.0)
    run(tmp_path, 2)
    assert 1000 < training_seconds(tmp_path) < 1900
    run(tmp_path, 2)  # nothing is left to do, so nothing is looked at
    assert training_seconds(tmp_path) < 1900
    run(tmp_path, 4)
    assert training_seconds(tmp_path) > 2000  # another command, another look


def test_a_batch_has_no_labels() -> None:
    (x,) = make_feed().batch(tickets(2, 0), labels=False)
    assert torch.equal(x, make_feed()(tickets(2, 0)))
    with pytest.raises(InputError, match="photographs are given without"):
        make_feed().batch(tickets(2, 0), labels=True)


def test_a_crop_larger_than_the_photographs_is_explained() -> None:
    with pytest.raises(InputError, match=r"1 to 16 pixels.*got 17"):
        make_feed(17)(tickets(1, 0))


def make_model(backbone: Backbone, seed: int = 0) -> RotatingAutoEncoder:
    torch.manual_seed(seed)
    autoencoder = RotatingAutoEncoder(
        channels=6, size=(2, 2), hidden_dim=2, rotation_dim=3, features=True
    )
    return OnFeatures(backbone, autoencoder, size=(8, 8)).autoencoder


def run(
    folder: Path, steps: int, seed: int = 0, crops: int | None = None
) -> dict[str, torch.Tensor]:
    backbone = own_backbone()
    trainee = Trainee(make_model(backbone), folder, seed)
    feed = make_feed(backbone=backbone, quarter_turns=True, crops=crops)
    train([trainee], feed, steps=steps, batch_size=2, warmup_steps=1, log_every=1, quiet=True)
    return trainee.model.state_dict()


@pytest.mark.parametrize("crops", [None, 2])
def test_a_run_that_is_resumed_ends_as_one_undisturbed(tmp_path: Path, crops: int | None) -> None:
    """Over three epochs of two steps, to the bit."""
    run(tmp_path / "parts", 3, crops=crops)
    parts, whole = (run(tmp_path / name, 6, crops=crops) for name in ("parts", "whole"))
    assert all(torch.equal(parts[name], whole[name]) for name in whole)


def test_another_seed_sees_other_crops(tmp_path: Path) -> None:
    one, other = run(tmp_path / "0", 1), run(tmp_path / "1", 1, seed=1)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_side_by_side_each_gives_what_it_gives_alone() -> None:
    backbone = own_backbone()
    feed = make_feed(backbone=backbone)
    order = torch.stack([tickets(6, 0).view(3, 2), tickets(6, 1).view(3, 2)], 1)  # (k, models, b)
    rates = torch.full((3,), 1e-3)
    both = [Step(make_model(backbone, seed)) for seed in (0, 1)]
    losses = Together(both, feed).run(order, rates)
    for i, step in enumerate(both):
        alone = Step(make_model(backbone, i))
        own = Together([alone], feed).run(order[:, i : i + 1], rates)
        assert torch.equal(own[:, 0], losses[:, i])
        assert torch.equal(alone.flat, step.flat)
