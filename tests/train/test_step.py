import copy
from collections.abc import Callable, Iterator

import pytest
import torch
from torch.nn import functional as F

from rotating_features.machine import can_compile
from rotating_features.models import MODELS, AutoEncoder, ComplexAutoEncoder, RotatingAutoEncoder
from rotating_features.train import Step


def make(**options) -> RotatingAutoEncoder:
    torch.manual_seed(0)
    return RotatingAutoEncoder(channels=1, size=(8, 8), hidden_dim=4, rotation_dim=3, **options)


def flavour(kind: str, side: int = 8, hidden_dim: int = 4) -> AutoEncoder:
    torch.manual_seed(0)
    extra = {"rotating": {"rotation_dim": 3}, "classifier": {"rotation_dim": 3, "classes": 5}}
    own = extra.get(kind, {})
    return MODELS[kind](channels=1, size=(side, side), hidden_dim=hidden_dim, **own)


def labels_for(model: AutoEncoder, b: int) -> list[torch.Tensor]:
    return [(torch.rand(b, 5) < 0.4).float()] if model.needs_labels else []


def images(b: int = 4, side: int = 8) -> torch.Tensor:
    return (torch.rand(b, 1, side, side) < 0.4).float()


def test_a_step_is_forward_backward_clip_and_adam() -> None:
    """Against the same four lines written out with PyTorch's own parts."""
    ours, theirs = make(), make()
    step = Step(ours, grad_clip=0.1, weight_decay=1e-2)
    adam = torch.optim.Adam(theirs.parameters(), lr=1.0, weight_decay=1e-2)
    for rate in (1e-3, 2e-3):
        x = images()
        loss = step(x, rate)
        for group in adam.param_groups:
            group["lr"] = rate
        adam.zero_grad()
        expected = F.mse_loss(theirs(x).reconstruction, x)
        expected.backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.1)
        adam.step()
        torch.testing.assert_close(loss, expected.detach())
    for ours_p, theirs_p in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(ours_p, theirs_p, rtol=1e-4, atol=1e-6)


def test_training_lowers_the_loss() -> None:
    step, x = Step(make()), images()
    first = step(x, 1e-2)
    for _ in range(60):
        last = step(x, 1e-2)
    assert last < 0.7 * first


def test_no_clipping_is_an_option() -> None:
    clipped, free = make(), make()
    x = images()
    Step(clipped, grad_clip=1e-9)(x, 1e-2)
    Step(free, grad_clip=None)(x, 1e-2)
    assert any(
        not torch.equal(a, b) for a, b in zip(clipped.parameters(), free.parameters(), strict=True)
    )


def test_the_state_is_all_that_the_next_step_depends_on() -> None:
    x = images()
    one = Step(make())
    one(x, 1e-3)
    state = copy.deepcopy(one.state_dict())
    other = Step(make())
    other.load_state_dict(state)
    assert torch.equal(one(x, 1e-3), other(x, 1e-3))
    for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_frozen_weights_stay_as_they_are() -> None:
    model = make()
    frozen = model.encoder[0].linear_map.weight.requires_grad_(False)
    before, other = frozen.clone(), model.encoder[1].linear_map.weight.clone()
    Step(model)(images(), 1e-2)
    assert torch.equal(frozen, before)
    assert not torch.equal(model.encoder[1].linear_map.weight, other)


def test_bfloat16_is_close_to_float32() -> None:
    x = images(16)
    exact = Step(make())(x, 1e-3)
    rounded = Step(make(), precision="bfloat16")(x, 1e-3)
    assert not torch.equal(exact, rounded)
    torch.testing.assert_close(exact, rounded, rtol=2e-2, atol=0)


def test_weights_stay_in_float32_under_bfloat16() -> None:
    step = Step(make(), precision="bfloat16")
    step(images(), 1e-3)
    assert {p.dtype for p in step.model.parameters()} == {torch.float32}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_flavour_trains(kind: str, precision: str) -> None:
    step = Step(flavour(kind), precision=precision)
    x, labels = images(16), labels_for(step.model, 16)
    losses = [step(x, 1e-2, *labels) for _ in range(10)]
    assert losses[-1] < losses[0]
    assert step.is_finite()


@pytest.mark.parametrize("kind", MODELS)
def test_a_step_of_any_flavour_follows_the_gradient_of_its_loss(kind: str) -> None:
    ours, theirs = flavour(kind), flavour(kind)
    x = images(16)
    labels = labels_for(ours, 16)
    loss = Step(ours, grad_clip=None)(x, 1e-3, *labels)
    expected = theirs.loss(x, labels=labels[0] if labels else None)
    expected.backward()
    torch.optim.Adam(theirs.parameters(), lr=1e-3).step()
    torch.testing.assert_close(loss, expected.detach())
    for ours_p, theirs_p in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(ours_p, theirs_p, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("background", [0.0, 0.5], ids=["black", "grey"])
def test_phases_that_start_at_zero_leave_it(background: float) -> None:
    """A network of real numbers alone would stay one for ever."""
    torch.manual_seed(0)
    step = Step(ComplexAutoEncoder(channels=1, size=(8, 8), hidden_dim=4))
    for _ in range(6):
        step(background + (1 - background) * images(16), 1e-3)
    phases = [layer.phase_bias for layer in (*step.model.encoder, *step.model.decoder[:-1])]
    assert all(phase.abs().max() > 1e-4 for phase in phases)


@pytest.mark.slow
@pytest.mark.skipif(not can_compile(torch.device("cpu")), reason="needs a C++ compiler")
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_compiled_step_gives_the_same_loss(precision: str, kind: str) -> None:
    torch.compiler.reset()
    plain, compiled = (
        Step(flavour(kind), precision=precision),
        Step(flavour(kind), precision=precision, compiled=True),
    )
    x = images(16)
    labels = labels_for(plain.model, 16)
    for _ in range(3):
        a, b = plain(x, 1e-3, *labels), compiled(x, 1e-3, *labels)
    torch.testing.assert_close(a, b, rtol=1e-4 if precision == "float32" else 2e-2, atol=0)


@pytest.fixture
def without_tf32() -> Iterator[Callable[[], None]]:
    """A call that switches TF32 off until the test ends; making a step switches it on."""
    places = torch.backends.cuda.matmul, torch.backends.cudnn.conv
    before = [place.fp32_precision for place in places]

    def switch_off() -> None:
        for place in places:
            place.fp32_precision = "ieee"

    yield switch_off
    for place, precision in zip(places, before, strict=True):
        place.fp32_precision = precision


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores")  # which compiling would like
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("compiled", [False, True])
def test_steps_on_a_gpu_are_those_on_the_cpu(
    compiled: bool, kind: str, without_tf32: Callable[[], None]
) -> None:
    """Losses and gradients. At a rate above that of rounding errors both would soon part, and so
    they would with TF32: where a ReLU begins, a rounding error decides."""
    cpu = Step(flavour(kind, side=32, hidden_dim=16))
    gpu = Step(flavour(kind, side=32, hidden_dim=16).cuda(), compiled=compiled)
    without_tf32()
    for _ in range(4):
        x = images(16, side=32)
        labels = labels_for(cpu.model, 16)
        a, b = cpu(x, 1e-8, *labels), gpu(x.cuda(), 1e-8, *(given.cuda() for given in labels))
        torch.testing.assert_close(a, b.cpu(), rtol=1e-4, atol=0)
    assert (cpu.mean - gpu.mean.cpu()).norm() < 0.1 * cpu.mean.norm()


@pytest.mark.gpu
def test_a_gpu_step_resumes_where_another_stopped() -> None:
    xs = [images().cuda() for _ in range(4)]
    one = Step(make().cuda())
    for x in xs[:2]:
        one(x, 1e-3)
    state = copy.deepcopy(one.state_dict())
    other = Step(make().cuda())
    other.load_state_dict(state)
    for x in xs[2:]:
        a, b = one(x, 1e-3), other(x, 1e-3)
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
