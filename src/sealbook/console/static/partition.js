// A partition in a drawer over the page that links to it, and commands that can be copied.

const FRAGMENT = "Sealbook-Fragment";
const OPEN = "open";
const KEY = /^[a-z][a-z0-9_]*\/[0-9A-Za-z_]+\/[a-z][a-z0-9_]*\/\d{4}-\d{2}-\d{2}$/;

/** The key that a link leads to, or null if it is no partition's own page. */
function keyOf(url) {
  const [, first, ...rest] = url.pathname.split("/");
  const key = rest.join("/");
  return first === "partitions" && KEY.test(key) ? key : null;
}

class Drawer {
  constructor() {
    this.dialog = document.createElement("dialog");
    this.dialog.className = "drawer";
    this.dialog.setAttribute("aria-label", "Partition");
    const bar = element("div", "bar");
    this.whole = element("a", "", "Open as a page");
    const close = element("button", "", "Close");
    close.type = "button";
    close.addEventListener("click", () => this.dialog.close());
    bar.append(this.whole, close);
    this.inside = element("div", "inside");
    this.inside.tabIndex = -1;
    this.dialog.append(bar, this.inside);
    this.dialog.addEventListener("close", () => this.closed());
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    document.body.append(this.dialog);
  }

  /** Show a partition; the address of the page then names it. */
  async show(path, from) {
    this.from = from ?? this.from;
    this.path = path;
    [this.opened] = path.split("?");
    this.whole.href = path;
    await this.read();
    if (!this.dialog.open) this.dialog.showModal();
    this.dialog.scrollTop = 0;
    this.inside.focus({ preventScroll: true });
  }

  /** Fetch what is shown again. */
  async read() {
    const { path } = this;
    const response = await fetch(path, { headers: { [FRAGMENT]: "1" } });
    const text = await response.text();
    if (path !== this.path) return;
    const parsed = new DOMParser().parseFromString(text, "text/html");
    this.inside.replaceChildren(...parsed.body.childNodes);
  }

  closed() {
    this.path = undefined;
    this.inside.replaceChildren();
    if (openKey() !== null) history.pushState(null, "", withOpen(null));
    // The page may have been drawn anew meanwhile: then the focus goes where the same link is now.
    const target = this.from?.isConnected ? this.from : document.querySelector(`main a[href="${this.opened}"]`);
    target?.focus();
    this.from = undefined;
  }
}

/** The key that the address of the page names, or null. */
function openKey() {
  const key = new URLSearchParams(location.search).get(OPEN);
  return key !== null && KEY.test(key) ? key : null;
}

/** The address of the page with another partition open, or with none. */
function withOpen(key) {
  const asked = new URLSearchParams(location.search);
  asked.delete(OPEN);
  const others = asked.toString();
  const own = key === null ? "" : `${OPEN}=${key}`;
  const all = [others, own].filter(Boolean).join("&");
  return all ? `${location.pathname}?${all}` : location.pathname;
}

/** Commands have a button that copies them; without scripts there is none. */
async function copy(button) {
  await navigator.clipboard.writeText(button.previousElementSibling.textContent);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

function element(name, kind, ...content) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  made.append(...content);
  return made;
}

function listen(drawer) {
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("a[href]");
    const plain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button);
    if (!link || !plain || link === drawer.whole) return;
    const url = new URL(link.href);
    const key = url.origin === location.origin ? keyOf(url) : null;
    if (key === null) return;
    event.preventDefault();
    if (openKey() !== key) history.pushState(null, "", withOpen(key));
    drawer.show(`${url.pathname}${url.search}`, drawer.dialog.open ? undefined : link);
  });
  const follow = () => {
    const key = openKey();
    if (key === null) drawer.dialog.close();
    else if (drawer.path?.split("?")[0] !== `/partitions/${key}`) drawer.show(`/partitions/${key}`);
  };
  addEventListener("popstate", follow);
  document.addEventListener("sealbook:moved", () => { if (drawer.dialog.open) drawer.read(); });
  follow();
}

if (navigator.clipboard) document.documentElement.classList.add("copies");
document.addEventListener("click", (event) => {
  const button = event.target instanceof Element && event.target.closest("[data-copy]");
  if (button) copy(button);
});
if (!location.pathname.startsWith("/partitions/")) listen(new Drawer());
