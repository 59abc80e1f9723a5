"""``python -m rotating_features``."""

import sys

from rotating_features.cli import main

sys.exit(main())
