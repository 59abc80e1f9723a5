"""Scores of a model on a dataset: every image, and the same however they are batched."""

import pytest
import torch

from rotating_features._check import InputError
from rotating_features.data import FourShapes
from rotating_features.evaluate import PROTOCOLS, cluster, orientation_map, score
from rotating_features.evaluate.cluster import count_clusters
from rotating_features.evaluate.score import suitable_batch_size
from rotating_features.metrics import mean_best_overlap
from rotating_features.models import AutoEncoder, RotatingAutoEncoder, StandardAutoEncoder

NAMES = ("mse", "ari_bg", "mbo_i", "clusters", "uncertainty")


@pytest.fixture
def model() -> RotatingAutoEncoder:
    return RotatingAutoEncoder(channels=1, size=(32, 32), hidden_dim=4, rotation_dim=3).eval()


def collect(model: AutoEncoder, **options) -> dict[str, dict[str, torch.Tensor]]:
    options = {"images": 5, "protocols": tuple(PROTOCOLS), "k": 3, **options}
    batches = list(score(model, FourShapes("test"), **options))
    return {
        protocol: {
            name: torch.cat([batch[protocol][name] for batch in batches])
            for name in batches[0][protocol]
        }
        for protocol in options["protocols"]
    }


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_every_image_is_scored_even_in_a_partial_batch(model, batch_size: int) -> None:
    for scores in collect(model, batch_size=batch_size).values():
        assert {name: len(values) for name, values in scores.items()} == dict.fromkeys(NAMES, 5)


@pytest.mark.parametrize("batch_size", [1, 2])
def test_the_batch_size_does_not_change_the_scores(model, batch_size: int) -> None:
    together, apart = collect(model), collect(model, batch_size=batch_size)
    torch.testing.assert_close(together, apart, rtol=1e-5, atol=1e-6)


def test_only_as_many_images_as_asked_are_scored(model) -> None:
    few, more = (collect(model, images=images)["blind"]["mse"] for images in (2, 4))
    assert len(few) == 2
    torch.testing.assert_close(few, more[:2])


def test_all_images_are_scored_unless_told_otherwise(model, monkeypatch) -> None:
    monkeypatch.setattr(FourShapes, "__len__", lambda _: 6)
    assert len(collect(model, images=None, batch_size=4)["blind"]["mse"]) == 6


def test_asking_for_more_images_than_there_are_scores_all(model, monkeypatch) -> None:
    monkeypatch.setattr(FourShapes, "__len__", lambda _: 3)
    assert len(collect(model, images=99)["blind"]["mse"]) == 3


def test_the_error_is_that_of_each_image(model) -> None:
    found = collect(model)["blind"]["mse"]
    with torch.no_grad():
        for index, error in enumerate(found):
            x = FourShapes("test")[index].image
            drawn = model(x[None]).reconstruction[0]
            torch.testing.assert_close(error, (drawn - x).double().pow(2).mean())


def test_blind_scores_are_those_of_the_steps_taken_one_by_one(model) -> None:
    image, instances, _ = FourShapes("test").draw(range(5))
    with torch.no_grad():
        orientations = orientation_map(model(image).z)
    labels, doubt, _ = cluster(orientations, "kmeans", k=3)
    found = collect(model)["blind"]
    torch.testing.assert_close(found["mbo_i"], mean_best_overlap(labels, instances))
    torch.testing.assert_close(found["uncertainty"], doubt.mean((1, 2)).double())
    assert found["clusters"].tolist() == [len(image.unique()) for image in labels]


def test_pixels_taken_out_are_not_counted_as_a_cluster(model) -> None:
    assert collect(model)["rf2023"]["clusters"].max() <= 3


def test_agglomerative_clustering_needs_no_k(model) -> None:
    scores = collect(model, k=None, method="agglomerative", distance_threshold=5.0, images=2)
    assert (scores["blind"]["clusters"] >= 1).all()


def test_the_magnitude_threshold_is_used(model) -> None:
    """Above every length nothing points anywhere, so all pixels are alike."""
    scores = collect(model, magnitude_threshold=1e6)["blind"]
    assert scores["clusters"].tolist() == [1] * 5
    assert not scores["uncertainty"].any()


def test_scoring_builds_no_graph_and_changes_no_weight(model) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    scores = collect(model)["blind"]
    assert not scores["mse"].requires_grad
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_an_unknown_protocol_is_explained(model) -> None:
    with pytest.raises(InputError, match=r"blind.*rf2023.*'fair'"):
        collect(model, protocols=("fair",))


def test_clusters_are_counted_by_the_labels_that_occur() -> None:
    labels = torch.tensor([[[0, 0], [3, 1]], [[-1, 2], [2, 2]], [[-1, -1], [-1, -1]]])
    assert count_clusters(labels, 4).tolist() == [3, 1, 0]


def test_a_model_without_vectors_is_scored_on_its_reconstruction_alone() -> None:
    model = StandardAutoEncoder(channels=1, size=(32, 32), hidden_dim=4).eval()
    x = FourShapes("test").draw(range(5)).image
    with torch.no_grad():
        expected = (model(x).reconstruction - x).double().pow(2).mean((1, 2, 3))
    for scores in collect(model, batch_size=2).values():
        torch.testing.assert_close(scores["mse"], expected)
        assert set(scores) == {"mse"}


def test_a_batch_suits_the_device_and_the_size_of_the_output() -> None:
    """On the meta device, which stands in for a GPU and holds no numbers."""
    small = RotatingAutoEncoder(channels=1, size=(32, 32), hidden_dim=4, rotation_dim=8)
    wide = RotatingAutoEncoder(channels=768, size=(14, 14), hidden_dim=4, rotation_dim=10)
    assert suitable_batch_size(small) == 100
    assert suitable_batch_size(small.to("meta")) == 1000
    assert 1 < suitable_batch_size(wide.to("meta")) < 100
    assert suitable_batch_size(StandardAutoEncoder(channels=1, size=(32, 32)).to("meta")) == 1000
