r"""Binding: a unit responds strongly only if its inputs point the same way.

.. math:: m = \tfrac12 \lVert\psi\rVert + \tfrac12 \chi

``psi`` was computed from vectors and ``chi`` from their lengths, with the same weights. Inputs
that disagree in orientation cancel in ``psi`` but not in ``chi``, and the average falls.
"""

from torch import Tensor

from rotating_features.vectors import magnitude


def bind(psi: Tensor, chi: Tensor) -> Tensor:
    """Magnitude after binding, (b, n, ...) and (b, ...) -> (b, ...).

    Example: inputs that agree keep their magnitude, inputs that cancel are halved.
        >>> import torch
        >>> bind(torch.tensor([[3.0, 4.0]]), torch.tensor([5.0]))
        tensor([5.])
        >>> bind(torch.tensor([[0.0, 0.0]]), torch.tensor([5.0]))
        tensor([2.5000])
    """
    return 0.5 * magnitude(psi) + 0.5 * chi
