// One card a link, one row a flow, one table of partitions for a flow that is opened.

import { anchor, bytes, count, element, exact, pill, rate, seconds, setText, showState } from "./format.js";
import { roleLine } from "./roles.js";
import { Sparkline } from "./sparkline.js";

const MOST_ROWS = 400;
const MANY = 12;
const FIRST = 6;

export class FlowList {
  constructor(node) {
    this.node = node;
    this.links = new Map();
  }

  update(status) {
    const facts = new Map((status.links ?? []).map((link) => [link.link, link]));
    const names = [...new Set(status.flows.map((flow) => flow.link))];
    for (const name of [...this.links.keys()].filter((known) => !names.includes(known))) {
      this.links.get(name).node.remove();
      this.links.delete(name);
    }
    for (const name of names) {
      if (!this.links.has(name)) {
        const card = new LinkCard(name);
        this.links.set(name, card);
        this.node.append(card.node);
      }
      this.links.get(name).update(facts.get(name), status.flows.filter((flow) => flow.link === name));
    }
  }
}

class LinkCard {
  constructor(name) {
    this.rows = new Map();
    this.about = element("p", { class: "about" });
    this.body = element("div", { class: "rows" });
    this.all = false;
    this.more = element("button", { type: "button", class: "opener more", hidden: true, onclick: () => this.showAll() });
    this.node = element(
      "section", { class: "card link", "aria-label": `Link ${name}` },
      element("div", { class: "link-head" }, element("h2", { text: name }), this.about),
      this.body, this.more,
    );
  }

  showAll() {
    this.all = true;
    this.more.hidden = true;
    for (const row of this.rows.values()) row.node.hidden = false;
    [...this.rows.values()][FIRST]?.node.focus({ preventScroll: true });
  }

  // Of very many flows the first few are shown, and each that needs a look.
  hideMost(flows) {
    const many = flows.length > MANY && !this.all;
    const asked = decodeURIComponent(location.hash.slice(1));
    flows.forEach((flow, at) => {
      const plain = flow.state === "replicating" && !(flow.problems ?? []).length;
      const row = this.rows.get(flow.flow);
      row.node.hidden = many && at >= FIRST && plain && !row.open && row.node.id !== asked;
    });
    this.more.hidden = !many;
    setText(this.more, `Show all ${flows.length} flows`);
  }

  update(facts, flows) {
    const key = JSON.stringify([facts, Math.floor(Date.now() / 30000)]);
    if (this.about.dataset.key !== key) {
      this.about.dataset.key = key;
      this.about.replaceChildren(...roleLine(facts, flows));
    }
    this.node.dataset.many = String(flows.length > 6);
    const ids = flows.map((flow) => flow.flow);
    for (const id of [...this.rows.keys()].filter((known) => !ids.includes(known))) {
      this.rows.get(id).node.remove();
      this.rows.delete(id);
    }
    for (const flow of flows) {
      if (!this.rows.has(flow.flow)) {
        const row = new FlowRow(flow);
        this.rows.set(flow.flow, row);
        this.body.append(row.node);
      }
      this.rows.get(flow.flow).update(flow);
    }
    this.hideMost(flows);
  }
}

class FlowRow {
  constructor(flow) {
    this.open = false;
    this.spark = new Sparkline(`Records behind, ${flow.source} to ${flow.target}`);
    this.state = element("span", { class: "pill" });
    this.reason = element("p", { class: "reason" });
    this.figures = {};
    const figures = element("dl", { class: "figures" });
    for (const [key, title] of [["lag", "behind"], ["age", "lag"], ["rate", "records/s"], ["bytes", "bytes/s"], ["canary", "canary"]]) {
      this.figures[key] = element("dd");
      figures.append(element("div", {}, element("dt", { text: title }), this.figures[key]));
    }
    const panel = `partitions-${flow.link}-${flow.source}-${flow.target}`;
    this.detail = element("div", { class: "detail", id: panel, hidden: true });
    this.button = element("button", {
      type: "button", class: "opener", "aria-expanded": "false", "aria-controls": panel,
      onclick: () => this.toggle(),
    });
    this.node = element(
      "article", { class: "flow", id: anchor(flow), tabindex: "-1", "aria-label": `Flow ${flow.source} to ${flow.target}` },
      element(
        "div", { class: "flow-main" },
        element(
          "div", { class: "flow-name" },
          element("h3", {}, flow.source, element("span", { class: "to", "aria-hidden": "true", text: "→" }),
            element("span", { class: "visually-hidden", text: " to " }), flow.target),
          this.state, this.reason,
        ),
        this.spark.node, figures, this.button,
      ),
      this.detail,
    );
  }

  update(flow) {
    this.flow = flow;
    this.node.dataset.state = flow.state;
    showState(this.state, flow.state);
    const plain = /^(\d+) of \1 partitions moving$/.test(flow.reason ?? "");
    setText(this.reason, plain ? "" : flow.reason ?? "");
    this.figure("lag", count(flow.lagRecords), exact(flow.lagRecords));
    this.figure("age", seconds(flow.lagSeconds));
    this.figure("rate", rate(flow.recordsPerSecond), exact(flow.recordsPerSecond));
    this.figure("bytes", bytes(flow.bytesPerSecond), exact(flow.bytesPerSecond));
    this.showCanary(flow.canary);
    this.spark.add(flow.lagRecords);
    const partitions = flow.topics.reduce((sum, topic) => sum + topic.partitions.length, 0);
    const topics = flow.topics.length;
    setText(this.button, `${topics} topic${topics === 1 ? "" : "s"}, ${partitions} partition${partitions === 1 ? "" : "s"}`);
    if (this.open) this.showPartitions();
  }

  // One small record a second through the link's own lanes: what a record takes now.
  showCanary(canary) {
    const lost = canary?.lost > 0 ? `, ${count(canary.lost)} lost` : "";
    const stale = canary?.ageSeconds > 30;
    const title = canary
      ? `A small record went through the link in ${seconds(canary.roundTripSeconds)}, ${seconds(canary.ageSeconds)} ago${lost}`
      : "No small record has come through yet";
    this.figure("canary", canary ? (stale ? `silent ${seconds(canary.ageSeconds)}` : seconds(canary.roundTripSeconds)) : "–", title);
  }

  figure(key, text, title = text) {
    setText(this.figures[key], text);
    this.figures[key].title = title;
  }

  toggle() {
    this.open = !this.open;
    this.button.setAttribute("aria-expanded", String(this.open));
    this.detail.hidden = !this.open;
    if (this.open) this.showPartitions();
    else this.detail.replaceChildren();
  }

  showPartitions() {
    const scrolled = this.detail.firstElementChild?.scrollTop ?? 0;
    const all = this.flow.topics.flatMap((topic) => topic.partitions.map((partition) => ({ topic, partition })));
    const head = element("tr", {}, ...["Topic", "Partition", "State", "Position", "Source end", "Behind", "Lag"].map(
      (title, index) => element("th", { scope: "col", class: index > 2 || index === 1 ? "number" : null, text: title }),
    ));
    const rows = all.slice(0, MOST_ROWS).map(({ topic, partition }) => element(
      "tr", {},
      element("th", { scope: "row" }, topic.source,
        topic.target && topic.target !== topic.source ? element("span", { class: "renamed", text: `→ ${topic.target}` }) : null),
      number(partition.partition),
      element("td", {}, pill(partition.state)),
      number(exact(partition.position)), number(exact(partition.sourceEnd)),
      number(exact(partition.lagRecords)), number(seconds(partition.lagSeconds)),
    ));
    const table = element(
      "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Partitions of ${this.flow.flow}` },
      element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)),
    );
    const left = all.length - rows.length;
    const rest = left > 0 ? element("p", { class: "reason", text: `and ${exact(left)} more: see replicator status --detail` }) : null;
    const hadFocus = document.activeElement === this.detail.firstElementChild && this.detail.firstElementChild;
    this.detail.replaceChildren(...[table, rest].filter(Boolean));
    table.scrollTop = scrolled;
    if (hadFocus) table.focus({ preventScroll: true });
  }
}

function number(value) {
  return element("td", { class: "number", text: String(value) });
}
