"""From magnitudes back to pixels."""

import torch
from torch import Tensor, nn

from rotating_features._check import check_shape


class Readout(nn.Module):
    r"""Pixels from magnitudes, :math:`\hat x = \sigma(w_c \lVert z\rVert + b_c)` in channel c.

    Starts as the identity under the sigmoid, ``w = 1`` and ``b = 0``. (The paper's text has the
    two swapped; with ``w = 0`` no gradient would reach the network.)

    Args:
        channels: Number of image channels.
        sigmoid: ``False`` for targets outside [0, 1], such as feature maps.

    Shape:
        ``(b, channels, h, w) -> (b, channels, h, w)``, magnitudes to pixels.

    Example:
        >>> Readout(3)(torch.zeros(1, 3, 2, 2)).unique()
        tensor([0.5000], grad_fn=<Unique2Backward0>)
    """

    def __init__(self, channels: int, *, sigmoid: bool = True) -> None:
        super().__init__()
        self.sigmoid = sigmoid
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, m: Tensor) -> Tensor:
        check_shape("m", m, "b c h w", c=len(self.weight), hint="Pass magnitudes, not vectors.")
        x = self.weight.view(-1, 1, 1) * m + self.bias.view(-1, 1, 1)
        return x.sigmoid() if self.sigmoid else x

    def extra_repr(self) -> str:
        return f"channels={len(self.weight)}, sigmoid={self.sigmoid}"
