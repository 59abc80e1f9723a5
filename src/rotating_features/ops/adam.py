r"""One step of Adam (Kingma & Ba, 2015) on one flat tensor, clipping included.

.. math::
    g &\leftarrow g \cdot \min(1, \text{clip} / \lVert g \rVert) + \text{decay} \cdot p \\
    m &\leftarrow \beta_1 m + (1 - \beta_1) g, \qquad v \leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
    p &\leftarrow p - \text{rate} \cdot
        \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \varepsilon}
"""

import torch
from torch import Tensor

from rotating_features.ops import Impl, use_triton

BETA1, BETA2 = 0.9, 0.999
EPS = 1e-8


def adam_(
    p: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    t: Tensor,
    rate: Tensor,
    *,
    clip: float | None = None,
    decay: float = 0.0,
    impl: Impl = "auto",
) -> None:
    """Update parameters ``p`` and the averages ``m`` and ``v`` in place.

    Args:
        p, g, m, v: Parameters, gradient, and its first two moments; flat and of one size.
        t: Steps taken, this one included; one number.
        rate: The learning rate; one number.
        clip: Largest norm of the gradient, or None.
        decay: L2 penalty.
        impl: ``"torch"`` for the definition, ``"triton"`` for the kernel, ``"auto"`` to choose.
    """
    if use_triton(p, impl):
        from rotating_features.ops.triton.adam import adam_triton_

        with torch.cuda.device(p.device):
            adam_triton_(p, g.contiguous(), m, v, t, rate, clip=clip, decay=decay)
    else:
        adam_reference_(p, g, m, v, t, rate, clip=clip, decay=decay)


def adam_reference_(
    p: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    t: Tensor,
    rate: Tensor,
    *,
    clip: float | None,
    decay: float,
) -> None:
    """The definition. Kernels are correct when they agree with this function."""
    if clip is not None:
        g = g * (clip / (g.norm() + 1e-6)).clamp(max=1)
    if decay:
        g = g + decay * p
    m.lerp_(g, 1 - BETA1)
    v.lerp_(g.square(), 1 - BETA2)
    root = (v / (1 - BETA2**t)).sqrt_().add_(EPS)
    p.sub_(rate / (1 - BETA1**t) * m / root)
