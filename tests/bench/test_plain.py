"""The peer that we are timed against computes what we do."""

import pytest
import torch

from rotating_features.bench.plain import PlainAutoEncoder
from rotating_features.models import RotatingAutoEncoder

N, D = 3, 4


@pytest.mark.parametrize(
    ("channels", "side", "features"),
    [(1, 16, False), (4, 24, False), (5, 14, True)],
)
def test_the_plain_reading_is_the_same_function(channels: int, side: int, features: bool) -> None:
    ours = RotatingAutoEncoder(
        channels=channels, size=(side, side), hidden_dim=D, rotation_dim=N, features=features
    ).double()
    plain = PlainAutoEncoder(channels, side, D, N, features=features).double()
    layers = [*plain.encoder, plain.squeeze, plain.expand, *plain.decoder]
    own = [*ours.encoder, ours.squeeze, ours.expand, *ours.decoder]
    with torch.no_grad():
        for a, b in zip(layers, own, strict=True):
            a.f.weight.copy_(b.linear_map.weight)
            a.bias.copy_(b.bias.view_as(a.bias))
        # Ours flattens (h, w, c), the plain one (c, h, w).
        grid = (*ours.grid, 2 * D)
        squeeze, expand = ours.squeeze.linear_map.weight, ours.expand.linear_map.weight
        plain.squeeze.f.weight.copy_(squeeze.unflatten(1, grid).movedim(3, 1).flatten(1))
        plain.expand.f.weight.copy_(expand.unflatten(0, grid).movedim(2, 0).flatten(0, 2))
        bias = ours.expand.bias.unflatten(1, grid).movedim(3, 1).flatten(1)
        plain.expand.bias.copy_(bias)
        for a, b in ((plain.w_out, ours.readout.weight), (plain.b_out, ours.readout.bias)):
            a.copy_(b.normal_().view_as(a))
    x = torch.randn(4, channels, side, side).double()
    x = x if features else x.abs()
    torch.testing.assert_close(plain(x), ours(x).reconstruction)
    assert sum(p.numel() for p in plain.parameters()) == sum(p.numel() for p in ours.parameters())
