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
  const asked = event.target.dataset.confirm;
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
document.addEventListener("htmx:beforeRequest", () => wait());
document.addEventListener("htmx:afterRequest", rest);
document.addEventListener("htmx:beforeSwap", (event) => {
  // What the API says of a mistake is shown in the place that asked.
  if (event.detail.xhr.status >= 400 && event.detail.xhr.status < 500) event.detail.shouldSwap = true;
});
document.addEventListener("htmx:sendError", () => { busy.textContent = "The service does not answer. Trying again …"; });

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

// A part of a page that follows a job: each event has its fragment loaded anew.
for (const part of document.querySelectorAll("[data-events]")) follow(part);

function follow(part) {
  const stream = new EventSource(part.dataset.events);
  let due = null;
  const refresh = () => {
    if (due) return;
    due = setTimeout(() => { due = null; window.htmx.trigger(part, "refresh"); }, 200);
  };
  stream.onopen = () => { rest(); refresh(); };
  for (const type of (part.dataset.types || "").split(" ")) stream.addEventListener(type, refresh);
  stream.onmessage = refresh;
  stream.onerror = () => {
    if (stream.readyState === EventSource.CLOSED) { refresh(); setTimeout(() => follow(part), 3000); }
    else busy.textContent = "The connection is lost. Trying again …";
  };
  document.addEventListener("htmx:afterSettle", () => {
    if (part.querySelector("[data-final]")) { stream.close(); rest(); }
  });
}
