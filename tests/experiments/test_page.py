"""The page of results: what it shows, the commands it gives, and whose page it replaces."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rotating_features.cli import main
from rotating_features.experiments.page import page
from rotating_features.experiments.paper import Claim
from rotating_features.experiments.report import worse
from rotating_features.experiments.studies import STUDIES

pytestmark = pytest.mark.usefixtures("here")

REPOSITORY = Path(__file__).parents[2]


def committed(name: str) -> dict[str, Any]:
    return json.loads((REPOSITORY / "results" / f"{name}.json").read_text())


def shown_command(record: dict[str, Any], folder: Path) -> str:
    """The command above the table of the record, on a page of it alone."""
    folder.mkdir(exist_ok=True)
    (folder / "record.json").write_text(json.dumps(record))
    return next(x for x in page(folder).splitlines() if x.startswith("`")).split("`")[1]


def test_the_page_shows_every_study_that_there_is(tmp_path: Path, reproduce) -> None:
    assert reproduce("table-10shapes") == 0
    assert main(["reproduce", "page"]) == 0
    text = (tmp_path / "docs" / "results.md").read_text()
    assert "## 10Shapes: ten objects at once (Figure 5, Table 11), 2 seeds, 2e-05 of" in text
    assert "| n=10 | " in text
    assert "0.959 ± 0.022" in text
    assert "../results/table-10shapes-x2e-05-2-images-objects.png" in text


def test_a_page_of_somebody_else_is_left_alone(tmp_path: Path, capsys) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "docs").mkdir()
    page_file = tmp_path / "docs" / "results.md"
    page_file.write_text("# My results\n")
    assert main(["reproduce", "page"]) == 2
    assert "is not from here" in capsys.readouterr().err
    assert page_file.read_text() == "# My results\n"


def test_a_page_of_other_results_is_left_alone(tmp_path: Path, capsys, reproduce) -> None:
    assert reproduce("table-10shapes", "--out", "mine") == 0
    shutil.copytree("mine", "results")
    assert main(["reproduce", "page"]) == 0
    before = (tmp_path / "docs" / "results.md").read_text()
    assert main(["reproduce", "page", "--out", "mine"]) == 2
    said = capsys.readouterr().err
    assert "shows another folder than mine" in said
    assert "Move it away" in said
    assert (tmp_path / "docs" / "results.md").read_text() == before


def test_the_page_links_to_where_the_results_are(tmp_path: Path, capsys, reproduce) -> None:
    name, words = next(iter(STUDIES)), ["--out", "elsewhere/found"]
    assert reproduce(name, *words, "--cases", STUDIES[name].cases[0].slug) == 0
    for _ in range(2):  # its own page may be replaced
        assert main(["reproduce", "page", *words]) == 0
    text = (tmp_path / "docs" / "results.md").read_text()
    assert f"](../elsewhere/found/{name}-x2e-05-2-images-objects.png)" in text
    assert "../results" not in text
    assert main(["reproduce", "page", "--scale", "0.5"]) == 2
    assert "Leave the other options" in capsys.readouterr().err


def test_the_page_names_rows_of_other_settings_than_the_command_has_now(
    tmp_path: Path, reproduce
) -> None:
    assert reproduce("table-10shapes") == 0
    assert "settings changed" not in page(tmp_path / "results")
    path = tmp_path / "results" / "table-10shapes-x2e-05-2-images.json"
    record = json.loads(path.read_text())
    record["cases"][0]["settings"]["train"]["lr"] = 0.5
    path.write_text(json.dumps(record))
    said = "Run before the study's settings changed (train.lr 0.5 -> 0.001): 10shapes-n2."
    assert said in page(tmp_path / "results")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("table-4shapes", "table-4shapes --precision bfloat16"),
        ("figure-nshapes-x0.1", "--scale 0.1 --seeds 0 1 --precision bfloat16"),
        ("table-foodseg-efficientnet-lite0-s32", "--backbone efficientnet-lite0-s32 --path FOLDER"),
        (
            "figure-clustering-4shapes-n6-bfloat16",
            "figure-clustering --run runs/reproduce/4shapes-n6-bfloat16",
        ),
    ],
)
def test_the_page_shows_the_command_that_makes_the_whole_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str, whole_studies
) -> None:
    """Not the last of several that made it row by row."""
    record = committed(name) | {"command": "the last one"}
    study = record["study"]
    rows = tuple(
        case for case in whole_studies[study].cases if "foodseg" not in name or case.baseline
    )
    monkeypatch.setitem(STUDIES, study, dataclasses.replace(whole_studies[study], cases=rows))
    assert shown_command(record, tmp_path / "found").endswith(words)


def test_the_command_of_a_table_that_lacks_rows_names_those_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_studies
) -> None:
    record = committed("table-dsprites-clevr-x0.1")
    monkeypatch.setitem(STUDIES, "table-dsprites-clevr", whole_studies["table-dsprites-clevr"])
    rows = "--cases multi-dsprites-complex multi-dsprites-rotating"
    assert shown_command(record, tmp_path / "found").endswith(f"--precision bfloat16 {rows}")
    record["left_out"] |= {
        case.label: "not here" for case in whole_studies["table-dsprites-clevr"].cases[2:]
    }
    assert "--cases" not in shown_command(record, tmp_path / "found")


@pytest.mark.parametrize(
    ("figure", "study", "words"),
    [
        ("4shapes-n6-bfloat16", "table-4shapes", "--cases 4shapes-n6"),
        (
            "pascal-rotating-quick-rate-efficientnet-lite0-s32-bfloat16-200-images",
            "table-pascal",
            "--seeds 0 1 2 --backbone efficientnet-lite0-s32 --path FOLDER "
            "--cases pascal-rotating-quick-rate",
        ),
    ],
)
def test_a_figure_of_a_study_s_own_run_says_what_trains_it(
    tmp_path: Path, monkeypatch, figure: str, study: str, words: str, whole_studies
) -> None:
    record = committed(f"figure-clustering-{figure}")
    monkeypatch.setitem(STUDIES, study, whole_studies[study])
    shown_command(record, tmp_path / "found")
    said = f"Its run is trained by `rotating-features reproduce {study} {words}"
    assert f"{said} --precision bfloat16`." in page(tmp_path / "found")
    shown_command(record | {"given": "runs/mine"}, tmp_path / "found")
    assert "Its run" not in page(tmp_path / "found")


def test_the_page_says_which_commits_were_changed(tmp_path: Path) -> None:
    record = committed("table-4shapes")
    record["cases"] = [case | {"commit": "0123456789+"} for case in record["cases"]]
    shown_command(record, tmp_path / "found")
    assert "commit 0123456+, NVIDIA H200" in page(tmp_path / "found")


def test_the_page_shows_a_study_s_longest_runs_first(tmp_path: Path) -> None:
    record = committed("table-4shapes")
    (tmp_path / "results").mkdir()
    for name, scale in {"a": 0.1, "b": 1.0, "c": 0.3}.items():
        text = json.dumps(record | {"scale": scale, "title": f"Scaled by {scale}"})
        (tmp_path / "results" / f"{name}.json").write_text(text)
    text = page(tmp_path / "results")
    assert text.index("by 1.0") < text.index("by 0.3") < text.index("by 0.1")


def test_the_page_draws_plots_of_unfinished_studies_too(tmp_path: Path) -> None:
    record = committed("table-4shapes")
    record["cases"] = record["cases"][:5]
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "table-4shapes.json").write_text(json.dumps(record))
    assert main(["reproduce", "page"]) == 0
    assert (tmp_path / "results" / "table-4shapes.png").exists()
    text = (tmp_path / "docs" / "results.md").read_text()
    assert "../results/table-4shapes.png" in text
    assert "Not run: 4shapes-n8." in text


@pytest.mark.parametrize("text", ["{}", "[]", '{"study": "table-10shapes"}', "{"])
def test_a_damaged_result_is_named(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "odd.json").write_text(text)
    assert main(["reproduce", "page"]) == 2
    assert "odd.json should be a file of results" in capsys.readouterr().err


def test_worse_means_by_more_than_two_errors() -> None:
    claim = Claim(0.9, 0.02)._asdict()
    assert worse("ari_bg", {"mean": 0.85}, claim)
    assert not worse("ari_bg", {"mean": 0.87}, claim)
    assert not worse("ari_bg", {"mean": 0.99}, claim)
    assert worse("mse", {"mean": 0.95}, claim)
    assert not worse("mse", {"mean": 0.1}, claim)
    assert not worse("mse", {"mean": 1.0}, None)
    assert not worse("ari_bg", {"mean": 0.99996}, Claim(1.0, 0.0)._asdict())
    assert not worse("iou_random", {"mean": 0.1}, claim)
