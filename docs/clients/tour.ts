// The tour by the types that openapi-typescript has made, and openapi-fetch: upload, train, wait, score in each format,
// evaluate. `make clients` makes the types (api.ts) and runs this against a service. It reads customers.csv, .ndjson and
// .arrow, and churn.csv and next_year.csv, which have the column `churned` as well.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Schemas = components["schemas"];

const { RANKWRIGHT_URL, RANKWRIGHT_API_KEY } = process.env;
const client = createClient<paths>({
  baseUrl: RANKWRIGHT_URL ?? "http://127.0.0.1:8000",
  headers: { Authorization: `Bearer ${RANKWRIGHT_API_KEY}` },
});

/** What was answered; a refusal ends the tour. */
function expect<T>({ data, error }: { data?: T; error?: unknown }): NonNullable<T> {
  if (data === undefined || data === null) {
    throw new Error(`refused: ${JSON.stringify(error)}`);
  }
  return data;
}

const WAIT = "wait=60";
const CSV = "text/csv";
const NDJSON = "application/x-ndjson";
const ARROW = "application/vnd.apache.arrow.stream";
const PARQUET = "application/vnd.apache.parquet";

/** The options of a request whose body is a table: bytes, as they are. The description calls them a binary string. */
function table(file: string, mediaType: string) {
  const bytes = readFileSync(file);
  return {
    body: file,
    bodySerializer: () => bytes,
    headers: { "Content-Type": mediaType },
  };
}

const upload = async (file: string, name: string): Promise<Schemas["Dataset"]> => {
  const found = expect(
    await client.POST("/v1/datasets", {
      params: { query: { name, label: "churned", positive: "1", kind: "bipartite" }, header: { prefer: WAIT } },
      ...table(file, CSV),
    }),
  );
  assert("status" in found, "a table that is only checked has no status");
  assert.equal(found.status, "ready");
  return found;
};
const data = await upload("churn.csv", "churn");
const later = await upload("next_year.csv", "next_year");

const request: Schemas["JobRequest"] = {
  dataset_id: data.id,
  name: "churn",
  algorithm: { name: "rankboost", n_rounds: 20 },
  objective: { metric: "pauc", fpr_max: 0.2 },
  validation: { method: "holdout", fraction: 0.3 },
  baselines: false,
  tags: { team: "risk" },
};
const submitted = expect(await client.POST("/v1/jobs", { params: { header: { prefer: WAIT } }, body: request }));
assert("state" in submitted, "a job that is only checked has no state");
let job: Schemas["Job"] = submitted;
while (job.state === "queued" || job.state === "running") {
  job = expect(
    await client.GET("/v1/jobs/{job_id}", { params: { path: { job_id: job.id }, header: { prefer: WAIT } } }),
  );
}
assert.equal(job.state, "succeeded");
const models = expect(await client.GET("/v1/models", { params: { query: { tag: ["team:risk"], search: "chu" } } }));
const [model] = models.data;
assert(model);
expect(
  await client.PUT("/v1/models/{name}/aliases/{alias}", {
    params: { path: { name: "churn", alias: "champion" }, header: { "if-none-match": "*" } },
    body: { model_id: model.id },
  }),
);
const metrics = expect(await client.GET("/v1/models/{ref}/metrics", { params: { path: { ref: "churn" } } }));
assert("auc" in metrics && metrics.auc.value !== null && metrics.auc.value > 0.6);

const path = { ref: "churn@champion" };
const [head = "", ...lines] = readFileSync("customers.csv", "utf8").trim().split("\n");
const columns = head.split(",");
const cells = lines.map((line) => line.split(",").map((value) => (value === "" ? null : Number(value))));
const asLists: Schemas["RowsAsLists"] = { columns, data: cells };
const asObjects: Schemas["RowsAsObjects"] = {
  rows: cells.map((row) => Object.fromEntries(columns.map((name, place) => [name, row[place] ?? null]))),
};
const scored = expect(await client.POST("/v1/models/{ref}/score", { params: { path }, body: asObjects }));
assert(typeof scored === "object", "tables are texts");
assert.equal(scored.scores.length, cells.length);
assert.deepEqual(expect(await client.POST("/v1/models/{ref}/score", { params: { path }, body: asLists })), scored);
for (const [file, mediaType] of [
  ["customers.csv", CSV],
  ["customers.ndjson", NDJSON],
  ["customers.arrow", ARROW],
] as const) {
  const answer = await client.POST("/v1/models/{ref}/score", { params: { path }, ...table(file, mediaType) });
  assert.deepEqual(expect(answer), scored, mediaType);
}
for (const mediaType of [CSV, NDJSON, ARROW, PARQUET]) {
  const { data: bytes, response } = await client.POST("/v1/models/{ref}/score", {
    params: { path },
    body: asLists,
    headers: { Accept: mediaType },
    parseAs: "arrayBuffer",
  });
  assert(bytes && bytes.byteLength > 0);
  assert(response.headers.get("content-type")?.startsWith(mediaType), mediaType);
}
const features = Object.fromEntries(columns.flatMap((name, place) => {
  const value = cells[0]?.[place];
  return value === null || value === undefined ? [] : [[name, String(value)]];
}));
// `features` is exploded: each is a parameter of its own.
const one = expect(
  await client.GET("/v1/models/{ref}/score", {
    params: { path, query: { features } },
    querySerializer: () => new URLSearchParams(features).toString(),
  }),
);
assert("score" in one);
assert.equal(one.score, scored.scores[0]);
const ranked = expect(
  await client.POST("/v1/models/{ref}/rank", { params: { path, query: { top: 3 } }, body: asObjects }),
);
assert(typeof ranked === "object");
assert.equal(ranked.indices.length, 3);
const explained = expect(await client.POST("/v1/models/{ref}/explain", { params: { path }, body: asLists }));
assert.equal(explained.explanations.length, cells.length);

const batch = expect(
  await client.POST("/v1/batch-scores", {
    params: { query: { model: "churn@champion" }, header: { prefer: WAIT } },
    ...table("customers.csv", CSV),
  }),
);
assert("status" in batch);
assert.equal(batch.status, "ready");
const result = expect(
  await client.GET("/v1/batch-scores/{batch_score_id}/result", {
    params: { path: { batch_score_id: batch.id }, query: { format: "csv" } },
    parseAs: "text",
  }),
);
assert.equal(result.trim().split("\n").length, cells.length + 1);

const judged = expect(
  await client.POST("/v1/evaluations", {
    params: { header: { prefer: WAIT } },
    body: { model: "churn@champion", dataset_id: later.id },
  }),
);
assert("status" in judged);
assert.equal(judged.status, "ready");
assert(judged.metrics && "auc" in judged.metrics && (judged.metrics.auc.value ?? 0) > 0.6);
const jobs = expect(await client.GET("/v1/jobs", { params: { query: { tag: ["team"], state: "succeeded" } } }));
assert.deepEqual(jobs.data.map(({ id }) => id), [job.id]);
const { error } = await client.POST("/v1/jobs", {
  body: { dataset_id: data.id, algorithm: { name: "rankboost", n_rounds: 0 } },
});
assert.equal(error?.status, 422);
console.log("the tour by the TypeScript client is done");
