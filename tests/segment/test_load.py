"""Images are made ready as ``discover`` does it, in little memory."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torch.nn import functional as F

from rotating_features.evaluate.images import as_batch
from rotating_features.segment import load
from rotating_features.segment.load import SHOWN, Memory, fit, load_image

SIDES = st.integers(1, 70)


@pytest.mark.parametrize("channels", [1, 3])
@given(w=SIDES, h=SIDES, size=st.tuples(SIDES, SIDES), strip=st.integers(1, 2000))
def test_strips_give_the_bits_of_the_whole(channels: int, w: int, h: int, size, strip: int) -> None:
    pixels = np.random.default_rng(w).integers(0, 256, (h, w, 3), dtype=np.uint8)
    picture = Image.fromarray(pixels)
    x, _ = as_batch(picture, channels)
    if x.shape[-2:] != size:
        x = F.interpolate(x, size, mode="bilinear", antialias=True).clamp(0, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "STRIP", strip)
        assert fit(picture, channels, size).equal(x[0])


def test_a_large_image_is_kept_small(tmp_path: Path) -> None:
    Image.new("RGB", (3000, 20), "red").save(tmp_path / "long.png")
    loaded = load_image(tmp_path / "long.png", 3, (8, 8), Memory(10))
    assert loaded.size == (20, 3000)
    assert loaded.picture.size == (SHOWN, 13)
    assert loaded.x.shape == (3, 8, 8)


def test_no_more_pixels_are_held_than_there_is_room_for() -> None:
    memory, held, most = Memory(10), [0], []

    def work(pixels: int) -> None:
        with memory.take(pixels):
            held[0] += min(pixels, 10)
            most.append(held[0])
            time.sleep(0.001)
            held[0] -= min(pixels, 10)

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 4, 5, 99, 2, 7, 1000, 1) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert len(most) == len(threads)
    assert max(most) <= 10
    assert memory.free == 10
