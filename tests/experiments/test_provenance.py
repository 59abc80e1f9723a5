"""What a file of results says about where it comes from holds for others, too."""

from pathlib import Path

import pytest
import torch

from rotating_features.experiments.config import (
    DataConfig,
    EvaluateConfig,
    Experiment,
    ModelConfig,
)
from rotating_features.experiments.provenance import (
    machine_name,
    provenance,
    settings_for_others,
    short,
)


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
        (["reproduce", "x", "--backbone", "/mine/n=1/vit"], "reproduce x --backbone vit"),
        (["reproduce", "x", "--backbone=/mine/n=1/vit"], "reproduce x --backbone=vit"),
        (["segment", "/mine/a=b/c.jpg"], "segment c.jpg"),
        (["segment", "~nobody/c.jpg", "/"], "segment c.jpg /"),
    ],
)
def test_a_command_leaves_out_the_places_of_one_computer(words: list[str], told: str) -> None:
    assert provenance(words, torch.device("cpu"))["command"] == f"rotating-features {told}"


def test_settings_name_the_folder_of_the_data_alone(tmp_path: Path) -> None:
    data, model = DataConfig(path=str(tmp_path / "files")), ModelConfig(backbone=str(tmp_path))
    evaluate = EvaluateConfig(feature_cache=str(tmp_path / "features"))
    settings = settings_for_others(Experiment(data=data, model=model, evaluate=evaluate))
    assert settings["data"]["path"] == "files"
    assert settings["evaluate"]["feature_cache"] is None
    assert settings["model"]["backbone"] == str(tmp_path)  # of that name there may be others


@pytest.mark.parametrize(
    ("found", "name"),
    [
        ({"device": "cuda"}, "H200"),
        ({"device": "cpu"}, "EPYC"),
        ({}, "H200"),
        ({"hardware": {"cpu": "EPYC", "gpu": "none"}}, "EPYC"),
    ],
)
def test_a_machine_without_a_device_is_its_gpu_if_it_has_one(found: dict, name: str) -> None:
    assert machine_name({"hardware": {"cpu": "EPYC", "gpu": "H200"}} | found) == name


def test_a_short_commit_keeps_the_plus_of_changed_files() -> None:
    assert [short(name) for name in ("0123456789", "0123456789+", "unknown")] == [
        "0123456",
        "0123456+",
        "unknown",
    ]
