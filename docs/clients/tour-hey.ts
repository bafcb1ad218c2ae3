// The tour by the client that @hey-api/openapi-ts has made: upload, train, wait, score, evaluate. `make clients` makes the
// client and runs this against a service. It reads churn.csv and next_year.csv. uploadDataset writes every body as JSON: a
// table is sent by `client.post`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { client } from "./client/client.gen";
import { createEvaluation, readJob, scoreRows, submitJob } from "./client";
import type { Dataset, JobRequest, UploadDatasetResponses } from "./client";

const { RANKWRIGHT_URL, RANKWRIGHT_API_KEY } = process.env;
client.setConfig({ baseUrl: RANKWRIGHT_URL ?? "", auth: () => RANKWRIGHT_API_KEY, throwOnError: true });
const headers = { prefer: "wait=60" };

async function upload(name: string): Promise<Dataset> {
  const body = new Blob([readFileSync(`${name}.csv`)]);
  const query = { name, label: "churned", positive: "1" };
  const { data } = await client.post<UploadDatasetResponses, unknown, true>({
    url: "/v1/datasets", security: [{ scheme: "bearer", type: "http" }], query, body, bodySerializer: null,
    headers: { ...headers, "Content-Type": "text/csv" }, throwOnError: true,
  });
  assert.equal(data.status, "ready");
  return data;
}
const data = await upload("churn");
const later = await upload("next_year");

const request: JobRequest = {
  dataset_id: data.id, name: "churn", algorithm: { name: "rankboost", n_rounds: 20 }, baselines: false,
};
let { data: job } = await submitJob({ body: request, headers, throwOnError: true });
while (job.state === "queued" || job.state === "running") {
  ({ data: job } = await readJob({ path: { job_id: job.id }, headers, throwOnError: true }));
}
assert.equal(job.state, "succeeded");

const rows = [{ age: 40, income: 3, "score 1": 1 }, { age: 60, income: 2, "score 1": null }];
const { data: scored } = await scoreRows({ path: { ref: "churn" }, body: { rows }, throwOnError: true });
assert(typeof scored === "object" && "scores" in scored);
assert.equal(scored.scores.length, rows.length);

const body = { model: "churn", dataset_id: later.id };
const { data: judged } = await createEvaluation({ body, headers, throwOnError: true });
assert.equal(judged.status, "ready");
const refused = await submitJob({ body: { ...request, dataset_id: "ds_none" }, throwOnError: false });
assert.equal(refused.response?.status, 404);
console.log("the tour by the client of hey-api is done");
