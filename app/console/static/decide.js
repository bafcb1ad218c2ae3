// The decision panel. The page brings a table of cutoffs with all their intervals; whatever is dragged, hovered or typed
// shows one of them in the next frame, in every picture. Other costs, or another fraction of positives, have the service
// make a new table and the pictures that change with it. The cutoff and what was typed stand in the address.

// The same rule as the page's own: 1.234 and 400.000 are whole numbers where a comma is the decimal mark.
export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (value === 0 || (size >= 1e-3 && Number(size.toFixed(digits)) < 1)) return value.toFixed(digits);
  if (size >= 1e15 || size < 1e-3) return String(Number(value.toPrecision(digits)));
  if (size < 999.995) return value.toFixed(digits === 3 ? 2 : digits);
  const decimals = size < 9999.95 ? 1 : 0;
  return value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

const count = (value) => Math.round(value).toLocaleString("en-US");
const MAX_REVIEWED = 1e12;
const COLUMNS = ["amount", "rule", "rule_flags"];  // asked for when they are chosen, not at each letter
const ANSWERED = ["cost_false_positive", "cost_false_negative", "prevalence", ...COLUMNS];  // the service says if they are right
// A number of rows: digits alone, for a mark may stand for thousands or for decimals.
const positive = (text) => /^[0-9]{1,13}$/.test(text.trim()) && Number(text) > 0 && Number(text) <= MAX_REVIEWED ? Number(text) : null;

class Panel {
  constructor(card) {
    this.card = card;
    this.range = card.querySelector("#cutoff");
    this.hint = card.querySelector("[data-hint]");
    this.index = Number(card.dataset.start);
    this.why = card.dataset.why;
    this.words = JSON.parse(card.dataset.words);
    this.best = JSON.parse(card.dataset.chosenHere);  // names of the cutoffs that are the best of these rows, and what is said of them
    this.save = card.querySelector(".save");
    this.terms = card.querySelector("[data-terms]");
    this.answered = new FormData(this.terms);  // the page itself says what of it is wrong
    this.take(JSON.parse(card.dataset.panel));
    card.querySelector("[data-slider]").hidden = false;
    this.range.addEventListener("input", () => this.go(Number(this.range.value)));
    for (const picture of card.querySelectorAll("[data-picture]")) this.follow(picture);
    for (const button of card.querySelectorAll("[data-place]"))
      button.addEventListener("click", (event) => {
        event.preventDefault();
        this.go(this.table.places[button.dataset.place], button.dataset.place);
      });
    for (const link of card.querySelectorAll("[data-scale]"))
      link.addEventListener("click", (event) => { event.preventDefault(); this.scale(link); });
    this.terms.addEventListener("input", (event) => {
      if (["review", "rows"].includes(event.target.name)) this.fit(false);
      else if (!COLUMNS.includes(event.target.name)) this.soon();
    });
    this.terms.addEventListener("change", (event) => {  // what is missing is said when the field is left
      if (["review", "rows"].includes(event.target.name)) this.fit(true);
      if (COLUMNS.includes(event.target.name)) this.soon();
    });
    this.terms.addEventListener("submit", (event) => {
      event.preventDefault();
      event.stopPropagation();  // nothing is sent: no notice, and no lock on the form
      this.fit(true);
      this.ask();
    });
    // What was typed and not applied goes with the cutoff that is saved.
    this.save?.addEventListener("submit", () => { this.save.action = this.address(true); });
    const asking = card.querySelector("[data-ask]");
    asking.addEventListener("submit", () => {  // with the costs as they stand now
      for (const [name, value] of new FormData(this.terms)) if (asking.elements[name]) asking.elements[name].value = value;
    });
    // The groups are loaded when their part is opened, for the cutoff of the page's address.
    document.querySelector("#groups")?.addEventListener("htmx:afterSettle", () => this.compareGroups(0), { once: true });
    this.draw();
  }

  take(table) {
    this.table = table;
    this.range.max = table.cutoffs.length - 1;
    for (const button of this.card.querySelectorAll("[data-place]"))
      button.hidden = !(button.dataset.place in table.places);
  }

  // A metric of a cutoff: value, low and high.
  of(index, name) {
    const at = this.table.metrics.indexOf(name);
    return at < 0 ? [null, null, null] : this.table.cutoffs[index].slice(3 * at, 3 * at + 3);
  }

  // Where a cutoff lies along an axis of a picture.
  at(index, name) {
    if (name === "threshold") return this.table.thresholds[index] ?? Infinity;
    if (name === "probability") return this.table.probabilities[index] ?? 1;
    if (name === "wrong") {
      const share = this.table.prevalence;
      return (1 - share) * this.of(index, "fpr")[0] + share * (1 - this.of(index, "tpr")[0]);
    }
    return this.of(index, name)[0];
  }

  go(index, why = "") {
    this.why = why;
    this.index = Math.min(Math.max(index, 0), this.table.cutoffs.length - 1);
    this.range.value = this.index;
    this.remember();
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = null; this.draw(); });
  }

  // The address of what is shown: with the cutoff, and with what was typed and is right. What the service has not
  // answered yet may be wrong, so it comes into the address only when asked for.
  address(unanswered = false) {
    const address = new URL(location);
    for (const [name, value] of new FormData(this.terms)) {
      if (!unanswered && ANSWERED.includes(name) && value.trim() && value !== this.answered.get(name)) continue;
      const wrong = this.terms.elements[name].ariaInvalid;
      if (value.trim() && !wrong) address.searchParams.set(name, value.trim()); else address.searchParams.delete(name);
    }
    const rows = address.searchParams.has("review") ? [] : ["rows"];  // these alone say nothing
    for (const name of ["by", "at", "alias", "place", "saved", ...rows]) address.searchParams.delete(name);
    const threshold = this.table.thresholds[this.index];
    address.searchParams.set("cutoff", threshold === null ? "none" : String(threshold));
    return address;
  }

  // Browsers take so many changes of the address in a second, and no more.
  remember() {
    this.noting ??= setTimeout(() => {
      this.noting = null;
      const address = this.address();
      history.replaceState(history.state, "", address);
      const tabs = document.querySelector(".tabs"), kept = tabs.dataset.kept.split(" ");
      const decision = new URLSearchParams([...address.searchParams].filter(([name]) => kept.includes(name)));
      for (const link of tabs.querySelectorAll("a")) link.search = decision;
    }, 100);
  }

  draw() {
    const [fpr] = this.of(this.index, "fpr"), [tpr] = this.of(this.index, "tpr");
    for (const picture of this.card.querySelectorAll("[data-picture] svg")) this.mark(picture, this.index);
    for (const tile of this.card.querySelectorAll("[data-metric], [data-total-of]")) {
      const counted = "counted" in tile.dataset, total = tile.dataset.title, metric = tile.dataset.metric ?? tile.dataset.totalOf;
      const [value, low, high] = this.of(this.index, metric)
        .map((each) => each === null ? "–" : counted ? number(this.rows() * each, 1) : number(total ? this.rows() * each : each));
      if (total) tile.previousElementSibling.textContent = `${total} ${count(this.rows())} rows`;
      if (counted) tile.previousElementSibling.textContent = `Flagged of ${count(this.rows())} rows`;
      tile.parentElement.hidden = !this.table.metrics.includes(metric);
      tile.firstElementChild.textContent = value;
      tile.lastElementChild.textContent = value === "–" ? "\u00a0" : `${low} to ${high}`;
    }
    const threshold = this.table.thresholds[this.index];
    const shown = this.card.querySelector("[data-threshold]");
    shown.textContent = threshold === null ? "flag none" : number(threshold);
    shown.dataset.threshold = threshold === null ? "" : String(threshold);
    const points = this.card.querySelector("[data-points]");
    if (points) points.textContent = threshold === null ? "" : `${number(this.table.points[this.index], 1)} points`;
    const counts = this.counts(...this.table.classes);
    for (const cell of this.card.querySelectorAll("[data-count]")) cell.textContent = count(counts[cell.dataset.count]);
    this.range.setAttribute("aria-valuetext",
      `${threshold === null ? "flag none" : `threshold ${number(threshold, 4)}`}, FPR ${number(fpr)}, TPR ${number(tpr)}`);
    // An alias that has the cutoff is named before anything else.
    const places = Object.keys(this.table.places).filter((name) => this.table.places[name] === this.index);
    const aliases = places.filter((name) => name.startsWith("@"));
    const alias = aliases.includes(this.why) ? this.why : aliases[0];
    this.card.querySelector("[data-why-shown]").textContent =
      this.words[alias ?? (this.why || ["cost", "objective", "ks"].find((name) => places.includes(name)))] ?? `Cutoff ${this.index + 1} of ${this.table.cutoffs.length}`;
    const [line, rest] = this.workload();
    this.card.querySelector("[data-workload]").textContent = line;
    this.card.querySelector("[data-workload-of]").textContent = rest;
    const first = this.card.querySelector("[data-first]"), review = positive(this.terms.elements.review.value);
    if (first) {
      const address = new URL(first.href);
      if (review === null) address.searchParams.delete("top"); else address.searchParams.set("top", review);
      first.href = address;
    }
    const verdict = document.querySelector("[data-verdict]");
    if (verdict) verdict.textContent = this.verdict(this.words[alias] ?? "The cutoff below");
    for (const field of document.querySelectorAll("[data-saved-why]")) field.value = this.why;
    for (const field of document.querySelectorAll("[data-saved-cutoff]")) field.value = threshold === null ? "" : String(threshold);
    this.compareGroups();
  }

  // Have the service compare the protected groups at the cutoff, once it rests.
  compareGroups(rest = 200) {
    const chosen = this.table.thresholds[this.index], threshold = chosen === null ? "none" : String(chosen);
    clearTimeout(this.comparing);
    this.comparing = setTimeout(() => {
      // Found only now: the response to an earlier comparison brings a new form.
      const form = document.querySelector("#groups [data-groups-form]");
      if (!form || form.elements.threshold.value === threshold) return;
      form.elements.threshold.value = threshold;
      form.requestSubmit();
    }, rest);
  }

  // Of how many rows the flagged ones are counted, as the page does it.
  rows() {
    return positive(this.terms.elements.rows.value) ?? 1000;
  }

  // The rows of each class on both sides of the cutoff. Each count is rounded when it is shown, after all differences.
  counts(positives, negatives) {
    const [fpr] = this.of(this.index, "fpr"), [tpr] = this.of(this.index, "tpr");
    return { tp: tpr * positives, fn: (1 - tpr) * positives, fp: fpr * negatives, tn: (1 - fpr) * negatives };
  }

  // The same words as the page's own.
  workload() {
    const rows = this.rows(), positives = this.table.prevalence * rows, { tp, fn, fp } = this.counts(positives, rows - positives);
    return [
      `${count(this.of(this.index, "flagged")[0] * rows)} flagged · ${count(tp)} found · ${count(fn)} missed`,
      `Per ${count(rows)} rows (about ${count(positives)} with ${this.card.dataset.positive}). ` +
        `${count(fp)} of the flagged rows are false positives.`,
    ];
  }

  // The same words as the page's own.
  verdict(which) {
    if (this.table.thresholds[this.index] === null) return `${which} flags no rows.`;
    const percent = (share, digits) => share === null ? "–" : `${(100 * share).toFixed(digits)} %`;
    const [caught, low, high] = this.of(this.index, "tpr").map((share) => percent(share, 0));
    return `${which} flags the top ${percent(this.of(this.index, "flagged")[0], 1)} of the rows and finds ` +
      `${caught} (${low} to ${high}) of the positives.` +
      (this.best.names.some((name) => this.table.places[name] === this.index) ? ` ${this.best.words}` : "");
  }

  // Say at a field what is wrong with it; nothing, if it is right.
  fault(name, words) {
    this.card.querySelector(`[data-error="${name}"]`).textContent = words;
    if (words) this.terms.elements[name].setAttribute("aria-invalid", "true"); else this.terms.elements[name].removeAttribute("aria-invalid");
  }

  // How many rows of how many can be reviewed; null if it is not said, or wrongly. While somebody types, a field that is
  // empty is not wrong yet; an answer of the service that comes later does not change that.
  capacity(whole = this.whole) {
    this.whole = whole;
    const fields = [this.terms.elements.review, this.terms.elements.rows];
    const [review, rows] = fields.map((field) => positive(field.value));
    const words = fields.map((field, at) => {
      const text = field.value.trim();
      if (text) return positive(text) === null ? `${field.dataset.wrong}, got '${text.slice(0, 100)}'.` : "";
      return whole && fields[1 - at].value.trim() ? field.dataset.missing : "";
    });
    if (!words[0] && !words[1] && review !== null && rows !== null && review > rows) words[0] = fields[0].dataset.above;
    fields.forEach((field, at) => this.fault(field.name, words[at]));
    return words[0] || words[1] || review === null || rows === null ? null : { review, rows };
  }

  // Have the service look for the best cutoff within what can be reviewed: it knows all thresholds, the page only some.
  fit(whole) {
    this.fitting = this.capacity(whole) !== null;
    if (this.fitting) { this.soon(); return; }
    this.card.querySelector("[data-exceeded]").textContent = "";
    this.draw();
    this.remember();
  }

  across(picture, value) {
    const { left, right, decades, xLow, xHigh } = picture.dataset;
    let share = (value - xLow) / (xHigh - xLow);
    if (decades) share = 1 + Math.log10(Math.max(value, 10 ** decades)) / -decades;
    return Number(left) + Math.min(Math.max(share, 0), 1) * (right - left);
  }

  up(picture, value) {
    const { top, bottom, yLow, yHigh } = picture.dataset;
    return Number(bottom) + (value - yLow) / (yHigh - yLow) * (top - bottom);
  }

  // The place of a cutoff in a picture. Without a height it is an upright line; what has no value has no place.
  place(picture, index) {
    const x = this.at(index, picture.dataset.x), y = picture.dataset.y ? this.at(index, picture.dataset.y) : undefined;
    if (x === null || y === null) return null;
    return [this.across(picture, x), y === undefined ? Number(picture.dataset.top) : this.up(picture, y)];
  }

  mark(picture, index) {
    const place = this.place(picture, index);
    const set = (selector, values) => {
      const part = picture.querySelector(selector);
      if (!part) return;
      part.toggleAttribute("hidden", !place);
      if (place) for (const [name, value] of Object.entries(values)) part.setAttribute(name, value);
    };
    const [x, y] = place ?? [];
    set(".cutoff", { cx: x, cy: y });
    set(".down", { x1: x, y1: y, x2: x });
    set(".across", { y1: y, x2: x, y2: y });
  }

  nearest(picture, event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    let best = 0, least = Infinity;
    for (let index = 0; index < this.table.cutoffs.length; index++) {
      const place = this.place(picture, index);
      if (!place) continue;
      const dx = place[0] - at.x, dy = picture.dataset.y ? place[1] - at.y : 0;
      if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = index; }
    }
    return best;
  }

  // The cutoff follows the finger; beside a mouse stand the metrics of the nearest one. A picture may be replaced.
  follow(part) {
    const svg = () => part.querySelector("svg");
    part.addEventListener("pointerdown", (event) => {
      part.setPointerCapture(event.pointerId);
      this.hint.hidden = true;
      this.go(this.nearest(svg(), event));
    });
    part.addEventListener("pointermove", (event) => {
      if (event.buttons) this.go(this.nearest(svg(), event));
      else if (event.pointerType === "mouse") this.tell(event, this.nearest(svg(), event));
    });
    part.addEventListener("pointerleave", () => { this.hint.hidden = true; });
  }

  tell(event, index) {
    const threshold = this.table.thresholds[index];
    const percent = (name) => { const [value] = this.of(index, name); return value === null ? "–" : `${(100 * value).toFixed(1)} %`; };
    const [cost] = this.of(index, "cost");
    this.hint.textContent = `${threshold === null ? "Flag none" : `Threshold ${number(threshold, 4)}`}: flags ${percent("flagged")} of the rows, TPR ${percent("tpr")}, FPR ${percent("fpr")}, precision ${percent("precision")}${cost === null ? "" : `, cost per row ${number(cost)}`}`;
    this.hint.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.hint;
    this.hint.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
    this.hint.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18}px`;
  }

  scale(link) {
    for (const each of this.card.querySelectorAll("[data-scale]")) {
      if (each === link) each.setAttribute("aria-current", "true"); else each.removeAttribute("aria-current");
    }
    for (const each of this.card.querySelectorAll("[data-picture=linear], [data-picture=log]")) each.hidden = each.dataset.picture !== link.dataset.scale;
  }

  soon() {
    clearTimeout(this.due);
    this.due = setTimeout(() => this.ask(), 300);
  }

  async ask() {
    clearTimeout(this.due);
    this.asking?.abort();
    const asking = this.asking = new AbortController();
    const address = new URL(this.card.dataset.cutoffsFrom, location), asked = new FormData(this.terms);
    for (const [name, value] of asked) if (value.trim() && name !== "on") address.searchParams.set(name, value.trim());
    const busy = document.getElementById("busy");
    const late = setTimeout(() => { busy.textContent = "Working …"; }, 250);
    let problem, errors = {};
    try {
      const answer = await fetch(address, { signal: asking.signal });
      if (answer.redirected || [401, 404].includes(answer.status)) { location.reload(); return; }  // signed out, or the model is gone
      if (!answer.ok) throw new Error(answer.statusText);
      const table = await answer.json();
      ({ problem, errors } = table);
      for (const name of ANSWERED) if (this.terms.elements[name]) this.fault(name, errors[name] ?? "");
      this.answered = asked;
      this.card.querySelector("[data-costs-note]").textContent = table.note;
      if (!problem) this.replace(table);  // with wrong costs it is without them
    } catch (error) {
      if (error.name === "AbortError") return;
      problem = "The service is not responding. Try again.";
    } finally {
      clearTimeout(late);
      busy.textContent = "";
    }
    const place = this.card.querySelector("[data-problem]");
    place.replaceChildren();
    if (problem) {
      const words = document.createElement("p");
      words.className = "problem";
      words.textContent = problem;
      place.append(words);
    }
  }

  // Another table: the cutoff that costs least, or the one that stood.
  replace(table) {
    const threshold = this.table.thresholds[this.index], stood = this.of(this.index, "fpr")[0];
    this.take(table);
    for (const [name, [title, drawn, note]] of Object.entries(table.pictures)) {
      const part = this.card.querySelector(`[data-picture="${name}"]`), figure = part.closest("figure");
      part.innerHTML = drawn;  // the service's own drawing, its words escaped
      figure.querySelector("figcaption").textContent = title;
      figure.querySelector(".note").lastChild.textContent = note;
    }
    const same = table.thresholds.indexOf(threshold);
    const near = table.cutoffs.findIndex((_, index) => this.of(index, "fpr")[0] >= stood);
    const fitted = this.fitting || "cost" in table.places || ["capacity", "cost"].includes(this.why);
    this.fitting = false;
    const { capacity, cost } = table.places, asked = this.capacity();
    const most = asked !== null && capacity !== undefined && cost !== undefined ? this.of(cost, "flagged")[0] * asked.rows : 0;
    this.card.querySelector("[data-exceeded]").textContent = most <= (asked?.review ?? 0) + 1e-6 ? "" :
      `The lowest-cost cutoff flags about ${count(most)} of ${count(asked.rows)} rows, more than the ` +
      `${count(asked.review)} that you can review.`;
    if (fitted && capacity !== undefined) this.go(capacity, capacity === cost ? "cost" : "capacity");
    else this.go(cost ?? (same >= 0 ? same : near));
  }
}

for (const card of document.querySelectorAll("[data-panel]")) new Panel(card);

// What was saved is said once, and not when the page is loaded again.
const once = new URL(location);
if (once.searchParams.has("saved")) {
  once.searchParams.delete("saved");
  history.replaceState(history.state, "", once);
}
