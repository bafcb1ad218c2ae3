"""Decision trees as weak rankers, grown on weight histograms of binned columns; leaf values use all rows.

For leaves l of masses P_l and N_l (each class summing to 1) the sum over pairs factors: the best
values of all leaves, ½ ln(P_l/N_l), multiply F̃ by (Σ_l √(P_l N_l))². So a cut gains
√(PN) - √(P₁N₁) - √(P₂N₂), whatever the other leaves are, and no pair is ever listed.

The steps of a tree: `target_encoding` turns features of many categories into numbers, `core.coding.crosses` pairs of
categorical features; `coding` makes the coded table of a matrix; `grower` grows a tree on it by the best splits of
histograms (`splitting`), from rows that `sampling` draws, and then changes the weights of the rows (`logistic`);
`shards` does the same for rows in other processes, whose histograms it adds up; `steps` is what a checkpoint holds;
`predictor` sends new rows through trees; `description` puts trees into sentences. The same grower grows LeafRank's
small trees in the cells of a ranking tree (`core.treerank.leafrank`). The losses that trees descend are in
`core.boosting.tree_losses`.
"""
