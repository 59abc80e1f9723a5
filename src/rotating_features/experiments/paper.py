"""Numbers printed in the paper, to stand beside ours. Claims, never settings."""

from typing import NamedTuple


class Claim(NamedTuple):
    """Mean and standard error over four seeds."""

    mean: float
    sem: float


FOUR_SHAPES = {
    2: {
        "mse": Claim(2.198e-3, 1.110e-4),
        "ari_bg": Claim(0.666, 0.046),
        "mbo_i": Claim(0.589, 0.026),
    },
    3: {
        "mse": Claim(1.112e-3, 2.698e-4),
        "ari_bg": Claim(0.937, 0.018),
        "mbo_i": Claim(0.861, 0.020),
    },
    4: {
        "mse": Claim(5.893e-4, 4.350e-5),
        "ari_bg": Claim(0.944, 0.016),
        "mbo_i": Claim(0.908, 0.012),
    },
    5: {
        "mse": Claim(5.439e-4, 6.984e-5),
        "ari_bg": Claim(0.975, 0.003),
        "mbo_i": Claim(0.934, 0.006),
    },
    6: {
        "mse": Claim(2.526e-4, 1.416e-5),
        "ari_bg": Claim(0.991, 0.002),
        "mbo_i": Claim(0.970, 0.003),
    },
    7: {
        "mse": Claim(1.642e-4, 1.810e-5),
        "ari_bg": Claim(0.992, 0.002),
        "mbo_i": Claim(0.974, 0.003),
    },
    8: {
        "mse": Claim(1.360e-4, 7.644e-6),
        "ari_bg": Claim(0.987, 0.003),
        "mbo_i": Claim(0.968, 0.008),
    },
}
"""4Shapes by rotation dimension, after 100,000 steps."""

FOUR_SHAPES_WITHOUT_BINDING = {8: {"ari_bg": Claim(0.059, 0.017)}}
