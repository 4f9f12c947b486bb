"use strict";
// The page follows the database. The server says that something is new; the parts that differ are replaced,
// and what a reader opened, sorted, typed and reached with the keyboard stays as it was.
const PAUSE_MS = 2000;
const LOOK_MS = 15000;
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
let known = { ...shown };

const fields = (part) => [...part.querySelectorAll("input, select")];
const details = (part) => [...part.querySelectorAll("details")];
const focusable = (part) => [...part.querySelectorAll("a, button, input, select, summary, [tabindex]")];
const kept = (part) => ({
  open: details(part).map((each) => each.open),
  values: fields(part).map((each) => each.value),
  orders: [...part.querySelectorAll("th")].map((each) => each.getAttribute("aria-sort")),
  focus: focusable(part).indexOf(document.activeElement),
  scrolls: [...part.querySelectorAll(".scroll, pre")].map((each) => [each.scrollLeft, each.scrollTop]),
});
const restore = (part, before) => {
  details(part).forEach((each, n) => (each.open = before.open[n] ?? each.open));
  fields(part).forEach((each, n) => {
    if (before.values[n] === undefined || before.values[n] === each.value) return;
    each.value = before.values[n];
    each.dispatchEvent(new Event("input", { bubbles: true }));
  });
  [...part.querySelectorAll("th")].forEach((each, n) => {
    const order = before.orders[n];
    for (let i = 0; order && i < 2 && each.getAttribute("aria-sort") !== order; i++) each.querySelector("button")?.click();
  });
  [...part.querySelectorAll(".scroll, pre")].forEach((each, n) => {
    if (before.scrolls[n]) [each.scrollLeft, each.scrollTop] = before.scrolls[n];
  });
  if (before.focus >= 0) focusable(part)[before.focus]?.focus({ preventScroll: true });
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
const asked = async (address) => {
  const answer = await fetch(address, { cache: "no-store" });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!answer.ok) throw new Error(page.querySelector("main p")?.textContent || `The server answers ${answer.status}.`);
  return page;
};
const everything = async () => {
  const page = await asked(location.pathname + location.search);
  const theirs = page.getElementById("live");
  put(page);
  const [mine, contents] = [document, page].map((each) => each.querySelector("header nav"));
  if (mine.outerHTML !== contents.outerHTML) mine.replaceWith(document.adoptNode(contents));
  live.querySelector("time").textContent = theirs.querySelector("time").textContent;
  Object.assign(shown, theirs.dataset);
};
const progress = async () => {
  const place = document.getElementById("progress");
  const page = await asked("/progress");
  const batches = page.querySelector("main").dataset.batches;
  place?.replaceChildren(...[...page.querySelector("main").childNodes].map((each) => document.adoptNode(each)));
  sent.delete("progress");
  shown.batches = batches;
};

let busy = false;
const look = async () => {
  if (busy || document.hidden) return;
  busy = true;
  try {
    while (known.results !== shown.results || known.batches !== shown.batches) {
      await (known.results !== shown.results ? everything() : progress());
      tell("");
      await new Promise((wake) => setTimeout(wake, PAUSE_MS));
    }
  } catch (error) {
    tell(`Not up to date: ${error.message}`);
    setTimeout(look, LOOK_MS);
  } finally {
    busy = false;
  }
};

let events = null;
const listen = () => {
  events?.close();
  events = null;
  if (document.hidden) return; // a browser has few connections for all of its tabs
  events = new EventSource("/events");
  events.addEventListener("state", (event) => {
    known = JSON.parse(event.data);
    tell("");
    look();
  });
  events.addEventListener("error", () => {
    tell("Not up to date: the server does not answer.");
    if (events?.readyState === EventSource.CLOSED) setTimeout(listen, LOOK_MS);
  });
};
document.addEventListener("visibilitychange", listen);
listen();
