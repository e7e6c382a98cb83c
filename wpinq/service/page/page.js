// The page: what is shown to whom, and what happens when a button is pressed.

import { ask, events as allEvents, forgetToken, keepToken, Refused, token } from "./requests.js";
import { amount, element, found, meter, put, shown, table } from "./elements.js";
import { answerCards } from "./answers.js";

const VIEWS = {
  analyst: [["query", "Query"], ["history", "History"]],
  curator: [["users", "Users"], ["budgets", "Budgets"], ["history", "History"]],
};
const TYPING_PAUSE = 350;

const state = { me: null, sources: [], balances: [], guided: false, checked: null, pending: null, timer: 0 };

// --- signing in -----------------------------------------------------------------------------------------------------

async function begin() {
  const kept = token();
  try {
    state.me = await ask("GET", "me"); // also without a token: a proxy may say who it is
  } catch (refused) {
    forgetToken();
    return showSignIn(refused.status !== 401 ? refused.message : kept ? "This token is unknown. Check it, or ask the curator for a new one." : "");
  }
  const { name, role } = state.me;
  found("name").textContent = name === role ? name : `${name}, ${role}`;
  found("sign-in").hidden = true;
  found("who").hidden = found("nav").hidden = false;
  put("nav", VIEWS[state.me.role].map(([id, title]) =>
    element("button", { type: "button", id: `to-${id}`, onclick: () => { location.hash = id; } }, title)));
  if (state.me.role === "curator") await loadCurator();
  else await loadAnalyst();
  route();
}

function showSignIn(wrong) {
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== "sign-in";
  found("who").hidden = found("nav").hidden = true;
  found("sign-in-wrong").textContent = wrong;
  found("token").value = "";
  found("token").focus();
}

function signOut() {
  forgetToken();
  state.me = null;
  location.hash = "";
  location.reload(); // nothing of what was shown stays
}

function route() {
  if (!state.me) return;
  const known = VIEWS[state.me.role].map(([id]) => id), wanted = location.hash.slice(1);
  const current = known.includes(wanted) ? wanted : known[0];
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== current;
  for (const id of known) {
    if (id === current) found(`to-${id}`).setAttribute("aria-current", "page");
    else found(`to-${id}`).removeAttribute("aria-current");
  }
  if (current === "history") loadHistory();
}

// --- analysts -------------------------------------------------------------------------------------------------------

async function loadAnalyst() {
  [state.sources, state.balances] = await Promise.all([ask("GET", "sources"), ask("GET", "remaining")]);
  put("sources", state.sources.map(sourceCard));
  if (!state.guided) put("guide", guideOf(await ask("GET", "guide")));
  state.guided = true;
}

function sourceCard(source) {
  const own = state.balances.find((balance) => balance.account === source.account);
  return element("article", { class: "card" },
    element("h3", {}, source.name),
    element("pre", {}, source.declaration),
    element("p", { class: "faint" }, `Protects ${source.unit}. `,
      source.version === null ? "Repeated answers are free until the service restarts." : `Version of the data: ${source.version}.`),
    source.suspended ? element("p", { class: "suspended" }, "Suspended: no answers until the curator resumes it.") : null,
    own
      ? element("p", {}, `Your budget: ε ${own.remaining} of ${own.budget} left`, meter(amount(own.spent), amount(own.budget)))
      : element("p", { class: "wrong" }, "You have no budget for it: ask the curator."),
    element("p", { class: "faint" }, "Examples"),
    element("div", { class: "row examples" }, source.examples.map(({ title, program: text }) =>
      element("button", { type: "button", class: "quiet", onclick: () => insertExample(text) }, title))));
}

/** An example takes the place of another one, and stands below a program of one's own. */
function insertExample(text) {
  const editor = found("program"), own = editor.value.trim();
  const other = state.sources.some((source) => source.examples.some((each) => each.program.trim() === own));
  editor.value = own === "" || other ? text : `${own}\n\n${text}`;
  editor.focus();
  typed();
}

function guideOf(steps) {
  return [...new Set(steps.map((step) => step.group))].map((group) =>
    element("details", {}, element("summary", {}, group),
      element("dl", {}, steps.filter((step) => step.group === group).map((step) => [element("dt", {}, element("code", {}, step.form)), element("dd", {}, step.meaning)]))));
}

const moment = (text) => text.replace("T", " ").replace("+00:00", "");
const isSelect = () => /^(?:[\s(]|--.*\n)*(?:select|with)\b/i.test(found("program").value); // no program begins so

function asked() {
  const text = found("program").value, fresh = found("fresh").checked, epsilon = found("sql-epsilon").value.trim();
  return isSelect() ? { sql: text, fresh, ...(epsilon ? { epsilon } : {}) } : { program: text, fresh };
}

function typed() {
  clearTimeout(state.timer);
  state.pending?.abort();
  setChecked(null);
  found("sql-cost").hidden = !isSelect();
  found("release-state").textContent = "";
  if (!found("program").value.trim()) {
    put("quote");
    showWrong(null);
    return;
  }
  state.timer = setTimeout(explain, TYPING_PAUSE);
}

async function explain() {
  const pending = (state.pending = new AbortController());
  try {
    const told = await ask("POST", "explain", asked(), pending.signal);
    showWrong(null);
    put("quote", quoteOf(told));
    setChecked(covered(told) && !told.not_admitted ? told : null);
  } catch (refused) {
    if (refused.name === "AbortError") return;
    if (refused.status === 429) {
      state.timer = setTimeout(explain, 3000);
      return;
    }
    put("quote");
    showWrong(refused);
  }
}

function setChecked(told) {
  state.checked = told;
  const button = found("release");
  button.disabled = told === null;
  button.textContent = told === null ? "Release" : paid(told) ? "Release (free)" : `Release for ε ${costWords(told.quote)}`;
}

const paid = (told) => Object.values(told.quote).every((cost) => amount(cost) === 0);
const left = (account) => state.balances.find((balance) => balance.account === account);
const costWords = (quote) =>
  Object.entries(quote).filter(([, cost]) => amount(cost) > 0).map(([account, cost]) => `${cost} of ${account}`).join(", ") || "nothing";
const covered = (told) =>
  Object.entries(told.quote).every(([account, cost]) => left(account) && amount(cost) <= amount(left(account).remaining));

function quoteOf(told) {
  return [
    element("p", { class: "quote-line" }, element("strong", {}, "Cost: "), paid(told) ? "nothing, already paid" : `ε ${costWords(told.quote)}`,
      told.seconds && !paid(told) ? element("span", { class: "faint" }, ` · takes about ${Math.ceil(told.seconds)} s, fixed before the data are read`) : null),
    Object.entries(told.quote).map(([account, cost]) => {
      const own = left(account);
      if (!own) return element("p", { class: "wrong" }, `You have no budget for ${account}: ask the curator.`);
      const enough = amount(cost) <= amount(own.remaining);
      return element("div", {}, meter(amount(own.spent), amount(own.budget), amount(cost)),
        element("p", { class: enough ? "faint" : "wrong" }, enough
          ? `ε ${own.remaining} of ${own.budget} left for ${account}`
          : `Only ${own.remaining} left for ${account}: lower epsilon, or ask the curator.`),
        // by the bill: what was paid before may lower the cost, and not what is revealed
        element("p", { class: "faint" },
          `The presence of ${own.unit} makes these answers at most ${shown(Math.exp(amount(told.bill[account])))} times as likely.`));
    }),
    told.not_admitted ? element("p", { class: "wrong" }, told.not_admitted) : null,
    table("Expected accuracy", ["release", "kind", "ε", "± at 95 %"],
      told.accuracy.map((row) => [row.name, row.kind, row.epsilon, row.half_width === null ? "with the answer" : shown(row.half_width)]),
      new Set([2, 3]), true),
    element("details", {}, element("summary", {}, "Bill and plans"),
      element("pre", {}, told.bill_text),
      told.program === null ? null : [element("h3", {}, "The SELECT as a program"), element("pre", { class: "program" }, told.program)],
      Object.entries(told.plans).map(([name, text]) => [element("h3", {}, name), element("pre", { class: "plan" }, text)])),
  ];
}

function showWrong(refused) {
  const editor = found("program");
  if (refused === null) {
    editor.removeAttribute("aria-invalid");
    put("program-wrong");
    return;
  }
  editor.setAttribute("aria-invalid", "true");
  put("program-wrong", element("pre", {}, refused.message),
    refused.line ? element("button", { type: "button", class: "quiet", onclick: () => goTo(refused.line, refused.column) },
      `Go to line ${refused.line}`) : null);
}

function goTo(line, column) {
  const editor = found("program"), lines = editor.value.split("\n");
  const at = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + column - 1;
  editor.focus();
  editor.setSelectionRange(at, Math.min(editor.value.length, at + 1));
}

async function release(event) {
  event.preventDefault();
  if (state.checked === null) return;
  const request = asked(), label = found("label").value;
  setChecked(null);
  found("release-state").textContent = "Releasing…";
  try {
    const told = await ask("POST", "release", { ...request, ...(label ? { label } : {}) });
    found("answers").prepend(...answerCards(told.answers, label));
    found("release-state").textContent = "Released.";
  } catch (refused) {
    found("release-state").textContent = refused.message; // not beside the program, which is explained anew
  }
  await loadAnalyst();
  explain();
}

// --- history --------------------------------------------------------------------------------------------------------

async function loadHistory() {
  const curator = state.me.role === "curator";
  const events = (await allEvents(curator ? "events" : "history")).reverse();
  put("history-table", events.length
    ? table("", ["number", "time (UTC)", "account", "ε", "event", "label"],
      events.map((each) => [each.number, moment(each.time), each.account, each.amount,
        curator ? `${each.kind}: ${each.description}` : each.description, each.label]), new Set([0, 3]), true)
    : element("p", { class: "faint" }, "No releases yet."));
}

// --- the curator ----------------------------------------------------------------------------------------------------

async function loadCurator() {
  const [sources, accounts, users] = await Promise.all([ask("GET", "sources"), ask("GET", "accounts"), ask("GET", "users")]);
  const payers = accounts.filter((each) => !/[/@]/.test(each.account));
  put("users-table", usersTable(users, payers));
  put("budget-sources", payers.map((each) => budgetCard(each, sources.filter((source) => source.account === each.account))));
  found("admit-budgets").replaceChildren(element("legend", {}, "Budgets (epsilon)"), ...payers.map((each) => [
    element("label", { for: `admit-${each.account}` }, `${each.account} `, element("span", { class: "faint" }, `of ${each.budget}`)),
    element("input", { id: `admit-${each.account}`, "data-account": each.account, inputmode: "decimal", autocomplete: "off" }),
  ]).flat());
}

function usersTable(users, payers) {
  return table("", ["name", "role", "since (UTC)", "budgets", "access"], users.map((each) => [
    each.name,
    each.admitted ? each.role : element("span", { class: "suspended" }, `${each.role}, token revoked`),
    moment(each.added),
    each.role === "analyst" ? element("div", {}, payers.map((payer) => budgetForm(each, payer.account))) : "",
    element("div", { class: "row" },
      each.tokens.map((held) => element("span", { class: "faint" }, held.expires ? `Token expires ${moment(held.expires)} ` : "Token does not expire ")),
      element("button", { type: "button", class: "quiet", onclick: () => renew(each.name) }, "New token",
        element("span", { class: "faint" }, ` for ${each.name}`)),
      each.admitted && each.name !== state.me.name
        ? element("button", { type: "button", class: "quiet", onclick: () => act(() => ask("DELETE", `users/${encodeURIComponent(each.name)}`)) },
          "Revoke access", element("span", { class: "faint" }, ` of ${each.name}`))
        : null),
  ]), new Set(), true);
}

function budgetForm(person, account) {
  const own = person.budgets.find((each) => each.account === account);
  const input = element("input", { value: own?.budget ?? "", "aria-label": `budget of ${person.name} for ${account}`, inputmode: "decimal" });
  const send = (event) => {
    event.preventDefault();
    act(() => ask("PUT", `users/${encodeURIComponent(person.name)}/budgets`, { budgets: { [account]: input.value.trim() } }));
  };
  return element("form", { onsubmit: send },
    element("span", {}, `${account}: spent ${own?.spent ?? "0"} of`), input, element("button", { class: "quiet" }, "Set"));
}

function budgetCard(balance, sources) {
  const input = element("input", { id: `budget-${balance.account}`, value: balance.budget, inputmode: "decimal" });
  const send = (event) => {
    event.preventDefault();
    act(() => ask("PUT", "accounts", { budgets: { [balance.account]: input.value.trim() } }));
  };
  const suspended = sources.some((source) => source.suspended);
  return element("article", { class: "card" },
    element("h2", {}, balance.account),
    element("p", {}, `ε ${balance.spent} of ${balance.budget} spent, ${balance.remaining} left. Protects ${balance.unit}.`),
    meter(amount(balance.spent), amount(balance.budget)),
    sources.map((source) => element("pre", {}, source.declaration)),
    element("form", { class: "row", onsubmit: send },
      element("div", {}, element("label", { for: input.id }, "Budget (epsilon)"), input),
      element("button", { class: "quiet" }, "Set")),
    suspended
      ? element("div", {}, element("p", { class: "suspended" },
          "Suspended: an evaluation failed. Each failure can reveal one bit that epsilon does not cover. Check the history before you resume."),
        element("button", { type: "button", onclick: () => act(() => ask("POST", "resume", { account: balance.account })) }, `Resume ${balance.account}`))
      : element("p", { class: "faint" }, "Open to analysts."));
}

async function act(work) {
  for (const id of ["admit-wrong", "budgets-wrong"]) found(id).textContent = "";
  try {
    await work();
  } catch (refused) {
    for (const id of ["admit-wrong", "budgets-wrong"]) found(id).textContent = refused.message;
  }
  await loadCurator();
}

const renew = (name) => act(async () => showToken(await ask("POST", `users/${encodeURIComponent(name)}/token`)));

function admit(event) {
  event.preventDefault();
  const given = [...found("admit-budgets").querySelectorAll("input")].filter((input) => input.value.trim());
  const role = found("admit-role").value;
  const budgets = role === "analyst" ? Object.fromEntries(given.map((input) => [input.dataset.account, input.value.trim()])) : {};
  act(async () => {
    showToken(await ask("POST", "users", { name: found("admit-name").value, role, budgets }));
    found("admit-form").reset();
  });
}

function showToken({ name, token: text }) {
  put("new-token", element("div", { class: "card narrow" }, element("h2", {}, `Token of ${name}`),
    element("p", { class: "faint" }, "It is shown only once. Send it over a private channel."),
    element("pre", { class: "token" }, text)));
}

// --------------------------------------------------------------------------------------------------------------------

found("sign-in").querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(found("token").value.trim());
  begin();
});
found("leave").addEventListener("click", signOut);
for (const id of ["program", "sql-epsilon"]) found(id).addEventListener("input", typed);
found("fresh").addEventListener("change", typed);
found("program").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) found("program-form").requestSubmit();
});
found("program-form").addEventListener("submit", release);
found("admit-form").addEventListener("submit", admit);
window.addEventListener("hashchange", route);
window.addEventListener("unhandledrejection", (event) => {
  if (event.reason instanceof Refused && event.reason.status === 401) signOut();
});
begin();
