"""MartiRank: boosting the AUC by a branching program, so that flipped labels do little harm.

      layer 1   ●                 a node: a weak ranker, cut in two by Lemma 4
                │ ╲
      layer 2   ●  ●              left: it said -1, the row stays at its position
                │ ╲│ ╲            right: it said 1, the row goes one up
      layer 3   ●  ●  ●
                │ ╲│ ╲│ ╲
      ends      0  1  2  3        what a row reaches on average is its score

`node` makes a node of a histogram, `growth` a program of layers, with `passes` over the rows;
`program` is what remains, `walking` scores with it, and `drawing` shows it. `martirank` and `sampled`
are the algorithms on the frame of `ranker`: nodes of `any_ranker` in the one, batches of a `stream` in
the other, where `noise` guesses how often labels lie.

References
----------
P. M. Long and R. A. Servedio, "Boosting the area under the ROC curve", NIPS 2007.
"""

from .martirank import MartiRank
from .sampled import SampledMartiRank

__all__ = ["MartiRank", "SampledMartiRank"]
