"""Pictures of classes: one colour a class, named in the legend."""

import io

import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from rotating_features._check import InputError
from rotating_features.plots import semantic_grid
from rotating_features.plots.colors import UNLABELLED
from rotating_features.plots.semantic import CLASS_COLORS, color_classes

NAMES = [f"class {c}" for c in range(1, 14)]


def arguments(b: int = 2, *, c: int = 1) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    maps = torch.randint(0, 9, (3, b, 8, 9), generator=rng)
    names = ("truth", "prediction", "baseline")
    return {
        "image": torch.rand(b, c, 8, 9, generator=rng),
        **dict(zip(names, maps, strict=True)),
    }


def render(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="raw", dpi=40)
    return file.getvalue()


@pytest.mark.parametrize(("b", "c"), [(1, 1), (6, 3)])
def test_there_is_a_column_for_each_image_and_a_row_for_each_view(b: int, c: int) -> None:
    figure = semantic_grid(**arguments(b, c=c), names=NAMES, title="classes")
    assert len(figure.axes) == 4 * b
    assert render(figure)


@pytest.mark.parametrize("name", arguments())
def test_everything_given_is_shown(name: str) -> None:
    given = arguments()
    before = render(semantic_grid(**given, names=NAMES))
    assert render(semantic_grid(**{**given, name: given[name].flip(-1)}, names=NAMES)) != before


def test_the_legend_names_the_classes_that_occur_in_their_colours() -> None:
    given = arguments(1)
    given["truth"][:] = 0
    given["prediction"][:] = 13
    given["baseline"][:] = -1
    given["baseline"][0, 0, 0] = 4
    (legend,) = semantic_grid(**given, names=NAMES).legends
    assert [text.get_text() for text in legend.get_texts()] == ["class 4", "class 13"]
    for patch, label in zip(legend.get_patches(), (4, 13), strict=True):
        assert to_rgb(patch.get_facecolor()) == pytest.approx(CLASS_COLORS[label] / 255, abs=1e-3)


def test_a_picture_without_classes_needs_no_legend() -> None:
    given = {name: torch.zeros_like(value) for name, value in arguments().items()}
    figure = semantic_grid(**given, names=NAMES)
    assert not figure.legends
    assert render(figure)


def test_twenty_classes_have_colours_of_their_own() -> None:
    colors = color_classes(torch.arange(-1, 21).view(1, -1))[0]
    assert len({tuple(color) for color in colors.tolist()}) == 22
    assert colors[0].tolist() == UNLABELLED.tolist()
    assert color_classes(torch.tensor([[21]])).tolist() == colors[2].reshape(1, 1, 3).tolist()


def test_a_class_without_a_name_is_explained() -> None:
    with pytest.raises(InputError, match="truth has class 8, but names has only 2"):
        semantic_grid(**arguments(), names=["cat", "dog"])
