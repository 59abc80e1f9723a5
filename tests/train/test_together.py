from pathlib import Path

import numpy as np
import pytest
import torch

from rotating_features._check import InputError
from rotating_features.data import FourShapes, TenShapes
from rotating_features.models import MODELS, AutoEncoder, load
from rotating_features.train import Step, Trainee, train
from rotating_features.train import feed as feed_module
from rotating_features.train.feed import Feed
from rotating_features.train.together import Together

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


all_kinds = pytest.mark.parametrize("kind", MODELS)


class Labelled(FourShapes):
    """With two classes that can be told from the number of an image."""

    def draw_labels(self, indices) -> torch.Tensor:
        odd = torch.from_numpy(np.asarray(indices) % 2)
        return torch.stack([odd, 1 - odd], dim=1)


def make(seed: int, device: str = "cpu", kind: str = "rotating") -> AutoEncoder:
    torch.manual_seed(seed)
    extra = {"rotating": {"rotation_dim": 3}, "classifier": {"rotation_dim": 3, "classes": 2}}
    model = MODELS[kind](channels=1, size=(32, 32), hidden_dim=16, **extra.get(kind, {}))
    return model.to(device)


def make_feed(device: str, kind: str) -> Feed:
    return Feed(Labelled("train"), torch.device(device), labels=MODELS[kind].needs_labels)


STILL = 1e-8
"""A rate at which models stay where they are, and gradients can be compared. At 1e-3 a rounding
error of one part in ten million makes most weights differ by 1e-4 after five steps of Adam."""


def after_steps(
    seeds: list[int],
    device: str,
    precision: str = "float32",
    kind: str = "rotating",
    rate: float = 1e-3,
) -> dict[int, Step]:
    """Models of these seeds after a few steps side by side; each sees images of its own."""
    steps = {seed: Step(make(seed, device, kind), precision=precision) for seed in seeds}
    order = torch.stack([torch.arange(5 * 8).view(5, 8) + 100 * seed for seed in seeds], dim=1)
    feed = make_feed(device, kind)
    losses = Together(list(steps.values()), feed).run(order, torch.full((5,), rate))
    assert losses.shape == (5, len(seeds))
    return steps


def distance(a: Step, b: Step) -> float:
    """Mean difference of weights. Where a gradient is all rounding, Adam's steps differ in sign."""
    return float((a.flat - b.flat).abs().mean())


@all_kinds
def test_each_gives_what_it_gives_alone(kind: str) -> None:
    together = after_steps([0, 1], "cpu", kind=kind)
    for seed, step in together.items():
        assert torch.equal(step.flat, after_steps([seed], "cpu", kind=kind)[seed].flat)


@pytest.mark.gpu
@all_kinds
def test_each_gives_what_it_gives_alone_on_a_gpu(kind: str) -> None:
    """But for rounding, since alone it gets more of the GPU, and sums are split otherwise."""
    together = after_steps([0, 1], "cuda", kind=kind, rate=STILL)
    for seed, step in together.items():
        alone = after_steps([seed], "cuda", kind=kind, rate=STILL)[seed]
        assert (step.mean - alone.mean).norm() < 0.05 * alone.mean.norm()


@pytest.mark.parametrize("device", DEVICES)
def test_different_seeds_become_different_models(device: str) -> None:
    a, b = after_steps([0, 1], device).values()
    assert not torch.allclose(a.flat, b.flat)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@all_kinds
def test_the_graph_takes_the_steps_that_calls_take(kind: str, precision: str) -> None:
    """And warming it up leaves no trace."""
    graph = after_steps([0], "cuda", precision, kind)[0]
    step = Step(make(0, "cuda", kind), precision=precision)
    feed = make_feed("cuda", kind)
    for indices in torch.arange(5 * 8, device="cuda").view(5, 8):
        x, *labels = feed.batch(indices, labels=step.model.needs_labels)
        step(x, 1e-3, *labels)
    assert float(step.taken) == float(graph.taken) == 5
    assert distance(step, graph) < 1e-5
    for name, value in step.model.named_buffers():
        torch.testing.assert_close(graph.model.get_buffer(name), value, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_a_feed_gives_the_datasets_images(device: str) -> None:
    dataset = FourShapes("val")
    indices = torch.tensor([5, 0, 9_999])
    x = Feed(dataset, torch.device(device))(indices.to(device))
    assert torch.equal(x.cpu(), dataset.draw(indices.numpy()).image)


@pytest.mark.parametrize("device", DEVICES)
def test_a_feed_gives_the_datasets_labels(device: str) -> None:
    dataset = Labelled("val")
    indices = torch.tensor([5, 0, 9_999])
    feed = Feed(dataset, torch.device(device), labels=True)
    x, labels = feed.batch(indices.to(device), labels=True)
    assert torch.equal(x.cpu(), dataset.draw(indices.numpy()).image)
    assert labels.tolist() == [[1, 0], [0, 1], [1, 0]]


def test_no_label_is_drawn_for_models_that_need_none(monkeypatch) -> None:
    monkeypatch.setattr(Labelled, "draw_labels", None)
    after_steps([0], "cpu", kind="standard")


@pytest.mark.parametrize("device", DEVICES)
def test_models_with_and_without_labels_train_side_by_side(device: str) -> None:
    steps = [Step(make(0, device, kind)) for kind in ("classifier", "rotating")]
    order = torch.arange(2 * 2 * 4).view(2, 2, 4)
    losses = Together(steps, make_feed(device, "classifier")).run(order, torch.full((2,), 1e-3))
    assert losses.isfinite().all()


@pytest.mark.parametrize("dataset", [FourShapes("val"), TenShapes("val")], ids=["bytes", "floats"])
def test_images_that_are_kept_are_in_order(dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many threads draw them; as on a GPU."""
    monkeypatch.setattr(feed_module, "CHUNK", 7)
    monkeypatch.setattr(type(dataset), "__len__", lambda _: 100)
    kept = feed_module._all_images(dataset, torch.device("cpu"))
    kept = kept if kept.is_floating_point() else kept / 255
    assert torch.equal(kept.movedim(-1, 1), dataset.draw(range(100)).image)


def test_a_dataset_without_classes_is_explained() -> None:
    with pytest.raises(InputError, match=r"a method draw_labels, got a FourShapes without"):
        Feed(FourShapes("val"), torch.device("cpu"), labels=True)


def test_a_feed_made_without_labels_has_none() -> None:
    feed = Feed(Labelled("val"), torch.device("cpu"))
    with pytest.raises(InputError, match="labels=True"):
        feed.batch(torch.tensor([0]), labels=True)


def test_labels_are_of_the_images_they_come_with() -> None:
    """By hand: the first loss of a classifier in training mode."""
    model = make(0, kind="classifier")
    dataset, order = Labelled("train"), torch.tensor([[[7, 2, 4, 9]]])
    x, labels = (part([7, 2, 4, 9]) for part in (dataset.draw, dataset.draw_labels))
    expected = model.loss(x.image, labels=labels).detach()
    feed = make_feed("cpu", "classifier")
    losses = Together([Step(model)], feed).run(order, torch.tensor([1e-3]))
    torch.testing.assert_close(losses, expected.view(1, 1))


@all_kinds
def test_a_run_of_any_flavour_is_saved_and_resumed(tmp_path: Path, kind: str) -> None:
    run(tmp_path / "whole", [0], 3, kind)
    run(tmp_path / "parts", [0], 2, kind)
    run(tmp_path / "parts", [0], 3, kind)
    whole, parts = (weights(tmp_path / name / "0") for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    assert type(load(tmp_path / "whole" / "0")) is MODELS[kind]


def run(folder: Path, seeds: list[int], steps: int, kind: str = "rotating") -> None:
    trainees = [Trainee(make(seed, kind=kind), folder / str(seed), seed) for seed in seeds]
    train(
        trainees,
        Labelled("train"),
        steps=steps,
        batch_size=2,
        log_every=1,
        checkpoint_every=100,
        quiet=True,
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return torch.load(folder / "trainer.pt", weights_only=True)["model"]


def test_a_run_left_behind_catches_up_and_ends_as_it_would_have(tmp_path: Path) -> None:
    run(tmp_path / "whole", [0, 1], 5)
    run(tmp_path / "parts", [0, 1], 2)
    run(tmp_path / "parts", [1], 4)  # as if a kill had come between two checkpoints
    run(tmp_path / "parts", [0, 1], 5)
    for seed in ("0", "1"):
        whole, parts = weights(tmp_path / "whole" / seed), weights(tmp_path / "parts" / seed)
        assert all(torch.equal(whole[name], parts[name]) for name in whole)
        log = (tmp_path / "parts" / seed / "metrics.jsonl").read_text().splitlines()
        assert len(log) == 5
