"""MartiRank: a branching program of weak rankers that boosts the AUC and tolerates flipped labels.

      layer 1   ●                 a node: a weak ranker, cut in two by Lemma 4
                │ ╲
      layer 2   ●  ●              left: it said -1, the row stays at its position
                │ ╲│ ╲            right: it said 1, the row goes one up
      layer 3   ●  ●  ●
                │ ╲│ ╲│ ╲
      ends      0  1  2  3        what a row reaches on average is its score

`program` is the program: its nodes, its scores, its state; `growth` grows one from histograms; `any_ranker` is a
program whose nodes are classifiers. `martirank` and `sampled` are the algorithms.

References
----------
P. M. Long and R. A. Servedio, "Boosting the area under the ROC curve", NIPS 2007.
"""

from .martirank import MartiRank
from .sampled import SampledMartiRank

__all__ = ["MartiRank", "SampledMartiRank"]
