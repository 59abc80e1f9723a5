"""Pictures: any number of images, channels and rotation dimensions; equal input, equal picture."""

import io
import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rotating_features.plots import grid, growth, learning_curve
from rotating_features.plots.colors import (
    PALETTE,
    UNLABELLED,
    color_image,
    color_labels,
    color_orientations,
)
from rotating_features.plots.grid import match_colors
from rotating_features.plots.lines import Line, Panel, Point, lines

LOG = [
    {"step": 1, "loss": 0.2},
    {"step": 2, "loss": 0.1, "val_ari_bg": 0.3},
    {"step": 3, "val_ari_bg": 0.8, "val_mse": 0.1},
]


def arguments(b: int = 2, *, n: int = 3, c: int = 1) -> dict[str, torch.Tensor]:
    """What ``grid`` wants, the same each time."""
    rng = torch.Generator().manual_seed(0)
    orientations = torch.randn(b, n, 8, 9, generator=rng)
    return {
        "image": torch.rand(b, c, 8, 9, generator=rng),
        "truth": torch.randint(-1, 4, (b, 8, 9), generator=rng),
        "reconstruction": torch.rand(b, c, 8, 9, generator=rng),
        "labels": torch.randint(-1, 4, (b, 8, 9), generator=rng),
        "uncertainty": torch.rand(b, 8, 9, generator=rng),
        "orientations": torch.nn.functional.normalize(orientations, dim=1),
    }


def render(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="raw", dpi=40)
    return file.getvalue()


@pytest.mark.parametrize("b", [1, 8])
def test_a_grid_has_a_column_for_each_image_and_a_row_for_each_view(b: int) -> None:
    figure = grid(**arguments(b))
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 6 * b
    assert render(figure)


@pytest.mark.parametrize("n", range(2, 9))
def test_a_grid_takes_any_rotation_dimension(n: int) -> None:
    assert isinstance(grid(**arguments(1, n=n)), Figure)


@pytest.mark.parametrize("c", [1, 3, 4])
def test_a_grid_takes_grey_colour_and_depth(c: int) -> None:
    assert isinstance(grid(**arguments(c=c), title="four shapes"), Figure)


def test_a_grid_of_a_model_that_sees_nothing_is_a_grid() -> None:
    given_ = arguments()
    given_ = {name: torch.zeros_like(value) for name, value in given_.items()}
    assert render(grid(**given_))


def test_equal_input_gives_an_equal_grid() -> None:
    assert render(grid(**arguments())) == render(grid(**arguments()))


@pytest.mark.parametrize("name", arguments())
def test_everything_given_is_shown(name: str) -> None:
    """Other pixels in any one argument make another picture."""
    given_ = arguments()
    before = render(grid(**given_))
    value = given_[name].flip(-1)
    assert render(grid(**{**given_, name: value})) != before


def test_a_grid_takes_tensors_that_want_gradients() -> None:
    given_ = arguments()
    given_["reconstruction"].requires_grad_()
    given_["orientations"].requires_grad_()
    assert isinstance(grid(**given_), Figure)


@pytest.mark.parametrize("log", [LOG, LOG[:1], LOG[2:], []], ids=["all", "loss", "score", "none"])
def test_a_learning_curve_draws_whatever_was_measured(log: list[dict]) -> None:
    figure = learning_curve(log, title="four shapes")
    assert isinstance(figure, Figure)
    assert render(figure)


@pytest.mark.parametrize("ari", [float("nan"), -0.2])
def test_a_learning_curve_takes_any_score(ari: float) -> None:
    assert render(learning_curve([*LOG, {"step": 4, "val_ari_bg": ari}]))


def test_a_learning_curve_shows_every_measured_point() -> None:
    left, right = learning_curve(LOG).axes
    assert left.lines[0].get_xydata().tolist() == [[1, 0.2], [2, 0.1]]
    assert right.lines[0].get_xydata().tolist() == [[2, 0.3], [3, 0.8]]


def test_equal_logs_give_equal_curves() -> None:
    assert render(learning_curve(LOG)) == render(learning_curve(LOG))


@given(xs=st.lists(st.integers(2, 16), min_size=1, max_size=9, unique=True).map(sorted))
def test_whole_numbers_are_marked_by_whole_numbers_however_few_they_are(xs: list[int]) -> None:
    line = Line("ours", [Point(x, 0.5, None) for x in xs])
    (axes,) = lines([Panel("n", "ARI-BG", [line])]).axes
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
    assert ticks
    assert all(float(tick).is_integer() for tick in ticks)


def test_panels_share_their_colours_and_one_legend() -> None:
    """Also where a panel lacks a line, and where two of ours stand beside one of the paper's."""
    paper = [Point(math.nan, 0.3, None)]
    one, two = (Line(label, [Point(math.nan, 0.5, 0.1)], paper) for label in ("one", "two"))
    three = Line("three", [Point(1, 0.5, 0.1), Point(2, 0.7, 0.2)])
    figure = lines([Panel("n", "ARI-BG", [two, three]), Panel("n", "MSE", [one, two, three])])
    left, right = (
        {line.get_label(): line.get_color() for line in axes.lines} for axes in figure.axes
    )
    assert {*left} == {"two", "two, paper", "three"}
    assert {*right} == {"one", "one, paper", "two", "three"}
    assert all(left[label] == right[label] for label in ("two", "three"))
    assert len({right[label] for label in ("one", "two", "three")}) == 3
    (legend,) = figure.legends
    assert sorted(text.get_text() for text in legend.get_texts()) == sorted({*left, *right})


@pytest.mark.parametrize("length", [1, 12, 40, 75])
@pytest.mark.parametrize("panels", [1, 2, 3])
def test_a_legend_fits_into_its_picture(length: int, panels: int) -> None:
    points = [Point(1, 0.5, 0.1), Point(2, 0.7, 0.2)]
    labelled = [Line(f"{i}{'x' * length}"[: 50 if panels == 1 else None], points) for i in range(6)]
    figure = lines([Panel("n", "ARI-BG", labelled)] * panels)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    (legend,) = figure.legends
    box, whole = legend.get_window_extent(canvas.get_renderer()), figure.bbox
    assert whole.x0 <= box.x0 < box.x1 <= whole.x1
    assert whole.y0 <= box.y0 < box.y1 <= whole.y1
    height = figure.axes[0].get_window_extent().height
    assert height > 0.45 * whole.height


def agreement(labels: torch.Tensor, truth: torch.Tensor) -> int:
    return int(((labels == truth) & (truth >= 0)).sum())


@given(st.integers(0, 10**9), st.integers(1, 5), st.integers(1, 5))
def test_matched_colours_are_a_relabelling_with_the_largest_overlap(seed, found, true) -> None:
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(found, (1, 4, 5), generator=rng)
    truth = torch.randint(-1, true, (1, 4, 5), generator=rng)
    matched = match_colors(labels, truth)

    pairs = torch.stack([labels, matched]).flatten(1).unique(dim=1)
    assert pairs.shape[1] == len(labels.unique()) == len(matched.unique())  # one to one

    names = range(max(found, true))
    best = max(
        agreement(torch.tensor(way)[labels], truth)
        for way in itertools.permutations(names, max(found, true))
    )
    assert agreement(matched, truth) == best


def test_each_image_is_matched_on_its_own() -> None:
    truth = torch.tensor([[[0, 1, 2]], [[0, 1, 2]]])
    labels = torch.tensor([[[1, 2, 0]], [[2, 1, 0]]])
    assert torch.equal(match_colors(labels, truth), truth)


def test_matching_leaves_unlabelled_pixels_and_the_given_labels_alone() -> None:
    labels, truth = torch.tensor([[[-1, 3, 3]]]), torch.tensor([[[1, 1, 1]]])
    assert match_colors(labels, truth).tolist() == [[[-1, 1, 1]]]
    assert labels.tolist() == [[[-1, 3, 3]]]


def test_without_truth_there_is_nothing_to_match() -> None:
    labels = torch.tensor([[[0, 1, 2]]])
    assert torch.equal(match_colors(labels, torch.full_like(labels, -1)), labels)


def test_labels_have_the_colours_of_the_palette_and_start_over_after_the_last() -> None:
    count = len(PALETTE) - 1
    colors = color_labels(torch.tensor([[0, 1, count, count + 1, -1]]))[0]
    wanted = [PALETTE[0], PALETTE[1], PALETTE[count], PALETTE[1], UNLABELLED]
    assert colors.tolist() == [color.tolist() for color in wanted]
    assert colors.dtype == np.uint8


def test_a_pixel_that_points_nowhere_is_black() -> None:
    orientations = arguments()["orientations"]
    orientations[:, :, 2, 3] = 0
    colors = color_orientations(orientations)
    assert not colors[:, 2, 3].any()
    assert colors.any(-1).sum() == 2 * (8 * 9 - 1)


@pytest.mark.parametrize("n", range(2, 9))
def test_different_directions_have_different_colours(n: int) -> None:
    """Each axis of R^n to a row, two and two: their principal axis has no sum to give it a sign."""
    for one, other in itertools.combinations(torch.eye(n), 2):
        image = torch.stack([one, other]).T.view(1, n, 2, 1).expand(-1, -1, -1, 4)
        top, bottom = color_orientations(image)[0].astype(int)
        assert np.abs(top - bottom).max() > 100


@pytest.mark.parametrize("c", [1, 3, 4])
def test_images_are_shown_as_they_are(c: int) -> None:
    """Grey in all three channels; depth left out; values beyond [0, 1] cut off."""
    image = arguments(c=c)["image"] * 2 - 0.5
    wanted = (image.clamp(0, 1) * 255).round()[:, : min(c, 3)].expand(-1, 3, -1, -1)
    assert torch.equal(torch.from_numpy(color_image(image)).movedim(-1, 1).float(), wanted)


def grown(*, text: bool) -> list[dict]:
    rows = [
        {
            "grows": grows,
            "value": v,
            "variant": w,
            "median_ms": v,
            "low_ms": v / 2,
            "high_ms": 2 * v,
        }
        for grows in ("n", "images")
        for v in (2, 8)
        for w in ("ours", "plain")
    ]
    return [{k: str(v) for k, v in row.items()} for row in rows] if text else rows


def test_growth_has_a_panel_for_each_thing_and_a_line_for_each_variant() -> None:
    panels = growth(grown(text=False), title="machine").axes
    assert [len(axes.lines) for axes in panels] == [2, 0, 0, 2]
    assert panels[3].lines[0].get_ydata().tolist() == [0.002, 0.008]  # in seconds


def test_growth_shows_no_panel_of_what_was_not_measured() -> None:
    shown = [axes.get_visible() for axes in growth(grown(text=False)).axes]
    assert shown == [True, False, False, True]


def test_growth_out_of_a_file_is_the_same_picture() -> None:
    assert render(growth(grown(text=False))) == render(growth(grown(text=True)))
