"""Artifacts: bit-for-bit round trips, one set of bytes per ranker, and bytes that are not what they claim."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.artifact import MAX_HEADER_BYTES, load, save
from core.boosting import RankBoost
from core.errors import ArtifactError
from tests.core.artifact_bytes import put_together, take_apart, training_table
from tests.long_form import long_form
from tests.raising import raises
from tests.sentences import Sentences

ROOT = Path(__file__).parents[2]
STORED = Path(__file__).parent / "stored_artifacts"


# --- round trips ----------------------------------------------------------------------------------


@long_form
def test_bytes_do_not_depend_on_the_process() -> None:
    """Those of every stored artifact, loaded and saved again, in this process and in one with other hashes."""
    paths = sorted(STORED.glob("*.rankwright"))
    script = (
        "import hashlib, sys; from pathlib import Path; from core.artifact import load, save\n"
        "for path in sys.argv[1:]:\n"
        "    print(hashlib.sha256(save(load(Path(path).read_bytes()))).hexdigest())"
    )
    expected = [hashlib.sha256(save(load(path.read_bytes()))).hexdigest() for path in paths]
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    answer = subprocess.run(
        [sys.executable, "-c", script, *paths],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        check=True,
        capture_output=True,
        text=True,
    )
    assert answer.stdout.split() == expected


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-1, 1], np.int8),
        np.array([0, 2**63], np.uint64),
        np.array([False, True]),
        np.array([0.1, 0.2]),
        np.array([0.1, 0.2], np.float32),
        np.array(["no", "yes"]),
        np.array(["nein", "ja"], object),
    ],
)
def test_labels_keep_value_and_type(labels: np.ndarray) -> None:
    X, y = training_table()
    ranker = RankBoost(n_rounds=2).fit(X, labels[y])
    again = load(save(ranker))
    assert again.classes_.dtype == ranker.classes_.dtype
    np.testing.assert_array_equal(again.classes_, ranker.classes_)
    np.testing.assert_array_equal(again.predict(X), ranker.predict(X))


def test_feature_names_come_back() -> None:
    X, y = training_table()
    names = ["größe", "a b", '"', "\\x00"]
    ranker = RankBoost(n_rounds=2).fit(pd.DataFrame(X, columns=names), y)
    again = load(save(ranker))
    assert again.feature_names_in_.tolist() == names
    assert again.feature_names_in_.dtype == object


def test_the_recorded_training_data_come_back_until_the_next_fit() -> None:
    X, y = training_table()
    ranker = RankBoost(n_rounds=2).fit(X, y)
    ranker.data_sha256_ = "0123456789abcdef" * 4
    again = load(save(ranker))
    assert again.data_sha256_ == ranker.data_sha256_
    assert not hasattr(load(save(again.fit(X, y))), "data_sha256_")


# --- refused on save ------------------------------------------------------------------------------


class Stranger(RankBoost):
    """A subclass may override anything, so its state says nothing."""


def test_a_class_that_is_not_registered_is_refused(sentences: Sentences) -> None:
    with sentences.raises(ArtifactError):
        save(Stranger(n_rounds=1).fit(*training_table()))
    with raises(ArtifactError, "dict"):
        save({})


def test_an_unfitted_ranker_is_refused(sentences: Sentences) -> None:
    with sentences.raises(ArtifactError):
        save(RankBoost())


def test_labels_that_json_does_not_know_are_refused(sentences: Sentences) -> None:
    X, y = training_table()
    ranker = RankBoost(n_rounds=1).fit(X, np.array([b"no", b"yes"], object)[y])
    with sentences.raises(ArtifactError):
        save(ranker)


def test_an_array_of_objects_is_refused(
    monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    ranker = RankBoost(n_rounds=1).fit(*training_table())
    arrays, state = ranker.get_state()
    arrays["log_f_plus"] = arrays["log_f_plus"].astype(object)
    monkeypatch.setattr(RankBoost, "get_state", lambda self: (arrays, state))
    with sentences.raises(ArtifactError):
        save(ranker)


def test_a_header_too_large_to_load_is_not_saved(sentences: Sentences) -> None:
    X, y = training_table()
    names = ["x" * (MAX_HEADER_BYTES // 4 + n) for n in range(4)]
    ranker = RankBoost(n_rounds=1).fit(pd.DataFrame(X, columns=names), y)
    with sentences.raises(ArtifactError):
        save(ranker)


def test_an_array_that_is_missing_or_narrower_is_refused() -> None:
    header, arrays = take_apart((STORED / "treerank.rankwright").read_bytes())
    merged = {name for name in arrays if name.startswith("cut_merged_")}
    assert len(merged) == 3
    for name in merged:
        with raises(ArtifactError, name):
            load(put_together(header, {k: a for k, a in arrays.items() if k != name}))
    header, arrays = take_apart((STORED / "rankboost_tree.rankwright").read_bytes())
    narrow = arrays | {"split_leaf": arrays["split_leaf"].astype(np.uint8)}
    with raises(ArtifactError, "split_leaf"):
        load(put_together(header, narrow))
