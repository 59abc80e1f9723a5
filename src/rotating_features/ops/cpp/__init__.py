"""Kernels in C++ for CPUs, compiled when they are first called and kept for the next time."""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import warnings
from functools import cache
from pathlib import Path

import torch

FLAGS = "-std=c++17 -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp -fPIC -shared"
TYPES = {torch.float32: "float", torch.bfloat16: "bfloat16"}


@cache
def library(name: str, dtype: torch.dtype, **constants: float) -> ctypes.CDLL | None:
    """The functions of ``name.cpp``, compiled for that type ``T`` and those constants.

    None where that cannot be: on other systems than Linux, where its threads would not be
    PyTorch's, on processors that it is not made for, without a compiler, or if the compiler fails,
    which is told.
    """
    compiler = shutil.which(os.environ.get("CXX") or "g++")
    if platform.system() != "Linux" or compiler is None or dtype not in TYPES:
        return None
    source = Path(__file__).with_name(f"{name}.cpp")
    defines = [f"-D{key}={value}" for key, value in {"T": TYPES[dtype], **constants}.items()]
    command = [compiler, *shlex.split(FLAGS), *defines, str(source)]
    try:
        path = _folder() / f"{name}-{_fingerprint(command, source)}.so"
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
                made = Path(scratch, path.name)
                subprocess.run([*command, "-o", made], check=True, capture_output=True, text=True)
                made.replace(path)  # at once, whoever else is making it
        kernels = ctypes.CDLL(str(path))
        return kernels if ctypes.c_bool.in_dll(kernels, "suits_processor") else None
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        warnings.warn(
            f"{source.name} should have become a faster step on this CPU, but cannot be used:\n"
            f"  {said.strip().splitlines()[0]}\n  PyTorch's own functions take its place.",
            stacklevel=2,
        )
        return None


def _folder() -> Path:
    """Where compiled kernels are kept: the user's cache, or if that is read-only a fresh folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(home, "rotating_features")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="rotating_features-"))


def _fingerprint(command: list[str], source: Path) -> str:
    """Of all that decides what a compiler makes of ``-march=native``, and so where it runs."""
    version = subprocess.run(
        [command[0], "-march=native", "-Q", "--help=target", "--version"],
        capture_output=True,
        text=True,
    ).stdout
    files = sorted(path for path in source.parent.iterdir() if path.suffix in (".cpp", ".h"))
    parts = *command[1:-1], version, *(path.read_text() for path in files)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
