"""The paper read plainly: separate calls for psi and chi, PyTorch's own layout, no tricks.

This is the peer that the fast implementation is timed against, and nothing else uses it.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class PlainLayer(nn.Module):
    def __init__(self, f: nn.Module, norm: nn.Module, n: int, c: int) -> None:
        super().__init__()
        self.f, self.norm = f, norm
        spatial = (1, 1) if isinstance(norm, nn.BatchNorm2d) else ()
        self.bias = nn.Parameter(0.1 * torch.randn(n, c, *spatial))

    def forward(self, z: Tensor) -> Tensor:
        psi = self.f(z.flatten(0, 1)).unflatten(0, z.shape[:2]) + self.bias
        chi = self.f(torch.linalg.vector_norm(z, dim=1))
        m_bind = 0.5 * torch.linalg.vector_norm(psi, dim=1) + 0.5 * chi
        return F.normalize(psi, dim=1) * F.relu(self.norm(m_bind)).unsqueeze(1)


class PlainAutoEncoder(nn.Module):
    """The architecture table for square images, or with its starred rows for feature maps."""

    def __init__(self, channels: int, side: int, d: int, n: int, *, features: bool = False) -> None:
        super().__init__()
        self.n, self.d, self.side, self.grid = n, d, side, -(-side // 8)
        self.features = features

        def conv(i: int, o: int, stride: int = 1) -> PlainLayer:
            f = nn.Conv2d(i, o, 3, stride, 1, bias=False)
            return PlainLayer(f, nn.BatchNorm2d(o), n, o)

        def up(i: int, o: int) -> PlainLayer:
            f = nn.ConvTranspose2d(i, o, 3, 2, 1, 1, bias=False)
            return PlainLayer(f, nn.BatchNorm2d(o), n, o)

        def linear(i: int, o: int) -> PlainLayer:
            return PlainLayer(nn.Linear(i, o, bias=False), nn.LayerNorm(o), n, o)

        flat = 2 * d * self.grid**2
        self.prepare = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU()) if features else None
        self.encoder = nn.Sequential(
            conv(channels, d, 2),
            conv(d, d),
            conv(d, 2 * d, 2),
            conv(2 * d, 2 * d),
            conv(2 * d, 2 * d, 2),
            *([conv(2 * d, 2 * d)] if features else []),
        )
        self.squeeze, self.expand = linear(flat, 2 * d), linear(2 * d, flat)
        self.decoder = nn.Sequential(
            up(2 * d, 2 * d),
            conv(2 * d, 2 * d),
            up(2 * d, 2 * d),
            conv(2 * d, d),
            *([up(d, d), conv(d, channels)] if features else [up(d, channels)]),
        )
        self.w_out = nn.Parameter(torch.ones(channels, 1, 1))
        self.b_out = nn.Parameter(torch.zeros(channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.prepare is None else self.prepare(x)
        z = torch.cat([x[:, None], x.new_zeros(x.shape[0], self.n - 1, *x.shape[1:])], dim=1)
        z = self.encoder(z).flatten(2)
        z = self.expand(self.squeeze(z)).unflatten(2, (2 * self.d, self.grid, self.grid))
        z = self.decoder(z)
        first = (z.shape[-1] - self.side) // 2
        crop = slice(first, first + self.side)
        m = torch.linalg.vector_norm(z[..., crop, crop], dim=1)
        y = self.w_out * m + self.b_out
        return y if self.features else torch.sigmoid(y)


def plain_crops(photographs: Tensor, size: int, batch: int) -> Tensor:
    """Random crops, every second one flipped, (m, h, w, 3) -> (b, 3, size, size)."""
    device = photographs.device
    m, h, w, _ = photographs.shape

    def draw(count: int) -> Tensor:
        return torch.randint(count, (batch, 1, 1), device=device)

    steps = torch.arange(size, device=device)
    rows, columns = draw(h - size + 1) + steps.view(size, 1), draw(w - size + 1) + steps
    columns = torch.where(draw(2) == 1, columns, columns.flip(2))
    return photographs[draw(m), rows, columns].permute(0, 3, 1, 2)
