from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from rotating_features._check import InputError
from rotating_features.models import RotatingAutoEncoder
from rotating_features.vectors import lift, magnitude

OPTIONS = {
    "default": {},
    "bias_only_turns": {"bias_in_magnitude": False},
    "no_binding": {"binding": False},
}
FEATURES = {"images": False, "features": True}

all_options = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
both_inputs = pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)


def make(
    size: tuple[int, int] = (16, 16), channels: int = 3, n: int = 3, **options: bool
) -> RotatingAutoEncoder:
    return RotatingAutoEncoder(
        channels=channels, size=size, hidden_dim=4, rotation_dim=n, **options
    )


def images(model: RotatingAutoEncoder, b: int = 2) -> Tensor:
    dtype = model.readout.weight.dtype
    return torch.rand(b, model.channels, *model.size).to(dtype)


# The paper's architecture table, row by row. Starred rows are for pretrained features.


class Row(NamedTuple):
    layer: str
    shrink: int  # h / shrink, w / shrink
    width: str
    stride: int
    padding: int
    output_padding: int
    starred: bool = False


PAPER_ENCODER = [
    Row("Conv", 2, "d", 2, 1, 0),
    Row("Conv", 2, "d", 1, 1, 0),
    Row("Conv", 4, "2d", 2, 1, 0),
    Row("Conv", 4, "2d", 1, 1, 0),
    Row("Conv", 8, "2d", 2, 1, 0),
    Row("Conv", 8, "2d", 1, 1, 0, starred=True),
]
PAPER_DECODER = [
    Row("TransConv", 4, "2d", 2, 1, 1),
    Row("Conv", 4, "2d", 1, 1, 0),
    Row("TransConv", 2, "2d", 2, 1, 1),
    Row("Conv", 2, "d", 1, 1, 0),
    Row("TransConv", 1, "d", 2, 1, 1),
    Row("Conv", 1, "c", 1, 1, 0, starred=True),
]
KINDS = {"Conv": nn.Conv2d, "TransConv": nn.ConvTranspose2d}


def paper_rows(part: str, *, features: bool) -> list[Row]:
    """Without the starred rows "the feature dimension of the final TransConv layer is c"."""
    rows = {"encoder": PAPER_ENCODER, "decoder": PAPER_DECODER}[part]
    if features:
        return rows
    rows = [row for row in rows if not row.starred]
    return rows if part == "encoder" else [*rows[:-1], rows[-1]._replace(width="c")]


def linear_maps(layers: nn.Module) -> list[nn.Module]:
    return [layer.linear_map for layer in layers.children()]


@both_inputs
@pytest.mark.parametrize("part", ["encoder", "decoder"])
def test_layers_are_those_of_the_papers_table(part: str, features: bool) -> None:
    """Kind, width, kernel, stride and both paddings."""
    model = make(features=features)
    width = {"c": 3, "d": 4, "2d": 8}
    built = [
        (type(f), f.out_channels, f.kernel_size, f.stride, f.padding, f.output_padding)
        for f in linear_maps(getattr(model, part))
    ]
    assert built == [
        (
            KINDS[row.layer],
            width[row.width],
            (3, 3),
            (row.stride,) * 2,
            (row.padding,) * 2,
            (row.output_padding,) * 2,
        )
        for row in paper_rows(part, features=features)
    ]


def grids(model: RotatingAutoEncoder, part: str) -> list[tuple[int, ...]]:
    """Height and width behind every layer of a part, seen while an image passes."""
    seen = []
    for layer in getattr(model, part):

        def watched(s: torch.Tensor, f=layer._map) -> torch.Tensor:
            y = f(s)
            seen.append(tuple(y.shape[2:4]))
            return y

        layer._map = watched
    model.eval()(images(model))
    return seen


@both_inputs
@pytest.mark.parametrize("size", [(32, 32), (14, 14), (9, 17), (1, 3)])
def test_encoder_grids_are_the_fractions_of_the_papers_table(
    size: tuple[int, int], features: bool
) -> None:
    """All fractions are rounded up."""
    h, w = size
    wanted = [
        (-(-h // row.shrink), -(-w // row.shrink))
        for row in paper_rows("encoder", features=features)
    ]
    assert grids(make(size, features=features), "encoder") == wanted


@both_inputs
def test_decoder_grids_are_the_fractions_of_the_papers_table(features: bool) -> None:
    wanted = [
        (32 // row.shrink, 48 // row.shrink) for row in paper_rows("decoder", features=features)
    ]
    assert grids(make((32, 48), features=features), "decoder") == wanted


@pytest.mark.parametrize(("size", "grid"), [((32, 32), 4 * 4), ((14, 9), 2 * 2), ((1, 17), 3)])
def test_linear_layers_are_those_of_the_papers_table(size: tuple[int, int], grid: int) -> None:
    """From (h/8 * w/8 * 2d) to 2d and back."""
    model = make(size)
    squeeze, expand = model.squeeze.linear_map, model.expand.linear_map
    assert (squeeze.in_features, squeeze.out_features) == (grid * 8, 8)
    assert (expand.in_features, expand.out_features) == (8, grid * 8)


@pytest.mark.parametrize(("n", "count"), [(2, 368_326), (8, 377_740)])
def test_the_model_for_4shapes_has_the_known_parameter_count(n: int, count: int) -> None:
    model = RotatingAutoEncoder(channels=1, size=(32, 32), hidden_dim=32, rotation_dim=n)
    assert sum(p.numel() for p in model.parameters()) == count


def test_images_are_lifted_as_they_are_and_read_out_through_a_sigmoid() -> None:
    model = make()
    assert model.prepare is None
    assert model.readout.sigmoid


def test_features_are_normalised_before_the_lift_and_read_out_as_they_are() -> None:
    model = make(features=True)
    assert [type(layer) for layer in model.prepare] == [nn.BatchNorm2d, nn.ReLU]
    assert model.prepare[0].num_features == 3
    assert not model.readout.sigmoid


def test_options_reach_every_layer() -> None:
    model = make(n=5, bias_in_magnitude=False, binding=False)
    layers = [*model.encoder, model.squeeze, model.expand, *model.decoder]
    options = {(layer.rotation_dim, layer.bias_in_magnitude, layer.binding) for layer in layers}
    assert options == {(5, False, False)}


# What the model computes.


def layer_by_layer(model: RotatingAutoEncoder, x: Tensor) -> Tensor:
    """The rotating output before it is cropped, by calls of the public layers in order."""
    z = lift(x if model.prepare is None else model.prepare(x), model.rotation_dim)
    for layer in model.encoder:
        z = layer(z)
    grid = z.shape[-2:]
    flat = z.movedim(2, -1).flatten(2)  # the model keeps channels last
    z = model.expand(model.squeeze(flat)).unflatten(2, (*grid, -1)).movedim(-1, 2)
    for layer in model.decoder:
        z = layer(z)
    return z


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@both_inputs
@all_options
def test_the_model_is_its_layers_one_after_the_other(
    options: dict, features: bool, training: bool
) -> None:
    """Carrying the magnitude along gives what computing it anew in every layer gives."""
    model = make(features=features, **options).double().train(training)
    x = images(model)
    z = layer_by_layer(model, x)
    reconstruction = model.readout(magnitude(z))
    output = model(x)
    torch.testing.assert_close(output.z, z, rtol=0, atol=1e-10)
    torch.testing.assert_close(output.reconstruction, reconstruction, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("size", "margins"),
    [
        ((12, 14), ((2, 2), (1, 1))),
        ((11, 10), ((2, 3), (3, 3))),
        ((15, 16), ((0, 1), (0, 0))),
        ((9, 13), ((3, 4), (1, 2))),
    ],
)
def test_what_is_drawn_too_large_is_cropped_to_the_centre(
    size: tuple[int, int], margins: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    """The decoder draws 16 by 16; margins are (above, below) and (left, right)."""
    model = make(size).double().eval()
    x = images(model)
    full = layer_by_layer(model, x)
    (top, bottom), (left, right) = margins
    centre = full[..., top : 16 - bottom, left : 16 - right]
    torch.testing.assert_close(model(x).z, centre, rtol=0, atol=1e-10)


@settings(max_examples=15)
@given(st.integers(1, 20), st.integers(1, 20), st.booleans())
def test_every_grid_comes_back_in_its_own_size(h: int, w: int, features: bool) -> None:
    model = make((h, w), channels=2, n=2, features=features).eval()
    reconstruction, z = model(images(model))
    assert reconstruction.shape == (2, 2, h, w)
    assert z.shape == (2, 2, 2, h, w)


@both_inputs
def test_the_loss_is_the_error_of_what_forward_gives(features: bool) -> None:
    model = make(features=features).eval()
    x = images(model)
    expected = torch.nn.functional.mse_loss(model(x).reconstruction, x)
    torch.testing.assert_close(model.loss(x), expected)


def test_the_loss_of_images_of_another_size_is_refused() -> None:
    """Though a grid of 4 x 4 would do for them."""
    model = make((32, 32))
    with pytest.raises(ValueError, match="x should have shape"):
        model.loss(torch.rand(2, 3, 30, 30))


def test_the_implementation_can_be_chosen() -> None:
    torch.manual_seed(0)
    settings = {"channels": 1, "size": (8, 8), "hidden_dim": 4, "rotation_dim": 3}
    auto, plain, kernels = (
        RotatingAutoEncoder(**settings, impl=impl).double() for impl in ("auto", "torch", "triton")
    )
    plain.load_state_dict(auto.state_dict())
    x = torch.rand(2, 1, 8, 8, dtype=torch.double)
    torch.testing.assert_close(plain(x).z, auto(x).z)
    torch.testing.assert_close(plain.loss(x), auto.loss(x))
    with pytest.raises(ValueError, match="impl='triton' should get a CUDA tensor"):
        kernels(x)
    assert "impl" not in auto.settings  # it changes nothing that a file should remember


def test_encoding_gives_the_bottleneck() -> None:
    model = make(n=5).eval()
    assert model.encode(images(model)).shape == (2, 5, 2 * 4)


def test_an_image_is_encoded_alike_alone_and_among_others() -> None:
    model = make().double().eval()
    x = images(model)
    torch.testing.assert_close(model.encode(x[:1]), model.encode(x)[:1])


def test_images_come_back_between_zero_and_one() -> None:
    model = make().eval()
    reconstruction = model(100 * images(model)).reconstruction
    assert (reconstruction >= 0).all()
    assert (reconstruction <= 1).all()


def unreached(model: RotatingAutoEncoder) -> list[str]:
    """Parameters without any gradient after one look at random images."""
    x = images(model, b=8)
    nn.functional.mse_loss(model(x).reconstruction, x).backward()
    return [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]


@both_inputs
@pytest.mark.parametrize("binding", [True, False])
def test_the_gradient_reaches_every_parameter(binding: bool, features: bool) -> None:
    assert unreached(make(features=features, binding=binding)) == []


@both_inputs
@pytest.mark.parametrize("binding", [True, False])
def test_a_bias_that_only_turns_learns_nothing_in_the_last_layer(
    binding: bool, features: bool
) -> None:
    """No layer after it looks at its orientation; all other parameters learn."""
    model = make(features=features, binding=binding, bias_in_magnitude=False)
    assert unreached(model) == [f"decoder.{len(model.decoder) - 1}.bias"]


def test_a_black_image_gives_finite_gradients() -> None:
    model = make()
    x = torch.zeros(2, 3, 16, 16)
    nn.functional.mse_loss(model(x).reconstruction, x).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


# What is wrong is told.


def explain(model: RotatingAutoEncoder, x: Tensor) -> str:
    with pytest.raises(InputError) as error:
        model(x)
    return str(error.value)


@both_inputs
@pytest.mark.parametrize(
    "wrong", [(3, 16, 16), (2, 1, 16, 16), (2, 3, 15, 16), (2, 3, 16, 17), (2, 3, 3, 16, 16)]
)
def test_a_wrong_shape_is_explained(wrong: tuple[int, ...], features: bool) -> None:
    """Rank, channels, height and width: what was wanted, what came, what to do."""
    told = explain(make(features=features), torch.zeros(wrong))
    assert told.startswith(f"x should have shape (b, c=3, h=16, w=16), got {wrong}.")
    assert "Resize images first." in told


@both_inputs
def test_an_empty_batch_is_explained(features: bool) -> None:
    told = explain(make(features=features), torch.zeros(0, 3, 16, 16))
    assert told.startswith("x is empty: its shape is (0, 3, 16, 16).")


def test_negative_pixels_are_explained() -> None:
    model = make()
    x = images(model)
    x[1, 2, 3, 4] = -0.25
    told = explain(model, x)
    assert told.startswith("x should hold values of at least 0, got a minimum of -0.25.")
    assert "scale images to [0, 1]" in told


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_pixels_that_are_no_numbers_are_counted(value: float) -> None:
    model = make()
    x = images(model)
    x[:, 0, 0, 0] = value
    told = explain(model, x)
    assert told.startswith("x should hold finite numbers, got 2 that are nan or infinite.")


def test_features_may_be_negative() -> None:
    model = make(features=True).eval()
    assert model(images(model) - 0.5).reconstruction.isfinite().all()


@pytest.mark.parametrize(
    "wrong", [{"channels": 0}, {"hidden_dim": 0}, {"size": (0, 8)}, {"size": (8, -1)}]
)
def test_a_model_of_nothing_is_explained(wrong: dict) -> None:
    settings = {"channels": 3, "size": (8, 8), "hidden_dim": 4} | wrong
    came = "{channels}, {hidden_dim} and {size}".format(**settings)
    with pytest.raises(InputError) as error:
        RotatingAutoEncoder(**settings)
    assert str(error.value).endswith(f"should be at least 1, got {came}.")


def test_a_rotation_dimension_in_which_nothing_turns_is_explained() -> None:
    with pytest.raises(InputError, match=r"n should be at least 2, got 1\."):
        make(n=1)
