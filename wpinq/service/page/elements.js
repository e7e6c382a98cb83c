// Elements made of texts and elements: text is always text, whoever wrote it.

const SVG = "http://www.w3.org/2000/svg";

const pieces = (content) => content.flat(Infinity).filter((item) => item !== null && item !== undefined);

function filled(made, attributes, content) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...pieces(content));
  return made;
}

export const element = (tag, attributes = {}, ...content) => filled(document.createElement(tag), attributes, content);
export const drawn = (tag, attributes = {}, ...content) => filled(document.createElementNS(SVG, tag), attributes, content);
export const found = (id) => document.getElementById(id);

export function put(id, ...content) {
  found(id).replaceChildren(...pieces(content));
}

/** A table; a stacked one shows each row as a block of names and values where the window is narrow. */
export function table(caption, names, rows, numbers = new Set(), stacked = false) {
  const cell = (tag, item, place, more) =>
    element(tag, { ...more, ...(numbers.has(place) ? { class: "number" } : {}) }, item ?? "");
  return element("table", stacked ? { class: "stacked" } : {},
    caption ? element("caption", {}, caption) : null,
    element("thead", {}, element("tr", {}, names.map((name, place) => cell("th", name, place, { scope: "col" })))),
    element("tbody", {}, rows.map((row) =>
      element("tr", {}, row.map((item, place) => cell("td", item, place, { "data-name": names[place] }))))));
}

export function meter(spent, budget, due = 0) {
  const share = (amount) => (budget > 0 ? Math.min(100, Math.max(0, (100 * amount) / budget)) : 0);
  const used = share(spent), next = Math.min(100 - used, share(due));
  return drawn("svg", { class: "meter", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("rect", { x: 0, y: 0, width: used, height: 8 }),
    drawn("rect", { x: used, y: 0, width: next, height: 8, class: "due" }));
}

// Exact numbers travel as "0.1" or "1/3"; for bars and sums of the page alone they become floats.
export function amount(text) {
  const [above, below] = String(text).split("/");
  return Number(above) / (below === undefined ? 1 : Number(below));
}

/** A number with four digits; from 1,000 on, all digits before the point. */
export function shown(number) {
  if (typeof number !== "number") return number ?? "";
  const digits = Math.abs(number) < 1000 ? { maximumSignificantDigits: 4 } : { maximumFractionDigits: 0 };
  return number.toLocaleString("en", digits);
}

export const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
