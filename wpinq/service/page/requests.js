// Requests to the service. The token is kept for this tab alone, and goes nowhere but into the header. Where a proxy
// names the user there is none.

const KEPT = "wpinq token";

export class Refused extends Error {
  constructor(status, told) {
    super(told.message);
    Object.assign(this, { status, kind: told.kind, line: told.line, column: told.column });
  }
}

export const token = () => sessionStorage.getItem(KEPT);
export const keepToken = (text) => sessionStorage.setItem(KEPT, text);
export const forgetToken = () => sessionStorage.removeItem(KEPT);

export async function ask(method, path, body, signal) {
  let response;
  try {
    response = await fetch(`v1/${path}`, {
      method,
      signal,
      cache: "no-store",
      headers: { ...(token() && { authorization: `Bearer ${token()}` }), ...(body === undefined ? {} : { "content-type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { kind: "Unreachable", message: "the service cannot be reached" });
  }
  if (response.status === 204) return null;
  let told;
  try {
    told = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(response.status, { kind: "Unreadable", message: "the service sent no readable response" });
  }
  if (!response.ok) throw new Refused(response.status, told.error);
  return told;
}

/** All events, a page after the other. */
export async function events(path) {
  const all = [];
  for (;;) {
    const page = await ask("GET", `${path}?after=${all.at(-1)?.number ?? 0}`);
    if (!page.length) return all;
    all.push(...page);
  }
}
