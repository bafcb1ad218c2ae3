"""Trees as weak rankers: grown on histograms of codes, their leaves measured on all rows.

For leaves l of masses P_l and N_l (each class summing to 1) the sum over pairs factors: the best
values of all leaves, ½ ln(P_l/N_l), multiply F̃ by (Σ_l √(P_l N_l))². So a cut gains
√(PN) - √(P₁N₁) - √(P₂N₂), whatever the other leaves are, and no pair is ever listed.

`coding` makes of a matrix the coded table that `layout` describes. `rows`, `splits` and `sides` are
the kernels of a leaf, by what a side of a cut is worth (`worth`); `growth` does the pieces of the
`phases` of a tree in its `workspace`, which `grower` walks through. `passes`, `routing` and `drawing`
go over all rows. `losses` says what is descended, `rules` how far; `learner` is what the loop of boosting sees, and
`tree_sum` what remains: `walking` scores few rows with it, `questions` many, `words` tells of it.
"""
