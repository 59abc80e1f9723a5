"""Scores of photographs: every one, in order, however they are read and batched."""

import threading
import time
from typing import NamedTuple

import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from rotating_features._check import InputError
from rotating_features.evaluate import PHOTO_PROTOCOLS, prepare_masks, score_photographs
from rotating_features.experiments.scores import summarise, to_rows

NAMES = {"image", "ari_bg", "mbo_i", "mbo_c", "clusters"}


class Photograph(NamedTuple):
    image: torch.Tensor
    instances: torch.Tensor | None
    classes: torch.Tensor | None


class Made:
    """Photographs of different sizes whose brightness is their index."""

    def __init__(self, count: int = 5, *, slow: bool = False) -> None:
        self.count, self.slow, self.read, self.lock = count, slow, [], threading.Lock()

    def __len__(self) -> int:
        return self.count

    def name(self, index: int) -> str:
        return f"photo {index}"

    def pixels(self, index: int) -> int:
        return (20 + index) * (30 - index)

    def __getitem__(self, index: int) -> Photograph:
        if self.slow:
            time.sleep(0.002 * (index * 7 % 5))  # so that threads overtake each other
        with self.lock:
            self.read.append(index)
        h, w = 20 + index, 30 - index
        rng = torch.Generator().manual_seed(index)
        instances = torch.randint(-1, 4, (4, 5), generator=rng).repeat_interleave(9, 0)[:h]
        instances = instances.repeat_interleave(7, 1)[:, :w]
        classes = torch.where(instances > 0, 1 + instances % 2, instances)
        return Photograph(torch.full((3, h, w), index, dtype=torch.uint8), instances, classes)


def quarters(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([[0, 1], [2, 3]]).expand(len(x), -1, -1)


def collect(photographs, predict=quarters, protocol="spot", **options):
    batches = list(score_photographs(predict, photographs, protocol, **options))
    (name,) = {key for batch in batches for key in batch}
    return {key: torch.cat([batch[name][key] for batch in batches]) for key in batches[0][name]}


@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_every_photograph_is_scored_even_in_a_partial_batch(batch_size: int) -> None:
    scores = collect(Made(), batch_size=batch_size)
    assert {name: len(values) for name, values in scores.items()} == dict.fromkeys(NAMES, 5)
    torch.testing.assert_close(scores, collect(Made()), rtol=0, atol=0, equal_nan=True)


def test_photographs_stay_in_order_whoever_reads_them_first() -> None:
    seen = []

    def watch(x: torch.Tensor) -> torch.Tensor:
        seen.extend((255 * x[:, 0, 0, 0]).round().int().tolist())
        return quarters(x)

    collect(Made(20, slow=True), watch, batch_size=3, workers=4)
    assert seen == list(range(20))


def test_no_more_is_read_ahead_than_two_batches_need() -> None:
    album = Made(50)
    scores = score_photographs(quarters, album, "spot", batch_size=2, workers=2)
    next(scores)
    time.sleep(0.05)
    assert len(album.read) <= 2 + 4 + 1
    scores.close()


def test_images_come_as_floats_of_the_protocols_size() -> None:
    for protocol in PHOTO_PROTOCOLS:

        def look(x: torch.Tensor) -> torch.Tensor:
            assert x.dtype == torch.float32
            assert x.shape[1:] == (3, 224, 224)
            assert 0 <= x.min() <= x.max() <= 1
            return quarters(x)

        collect(Made(3), look, protocol)


def test_scores_are_those_of_each_photograph_alone() -> None:
    protocol, album = PHOTO_PROTOCOLS["dinosaur"], Made()
    found = collect(album, protocol=protocol)
    labels = protocol.fit_labels(quarters(torch.empty(1, 1)))[0]
    for index, ari in enumerate(found["ari_bg"]):
        instances, _ = prepare_masks(album[index], protocol)
        theirs = adjusted_rand_score(instances[instances > 0], labels[instances > 0])
        assert ari.item() == pytest.approx(theirs)


def test_what_is_kept_is_not_read_again_and_scores_the_same() -> None:
    album, kept = Made(), {}
    once = collect(album, kept=kept)
    again = collect(album, kept=kept)
    assert sorted(album.read) == list(range(5))
    torch.testing.assert_close(once, again, rtol=0, atol=0)


def test_without_keeping_files_are_read_each_time() -> None:
    album = Made(2)
    collect(album)
    collect(album)
    assert sorted(album.read) == [0, 0, 1, 1]


def test_photographs_without_masks_score_nan_and_are_counted() -> None:
    class Bare(Made):
        def __getitem__(self, index: int) -> Photograph:
            photograph = super().__getitem__(index)
            return photograph._replace(instances=None) if index == 1 else photograph

    batches = score_photographs(quarters, Bare(), "spot", batch_size=2)
    (summary,) = summarise(to_rows(batches, clustering="k=4")).values()
    scores = collect(Bare())
    assert scores["mbo_i"].isnan().tolist() == [False, True, False, False, False]
    assert not scores["mbo_c"].isnan().any()
    assert (summary["images"], summary["dropped"]) == (5, 1)
    assert summary["mbo_i"] == pytest.approx(scores["mbo_i"].nanmean().item())
    assert summary["mbo_c"] == pytest.approx(scores["mbo_c"].mean().item())


def test_only_the_scores_asked_for_are_given() -> None:
    assert set(collect(Made(2), scores=("mbo_c",))) == {"image", "mbo_c", "clusters"}


def test_uncertainty_is_told_if_it_is_known() -> None:
    def unsure(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return quarters(x), torch.tensor([[0.0, 1.0], [2.0, 3.0]]).expand(len(x), -1, -1)

    scores = collect(Made(3), unsure)
    assert scores["uncertainty"].tolist() == [1.5] * 3
    assert scores["clusters"].tolist() == [4] * 3


def test_only_as_many_as_asked_are_scored() -> None:
    album = Made()
    assert len(collect(album, images=2)["mbo_i"]) == 2
    assert sorted(album.read) == [0, 1]
    assert len(collect(Made(), images=99)["mbo_i"]) == 5


def test_a_photograph_that_cannot_be_read_says_so() -> None:
    class Broken(Made):
        def __getitem__(self, index: int) -> Photograph:
            if index == 3:
                raise InputError("photo.jpg cannot be read")
            return super().__getitem__(index)

    with pytest.raises(InputError, match=r"photo\.jpg"):
        collect(Broken(), batch_size=1)


def test_labels_for_another_number_of_images_are_explained() -> None:
    with pytest.raises(InputError, match=r"labels should have shape \(b=5, h, w\).*\n.*each image"):
        collect(Made(), lambda x: quarters(x)[:2])


@pytest.mark.parametrize("options", [{"scores": ("iou",)}, {"batch_size": 0}, {"workers": 0}])
def test_wrong_options_are_explained(options) -> None:
    with pytest.raises(InputError, match="should be"):
        collect(Made(), **options)


class Damaged(Made):
    """With files that cannot be read."""

    def __getitem__(self, index: int) -> Photograph:
        if index in (0, 3):
            raise InputError(f"{index} cannot be read.")
        return super().__getitem__(index)


def test_broken_photographs_stop_all_unless_told_otherwise() -> None:
    with pytest.raises(InputError, match="0 cannot be read"):
        collect(Damaged())
    whole, kept = collect(Made()), {}
    for _ in range(2):
        problems = []
        left = collect(Damaged(), left_out=problems, kept=kept, batch_size=2)
        assert sorted(kept) == [1, 2, 4]
        said = {each.problem for each in problems}
        assert said == {"0 cannot be read.", "3 cannot be read."}
        for name, values in left.items():
            torch.testing.assert_close(values, whole[name][[1, 2, 4]], equal_nan=True)
