"""Models as files: weights and what is needed to rebuild the model, in one safetensors file."""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features.features import open_backbone
from rotating_features.models.autoencoder import AutoEncoder
from rotating_features.models.kinds import MODELS, kind_of
from rotating_features.models.on_features import OnFeatures, suitable_dtype
from rotating_features.models.trained import TRAINED, folder_of

Model = AutoEncoder | OnFeatures
"""What finds objects: in images of its own size, or in photographs by way of features."""
FILE = "model.safetensors"
FORMAT = "rotating_features/1"


def save(model: Model, path: str | Path, *, half: bool = False) -> None:
    """Write ``model`` to ``path`` so that :func:`load` needs nothing else.

    Of a backbone the name is written, and what its weights can be told by. With ``half``, what
    has more than one axis, all but the norms and the readout, is rounded to float16: a model to
    share in half the space.

    Raises:
        InputError: If its backbone is a module of your own or, with ``half``, a weight is beyond
            float16.
    """
    if isinstance(model, OnFeatures):
        model.backbone.spec_to_save()
        model = model.autoencoder
    metadata = {"format": FORMAT, "kind": kind_of(model), "model": json.dumps(model.settings)}
    if model.origin is not None:
        metadata["origin"] = json.dumps(model.origin)
    weights = {name: weight.contiguous() for name, weight in model.state_dict().items()}
    if half:  # the variance of a norm may be beyond float16
        weights = {name: _half(w, name) if w.ndim > 1 else w for name, w in weights.items()}
    with replacing(Path(path)) as partial:
        partial.write_bytes(to_bytes(weights, metadata))


def _half(weight: Tensor, name: str) -> Tensor:
    largest = weight.abs().max().item()
    if largest > torch.finfo(torch.float16).max:
        raise InputError(
            f"{name} should fit into float16, whose numbers end at 65,504, got {largest:.6g}.\n"
            "  Save the model without half."
        )
    return weight.half()


def load(
    run: str | Path,
    *,
    device: str | torch.device = "cpu",
    backbone: str | Path | None = None,
) -> Model:
    """The trained model of a run, ready to use; with its backbone, if it was trained on features.

    Args:
        run: A run's folder (``runs/4shapes``, ``runs/4shapes/seed-0``), a safetensors file, or one
            of the models that come along, such as ``voc-small``.
        device: Where the model should live.
        backbone: Where its backbone is now, a folder or a name, if not where it was in training.
            It should have the same weights.
    """
    path = find(Path(run))
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"{path} should be a model file, but could not be read: {error}.\n"
            "  It may be cut short or of another kind; train again, or pass another one."
        ) from error
    if metadata.get("format") != FORMAT:
        raise InputError(
            f"{path} should be a model written by rotating_features, "
            f"got a safetensors file of format {metadata.get('format')!r}, not {FORMAT!r}.\n"
            "  Weights of other projects cannot be loaded."
        )
    kind = metadata.get("kind", "rotating")  # once there were no others
    if kind not in MODELS:
        raise InputError(
            f"{path} should hold a model of a known kind, {', '.join(MODELS)}, got {kind!r}.\n"
            "  A newer version of rotating_features may know it."
        )
    try:
        model = MODELS[kind](**json.loads(metadata["model"]))
        model.load_state_dict(weights)
        origin = json.loads(metadata["origin"]) if "origin" in metadata else None
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{path} does not fit the model it describes: {error}") from error
    model = model.to(device).eval()
    if origin is None:
        if backbone is not None:
            raise InputError(f"{path} was trained on images and has no backbone. Leave {backbone}.")
        return model
    try:
        made_by = origin["backbone"] | ({} if backbone is None else {"name": str(backbone)})
        maker = open_backbone(**made_by, dtype=suitable_dtype(device), device=device)
        if origin.get("weights") not in (None, maker.weights_id()):
            raise InputError(
                f"the weights of {maker.name} are others now.\n"
                "  Put back those it was trained with, or train it again."
            )
        return OnFeatures(maker, model, size=tuple(origin["size"])).eval()
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} was trained on features that cannot be had here: {error}\n"
            "  If its backbone is in another place now, name that: --backbone."
        ) from error


def find(run: Path) -> Path:
    """The model file that ``run``, a folder, a file or the name of a trained model, stands for."""
    if run.is_file():
        return run
    candidates = [run / FILE, *sorted(run.glob(f"seed-*/{FILE}"))]
    existing = [path for path in candidates if path.is_file()]
    if len(existing) == 1:
        return existing[0]
    if existing:
        seeds = ", ".join(str(path.parent) for path in existing)
        raise InputError(f"{run} holds several models. Name one of them: {seeds}.")
    if str(run) in TRAINED:
        return folder_of(str(run)) / FILE
    if not run.exists():
        raise InputError(
            f"There is no run or model file at {run}, and no model of that name comes along "
            f"({', '.join(TRAINED)}).\n  See: rotating-features list"
        )
    raise InputError(
        f"{run} should be a run's folder or a model file, but holds no {FILE}.\n"
        "  A run writes it with its first checkpoint."
    )
