import json
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from rotating_features._check import InputError
from rotating_features.features import IMAGENET_MEAN, IMAGENET_STD, Backbone


def small(**options: Any) -> Backbone:
    torch.manual_seed(3)
    module = nn.Sequential(nn.Conv2d(3, 6, 8, stride=8), nn.BatchNorm2d(6), nn.Dropout(0.5))
    return Backbone(module, channels=6, stride=8, **options)


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5))
def test_a_map_has_a_cell_for_each_stride(b: int, rows: int, columns: int) -> None:
    backbone = small()
    features = backbone(torch.rand(b, 3, 8 * rows, 8 * columns))
    assert features.shape == (b, 6, rows, columns)
    assert features.dtype == torch.float32
    assert backbone.grid((8 * rows, 8 * columns)) == (rows, columns)


@given(st.integers(0, 50), st.integers(0, 50))
def test_sides_that_do_not_fit_are_refused_with_some_that_do(height: int, width: int) -> None:
    backbone = small()
    if height % 8 or width % 8 or not height or not width:
        with pytest.raises(InputError, match="multiples of 8") as raised:
            backbone.grid((height, width))
        advised = str(raised.value).split("say to ")[1].rstrip(".").split(" x ")
        assert min(backbone.grid([int(side) for side in advised])) >= 1
    else:
        assert backbone.grid((height, width)) == (height // 8, width // 8)


def test_one_number_is_a_square() -> None:
    assert small().grid(24) == (3, 3)


def test_images_are_normalised() -> None:
    backbone = Backbone(nn.Identity(), channels=3, stride=1)
    x = torch.rand(2, 3, 4, 5)
    mean, std = torch.tensor(IMAGENET_MEAN), torch.tensor(IMAGENET_STD)
    wanted = (x - mean[:, None, None]) / std[:, None, None]
    torch.testing.assert_close(backbone(x), wanted)


def test_bytes_are_the_numbers_they_stand_for() -> None:
    pixels = torch.randint(256, (2, 3, 16, 16), dtype=torch.uint8)
    assert torch.equal(small()(pixels), small()(pixels / 255))


def test_it_stays_as_it_is_in_a_model_that_trains() -> None:
    backbone = small()
    around = nn.Sequential(backbone, nn.Conv2d(6, 1, 1))
    x = torch.rand(2, 3, 16, 16)
    before = {name: weight.clone() for name, weight in backbone.state_dict().items()}
    wanted = backbone(x)
    around.train()
    optimiser = torch.optim.SGD([p for p in around.parameters() if p.requires_grad], lr=1.0)
    for _ in range(2):
        around(x).square().mean().backward()
        optimiser.step()
    assert not any(part.training for part in backbone.modules())
    assert not any(weight.requires_grad for weight in backbone.parameters())
    assert all(torch.equal(before[name], w) for name, w in backbone.state_dict().items())
    assert torch.equal(backbone(x), wanted)


def test_no_gradient_passes_but_features_can_be_trained_on() -> None:
    features = small()(torch.rand(1, 3, 8, 8, requires_grad=True))
    assert not features.requires_grad
    assert not features.is_inference()  # such tensors cannot be saved for a backward pass


def test_bfloat16_is_close() -> None:
    x = torch.rand(2, 3, 32, 32)
    rough = small(dtype=torch.bfloat16)
    assert {weight.dtype for weight in rough.parameters()} == {torch.bfloat16}
    assert rough(x).dtype == torch.float32
    torch.testing.assert_close(rough(x), small()(x), atol=0.03, rtol=0.03)


class Odd(nn.Module):
    def __init__(self, output: Any) -> None:
        super().__init__()
        self.output = output

    def forward(self, x: Tensor) -> Any:
        return self.output


@pytest.mark.parametrize(
    ("output", "came"),
    [
        (torch.zeros(2, 4, 8), r"got \(2, 4, 8\)"),
        (torch.zeros(2, 5, 2, 2), r"got \(2, 5, 2, 2\)"),
        ((torch.zeros(2, 8, 2, 2),), "got tuple"),
    ],
)
def test_a_module_that_gives_something_else_is_told_so(output: Any, came: str) -> None:
    backbone = Backbone(Odd(output), channels=8, stride=8, name="odd one")
    with pytest.raises(InputError, match=rf"(?s)odd one should give .*\(2, 8, 2, 2\).*{came}"):
        backbone(torch.rand(2, 3, 16, 16))


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.rand(3, 16, 16), "b, c=3, h, w"),
        (torch.rand(1, 1, 16, 16), "b, c=3, h, w"),
        (torch.rand(0, 3, 16, 16), "empty"),
        (torch.rand(1, 3, 20, 16), "multiples of 8"),
        (torch.rand(1, 3, 16, 16) * 255, r"lie in \[0, 1\]"),
        (torch.randn(1, 3, 16, 16) * 2, r"lie in \[0, 1\]"),
        (torch.full((1, 3, 16, 16), torch.nan), r"lie in \[0, 1\]"),
        (torch.zeros(1, 3, 16, 16, dtype=torch.int64), "uint8 or floating"),
        (torch.zeros(1, 3, 16, 16, device="meta"), "Move one of them"),
    ],
)
def test_images_that_do_not_fit_are_refused(images: Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        small()(images)


@pytest.mark.parametrize(
    "options",
    [
        {"channels": 0},
        {"stride": 0},
        {"mean": (0.5,)},
        {"std": (1, 1, 0)},
        {"dtype": torch.int8},
    ],
)
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Backbone(nn.Identity(), **{"channels": 3, "stride": 1, **options})


def test_the_fingerprint_follows_weights_and_settings() -> None:
    wanted = small().fingerprint()
    assert len(wanted) == 16
    assert small(name="another name").fingerprint() == wanted
    changed = small()
    weight = next(changed.module.parameters())
    with torch.no_grad():
        weight.flatten()[-1] += 1e-6
    half = small(dtype=torch.bfloat16)
    others = [changed, half, small(std=(1, 1, 1)), small(settings={"heads": 3})]
    prints = {other.fingerprint() for other in others}
    assert len(prints | {wanted}) == 5
    json.dumps(wanted)


def test_modules_without_weights_differ_by_structure() -> None:
    pools = [nn.AvgPool2d(8), nn.MaxPool2d(8)]
    prints = {Backbone(pool, channels=3, stride=8).fingerprint() for pool in pools}
    assert len(prints) == 2


def test_a_module_of_ones_own_cannot_be_saved_and_says_so() -> None:
    assert small().spec is None
    with pytest.raises(InputError, match="module of your own"):
        small().spec_to_save()


def test_it_shows_what_it_is() -> None:
    assert "'tiny', channels=6, stride=8" in repr(small(name="tiny"))
