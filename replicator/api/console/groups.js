// Consumer groups on both sides: where they stand, and what a move to the other side would cost now.

import { count, element, exact, pill, seconds, setText } from "./format.js";

const MOST_GROUPS = 200;
const words = { "active-on-target": "at work on the target", "no-positions": "no positions" };
const order = ["refused", "failed", "pending", "no-positions", "deleted", "active-on-target", "synced"];

export class GroupList {
  constructor(card) {
    this.card = card;
    this.body = card.querySelector(".body");
    this.open = new Set();
    this.key = "";
  }

  update(answer) {
    this.card.hidden = false;
    const groups = [...answer.groups].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state)
      || a.flow.localeCompare(b.flow) || a.group.localeCompare(b.group));
    setText(this.card.querySelector(".count"), String(groups.length));
    const key = JSON.stringify([groups, answer.problems]);
    if (key === this.key) return;
    this.key = key;
    const focused = document.activeElement?.closest?.("[data-group]")?.dataset.group;
    const rows = groups.slice(0, MOST_GROUPS).map((group) => this.row(group));
    const rest = groups.length - rows.length;
    this.body.replaceChildren(
      ...(answer.problems ?? []).map((problem) => element("p", { class: "note", text: `▲ ${problem.subject}: ${problem.detail}` })),
      rows.length ? element("ul", { class: "groups" }, ...rows)
        : element("p", { class: "quiet", text: "No consumer group has a position in a replicated topic." }),
      ...(rest > 0 ? [element("p", { class: "quiet", text: `and ${exact(rest)} more: see replicator groups` })] : []),
    );
    if (focused) this.body.querySelector(`[data-group="${CSS.escape(focused)}"] summary`)?.focus({ preventScroll: true });
  }

  row(group) {
    const id = JSON.stringify([group.flow, group.link, group.group]);
    const parts = group.partitions ?? [];
    const [source, target] = group.flow.split("->");
    const known = parts.filter((part) => part.grade !== "unavailable");
    const reread = known.reduce((sum, part) => sum + (part.recordsReread ?? 0), 0);
    const behind = (field) => {
      const values = parts.map((part) => part[field]).filter((value) => value != null);
      return values.length ? count(values.reduce((a, b) => a + b, 0)) : "–";
    };
    const cost = !parts.length ? "–" : known.length < parts.length ? "unknown" : reread === 0 ? "nothing" : `${count(reread)} records`;
    const grade = parts.every((part) => part.grade === "exact") ? "exact" : known.length < parts.length ? "not known" : "bounded";
    const age = group.lastSyncedAgeSeconds;
    const details = element(
      "details", { "data-group": id, open: this.open.has(id), ontoggle: (event) => this.remember(id, event.target.open) },
      element("summary", {},
        element("span", { class: "who" }, element("b", { text: group.group }),
          element("span", { class: "quiet", text: `${group.link} · ${group.flow.replace("->", " → ")}` })),
        pill(words[group.state] ?? group.state),
        figure("re-read if moved", cost, cost === "nothing" ? "good" : ""),
        figure(`behind on ${source}`, behind("sourceLagRecords")), figure(`behind on ${target}`, behind("targetLagRecords"))),
      element("p", { class: "quiet", text: [
        `Positions are ${grade}`,
        age == null ? "not synced yet" : `synced ${seconds(age)} before this was read`,
        group.reason,
      ].filter(Boolean).join(", ") }),
      table(group, parts),
    );
    return element("li", {}, details);
  }

  remember(id, open) {
    if (open) this.open.add(id);
    else this.open.delete(id);
  }
}

function figure(title, value, tone = "") {
  return element("span", { class: "pair", "data-tone": tone }, element("span", { class: "quiet", text: title }), element("b", { text: value }));
}

function table(group, parts) {
  const [source, target] = group.flow.split("->");
  const heads = ["Topic", `On ${source}`, `On ${target}`, `Behind on ${source}`, `Behind on ${target}`, "Re-read if moved", "Grade"];
  const rows = parts.map((part) => element(
    "tr", {},
    element("th", { scope: "row", text: `${part.topic}/${part.partition}` }),
    ...[exact(part.sourceOffset), exact(part.targetOffset), exact(part.sourceLagRecords), exact(part.targetLagRecords),
      part.grade === "unavailable" ? "?" : exact(part.recordsReread)].map((text) => element("td", { class: "number", text })),
    element("td", { text: part.refused ? `${part.grade}: ${part.refused}` : part.grade, class: "wrap" }),
  ));
  const head = element("tr", {}, ...heads.map((text, at) => element("th", { scope: "col", class: at > 0 && at < 6 ? "number" : null, text })));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Partitions of group ${group.group}` },
    element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}
