"""What a file of results says about where it comes from holds for others, too."""

from pathlib import Path

import pytest
import torch

from rotating_features.experiments.config import DataConfig, Experiment, ModelConfig
from rotating_features.experiments.provenance import provenance, settings_for_others


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["train", "4shapes", "--runs", "here", "--seeds", "0", "1"], "train 4shapes --seeds 0 1"),
        (["train", "4shapes", "--runs=here", "--name", "x"], "train 4shapes --name x"),
        (["train", "4shapes", "--data.path", "mine/files"], "train 4shapes --data.path files"),
        (["train", "4shapes", "--data.path=/mine/files"], "train 4shapes --data.path files"),
        (["bench", "--images", "/mine/photos"], "bench --images photos"),
        (["reproduce", "x", "--backbone", "/mine/vit"], "reproduce x --backbone vit"),
        (["reproduce", "x", "--backbone=/mine/vit"], "reproduce x --backbone=vit"),
        (["reproduce", "x", "--backbone", "facebook/dino"], "reproduce x --backbone facebook/dino"),
        (["reproduce", "x", "--run", "runs/a"], "reproduce x --run runs/a"),
        (["reproduce", "x", "--run", "~/a b"], "reproduce x --run 'a b'"),
    ],
)
def test_a_command_leaves_out_the_places_of_one_computer(words: list[str], told: str) -> None:
    assert provenance(words, torch.device("cpu"))["command"] == f"rotating-features {told}"


def test_settings_leave_out_the_places_of_one_computer(tmp_path: Path) -> None:
    experiment = Experiment(
        data=DataConfig(path=str(tmp_path / "files")),
        model=ModelConfig(backbone=str(tmp_path / "vit")),
    )
    settings = settings_for_others(experiment)
    assert (settings["data"]["path"], settings["model"]["backbone"]) == ("files", "vit")
    named = Experiment(model=ModelConfig(backbone="facebook/dino"))
    assert settings_for_others(named)["model"]["backbone"] == "facebook/dino"
