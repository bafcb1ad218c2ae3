"""`python -m workers.join ADDRESS`: a worker of a Dask cluster that stores shards of fits, until SIGTERM or SIGINT.

It accesses no database and runs no jobs: an attempt at a job, in any worker of the queue, connects to the same cluster
and stores shards here (`app/training/cluster.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

from app import __version__
from app.platform.ids import new_id
from app.platform.logging import configure_logging
from app.platform.processes import start_pulse
from app.platform.settings import Settings
from app.platform.state_folder import make_private
from app.training.cluster import CONNECT_SECONDS, WORKER_NAME, connect, read_security
from core.errors import ShardsLost

log = logging.getLogger("workers.join")


def main(arguments: list[str]) -> int:
    """Run the cluster's worker; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m workers.join")
    parser.add_argument("address")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--pulse", type=int)
    asked = parser.parse_args(arguments)
    settings = Settings()
    configure_logging(settings)
    if asked.pulse is not None:
        start_pulse(asked.pulse)
    folder = settings.state_dir.absolute() / "cluster"
    try:
        make_private(folder)
    except OSError as error:
        log.error("cannot write to %s: %s", folder, error)
        return 1
    try:
        check_versions(asked.address, settings.dask_secret)
        return asyncio.run(work(asked.address, settings.dask_secret, asked.host, folder))
    except ShardsLost as error:
        log.error("cannot join the Dask cluster at %s: %s", asked.address, error)
        return 1


def check_versions(address: str, secret: Path) -> None:
    """Raise ShardsLost if no scheduler responds, or if a worker in the cluster has another version of Rankwright."""
    with connect(address, secret) as client:
        info: dict[str, Any] = client.sync(
            client.scheduler.identity, callback_timeout=CONNECT_SECONDS
        )
    for worker in info["workers"].values():
        name, _, rest = str(worker["name"]).partition("-")
        version = rest.partition("-")[0]
        if name == WORKER_NAME and version != __version__:
            raise ShardsLost(
                f"all its workers must run the same Rankwright: worker {worker['name']} "
                f"({worker['id']}) runs {version}, this one {__version__}"
            )


async def work(address: str, secret: Path, host: str, folder: Path) -> int:
    """Run the cluster's worker until a signal (returns 0), or until the scheduler is lost (returns 1)."""
    import dask
    from distributed import Worker

    import core.boosting.rankboost  # noqa: F401 - a worker is silent while it imports, so it does that first

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    # Dask's own profiles of its threads, 100 a second, take CPU time, and nobody looks at them.
    dask.config.set({"distributed.worker.profile.enabled": False})
    # One thread of Dask: the kernels of a shard share the cores. No limit of memory: nothing of ours can be spilled.
    worker = Worker(
        address,
        host=host,
        protocol="tls",
        security=read_security(secret),
        nthreads=1,
        name=f"{WORKER_NAME}-{__version__}-{new_id('wrk')}",
        memory_limit=0,
        local_directory=str(folder),
        dashboard=False,
        death_timeout=CONNECT_SECONDS,
    )
    try:
        await worker
    except (
        OSError,
        RuntimeError,
    ) as error:  # RuntimeError: Dask's "failed to start", whose cause has the reason
        reason = error.__cause__ or error
        raise ShardsLost(f"listening at {host}: {reason}") from error
    log.info("%s holds shards for the Dask cluster at %s", worker.name, address)
    ended = asyncio.create_task(worker.finished())
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not stop.is_set():
        log.error("the Dask scheduler at %s is lost", address)
        return 1
    await worker.close(timeout=CONNECT_SECONDS, nanny=False)
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    logging.shutdown()
    os._exit(code)  # without the interpreter's teardown, which would wait for Dask's threads
