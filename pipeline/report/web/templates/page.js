"use strict";
// Sorting by the heads of tables, filtering of problems, and opening the kernel that a link leads to.
const sortable = (table) => {
  const body = table.tBodies[0];
  if (body.rows.length < 2) return;
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.trim();
    const number = parseFloat(text.replace(/,/g, ""));
    return { number, text, empty: text === "" || text === "-" };
  };
  const compare = (a, b) =>
    Number.isNaN(a.number) || Number.isNaN(b.number) ? a.text.localeCompare(b.text) : a.number - b.number;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      // Figures begin with the largest, words with the first.
      const first = head.classList.contains("number") ? "descending" : "ascending";
      const other = first === "descending" ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const rows = [...body.rows].map((row) => ({ row, key: value(row, column) }));
      const sign = order === "ascending" ? 1 : -1;
      rows.sort((a, b) => a.key.empty - b.key.empty || (a.key.empty ? 0 : sign * compare(a.key, b.key)));
      body.append(...rows.map(({ row }) => row));
    });
  });
};
const filterable = (form) => {
  const rows = [...document.getElementById(form.dataset.table).tBodies[0].rows];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const [search, pace, output] = ["input", "select", "output"].map((name) => form.querySelector(name));
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const row of rows) {
      row.hidden =
        !words.every((word) => texts.get(row).includes(word)) ||
        (pace.value !== "" && row.dataset.pace !== pace.value);
      left += !row.hidden;
    }
    output.value = `${left} of ${rows.length} problems`;
  };
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
};
const enhance = (root) => {
  root.querySelectorAll("table.sortable").forEach(sortable);
  root.querySelectorAll("form.filter").forEach(filterable);
};
enhance(document);
const reveal = () => {
  const found = document.getElementById(location.hash.slice(1));
  if (found instanceof HTMLDetailsElement) {
    found.open = true;
    found.scrollIntoView();
    found.querySelector("summary").focus({ preventScroll: true });
  }
};
addEventListener("hashchange", reveal);
reveal();
