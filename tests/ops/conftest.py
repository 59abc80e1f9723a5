import pytest


@pytest.fixture
def few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program of the activation's kernels gets several tiles, and not all as many."""
    from rotating_features.ops.triton import activate

    monkeypatch.setattr(activate, "PROGRAMS", 5)
