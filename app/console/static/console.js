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
document.addEventListener("htmx:beforeRequest", (event) => {
  if (!event.target.matches("[data-events], [hx-trigger*='every']")) wait();  // what goes on by itself does so quietly
});
document.addEventListener("htmx:afterRequest", rest);
document.addEventListener("htmx:beforeSwap", (event) => {
  // What the API says of a mistake is shown in the place that asked.
  if (event.detail.xhr.status >= 400 && event.detail.xhr.status < 500) event.detail.shouldSwap = true;
});
document.addEventListener("htmx:sendError", () => { clearTimeout(waiting); busy.textContent = "The service does not answer. Trying again …"; });

// An answer that came comes into view, and a reader of the screen hears it.
document.addEventListener("htmx:afterSettle", (event) => {
  const answer = event.target.querySelector?.(".answer:not([hidden])");
  if (!answer || event.detail.requestConfig?.verb !== "post") return;
  answer.focus({ preventScroll: true });
  answer.scrollIntoView({ block: "nearest" });
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

// A part of a page that follows a job: each event has its fragment loaded anew.
for (const part of document.querySelectorAll("[data-events]")) follow(part);

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
    document.removeEventListener("htmx:afterSettle", stop);
    document.removeEventListener("visibilitychange", hide);
  };
  stream.onopen = () => { clearTimeout(lost); rest(); refresh(); };
  for (const type of (part.dataset.types || "").split(" ")) stream.addEventListener(type, refresh);
  stream.onmessage = refresh;
  stream.onerror = () => {
    refresh();  // it may be the end of the job, or of the session
    clearTimeout(lost);
    lost = setTimeout(() => { if (!ended()) busy.textContent = "The connection is lost. Trying again …"; }, 1500);
    if (stream.readyState !== EventSource.CLOSED) return;  // the browser tries again by itself
    document.removeEventListener("htmx:afterSettle", stop);
    document.removeEventListener("visibilitychange", hide);
    setTimeout(() => { if (!ended()) follow(part); }, 3000);
  };
  document.addEventListener("htmx:afterSettle", stop);
  document.addEventListener("visibilitychange", hide);
}
