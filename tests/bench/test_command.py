from pathlib import Path

import pytest

from rotating_features import bench, cli
from rotating_features.bench.harness import Row, read_rows

MADE_UP: dict[str, object] = {"median_ms": 1.0, "low_ms": 0.5, "high_ms": 2.0, "peak_mb": 30.0}


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict]:
    """Benchmarks that take no time; what each was called with."""
    calls: dict[str, dict] = {}

    def make(name: str):
        def run(**options):
            calls[name] = options
            options["tell"]("working")
            row: Row = {"work": name, "variant": "ours", **MADE_UP, "peer": "x", "times_faster": ""}
            yield [{**row, "grows": "n", "value": 1} if name == "growth" else row]
            yield [{**row, "variant": "x", "grows": "n", "value": 1} if name == "growth" else row]

        return run

    made_up = {name: make(name) for name in bench.BENCHMARKS}
    monkeypatch.setattr("rotating_features.commands.bench.BENCHMARKS", made_up)
    monkeypatch.setattr(bench.torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(bench, "library", lambda *_: None)
    return calls


def run(folder: Path, *words: str) -> int:
    return cli.main(["bench", *words, "--out", str(folder)])


def test_without_names_all_that_suit_the_machine_run(tmp_path: Path, asked, capsys) -> None:
    assert run(tmp_path) == 0
    assert set(asked) == {"step", "evaluate", "smooth", "ward", "photographs", "segment"}
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.csv" for name in asked}
    text = capsys.readouterr().out
    assert "Left out: kernels wants a GPU" in text
    assert "times faster" in text
    assert "step.csv" in text


def test_names_and_options_reach_the_benchmarks(tmp_path: Path, asked) -> None:
    words = ["--repeats", "3", "--works", "features", "10shapes", "--variants", "plain"]
    assert run(tmp_path, "step", "ward", *words) == 0
    assert set(asked) == {"step", "ward"}
    assert asked["ward"]["repeats"] == 3
    assert asked["step"]["works"] == ("features", "10shapes")
    assert asked["step"]["variants"] == ("plain",)


def test_photographs_reach_the_benchmark_that_segments_them(tmp_path: Path, asked) -> None:
    (tmp_path / "a.jpg").touch()
    assert run(tmp_path / "out", "segment", "ward", "--images", str(tmp_path)) == 0
    assert asked["segment"]["folder"] == tmp_path
    assert "folder" not in asked["ward"]


def test_a_work_that_lacks_a_package_is_left_out_or_refused(
    tmp_path: Path, asked, capsys, monkeypatch
) -> None:
    monkeypatch.setattr("rotating_features.bench.step.find_spec", lambda name: None)
    monkeypatch.setattr("rotating_features.commands.bench.append_rows", lambda *_: None)
    monkeypatch.setattr(bench.torch.cuda, "is_available", lambda: True)
    assert run(tmp_path, "step") == 0
    assert "Left out: step on photographs wants transformers" in capsys.readouterr().out
    assert run(tmp_path, "step", "--works", "photographs") == 2
    assert "wants transformers" in capsys.readouterr().err


def test_rows_of_another_day_are_kept(tmp_path: Path) -> None:
    assert run(tmp_path, "ward") == 0
    assert run(tmp_path, "ward") == 0
    assert len(read_rows(tmp_path / "ward.csv")) == 4


def test_what_grows_can_be_chosen(tmp_path: Path, asked: dict) -> None:
    assert run(tmp_path, "growth", "--works", "side", "images") == 0
    assert asked["growth"]["works"] == ("side", "images")


def test_growth_leaves_a_picture(tmp_path: Path) -> None:
    assert run(tmp_path, "growth") == 0
    assert {path.name for path in tmp_path.iterdir()} == {"growth.csv", "growth-cpu.png"}


def test_a_peer_that_is_missing_is_named(tmp_path: Path, asked, capsys, monkeypatch) -> None:
    monkeypatch.setattr(bench, "find_spec", lambda name: None)
    assert run(tmp_path) == 0
    assert "smooth" not in asked
    assert "smooth wants scikit-image" in capsys.readouterr().out
    assert run(tmp_path, "smooth") == 2
    assert "smooth wants scikit-image" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["setp"], "got 'setp'.\n  Did you mean 'step'?"),
        (["step", "--works", "4shape"], "got '4shape'.\n  Did you mean '4shapes'?"),
        (
            ["ward", "--works", "4shapes"],
            "should come with one benchmark that has",
        ),
        (["step", "--variants", "plian"], "got 'plian'.\n  Did you mean 'plain'?"),
        (["step", "--repeats", "0"], "repeats should be at least 1, got 0"),
        (["kernels"], "kernels wants a GPU and triton, or Linux, AVX-512 and a C++ compiler"),
        (["ward", "--images", "."], "images should come with the benchmark that takes them"),
        (["segment", "--images", "nowhere"], "There is no image or folder nowhere"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(
    tmp_path: Path, asked, capsys, words, wanted
) -> None:
    assert run(tmp_path / "out", *words) == 2
    text = capsys.readouterr().err
    assert wanted in text
    assert len(text.splitlines()) <= 2
    assert not asked
    assert not (tmp_path / "out").exists()
