"""What the machine at hand can do, and how to get the best out of it."""

import ctypes
import os
import platform
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import torch

from rotating_features._check import InputError

Precision = Literal["float32", "bfloat16"]

OWN_GROUPS, LIMITS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
"""Where Linux says which containers and jobs a process is in, and what those may take."""

COMPILE_PAYS_AFTER = 8_000
"""Images after which a compiled step has earned back the time its compilation took, on a CPU."""


def pick_device(name: str | None) -> torch.device:
    """The device of that name, or the best there is."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        usable = "cpu, cuda" if torch.cuda.is_available() else "cpu"
        reason = str(error).splitlines()[0]
        raise InputError(
            f"device should be one that this machine has ({usable}), got {name!r}: {reason}"
        ) from error
    if device.type not in ("cpu", "cuda"):
        raise InputError(
            f"device should be cpu or cuda, got {name!r}: nothing here is made for it."
        )
    return device


def pick_precision(device: torch.device) -> Precision:
    """bfloat16 on processors with instructions for it, float32 (TF32 on GPUs) elsewhere."""
    return "bfloat16" if device.type == "cpu" and multiplies_bfloat16() else "float32"


def pick_compile(device: torch.device, images: int) -> bool:
    """Whether ``torch.compile`` works here and saves more time than it takes.

    Not on a GPU: the kernels in ``ops/triton`` and the CUDA graph are faster than what it makes.
    """
    return device.type == "cpu" and images >= COMPILE_PAYS_AFTER and can_compile(device)


def can_compile(device: torch.device) -> bool:
    """Whether ``torch.compile`` finds the compiler it needs."""
    if device.type == "cuda":
        return find_spec("triton") is not None
    compilers = (os.environ.get("CXX", ""), "g++", "clang++", "c++")
    return platform.system() != "Windows" and any(shutil.which(name) for name in compilers if name)


def tune_cpu() -> None:
    """Settings without which training on the CPU crawls; they change no result that matters."""
    # Numbers below 1e-38 take the slow path of the processor, and Adam's averages are full of them.
    torch.set_flush_denormal(True)
    if platform.system() == "Linux":
        # Give freed memory back to us, not to the system: a step allocates a gigabyte in large
        # pieces, and to have each of them zeroed anew took a fifth of its time.
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):  # not in musl
            mmap_max, trim_threshold, top_pad = -4, -1, -2
            libc.mallopt(mmap_max, 0)
            libc.mallopt(trim_threshold, 2**31 - 1)
            libc.mallopt(top_pad, 64 * 2**20)


def free_memory(device: torch.device) -> int | None:
    """Bytes that can still be taken on the device; None where the system does not tell."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    free = _left_by_meminfo()
    return None if free is None else min([free, *_left_by_limits()])


def _left_by_meminfo() -> int | None:
    """Bytes that Linux has left, whoever may take them."""
    path = Path("/proc/meminfo")
    lines = path.read_text().splitlines() if path.exists() else []
    told = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return None if told is None else 1024 * int(told)


def _left_by_limits() -> Iterator[int]:
    """Bytes that each limit on our process leaves it, but for files that were only looked at."""
    groups = OWN_GROUPS.read_text().splitlines() if OWN_GROUPS.exists() else []
    for name in (group[3:].strip("/") for group in groups if group.startswith("0::")):
        for folder in (LIMITS / name, *(LIMITS / parent for parent in Path(name).parents)):
            try:
                most = (folder / "memory.max").read_text().strip()
                taken = int((folder / "memory.current").read_text())
                stat = (folder / "memory.stat").read_text()
            except (OSError, ValueError):  # the outermost has none
                continue
            if most != "max":
                idle = dict(line.split() for line in stat.splitlines()).get("inactive_file", 0)
                yield int(most) - taken + int(idle)


def describe() -> dict[str, str | int]:
    """The machine in words, for result files."""
    return {
        "cpu": _cpu_name(),
        "cores": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def multiplies_bfloat16() -> bool:
    """Whether this processor has instructions for it."""
    return not {"avx512_bf16", "amx_bf16"}.isdisjoint(_cpuinfo("flags").split())


def _cpu_name() -> str:
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def _cpuinfo(key: str) -> str:
    """What Linux says of the processor; empty elsewhere."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")
