"""A process that runs the schedules that are due, and can be killed at a failpoint.

`python -m tests.app.operations.mortal_scheduler URL CONNECTIONS BLOBS`
"""

from __future__ import annotations

import sys
from pathlib import Path

from app.operations.scheduling import Scheduler
from app.platform.blobs import FolderStore
from app.platform.database import Database
from app.platform.settings import Settings

if __name__ == "__main__":
    settings = Settings(connections_file=Path(sys.argv[2]))
    Scheduler(Database(sys.argv[1]), FolderStore(Path(sys.argv[3])), settings).run_due()
