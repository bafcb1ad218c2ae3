"""`python -m workers`: one worker process, until SIGTERM or SIGINT."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial

import prometheus_client

from app.operations.dispatching import dispatcher_of
from app.platform import tracing
from app.platform.blobs import BlobStore
from app.platform.database import Database, open_database
from app.platform.forking import request_from
from app.platform.ids import new_id
from app.platform.logging import configure_logging
from app.platform.metrics import WorkerMetrics, describe_process
from app.platform.processes import (
    SignalWaiter,
    child_environment,
    python_command,
    start_pulse,
    wait_until_closed,
)
from app.platform.schema import CannotBegin, SchemaCheck
from app.platform.settings import Settings
from app.platform.stores import open_store
from core.kernels.folders import folders, writable_folder
from workers.compile import compiled_so_far
from workers.fit_process import FitProcess
from workers.slots import Presence, Slots
from workers.tasks import consume, make_app

log = logging.getLogger("workers")

COMPILING_LOG_SECONDS = 10.0
"""Seconds between two lines of the log that tell how many kernels are compiled: some lines in all."""
LOOK_SECONDS = 0.1
QUIET_SECONDS = 10.0
"""Seconds from a job's last long wait for a kernel until kernels are compiled beside the jobs again."""


def main(arguments: list[str]) -> int:
    """Run the worker; returns its exit code. With `--dispatcher` it is also the dispatcher, which saves the memory of
    a process. With `--gate FD` it waits until the other end of that pipe is closed; with `--pulse FD` it writes to that
    pipe as long as it is responsive; with `--forks FD` the parent starts its fit processes (`forking.ForkServer`).
    """
    with_dispatcher = "--dispatcher" in arguments
    arguments = [word for word in arguments if word != "--dispatcher"]
    settings = Settings()
    configure_logging(settings)
    if settings.job_memory_bytes is not None and not sys.platform.startswith("linux"):
        log.warning("RANKWRIGHT_JOB_MEMORY_BYTES has an effect only on Linux")
    pipes = dict(zip(arguments[::2], map(int, arguments[1::2]), strict=True))
    if (gate := pipes.get("--gate")) is not None:  # a signal before there is work ends it at once
        wait_until_closed(gate)
    if (pulse := pipes.get("--pulse")) is not None:
        start_pulse(pulse)
    # SIGHUP is caught and ignored: a closed terminal must not end a fit.
    with SignalWaiter([signal.SIGTERM, signal.SIGINT, signal.SIGHUP]) as signals:
        db = open_database(settings)
        ends = {signal.SIGTERM, signal.SIGINT}
        try:
            if not SchemaCheck(db).wait(lambda seconds: bool(signals.wait(seconds) & ends)):
                return 0
            blobs = open_store(settings)
            blobs.check_writable()
        except (CannotBegin, OSError) as error:
            log.error("%s", error)
            return 1
        tracing.start("worker")
        worker_id = new_id("wrk")
        registry = prometheus_client.CollectorRegistry()
        describe_process(registry, settings.build)
        metrics = WorkerMetrics(registry)
        if settings.worker_metrics_port is not None:
            address = settings.worker_metrics_host, settings.worker_metrics_port
            try:
                prometheus_client.start_http_server(address[1], address[0], registry)
            except OSError as error:
                log.error("cannot listen on %s:%d for metrics: %s", *address, error.strerror)
                return 1
        forks = pipes.get("--forks")
        start_fit = FitProcess if forks is None else partial(FitProcess, start=request_from(forks))
        slots = Slots(db, blobs, settings, worker_id, metrics, start_fit)
        celery = make_app(settings.celery_broker_url, slots)
        presence = Presence(slots)
        slots.start()
        presence.start()
        # A daemon: Celery may hang on the broker, and a wake-up that dies with it costs nothing.
        threading.Thread(target=consume, args=(celery, slots), name="celery", daemon=True).start()
        if settings.warm_up:
            threading.Thread(
                target=compile_kernels, args=(slots,), name="compile", daemon=True
            ).start()
        log.info("worker %s starts with %d slot(s)", worker_id, settings.worker_slots)

        with dispatching(db, blobs, settings) if with_dispatcher else nullcontext():
            while not signals.wait() & ends:
                pass
            log.info("worker %s ends", worker_id)
            slots.stop()
            presence.end()
        tracing.stop()
        db.close()
    return 0


@contextmanager
def dispatching(db: Database, blobs: BlobStore, settings: Settings) -> Iterator[None]:
    """Run the dispatcher in a thread during the block."""
    stop = threading.Event()
    dispatcher = dispatcher_of(db, blobs, settings)
    thread = threading.Thread(target=dispatcher.run, args=(stop,), name="dispatcher")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def compile_kernels(slots: Slots) -> None:
    """Compile, after the worker is ready, the kernels that are missing in the cache.

    Those that a first model needs are compiled first, at normal priority: a job that needs one that is being compiled
    waits for it, and compiles others meanwhile. All others are compiled at low priority. If a job would wait long for
    one of those because the machine is busy, their processes are killed, and the job compiles the kernel itself; they
    start again later. The processes end with this thread, which lives until they are done.
    """
    slots.ready.wait()
    done, n_kernels = compiled_so_far() or (0, None)
    if done == n_kernels:
        return
    if writable_folder() is None:
        tried = ", ".join(map(str, folders()))
        log.warning(
            "compiled kernels cannot be stored, so each start compiles them again: %s", tried
        )
    log.info("compiling kernels for this machine, once; jobs may run meanwhile")
    started = time.monotonic()
    compile_beside(lambda: False, "--first")
    while True:
        begun = time.monotonic()
        code = compile_beside(lambda: slots.waited_at > begun)  # noqa: B023 - called within the call
        if code is not None:
            break
        while (left := slots.waited_at + QUIET_SECONDS - time.monotonic()) > 0:
            time.sleep(left)
    if code:
        log.warning("the compilation of kernels ended with code %d", code)
    else:
        log.info("all kernels are compiled, after %.0f s", time.monotonic() - started)


def compile_beside(is_in_the_way: Callable[[], bool], *options: str) -> int | None:
    """Run the compiling processes with these options of `workers.compile`; returns their exit code, or None if they
    were killed because they delayed a job.
    """
    process = subprocess.Popen(
        python_command("workers.compile", "--background", str(os.getpid()), *options),
        stdin=subprocess.DEVNULL,
        env=child_environment(),
        process_group=0,
    )
    log_at = time.monotonic() + COMPILING_LOG_SECONDS
    while True:
        try:
            return process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            if is_in_the_way():
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return None
            if time.monotonic() >= log_at and (found := compiled_so_far()):
                log.info("%d of %d kernels are compiled", *found)
                log_at += COMPILING_LOG_SECONDS


if __name__ == "__main__":
    # Without the interpreter's teardown: it would wait for Celery's threads, and one may hang on the broker.
    code = main(sys.argv[1:])
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)
