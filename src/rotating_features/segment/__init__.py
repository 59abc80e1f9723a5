"""From a folder of images to object masks.

    find.py → load.py → look, group → blocks.py → files.py → journal.py → coco.py, sheet.py
    files     pictures  model         labels      masks      objects.jsonl

``pipeline.py`` has them run side by side, ``folder.py`` begins and ends it.
"""

from rotating_features.data.decode import OUTPUTS
from rotating_features.segment.find import find_images
from rotating_features.segment.folder import BATCH, segment
from rotating_features.segment.pipeline import Segmented
from rotating_features.segment.timings import Timings

__all__ = ["BATCH", "OUTPUTS", "Segmented", "Timings", "find_images", "segment"]
