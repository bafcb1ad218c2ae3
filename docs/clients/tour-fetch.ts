// The tour by the client that openapi-generator has made for TypeScript (typescript-fetch): upload, train, wait, score,
// evaluate. `make clients` makes the client and runs this against a service. It reads churn.csv and next_year.csv.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Configuration, DatasetsApi, EvaluationsApi, JobsApi, ResponseError, ScoringApi } from "./client";
import type { Dataset, JobRequest } from "./client";

const { RANKWRIGHT_URL, RANKWRIGHT_API_KEY } = process.env;
const configuration = new Configuration({ basePath: RANKWRIGHT_URL ?? "", accessToken: RANKWRIGHT_API_KEY ?? "" });
const jobs = new JobsApi(configuration);
const prefer = "wait=60";

async function upload(name: string): Promise<Dataset> {
  const body = new Blob([readFileSync(`${name}.csv`)]);
  const found = await new DatasetsApi(configuration).uploadDataset({ body, name, label: "churned", positive: "1", prefer });
  assert.equal(found.status, "ready");
  return found;
}
const data = await upload("churn");
const later = await upload("next_year");

const jobRequest: JobRequest = {
  datasetId: data.id, name: "churn", algorithm: { name: "rankboost", nRounds: 20 }, baselines: false,
};
let job = await jobs.submitJob({ jobRequest, prefer });
while (job.state === "queued" || job.state === "running") job = await jobs.readJob({ jobId: job.id, prefer });
assert.equal(job.state, "succeeded");

const rows = [{ age: 40, income: 3, "score 1": 1 }, { age: 60, income: 2, "score 1": 0.5 }];
const scored = await new ScoringApi(configuration).scoreRows({ ref: "churn", scoreRowsRequest: { rows } });
assert("scores" in scored);
assert.equal(scored.scores.length, rows.length);

const judged = await new EvaluationsApi(configuration).createEvaluation({
  evaluationRequest: { model: "churn", datasetId: later.id }, prefer,
});
assert.equal(judged.status, "ready");
await assert.rejects(
  jobs.submitJob({ jobRequest: { ...jobRequest, datasetId: "ds_none" } }),
  (refusal) => refusal instanceof ResponseError && refusal.response.status === 404,
);
console.log("the tour by the client for fetch is done");
