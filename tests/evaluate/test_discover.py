"""Objects in images of every kind and size, and the order of their names."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from rotating_features._check import InputError
from rotating_features.data import FourShapes
from rotating_features.evaluate import (
    cluster,
    discover,
    mode_filter,
    orientation_map,
    resize_labels,
)
from rotating_features.evaluate.cluster import sort_labels
from rotating_features.models import (
    ComplexAutoEncoder,
    RotatingAutoEncoder,
    StandardAutoEncoder,
)

PIXELS = (FourShapes("test")[0].image[0].numpy() * 255).astype(np.uint8)
DOORS = {
    "torch hw": torch.from_numpy(PIXELS).float() / 255,
    "torch chw": torch.from_numpy(PIXELS)[None] / 255,
    "numpy hw": PIXELS,
    "numpy hwc": PIXELS[..., None] / 255,
    "pil l": Image.fromarray(PIXELS),
    "pil rgb": Image.fromarray(PIXELS).convert("RGB"),
    "pil p": Image.fromarray(PIXELS).convert("P"),
}


def make(channels: int = 1, size: tuple[int, int] = (32, 32)) -> RotatingAutoEncoder:
    torch.manual_seed(0)
    return RotatingAutoEncoder(channels=channels, size=size, hidden_dim=4, rotation_dim=3).eval()


def silence(model: RotatingAutoEncoder) -> RotatingAutoEncoder:
    """The model with an output of length 0 everywhere."""
    norm = model.decoder[-1].norm
    torch.nn.init.zeros_(norm.weight)
    torch.nn.init.constant_(norm.bias, -1.0)
    return model


@pytest.mark.parametrize("door", DOORS)
def test_a_picture_gets_the_same_labels_through_every_door(door: str) -> None:
    wanted = discover(make(), DOORS["torch hw"], k=3)
    assert torch.equal(discover(make(), DOORS[door], k=3).labels, wanted.labels)


def test_a_single_image_has_no_batch_axis() -> None:
    found = discover(make(channels=3), torch.rand(3, 32, 32), k=3)
    assert found.labels.shape == found.uncertainty.shape == (32, 32)
    assert found.orientations.shape == found.reconstruction.shape == (3, 32, 32)
    assert found.objects.shape == ()


@pytest.mark.parametrize("b", [1, 4])
def test_several_images_have_a_batch_axis(b: int) -> None:
    found = discover(make(), [torch.rand(32, 32)] * b, k=3)
    assert found.labels.shape == found.uncertainty.shape == (b, 32, 32)
    assert found.orientations.shape == (b, 3, 32, 32)
    assert found.reconstruction.shape == (b, 1, 32, 32)
    assert found.objects.shape == (b,)


def test_an_image_alone_gets_the_labels_it_gets_among_others() -> None:
    images = FourShapes("test").draw(range(4)).image
    together = discover(make(), images, k=3).labels
    assert torch.equal(discover(make(), images[2], k=3).labels, together[2])


@pytest.mark.parametrize("size", [(20, 30), (100, 64), (1, 1), (33, 32)])
@pytest.mark.parametrize("options", [{"k": 3}, {"distance_threshold": 5.0}])
def test_answers_have_the_size_of_the_image(size: tuple[int, int], options) -> None:
    found = discover(make(), torch.rand(1, *size), **options)
    maps = found.labels, found.uncertainty, found.orientations, found.reconstruction
    assert {tuple(m.shape[-2:]) for m in maps} == {size}
    assert all(m.isfinite().all() for m in maps)


def test_an_image_twice_as_large_gets_the_same_labels_twice_as_large() -> None:
    small = DOORS["torch hw"]
    large = small.repeat_interleave(2, 0).repeat_interleave(2, 1)
    labels = discover(make(), large, k=3).labels
    assert torch.equal(labels[::2, ::2], labels[1::2, 1::2])
    assert (labels[::2, ::2] == discover(make(), small, k=3).labels).float().mean() > 0.9


def test_a_model_of_any_size_and_channels_will_do() -> None:
    found = discover(make(channels=3, size=(14, 22)), np.zeros((9, 8, 3), np.uint8), k=2)
    assert found.labels.shape == (9, 8)


def test_labels_are_those_of_the_steps_taken_one_by_one() -> None:
    model, images = make(), FourShapes("test").draw(range(3)).image
    found = discover(model, images, k=4, magnitude_threshold=0.2, seed=7)
    with torch.no_grad():
        reconstruction, z = model(images)
    orientations = orientation_map(z, threshold=0.2)
    labels, uncertainty, centers = cluster(orientations, "kmeans", k=4, seed=7)
    assert torch.equal(found.labels, sort_labels(labels, centers))
    assert torch.equal(found.uncertainty, uncertainty)
    assert torch.equal(found.orientations, orientations)
    assert torch.equal(found.reconstruction, reconstruction)


def test_without_options_the_number_of_objects_is_found() -> None:
    images = FourShapes("test").draw(range(3)).image
    found, same = discover(make(), images), discover(make(), images, distance_threshold=5.0)
    assert torch.equal(found.labels, same.labels)


@pytest.mark.parametrize("training", [True, False])
def test_the_models_mode_is_restored(training: bool) -> None:
    model = make().train(training)
    discover(model, DOORS["torch hw"], k=2)
    assert all(module.training == training for module in model.modules())


def test_the_models_mode_is_restored_after_an_error(monkeypatch) -> None:
    model = make().train()
    monkeypatch.setattr(model, "forward", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        discover(model, DOORS["torch hw"], k=2)
    assert model.training


def test_a_model_in_training_answers_as_in_use_and_learns_nothing() -> None:
    model = make()
    wanted = discover(model, DOORS["torch hw"], k=3).labels
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert torch.equal(discover(model.train(), DOORS["torch hw"], k=3).labels, wanted)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize("options", [{"k": 2}, {"k": 5}, {"k": 40}, {"distance_threshold": 5.0}])
def test_nothing_found_is_background_and_no_objects(options) -> None:
    found = discover(silence(make()), FourShapes("test").draw(range(2)).image, **options)
    assert not found.labels.any()
    assert found.objects.tolist() == [0, 0]
    assert not found.uncertainty.any()


def test_a_complex_model_finds_objects_too() -> None:
    model = ComplexAutoEncoder(channels=1, size=(32, 32), hidden_dim=4)
    found = discover(model, torch.rand(1, 32, 32), k=3)
    assert found.labels.shape == (32, 32)
    assert found.orientations.shape == (2, 32, 32)


def test_a_model_without_vectors_is_refused() -> None:
    model = StandardAutoEncoder(channels=1, size=(32, 32), hidden_dim=4)
    with pytest.raises(InputError, match=r"got a StandardAutoEncoder.*\n.*a rotating or a complex"):
        discover(model, torch.rand(1, 32, 32), k=3)


def test_k_and_threshold_together_are_explained() -> None:
    with pytest.raises(InputError, match=r"either k .* or distance_threshold .* not both"):
        discover(make(), DOORS["torch hw"], k=3, distance_threshold=5.0)


def test_an_image_of_another_number_of_channels_is_explained() -> None:
    with pytest.raises(InputError, match="3 channels, got 1"):
        discover(make(channels=3), DOORS["torch hw"], k=3)


def test_a_k_of_zero_is_explained() -> None:
    with pytest.raises(InputError, match="between 1 and the 1024 places of a map, got 0"):
        discover(make(), DOORS["torch hw"], k=0)


LABELS = torch.tensor([[[0, 0, 0, 0], [0, 0, 0, 1], [2, 2, 2, 1], [3, 3, 3, 3]]])
CENTERS = torch.tensor([[[1.0, 0], [0, 1], [-1, 0], [0.1, 0]]])  # the last points nowhere


@given(st.permutations(range(4)))
def test_names_from_clustering_do_not_matter(names: list[int]) -> None:
    """Background is 0 and objects are numbered from large to small, whatever they were called."""
    places = torch.tensor(names)
    centers = torch.empty_like(CENTERS)
    centers[0, places] = CENTERS[0]
    wanted = torch.tensor([[[1, 1, 1, 1], [1, 1, 1, 3], [2, 2, 2, 3], [0, 0, 0, 0]]])
    assert torch.equal(sort_labels(places[LABELS], centers), wanted)


def test_without_background_labels_start_at_1() -> None:
    centers = torch.nn.functional.normalize(CENTERS, dim=2)
    assert sort_labels(LABELS, centers).unique().tolist() == [1, 2, 3, 4]


def test_one_cluster_over_all_is_no_object() -> None:
    """Whatever it is called, and though it points somewhere."""
    centers = torch.tensor([[[1.0, 0], [torch.nan, torch.nan], [0, 1]]])
    for label in (0, 2):
        labels = torch.full((1, 4, 4), label)
        assert sort_labels(labels, centers).unique().tolist() == [0]


def test_background_is_one_cluster_even_if_two_are_short() -> None:
    centers = CENTERS.clone()
    centers[0, 2] = torch.tensor([0.2, 0])
    labels = sort_labels(LABELS, centers)
    assert torch.equal(labels == 0, LABELS == 3)
    assert labels.unique().tolist() == [0, 1, 2, 3]


def test_rows_of_nan_after_an_images_last_cluster_change_nothing() -> None:
    padded = torch.cat([CENTERS, torch.full((1, 3, 2), torch.nan)], dim=1)
    assert torch.equal(sort_labels(LABELS, padded), sort_labels(LABELS, CENTERS))


def test_pixels_that_took_no_part_stay_so() -> None:
    labels = LABELS.clone()
    labels[0, 0, 0] = -1
    assert torch.equal(sort_labels(labels, CENTERS) == -1, labels == -1)


def test_clusters_without_pixels_are_not_background() -> None:
    """k-means may leave a cluster empty; its name must not be the one that pixels would need."""
    labels = torch.zeros(1, 4, 4, dtype=torch.int64)
    assert not sort_labels(labels, torch.zeros(1, 40, 2)).any()


class Coarse(torch.nn.Module):
    """A model of features: what it sees of 32 x 48 pixels is a grid of 4 x 6."""

    channels, size, rotation_dim = 3, (32, 48), 3

    def __init__(self) -> None:
        super().__init__()
        self.inner = RotatingAutoEncoder(
            channels=5, size=(4, 6), hidden_dim=4, rotation_dim=3, features=True
        )

    def forward(self, x: torch.Tensor):
        torch.manual_seed(1)
        features = torch.nn.functional.avg_pool2d(x, 8).repeat(1, 2, 1, 1)[:, :5]
        return self.inner(features + torch.randn_like(features))


@pytest.mark.parametrize("size", [(32, 48), (61, 90), (100, 40)])
def test_a_coarse_grid_is_brought_to_the_size_of_the_image(size: tuple[int, int]) -> None:
    found = discover(Coarse(), torch.rand(2, 3, *size), k=3)
    assert found.labels.shape == found.uncertainty.shape == (2, *size)
    assert found.orientations.shape == (2, 3, *size)
    assert found.reconstruction.shape == (2, 5, 4, 6)


def test_a_coarse_grids_labels_are_resized_once_and_smoothed() -> None:
    x = torch.rand(2, 3, 61, 140)
    model = Coarse()
    raw, smooth = discover(model, x, k=3, smooth=False), discover(model, x, k=3)
    grid = raw.labels[:, [8, 24, 40, 54]][:, :, [10, 35, 60, 80, 105, 130]]  # the cells' middles
    assert torch.equal(raw.labels, resize_labels(grid, (61, 140)))
    assert torch.equal(smooth.labels, mode_filter(raw.labels, 61 // 4))
    assert torch.equal(discover(model, x, k=3, smooth=5).labels, mode_filter(raw.labels, 5))


def test_a_coarse_grids_uncertainty_is_interpolated() -> None:
    model = Coarse()
    at_size = discover(model, torch.full((3, 32, 48), 0.5), k=3).uncertainty
    steps = (at_size[:, 1:] - at_size[:, :-1]).abs().max()
    assert 0 < steps < 0.3 * (at_size.max() - at_size.min())


def test_models_of_images_are_smoothed_only_if_told() -> None:
    images = FourShapes("test").draw(range(3)).image
    plain, smooth = discover(make(), images, k=3), discover(make(), images, k=3, smooth=2)
    assert torch.equal(discover(make(), images, k=3, smooth=False).labels, plain.labels)
    assert torch.equal(smooth.labels, mode_filter(plain.labels, 2))
