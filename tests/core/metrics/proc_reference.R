# What pROC says of two fixed rankings: `Rscript proc_reference.R > proc_reference.json`.
# The vectors follow from whole numbers alone, so that the test makes the same ones.
suppressPackageStartupMessages(library(pROC))

i <- 0:239
y <- as.integer((37 * i) %% 100 < 35)
fine <- (7919 * i + 13) %% 1009 / 100 + 4 * y
tied <- floor((2 * ((7919 * i + 13) %% 1009) + (6007 * i + 101) %% 997) / 300) + 2 * y

curve <- function(scores, ...) roc(y, scores, levels = c(0, 1), direction = "<", quiet = TRUE, ...)
over_window <- list(partial.auc = c(0.9, 0.7), partial.auc.focus = "specificity") # FPR from .1 to .3
partial <- function(scores, ...) do.call(curve, c(list(scores), over_window, ...))

set.seed(1)
one <- curve(fine)
two <- curve(tied)
delong <- roc.test(one, two, method = "delong", paired = TRUE)
draws <- 4000
drawn <- roc.test(
  partial(fine), partial(tied), method = "bootstrap", paired = TRUE, boot.n = draws, progress = "none"
)
interval <- ci.auc(partial(fine), method = "bootstrap", boot.n = draws, progress = "none")
# pROC's trap: a window named here alone is left aside where DeLong's formula can be used.
ignored <- ci.auc(one, partial.auc = over_window$partial.auc)

figures <- list(
  fine_auc = as.numeric(auc(one)), fine_variance = var(one),
  tied_auc = as.numeric(auc(two)), tied_variance = var(two),
  covariance = cov(one, two),
  z = unname(delong$statistic), p_value = delong$p.value,
  low = delong$conf.int[1], high = delong$conf.int[2],
  fine_pauc = as.numeric(partial(fine)$auc), tied_pauc = as.numeric(partial(tied)$auc),
  fine_corrected = as.numeric(partial(fine, partial.auc.correct = TRUE)$auc),
  pauc_low = interval[1], pauc_high = interval[3],
  pauc_z = unname(drawn$statistic),
  ignored_low = ignored[1], ignored_high = ignored[3]
)
lines <- sprintf('  "%s": %.15g', names(figures), unlist(figures))
cat("{\n", paste(lines, collapse = ",\n"), "\n}\n", sep = "")
