"""A scikit-learn estimator that trains and scores on a Rankwright service."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from rankwright.errors import Conflict, RankwrightError

if TYPE_CHECKING:
    from rankwright.client import Client

_LABEL = "label"
_WEIGHT = "weight"


def _has_probabilities(ranker: RemoteRanker) -> bool:
    return ranker.validation is not None


class RemoteRanker(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Scikit-learn classifier of two classes that a Rankwright service trains and scores.

    Use it in pipelines, and with `cross_val_score(scoring="roc_auc")` or `GridSearchCV`. Outside of scikit-learn,
    `Client` is simpler and offers more.

    Parameters
    ----------
    client : Client, optional
        Default: `Client()`.
    algorithm : str
        A name that `Client.algorithms` lists.
    objective : dict, optional
        What to optimise, as in the body of POST /v1/jobs. Default: the AUC.
    validation : dict, optional
        As in the body of POST /v1/jobs, such as `{"method": "cross_validation"}`. Probabilities are fitted on the
        held-out rows, so `predict_proba` exists only with it. Default: no validation, which makes a fit fast.
    seed : int
        Seed of whatever is drawn at random.
    timeout : float, optional
        Maximum duration of a fit in seconds. Default: no limit.
    **parameters
        Parameters of the algorithm, such as `n_rounds=200`. They are parameters of the estimator, too, so
        `GridSearchCV` can search them.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two classes; the greater is positive.
    model_ : Model
        The model on the service.
    model_id_ : str
        Its id.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,), object
        Column names, if X has them.

    Notes
    -----
    Each fit uploads a dataset, which it deletes at its end, and makes a version of the model `remote-ranker`, which
    stays on the service until you delete it. A pickle contains the id of the model, but no API key: see `Client`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwright import RemoteRanker
    >>> X = np.arange(60.0).reshape(-1, 1)
    >>> ranker = RemoteRanker(algorithm="logistic").fit(X, X[:, 0] >= 30)
    >>> ranker.predict([[10.0], [50.0]])
    array([False,  True])
    """

    def __init__(
        self,
        client: Client | None = None,
        algorithm: str = "rankboost",
        *,
        objective: dict[str, Any] | None = None,
        validation: dict[str, Any] | None = None,
        seed: int = 0,
        timeout: float | None = None,
        **parameters: Any,
    ) -> None:
        self.client = client
        self.algorithm = algorithm
        self.objective = objective
        self.validation = validation
        self.seed = seed
        self.timeout = timeout
        for name, value in parameters.items():
            setattr(self, name, value)

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters of the algorithm: what the estimator has beside its own, and what a fit sets."""
        own = super().get_params(deep=False)
        return {
            name: value
            for name, value in vars(self).items()
            if name not in own and not name.startswith("_") and not name.endswith("_")
        }

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the estimator and those of the algorithm.

        Parameters
        ----------
        deep : bool
            Whether to include the parameters of nested estimators. There are none.

        Returns
        -------
        dict of str to Any
            Values by name.
        """
        return {**super().get_params(deep), **self._parameters()}

    def set_params(self, **params: Any) -> RemoteRanker:
        """Set parameters of the estimator, or of the algorithm.

        Parameters
        ----------
        **params
            Values by name. A name that is not one of the estimator's is a parameter of the algorithm. The service
            checks it in `fit`.

        Returns
        -------
        self
            The estimator.

        Raises
        ------
        ValueError
            A name contains `__`, as that of a nested estimator.
        """
        for name, value in params.items():
            if "__" in name:
                raise ValueError(
                    f"{name!r} is not a parameter of {type(self).__name__}, which has no nested parameters"
                )
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """Say to scikit-learn that there are two classes, and that values may be missing."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RemoteRanker:
        """Upload the rows and train on all of them.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            A data frame may have columns of text. NaN and None are missing values.
        y : array-like of shape (n_samples,)
            Two distinct values; the greater is positive.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights, not all 0.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            y does not have two classes, or the weights are not valid.
        RankwrightError
            The service rejected the data or the parameters, or training failed.
        """
        columns = self._columns(X, y, reset=True)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, coded = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass:"
                f" y has {len(self.classes_)} classes"
            )
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
            if not weights.any():
                raise ValueError("Sample weights must contain at least one non-zero number.")
        weighed = coded if weights is None else coded[weights > 0]
        if len(np.unique(weighed)) < 2:
            raise ValueError("y must have 2 classes among the rows of positive weight, got 1 class")
        label, weight = _unused_name(columns, _LABEL), _unused_name(columns, _WEIGHT)
        table = {**columns, label: [int(value) for value in coded]}
        options: dict[str, Any] = {}
        if weights is not None:
            table[weight] = weights.tolist()
            options["weight"] = weight
        client = self._client()
        dataset = client.upload(
            _rows(table), name="remote-ranker", label=label, positive="1", **options
        )
        try:
            job = client.train(
                dataset,
                {**self._parameters(), "name": self.algorithm},
                name="remote-ranker",
                objective=self.objective,
                validation=self.validation or {"method": "none"},
                baselines=False,
                seed=self.seed,
            )
            try:
                self.model_ = job.wait(self.timeout, progress=False)
            except BaseException:  # nobody asks for the model any more, also if the user interrupts
                with suppress(RankwrightError):
                    job.cancel()
                raise
        finally:
            with suppress(Conflict):  # the job that is cancelled has not ended yet
                dataset.delete()
        self.model_id_ = self.model_.id
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what holds connections: the model is found again by its id."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "model_"}

    def decision_function(self, X: Any) -> Any:
        """Return the score of each row; a higher score means more likely positive.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            One score per row.
        """
        return np.array([row["score"] for row in self._scored(X)], dtype=np.float64)

    def _scored(self, X: Any) -> list[dict[str, Any]]:
        check_is_fitted(self, "model_id_")
        if not hasattr(self, "model_"):
            self.model_ = self._client().models[self.model_id_]
        rows = _rows(self._columns(X, None, reset=False))
        found: list[dict[str, Any]] = self.model_.score(rows)
        return found

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of both classes. It exists only with `validation`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        ndarray of shape (n_samples, 2), float64
            Probabilities in the order of `classes_`.

        Raises
        ------
        ValueError
            Too few rows were held out to fit probabilities.
        """
        scored = self._scored(X)
        if scored and scored[0].get("probability") is None:
            raise ValueError(
                f"model {self.model_id_} has no probabilities: too few rows were held out"
            )
        positive = np.array([row["probability"] for row in scored], dtype=np.float64)
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any) -> Any:
        """Return the class of each row: positive if its score is above 0.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of `classes_`.
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int)]

    def _client(self) -> Client:
        if self.client is not None:
            return self.client
        from rankwright.client import Client

        return Client()

    def _columns(self, X: Any, y: Any, *, reset: bool) -> dict[str, list[Any]]:
        if hasattr(X, "columns"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return {str(name): _plain(X[name]) for name in X.columns}
        given: dict[str, Any] = {"y": y} if y is not None else {}
        checked = validate_data(
            self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan", **given
        )
        array = checked[0] if y is not None else checked
        return {f"x{j}": _plain(array[:, j]) for j in range(array.shape[1])}


def _plain(column: Any) -> list[Any]:
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    return [None if value is None or value != value else value for value in values]  # noqa: PLR0124


def _rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def _unused_name(columns: dict[str, Any], name: str) -> str:
    while name in columns:
        name += "_"
    return name
