// Uploads of tables: a progress bar, what the API says of a refusal, and for a new table what its first rows look like.

const busy = document.getElementById("busy");
for (const form of document.querySelectorAll("form[data-upload]")) prepare(form);
document.addEventListener("htmx:load", (event) => {
  for (const form of event.target.querySelectorAll("form[data-upload]")) prepare(form);
});

function prepare(form) {
  if (form.dataset.prepared) return;
  form.dataset.prepared = "yes";
  const part = (name) => form.querySelector(`[data-${name}]`);
  const file = form.elements.namedItem("file");
  let under_way = null;

  const check = part("check");
  if (check) {
    check.hidden = false;
    check.addEventListener("click", () => { if (form.reportValidity()) send(true); });
  }
  form.addEventListener("submit", (event) => { event.preventDefault(); if (!under_way) send(false); });
  part("stop").addEventListener("click", () => under_way?.abort());

  async function send(only_check) {
    rest(false);
    const words = await find_foreign(file.files[0]);
    rest(true);
    if (words) { show([{ detail: words }], "problem"); return; }
    const body = new FormData();
    for (const [name, value] of new FormData(form)) {
      if (name !== "csrf" && name !== "file" && value !== "") body.append(name, value);
    }
    body.append("file", file.files[0]);
    const request = under_way = new XMLHttpRequest();
    request.open("POST", form.dataset.upload + (only_check ? "?validate=true" : ""));
    request.setRequestHeader("x-csrf-token", form.elements.namedItem("csrf").value);
    part("outcome").replaceChildren();
    part("progress").hidden = false;
    rest(false);
    tell(0, "Uploading");
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) tell(event.loaded / event.total, `Uploading: ${size(event.loaded)} of ${size(event.total)}`);
    });
    request.upload.addEventListener("load", () => tell(null, only_check ? "Checking …" : "The service stores the file …"));
    const ended = (words) => {
      under_way = null;
      rest(true);
      part("progress").hidden = true;
      busy.textContent = "";
      if (words) show([{ detail: words }], "problem");
    };
    request.addEventListener("load", () => {
      ended();
      if (new URL(request.responseURL).pathname !== new URL(form.dataset.upload, location).pathname || request.getResponseHeader("x-session-changed")) { window.come_back(); return; }  // the session has ended, or is another
      let answer;
      try { answer = JSON.parse(request.responseText); } catch { answer = { title: "The service sent an answer that cannot be read", detail: "" }; }
      if (request.status >= 400) refuse(answer);
      else if (only_check) praise(answer);
      else location.assign(form.dataset.leads + encodeURIComponent(answer.id));
    });
    request.addEventListener("error", () => ended("The connection ended before the answer. Nothing of the upload was stored. Try again."));
    request.addEventListener("abort", () => ended("Stopped. Nothing was stored."));
    request.send(body);
  }

  function rest(may) {
    for (const button of form.querySelectorAll("button:not([data-stop])")) button.disabled = !may;
  }

  function tell(share, words) {
    const bar = form.querySelector("progress");
    if (share === null) bar.removeAttribute("value"); else bar.value = share;
    part("told").textContent = words;
  }

  function refuse(answer) {
    const errors = answer.errors || [];
    const box = make("div", { class: "problem", role: "alert" }, make("p", {}, make("strong", {}, `${answer.title}. `), answer.detail || ""));
    if (errors.some((each) => each.line !== undefined || each.column !== undefined)) {
      const rows = errors.map((each) => make("tr", {}, make("td", { class: "n" }, each.line ?? "–"), make("td", {}, each.column ?? "–"), make("td", {}, each.detail)));
      box.append(make("table", {}, make("thead", {}, make("tr", {}, make("th", { class: "n" }, "Line"), make("th", {}, "Column"), make("th", {}, "What is wrong"))), make("tbody", {}, ...rows)));
    } else if (errors.length > 1) {
      box.append(make("ul", {}, ...errors.slice(0, 20).map((each) => make("li", {}, each.detail))));
    }
    const suggestion = errors.find((each) => each.suggestion)?.suggestion;
    if (suggestion) {
      const said = Object.entries(suggestion);
      const button = make("button", { type: "button" }, `Fill in ${said.map(([name, value]) => `${name} = ${value}`).join(", ")}`);
      button.addEventListener("click", () => { for (const [name, value] of said) if (form.elements.namedItem(name)) form.elements.namedItem(name).value = value; });
      box.append(make("p", {}, button));
    }
    part("outcome").replaceChildren(box);
    box.scrollIntoView({ block: "nearest" });
  }

  function praise(answer) {
    const words = [`${answer.rows.toLocaleString("en")} rows`];
    if (!answer.columns) { show([{ detail: `The file can be used: ${words[0]}. Nothing was stored.` }], "done"); return; }  // rows to score
    if (answer.positives !== null) words.push(`${answer.positives.toLocaleString("en")} positives`);
    const types = answer.columns.map((each) => `${each.name} (${each.role === "feature" ? each.type : each.role})`);
    show([{ detail: `The file can be used: ${words.join(", ")}. Nothing was stored.` }, { detail: types.join(", ") }, ...answer.warnings.map((each) => ({ detail: `${each.column}: ${each.detail}` }))], "done");
    list("columns", answer.columns.map((each) => each.name));
  }

  function show(lines, kind) {
    part("outcome").replaceChildren(make("div", { class: kind, role: kind === "problem" ? "alert" : "status" }, ...lines.map((each) => make("p", {}, each.detail))));
  }

  // Dropping a file anywhere on the form is choosing it.
  const drop = form.querySelector(".drop");
  if (drop) {
    for (const type of ["dragover", "dragenter"]) form.addEventListener(type, (event) => { event.preventDefault(); drop.classList.add("over"); });
    for (const type of ["dragleave", "drop"]) form.addEventListener(type, () => drop.classList.remove("over"));
    form.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files.length) { file.files = event.dataTransfer.files; file.dispatchEvent(new Event("change")); }
    });
  }
  file.addEventListener("change", async () => {
    const chosen = file.files[0];
    part("outcome").replaceChildren();
    if (part("preview")) part("preview").hidden = true;
    const words = await find_foreign(chosen);
    if (chosen !== file.files[0]) return;  // another was chosen meanwhile
    if (words) show([{ detail: words }], "problem");
    else if (chosen && part("preview")) preview(form, part, chosen);
  });
}

// --- files that are no table, refused before a byte is sent ---------------------------------------

const SAVE = "Save the sheet as CSV, and choose that file.", UNPACK = "Unpack it, and choose the table in it.";
const FOREIGN = [  // the first bytes, as Latin letters; what the service says of them is in app/ingest/csv.py
  ["PK\x03\x04", "is a ZIP archive or a spreadsheet", SAVE],
  ["PK\x05\x06", "is an empty ZIP archive", SAVE],
  ["\xd0\xcf\x11\xe0", "is a spreadsheet or another document of old Office", SAVE],
  ["%PDF", "is a PDF", "Save the table as CSV, and choose that file."],
  ["\x89PNG", "is a picture", "Save the table as CSV, and choose that file."],
  ["\xff\xd8\xff", "is a picture", "Save the table as CSV, and choose that file."],
  ["7z\xbc\xaf", "is a 7z archive", UNPACK],
  ["Rar!", "is a RAR archive", UNPACK],
  ["\xfd7zXZ\0", "is compressed with xz", "Unpack it, or compress it with gzip or zstd, and choose that file."],
];

async function find_foreign(file) {  // what is wrong with it, and what to do; null: it may be a table
  if (!file) return null;
  if (!file.size) return `“${file.name}” is empty. Choose a file with a header line and rows.`;
  if (/\.(xlsx?|xlsm|xlsb|ods|numbers)$/i.test(file.name)) return `“${file.name}” is a spreadsheet. ${SAVE}`;
  let head;
  try { head = String.fromCharCode(...new Uint8Array(await file.slice(0, 8).arrayBuffer())); } catch { return `“${file.name}” cannot be read. Choose it again.`; }
  const found = FOREIGN.find(([first]) => head.startsWith(first));
  return found ? `“${file.name}” ${found[1]}. ${found[2]}` : null;
}

// --- the first rows of a file, read here ---------------------------------------------------------

const MAX_BYTES = 1 << 18, MAX_ROWS = 500, MAX_SHOWN = 200;
const MISSING = new Set(["", "na", "n/a", "null", "nan", "?"]);
const LABELS = ["label", "target", "class", "y"];

async function preview(form, part, file) {
  const name = form.elements.namedItem("name");
  if (!name.value || name.dataset.guessed) {
    name.value = file.name.replace(/\.(gz|zst)$/i, "").replace(/\.[a-z]+$/i, "");
    name.dataset.guessed = "yes";
  }
  let table = null;
  try { table = await read(file); } catch { table = null; }
  const summary = part("summary");
  part("preview").hidden = false;
  part("columns").replaceChildren();
  if (!table || !table.names.length) {
    summary.textContent = `${file.name}, ${size(file.size)}. There is no preview of this format here. Name the label's column below; “Check without keeping” reads Arrow, CSV and NDJSON up to ${form.dataset.most}, and workers read Parquet.`;
    return;
  }
  summary.textContent = `${file.name}, ${size(file.size)}: ${table.names.length} columns; these are guesses from the first ${table.rows.length} rows.`;
  list("columns", table.names);
  const columns = table.names.map((each, at) => ({ name: each, ...guess(table.rows.map((row) => row[at] ?? "")) }));
  const label = form.elements.namedItem("label");
  if (!label.value || !table.names.includes(label.value)) {
    label.value = LABELS.find((each) => table.names.includes(each)) ?? table.names.at(-1);
  }
  const selects = columns.slice(0, MAX_SHOWN).map((column) => row_of(part("columns"), column));
  const all = () => columns.map((column, at) => [column, selects[at]?.value ?? "feature"]);
  for (const [at, select] of selects.entries()) {
    if (columns[at].name === label.value) select.value = "label";
    select.addEventListener("change", () => {
      if (["label", "weight", "group", "query", "item"].includes(select.value) && form.elements.namedItem("kind").value !== "multilabel") {
        for (const other of selects) if (other !== select && other.value === select.value) other.value = "feature";
      }
      take_over();
    });
  }
  form.elements.namedItem("kind").onchange = take_over;

  function take_over() {  // what the table says goes into the form's fields
    const named = (use) => all().filter(([, value]) => value === use).map(([column]) => column.name);
    const several = form.elements.namedItem("kind").value === "multilabel";
    const set = (field, names) => { form.elements.namedItem(field).value = names.map(names.length > 1 || LIST.has(field) ? quote : (one) => one).join(","); };
    const labels = named("label");
    set("label", several ? [] : labels);
    set("labels", several ? labels : []);
    set("weight", named("weight"));
    set("group", named("group"));
    set("query", named("query"));
    set("item", named("item"));
    set("drop", named("leave out"));
    set("categorical", named("categories"));
    set("numeric", named("numbers"));
    choose_positive();
  }

  function choose_positive() {
    const column = columns.find((each) => each.name === label.value);
    const positive = form.elements.namedItem("positive");
    list("values", column ? column.values.slice(0, 50) : []);
    if (!column || (positive.value && !positive.dataset.guessed)) return;
    const [guessed, why] = guess_positive(column);
    positive.value = guessed;
    positive.dataset.guessed = "yes";
    note_of(positive).textContent = guessed && `A guess: “${guessed}” ${why}. Is it what you want at the top of the list?`;
  }
  form.elements.namedItem("positive").oninput = (event) => {
    delete event.target.dataset.guessed;
    note_of(event.target).textContent = "";
  };
  label.onchange = () => {
    for (const [at, select] of selects.entries()) {
      if (columns[at].name === label.value) select.value = "label"; else if (select.value === "label") select.value = "feature";
    }
    choose_positive();
  };
  choose_positive();
}

const note_of = (field) => document.getElementById(`g-${field.name}`);

// Of a label's two values: the one whose word says it, else the rarer one among the first rows.
const POSITIVE = new Set([
  ..."true yes y t positive pos + fraud fraudulent malignant bad spam churn churned left lost default defaulted".split(" "),
  ..."failed failure fault faulty sick ill dead died attack anomaly abnormal".split(" "),
]);

function guess_positive(column) {
  const two = column.values;
  if (two.length !== 2) return ["", ""];
  const numbers = two.map(Number);
  const plain = numbers.every(Number.isFinite) ? two.filter((_, at) => numbers[at] === 1 && numbers[1 - at] <= 0) : two.filter((value) => POSITIVE.has(value.toLowerCase()));
  if (plain.length === 1) return [plain[0], "is the usual word for it"];
  const [rarer, other] = two.toSorted((a, b) => column.counts.get(a) - column.counts.get(b) || (numbers.every(Number.isFinite) ? b - a : a < b ? 1 : -1));
  return [rarer, `is the rarer of the two: ${column.counts.get(rarer)} of the first rows, “${other}” ${column.counts.get(other)}`];
}

const LIST = new Set(["labels", "drop", "categorical", "numeric"]);
const quote = (name) => /[",]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
const USES = ["feature", "label", "weight", "group", "query", "leave out", "categories", "numbers", "item"];
const WORDS = { feature: "feature", label: "label", weight: "weights", group: "groups", query: "queries", "leave out": "leave out", categories: "feature, as words", numbers: "feature, as numbers", item: "item's name" };

function row_of(body, column) {
  const select = make("select", { "aria-label": `Use ${column.name} as` }, ...USES.map((use) => make("option", { value: use }, WORDS[use])));
  const shown = column.values.slice(0, 4).map((value) => value.length > 24 ? value.slice(0, 23) + "…" : value).join(", ");
  body.append(make("tr", {}, make("td", { class: "wrap" }, make("strong", {}, column.name)), make("td", {}, column.type + (column.gaps ? `, ${column.gaps} gaps` : "")), make("td", {}, select), make("td", { class: "wrap" }, shown)));
  return select;
}

async function read(file) {
  const name = file.name.toLowerCase();
  let stream = file.slice(0, MAX_BYTES).stream();
  if (/\.(parquet|arrow|arrows|feather|zst)$/.test(name)) return null;
  if (name.endsWith(".gz")) stream = stream.pipeThrough(new DecompressionStream("gzip"));
  const bytes = await gather(stream);
  const wide = bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : "utf-8";
  const text = new TextDecoder(wide).decode(bytes);
  if (text.includes("\0")) return null;
  const whole = bytes.length < MAX_BYTES && file.size <= MAX_BYTES;
  return /^\s*\{/.test(text) ? of_lines(text, whole) : of_csv(text, whole);
}

async function gather(stream) {
  const parts = [];
  let total = 0;
  const reader = stream.getReader();
  try {
    while (total < MAX_BYTES) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      total += value.length;
    }
    await reader.cancel();
  } catch { /* a compressed file that was cut: what came is enough */ }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

function of_lines(text, whole) {
  const lines = text.split("\n").filter((line) => line.trim());
  if (!whole && lines.length > 1) lines.pop();
  const found = [];
  for (const line of lines.slice(0, MAX_ROWS)) try { found.push(JSON.parse(line)); } catch { break; }
  const names = [...new Set(found.flatMap(Object.keys))];
  return { names, rows: found.map((row) => names.map((name) => row[name] === null || row[name] === undefined ? "" : String(row[name]))) };
}

function of_csv(text, whole) {
  const head = text.split(/\r\n|\r|\n/, 1)[0];
  const counts = [";", "\t", "|"].map((mark) => [head.split(mark).length - 1, mark]).sort((a, b) => b[0] - a[0]);
  const mark = head.includes(",") || !counts[0][0] ? "," : counts[0][1];
  const rows = [];
  let row = [], value = "", quoted = false;
  for (let at = text.charCodeAt(0) === 0xfeff ? 1 : 0; at < text.length && rows.length <= MAX_ROWS; at++) {
    const sign = text[at];
    if (quoted) {
      if (sign !== '"') value += sign;
      else if (text[at + 1] === '"') { value += sign; at++; } else quoted = false;
    } else if (sign === '"' && value.trim() === "") { quoted = true; value = ""; }
    else if (sign === mark) { row.push(value.trim()); value = ""; }
    else if (sign === "\n" || sign === "\r") {
      if (sign === "\r" && text[at + 1] === "\n") at++;
      row.push(value.trim());
      if (row.length > 1 || row[0] !== "") rows.push(row);
      row = []; value = "";
    } else value += sign;
  }
  if (whole && (row.length || value) && rows.length <= MAX_ROWS) rows.push([...row, value.trim()]);
  const [names = [], ...rest] = rows;
  return { names, rows: rest };
}

function guess(values) {
  const known = values.filter((value) => !MISSING.has(value.toLowerCase()));
  const share = (test) => known.length ? known.filter(test).length / known.length : 0;
  const counts = new Map();
  for (const value of known) counts.set(value, (counts.get(value) ?? 0) + 1);
  const distinct = [...counts.keys()];
  let type = "words";
  if (!known.length) type = "empty";
  else if (known.every((value) => /^(true|false)$/i.test(value))) type = "true or false";
  else if (share((value) => /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(value)) > 0.9) type = "numbers";
  else if (share((value) => /^\d{4}-\d\d-\d\d([ T]|$)/.test(value)) > 0.9) type = "dates";
  else if (known.length >= 20 && distinct.length > 0.9 * known.length) type = "identifiers";
  return { type, gaps: values.length - known.length, values: distinct, counts };
}

// --- small things --------------------------------------------------------------------------------

function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function list(id, values) {
  document.getElementById(id)?.replaceChildren(...values.map((value) => make("option", { value })));
}

function size(bytes) {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (bytes < 1000) return `${unit === "B" ? bytes : bytes.toFixed(1)} ${unit}`;
    bytes /= 1000;
  }
  return `${bytes.toFixed(1)} TB`;
}
