"""Every model in ``MODELS`` keeps the promises of ``AutoEncoder``."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.models import MODELS, AutoEncoder, ComplexAutoEncoder, StandardAutoEncoder
from rotating_features.vectors import lift, magnitude

EXTRA = {"classifier": {"classes": 5}}
VECTORS = {"rotating": 8, "complex": 2, "standard": 0, "classifier": 8}

all_kinds = pytest.mark.parametrize("kind", MODELS)
both_inputs = pytest.mark.parametrize("features", [False, True], ids=["images", "features"])


def make(
    kind: str, size: tuple[int, int] = (9, 14), channels: int = 2, **options: bool
) -> AutoEncoder:
    return MODELS[kind](
        channels=channels, size=size, hidden_dim=2, **EXTRA.get(kind, {}), **options
    )


def images(model: AutoEncoder, b: int = 3) -> Tensor:
    return torch.rand(b, model.channels, *model.size).to(model.readout.weight.dtype)


def loss_of(model: AutoEncoder, x: Tensor) -> Tensor:
    if not model.needs_labels:
        return model.loss(x)
    labels = torch.zeros(len(x), model.classes)
    labels[:, 0] = 1
    return model.loss(x, labels=labels)


@all_kinds
def test_the_rotation_dimension_is_told(kind: str) -> None:
    assert make(kind).rotation_dim == VECTORS[kind]


@all_kinds
@both_inputs
@given(st.integers(1, 20), st.integers(1, 20))
@settings(max_examples=3)
def test_every_grid_comes_back_in_its_own_size(kind: str, features: bool, h: int, w: int) -> None:
    model = make(kind, (h, w), features=features).eval()
    reconstruction, z = model(images(model))
    assert reconstruction.shape == (3, 2, h, w)
    if VECTORS[kind]:
        assert z.shape == (3, VECTORS[kind], 2, h, w)
    else:
        assert z is None


@all_kinds
@both_inputs
def test_settings_rebuild_the_model(kind: str, features: bool) -> None:
    model = make(kind, features=features)
    again = MODELS[kind](**model.settings)
    again.load_state_dict(model.state_dict())
    x = images(model)
    assert torch.equal(again.eval()(x).reconstruction, model.eval()(x).reconstruction)
    assert again.settings == model.settings


@pytest.mark.parametrize("kind", ["rotating", "complex", "standard"])
@both_inputs
def test_the_loss_is_the_error_of_what_forward_gives(kind: str, features: bool) -> None:
    model = make(kind, features=features).eval()
    x = images(model)
    torch.testing.assert_close(model.loss(x), F.mse_loss(model(x).reconstruction, x))


@pytest.mark.parametrize("kind", ["rotating", "complex", "standard"])
def test_labels_are_refused_by_those_that_need_none(kind: str) -> None:
    model = make(kind)
    with pytest.raises(InputError, match="learns without labels"):
        model.loss(images(model), labels=torch.ones(3, 5))


@pytest.mark.parametrize(
    ("kind", "count"),
    [("rotating", 377_740), ("complex", 368_326), ("standard", 366_757), ("classifier", 378_120)],
)
def test_the_model_for_4shapes_has_the_known_parameter_count(kind: str, count: int) -> None:
    """Two biases a channel in the complex one, as with n = 2, and one in the standard one."""
    model = MODELS[kind](channels=1, size=(32, 32), hidden_dim=32, **EXTRA.get(kind, {}))
    assert sum(p.numel() for p in model.parameters()) == count


@all_kinds
def test_a_black_image_gives_finite_gradients(kind: str) -> None:
    model = make(kind)
    loss_of(model, torch.zeros(2, 2, 9, 14)).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@all_kinds
def test_the_gradient_reaches_every_parameter(kind: str) -> None:
    """But for the last layer's phases, which no pixel depends on."""
    model = make(kind, (16, 16))
    if kind == "complex":
        for name, p in model.named_parameters():
            if name.endswith("phase_bias"):
                torch.nn.init.normal_(p)
    loss_of(model, images(model, b=8)).backward()
    unreached = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert unreached == (["decoder.4.phase_bias"] if kind == "complex" else [])


@all_kinds
def test_an_image_is_encoded_alike_alone_and_among_others(kind: str) -> None:
    model = make(kind).double().eval()
    x = images(model)
    torch.testing.assert_close(model.encode(x[:1]), model.encode(x)[:1])
    assert model.encode(x).shape == ((3, VECTORS[kind], 4) if VECTORS[kind] else (3, 4))


@all_kinds
@pytest.mark.parametrize("impl", ["auto", "torch"])
def test_the_implementation_can_be_chosen(kind: str, impl: str) -> None:
    model = MODELS[kind](channels=1, size=(8, 8), hidden_dim=2, impl=impl, **EXTRA.get(kind, {}))
    assert loss_of(model, torch.rand(2, 1, 8, 8)).isfinite()
    assert "impl" not in model.settings


# The complex one.


def turn(z: Tensor, angle: float) -> Tensor:
    turned = torch.complex(z[:, 0], z[:, 1]) * torch.polar(torch.ones(()), torch.tensor(angle))
    return torch.stack([turned.real, turned.imag], dim=1)


def layer_by_layer(model: AutoEncoder, z: Tensor) -> Tensor:
    for layer in model.encoder:
        z = layer(z)
    grid = z.shape[-2:]
    flat = z.movedim(2, -1).flatten(2)
    z = model.expand(model.squeeze(flat)).unflatten(2, (*grid, -1)).movedim(-1, 2)
    for layer in model.decoder:
        z = layer(z)
    return z


def complex_model() -> ComplexAutoEncoder:
    model = ComplexAutoEncoder(channels=2, size=(16, 16), hidden_dim=4).double()
    for name, p in model.named_parameters():
        if name.endswith("phase_bias"):
            torch.nn.init.normal_(p)
    return model


@settings(max_examples=5)
@given(st.floats(-4, 4))
def test_turning_the_phase_of_the_input_turns_that_of_the_output(angle: float) -> None:
    torch.manual_seed(0)
    model = complex_model()
    x = images(model)
    z = layer_by_layer(model, lift(x, n=2))
    torch.testing.assert_close(model(x).z, z, rtol=0, atol=1e-6)
    turned = layer_by_layer(model, turn(lift(x, n=2), angle))
    torch.testing.assert_close(turned, turn(z, angle), rtol=0, atol=1e-5)
    torch.testing.assert_close(model.readout(magnitude(turned)), model(x).reconstruction)
    assert magnitude(z).max() > 0.1, "the comparison is of nothing with nothing"


# The standard one.


def test_standard_features_are_a_stack_of_pytorchs_layers() -> None:
    model = StandardAutoEncoder(channels=2, size=(16, 16), hidden_dim=4).double().eval()
    x = images(model)
    z = layer_by_layer_standard(model, x)
    torch.testing.assert_close(model(x).reconstruction, model.readout(z))


def layer_by_layer_standard(model: StandardAutoEncoder, x: Tensor) -> Tensor:
    for layer in model.encoder:
        x = layer(x)
    grid = x.shape[-2:]
    flat = x.movedim(1, -1).flatten(1)
    x = model.expand(model.squeeze(flat)).unflatten(1, (*grid, -1)).movedim(-1, 1)
    for layer in model.decoder:
        x = layer(x)
    return x
