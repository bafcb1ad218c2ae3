"""A process that runs the schedules that are due, and can be killed at a failpoint.

`python -m tests.app.operations.mortal_scheduler URL CONNECTIONS`
"""

from __future__ import annotations

import sys
from pathlib import Path

from app.operations.scheduling import Scheduler
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.stores import open_store

if __name__ == "__main__":
    settings = Settings(connections_file=Path(sys.argv[2]))
    Scheduler(Database(sys.argv[1]), open_store(settings), settings).run_due()
