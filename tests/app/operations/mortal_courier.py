"""A process that delivers events to webhooks until nothing is due, and can be killed at a failpoint.

`python -m tests.app.operations.mortal_courier URL KEYS`: `KEYS` is the file with the keys of stored secrets.
"""

from __future__ import annotations

import sys
from pathlib import Path

from app.operations.deliveries import Courier
from app.platform.database import Database
from app.platform.settings import Settings
from tests.waiting import patience


def main(url: str, keys: Path) -> None:
    """Start what is due, and wait for it."""
    settings = Settings(secrets_keys_file=keys, webhook_networks="127.0.0.0/8")
    courier = Courier(Database(url), settings)
    while courier.start_due():
        courier.wait(patience())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
