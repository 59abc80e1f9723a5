"""Theory's figures show what they are given."""

import io

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from rotating_features._check import InputError
from rotating_features.plots import binding_effect_figure, hypersphere_figure


def render(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="raw", dpi=40)
    return file.getvalue()


def test_the_binding_figure_has_a_line_with_and_one_without() -> None:
    x = torch.linspace(-1, 1, 5)
    figure = binding_effect_figure(x, x / 2 + 0.5, x / 3 + 0.4, title="binding")
    with_, without = figure.axes[0].lines[:2]
    np.testing.assert_allclose(with_.get_ydata(), x / 2 + 0.5)
    np.testing.assert_allclose(without.get_ydata(), x / 3 + 0.4)
    assert render(figure)


@pytest.mark.parametrize("seeds", [1, 4])
def test_the_sphere_figure_has_means_and_bands_of_one_standard_error(seeds: int) -> None:
    cosines = torch.rand(3, 5, seeds, dtype=torch.double)
    points = [2, 3, 4, 5, 6]
    axes = hypersphere_figure([2, 3, 8], points, cosines).axes[0]
    for i, (line, band) in enumerate(zip(axes.lines, axes.collections, strict=True)):
        np.testing.assert_allclose(line.get_ydata(), cosines[i].mean(1))
        sem = cosines[i].std(1) / seeds**0.5 if seeds > 1 else torch.zeros(5)
        corners = band.get_paths()[0].vertices
        for x, mean, error in zip(points, cosines[i].mean(1).tolist(), sem.tolist(), strict=True):
            here = corners[corners[:, 0] == x, 1]
            assert (here.min(), here.max()) == pytest.approx((mean - error, mean + error))


def test_the_sphere_figure_shows_the_optimum_where_it_is_known() -> None:
    cosines, optimum = torch.rand(2, 3, 4), torch.tensor([[0.1, 0.2, 0.3], [0.4, torch.nan, 0.5]])
    bare = hypersphere_figure([2, 3], [2, 3, 4], cosines)
    full = hypersphere_figure([2, 3], [2, 3, 4], cosines, optimum=optimum, title="points")
    assert "optimum" not in str([text.get_text() for text in bare.axes[0].get_legend().texts])
    drawn = [line.get_ydata() for line in full.axes[0].lines if line.get_marker() == "."]
    np.testing.assert_array_equal(np.stack(drawn[:2]), optimum.numpy())
    assert render(full)


def test_data_of_another_shape_are_explained() -> None:
    with pytest.raises(InputError, match=r"cosines should have shape \(dims=2, points=3, seeds\)"):
        hypersphere_figure([2, 3], [2, 3, 4], torch.rand(3, 2, 4))
    with pytest.raises(InputError, match="points=3"):
        binding_effect_figure(torch.zeros(3), torch.zeros(3), torch.zeros(2))
    with pytest.raises(InputError, match="at least two"):
        hypersphere_figure([2], [3], torch.zeros(1, 1, 1))
