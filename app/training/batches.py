"""Bundles of fits: what one part of a training job does.

A part costs about a tenth of a second beside its fits: it is claimed, reads the table, and publishes what it found. So
small fits go several to a part, in the order of the plan, those on the same rows one after the other.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.training.progress import Reporter, leave_out

PARTS_IN_LEAST = 10
"""Parts that the smallest job makes which is shared."""

Callback = Callable[[int, int, Mapping[str, float]], None]
Json = dict[str, Any]


def fits_a_part(cells: int, fan_out_cells: int) -> int:
    """How many fits on a table of so many cells go into a part."""
    return max(1, fan_out_cells // PARTS_IN_LEAST // max(cells, 1))


def pack(fits: Sequence[Json], size: int) -> list[Json]:
    """The specifications of parts of so many fits each."""
    return [{"fits": list(fits[start : start + size])} for start in range(0, len(fits), size)]


def run(payload: Mapping[str, Any], callback: Callback) -> list[Json]:
    """Do the fits that the payload names, on tables that are read once; their results, in order."""
    from app.training.fitting import Bench

    reporter, fits = Reporter(payload["spec"], callback), payload["fits"]
    bench, results = Bench(payload, reporter), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the model hears of those of its own fit
        for number, fit in enumerate(fits):
            folder = Path(payload["workdir"]) / str(number)
            folder.mkdir()
            told = reporter.begin(fit, 1.0 / len(fits))
            results.append(bench.run(fit, folder, told))
            told.finish(results[-1])
    return results


def name_file(number: int, name: str) -> str:
    """The name among a part's files of one that its fit of this number has made."""
    return f"{number}/{name}"


def unpack(finished: Sequence[Mapping[str, Any]]) -> list[Json]:
    """What the fits of finished parts brought back, numbered within their stage as if each were a part."""
    found: list[Json] = []
    for part in finished:
        for spec, result in _results_of(part):
            first = not found or found[-1]["stage"] != part["stage"]
            number = 0 if first else found[-1]["part"] + 1
            found.append({"stage": part["stage"], "part": number, "spec": spec, "result": result})
    return found


def _results_of(part: Mapping[str, Any]) -> Iterator[tuple[Json, Json]]:
    """The fits of a part and what each found; of a part that was left out, that each was."""
    if part["result"] is None:
        yield from ((spec, leave_out(spec)) for spec in part["spec"]["fits"])
        return
    files = part["result"]["files"]
    fits = zip(part["spec"]["fits"], part["result"]["results"], strict=True)
    for number, (spec, result) in enumerate(fits):
        start = name_file(number, "")
        own = {
            name.removeprefix(start): path for name, path in files.items() if name.startswith(start)
        }
        yield spec, result | {"files": own}
