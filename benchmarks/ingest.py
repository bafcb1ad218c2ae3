"""How fast a file becomes a typed table with its profile: `python -m benchmarks.ingest --data DIR`, or `[--rows N]`.

With `--data` each Parquet file of a folder is read as it is and as the CSV that polars makes of it, in a process of its
own beside polars, which reads the file and writes Parquet. The label is the column of `--label`, where a table has one,
else what the service takes. `room` is what a table may take: 1.5 times polars and half a second, in CPU seconds, which
other work on the machine changes less.

Without `--data`, a table of 30 numeric columns and a label (2.2 million rows are 500 MB of CSV) is read as a worker
reads an upload: types settled over all rows, Parquet written, every column surveyed. Beside it polars and DuckDB read
the same file and write Parquet; they settle types by the first rows and make no profile. Each runs in a process of its
own, in turns; memory is the greatest resident size less that of the idle process with its library loaded.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks import at_least_one, with_peers

COLUMNS = 30
BLOCK = 50_000

_MEASURE = """
import json, resource, sys, time
path, folder, label = [*sys.argv[1:3], *(sys.argv[3:] or [None])]
{load}
idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start, cpu = time.perf_counter(), time.process_time()
{read}
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({{"seconds": seconds, "cpu": cpu, "mb": (peak - idle) / 1024, **locals().get("more", {{}})}}))
"""

_OURS = {
    "load": """
    from pathlib import Path
    from app.ingest.build import ingest
    from app.ingest.profile import Survey
    from tests.app.uploads import LIMITS

    spent = 0.0

    def timed(do):
        def inner(*args):
            global spent
            start = time.perf_counter()
            found = do(*args)
            spent += time.perf_counter() - start
            return found

        return inner

    Survey.add, Survey.describe = timed(Survey.add), timed(Survey.describe)
    said = "label positive labels query item weight group categorical numeric drop protected missing".split()
    payload = dict.fromkeys([*said, "content_encoding"]) | {
        "content_type": "text/csv",
        "dataset_kind": "bipartite",
        "strict": False,
        "limits": LIMITS | {"rows": 50_000_000, "bytes": 1 << 40},
        "workdir": folder,
    }
    small = Path(folder, "small.csv")
    small.write_text("a,y\\n" + "1,0\\n2,1\\n" * 20)
    ingest(payload | {"path": str(small)}, lambda *_: None)
    """,
    "read": """
    from app.ingest.errors import BadTable

    given = {"path": path, "label": label}
    if path.endswith(".parquet"):
        given["content_type"] = "application/vnd.apache.parquet"
    try:
        told = len(ingest(payload | given, lambda *_: None)["warnings"])
    except BadTable as refusal:
        told = refusal.detail
    more = {"profile": spent, "told": told}
    """,
}
_POLARS = {
    "load": "import polars; polars.DataFrame({'a': [1]}).write_parquet(folder + '/small.parquet')",
    "read": """
    if path.endswith(".parquet"):
        table = polars.read_parquet(path)
    else:
        try:
            table = polars.read_csv(path)
        except polars.exceptions.ComputeError:  # the first rows misled it
            table = polars.read_csv(path, infer_schema_length=None)
    table.write_parquet(folder + "/polars.parquet")
    """,
}
_PEERS = {
    "polars": {
        "load": "import polars",
        "read": "polars.read_csv(path).write_parquet(folder + '/polars.parquet')",
    },
    "polars, streamed": {
        "load": "import polars",
        "read": "polars.scan_csv(path).sink_parquet(folder + '/polars.parquet')",
    },
    "duckdb": {
        "load": "import duckdb; duckdb.sql('set threads=2')",
        "read": "duckdb.sql(f\"copy (from read_csv('{path}')) to '{folder}/duckdb.parquet'\")",
    },
}


def write_csv(path: Path, rows: int) -> None:
    """Write the table: numbers of six digits, some missing, and a label that two columns know of."""
    rng = np.random.Generator(np.random.Philox(8))
    with path.open("w") as file:
        file.write(",".join([f"x{i}" for i in range(COLUMNS)] + ["y"]) + "\n")
        for start in range(0, rows, BLOCK):
            n = min(BLOCK, rows - start)
            X = rng.normal(size=(n, COLUMNS))
            y = rng.random(n) < 1 / (1 + np.exp(2 - X[:, 0] - X[:, 1]))
            lines = [
                ",".join(["" if v > 3.2 else f"{v:.4f}" for v in row]) + f",{int(label)}\n"
                for row, label in zip(X.tolist(), y.tolist(), strict=True)
            ]
            file.writelines(lines)


def measure(
    code: dict[str, str], path: Path, folder: str, label: str | None = None
) -> dict[str, float]:
    """Run one reader in a process of its own."""
    program = _MEASURE.format(**{part: textwrap.dedent(text) for part, text in code.items()})
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), folder, *([label] if label else [])],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare_real_tables(data: Path, label: str, repeats: int) -> None:
    """Print a row a table and form: CPU seconds of both, the room that there is, and what was told."""
    import polars

    print(
        "| table | form | MB | rankwright CPU s (wall) | polars CPU s (wall) | room CPU s | warnings |"
    )
    print("|---|---|---:|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        tables = sorted(data.glob("*.parquet"))
        if not tables:
            sys.exit(f"there is no Parquet file in {data}")
        for stored in tables:
            table = polars.read_parquet(stored)
            as_csv = Path(folder, f"{stored.stem}.csv")
            table.write_csv(as_csv)
            own = label if label in table.columns else None
            for path in (as_csv, stored):
                runs = [
                    (measure(_OURS, path, folder, own), measure(_POLARS, path, folder))
                    for _ in range(repeats)
                ]
                ours, theirs = (
                    {key: median(run[side][key] for run in runs) for key in ("seconds", "cpu")}
                    for side in range(2)
                )
                room = 1.5 * theirs["cpu"] + 0.5
                mark = " **over**" if ours["cpu"] > room else ""
                print(
                    f"| {stored.stem} | {path.suffix[1:]} | {path.stat().st_size / 1e6:.1f} "
                    f"| {ours['cpu']:.2f} ({ours['seconds']:.2f}){mark} "
                    f"| {theirs['cpu']:.2f} ({theirs['seconds']:.2f}) "
                    f"| {room:.2f} | {runs[0][0]['told']} |",
                    flush=True,
                )
            as_csv.unlink()


def main() -> None:
    """Measure all in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=at_least_one, default=2_200_000)
    parser.add_argument("--repeats", type=at_least_one, default=3)
    parser.add_argument("--data", type=Path, help="Folder of Parquet files.")
    parser.add_argument(
        "--label", default="label", help="The label's column, where a table has it."
    )
    options = parser.parse_args()
    if options.data is not None:
        compare_real_tables(options.data, options.label, options.repeats)
        return
    names = with_peers(_PEERS, {"polars": "polars", "duckdb": "duckdb"})
    readers = {"rankwright": _OURS, **{name: _PEERS[name] for name in names}}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in readers}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        write_csv(path, options.rows)
        size = path.stat().st_size
        for _ in range(options.repeats):
            for name, code in readers.items():
                found[name].append(measure(code, path, folder))
    print(f"{size / 1e6:.0f} MB, {options.rows:,} rows, medians of {options.repeats}\n")
    print("| reader | s | of it profile | memory added MB |\n|---|---:|---:|---:|")
    for name, runs in found.items():
        seconds, mb = (median(run[key] for run in runs) for key in ("seconds", "mb"))
        profile = [run["profile"] for run in runs if "profile" in run]
        shown = f"{median(profile):.2f}" if profile else ""
        print(f"| {name} | {seconds:.2f} | {shown} | {mb:.0f} |")


if __name__ == "__main__":
    main()
