// The head of a table, which the service checks before the table is sent; and what the scripts for tables share.

const HEAD_BYTES = 1 << 16;  // of a longer file, only so many are checked
const NEWLINE = 10, RETURN = 13, QUOTE = 34, BRACKET = 91;

// Formats that the service can check only as a whole; Parquet it does not check.
export const of_one_piece = (file) => /\.(arrows?|feather|zst|xlsx|xlsm|zip)$/i.test(file.name);
export const unchecked = (file) => /\.parquet(\.gz|\.zst)?$/i.test(file.name);

// Whole rows from the start of a table, or all of it if it can be checked only as a whole: { file, whole }. Null: it is not checked, or too large for that.
export async function head_of(file, most) {
  const name = file.name.replace(/\.gz$/i, "");
  if (!file.size || unchecked(file)) return null;
  if (of_one_piece(file)) return file.size <= most ? { file, whole: true } : null;
  let stream = file.slice(0, HEAD_BYTES).stream();
  if (name !== file.name) stream = stream.pipeThrough(new DecompressionStream("gzip"));
  const [bytes, ended] = await gather(stream);
  const whole = ended && file.size <= HEAD_BYTES;
  if (whole) return { file: new File([bytes], name), whole };
  const end = bytes[0] === BRACKET ? 0 : end_of_rows(bytes, /\.(ndjson|jsonl|json)$/i.test(name));
  return end ? { file: new File([bytes.subarray(0, end)], name), whole } : null;
}

async function gather(stream) {  // the bytes, and whether they are all
  const parts = [], reader = stream.getReader();
  let size = 0, ended = false;
  try {
    for (let next; size < HEAD_BYTES && !ended; ended = next.done) {
      next = await reader.read();
      if (!next.done) { parts.push(next.value); size += next.value.length; }
    }
    await reader.cancel();
  } catch { /* a compressed file that ends here: what came is enough */ }
  return [new Uint8Array(await new Blob(parts).arrayBuffer()), ended];
}

function end_of_rows(bytes, is_json) {  // a line of CSV may go on after a line break between quotes
  let end = 0, quoted = false;
  for (const [at, byte] of bytes.entries()) {
    if (byte === QUOTE && !is_json) quoted = !quoted;
    else if (!quoted && (byte === NEWLINE || byte === RETURN && at + 1 < bytes.length && bytes[at + 1] !== NEWLINE)) end = at + 1;
  }
  return bytes[0] === 0xff && bytes[1] === 0xfe && end ? end + 1 : end;  // UTF-16: the other half of the line break
}

// What the form says, and a head or a file, for the API.
export function fields_of(form, file) {
  const body = new FormData();
  for (const [name, value] of new FormData(form)) if (name !== "csrf" && name !== "file" && value !== "") body.append(name, value);
  body.append("file", file);
  return body;
}

// What the service says of a head: { ok, answer }. If the session has ended, the page is loaded again.
export async function check(form, body) {
  const headers = { "x-csrf-token": form.elements.namedItem("csrf").value };
  const answer = await fetch(`${form.dataset.upload}/validate`, { method: "POST", body, headers });
  if (answer.redirected || answer.headers.get("x-session-changed")) { window.come_back(); return new Promise(() => {}); }
  return { ok: answer.ok, answer: await answer.json() };
}

export function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function size(bytes) {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (bytes < 1000) return `${unit === "B" ? bytes : bytes.toFixed(1)} ${unit}`;
    bytes /= 1000;
  }
  return `${bytes.toFixed(1)} TB`;
}

// Lists with commas, in which a name may stand in quotes.
const quote = (name) => /[",\s]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
export const join_names = (names) => names.map(quote).join(",");
export const names_of = (text) => [...text.matchAll(/\s*(?:"((?:[^"]|"")*)"|([^,]*))\s*(?:,|$)/g)].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain.trim()).filter(Boolean);

// A select of the sheets of a workbook, which fills in the field of the sheet.
export function choose_sheet(form, sheets, chosen, select = make("select", {})) {
  const field = form.elements.namedItem("sheet"), is_known = sheets.includes(chosen);
  const none = is_known ? [] : [make("option", { value: "", disabled: "" }, "choose one")];
  select.replaceChildren(...none, ...sheets.map((name) => make("option", { value: name }, name)));
  select.value = is_known ? chosen : "";
  select.onchange = () => { field.value = select.value; field.dispatchEvent(new Event("change", { bubbles: true })); };
  return select;
}

// A button that fills in what the service suggests. The fields are unfolded, and the first one is focused.
export function fill_in(form, suggestion) {
  const said = Object.entries(suggestion).filter(([name]) => form.elements.namedItem(name));
  const button = make("button", { type: "button" }, `Fill in ${said.map(([name, value]) => `${name} = ${value}`).join(", ")}`);
  button.addEventListener("click", () => {
    for (const [name, value] of said) {
      const field = form.elements.namedItem(name), fold = field.closest("details");
      if (fold) fold.open = true;
      field.value = value;
    }
    const first = form.elements.namedItem(said[0][0]);
    first.focus();
    first.dispatchEvent(new Event("change", { bubbles: true }));
  });
  return button;
}
