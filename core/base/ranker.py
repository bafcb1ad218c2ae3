"""The base class of every ranker: checks of input, the scikit-learn conventions, and what the service relies on."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from core.base.mixed import MixedRows
from core.errors import ArtifactError, InvalidData, InvalidParameter

from . import state
from .columns import ColumnTable
from .monotone import Direction, Directions, Verification, find_directions
from .parameters import check_values, leave_out_newer, plain_value
from .state import Arrays, read_state, write_state
from .table import (
    Categories,
    CodedTable,
    check_categories,
    column_names,
    is_table,
    keep_present,
    to_matrix,
)
from .target import (
    GRADE_RULE,
    LABEL_TYPES,
    MAX_GRADE,
    check_class_weights,
    check_grades,
    check_labels,
    check_row_weights,
    number_units,
)
from .training import Groups, TrainingData
from .warning import warn

Callback = Callable[[int, int, Mapping[str, float]], None]
Floats = state.Floats

MAX_FEATURES = (
    1_000_000  # columns of X: bounds what an artifact may store per feature before it is read
)


class StopFit(Exception):
    """Raised by a callback to end a fit early. The ranker is then fitted by the steps so far.

    Boosters keep their rounds, `RankAverage` its members, `TreeRank` its nodes and its forest its trees; a UserWarning
    says how many. A fit that has nothing to keep does not catch StopFit.
    """


class Combination(NamedTuple):
    """Scores as a combination of {0, 1} weak rankers: f = Σ λ_t h_t up to a constant."""

    weights: Floats
    """λ, at least 0; a weak ranker may occur more than once. Shape (n_rounds,), float64."""
    d_plus: Floats | None
    d_minus: Floats | None
    """Mass of the pairs that each weak ranker orders correctly and incorrectly, with the weights of its round; None if
    the algorithm weights rows, not pairs, or the p-norm push. Shape (n_rounds,), float64."""


class FitCost(NamedTuple):
    """A rough estimate of a fit's duration on one core: seconds per cell of X, times a parameter's value.

    Measured on tables of 160,000 to 3 million cells. With a feature map, its components are the columns of X.
    """

    seconds_per_cell: float
    times: str | None = None
    """Name of the parameter. None: the duration is that of one pass, whatever the parameters."""


class Ranker(ClassifierMixin, BaseEstimator, ABC):
    """Base class of all rankers: a score that orders rows, with the likely positives first.

    Every ranker is a scikit-learn classifier. `fit` takes numbers or a table, missing values, sample weights and
    groups; `decision_function` returns scores; `predict` flags the rows whose score is above 0.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two labels. The greater one, `classes_[1]`, is positive. Absent if fitted on pairs or on grades.
    grades_ : ndarray of shape (n_grades,), int64
        The distinct grades, ascending. Present only if fitted on graded labels, which have no `classes_`.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,), object
        Column names. Present only if fitted on a table whose column names are strings.
    categories_ : tuple, one entry per feature
        The sorted categories of a categorical feature; None for a numeric one.

    Notes
    -----
    A subclass implements `_fit`, `score_rows` and `structure`, and `contributions` if its score is a sum of one part
    per feature. It declares its fitted state in the annotations of its attributes (see `core.base.state`). `_restore`
    derives the attributes that follow from the stored ones.
    """

    target: ClassVar[Literal["binary", "multilabel"]] = "binary"
    """The form of y: one of two values per row, or a table of 0 and 1 with a column per label."""

    keeps_when_stopped: ClassVar[bool] = False
    """Whether a fit that `StopFit` ends after its first step keeps what it has; if not, `StopFit` is not caught."""

    takes_query: ClassVar[bool] = False
    """Whether `fit` takes queries, so that only pairs of rows of one query count."""

    takes_grades: ClassVar[bool] = False
    """Whether `fit` takes graded labels."""

    fit_cost: ClassVar[FitCost | None] = None
    """How long a fit takes. None: about as long as `n_rounds` passes over a histogram of all cells."""

    classes_: npt.NDArray[Any]
    grades_: npt.NDArray[np.int64]
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]
    categories_: Categories
    data_sha256_: str
    """SHA-256 of the table of the fit, if whoever fitted the ranker has recorded it."""
    _fitted: frozenset[str]
    """Names of the attributes that the fit has set."""

    def keep_length(self) -> bool:
        """After a stopped fit, set the parameters with which a complete fit gives this ranker.

        A booster takes its number of rounds, and a forest its number of trees, from what `StopFit` left. Another fit
        with these parameters gives the same ranker, bit for bit.

        Returns
        -------
        bool
            Whether there are such parameters; if not, none has changed.
        """
        return False

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        query: Any = None,
        graded: bool = False,
        callback: Callback | None = None,
    ) -> Self:
        """Fit the ranker: learn to score positive rows, or rows of a higher grade, above the others.

        If the call raises, the ranker keeps its previous state, fitted or not.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Numbers, where NaN (null in a table) is a missing value and infinite values are rejected. Table columns that
            hold text, or that have a categorical type, are categorical features. A category that was not seen in `fit`
            counts as missing in later calls.
        y : array-like of shape (n_samples,)
            Two distinct values, of which the greater is positive. If `graded`, whole numbers from 0 to 31.
        sample_weight : array-like of shape (n_samples,), optional
            0, or between 1e-100 and 1e100. A row of weight 0 counts as absent, a row of weight k as k rows.
        groups : array-like of shape (n_samples,), optional
            Numbers, booleans or text. Rows of one group are never split between training and validation parts, or
            between the folds of `crosses` and `target_encoding`.
        query : array-like of shape (n_samples,), optional
            Numbers, booleans or text. Rows with the same value form one list, and only pairs within a list count. A
            list whose rows all have the same class has no effect. Default: all rows are one list. Only rankers with
            `takes_query` accept it.
        graded : bool
            Whether y holds grades instead of two classes. Only rankers with `takes_grades` accept True.
        callback : callable (step, of, info) -> None, optional
            Called after each step, counted from 1. `info` maps names such as "loss" to numbers. Boosters compute these
            when they are read, so copy them with `dict(info)`. An exception raised here ends the fit and reaches the
            caller. `StopFit` ends the fit and keeps the steps so far. See Notes for the calls without numbers.

        Returns
        -------
        self

        Raises
        ------
        InvalidParameter
            A parameter breaks its rule, or this ranker does not take queries or grades.
        InvalidData
            X, y, sample_weight, groups or query break one of the rules above, or no query has rows of both classes.

        Notes
        -----
        Random draws of rows (forests, subsamples, `SampledMartiRank`, validation parts) treat a row of weight k as one
        row. So k equal rows of weight 1 give a different draw.

        A validation part (for early stopping, pruning, the choice of C or the noise estimate) never splits a group.
        Without groups it never splits equal rows. The exception: early stopping and pruning split equal rows if there
        are fewer than 30 distinct rows and each occurs ten times or more on average.

        The callback is called with an empty `info` while `crosses` are searched (`StopFit` then ends the search), while
        a partial-AUC SVM looks for a direction better than constant scores, and before each column of a `ColumnTable`
        is read (`StopFit` then takes effect at the first step).
        """
        with self._refitting() as fresh:
            fresh._learn(X, y, sample_weight, groups, query, graded, callback)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return the score of each row; a higher score means more likely positive.

        Scores above 0 are those that `predict` labels positive. Scores are not probabilities: calibrate them with
        `core.probability`.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        ndarray of shape (n_samples,), float64

        Raises
        ------
        InvalidData
            X does not have the columns of `fit`, or holds infinite values.
        """
        return self.score_rows(self.checked_rows(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of each row: positive if its score is above 0.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of `classes_`.
        """
        check_is_fitted(self)
        if not hasattr(self, "classes_"):
            fitted_on = "grades" if hasattr(self, "grades_") else "pairs"
            raise InvalidData(
                f"predict requires labels: this {type(self).__name__} was fitted on {fitted_on}, whose scores "
                "have no meaningful zero"
            )
        above = self.decision_function(X) > 0
        return self.classes_[above.astype(np.intp)]

    @classmethod
    def from_state(
        cls,
        params: Mapping[str, Any],
        arrays: Mapping[str, npt.NDArray[Any]],
        meta: Mapping[str, Any],
    ) -> Self:
        """Rebuild a fitted ranker from its parameters and its state.

        `save` and `load` do this for bytes.

        Parameters
        ----------
        params : mapping of str to JSON value
            What `get_parameters()` returned.
        arrays : mapping of str to ndarray
            The first value that `get_state()` returned.
        meta : mapping of str to JSON value
            The second value that `get_state()` returned.

        Returns
        -------
        Ranker
            Scores every row exactly as the original does, bit for bit.

        Raises
        ------
        ArtifactError
            A part is missing, has the wrong shape or type, or is out of range.
        """
        check_values(cls, params)
        ranker = cls(**params)
        ranker.check_parameters()
        try:
            ranker._set_columns(meta["n_features_in"], meta["feature_names_in"])
            ranker._set_categories(meta["categories"])
            if "grades" in meta:
                ranker._set_grades(meta["grades"], meta["classes"])
            elif meta["classes"] is not None or not hasattr(cls, "fit_pairs"):
                ranker._set_classes(**meta["classes"])
            if "data_sha256" in meta:
                ranker._set_data_sha256(meta["data_sha256"])
            ranker._set_state(arrays, meta)
        except ArtifactError:
            raise
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise ArtifactError(
                f"the state of {cls.__name__} is not readable: {error!r}"
            ) from error
        ranker._mark_fitted()
        return ranker

    def get_state(self) -> tuple[Arrays, dict[str, Any]]:
        """Return the fitted state as arrays and JSON values.

        Returns
        -------
        arrays : dict of str to ndarray
        meta : dict of str to JSON value
            The rest: columns, categories, classes and numbers.
        """
        check_is_fitted(self)
        arrays, meta = self._get_state()
        names = getattr(self, "feature_names_in_", None)
        common: dict[str, Any] = {
            "n_features_in": self.n_features_in_,
            "feature_names_in": None if names is None else [str(name) for name in names],
            "categories": self._get_categories(),
            "classes": self._get_classes(),
        }
        if hasattr(self, "grades_"):
            common["grades"] = self.grades_.tolist()
        if hasattr(self, "data_sha256_"):
            common["data_sha256"] = self.data_sha256_
        return arrays, meta | common

    @abstractmethod
    def score_rows(self, X: Floats) -> Floats:
        """Return the score of each row without checking the input: the fast path of the service.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features_in_), float64, C-contiguous
            Rows from `checked_rows`. Any other input is undefined behaviour.

        Returns
        -------
        ndarray of shape (n_samples,), float64
        """

    def get_parameters(self) -> dict[str, Any]:
        """Return the constructor parameters as JSON values, as `from_state` takes them.

        Returns
        -------
        dict of str to JSON value
            Parameters newer than the first version are left out if they have their default (see `Since`).
        """
        return leave_out_newer(type(self), plain_value(self.get_params(deep=False)))

    def check_lists(self, *, query: bool, graded: bool) -> None:
        """Raise InvalidParameter if this ranker, with its parameters, does not accept queries or grades.

        Parameters
        ----------
        query, graded : bool
            What the data has.
        """
        if query and not self.takes_query:
            raise InvalidParameter(
                f"{type(self).__name__} does not accept query: it compares the rows of all lists"
            )
        if graded and not self.takes_grades:
            raise InvalidParameter(
                f"{type(self).__name__} does not accept grades: it needs labels of two classes"
            )

    def takes_categories(self) -> bool:
        """Return whether the ranker, with its parameters, can be fitted on categorical columns.

        Returns
        -------
        bool
            False means that `fit` rejects categorical columns.
        """
        return False

    def reads_columns(self) -> str | None:
        """Return why `fit` cannot read a table column by column (`ColumnTable`); None if it can.

        Returns
        -------
        str or None
        """
        return "it reads the rows"

    def reads_shards(self) -> str | None:
        """Return why `fit` cannot use a `ColumnTable` with shards in other processes; None if it can.

        Returns
        -------
        str or None
        """
        return self.reads_columns() or "it is fitted in one process"

    def find_directions(
        self, monotone: Mapping[str | int, Direction] | None = None
    ) -> Directions | None:
        """Return the direction of each column under monotone constraints; None without constraints.

        Parameters
        ----------
        monotone : mapping of str or int to {"increasing", "decreasing"}, optional
            Constraints by column name or index. Default: the ranker's parameter `monotone`.

        Returns
        -------
        ndarray of shape (n_features_in_,), int8, or None
            1 for increasing, -1 for decreasing, 0 without a constraint.

        Raises
        ------
        InvalidParameter
            A constraint names an unknown or a categorical column.
        """
        if monotone is None:
            monotone = getattr(self, "monotone", None)
        names = getattr(self, "feature_names_in_", None)
        known = None if names is None else [str(name) for name in names]
        return find_directions(monotone, known, self._n_categories())

    def walk_monotone(self, directions: Directions) -> Verification:
        """Verify every part of the fitted ranker against monotone constraints.

        Parameters
        ----------
        directions : ndarray of shape (n_features_in_,), int8
            What `find_directions` returns.

        Returns
        -------
        Verification
            The parts that break a constraint; see `core.base.monotone.check_monotone`.

        Raises
        ------
        InvalidParameter
            The ranker has no parts that can be checked.
        """
        raise InvalidParameter(
            f"a {type(self).__name__} cannot be proven monotone: it has no steps, coefficients or leaves "
            "to check"
        )

    def combination(self) -> Combination | None:
        """Return the score's weak rankers' weights; None unless the score combines weak rankers.

        Returns
        -------
        Combination or None
            None unless the score is a combination f = Σ λ_t h_t of {0, 1} weak rankers. Only then are margins defined:
            the paper divides score differences by ‖λ‖₁ = Σ λ_t.
        """
        return None

    def shapley_values(self, X: Any) -> Floats:
        """Explain each score: split its difference from the mean training score among the features.

        The values are exact Shapley values and sum to decision_function(X) - offset_. They differ from `contributions`
        in trees with several features.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
            One value per row and feature, in units of the score.

        Raises
        ------
        InvalidParameter
            The score cannot be split exactly among features. `core.explain.shapley_estimate` estimates the values for
            any ranker.

        Notes
        -----
        A feature's value is its mean gain over all orders in which the features of the row can become known. If the
        score is a sum of one function per feature, the value is that function minus its training mean. In a sum of
        trees, a row follows its own branch at splits on known features and is divided by training mass at the others
        (Lundberg, Erion & Lee 2018). A cross of two features counts as one feature, and its value is divided equally
        between the two.
        """
        raise InvalidParameter(
            f"the score of a {type(self).__name__} is not a sum that can be divided exactly among features"
        )

    def divide_exactly(self, x: Floats, references: Floats, shares: Floats) -> Floats | None:
        """Return the exact Shapley values of one row against reference rows; None if this takes too long.

        `core.explain.shapley_estimate` calls this first and samples only if it returns None.

        Parameters
        ----------
        x : ndarray of shape (n_features,), float64
            A row from `checked_rows`.
        references : ndarray of shape (n_references, n_features), float64, C-contiguous
            The rows to compare with.
        shares : ndarray of shape (n_references,), float64
            Weights of the references. They sum to 1.

        Returns
        -------
        ndarray of shape (n_features,), float64, or None
        """
        return None

    def score_mixed(self, mixed: MixedRows) -> Floats:
        """Return the scores of rows that mix the values of one row and of reference rows.

        Parameters
        ----------
        mixed : MixedRows
            The mixed rows, of which the ranker can use the structure.

        Returns
        -------
        ndarray of shape (n_mixed,), float64
            What `score_rows(mixed.table)` returns, except for rounding.
        """
        return self.score_rows(mixed.table)

    def count_visited(self, n_references: int) -> int:
        """Return an upper bound on the tree nodes that `divide_exactly` visits for one row; 0 without trees.

        Parameters
        ----------
        n_references : int
            Number of reference rows.

        Returns
        -------
        int
        """
        return 0

    def count_shapley_steps(self) -> int:
        """Return the greatest number of elementary steps that the Shapley values of one row take.

        Returns
        -------
        int
            An upper bound; 0 if they take no longer than the score of a row.
        """
        return 0

    @abstractmethod
    def structure(self) -> dict[str, Any]:
        """Describe the fitted ranker: its rules, coefficients or trees, in words and numbers.

        Returns
        -------
        dict
            JSON values. The keys depend on the algorithm.
        """

    @contextmanager
    def _refitting(self) -> Iterator[Self]:
        """Yield an unfitted copy to fit in the block; on success this ranker takes over its fitted state.

        If the block raises, this ranker stays as it was. The copy's parameters are plain values (`plain_value`).
        """
        fresh = self._unfitted()
        yield fresh
        self._take_state_of(fresh)

    def _unfitted(self) -> Self:
        parameters = self.get_params(deep=False).items()
        return type(self)(**{name: plain_value(value) for name, value in parameters})

    def _take_state_of(self, fresh: Self) -> None:
        """Replace the fitted state in one step. Parameters stay, and so do scikit-learn's requests for metadata."""
        fresh._mark_fitted()
        earlier: frozenset[str] = getattr(self, "_fitted", frozenset())
        own = {name: value for name, value in vars(self).items() if name not in earlier}
        self.__dict__ = {**own, **{name: vars(fresh)[name] for name in fresh._fitted}}

    def _mark_fitted(self) -> None:
        self._fitted = frozenset({*vars(self), "_fitted"} - {*self.get_params(deep=False)})

    def _learn(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any,
        query: Any,
        graded: Any,
        callback: Callback | None,
    ) -> None:
        if isinstance(X, ColumnTable) and callback is not None:
            X = replace(X, on_read=partial(_call_while_reading, callback))
        data = self._training_data(X, y, sample_weight, groups, query, graded)
        self._fit(data, callback or ignore)

    @abstractmethod
    def _fit(self, data: TrainingData, callback: Callback) -> None:
        """Fit on checked input: positive weights, with both classes (or two grades) present.

        `data` has a query or grades only if the class takes them: see `takes_query` and `takes_grades`.
        """

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        return write_state(self)

    def _set_state(self, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> None:
        for attribute, value in read_state(type(self), arrays, meta, self._known_sizes()).items():
            setattr(self, attribute, value)
        self._restore()

    def _known_sizes(self) -> dict[str, Any]:
        """Return the sizes and types that are known before the declared fields are read; see `State.from_arrays`."""
        n_categories = self._n_categories()
        return {
            "n_features": self.n_features_in_,
            "n_categories": n_categories,
            "n_columns": int(np.maximum(n_categories, 1).sum()),  # with one per category
        }

    def _restore(self) -> None:
        """Check rules across the restored fields, and compute the attributes that follow from them."""

    def _training_data(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        query: Any = None,
        graded: Any = False,
    ) -> TrainingData:
        graded = plain_value(graded)
        if type(graded) is not bool:
            raise InvalidParameter(f"graded must be True or False, got {graded!r}")
        check_values(type(self), self.get_params(deep=False))
        self.check_parameters()
        has_lists = query is not None or graded
        if has_lists:
            self.check_lists(query=query is not None, graded=graded)
        if y is None:
            raise InvalidData(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        table = X if isinstance(X, ColumnTable) and not has_lists else None
        matrix: Any = self._matrix(X, reset=True) if table is None else self._take_columns(table)
        n_samples = matrix.shape[0]
        grade = check_grades(y, n_samples) if graded else None
        weight: Floats = np.broadcast_to(1.0, n_samples)  # takes no memory
        if grade is not None:
            positive = grade > grade.min()
            weight = check_row_weights(sample_weight, n_samples)
        else:
            self.classes_, positive = self._check_target(y, n_samples)
            if sample_weight is not None or table is None:
                weight = check_class_weights(sample_weight, positive, self.classes_)
        group = check_groups(groups, n_samples)
        if query is not None:
            query = number_units("query", query, n_samples).astype(np.int64)
        data = TrainingData(
            matrix, positive, weight, self._n_categories(), group=group, query=query, grade=grade
        )
        data = data.present()
        if data.grade is not None:
            self.grades_ = np.unique(data.grade)
        if table is None:
            matrix, self.categories_ = keep_present(data.X, self.categories_)
        else:
            matrix = data.X.keep_present()
            self.categories_ = matrix.categories
            self._check_reads_columns(table)
        self.find_directions()  # refuses constraints that the columns cannot have
        return replace(data, X=matrix, n_categories=self._n_categories())

    def _check_target(
        self, y: Any, n_samples: int
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        return check_labels(y, n_samples)

    def check_parameters(self) -> None:
        """Check the rules that involve several parameters; annotations hold those of a single one."""

    def _set_columns(self, n_features: Any, names: Any) -> None:
        if type(n_features) is not int or not 1 <= n_features <= MAX_FEATURES:
            raise ArtifactError(
                f"n_features_in must be an integer from 1 to {MAX_FEATURES}, got {n_features!r}"
            )
        self.n_features_in_ = n_features
        if names is None:
            return
        if len(names) != n_features or not all(isinstance(name, str) for name in names):
            raise ArtifactError(f"feature_names_in must contain {n_features} names, got {names!r}")
        self.feature_names_in_ = np.array(names, dtype=object)

    def _get_categories(self) -> list[list[str] | None] | None:
        if all(names is None for names in self.categories_):
            return None
        return [None if names is None else list(names) for names in self.categories_]

    def _set_categories(self, categories: Any) -> None:
        n_features = self.n_features_in_
        if categories is None:
            self.categories_ = (None,) * n_features
            return
        if not isinstance(categories, list) or len(categories) != n_features:
            raise ArtifactError(f"categories must be null or a list of {n_features}")
        for names in categories:
            if names is not None:
                try:
                    check_categories("categories", names)
                except InvalidData as error:
                    raise ArtifactError(str(error)) from error
        if all(names is None for names in categories):
            raise ArtifactError("categories must be null where no feature has any")
        self.categories_ = tuple(None if names is None else tuple(names) for names in categories)
        if self._n_categories().any() and not self.takes_categories():
            raise ArtifactError(
                f"{type(self).__name__} does not accept categories with these parameters"
            )

    def _n_categories(self) -> npt.NDArray[np.int64]:
        return np.array([len(names or ()) for names in self.categories_], dtype=np.int64)

    def _get_classes(self) -> dict[str, Any] | None:
        classes = getattr(self, "classes_", None)
        if classes is None:
            return None
        dtype = "str" if classes.dtype.kind == "U" else classes.dtype.name
        return {"dtype": dtype, "values": classes.tolist()}

    def _set_classes(self, dtype: Any, values: Any) -> None:
        if dtype not in LABEL_TYPES:
            raise ArtifactError(f"labels must be of a known type, got {dtype!r}")
        self.classes_ = np.array(values, dtype=dtype)
        if self.classes_.shape != (2,):
            raise ArtifactError(f"classes must contain two values, got {values!r}")

    def _set_grades(self, grades: Any, classes: Any) -> None:
        usable = isinstance(grades, list) and all(type(grade) is int for grade in grades)
        usable = usable and len(grades) > 1 and sorted(set(grades)) == grades
        if not usable or grades[0] < 0 or grades[-1] > MAX_GRADE or classes is not None:
            raise ArtifactError(
                f"grades must be {GRADE_RULE}, ascending and without classes, got {str(grades)[:80]}"
            )
        if not self.takes_grades:
            raise ArtifactError(f"{type(self).__name__} does not accept grades")
        self.grades_ = np.array(grades, dtype=np.int64)

    def _set_data_sha256(self, sha256: Any) -> None:
        if not (isinstance(sha256, str) and re.fullmatch("[0-9a-f]{64}", sha256)):
            raise ArtifactError(f"data_sha256 must be a SHA-256 in hexadecimal, got {sha256!r:.80}")
        self.data_sha256_ = sha256

    def _feature_name(self, feature: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return f"x{feature}" if names is None else str(names[feature])

    def checked_rows(self, X: Any) -> Floats:
        """Check X against the columns of `fit` and convert it for `score_rows`.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_features_in_), float64, C-contiguous
            Categories as their codes, missing values as NaN.
        """
        check_is_fitted(self)
        return np.ascontiguousarray(self._matrix(X, reset=False))

    def _take_columns(self, table: ColumnTable) -> ColumnTable:
        self.categories_ = table.categories
        self._check_reads_columns(table)
        empty = CodedTable(np.empty((0, table.shape[1])), table.names, table.categories)
        validate_data(self, column_names(empty), reset=True, skip_check_array=True)
        _check_width(table.shape[1])
        self._check_takes_categories()
        return table

    def _check_reads_columns(self, table: ColumnTable) -> None:
        if table.placement is not None and (reason := self.reads_shards()) is not None:
            raise InvalidData(
                f"shards of X cannot be on other machines for this {type(self).__name__}: {reason}"
            )
        if (reason := self.reads_columns()) is not None:
            raise InvalidData(
                f"X must be in memory for this {type(self).__name__}, got a table that is read by columns: "
                f"{reason}"
            )

    def _matrix(self, X: Any, *, reset: bool) -> Floats:
        """Convert to checked float64; at fit (`reset`) store the columns."""
        if isinstance(X, ColumnTable):
            raise InvalidData("X must be in memory, got a table that is read by columns")
        try:
            if is_table(X):
                return self._table_matrix(X, reset=reset)
            if not reset and self._n_categories().any():
                raise InvalidData(
                    f"X must be a table, as in fit, for its categorical columns: {self._categorical_names()}"
                )
            matrix = validate_data(
                self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"
            )
        except InvalidData:
            raise
        except ValueError as error:
            raise InvalidData(str(error)) from error
        if reset:
            _check_width(matrix.shape[1])
            self.categories_ = (None,) * matrix.shape[1]
        return np.asarray(matrix)

    def _table_matrix(self, table: Any, *, reset: bool) -> Floats:
        if reset:
            matrix, self.categories_ = to_matrix(table)
        validate_data(self, column_names(table), reset=reset, skip_check_array=True)
        if not reset:
            matrix, _ = to_matrix(table, self.categories_)
        check_array(matrix, ensure_all_finite="allow-nan", input_name="X")
        _check_width(matrix.shape[1])
        if reset:
            self._check_takes_categories()
        return matrix

    def _check_takes_categories(self) -> None:
        if self._n_categories().any() and not self.takes_categories():
            raise InvalidData(
                f"{type(self).__name__} accepts only numeric columns with these parameters, got categorical "
                f"columns: {self._categorical_names()}"
            )

    def _categorical_names(self) -> str:
        categorical = np.flatnonzero(self._n_categories()).tolist()
        return ", ".join(repr(self._feature_name(j)) for j in categorical)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags


class ContributionRanker(Ranker):
    """Base class of rankers whose score is a constant plus one contribution per feature.

    Attributes
    ----------
    offset_ : float, or ndarray of shape (n_labels,), float64
        Weighted mean score of the training rows.
    """

    def contributions(self, X: Any) -> Floats:
        """Explain each score: split its difference from the mean training score by feature.

        decision_function(X) is offset_ plus the sum of each row's contributions, except for rounding.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
            In units of the score. With several labels the shape is (n_samples, n_features, n_labels).

        Raises
        ------
        InvalidParameter
            With its parameters, the ranker has no such parts.
        """
        return self._contributions(self.checked_rows(X))

    @abstractmethod
    def _contributions(self, X: Floats) -> Floats:
        """Return each feature's contribution to checked rows' scores, (n_samples, n_features)."""

    def shapley_values(self, X: Any) -> Floats:
        """Explain each score by the contributions of the features; see `Ranker.shapley_values`.

        Where each contribution depends on one feature, or on a cross of two, they are the Shapley values.
        """
        return self.contributions(X)


class PathEstimator(Ranker):
    """Base class of rankers that fit several values of a parameter in one pass, such as C of an SVM.

    A subclass's `_fit` gets the values from `_start_path`, and calls `_add_to_path` each time it is fitted for one of
    them.
    """

    path_parameter: ClassVar[str | None]
    """The parameter whose values `fit_path` takes; see `core.selection`."""

    _path: list[Any]

    def fit_path(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        values: Sequence[float],
        groups: Any = None,
        callback: Callback | None = None,
    ) -> Self:
        """Fit one ranker for each of several values of a parameter, such as C of an SVM.

        One pass over ascending values costs less than separate fits. `path_rankers` returns the rankers; this ranker
        becomes that of the last value.

        Parameters
        ----------
        X, y, sample_weight, groups
            As for `fit`.
        values : sequence of float
            Values of the parameter that `path_parameter` names, ascending.
        callback : callable (step, of, info) -> None, optional
            As for `fit`. If it stops the fit, only the rankers of the first values exist.

        Returns
        -------
        self
            The ranker of the last value.
        """
        with self._refitting() as fresh:
            fresh._path_values = tuple(float(value) for value in values)
            fresh._learn(X, y, sample_weight, groups, None, False, callback)
        return self

    def path_rankers(self) -> list[Self]:
        """Return the rankers that the last `fit_path` made.

        Returns
        -------
        list of Ranker
            One per value, in the order of the values; empty after `fit`.
        """
        return list(self._path)

    def _start_path(self) -> tuple[float, ...]:
        self._path = []
        values: tuple[float, ...] = self.__dict__.pop("_path_values", ())
        return values

    def _add_to_path(self) -> None:
        ranker = copy(self)
        ranker._path = []
        self._path.append(ranker)


def check_groups(groups: Any, n_samples: int) -> Groups | None:
    """Return the group of each row or item as a number from 0; None without groups. See `number_units`."""
    return None if groups is None else number_units("groups", groups, n_samples).astype(np.uint64)


def ignore(step: int, of: int, info: Mapping[str, float]) -> None:
    """Do nothing: the default callback of a fit."""


def _call_while_reading(callback: Callback) -> None:
    with suppress(StopFit):  # there is nothing to keep yet
        callback(0, 1, {})


def warn_stopped(done: int, of: int, what: str) -> None:
    """Warn that a callback has ended a fit after `done` of `of` steps."""
    warn(f"stopped after {done} of {of} {what}")


def _check_width(n_features: int) -> None:
    if n_features > MAX_FEATURES:
        raise InvalidData(f"X must have at most {MAX_FEATURES} features, got {n_features}")
