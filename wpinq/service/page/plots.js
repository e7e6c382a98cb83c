// Answers as bars with intervals: side by side along an axis of numbers, one below the other for other keys.

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
  const words = `${name}: ${rows.length} bars with intervals; the table beside them has the numbers`;
  whole.setAttribute("role", "img");
  whole.setAttribute("aria-label", words);
  return element("figure", {}, whole);
}

function alongAxis(rows, field) {
  const height = 280, left = 48, right = 12, top = 12, bottom = 40;
  const keys = rows.map((row) => Number(row.key[0]));
  const [least, most] = range(rows), sorted = [...new Set(keys)].sort((one, other) => one - other);
  // the least distance of two keys
  const gap = Math.min(...sorted.slice(1).map((key, place) => key - sorted[place]), sorted.length > 1 ? Infinity : 1);
  const [first, last] = [sorted[0] - gap / 2, sorted.at(-1) + gap / 2]; // with room for half a bar at both ends
  const x = (key) => left + ((WIDTH - left - right) * (key - first)) / (last - first);
  const thick = Math.max(1, 0.7 * (x(gap) - x(0)));
  const y = (value) => height - bottom - ((height - top - bottom) * (value - least)) / (most - least || 1);
  const made = drawn("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${height}` });
  for (const tick of ticks(least, most, 5)) {
    made.append(
      drawn("line", { class: tick === 0 ? "zero" : "axis", x1: left, x2: WIDTH - right, y1: y(tick), y2: y(tick) }),
      drawn("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, shown(tick)));
  }
  for (const tick of ticks(first, last, 8).filter((each) => !keys.every(Number.isInteger) || Number.isInteger(each))) {
    made.append(drawn("text", { x: x(tick), y: height - bottom + 18, "text-anchor": "middle" }, shown(tick)));
  }
  made.append(drawn("text", { x: (left + WIDTH - right) / 2, y: height - 6, "text-anchor": "middle" }, field));
  rows.forEach((row, place) => {
    const at = x(keys[place]), ends = [y(0), y(row.estimate)];
    made.append(bar(at - thick / 2, Math.min(...ends), thick, Math.abs(ends[0] - ends[1]), row));
    if (isNumber(row.low) && isNumber(row.high)) {
      made.append(drawn("line", { class: "interval", x1: at, x2: at, y1: y(row.low), y2: y(row.high) }));
    }
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
    const ends = [x(0), x(row.estimate)];
    made.append(drawn("text", { x: left - 10, y: at + 4, "text-anchor": "end" }, short, drawn("title", {}, label)),
      bar(Math.min(...ends), at - step / 3, Math.abs(ends[0] - ends[1]), step / 1.5, row));
    if (isNumber(row.low) && isNumber(row.high)) {
      made.append(drawn("line", { class: "interval", x1: x(row.low), x2: x(row.high), y1: at, y2: at }));
    }
  });
  return made;
}

function bar(x, y, width, height, row) {
  const ends = isNumber(row.low) && isNumber(row.high) ? ` (${shown(row.low)} to ${shown(row.high)})` : "";
  return drawn("rect", { class: "estimate", x, y, width, height },
    drawn("title", {}, `${row.key.join(", ")}: ${shown(row.estimate)}${ends}`));
}
