// Polls the status of the whole topology and shows it. Needs nothing but this server.

import { FlowList } from "./flows.js";
import { bytes, count, element, rate, seconds, setText } from "./format.js";
import { FlowMap } from "./map.js";

const EVERY_MS = 2000;
const SLOWEST_MS = 10000;
const TIMEOUT_MS = 8000;
const TOKEN_KEY = "replicator-token";

const byId = (id) => document.getElementById(id);
const flows = new FlowList(byId("flows"));
const map = new FlowMap(byId("map"), byId("map-text"));
let failures = 0;
let lastGood = null;
let last = null;
let timer = null;

async function poll() {
  clearTimeout(timer);
  try {
    const answer = await ask();
    if (answer.status === 401 || answer.status === 403) {
      askForToken(answer.status === 403);
      return;
    }
    if (!answer.ok) throw new Error(await reasonOf(answer));
    last = await answer.json();
    failures = 0;
    lastGood = Date.now();
    show(last);
    connection("live", "Live");
  } catch (problem) {
    failures += 1;
    lost(problem);
  }
  if (!document.hidden) timer = setTimeout(poll, Math.min(SLOWEST_MS, EVERY_MS * 2 ** Math.min(failures, 3)));
}

function ask() {
  const token = sessionStorage.getItem(TOKEN_KEY);
  return fetch("/api/v1/status", {
    headers: token ? { Authorization: `Bearer ${token}` } : {},
    cache: "no-store",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
}

async function reasonOf(answer) {
  const body = await answer.json().catch(() => null);
  return body?.error?.detail ?? `the server answered ${answer.status}`;
}

function show(status) {
  byId("token-form").hidden = true;
  byId("main").dataset.stale = "false";
  setText(byId("topology"), status.topology ?? "");
  document.title = `${status.topology ?? "replicator"} · replicator`;
  byId("plan").hidden = !status.planHash;
  setText(byId("plan-hash"), (status.planHash ?? "").slice(0, 10));
  byId("plan-hash").title = status.planHash ?? "";
  showTiles(status);
  showProblems(status);
  byId("map-card").hidden = status.flows.length === 0;
  map.update(status.flows, status.links ?? []);
  flows.update(status);
  showWorkers(status);
}

function showTiles(status) {
  const all = status.flows;
  const moving = all.filter((flow) => flow.state === "replicating").length;
  const known = all.map((flow) => flow.lagRecords).filter((lag) => lag != null);
  const ages = all.map((flow) => flow.lagSeconds).filter((age) => age != null);
  const sum = (field) => all.reduce((total, flow) => total + (flow[field] ?? 0), 0);
  const tiles = [
    ["flows replicating", `${moving} of ${all.length}`, moving < all.length ? "attention" : "good"],
    ["records behind", known.length ? count(known.reduce((a, b) => a + b, 0)) : "–"],
    ["worst lag", ages.length ? seconds(Math.max(...ages)) : "–"],
    ["records/s", rate(sum("recordsPerSecond"))],
    ["bytes/s", bytes(sum("bytesPerSecond"))],
  ];
  const node = byId("tiles");
  byId("overview").hidden = false;
  if (node.childElementCount !== tiles.length) {
    node.replaceChildren(...tiles.map(() => element("div", { class: "tile" }, element("dt"), element("dd"))));
  }
  tiles.forEach(([title, value, tone], index) => {
    const tile = node.children[index];
    tile.dataset.tone = tone ?? "";
    setText(tile.firstElementChild, title);
    setText(tile.lastElementChild, value);
  });
}

function showProblems(status) {
  const problems = status.flows.flatMap((flow) => (flow.problems ?? []).map((problem) => ({ flow, problem })));
  byId("problems-card").hidden = problems.length === 0;
  setText(byId("problems-count"), String(problems.length));
  const key = JSON.stringify(problems.map(({ flow, problem }) => [flow.link, flow.flow, problem]));
  const list = byId("problems");
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...problems.map(({ flow, problem }) => element(
    "li", {},
    element("p", { class: "problem-head" },
      element("code", { class: "code", text: problem.code }),
      element("strong", { text: problem.subject }),
      element("span", { class: "where", text: `${flow.link} · ${flow.source} → ${flow.target}` })),
    element("p", { text: problem.detail }),
    problem.remedy ? element("p", { class: "remedy" }, element("span", { text: "What to do: " }), problem.remedy) : null,
  )));
}

function showWorkers(status) {
  const workers = new Map();
  for (const flow of status.flows) {
    for (const worker of flow.workers ?? []) {
      const parts = workers.get(worker.id) ?? new Map();
      parts.set(flow.flow, new Set([...(parts.get(flow.flow) ?? []), ...worker.lanes]));
      workers.set(worker.id, parts);
    }
  }
  byId("workers-card").hidden = status.flows.length === 0;
  setText(byId("workers-count"), String(workers.size));
  const rows = [...workers].sort(([a], [b]) => a.localeCompare(b)).map(([id, parts]) => element(
    "li", {}, element("strong", { text: id }),
    ...[...parts].map(([flow, lanes]) => element("span", {
      class: "lanes",
      text: `${flow.replace("->", " → ")}: lane${lanes.size === 1 ? "" : "s"} ${[...lanes].sort((a, b) => a - b).join(", ")}`,
    })),
  ));
  const none = element("li", { text: "No worker runs. Start one with: replicator run" });
  byId("workers").replaceChildren(...(rows.length ? rows : [none]));
}

function connection(state, text) {
  byId("connection").dataset.state = state;
  setText(byId("connection-text"), text);
}

function lost(problem) {
  byId("main").dataset.stale = String(lastGood !== null);
  const network = problem instanceof TypeError || problem.name === "TimeoutError";
  const why = network ? "The server does not answer" : `No status: ${problem.message}`;
  const since = lastGood ? `, shown as of ${new Date(lastGood).toLocaleTimeString()}` : "";
  connection("lost", `${why}${since}; trying again`);
}

function askForToken(wrong) {
  sessionStorage.removeItem(TOKEN_KEY);
  connection("waiting", wrong ? "That token was refused" : "A token is needed");
  byId("token-form").hidden = false;
  byId("token").focus();
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN_KEY, byId("token").value.trim());
  byId("token").value = "";
  poll();
});
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : poll()));
window.addEventListener("resize", () => last && map.update(last.flows, last.links ?? []));
poll();
