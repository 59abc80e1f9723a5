"""Standard layers are PyTorch's own, one after the other."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import rotating_features.nn as rf_nn
from rotating_features._check import InputError
from rotating_features.nn import StandardConv2d, StandardConvTranspose2d, StandardLinear
from rotating_features.nn.standard import StandardLayer

Case = tuple[Callable[[], StandardLayer], Callable[[], nn.Module], tuple[int, ...]]

CASES: dict[str, Case] = {
    "linear": (
        lambda: StandardLinear(3, 4),
        lambda: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.ReLU()),
        (5, 3),
    ),
    "conv": (
        lambda: StandardConv2d(3, 4, 3, stride=2, padding=1),
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU()),
        (5, 3, 7, 6),
    ),
    "conv_transpose": (
        lambda: StandardConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1),
        lambda: nn.Sequential(nn.ConvTranspose2d(3, 4, 3, 2, 1, 1), nn.BatchNorm2d(4), nn.ReLU()),
        (5, 3, 4, 5),
    ),
}

all_cases = pytest.mark.parametrize(("make", "theirs", "shape"), CASES.values(), ids=CASES)


def gradients(layer: nn.Module, x: Tensor) -> list[Tensor]:
    x = x.clone().requires_grad_()
    layer(x).square().sum().backward()
    return [x.grad, *(p.grad for p in layer.parameters())]


@pytest.mark.parametrize("training", [True, False])
@all_cases
def test_a_layer_is_a_map_with_bias_a_norm_and_relu(make, theirs, shape, training: bool) -> None:
    ours, theirs = make().double().train(training), theirs().double().train(training)
    nn.init.normal_(ours.norm.bias)
    theirs[0].weight.data, theirs[0].bias.data = ours.weight.data, ours.bias.data
    theirs[1].bias.data = ours.norm.bias.data
    x = torch.randn(shape).double()
    torch.testing.assert_close(ours(x), theirs(x))
    a, b = gradients(ours, x), gradients(theirs, x)
    torch.testing.assert_close(a[0], b[0])
    by_size = [sorted(g[1:], key=lambda part: (part.numel(), float(part.sum()))) for g in (a, b)]
    torch.testing.assert_close(*by_size)


def test_every_public_layer_is_walked() -> None:
    public = {getattr(rf_nn, name) for name in rf_nn.__all__}
    layers = {kind for kind in public if issubclass(kind, StandardLayer)}
    assert {type(make()) for make, _, _ in CASES.values()} == layers


@all_cases
def test_a_bias_starts_within_pytorchs_bound(make, theirs, shape) -> None:
    bound = max(theirs()[0].bias.abs().max().item() for _ in range(200))
    ours = max(make().bias.abs().max().item() for _ in range(200))
    assert ours == pytest.approx(bound, rel=0.05)


@all_cases
def test_a_wrong_shape_is_explained(make, theirs, shape) -> None:
    with pytest.raises(InputError, match=r"z should have shape \(b, c=3"):
        make()(torch.zeros(2, 2, *shape[2:]))
