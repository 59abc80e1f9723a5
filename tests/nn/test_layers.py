"""Every rotating layer with every option has the same properties: one list, and tests that walk it.

What the layers compute is compared with ``paper``, a float64 NumPy reading of the paper's
equations that shares no code with them.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import rotating_features.nn as rf_nn
from rotating_features._check import InputError
from rotating_features.nn import (
    RotatingConv2d,
    RotatingConvTranspose2d,
    RotatingLayer,
    RotatingLinear,
)
from rotating_features.nn.stacked import stack
from rotating_features.testing import assert_equivariant
from rotating_features.vectors import magnitude

Make = Callable[..., RotatingLayer]


def linear(n: int = 3, **options: bool) -> RotatingLinear:
    return RotatingLinear(3, 4, rotation_dim=n, **options)


def conv(n: int = 3, **options: bool) -> RotatingConv2d:
    return RotatingConv2d(3, 4, 3, rotation_dim=n, stride=2, padding=1, **options)


def conv_transpose(n: int = 3, **options: bool) -> RotatingConvTranspose2d:
    return RotatingConvTranspose2d(
        3, 4, 3, rotation_dim=n, stride=2, padding=1, output_padding=1, **options
    )


MAKERS = {"linear": linear, "conv": conv, "conv_transpose": conv_transpose}
OPTIONS = {
    "default": {},
    "bias_only_turns": {"bias_in_magnitude": False},
    "no_binding": {"binding": False},
    "neither": {"bias_in_magnitude": False, "binding": False},
}
MODES = {"train": True, "eval": False}

all_makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
all_options = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
all_modes = pytest.mark.parametrize("training", MODES.values(), ids=MODES)


def inputs(
    layer: RotatingLayer,
    *,
    b: int = 2,
    space: tuple[int, int] = (5, 3),
    dtype: torch.dtype = torch.double,
) -> Tensor:
    """Random vectors on an odd grid, one in ten of them zero."""
    shape = (b, layer.in_channels, *(() if isinstance(layer, RotatingLinear) else space))
    present = torch.rand(shape) > 0.1
    return (torch.randn(b, layer.rotation_dim, *shape[1:]) * present.unsqueeze(1)).to(dtype)


def trained(layer: RotatingLayer, *, training: bool = False) -> RotatingLayer:
    """The layer in float64, its norm with statistics and parameters as if it had seen data."""
    layer = layer.double().train(training)
    nn.init.normal_(layer.norm.weight, mean=1.0, std=0.5)
    nn.init.normal_(layer.norm.bias, mean=0.5, std=0.5)
    if isinstance(layer.norm, nn.BatchNorm1d):
        nn.init.uniform_(layer.norm.running_mean)
        nn.init.uniform_(layer.norm.running_var, 0.5, 2.0)
    return layer


# The paper in NumPy.


def paper(layer: RotatingLayer, z: np.ndarray) -> np.ndarray:
    """The output of ``layer``, by equations 1 to 5 of the paper and its two options."""
    b = layer.bias.detach().numpy()
    f = np.stack([paper_map(layer, z[:, i]) for i in range(layer.rotation_dim)], axis=1)
    psi = f + b.reshape(*b.shape, *[1] * (z.ndim - 3))
    strength = np.sqrt(((psi if layer.bias_in_magnitude else f) ** 2).sum(1))
    if layer.binding:
        chi = paper_map(layer, np.sqrt((z**2).sum(1)))
        strength = 0.5 * strength + 0.5 * chi
    m = np.maximum(paper_norm(layer, strength), 0)
    length = np.sqrt((psi**2).sum(1))
    direction = np.divide(psi, length[:, None], where=length[:, None] > 0, out=np.zeros_like(psi))
    return direction * m[:, None]


def paper_map(layer: RotatingLayer, x: np.ndarray) -> np.ndarray:
    """The linear map f_w on plain features, (b, c, ...) -> (b, c', ...)."""
    f = layer.linear_map
    w = f.weight.detach().numpy()
    if isinstance(f, nn.Linear):
        return x @ w.T
    if isinstance(f, nn.Conv2d):
        return convolve(x, w, f.stride[0], f.padding[0])
    return convolve_transposed(x, w, f.stride[0], f.padding[0], f.output_padding[0])


def convolve(x: np.ndarray, w: np.ndarray, stride: int, padding: int) -> np.ndarray:
    """y[i, j] = sum over u, v of w[u, v] x[stride i + u - padding, stride j + v - padding]."""
    x = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    k = w.shape[-1]
    height, width = ((side - k) // stride + 1 for side in x.shape[2:])
    y = np.zeros((len(x), len(w), height, width))
    for i, j in product(range(height), range(width)):
        window = x[:, :, stride * i : stride * i + k, stride * j : stride * j + k]
        y[:, :, i, j] = np.einsum("bcuv,ocuv->bo", window, w)
    return y


def convolve_transposed(
    x: np.ndarray, w: np.ndarray, stride: int, padding: int, output_padding: int
) -> np.ndarray:
    """Every x[i, j] adds its w[u, v] at (stride i + u, stride j + v); then the padding is cut."""
    k = w.shape[-1]
    grown = [(side - 1) * stride + k + output_padding for side in x.shape[2:]]
    y = np.zeros((len(x), w.shape[1], *grown))
    for i, j in product(*map(range, x.shape[2:])):
        stamp = np.einsum("bc,couv->bouv", x[:, :, i, j], w)
        y[:, :, stride * i : stride * i + k, stride * j : stride * j + k] += stamp
    return y[:, :, padding : grown[0] - padding, padding : grown[1] - padding]


def paper_norm(layer: RotatingLayer, m: np.ndarray) -> np.ndarray:
    """Layer norm over the features of a sample, or batch norm over everything but channels."""
    norm = layer.norm
    if isinstance(norm, nn.LayerNorm):
        mean, var = m.mean(1, keepdims=True), m.var(1, keepdims=True)
    elif norm.training:
        mean, var = m.mean((0, 2, 3), keepdims=True), m.var((0, 2, 3), keepdims=True)
    else:
        mean = norm.running_mean.numpy().reshape(-1, 1, 1)
        var = norm.running_var.numpy().reshape(-1, 1, 1)
    per_channel = (-1, *[1] * (m.ndim - 2))
    weight = norm.weight.detach().numpy().reshape(per_channel)
    bias = norm.bias.detach().numpy().reshape(per_channel)
    return (m - mean) / np.sqrt(var + 1e-5) * weight + bias


GEOMETRIES = [
    (RotatingConv2d, {"kernel_size": 1}),
    (RotatingConv2d, {"kernel_size": 3, "padding": 1}),
    (RotatingConv2d, {"kernel_size": 3, "stride": 2}),
    (RotatingConv2d, {"kernel_size": 3, "stride": 2, "padding": 1}),
    (RotatingConv2d, {"kernel_size": 2, "stride": 2, "padding": 1}),
    (RotatingConv2d, {"kernel_size": 5, "stride": 2, "padding": 2}),
    (RotatingConvTranspose2d, {"kernel_size": 1}),
    (RotatingConvTranspose2d, {"kernel_size": 3, "padding": 1}),
    (RotatingConvTranspose2d, {"kernel_size": 3, "stride": 2}),
    (RotatingConvTranspose2d, {"kernel_size": 3, "stride": 2, "padding": 1}),
    (RotatingConvTranspose2d, {"kernel_size": 2, "stride": 2, "output_padding": 1}),
    (RotatingConvTranspose2d, {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1}),
]


def describe(value: object) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}={setting}" for name, setting in value.items())
    return getattr(value, "__name__", "")


def assert_follows_the_paper(layer: RotatingLayer) -> None:
    z = inputs(layer)
    ours, theirs = layer(z).detach().numpy(), paper(layer, z.numpy())
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() < 1e-10
    assert np.abs(theirs).max() > 0.1, "the comparison is of nothing with nothing"


@all_modes
@all_options
@pytest.mark.parametrize("n", [2, 3, 8])
def test_a_linear_layer_follows_the_paper(n: int, options: dict, training: bool) -> None:
    assert_follows_the_paper(trained(linear(n, **options), training=training))


@all_modes
@all_options
@pytest.mark.parametrize(("kind", "geometry"), GEOMETRIES, ids=describe)
def test_a_convolution_follows_the_paper(
    kind: Make, geometry: dict, options: dict, training: bool
) -> None:
    layer = kind(3, 4, rotation_dim=3, **geometry, **options)
    assert_follows_the_paper(trained(layer, training=training))


# Properties of all layers.


def test_every_public_layer_is_walked() -> None:
    public = {getattr(rf_nn, name) for name in rf_nn.__all__}
    layers = {kind for kind in public if issubclass(kind, RotatingLayer)} - {RotatingLayer}
    assert {type(make()) for make in MAKERS.values()} == layers


@all_modes
@all_options
@all_makers
def test_gradients_are_those_of_finite_differences(
    make: Make, options: dict, training: bool
) -> None:
    """Of the input and of every parameter, seen from a random direction of the output."""
    layer = trained(make(2, **options), training=training)
    z = inputs(layer, space=(3, 2))
    z[:, 0] += magnitude(z) == 0  # where the magnitude has a kink
    z.requires_grad_()
    direction = torch.randn_like(layer(z))

    def seen(z: Tensor, *_: Tensor) -> Tensor:
        return (layer(z) * direction).sum()

    assert torch.autograd.gradcheck(seen, (z, *layer.parameters()))


@all_options
@all_makers
@pytest.mark.parametrize("n", [2, 3, 8])
def test_rotating_the_input_rotates_the_output(n: int, make: Make, options: dict) -> None:
    """Without bias the layer commutes with every rotation of R^n."""
    layer = trained(make(n, **options))
    nn.init.zeros_(layer.bias)
    assert_equivariant(layer, inputs(layer))


@all_makers
def test_a_bias_prefers_a_direction(make: Make) -> None:
    """The assertion of equivariance can fail: with bias, layers are not equivariant."""
    layer = trained(make())
    with pytest.raises(AssertionError, match=r"does not commute with a rotation of R\^3"):
        assert_equivariant(layer, inputs(layer))


@all_modes
@all_options
@all_makers
@pytest.mark.parametrize("has_bias", [True, False])
def test_gradients_are_finite_at_zero(
    has_bias: bool, make: Make, options: dict, training: bool
) -> None:
    layer = trained(make(**options), training=training).float()
    if not has_bias:
        nn.init.zeros_(layer.bias)
    z = torch.zeros_like(inputs(layer, dtype=torch.float)).requires_grad_()
    layer(z).square().sum().backward()
    assert z.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in layer.parameters())


@all_options
@all_makers
def test_without_bias_zero_vectors_stay_zero(make: Make, options: dict) -> None:
    """And so does the magnitude carried beside them, however large the norm's own bias."""
    layer = make(**options).eval()
    nn.init.zeros_(layer.bias)
    nn.init.ones_(layer.norm.bias)
    s = layer.advance(stack(torch.zeros_like(inputs(layer, dtype=torch.float))))
    assert torch.equal(s, torch.zeros_like(s))


@all_options
@all_makers
def test_what_is_no_number_stays_so(make: Make, options: dict) -> None:
    """In the vectors and in the magnitudes that the readout sees."""
    layer = make(**options).eval()
    s = layer.advance(stack(torch.full_like(inputs(layer, dtype=torch.float), torch.nan)))
    assert s.isnan().all()


@all_modes
@all_options
@all_makers
def test_the_carried_magnitude_is_that_of_the_vectors(
    make: Make, options: dict, training: bool
) -> None:
    layer = trained(make(**options), training=training)
    s = layer.advance(stack(inputs(layer)))
    torch.testing.assert_close(s[:, -1], magnitude(s[:, :-1]))


@all_options
@all_makers
def test_the_linear_map_is_called_once(make: Make, options: dict) -> None:
    layer, calls = make(**options), []
    f = layer._map
    layer._map = lambda s: (calls.append(1), f(s))[1]
    layer(inputs(layer, dtype=torch.float))
    assert len(calls) == 1


@all_options
@all_makers
def test_repr_tells_the_rotation_dim_and_what_is_not_default(make: Make, options: dict) -> None:
    told = ["rotation_dim=3", *(f"{name}={value}" for name, value in options.items())]
    assert make(**options).extra_repr() == ", ".join(told)
    assert ", ".join(told) in repr(make(**options))


@all_options
@all_makers
def test_a_layer_with_the_state_of_another_gives_its_output(make: Make, options: dict) -> None:
    layer, copy = trained(make(**options)), trained(make(**options))
    z = inputs(layer)
    assert not torch.equal(copy(z), layer(z))
    copy.load_state_dict(layer.state_dict())
    assert torch.equal(copy(z), layer(z))


@all_modes
@all_options
@all_makers
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_a_layer_works_in_every_dtype(
    dtype: torch.dtype, make: Make, options: dict, training: bool
) -> None:
    layer = make(**options).to(dtype).train(training)
    z = inputs(layer, dtype=dtype).requires_grad_()
    output = layer(z)
    output.sum().backward()
    assert output.dtype == z.grad.dtype == dtype
    assert z.grad.isfinite().all()


@all_options
@all_makers
def test_autocast_is_as_close_as_bfloat16_can_be(make: Make, options: dict) -> None:
    """The output is off by a few roundings of bfloat16, measured over all of it."""
    layer = trained(make(8, **options)).float()
    z = inputs(layer, b=8, dtype=torch.float)
    with torch.autocast("cpu", torch.bfloat16):
        rough = layer(z)
    exact = layer(z)
    assert rough.dtype == torch.bfloat16
    assert (rough - exact).norm() < 4 * torch.finfo(torch.bfloat16).eps * exact.norm()


@all_options
@all_makers
def test_a_batch_of_one_gives_what_it_gives_among_others(make: Make, options: dict) -> None:
    layer = trained(make(**options))
    z = inputs(layer)
    torch.testing.assert_close(layer(z[:1]), layer(z)[:1])


def assert_compiles(layer: RotatingLayer, **settings: str) -> None:
    torch.compiler.reset()
    z = inputs(layer, dtype=torch.float)
    compiled = torch.compile(layer, fullgraph=True, **settings)
    torch.testing.assert_close(compiled(z), layer(z))


@all_options
@all_makers
def test_a_layer_compiles_to_one_graph(make: Make, options: dict) -> None:
    assert_compiles(make(**options).eval(), backend="aot_eager")


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # inductor's own imports
def test_a_layer_compiles_to_machine_code() -> None:
    assert_compiles(conv().eval())


# How layers start.


@pytest.mark.parametrize(
    ("layer", "fan_in"),
    [
        (RotatingLinear(3, 99, rotation_dim=8), 3),
        (RotatingConv2d(3, 99, 5, rotation_dim=8), 3 * 5 * 5),
        (RotatingConvTranspose2d(3, 99, 5, rotation_dim=8), 99 * 5 * 5),
    ],
    ids=describe,
)
def test_rotation_biases_start_within_pytorchs_bound(layer: RotatingLayer, fan_in: int) -> None:
    """Uniform up to 1 / sqrt(fan_in): of 792 draws the largest is nearly there."""
    largest = layer.bias.abs().max().item() * fan_in**0.5
    assert 0.95 < largest <= 1


def test_every_rotation_dimension_has_its_own_bias() -> None:
    assert conv(8).bias.flatten().unique().numel() == 8 * 4


# What is wrong is told.

SHAPE = {"linear": "(b, n=3, c=3)", "conv": "(b, n=3, c=3, h, w)"}
SHAPE["conv_transpose"] = SHAPE["conv"]


def explain(layer: RotatingLayer, shape: tuple[int, ...]) -> str:
    with pytest.raises(InputError) as error:
        layer(torch.zeros(shape))
    return str(error.value)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    "wrong", [(2,), (2, 3), (2, 4, 3), (2, 3, 2), (2, 3, 6, 6), (2, 4, 3, 6, 6), (2, 3, 2, 6, 6)]
)
def test_a_wrong_shape_is_explained(name: str, wrong: tuple[int, ...]) -> None:
    """Rank, rotation dimension and channels: what was wanted, what came, what to do."""
    told = explain(MAKERS[name](), wrong)
    assert told.startswith(f"z should have shape {SHAPE[name]}, got {wrong}.")
    assert "Lift images with rf.lift(x, n=3)." in told


@all_makers
def test_an_empty_batch_is_explained(make: Make) -> None:
    layer = make()
    shape = (0, *inputs(layer).shape[1:])
    told = explain(layer, shape)
    assert told.startswith(f"z is empty: its shape is {shape}.")


@all_makers
@pytest.mark.parametrize("n", [1, 0, -1])
def test_a_rotation_dimension_in_which_nothing_turns_is_explained(make: Make, n: int) -> None:
    with pytest.raises(InputError, match=rf"n should be at least 2, got {n}\."):
        make(n)


def test_input_errors_can_be_caught_as_value_errors() -> None:
    assert issubclass(InputError, ValueError)
