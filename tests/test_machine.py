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


def test_a_device_that_is_not_there_is_explained() -> None:
    with pytest.raises(ValueError, match="device should be one that this machine has"):
        machine.pick_device("xpu:7")


def test_the_machine_is_described_for_result_files() -> None:
    assert {"cpu", "cores", "gpu", "torch", "python"} == set(machine.describe())


def test_free_memory_is_what_linux_says(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    free = machine.free_memory(cpu)
    assert free is None or free > 2**20
    monkeypatch.setattr(machine.Path, "exists", lambda path: False)
    assert machine.free_memory(cpu) is None
