"""FoodSeg103's folders: what is in them is found, and what is not is explained."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from rotating_features._check import InputError
from rotating_features.data.food_seg import FoodSeg103

PARTS = {"train": ["00000000", "00000001", "00000003"], "test": ["00000002", "00000048"]}


@pytest.fixture(params=["", "Images"])
def food(request: pytest.FixtureRequest, tmp_path: Path, records: ModuleType) -> Path:
    """As published, and as many have it after unpacking."""
    root = tmp_path / "FoodSeg103"
    for part, names in PARTS.items():
        for number, name in enumerate(names):
            inside = root / request.param
            records.write_photograph(inside / "img_dir" / part / f"{name}.jpg", 9, 12 + number)
            labels = np.full((9, 12 + number), 100 + number, dtype=np.uint8)
            labels[:3] = 0
            records.write_mask(inside / "ann_dir" / part / f"{name}.png", labels)
    lines = ["0\tbackground", *(f"{i}\tfood number {i}" for i in range(1, 104))]
    (root / "category_id.txt").write_text("\n".join(lines))
    return root


def images(food: Path) -> Path:
    return food / "Images" if (food / "Images").exists() else food


def test_both_parts_are_found(food: Path) -> None:
    for split, part in {"train": "train", "val": "test", "test": "test"}.items():
        dataset = FoodSeg103(split, food)  # type: ignore[arg-type]
        assert [dataset.name(index) for index in range(len(dataset))] == PARTS[part]


def test_the_folder_above_will_do(food: Path) -> None:
    assert len(FoodSeg103("test", str(food.parent))) == 2


def test_there_are_classes_and_no_instances(food: Path) -> None:
    image, instances, classes = FoodSeg103("train", food)[1]
    assert image.shape == (3, 9, 13)
    assert instances is None
    assert classes is not None
    assert classes[:3].unique().tolist() == [0]
    assert classes[3:].unique().tolist() == [101]


def test_classes_have_the_names_of_the_dataset(food: Path) -> None:
    names = FoodSeg103("test", food).class_names
    assert names is not None
    assert (len(names), names[0], names[102]) == (103, "food number 1", "food number 103")
    (food / "category_id.txt").unlink()
    assert FoodSeg103("test", food).class_names is None


@pytest.mark.parametrize("content", ["", "1\tcandy", "candy\t1\n", "one"])
def test_a_damaged_list_of_names_is_explained(food: Path, content: str) -> None:
    (food / "category_id.txt").write_text(content)
    with pytest.raises(InputError, match=r"category_id\.txt should have a number and a name"):
        _ = FoodSeg103("test", food).class_names


def test_missing_masks_are_counted_and_named(food: Path) -> None:
    (images(food) / "ann_dir/test/00000048.png").unlink()
    with pytest.raises(InputError, match=r"1 of 2 .* no mask, .*test/00000048\.png"):
        FoodSeg103("test", food)


def test_a_part_without_photographs_is_named(food: Path) -> None:
    for path in (images(food) / "img_dir/test").iterdir():
        path.unlink()
    with pytest.raises(InputError, match=r"no photographs \(\*\.jpg\) in .*img_dir/test"):
        FoodSeg103("test", food)


def test_a_class_beyond_the_last_is_refused(food: Path, records: ModuleType) -> None:
    labels = np.full((9, 12), 104, dtype=np.uint8)
    records.write_mask(images(food) / "ann_dir/test/00000002.png", labels)
    with pytest.raises(InputError, match="should have labels 0 to 103 and 255, got a 104"):
        FoodSeg103("test", food)[0]


def test_a_folder_without_it_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no FoodSeg103 in .*img_dir.\n  Unpack"):
        FoodSeg103("test", tmp_path)


def test_an_unknown_split_is_explained(food: Path) -> None:
    with pytest.raises(InputError, match=r"split should be one of .*got 'all'"):
        FoodSeg103("all", food)  # type: ignore[arg-type]
