import inspect
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from rotating_features._check import InputError
from rotating_features.features import Backbone, FeatureCache, Key, cached, hash_image
from rotating_features.features.cache import STALE
from rotating_features.features.entry import decode, encode

KEY = Key("weights", "transform", "image")


def keys(count: int) -> list[Key]:
    return [KEY._replace(image=str(i)) for i in range(count)]


def entries(cache: FeatureCache) -> list[Path]:
    return sorted(path for path in cache.folder.rglob("*") if path.is_file())


def size(cache: FeatureCache) -> int:
    return sum(path.stat().st_size for path in entries(cache))


@pytest.fixture
def cache(tmp_path: Path) -> FeatureCache:
    return FeatureCache(tmp_path / "features", 1_000_000)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_what_was_put_is_got_by_whoever_opens_the_folder(
    dtype: torch.dtype, cache: FeatureCache
) -> None:
    features = torch.randn(5, 4, 3).to(dtype).transpose(1, 2)
    cache.put(KEY, features)
    found = FeatureCache(cache.folder, 1_000_000).get(KEY)
    assert found is not None
    assert found.dtype == dtype
    assert torch.equal(found, features)


def test_nothing_else_is_found(cache: FeatureCache) -> None:
    cache.put(KEY, torch.zeros(1, 1, 1))
    for part in Key._fields:
        assert cache.get(KEY._replace(**{part: "other"})) is None
    assert cache.get(Key("weightstransform", "", "image")) is None
    assert cache.get(KEY) is not None


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_damaged_entry_is_none(where: int, change: int) -> None:
    """A byte may be one that does not matter; features that come back are the right ones."""
    features = torch.arange(24, dtype=torch.float32).view(2, 3, 4)
    content = bytearray(encode(features))
    content[where % len(content)] ^= change
    found = decode(bytes(content))
    assert found is None or torch.equal(found, features)
    data_starts = len(content) - 24 * 4
    if where % len(content) >= data_starts:
        assert found is None


@given(st.integers(0, 400))
def test_a_truncated_entry_is_none(length: int) -> None:
    content = encode(torch.ones(2, 3, 4))
    assert (decode(content[:length]) is None) == (length < len(content))


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff" * 200, encode(torch.ones(1, 2, 2))[:-1]])
def test_a_damaged_entry_is_removed_and_can_be_put_again(
    content: bytes, cache: FeatureCache
) -> None:
    cache.put(KEY, torch.ones(1, 2, 2))
    entries(cache)[0].write_bytes(content)
    assert cache.get(KEY) is None
    assert entries(cache) == []
    cache.put(KEY, torch.ones(1, 2, 2))
    assert cache.get(KEY) is not None


@settings(max_examples=25)
@given(st.lists(st.integers(0, 30), max_size=60))
def test_it_never_outgrows_its_limit(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    cache = FeatureCache(tmp_path_factory.mktemp("features"), 10_000)
    for i in order:
        cache.put(KEY._replace(image=str(i)), torch.zeros(1 + i, 4, 4))
        assert size(cache) <= 10_000
        assert cache.get(KEY._replace(image=str(i))) is not None


def test_what_was_not_used_for_longest_goes(tmp_path: Path) -> None:
    entry = torch.zeros(100, 5, 5)
    cache = FeatureCache(tmp_path, 4 * len(encode(entry)))
    a, b, c, d, e = keys(5)
    for age, key in enumerate((a, b, c, d)):
        cache.put(key, entry)
        old = time.time() - 100 + age
        os.utime(cache._path(key), (old, old))
    assert cache.get(a) is not None  # used just now
    cache.put(e, entry)
    assert [cache.get(key) is not None for key in (a, b, c, d, e)] == [
        True,
        False,
        False,
        True,
        True,
    ]


def test_another_writer_counts_towards_the_limit(tmp_path: Path) -> None:
    entry = torch.zeros(16, 4, 4)
    limit = 64 * len(encode(entry))
    ours, theirs = FeatureCache(tmp_path, limit), FeatureCache(tmp_path, limit)
    for i, key in enumerate(keys(200)):
        (ours if i % 2 else theirs).put(key, entry)
        assert size(ours) <= limit * 18 / 16


def test_an_entry_larger_than_all_is_not_kept(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path, 100)
    cache.put(KEY, torch.zeros(100, 4, 4))
    assert cache.get(KEY) is None
    assert entries(cache) == []


def test_what_killed_writers_left_goes_in_time(tmp_path: Path) -> None:
    FeatureCache(tmp_path).put(KEY, torch.zeros(1, 1, 1))
    first = entries(FeatureCache(tmp_path))[0]
    left = [first.with_name(f"{first.stem}-{i * 32}.partial") for i in "ab"]
    for path in left:
        path.write_bytes(b"half")
    os.utime(left[0], (0, time.time() - STALE - 60))
    FeatureCache(tmp_path).put(KEY, torch.zeros(1, 1, 1))
    assert [path.exists() for path in left] == [False, True]


def test_files_of_others_in_its_folder_are_left_alone(tmp_path: Path) -> None:
    """Folders of two letters may be anybody's; those that are old or in the way were removed."""
    theirs = [
        tmp_path / "v1" / "model.safetensors",
        tmp_path / "v1" / "mine.partial",
        tmp_path / "ab" / "model.safetensors",
        tmp_path / "ab" / f"{'0' * 38}.partial",
    ]
    for path in theirs:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"mine" * 1000)
        os.utime(path, (0, time.time() - STALE - 60))
    cache = FeatureCache(tmp_path, 4_000)
    for key in keys(20):
        cache.put(key, torch.zeros(8, 8, 8))
    assert all(path.read_bytes() == b"mine" * 1000 for path in theirs)
    assert 0 < size(cache) - 4 * 4000 <= 4_000


def write_and_read(folder: str) -> None:
    cache = FeatureCache(folder, 40_000)
    for i in [*range(40)] * 4:
        key, features = KEY._replace(image=str(i)), torch.full((8, 6, 6), float(i))
        found = cache.get(key)
        assert found is None or torch.equal(found, features)
        cache.put(key, features)


def test_processes_may_share_it(tmp_path: Path) -> None:
    """Two write, read and remove the same entries at once; neither sees half of one."""
    source = inspect.getsource(write_and_read)
    code = (
        "import sys, torch\n"
        "from rotating_features.features import FeatureCache, Key\n"
        f"KEY = Key{tuple(KEY)}\n{source}\n"
        "print('ready', flush=True)\n"
        "write_and_read(sys.argv[1])"
    )
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        write_and_read(str(tmp_path))
        assert other.wait(60) == 0
    assert not list(tmp_path.rglob("*.partial"))
    assert size(FeatureCache(tmp_path)) <= 40_000 * 18 / 16


def test_a_full_disk_costs_time_and_not_the_run(
    cache: FeatureCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.warns(UserWarning, match="No space left"):
        cache.put(KEY, torch.zeros(1, 1, 1))
    assert cache.get(KEY) is None


@pytest.mark.parametrize("features", [torch.zeros(2, 2), torch.zeros(1, 1, 1, dtype=torch.int64)])
def test_what_is_no_feature_map_is_refused(features: Tensor, cache: FeatureCache) -> None:
    with pytest.raises(InputError, match="features should"):
        cache.put(KEY, features)


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="another folder"):
        FeatureCache(tmp_path / "file")
    with pytest.raises(InputError, match="limit_bytes"):
        FeatureCache(tmp_path, -1)


@given(st.binary(), st.binary())
def test_hashes_tell_bytes_apart(a: bytes, b: bytes) -> None:
    assert (hash_image(a) == hash_image(b)) == (a == b)


def test_hashes_tell_tensors_apart() -> None:
    x = torch.arange(12, dtype=torch.uint8).view(3, 2, 2)
    others = [x.float(), x.view(3, 4, 1), x + 1, x.transpose(1, 2)]
    assert len({hash_image(other) for other in (x, *others)}) == 5
    assert hash_image(x.clone()) == hash_image(x)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.AvgPool2d(4)
        self.batches: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        self.batches.append(len(x))
        return self.pool(x)


@pytest.fixture
def counting() -> Backbone:
    return Backbone(Counting(), channels=3, stride=4)


def batches(backbone: Backbone) -> list[int]:
    module: Any = backbone.module
    return module.batches


@settings(max_examples=25)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.sets(st.integers(0, 5)))
def test_only_what_is_missing_is_computed_and_in_one_batch(
    tmp_path_factory: pytest.TempPathFactory, asked: list[int], known: set[int]
) -> None:
    cache = FeatureCache(tmp_path_factory.mktemp("features"))
    backbone = Backbone(Counting(), channels=3, stride=4)
    pictures = torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    wanted = backbone(pictures)
    named = [Key(backbone.fingerprint(), "none", hash_image(picture)) for picture in pictures]
    for i in known:
        cache.put(named[i], wanted[i])
    batches(backbone).clear()
    found = cached(backbone, cache, pictures[asked], [named[i] for i in asked])
    assert torch.equal(found, wanted[asked])
    new = set(asked) - known
    assert batches(backbone) == ([len(new)] if new else [])


def test_features_are_kept_in_the_type_they_were_computed_in(cache: FeatureCache) -> None:
    backbone = Backbone(Counting(), channels=3, stride=4, dtype=torch.bfloat16)
    key = Key(backbone.fingerprint(), "none", "0")
    found = cached(backbone, cache, torch.rand(1, 3, 8, 8), [key])
    kept = cache.get(key)
    assert kept is not None
    assert kept.dtype == torch.bfloat16
    assert torch.equal(kept.float(), found[0])


def test_features_do_not_depend_on_what_was_known(counting: Backbone, cache: FeatureCache) -> None:
    pictures = torch.rand(2, 3, 8, 8)
    named = [Key(counting.fingerprint(), "none", hash_image(picture)) for picture in pictures]
    fresh, again = (cached(counting, cache, pictures, named) for _ in range(2))
    assert batches(counting) == [2]
    assert torch.equal(fresh, again)
    assert torch.equal(fresh, counting(pictures))


def test_keys_of_another_backbone_are_refused(counting: Backbone, cache: FeatureCache) -> None:
    with pytest.raises(InputError, match="Make them with"):
        cached(counting, cache, torch.rand(1, 3, 8, 8), [KEY])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_keys_and_images_have_to_be_as_many(
    count: int, counting: Backbone, cache: FeatureCache
) -> None:
    named = [Key(counting.fingerprint(), "none", str(i)) for i in range(count)]
    with pytest.raises(InputError, match="one key for each image"):
        cached(counting, cache, torch.rand(2, 3, 8, 8), named)
