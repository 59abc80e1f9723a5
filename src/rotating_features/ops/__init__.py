"""Hot element-wise maths, one public function a file, its plain definition beside it.

Where a Triton kernel beats ``torch.compile`` of the definition, ``ops/triton`` has it.
"""

from importlib.util import find_spec
from typing import Literal

import torch
from torch import Tensor

from rotating_features._check import InputError

Impl = Literal["auto", "torch", "triton"]


def use_triton(x: Tensor, impl: Impl) -> bool:
    """Decide, without side effects, which implementation a call gets."""
    if impl not in ("auto", "torch", "triton"):
        raise InputError(f"impl should be 'auto', 'torch' or 'triton', got {impl!r}.")
    if impl == "torch" or (impl == "auto" and torch.compiler.is_compiling()):
        return False
    usable = x.dtype in (torch.float32, torch.bfloat16) and has_triton(x.device)
    if impl == "triton" and not usable:
        raise InputError(
            "impl='triton' should get a CUDA tensor in float32 or bfloat16, on an Ampere GPU or a "
            f"newer one and with triton installed; x is on {x.device} in {x.dtype}.\n"
            "  Use impl='auto' to fall back to PyTorch."
        )
    return usable


def has_triton(device: torch.device) -> bool:
    """Whether our kernels run there."""
    if device.type != "cuda" or find_spec("triton") is None:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)  # older ones have no TF32 or bfloat16
