// The slider on the ROC curve. The page brings a table of cuts with all their intervals; whatever is dragged or typed
// shows one of them in the next frame. Other costs, or another share of positives, have the service make a new table.

const SHOWN_SMALL = 1e-3, SHOWN_GREAT = 1e4;

export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (value === 0 || (size >= SHOWN_SMALL && size < SHOWN_GREAT)) return value.toFixed(digits);
  return String(Number(value.toPrecision(digits)));
}

const count = (value) => Math.round(value).toLocaleString("en-US");

class Slider {
  constructor(card) {
    this.card = card;
    this.range = card.querySelector("#cut");
    this.index = Number(card.dataset.start);
    this.take(JSON.parse(card.dataset.cuts));
    card.querySelector("[data-slider]").hidden = false;
    this.range.addEventListener("input", () => this.go(Number(this.range.value)));
    for (const picture of card.querySelectorAll("[data-picture] svg")) this.follow(picture);
    for (const button of card.querySelectorAll("[data-place]"))
      button.addEventListener("click", () => this.go(this.table.places[button.dataset.place]));
    for (const link of card.querySelectorAll("[data-scale]"))
      link.addEventListener("click", (event) => { event.preventDefault(); this.scale(link); });
    this.terms = card.querySelector("[data-terms]");
    this.terms.addEventListener("input", () => this.soon());
    this.terms.addEventListener("submit", (event) => {
      event.preventDefault();
      event.stopPropagation();  // nothing is sent: no notice, and no lock on the form
      this.ask();
    });
    const asking = card.querySelector("[data-ask]");
    asking.addEventListener("submit", () => {  // with the costs as they stand now
      for (const [name, value] of new FormData(this.terms)) asking.elements[name].value = value;
    });
    this.draw();
  }

  take(table) {
    this.table = table;
    this.range.max = table.cuts.length - 1;
    for (const button of this.card.querySelectorAll("[data-place]"))
      button.hidden = !(button.dataset.place in table.places);
  }

  // A figure of a cut: value, low and high.
  of(index, name) {
    const at = this.table.figures.indexOf(name);
    return at < 0 ? [null, null, null] : this.table.cuts[index].slice(3 * at, 3 * at + 3);
  }

  go(index) {
    this.index = Math.min(Math.max(index, 0), this.table.cuts.length - 1);
    this.range.value = this.index;
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = null; this.draw(); });
  }

  draw() {
    const [fpr] = this.of(this.index, "fpr"), [tpr] = this.of(this.index, "tpr");
    for (const picture of this.card.querySelectorAll("[data-picture] svg")) this.mark(picture, fpr, tpr);
    for (const tile of this.card.querySelectorAll("[data-figure]")) {
      const thousand = "thousands" in tile.dataset;
      const [value, low, high] = this.of(this.index, tile.dataset.figure)
        .map((each) => each === null ? "–" : thousand ? number(1000 * each, 1) : number(each));
      tile.parentElement.hidden = !this.table.figures.includes(tile.dataset.figure);
      tile.firstElementChild.textContent = value;
      tile.lastElementChild.textContent = value === "–" ? "\u00a0" : `${low} to ${high}`;
    }
    const threshold = this.table.thresholds[this.index];
    const shown = this.card.querySelector("[data-threshold]");
    shown.firstElementChild.textContent = threshold === null ? "flag nothing" : number(threshold, 4);
    shown.lastElementChild.textContent = threshold === null ? "\u00a0" : String(threshold);
    const [positives, negatives] = this.table.classes;
    const counts = {
      tp: tpr * positives, fn: (1 - tpr) * positives, fp: fpr * negatives, tn: (1 - fpr) * negatives,
    };
    for (const cell of this.card.querySelectorAll("[data-count]")) cell.textContent = count(counts[cell.dataset.count]);
    this.range.setAttribute("aria-valuetext",
      `${threshold === null ? "flag nothing" : `threshold ${number(threshold, 4)}`}, FPR ${number(fpr)}, TPR ${number(tpr)}`);
    const words = { cost: "The threshold with the lowest cost", objective: "The threshold of the objective", balance: "The threshold with the greatest TPR − FPR" };
    const place = ["cost", "objective", "balance"].find((name) => this.table.places[name] === this.index);
    this.card.querySelector("[data-why]").textContent = words[place] ?? `Cut ${this.index + 1} of ${this.table.cuts.length}`;
  }

  across(picture, fpr) {
    const { left, right, decades } = picture.dataset;
    const share = decades ? 1 + Math.log10(Math.max(fpr, 10 ** decades)) / -decades : fpr;
    return Number(left) + share * (right - left);
  }

  up(picture, tpr) {
    const { top, bottom } = picture.dataset;
    return Number(bottom) + tpr * (top - bottom);
  }

  mark(picture, fpr, tpr) {
    const x = this.across(picture, fpr), y = this.up(picture, tpr);
    const set = (selector, values) => {
      const part = picture.querySelector(selector);
      for (const [name, value] of Object.entries(values)) part.setAttribute(name, value);
    };
    set(".cut", { cx: x, cy: y });
    set(".down", { x1: x, y1: y, x2: x });
    set(".across", { y1: y, x2: x, y2: y });
  }

  // The nearest cut on the picture follows the finger.
  follow(picture) {
    const move = (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
      let best = 0, least = Infinity;
      for (let index = 0; index < this.table.cuts.length; index++) {
        const dx = this.across(picture, this.of(index, "fpr")[0]) - at.x;
        const dy = this.up(picture, this.of(index, "tpr")[0]) - at.y;
        if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = index; }
      }
      this.go(best);
    };
    picture.addEventListener("pointerdown", (event) => {
      picture.setPointerCapture(event.pointerId);
      move(event);
    });
    picture.addEventListener("pointermove", (event) => { if (event.buttons) move(event); });
  }

  scale(link) {
    for (const each of this.card.querySelectorAll("[data-scale]")) {
      if (each === link) each.setAttribute("aria-current", "true"); else each.removeAttribute("aria-current");
    }
    for (const each of this.card.querySelectorAll("[data-picture]")) each.hidden = each.dataset.picture !== link.dataset.scale;
  }

  soon() {
    clearTimeout(this.due);
    this.due = setTimeout(() => this.ask(), 300);
  }

  async ask() {
    clearTimeout(this.due);
    this.asking?.abort();
    const asking = this.asking = new AbortController();
    const address = new URL(this.card.dataset.cutsFrom, location);
    for (const [name, value] of new FormData(this.terms)) if (value.trim()) address.searchParams.set(name, value.trim());
    const busy = document.getElementById("busy");
    const late = setTimeout(() => { busy.textContent = "Working …"; }, 250);
    let problem;
    try {
      const answer = await fetch(address, { signal: asking.signal });
      if (answer.redirected || !answer.ok) { location.reload(); return; }  // signed out, or the model is gone
      const table = await answer.json();
      problem = table.problem;
      if (!problem) {
        const threshold = this.table.thresholds[this.index], stood = this.of(this.index, "fpr")[0];
        this.take(table);
        const same = table.thresholds.indexOf(threshold);
        const near = table.cuts.findIndex((_, index) => this.of(index, "fpr")[0] >= stood);
        this.go("cost" in table.places ? table.places.cost : same >= 0 ? same : near);
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      problem = "The service does not answer. Try again.";
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
}

for (const card of document.querySelectorAll("[data-roc]")) new Slider(card);
