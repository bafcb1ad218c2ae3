"""`make clients`: clients that nobody here wrote, as their wheels have them, against a running service.

    python -m tools.standard_clients [NAME ...]     # triton, kserve, mlflow, sagemaker

Each client runs in an environment of its own, in two versions. What it gets must be what our own door answers. MLflow's
client and SageMaker can send no key. Needs the package registry. This file is also what runs inside the environments:
it imports nothing of ours there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

CLIENTS = {
    "triton": ["tritonclient[http]==2.73.0", "tritonclient[http]==2.57.0"],
    "kserve": ["kserve==0.21.0", "kserve==0.16.0"],
    "mlflow": ["mlflow-skinny==3.17.2 pandas scipy", "mlflow-skinny==2.22.2 pandas scipy"],
    "sagemaker": [""],
}
MODEL = "churn"
ROWS = 500

# --- inside the environment of a client -------------------------------------------------------------


def use_triton(asked: dict[str, Any]) -> None:
    """Every shape, binary and JSON, each compression, gaps, text, reasons, versions and aliases, refusals."""
    import numpy as np
    import tritonclient.http as triton
    from tritonclient.utils import InferenceServerException

    X = np.array(asked["rows"], dtype=np.float64)
    names, scores = asked["names"], np.array(asked["scores"])
    client = triton.InferenceServerClient(asked["url"].removeprefix("http://") + "/oip")

    def key() -> dict[str, str]:
        # Anew for each call: the client writes the length of a binary request into the dict that it gets.
        return {"Authorization": f"Bearer {asked['key']}"}

    def tensor(name: str, values: Any, datatype: str, binary: bool) -> Any:
        found = triton.InferInput(name, list(values.shape), datatype)
        found.set_data_from_numpy(values, binary_data=binary)
        return found

    def tensors(shape: str, binary: bool) -> list[Any]:
        if shape == "N,F":
            return [tensor("x", X, "FP64", binary)]
        size = [-1] if shape == "N" else [-1, 1]
        return [
            tensor(name, np.ascontiguousarray(X[:, j].reshape(size)), "FP64", binary)
            for j, name in enumerate(names)
        ]

    def infer(inputs: list[Any], model: str = MODEL, version: str = "", **more: Any) -> Any:
        return client.infer(model, inputs, model_version=version, headers=key(), **more)

    check(client.is_server_live() and client.is_server_ready(), "the server is live and ready")
    check(client.get_server_metadata()["name"] == "rankwright", "its name")
    for model, version in ((MODEL, ""), (MODEL, "1"), (f"{MODEL}@champion", "")):
        check(client.is_model_ready(model, version, headers=key()), f"{model} {version} is ready")
    found = client.get_model_metadata(MODEL, headers=key())
    check([each["name"] for each in found["inputs"]] == names, "names of the inputs")
    config = client.get_model_config(MODEL, headers=key())
    check([each["name"] for each in config["input"]] == names, "inputs of the configuration")
    check(client.get_model_config(MODEL, "1", headers=key()) == config, "that of a version")
    index = client.get_model_repository_index(headers=key())
    check(index == [{"name": MODEL, "version": "1", "state": "READY"}], "the repository's index")
    for shape in ("N", "N,1", "N,F"):
        for binary in (True, False):
            outputs = [triton.InferRequestedOutput("score", binary_data=binary)]
            answer = infer(tensors(shape, binary), outputs=outputs)
            check((answer.as_numpy("score") == scores).all(), f"[{shape}], binary {binary}")
    for coding in ("gzip", "deflate"):
        answer = infer(
            tensors("N,F", True),
            request_compression_algorithm=coding,
            response_compression_algorithm=coding,
        )
        check((answer.as_numpy("score") == scores).all(), coding)
        check(answer.as_numpy("tpr").shape == (len(X),), "rates are answered, too")
    for model, version in ((MODEL, "1"), (f"{MODEL}@champion", ""), (f"{MODEL}:1", "")):
        answer = infer(tensors("N,F", True), model, version)
        check((answer.as_numpy("score") == scores).all(), f"{model} {version}")
    text = np.array([["" if v != v else repr(v) for v in row] for row in X.tolist()], dtype=object)
    answer = infer([tensor("x", text, "BYTES", True)])
    check((answer.as_numpy("score") == scores).all(), "text as BYTES")
    single = X.astype(np.float32)
    answer = infer([tensor("x", single, "FP32", True)])
    check(np.abs(answer.as_numpy("score") - scores).max() < 1.0, "FP32")
    answer = infer(
        [tensor("x", X[:3].copy(), "FP64", True)], outputs=[triton.InferRequestedOutput("reasons")]
    )
    reasons = [json.loads(each) for each in answer.as_numpy("reasons")]
    check([each["score"] for each in reasons] == scores[:3].tolist(), "reasons")
    for wrong, model in (
        ([tensor("x", X[:, :2].copy(), "FP64", True)], MODEL),
        ([tensor(names[0], X[:, 0].copy(), "FP64", True)], MODEL),
        (tensors("N,F", True), "gone"),
    ):
        try:
            infer(wrong, model)
        except InferenceServerException as error:
            check(
                names[1] in str(error) or "shape" in str(error) or "gone" in str(error), str(error)
            )
        else:
            check(False, "a refusal")


def use_kserve(asked: dict[str, Any]) -> None:
    """JSON and binary with gaps, one row, readiness, and a refusal."""
    import asyncio

    import numpy as np
    from kserve import InferenceRESTClient, InferInput, InferRequest
    from kserve.inference_client import RESTConfig

    X, scores = np.array(asked["rows"], dtype=np.float64), np.array(asked["scores"])
    url = asked["url"] + "/oip"

    def key() -> dict[str, str]:
        # Anew for each call: the client writes the length of a binary request into the dict that it gets.
        return {"Authorization": f"Bearer {asked['key']}"}

    client = InferenceRESTClient(RESTConfig(protocol="v2"))

    async def infer(X: Any, binary: bool, model: str = MODEL) -> Any:
        tensor = InferInput("x", list(X.shape), "FP64")
        tensor.set_data_from_numpy(X, binary_data=binary)
        request = InferRequest(model_name=model, infer_inputs=[tensor])
        return await client.infer(url, request, headers=key(), model_name=model)

    async def run() -> None:
        check(await client.is_server_live(url, headers=key()), "the server is live")
        check(await client.is_server_ready(url, headers=key()), "the server is ready")
        check(await client.is_model_ready(url, MODEL, headers=key()), "the model is ready")
        for binary in (False, True):
            for rows in (X, X[:1]):
                answer = await infer(rows, binary)
                found = {output.name: output.as_numpy() for output in answer.outputs}
                check((found["score"] == scores[: len(rows)]).all(), f"binary {binary}")
                check(set(found) == {"score", "fpr", "tpr"}, "outputs")
        try:
            await infer(X[:, :2].copy(), False)
        except Exception as error:  # httpx's, or one of the client's, by its version
            check("422" in str(error) or "shape" in str(error), repr(error))
        else:
            check(False, "a refusal")

    asyncio.run(run())


def use_mlflow(asked: dict[str, Any]) -> None:
    """A frame with gaps and a column too many, an array, probabilities, and a refusal."""
    import numpy as np
    import pandas as pd
    from mlflow.pyfunc.scoring_server.client import ScoringServerClient

    host, _, port = asked["url"].removeprefix("http://").partition(":")
    client = ScoringServerClient(host, int(port))
    client.wait_server_ready(timeout=5)
    frame = pd.DataFrame(asked["rows"], columns=asked["names"], dtype=float)
    found = client.invoke(frame.assign(note="x")).get_predictions()
    check(np.ravel(found).tolist() == asked["scores"], "a frame")
    found = client.invoke(frame, params={"probability": True}).get_predictions()
    check(found["score"].tolist() == asked["scores"], "scores beside probabilities")
    check(found["probability"].tolist() == asked["probabilities"], "probabilities")
    whole = frame.notna().all(axis=1)
    found = client.invoke(frame[whole].to_numpy()).get_predictions()
    check(np.ravel(found).tolist() == np.array(asked["scores"])[whole].tolist(), "an array")
    try:
        client.invoke(frame[asked["names"][:1]])
    except Exception as error:
        check(asked["names"][1] in str(error), str(error))
    else:
        check(False, "a refusal")


def use_sagemaker(asked: dict[str, Any]) -> None:
    """What a SageMaker endpoint sends to its container: CSV without names, and JSON; and its pings."""
    import urllib.request

    def post(body: str, media_type: str, accept: str, **headers: str) -> str:
        headers |= {"Content-Type": media_type, "Accept": accept}
        request = urllib.request.Request(f"{asked['url']}/invocations", body.encode(), headers)
        with urllib.request.urlopen(request) as answer:
            return answer.read().decode()  # type: ignore[no-any-return]

    with urllib.request.urlopen(f"{asked['url']}/ping") as answer:
        check(answer.status == 200, "ping")
    rows = [["" if value is None else repr(value) for value in row] for row in asked["rows"]]
    found = post("\n".join(map(",".join, rows)), "text/csv; charset=utf-8", "text/csv")
    check([float(line) for line in found.split()] == asked["scores"], "CSV")
    body = json.dumps({"instances": asked["rows"]})
    found = json.loads(post(body, "application/json", "application/json"))["predictions"]
    check(found == asked["scores"], "JSON")
    attributes = {"X-Amzn-SageMaker-Custom-Attributes": "probability=true"}
    found = json.loads(post(body, "application/json", "application/json", **attributes))
    probabilities = [each["probability"] for each in found["predictions"]]
    check(probabilities == asked["probabilities"], "probabilities")


def check(holds: object, what: str) -> None:
    """End with what does not hold."""
    if not holds:
        sys.exit(f"it does not hold: {what}")


# --- outside -----------------------------------------------------------------------------------------


def run_in_environment(client: str, packages: str, asked: Path, folder: Path) -> None:
    """Install a client alone, and run it. Ends this process if it fails.

    It has the oldest Python that is here: KServe's client does not install on the newest.
    """
    from tools.pythons import find_pythons

    oldest = next(iter(find_pythons().values()), Path(sys.executable))
    without_pip = () if packages else ("--without-pip",)
    subprocess.run([oldest, "-m", "venv", *without_pip, folder], check=True)
    python = folder / "bin" / "python"
    if packages:
        subprocess.run([python, "-m", "pip", "install", "-q", *packages.split()], check=True)
    command = [str(python), "-I", __file__, "inside", client, str(asked)]
    if subprocess.run(command, cwd=folder, check=False).returncode:
        sys.exit(f"{packages or client} failed")
    sys.stdout.write(f"{packages or client}: the same scores\n")


def serve_and_run(clients: list[str], run: Callable[[str, str, Path, Path], None]) -> None:
    """Train a model on a service of our own, and `run` each client in each version against it."""
    from app.platform import migrate
    from app.platform.settings import Settings
    from tests.app.live_service import NAMES, OWNER, running, table

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "state").mkdir()
        settings = Settings(state_dir=folder / "state", served_model=MODEL, served_owner=OWNER)
        migrate.upgrade(settings.sqlalchemy_url)
        with running(settings) as service:
            key = service.key()
            ours = service.client(key)
            job = service.train(ours, service.upload(ours, table(ROWS)), name=MODEL)
            alias = f"/v1/models/{MODEL}/aliases/champion"
            ours.put(alias, json={"model_id": job["output"]["id"]}).raise_for_status()
            lines = [line.split(",")[:3] for line in table(ROWS, seed=1).splitlines()[1:]]
            rows = [[float(cell) if cell else None for cell in line] for line in lines]
            body = {"columns": NAMES, "data": rows}
            scores = ours.post(f"/v1/models/{MODEL}/score", json=body).raise_for_status().json()
            asked = folder / "asked.json"
            found = {name: scores[name] for name in ("scores", "probabilities")}
            given = {"url": service.url, "key": key, "names": NAMES, "rows": rows}
            asked.write_text(json.dumps(given | found))
            for client in clients:
                for i, packages in enumerate(CLIENTS[client]):
                    run(client, packages, asked, folder / f"{client}-{i}")


def main(arguments: list[str]) -> None:
    """Run all clients, or those that are named."""
    if arguments[:1] == ["inside"]:
        asked = json.loads(Path(arguments[2]).read_text())
        globals()[f"use_{arguments[1]}"](asked)
        return
    if unknown := set(arguments) - set(CLIENTS):
        sys.exit(f"a client must be one of {', '.join(CLIENTS)}, got {', '.join(unknown)}")
    serve_and_run(arguments or list(CLIENTS), run_in_environment)


if __name__ == "__main__":
    main(sys.argv[1:])
