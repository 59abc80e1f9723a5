import json
import logging
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch

from rotating_features._check import InputError
from rotating_features.features import hub, open_backbone

transformers = pytest.importorskip("transformers")

Write = Callable[[str], Path]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the hub's client keeps what it fetched, empty, on a machine without a network."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name, value in (("TRANSFORMERS_CACHE", str(tmp_path)), ("_is_offline_mode", True)):
        monkeypatch.setattr(f"transformers.utils.hub.{name}", value, raising=False)
    monkeypatch.setattr("socket.getaddrinfo", unreachable)
    monkeypatch.setattr(hub, "getproxies", dict)
    return tmp_path


def unreachable(*_: object) -> NoReturn:
    raise socket.gaierror("no such host")


def fetched(store: Path, name: str, folder: Path) -> Path:
    """Lay out ``folder`` as the hub's client does; return where the files are."""
    commit = "0123456789" * 4
    repository = store / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    snapshot = repository / "snapshots" / commit
    snapshot.mkdir(parents=True)
    for file in folder.iterdir():
        (snapshot / file.name).write_bytes(file.read_bytes())
    return snapshot


@pytest.mark.parametrize(
    ("asked", "name"),
    [("someone/small-vit", "someone/small-vit"), ("dino-vits16", "facebook/dino-vits16")],
)
def test_a_model_fetched_before_opens_offline(
    asked: str, name: str, store: Path, write: Write
) -> None:
    fetched(store, name, write("dino"))
    backbone, x = open_backbone(asked), torch.rand(1, 3, 16, 24)
    assert (backbone.name, backbone.spec_to_save()["name"]) == (asked, asked)
    assert torch.equal(backbone(x), open_backbone(write("dino"))(x))


@pytest.mark.parametrize("name", ["someone/small-vit", "dino-vitb16"])
def test_a_model_never_fetched_says_where_to_put_it(name: str, store: Path) -> None:
    with pytest.raises(InputError, match=r"(?s)could not be fetched.*config.json.*folder"):
        open_backbone(name)


def test_half_a_model_fetched_before_counts_as_missing(store: Path, write: Write) -> None:
    (fetched(store, "someone/small-vit", write("dino")) / "model.safetensors").unlink()
    with pytest.raises(InputError, match="could not be fetched"):
        open_backbone("someone/small-vit")


def test_without_a_network_nothing_is_tried_twice(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with pytest.raises(InputError, match=r"cannot be reached \(no such host\)"):
        open_backbone("someone/small-vit")


def test_a_model_behind_terms_says_how_to_accept_them(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise OSError("You are trying to access a gated repo.\nMake sure to have access to it.")

    monkeypatch.setattr("socket.getaddrinfo", lambda *_: [])
    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", refuse)
    with pytest.raises(InputError, match=r"(?s)gated repo\.\n.*Accept its terms.*hf auth login"):
        open_backbone("dinov3-vitb16")


def test_without_transformers_it_says_how_to_install_them(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"pip install 'rotating_features\[vit\]'"):
        open_backbone("dino-vitb16")


def test_a_broken_transformers_is_told_apart_from_a_mistake(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write("dino")
    monkeypatch.setitem(sys.modules, "transformers", None)  # what makes an import fail
    monkeypatch.setattr(hub, "find_spec", lambda _: True)
    with pytest.raises(InputError, match="cannot be imported"):
        open_backbone(folder)


@pytest.mark.parametrize("name", ["nothing", "no/such/folder", "./here/there", "", "/none", ".."])
def test_what_is_neither_name_nor_folder_is_refused(
    name: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError):
        open_backbone(name)


@pytest.mark.parametrize(
    ("kept", "lacking"),
    [
        ([], "config.json and model.safetensors"),
        (["config.json"], "lacks model.safetensors"),
        (["model.safetensors"], r"lacks config.json\."),
    ],
)
def test_a_folder_without_its_files_says_which(
    kept: list[str], lacking: str, write: Write, tmp_path: Path
) -> None:
    for name in kept:
        (tmp_path / name).write_bytes((write("dino") / name).read_bytes())
    with pytest.raises(InputError, match=lacking):
        open_backbone(tmp_path)


@pytest.mark.parametrize("damaged", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("length", [0, 100])
def test_files_cut_short_are_named(damaged: str, length: int, write: Write, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        content = (write("dino") / name).read_bytes()
        (tmp_path / name).write_bytes(content[:length] if name == damaged else content)
    with pytest.raises(InputError, match="could not be read") as raised:
        open_backbone(tmp_path)
    assert str(tmp_path) in str(raised.value)


def copy_with(config: dict[str, Any], folder: Path, to: Path) -> Path:
    old = json.loads((folder / "config.json").read_text())
    (to / "config.json").write_text(json.dumps(old | config))
    (to / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    return to


def test_weights_that_are_not_there_are_not_made_up(write: Write, tmp_path: Path) -> None:
    folder = copy_with({"num_hidden_layers": 3}, write("dino"), tmp_path)
    with pytest.raises(InputError, match="lacks weights"):
        open_backbone(folder)


def test_weights_of_another_size_are_refused(write: Write, tmp_path: Path) -> None:
    folder = copy_with({"intermediate_size": 40}, write("dino"), tmp_path)
    with pytest.raises(InputError):
        open_backbone(folder)


def test_models_of_other_kinds_are_refused(write: Write, tmp_path: Path) -> None:
    folder = copy_with({"model_type": "bert"}, write("dino"), tmp_path)
    with pytest.raises(InputError, match="got 'bert'"):
        open_backbone(folder)


def test_an_old_transformers_is_told_apart_from_a_mistake(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rotating_features.features.vit import KINDS

    monkeypatch.setitem(KINDS, "vit", KINDS["vit"]._replace(model="NotYetModel"))
    with pytest.raises(InputError, match="--upgrade transformers"):
        open_backbone(write("dino"))


def test_opening_says_nothing_and_leaves_the_log_as_it_was(
    write: Write, capfd: pytest.CaptureFixture[str]
) -> None:
    log = transformers.utils.logging
    before = (log.get_verbosity(), log.is_progress_bar_enabled())
    log.set_verbosity(logging.INFO)
    log.enable_progress_bar()
    try:
        open_backbone(write("dino"))
        assert (log.get_verbosity(), log.is_progress_bar_enabled()) == (logging.INFO, True)
    finally:
        log.set_verbosity(before[0])
        (log.enable_progress_bar if before[1] else log.disable_progress_bar)()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("dtype", ["int8", "nonsense", torch.int64])
def test_types_that_are_no_floats_are_refused(dtype: Any, write: Write) -> None:
    with pytest.raises(InputError, match="bfloat16"):
        open_backbone(write("dino"), dtype=dtype)
