// The form of a row with many features: a field finds those by a part of their name.

prepare(document);
document.addEventListener("htmx:load", (event) => prepare(event.target));

function prepare(part) {
  const filter = part.querySelector("[data-filter]");
  if (!filter) return;
  filter.hidden = false;
  const groups = [...filter.parentElement.querySelectorAll("details")];
  const opened = groups.map((group) => group.open);
  filter.querySelector("input").addEventListener("input", (event) => {
    const sought = event.target.value.trim().toLowerCase();
    let n_found = 0;
    for (const [at, group] of groups.entries()) {
      let any = false;
      for (const field of group.querySelectorAll("[data-feature]")) {
        field.hidden = !field.dataset.feature.includes(sought);
        if (!field.hidden) { any = true; n_found += 1; }
      }
      group.hidden = !any;
      group.open = sought ? any : opened[at];
    }
    filter.querySelector("[role=status]").textContent = sought ? `${n_found} found` : "";
  });
  filter.querySelector("input").addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
}
