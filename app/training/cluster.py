"""Shards of a fit on the workers of a Dask cluster: implements `core.base.shards` by Dask.distributed.

Dask only places hosts and transports calls. An attempt at a job connects, creates one host of shards on each worker as
an actor, and calls them round by round. An actor lives in the memory of one worker, is never moved, spilled or
recomputed, and disappears when the connection of the attempt ends, in whatever way. A lost worker thus ends the
attempt; the next one continues from the checkpoint. The lease and the fencing token of the job remain in the database.

Waiting is bounded: during a call, the scheduler is asked every second which workers it hears. A worker that is gone
ends the wait at once; one whose heartbeat has stopped, or a scheduler that does not respond, ends it after `seconds`.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import math
import re
import ssl
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from app import __version__
from app.platform import failpoints
from core.base import checkpoint
from core.base.shards import Placement, ShardHost
from core.errors import ShardsLost

if TYPE_CHECKING:
    from distributed import Client, Security

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


def describe_program() -> dict[str, str]:
    """Return what determines the bits of a fit here: version, code, libraries and machine.

    A plain dictionary: one of another version must be readable, too.
    """
    return {
        "version": __version__,
        "code": hashlib.sha256(checkpoint.CODE).hexdigest()[:12],
        "libraries": ", ".join(checkpoint.list_libraries()),
        "machine": checkpoint.identify_machine().hex()[:12],
    }


class DaskHost(ShardHost):
    """Returns errors as text: Dask loses errors that cannot be pickled, or unpickled elsewhere."""

    def answer(self, asked: tuple[Any, ...]) -> tuple[bool, Any]:
        """Call a method by name; returns True and its result, or False and the error's message."""
        method, *arguments = asked
        try:
            failpoints.reach("answer")
            return True, getattr(self, method)(*arguments)
        except ShardsLost as error:
            log.warning("%s of shards: %s", method, error)
            return False, str(error)
        except Exception as error:
            log.exception("%s of shards failed", method)
            return False, said_of(error)


def make_host() -> DaskHost:
    """Use the folder of the Dask worker that runs this."""
    from distributed import get_worker

    failpoints.reach("host")
    return DaskHost(get_worker().local_directory)


class DaskHosts(Placement):
    """One shard host on each worker of a Dask cluster; a context manager that frees the workers at its end.

    Raises ShardsLost if the secret cannot be read, no scheduler answers, or the cluster has no worker, or one of
    another version.

    Parameters
    ----------
    address : str
        Of the scheduler, as `tls://host:8786`.
    secret : Path
        PEM file of the cluster's private key and certificate.
    seconds : float
        How long a worker or the scheduler may be silent.

    Attributes
    ----------
    notes : list of str
        What the owner of the job should know.
    """

    def __init__(self, address: str, secret: Path, seconds: float) -> None:
        self.seconds = max(seconds, START_SECONDS)
        self.notes: list[str] = []
        self.client = connect(address, secret)
        self._names: dict[str, str] = {}  # of the workers, by address
        self._heard: dict[str, tuple[float, float]] = {}
        self.hosts: dict[
            str, Any
        ] = {}  # futures of the actors, by address: actors live as long as these references
        try:
            self._start()
            self.seconds = seconds
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def n_hosts(self) -> int:
        return len(self.hosts)

    def call(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """See `Placement.call`."""
        failpoints.reach("ask")
        started = time.monotonic()
        self._heard = {address: (seen, started) for address, (seen, _) in self._heard.items()}
        asked = {
            address: self._begin(self._ask_host(address, method, own))
            for address, own in zip(self.hosts, arguments, strict=True)
            if own
        }
        try:
            answers = {address: self._wait(answer, address) for address, answer in asked.items()}
        except BaseException:
            # A connection closed during its handshake can break all TLS connections of a worker (CPython issue 148594).
            # The worker would leave the cluster, with the shards of other fits: so answers on their way may arrive.
            wait(asked.values(), CLOSE_SECONDS)
            for answer in asked.values():
                answer.cancel()
            raise
        return [answers.get(address) for address in self.hosts]

    def close(self) -> None:
        failpoints.reach("release")
        self.hosts = {}
        with suppress(Exception):  # a lost scheduler cannot be asked to release anything
            self.client.close(timeout=CLOSE_SECONDS)

    def _start(self) -> None:
        """Find the workers, and create a host on each."""
        failpoints.reach("connect")
        workers = self._ask_scheduler()
        if not workers:
            raise ShardsLost("the Dask cluster has no worker")
        self._names = {address: str(worker["name"]) for address, worker in sorted(workers.items())}
        for address, name in self._names.items():
            log.info("the Dask cluster has worker %s at %s", name, address)
        now = time.monotonic()
        until = now + self.seconds
        self._heard = {address: (worker["last_seen"], now) for address, worker in workers.items()}
        pinned: dict[str, Any] = {"pure": False, "allow_other_workers": False, "retries": 0}
        programs = {
            address: self.client.submit(describe_program, workers=[address], **pinned)
            for address in self._names
        }
        own = describe_program()
        machines = {own.pop("machine")}
        for address, future in programs.items():
            told = self._wait(
                self._begin(_result_of(future)), address, until, "does not report its version"
            )
            theirs = dict(told) if isinstance(told, dict) else {}
            machines.add(theirs.pop("machine", ""))
            if theirs != own:
                raise ShardsLost(
                    f"all workers of the Dask cluster must run Rankwright {_listed(own)}, like this one; "
                    f"{self._named(address)} runs {_listed(theirs)}"
                )
        if len(machines) > 1:
            self.notes.append(
                "the cluster has different kinds of machines, which round sums differently: the same seed may give "
                "another model elsewhere"
            )
        hosts = {
            address: self.client.submit(make_host, workers=[address], actor=True, **pinned)
            for address in self._names
        }
        for address, host in hosts.items():
            self._wait(self._begin(_result_of(host)), address, until)
        self.hosts = hosts

    def _begin(self, asked: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run a coroutine in the thread of the connection; the future also transports errors."""
        return asyncio.run_coroutine_threadsafe(asked, self.client.loop.asyncio_loop)

    async def _ask_host(self, address: str, method: str, arguments: tuple[Any, ...]) -> Any:
        """Call a method of a host. Dask's proxy of an actor drops all errors but OSError, and then never returns."""
        from distributed.protocol import to_serialize

        try:
            told = await self.client.rpc(address).actor_execute(
                actor=self.hosts[address].key,
                function=DaskHost.answer.__name__,
                args=[to_serialize((method, *arguments))],
                kwargs={},
            )
        except OSError as error:  # of the connection: the host's own errors are text
            raise ShardsLost(
                f"{self._named(address)} has left: its connection was closed"
            ) from error
        if told["status"] != "OK":
            raise told["exception"]
        is_done, answer = told["result"]
        if not is_done:
            raise ShardsLost(f"{self._named(address)}: {answer}")
        return answer

    def _wait(
        self, answer: Future[Any], address: str, until: float = math.inf, failed: str = "failed"
    ) -> Any:
        """Return the result of a call to a worker. ShardsLost: it cannot arrive any more, or `until` has passed."""
        while not wait([answer], PROBE_SECONDS).done:
            self.probe()
            if time.monotonic() > until and not answer.done():
                answer.cancel()
                raise ShardsLost(f"{self._named(address)} has not answered for {self.seconds:g} s")
        try:
            return answer.result()
        except ShardsLost:
            raise
        except Exception as error:
            self.probe()  # if the worker is gone, that is the reason
            raise ShardsLost(f"{self._named(address)} {failed}: {said_of(error)}") from error

    def probe(self) -> None:
        """Raise ShardsLost if the scheduler does not respond, has lost a worker, or if a host is gone."""
        workers = self._ask_scheduler()
        now = time.monotonic()
        for address, name in self._names.items():
            worker = workers.get(address)
            if worker is None or str(worker["name"]) != name:  # another may listen there by now
                raise ShardsLost(f"{self._named(address)} is gone")
            seen, since = self._heard.get(address, (0.0, now))
            if worker["last_seen"] != seen:
                self._heard[address] = worker["last_seen"], now
            elif now - since > self.seconds:
                raise ShardsLost(
                    f"{self._named(address)} has not sent anything for {self.seconds:g} s"
                )
        for address, host in self.hosts.items():
            if host.status != "finished":
                raise ShardsLost(
                    f"{self._named(address)} no longer holds shards of this fit: {host.status}"
                )

    def _ask_scheduler(self) -> dict[str, Any]:
        asked = self._begin(self.identify())
        if not wait([asked], self.seconds).done:
            asked.cancel()
            raise ShardsLost(f"the Dask scheduler has not answered for {self.seconds:g} s")
        try:
            workers: dict[str, Any] = asked.result()["workers"]
        except Exception as error:
            raise ShardsLost(f"the Dask scheduler has stopped: {said_of(error)}") from error
        return workers

    async def identify(self) -> Any:
        return await self.client.scheduler.identity()

    def _named(self, address: str) -> str:
        return f"worker {self._names[address]} of the Dask cluster"


def read_security(secret: Path) -> Security:
    """Return the settings of a cluster whose processes share one key and certificate, and trust no other.

    Dask runs the code of whoever can connect: so nobody connects without the key. Names of hosts are not compared.
    Raises ShardsLost if the file has no key and certificate.
    """
    from distributed import Security

    try:
        ssl.create_default_context(cafile=secret).load_cert_chain(secret)
    except OSError as error:  # ssl's errors are, too
        why = (
            "it must contain a private key and its certificate"
            if isinstance(error, ssl.SSLError)
            else error.strerror
        )
        log.warning("RANKWRIGHT_DASK_SECRET_FILE: %s: %s", secret, why)
        raise ShardsLost(
            f"the secret of the Dask cluster, RANKWRIGHT_DASK_SECRET_FILE, cannot be used: {why}"
        ) from error
    file = str(secret)
    roles = ("client", "scheduler", "worker")
    shown = {f"tls_{role}_{part}": file for role in roles for part in ("cert", "key")}
    return Security(tls_ca_file=file, require_encryption=True, **shown)


def connect(address: str, secret: Path) -> Client:
    """Connect to a scheduler. ShardsLost: the secret is unreadable, no scheduler responds, or Dask is not installed."""
    try:
        import dask
        from distributed import Client
    except ImportError as error:
        raise ShardsLost(
            "RANKWRIGHT_DASK_ADDRESS needs Dask: pip install 'rankwright-server[dask]'"
        ) from error
    logging.getLogger("distributed").setLevel(logging.ERROR)
    security = read_security(secret)
    try:
        with dask.config.set({"distributed.comm.timeouts.connect": CONNECT_SECONDS}):
            asyncio.run(asyncio.wait_for(_greet(address, security), CONNECT_SECONDS))
            # An actor finds its client by the default.
            return Client(
                address,
                timeout=CONNECT_SECONDS,
                set_as_default=True,
                direct_to_workers=True,
                security=security,
            )
    except Exception as error:  # of whatever kind: anything may listen there
        log.warning(
            "no Dask scheduler responds at %s: %s", address, error
        )  # errors name no addresses
        raise ShardsLost(
            f"no Dask scheduler responded within {CONNECT_SECONDS:g} s: {said_of(error)}"
        ) from error


async def _greet(address: str, security: Security) -> None:
    """Send a request with a timeout: `Client` would wait forever for a scheduler that accepts but does not respond."""
    from distributed.core import rpc

    arguments = security.get_connection_args("client")
    async with rpc(address, timeout=CONNECT_SECONDS, connection_args=arguments) as scheduler:
        await scheduler.identity(n_workers=0)


def said_of(error: Exception) -> str:
    """Return an error on one line, without addresses and paths, because the owner of the job reads it."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "its disk is full"
    text = (isinstance(error, OSError) and error.strerror) or str(error)
    text = re.sub(r"\S*/\S*", "…", text.strip().split("\n")[0])[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


async def _result_of(future: Any) -> Any:
    return await future


def _listed(program: dict[str, str]) -> str:
    version, *rest = [program.get(name, "?") for name in ("version", "code", "libraries")]
    return f"{version} (code {rest[0]}; {rest[1]})"
