"""Shards of a fit's rows, in one process or several: each shard runs the same method, and results are summed.

A shard is an object with methods, made from a piece of the table, or from all pieces of a host. `ShardHost` holds
shards in whatever process; `Placement` says where hosts are, and is all that a transport has to know: how a method of
every host is called. `LocalHosts` has them in this process.

Answers are added up along a fixed tree over the numbers of the shards: first 0 and 1, 2 and 3, and so on, then the sums
of two, of four. A host adds what it can without the others, and only these sums travel, without their zeros. So every
sum is of the same numbers in the same order, wherever the shards are: the same bits on one, two or eight hosts.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
import mmap
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from core.errors import ShardsLost

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Node = tuple[int, int]
"""(level, k): the sum of the shards k 2^level up to, without, (k + 1) 2^level."""


@dataclass(frozen=True)
class CodeFile:
    """The file of a shard's stored codes, one column after the other."""

    digest: bytes
    """SHA-256 of the file."""
    path: str | None
    """Where processes that see the same folder find it; None: it has no name."""
    types: tuple[str, ...]
    """The type of each column's codes."""
    n_rows: int

    @property
    def name(self) -> str:
        return "that was sent" if self.path is None else Path(self.path).name

    def find(self) -> bytes | mmap.mmap | None:
        """Return the bytes, memory-mapped; None if not accessible here: the owner of the file then sends them."""
        if self.path is None:
            return None
        try:
            with Path(self.path).open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self.check(data)
        except (OSError, ValueError, ShardsLost):  # ValueError: it is empty
            return None
        return data

    def check(self, data: Any) -> None:
        found = hashlib.sha256(data).digest()
        if found != self.digest:
            raise ShardsLost(
                f"the shard {self.name} was changed: its SHA-256 must be {self.digest.hex()}, got {found.hex()}"
            )

    def columns(self, data: Any) -> tuple[Array, ...]:
        columns, offset = [], 0
        for (
            name
        ) in self.types:  # behind a column of bytes, one of two bytes may begin at an odd one
            dtype = np.dtype(name)
            columns.append(np.frombuffer(data, dtype, self.n_rows, offset))
            offset += self.n_rows * dtype.itemsize
        return tuple(columns)


@dataclass(frozen=True, eq=False)
class Piece:
    """A block of consecutive rows of the table, from which a shard is built."""

    number: int
    """Of the shard, from 0."""
    files: tuple[CodeFile, ...]
    """In the order of their rows."""
    is_taken: tuple[Bools, ...]
    """Which rows of each file are rows of the piece."""
    positive: Bools
    weight: npt.NDArray[np.float64]


class Packed(NamedTuple):
    """A compressed array: its nonzero values and where they are."""

    shape: tuple[int, ...]
    is_set: npt.NDArray[np.uint8]
    """A bit for each value, in the order of C: whether it is another than +0."""
    values: Array
    """Shape (n_set,)."""

    @classmethod
    def of(cls, array: Array) -> Self:
        """Return an array of 1-, 2-, 4- or 8-byte numbers in compressed form."""
        flat = np.ravel(array)
        is_set = flat.view(f"u{flat.itemsize}") != 0  # -0.0 is kept
        return cls(array.shape, np.packbits(is_set), flat[is_set])

    def unpack(self) -> Array:
        n = math.prod(self.shape)
        flat = np.zeros(n, self.values.dtype)
        flat[np.unpackbits(self.is_set, count=n).view(np.bool_)] = self.values
        return flat.reshape(self.shape)


class MakeShard(Protocol):
    """Interface of a picklable factory that builds a shard from a block of rows."""

    def __call__(self, piece: Piece, codes: Sequence[tuple[Array, ...]], folder: Path) -> Any:
        """Return the shard; codes: of each file of the piece, column by column; folder: for files of its own."""


class MakeJointShard(Protocol):
    """Makes one shard from consecutive blocks. Its methods return one value per block, `MakeShard`'s a single one."""

    def __call__(
        self, pieces: Sequence[Piece], codes: Sequence[Sequence[tuple[Array, ...]]], folder: Path
    ) -> Any:
        """Return the shard; codes: of each piece those of each of its files, column by column."""


class ShardHost:
    """Holds some shards of a fit in some process, and calls their methods. folder: for unnamed files."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = Path(folder or tempfile.gettempdir())
        self._fit, self._n_shards = -1, 0
        self._is_joint = False
        self._make: Any = None
        self._pieces: list[Piece] = []
        self._files: dict[bytes, Any] = {}
        self._shards: dict[int, Any] = {}

    def begin(
        self,
        fit: int,
        n_shards: int,
        make: MakeShard | MakeJointShard,
        files: Sequence[CodeFile],
    ) -> list[bytes]:
        """Drop the shards of earlier fits; return the digests of the code files that are not accessible here."""
        self._shards, self._fit, self._n_shards, self._is_joint = {}, fit, n_shards, False
        self._make, self._pieces = make, []
        kept = {file.digest: self._files.get(file.digest) for file in files}
        for file in files:
            if kept[file.digest] is None:
                kept[file.digest] = file.find()
        self._files = {digest: data for digest, data in kept.items() if data is not None}
        return [digest for digest, data in kept.items() if data is None]

    def receive(self, file: CodeFile, data: bytes) -> None:
        """Store the bytes of a code file that is not accessible here, in an unnamed file."""
        file.check(data)
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._folder) as copy:
            copy.write(data)
            copy.flush()
            self._files[file.digest] = mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ)

    def make(self, fit: int, piece: Piece) -> None:
        self._check(fit)
        codes = [file.columns(self._files[file.digest]) for file in piece.files]
        self._shards[piece.number] = self._make(piece, codes, self._folder)

    def add(self, fit: int, piece: Piece) -> None:
        self._check(fit)
        self._pieces.append(piece)

    def make_joint(self, fit: int) -> None:
        self._check(fit)
        pieces, self._pieces, self._is_joint = self._pieces, [], True
        codes = [
            [file.columns(self._files[file.digest]) for file in piece.files] for piece in pieces
        ]
        if pieces:
            self._shards[pieces[0].number] = self._make(pieces, codes, self._folder)

    def ask(self, fit: int, method: str, arguments: tuple[Any, ...]) -> dict[int, Any]:
        self._check(fit)
        return dict(self._answers(method, arguments))

    def total(self, fit: int, method: str, arguments: tuple[Any, ...]) -> Packed | None:
        self._check(fit)
        answers = [getattr(shard, method)(*arguments) for shard in self._shards.values()]
        return Packed.of(functools.reduce(np.add, answers)) if answers else None

    def add_up(self, fit: int, method: str, arguments: tuple[Any, ...]) -> dict[Node, Packed]:
        """Return partial sums of a method's array results along the summation tree, as far as this host can."""
        self._check(fit)
        nodes: dict[Node, Array] = {}
        for number, answer in self._answers(method, arguments):
            nodes[0, number] = answer  # a sum is made as soon as it can be: few are in memory
            nodes = add_along_tree(nodes, self._n_shards)
        return {node: Packed.of(array) for node, array in nodes.items()}

    def _answers(self, method: str, arguments: tuple[Any, ...]) -> Iterator[tuple[int, Any]]:
        for number in sorted(self._shards):
            answer = getattr(self._shards[number], method)(*arguments)
            if self._is_joint:
                yield from enumerate(answer, start=number)
            else:
                yield number, answer

    def _check(self, fit: int) -> None:
        if fit != self._fit:
            raise ShardsLost(
                f"the shards here are of another fit: asked for fit {fit}, got {self._fit}"
            )


def add_along_tree(nodes: Mapping[Node, Array], n_shards: int) -> dict[Node, Array]:
    """Add partial sums pairwise along the summation tree, wherever both halves are known."""
    sums = dict(nodes)
    level, width = 0, n_shards  # width: nodes of this level
    while width > 1:
        for own, k in sorted(node for node in sums if node[0] == level):
            if k % 2 == 0 and k + 1 == width:  # it has no sibling
                sums[level + 1, k // 2] = sums.pop((own, k))
            elif k % 2 == 0 and (level, k + 1) in sums:
                sums[level + 1, k // 2] = sums.pop((own, k)) + sums.pop((level, k + 1))
        level, width = level + 1, -(-width // 2)
    return sums


def add_in_order(sums: Sequence[Array]) -> Array:
    """Return the sum of one array per shard, in the fixed order of the summation tree."""
    if len(sums) == 1:
        return sums[0]
    (total,) = add_along_tree({(0, k): own for k, own in enumerate(sums)}, len(sums)).values()
    return total


class Shards(ABC):
    """Base class of access to all shards of a fit, wherever they are."""

    @abstractmethod
    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """Return the results of a method call on all shards, in the order of the shards."""

    @abstractmethod
    def add_up(self, method: str, *arguments: Any) -> Array:
        """Return the sum of a method's array results over all shards, in a fixed order; read-only."""

    @abstractmethod
    def total(self, method: str, *arguments: Any) -> Array:
        """Return the sum of a method's integer-array results over all shards; exact in any order."""


class OwnShards(Shards):
    """Shards that live in this process."""

    def __init__(self, shards: Sequence[Any]) -> None:
        self._shards = shards

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        return [getattr(shard, method)(*arguments) for shard in self._shards]

    def add_up(self, method: str, *arguments: Any) -> Array:
        nodes: dict[Node, Array] = {}
        for number, shard in enumerate(self._shards):
            nodes[0, number] = getattr(shard, method)(*arguments)
            nodes = add_along_tree(nodes, len(self._shards))
        (total,) = nodes.values()
        return total

    def total(self, method: str, *arguments: Any) -> Array:
        return functools.reduce(np.add, self.ask(method, *arguments))


class Placement(ABC):
    """Base class of transports: it knows the hosts, in one or more processes, that hold a fit's shards."""

    _fits = itertools.count(1)

    @property
    @abstractmethod
    def n_hosts(self) -> int:
        """Number of hosts."""

    @abstractmethod
    def call(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of the hosts in parallel, each with its own arguments; return the results in order.

        ShardsLost: a host is lost, or does not answer. `arguments` has a tuple for each host; a host whose tuple is
        empty is not called, and its result is None.
        """

    def place(
        self,
        make: MakeShard | MakeJointShard,
        pieces: Sequence[Piece],
        read: Callable[[bytes], bytes],
        *,
        is_joint: bool = False,
    ) -> Shards:
        """Build the shards of a fit on the hosts, replacing those of the previous fit; return them.

        read: callable (digest) -> bytes; returns the bytes of a file that a host cannot see.
        is_joint: whether each host makes one shard of all its pieces; the other methods of `Shards` are as without.
        """
        fit, n = next(Placement._fits), len(pieces)  # atomic: fits run in several threads
        bounds = [n * h // self.n_hosts for h in range(self.n_hosts + 1)]
        shares = [pieces[a:b] for a, b in itertools.pairwise(bounds)]
        files = [
            list({file.digest: file for piece in share for file in piece.files}.values())
            for share in shares
        ]
        lacking = self.call("begin", [(fit, n, make, own) for own in files])
        by_digest = {file.digest: file for own in files for file in own}
        for host, own in enumerate(lacking):
            for digest in own:  # one after the other: one file is in memory
                sent: list[tuple[Any, ...]] = [()] * self.n_hosts
                sent[host] = by_digest[digest], read(digest)
                self.call("receive", sent)
        for k in range(max(map(len, shares))):  # one after the other: of each host one is in memory
            self.call(
                "add" if is_joint else "make",
                [(fit, share[k]) if k < len(share) else () for share in shares],
            )
        if is_joint:
            self.call("make_joint", [(fit,)] * self.n_hosts)
        return _Placed(self, fit, n)


class _Placed(Shards):
    def __init__(self, placement: Placement, fit: int, n_shards: int) -> None:
        self._placement, self._fit, self._n_shards = placement, fit, n_shards

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        answers: dict[int, Any] = {}
        for own in self._call("ask", method, arguments):
            answers |= own
        return [answers[number] for number in range(self._n_shards)]

    def add_up(self, method: str, *arguments: Any) -> Array:
        nodes: dict[Node, Array] = {}
        for own in self._call("add_up", method, arguments):
            nodes |= {node: packed.unpack() for node, packed in own.items()}
        (total,) = add_along_tree(nodes, self._n_shards).values()
        return total

    def total(self, method: str, *arguments: Any) -> Array:
        answers = self._call("total", method, arguments)
        sums = [packed.unpack() for packed in answers if packed is not None]
        return functools.reduce(np.add, sums)

    def _call(self, what: str, method: str, arguments: tuple[Any, ...]) -> list[Any]:
        return self._placement.call(
            what, [(self._fit, method, arguments)] * self._placement.n_hosts
        )
