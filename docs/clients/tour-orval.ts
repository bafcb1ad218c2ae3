// The tour by the client that orval has made: upload, train, wait, score, evaluate. `make clients` makes the client and runs
// this against a service. It reads churn.csv and next_year.csv. orval writes every body as JSON: a table is sent by `fetch`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createEvaluation, getUploadDatasetUrl, readJob, scoreRows, submitJob } from "./client";
import type { Dataset, JobRequest } from "./client";

const { RANKWRIGHT_URL, RANKWRIGHT_API_KEY } = process.env;
const send = globalThis.fetch;
globalThis.fetch = (address, options) => {
  const headers = { ...(options?.headers as Record<string, string>), Authorization: `Bearer ${RANKWRIGHT_API_KEY}` };
  return send(`${RANKWRIGHT_URL}${address}`, { ...options, headers });
};
const headers = { "Content-Type": "application/json", Prefer: "wait=60" };

async function upload(name: string): Promise<Dataset> {
  const answer = await fetch(getUploadDatasetUrl({ name, label: "churned", positive: "1" }), {
    method: "POST", body: readFileSync(`${name}.csv`), headers: { "Content-Type": "text/csv", Prefer: "wait=60" },
  });
  const found = (await answer.json()) as Dataset;
  assert.equal(found.status, "ready");
  return found;
}
const data = await upload("churn");
const later = await upload("next_year");

const request: JobRequest = {
  dataset_id: data.id, name: "churn", algorithm: { name: "rankboost", n_rounds: 20 }, baselines: false,
};
const submitted = await submitJob(request, { headers });
assert(submitted.status === 201 || submitted.status === 202);
let job = submitted.data;
while (job.state === "queued" || job.state === "running") {
  const found = await readJob(job.id, { headers });
  assert(found.status === 200);
  job = found.data;
}
assert.equal(job.state, "succeeded");

const rows = [{ age: 40, income: 3, "score 1": 1 }, { age: 60, income: 2, "score 1": null }];
const scored = await scoreRows("churn", { rows }, undefined, { headers });
assert(scored.status === 200 && typeof scored.data === "object" && "scores" in scored.data);
assert.equal(scored.data.scores.length, rows.length);

const judged = await createEvaluation({ model: "churn", dataset_id: later.id }, { headers });
assert(judged.status === 201);
assert.equal(judged.data.status, "ready");
assert.equal((await submitJob({ ...request, dataset_id: "ds_none" }, { headers })).status, 404);
console.log("the tour by the client of orval is done");
