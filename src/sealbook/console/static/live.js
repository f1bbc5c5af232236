// Keeps an open page true: hears what moves, asks for the page's fragment again, and says how old its data is.
//
// Whoever wants to know listens for `sealbook:moved` on the document; its detail is {position, partitions, all}.
// A page that refreshes itself says so by `data-refreshes-itself` on any element, or by `preventDefault()` on
// that event, and says by `sealbook:gathered` (its detail is a time) when its data is of. After the fragment was
// put in place, `sealbook:refreshed` is sent from <main>.

const main = document.querySelector("main");
const age = document.querySelector("#age");
const state = document.querySelector("#live");
const lasts = Number(main.dataset.lasts || 60) * 1000;
let gatheredAt = Date.parse(age.dateTime);
let isDirty = false;
let asking = null;
let wait = 0;

/** Say when data is of that a page has just got by itself. */
export function dataIsOf(moment) {
  gatheredAt = moment;
  age.dateTime = new Date(moment).toISOString();
  showAge();
}

/** Ask for the page's fragment again, and put it in the place of what is shown. */
export async function refresh() {
  asking?.abort();
  asking = new AbortController();
  isDirty = false;
  try {
    const answer = await fetch(location.href, { headers: { "Sealbook-Fragment": "1" }, signal: asking.signal });
    if (!answer.ok) {
      state.textContent = answer.status === 401 ? "you are signed out" : `not renewed (${answer.status})`;
      return;
    }
    const text = await answer.text();
    dataIsOf(Date.parse(answer.headers.get("Sealbook-Gathered")) || Date.now());
    state.textContent = "";
    put(text);
  } catch (error) {
    if (error.name !== "AbortError") state.textContent = "the console does not answer";
  }
}

/** Replace what is shown, if it is another, and leave focus, scrolling and what is folded out as they were. */
function put(text) {
  const template = document.createElement("template");
  template.innerHTML = text;
  if (template.innerHTML.trim() === main.innerHTML.trim()) return;
  const focused = main.contains(document.activeElement) ? pathOf(document.activeElement) : null;
  const open = [...main.querySelectorAll("details")].map((each) => each.open);
  const scrolled = [...main.querySelectorAll(".scrolls")].map((each) => each.scrollLeft);
  main.replaceChildren(template.content);
  main.querySelectorAll("details").forEach((each, index) => { if (open[index]) each.open = true; });
  main.querySelectorAll(".scrolls").forEach((each, index) => { each.scrollLeft = scrolled[index] ?? 0; });
  if (focused) main.querySelector(focused)?.focus({ preventScroll: true });
  main.dispatchEvent(new CustomEvent("sealbook:refreshed", { bubbles: true }));
}

function pathOf(element) {
  if (element.id) return `#${CSS.escape(element.id)}`;
  if (element.name) return `[name="${CSS.escape(element.name)}"]`;
  const href = element.getAttribute("href");
  return href ? `a[href="${CSS.escape(href)}"]` : null;
}

/** Whoever writes into a form is not disturbed: the page says that there is something newer. */
function isWriting() {
  const focused = document.activeElement;
  return main.contains(focused) && focused.matches("input, textarea, select");
}

document.addEventListener("sealbook:gathered", (event) => dataIsOf(event.detail));

function hear(detail) {
  const event = new CustomEvent("sealbook:moved", { detail, cancelable: true });
  const goesOn = document.dispatchEvent(event);
  if (goesOn) refreshSoon();
}

function refreshSoon() {
  if (main.dataset.live === undefined || main.querySelector("[data-refreshes-itself]")) return;
  isDirty = true;
  if (document.hidden) return;
  if (isWriting() || document.querySelector("dialog[open]")) {
    state.textContent = "there is newer data";
    return;
  }
  clearTimeout(wait);
  wait = setTimeout(refresh, 100);
}

function showAge() {
  const seconds = Math.max(0, Math.round((Date.now() - gatheredAt) / 1000));
  const text = seconds < 2 ? "just now" : seconds < 120 ? `${seconds} s ago` : `${Math.round(seconds / 60)} min ago`;
  if (age.textContent !== text) age.textContent = text;
}

// A browser has few connections for one console: one tab has the stream, and tells the others.
const channel = new BroadcastChannel("sealbook-live");
channel.onmessage = (event) => hear(event.data);

function listen() {
  return new Promise(() => {
    const stream = new EventSource("/live");
    stream.addEventListener("moved", (event) => {
      const detail = JSON.parse(event.data);
      channel.postMessage(detail);
      hear(detail);
    });
    stream.addEventListener("open", () => { if (state.textContent === "not live") state.textContent = ""; });
    stream.addEventListener("error", () => { state.textContent = "not live"; });
  });
}

if (document.querySelector(".who")) {
  if (navigator.locks) navigator.locks.request("sealbook-live", listen);
  else listen();
  document.addEventListener("visibilitychange", () => { if (!document.hidden && isDirty) refreshSoon(); });
  main.addEventListener("focusout", () => { if (isDirty) setTimeout(refreshSoon); });
  setInterval(() => {
    showAge();
    if (!document.hidden && Date.now() - gatheredAt > lasts) refreshSoon();
  }, 1000);
}
document.addEventListener("keydown", (event) => {
  const writes = event.target instanceof Element && event.target.closest("input, textarea, select, dialog");
  if (writes || event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
  if (event.key === "r" && !main.querySelector("[data-refreshes-itself]")) refresh();
  const filter = main.querySelector("form.filters input");
  if (event.key === "/" && filter) {
    event.preventDefault();
    filter.select();
  }
});
showAge();
