"""Complex layers against PyTorch's own complex numbers, and what turning their input does."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

import rotating_features.nn as rf_nn
from rotating_features._check import InputError
from rotating_features.nn import ComplexConv2d, ComplexConvTranspose2d, ComplexLinear
from rotating_features.nn.complex import ComplexLayer
from rotating_features.nn.stacked import stack
from rotating_features.vectors import lift, magnitude

Make = Callable[[], ComplexLayer]


def linear() -> ComplexLinear:
    return ComplexLinear(3, 4)


def conv() -> ComplexConv2d:
    return ComplexConv2d(3, 4, 3, stride=2, padding=1)


def conv_transpose() -> ComplexConvTranspose2d:
    return ComplexConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1)


MAKERS = {"linear": linear, "conv": conv, "conv_transpose": conv_transpose}
MODES = {"train": True, "eval": False}

all_makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
all_modes = pytest.mark.parametrize("training", MODES.values(), ids=MODES)


def trained(layer: ComplexLayer, *, training: bool = False) -> ComplexLayer:
    """The layer in float64, its biases and its norm as if it had seen data."""
    layer = layer.double().train(training)
    nn.init.normal_(layer.phase_bias)
    nn.init.normal_(layer.norm.weight, mean=1.0, std=0.5)
    nn.init.normal_(layer.norm.bias, mean=0.5, std=0.5)
    if isinstance(layer.norm, nn.BatchNorm1d):
        nn.init.uniform_(layer.norm.running_mean)
        nn.init.uniform_(layer.norm.running_var, 0.5, 2.0)
    return layer


def inputs(layer: ComplexLayer, *, dtype: torch.dtype = torch.double) -> Tensor:
    space = () if isinstance(layer, ComplexLinear) else (5, 3)
    return torch.randn(2, 2, layer.in_channels, *space, dtype=dtype)


def turn(z: Tensor, angle: float) -> Tensor:
    """Complex numbers (b, 2, ...) with ``angle`` added to every phase."""
    return as_real(as_complex(z) * torch.polar(torch.ones(()), torch.tensor(angle)))


def as_complex(z: Tensor) -> Tensor:
    return torch.complex(z[:, 0], z[:, 1])


def as_real(z: Tensor) -> Tensor:
    return torch.stack([z.real, z.imag], dim=1)


def paper(layer: ComplexLayer, z: Tensor) -> Tensor:
    """The equations of the Complex AutoEncoder in complex128, with PyTorch's own layers."""
    f, per_channel = layer.linear_map, (-1, *[1] * (z.ndim - 2))
    b = layer.magnitude_bias.view(per_channel)
    psi = torch.complex(f(z.real), f(z.imag))
    chi = f(z.abs())
    m = 0.5 * (psi.abs() + b) + 0.5 * (chi + b)
    norm = layer.norm
    if isinstance(norm, nn.LayerNorm):
        m = F.layer_norm(m, norm.normalized_shape, norm.weight, norm.bias)
    elif norm.training:
        m = F.batch_norm(m, None, None, norm.weight, norm.bias, training=True)
    else:
        m = F.batch_norm(m, norm.running_mean, norm.running_var, norm.weight, norm.bias)
    return torch.polar(m.relu(), psi.angle() + layer.phase_bias.view(per_channel))


@all_modes
@all_makers
def test_a_layer_is_that_of_the_complex_autoencoder(make: Make, training: bool) -> None:
    layer = trained(make(), training=training)
    z = inputs(layer)
    expected = paper(layer, as_complex(z))
    assert expected.abs().max() > 0.1, "the comparison is of nothing with nothing"
    torch.testing.assert_close(layer(z), as_real(expected), rtol=0, atol=1e-6)


def test_every_public_layer_is_walked() -> None:
    public = {getattr(rf_nn, name) for name in rf_nn.__all__}
    layers = {kind for kind in public if issubclass(kind, ComplexLayer)}
    assert {type(make()) for make in MAKERS.values()} == layers


@all_makers
@given(angle=st.floats(-10, 10))
def test_turning_the_input_turns_the_output(make: Make, angle: float) -> None:
    """With all its biases."""
    torch.manual_seed(0)
    layer = trained(make())
    z = inputs(layer)
    torch.testing.assert_close(layer(turn(z, angle)), turn(layer(z), angle), rtol=0, atol=1e-6)


@all_makers
def test_a_phase_bias_turns_the_output(make: Make) -> None:
    layer = trained(make())
    z = inputs(layer)
    before = layer(z)
    with torch.no_grad():
        layer.phase_bias += 0.7
    torch.testing.assert_close(layer(z), turn(before, 0.7))


@all_modes
@all_makers
def test_gradients_are_those_of_finite_differences(make: Make, training: bool) -> None:
    layer = trained(make(), training=training)
    z = inputs(layer).requires_grad_()
    direction = torch.randn_like(layer(z))

    def seen(z: Tensor, *_: Tensor) -> Tensor:
        return (layer(z) * direction).sum()

    assert torch.autograd.gradcheck(seen, (z, *layer.parameters()))


@all_modes
@all_makers
def test_gradients_are_finite_at_zero(make: Make, training: bool) -> None:
    layer = trained(make(), training=training).float()
    z = torch.zeros_like(inputs(layer, dtype=torch.float)).requires_grad_()
    layer(z).square().sum().backward()
    assert z.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in layer.parameters())


@all_makers
def test_what_is_no_number_stays_so(make: Make) -> None:
    layer = make().eval()
    s = layer.advance(stack(torch.full_like(inputs(layer, dtype=torch.float), torch.nan)))
    assert s.isnan().all()


@all_modes
@all_makers
def test_the_carried_magnitude_is_that_of_the_vectors(make: Make, training: bool) -> None:
    layer = trained(make(), training=training)
    s = layer.advance(stack(inputs(layer)))
    torch.testing.assert_close(s[:, -1], magnitude(s[:, :-1]))
    only = layer.advance(stack(inputs(layer)), only_magnitude=True)
    assert only.shape == s[:, -1].shape


@all_makers
def test_an_image_advances_as_when_it_is_lifted(make: Make) -> None:
    layer = trained(make())
    x = inputs(layer)[:, 0].abs()
    torch.testing.assert_close(layer.advance_lifted(x), layer.advance(stack(lift(x, n=2))))


@all_makers
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_a_layer_works_in_every_dtype(dtype: torch.dtype, make: Make) -> None:
    layer = make().to(dtype)
    z = inputs(layer, dtype=dtype).requires_grad_()
    output = layer(z)
    output.sum().backward()
    assert output.dtype == z.grad.dtype == dtype
    assert z.grad.isfinite().all()


@all_makers
def test_a_layer_compiles_to_one_graph(make: Make) -> None:
    torch.compiler.reset()
    layer = make().eval()
    z = inputs(layer, dtype=torch.float)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(z), layer(z))


@pytest.mark.parametrize(
    ("layer", "fan_in"),
    [
        (ComplexLinear(3, 999), 3),
        (ComplexConv2d(3, 999, 5), 3 * 5 * 5),
        (ComplexConvTranspose2d(3, 999, 5), 999 * 5 * 5),
    ],
    ids=lambda value: type(value).__name__,
)
def test_biases_start_as_in_the_released_code(layer: ComplexLayer, fan_in: int) -> None:
    """Of magnitudes uniform up to 1 / sqrt(fan_in), of phases zero."""
    largest = layer.magnitude_bias.abs().max().item() * fan_in**0.5
    assert 0.95 < largest <= 1
    assert not layer.phase_bias.any()


def test_a_wrong_shape_is_explained() -> None:
    with pytest.raises(InputError, match=r"z should have shape \(b, n=2, c=3, h, w\)"):
        conv()(torch.zeros(2, 3, 3, 6, 6))
