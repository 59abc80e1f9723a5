"""Runs on photographs: their scores by a slow hand, their cache, and what they refuse."""

import dataclasses
import json
import math
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load as load_weights
from sklearn.metrics import adjusted_rand_score

from rotating_features._check import InputError
from rotating_features.cli import main
from rotating_features.evaluate.smooth import mode_filter
from rotating_features.experiments import EXPERIMENTS, scores
from rotating_features.experiments.config import DataConfig, EvaluateConfig, ModelConfig
from rotating_features.experiments.folders import read_run
from rotating_features.experiments.photo_pictures import photo_sheet
from rotating_features.experiments.photo_run import (
    make_photo_model,
    open_model_backbone,
    predictor,
    score_baseline,
    score_photo_model,
)
from rotating_features.features import Backbone
from rotating_features.models import OnFeatures, load

CPU = torch.device("cpu")
SIDE, MASK_SIDE = 32, 320
RF2023 = EvaluateConfig(protocols=("rf2023",), k=4)
TINY = shlex.split(
    "--train.steps 2 --train.batch-size 2 --train.log-every 1 --train.warmup-steps 1 "
    "--model.hidden-dim 2 --model.rotation-dim 2 --data.side 32"
)


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


def train(runs: Path, dataset: str, path: Path | str, backbone: Path | str, *words: str) -> int:
    where = ["--runs", str(runs), "--data.path", str(path), "--model.backbone", str(backbone)]
    return main(["train", dataset, "--preset", "quick", *where, *TINY, *words])


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


# --- The command line -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(photographs: dict, tiny_backbone: Path, tmp_path_factory) -> Path:
    """A run on VOC, trained for two steps; tests leave it as it is but for its scores."""
    folder = tmp_path_factory.mktemp("runs")
    assert train(folder, "pascal-voc", photographs["pascal-voc"], tiny_backbone) == 0
    return folder / "pascal-voc"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("--evaluate.protocols blind", "Photographs are scored by rf2023, dinosaur, spot"),
        ("--model.kind classifier", "Photographs come without classes"),
        ("--model.kind standard", "a standard model finds none"),
        ("--data.side 30", "multiples of 8, got 30 x 30"),
        ("--data.side 0", "side should be at least 1 pixel, got 0"),
        ("--data.colors 3", "no option colors, got colors=3. It has crops, path, resize, side."),
        ("--data.path nowhere", "There is no Pascal VOC 2012 in"),
        ("--train.batch-size 3", "number of images, 2, got 3"),
        ("--evaluate.k 17", "got k=17"),
        ("--data.crops 100", "Features of 100 crops of 2 photographs take 0.0 GB beside"),
        ("--model.backbone no-such", "There is no folder or backbone 'no-such'"),
    ],
)
def test_mistakes_are_found_before_a_folder_is_made(
    photographs: dict,
    tiny_backbone: Path,
    tmp_path: Path,
    explained,
    words: str,
    wanted: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rotating_features.train.photo_feed.free_memory", lambda device: 9_999)
    status = train(tmp_path, "pascal-voc", photographs["pascal-voc"], tiny_backbone, *words.split())
    explained(status, wanted)
    assert not list(tmp_path.iterdir())


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


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("--evaluate.protocols dinosaur", "Drawn images are scored by blind, rf2023, got dinosaur"),
        ("--model.backbone dino-vitb16", "Backbones are for photographs (pascal-voc, foodseg103"),
        ("--data.side 64", "4shapes has no option side"),
        ("--data.crops 2", "4shapes has no option crops"),
        ("--model.no-position-embedding", "got no --model.backbone"),
    ],
)
def test_what_is_for_photographs_is_refused_for_drawn_images(
    tmp_path: Path, explained, words: str, wanted: str
) -> None:
    explained(main(["train", "4shapes", "--runs", str(tmp_path), *words.split()]), wanted)
    assert not list(tmp_path.iterdir())


def test_a_folder_has_to_be_named(tmp_path: Path, explained) -> None:
    explained(main(["train", "folder", "--runs", str(tmp_path)]), "--data.path FOLDER")


def test_photographs_are_not_fetched(tmp_path: Path, explained) -> None:
    status = main(["data", "pascal-voc", "--fetch", "--out", str(tmp_path)])
    explained(status, "pascal-voc cannot be fetched", "--data.path")


def test_a_folder_without_a_single_image_is_explained(tmp_path: Path, explained) -> None:
    (tmp_path / "broken.png").write_text("no picture")
    words = ["data", "folder", "--path", str(tmp_path), "--picture", str(tmp_path / "it.png")]
    explained(main(words), "broken.png cannot be read")


@pytest.mark.parametrize(
    ("words", "way"),
    [
        ("--protocol dinosaur", ("dinosaur@32", "kmeans k=4")),
        ("--protocols spot", ("spot@32", "kmeans k=4")),
        ("--k auto", ("rf2023@32", "kmeans k=auto")),
        ("--cluster agglomerative", ("rf2023@32", "agglomerative t=5")),
        ("--k 2 --images 1", ("rf2023@32", "kmeans k=2")),
    ],
)
def test_a_run_is_scored_in_other_ways(run: Path, words: str, way: tuple[str, str]) -> None:
    before = scores.read(run / "seed-0")
    assert main(["evaluate", str(run), *words.split()]) == 0
    after = scores.read(run / "seed-0")
    assert after[: len(before)] == before
    new = after[len(before) :]
    assert {(row["protocol"], row["clustering"]) for row in new} == {way}
    assert len(new) == (1 if "--images" in words else 2)
    assert all("mse" not in row and math.isfinite(row["ari_bg"]) for row in new)


def test_scores_of_training_are_those_of_evaluate(run: Path) -> None:
    before = scores.read(run / "seed-0")
    assert main(["evaluate", str(run)]) == 0
    after = scores.read(run / "seed-0")
    assert sorted(map(str, after)) == sorted(map(str, before))  # though perhaps further down


@pytest.mark.parametrize("words", [["--protocol", "blind"], ["--k", "17"]])
def test_scoring_that_cannot_be_is_explained(run: Path, explained, words: list[str]) -> None:
    before = (run / "seed-0" / scores.FILE).read_bytes()
    explained(main(["evaluate", str(run), *words]), words[1])
    assert (run / "seed-0" / scores.FILE).read_bytes() == before


def test_list_names_the_protocols_for_photographs_and_runs_without_ari(
    photographs: dict, tiny_backbone: Path, tmp_path: Path, capsys
) -> None:
    assert train(tmp_path, "foodseg103", photographs["foodseg103"], tiny_backbone) == 0
    capsys.readouterr()
    assert main(["list", "--runs", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "Protocols for photographs" in text
    assert "dinosaur: As DINOSAUR" in text
    assert "not scored yet" not in text


def test_a_broken_photograph_is_named_and_stops_nothing(
    photographs: dict, tiny_backbone: Path, tmp_path: Path, capsys
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for path in photographs["folder"].iterdir():
        (own / path.name).write_bytes(path.read_bytes())
    (own / "a-broken.png").write_text("no picture")
    assert train(tmp_path / "runs", "folder", own, tiny_backbone) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "a-broken.png cannot be read" in text
    run = tmp_path / "runs" / "folder" / "seed-0"
    assert [row["image"] for row in scores.read(run)] == [1, 2, 3, 4]
    (left_out,) = json.loads((run / "left-out.json").read_text())
    assert left_out["name"].endswith("a-broken.png")
    assert "cannot be read" in left_out["problem"]


def test_a_run_goes_on_with_its_own_photographs_alone(
    photographs: dict, tiny_backbone: Path, tmp_path: Path, explained
) -> None:
    own, runs = tmp_path / "own", tmp_path / "runs"
    shutil.copytree(photographs["folder"], own)
    assert train(runs, "folder", own, tiny_backbone) == 0
    longer = ["train", "folder", "--runs", str(runs), "--resume", "--train.steps", "3"]
    shutil.copyfile(next(own.iterdir()), own / "one more.png")
    explained(main(longer), "was trained on other photographs")
    (own / "one more.png").unlink()
    assert main(longer) == 0


def test_a_backbone_may_be_run_without_positions(
    photographs: dict, tiny_backbone: Path, tmp_path: Path
) -> None:
    words = ["--model.no-position-embedding"]
    assert train(tmp_path, "folder", photographs["folder"], tiny_backbone, *words) == 0
    backbone = load(tmp_path / "folder").backbone
    patch = torch.rand(1, 3, 8, 8).repeat(1, 1, 4, 4)
    features = backbone(patch)
    torch.testing.assert_close(features, features[..., :1, :1].expand_as(features))


@pytest.mark.parametrize("backbone", [True, False], ids=["features", "pixels"])
def test_fixed_crops_are_learned_from_and_a_run_keeps_their_number(
    photographs: dict, tiny_backbone: Path, tmp_path: Path, explained, backbone: bool
) -> None:
    where = ["pascal-voc", photographs["pascal-voc"], tiny_backbone if backbone else "None"]
    words = ["--data.crops", "3", "--train.steps"]
    assert train(tmp_path, *where, *words, "2") == 0
    assert train(tmp_path, *where, *words, "4", "--resume") == 0
    assert read_run(tmp_path / "pascal-voc" / "seed-0").experiment.data.crops == 3
    words[1] = "2"
    explained(train(tmp_path, *where, *words, "4", "--resume"), "data.crops 3 -> 2")


def test_a_model_of_pixels_is_trained_on_photographs(photographs: dict, tmp_path: Path) -> None:
    assert train(tmp_path, "pascal-voc", photographs["pascal-voc"], "None") == 0
    assert load(tmp_path / "pascal-voc").size == (32, 32)


# --- Segmenting -----------------------------------------------------------------------------------


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_run_segments_a_folder_once(
    run: Path, photographs: dict, tiny_backbone: Path, tmp_path: Path, capsys
) -> None:
    """Files of the photographs' size; nothing twice; all anew with another backbone."""
    out, own = tmp_path / "masks", photographs["folder"]
    words = ["segment", str(own), "--out", str(out), "--k", "3", "--model"]
    assert main([*words, str(run)]) == 0
    for path in own.iterdir():
        with Image.open(out / f"{path.name}.labels.png") as mask, Image.open(path) as picture:
            assert mask.size == picture.size
            assert len(np.unique(np.array(mask))) <= 3
        assert (out / f"{path.name}.overlay.jpg").exists()
    before = contents(out)
    capsys.readouterr()
    assert main([*words, str(run)]) == 0
    assert "4 of them were done before" in " ".join(capsys.readouterr().out.split())
    assert contents(out) == before

    where = ["pascal-voc", photographs["pascal-voc"], tiny_backbone]
    assert train(tmp_path, *where, "--model.no-position-embedding") == 0
    capsys.readouterr()
    assert main([*words, str(tmp_path / "pascal-voc")]) == 0
    assert "done before" not in capsys.readouterr().out
    assert contents(out)["objects.jsonl"] != before["objects.jsonl"]


def test_a_finished_run_reads_no_photographs(
    tmp_path: Path, photographs, tiny_backbone: Path, monkeypatch
) -> None:
    """But one killed between its trainer and its model has the model written."""
    given = (tmp_path, "pascal-voc", photographs["pascal-voc"], tiny_backbone)
    assert train(*given) == 0
    model = tmp_path / "pascal-voc" / "seed-0" / "model.safetensors"
    content = model.read_bytes()
    weights = load_weights(content)
    with monkeypatch.context() as patch:
        patch.setattr("rotating_features.experiments.run.make_feed", None)  # not to be called
        assert train(*given, "--resume") == 0
    model.with_name("model.safetensors.partial").write_bytes(content)
    model.write_bytes(content[:-8] + bytes(8))
    assert train(*given, "--resume") == 0
    again = load_weights(model.read_bytes())
    assert [n for n, w in weights.items() if not torch.equal(again[n], w)] == []


def test_photographs_may_move(
    tmp_path: Path, photographs, tiny_backbone: Path, explained, capsys
) -> None:
    """Where they are says nothing of what they are; that they are others is found out."""
    here, there = tmp_path / "here", tmp_path / "there"
    shutil.copytree(photographs["pascal-voc"], here)
    assert train(tmp_path, "pascal-voc", here, tiny_backbone) == 0
    here.rename(there)
    more = ("--resume", "--train.steps", "3")
    assert train(tmp_path, "pascal-voc", there, tiny_backbone, *more) == 0
    moved = tmp_path / "moved"
    there.rename(moved)
    run = str(tmp_path / "pascal-voc")
    explained(main(["evaluate", run]), "There is no Pascal VOC 2012 in")
    before = scores.read(Path(run, "seed-0"))
    assert main(["evaluate", run, "--path", str(moved)]) == 0
    assert scores.read(Path(run, "seed-0")) == before


def renamed(folder: Path, new: Path) -> Path:
    """The same photographs of VOC under other names: to all that reads them, others."""
    shutil.copytree(folder, new)
    for path in [*new.rglob("*.jpg"), *new.rglob("*.png")]:
        path.rename(path.with_stem(f"{path.stem}x"))
    for path in new.rglob("*.txt"):
        path.write_text("".join(f"{name}x\n" for name in path.read_text().split()))
    return new


def test_scores_of_other_photographs_are_kept_apart(
    tmp_path: Path, photographs, tiny_backbone: Path, capsys
) -> None:
    own = photographs["pascal-voc"]
    assert train(tmp_path, "pascal-voc", own, tiny_backbone) == 0
    run = tmp_path / "pascal-voc"
    before = scores.read(run / "seed-0")
    others = renamed(own, tmp_path / "others")
    assert main(["evaluate", str(run), "--path", str(others)]) == 0
    after = scores.read(run / "seed-0")
    assert [row for row in after if not row["data"]] == before
    assert {row["data"] for row in after} == {"", f"path={others}"}
    assert "path=" in capsys.readouterr().out


def test_rows_of_photographs_name_them(tmp_path: Path, photographs, tiny_backbone: Path) -> None:
    for dataset in ("pascal-voc", "folder"):
        assert train(tmp_path, dataset, photographs[dataset], tiny_backbone) == 0
    named = {row["name"] for row in scores.read(tmp_path / "pascal-voc" / "seed-0")}
    assert named == {"c", "d"}  # those of val
    named = {row["name"] for row in scores.read(tmp_path / "folder" / "seed-0")}
    assert named == {path.name for path in photographs["folder"].iterdir()}


def test_photographs_that_cannot_be_scored_are_named(
    tmp_path: Path, photographs, tiny_backbone: Path, explained, capsys
) -> None:
    assert train(tmp_path, "folder", photographs["folder"], tiny_backbone) == 0
    mixed = tmp_path / "mixed"
    shutil.copytree(photographs["folder"], mixed)
    (mixed / "broken.jpg").write_bytes(b"no picture")
    command = ["evaluate", str(tmp_path / "folder"), "--path"]
    capsys.readouterr()
    assert main([*command, str(mixed)]) == 0
    assert capsys.readouterr().out.count("broken.jpg cannot be read") == 1
    for path in mixed.iterdir():
        path.write_bytes(b"no picture")
    explained(main([*command, str(mixed)]), "None of the 5 photographs")


def test_a_folder_without_a_readable_photograph_leaves_no_run(
    tmp_path: Path, tiny_backbone: Path, explained
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in "abc":
        (broken / f"{name}.jpg").write_bytes(b"no picture")
    explained(train(tmp_path, "folder", broken, tiny_backbone), "None of 3 images can be used")
    assert not (tmp_path / "folder").exists()
