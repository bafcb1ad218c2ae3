"""Trees as weak rankers: grown on histograms of codes, their leaves measured on all rows.

For leaves l of masses P_l and N_l (each class summing to 1) the sum over pairs factors: the best
values of all leaves, ½ ln(P_l/N_l), multiply F̃ by (Σ_l √(P_l N_l))². So a cut gains
√(PN) - √(P₁N₁) - √(P₂N₂), whatever the other leaves are, and no pair is ever listed.

A tree goes through one pipeline: `coding` makes of a matrix the coded table; `grower` grows a tree on it, by the best
splits of histograms (`splitting`), on rows that `sampling` draws, and reweighs the rows when it has been (`logistic`);
`predictor` sends new rows through trees. `target_encoding` turns many categories into numbers before, `description`
puts trees into sentences after. The same grower grows LeafRank's small trees in the cells of a ranking tree
(`core.treerank.leafrank`). What is descended, and how far, is told in `core.boosting` (`trees`).
"""
