// Uploads of tables: a progress bar, and what the API says of a refusal. new_table.js shows what is in a new table.
import { choose_sheet, fields_of, fill_in, make, size } from "./table_head.js";

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
    unmark();
    const chosen = file.files[0], words = await find_foreign(chosen);
    rest(true);
    if (chosen !== file.files[0]) return;  // another was chosen meanwhile: what is said of it stays
    if (words) { show([{ detail: words }], "problem"); return; }
    const body = fields_of(form, chosen);
    const request = under_way = new XMLHttpRequest();
    const address = form.dataset.upload + (only_check ? "/validate" : "");
    request.open("POST", address);
    request.setRequestHeader("x-csrf-token", form.elements.namedItem("csrf").value);
    part("outcome").replaceChildren();
    part("progress").hidden = false;
    rest(false);
    tell(0, "Uploading");
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) tell(event.loaded / event.total, `Uploading: ${size(event.loaded)} of ${size(event.total)}`);
    });
    request.upload.addEventListener("load", () => tell(null, only_check ? "Checking …" : "Storing the file …"));
    const ended = (words) => {
      under_way = null;
      rest(true);
      part("progress").hidden = true;
      busy.textContent = "";
      if (words) show([{ detail: words }], "problem");
    };
    request.addEventListener("load", () => {
      ended();
      if (new URL(request.responseURL).pathname !== new URL(address, location).pathname || request.getResponseHeader("x-session-changed")) { window.come_back(); return; }  // the session has ended, or is another
      let answer;
      try { answer = JSON.parse(request.responseText); } catch { answer = { title: "The service sent an invalid response", detail: "" }; }
      if (request.status >= 400) refuse(answer);
      else if (only_check) praise(answer);
      else location.assign(form.dataset.leads + encodeURIComponent(answer.id));
    });
    request.addEventListener("error", () => ended("The connection was lost. Nothing was stored. Try again."));
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
    if (!form.dispatchEvent(new CustomEvent("refused", { detail: answer, cancelable: true }))) return;  // told elsewhere
    const errors = answer.errors || [], counted = errors.find((each) => each.values?.length);
    const marked = errors.filter((each) => mark(each.parameter, each.detail));
    const all = marked.length && marked.length === errors.length;
    const box = make("div", { class: "problem", role: "alert" }, ...describe(answer, all && `See the message below ${marked.map((each) => `“${label_of(each.parameter)}”`).join(", ")}.`));
    if (counted) form.dispatchEvent(new CustomEvent("label-counted", { detail: counted }));
    part("outcome").replaceChildren(box);
    if (marked.length) form.elements.namedItem(marked[0].parameter).focus();
    else box.scrollIntoView({ block: "nearest" });
  }
  form.addEventListener("head-refused", ({ detail: [answer, place] }) => place.replaceChildren(...describe(answer)));

  function describe(answer, at_fields) {
    const errors = answer.errors || [];
    const found = [make("p", {}, make("strong", {}, `${answer.title}. `), at_fields || answer.detail || "")];
    const of_sheet = errors.some((each) => each.sheet);  // the detail of a single one has its place
    if (!(of_sheet && errors.length === 1) && errors.some((each) => each.line !== undefined || each.column !== undefined)) {
      const place = (each) => each.cell ?? (of_sheet && each.line ? `row ${each.line}` : each.line) ?? "–";
      const rows = errors.map((each) => make("tr", {}, make("td", { class: "n" }, place(each)), make("td", {}, each.column ?? "–"), make("td", {}, each.detail)));
      found.push(make("table", {}, make("thead", {}, make("tr", {}, make("th", { class: "n" }, of_sheet ? "Cell" : "Line"), make("th", {}, "Column"), make("th", {}, "Error"))), make("tbody", {}, ...rows)));
    } else if (errors.length > 1 && !at_fields) {
      found.push(make("ul", {}, ...errors.slice(0, 20).map((each) => make("li", {}, each.detail))));
    }
    const of_book = errors.find((each) => each.sheets);
    if (of_book && !part("sheet-choice")) found.push(make("p", {}, make("label", {}, "Sheet ", choose_sheet(form, of_book.sheets, of_book.sheet))));
    const suggestion = errors.find((each) => each.suggestion)?.suggestion;
    if (suggestion && !(suggestion.positive && errors.some((each) => each.values?.length))) found.push(make("p", {}, fill_in(form, suggestion)));
    return found;
  }

  const label_of = (name) => form.elements.namedItem(name)?.labels?.[0]?.textContent.trim() || name;

  // What is wrong with a field stands below it, with its label in place of the API's name. Return whether the form shows that field.
  function mark(name, detail) {
    const field = name && form.elements.namedItem(name);
    if (!field?.id || field.type === "hidden" || field.closest("[hidden]")) return false;
    const fold = field.closest("details"), said = make("p", { class: "error", id: `e-${field.id}` }, detail.startsWith(`${name} `) ? `“${label_of(name)}”${detail.slice(name.length)}` : detail);
    if (fold) fold.open = true;
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", `${said.id} ${field.getAttribute("aria-describedby") ?? ""}`.trim());
    field.after(said);
    return true;
  }

  function unmark() {
    for (const field of form.querySelectorAll("[aria-invalid]")) {
      document.getElementById(`e-${field.id}`)?.remove();
      field.removeAttribute("aria-invalid");
      field.setAttribute("aria-describedby", (field.getAttribute("aria-describedby") ?? "").replace(`e-${field.id}`, "").trim());
    }
  }

  function praise(answer) {
    const words = [`${answer.sheets?.length > 1 ? `sheet “${answer.sheet}”, ` : ""}${answer.rows.toLocaleString("en")} rows`];
    if (!answer.columns) {  // rows to score
      const unread = answer.ignored?.length ? ` Ignored columns: ${answer.ignored.join(", ")}.` : "";
      show([{ detail: `The file is valid: ${words[0]}.${unread} Nothing was stored.` }], "done");
      return;
    }
    if (answer.positives !== null) words.push(`${answer.positives.toLocaleString("en")} positives`);
    const types = answer.columns.map((each) => `${each.name} (${each.role === "feature" ? each.type : each.role})`);
    show([{ detail: `The file is valid: ${words.join(", ")}. Nothing was stored.` }, { detail: types.join(", ") }, ...answer.warnings.map((each) => ({ detail: `${each.column}: ${each.detail}` }))], "done");
    document.getElementById("columns")?.replaceChildren(...answer.columns.map((each) => make("option", { value: each.name })));
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
    else if (chosen) form.dispatchEvent(new CustomEvent("table-chosen", { detail: chosen }));
  });
}

// --- files that are no table, refused before a byte is sent ---------------------------------------

const SAVE = "Save the sheet as CSV and choose that file.", SAVE_AS = "Save it as .xlsx without a password, or save the sheet as CSV, and choose that file.", UNPACK = "Unpack it and choose the table inside.";
const FOREIGN = [  // the first bytes, as Latin letters; what the service says of them is in app/ingest/csv.py
  ["PK\x05\x06", "is an empty ZIP archive", SAVE],
  ["\xd0\xcf\x11\xe0", "is protected with a password or has an old Office format (.xls)", SAVE_AS],
  ["%PDF", "is a PDF", "Save the table as CSV and choose that file."],
  ["\x89PNG", "is a picture", "Save the table as CSV and choose that file."],
  ["\xff\xd8\xff", "is a picture", "Save the table as CSV and choose that file."],
  ["7z\xbc\xaf", "is a 7z archive", UNPACK],
  ["Rar!", "is a RAR archive", UNPACK],
  ["\xfd7zXZ\0", "is compressed with xz", "Unpack it or compress it with gzip or zstd, and choose that file."],
];

const MAX_HEADER = 1 << 18;  // a longer file has more than a header

async function find_foreign(file) {  // what is wrong with it, and what to do; null: it may be a table
  if (!file) return null;
  if (!file.size) return `“${file.name}” is empty. Choose a file with a header line and rows.`;
  if (/\.(xls|xlsb|ods|numbers)$/i.test(file.name)) return `“${file.name}” is a spreadsheet of another format than .xlsx. ${SAVE_AS}`;
  let head, lines;
  try { head = String.fromCharCode(...new Uint8Array(await file.slice(0, 8).arrayBuffer())); } catch { return `“${file.name}” cannot be read. Choose it again.`; }
  const found = FOREIGN.find(([first]) => head.startsWith(first));
  if (found) return `“${file.name}” ${found[1]}. ${found[2]}`;
  if (file.size > MAX_HEADER || /\.(parquet|arrows?|feather|zst|xlsx|xlsm|zip)$/i.test(file.name)) return null;
  try {
    const stream = head.startsWith("\x1f\x8b") ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
    const parts = [], reader = stream.getReader();
    for (let size = 0, next; !(next = await reader.read()).done; parts.push(next.value)) {
      size += next.value.length;
      if (size > MAX_HEADER) { await reader.cancel(); return null; }
    }
    const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
    lines = new TextDecoder({ 0xff: "utf-16le", 0xfe: "utf-16be" }[bytes[0]] ?? "utf-8").decode(bytes).split(/\r\n|\r|\n/).filter((line) => line.trim());
  } catch { return null; }  // the service says what it is
  if (!lines.length) return `“${file.name}” is empty. Choose a file with a header line and rows.`;
  return lines.length === 1 && !/^\s*[[{]/.test(lines[0]) && !lines[0].includes("\0") ? `“${file.name}” has a header line but no rows. Choose a file with rows below the header.` : null;
}
