"""Imports for submission, training and scoring, with their one-time preparations. Imported by `app.preload.preload`."""

# ruff: noqa: F401

from __future__ import annotations

import narwhals.stable.v2
import pyarrow.csv
import pyarrow.parquet
import safetensors.numpy
import threadpoolctl

import app.evaluation.metrics
import app.ingest.build
import app.ingest.pairs
import app.jobs.execution
import app.scoring.table_rows
import app.training.fitting
import app.training.result
import app.training.tasks
import core.artifact
import core.base.checkpoint
import core.bounds.game
import core.bounds.generalisation
import core.explain.dependence
import core.metrics.comparison
import core.metrics.intervals
import core.metrics.margins
import core.selection
from core import kernels
from core.registry import ALGORITHMS

list(ALGORITHMS.values())  # imports each algorithm
kernels.load_registries()
