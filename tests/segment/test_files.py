"""Coco's file and the contact sheet agree with the masks."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rotating_features._check import InputError
from rotating_features.plots.colors import PALETTE
from rotating_features.segment import find_images, segment, sheet
from rotating_features.segment.journal import read_lines


def run(model, photos: Path, out: Path, **options) -> list:
    return list(segment(model, find_images([photos]), out, k=3, **options))


def test_coco_has_every_object_of_every_mask(model, photos, tmp_path, decode) -> None:
    run(model, photos, tmp_path / "out")
    coco = json.loads((tmp_path / "out" / "coco.json").read_text())
    assert [category["name"] for category in coco["categories"]] == ["object"]
    assert len({a["id"] for a in coco["annotations"]}) == len(coco["annotations"]) > 11
    assert len({i["id"] for i in coco["images"]}) == len(coco["images"]) == 11
    for image in coco["images"]:
        assert (photos / image["file_name"]).exists()
        with Image.open(tmp_path / "out" / f"{image['file_name']}.labels.png") as file:
            labels = np.array(file)
        assert labels.shape == (image["height"], image["width"])
        own = [a for a in coco["annotations"] if a["image_id"] == image["id"]]
        there = [label for label in np.unique(labels) if label]
        for label, annotation in zip(there, own, strict=True):
            mask = decode(annotation["segmentation"]["counts"], *labels.shape)
            assert annotation["segmentation"]["size"] == list(labels.shape)
            assert mask.tolist() == (labels == label).tolist()
            assert annotation["area"] == mask.sum()
            assert annotation["iscrowd"] == 0
            assert annotation["category_id"] == coco["categories"][0]["id"]
            left, top, width, height = annotation["bbox"]
            assert mask[top : top + height, left : left + width].sum() == mask.sum()


def test_the_contact_sheet_has_pages(model, photos: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sheet, "COLUMNS", 2)
    monkeypatch.setattr(sheet, "ROWS", 2)
    out = tmp_path / "out"
    run(model, photos, out)
    assert sorted(p.name for p in out.glob("contact*")) == [
        "contact-sheet-2.png",
        "contact-sheet-3.png",
        "contact-sheet.png",
    ]
    with Image.open(out / "contact-sheet.png") as page:
        corner = np.array(page)[sheet.GAP :, sheet.GAP :][: sheet.SIDE, : sheet.SIDE]
    shown = (corner != sheet.PAPER).any(2)
    with Image.open(out / "00.png.overlay.jpg") as overlay:
        assert shown.sum() == overlay.width * overlay.height
        assert np.abs(corner[shown].mean(0) - np.array(overlay).mean((0, 1))).max() < 2

    monkeypatch.setattr(sheet, "ROWS", 8)
    (out / "contact-sheet.png").unlink()
    run(model, photos, out)
    assert [p.name for p in out.glob("contact*")] == ["contact-sheet.png"]


def test_a_sheet_is_drawn_again_only_if_something_changed(model, photos, tmp_path) -> None:
    run(model, photos, tmp_path / "out")
    path = tmp_path / "out" / "contact-sheet.png"
    before = path.stat().st_mtime_ns
    run(model, photos, tmp_path / "out")
    assert path.stat().st_mtime_ns == before
    Image.new("RGB", (9, 9)).save(photos / "new.png")
    run(model, photos, tmp_path / "out")
    assert path.stat().st_mtime_ns > before


def test_long_and_odd_names_fit_below_their_pictures(model, tmp_path: Path) -> None:
    folder = tmp_path / "names"
    folder.mkdir()
    for name in ("x" * 120, "写真", "a\nb", "caf\udce9"):
        Image.new("RGB", (20, 10), "green").save(folder / f"{name}.png")
    done = run(model, folder, tmp_path / "out")
    assert [item.problem for item in done] == [None] * 4
    with Image.open(tmp_path / "out" / "contact-sheet.png") as page:
        pixels = np.array(page)
    ink = (pixels != sheet.PAPER).any(2).any(0)
    gaps = [sheet.GAP + i * (sheet.SIDE + sheet.GAP) - sheet.GAP for i in range(5)]
    assert not any(ink[gap : gap + sheet.GAP - 2].any() for gap in gaps)


@pytest.mark.parametrize("there", [False, True])
def test_a_name_too_long_for_its_masks_is_named(
    model, photos: Path, tmp_path: Path, there: bool
) -> None:
    if there:
        (tmp_path / "out").mkdir()
    Image.new("RGB", (20, 10)).save(photos / f"{'x' * 245}.png")
    done = run(model, photos, tmp_path / "out")
    assert [item.problem is None for item in done].count(False) == 1
    assert "too long a name" in done[-1].problem


def test_labels_have_the_colours_of_our_other_pictures(model, photos: Path, tmp_path: Path) -> None:
    run(model, photos, tmp_path / "out")
    with Image.open(tmp_path / "out" / "00.png.labels.png") as mask:
        assert mask.getpalette()[: 3 * len(PALETTE)] == PALETTE.ravel().tolist()


@pytest.mark.parametrize("name", ["coco.json", "report.json", "contact-sheet-2.png"])
def test_files_of_others_are_not_overwritten(model, photos: Path, name: str) -> None:
    (photos / name).write_text("precious")
    images = [(path, Path(path.name)) for path in photos.glob("0*")]
    with pytest.raises(InputError, match=rf"{name} would be overwritten"):
        list(segment(model, images, photos, k=3))
    assert (photos / name).read_text() == "precious"


def test_a_file_is_no_folder_for_output(model, photos: Path) -> None:
    with pytest.raises(InputError, match="is a file"):
        run(model, photos, photos / "00.png")


def test_the_report_says_how_large_images_are(model, photos: Path, tmp_path: Path) -> None:
    run(model, photos, tmp_path / "out")
    for line in read_lines(tmp_path / "out" / "objects.jsonl"):
        with Image.open(photos / line["name"]) as image:
            assert (line["width"], line["height"]) == image.size
