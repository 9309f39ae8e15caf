// Shows the status of the whole topology, its groups and its history. Needs nothing but this server.

import { FlowList } from "./flows.js";
import { bytes, count, element, rate, seconds, setText } from "./format.js";
import { GroupList } from "./groups.js";
import { HistoryList } from "./history.js";
import { FlowMap } from "./map.js";
import { Polling, keepToken } from "./polling.js";

const byId = (id) => document.getElementById(id);
const flows = new FlowList(byId("flows"));
const map = new FlowMap(byId("map"), byId("map-detail"));
const groups = new GroupList(byId("groups"));
const history = new HistoryList(byId("history"));
const MOST_PARTS = 6;
let lastGood = null;
let last = null;

const status = new Polling("/api/v1/status", {
  everyMs: 2000,
  good: (answer) => {
    last = answer;
    lastGood = Date.now();
    show(answer);
    connection("live", "Live");
    for (const beside of besides) if (beside.timer === null) beside.ask();
  },
  bad: lost,
  refused: askForToken,
});
const besides = [
  beside("groups", groups, { everyMs: 15000, timeoutMs: 30000 }),
  beside("history", history, { everyMs: 15000, timeoutMs: 15000 }),
];

// What is asked for beside the status: a failure of it is said in its own card.
function beside(name, list, timing) {
  const note = byId(`${name}-note`);
  return new Polling(`/api/v1/${name}`, {
    ...timing,
    good: (answer) => {
      note.hidden = true;
      list.update(answer);
    },
    bad: (why) => {
      byId(name).hidden = false;
      note.hidden = false;
      setText(note, `Not read anew: ${why}. Trying again.`);
    },
    refused: askForToken,
  });
}

function show(answer) {
  byId("token-form").hidden = true;
  byId("sections").hidden = false;
  byId("main").dataset.stale = "false";
  setText(byId("topology"), answer.topology ?? "");
  document.title = `${problemsOf(answer).length ? "▲ " : ""}${answer.topology ?? "replicator"} · replicator`;
  byId("plan").hidden = !answer.planHash;
  setText(byId("plan-hash"), (answer.planHash ?? "").slice(0, 10));
  byId("plan-hash").title = answer.planHash ?? "";
  showTiles(answer);
  showProblems(answer);
  byId("map-card").hidden = answer.flows.length === 0;
  map.update(answer.flows, answer.links ?? []);
  flows.update(answer);
  showWorkers(answer);
}

function showTiles(answer) {
  const all = answer.flows;
  const moving = all.filter((flow) => flow.state === "replicating").length;
  const known = (field) => all.map((flow) => flow[field]).filter((value) => value != null);
  const sum = (field) => all.reduce((total, flow) => total + (flow[field] ?? 0), 0);
  const trips = all.map((flow) => flow.canary?.roundTripSeconds).filter((value) => value != null);
  const lags = known("lagRecords");
  const ages = known("lagSeconds");
  const tiles = [
    ["flows replicating", `${moving} of ${all.length}`, moving < all.length ? "attention" : "good"],
    ["records behind", lags.length ? count(lags.reduce((a, b) => a + b, 0)) : "–"],
    ["worst lag", ages.length ? seconds(Math.max(...ages)) : "–"],
    ["canary round trip", trips.length ? seconds(Math.max(...trips)) : "–"],
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

function problemsOf(answer) {
  return [
    ...(answer.links ?? []).flatMap((link) => (link.problems ?? []).map((problem) => ({ where: link.link, problem }))),
    ...answer.flows.flatMap((flow) => (flow.problems ?? []).map((problem) => ({
      where: `${flow.link} · ${flow.source} → ${flow.target}`, problem,
    }))),
  ];
}

function showProblems(answer) {
  const problems = problemsOf(answer);
  byId("problems-card").hidden = problems.length === 0;
  setText(byId("problems-count"), String(problems.length));
  const key = JSON.stringify(problems);
  const list = byId("problems");
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...problems.map(({ where, problem }) => element(
    "li", {},
    element("p", { class: "problem-head" },
      element("code", { class: "code", text: problem.code }),
      element("strong", { text: problem.subject }),
      element("span", { class: "where", text: where })),
    element("p", { text: problem.detail }),
    problem.remedy ? element("p", { class: "remedy" }, element("span", { text: "What to do: " }), problem.remedy) : null,
  )));
}

function showWorkers(answer) {
  const workers = new Map();
  for (const flow of answer.flows) {
    for (const worker of flow.workers ?? []) {
      const parts = workers.get(worker.id) ?? new Map();
      parts.set(flow.flow, new Set([...(parts.get(flow.flow) ?? []), ...worker.lanes]));
      workers.set(worker.id, parts);
    }
  }
  byId("workers-card").hidden = answer.flows.length === 0;
  setText(byId("workers-count"), String(workers.size));
  const rows = [...workers].sort(([a], [b]) => a.localeCompare(b)).map(([id, parts]) => element(
    "li", {}, element("strong", { text: id }),
    ...[...parts].slice(0, MOST_PARTS).map(([flow, lanes]) => element("span", {
      class: "lanes",
      text: `${flow.replace("->", " → ")}: lane${lanes.size === 1 ? "" : "s"} ${[...lanes].sort((a, b) => a - b).join(", ")}`,
    })),
    parts.size > MOST_PARTS ? element("span", { class: "lanes", text: `and ${parts.size - MOST_PARTS} more ways` }) : null,
  ));
  const none = element("li", { text: "No worker runs. Start one with: replicator run" });
  const key = JSON.stringify([...workers].map(([id, parts]) => [id, [...parts].map(([flow, lanes]) => [flow, [...lanes]])]));
  if (byId("workers").dataset.key === key) return;
  byId("workers").dataset.key = key;
  byId("workers").replaceChildren(...(rows.length ? rows : [none]));
}

function connection(state, text) {
  byId("connection").dataset.state = state;
  setText(byId("connection-text"), text);
}

function lost(why, silent) {
  byId("main").dataset.stale = String(lastGood !== null);
  const since = lastGood ? `, shown as of ${new Date(lastGood).toLocaleTimeString()}` : "";
  connection("lost", `▲ ${silent ? why : `No status: ${why}`}${since}; trying again`);
}

function askForToken(wrong) {
  keepToken(null);
  connection("waiting", wrong ? "That token was refused" : "A token is needed");
  if (byId("token-form").hidden) {
    byId("token-form").hidden = false;
    byId("token").focus();
  }
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(byId("token").value.trim());
  byId("token").value = "";
  status.ask();
});
// A place in a list that is folded is unfolded before it is gone to.
window.addEventListener("hashchange", () => {
  if (last) flows.update(last);
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
});
window.addEventListener("resize", () => last && map.update(last.flows, last.links ?? []));
status.ask();
