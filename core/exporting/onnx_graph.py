"""A program as an ONNX graph of doubles, and the check that onnxruntime computes the ranker's scores with it.

Each column is an input of shape (rows, 1) with the column's name: doubles, where NaN is missing, or strings. The rules
of ranking trees are the targets of one `TreeEnsemble`, and the trees split on these targets in a second one.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from core.base.ranker import Floats, Ranker
from core.base.table import Categories
from core.errors import shorten
from core.probability import Calibration
from core.version import VERSION

from .program import WHOLE, Column, Program, Split, Tree, Unsupported, step_tree

MIN_RUNTIME = "1.24"
"""Earlier versions lack `TreeEnsemble`, or evaluate sets of categories incorrectly without an error."""

TOLERANCE = 1e-9
"""Greatest difference of a score, absolute below 1 and relative above."""

N_DRAWN_ROWS = 500
_GREATER, _MEMBER = 3, 6
_FLOAT, _DOUBLE = 1, 11  # of TensorProto
_CHECKED_AT_ONCE = 10_000


def write_onnx(
    program: Program, ranker: Ranker, calibration: Calibration | None, rows: Floats | None
) -> bytes:
    """Return the model; Unsupported if onnxruntime does not agree on `rows` and on rows drawn from the program."""
    import onnx
    import onnxruntime

    if not all(column.name for column in program.columns):
        raise Unsupported("an input of ONNX must have a name, and one column has none")
    model = _Graph(program).build(calibration)
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    drawn = _draw_rows(program)
    rows = drawn if rows is None else np.concatenate([rows, drawn])
    _compare(session, program, ranker, calibration, rows)
    return data


Leaves = tuple[Tree, Sequence[float]]
"""A tree, and the values of its leaves."""


class _Graph:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.taken = {column.name for column in program.columns}

    def build(self, calibration: Calibration | None) -> Any:
        from onnx import TensorProto, helper

        program = self.program
        inputs = [
            helper.make_tensor_value_info(
                column.name,
                TensorProto.DOUBLE if column.words is None else TensorProto.STRING,
                ["rows", 1],
            )
            for column in program.columns
        ]
        total = self.add_terms(self.op("Concat", *map(self.read, program.columns), axis=1))
        if program.divisor != 1.0:
            total = self.op("Div", total, self.constant(program.divisor))
        outputs = [self.op("Add", total, self.constant(program.end), name="score")]
        if calibration is not None:
            outputs.append(self.calibrate(outputs[0], calibration))
        graph = helper.make_graph(
            self.nodes,
            "ranker",
            inputs,
            [
                helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["rows", 1])
                for name in outputs
            ],
            self.constants,
        )
        model = helper.make_model(
            graph,
            producer_name="rankwright",
            producer_version=VERSION,
            opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 5)],
            ir_version=9,
        )
        helper.set_model_props(
            model,
            {
                "onnxruntime": f">={MIN_RUNTIME}",
                "outputs": ", ".join(outputs),
                "missing": "NaN; for strings, any string that is not a category",
            },
        )
        return model

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        from onnx import helper

        output = self.free(name or f"{kind}_{len(self.nodes)}")
        domain = "ai.onnx.ml" if kind in ("TreeEnsemble", "LabelEncoder") else ""
        self.nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output

    def constant(self, values: Any, dtype: npt.DTypeLike = np.float64) -> str:
        name = self.free(f"constant_{len(self.constants)}")
        self.constants.append(_tensor(values, dtype, name))
        return name

    def free(self, name: str) -> str:
        """Return a name that no column and no other value has."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def read(self, column: Column) -> str:
        """Return the column as doubles, where NaN is missing."""
        if column.words is not None:
            codes = {
                spelling: float(code)
                for code, word in enumerate(column.words)
                for spelling in _spellings(word)
            }
            codes |= {word: float(code) for code, word in enumerate(column.words)}
            codes = codes or {"": math.nan}
            return self.op(
                "LabelEncoder",
                column.name,
                keys_tensor=_tensor(list(codes), object),
                values_tensor=_tensor(list(codes.values())),
                default_tensor=_tensor([math.nan]),
            )
        x = column.name
        for low, high in column.missing:
            above = self.op("GreaterOrEqual", column.name, self.constant(low))
            below = self.op("LessOrEqual", column.name, self.constant(high))
            is_missing = self.op("And", above, below)
            x = self.op("Where", is_missing, self.constant(math.nan), x)
        return x

    def add_terms(self, x: str) -> str:
        program, first = self.program, 0
        start = [[program.start]]
        parts = [self.add_lines(x)] if program.lines else []
        if program.rules:
            x = self.trees(x, [(rule, rule.values) for rule in program.rules])
            first = len(program.columns)
        # without trees, one of one leaf: the result has a row for each of x
        trees = program.trees or [Tree([], [0.0])]
        leaves = [(tree, tree.values) for tree in trees]
        if program.is_float32:
            return self.add_rounded(x, leaves, start)
        total = self.op(
            "Add", self.trees(x, leaves, first=first, as_sum=True), self.constant(start)
        )
        for part in parts:
            total = self.op("Add", total, part)
        return total

    def add_rounded(self, x: str, leaves: Sequence[Leaves], start: list[list[float]]) -> str:
        """Add one float32 after the other: `CumSum` rounds after each."""
        terms = self.op("Cast", self.trees(x, leaves), to=_FLOAT)
        ends = (self.constant([k], np.int64) for k in (0, 1, 1))
        one = self.op("Slice", terms, *ends)
        begin = self.op("Add", self.op("Sub", one, one), self.constant(start, np.float32))
        sums = self.op("Concat", begin, terms, axis=1)
        sums = self.op("CumSum", sums, self.constant(1, np.int64))
        last = self.op("Gather", sums, self.constant([len(leaves)], np.int64), axis=1)
        return self.op("Cast", last, to=_DOUBLE)

    def add_lines(self, x: str) -> str:
        lines = self.program.lines
        columns = self.constant([line.feature for line in lines], np.int64)
        x = self.op("Gather", x, columns, axis=1)
        limits = np.array([[line.limit for line in lines]])
        away = self.op("Sub", x, self.constant([[line.center for line in lines]]))
        away = self.op("Max", self.op("Min", away, self.constant(limits)), self.constant(-limits))
        parts = self.op("Mul", away, self.constant([[line.slope for line in lines]]))
        missing = self.constant([[line.missing for line in lines]])
        parts = self.op("Where", self.op("IsNaN", x), missing, parts)
        return self.op("ReduceSum", parts, self.constant([1], np.int64), keepdims=1)

    def trees(
        self,
        x: str,
        trees: Sequence[Leaves],
        *,
        first: int = 0,
        as_sum: bool = False,
    ) -> str:
        """Add a `TreeEnsemble`. Each tree has targets of its own, unless they are summed; and its leaves their values.

        first: the feature that is the first column of x.
        """
        modes: list[int] = []
        cuts: list[float] = []
        ints: dict[str, list[int]] = {
            name: []
            for name in (
                *("nodes_featureids", "nodes_missing_value_tracks_true", "tree_roots"),
                *("nodes_truenodeids", "nodes_trueleafs", "nodes_falsenodeids", "nodes_falseleafs"),
                "leaf_targetids",
            )
        }
        members: list[float] = []
        weights: list[float] = []
        n_targets = 0
        for tree, values in trees:
            node, leaf = len(modes), len(weights)
            ints["tree_roots"].append(node)
            own = values if tree.splits else [*values, *values]  # each leaf must have one parent
            for split in tree.splits or [Split(first, 0.0, None, False, -1, -2)]:
                chosen = split.members or ()
                modes.append(_MEMBER if chosen else _GREATER)
                cuts.append(math.inf if split.members == () else split.threshold)
                if chosen:
                    cuts[-1] = 0.0
                    members += [*map(float, chosen), math.nan]
                ints["nodes_featureids"].append(split.feature - first)
                ints["nodes_missing_value_tracks_true"].append(int(split.missing_above))
                for side, child in ("true", split.above), ("false", split.below):
                    ints[f"nodes_{side}leafs"].append(int(child < 0))
                    ints[f"nodes_{side}nodeids"].append(
                        leaf + ~child if child < 0 else node + child
                    )
            ints["leaf_targetids"] += [0 if as_sum else n_targets] * len(own)
            weights += own
            n_targets += 1
        attributes: dict[str, Any] = {**ints}
        if members:
            attributes["membership_values"] = _tensor(members)
        return self.op(
            "TreeEnsemble",
            x,
            n_targets=1 if as_sum else n_targets,
            aggregate_function=1,
            post_transform=0,
            nodes_modes=_tensor(modes, np.uint8),
            nodes_splits=_tensor(cuts),
            leaf_weights=_tensor(weights),
            **attributes,
        )

    def calibrate(self, score: str, calibration: Calibration) -> str:
        """Return the probability as `Calibration.probability` computes it."""
        numbers = calibration.parameters.tolist()
        if calibration.method == "isotonic":
            return self._calibrate_by_knots(score, numbers)
        center, scale, below, above, intercept = numbers
        z = self.op("Div", self.op("Sub", score, self.constant(center)), self.constant(scale))
        z = self.op("Clip", z, self.constant(-1e6), self.constant(1e6))
        zero, one = self.constant(0.0), self.constant(1.0)
        high = self.op("Mul", self.op("Max", z, zero), self.constant(above))
        low = self.op("Mul", self.op("Min", z, zero), self.constant(below))
        gap = self.op("Log", self.op("Add", self.op("Exp", self.op("Neg", self.op("Abs", z))), one))
        odds = self.op("Add", self.op("Add", high, low), self.constant(intercept))
        odds = self.op("Add", odds, self.op("Mul", gap, self.constant(above - below)))
        odds = self.op("Clip", odds, self.constant(-36.0), self.constant(36.0))
        part = self.op("Exp", self.op("Neg", odds))
        return self.op("Div", one, self.op("Add", part, one), name="probability")

    def _calibrate_by_knots(self, score: str, numbers: list[float]) -> str:
        n = len(numbers) // 2
        knots, heights = numbers[:n], numbers[n:]
        # by the number of knots up to the score: what is below all, between two, above all
        starts = [(knots[0], heights[0], 0.0, heights[0])]
        for k in range(n - 1):
            slope = min((heights[k + 1] - heights[k]) / (knots[k + 1] - knots[k]), 1e308)
            starts.append((knots[k], heights[k], slope, heights[k + 1]))
        starts.append((knots[-1], heights[-1], 0.0, heights[-1]))
        cuts = [math.nextafter(knot, -math.inf) for knot in knots]
        tree = step_tree([Column("score", None)], 0, cuts, list(range(n + 1)), 0)
        ways = [[row[j] for row in starts] for j in range(4)]
        found = self.trees(score, [(tree, way) for way in ways])
        start, height, rate, limit = (
            self.op("Gather", found, self.constant([j], np.int64), axis=1) for j in range(4)
        )
        rise = self.op("Mul", self.op("Sub", score, start), rate)
        return self.op("Min", self.op("Add", height, rise), limit, name="probability")


def _spellings(word: str) -> Sequence[str]:
    """Return how programs spell the same whole number or boolean."""
    if word in ("true", "false"):
        return word.title(), word.upper()
    return [word + zeros for zeros in (".0", ".00")] if re.fullmatch(WHOLE, word) else ()


def _tensor(values: Sequence[Any], dtype: npt.DTypeLike = np.float64, name: str = "") -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.array(values, dtype), name)


def _draw_rows(program: Program) -> Floats:
    """Return rows of the splits' own thresholds, the numbers next to them, categories, and missing values."""
    generator = np.random.Generator(np.random.Philox(key=0))
    cuts: list[list[float]] = [[0.0, 1.0] for _ in program.columns]
    for tree in [*program.trees, *program.rules]:
        for split in tree.splits:
            if split.feature < len(cuts) and math.isfinite(split.threshold):
                cuts[split.feature] += [split.threshold, math.nextafter(split.threshold, math.inf)]
    drawn = np.empty((N_DRAWN_ROWS, len(cuts)))
    for j, column in enumerate(program.columns):
        if column.words is None:
            drawn[:, j] = generator.choice(cuts[j], N_DRAWN_ROWS)
        else:
            drawn[:, j] = generator.integers(0, max(len(column.words), 1), N_DRAWN_ROWS)
            drawn[:, j] = drawn[:, j] if column.words else math.nan
    drawn[generator.random(drawn.shape) < 0.1] = math.nan
    return drawn


def inputs_of(
    X: Floats, names: Sequence[str], categories: Categories
) -> dict[str, npt.NDArray[Any]]:
    """Return rows, as the ranker reads them, as the inputs of the model: an unknown word for a missing category."""
    inputs: dict[str, npt.NDArray[Any]] = {}
    for j, (name, words) in enumerate(zip(names, categories, strict=True)):
        values = X[:, j : j + 1]
        if words is not None:
            unknown = max(words, key=len, default="") + "?"
            texts = np.array([*words, unknown], dtype=object)
            values = texts[np.where(np.isnan(values), len(words), values).astype(np.int64)]
        inputs[name] = values
    return inputs


def _compare(
    session: Any,
    program: Program,
    ranker: Ranker,
    calibration: Calibration | None,
    rows: Floats,
) -> None:
    columns = [column.name for column in program.columns]
    own = np.array(rows)
    for j, column in enumerate(program.columns):
        for low, high in column.missing:
            own[(own[:, j] >= low) & (own[:, j] <= high), j] = math.nan
    found, own = np.empty(len(rows)), ranker.score_rows(own)
    probability = np.empty(len(rows))
    for start in range(0, len(rows), _CHECKED_AT_ONCE):
        part = slice(start, start + _CHECKED_AT_ONCE)
        score, *more = session.run(None, inputs_of(rows[part], columns, ranker.categories_))
        found[part] = score[:, 0]
        if more:
            probability[part] = more[0][:, 0]
    away = abs(found - own) / np.maximum(abs(own), 1.0)
    if not (away <= TOLERANCE).all():
        worst = int(np.argmax(np.where(np.isnan(away), np.inf, away)))
        raise Unsupported(
            f"onnxruntime's score must be the ranker's to {TOLERANCE}; row {worst} of {len(rows)} has "
            f"{float(found[worst])}, not {float(own[worst])}{_swapped(found, own)}"
        )
    if calibration is not None:
        expected = calibration.probability(own)
        if not (abs(probability - expected) <= TOLERANCE).all():
            worst = int(np.nanargmax(abs(probability - expected)))
            raise Unsupported(
                f"onnxruntime's probability must be the calibration's to {TOLERANCE}; row {worst} has "
                f"{float(probability[worst])}, not {float(expected[worst])}"
            )


def _swapped(found: Floats, own: Floats) -> str:
    """Say which two rows have another order: neighbours by the ranker's scores, as a swap of any two implies one."""
    order = np.lexsort((found, own))
    falls = np.flatnonzero((np.diff(found[order]) < 0.0) & (np.diff(own[order]) > 0.0))
    if not len(falls):
        return ""
    pairs = ", ".join(f"{order[k]} and {order[k + 1]}" for k in falls[:3].tolist())
    return shorten(f"; {len(falls)} pairs of neighbours are swapped, such as rows {pairs}", 200)
