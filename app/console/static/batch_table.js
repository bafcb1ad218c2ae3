// Tables to score: their columns are checked before they are sent, and what does not fit the model is one message.
import { check as check_head, choose_sheet, fields_of, head_of, make, join_names } from "./table_head.js";

const MANY = 100;  // the service names no more columns than that

for (const form of document.querySelectorAll("form[data-batch]")) watch(form);
document.addEventListener("htmx:load", (event) => {
  for (const form of event.target.querySelectorAll("form[data-batch]")) watch(form);
});

function watch(form) {
  if (form.dataset.watched) return;
  form.dataset.watched = "yes";
  const check = form.querySelector("[data-check]");
  let passed = false, again = null;

  form.addEventListener("submit", (event) => {
    if (passed) { passed = false; return; }
    again = ["score", () => form.requestSubmit()];
    hold(event, () => { passed = true; form.requestSubmit(); });  // the upload goes on
  }, true);
  check.addEventListener("click", (event) => {
    again = ["check again", () => check.click()];
    const chosen = form.elements.namedItem("file").files[0];
    if (!chosen || chosen.size <= Number(form.dataset.most) || !form.reportValidity()) return;
    hold(event, (checked) => show("done", make("p", {}, checked
      ? "The columns and the first rows fit the model. The rest of the file is too long to check here. Nothing was stored."
      : "The file is too long to check here. Choose “Score” to upload it; the worker checks it before scoring.")));
  }, true);
  form.addEventListener("refused", (event) => { if (tell(event.detail)) event.preventDefault(); });

  // Check the head of the file; where the columns fit, or that cannot be said here, go on.
  async function hold(event, go_on) {
    event.preventDefault();
    event.stopImmediatePropagation();
    const chosen = form.elements.namedItem("file").files[0];
    const buttons = [...form.querySelectorAll("button")].filter((each) => !each.disabled);
    for (const each of buttons) each.disabled = true;
    let found = null, head = null;
    try {
      head = chosen && await head_of(chosen, Number(form.dataset.most));
      found = head && await check_head(form, fields_of(form, head.file));
    } catch { /* the upload tells what is wrong with the file or the connection */ }
    for (const each of buttons) each.disabled = false;
    if (!found || found.ok || !tell(found.answer)) go_on(Boolean(head));
  }

  // Say which columns do not fit; false: what is wrong is something else.
  function tell(problem) {
    const errors = problem.errors || [];
    const named = (...codes) => errors.filter((each) => codes.includes(each.code) && each.column).map((each) => each.column);
    const unknown = named("unknown_feature"), missing = named("absent_feature"), not_there = named("unknown_column");
    const wrong = Map.groupBy(errors.filter((each) => each.column && (each.line || each.code === "unsupported_type")), (each) => each.column);
    if (!unknown.length && !missing.length && !not_there.length && !wrong.size) return false;
    const parts = [], of_book = errors.find((each) => each.sheets);
    if (of_book) parts.push(make("p", {}, make("label", {}, "Sheet ", choose_sheet(form, of_book.sheets, of_book.sheet))));
    if (unknown.length) {
      const many = unknown.length >= MANY;
      parts.push(make("p", {}, make("strong", {}, `${columns(unknown, many)} not used by the model: `), names(unknown)));
      parts.push(make("p", { class: "actions" }, offer("Ignore", "ignore", many ? ["*"] : unknown), ...(many ? [] : [offer("Keep", "keep", unknown)])));
    }
    if (missing.length) parts.push(make("p", {}, make("strong", {}, `${columns(missing)} missing from the table: `), names(missing), ". Add them to the table. Cells may be empty."));
    if (not_there.length) parts.push(make("p", {}, make("strong", {}, `${columns(not_there)} named in this form but not in the table: `), names(not_there), "."));
    if (wrong.size) {
      const lines = [...wrong].map(([, found]) => make("li", {}, found[0].detail, place(found)));
      parts.push(make("p", {}, make("strong", {}, `${columns([...wrong.keys()])} with the wrong type:`)), make("ul", {}, ...lines));
    }
    show("problem", make("p", {}, make("strong", {}, "The table does not fit the model.")), ...parts);
    return true;
  }

  function offer(verb, field, list) {
    const [next, go] = again ?? ["score", () => form.requestSubmit()];
    const button = make("button", { type: "button" }, `${verb} ${list.length === 1 && list[0] !== "*" ? "it" : "them"} and ${next}`);
    button.addEventListener("click", () => {
      const input = form.elements.namedItem(field);
      input.value = [input.value.trim(), join_names(list)].filter(Boolean).join(",");
      go();
    });
    return button;
  }

  function show(kind, ...parts) {
    const box = make("div", { class: kind, role: kind === "problem" ? "alert" : "status" }, ...parts);
    form.querySelector("[data-outcome]").replaceChildren(box);
    box.scrollIntoView({ block: "nearest" });
  }
}

const columns = (list, more = false) => `${list.length}${more ? " or more" : ""} ${list.length === 1 ? "column" : "columns"}`;

function names(list) {
  const shown = list.slice(0, 20).flatMap((name, at) => [at ? ", " : "", make("code", {}, name)]);
  return make("span", {}, ...shown, list.length > 20 ? ` and ${list.length - 20} more` : "");
}

function place(found) {
  const lines = found.map((each) => each.line).filter(Boolean);
  if (!lines.length) return "";
  const first = lines.slice(0, 5).join(", ");
  return lines.length > 5 ? ` (lines ${first} and ${lines.length - 5} more)` : ` (${lines.length > 1 ? "lines" : "line"} ${first})`;
}
