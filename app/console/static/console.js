// What every page of the console does beside its HTML. Each page works for reading without it.

const busy = document.getElementById("busy");

// Whatever takes longer than a moment says that it is at work.
let waiting;
const wait = (text = "Working …") => {
  clearTimeout(waiting);
  waiting = setTimeout(() => { busy.textContent = text; }, 250);
};
const rest = () => { clearTimeout(waiting); busy.textContent = ""; };
document.addEventListener("submit", (event) => {
  const asked = event.submitter?.dataset.confirm ?? event.target.dataset.confirm;
  if (asked && !window.confirm(asked)) { event.preventDefault(); return; }
  if (event.defaultPrevented) return;  // another script sends it
  if (event.target.dataset.sending) { event.preventDefault(); return; }  // twice is once
  event.target.dataset.sending = "yes";
  wait();
});
window.addEventListener("pageshow", () => {
  rest();
  for (const form of document.forms) delete form.dataset.sending;
});
window.addEventListener("pagehide", rest);
document.addEventListener("htmx:beforeRequest", (event) => {
  if (!event.target.matches("[data-events], [hx-trigger*='every']")) wait();  // what goes on by itself does so quietly
});
document.addEventListener("htmx:afterRequest", rest);
document.addEventListener("htmx:beforeSwap", (event) => {
  // What the API says of a mistake is shown in the place that asked.
  if (event.detail.xhr.status >= 400 && event.detail.xhr.status < 500) event.detail.shouldSwap = true;
});
document.addEventListener("htmx:sendError", () => { clearTimeout(waiting); busy.textContent = "The service is not responding. Retrying …"; });

// Lists: how many are chosen, and all of a page at once.
const chosen_of = (form) => [...form.elements].filter((each) => each.type === "checkbox");
const count_chosen = () => {
  const form = document.getElementById("chosen");
  if (!form) return;
  const boxes = chosen_of(form), count = boxes.filter((each) => each.checked).length;
  form.querySelector("[data-count]").textContent = count ? `${count} selected` : "";
  const all = document.querySelector("[data-all]");
  if (!all) return;
  all.hidden = false;
  all.checked = count > 0 && count === boxes.length;
  all.indeterminate = count > 0 && count < boxes.length;
};
document.addEventListener("change", (event) => {
  if (event.target.matches?.("[data-all]")) for (const each of chosen_of(document.getElementById("chosen"))) each.checked = event.target.checked;
  if (event.target.type === "checkbox") count_chosen();
});
window.addEventListener("pageshow", count_chosen);
document.addEventListener("htmx:afterSettle", count_chosen);

// What a reader has unfolded stays so when the part around it is replaced.
let unfolded = [];
document.addEventListener("htmx:beforeSwap", (event) => {
  unfolded = [...event.detail.target.querySelectorAll("details[id][open]")].map((part) => part.id);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
});

// An answer that came comes into view, and a reader of the screen hears it.
document.addEventListener("htmx:afterSettle", (event) => {
  const answer = event.target.querySelector?.(".answer:not([hidden])");
  if (!answer || event.detail.requestConfig?.verb !== "post") return;
  answer.focus({ preventScroll: true });
  const first = answer.querySelector(".result, .problem") ?? answer;  // the answer may be higher than the window
  first.scrollIntoView({ block: "nearest" });
});

// What scrolls can be reached by keyboard.
const reach = () => {
  for (const part of document.querySelectorAll(".scroll")) {
    if (part.scrollWidth > part.clientWidth || part.scrollHeight > part.clientHeight) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
  }
};
reach();
window.addEventListener("resize", reach);
document.addEventListener("htmx:afterSettle", reach);

// The head of a long table stays in view while the page scrolls. What scrolls sideways is no part of the page to the
// stylesheet's `sticky`, so there the head is moved.
const keep_heads = () => {
  for (const part of document.querySelectorAll(".paged")) {
    const table = part.firstElementChild, head = table.tHead;
    part.classList.toggle("fits", table.scrollWidth <= part.clientWidth);
    const most = table.offsetHeight - head.offsetHeight - table.rows[table.rows.length - 1].offsetHeight;
    const down = part.classList.contains("fits") ? 0 : Math.max(0, Math.min(-part.getBoundingClientRect().top, most));
    head.style.transform = down ? `translateY(${down}px)` : "";
  }
};
// A shadow says that a table or a chart goes on to the right.
const mark_rest = () => {
  for (const part of document.querySelectorAll(".scroll"))
    part.classList.toggle("more", part.scrollLeft + part.clientWidth < part.scrollWidth - 1);
};
const fit = () => { keep_heads(); mark_rest(); };
fit();
for (const moved of ["scroll", "resize"]) window.addEventListener(moved, fit, { passive: true });
document.addEventListener("htmx:afterSettle", fit);
document.addEventListener("toggle", fit, true);
document.addEventListener("scroll", mark_rest, { capture: true, passive: true });

// "3 minutes ago" stays true while the page is open. The service's clock counts, not the reader's.
const ahead = Date.parse(document.body.dataset.now) - Date.now();
function ago(at, now) {  // the rule of `ago` in rendering.py
  const past = now >= at, seconds = Math.abs(now - at) / 1000;
  if (seconds < 60) return past ? "just now" : "in less than a minute";
  const [minutes, hours, days] = [60, 3600, 86400].map((length) => Math.floor(seconds / length + (past ? 0 : 0.5)));
  const [whole, unit] = minutes < 60 ? [minutes, "minute"] : hours < 24 ? [hours, "hour"] : [days, "day"];
  if (unit === "day" && whole > 30) return new Date(at).toISOString().slice(0, 10);
  const words = `${whole} ${unit}${whole === 1 ? "" : "s"}`;
  return past ? `${words} ago` : `in ${words}`;
}
const tell_time = () => {
  for (const time of document.querySelectorAll("time[datetime][title]")) {
    const words = ago(Date.parse(time.dateTime), Date.now() + ahead);
    if (time.textContent !== words) time.textContent = words;
  }
};
setInterval(tell_time, 10_000);
document.addEventListener("visibilitychange", tell_time);

// Buttons that copy. Over plain HTTP, and where it is forbidden, scripts have no clipboard: there a selection is copied.
const offer_copies = () => { for (const button of document.querySelectorAll("button.copy[hidden]")) button.hidden = false; };
offer_copies();
document.addEventListener("htmx:afterSettle", offer_copies);
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("button.copy");
  if (!button) return;
  let copied = false;
  try { await navigator.clipboard.writeText(button.dataset.copy); copied = true; } catch {
    const field = document.createElement("textarea");
    field.value = button.dataset.copy;
    field.className = "away";
    button.after(field);
    field.select();
    copied = document.execCommand("copy");
    field.remove();
    button.focus();
  }
  const word = button.firstElementChild;
  word.textContent = copied ? "Copied" : "Not copied";
  clearTimeout(waiting);
  busy.textContent = copied ? "Copied" : "The browser blocked copying. Select and copy the text instead.";
  setTimeout(() => { word.textContent = "Copy"; busy.textContent = ""; }, 2000);
});

// A part of a page that follows a job: each event has its fragment loaded anew, by htmx, which must be ready then.
document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("[data-events]").forEach(follow));

function follow(part) {
  const ended = () => part.querySelector("[data-final]") !== null;
  const stream = new EventSource(part.dataset.events);
  let due = null, lost = null;
  // A browser opens six connections to a host, whatever the number of tabs: those that nobody sees give theirs back.
  const hide = () => {
    if (!document.hidden) return;
    stream.close();
    clearTimeout(lost);
    document.removeEventListener("visibilitychange", hide);
    document.removeEventListener("htmx:afterSettle", stop);
    document.addEventListener("visibilitychange", () => { if (!ended()) follow(part); }, { once: true });
  };
  const refresh = () => {
    due ??= setTimeout(() => { due = null; window.htmx.trigger(part, "refresh"); }, 200);
  };
  const stop = () => {
    if (!ended()) return;
    stream.close();
    clearTimeout(lost);
    clearTimeout(due);  // nothing changes any more, and a click must not meet a new page
    document.removeEventListener("htmx:afterSettle", stop);
    document.removeEventListener("visibilitychange", hide);
  };
  stream.onopen = () => { clearTimeout(lost); rest(); refresh(); };
  for (const type of (part.dataset.types || "").split(" ")) stream.addEventListener(type, refresh);
  stream.onmessage = refresh;
  stream.onerror = () => {
    refresh();  // it may be the end of the job, or of the session
    clearTimeout(lost);
    lost = setTimeout(() => { if (!ended()) busy.textContent = "Connection lost. Retrying …"; }, 1500);
    if (stream.readyState !== EventSource.CLOSED) return;  // the browser tries again by itself
    document.removeEventListener("htmx:afterSettle", stop);
    document.removeEventListener("visibilitychange", hide);
    setTimeout(() => { if (!ended()) follow(part); }, 3000);
  };
  document.addEventListener("htmx:afterSettle", stop);
  document.addEventListener("visibilitychange", hide);
}

// What was typed outlives the session: it is kept in this tab while a form is sent, and stands there again after a new
// sign-in by the same owner. No file, no secret and no token is kept.
const KEPT = "rankwright:typed", BACK = "rankwright:back";
let storage = null;
try { storage = window.sessionStorage; } catch { /* the browser blocks it: nothing is kept */ }
const owner = document.querySelector(".who")?.dataset.who;
const typed_in = (form) => [...form.elements].filter((field) => field.name && !field.readOnly && !["hidden", "password", "file", "submit", "button"].includes(field.type));
const key_of = (form) => form.id || form.getAttribute("action") || "";

function keep() {
  if (!owner) return;
  const forms = {};
  for (const form of document.forms) {
    if (form.matches(".who")) continue;
    forms[key_of(form)] = typed_in(form).map((field) => [field.name, ["checkbox", "radio"].includes(field.type) ? field.checked && field.value : field.multiple ? [...field.selectedOptions].map((option) => option.value) : field.value]);
  }
  try { storage?.setItem(KEPT, JSON.stringify({ owner, page: location.pathname + location.search, forms })); } catch { /* there is no room: nothing is kept */ }
}
document.addEventListener("submit", (event) => {
  if (event.target.matches(".who")) storage?.removeItem(KEPT);  // who signs out is done
  else keep();
}, true);
document.addEventListener("htmx:beforeRequest", keep);
// Another sign-in in this browser: the page's own token is of the session before.
window.come_back = () => { keep(); storage?.setItem(BACK, "yes"); location.reload(); };  // uploads ask for it, too
document.addEventListener("htmx:beforeSwap", (event) => {
  if (!event.detail.xhr.getResponseHeader("x-session-changed")) return;
  event.detail.shouldSwap = false;
  window.come_back();
});

const kept = JSON.parse(storage?.getItem(KEPT) ?? "null");
if (kept && !owner) {  // the sign-in page, which leads back to the form
  const next = document.querySelector('form[action$="/sign-in"] [name="next"]');
  if (next) { next.value = kept.page; storage?.setItem(BACK, "yes"); }
} else if (kept && document.querySelector("[data-session-changed]")) {  // a plain form was sent with the token of another session
  storage?.setItem(BACK, "yes");
  const back = document.querySelector("[data-session-changed]");
  back.href = kept.page;
  back.hidden = false;
} else if (kept) {
  const wanted = storage?.getItem(BACK) && kept.owner === owner && kept.page === location.pathname + location.search;
  storage?.removeItem(KEPT);
  storage?.removeItem(BACK);
  // Once htmx listens to what changes.
  if (wanted) document.addEventListener("DOMContentLoaded", () => setTimeout(() => restore(kept.forms)));
}

function restore(forms) {
  let files = false, told = false;
  // Some fields come only once others are filled in, and some parts of a page come later.
  const fill = () => {
    for (const form of document.forms) {
      const values = forms[key_of(form)];
      if (!values?.length) continue;
      files ||= form.querySelector("input[type=file]") !== null;
      const fields = typed_in(form), waiting = [];
      let follows = null;
      for (const [name, value] of values) {
        const at = fields.findIndex((field) => field.name === name && (field.type !== "radio" || field.value === value || value === false));
        if (at < 0) { if (value && value.length) waiting.push([name, value]); continue; }
        const [field] = fields.splice(at, 1);
        if (["checkbox", "radio"].includes(field.type)) { if (value !== false || field.type === "checkbox") field.checked = value !== false; continue; }
        const wanted = Array.isArray(value) ? value : [value];
        if (field.tagName === "SELECT") {
          for (const each of wanted) if (![...field.options].some((option) => option.value === each)) field.add(new Option(each, each));
          for (const option of field.options) option.selected = wanted.includes(option.value);
          field.dispatchEvent(new Event("restored"));  // a picker shows it
          if (field.hasAttribute("hx-post")) follows = field;
        } else field.value = value;
        if (value && value !== field.defaultValue) { const fold = field.closest("details"); if (fold) fold.open = true; }
      }
      forms[key_of(form)] = waiting;
      if (follows && waiting.length) follows.dispatchEvent(new Event("change", { bubbles: true }));
      if (!told) {
        told = true;
        const words = document.createElement("p");
        words.className = "done";
        words.setAttribute("role", "status");
        words.textContent = "You are signed in again. Nothing was sent, and your entries are kept." + (files ? " Choose the file again, because browsers do not keep it." : "");
        const title = document.querySelector("h1");
        (title?.closest(".head") ?? title)?.after(words);
        words.scrollIntoView({ block: "nearest" });
      }
    }
  };
  fill();
  document.addEventListener("htmx:afterSettle", fill);
}

// The palette: Ctrl-K, or the link, which leads to a page of the same where there is no script.
const finder = document.querySelector("[data-find]");
if (finder) {
  let palette, typed;
  const look = async () => {
    const text = palette.querySelector("input").value;
    const answer = await fetch(`${finder.href}?part=1&q=${encodeURIComponent(text)}`);
    if (answer.ok && text === palette.querySelector("input").value) palette.querySelector("div").innerHTML = await answer.text();
  };
  const open = (event) => {
    event.preventDefault();
    if (!palette) {
      palette = document.createElement("dialog");
      palette.className = "palette";
      palette.ariaLabel = "Find";
      palette.innerHTML = '<form role="search"><input type="search" aria-label="Search by name" placeholder="Page, model or dataset" autocomplete="off" spellcheck="false" maxlength="100"></form><div></div>';
      document.body.append(palette);
      palette.addEventListener("input", () => { clearTimeout(typed); typed = setTimeout(look, 120); });
      palette.addEventListener("submit", (sent) => { sent.preventDefault(); sent.stopPropagation(); palette.querySelector("a")?.click(); });
      palette.addEventListener("click", (clicked) => { if (clicked.target === palette) palette.close(); });
      palette.addEventListener("keydown", (pressed) => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[pressed.key];
        if (!step) return;
        pressed.preventDefault();
        const links = [...palette.querySelectorAll("a")], at = links.indexOf(document.activeElement) + step;
        (links[at] ?? palette.querySelector("input")).focus();
      });
    }
    if (!palette.open) palette.showModal();
    palette.querySelector("input").select();
    look();
  };
  finder.addEventListener("click", open);
  document.addEventListener("keydown", (event) => { if ((event.ctrlKey || event.metaKey) && event.key === "k") open(event); });
}
