"""What the commands take. A field is an option, and the text under it its help."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from rotating_features.data import SPLITS, Split
from rotating_features.experiments import Experiment
from rotating_features.experiments.config import (
    DataConfig,
    DatasetName,
    EvaluateConfig,
    Precision,
    ProtocolName,
)
from rotating_features.experiments.plan import RUNS
from rotating_features.experiments.provenance import SEEDS
from rotating_features.segment import BATCH

Preset = Literal["paper", "quick"]


@dataclass(frozen=True, kw_only=True)
class TrainArgs:
    """Train a model, score it on unseen images and draw what it sees."""

    experiment: tyro.conf.Positional[str] = "4shapes"
    """See: rotating-features list"""
    preset: Preset | None = None
    """The paper's numbers, or minutes on a CPU. Default: paper with a GPU, quick without."""
    seeds: tuple[int, ...] = (0,)
    """One model is trained for each."""
    name: str | None = None
    """Folder of the run inside --runs; the experiment's name if not given."""
    runs: Path = Path("runs")
    """Where runs live."""
    resume: bool = False
    """Continue the run where it stopped, with the settings it has."""
    device: str | None = None
    """cpu, cuda, cuda:1, ...; the best there is if not given."""
    settings: Annotated[Experiment, tyro.conf.arg(name="")] = field(default_factory=Experiment)


@dataclass(frozen=True, kw_only=True)
class EvaluateArgs:
    """Score the models of a run again, perhaps in another way; scores taken otherwise are kept."""

    run: tyro.conf.Positional[Path]
    """Folder of a run or of one of its seeds."""
    protocol: ProtocolName | None = None
    """How scores are taken. Default: as in training."""
    path: str | None = None
    """Where the run's images are now, if they have moved since training."""
    backbone: str | None = None
    """Where the model's backbone is now, a folder or a name, if it has moved since training."""
    device: str | None = None
    settings: Annotated[EvaluateConfig, tyro.conf.arg(name="")] = field(
        default_factory=EvaluateConfig
    )


@dataclass(frozen=True, kw_only=True)
class SegmentArgs:
    """Write object masks for image files; what is done already stays done."""

    images: tyro.conf.Positional[tuple[Path, ...]]
    """Image files, folders of them, and patterns in quotes such as "photos/*.jpg"."""
    model: Path
    """A run's folder, a model file, or a model that comes along: voc-small for photographs."""
    out: Path
    """Folder for the masks."""
    k: int | Literal["auto"] | None = None
    """Number of clusters, background included, for k-means; auto has it found for each image.
    Default: as the run is scored."""
    distance_threshold: float | None = None
    """For agglomerative clustering, which finds the number itself."""
    batch_size: int = BATCH
    """Images that the model gets at once."""
    backbone: str | None = None
    """Where the model's backbone is now, a folder or a name, if it has moved since training."""
    device: str | None = None


@dataclass(frozen=True, kw_only=True)
class DataArgs(DataConfig):
    """Write a dataset to npz files in the published format, fetch published files, or look."""

    dataset: tyro.conf.Positional[DatasetName] = "4shapes"
    out: Path | None = None
    """Folder for 4Shapes_train.npz and so on, or for what is fetched."""
    picture: Path | None = None
    """Draw the first test images and their objects to this PNG, and write nothing else."""
    fetch: bool = False
    """Download the published files that the dataset is read from."""
    splits: tuple[Split, ...] = SPLITS


@dataclass(frozen=True, kw_only=True)
class ReproduceArgs:
    """Run a study of the paper and show it beside the paper's numbers; what is done stays done."""

    name: tyro.conf.Positional[str]
    """table-4shapes, figure-nshapes, ...; see: rotating-features list. `page` writes the page of
    all results."""
    seeds: tuple[int, ...] = SEEDS
    """Models for each row."""
    cases: tuple[str, ...] = ()
    """Only these rows, by the names of their runs, as 4shapes-n2. Default: all."""
    scale: float = 1.0
    """Shorter schedules: 0.2 takes a fifth of the steps, and the result says so."""
    precision: Precision = "auto"
    """As --train.precision of train."""
    images: int | None = None
    """Score only the first so many test images. Default: all."""
    path: Path | None = None
    """Folder of published files, for the studies that need them."""
    backbone: str | None = None
    """For studies of photographs: another backbone than the paper's DINO; the result says so."""
    run: Path | None = None
    """For figure-clustering and figure-uncertainty: of this run, not of one on 4Shapes."""
    runs: Path = RUNS
    """Where the models live; studies share them."""
    out: Path = Path("results")
    """Folder for NAME.json and pictures."""
    device: str | None = None


@dataclass(frozen=True, kw_only=True)
class ListArgs:
    """Show what can be run, and what has been."""

    runs: Path = Path("runs")
    """Where runs live."""


@dataclass(frozen=True, kw_only=True)
class BenchArgs:
    """Time each thing against its peer, on a machine that does nothing else meanwhile."""

    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Out of step, evaluate, smooth, ward, photographs, segment, kernels, growth. Default: what
    suits this machine, but for growth."""
    out: Path = Path("benchmarks/results")
    """Folder for the rows, NAME.csv each, and for pictures."""
    repeats: int = 10
    """Timed calls in each process."""
    works: tuple[str, ...] = ()
    """What the step is taken on: 4shapes, 10shapes, features, photographs (default: all with a GPU,
    4shapes without); or what grows: n, batch, side, images."""
    variants: tuple[str, ...] = ()
    """How the step is taken: plain, float32, bfloat16, ... Default: what suits this machine."""
    images: Path | None = None
    """Folder of photographs to segment, of which 200 are taken. Default: made-up ones."""
