"""`python -m migrations "what changes"`: write the next migration, from the difference to the tables."""

import sys
import tempfile

from alembic import command

from app.platform import migrate
from app.platform.database import Database

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit('usage: python -m migrations "what changes"')
    message = sys.argv[1]
    number = int(migrate.head()) + 1
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/empty.db"
        migrate.upgrade(url)
        db = Database(url)
        with migrate.exclusive_transaction(db) as connection:
            command.revision(
                migrate.config(connection),
                message,
                autogenerate=True,
                rev_id=f"{number:04d}",
            )
        db.close()
