"""The peer that we are timed against computes what we do."""

from pathlib import Path

import pytest
import torch

from rotating_features.models import RotatingAutoEncoder

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def test_the_plain_reading_is_the_same_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from plain import PlainAutoEncoder

    ours = RotatingAutoEncoder(channels=1, size=(16, 16), hidden_dim=4, rotation_dim=3).double()
    plain = PlainAutoEncoder(1, 16, 4, 3).double()
    layers = [*plain.encoder, plain.squeeze, plain.expand, *plain.decoder]
    own = [*ours.encoder, ours.squeeze, ours.expand, *ours.decoder]
    with torch.no_grad():
        for a, b in zip(layers, own, strict=True):
            a.f.weight.copy_(b.linear_map.weight)
            a.bias.copy_(b.bias.view_as(a.bias))
        # Ours flattens (h, w, c), the plain one (c, h, w).
        grid = (2, 2, 8)
        squeeze, expand = ours.squeeze.linear_map.weight, ours.expand.linear_map.weight
        plain.squeeze.f.weight.copy_(squeeze.unflatten(1, grid).movedim(3, 1).flatten(1))
        plain.expand.f.weight.copy_(expand.unflatten(0, grid).movedim(2, 0).flatten(0, 2))
        bias = ours.expand.bias.unflatten(1, grid).movedim(3, 1).flatten(1)
        plain.expand.bias.copy_(bias)
    x = torch.rand(4, 1, 16, 16).double()
    torch.testing.assert_close(plain(x), ours(x).reconstruction)
