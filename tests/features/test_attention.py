import torch

from rotating_features.features.attention import attend


def inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 3, 5, 8) for _ in range(3)]


def test_every_token_looks_at_all_others() -> None:
    query, key, value = inputs()
    scores = torch.einsum("bhqc, bhkc -> bhqk", query, key)
    wanted = torch.einsum("bhqk, bhkc -> bqhc", (0.5 * scores).softmax(3), value)
    found, weights = attend(torch.nn.Identity(), query, key, value, None, scaling=0.5, dropout=0.0)
    torch.testing.assert_close(found, wanted)
    assert weights is None
    assert found.is_contiguous()


def test_a_mask_is_left_out() -> None:
    tensors, mask = inputs(), torch.ones(2, 1, 5, 5, dtype=torch.bool).triu()
    found, _ = attend(torch.nn.Identity(), *tensors, mask)
    assert torch.equal(found, attend(torch.nn.Identity(), *tensors, None)[0])
