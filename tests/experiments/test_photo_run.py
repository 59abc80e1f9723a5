"""Models on photographs: their scores by a slow hand, their cache, their pictures."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.metrics import adjusted_rand_score

from rotating_features._check import InputError
from rotating_features.evaluate.smooth import mode_filter
from rotating_features.experiments import EXPERIMENTS, scores
from rotating_features.experiments.config import DataConfig, EvaluateConfig, ModelConfig
from rotating_features.experiments.photo_pictures import photo_sheet
from rotating_features.experiments.photo_run import (
    make_photo_model,
    open_model_backbone,
)
from rotating_features.experiments.photo_scores import (
    predictor,
    score_baseline,
    score_photo_model,
)
from rotating_features.features import Backbone
from rotating_features.models import OnFeatures

CPU = torch.device("cpu")
SIDE, MASK_SIDE = 32, 320
RF2023 = EvaluateConfig(protocols=("rf2023",), k=4)


@pytest.fixture
def model(tiny_backbone: Path) -> OnFeatures:
    return make_model(tiny_backbone)


def make_model(tiny_backbone: Path, **options) -> OnFeatures:
    config = ModelConfig(hidden_dim=4, rotation_dim=4, backbone=str(tiny_backbone), **options)
    backbone = open_model_backbone(config, CPU)
    autoencoder = make_photo_model(config, DataConfig(side=SIDE), backbone, seed=0, device=CPU)
    return OnFeatures(backbone, autoencoder, size=(SIDE, SIDE)).eval()


def data_of(photographs: dict, dataset: str) -> DataConfig:
    return DataConfig(dataset=dataset, path=str(photographs[dataset]), side=SIDE)


def collect(model, data: DataConfig, settings: EvaluateConfig = RF2023, **options) -> dict:
    """Scores by protocol and name."""
    parts: dict[str, list] = {}
    for batch in score_photo_model(model, data, settings, **options):
        for protocol, values in batch.items():
            parts.setdefault(protocol, []).append(values)
    return {p: {n: torch.cat([v[n] for v in vs]) for n in vs[0]} for p, vs in parts.items()}


# --- Scores ---------------------------------------------------------------------------------------


def read(path: Path) -> np.ndarray:
    with Image.open(path) as file:
        return np.array(file)


def shown(values: np.ndarray, side: int) -> np.ndarray:
    """Resized by PyTorch's idea of the nearest pixel, floor(i * n / m), and cropped; for rf2023."""
    h, w = values.shape[:2]
    height, width = h * side // min(h, w), w * side // min(h, w)
    rows = [int(np.float32(i) * (np.float32(h) / np.float32(height))) for i in range(height)]
    columns = [int(np.float32(i) * (np.float32(w) / np.float32(width))) for i in range(width)]
    top, left = round((height - side) / 2), round((width - side) / 2)
    return values[np.ix_(rows, columns)][top : top + side, left : left + side]


def best_overlap(found: np.ndarray, true: np.ndarray) -> float:
    counts = true != 255
    best = []
    for name in set(true[counts].tolist()) - {0}:
        target = (true == name) & counts
        ious = []
        for label in set(found[counts].tolist()):
            mask = (found == label) & counts
            ious.append((mask & target).sum() / (mask | target).sum())
        best.append(max(ious))
    return sum(best) / len(best) if best else math.nan


def test_scores_agree_with_a_slow_loop_over_files(model, photographs: dict) -> None:
    """From the files on: own resizing, own MBO, scikit-learn's ARI, one photograph at a time."""
    voc = photographs["pascal-voc"]
    found = collect(model, data_of(photographs, "pascal-voc"))
    (values,) = found.values()
    assert list(found) == ["rf2023@32"]
    for number, name in enumerate(("c", "d")):  # ImageSets/Segmentation/val.txt
        image = shown(read(voc / "JPEGImages" / f"{name}.jpg"), SIDE)
        x = torch.from_numpy(image.copy()).permute(2, 0, 1)[None] / 255
        labels, doubt = predictor(model, RF2023)(x)
        assert labels.shape == (1, 4, 4)
        large = labels[0].numpy().repeat(MASK_SIDE // 4, 0).repeat(MASK_SIDE // 4, 1)
        large = mode_filter(torch.from_numpy(large)[None], MASK_SIDE // 4)[0].numpy()
        true = {
            kind: shown(read(voc / kind / f"{name}.png"), MASK_SIDE)
            for kind in ("SegmentationObject", "SegmentationClass")
        }
        objects = true["SegmentationObject"]
        on = (objects != 0) & (objects != 255)
        ari = adjusted_rand_score(objects[on], large[on])
        assert float(values["ari_bg"][number]) == pytest.approx(ari)
        assert float(values["mbo_i"][number]) == pytest.approx(best_overlap(large, objects))
        by_class = best_overlap(large, true["SegmentationClass"])
        assert float(values["mbo_c"][number]) == pytest.approx(by_class)
        assert int(values["clusters"][number]) == len(labels.unique())
        # One photograph or two at a time: sums are added up in another order.
        assert float(values["uncertainty"][number]) == pytest.approx(float(doubt.mean()), rel=1e-4)


def test_features_that_are_kept_give_the_same_scores_and_are_used(
    model, photographs: dict, tmp_path: Path, monkeypatch
) -> None:
    data, seen, forward = data_of(photographs, "pascal-voc"), [], Backbone.forward

    def count(self: Backbone, x: torch.Tensor) -> torch.Tensor:
        seen.append(len(x))
        return forward(self, x)

    monkeypatch.setattr(Backbone, "forward", count)
    keeping = dataclasses.replace(RF2023, feature_cache=str(tmp_path / "kept"))
    plain, once, twice = (collect(model, data, way) for way in (RF2023, keeping, keeping))
    torch.testing.assert_close(once, plain, rtol=0, atol=0)
    torch.testing.assert_close(twice, plain, rtol=0, atol=0)
    assert seen == [2, 2]  # nothing the third time


def test_what_is_kept_of_one_backbone_is_not_given_to_another(
    photographs: dict, tiny_backbone: Path, tmp_path: Path
) -> None:
    keeping = dataclasses.replace(RF2023, feature_cache=str(tmp_path))
    data = data_of(photographs, "pascal-voc")
    collect(make_model(tiny_backbone), data, keeping)
    other = make_model(tiny_backbone, position_embedding=False)
    torch.testing.assert_close(collect(other, data, keeping), collect(other, data), rtol=0, atol=0)


def test_only_so_many_images_are_scored_as_are_asked_for(model, photographs: dict) -> None:
    data = data_of(photographs, "pascal-voc")
    whole, one = collect(model, data), collect(model, data, images=1)
    assert [len(values) for values in one["rf2023@32"].values()] == [1] * 6
    for name, values in one["rf2023@32"].items():
        torch.testing.assert_close(values, whole["rf2023@32"][name][:1])


def test_every_protocol_scores_every_image(model, photographs: dict) -> None:
    ways = dataclasses.replace(RF2023, protocols=("rf2023", "dinosaur", "spot"))
    found = collect(model, data_of(photographs, "pascal-voc"), ways)
    assert list(found) == ["rf2023@32", "dinosaur@32", "spot@32"]
    assert all(len(values["ari_bg"]) == 2 for values in found.values())


def test_a_folder_without_masks_has_clusters_and_no_scores(model, photographs: dict) -> None:
    data = data_of(photographs, "folder")
    (values,) = collect(model, data).values()
    assert set(values) == {"image", "clusters", "uncertainty"}
    assert len(values["clusters"]) == 4
    (summary,) = summarise(model, data)
    assert (summary["images"], summary["dropped"]) == (4, 0)


def summarise(model, data: DataConfig) -> list[dict]:
    rows = scores.to_rows(score_photo_model(model, data, RF2023), clustering="")
    return list(scores.summarise(rows).values())


def test_what_is_no_image_in_a_folder_is_passed_over(model, photographs, tmp_path: Path) -> None:
    whole = data_of(photographs, "folder")
    for path in photographs["folder"].iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "broken.png").write_text("no picture")
    Image.new("RGB", (2, 900)).save(tmp_path / "thread.png")
    data = dataclasses.replace(whole, path=str(tmp_path))
    (found,), (wanted,) = (collect(model, here).values() for here in (data, whole))
    names = sorted(path.name for path in tmp_path.iterdir())
    good = [names.index(path.name) for path in sorted(photographs["folder"].iterdir())]
    assert (found.pop("image").tolist(), wanted.pop("image").tolist()) == (good, [0, 1, 2, 3])
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    assert_has_rows(photo_sheet({"prediction": model}, data, RF2023, ""), tmp_path, 3, 4)


def test_a_published_split_is_scored_as_a_whole_or_not_at_all(
    model, photographs: dict, tmp_path: Path
) -> None:
    data = break_first(photographs["foodseg103"], tmp_path, "img_dir/test/a.jpg", b"no picture")
    with pytest.raises(InputError, match=r"a\.jpg cannot be read"):
        collect(model, data)


def break_first(food: Path, tmp_path: Path, name: str, content: bytes) -> DataConfig:
    """FoodSeg103 with another file in the place of one."""
    for path in food.rglob("*.*"):
        copy = tmp_path / path.relative_to(food)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content if str(copy).endswith(name) else path.read_bytes())
    return DataConfig(dataset="foodseg103", path=str(tmp_path), side=SIDE)


def test_classes_alone_are_scored_by_mbo_c_and_empty_images_counted(
    model, photographs: dict, tmp_path: Path
) -> None:
    food = photographs["foodseg103"]
    (whole,) = summarise(model, data_of(photographs, "foodseg103"))
    assert set(whole) == {"mbo_c", "clusters", "uncertainty", "images", "dropped"}
    assert (whole["images"], whole["dropped"]) == (2, 0)
    (values,) = collect(model, data_of(photographs, "foodseg103")).values()
    mask = food / "FoodSeg103" / "ann_dir" / "test" / "a.png"
    Image.fromarray(np.zeros_like(read(mask))).save(tmp_path / "empty.png")
    empty = (tmp_path / "empty.png").read_bytes()
    (summary,) = summarise(model, break_first(food, tmp_path / "food", "ann_dir/test/a.png", empty))
    assert (summary["images"], summary["dropped"]) == (2, 1)
    assert summary["mbo_c"] == pytest.approx(float(values["mbo_c"][1]))


@pytest.mark.parametrize(("dataset", "blocks"), [("pascal-voc", 6), ("foodseg103", 5)])
def test_block_masks_have_as_many_blocks_as_give_the_papers_scores(
    photographs: dict, dataset: str, blocks: int
) -> None:
    paper = EXPERIMENTS[dataset]["paper"]
    data = dataclasses.replace(paper.data, path=str(photographs[dataset]), side=32)
    experiment = dataclasses.replace(paper, data=data)
    found = score_baseline("blocks", experiment, torch.device("cpu"), seed=0)
    counts = [row["clusters"] for batch in found for row in batch.values()]
    assert torch.cat(counts).unique().tolist() == [blocks]


# --- Pictures -------------------------------------------------------------------------------------


def assert_has_rows(figure, folder: Path, rows: int, columns: int) -> None:
    figure.savefig(folder / "sheet.png", format="png")
    with Image.open(folder / "sheet.png") as picture:
        assert picture.format == "PNG"
        pixels = np.array(picture.convert("L"))
    assert len(figure.axes) == rows * columns
    assert pixels.std() > 10  # something is there


@pytest.mark.parametrize(("dataset", "rows", "columns"), [("pascal-voc", 4, 2), ("folder", 3, 4)])
@pytest.mark.parametrize("protocol", ["rf2023", "dinosaur", "spot"])
def test_a_sheet_has_a_row_for_each_view(
    model, photographs: dict, tmp_path: Path, dataset, rows, columns, protocol
) -> None:
    """Without masks there is no truth to show."""
    settings = dataclasses.replace(RF2023, protocols=(protocol,))
    figure = photo_sheet({"prediction": model}, data_of(photographs, dataset), settings, "a title")
    assert_has_rows(figure, tmp_path, rows, columns)
    names = [axis.get_ylabel() for axis in figure.axes[::columns]]
    assert names == [
        n for n in ("input", "truth", "prediction", "uncertainty") if rows == 4 or n != "truth"
    ]


def test_a_sheet_of_several_models_leaves_their_doubts_out(
    model, photographs: dict, tmp_path: Path
) -> None:
    data = data_of(photographs, "foodseg103")
    figure = photo_sheet({"one": model, "two": model}, data, RF2023, "")
    names = [axis.get_ylabel() for axis in figure.axes[::2]]
    assert names == ["input", "truth", "one", "two"]
    assert_has_rows(figure, tmp_path, 4, 2)
