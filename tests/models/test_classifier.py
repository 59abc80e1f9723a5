import pytest
import torch
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.models import RotatingAutoEncoder, RotatingClassifier
from rotating_features.vectors import magnitude

CLASSES = 5


def make(**options: bool) -> RotatingClassifier:
    settings = {"channels": 2, "size": (9, 14), "hidden_dim": 2, "rotation_dim": 3}
    return RotatingClassifier(**settings, classes=CLASSES, **options)


def batch(b: int = 6) -> tuple[Tensor, Tensor]:
    return torch.rand(b, 2, 9, 14), (torch.rand(b, CLASSES) < 0.4).float()


@pytest.mark.parametrize("features", [False, True])
def test_the_loss_is_squared_error_plus_cross_entropy(features: bool) -> None:
    """Computed by hand."""
    model = make(features=features).eval()
    torch.nn.init.normal_(model.class_readout.weight)
    torch.nn.init.normal_(model.class_readout.bias)
    x, labels = batch()
    mse = (model(x).reconstruction - x).pow(2).mean()
    p = model.classify(x).probabilities
    bce = -(labels * p.log() + (1 - labels) * (1 - p).log()).mean()
    torch.testing.assert_close(model.loss(x, labels=labels), mse + bce)


def test_probabilities_are_read_off_the_lengths_of_what_the_class_layer_gives() -> None:
    model = make().double().eval()
    torch.nn.init.normal_(model.class_readout.weight)
    x = batch()[0].double()
    probabilities, z = model.classify(x)
    torch.testing.assert_close(z, model.f_class(model.encode(x)))
    w, b = model.class_readout.weight, model.class_readout.bias
    torch.testing.assert_close(probabilities, (w * magnitude(z) + b).sigmoid())
    assert z.shape == (6, 3, CLASSES)


def test_reconstruction_is_that_of_the_autoencoder_inside() -> None:
    model = make().eval()
    settings = {name: value for name, value in model.settings.items() if name != "classes"}
    inside = RotatingAutoEncoder(**settings).eval()
    inside.load_state_dict(model.state_dict(), strict=False)
    x, _ = batch()
    assert torch.equal(model(x).z, inside(x).z)


def test_labels_of_any_type_count_alike() -> None:
    model = make().eval()
    x, labels = batch()
    losses = [model.loss(x, labels=labels.to(kind)) for kind in (torch.bool, torch.uint8)]
    assert torch.equal(losses[0], model.loss(x, labels=labels))
    assert torch.equal(losses[1], losses[0])


def test_the_loss_stays_finite_when_the_model_is_sure_and_wrong() -> None:
    model = make().eval()
    torch.nn.init.constant_(model.class_readout.bias, 1e4)
    x, _ = batch()
    loss = model.loss(x, labels=torch.zeros(6, CLASSES))
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_labels_reach_the_encoder() -> None:
    """Other labels, another gradient."""
    model = make()
    x, labels = batch()
    weight = model.encoder[0].weight
    one, other = (
        torch.autograd.grad(model.loss(x, labels=given), weight)[0]
        for given in (labels, 1 - labels)
    )
    assert not torch.allclose(one, other)


def test_missing_labels_are_explained() -> None:
    with pytest.raises(InputError, match=r"got no labels.\n.*row of 5 zeros and ones"):
        make().loss(batch()[0])


@pytest.mark.parametrize("shape", [(6,), (6, 4), (5, 5), (6, 5, 1)])
def test_labels_of_a_wrong_shape_are_explained(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"labels should have shape \(b=6, classes=5\)"):
        make().loss(batch()[0], labels=torch.zeros(shape))


@pytest.mark.parametrize("classes", [1, 0, -3])
def test_a_classifier_without_a_choice_is_explained(classes: int) -> None:
    with pytest.raises(InputError, match=f"classes should be at least 2, got {classes}"):
        RotatingClassifier(channels=1, size=(8, 8), classes=classes)
