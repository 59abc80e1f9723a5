import pytest
import torch

from rotating_features._check import InputError
from rotating_features.nn import Readout


def make(**options: bool) -> Readout:
    """A readout that has learned: every channel has its own pair."""
    readout = Readout(3, **options).double()
    torch.nn.init.normal_(readout.weight)
    torch.nn.init.normal_(readout.bias)
    return readout


def test_a_new_readout_is_the_identity_under_the_sigmoid() -> None:
    m = torch.rand(2, 3, 4, 5)
    assert torch.equal(Readout(3)(m), m.sigmoid())


def test_a_new_readout_without_sigmoid_is_the_identity() -> None:
    m = torch.rand(2, 3, 4, 5)
    assert torch.equal(Readout(3, sigmoid=False)(m), m)


def test_every_channel_has_its_own_weight_and_bias() -> None:
    readout, m = make(), torch.rand(2, 3, 4, 5, dtype=torch.double)
    for c in range(3):
        line = readout.weight[c] * m[:, c] + readout.bias[c]
        torch.testing.assert_close(readout(m)[:, c], 1 / (1 + (-line).exp()))


@pytest.mark.parametrize("sigmoid", [True, False])
def test_gradients_are_those_of_finite_differences(sigmoid: bool) -> None:
    readout = make(sigmoid=sigmoid)
    m = torch.rand(2, 3, 2, 2, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda m, *_: readout(m), (m, *readout.parameters()))


def test_gradients_of_a_new_readout_reach_the_magnitudes() -> None:
    """With the paper's text read literally, w = 0, they would not."""
    m = torch.rand(1, 3, 2, 2, requires_grad=True)
    Readout(3)(m).sum().backward()
    assert (m.grad > 0).all()


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 4, 5, 5), (2, 8, 3, 5, 5)])
def test_a_wrong_shape_is_explained(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError) as error:
        Readout(3)(torch.zeros(shape))
    assert f"m should have shape (b, c=3, h, w), got {shape}." in str(error.value)


@pytest.mark.parametrize("sigmoid", [True, False])
def test_repr_tells_the_options(sigmoid: bool) -> None:
    assert repr(Readout(3, sigmoid=sigmoid)) == f"Readout(channels=3, sigmoid={sigmoid})"
