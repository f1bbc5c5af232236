// The grid of the front page: fetched as one character a cell, drawn on a canvas, moved through by keys.

import { CELL, GridCanvas, HEADER, notGood } from "./grid_canvas.js";
import { TableInView, nameOf } from "./grid_table.js";

const ROWS = 1000;
const STEPS = ["day", "week", "month", "year"];
const RESTS = 120;
const MANY = 200;

/** What is known of the grid: rows come by the page, as they come into view. */
class Data {
  constructor(answer) {
    this.rows = [];
    this.codes = {};
    this.asked = new Set([answer.page]);
    this.take(answer);
    this.several = new Set(this.rows.map((row) => `${row.source}/${row.query_name}`)).size > 1;
  }

  take(answer) {
    this.step = answer.step;
    this.columns = answer.columns;
    this.columnTotals = answer.column_totals;
    this.total = answer.total;
    this.rowCount = answer.row_count;
    Object.assign(this.codes, answer.codes);
    answer.rows.forEach((row, place) => { this.rows[(answer.page - 1) * ROWS + place] = row; });
  }

  label(row) {
    return this.several ? `${row.customer_id} ${row.query_name}` : row.customer_id;
  }

  /** Put rows in the place of what they were, and say which; null if that alone does not bring all up to date. */
  replace(answer) {
    const last = (columns) => columns[columns.length - 1]?.last;
    if (this.step !== "day" || last(answer.columns) !== last(this.columns)) return null;
    Object.assign(this.codes, answer.codes);
    const places = new Map(this.rows.map((row, place) => [keyOf(row), place]));
    const changed = [];
    for (const row of answer.rows) {
      const place = places.get(keyOf(row));
      if (place === undefined) return null;
      if (row.cells === this.rows[place].cells) continue;
      this.count(this.rows[place], row);
      this.rows[place] = row;
      changed.push(place);
    }
    return changed;
  }

  /** Bring totals up to date. */
  count(before, after) {
    const add = (counts, cell, number) => { counts[cell] = (counts[cell] ?? 0) + number; };
    for (const [cell, number] of Object.entries(before.counts)) add(this.total, cell, -number);
    for (const [cell, number] of Object.entries(after.counts)) add(this.total, cell, number);
    this.columnTotals.forEach((counts, column) => {
      const [was, is] = [this.codes[before.cells[column]], this.codes[after.cells[column]]];
      if (was) add(counts, was.cell, -1);
      if (is) add(counts, is.cell, 1);
    });
  }

  /** Whether a month, or a year, begins with a column. */
  marks(column) {
    const [now, before] = [this.columns[column].first, this.columns[column - 1].first];
    const length = this.step === "month" ? 4 : 7;
    return now.slice(0, length) !== before.slice(0, length);
  }
}

class Grid {
  constructor(place) {
    this.place = place;
    this.pane = element("div", "pane");
    this.extent = element("div", "extent");
    const canvas = document.createElement("canvas");
    canvas.setAttribute("aria-hidden", "true");
    const table = document.createElement("table");
    const inView = element("div", "in-view", table);
    this.extent.append(canvas, inView);
    this.pane.append(this.extent);
    this.tip = element("div", "tip");
    this.tip.hidden = true;
    this.board = element("div", "board", this.pane, this.tip);
    this.canvas = new GridCanvas(canvas);
    this.table = new TableInView(table);
    this.active = null;
    this.listen(canvas);
  }

  /** Fetch the grid of the address, and put it where the table was. */
  async start() {
    const answer = await fetchGrid(1);
    this.data = new Data(answer);
    this.place.replaceChildren(this.board);
    this.layOut();
    this.pane.scrollLeft = this.pane.scrollWidth;
    this.drawNow();
    this.rest();
    this.place.dataset.state = "drawn";
    performance.mark("sealbook-grid-drawn");
  }

  /** Fetch it again; the view stays where it is. */
  async refresh() {
    this.place.dataset.state = "reading";
    try {
      this.data = new Data(await fetchGrid(1));
      this.layOut();
      this.changed();
    } finally {
      this.place.dataset.state = "drawn";
    }
  }

  /** Hear which partitions have changed: fetch their rows alone, and draw them again. */
  async moved({ partitions, all }) {
    const asked = new URLSearchParams(location.search);
    if (all || partitions.length > MANY || asked.has("cell")) {
      this.refreshSoon();
      return;
    }
    const shown = new Set(this.data.rows.map((row) => row?.customer_id));
    const customers = new Set(partitions.map((key) => key.split("/")[1]).filter((each) => shown.has(each)));
    if (!customers.size) return;
    const { data } = this;
    const changed = data.replace(await fetchGrid(1, [...customers].join(",")));
    if (data !== this.data) return;
    if (changed === null) {
      this.refreshSoon();
      return;
    }
    if (changed.length) this.changed();
  }

  /** Fetch all of it again, though not at every moment. */
  refreshSoon() {
    this.isDirty = true;
    if (document.hidden || this.waiting) return;
    this.waiting = setTimeout(async () => {
      this.waiting = undefined;
      this.isDirty = false;
      await this.refresh();
    }, 500);
  }

  changed() {
    this.tell();
    this.drawNow();
    this.rest();
    this.place.dataset.changes = Number(this.place.dataset.changes ?? 0) + 1;
  }

  /** Show days, weeks, months or years; the last day in view stays in view. */
  async zoom(step) {
    const { data, canvas, pane } = this;
    const view = canvas.view(data, pane.scrollLeft, pane.scrollTop);
    const day = data.columns[Math.max(view.endColumn - 2, 0)].first;
    const asked = new URLSearchParams(location.search);
    asked.set("step", step);
    history.pushState(null, "", `?${asked}`);
    await this.refresh();
    const column = this.data.columns.findIndex((each) => each.last >= day);
    pane.scrollLeft = (column + 2) * CELL.width + canvas.labelWidth - canvas.width;
    this.drawNow();
    this.rest();
  }

  listen(canvas) {
    const { pane } = this;
    pane.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => { if (this.data) { this.layOut(); this.draw(); } }).observe(this.board);
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    canvas.addEventListener("click", (event) => this.click(event));
    this.board.addEventListener("keydown", (event) => this.key(event));
    this.board.addEventListener("focusin", (event) => this.focused(event));
    this.board.addEventListener("focusout", () => this.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.canvas.forget();
      this.draw();
    });
  }

  layOut() {
    const { data, canvas, pane, extent } = this;
    const known = data.rows.slice(0, ROWS).filter(Boolean);
    canvas.measure(known.map((row) => data.label(row)), pane.clientWidth * (pane.clientWidth < 600 ? 0.42 : 0.3));
    canvas.fit(data.columns.length, pane.clientWidth);
    const [wide, tall] = [data.columns.length * CELL.width, data.rowCount * CELL.height];
    extent.style.width = `${canvas.labelWidth + wide + 2}px`;
    extent.style.height = `${HEADER + tall + 2}px`;
    canvas.resize(pane.clientWidth, Math.min(pane.clientHeight, HEADER + tall + 2));
  }

  draw() {
    if (this.drawing) return;
    this.drawing = requestAnimationFrame(() => this.drawNow());
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.rest(), RESTS);
  }

  drawNow() {
    this.drawing = undefined;
    const { pane, data } = this;
    const focused = this.board.contains(document.activeElement) ? this.active : null;
    this.canvas.draw(data, pane.scrollLeft, pane.scrollTop, focused);
  }

  /** Once nothing moves: bring the table up to date, and fetch rows that have come into view. */
  rest() {
    const { pane, data } = this;
    const view = this.canvas.view(data, pane.scrollLeft, pane.scrollTop);
    this.table.show(data, view, this.active);
    for (let row = view.firstRow; row < view.endRow; row += 1) {
      const page = Math.floor(row / ROWS) + 1;
      if (!data.rows[row] && !data.asked.has(page)) this.fetchPage(page);
    }
  }

  async fetchPage(page) {
    const { data } = this;
    data.asked.add(page);
    const answer = await fetchGrid(page);
    if (data !== this.data) return;
    data.take(answer);
    this.draw();
  }

  /** Say in the legend how many there are of each. */
  tell() {
    for (const line of document.querySelectorAll(".legend [data-cell]")) {
      const count = this.data.total[line.dataset.cell] ?? 0;
      line.querySelector("b").textContent = count.toLocaleString("en");
      line.classList.toggle("none", count === 0);
    }
  }

  found(event) {
    const box = this.canvas.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return this.canvas.at(this.data, x, y, this.pane.scrollLeft, this.pane.scrollTop);
  }

  hover(event) {
    const cell = this.found(event);
    const row = cell && this.data.rows[cell.row];
    this.tip.hidden = !row;
    if (!row) return;
    const { columns, codes } = this.data;
    const column = columns[cell.column];
    const told = codes[row.cells[cell.column]];
    const total = notGood(this.data.columnTotals[cell.column]).toLocaleString("en");
    this.tip.replaceChildren(
      element("b", "", `${row.source}/${row.customer_id}/${row.query_name}/${nameOf(column)}`),
      element("span", "", told ? told.words : "nothing is expected"),
      element("span", "muted", `${notGood(row.counts).toLocaleString("en")} not good in this row, ${total} in this column`),
    );
    const box = this.board.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    this.tip.style.left = `${Math.max(Math.min(x + 14, box.width - this.tip.offsetWidth - 4), 0)}px`;
    this.tip.style.top = `${y + 18 + this.tip.offsetHeight > box.height ? y - this.tip.offsetHeight - 8 : y + 18}px`;
  }

  click(event) {
    const cell = this.found(event);
    if (!cell) return;
    this.active = cell;
    this.rest();
    const target = this.table.cell(cell);
    this.table.activate(cell, true);
    this.draw();
    if (target instanceof HTMLAnchorElement) {
      target.dispatchEvent(new MouseEvent("click", {
        bubbles: true, cancelable: true, ctrlKey: event.ctrlKey, metaKey: event.metaKey, shiftKey: event.shiftKey,
      }));
    }
  }

  focused(event) {
    for (const [name, target] of this.table.cells) {
      if (target !== event.target) continue;
      const [row, column] = name.split("/").map(Number);
      this.active = { row, column };
    }
    this.draw();
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.active) return;
    const { data, canvas } = this;
    const many = event.shiftKey;
    const rows = many ? Math.floor((canvas.height - HEADER) / CELL.height) - 1 : 1;
    const columns = many ? Math.floor((canvas.width - canvas.labelWidth) / CELL.width) - 1 : 1;
    const { row, column } = this.active;
    const moved = {
      ArrowUp: [row - rows, column], ArrowDown: [row + rows, column],
      ArrowLeft: [row, column - columns], ArrowRight: [row, column + columns],
      PageUp: [row - rows, column], PageDown: [row + rows, column],
      Home: [row, 0], End: [row, data.columns.length - 1],
    }[event.key];
    if (!moved) return;
    event.preventDefault();
    const within = (number, end) => Math.min(Math.max(number, 0), end - 1);
    this.active = { row: within(moved[0], data.rowCount), column: within(moved[1], data.columns.length) };
    this.bringIntoView();
    if (!this.table.cell(this.active)) this.rest();
    this.table.activate(this.active, true);
    this.drawNow();
  }

  bringIntoView() {
    const { pane, canvas, active } = this;
    const [x, y] = [active.column * CELL.width, active.row * CELL.height];
    const [wide, tall] = [canvas.width - canvas.labelWidth, canvas.height - HEADER];
    if (x < pane.scrollLeft) pane.scrollLeft = x;
    if (x + CELL.width > pane.scrollLeft + wide) pane.scrollLeft = x + CELL.width + 3 - wide;
    if (y < pane.scrollTop) pane.scrollTop = y;
    if (y + CELL.height > pane.scrollTop + tall) pane.scrollTop = y + CELL.height + 3 - tall;
  }
}

/** Fetch a page of rows as the address asks for them; or those of some customers alone. */
async function fetchGrid(page, customers) {
  const asked = new URLSearchParams(location.search);
  asked.delete("open");
  if (customers) asked.set("customer", customers);
  asked.set("rows", ROWS);
  asked.set("page", page);
  const response = await fetch(`/index.json?${asked}`);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  document.dispatchEvent(new CustomEvent("sealbook:gathered", { detail: Date.parse(answer.now) }));
  return answer;
}

function keyOf(row) {
  return `${row.source}/${row.customer_id}/${row.query_name}`;
}

function element(name, kind, ...content) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  made.append(...content);
  return made;
}

/** Keys that hold wherever the focus is, but not while somebody writes. */
function listenForKeys(grid) {
  const step = document.querySelector("#step");
  const zoom = (to) => {
    if (!STEPS[to]) return;
    step.value = STEPS[to];
    grid.zoom(STEPS[to]);
  };
  document.addEventListener("keydown", (event) => {
    const writes = event.target instanceof Element && event.target.closest("input, textarea, select, dialog");
    if (writes || event.altKey || event.ctrlKey || event.metaKey) return;
    const now = STEPS.indexOf(grid.data.step);
    const does = {
      "?": () => document.querySelector("#keys").showModal(),
      r: () => grid.refresh(),
      "+": () => zoom(now - 1),
      "=": () => zoom(now - 1),
      "-": () => zoom(now + 1),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  });
  step.addEventListener("change", () => grid.zoom(step.value));
  addEventListener("popstate", () => grid.refresh());
}

const place = document.querySelector("#grid");
if (place) {
  const grid = new Grid(place);
  await grid.start();
  listenForKeys(grid);
  document.addEventListener("sealbook:moved", (event) => grid.moved(event.detail));
  document.addEventListener("visibilitychange", () => { if (grid.isDirty) grid.refreshSoon(); });
  setInterval(() => grid.refreshSoon(), Number(place.dataset.lasts) * 1000);
}
