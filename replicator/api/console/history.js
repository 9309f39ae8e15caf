// Role changes and drills, newest first, each with its evidence.

import { ago, count, drawing, element, pill, seconds, setText } from "./format.js";

const MOST = 50;
const words = { "rolled-back": "rolled back", pass: "passed", fail: "failed" };

export class HistoryList {
  constructor(card) {
    this.card = card;
    this.body = card.querySelector(".body");
    this.open = new Set();
    this.key = "";
  }

  update(answer) {
    this.card.hidden = false;
    const entries = [...answer.entries].sort((a, b) => b.at - a.at);
    setText(this.card.querySelector(".count"), String(entries.length));
    // Once a minute anew, for the words that say how long ago it was.
    const key = JSON.stringify([entries, answer.problems, Math.floor(Date.now() / 60000)]);
    if (key === this.key) return;
    this.key = key;
    const focused = document.activeElement?.closest?.("[data-entry]")?.dataset.entry;
    const rows = entries.slice(0, MOST).map((entry) => this.row(entry));
    const rest = entries.length - rows.length;
    this.body.replaceChildren(
      ...(answer.problems ?? []).map((problem) => element("p", { class: "note", text: `▲ ${problem.subject}: ${problem.detail}` })),
      rows.length ? element("ol", { class: "history" }, ...rows) : element("p", { class: "quiet" },
        "No role was changed and no drill was run yet. Rehearse one, away from everything real: ",
        element("code", { text: "replicator drill run FILE --sandbox" })),
      ...(rest > 0 ? [element("p", { class: "quiet", text: `and ${rest} older: see replicator history` })] : []),
    );
    if (focused) this.body.querySelector(`[data-entry="${CSS.escape(focused)}"] summary`)?.focus({ preventScroll: true });
  }

  row(entry) {
    const drill = entry.kind === "drill";
    const word = drill ? entry.verdict : entry.outcome;
    const told = entry.loss?.known === false ? null : entry.loss?.records;
    const lost = drill ? entry.lostRecords : told;
    const title = drill ? `drill: ${entry.drill}` : entry.kind;
    const way = drill ? (entry.flow ?? "").replace("->", " → ") : `${entry.from} → ${entry.to}`;
    return element("li", {}, element(
      "details", { "data-entry": entry.id, open: this.open.has(entry.id), ontoggle: (event) => this.remember(entry.id, event.target.open) },
      element("summary", {},
        element("span", { class: "who" }, element("b", { text: title }),
          element("span", { class: "quiet" }, `${entry.link} · ${way} · `, ago(entry.at), ` by ${entry.by}`)),
        pill(words[word] ?? word ?? "unknown"),
        figure("interrupted", entry.rtoSeconds == null ? "–" : seconds(entry.rtoSeconds)),
        figure("lost", lost == null ? "–" : lost === 0 ? "nothing" : `${count(lost)} records`),
        figure(drill ? "read again" : "epoch", drill ? count(entry.rereadRecords) : String(entry.epoch ?? "–"))),
      ...(entry.reason || entry.trouble ? [element("p", { text: entry.reason || entry.trouble })] : []),
      ...checks(entry.checks ?? []), ...steps(entry.steps ?? []),
      ...(drill ? [element("p", { class: "quiet" }, `Report ${entry.id}, number ${entry.number}, checksum `, element("code", { text: entry.checksum }))]
        : [element("p", { class: "quiet", text: `Journal ${entry.id}, fencing ${entry.fencing}` })]),
    ));
  }

  remember(id, open) {
    if (open) this.open.add(id);
    else this.open.delete(id);
  }
}

function figure(title, value) {
  return element("span", { class: "pair" }, element("span", { class: "quiet", text: title }), element("b", { text: value }));
}

function checks(all) {
  if (!all.length) return [];
  return [element("ul", { class: "checks" }, ...all.map((check) => element(
    "li", { "data-ok": String(check.ok) },
    element("span", { class: "sign", text: check.ok ? "✓" : "✗" }), element("span", { class: "visually-hidden", text: check.ok ? "holds: " : "does not hold: " }),
    element("b", { text: check.check }), element("span", { class: "quiet", text: check.detail }),
  )))];
}

// Each step with a bar as long as it took, beside the longest of them.
function steps(all) {
  if (!all.length) return [];
  const longest = Math.max(...all.map((step) => step.seconds), 0.001);
  return [element("ol", { class: "steps" }, ...all.map((step) => element(
    "li", {},
    element("span", { class: "what" }, element("b", { text: step.step }), element("span", { class: "quiet", text: step.result })),
    drawing("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
      drawing("rect", { width: Math.max(1, (step.seconds / longest) * 100), height: 10, rx: 2 })),
    element("span", { class: "took", text: seconds(step.seconds) }),
  )))];
}
