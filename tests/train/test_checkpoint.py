import errno
from pathlib import Path

import pytest
import torch

from rotating_features._files import SUFFIX
from rotating_features.models import RotatingAutoEncoder, load
from rotating_features.train import Step
from rotating_features.train.checkpoint import (
    load_checkpoint,
    read_metrics,
    save_checkpoint,
    steps_done,
)


def make(hidden_dim: int = 2) -> Step:
    torch.manual_seed(0)
    return Step(RotatingAutoEncoder(channels=1, size=(8, 8), hidden_dim=hidden_dim, rotation_dim=2))


def trained(folder: Path, steps: int = 1) -> Step:
    step = make()
    for _ in range(steps):
        step(torch.ones(4, 1, 8, 8), 1e-3)
    save_checkpoint(folder, step, steps)
    return step


def test_a_folder_without_a_checkpoint_starts_at_zero(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path, make()) == 0
    assert steps_done(tmp_path) == 0


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    saved, fresh = trained(tmp_path, steps=3), make()
    assert load_checkpoint(tmp_path, fresh) == 3
    assert steps_done(tmp_path) == 3
    for a, b in zip(saved.model.parameters(), fresh.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_partial_files_of_a_killed_run_are_swept_up(tmp_path: Path) -> None:
    trained(tmp_path)
    (tmp_path / f"trainer.pt{SUFFIX}").write_bytes(b"half")
    load_checkpoint(tmp_path, make())
    assert not list(tmp_path.glob(f"*{SUFFIX}"))


@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, 0.99])
def test_a_truncated_checkpoint_is_explained_and_left_alone(tmp_path: Path, keep: float) -> None:
    trained(tmp_path)
    path = tmp_path / "trainer.pt"
    content = path.read_bytes()
    cut = content[: int(keep * len(content)) if keep < 1 else int(keep)]
    path.write_bytes(cut)
    with pytest.raises(ValueError, match="should be a checkpoint of this run, but cannot be used"):
        load_checkpoint(tmp_path, make())
    assert path.read_bytes() == cut
    assert steps_done(tmp_path) == 0


def test_a_foreign_checkpoint_is_explained(tmp_path: Path) -> None:
    torch.save({"weights": torch.zeros(3)}, tmp_path / "trainer.pt")
    with pytest.raises(ValueError, match="its format is not"):
        load_checkpoint(tmp_path, make())


def test_a_checkpoint_of_another_model_is_explained(tmp_path: Path) -> None:
    trained(tmp_path)
    with pytest.raises(ValueError, match="cannot be used"):
        load_checkpoint(tmp_path, make(hidden_dim=3))


def test_code_hidden_in_a_checkpoint_does_not_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "owned",))

    torch.save({"format": Evil()}, tmp_path / "trainer.pt")
    with pytest.raises(ValueError, match="cannot be used"):
        load_checkpoint(tmp_path, make())
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_full_or_read_only_disk_leaves_the_last_checkpoint_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    trained(tmp_path, steps=2)
    later = make()

    def fail(*args: object, **options: object) -> None:
        raise OSError(code, "the disk says no")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OSError, match="the disk says no"):
        save_checkpoint(tmp_path, later, 3)
    monkeypatch.undo()
    assert load_checkpoint(tmp_path, make()) == 2
    load(tmp_path)


def test_metrics_of_a_folder_without_a_log_are_empty(tmp_path: Path) -> None:
    assert read_metrics(tmp_path) == []
