// A select of models or datasets becomes a field that finds them by a part of the name (ARIA combobox with a list).
// The select stays in its form, unseen: it holds what is chosen. Without this script it is there as it is.

const WAIT = 150;  // ms after a key until the service is asked
const make = (tag, given = {}) => Object.assign(document.createElement(tag), given);
const words = (option) => option.text.trim();

class Picker {
  constructor(box) {
    this.box = box;
    this.select = box.querySelector("select");
    this.several = this.select.multiple;
    this.required = this.select.required;
    this.at = -1;  // which option of the list is marked
    this.build();
    this.show();
  }

  build() {
    const { id } = this.select;
    this.field = make("input", { id: `${id}-find`, type: "text", autocomplete: "off", spellcheck: false, maxLength: 255, placeholder: "Search by name" });
    for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": `${id}-list` })) this.field.setAttribute(name, value);
    for (const name of ["aria-describedby", "aria-invalid"]) if (this.select.hasAttribute(name)) this.field.setAttribute(name, this.select.getAttribute(name));
    this.list = make("ul", { id: `${id}-list`, className: "picker-list", hidden: true });
    this.list.setAttribute("role", "listbox");
    if (this.several) this.list.setAttribute("aria-multiselectable", "true");
    const label = this.select.labels[0];
    if (label) {
      label.htmlFor = this.field.id;
      this.list.setAttribute("aria-label", `Choices: ${label.textContent.trim()}`);
    }
    this.chips = make("ul", { className: "chips" });
    if (this.several) this.box.prepend(this.chips);
    this.select.before(this.field, this.list);
    this.select.hidden = true;
    this.select.required = false;

    this.field.addEventListener("input", () => this.seek(WAIT));
    this.field.addEventListener("click", () => { if (this.list.hidden) this.open(); });
    this.field.addEventListener("keydown", (event) => this.press(event));
    this.field.addEventListener("blur", () => this.close());
    this.list.addEventListener("mousedown", (event) => {
      event.preventDefault();  // the field keeps the focus
      const entry = event.target.closest("[role=option]");
      if (entry) this.pick([...this.list.children].indexOf(entry));
    });
    this.select.addEventListener("restored", () => this.show());
  }

  get chosen() { return [...this.select.selectedOptions].filter((option) => option.value); }

  // What the field says while nobody seeks.
  get said() { return this.several || !this.chosen.length ? "" : words(this.chosen[0]); }

  // What is chosen stands in the field, or as chips before it.
  show() {
    const { chosen } = this;
    this.field.required = this.required && !chosen.length;
    this.field.value = this.said;
    if (!this.several) return;
    this.chips.hidden = !chosen.length;
    this.chips.replaceChildren(...chosen.map((option) => {
      const chip = make("li", { textContent: words(option) });
      const remove = make("button", { type: "button", className: "plain", textContent: "×" });
      remove.setAttribute("aria-label", `Remove ${words(option)}`);
      remove.addEventListener("click", () => { option.selected = false; this.changed(); this.field.focus(); });
      chip.append(remove);
      return chip;
    }));
  }

  changed() {
    this.show();
    this.select.dispatchEvent(new Event("change", { bubbles: true }));
  }

  open() {
    if (!this.several) this.field.select();
    this.seek(0, "");
  }

  // Ask for what has the text in its name; only the newest answer counts.
  seek(wait, text = this.field.value.trim()) {
    clearTimeout(this.due);
    this.due = setTimeout(async () => {
      this.asked?.abort();
      this.asked = new AbortController();
      const query = new URLSearchParams({ [`find_${this.box.dataset.picker}`]: text });
      if (this.box.dataset.fits) {
        query.set("use", this.box.dataset.fits);
        if (this.box.dataset.model) query.append("with_model", this.box.dataset.model);
        for (const name of ["model", "models", "dataset_id"]) {
          if (name === this.select.name) continue;
          const field = this.select.form?.elements[name];
          for (const option of field?.selectedOptions ?? []) if (option.value) query.append(name === "dataset_id" ? "with_dataset" : "with_model", option.value);
        }
      }
      let found = "";
      try {
        const answer = await fetch(`${this.box.dataset.url}?${query}`, { signal: this.asked.signal, headers: { "HX-Request": "true", "HX-Current-URL": location.href } });
        if (answer.headers.get("HX-Redirect")) { window.come_back(); return; }
        if (!answer.ok) throw new Error(answer.status);
        found = await answer.text();
      } catch (error) {
        if (error.name === "AbortError") return;
        this.list.replaceChildren(this.note("The service is not responding. Type again to retry."));
        this.expand();
        return;
      }
      if (document.activeElement !== this.field) return;
      const holder = make("select", { innerHTML: found });
      this.options = [...holder.options];
      this.fill();
    }, wait);
  }

  note(text) {
    const note = make("li", { textContent: text, className: "note" });
    note.setAttribute("role", "option");
    note.setAttribute("aria-disabled", "true");
    return note;
  }

  fill() {
    const held = new Set(this.chosen.map((option) => option.value));
    this.options = this.options.filter((option) => option.value || option.dataset.note !== undefined);
    this.list.replaceChildren(...this.options.map((option, number) => {
      if (!option.value) return this.note(words(option));
      const entry = make("li", { id: `${this.list.id}-${number}`, textContent: words(option) });
      entry.setAttribute("role", "option");
      entry.setAttribute("aria-selected", held.has(option.value));
      if (option.disabled) entry.setAttribute("aria-disabled", "true");
      return entry;
    }));
    this.expand();
    this.mark(this.field.value.trim() ? this.options.findIndex((option) => option.value && !option.disabled) : this.options.findIndex((option) => held.has(option.value)));
  }

  expand() {
    this.list.hidden = false;
    this.field.setAttribute("aria-expanded", "true");
  }

  mark(at) {
    this.list.querySelector(".marked")?.classList.remove("marked");
    this.at = at;
    const entry = this.list.children[at];
    if (!entry) { this.field.removeAttribute("aria-activedescendant"); return; }
    entry.classList.add("marked");
    entry.scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", entry.id);
  }

  move(step) {
    const last = this.options.length - 1;
    let at = this.at;
    do at += step; while (at >= 0 && at <= last && !this.options[at].value);
    if (at >= 0 && at <= last) this.mark(at);
  }

  press(event) {
    const { key } = event;
    if (key === "ArrowDown" || key === "ArrowUp") {
      event.preventDefault();
      if (this.list.hidden) this.open(); else this.move(key === "ArrowDown" ? 1 : -1);
    } else if (key === "Enter" && !this.list.hidden) {
      event.preventDefault();
      this.pick(this.at);
    } else if (key === "Escape" && !this.list.hidden) {
      event.preventDefault();
      event.stopPropagation();
      this.close();
    } else if (key === "Backspace" && this.several && !this.field.value && this.chosen.length) {
      this.chosen.at(-1).selected = false;
      this.changed();
    }
  }

  pick(at) {
    const option = this.options?.[at];
    if (!option?.value || option.disabled) return;
    let own = [...this.select.options].find((each) => each.value === option.value);
    own ??= new Option(option.text, option.value);
    this.select.append(own);  // in the order of choosing
    own.disabled = false;
    own.selected = this.several ? !own.selected : true;
    this.close();
    this.changed();
  }

  close() {
    clearTimeout(this.due);
    this.asked?.abort();
    this.list.hidden = true;
    this.field.setAttribute("aria-expanded", "false");
    this.mark(-1);
    this.field.value = this.said;  // the chips stay: one of them may be what is clicked
  }
}

let focused = null;
const enhance = (root) => {
  for (const box of root.querySelectorAll("[data-picker]")) {
    if (box.querySelector("[role=combobox]")) continue;
    new Picker(box);
    if (focused === `${box.querySelector("select").id}-find`) box.querySelector("input").focus();
  }
};
enhance(document);
// A part of the page that is replaced keeps the field that the reader is in.
document.addEventListener("htmx:beforeSwap", () => { focused = document.activeElement?.id ?? null; });
document.addEventListener("htmx:afterSettle", () => { enhance(document); focused = null; });
