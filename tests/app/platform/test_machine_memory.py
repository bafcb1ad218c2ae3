"""The memory that there is: the machine's, or what a cgroup leaves of it; and a job's share of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.platform import resources
from app.platform.settings import Settings
from tests.raising import raises
from workers.slots import memory_per_fit

MIB, GIB = 1 << 20, 1 << 30
MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
OLD = "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("cgroup", "files", "expected"),
    [
        (None, {}, MACHINE),
        ("0::/\n", {}, MACHINE),
        ("0::/\n", {"sys/fs/cgroup/memory.max": "max\n"}, MACHINE),
        ("0::/\n", {"sys/fs/cgroup/memory.max": f"{3 * MIB}\n"}, 3 * MIB),
        (
            "0::/a/b\n",
            {"sys/fs/cgroup/a/memory.max": f"{2 * MIB}\n", "sys/fs/cgroup/a/b/memory.max": "max\n"},
            2 * MIB,
        ),
        ("0::/not/seen/here\n", {"sys/fs/cgroup/memory.max": f"{5 * MIB}\n"}, 5 * MIB),
        ("0::/\n", {"sys/fs/cgroup/memory.max": "spoilt"}, MACHINE),
        ("0::/\n", {"sys/fs/cgroup/memory.max": f"{1 << 62}"}, MACHINE),
        (
            "4:cpu,memory:/docker/x\n3:cpu:/\n0::/\n",
            {f"{OLD}/memory.limit_in_bytes": f"{7 * MIB}", "sys/fs/cgroup/memory.max": "max"},
            7 * MIB,
        ),
        ("3:cpu:/\n", {f"{OLD}/memory.limit_in_bytes": f"{7 * MIB}"}, MACHINE),
    ],
)
def test_the_least_of_machine_and_cgroups(
    tmp_path: Path, cgroup: str | None, files: dict[str, str], expected: int
) -> None:
    if cgroup is not None:
        files = files | {"proc/self/cgroup": cgroup}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert resources.total_bytes(tmp_path) == expected


@pytest.mark.parametrize(
    ("total", "slots", "expected"),
    [
        (16 * GIB, 1, 12 * GIB),
        (16 * GIB, 4, 3 * GIB),
        (1 * GIB, 1, 512 * MIB),
        (512 * MIB, 1, 128 * MIB),
        (None, 1, None),
    ],
)
def test_a_jobs_share(
    monkeypatch: pytest.MonkeyPatch, total: int | None, slots: int, expected: int | None
) -> None:
    monkeypatch.setattr(resources, "total_bytes", lambda: total)
    monkeypatch.setattr("sys.platform", "linux")
    assert memory_per_fit(Settings(worker_slots=slots)) == expected
    assert memory_per_fit(Settings(worker_slots=slots, job_memory_bytes=GIB)) == GIB
    monkeypatch.setattr("sys.platform", "darwin")
    assert memory_per_fit(Settings(worker_slots=slots)) is None


def test_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKWRIGHT_JOB_MEMORY_BYTES", "")
    assert Settings().job_memory_bytes is None
    for bad in ("0", "-1", "some"):
        monkeypatch.setenv("RANKWRIGHT_JOB_MEMORY_BYTES", bad)
        with raises(ValueError, "job_memory_bytes", f"input_value={bad!r}"):
            Settings()
