// Answers as cards: a table, a plot, what kind of numbers they are, and the file that the library reads back.

import { element, shown, table } from "./elements.js";
import { plot } from "./plots.js";

export function answerCards(answers, label) {
  return Object.entries(answers).map(([name, released]) =>
    element("article", { class: "card answer" },
      element("h2", {}, name, label ? element("span", { class: "faint" }, ` · ${label}`) : null),
      released.series.map((series) => seriesOf(name, released, series)),
      element("div", { class: "row" },
        element("button", { type: "button", class: "quiet", onclick: () => save(`${name}.json`, JSON.stringify(released.data, null, 1)) }, "Save for wpinq"),
        element("button", { type: "button", class: "quiet", onclick: () => save(`${name}.csv`, csv(released.series)) }, "Save as csv"))));
}

function seriesOf(name, released, series) {
  const title = released.series.length > 1 || released.form === "table" ? series.title : "";
  const words = element("p", { class: "faint" }, `${series.kind}. Each interval has a confidence of 95 %.`);
  if (!series.fields.length && series.rows.length === 1) {
    const [row] = series.rows;
    return element("div", {}, title ? element("h3", {}, title) : null,
      element("p", { class: "big" }, shown(row.estimate)),
      row.low === null ? null : element("p", {}, `${shown(row.low)} to ${shown(row.high)}`), words);
  }
  const numbers = new Set([0, 1, 2].map((place) => series.fields.length + place));
  const kinds = new Set(series.rows.map((row) => row.kind)).size > 1 ? ["kind"] : []; // one kind is said below
  const rows = series.rows.map((row) =>
    [...row.key, shown(row.estimate), shown(row.low), shown(row.high), ...kinds.map((name) => row[name])]);
  const drawn = plot(series, title || name);
  return element("div", {}, title ? element("h3", {}, title) : null,
    element("div", { class: drawn ? "series" : "series single" },
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `answers of ${title || name}` },
        table("", [...series.fields, "estimate", "low", "high", ...kinds], rows, numbers)),
      drawn),
    series.complete ? null : element("p", { class: "faint" }, "Only the first rows are shown. The saved file for wpinq has all of them."),
    words);
}

function csv(all) {
  // a cell that begins like a formula must not become one in a spreadsheet
  const cell = (value) => {
    const text = value === null ? "" : String(value);
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const lines = all.flatMap((series) => [
    ["series", ...series.fields, "estimate", "low", "high", "kind"],
    ...series.rows.map((row) => [series.title, ...row.key, row.estimate, row.low, row.high, row.kind]),
  ]);
  return lines.map((line) => line.map(cell).join(",")).join("\n") + "\n";
}

function save(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/octet-stream" }));
  element("a", { href: address, download: name }).click();
  URL.revokeObjectURL(address);
}
