// The rows in view as a table that is not seen: for screen readers, and what the keyboard moves through.

/** The address that a cell opens: its partition, or the days of a week, month or year. */
export function addressOf(row, column, step) {
  const names = [row.source, row.customer_id, row.query_name].map(encodeURIComponent);
  if (step === "day") return `/partitions/${names.join("/")}/${column.first}`;
  const [source, customer, query] = names;
  return `/?source=${source}&customer=${customer}&query=${query}&since=${column.first}&until=${column.last}`;
}

export function nameOf(column) {
  return column.first === column.last ? column.first : `${column.first} to ${column.last}`;
}

export class TableInView {
  constructor(table) {
    this.table = table;
    this.cells = new Map();
  }

  /** Put in what is in view; the cell that has the focus keeps it. */
  show(data, view, active) {
    const had = this.table.contains(document.activeElement);
    this.cells.clear();
    const head = element("tr", element("th", "Customer"), element("th", "Query"));
    for (let column = view.firstColumn; column < view.endColumn; column += 1) {
      head.append(element("th", nameOf(data.columns[column])));
    }
    for (const each of head.children) each.scope = "col";
    const body = document.createElement("tbody");
    for (let row = view.firstRow; row < view.endRow; row += 1) {
      if (data.rows[row]) body.append(this.row(data, view, row));
    }
    const caption = element("caption", `Rows ${view.firstRow + 1} to ${view.endRow} of ${data.rowCount}, the worst first`);
    this.table.replaceChildren(caption, element("thead", head), body);
    this.activate(active, had);
  }

  row(data, view, row) {
    const found = data.rows[row];
    const name = element("th", found.customer_id);
    name.scope = "row";
    const line = element("tr", name, element("td", found.query_name));
    for (let column = view.firstColumn; column < view.endColumn; column += 1) {
      const told = data.codes[found.cells[column]];
      const cell = document.createElement("td");
      let target = cell;
      if (told) {
        target = element("a", told.words);
        target.href = addressOf(found, data.columns[column], data.step);
        cell.append(target);
      } else {
        cell.textContent = "not expected";
      }
      target.tabIndex = -1;
      this.cells.set(`${row}/${column}`, target);
      line.append(cell);
    }
    return line;
  }

  cell(active) {
    return active ? this.cells.get(`${active.row}/${active.column}`) : undefined;
  }

  /** Let one cell be the one that Tab comes to; and let it have the focus. */
  activate(active, focus) {
    const target = this.cell(active) ?? this.cells.values().next().value;
    this.reached?.removeAttribute("tabindex");
    if (this.reached) this.reached.tabIndex = -1;
    if (!target) return;
    target.tabIndex = 0;
    this.reached = target;
    if (focus) target.focus({ preventScroll: true });
  }
}

function element(name, ...content) {
  const made = document.createElement(name);
  made.append(...content);
  return made;
}
