"""Models of ``transformers`` by name or from a folder, and what to do when they are not there."""

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies

from rotating_features._check import InputError

WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)


class Source(NamedTuple):
    """A model and what belongs to it."""

    model: Any
    config: Any
    normalisation: dict[str, Any]
    """``mean`` and ``std`` where they are stated."""
    version: str
    """Of ``transformers``."""


def load(source: str, kinds: Mapping[str, Any]) -> Source:
    """The model in a folder or of a name on the hub, as one of ``kinds``.

    What was fetched before is used without asking the network.

    Raises:
        InputError: If it cannot be had, whatever the reason.
    """
    if find_spec("transformers") is None:
        raise InputError(
            f"{source} needs the package transformers.\n"
            "  Install it with: pip install 'rotating_features[vit]'"
        )
    try:
        import transformers  # noqa: F401 (to see whether it can be)
    except Exception as error:  # it looks for other packages, and at their versions
        raise InputError(
            f"{source} needs the package transformers, which cannot be imported: "
            f"{_first_line(error)}\n  Install it again: pip install 'rotating_features[vit]'"
        ) from error
    folder = Path(source).expanduser()
    if folder.is_dir():
        _check_folder(folder)
        try:
            with _quiet():
                return _read(str(folder), kinds, local=True)
        except InputError:
            raise
        except Exception as error:  # a damaged file fails in json, safetensors, pickle or torch
            raise InputError(
                f"{folder} should hold a model of transformers, but could not be read: "
                f"{_first_line(error)}\n  Its files may be cut short or of different models; "
                "fetch them again."
            ) from error
    try:
        with _quiet():
            return _read(source, kinds, local=True)
    except InputError:
        raise
    except Exception:  # not fetched yet, or not all of it
        return _fetch(source, kinds)


def _fetch(source: str, kinds: Mapping[str, Any]) -> Source:
    try:
        _check_network()
        return _read(source, kinds, local=False)
    except InputError:
        raise
    except Exception as error:  # the network, the hub and file systems fail in their own ways
        text = f"{error} {error.__cause__}".lower()
        closed = any(word in text for word in ("gated", "401 ", "403 ", "restricted"))
        advice = (
            f"  Accept its terms on huggingface.co/{source} and log in with: hf auth login\n"
            if closed
            else "  Check the name, and that there is a network (HF_HUB_OFFLINE is not set).\n"
        )
        raise InputError(
            f"{source} is not among the models fetched before and could not be fetched now: "
            f"{_first_line(error)}\n{advice}  Or put its config.json and model.safetensors, from "
            "wherever you can, into a folder and pass the folder's path in place of the name."
        ) from error


def _check_network() -> None:
    """Fail now where the hub's client would try again for half a minute."""
    from huggingface_hub import constants

    if not getproxies():
        host = urlsplit(constants.ENDPOINT).hostname
        try:
            socket.getaddrinfo(host, None)
        except OSError as error:
            raise ConnectionError(f"{host} cannot be reached ({error}).") from error


def _read(source: str, kinds: Mapping[str, Any], *, local: bool) -> Source:
    import transformers

    config = transformers.AutoConfig.from_pretrained(source, local_files_only=local)
    if config.model_type not in kinds:
        raise InputError(
            f"{source} should be a model of type {', '.join(kinds)}, got {config.model_type!r}.\n"
            "  Wrap another model as a module that returns a feature map: Backbone(module, ...)"
        )
    kind = kinds[config.model_type]
    if not hasattr(transformers, kind.model):
        raise InputError(
            f"{source} needs {kind.model}, which transformers {transformers.__version__} lacks.\n"
            "  Update it with: pip install --upgrade transformers"
        )
    model, report = getattr(transformers, kind.model).from_pretrained(
        source,
        local_files_only=local,
        output_loading_info=True,
        **kind.build,
    )
    if report["missing_keys"]:
        some = ", ".join(sorted(report["missing_keys"])[:3])
        raise InputError(
            f"{source} lacks weights that its config asks for: {some}"
            f"{', ...' if len(report['missing_keys']) > 3 else '.'}\n"
            "  They would be random. Its weights and config.json may be of different models."
        )
    return Source(model, config, _normalisation(source, local=local), transformers.__version__)


def _normalisation(source: str, *, local: bool) -> dict[str, Any]:
    from transformers.utils.hub import cached_file

    try:
        path = cached_file(source, "preprocessor_config.json", local_files_only=local)
        stated = json.loads(Path(path or "").read_text())
        return {"mean": tuple(stated["image_mean"]), "std": tuple(stated["image_std"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # nothing stated: ImageNet's, as for every DINO


def _check_folder(folder: Path) -> None:
    missing = [] if (folder / "config.json").is_file() else ["config.json"]
    if not any((folder / name).is_file() for name in WEIGHTS):
        missing.append("model.safetensors (or pytorch_model.bin)")
    if missing:
        raise InputError(
            f"{folder} should hold a model of transformers, but lacks {' and '.join(missing)}.\n"
            "  Both files are on the model's page on the hub; save_pretrained writes them too."
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the notes and bars of ``transformers``, where nothing is fetched."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
