from pathlib import Path

import pytest
import torch

from rotating_features.data import FourShapes
from rotating_features.models import RotatingAutoEncoder
from rotating_features.train import Step, Trainee, train
from rotating_features.train.feed import Feed
from rotating_features.train.together import Together

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def make(seed: int, device: str = "cpu") -> RotatingAutoEncoder:
    torch.manual_seed(seed)
    model = RotatingAutoEncoder(channels=1, size=(32, 32), hidden_dim=16, rotation_dim=3)
    return model.to(device)


def after_steps(seeds: list[int], device: str, precision: str = "float32") -> dict[int, Step]:
    """Models of these seeds after a few steps side by side; each sees images of its own."""
    steps = {seed: Step(make(seed, device), precision=precision) for seed in seeds}
    order = torch.stack([torch.arange(5 * 8).view(5, 8) + 100 * seed for seed in seeds], dim=1)
    feed = Feed(FourShapes("train"), torch.device(device))
    losses = Together(list(steps.values()), feed).run(order, torch.full((5,), 1e-3))
    assert losses.shape == (5, len(seeds))
    return steps


def distance(a: Step, b: Step) -> float:
    """Mean difference of weights. Where a gradient is all rounding, Adam's steps differ in sign."""
    return float((a.flat - b.flat).abs().mean())


@pytest.mark.parametrize("device", DEVICES)
def test_each_gives_what_it_gives_alone(device: str) -> None:
    together = after_steps([0, 1, 2], device)
    for seed, step in together.items():
        alone = after_steps([seed], device)[seed]
        torch.testing.assert_close(
            step.flat, alone.flat, rtol=0, atol=0 if device == "cpu" else 1e-4
        )


@pytest.mark.parametrize("device", DEVICES)
def test_different_seeds_become_different_models(device: str) -> None:
    a, b = after_steps([0, 1], device).values()
    assert not torch.allclose(a.flat, b.flat)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_graph_takes_the_steps_that_calls_take(precision: str) -> None:
    """And warming it up leaves no trace."""
    graph = after_steps([0], "cuda", precision)[0]
    step = Step(make(0, "cuda"), precision=precision)
    feed = Feed(FourShapes("train"), torch.device("cuda"))
    for indices in torch.arange(5 * 8, device="cuda").view(5, 8):
        step(feed(indices), 1e-3)
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


def run(folder: Path, seeds: list[int], steps: int) -> None:
    trainees = [Trainee(make(seed), folder / str(seed), seed) for seed in seeds]
    train(
        trainees,
        FourShapes("train"),
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
