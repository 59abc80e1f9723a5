"""Pascal VOC's folders: what is in them is found, and what is not is explained."""

from pathlib import Path
from types import ModuleType

import pytest

from rotating_features._check import InputError
from rotating_features.data.pascal_voc import CLASSES, PascalVoc
from rotating_features.data.sample import IGNORE

SHARED = Path(__file__).parents[3] / "shared" / "data"
REAL = SHARED / "voc2012-sample"
LISTS = Path("VOCdevkit/VOC2012/ImageSets/Segmentation")
JPEGS = Path("VOCdevkit/VOC2012/JPEGImages")
needs_voc = pytest.mark.skipif(not REAL.is_dir(), reason="needs the sample of VOC 2012")


def names(dataset: PascalVoc) -> list[str]:
    return [dataset.name(index) for index in range(len(dataset))]


@pytest.mark.parametrize("below", ["", "VOCdevkit", "VOCdevkit/VOC2012"])
def test_any_of_its_folders_will_do(voc: Path, below: str) -> None:
    assert names(PascalVoc("val", str(voc / below))) == ["b1", "b2"]


def test_training_is_on_trainaug(voc: Path) -> None:
    assert names(PascalVoc("train", voc)) == ["a1", "a2", "c1"]
    assert names(PascalVoc("train", voc, names="train")) == ["a1", "a2"]


def test_the_public_photographs_stand_for_the_test_set(voc: Path) -> None:
    assert names(PascalVoc("test", voc)) == names(PascalVoc("val", voc))


def test_objects_and_classes_are_as_drawn(voc: Path) -> None:
    image, instances, classes = PascalVoc("val", voc)[0]
    assert instances is not None
    assert classes is not None
    assert instances.shape == classes.shape == image.shape[1:]
    assert instances.unique().tolist() == [IGNORE, 0, 1, 2]
    assert classes[instances == 1].unique().tolist() == [15]
    assert classes[instances == 2].unique().tolist() == [20]
    assert [CLASSES[c - 1] for c in (1, 15, 20)] == ["aeroplane", "person", "tv monitor"]


def test_a_photograph_of_sbd_has_no_masks(voc: Path) -> None:
    train = PascalVoc("train", voc)
    assert train[2][1:] == (None, None)
    assert train[1].instances is not None


def test_lists_may_have_paths_blank_lines_and_windows_ends(voc: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    lines = ["\ufeffa2", "/JPEGImages/c1.jpg /SegmentationClassAug/c1.png", "", "a1", "a2"]
    mine.write_bytes("\r\n".join(lines).encode())
    assert names(PascalVoc("train", voc, names=mine)) == ["a2", "c1", "a1"]


def test_without_trainaug_it_is_said_what_to_do(voc: Path) -> None:
    (voc / LISTS / "trainaug.txt").unlink()
    with pytest.raises(InputError) as caught:
        PascalVoc("train", voc)
    for part in (str(voc / LISTS / "trainaug.txt"), "10,582", "Put it there"):
        assert part in str(caught.value)
    assert len(PascalVoc("val", voc)) == 2


def test_a_missing_list_is_named(voc: Path) -> None:
    (voc / LISTS / "val.txt").unlink()
    with pytest.raises(InputError, match=r"no list .*val\.txt.\n.*VOCtrainval_11-May-2012\.tar"):
        PascalVoc("val", voc)


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_empty_list_is_named(voc: Path, content: bytes) -> None:
    (voc / LISTS / "val.txt").write_bytes(content)
    with pytest.raises(InputError, match=r"val\.txt should list photographs.*is empty"):
        PascalVoc("val", voc)


def test_a_list_of_bytes_is_named(voc: Path) -> None:
    (voc / LISTS / "val.txt").write_bytes(b"\xff\x00")
    with pytest.raises(InputError, match=r"val\.txt cannot be read as a list"):
        PascalVoc("val", voc)


def test_missing_photographs_are_counted_and_named(voc: Path) -> None:
    (voc / JPEGS / "b2.jpg").unlink()
    with pytest.raises(InputError, match=r"1 of 2 photographs are not in .*first of them b2\.jpg"):
        PascalVoc("val", voc)


@pytest.mark.parametrize("kind", ["SegmentationObject", "SegmentationClass"])
def test_a_score_needs_all_masks(voc: Path, kind: str) -> None:
    (voc / "VOCdevkit/VOC2012" / kind / "b1.png").unlink()
    with pytest.raises(InputError, match=rf"1 of 2 photographs have no mask .*{kind}/b1\.png"):
        PascalVoc("val", voc)


def test_a_class_beyond_the_twentieth_is_refused(voc: Path, records: ModuleType) -> None:
    path = voc / "VOCdevkit/VOC2012/SegmentationClass/b1.png"
    instances = PascalVoc("val", voc)[0].instances
    assert instances is not None
    records.write_mask(path, (instances.abs() * 12).byte().numpy())
    with pytest.raises(InputError, match=r"b1\.png should have labels 0 to 20 and 255, got a 24"):
        PascalVoc("val", voc)[0]


def test_a_folder_without_voc_is_explained(tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(InputError, match=r"no Pascal VOC 2012 in .*JPEGImages.\n  Unpack"):
        PascalVoc("val", tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=rf"in {tmp_path}/data/voc2012:"):
        PascalVoc("val")


def test_an_unknown_split_is_explained(voc: Path) -> None:
    with pytest.raises(InputError, match=r"split should be one of .*'val'.*got 'trainval'"):
        PascalVoc("trainval", voc)  # type: ignore[arg-type]


@pytest.mark.data
@needs_voc
def test_real_photographs_are_read() -> None:
    val, train = PascalVoc("val", REAL), PascalVoc("train", REAL)
    assert (len(val), len(PascalVoc("train", REAL, names="train"))) == (24, 24)
    assert sum(files.instances is None for files in train.files) == 8
    for index in range(len(val)):
        _, instances, classes = val[index]
        assert instances is not None
        assert classes is not None
        found = instances.unique().tolist()
        assert found == list(range(min(found), max(found) + 1))
        assert IGNORE in found
        assert (classes > 0).equal(instances > 0)


@pytest.mark.data
@needs_voc
def test_the_public_list_of_trainaug_is_not_of_val() -> None:
    listed = (SHARED / "trainaug.txt").read_text().split()
    assert len(set(listed)) == 10_582
    assert not set(listed) & set(names(PascalVoc("val", REAL)))
