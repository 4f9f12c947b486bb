"use strict";
// The page follows the database. It asks whether something is new; the parts that differ are replaced,
// and what a reader opened, sorted, typed and reached with the keyboard stays as it was.
const LOOK_MS = 1000;
const live = document.getElementById("live");
const tell = (words) => {
  const place = live.querySelector("[role=status]");
  if (place.textContent !== words) place.textContent = words;
};
const parts = (page) =>
  new Map(
    [...page.querySelector("main").children].map((part, place) => [
      part.id || part.getAttribute("aria-labelledby") || `part ${place}`,
      part,
    ]),
  );
const texts = (found) => new Map([...found].map(([key, part]) => [key, part.outerHTML]));
let sent = texts(parts(document)); // before the other script adds its buttons
const shown = { ...live.dataset };

// Elements by a name that stays when others come before them: what it is, and the how many-th of these.
const named = (part, chosen, name) => {
  const found = new Map();
  const count = new Map();
  for (const each of part.querySelectorAll(chosen)) {
    const said = name(each);
    count.set(said, (count.get(said) ?? 0) + 1);
    found.set(`${said} ${count.get(said)}`, each);
  }
  return found;
};
const details = (part) => named(part, "details", (each) => each.querySelector("summary")?.textContent.split(" ")[0]);
const fields = (part) => named(part, "input, select", (each) => each.name || each.type);
const heads = (part) => named(part, "thead th", (each) => `${each.closest(".scroll")?.ariaLabel} ${each.textContent}`);
const places = (part) => named(part, ".scroll, pre", (each) => each.ariaLabel);
const stops = (part) => named(part, "a, button, input, select, summary, [tabindex]", (each) => each.href ?? each.tagName + each.textContent);
const values = (found, value) => new Map([...found].map(([key, each]) => [key, value(each)]));
const kept = (part) => ({
  open: values(details(part), (each) => each.open),
  typed: values(fields(part), (each) => each.value),
  orders: values(heads(part), (each) => each.getAttribute("aria-sort")),
  scrolls: values(places(part), (each) => [each.scrollLeft, each.scrollTop]),
  focus: [...stops(part)].find(([, each]) => each === document.activeElement)?.[0],
});
const restore = (part, before) => {
  details(part).forEach((each, key) => (each.open = before.open.get(key) ?? each.open));
  fields(part).forEach((each, key) => {
    if (!before.typed.has(key) || before.typed.get(key) === each.value) return;
    each.value = before.typed.get(key);
    each.dispatchEvent(new Event("input", { bubbles: true }));
  });
  heads(part).forEach((each, key) => {
    const order = before.orders.get(key);
    for (let tries = 0; order && tries < 2 && each.getAttribute("aria-sort") !== order; tries++) {
      each.querySelector("button")?.click();
    }
  });
  places(part).forEach((each, key) => {
    if (before.scrolls.has(key)) [each.scrollLeft, each.scrollTop] = before.scrolls.get(key);
  });
  if (before.focus) stops(part).get(before.focus)?.focus({ preventScroll: true });
};

const put = (page) => {
  const main = document.querySelector("main");
  const now = parts(document);
  const fresh = parts(page);
  const written = texts(fresh);
  let previous = null;
  for (const [key, part] of fresh) {
    const old = now.get(key);
    now.delete(key);
    let node = old;
    if (!old || sent.get(key) !== written.get(key)) {
      node = document.adoptNode(part);
      const before = old && kept(old);
      old ? old.replaceWith(node) : previous ? previous.after(node) : main.prepend(node);
      enhance(node);
      if (before) restore(node, before);
    }
    previous = node;
  }
  now.forEach((part) => part.remove());
  sent = written;
};
const answered = (address) =>
  fetch(address, { cache: "no-store" }).catch(() => {
    throw new Error("the server does not answer.");
  });
const asked = async (address) => {
  const answer = await answered(address);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!answer.ok) throw new Error(page.querySelector("main p")?.textContent || `The server answers ${answer.status}.`);
  return page;
};
const everything = async () => {
  const page = await asked(location.pathname + location.search);
  const theirs = page.getElementById("live");
  put(page);
  const [mine, contents] = [document, page].map((each) => each.querySelector("header nav"));
  document.title = page.title;
  document.querySelector("h1").replaceWith(document.adoptNode(page.querySelector("h1")));
  if (mine.outerHTML !== contents.outerHTML) mine.replaceWith(document.adoptNode(contents));
  live.querySelector("time").textContent = theirs.querySelector("time").textContent;
  Object.assign(shown, theirs.dataset);
};
const progress = async (known) => {
  const place = document.getElementById("progress");
  if (!place) {
    shown.batches = known.batches;
    return;
  }
  const page = await asked(`${live.dataset.base}/progress`);
  const batches = page.querySelector("main").dataset.batches;
  place.replaceChildren(...[...page.querySelector("main").childNodes].map((each) => document.adoptNode(each)));
  sent.delete("progress");
  shown.batches = batches;
};

let busy = false;
let timer = 0;
const look = async () => {
  clearTimeout(timer);
  if (busy || document.hidden) return;
  busy = true;
  const began = performance.now();
  let wait = LOOK_MS;
  try {
    const known = await (await answered(`${live.dataset.base}/state`)).json();
    // At a large database the server takes long to say: it is asked less often.
    wait = Math.max(LOOK_MS, 9 * (performance.now() - began));
    if (known.results !== shown.results) await everything();
    else if (known.batches !== shown.batches) await progress(known);
    tell("");
  } catch (error) {
    tell(`Not up to date: ${error.message}`);
  } finally {
    busy = false;
    timer = setTimeout(look, wait);
  }
};
document.addEventListener("visibilitychange", look);
look();
