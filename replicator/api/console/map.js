// Clusters as nodes with their roles, flows as arrows: colour and a sign say state, movement says
// that records move. Every arrow leads to its flow below, by mouse, touch or keyboard.

import { anchor, count, drawing, mark, rate, seconds, setText, worst } from "./format.js";
import { frame, plan, route } from "./map_layout.js";
import { rolesOf } from "./roles.js";

export class FlowMap {
  constructor(svg, detail) {
    this.svg = svg;
    this.detail = detail;
    this.shape = "";
    this.arrows = new Map();
    this.nodes = new Map();
    this.told = null;
  }

  update(flows, links) {
    const pairs = byPair(flows);
    const hub = hubOf(pairs, links);
    const narrow = this.svg.parentElement.clientWidth < 620;
    const shape = JSON.stringify([[...pairs.keys()], hub, narrow]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.build(pairs, hub, narrow);
    }
    this.pairs = pairs;
    for (const [id, pair] of pairs) this.show(this.arrows.get(id), pair);
    const roles = rolesOf(links, hub);
    for (const [name, node] of this.nodes) {
      const role = roles.get(name);
      setText(node.role, role?.short ?? "");
      node.group.dataset.role = role?.kind ?? "";
      setText(node.title, role ? `${name}: ${role.long}` : name);
      node.name.setAttribute("y", role ? -4 : 6);
    }
    this.tell();
  }

  build(pairs, hub, narrow) {
    const { dense, sizes, places } = plan(pairs, hub, narrow);
    const { node, label, letters } = sizes;
    const taken = [...places.values()].map((at) => ({ ...at, ...node }));
    this.dense = dense;
    this.narrow = narrow;
    this.arrows.clear();
    this.nodes.clear();
    const lines = drawing("g");
    for (const [id, pair] of pairs) {
      const way = route(places.get(pair.source), places.get(pair.target), {
        both: pairs.has(`${pair.target}->${pair.source}`),
        around: hub && pair.source !== hub && pair.target !== hub ? places.get(hub) : null,
        clearance: narrow ? 110 : 190,
        node,
        label,
        dense,
      });
      if (!dense) taken.push({ ...way.label, ...label });
      const arrow = this.arrow(id, way, label);
      this.arrows.set(id, arrow);
      lines.append(arrow.link);
    }
    const clusters = drawing("g");
    for (const [name, { x, y }] of places) {
      const parts = {
        title: drawing("title"),
        name: drawing("text", { class: "name", text: name.length > letters ? `${name.slice(0, letters - 1)}…` : name }),
        role: drawing("text", { class: "role", y: 17 }),
      };
      parts.group = drawing(
        "g", { class: "cluster", transform: `translate(${x} ${y})` }, parts.title,
        drawing("rect", { x: -node.width / 2, y: -node.height / 2, ...node, rx: 14 }), parts.name, parts.role,
      );
      this.nodes.set(name, parts);
      clusters.append(parts.group);
    }
    this.svg.dataset.dense = String(dense);
    this.svg.setAttribute("viewBox", frame(taken));
    this.svg.replaceChildren(lines, clusters);
  }

  arrow(id, way, label) {
    const parts = {
      base: drawing("path", { class: "base", d: way.path }),
      moving: drawing("path", { class: "moving", d: way.path }),
      first: drawing("text", { y: -3 }),
      second: drawing("text", { y: 13, class: "quiet" }),
      sign: drawing("text", { y: 5, class: "sign" }),
      words: drawing("g", { class: "label", transform: `translate(${way.label.x.toFixed(1)} ${way.label.y.toFixed(1)})` }),
    };
    if (this.dense) {
      parts.words.append(drawing("circle", { r: 12 }), parts.sign);
    } else {
      parts.words.append(drawing("rect", { x: -label.width / 2, y: -label.height / 2, ...label, rx: 9 }), parts.first, parts.second);
    }
    const tell = (told) => () => {
      this.told = told;
      this.tell();
    };
    parts.link = drawing(
      "a", { class: "arrow", onmouseenter: tell(id), onfocus: tell(id), onmouseleave: tell(null), onblur: tell(null) },
      drawing("path", { class: "reach", d: way.path }), parts.base,
      parts.moving, drawing("path", { class: "head", d: way.head }), parts.words,
    );
    return parts;
  }

  show(arrow, pair) {
    const troubled = pair.state !== "replicating";
    const link = arrow.link;
    link.dataset.state = pair.state;
    link.dataset.moving = String(pair.rate > 0 && ["replicating", "seeding", "draining"].includes(pair.state));
    link.setAttribute("href", `#${anchor(pair.flows[0])}`);
    link.setAttribute("aria-label", sentence(pair));
    // In a crowd only what needs a look is a stop for the keyboard; the rows below are all of them.
    if (this.dense && !troubled) link.setAttribute("tabindex", "-1");
    else link.removeAttribute("tabindex");
    if (this.dense) {
      arrow.base.setAttribute("stroke-width", (1 + Math.log10(1 + pair.rate) * 0.6).toFixed(2));
      arrow.words.setAttribute("visibility", troubled ? "visible" : "hidden");
      setText(arrow.sign, mark(pair.state));
      return;
    }
    setText(arrow.first, troubled ? `${mark(pair.state)} ${pair.state}` : `${rate(pair.rate)} rec/s`);
    const behind = `${count(pair.lag)} behind`;
    const age = this.narrow || pair.lagSeconds == null ? "" : ` · ${seconds(pair.lagSeconds)}`;
    setText(arrow.second, pair.lag == null ? "lag unknown" : pair.lag > 0 ? behind + age : "caught up");
  }

  // One line under the map: the arrow somebody points at, else the whole.
  tell() {
    const pair = this.told && this.pairs.get(this.told);
    if (pair) {
      setText(this.detail, sentence(pair));
      return;
    }
    const all = [...this.pairs.values()];
    const wrong = all.filter((one) => one.state !== "replicating");
    const names = wrong.slice(0, 3).map((one) => `${one.source} → ${one.target} is ${one.state}`);
    const rest = wrong.length > 3 ? ` and ${wrong.length - 3} more` : "";
    const fine = all.length === 1 ? sentence(all[0]) : `All ${all.length} ways between ${this.nodes.size} clusters replicate.`;
    setText(this.detail, wrong.length ? `${names.join(", ")}${rest}.` : fine);
  }
}

function sentence(pair) {
  const lag = pair.lag == null ? "lag unknown" : pair.lag > 0 ? `${count(pair.lag)} records behind` : "caught up";
  const links = pair.links.length > 1 ? ` (${pair.links.join(", ")})` : "";
  return `${pair.source} → ${pair.target}${links}: ${pair.state}, ${rate(pair.rate)} records/s, ${lag}`;
}

function byPair(flows) {
  const pairs = new Map();
  for (const flow of flows) {
    const pair = pairs.get(flow.flow) ?? {
      source: flow.source, target: flow.target, flows: [], links: [], states: [], rate: 0, lag: null, lagSeconds: null,
    };
    pair.flows.push(flow);
    pair.links.push(flow.link);
    pair.states.push(flow.state);
    pair.state = worst(pair.states);
    pair.rate += flow.recordsPerSecond ?? 0;
    if (flow.lagRecords != null) pair.lag = (pair.lag ?? 0) + flow.lagRecords;
    if (flow.lagSeconds != null) pair.lagSeconds = Math.max(pair.lagSeconds ?? 0, flow.lagSeconds);
    pairs.set(flow.flow, pair);
  }
  return pairs;
}

function hubOf(pairs, links) {
  const degrees = new Map();
  for (const { source, target } of pairs.values()) {
    for (const [one, other] of [[source, target], [target, source]]) {
      degrees.set(one, (degrees.get(one) ?? new Set()).add(other));
    }
  }
  if (degrees.size < 3) return null;
  const [name, others] = [...degrees].sort((a, b) => b[1].size - a[1].size)[0];
  const hasHub = links.some((link) => link.shape === "hub-and-spoke");
  return hasHub && others.size === degrees.size - 1 ? name : null;
}
