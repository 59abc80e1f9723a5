from pathlib import Path

import pytest
import torch

from rotating_features import machine


def test_small_numbers_are_flushed_to_zero() -> None:
    machine.tune_cpu()
    assert float(torch.tensor(1e-40) * 1) == 0
    torch.set_flush_denormal(False)


def test_short_runs_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "can_compile", lambda device: True)
    cpu = torch.device("cpu")
    limit = machine.COMPILE_PAYS_AFTER
    assert not machine.pick_compile(cpu, limit - 1)
    assert machine.pick_compile(cpu, limit)
    assert not machine.pick_compile(torch.device("cuda"), limit)  # kernels of our own are faster


def test_without_a_compiler_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.shutil, "which", lambda name: None)
    assert not machine.pick_compile(torch.device("cpu"), 10**9)


@pytest.mark.parametrize(
    ("flags", "precision"), [("avx2 avx512_bf16", "bfloat16"), ("avx2 avx512f", "float32")]
)
def test_bfloat16_is_for_processors_that_have_it(
    monkeypatch: pytest.MonkeyPatch, flags: str, precision: str
) -> None:
    monkeypatch.setattr(machine, "_cpuinfo", lambda key: flags)
    assert machine.pick_precision(torch.device("cpu")) == precision


def test_a_device_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="device should be cpu or cuda, got 'meta'"):
        machine.pick_device("meta")


def test_a_device_that_is_not_there_is_explained() -> None:
    with pytest.raises(ValueError, match="device should be one that this machine has"):
        machine.pick_device("xpu:7")


def test_the_machine_is_described_for_result_files() -> None:
    assert {"cpu", "cores", "gpu", "torch", "python"} == set(machine.describe())


def test_free_memory_is_no_more_than_a_container_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "OWN_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(machine, "LIMITS", tmp_path)
    monkeypatch.setattr(machine, "_left_by_meminfo", lambda: 2000)
    (tmp_path / "groups").write_text("4:memory:/old\n0::/jobs/mine\n")
    for name, most in {"jobs": "max", "jobs/mine": "5000"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "memory.max").write_text(f"{most}\n")
        (tmp_path / name / "memory.current").write_text("4000\n")
        (tmp_path / name / "memory.stat").write_text("anon 7\ninactive_file 500\n")
    assert machine.free_memory(torch.device("cpu")) == 1500
    (tmp_path / "jobs/mine/memory.max").write_text("max\n")
    assert machine.free_memory(torch.device("cpu")) == 2000


def test_free_memory_is_what_linux_says(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    free = machine.free_memory(cpu)
    assert free is None or free > 2**20
    monkeypatch.setattr(machine.Path, "exists", lambda path: False)
    assert machine.free_memory(cpu) is None
