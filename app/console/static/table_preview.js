// What is in a table, read here from its first bytes: its columns, and the values of its label. The same step for the
// label is on the page of a dataset, where the service has counted.

for (const form of document.querySelectorAll("form[data-upload]")) {
  if (!form.querySelector("[data-preview]")) continue;
  form.addEventListener("table-chosen", (event) => preview(form, (name) => form.querySelector(`[data-${name}]`), event.detail));
  form.addEventListener("label-counted", ({ detail }) => {
    const rows = detail.values.reduce((sum, each) => sum + each.count, 0);
    ask(form, { name: detail.column, counts: new Map(detail.values.map((each) => [each.value, each.count])), rows, where: "by the service" });
  });
}
const steps = (root) => { for (const form of root.querySelectorAll("form[data-label-form]")) watch(form, null); };
steps(document);
document.addEventListener("htmx:load", (event) => steps(event.target));


const MAX_BYTES = 1 << 18, MAX_ROWS = 5000, MAX_SHOWN = 200;
const MISSING = new Set(["", "na", "n/a", "null", "nan", "?"]);
const LABELS = ["label", "target", "class", "y"];

// The column that the service would take: one that is called a label, or the last. A running number there counts rows:
// then the last column of two values.
function guess_label({ names, rows }) {
  const last = names.findLast(Boolean), values = (name) => rows.map((row) => row[names.indexOf(name)] ?? "");
  const named = LABELS.find((each) => names.includes(each));
  if (named || !last) return named ?? "";
  const numbers = values(last);
  const rises = (text, at) => /^[+-]?[0-9]+$/.test(text) && (!at || Number(text) > Number(numbers[at - 1]));
  if (numbers.length < 3 || !numbers.every(rises)) return last;
  const two = names.filter((name) => name && name !== last && new Set(values(name).filter(Boolean)).size === 2);
  return two.findLast((name) => LABELS.includes(name.toLowerCase())) ?? two.at(-1) ?? last;
}

async function preview(form, part, file) {
  const name = form.elements.namedItem("name");
  if (!name.value || name.dataset.guessed) {
    name.value = file.name.replace(/\.(gz|zst)$/i, "").replace(/\.[a-z]+$/i, "");
    name.dataset.guessed = "yes";
    name.dispatchEvent(new Event("change", { bubbles: true }));  // so that it is asked who has this name
  }
  let table = null;
  const encoding = form.elements.namedItem("encoding");
  encoding.onchange = () => preview(form, part, file);
  encoding.setCustomValidity("");
  try { table = await read(file, encoding.value); } catch { table = null; }
  if (file !== form.elements.namedItem("file").files[0]) return;  // another was chosen meanwhile
  delete form.querySelector("[data-label-step]").dataset.of;
  const summary = part("summary");
  part("preview").hidden = false;
  part("columns").replaceChildren();
  part("hint").hidden = true;
  form.elements.namedItem("decimal").setCustomValidity("");
  if (!table || !table.names.length) {
    summary.textContent = `${file.name}, ${size(file.size)}. This format has no preview. Enter the label column below. After the upload you can choose the positive values on the dataset page.`;
    ask(form, null);
    return;
  }
  const whole_file = table.whole;
  summary.textContent = `${file.name}, ${size(file.size)}: ${table.names.length} columns. Types are guessed from ${whole_file ? "all" : "the first"} ${table.rows.length.toLocaleString("en")} rows.`;
  list("columns", table.names);
  const fields = Object.fromEntries(NOTATION.map((each) => [each, form.elements.namedItem(each)]));
  const said = () => Object.fromEntries(NOTATION.map((each) => [each, fields[each].value]));
  const columns = table.names.map((each) => ({ name: each }));
  const look = () => {
    for (const [at, column] of columns.entries()) Object.assign(column, guess(table.rows.map((row) => row[at] ?? ""), said()));
    settle_dates(columns, fields.dates.value);
  };
  look();
  const label = form.elements.namedItem("label");
  if (!label.value || !table.names.includes(label.value)) {
    label.value = guess_label(table);
  }
  const selects = columns.slice(0, MAX_SHOWN).map((column) => row_of(part("columns"), column));
  const tell = () => {
    look();
    for (const [at, select] of selects.entries()) tell_type(select.closest("tr"), columns[at]);
    hint(part("hint"), columns, fields, tell);
    if (table.foreign) ask_letters(part("hint"), encoding, table.names);
  };
  for (const field of Object.values(fields)) field.onchange = tell;
  tell();
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
    ask(form, column && { name: column.name, counts: column.counts, rows: table.rows.length - column.gaps, where: whole_file ? "in the file" : `in the first ${table.rows.length.toLocaleString("en")} rows` });
  }
  label.onchange = () => {
    for (const [at, select] of selects.entries()) {
      if (columns[at].name === label.value) select.value = "label"; else if (select.value === "label") select.value = "feature";
    }
    choose_positive();
  };
  choose_positive();
}

// --- the label: which of its values are those that are wanted at the top ----------------------------

const MAX_VALUES = 100;  // beyond, a column is no label of classes
// Words that say which of two values is wanted. For all others the rarer one is a guess, and the reader decides.
const POSITIVE = new Set([
  ..."true yes y t positive pos + fraud fraudulent malignant bad spam churn churned left lost default defaulted".split(" "),
  ..."failed failure fault faulty sick ill dead died attack anomaly abnormal".split(" "),
]);

function guess_positive(counts) {  // the value, why, and whether there is no doubt
  const two = [...counts.keys()], numbers = two.map(Number);
  const usual = numbers.every(Number.isFinite) ? two.filter((_, at) => numbers[at] === 1 && numbers[1 - at] <= 0) : two.filter((value) => POSITIVE.has(value.toLowerCase()));
  if (two.length === 2 && usual.length === 1) return [usual[0], `“${usual[0]}” usually means positive, so it is selected.`, true];
  const [rarer, next] = two.toSorted((a, b) => counts.get(a) - counts.get(b));
  if (two.length !== 2 || counts.get(rarer) === counts.get(next)) return [null, "", false];
  return [rarer, `“${rarer}” is the rarer value, which is often the positive one.`, false];
}

// Fill in the step for a column of the label: its name, its values with their rows, the rows that have one, and where they were counted.
function ask(form, column) {
  const step = form.querySelector("[data-label-step]"), field = form.elements.namedItem("positive");
  const kind = form.elements.namedItem("kind").value || "bipartite", note = document.getElementById("g-positive");
  const n = column?.counts.size ?? 0;
  const fits = kind === "bipartite" && n >= 2 && n <= MAX_VALUES;
  step.hidden = !fits;
  field.closest("div").hidden = fits;
  note.textContent = "";
  step.querySelector("[data-label-values]").replaceChildren();
  if (!fits) {
    if (kind === "bipartite" && n === 1) note.textContent = `“${column.name}” has only the value “${[...column.counts.keys()][0]}” ${column.where}. Enter the positive value, or leave this empty and choose it on the dataset page.`;
    if (kind === "bipartite" && n > MAX_VALUES) note.textContent = `“${column.name}” has ${n.toLocaleString("en")} different values ${column.where}. Is this the right column? A label usually has two values.`;
    return;
  }
  if (step.dataset.of !== column.name) { if (step.dataset.of !== undefined) field.value = ""; step.dataset.of = column.name; }
  const [guessed, why, certain] = guess_positive(column.counts);
  const wanted = new Set([field.value, ...names_of(field.value)]);
  const ordered = [...column.counts].sort((a, b) => b[1] - a[1]);
  if (!ordered.some(([value]) => wanted.has(value)) && certain) wanted.add(guessed);
  step.querySelector("[data-label-values]").replaceChildren(...ordered.map(([value, count], at) => {
    const box = make("input", { type: "checkbox", id: `v-${at}`, "data-value": value, "data-count": count });
    box.checked = wanted.has(value);
    const share = percent(count / column.rows);
    const mark = value === guessed && !certain ? [" ", make("span", { class: "badge" }, "rarer")] : [];
    return make("tr", {}, make("td", { class: "wrap" }, box, " ", make("label", { for: `v-${at}` }, value), ...mark), make("td", { class: "n" }, count.toLocaleString("en")), make("td", { class: "n" }, share));
  }));
  step.querySelector("[data-label-column]").textContent = column.name;
  step.querySelector("[data-label-told]").textContent = `${why} Counted ${column.where}.`.trim();
  watch(step, field);
}

// The ticks of a step go into its field, if it has one; without any, or with all, the form cannot be sent.
function watch(step, field) {
  const boxes = [...step.querySelectorAll("[data-label-values] input")], warning = step.querySelector("[data-label-warning]");
  const total = boxes.reduce((sum, box) => sum + Number(box.dataset.count), 0);
  const tell = () => {
    const ticked = boxes.filter((box) => box.checked), share = ticked.reduce((sum, box) => sum + Number(box.dataset.count), 0) / total;
    const words = ticked.map((box) => box.dataset.value);
    if (field) field.value = words.length > 1 ? words.map(quote).join(",") : words[0] ?? "";
    boxes[0].setCustomValidity(!ticked.length ? "Select at least one positive value." : ticked.length === boxes.length ? "Leave at least one value unselected: its rows are the negatives." : "");
    warning.hidden = !(share > 0.5) || ticked.length === boxes.length;
    warning.textContent = `${percent(share)} of the rows are positive (${words.length > 1 ? "one of the selected values" : `“${words[0]}”`}). The rarer value is usually the positive one. Check that these rows should rank at the top.`;
  };
  for (const box of boxes) box.onchange = tell;
  tell();
}

function percent(share) {
  return share > 0 && share < 0.01 ? "under 1 %" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}

function names_of(text) {  // of a list with commas, in which a name may stand in quotes
  return [...text.matchAll(/\s*(?:"((?:[^"]|"")*)"|([^,]*))\s*(?:,|$)/g)].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain.trim()).filter(Boolean);
}

const LIST = new Set(["labels", "drop", "categorical", "numeric"]);
const quote = (name) => /[",]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
const USES = ["feature", "label", "weight", "group", "query", "leave out", "categories", "numbers", "item"];
const WORDS = { feature: "feature", label: "label", weight: "weight", group: "group", query: "query", "leave out": "drop", categories: "feature, as category", numbers: "feature, as number", item: "item" };

function row_of(body, column) {
  const select = make("select", { "aria-label": `Use ${column.name} as` }, ...USES.map((use) => make("option", { value: use }, WORDS[use])));
  const shown = column.values.slice(0, 4).map((value) => value.length > 24 ? value.slice(0, 23) + "…" : value).join(", ");
  const row = make("tr", {}, make("td", { class: "wrap" }, make("strong", {}, column.name)), make("td", {}), make("td", {}, select), make("td", { class: "wrap" }, shown));
  body.append(row);
  tell_type(row, column);
  return select;
}

function tell_type(row, column) {
  row.cells[1].textContent = column.type + (column.gaps ? `, ${column.gaps} missing` : "");
  row.querySelector("option").textContent = !column.name ? "ignored: no name" : column.identifier ? "ignored: nearly all values are unique" : WORDS.feature;
}

// Numbers and dates that are read only if somebody says how they are written: one click says it.
function hint(place, columns, fields, tell) {
  const named = (found) => found.slice(0, 3).map((each) => `“${each.name}”`).join(", ") + (found.length > 3 ? ` and ${found.length - 3} more columns` : "");
  const choose = (words, said) => {
    const button = make("button", { type: "button" }, words);
    button.addEventListener("click", () => { for (const [name, value] of Object.entries(said)) fields[name].value = value; tell(); });
    return button;
  };
  place.replaceChildren();
  const odd = columns.filter((each) => each.notations.length), all = odd.flatMap((each) => each.notations);
  const suits = all.filter((way) => odd.every((each) => each.fits(way)));
  for (const [ways, found] of suits.length ? [[unique(suits), odd]] : odd.map((each) => [each.notations, [each]])) {
    const such = found[0].notations.length < 2 && found.find((each) => each.notations[0].thousands) || found[0];
    const buttons = ways.map((way) => choose(ways.length > 1 ? `${such.example} is ${plain(such.example, way)}` : `Use ${spelled(way)}`, way));
    const look = ways.length > 1 ? `${named(found)}: the separator may mark thousands or decimals` : `${named(found)}: numbers seem to have ${marks(ways[0])}`;
    place.append(make("p", {}, `${look}, such as ${such.example}. `, ...buttons.flatMap((each) => [each, " "])));
  }
  const undecided = columns.filter((each) => each.orders.length && !each.order);
  if (undecided.length) {
    const text = undecided[0].slashed, orders = [...new Set(undecided.flatMap((each) => each.orders))];
    const buttons = orders.flatMap((order) => [choose(`${text} is ${day(text, order)}`, { dates: order }), " "]);
    place.append(make("p", {}, `${named(undecided)} ${undecided.length > 1 ? "have" : "has"} dates such as ${text}, in which the day is ambiguous. Choose the order, or they are read as text. `, ...buttons));
  }
  place.hidden = !place.childElementCount;
  const unsaid = odd.length > 0 && !fields.decimal.value, fold = fields.decimal.closest("details");
  fields.decimal.setCustomValidity(unsaid ? `Some columns have ${marks(all[0])}. Choose the decimal separator here, or choose the point if they are not numbers.` : "");
  if (unsaid && fold) fold.open = true;  // else the browser cannot show what is asked
}

// Letters are never guessed by the service: here they are shown as Windows has them, and one click says so.
function ask_letters(place, encoding, names) {
  const name = names.find((each) => /[^ -~]/.test(each)), fold = encoding.closest("details");
  const button = make("button", { type: "button" }, "Read as Windows-1252");
  button.addEventListener("click", () => { encoding.value = "windows-1252"; encoding.onchange(); });
  place.prepend(make("p", {}, `This file is not encoded in UTF-8. The preview shows it as Windows-1252${name ? `, such as “${name}”` : ""}. `, button));
  place.hidden = false;
  encoding.setCustomValidity("The file is not UTF-8. Choose its encoding.");
  if (fold) fold.open = true;
}

const unique = (ways) => [...new Map(ways.map((each) => [JSON.stringify(each), each])).values()];
const spelled = ({ decimal, thousands }) => `${decimal} as decimal separator${thousands ? `, ${thousands} as thousands separator` : ""}`;
const marks = ({ decimal, thousands }) => [decimal === "comma" && "a decimal comma", thousands && "thousands separators"].filter(Boolean).join(" and ");
const plain = (text, { decimal, thousands }) => {
  const bare = thousands ? text.replace(new RegExp(MARKS[thousands], "g"), "") : text;
  return decimal === "comma" ? bare.replace(",", ".") : bare;
};
function day(text, order) {
  const [first, second, year] = text.match(/\d+/g).map(Number);
  return new Date(Date.UTC(year, (order === "day_first" ? second : first) - 1, order === "day_first" ? first : second)).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
}

async function read(file, encoding) {
  const name = file.name.toLowerCase();
  let stream = file.slice(0, MAX_BYTES).stream();
  if (/\.(parquet|arrow|arrows|feather|zst|xlsx|xlsm|zip)$/.test(name)) return null;
  if (name.endsWith(".gz")) stream = stream.pipeThrough(new DecompressionStream("gzip"));
  const bytes = await gather(stream);
  const wide = bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : "utf-8";
  const [text, foreign] = decoded(bytes, wide, encoding);
  if (text.includes("\0") || /^\s*\[\s*[{\]]/.test(text)) return null;
  const whole = bytes.length < MAX_BYTES && file.size <= MAX_BYTES;
  const found = /^\s*\{/.test(text) ? of_lines(text, whole) : of_csv(text, whole);
  return { ...found, foreign, whole: whole && found.rows.length < MAX_ROWS };
}

// The text, and whether it is not UTF-8 though nobody has said what it is: then it mostly comes from Windows.
function decoded(bytes, wide, encoding) {
  if (encoding && encoding !== "utf-16") return [new TextDecoder(encoding).decode(bytes), false];
  try {
    return [new TextDecoder(wide, { fatal: true }).decode(bytes, { stream: true }), false];  // the end may be cut
  } catch {
    return [new TextDecoder("windows-1252").decode(bytes), true];
  }
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

const tidy = (value) => value.replace(/^[ \t]+|[ \t]+$/g, "");  // as the service does: other spaces stay

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
    else if (sign === mark) { row.push(tidy(value)); value = ""; }
    else if (sign === "\n" || sign === "\r") {
      if (sign === "\r" && text[at + 1] === "\n") at++;
      row.push(tidy(value));
      if (row.length > 1 || row[0] !== "") rows.push(row);
      row = []; value = "";
    } else value += sign;
  }
  if (whole && (row.length || value) && rows.length <= MAX_ROWS) rows.push([...row, tidy(value)]);
  const [names = [], ...rest] = rows;
  return { names, rows: rest };
}

// The service's own rules (Notation in app/ingest/values.py, Evidence in columns.py), by the rows that are here.
const NOTATION = ["decimal", "thousands", "dates"];
const NUMBER = /^[+-]?((\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?|inf(inity)?)$/i;
const SPELLED = /^[+-]?[\d.,' \u2019\u00a0\u2009\u202f]*\d[.,]?(e[+-]?\d+)?$/i;
const MARKS = { point: "\\.", comma: ",", space: "[ \u00a0\u2009\u202f]", apostrophe: "['\u2019]" };
const WAYS = ["point", "comma"].flatMap((decimal) => ["", ...Object.keys(MARKS)].filter((each) => each !== decimal).map((thousands) => ({ decimal, thousands })));
const D = "(0?[1-9]|[12]\\d|3[01])", M = "(0?[1-9]|1[0-2])", ZONE = "(Z|[+-]\\d\\d(:?\\d\\d)?)?";
const END = `\\d{4}(,? \\d{1,2}:\\d\\d(:\\d\\d(\\.\\d{1,6})?)?( ?[AaPp][Mm])?${ZONE})?$`;
const DATE = new RegExp(`^(\\d{4}-\\d\\d-\\d\\d([ T]\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,6})?)?${ZONE})?$|${D}\\.${M}\\.${END})`);
const SLASHED = { day_first: new RegExp(`^(${D}/${M}/|${D}-${M}-)${END}`), month_first: new RegExp(`^(${M}/${D}/|${M}-${D}-)${END}`) };

function number_by({ decimal, thousands }) {
  const point = MARKS[decimal || "point"], groups = thousands ? `|[1-9]\\d{0,2}(${MARKS[thousands]}\\d{3})+` : "";
  return new RegExp(`^[+-]?((\\d+${groups})(${point}\\d*)?|${point}\\d+)(e[+-]?\\d+)?$`, "i");
}

function guess(values, said) {
  const known = values.filter((value) => !MISSING.has(value.toLowerCase()));
  const share = (test) => known.length ? known.filter(test).length / known.length : 0;
  const counts = new Map();
  for (const value of known) counts.set(value, (counts.get(value) ?? 0) + 1);
  const distinct = [...counts.keys()], own = number_by(said);
  const fits = (way) => { const number = number_by(way); return share((value) => number.test(value)) > 0.9; };
  const odd = share((value) => SPELLED.test(value)) > 0.9 ? distinct.filter((value) => SPELLED.test(value) && !own.test(value)) : [];
  const notations = odd.length ? WAYS.filter((way) => (!way.thousands || odd.some((value) => new RegExp(MARKS[way.thousands]).test(value))) && odd.every((value) => number_by(way).test(value)) && fits(way)) : [];
  const kept = notations.filter((way) => way.decimal === (said.decimal || "point"));
  const ways = notations.filter((way) => !kept.some((each) => each !== way && each.thousands === way.thousands) && (!said.decimal || !kept.length || kept.includes(way)));
  const iso = share((value) => DATE.test(value)) > 0.9;
  const [day_first, month_first] = ["day_first", "month_first"].map((order) => iso ? 0 : share((value) => DATE.test(value) || SLASHED[order].test(value)));
  const written = distinct.filter((value) => SLASHED.day_first.test(value) || SLASHED.month_first.test(value));
  const slashed = written.find((value) => Number.parseInt(value) !== Number.parseInt(value.match(/[/-](\d+)/)[1])) ?? written[0];
  const [only_day, only_month] = ["day_first", "month_first"].map((order, at, both) => distinct.some((value) => SLASHED[order].test(value) && !SLASHED[both[1 - at]].test(value)));
  let orders = [["day_first", day_first], ["month_first", month_first]].filter(([, each]) => each > 0.9).map(([order]) => order);
  if (orders.length === 2 && only_day !== only_month) orders = [only_day ? "day_first" : "month_first"];
  let type = "text";
  if (!known.length) type = "empty";
  else if (known.every((value) => /^(true|false)$/i.test(value))) type = "true or false";
  else if (iso) type = "dates";
  else if (ways.length) type = `numbers with ${ways.length > 1 ? "a separator" : marks(ways[0])}`;
  else if (share((value) => NUMBER.test(value) || own.test(value)) > 0.9) type = "numbers";
  else if (known.length >= 20 && distinct.length > 0.9 * known.length) type = "identifiers";
  return { type, gaps: values.length - known.length, values: distinct, counts, identifier: type === "identifiers", notations: ways, example: odd.find((value) => ways.length === 1 && ways[0].thousands && new RegExp(MARKS[ways[0].thousands]).test(value)) ?? odd[0], fits, orders, slashed };
}

// A table has one order of dates with slashes: the one that is said, or that the values of a column show.
function settle_dates(columns, said) {
  const shown = new Set(columns.filter((each) => each.orders.length === 1).map((each) => each.orders[0]));
  const order = said || (shown.size === 1 ? [...shown][0] : "");
  for (const column of columns) {
    column.order = column.orders.includes(order) ? order : "";
    if (!column.order) continue;
    column.type = order === "day_first" ? "dates, day first" : "dates, month first";
    column.identifier = false;
  }
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
