"""What the README and the guide say is true."""

import re
import shlex
from pathlib import Path

import pytest
import tyro

from rotating_features import arguments
from rotating_features.bench import BENCHMARKS
from rotating_features.cli import main
from rotating_features.experiments import EXPERIMENTS
from rotating_features.experiments.page import page as results_page
from rotating_features.experiments.studies import STUDIES
from rotating_features.experiments.theory import THEORY

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "docs" / "guide.md", ROOT / "docs" / "benchmarks.md"]
ARGUMENTS = {
    "train": arguments.TrainArgs,
    "evaluate": arguments.EvaluateArgs,
    "segment": arguments.SegmentArgs,
    "list": arguments.ListArgs,
    "reproduce": arguments.ReproduceArgs,
    "data": arguments.DataArgs,
    "bench": arguments.BenchArgs,
}
TINY = shlex.split(
    "--train.steps 2 --train.batch-size 2 --model.hidden-dim 2 --model.rotation-dim 2 "
    "--evaluate.images 2 --train.validate-every 2 --train.compile no"
)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def commands() -> list[str]:
    lines = [line for page in PAGES for block in blocks(page, "sh") for line in block.splitlines()]
    return [line.partition("#")[0].strip() for line in lines if line.strip()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_code_runs(page: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "runs/demo" in page.read_text():
        assert main(["train", "4shapes", "--name", "demo", *TINY]) == 0
    exec(compile("\n".join(blocks(page, "python")), page.name, "exec"), {})


@pytest.mark.parametrize("line", [line for line in commands() if line.startswith("make")])
def test_the_makefile_has_every_target(line: str) -> None:
    assert re.search(rf"^{line.split()[1]}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


def all_commands() -> list[str]:
    """Of the pages, and above the tables of results."""
    results = (ROOT / "docs" / "results.md").read_text()
    return [
        *(line for line in commands() if line.startswith("rotating-features")),
        *re.findall(r"^(?:Its .*)?`(rotating-features .*?)`", results, flags=re.MULTILINE),
    ]


@pytest.mark.parametrize("line", all_commands())
def test_every_command_is_understood(line: str) -> None:
    check_command(line)


@pytest.mark.parametrize(
    "line",
    [
        "rotating-features train 5shapes",
        "rotating-features reproduce table-5shapes",
        "rotating-features reproduce table-4shapes --cases 10shapes-n2",
        "rotating-features bench stride",
    ],
)
def test_a_command_with_a_wrong_name_would_be_noticed(line: str) -> None:
    with pytest.raises(AssertionError):
        check_command(line)


def check_command(line: str) -> None:
    """Its options are options, and its names name something."""
    command, *words = shlex.split(line)[1:]
    args = tyro.cli(ARGUMENTS[command], args=words)
    if command == "train":
        assert args.experiment in EXPERIMENTS
    if command == "bench":
        assert set(args.names) <= {*BENCHMARKS}
    if command == "reproduce":
        assert args.name in {*STUDIES, *THEORY, "page"}
        cases = STUDIES[args.name].cases if args.cases else ()
        assert set(args.cases) <= {case.slug for case in cases}


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target


def test_the_page_of_results_says_what_the_files_say() -> None:
    assert (ROOT / "docs" / "results.md").read_text() == results_page(ROOT / "results")


def test_paper_to_code_names_things_that_exist() -> None:
    text = (ROOT / "docs" / "paper-to-code.md").read_text()
    source = ROOT / "src" / "rotating_features"
    for name in re.findall(r"`([a-z_/]+\.py)`", text):
        assert (source / name).exists(), name
    for name in re.findall(r"`((?:table|figure|ablation)-[a-z0-9-]+)`", text):
        assert name in {*STUDIES, *THEORY}, name
    everything = "\n".join(path.read_text() for path in source.rglob("*.py"))
    for name in re.findall(r"`([A-Za-z_]+)`", text):
        assert name in everything, name
