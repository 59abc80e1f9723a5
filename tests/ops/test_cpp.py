import platform
import shutil
import subprocess

import pytest
import torch

from rotating_features.ops import cpp
from rotating_features.ops.activate import activate, activate_reference

CONSTANTS = {"N": 2, "SHORTEST": 1e-12}


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    """A folder of compiled kernels for this test alone, and none loaded before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cpp.library.cache_clear()
    yield tmp_path / "rotating_features"
    cpp.library.cache_clear()


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_a_kernel_is_compiled_once_for_each_type(own_cache, monkeypatch) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        assert cpp.library("activate", dtype, **CONSTANTS) is not None
    made = sorted(own_cache.iterdir())
    assert [path.suffix for path in made] == [".so", ".so"]

    cpp.library.cache_clear()  # as in another process
    calls, run = [], subprocess.run
    monkeypatch.setattr(
        cpp.subprocess, "run", lambda *args, **kwargs: calls.append(args) or run(*args, **kwargs)
    )
    assert cpp.library("activate", torch.float32, **CONSTANTS) is not None
    assert len(calls) == 1  # asked for its version, not to compile
    assert sorted(own_cache.iterdir()) == made


def test_without_a_compiler_there_is_no_kernel(monkeypatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert cpp.library("activate", torch.float32, **CONSTANTS) is None


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_a_compiler_that_fails_is_told_of_and_leaves_nothing(own_cache) -> None:
    with pytest.warns(UserWarning, match=r"activate.cpp should have become(.|\n)*take its place"):
        assert cpp.library("activate", torch.float32, SHORTEST=1e-12) is None  # without N
    assert list(own_cache.iterdir()) == []


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="compiles for an older one of its kind")
@pytest.mark.parametrize("name", ["convolve", "weight_gradient"])
def test_a_processor_that_a_kernel_is_not_made_for_does_without(
    name: str, monkeypatch, tmp_path
) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nexec g++ "$@" -march=haswell\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    assert cpp.library(name, torch.float32) is None


def test_without_a_kernel_the_activation_is_the_same(monkeypatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    norm = torch.nn.BatchNorm1d(16)
    y, bias = torch.randn(3, 3, 2, 2, 16), torch.randn(2, 16)
    switches = {"bias_in_magnitude": True, "binding": True, "only_magnitude": False}
    torch.testing.assert_close(
        activate(y, bias, norm), activate_reference(y, bias, norm, **switches)
    )
    with pytest.raises(ValueError, match="Linux with a C\\+\\+ compiler"):
        activate(y, bias, norm, impl="cpp")


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_a_cache_that_cannot_be_written_is_done_without(own_cache, monkeypatch) -> None:
    own_cache.write_text("a file where the folder should be")
    assert cpp.library("activate", torch.float32, **CONSTANTS) is not None
