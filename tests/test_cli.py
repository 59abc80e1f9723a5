import errno
import json
import os
import shlex
import shutil
import signal
from pathlib import Path

import pytest
import torch
from PIL import Image

import rotating_features as rf
from rotating_features._lock import locked
from rotating_features.cli import COMMANDS, main
from rotating_features.commands.train import _parse_train
from rotating_features.data import FourShapes
from rotating_features.experiments import EXPERIMENTS, scores
from rotating_features.train.checkpoint import read_metrics

TINY = shlex.split(
    "--train.steps 2 --train.batch-size 2 --train.validate-every 2 --train.log-every 1 "
    "--model.hidden-dim 2 --model.rotation-dim 2 --evaluate.images 3"
)


@pytest.fixture(autouse=True)
def _few_images_to_validate_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rotating_features.experiments.run.VALIDATION_IMAGES", 2)


def train(runs: Path, *words: str) -> int:
    return main(["train", "4shapes", "--runs", str(runs), *TINY, *words])


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("preset", ["paper", "quick"])
def test_every_experiment_trains_evaluates_saves_and_resumes(
    tmp_path: Path, published: Path, photographs, tiny_backbone: Path, experiment, preset, capsys
) -> None:
    words = ["train", experiment, "--runs", str(tmp_path), "--preset", preset, *TINY]
    if experiment.startswith(("mnist", "clevr")):
        words += ["--data.path", str(published)]
    if experiment in photographs:
        words += ["--data.path", str(photographs[experiment]), "--data.side", "32"]
        words += ["--model.backbone", str(tiny_backbone)]
    assert main(words) == 0
    assert ("On features of" in capsys.readouterr().out) == (experiment in photographs)
    folder = tmp_path / experiment / "seed-0"
    expected = {"config.json", "model.safetensors", "trainer.pt", "metrics.jsonl", "scores.csv"}
    assert expected <= {path.name for path in folder.iterdir()}
    pictures = {"objects.png", "learning-curve.png"}
    pictures |= {"classes.png"} if experiment.startswith("mnist") else set()
    assert {path.name for path in (folder / "figures").iterdir()} == pictures
    assert main([*words, "--resume", "--train.steps", "3"]) == 0
    assert [row["step"] for row in read_metrics(folder) if "loss" in row] == [1, 2, 3]
    assert rf.load(tmp_path / experiment).settings["rotation_dim"] == 2


@pytest.mark.parametrize("dataset", ["pascal-voc", "foodseg103", "folder"])
def test_photographs_can_be_looked_at_but_not_written(
    tmp_path: Path, photographs: dict, dataset: str, explained
) -> None:
    words = ["data", dataset, "--path", str(photographs[dataset])]
    assert main([*words, "--picture", str(tmp_path / "look.png")]) == 0
    assert (tmp_path / "look.png").read_bytes().startswith(b"\x89PNG")
    explained(main([*words, "--out", str(tmp_path)]), "npz files", "--picture")
    fetch = main([*words, "--out", str(tmp_path), "--fetch"])
    explained(fetch, "cannot be fetched", "--data.path")


def test_a_cache_of_features_without_a_backbone_is_explained(tmp_path: Path, explained) -> None:
    status = train(tmp_path, "--evaluate.feature-cache", str(tmp_path / "cache"))
    explained(status, "there is no backbone")
    assert not (tmp_path / "4shapes").exists()


def test_several_seeds_are_trained_and_averaged(tmp_path: Path) -> None:
    assert train(tmp_path, "--seeds", "0", "3") == 0
    summary = json.loads((tmp_path / "4shapes" / "summary.json").read_text())
    assert summary["seeds"] == [0, 3]
    score = summary["scores"]["rf2023, kmeans k=5"]["ari_bg"]
    assert score["mean"] == pytest.approx(sum(score["per_seed"]) / 2)
    weights = [rf.load(tmp_path / "4shapes" / f"seed-{s}").squeeze.bias for s in (0, 3)]
    assert not torch.equal(*weights)


def test_resuming_takes_the_seeds_and_settings_of_the_run(tmp_path: Path) -> None:
    train(tmp_path, "--seeds", "1", "2")
    assert main(["train", "4shapes", "--runs", str(tmp_path), "--resume"]) == 0
    summary = json.loads((tmp_path / "4shapes" / "summary.json").read_text())
    assert summary["seeds"] == [1, 2]
    assert summary["settings"]["model"]["hidden_dim"] == 2


def test_a_seed_gives_the_same_model_alone_and_among_others(tmp_path: Path) -> None:
    train(tmp_path, "--seeds", "0", "1", "--name", "both")
    train(tmp_path, "--seeds", "1", "--name", "one")
    one, other = rf.load(tmp_path / "both" / "seed-1"), rf.load(tmp_path / "one")
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_options_of_the_layers_reach_the_model(tmp_path: Path) -> None:
    assert train(tmp_path, "--model.no-binding", "--model.no-bias-in-magnitude") == 0
    settings = rf.load(tmp_path / "4shapes").settings
    assert not settings["binding"]
    assert not settings["bias_in_magnitude"]


def test_evaluating_in_another_way_keeps_the_scores_there_are(tmp_path: Path) -> None:
    train(tmp_path)
    folder = tmp_path / "4shapes"
    before = scores.read(folder / "seed-0")
    words = ["--cluster", "agglomerative", "--distance-threshold", "2", "--protocol", "rf2023"]
    assert main(["evaluate", str(folder), *words]) == 0
    after = scores.read(folder / "seed-0")
    assert after[: len(before)] == before
    new = {(row["protocol"], row["clustering"]) for row in after[len(before) :]}
    assert new == {("rf2023", "agglomerative t=2")}


def test_evaluating_again_gives_the_same_scores(tmp_path: Path) -> None:
    train(tmp_path)
    path = tmp_path / "4shapes" / "seed-0" / scores.FILE
    before = path.read_bytes()
    assert main(["evaluate", str(tmp_path / "4shapes" / "seed-0")]) == 0
    assert path.read_bytes() == before


def test_data_written_to_files_trains_the_same_model(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(FourShapes, "__len__", lambda self: 30)
    data = tmp_path / "data"
    assert main(["data", "4shapes", "--out", str(data)]) == 0
    assert sorted(path.name for path in data.iterdir()) == [
        "4Shapes_test.npz",
        "4Shapes_train.npz",
        "4Shapes_val.npz",
    ]
    train(tmp_path, "--name", "drawn")
    train(tmp_path, "--name", "read", "--data.path", str(data))
    drawn, read = (rf.load(tmp_path / name) for name in ("drawn", "read"))
    for a, b in zip(drawn.parameters(), read.parameters(), strict=True):
        assert torch.equal(a, b)


def test_data_that_exists_is_not_written_over(tmp_path: Path, explained, monkeypatch) -> None:
    monkeypatch.setattr(FourShapes, "__len__", lambda self: 3)
    words = ["data", "4shapes", "--out", str(tmp_path), "--splits", "val"]
    assert main(words) == 0
    before = contents(tmp_path)
    explained(main(words), "exists already")
    assert contents(tmp_path) == before


def test_a_folder_that_cannot_be_written_is_found_before_anything_is_drawn(
    tmp_path: Path, explained, monkeypatch
) -> None:
    monkeypatch.setattr(FourShapes, "draw", lambda *_: 1 / 0)
    file = tmp_path / "file.txt"
    file.write_text("mine")
    status = main(["data", "4shapes", "--out", str(file), "--splits", "val"])
    explained(status, "file.txt should be a folder that can be written", "another --out")


def test_a_picture_that_would_not_be_a_png_is_refused(tmp_path: Path, explained) -> None:
    status = main(["data", "4shapes", "--picture", str(tmp_path / "look.jpg")])
    explained(status, "--picture should be a PNG", "look.jpg")
    assert not list(tmp_path.iterdir())


def test_segment_writes_masks_and_names_what_is_broken(tmp_path: Path, explained) -> None:
    train(tmp_path)
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    shapes = FourShapes("test")[0].image[0].mul(255).byte().numpy()
    Image.fromarray(shapes).resize((50, 40)).save(pictures / "good.png")
    (pictures / "bad.png").write_text("no picture")
    out = tmp_path / "masks"
    words = ["--model", str(tmp_path / "4shapes"), "--out", str(out)]
    explained(main(["segment", str(pictures), *words]), "bad.png cannot be read")
    with Image.open(out / "good.png.labels.png") as mask:
        assert mask.size == (50, 40)
    assert main(["segment", str(pictures / "good.png"), *words, "--k", "3"]) == 0


def test_a_run_has_one_writer_at_a_time(tmp_path: Path, explained) -> None:
    train(tmp_path)
    before = contents(tmp_path)
    with locked([tmp_path / "4shapes" / "seed-0"]):
        longer = train(tmp_path, "--resume", "--train.steps", "7")
        explained(longer, "Another command is writing to")
        explained(main(["evaluate", str(tmp_path / "4shapes")]), "Another command is writing to")
    assert contents(tmp_path) == before


def test_scores_of_a_model_less_trained_are_dropped(tmp_path: Path) -> None:
    train(tmp_path)
    folder = tmp_path / "4shapes" / "seed-0"
    assert main(["evaluate", str(folder), "--k", "3"]) == 0
    assert {row["clustering"] for row in scores.read(folder)} == {"kmeans k=5", "kmeans k=3"}
    assert train(tmp_path, "--resume") == 0  # nothing is left to learn
    assert {row["clustering"] for row in scores.read(folder)} == {"kmeans k=5", "kmeans k=3"}
    assert train(tmp_path, "--resume", "--train.steps", "4") == 0
    assert {row["clustering"] for row in scores.read(folder)} == {"kmeans k=5"}


@pytest.mark.parametrize(
    ("words", "side"),
    [
        ([], 224),
        (["--model.backbone", "efficientnet-lite0-s32"], 448),
        (["--model.backbone", "dinov2-small"], 196),
        (["--model.backbone", "efficientnet-lite0-s32", "--data.side", "320"], 320),
        (["--model.backbone", "somebody/else"], 224),
    ],
)
def test_a_backbone_gets_photographs_of_the_size_it_wants(words: list[str], side: int) -> None:
    args = _parse_train(["folder", "--data.path", "holiday", *words])
    assert args.settings.data.side == side


def test_drawn_images_cannot_have_moved(tmp_path: Path, explained) -> None:
    train(tmp_path)
    words = ["evaluate", str(tmp_path / "4shapes"), "--path", str(tmp_path)]
    explained(main(words), "was trained on drawn images. Leave --path.")


def test_resuming_what_is_not_there_is_said(tmp_path: Path, capsys) -> None:
    assert train(tmp_path, "--resume", "--name", "mistyped") == 0
    assert f"There is no run in {tmp_path / 'mistyped'} yet" in capsys.readouterr().out


def test_segment_clusters_as_the_run_is_scored_unless_told_otherwise(
    tmp_path: Path, capsys
) -> None:
    train(tmp_path, "--evaluate.k", "3")
    picture = tmp_path / "shapes.png"
    shapes = FourShapes("test")[0].image[0].mul(255).byte().numpy()
    Image.fromarray(shapes).save(picture)
    run = tmp_path / "4shapes"
    words = ["segment", str(picture), "--out"]

    def labels(name: str, *options: str | Path) -> tuple[bytes, str]:
        out = tmp_path / name
        assert main([*words, str(out), "--model", *map(str, options)]) == 0
        return (out / "shapes.png.labels.png").read_bytes(), capsys.readouterr().out

    usual, said = labels("usual", run)
    assert "as the run is scored, k=3" in said
    asked, said = labels("asked", run, "--k", "3")
    assert "as the run is scored" not in said
    assert asked == usual
    alone = tmp_path / "alone.safetensors"
    alone.write_bytes((run / "seed-0" / "model.safetensors").read_bytes())
    by_threshold = labels("file", alone)[0]
    assert by_threshold == labels("threshold", run, "--distance-threshold", "5")[0]


def test_list_shows_experiments_protocols_and_runs(tmp_path: Path, capsys) -> None:
    train(tmp_path)
    capsys.readouterr()
    assert main(["list", "--runs", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    for word in ("4shapes", "paper", "quick", "blind", "rf2023", "seed-0", "2 of 2"):
        assert word in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert "usage" in capsys.readouterr().out


def test_help_shows_the_defaults_of_the_experiment_or_run_it_is_asked_of(
    tmp_path: Path, capsys
) -> None:
    def help_of(*words: str) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([*words, "--help"])
        assert stop.value.code == 0
        return " ".join(capsys.readouterr().out.split())

    assert "efficientnet-lite0-s16" in help_of("train", "folder", "--preset", "quick")
    assert "dino-vitb16" in help_of("train", "folder", "--preset", "paper")
    assert "dino-vitb16" not in help_of("train")
    train(tmp_path, "--evaluate.k", "17")
    assert "(default: 17)" in help_of("evaluate", str(tmp_path / "4shapes"))
    assert "(default: 17)" not in help_of("evaluate")


def test_no_command_shows_the_commands(capsys) -> None:
    assert main([]) == 0
    text = capsys.readouterr().out
    assert all(command in text for command in COMMANDS)


def test_an_unknown_command_is_explained(explained) -> None:
    explained(main(["tarin"]), "got 'tarin'", "Did you mean 'train'?")


def test_an_unknown_experiment_is_explained(explained) -> None:
    explained(main(["train", "4shape"]), "got '4shape'", "Did you mean '4shapes'?")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["--preset", "fast"], "invalid choice 'fast'"),
        (["--model.rotation-dim", "1"], "rotation_dim should be at least 2, got 1"),
        (["--train.steps", "many"], "many"),
        (["--train.stps", "1"], "--train.stps"),
        (["--data.seed", "100000000000000000000"], "below 2^63"),
    ],
)
def test_wrong_options_are_explained(tmp_path: Path, explained, words, wanted) -> None:
    with pytest.raises(SystemExit) as stop:
        train(tmp_path, *words)
    explained(stop.value.code, wanted)
    assert not list(tmp_path.iterdir())


def test_a_run_folder_that_exists_is_left_as_it_is(tmp_path: Path, explained) -> None:
    train(tmp_path)
    before = contents(tmp_path)
    explained(train(tmp_path), "exists already", "--resume", "--name")
    assert contents(tmp_path) == before


def test_one_seed_that_exists_stops_all_before_they_start(tmp_path: Path, explained) -> None:
    train(tmp_path, "--seeds", "1")
    status = train(tmp_path, "--seeds", "0", "1")
    explained(status, "seed-1", "exists already")
    assert not (tmp_path / "4shapes" / "seed-0").exists()


def test_resuming_with_other_settings_is_refused(tmp_path: Path, explained) -> None:
    train(tmp_path)
    before = contents(tmp_path)
    status = train(tmp_path, "--resume", "--train.lr", "0.5")
    explained(status, "train.lr", "-> 0.5")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("words", [[], ["--train.lr", "0.5"]])
def test_a_truncated_checkpoint_costs_nothing_else(tmp_path: Path, explained, words) -> None:
    train(tmp_path)
    trainer = tmp_path / "4shapes" / "seed-0" / "trainer.pt"
    trainer.write_bytes(trainer.read_bytes()[:1000])
    before = contents(tmp_path)
    explained(train(tmp_path, "--resume", *words), "seed-0")
    assert contents(tmp_path) == before


def test_resuming_to_fewer_steps_is_refused(tmp_path: Path, explained) -> None:
    train(tmp_path)
    status = train(tmp_path, "--resume", "--train.steps", "1")
    explained(status, "has done 2 steps, more than the 1 asked for")


@pytest.mark.parametrize("seeds", [["-1"], ["0", "0"], ["18446744073709551616"]])
def test_seeds_that_cannot_be_are_explained(tmp_path: Path, explained, seeds: list[str]) -> None:
    explained(train(tmp_path, "--seeds", *seeds), "seeds should be different numbers")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["--data.path", "nowhere"], "There is no file nowhere"),
        (["--train.batch-size", "60000"], "got 60000"),
        (["--evaluate.k", "2000"], "got k=2000"),
    ],
)
def test_mistakes_are_found_before_a_folder_is_made(
    tmp_path: Path, explained, words, wanted
) -> None:
    explained(train(tmp_path, *words), wanted)
    assert not list(tmp_path.iterdir())


def test_a_run_killed_before_its_first_file_was_whole_starts(tmp_path: Path) -> None:
    folder = tmp_path / "4shapes" / "seed-0"
    folder.mkdir(parents=True)
    (folder / "config.json.partial").write_text("{")
    assert train(tmp_path) == 0


def test_folders_beside_the_seeds_are_left_alone(tmp_path: Path) -> None:
    train(tmp_path)
    shutil.copytree(tmp_path / "4shapes" / "seed-0", tmp_path / "4shapes" / "seed-0-backup")
    assert main(["list", "--runs", str(tmp_path)]) == 0


def test_damaged_scores_are_explained(tmp_path: Path, explained) -> None:
    train(tmp_path)
    (tmp_path / "4shapes" / "seed-0" / "scores.csv").write_text("protocol,image\nblind,x\n")
    explained(main(["evaluate", str(tmp_path / "4shapes")]), "scores.csv", "damaged")


def test_compiling_without_a_compiler_is_explained(tmp_path: Path, explained, monkeypatch) -> None:
    monkeypatch.setattr("rotating_features.machine.shutil.which", lambda name: None)
    status = train(tmp_path, "--train.compile", "yes")
    explained(status, "a C++ compiler", "--train.compile at auto")


def test_damaged_scores_spoil_no_list(tmp_path: Path, capsys) -> None:
    train(tmp_path, "--seeds", "0", "1")
    (tmp_path / "4shapes" / "seed-0" / "scores.csv").write_bytes(b"\0" * 200_000)
    assert main(["list", "--runs", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "4shapes/seed-0" in shown
    assert "4shapes/seed-1" in shown


def test_a_full_device_is_explained(tmp_path: Path, explained, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB.")

    monkeypatch.setattr("rotating_features.experiments.run.train", full)
    explained(train(tmp_path), "memory of the device is full", "20 GiB", "a smaller batch")


def test_a_damaged_config_is_explained(tmp_path: Path, explained) -> None:
    train(tmp_path)
    (tmp_path / "4shapes" / "seed-0" / "config.json").write_text('{"experiment"')
    status = main(["evaluate", str(tmp_path / "4shapes")])
    explained(status, "config.json", "damaged")


def test_a_run_that_is_not_there_is_explained(tmp_path: Path, explained) -> None:
    explained(main(["evaluate", str(tmp_path / "none")]), "There is no run at")


def test_k_larger_than_the_number_of_pixels_is_explained(tmp_path: Path, explained) -> None:
    train(tmp_path)
    status = main(["evaluate", str(tmp_path / "4shapes"), "--k", "2000"])
    explained(status, "got k=2000")


@pytest.mark.parametrize("file", ["config.json", "trainer.pt", "model.safetensors", "scores.csv"])
@pytest.mark.parametrize(
    ("code", "advice"),
    [(errno.ENOSPC, "Free some space"), (errno.EROFS, "read-only"), (errno.EACCES, "may write")],
)
def test_a_disk_that_says_no_costs_nothing_that_was_good(
    tmp_path: Path, explained, monkeypatch, code: int, advice: str, file: str
) -> None:
    train(tmp_path)
    before = contents(tmp_path)

    replace = Path.replace

    def fail(self: Path, target: Path) -> Path:
        if target.name == file:
            raise OSError(code, os.strerror(code), str(self))
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        status = train(tmp_path, "--resume", "--train.steps", "3")
    explained(status, advice, "intact")
    path = f"4shapes/seed-0/{file}"
    good = None if file == "scores.csv" else before[path]  # the scores were of a model less trained
    assert contents(tmp_path).get(path) == good
    assert rf.load(tmp_path / "4shapes").settings["hidden_dim"] == 2
    assert train(tmp_path, "--resume", "--train.steps", "3") == 0


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path, capsys, monkeypatch) -> None:
    draw, calls = FourShapes.draw, []

    def interrupted_draw(self: FourShapes, indices):
        calls.append(indices)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return draw(self, indices)

    monkeypatch.setattr(FourShapes, "draw", interrupted_draw)
    assert train(tmp_path) == 130
    text = " ".join(capsys.readouterr().out.split())
    assert "Stopped after 1 steps, all of them saved. Go on with --resume." in text
    assert train(tmp_path, "--resume") == 0
