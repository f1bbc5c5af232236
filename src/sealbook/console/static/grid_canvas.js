// Draws what is in view of the grid: labels to the left, days above, and a small picture for each cell.

export const CELL = { width: 15, height: 19 }; // the width grows where there are few columns
const [NARROWEST, WIDEST] = [15, 30];
export const HEADER = 52;
const GOOD = new Set(["materialized", "provisional"]);
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** How many of some partitions are not as they should be. */
export function notGood(counts) {
  let found = 0;
  for (const [cell, count] of Object.entries(counts)) {
    if (!GOOD.has(cell)) found += count;
  }
  return found;
}

/** The look of the page as it is now: colours change with the reader's theme. */
function readLook() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  return {
    ink: value("--ink"), soft: value("--ink-soft"), ground: value("--raised"), sunken: value("--sunken"),
    line: value("--line"), focus: value("--focus"), bad: value("--bad"),
    mono: value("--mono"), font: value("--font"),
    cell: (name) => value(`--cell-${name}`), inkOf: (name) => value(`--ink-${name}`),
  };
}

export class GridCanvas {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.labelWidth = 120;
    this.forget();
  }

  /** Make all pictures anew: the theme or the scale has changed. */
  forget() {
    this.look = readLook();
    this.pictures = new Map();
    this.scale = window.devicePixelRatio || 1;
  }

  resize(width, height) {
    const { canvas, scale } = this;
    const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w;
      canvas.height = h;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    this.width = width;
    this.height = height;
  }

  /** How wide labels are, at most so much. */
  measure(labels, most) {
    this.context.font = `12px ${this.look.mono}`;
    let widest = 40;
    for (const label of labels) widest = Math.max(widest, this.context.measureText(label).width);
    this.labelWidth = Math.ceil(Math.min(widest + 56, most));
  }

  /** Let cells be as wide as there is room for so many columns. */
  fit(columns, room) {
    const width = Math.min(Math.max(Math.floor((room - this.labelWidth - 4) / columns), NARROWEST), WIDEST);
    if (width === CELL.width) return;
    CELL.width = width;
    this.pictures.clear();
  }

  /** The picture of a code, which is painted once. */
  picture(code, told) {
    let found = this.pictures.get(code);
    if (!found) {
      found = this.paint(told);
      this.pictures.set(code, found);
    }
    return found;
  }

  paint(told) {
    const { look, scale } = this;
    const picture = document.createElement("canvas");
    const [w, h] = [CELL.width - 1, CELL.height - 1];
    picture.width = Math.round(w * scale);
    picture.height = Math.round(h * scale);
    const context = picture.getContext("2d");
    context.scale(scale, scale);
    const ink = look.inkOf(told.cell);
    context.fillStyle = look.cell(told.cell);
    context.fillRect(0, 0, w, h);
    context.fillStyle = ink;
    if (told.cell !== "materialized") {
      context.font = `600 11px ${look.mono}`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(told.letter, w / 2, h / 2 - 0.5);
    }
    if (GOOD.has(told.cell)) context.globalAlpha = 0.3;
    if (told.availability === "published") context.fillRect(0, h - 2, w, 2);
    if (told.availability === "behind") context.fillRect(0, h - 2, w / 2, 2);
    context.globalAlpha = 1;
    if (told.last_attempt === "FAILED") {
      context.beginPath();
      context.moveTo(w - 5, 0);
      context.lineTo(w, 0);
      context.lineTo(w, 5);
      context.fill();
    }
    return picture;
  }

  /** Draw what lies at an offset: `data` has rows (some not there yet), columns and codes. */
  draw(data, left, top, active) {
    const { context, look, scale, width, height, labelWidth } = this;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.fillStyle = look.ground;
    context.fillRect(0, 0, width, height);
    const view = this.view(data, left, top);
    for (let row = view.firstRow; row < view.endRow; row += 1) {
      const found = data.rows[row];
      if (!found) continue;
      const y = Math.round(HEADER + row * CELL.height - top);
      for (let column = view.firstColumn; column < view.endColumn; column += 1) {
        const told = data.codes[found.cells[column]];
        if (!told) continue;
        const x = Math.round(labelWidth + column * CELL.width - left);
        context.drawImage(this.picture(found.cells[column], told), x, y, CELL.width - 1, CELL.height - 1);
      }
    }
    if (active) this.drawFocus(active, left, top);
    this.drawLabels(data, view, top);
    this.drawHeader(data, view, left);
  }

  /** Which rows and columns are in view. */
  view(data, left, top) {
    const rows = Math.ceil((this.height - HEADER) / CELL.height) + 1;
    const columns = Math.ceil((this.width - this.labelWidth) / CELL.width) + 1;
    const firstRow = Math.max(Math.floor(top / CELL.height), 0);
    const firstColumn = Math.max(Math.floor(left / CELL.width), 0);
    return {
      firstRow, endRow: Math.min(firstRow + rows, data.rowCount),
      firstColumn, endColumn: Math.min(firstColumn + columns, data.columns.length),
    };
  }

  /** Which cell lies at a point of the canvas. */
  at(data, x, y, left, top) {
    if (x < this.labelWidth || y < HEADER) return null;
    const row = Math.floor((y - HEADER + top) / CELL.height);
    const column = Math.floor((x - this.labelWidth + left) / CELL.width);
    return row < data.rowCount && column < data.columns.length ? { row, column } : null;
  }

  drawFocus({ row, column }, left, top) {
    const { context, look } = this;
    context.strokeStyle = look.focus;
    context.lineWidth = 2.5;
    const x = Math.round(this.labelWidth + column * CELL.width - left);
    const y = Math.round(HEADER + row * CELL.height - top);
    context.strokeRect(x - 1, y - 1, CELL.width + 1, CELL.height + 1);
  }

  drawLabels(data, view, top) {
    const { context, look, height, labelWidth } = this;
    context.fillStyle = look.ground;
    context.fillRect(0, HEADER, labelWidth - 3, height);
    context.textBaseline = "middle";
    for (let row = view.firstRow; row < view.endRow; row += 1) {
      const found = data.rows[row];
      const y = HEADER + row * CELL.height - top + CELL.height / 2;
      if (!found) {
        this.write("…", 6, y, look.soft, "left");
        continue;
      }
      const bad = notGood(found.counts);
      this.write(fitted(context, data.label(found), labelWidth - 56, look.mono), 6, y, look.ink, "left");
      this.write(bad ? bad.toLocaleString("en") : "", labelWidth - 8, y, look.bad, "right");
    }
  }

  drawHeader(data, view, left) {
    const { context, look, width, labelWidth } = this;
    context.fillStyle = look.sunken;
    context.fillRect(0, 0, width, HEADER - 2);
    context.textBaseline = "middle";
    const most = Math.max(...data.columnTotals.map(notGood), 1);
    let free = -Infinity;
    for (let column = view.firstColumn; column < view.endColumn; column += 1) {
      const x = Math.round(labelWidth + column * CELL.width - left);
      const [year, month, day] = data.columns[column].first.split("-");
      if (column === view.firstColumn || data.marks(column)) {
        const text = data.step === "year" ? "" : `${MONTHS[Number(month) - 1]} ${year}`;
        if (x > free) {
          this.write(text, Math.max(x, labelWidth) + 1, 9, look.soft, "left");
          free = Math.max(x, labelWidth) + context.measureText(text).width + 8;
        }
      }
      const short = { day, week: day, month, year: year.slice(2) }[data.step];
      this.write(short, x + CELL.width / 2, 23, look.ink, "center", "10px");
      const bad = notGood(data.columnTotals[column]);
      if (bad) {
        const tall = Math.max(Math.round((bad / most) * 15), 1);
        context.fillStyle = look.bad;
        context.fillRect(x + 2, HEADER - 4 - tall, CELL.width - 5, tall);
      }
    }
    context.fillStyle = look.sunken;
    context.fillRect(0, 0, labelWidth - 3, HEADER - 2);
    this.write("not good", labelWidth - 8, HEADER - 12, look.soft, "right", "11px", look.font);
  }

  write(text, x, y, colour, align, size = "12px", font = this.look.mono) {
    const { context } = this;
    context.font = `${size} ${font}`;
    context.fillStyle = colour;
    context.textAlign = align;
    context.fillText(text, x, y);
  }
}

function fitted(context, text, width, font) {
  context.font = `12px ${font}`;
  if (context.measureText(text).width <= width) return text;
  const character = context.measureText("0").width;
  return `${text.slice(0, Math.max(Math.floor(width / character) - 1, 1))}…`;
}
