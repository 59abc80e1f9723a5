"""Assertions for people who write layers and kernels, here or downstream."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from rotating_features.vectors import ROTATION


def assert_equivariant(layer: Callable[[Tensor], Tensor], z: Tensor) -> None:
    """Assert that turning the input of ``layer`` turns its output alike, (b, n, ...) both.

    One random orthogonal matrix of R^n is tried, a rotation or a reflection. Layers with a
    rotation bias prefer some directions and fail: set their bias to zero first.

    Example:
        >>> from rotating_features.nn import RotatingLinear
        >>> layer = RotatingLinear(3, 5, rotation_dim=8).double()
        >>> _ = torch.nn.init.zeros_(layer.bias)
        >>> assert_equivariant(layer, torch.randn(2, 8, 3).double())
    """
    n = z.shape[ROTATION]
    q, _ = torch.linalg.qr(torch.randn(n, n, dtype=torch.double))
    q = q.to(z)
    torch.testing.assert_close(
        layer(_turn(q, z)),
        _turn(q, layer(z)),
        msg=lambda difference: f"The layer does not commute with a rotation of R^{n}. {difference}",
    )


def assert_as_exact_as(
    reference: Callable[..., Sequence[Tensor]],
    kernel: Callable[..., Sequence[Tensor]],
    *inputs: Tensor,
) -> None:
    """Assert that no result of ``kernel`` is off by more than twice the error of ``reference``.

    The truth is ``reference`` in float64. Both return all that is to be compared, gradients too.

    Example:
        >>> x = torch.rand(100)
        >>> assert_as_exact_as(lambda x: [x / x.norm()], lambda x: [x * x.norm() ** -1], x)
    """
    exact = reference(*(x.double() for x in inputs))
    eager, ours = reference(*inputs), kernel(*inputs)
    for index, (e, a, b) in enumerate(zip(exact, eager, ours, strict=True)):
        assert (b.shape, b.dtype) == (a.shape, a.dtype), f"result {index}: {b.shape}, {b.dtype}"
        if not a.is_floating_point():
            assert torch.equal(a, b), f"result {index} differs"
            continue
        size = e.norm().clamp(min=1e-30)
        allowed, got = ((x.double() - e).norm() / size for x in (a, b))
        limit = 2 * allowed + torch.finfo(a.dtype).eps
        assert got <= limit, f"result {index} is off by {got:.1e}, the reference by {allowed:.1e}"


def _turn(q: Tensor, z: Tensor) -> Tensor:
    return torch.einsum("ij,bj...->bi...", q, z)
