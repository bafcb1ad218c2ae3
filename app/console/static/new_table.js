// A new table before its upload: columns, types and problems, as the service finds them in its first rows. And the step
// that asks which values of the label are positive, which is also on the page of a dataset.
import { check, choose_sheet, fields_of, fill_in, head_of, join_names, make, names_of, of_one_piece, size, unchecked } from "./table_head.js";

for (const form of document.querySelectorAll("form[data-upload]")) if (form.querySelector("[data-preview]")) prepare(form);
const steps = (root) => { for (const form of root.querySelectorAll("form[data-label-form]")) watch(form, null); };
steps(document);
document.addEventListener("htmx:load", (event) => steps(event.target));

const MAX_SHOWN = 200;  // columns
const MAX_VALUES = 100;  // beyond, a column is no label of classes
const USES = { feature: "feature", label: "label", weight: "weight", group: "group", query: "query", drop: "drop", categorical: "feature, as category", numeric: "feature, as number", item: "item" };
const LISTS = ["drop", "categorical", "numeric"], MARKED = "protected", ROLES = ["label", "weight", "group", "query", "item"];
const SEEN = ["identifier", "column_without_name"];  // warnings that the table of the columns shows

function prepare(form) {
  const part = (name) => form.querySelector(`[data-${name}]`), field = (name) => form.elements.namedItem(name);
  let file = null, head = null, turn = 0, columns = [];

  form.addEventListener("table-chosen", async ({ detail }) => {
    file = detail;
    head = null;
    if (!field("name").value || is_guess("name")) guess("name", file.name.replace(/\.(gz|zst)$/i, "").replace(/\.[a-z]+$/i, ""));
    field("name").dispatchEvent(new Event("change", { bubbles: true }));  // so that it is asked who has this name
    field("sheet").value = "";
    forget();
    const found = await head_of(file, Number(form.dataset.most));
    if (file !== field("file").files[0]) return;  // another was chosen meanwhile
    head = found;
    part("sheet-choice").hidden = true;
    part("preview").hidden = false;
    if (head) await read(); else show_nothing();
  });
  form.addEventListener("change", ({ target }) => { if (target.name === "sheet") forget(); });
  form.addEventListener("change", ({ target }) => { if (head && target.name && !["file", "name", "positive"].includes(target.name)) read(); });
  form.addEventListener("label-counted", ({ detail }) => ask(form, { name: detail.column, values: detail.values, where: "by the service" }));

  function forget() {  // what is known of another table
    if (is_guess("label")) field("label").value = "";
    delete part("label-step").dataset.of;
    columns = [];
    part("columns").replaceChildren();
    part("hint").hidden = part("columns-found").hidden = part("rows-found").hidden = true;
  }

  const is_guess = (name) => field(name).dataset.guessed === field(name).value;
  const guess = (name, value) => { field(name).value = field(name).dataset.guessed = value; };

  function show_nothing(too_large = of_one_piece(file)) {
    const why = too_large && !unchecked(file) ? "The file is too large for a preview." : "This format has no preview.";
    part("hint").hidden = part("columns-found").hidden = part("rows-found").hidden = true;
    part("summary").textContent = `${file.name}, ${size(file.size)}. ${why} Enter the label column below. After the upload you can choose the positive values on the dataset page.`;
    ask(form, null);
  }

  // Have the head checked. What the service suggests for the label is tried at once: it is asked about below.
  async function read(tried = {}) {
    const mine = ++turn, body = fields_of(form, head.file), named = field("label").value;
    body.delete("positive");
    for (const [name, value] of Object.entries(tried)) body.set(name, value);
    let found;
    try { found = await check(form, body); } catch { found = { ok: false, answer: { title: "The file could not be checked", detail: "The connection was lost." } }; }
    if (mine !== turn || field("label").value !== named) return;  // there is a newer question, or a label is being typed
    const { ok, answer } = found, rows = head.whole ? "the file" : `the first ${size(head.file.size)}`;
    if (answer.status === 415) { show_nothing(false); return; }
    if (head.whole && answer.code === "too_large") { show_nothing(true); return; }
    const errors = answer.errors ?? [], suggestion = errors.find((each) => each.suggestion)?.suggestion ?? {};
    const name = ["label", "positive"].find((each) => suggestion[each] && !tried[each]);
    if (name) { await read({ ...tried, [name]: suggestion[name] }); return; }
    const book = ok ? answer : errors.find((each) => each.sheets) ?? {};
    if (book.sheets?.length > 1) choose_sheet(form, book.sheets, book.sheet ?? field("sheet").value, part("sheet-choice").querySelector("select"));
    part("sheet-choice").hidden = !(book.sheets?.length > 1);
    part("summary").textContent = `${file.name}, ${size(file.size)}. ${ok ? `${answer.columns.length} columns. Types are from ${head.whole ? "all" : "the first"} ${answer.rows.toLocaleString("en")} rows.` : `There are problems in ${rows}:`}`;
    if (!ok) {
      form.dispatchEvent(new CustomEvent("head-refused", { detail: [answer, part("hint")] }));
      part("hint").hidden = false;
      part("rows-found").hidden = true;
      ask(form, null);
      return;
    }
    const label = answer.columns.find((each) => each.role === "label");
    if (label && field("kind").value !== "multilabel" && field("label").value !== label.name) guess("label", label.name);
    show(answer);
    ask(form, label && { name: label.name, values: label.values ?? [], of: label.distinct, certain: !label.guessed && !tried.positive, where: head.whole ? "in the file" : `in the first ${answer.rows.toLocaleString("en")} rows` });
  }

  function show(answer) {
    const known = columns.map((each) => each.name).join("\n") === answer.columns.map((each) => each.name).join("\n");
    columns = answer.columns;
    if (!known) {
      part("columns").replaceChildren(...columns.slice(0, MAX_SHOWN).map(row_of));
      document.getElementById("columns").replaceChildren(...columns.map(({ name }) => make("option", { value: name })));
    }
    part("columns-found").hidden = part("rows-found").hidden = false;
    part("rows-found").querySelector(".scroll").tabIndex = 0;  // it may scroll now
    part("first-columns").replaceChildren(...answer.preview.columns.slice(0, MAX_SHOWN).map((name) => make("th", {}, name)));
    part("first-rows").replaceChildren(...answer.preview.data.map((row) => make("tr", {}, ...row.slice(0, MAX_SHOWN).map(cell_of))));
    const codes = new Map(answer.warnings.map((each) => [each.column, each.code]));
    for (const [at, row] of [...part("columns").rows].entries()) fill(row, columns[at], codes.get(columns[at].name));
    const warnings = answer.warnings.filter((each) => !SEEN.includes(each.code));
    part("hint").replaceChildren(...warnings.map((each) => make("p", {}, `${each.column}: ${each.detail}. `, ...ways_out(each))));
    part("hint").hidden = !warnings.length;
  }

  function row_of({ name }) {
    const select = make("select", { "aria-label": `Use ${name} as` }, ...Object.entries(USES).map(([use, words]) => make("option", { value: use }, words)));
    select.addEventListener("change", () => use_as(name, select.value));
    const box = make("input", { type: "checkbox", "aria-label": `${name} is protected` });
    box.addEventListener("change", () => mark(name, box.checked));
    return make("tr", {}, make("td", { class: "wrap" }, make("strong", {}, name)), make("td", {}), make("td", {}, select), make("td", {}, make("label", {}, box, " ", make("span", { class: "note" }))), make("td", { class: "wrap" }));
  }

  function fill(row, column, code) {
    const dated = column.type === "datetime", spelled = (value) => dated ? new Date(1000 * value).toISOString().slice(0, 10) : Number(value.toPrecision(6)).toString();
    const top = (column.top ?? []).slice(0, 4).map(({ value }) => `${value}`).map((value) => value.length > 24 ? value.slice(0, 23) + "…" : value);
    row.cells[1].textContent = (column.type ?? "–") + (column.missing ? `, ${column.missing} missing` : "");
    row.querySelector("option").textContent = code === "column_without_name" ? "ignored: no name" : column.role === "identifier" ? "ignored: nearly all values are unique" : USES.feature;
    row.querySelector("select").value = use_of(column);
    const box = row.querySelector("input"), is_role = [...ROLES, "drop"].includes(use_of(column));
    box.checked = names_of(field(MARKED).value).includes(column.name);
    box.disabled = is_role && !box.checked;
    row.cells[3].querySelector("span").textContent = column.seems_protected && !is_role ? "suggested by its name" : "";
    row.cells[4].textContent = column.min == null ? top.join(", ") : `${spelled(column.min)} to ${spelled(column.max)}`;
  }

  const cell_of = (value) => make("td", { class: "cell" }, value === null ? make("span", { class: "note" }, "missing") : String(value));

  function use_of({ name, role }) {
    if (role in USES && role !== "feature" && role !== MARKED) return role;
    return LISTS.find((each) => names_of(field(each).value).includes(name)) ?? "feature";
  }

  function use_as(name, use) {  // the column leaves the field that it is in, and goes into another
    const several = field("kind").value === "multilabel", lists = [...LISTS, "labels"];
    for (const each of lists) field(each).value = join_names(names_of(field(each).value).filter((one) => one !== name));
    for (const each of ROLES) if (field(each).value === name) field(each).value = "";
    const target = use === "label" && several ? "labels" : use;
    if (target === "drop" || target === "labels" || ROLES.includes(target)) unmark(name);
    if (lists.includes(target)) field(target).value = join_names([...names_of(field(target).value), name]);
    else if (ROLES.includes(target)) field(target).value = name;
    read();
  }

  function mark(name, is_protected) {
    unmark(name);
    if (is_protected) field(MARKED).value = join_names([...names_of(field(MARKED).value), name]);
    read();
  }

  function unmark(name) { field(MARKED).value = join_names(names_of(field(MARKED).value).filter((one) => one !== name)); }

  function ways_out({ code, suggestion }) {  // a button for each: it fills in the fields
    const ways = suggestion ? [suggestion] : code === "dates_of_unknown_order" ? [{ dates: "day_first" }, { dates: "month_first" }] : [];
    return ways.flatMap((way) => [fill_in(form, way), " "]);
  }
}

// --- the label: which of its values are those that are wanted at the top ----------------------------

// Fill in the step for a column of the label: its name, its values as the service counted them, how many there are, whether the positive one is certain, and where they were counted.
function ask(form, column) {
  const step = form.querySelector("[data-label-step]"), field = form.elements.namedItem("positive");
  const n = column?.of ?? column?.values.length ?? 0;
  const fits = (form.elements.namedItem("kind").value || "bipartite") === "bipartite" && n >= 2 && n <= MAX_VALUES;
  step.hidden = !fits;
  field.closest("div").hidden = fits;
  const list = step.querySelector("[data-label-values]");
  if (!fits) { list.replaceChildren(); return; }
  if (step.dataset.of !== column.name) { if (step.dataset.of !== undefined) field.value = ""; step.dataset.of = column.name; }
  const ordered = column.values.toSorted((a, b) => b.count - a.count), rows = ordered.reduce((sum, each) => sum + each.count, 0);
  const certain = column.certain && ordered.find((each) => each.positive).value;
  const rarer = !certain && n === 2 && ordered[0].count !== ordered[1].count ? ordered[1].value : null;
  const wanted = new Set([field.value, ...names_of(field.value)]);
  if (certain && !ordered.some(({ value }) => wanted.has(value))) wanted.add(certain);
  // A check that finds the same values leaves them as they are, with the focus of the keyboard.
  const boxes = [...list.querySelectorAll("input")], found = JSON.stringify([column, certain]);
  if (boxes.length === ordered.length && list.dataset.found === found && boxes.every((box) => box.checked === wanted.has(box.dataset.value))) return;
  list.dataset.found = found;
  list.replaceChildren(...ordered.map(({ value, count }, at) => {
    const box = make("input", { type: "checkbox", id: `v-${at}`, "data-value": value, "data-count": count });
    box.checked = wanted.has(value);
    const mark = value === rarer ? [" ", make("span", { class: "badge" }, "rarer")] : [];
    return make("tr", {}, make("td", { class: "wrap" }, box, " ", make("label", { for: `v-${at}` }, value), ...mark), make("td", { class: "n" }, count.toLocaleString("en")), make("td", { class: "n" }, percent(count / rows)));
  }));
  const why = certain ? `“${certain}” usually means positive, so it is selected. ` : rarer !== null ? `“${rarer}” is the rarer value, which is often the positive one. ` : "";
  step.querySelector("[data-label-column]").textContent = column.name;
  step.querySelector("[data-label-told]").textContent = `${why}Counted ${column.where}.`;
  watch(step, field);
}

// The ticks of a step go into its field, if it has one; without any, or with all, the form cannot be sent.
function watch(step, field) {
  const boxes = [...step.querySelectorAll("[data-label-values] input")], warning = step.querySelector("[data-label-warning]");
  const total = boxes.reduce((sum, box) => sum + Number(box.dataset.count), 0);
  const tell = () => {
    const ticked = boxes.filter((box) => box.checked), share = ticked.reduce((sum, box) => sum + Number(box.dataset.count), 0) / total;
    const words = ticked.map((box) => box.dataset.value);
    if (field) field.value = words.length > 1 ? join_names(words) : words[0] ?? "";
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
