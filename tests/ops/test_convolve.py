from contextlib import nullcontext
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from rotating_features.ops.beside import Beside
from rotating_features.ops.convolve import convolve, convolve_reference
from rotating_features.ops.cpp.weight_gradient import can_be_had
from rotating_features.testing import assert_as_exact_as


def needs_kernel(dtype: torch.dtype) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not can_be_had(dtype), reason="needs a C++ compiler, and AVX-512 for such numbers"
    )


TYPES = [
    pytest.param(dtype, marks=needs_kernel(dtype), id=str(dtype))
    for dtype in (torch.float32, torch.bfloat16)
]


def of(function, how):
    """A function of maps, weights and a gradient that gives the result and both gradients."""

    def run(x: Tensor, weight: Tensor, g: Tensor) -> list[Tensor]:
        x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
        y = function(x, weight, *how)
        return [y, *torch.autograd.grad(y, (x, weight), g)]

    return run


def test_it_is_pytorchs_convolution_with_channels_last() -> None:
    x = torch.randn(2, 7, 5, 3)
    conv = nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False)
    up = nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1, bias=False)
    ours = convolve(x, conv.weight, stride=(2, 2), padding=(1, 1))
    torch.testing.assert_close(ours, conv(x.movedim(-1, 1)).movedim(1, -1))
    ours = convolve(x, up.weight, stride=(2, 2), padding=(1, 1), output_padding=(1, 1))
    torch.testing.assert_close(ours, up(x.movedim(-1, 1)).movedim(1, -1))


@pytest.mark.parametrize("shape", [(3, 2, 1, 1), (3, 2, 0, 1), (5, 3, 2, 2), (2, 2, 0, 0)])
def test_one_channel_is_folded_to_the_same(shape: tuple[int, ...]) -> None:
    """Against the definition in float64, gradients too."""
    kernel, *rest = shape
    stride, padding, output_padding = ((k, k) for k in rest)
    x = torch.randn(2, 5, 4, 3).double().requires_grad_()
    weight = torch.randn(3, 1, kernel, kernel).double().requires_grad_()
    options = {"stride": stride, "padding": padding, "output_padding": output_padding}
    ours = convolve(x, weight, **options)
    exact = convolve_reference(x, weight, stride, padding, output_padding)
    torch.testing.assert_close(ours, exact)
    g = torch.randn_like(exact)
    for a, b in zip(*(torch.autograd.grad(y, (x, weight), g) for y in (ours, exact)), strict=True):
        torch.testing.assert_close(a, b)


GRADIENT_CASES = {  # kernel, stride, padding, output padding, side, in, out
    "paper": (3, 1, 1, 0, 8, 64, 32),
    "halving": (3, 2, 1, 1, 16, 32, 64),
    "odd": (3, 2, 1, 0, 7, 32, 32),
    "a pixel": (3, 2, 1, 1, 1, 32, 32),
    "many channels": (3, 1, 1, 0, 4, 32, 96),
    "large": (5, 3, 2, 1, 9, 32, 64),
    "windows that leave pixels out": (2, 3, 0, 0, 8, 32, 32),
    "uneven": ((3, 2), (1, 2), (0, 1), (0, 1), 6, 32, 96),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("images", [1, 5, 70])
@pytest.mark.parametrize("case", GRADIENT_CASES)
def test_the_kernel_for_gradients_on_cpus_keeps_the_contract(
    case: str, images: int, transposed: bool, dtype: torch.dtype
) -> None:
    *pairs, side, c, out = GRADIENT_CASES[case]
    kernel, stride, padding, output = (k if isinstance(k, tuple) else (k, k) for k in pairs)
    if transposed and any(o >= s for o, s in zip(output, stride, strict=True)):
        output = (0, 0)  # PyTorch wants it smaller
    how = stride, padding, output if transposed else None
    x = torch.randn(c, images, side, side + 1).movedim(0, -1).to(dtype)
    weight = torch.randn(*((c, out) if transposed else (out, c)), *kernel).to(dtype)
    g = torch.randn_like(convolve_reference(x, weight, *how))
    options = {"stride": stride, "padding": padding, "output_padding": how[2]}

    kernels = partial(convolve, impl="cpp", **options)
    assert_as_exact_as(of(convolve_reference, how), of(kernels, ()), x, weight, g)


@pytest.mark.parametrize("dtype", TYPES)
def test_the_kernel_for_gradients_on_cpus_leaves_out_what_no_window_has(dtype: torch.dtype) -> None:
    x = torch.randn(2, 10, 10, 32)
    x[:, :, 9] = torch.inf  # where a fourth window would begin
    x = x.to(dtype)
    weight = torch.randn(32, 32, 2, 2).to(dtype).requires_grad_()
    convolve(x, weight, stride=(3, 3), impl="cpp").sum().backward()
    assert weight.grad is not None
    assert weight.grad.isfinite().all()


@pytest.mark.parametrize("dtype", TYPES)
def test_the_kernel_for_gradients_on_cpus_is_the_same_whatever_else_is_set(
    dtype: torch.dtype,
) -> None:
    """On any number of threads, with any default type; and nothing is the gradient of nothing."""
    x, g = torch.randn(9, 4, 6, 32).to(dtype), torch.randn(9, 2, 3, 64).to(dtype)
    weight = torch.randn(64, 32, 3, 3).to(dtype).requires_grad_()

    def gradient(images: int) -> Tensor:
        y = convolve(x[:images], weight, stride=(2, 2), padding=(1, 1), impl="cpp")
        return torch.autograd.grad(y, weight, g[:images])[0]

    before, expected = torch.get_num_threads(), gradient(9)
    try:
        for threads in (1, 3, 20):
            torch.set_num_threads(threads)
            torch.testing.assert_close(gradient(9), expected)
        for default in (torch.float64, torch.bfloat16):
            torch.set_default_dtype(default)
            torch.testing.assert_close(gradient(9), expected)
    finally:
        torch.set_num_threads(before)
        torch.set_default_dtype(torch.float32)
    assert (gradient(0) == 0).all()
    assert (torch.autograd.grad(convolve(x * 0, weight, impl="cpp").sum(), weight)[0] == 0).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_on_cpus_have_a_second_derivative(
    stride: int, transposed: bool, dtype: torch.dtype
) -> None:
    """Of a penalty on gradients, against PyTorch's."""
    x, weight = torch.randn(2, 4, 6, 32).to(dtype), torch.randn(32, 32, 3, 3).to(dtype) / 16
    output_padding = (stride - 1, stride - 1) if transposed else None
    how = {"stride": (stride, stride), "padding": (1, 1), "output_padding": output_padding}

    def penalty(impl: str) -> tuple[Tensor, ...]:
        leaves = x.clone().requires_grad_(), weight.clone().requires_grad_()
        y = convolve(*leaves, **how, impl=impl)
        first = torch.autograd.grad(y.square().sum(), leaves, create_graph=True)
        return torch.autograd.grad(sum(part.square().sum() for part in first), leaves)

    tolerance = 1e-4 if dtype == torch.float32 else 3e-2
    for ours, theirs in zip(penalty("cpp"), penalty("torch"), strict=True):
        assert (ours - theirs).norm() < tolerance * theirs.norm()


def test_bfloat16_needs_no_gradient_of_the_image() -> None:
    x = torch.randn(2, 4, 4, 32).bfloat16()
    weight = torch.randn(32, 32, 3, 3).bfloat16().requires_grad_()
    convolve(x, weight, stride=(2, 2), padding=(1, 1)).sum().backward()
    exact = weight.detach().float().requires_grad_()
    convolve(x.float(), exact, stride=(2, 2), padding=(1, 1)).sum().backward()
    torch.testing.assert_close(weight.grad.float(), exact.grad, rtol=1e-2, atol=1e-2)


CPP_CASES = {  # b, side, in, out
    "paper": (3, 16, 32, 64),
    "small": (2, 2, 64, 32),
    "not a multiple of a block": (3, 6, 32, 32),
    "wider than a band": (1, 60, 32, 32),
}


@needs_kernel(torch.float32)
@pytest.mark.parametrize("case", CPP_CASES)
def test_the_kernel_for_cpus_keeps_the_contract(case: str) -> None:
    b, side, c, out = CPP_CASES[case]
    x = torch.randn(c, b, side, side + 2).movedim(0, -1)
    weight = torch.randn(out, c, 3, 3)
    g = torch.randn(b, side, side + 2, out)
    how = (1, 1), (1, 1), None

    kernel = partial(convolve, padding=(1, 1), impl="cpp")
    assert_as_exact_as(of(convolve_reference, how), of(kernel, ()), x, weight, g)


@needs_kernel(torch.float32)
def test_the_kernel_for_cpus_is_the_same_on_any_number_of_threads() -> None:
    x, weight = torch.randn(5, 8, 8, 32), torch.randn(32, 32, 3, 3)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            found.append(convolve(x, weight, padding=(1, 1), impl="cpp"))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


@pytest.mark.parametrize(
    ("x", "weight"),
    [
        (torch.zeros(1, 4, 4, 32), torch.zeros(48, 32, 3, 3)),
        (torch.zeros(1, 4, 4, 3), torch.zeros(32, 3, 3, 3)),
        (torch.zeros(1, 4, 4, 32).double(), torch.zeros(32, 32, 3, 3).double()),
        (torch.zeros(1, 4, 4, 32).bfloat16(), torch.zeros(32, 32, 3, 3)),
        (torch.zeros(1, 4, 4, 64), torch.zeros(32, 32, 3, 3)),
        (torch.zeros(4, 4, 32), torch.zeros(32, 32, 3, 3)),
    ],
)
def test_what_the_kernels_for_cpus_do_not_know_is_refused(x: Tensor, weight: Tensor) -> None:
    with pytest.raises(ValueError, match=r"impl='cpp' should get maps and.*\n.*impl='auto'"):
        convolve(x, weight, padding=(1, 1), impl="cpp")


KERNEL_CASES = {  # in, out, stride, transposed, side
    "to one pixel": (32, 1, 2, True, 5),
    "to three": (16, 3, 2, True, 4),
    "to four": (32, 4, 2, True, 6),
    "from one pixel": (1, 32, 2, False, 8),
    "from three, odd": (3, 16, 2, False, 7),
    "from four": (4, 32, 2, False, 12),
    "thin": (64, 32, 1, False, 6),
    "thin, halved": (32, 64, 2, False, 8),
    "thin, odd": (16, 32, 2, False, 7),
    "thin, doubled": (32, 16, 2, True, 3),
}


@pytest.mark.gpu
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", KERNEL_CASES)
def test_the_kernels_keep_the_contract(
    case: str, dtype: torch.dtype, beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rotating_features.ops.triton import pixels, weight_gradient
    from rotating_features.ops.triton.convolve import FEW

    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    monkeypatch.setattr(pixels, "PROGRAMS", 2)
    monkeypatch.setattr(weight_gradient, "SPLITS", 2)
    c, out, stride, transposed, side = KERNEL_CASES[case]
    x = torch.randn(c, 9, side, side).movedim(0, -1).to("cuda", dtype)
    weight = torch.randn(*((c, out) if transposed else (out, c)), 3, 3).to("cuda", dtype)
    how = ((stride, stride), (1, 1), (1, 1) if transposed else None)
    g = torch.randn_like(convolve_reference(x, weight, *how))
    second = Beside(x.device)

    def leaves(x: Tensor, weight: Tensor) -> list[Tensor]:
        """The weight, and ``x`` if it is not pixels, which need no gradient."""
        wanted = [weight] if c <= FEW else [weight, x]
        return [part.requires_grad_() for part in wanted]

    def reference(x: Tensor, weight: Tensor, g: Tensor) -> list[Tensor]:
        x, weight = x.clone(), weight.clone()
        wanted = leaves(x, weight)
        y = convolve_reference(x, weight, *how)
        return [y, *torch.autograd.grad(y, wanted, g)]

    def kernel(x: Tensor, weight: Tensor, g: Tensor) -> list[Tensor]:
        x, weight = x.clone(), weight.clone()
        wanted = leaves(x, weight)
        options = {"stride": how[0], "padding": how[1], "output_padding": how[2]}
        with second() if beside else nullcontext():
            y = convolve(x, weight, **options)
        gradients = torch.autograd.grad(y, wanted, g)
        if beside:
            second.join()
        return [y, *gradients]

    assert_as_exact_as(reference, kernel, x, weight, g)


@pytest.mark.gpu
@pytest.mark.parametrize("case", ["to one pixel", "thin"])
def test_tf32_costs_what_pytorchs_costs(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On maps large enough for PyTorch to use it."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    c, out, stride, transposed, _ = KERNEL_CASES[case]
    x = torch.randn(64, 16, 16, c).cuda().requires_grad_()
    weight = torch.randn(*((c, out) if transposed else (out, c)), 3, 3).cuda().requires_grad_()
    how = ((stride, stride), (1, 1), (1, 1) if transposed else None)
    options = {"stride": how[0], "padding": how[1], "output_padding": how[2]}
    ours = convolve(x, weight, **options, impl="triton")
    exact = convolve_reference(x.double(), weight.double(), *how)
    g = torch.randn_like(ours)
    pairs = zip(
        [ours, *torch.autograd.grad(ours, (x, weight), g)],
        [exact, *torch.autograd.grad(exact, (x, weight), g.double())],
        strict=True,
    )
    assert all((a - b).norm() < 1.5e-3 * b.norm() for a, b in pairs)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast_decides_the_type(dtype: torch.dtype) -> None:
    x = torch.randn(4, 8, 8, 32).cuda().requires_grad_()
    weight = torch.randn(32, 32, 3, 3).cuda().requires_grad_()
    exact = convolve(x, weight, padding=(1, 1), impl="torch")
    with torch.autocast("cuda", dtype):
        y = convolve(x, weight, padding=(1, 1))
    assert y.dtype == dtype
    of_y, of_exact = (torch.autograd.grad(out.sum(), (x, weight)) for out in (y, exact))
    for a, b in zip((y.detach(), *of_y), (exact.detach(), *of_exact), strict=True):
        torch.testing.assert_close(a.float(), b, rtol=2e-2, atol=2e-2 * float(b.abs().max()))


@pytest.mark.gpu
def test_a_convolution_without_a_kernel_is_refused_or_falls_back() -> None:
    x, weight = torch.randn(1, 8, 8, 3).cuda(), torch.randn(5, 3, 5, 5).cuda()
    with pytest.raises(ValueError, match=r"should get 3 x 3 weights.*\n.*impl='auto'"):
        convolve(x, weight, impl="triton")
    torch.testing.assert_close(
        convolve(x, weight), convolve_reference(x, weight, (1, 1), (0, 0), None)
    )


@pytest.mark.parametrize("channels", [4, 32])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (3, 1), (3, 2)])
def test_gradients_of_a_column_are_whole_in_bfloat16(
    height: int, width: int, channels: int
) -> None:
    """PyTorch's own have whatever was in memory before, which is now and then no number."""
    x = torch.randn(6, height, width, channels, dtype=torch.bfloat16)
    weight = torch.randn(channels, channels, 3, 3, dtype=torch.bfloat16)
    for _ in range(20):
        leaf = weight.clone().requires_grad_()
        y = convolve(x, leaf, stride=(2, width + 1), padding=(1, 1))
        dirt = [torch.full((2**i,), torch.nan) for i in range(3, 13)]
        del dirt
        (gradient,) = torch.autograd.grad(y.float().square().sum(), leaf)
        assert (gradient[..., [0] + [2] * (width == 1)] == 0).all()  # beyond it there is nothing
        assert gradient.isfinite().all()
