"""The tour of the README against a running `rankwright serve`: upload, train, read, score, and what is refused."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path

import httpx
import numpy as np
import pytest
from rankwright import Client

from core import RankBoost, load
from core.metrics import auc
from examples import demo, tumours
from tests.fuzz.machine import Fuzzer
from tests.harness import children_of, is_running, run_here
from tests.long_form import long_form
from tests.waiting import eventually, patience

MIB = 1024**2
Rankwright = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tour")
    tumours.write_table(path / "table.csv")
    return path


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    """The service that the demo starts, with its first key; at the end nothing of it runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "OUTPUT", folder)
        with demo.running_service(folder / "state") as client:
            supervisor = child_that_runs("serve", os.getpid())
            family = [supervisor, *children_of(supervisor)]
            family += [child for pid in family[1:] for child in children_of(pid)]
            yield client
    assert len(family) >= len(("serve", "api", "worker", "fit", "broker"))
    assert not any(map(is_running, family))
    assert "Traceback" not in (folder / "serve.log").read_text()


@pytest.fixture(scope="module")
def rankwright(client: Client, folder: Path) -> Rankwright:
    """The command line, in a folder of its own, finding service and key by the state folder alone."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_here(*arguments, RANKWRIGHT_STATE_DIR=str(folder / "state"))

    return run


@pytest.fixture(scope="module")
def dataset_id(rankwright: Rankwright, folder: Path) -> str:
    table = str(folder / "table.csv")
    run = rankwright("upload", table, "--label", "diagnosis", "--positive", "malignant")
    assert run.returncode == 0, run.stderr
    assert "569 rows, 30 features" in run.stdout
    assert "diagnosis = malignant (212 rows" in run.stdout
    return run.stdout.split()[0]


@pytest.fixture(scope="module")
def model(rankwright: Rankwright, dataset_id: str, folder: Path) -> dict[str, object]:
    run = rankwright(
        *("train", dataset_id, "--name", "cancer", "--set", "n_rounds=60", "--fpr-max", "0.05"),
        *("--holdout", "0.25"),
        *("--svg", str(folder / "roc.svg"), "--json"),
    )
    assert run.returncode == 0, run.stderr
    answer: dict[str, object] = json.loads(run.stdout)
    return answer


@long_form
def test_training_gives_a_good_ranker_and_its_figures(model: dict[str, dict[str, object]]) -> None:
    assert model["model"]["version"] == 1
    algorithm = model["model"]["algorithm"]
    assert isinstance(algorithm, dict)
    assert (algorithm["name"], algorithm["n_rounds"]) == ("rankboost", 60)
    assert algorithm["smoothing"] == RankBoost().smoothing  # the default is part of the answer
    area = model["metrics"]["auc"]
    assert isinstance(area, dict)
    assert 0.9 < area["low"] < area["value"] < area["high"] <= 1
    assert area["value"] > 0.97


@pytest.mark.usefixtures("model")
def test_scores_of_a_file_are_those_of_the_artifact(
    rankwright: Rankwright, client: Client, folder: Path
) -> None:
    run = rankwright("score", "cancer", "--file", str(folder / "table.csv"))
    assert run.returncode == 0, run.stderr
    header, *lines = run.stdout.splitlines()
    assert header == "score,fpr,tpr,probability"
    scores = np.array([float(line.split(",")[0]) for line in lines])

    artifact = httpx.get(
        f"{client.url}/v1/models/cancer/artifact",
        headers={"Authorization": f"Bearer {(folder / 'state' / 'api-key').read_text().strip()}"},
        timeout=patience(),
    )
    ranker = load(artifact.content)
    X, malignant = _table(folder / "table.csv")
    np.testing.assert_array_equal(scores, ranker.score_rows(X))
    assert auc(malignant, scores) > 0.97


def _table(path: Path) -> tuple[np.ndarray, np.ndarray]:
    lines = [line.split(",") for line in path.read_text().splitlines()[1:]]
    X = np.array([[float(value) for value in line[:-1]] for line in lines])
    return X, np.array([line[-1] == "malignant" for line in lines])


REFUSED = {
    "score cancer mean_radius=abc": "feature 'mean_radius' must be a finite number",
    "score cancer": "pass either features as name=value or a file, not both",
    "score cancer novalue": "must have the form name=value, got 'novalue'",
    "score nobody a=1": "there is no model 'nobody'",
    "train {dataset} --set n_rounds=0": "n_rounds",
    "upload {demo}": "a table's name must end in one of .csv",
    "upload {table} --label nope": "nope",
    "algorithms --url http://127.0.0.1:9": "no service responds at http://127.0.0.1:9",
}
"""Commands, and what they say; others: tests/app/cli."""


@pytest.mark.usefixtures("model")
def test_what_is_refused_is_said_in_a_sentence(
    rankwright: Rankwright, dataset_id: str, folder: Path
) -> None:
    for line, message in REFUSED.items():
        given = {"dataset": dataset_id, "table": folder / "table.csv", "demo": demo.__file__}
        run = rankwright(*line.format(**given).split())
        assert run.returncode != 0
        assert message in " ".join(run.stderr.split())
        assert "Traceback" not in run.stderr
        assert run.stdout == ""


def test_the_demo_walks_through(
    client: Client,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On the service that it has started for all tests of this file."""
    monkeypatch.setattr(demo, "OUTPUT", tmp_path)
    monkeypatch.setattr(demo, "running_service", lambda state: contextlib.nullcontext(client))
    demo.main()
    said = capsys.readouterr().out
    for word in ("ready at http://127.0.0.1:", "AUC  0.81", "of 1,170 who subscribe", ": call"):
        assert word in said
    assert {path.name for path in tmp_path.iterdir()} == {"report.html"}
    # docs/get-started.md trains the same ranker on fewer rows, and shows what the service returns.
    put_aside = Path(__file__).parents[2] / "examples" / "put_aside.py"
    subprocess.run([sys.executable, put_aside], cwd=tmp_path, check=True, capture_output=True)
    calls = client.upload(
        tmp_path / "calls.parquet", label="subscribed", positive="yes", progress=False
    )
    job = client.train(calls, "rankboost", weak_ranker="tree", name="page", baselines=False)
    client.models.set_alias("page", "live", job.wait(), guarantee={"flagged": 0.1})
    page = (Path(__file__).parents[2] / "docs" / "get-started.md").read_text()
    (sent,) = re.findall(r"--json '(\{.*?\})'", page, re.DOTALL)
    (told,) = re.findall(
        r'^(\{"model_id".*?"contribution":[0-9.]+)', page, re.DOTALL | re.MULTILINE
    )
    answer = httpx.post(
        f"{client.url}/v1/models/page@live/score",
        params={"reasons": 1},
        json=json.loads(sent),
        headers={"Authorization": f"Bearer {(folder / 'state' / 'api-key').read_text().strip()}"},
        timeout=patience(),
    ).json()
    # The model is trained here: another processor may round its sums differently.
    (reason,) = answer["reasons"][0]
    for name, value in (
        ("scores", answer["scores"][0]),
        ("probabilities", answer["probabilities"][0]),
        ("contribution", reason["contribution"]),
    ):
        (number,) = re.findall(rf'"{name}":\[?([0-9.]+)', told)
        assert value == pytest.approx(float(number), rel=1e-9)
    assert answer["flags"] == [True]
    assert '"flags":[true]' in told


def test_the_demo_finds_the_project_from_any_folder(tmp_path: Path) -> None:
    load = f"import runpy; runpy.run_path({demo.__file__!r})"
    subprocess.run([sys.executable, "-c", load], cwd=tmp_path, check=True)


def child_that_runs(command: str, parent: int) -> int:
    """The pid of the process's child that runs `rankwright <command>`; it may have others, such as servers of tests."""
    word = f"\0{command}\0".encode()
    (found,) = (
        pid for pid in children_of(parent) if word in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    return found


@contextmanager
def api_memory_limited_to(more: int) -> Iterator[int]:
    """Let the API process take so many more bytes than it has, for the length of a block; its pid."""
    supervisor = child_that_runs("serve", os.getpid())
    api = child_that_runs("api", supervisor)
    seen: list[int] = []

    def settled() -> bool:
        """Libraries that are loaded in the background, since somebody has a key, are no part of what is done here."""
        status = Path(f"/proc/{api}/status").read_text()
        seen.append(1024 * int(status.partition("VmData:")[2].split()[0]))
        return len(seen) > 4 and len(set(seen[-5:])) == 1

    eventually(settled, every=0.5)
    held = seen[-1]
    before = resource.prlimit(api, resource.RLIMIT_DATA, (held + more, resource.RLIM_INFINITY))
    try:
        yield api
    finally:
        resource.prlimit(api, resource.RLIMIT_DATA, before)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA covers mmap on Linux")
@pytest.mark.usefixtures("model")
def test_an_upload_larger_than_memory(client: Client, folder: Path) -> None:
    """Raw and as a form, 64 MB pass through an API process that may take 48 MB more than it has."""
    key = (folder / "state" / "api-key").read_text().strip()
    megabyte = b"1,0\n" * (MIB // 4)
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="t.csv"\r\n\r\n'
    bodies = {
        "text/csv": (b"a,y\n", b""),
        "multipart/form-data; boundary=b": (part + b"a,y\n", b"\r\n--b--\r\n"),
    }
    with httpx.Client(
        base_url=client.url, headers={"Authorization": f"Bearer {key}"}, timeout=patience()
    ) as http:

        def upload(megabytes: int) -> None:
            for media_type, (begin, end) in bodies.items():
                content = chain([begin], repeat(megabyte, megabytes), [end])
                answer = http.post(
                    "/v1/datasets", content=content, headers={"Content-Type": media_type}
                )
                assert answer.status_code == 202, answer.text
                assert answer.json()["bytes"] == megabytes * MIB + 4
                http.post(f"/v1/jobs/{answer.json()['job_id']}/cancel")  # nobody wants it read

        upload(1)  # what a first one loads is no part of it either
        with api_memory_limited_to(48 * MIB) as pid:
            upload(64)
            assert is_running(pid)


@long_form
def test_requests_made_from_the_description(client: Client, folder: Path) -> None:
    """The short form of `make fuzz`: schemathesis makes one of everything, and asks some of the operations."""
    key_id = next(client.keys.list()).id
    secret = (folder / "state" / "api-key").read_text().strip()
    document = httpx.get(
        f"{client.url}/openapi.json", timeout=patience()
    ).json()  # the first takes longest
    fuzzer = Fuzzer(client.url, secret, key_id, document)
    fuzzer.begin()
    asked = list(fuzzer.operations)
    fuzzer.ask(len(asked), asked)
    assert not fuzzer.tally.faults
    assert fuzzer.tally.statuses.keys() >= set(asked)
    never_made = [label for label in fuzzer.creating if not fuzzer.tally.created[label]]
    assert not set(never_made) & set(asked)
