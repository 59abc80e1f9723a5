"""Named ways to take a score, and what each may know."""

import importlib

import pytest
import torch

from rotating_features.data import BACKGROUND, IGNORE, FourShapes, Sample
from rotating_features.evaluate import DEFAULT_PROTOCOL, PROTOCOLS, score
from rotating_features.metrics import adjusted_rand_index, mean_best_overlap
from rotating_features.models import RotatingAutoEncoder


class Relabelled:
    """4Shapes with other ground truth: every pixel draws a label at random."""

    channels, size = 1, (32, 32)

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Sample:
        raise NotImplementedError

    def draw(self, indices) -> Sample:
        image, instances, _ = FourShapes("test").draw(indices)
        return Sample(image, torch.randint_like(instances, IGNORE, 5))


@pytest.fixture
def model() -> RotatingAutoEncoder:
    return RotatingAutoEncoder(channels=1, size=(32, 32), hidden_dim=4, rotation_dim=3).eval()


@pytest.fixture
def calls(monkeypatch) -> list[dict]:
    """What clustering was given and what it answered, call by call."""
    module = importlib.import_module("rotating_features.evaluate.score")
    cluster, seen = module.cluster, []

    def recorded(orientations, *args, mask=None, **kwargs):
        found = cluster(orientations, *args, mask=mask, **kwargs)
        seen.append({"orientations": orientations, "mask": mask, "labels": found.labels})
        return found

    monkeypatch.setattr(module, "cluster", recorded)
    return seen


def run(model: RotatingAutoEncoder, dataset, protocol: str) -> None:
    list(score(model, dataset, protocols=(protocol,), images=3, k=3))


def test_blind_clustering_is_given_no_mask(model, calls) -> None:
    run(model, FourShapes("test"), "blind")
    assert [call["mask"] for call in calls] == [None]


def test_blind_labels_do_not_depend_on_the_ground_truth(model, calls) -> None:
    run(model, FourShapes("test"), "blind")
    run(model, Relabelled(), "blind")
    true, altered = calls
    assert torch.equal(true["labels"], altered["labels"])
    assert (true["labels"] >= 0).all()


def test_rf2023_takes_out_exactly_the_overlap(model, calls) -> None:
    run(model, FourShapes("test"), "rf2023")
    instances = FourShapes("test").draw(range(3)).instances
    assert (instances == IGNORE).any()
    assert torch.equal(calls[0]["mask"], instances != IGNORE)
    assert torch.equal(calls[0]["labels"] == -1, instances == IGNORE)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_scores_leave_out_the_overlap(name: str) -> None:
    instances = FourShapes("test").draw(range(8)).instances
    labels = torch.randint_like(instances, 5)
    changed = torch.where(instances == IGNORE, torch.randint_like(instances, 5), labels)
    one, two = (PROTOCOLS[name].score(x, instances) for x in (labels, changed))
    assert all(torch.equal(one[key], two[key]) for key in one)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_scores_are_ari_without_background_and_mean_best_overlap(name: str) -> None:
    instances = FourShapes("test").draw(range(8)).instances
    labels = torch.randint_like(instances, 5)
    scores = PROTOCOLS[name].score(labels, instances)
    ari = adjusted_rand_index(labels, instances, skip=(BACKGROUND, IGNORE))
    assert torch.equal(scores["ari_bg"], ari)
    assert torch.equal(scores["mbo_i"], mean_best_overlap(labels, instances))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_truth_scores_1(name: str) -> None:
    instances = FourShapes("test").draw(range(8)).instances
    scores = PROTOCOLS[name].score(instances, instances)
    assert scores["ari_bg"].tolist() == scores["mbo_i"].tolist() == [1.0] * 8


@pytest.mark.parametrize("name", PROTOCOLS)
def test_an_image_without_objects_scores_nan(name: str) -> None:
    nothing = torch.zeros(1, 4, 4, dtype=torch.int64)
    scores = PROTOCOLS[name].score(nothing, nothing)
    assert scores["ari_bg"].isnan().all()
    assert scores["mbo_i"].isnan().all()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_says_what_becomes_of_overlap_and_ground_truth(name: str) -> None:
    assert "overlap" in PROTOCOLS[name].description
    assert "ground truth" in PROTOCOLS[name].description


def test_the_default_uses_no_ground_truth() -> None:
    instances = FourShapes("test").draw(range(2)).instances
    assert PROTOCOLS[DEFAULT_PROTOCOL].clustering_mask(instances) is None
