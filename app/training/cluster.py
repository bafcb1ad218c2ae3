"""Shards of a fit on the workers of a Dask cluster: `core.base.shards` over Dask.distributed.

Dask places and carries; it decides nothing. An attempt at a job connects, puts one host of shards on each worker as an
actor, and asks them round by round. An actor lives in the memory of one worker, is never moved, spilled or computed
again, and goes when the connection of the attempt goes, however that ends. A lost worker thus ends the attempt; the
next one goes on from the checkpoint. The lease and the fence of the job stay SQL's.

Waiting is bounded: while an answer is out, the scheduler is asked every second which workers it hears. A worker that is
gone ends the wait at once, and one whose heartbeat has stopped, or a scheduler that is silent, after `seconds`.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from app import __version__
from core.base import checkpoint
from core.base.shards import Placement, ShardHost
from core.errors import ShardsLost

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger(__name__)

CONNECT_SECONDS = 5.0
"""How long a scheduler may take to accept a connection."""

PROBE_SECONDS = 1.0
"""Time between two looks at the workers while an answer is out."""

START_SECONDS = 60.0
"""How long a worker may take for its first answer, in which it may import libraries and be silent meanwhile."""

CLOSE_SECONDS = 2.0
"""How long the end of a connection may take: what is left of it goes with the process."""

WORKER_NAME = "rankwright"
"""What the names of workers begin with that `rankwright worker --join` has started; then the version."""


class Program(NamedTuple):
    """What the bits of a fit depend on, beside code of libraries: of one process."""

    version: str
    code: str
    machine: str


def describe_program() -> Program:
    """Return version, code and machine of this process."""
    code, machine = hashlib.sha256(checkpoint._CODE).hexdigest(), checkpoint.identify_machine()
    return Program(__version__, code[:12], machine.hex()[:12])


def make_host() -> ShardHost:
    """Return a host of shards whose files lie in the folder of the Dask worker that runs this."""
    from distributed import get_worker

    return ShardHost(get_worker().local_directory)


class DaskHosts(Placement):
    """One host of shards on each worker of a Dask cluster; a context manager, whose end frees the workers.

    ShardsLost: no scheduler answers, the cluster has no worker, or one that is of another version.

    Parameters
    ----------
    address : str
        Of the scheduler, as `tcp://host:8786`, or `tls://…` with the files that Dask's own settings name.
    seconds : float
        How long a worker or the scheduler may be silent.

    Attributes
    ----------
    notes : list of str
        What the owner of the job should know.
    """

    def __init__(self, address: str, seconds: float) -> None:
        self._address, self._seconds = address, max(seconds, START_SECONDS)
        self.notes: list[str] = []
        self._client = connect(address)
        self._names: dict[str, str] = {}  # of the workers, by address
        self._heard: dict[str, tuple[float, float]] = {}
        self._hosts: list[Any] = []
        try:
            self._start()
            self._seconds = seconds
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def n_hosts(self) -> int:
        """The number of workers."""
        return len(self._hosts)

    def call(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of each host; see `Placement.call`."""
        answers: list[Any] = []
        started = time.monotonic()
        self._heard = {address: (seen, started) for address, (seen, _) in self._heard.items()}
        try:
            asked = [
                getattr(host, method)(*own) if own else None
                for host, own in zip(self._hosts, arguments, strict=True)
            ]
        except RuntimeError as error:  # Dask's word for an actor whose worker was lost
            self._probe()
            raise ShardsLost(
                f"a worker of the Dask cluster at {self._address} was lost: {error}"
            ) from error
        for address, answer in zip(self._names, asked, strict=True):
            answers.append(None if answer is None else self._wait(answer, address))
        return answers

    def close(self) -> None:
        """Free the workers."""
        self._hosts = []
        with suppress(Exception):  # what is lost cannot be told to let go
            self._client.close(timeout=CLOSE_SECONDS)

    def _start(self) -> None:
        """Look at the workers, and put a host on each."""
        workers = self._ask_scheduler()["workers"]
        if not workers:
            raise ShardsLost(f"the Dask cluster at {self._address} has no worker")
        self._names = {address: str(worker["name"]) for address, worker in sorted(workers.items())}
        now = time.monotonic()
        until = now + max(self._seconds, START_SECONDS)
        self._heard = {address: (worker["last_seen"], now) for address, worker in workers.items()}
        pinned: dict[str, Any] = {"pure": False, "allow_other_workers": False, "retries": 0}
        programs = [
            self._client.submit(describe_program, workers=[address], **pinned)
            for address in self._names
        ]
        own, found = describe_program(), []
        for address, future in zip(self._names, programs, strict=True):
            found.append(theirs := Program(*self._wait(future, address, until)))
            if theirs[:2] != own[:2]:
                raise ShardsLost(
                    f"all workers of the Dask cluster at {self._address} must run Rankwright {own.version} (code "
                    f"{own.code}), as this one does; {self._named(address)} runs {theirs.version} (code {theirs.code})"
                )
        if len({program.machine for program in [own, *found]}) > 1:
            self.notes.append(
                "the machines of the cluster are of several kinds, which round sums otherwise: the same seed may give "
                "another model elsewhere"
            )
        hosts = [
            self._client.submit(make_host, workers=[address], actor=True, **pinned)
            for address in self._names
        ]
        self._hosts = [
            self._wait(host, address, until)
            for address, host in zip(self._names, hosts, strict=True)
        ]

    def _wait(self, answer: Any, address: str, until: float = math.inf) -> Any:
        """Return an answer of a worker, or raise ShardsLost once it cannot come any more, or by the clock."""
        while True:
            try:
                return answer.result(timeout=PROBE_SECONDS)
            except ShardsLost:
                raise
            except Exception as error:
                if isinstance(error, TimeoutError) and not answer.done():
                    self._probe()
                    if time.monotonic() < until:
                        continue
                if isinstance(error, OSError) and error.errno is None:  # Dask's: no connection
                    raise ShardsLost(f"{self._named(address)} is gone") from error
                self._probe()  # if the worker is gone, that is the reason
                raise ShardsLost(f"{self._named(address)}: {_said(error)}") from error

    def _probe(self) -> None:
        """Raise ShardsLost if the scheduler is silent, or does not hear a worker any more."""
        workers = self._ask_scheduler()["workers"]
        now = time.monotonic()
        for address in self._names:
            if address not in workers:
                raise ShardsLost(f"{self._named(address)} is gone")
            seen, since = self._heard.get(address, (0.0, now))
            if workers[address]["last_seen"] != seen:
                self._heard[address] = workers[address]["last_seen"], now
            elif now - since > self._seconds:
                raise ShardsLost(
                    f"{self._named(address)} has not been heard for {self._seconds:g} s"
                )

    def _ask_scheduler(self) -> dict[str, Any]:
        try:
            told: dict[str, Any] = self._client.sync(
                self._client.scheduler.identity, callback_timeout=self._seconds
            )
        except Exception as error:
            raise ShardsLost(
                f"the Dask scheduler at {self._address} has not answered for {self._seconds:g} s: {_said(error)}"
            ) from error
        return told

    def _named(self, address: str) -> str:
        return f"worker {self._names[address]} ({address}) of the Dask cluster"


def connect(address: str) -> Client:
    """Connect to a scheduler. ShardsLost: none answers, or Dask is not installed."""
    try:
        import dask
        from distributed import Client
    except ImportError as error:
        raise ShardsLost(
            "RANKWRIGHT_DASK_ADDRESS needs Dask: pip install 'rankwright-server[dask]'"
        ) from error
    logging.getLogger("distributed").setLevel(logging.ERROR)
    try:
        with dask.config.set({"distributed.comm.timeouts.connect": CONNECT_SECONDS}):
            asyncio.run(asyncio.wait_for(_greet(address), CONNECT_SECONDS))
            # An actor finds its client by the default.
            return Client(
                address, timeout=CONNECT_SECONDS, set_as_default=True, direct_to_workers=True
            )
    except Exception as error:  # of whatever kind: anything may listen there
        raise ShardsLost(
            f"no Dask scheduler answers at {address} within {CONNECT_SECONDS:g} s: {_said(error)}"
        ) from error


async def _greet(address: str) -> None:
    """Ask a scheduler who it is: `Client` would wait for ever for one that accepts a connection and says nothing."""
    from distributed import Security
    from distributed.core import rpc

    arguments = Security().get_connection_args("client")
    async with rpc(address, timeout=CONNECT_SECONDS, connection_args=arguments) as scheduler:
        await scheduler.identity(n_workers=0)


def _said(error: Exception) -> str:
    """Return what an error says, in a line."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "its disk is full"
    text = str(error).strip().split("\n")[0][:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
