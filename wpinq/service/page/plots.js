// Answers as plots: every estimate with its interval, over numbers along an axis, over other keys row by row.

import { drawn, element, isNumber, shown } from "./elements.js";

const WIDTH = 460, MOST_ROWS = 60, LONGEST = 22;

function ticks(least, most, wanted) {
  const span = most - least || 1;
  const raw = span / wanted, size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((each) => each * size).find((each) => each >= raw);
  const found = [];
  for (let at = Math.ceil(least / step) * step; at <= most + step * 1e-9; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

function range(rows) {
  const ends = rows.flatMap((row) => [row.estimate, row.low, row.high]).filter(isNumber);
  return [Math.min(0, ...ends), Math.max(0, ...ends)];
}

const numeric = (row) => row.key.length === 1 && /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(row.key[0]);

export function plot(series, name) {
  const rows = series.rows.filter((row) => isNumber(row.estimate));
  if (rows.length < 2 || !series.fields.length) return null;
  const whole = rows.every(numeric) ? alongAxis(rows, series.fields[0]) : rowByRow(rows);
  const words = `${name}: ${rows.length} estimates with their intervals; the table beside it has the numbers`;
  whole.setAttribute("role", "img");
  whole.setAttribute("aria-label", words);
  return element("figure", {}, whole);
}

function alongAxis(rows, field) {
  const height = 280, left = 48, right = 12, top = 12, bottom = 40;
  const keys = rows.map((row) => Number(row.key[0]));
  const [least, most] = range(rows), [first, last] = [Math.min(...keys), Math.max(...keys)];
  const x = (key) => left + ((WIDTH - left - right) * (key - first + (first === last ? 0.5 : 0))) / (last - first || 1);
  const y = (value) => height - bottom - ((height - top - bottom) * (value - least)) / (most - least || 1);
  const made = drawn("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${height}` });
  for (const tick of ticks(least, most, 5)) {
    made.append(
      drawn("line", { class: tick === 0 ? "zero" : "axis", x1: left, x2: WIDTH - right, y1: y(tick), y2: y(tick) }),
      drawn("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, shown(tick)));
  }
  for (const tick of ticks(first, last, 8).filter((each) => last - first >= 4 || Number.isInteger(each))) {
    made.append(drawn("text", { x: x(tick), y: height - bottom + 18, "text-anchor": "middle" }, shown(tick)));
  }
  made.append(drawn("text", { x: (left + WIDTH - right) / 2, y: height - 6, "text-anchor": "middle" }, field));
  rows.forEach((row, place) => {
    const at = x(keys[place]);
    if (isNumber(row.low) && isNumber(row.high)) {
      made.append(drawn("line", { class: "interval", x1: at, x2: at, y1: y(row.low), y2: y(row.high) }));
    }
    made.append(point(at, y(row.estimate), row));
  });
  return made;
}

function rowByRow(rows) {
  const kept = rows.slice(0, MOST_ROWS), step = 22, left = 150, right = 24, top = 8, bottom = 26;
  const height = top + kept.length * step + bottom, [least, most] = range(kept);
  const x = (value) => left + ((WIDTH - left - right) * (value - least)) / (most - least || 1);
  const made = drawn("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${height}` });
  for (const tick of ticks(least, most, 5)) {
    made.append(
      drawn("line", { class: tick === 0 ? "zero" : "axis", x1: x(tick), x2: x(tick), y1: top, y2: height - bottom }),
      drawn("text", { x: x(tick), y: height - 8, "text-anchor": "middle" }, shown(tick)));
  }
  kept.forEach((row, place) => {
    const at = top + (place + 0.5) * step, label = row.key.join(", ");
    const short = label.length > LONGEST ? `${label.slice(0, LONGEST - 1)}…` : label;
    made.append(drawn("text", { x: left - 10, y: at + 4, "text-anchor": "end" }, short, drawn("title", {}, label)));
    if (isNumber(row.low) && isNumber(row.high)) {
      made.append(drawn("line", { class: "interval", x1: x(row.low), x2: x(row.high), y1: at, y2: at }));
    }
    made.append(point(x(row.estimate), at, row));
  });
  return made;
}

function point(x, y, row) {
  const ends = isNumber(row.low) && isNumber(row.high) ? ` (${shown(row.low)} to ${shown(row.high)})` : "";
  return drawn("circle", { class: "estimate", cx: x, cy: y, r: 4 },
    drawn("title", {}, `${row.key.join(", ")}: ${shown(row.estimate)}${ends}`));
}
