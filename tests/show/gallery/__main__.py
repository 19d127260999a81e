"""Write the gallery: ``python -m tests.show.gallery gallery.html``."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.show.gallery.page import gallery_page

Path(sys.argv[1]).write_text(gallery_page(), encoding="utf-8")
