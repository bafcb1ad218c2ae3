"""Three classifiers by name, fitted and kept in formats of our own; and fits of any estimator.

A ranker may be made of classifiers: a splitting rule of TreeRank, a weak ranker. Logistic regression and the linear SVM
are fitted by `core.linear.newton`, a random forest by scikit-learn. All are turned into flat arrays, in which they
score and are stored: an artifact holds no foreign code. Missing values and categories are dealt with here, too.
"""

from .fit import CLASSIFIERS, STACKS, ClassifierName, fit_classifier, fit_estimator
from .stacks import ForestStack, LinearStack, Stack, count_columns, expand

__all__ = [
    "CLASSIFIERS",
    "STACKS",
    "ClassifierName",
    "ForestStack",
    "LinearStack",
    "Stack",
    "count_columns",
    "expand",
    "fit_classifier",
    "fit_estimator",
]
