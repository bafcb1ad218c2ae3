// Ask the search of the site: the addresses of the first results of each query. Reads {folder, queries} from the standard
// input, and writes {query: [location]}. The script of the search is that of the site itself.
const fs = require("fs");
const { folder, queries } = JSON.parse(fs.readFileSync(0, "utf8"));
const workers = `${folder}/assets/javascripts/workers/`;
const script = fs.readFileSync(workers + fs.readdirSync(workers).find((name) => name.startsWith("search")), "utf8");
const index = JSON.parse(fs.readFileSync(`${folder}/search.json`, "utf8"));
let resolve;
const worker = { postMessage: (message) => resolve(message) };
new Function("self", script)(worker);
const send = (message) => new Promise((done) => { resolve = done; worker.onmessage({ data: message }); });
(async () => {
  await send({ type: 0, data: index });
  const found = {};
  for (const query of queries) {
    const answer = await send({ type: 2, data: { input: query, filter: { input: [], aggregation: { input: [] } } } });
    found[query] = ((answer.data && answer.data.items) || []).slice(0, 10).map((each) => index.items[each.id].location);
  }
  process.stdout.write(JSON.stringify(found));
})();
