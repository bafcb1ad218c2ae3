"""Growing a program layer by layer from histograms of its nodes."""

import numpy as np
import numpy.typing as npt

from core.coding import MISSING, N_CODES, Bins, Criterion, Peak, Spread, Team, find_peak
from core.coding.category_sets import categories_above, pack

from .node import LEAST_EDGE, LEAST_SHARE, NODE, Mass, alike, split
from .passes import POSITIONS, ROWS, add_layer, n_blocks, take_step
from .program import Program, layer, n_nodes

Codes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Growth:
    """A program under construction.

    A layer takes rows, in one piece or in many; what it keeps of them is a histogram per node. When
    it is closed, its nodes are read off the histograms, and the next layer takes rows: the same ones
    that this one took, moved one step on (`take_step`), or others, walked down from the root
    (`walk`).

    Parameters
    ----------
    bins : Bins
    n_layers : int
        T.
    noise_rate : float
        η, the probability with which a label is flipped.
    least_share : float
        A node that no more than this share of either class reaches is frozen; 0 freezes none.
    class_prior : float, optional
        True share of positives; else that of the rows shown, noise taken out.
    """

    _shown: Mass
    _histograms: Floats

    def __init__(
        self,
        bins: Bins,
        n_layers: int,
        noise_rate: float = 0.0,
        least_share: float = 0.0,
        class_prior: float | None = None,
    ) -> None:
        self.nodes = np.zeros(n_nodes(n_layers), dtype=NODE)
        self.n_closed = 0
        self._bins = bins
        self._n_layers = n_layers
        self._noise_rate = noise_rate
        self._least_share = least_share
        self._class_prior = class_prior
        self._rises = np.zeros((n_nodes(n_layers), N_CODES))
        self._words = np.empty(0, dtype=np.uint64)
        self._start_layer()

    def start(self, weight: Floats) -> Floats:
        """Put rows at the root.

        Parameters
        ----------
        weight : ndarray of shape (n_rows,), float64

        Returns
        -------
        ndarray of shape (n_blocks, 4 * n_rows), float64
            Their mass at each position; see `passes`.
        """
        masses = np.zeros((n_blocks(self._n_layers + 1), POSITIONS * len(weight)))
        masses[0, ::POSITIONS] = weight
        return masses

    def walk(self, codes: Codes, masses: Floats) -> None:
        """Move rows from the root to the layer that is open."""
        for t in range(self.n_closed):
            self._step(t, codes, masses)

    def take_step(self, codes: Codes, masses: Floats) -> None:
        """Move rows from the layer closed last to the one that is open."""
        self._step(self.n_closed - 1, codes, masses)

    def _step(self, t: int, codes: Codes, masses: Floats) -> None:
        nodes, rises = self.nodes[layer(t)], self._rises[layer(t)]
        for position in np.flatnonzero(nodes["frozen"]):  # rows that froze go no further
            masses[position // POSITIONS, position % POSITIONS :: POSITIONS] = 0.0
        features = np.maximum(nodes["feature"], 0)
        n_pieces = -(-codes.shape[1] // ROWS)
        Team(codes.shape[1] * (t + 1)).run(take_step, n_pieces, codes, features, rises, masses)

    def add(self, codes: Codes, masses: Floats, n_positives: int, rows: Floats) -> None:
        """Add rows to the histograms of the open layer.

        Parameters
        ----------
        codes : ndarray of shape (n_features, n_rows), uint8
            Positives first.
        masses : ndarray of shape (n_blocks, 4 * n_rows), float64
            In the open layer.
        n_positives : int
        rows : ndarray of shape (n_rows,), float64
            For how many rows each stands; see `core.coding.count_rows`.
        """
        n_features = len(codes)
        used = masses[: n_blocks(self.n_closed + 1)]
        Team(codes.size * len(used)).run(
            add_layer, n_features, codes, used, n_positives, self._histograms
        )
        if self._bins.is_categorical.any():  # whose order is believed as far as rows are many
            for position in range(self.n_closed + 1):
                mass = used[position // POSITIONS, position % POSITIONS :: POSITIONS]
                squares = mass * mass / rows
                self._squares[position, 0] += squares[:n_positives].sum()
                self._squares[position, 1] += squares[n_positives:].sum()

    def count(self, mass: Mass) -> None:
        """Note the weight of rows that the open layer was shown, those that froze before it too."""
        self._shown = self._shown.plus(mass)

    def is_satisfied(self, least: float, most: float) -> bool:
        """Whether the open layer has seen enough rows.

        Parameters
        ----------
        least : float
            Mass of either class, noise taken out, that each node needs that is not to be frozen.
        most : float
            Mass of rows after which it has seen enough in any case.
        """
        if self._shown.positive + self._shown.negative >= most:
            return True
        total = self._total()
        for position in range(self.n_closed + 1):
            labelled = Mass(*self._histogram(position)[0].sum(axis=1))
            here = labelled.without_noise(self._noise_rate)
            frozen = any(h <= self._least_share * t for h, t in zip(here, total, strict=True))
            if min(here) < least and not (frozen and min(total) > least / self._least_share):
                return False
        return True

    def close_layer(self) -> npt.NDArray[np.void]:
        """Read the open layer's nodes off their histograms, and open the next.

        Returns
        -------
        structured ndarray of shape (n_closed,), see `node.NODE`
        """
        t = self.n_closed
        first = n_nodes(t)
        total = self._total()
        for position in range(t + 1):
            self.nodes[first + position], self._rises[first + position] = self._grow(
                self._histogram(position), total, self._squares[position]
            )
        self.n_closed += 1
        self._start_layer()
        return self.nodes[layer(t)]

    def program(self) -> Program:
        """Give the program of the layers closed so far."""
        return Program(self.n_closed, self.nodes[: n_nodes(self.n_closed)], self._words)

    def _start_layer(self) -> None:
        n_features = len(self._bins.n_bins)
        blocks = n_blocks(min(self.n_closed + 1, self._n_layers))
        self._histograms = np.zeros((blocks, n_features, 2, N_CODES * POSITIONS))
        self._squares = np.zeros((self.n_closed + 1, 2))
        self._shown = Mass(0.0, 0.0)

    def _total(self) -> Mass:
        """Give the true mass of each class among the rows shown, frozen ones too."""
        if self._class_prior is None:
            return self._shown.without_noise(self._noise_rate)
        both = self._shown.positive + self._shown.negative
        return Mass(self._class_prior * both, (1.0 - self._class_prior) * both)

    def _histogram(self, position: int) -> Floats:
        """Give the mass per feature, class and code of a node: (n_features, 2, 256)."""
        block = self._histograms[position // POSITIONS]
        return np.ascontiguousarray(block[..., position % POSITIONS :: POSITIONS])

    def _grow(
        self, histogram: Floats, total: Mass, squares: Floats
    ) -> tuple[npt.NDArray[np.void], Floats]:
        """Make a node of its histogram; give it with the probability of rising, by code."""
        labelled = histogram[0].sum(axis=1)
        here = Mass(*labelled).without_noise(self._noise_rate)
        # A draw of few rows of a class may seem to hold none once noise is taken out.
        share = Mass(*(h / t if t > 0.0 else 0.0 for h, t in zip(here, total, strict=True)))
        least = max(self._least_share, LEAST_SHARE)
        if min(share) <= least:
            rise = 1.0 if share.positive > share.negative else 0.0
            return alike(rise, share, frozen=self._least_share > 0.0), np.full(N_CODES, rise)
        bins = self._bins
        peak = find_peak(
            histogram,
            bins.n_bins,
            bins.has_missing,
            Criterion.YOUDEN,
            is_categorical=bins.is_categorical,
            spread=Spread(*(squares / labelled**2)),
        )
        if peak.feature < 0 or peak.gain < LEAST_EDGE:
            return alike(0.5, share), np.full(N_CODES, 0.5)
        above = codes_above(peak)
        positive, negative = histogram[peak.feature]
        sides = split(
            Mass(positive[above].sum(), negative[above].sum()).without_noise(self._noise_rate),
            Mass(positive[~above].sum(), negative[~above].sum()).without_noise(self._noise_rate),
        )
        threshold, word = self._note_cut(peak)
        node = np.array(
            (
                peak.feature,
                threshold,
                peak.missing_above,
                word,
                sides.rise_above,
                sides.rise_below,
                *share,
                sides.error,
                False,
            ),
            dtype=NODE,
        )[()]
        return node, np.where(above, sides.rise_above, sides.rise_below)

    def _note_cut(self, peak: Peak) -> tuple[float, int]:
        """Give a cut's threshold and its set's first word, which is put down; -1 without a set."""
        held = categories_above(self._bins, peak)
        if held is not None:
            first = len(self._words)
            self._words = np.concatenate([self._words, pack(held)])
            return float(len(held)), first
        return -np.inf if peak.cut < 0 else float(self._bins.edges[peak.feature][peak.cut]), -1


def codes_above(peak: Peak) -> npt.NDArray[np.bool_]:
    """Say of each code whether it lies above a cut."""
    above = np.arange(N_CODES) > peak.cut
    if peak.bins_above is not None:
        above[:] = False
        above[: len(peak.bins_above)] = peak.bins_above
    above[MISSING] = peak.missing_above
    return above
