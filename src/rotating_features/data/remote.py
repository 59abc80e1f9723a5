"""Files of datasets that others publish: their names, addresses and checksums."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rotating_features._check import InputError


@dataclass(frozen=True)
class RemoteFile:
    """A file, where it can be had, and how to know that it is the right one."""

    name: str
    urls: tuple[str, ...]
    size: int | None = None
    """In bytes; None if it is not known beforehand."""
    sha256: str | None = None
    """In hexadecimal digits, as is md5. If both are None, what the server states is compared."""
    md5: str | None = None
    about: str = ""
    """How large it is in words, where ``size`` is not known."""


_MNIST = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_MULTI_OBJECT = "https://storage.googleapis.com/multi-object-datasets/"


def _mnist(name: str, size: int, sha256: str) -> RemoteFile:
    urls = tuple(mirror + name for mirror in _MNIST)
    return RemoteFile(name=name, urls=urls, size=size, sha256=sha256)


FILES: dict[str, tuple[RemoteFile, ...]] = {
    "mnist": (
        _mnist(
            "train-images-idx3-ubyte.gz",
            9_912_422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        _mnist(
            "train-labels-idx1-ubyte.gz",
            28_881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        _mnist(
            "t10k-images-idx3-ubyte.gz",
            1_648_877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        _mnist(
            "t10k-labels-idx1-ubyte.gz",
            4_542,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
    "multi-dsprites": (
        RemoteFile(
            name="multi_dsprites_colored_on_grayscale.tfrecords",
            urls=(_MULTI_OBJECT + "multi_dsprites/multi_dsprites_colored_on_grayscale.tfrecords",),
            about="between 0.5 and 1 GB",
        ),
    ),
    "clevr": (
        RemoteFile(
            name="clevr_with_masks_train.tfrecords",
            urls=(_MULTI_OBJECT + "clevr_with_masks/clevr_with_masks_train.tfrecords",),
            about="about 10.5 GB",
        ),
    ),
}
"""What each dataset needs, by the dataset's name."""


def missing(
    title: str, name: str, folder: Path, others: Sequence[str] = (), *, fetched_as: str = ""
) -> InputError:
    """The error for a dataset whose files are not in ``folder``: which, and how to get them.

    Args:
        title: The dataset's name in prose.
        name: Its name in ``FILES``.
        folder: Where they were looked for.
        others: Files that would have done as well.
        fetched_as: Its name on the command line, if that is another.
    """
    wanted = [file for file in FILES[name] if not (folder / file.name).exists()]
    also = f" (or {' or '.join(others)})" if others else ""
    return InputError(
        f"{title} needs {', '.join(file.name for file in wanted)}{also}.\n"
        f"  Looked for in {folder.absolute()}.\n"
        f"  Get it with: rotating-features data {fetched_as or name} --fetch --out {folder}\n"
        + "\n".join(by_hand(file, folder / file.name) for file in wanted)
    )


def by_hand(file: RemoteFile, path: Path) -> str:
    """Two lines that say where ``file`` is and where it goes, for the end of an error."""
    facts = [f"{file.size} bytes" if file.size else file.about]
    facts += [f"sha256 {file.sha256}"] if file.sha256 else []
    facts += [f"md5 {file.md5}"] if file.md5 else []
    stated = f" ({', '.join(fact for fact in facts if fact)})" if any(facts) else ""
    return f"  Or by hand: {' or '.join(file.urls)}{stated}\n    as {path}"
