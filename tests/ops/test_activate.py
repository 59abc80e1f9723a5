import copy
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from rotating_features.ops.activate import Norm, activate, activate_reference
from rotating_features.ops.cpp import library
from rotating_features.testing import assert_as_exact_as
from rotating_features.vectors import lift, magnitude

needs_a_compiler = pytest.mark.skipif(
    library("activate", torch.float32, N=3, SHORTEST=1e-12) is None, reason="needs a C++ compiler"
)
SWITCHES = {"bias_in_magnitude": True, "binding": True, "only_magnitude": False}


def make(n: int, c: int, *, items: bool = False) -> tuple[Tensor, Norm]:
    norm = nn.LayerNorm(c) if items else nn.BatchNorm1d(c)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    return torch.randn(n, c), norm


def results(function, norm: Norm, y: Tensor, bias: Tensor, g: Tensor, **switches) -> list[Tensor]:
    """Output, every gradient, and the running statistics afterwards."""
    norm = copy.deepcopy(norm).to(bias)
    y, bias = y.clone().requires_grad_(), bias.clone().requires_grad_()
    out = function(y, bias, norm, **{**SWITCHES, **switches})
    wanted = (y, bias, norm.weight, norm.bias)
    gradients = torch.autograd.grad(out, wanted, g.to(out), materialize_grads=True)
    return [out, *gradients, *norm.buffers()]


@pytest.mark.parametrize("binding", [True, False])
def test_one_slot_stands_for_a_lifted_image(binding: bool) -> None:
    """The response to an image is the response to its lift, of which n slots are zero."""
    n, c = 4, 3
    bias, norm = make(n, c)
    f = torch.randn(2, 5, 5, c)
    everything = torch.cat([lift(f, n), f.unsqueeze(1)], dim=1)
    full = activate(everything if binding else everything[:, :n], bias, norm, binding=binding)
    torch.testing.assert_close(activate(f.unsqueeze(1), bias, norm, binding=binding), full)


@pytest.mark.parametrize("items", [True, False])
def test_magnitudes_alone_are_the_last_slot(items: bool) -> None:
    bias, norm = make(3, 6, items=items)
    y = torch.randn(4, 4, 6) if items else torch.randn(4, 4, 2, 2, 6)
    everything = activate(y, bias, norm)
    torch.testing.assert_close(activate(y, bias, norm, only_magnitude=True), everything[:, -1])
    torch.testing.assert_close(magnitude(everything[:, :-1]), everything[:, -1])


def test_a_bfloat16_response_gives_bfloat16_features_of_float32_norms() -> None:
    bias, norm = make(3, 6)
    y = torch.randn(4, 4, 2, 2, 6).bfloat16()
    out = activate(y, bias, norm)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out, activate(y.float(), bias, norm).bfloat16())


def test_triton_on_the_cpu_is_refused() -> None:
    bias, norm = make(3, 6)
    with pytest.raises(ValueError, match=r"should get a CUDA tensor.*\n.*impl='auto'"):
        activate(torch.randn(4, 4, 2, 2, 6), bias, norm, impl="triton")


def test_an_unknown_impl_is_refused() -> None:
    bias, norm = make(3, 6)
    with pytest.raises(ValueError, match="impl should be 'auto', 'torch' or 'triton', got 'cuda'"):
        activate(torch.randn(4, 4, 2, 2, 6), bias, norm, impl="cuda")


DRAWS = 4
"""Of the numbers a kernel is tried on: where a result is one number, its error in one is chance."""
KERNEL_CASES = {
    "batch": (3, 5, (7, 3), {}),
    "batch, image": (2, 16, (9, 9), {"lifted": True}),
    "batch, pixels": (4, 1, (6, 6), {"only_magnitude": True}),
    "batch, neither": (2, 70, (5,), {"bias_in_magnitude": False, "binding": False}),
    "batch, turned image": (3, 8, (4, 4), {"bias_in_magnitude": False, "lifted": True}),
    "batch, in use": (3, 5, (7, 3), {"training": False}),
    "batch, many channels": (2, 200, (3, 3), {}),
    "batch, channels by the 16": (10, 48, (5, 3), {}),
    "items": (3, 37, (), {}),
    "items, neither": (2, 16, (), {"bias_in_magnitude": False, "binding": False}),
    "items, magnitudes": (3, 16, (), {"only_magnitude": True}),
}


@pytest.mark.gpu
@pytest.mark.usefixtures("few_programs")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", KERNEL_CASES)
def test_the_kernel_keeps_the_contract(case: str, dtype: torch.dtype) -> None:
    from rotating_features.ops.triton.activate import activate_triton

    assert_keeps_the_contract(activate_triton, case, dtype, "cuda")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", KERNEL_CASES)
def test_on_a_cpu_the_contract_is_kept(case: str, dtype: torch.dtype) -> None:
    assert_keeps_the_contract(activate, case, dtype, "cpu")


@needs_a_compiler
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", ["batch, image", "batch, channels by the 16"])
def test_the_kernel_for_cpus_keeps_the_contract(case: str, dtype: torch.dtype) -> None:
    assert_keeps_the_contract(partial(activate, impl="cpp"), case, dtype, "cpu")


@needs_a_compiler
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_kernel_for_cpus_is_the_same_on_any_number_of_threads(dtype: torch.dtype) -> None:
    bias, norm = make(4, 32)
    y, g = torch.randn(2, 7, 5, 3, 3, 32).to(dtype)
    found = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            found.append(results(activate, norm, y, bias, g, impl="cpp"))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


@needs_a_compiler
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_kernel_for_cpus_hides_no_nan(dtype: torch.dtype) -> None:
    bias, norm = make(3, 16)
    y = torch.randn(4, 4, 2, 2, 16).to(dtype)
    y[0, 0, 0, 0, 5] = float("nan")
    out = activate(y, bias, norm, impl="cpp").isnan()
    assert out[..., 5].all()  # of its channel, through the norm
    assert not out[..., :5].any()


@needs_a_compiler
@pytest.mark.parametrize(
    ("y", "switches"),
    [
        (torch.zeros(2, 4, 3, 3, 24), {}),  # not by the 16
        (torch.zeros(2, 4, 3, 3, 16).double(), {}),
        (torch.zeros(1, 4, 1, 1, 16), {}),  # a single pixel
        (torch.zeros(2, 4, 3, 3, 16), {"only_magnitude": True}),
        (torch.zeros(2, 4, 3, 3, 16), {"bias_in_magnitude": False}),
    ],
)
def test_what_the_kernel_for_cpus_does_not_know_is_refused(y: Tensor, switches) -> None:
    bias, norm = make(3, y.shape[-1])
    with pytest.raises(ValueError, match=r"impl='cpp' should get feature maps.*\n.*impl='auto'"):
        activate(y, bias, norm, impl="cpp", **switches)


def assert_keeps_the_contract(function, case: str, dtype: torch.dtype, device: str) -> None:
    """On odd shapes, on zero vectors and on input that is not contiguous."""
    n, c, space, options = KERNEL_CASES[case]
    options = dict(options)
    lifted, training = options.pop("lifted", False), options.pop("training", True)
    bias, norm = make(n, c, items=not space)
    norm = norm.to(device).train(training)
    bias[:, 0] = 0  # with the zeros below: vectors of length zero
    slots = 1 if lifted else n + options.get("binding", True)
    y = torch.randn(DRAWS, c, 33, slots, *space).movedim(1, -1).to(device, dtype)
    assert not y[0].is_contiguous() or c == 1
    y[:, :3] = 0
    out = (33, *space, c) if options.get("only_magnitude") else (33, n + 1, *space, c)
    g = torch.randn(DRAWS, *out).to(device, dtype)

    def of(function):
        def of_each_draw(y: Tensor, bias: Tensor, g: Tensor) -> list[Tensor]:
            draws = zip(y, g, strict=True)
            found = [results(function, norm, y, bias, g, **options) for y, g in draws]
            return [torch.stack(same) for same in zip(*found, strict=True)]

        return of_each_draw

    assert_as_exact_as(of(activate_reference), of(function), y, bias.to(device), g)


@pytest.mark.gpu
def test_a_layer_norm_over_space_falls_back_or_is_refused() -> None:
    bias, norm = make(3, 6, items=True)
    bias, norm, y = bias.cuda(), norm.cuda(), torch.randn(4, 4, 2, 2, 6).cuda()
    torch.testing.assert_close(activate(y, bias, norm), activate(y, bias, norm, impl="torch"))
    with pytest.raises(ValueError, match=r"should get a batch norm.*\n.*impl='auto'"):
        activate(y, bias, norm, impl="triton")


@pytest.mark.gpu
def test_the_kernel_gives_the_same_bits_every_time() -> None:
    bias, norm = make(8, 32)
    bias, norm, y = bias.cuda(), norm.cuda(), torch.randn(64, 9, 16, 16, 32).cuda()
    g = torch.randn_like(y)
    once = results(activate, norm, y, bias, g, impl="triton")
    again = results(activate, norm, y, bias, g, impl="triton")
    assert all(torch.equal(a, b) for a, b in zip(once, again, strict=True))
