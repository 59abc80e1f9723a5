"""The rules that hold the house together (docs/design.md)."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rotating_features

ROOT = Path(rotating_features.__file__).parent
FLOORS = {
    "_check": 0,
    "_commit": 0,
    "_files": 0,
    "_lock": 1,
    "_version": 0,
    "machine": 1,
    "vectors": 1,
    "testing": 2,
    "ops": 2,
    "nn": 3,
    "models": 4,
    "data": 1,
    "features": 1,
    "metrics": 2,
    "evaluate": 5,
    "plots": 6,
    "segment": 7,
    "theory": 7,
    "train": 7,
    "experiments": 8,
    "bench": 8,
    "arguments": 9,
    "__init__": 9,
    "commands": 10,
    "cli": 11,
    "__main__": 12,
}
"""A room may use rooms on lower floors, and itself."""

MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))


def imports(module: Path) -> set[str]:
    """Rooms of the package that a module imports anywhere in its text."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / module).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[0] == "rotating_features":
                found.add(parts[1] if len(parts) > 1 else "__init__")
    return found


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_dependencies_point_one_way(module: Path) -> None:
    room = module.parts[0].removesuffix(".py")
    for other in imports(module) - {room}:
        assert FLOORS[other] < FLOORS[room], f"{module} looks up at {other}"


@pytest.mark.parametrize("room", ["data", "features"])
def test_data_and_features_stand_alone(room: str) -> None:
    for module in MODULES:
        if module.parts[0] == room:
            assert imports(module) <= {room, "_check", "_files"}, module


def test_configs_stop_in_experiments() -> None:
    rooms = {m.parts[0].removesuffix(".py") for m in MODULES if "experiments" in imports(m)}
    assert rooms <= {"experiments", "arguments", "commands"}


def assert_runs_silently(code: str) -> None:
    """In a process of its own, where nothing is loaded yet."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_importing_does_no_work_and_needs_no_extra() -> None:
    """No GPU is touched, no figure or log machinery loaded, nothing printed."""
    code = (
        "import sys, rotating_features, torch;"
        "assert not torch.cuda.is_initialized();"
        "bad = {'triton', 'matplotlib.pyplot', 'tensorboard', 'tyro', 'transformers'};"
        "assert not bad & set(sys.modules), bad & set(sys.modules)"
    )
    assert_runs_silently(code)


def test_backbones_load_no_extra_before_one_is_opened() -> None:
    code = (
        "import sys, rotating_features.features;"
        "bad = {'transformers', 'huggingface_hub', 'efficientnet_lite_pytorch'};"
        "assert not bad & set(sys.modules), bad & set(sys.modules)"
    )
    assert_runs_silently(code)


def test_the_benchmarks_need_no_peer_to_be_imported() -> None:
    code = (
        "import sys, rotating_features.bench.one;"
        "bad = {'triton', 'matplotlib', 'sklearn', 'skimage'};"
        "assert not bad & set(sys.modules), bad & set(sys.modules)"
    )
    assert_runs_silently(code)
