r"""What training makes small: the squared error of pixels read off magnitudes.

.. math:: L = \mathrm{mean}\,(\hat x - x)^2, \qquad \hat x = \sigma(w_c m + b_c)
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from rotating_features._check import check_shape
from rotating_features.ops import Impl, use_triton


def squared_error(
    m: Tensor, weight: Tensor, bias: Tensor, x: Tensor, *, sigmoid: bool, impl: Impl = "auto"
) -> Tensor:
    """The loss, one number.

    Args:
        m: Magnitudes, channels last, (b, h, w, c).
        weight, bias: Of the readout, (c,).
        x: The images or features to be reconstructed, (b, c, h, w).
        sigmoid: Whether the readout ends in one.
        impl: ``"torch"`` for the definition, ``"triton"`` for the kernel, ``"auto"`` to choose.
    """
    b, h, w, c = m.shape
    check_shape("x", x, "b c h w", b=b, c=c, h=h, w=w, hint="Crop what is reconstructed first.")
    if use_triton(m, impl) and not x.requires_grad:  # its gradient, only the definition has
        from rotating_features.ops.triton.squared_error import squared_error_triton

        with torch.cuda.device(m.device):
            return squared_error_triton(m, weight, bias, x, sigmoid)
    return squared_error_reference(m, weight, bias, x, sigmoid)


def squared_error_reference(
    m: Tensor, weight: Tensor, bias: Tensor, x: Tensor, sigmoid: bool
) -> Tensor:
    """The definition. Kernels are correct when they agree with this function."""
    y = weight * m + bias
    return F.mse_loss(y.sigmoid() if sigmoid else y, x.movedim(1, -1))
