"""Three classifiers of scikit-learn's, by name: fitted by the library, kept in formats of our own.

A ranker may be made of classifiers: a splitting rule of TreeRank, a weak ranker. Those named here are
fitted by scikit-learn and then turned into flat arrays, in which they score and are stored: an
artifact holds no foreign code. Missing values and categories are dealt with here, too.
"""

from .estimators import fit_estimator
from .fit import CLASSIFIERS, STACKS, ClassifierName, fit_classifier
from .forest import ForestStack
from .linear import LinearStack
from .stack import Stack

__all__ = [
    "CLASSIFIERS",
    "STACKS",
    "ClassifierName",
    "ForestStack",
    "LinearStack",
    "Stack",
    "fit_classifier",
    "fit_estimator",
]
