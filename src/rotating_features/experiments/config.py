"""Settings of an experiment: at once the config file, the command line and its help."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin, get_type_hints

from rotating_features._check import InputError
from rotating_features.data.resize import How
from rotating_features.data.shapes import HueOffset
from rotating_features.evaluate.cluster import Count, Method
from rotating_features.evaluate.orientation import THRESHOLD
from rotating_features.evaluate.photo_protocols import PHOTO_PROTOCOLS
from rotating_features.evaluate.protocols import PROTOCOLS

ProtocolName = Literal["blind", "rf2023", "dinosaur", "spot"]
DatasetName = Literal[
    "4shapes",
    "4shapes-rgb",
    "4shapes-rgbd",
    "10shapes",
    "mnist1shape",
    "mnist2shape",
    "multi-dsprites",
    "clevr",
    "pascal-voc",
    "foodseg103",
    "folder",
]
Precision = Literal["auto", "float32", "bfloat16"]
ModelKind = Literal["rotating", "complex", "standard", "classifier"]

SEED_END = 2**63
"""Seeds lie below, as all whole numbers of 64 bits with a sign do; torch takes hardly more."""


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    dataset: DatasetName = "4shapes"
    seed: int = 0
    """Another seed is another dataset."""
    ring_diameter: Literal[11, 23] = 23
    """Pixels across the ring; 11 is the smaller reading of the paper's text. All with rings."""
    colors: int = 5
    """Colours that objects may have, 1 to 5. 4Shapes RGB and RGB-D only."""
    depth_from_zero: bool = True
    """Whether the first object's depth is 0, as the background's. Images with depth only."""
    hue_offset: HueOffset = "dataset"
    """Whose the hue is from which colours are evenly spaced. 4Shapes RGB(-D) and 10Shapes only."""
    shapes: int = 10
    """How many of the ten shapes there are, 2 to 10. 10Shapes only."""
    objects: int | None = None
    """Draw so many of the shapes in each image, not all. 10Shapes only."""
    digit_edge: bool = False
    """Whether a digit's grey edge belongs to it. MNIST images only."""
    side: int = 224
    """Height and width of crops in pixels. A listed backbone that is asked for sets what gives it
    14 x 14 places. Photographs only."""
    resize: How = "bilinear"
    """How photographs are resized for training, before they are cropped."""
    crops: int | None = None
    """Learn from so many fixed crops of each photograph: a backbone looks at them before the first
    step and not in every one. None: a new crop each time. Photographs only."""
    path: str | None = None
    """Where files are: a folder that `rotating-features data` wrote, a published dataset's, or
    one of photographs."""

    def __post_init__(self) -> None:
        if not 0 <= self.seed < SEED_END:
            raise InputError(f"seed should be at least 0 and below 2^63, got {self.seed}.")
        if self.crops is not None and not 1 <= self.crops <= 1_000:
            raise InputError(f"crops should lie between 1 and 1,000, got {self.crops}.")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    kind: ModelKind = "rotating"
    """rotating, the complex autoencoder, a standard one, or rotating with a classifier."""
    rotation_dim: int = 8
    """Length n of every feature vector. Of rotating features only."""
    hidden_dim: int = 32
    """Channels d after the first convolution; later ones have twice as many."""
    bias_in_magnitude: bool = True
    """Count the rotation bias in the magnitude (paper) or only let it turn (released code)."""
    binding: bool = True
    """Off for the paper's ablation, which leaves chi out: m is then the length of psi."""
    backbone: str | None = None
    """A frozen network whose features are autoencoded in place of pixels; photographs only."""
    position_embedding: bool = True
    """Off, the class token too: as the paper's released code ran its backbone, by accident."""

    def __post_init__(self) -> None:
        _at_least("rotation_dim", self.rotation_dim, 2)
        _at_least("hidden_dim", self.hidden_dim, 1)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    steps: int = 100_000
    batch_size: int = 64
    lr: float = 1e-3
    """Learning rate between the warm-up and the cool-down."""
    warmup_steps: int = 500
    """Steps over which the learning rate rises linearly."""
    cooldown_steps: int = 0
    """Last steps, over which the learning rate falls linearly, nearly to 0; the paper has none."""
    grad_clip: float | None = 0.1
    """Largest gradient norm, or None to leave gradients alone."""
    weight_decay: float = 0.0
    precision: Precision = "auto"
    """Of the convolutions. auto: bfloat16 on CPUs with instructions for it, else float32."""
    compile: Literal["auto", "yes", "no"] = "auto"
    """torch.compile. auto: where it works and saves more time than it takes."""
    log_every: int = 50
    checkpoint_every: int = 500
    validate_every: int = 500
    """Score a few validation images every so many steps, for the learning curve."""

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "log_every", "checkpoint_every", "validate_every"):
            _at_least(name, getattr(self, name), 1)
        _at_least("warmup_steps", self.warmup_steps, 0)
        _at_least("cooldown_steps", self.cooldown_steps, 0)
        if self.cooldown_steps and self.warmup_steps + self.cooldown_steps > self.steps:
            raise InputError(
                f"warmup_steps and cooldown_steps should fit into the {self.steps} steps, "
                f"got {self.warmup_steps} and {self.cooldown_steps}."
            )
        _at_least("weight_decay", self.weight_decay, 0)
        for name in ("lr", "grad_clip"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} should be above 0, got {value}.")


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig:
    protocols: tuple[ProtocolName, ...] = ("rf2023", "blind")
    """How scores are taken; see rotating-features list."""
    images: int | None = None
    """Score only the first so many test images; None for all."""
    cluster: Method = "kmeans"
    k: Count = 5
    """Clusters for k-means, background included; auto: as many as stand apart."""
    distance_threshold: float = 5.0
    """Distance from which agglomerative clustering joins no more."""
    magnitude_threshold: float = THRESHOLD
    """Features shorter than this have no say."""
    feature_cache: str | None = None
    """Folder that keeps a backbone's features of test images, so that it looks at each once."""

    def __post_init__(self) -> None:
        if self.k != "auto":
            _at_least("k", self.k, 1)
        _at_least("magnitude_threshold", self.magnitude_threshold, 0)
        if not self.distance_threshold > 0:
            raise InputError(
                f"distance_threshold should be above 0, got {self.distance_threshold}."
            )
        if self.images is not None:
            _at_least("images", self.images, 1)
        known = list(dict.fromkeys([*PROTOCOLS, *PHOTO_PROTOCOLS]))
        if not self.protocols or not set(self.protocols) <= set(known):
            raise InputError(f"protocols should be some of {known}, got {list(self.protocols)}.")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One row of one table. Everything that can change the number is in here."""

    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)


def check_seeds(seeds: Sequence[int]) -> None:
    """Raise ``InputError`` unless a model can be trained for each of them."""
    fit = all(0 <= seed < SEED_END for seed in seeds)
    if not seeds or len(set(seeds)) < len(seeds) or not fit:
        raise InputError(
            f"seeds should be different numbers from 0 on and below 2^63, got {[*seeds]}."
        )


def turns(model: ModelConfig) -> bool:
    """Whether the model's features have a rotation dimension to choose."""
    return model.kind in ("rotating", "classifier")


def to_dict(config: Any) -> dict[str, Any]:
    """A config as plain data for JSON."""
    return dataclasses.asdict(config)


def from_dict(values: dict[str, Any]) -> Experiment:
    """The experiment that :func:`to_dict` made these of.

    Names that are not known are refused. Settings that an older version did not have yet take
    their default, which is what it did.
    """
    _check_names(Experiment, values)
    parts = {f.name: f.default_factory for f in dataclasses.fields(Experiment)}
    return Experiment(**{name: _build(parts[name], part) for name, part in values.items()})


def differences(a: Any, b: Any) -> list[str]:
    """What differs between two configs, as ``train.steps 10 -> 20``."""
    found = []
    for name, left in to_dict(a).items():
        right = to_dict(b)[name]
        found += [
            f"{name}.{key} {value} -> {right[key]}"
            for key, value in left.items()
            if value != right[key]
        ]
    return found


def _build(kind: Any, values: dict[str, Any]) -> Any:
    _check_names(kind, values)
    for name, hint in get_type_hints(kind).items():
        if get_origin(hint) is Literal and name in values and values[name] not in get_args(hint):
            raise InputError(f"{name} should be one of {[*get_args(hint)]}, got {values[name]!r}.")
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})


def _check_names(kind: Any, values: dict[str, Any]) -> None:
    names = {f.name for f in dataclasses.fields(kind)}
    if odd := sorted(set(values) - names):
        raise InputError(f"{kind.__name__} should have {sorted(names)}; it has no {odd}.")


def _at_least(name: str, value: float, low: float) -> None:
    if not value >= low:
        raise InputError(f"{name} should be at least {low}, got {value}.")
