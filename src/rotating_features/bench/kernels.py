"""Each kernel against its definition, eager and through ``torch.compile``.

Forward and backward in the shapes that 4Shapes has at b=64, n=8, d=32. On a GPU they are replayed
from a CUDA graph as in training, so that its own time is what counts.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rotating_features.bench.alone import Tell, alone, rounds_here
from rotating_features.bench.harness import Row, Timing, compare, measure, this_device
from rotating_features.machine import tune_cpu
from rotating_features.ops import Impl
from rotating_features.ops.activate import activate
from rotating_features.ops.activate_complex import activate_complex
from rotating_features.ops.adam import adam_
from rotating_features.ops.convolve import convolve
from rotating_features.ops.squared_error import squared_error

N, D = 8, 32
PARAMETERS = 377_740
REPLAYS = 50
VARIANTS = "kernel", "definition", "definition compiled"


class Case(NamedTuple):
    """An op at work: what it computes, and with regard to what it is differentiated."""

    forward: Callable[[Impl], Tensor | None]
    leaves: list[Tensor]


def _activate(norm: nn.BatchNorm1d | nn.LayerNorm, y: Tensor) -> Case:
    norm = norm.to(y.device)
    bias = torch.randn(N, y.shape[-1], device=y.device, requires_grad=True)
    leaves = [y.requires_grad_(), bias, norm.weight, norm.bias]
    return Case(lambda impl: activate(y, bias, norm, impl=impl), leaves)


def _activate_complex(y: Tensor) -> Case:
    c = y.shape[-1]
    norm = nn.BatchNorm1d(c).to(y.device)
    b, beta = (torch.randn(c, device=y.device, requires_grad=True) for _ in range(2))
    leaves = [y.requires_grad_(), b, beta, norm.weight, norm.bias]
    return Case(lambda impl: activate_complex(y, b, beta, norm, impl=impl), leaves)


def _convolve(x: Tensor, weight: Tensor, stride: int, *, up: bool) -> Case:
    x, weight = x.requires_grad_(), weight.to(x).contiguous(memory_format=torch.channels_last)
    weight.requires_grad_()
    how: dict[str, Any] = {"stride": (stride, stride), "padding": (1, 1)}
    if up:
        how["output_padding"] = (1, 1)
    return Case(lambda impl: convolve(x, weight, **how, impl=impl), [x, weight])


def _squared_error(m: Tensor) -> Case:
    weight, bias = (torch.ones(1, device=m.device, requires_grad=True) for _ in "wb")
    x = torch.rand(m.shape, device=m.device).movedim(-1, 1)
    m.requires_grad_()
    return Case(
        lambda impl: squared_error(m, weight, bias, x, sigmoid=True, impl=impl), [m, weight, bias]
    )


def _adam(p: Tensor) -> Case:
    g, m, v = torch.randn_like(p), torch.zeros_like(p), torch.zeros_like(p)
    t, rate = p.new_ones(()), p.new_tensor(1e-3)
    return Case(lambda impl: adam_(p, g, m, v, t, rate, clip=0.1, impl=impl), [])


CASES: dict[str, Callable[[Callable[..., Tensor], int], Case]] = {
    "activate, batch norm": lambda new, b: _activate(nn.BatchNorm1d(D), new(b, N + 1, 16, 16, D)),
    "activate, layer norm": lambda new, b: _activate(nn.LayerNorm(1024), new(b, N + 1, 1024)),
    "activate, complex": lambda new, b: _activate_complex(new(b, 3, 16, 16, D)),
    "convolve, last layer": lambda new, b: _convolve(
        new(b * (N + 1), 16, 16, D), torch.randn(D, 1, 3, 3), 2, up=True
    ),
    "convolve, thin weight gradient": lambda new, b: _convolve(
        new(b * (N + 1), 16, 16, D), torch.randn(D, D, 3, 3), 1, up=False
    ),
    "convolve, wide": lambda new, b: _convolve(
        new(b * (N + 1), 8, 8, 2 * D), torch.randn(2 * D, 2 * D, 3, 3), 1, up=False
    ),
    "convolve, halving": lambda new, b: _convolve(
        new(b * (N + 1), 16, 16, D), torch.randn(2 * D, D, 3, 3), 2, up=False
    ),
    "squared_error": lambda new, b: _squared_error(new(b, 32, 32, 1)),
    "adam_": lambda new, b: _adam(new(b * PARAMETERS // 64)),
}
NO_KERNEL = {("convolve, wide", "float32"), ("adam_", "bfloat16")}
"""What a GPU has no kernel for: cuDNN's is the best in TF32, and Adam's averages are float32."""
KINDS = {
    "cuda": tuple(
        (case, dtype)
        for dtype in ("float32", "bfloat16")
        for case in CASES
        if (case, dtype) not in NO_KERNEL
    ),
    "cpu": (
        ("activate, batch norm", "float32"),
        ("convolve, thin weight gradient", "float32"),
        ("convolve, wide", "float32"),
        ("convolve, halving", "float32"),
        ("activate, batch norm", "bfloat16"),
        ("convolve, wide", "bfloat16"),
        ("convolve, halving", "bfloat16"),
    ),
}
"""Cases that have a kernel on a device, for all of the op or for its gradient."""


def bench_kernels(
    *,
    repeats: int,
    cases: Sequence[str] = tuple(CASES),
    variants: Sequence[str] = VARIANTS,
    batch: int = 64,
    tell: Tell | None = None,
) -> Iterator[list[Row]]:
    """Rows of every op with a kernel here, in float32 (TF32 on a GPU) and in bfloat16."""
    kinds = [(case, dtype) for case, dtype in KINDS[this_device().type] if case in cases]
    jobs = [
        [
            {
                "bench": "kernels",
                "variant": variant,
                "case": case,
                "dtype": dtype,
                "batch": batch,
                "repeats": repeats,
            }
            for case, dtype in kinds
        ]
        for variant in variants
    ]
    found = dict(zip(variants, alone(jobs, rounds=rounds_here(), tell=tell), strict=True))
    for i, (case, dtype) in enumerate(kinds):
        timings = {variant: timings[i] for variant, timings in found.items()}
        yield compare(f"{case} {dtype}", timings, peer="definition compiled")


def time_kernel(variant: str, *, case: str, dtype: str, repeats: int, batch: int = 64) -> Timing:
    """Time of forward and backward."""
    torch.manual_seed(0)
    kind = torch.bfloat16 if dtype == "bfloat16" else torch.float32
    device = this_device()
    if device.type == "cpu":
        tune_cpu()
        return measure(_call(variant, case, kind, batch, device), warmup=1, repeats=repeats)
    torch.set_float32_matmul_precision("high")  # all of it as in training
    torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    with torch.cuda.stream(torch.cuda.Stream()):  # autograd remembers where a leaf was first used
        call = _call(variant, case, kind, batch, device)  # owns the inputs, so it has to stay
        graph = _recorded(call)

        def several() -> None:
            for _ in range(REPLAYS):
                graph.replay()

        return measure(several, warmup=1, repeats=repeats).per(REPLAYS)


def _call(
    variant: str, case: str, dtype: torch.dtype, batch: int, device: torch.device
) -> Callable[[], None]:
    """Forward and backward of the op, as one call."""
    made = CASES[case](lambda *shape: torch.randn(shape, device=device, dtype=dtype), batch)
    impl: Impl = "torch"
    if variant == "kernel":
        impl = "triton" if device.type == "cuda" else "auto"

    def forward() -> Tensor | None:
        return made.forward(impl)

    if variant == "definition compiled":
        torch.compiler.reset()  # lest it take the last case for this one with other shapes
        forward = torch.compile(forward, dynamic=False, options={"layout_optimization": False})
    out = forward()
    gradient = None if out is None else torch.randn_like(out)

    def call() -> None:
        out = forward()
        if out is not None:
            torch.autograd.grad(out, made.leaves, gradient)

    return call


def _recorded(call: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """``call`` as a CUDA graph."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        call()
    return graph
