import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from rotating_features.features import Backbone, FeatureCache, Key, cached, open_backbone

pytestmark = pytest.mark.gpu

FUSED = [
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.CUDNN_ATTENTION,
]
"""Kernels that refuse a mask as transformers 5.17, for one, makes it in a capture."""


def part(a: torch.Tensor, b: torch.Tensor) -> float:
    """How far apart they are, relative to their length."""
    return ((a - b).norm() / b.norm()).item()


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
@pytest.mark.parametrize("family", ["dino", "dinov2", "dinov2-registers", "dinov3"])
def test_a_backbone_can_be_captured_in_a_cuda_graph(
    family: str, dtype: torch.dtype | None, write: Callable[[str], Path]
) -> None:
    backbone = open_backbone(write(family), dtype=dtype, device="cuda")
    x = torch.rand(2, 3, 3 * backbone.stride, 5 * backbone.stride, device="cuda")
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        backbone(x)
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), sdpa_kernel(FUSED):
        captured = backbone(x)
    x.copy_(torch.rand_like(x))
    graph.replay()
    # A graph may multiply by other kernels, which round differently.
    assert part(captured, backbone(x)) < (1e-5 if dtype is None else 2e-2)
    if dtype is None:
        assert part(captured.cpu(), open_backbone(write(family))(x.cpu())) < 1e-2  # TF32 patches


@pytest.mark.parametrize("family", ["dino", "dinov2", "dinov2-registers", "dinov3"])
def test_after_the_first_call_nothing_waits_for_the_gpu(
    family: str, write: Callable[[str], Path]
) -> None:
    backbone = open_backbone(write(family), device="cuda")
    x = torch.rand(2, 3, 2 * backbone.stride, 2 * backbone.stride, device="cuda")
    backbone(x)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Synchronization debug mode is a prototype")
            torch.cuda.set_sync_debug_mode("error")
        backbone(x)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_features_come_back_to_the_gpu(tmp_path: Path) -> None:
    backbone = Backbone(torch.nn.AvgPool2d(4), channels=3, stride=4).cuda()
    cache, pictures = FeatureCache(tmp_path), torch.rand(2, 3, 8, 8)
    keys = [Key(backbone.fingerprint(), "none", str(i)) for i in range(2)]
    fresh, again = (cached(backbone, cache, pictures, keys) for _ in range(2))
    assert fresh.is_cuda
    assert torch.equal(fresh, again)


def test_the_fingerprint_does_not_depend_on_the_device(write: Callable[[str], Path]) -> None:
    devices = ["cpu", "cuda"]
    assert len({open_backbone(write("dino"), device=d).fingerprint() for d in devices}) == 1
