"""Put 1,000 calls of the bank-marketing table aside, for a model that has not seen them to score.

Writes `calls.parquet`, to train on, and `customers.parquet` into the current folder. Get started uses them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

TABLE = Path(__file__).parent / "data" / "bank-marketing.parquet"
CUSTOMERS = 1_000


def main() -> None:
    """Divide the rows at random, the same way each time."""
    rows = pq.read_table(TABLE)
    order = np.random.Generator(np.random.Philox(0)).permutation(len(rows))
    for name, taken in ("calls", order[CUSTOMERS:]), ("customers", order[:CUSTOMERS]):
        path = f"{name}.parquet"
        pq.write_table(rows.take(taken), path)
        print(f"{path}: {len(taken):,} rows")


if __name__ == "__main__":
    main()
