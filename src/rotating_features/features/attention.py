"""How tokens look at each other in models of ``transformers``: each at all, by a fused kernel.

Images are given whole, so there is nothing to mask. But while a CUDA graph is captured, some
versions of ``transformers`` do not look whether their mask is empty, and hand it on. In PyTorch
2.11 no fused kernel took it, and a step with a ViT-B/16 was twice as slow in bfloat16.
"""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

NAME = "rotating_features"


def attend(
    _module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    _mask: Tensor | None,
    *,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention without a mask or dropout, as ``transformers`` calls it.

    Shape:
        three times (b, heads, tokens, c) -> (b, tokens, heads, c)
    """
    found = F.scaled_dot_product_attention(query, key, value, scale=scaling)
    return found.transpose(1, 2).contiguous(), None


def known_as() -> str:
    """The name to give as ``attn_implementation``; from now on ``transformers`` knows it."""
    from transformers import AttentionInterface  # an extra, and seconds to import

    AttentionInterface.register(NAME, attend)
    return NAME
