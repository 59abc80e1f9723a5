"""Numbers printed in the paper, to stand beside ours. Claims, never settings."""

from typing import NamedTuple


class Claim(NamedTuple):
    """Mean and standard error over seeds, None where the paper prints none."""

    mean: float
    sem: float | None


Scores = dict[str, Claim]
Table = dict[str, Scores]
"""Rows by name."""


def _scores(*values: float) -> dict[str, Claim]:
    """Mean and error of MSE, ARI-BG and MBO_i, as a row of the tables has them."""
    pairs = zip(values[::2], values[1::2], strict=True)
    return {
        name: Claim(*pair) for name, pair in zip(("mse", "ari_bg", "mbo_i"), pairs, strict=True)
    }


FOUR_SHAPES = {
    2: _scores(2.198e-3, 1.110e-4, 0.666, 0.046, 0.589, 0.026),
    3: _scores(1.112e-3, 2.698e-4, 0.937, 0.018, 0.861, 0.020),
    4: _scores(5.893e-4, 4.350e-5, 0.944, 0.016, 0.908, 0.012),
    5: _scores(5.439e-4, 6.984e-5, 0.975, 0.003, 0.934, 0.006),
    6: _scores(2.526e-4, 1.416e-5, 0.991, 0.002, 0.970, 0.003),
    7: _scores(1.642e-4, 1.810e-5, 0.992, 0.002, 0.974, 0.003),
    8: _scores(1.360e-4, 7.644e-6, 0.987, 0.003, 0.968, 0.008),
}
"""4Shapes by rotation dimension, after 100,000 steps."""

FOUR_SHAPES_STANDARD = {"mse": Claim(5.492e-3, 9.393e-4)}
FOUR_SHAPES_COMPLEX = _scores(3.435e-3, 2.899e-4, 0.694, 0.041, 0.628, 0.039)
FOUR_SHAPES_WITHOUT_BINDING = {8: {"ari_bg": Claim(0.059, 0.017)}}

FOUR_SHAPES_RGB = {
    1: _scores(1.017e-5, 2.541e-6, 0.982, 0.009, 0.874, 0.008),
    2: _scores(1.597e-4, 2.185e-5, 0.726, 0.035, 0.595, 0.015),
    3: _scores(1.044e-4, 6.547e-6, 0.850, 0.008, 0.767, 0.016),
    4: _scores(1.166e-4, 5.985e-6, 0.682, 0.041, 0.626, 0.050),
    5: _scores(1.653e-4, 3.065e-5, 0.494, 0.056, 0.474, 0.031),
}
FOUR_SHAPES_RGBD = {
    1: _scores(4.920e-6, 5.421e-7, 1.000, 0.000, 0.875, 0.015),
    2: _scores(4.693e-5, 2.166e-5, 0.996, 0.004, 0.798, 0.007),
    3: _scores(2.436e-5, 3.930e-6, 0.936, 0.029, 0.785, 0.017),
    4: _scores(4.562e-5, 4.567e-6, 0.909, 0.039, 0.759, 0.013),
    5: _scores(8.850e-5, 3.780e-5, 0.922, 0.040, 0.727, 0.014),
}
"""4Shapes RGB and RGB-D by the number of colours."""

TEN_SHAPES = {
    2: _scores(1.672e-2, 7.893e-4, 0.341, 0.030, 0.169, 0.013),
    10: _scores(1.918e-3, 1.315e-4, 0.959, 0.022, 0.589, 0.039),
}
"""10Shapes by rotation dimension."""

MULTI_DSPRITES = {
    "complex": _scores(3.540e-3, 1.990e-4, 0.371, 0.056, 0.426, 0.042),
    "rotating": _scores(7.082e-4, 1.173e-4, 0.888, 0.015, 0.863, 0.011),
}
CLEVR = {
    "complex": _scores(1.191e-3, 2.998e-5, 0.289, 0.042, 0.234, 0.074),
    "rotating": _scores(6.643e-4, 5.564e-5, 0.664, 0.013, 0.608, 0.017),
}
"""By model."""

MNIST_SHAPES = {
    1: {
        "iou": Claim(0.785, 0.011),
        "iou_random": Claim(0.393, 0.006),
        "ari_bg": Claim(0.926, 0.007),
        "accuracy": Claim(0.996, 0.000),
    },
    2: {
        "iou": Claim(0.230, 0.043),
        "iou_random": Claim(0.265, 0.006),
        "ari_bg": Claim(0.871, 0.029),
        "accuracy": Claim(0.991, 0.000),
    },
}
"""Weakly supervised segmentation by the number of shapes beside the digit."""


def _overlaps(instances: float, classes: float, sems: tuple[float, float] | None = None) -> Scores:
    """MBO_i and MBO_c, with their errors if there are any."""
    first, second = sems or (None, None)
    return {"mbo_i": Claim(instances, first), "mbo_c": Claim(classes, second)}


PASCAL: Table = {
    "one label": {"ari_bg": Claim(0.499, None), **_overlaps(0.205, 0.247)},
    "blocks": _overlaps(0.247, 0.259),
    "pixels": _overlaps(0.282, 0.320, (0.006, 0.006)),
    "k-means": _overlaps(0.363, 0.405),
    "complex": _overlaps(0.329, 0.374, (0.009, 0.010)),
    "rotating": _overlaps(0.407, 0.460, (0.001, 0.001)),
}
"""Pascal VOC, five seeds, features of DINO."""

FOODSEG: Table = {
    "blocks": {"mbo_c": Claim(0.296, 0.000)},
    "rotating": {"mbo_c": Claim(0.484, 0.002)},
}
"""FoodSeg103, features of DINO."""
