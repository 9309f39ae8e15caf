// Clusters as nodes, flows as arrows: colour says state, movement says that records move.

import { count, drawing, rate, seconds, worst } from "./format.js";

const WIDE = { node: { width: 132, height: 46 }, label: { width: 124, height: 36 }, letters: 15 };
const NARROW = { node: { width: 96, height: 44 }, label: { width: 92, height: 36 }, letters: 10 };

export class FlowMap {
  constructor(svg, text) {
    this.svg = svg;
    this.text = text;
    this.shape = "";
    this.arrows = new Map();
  }

  update(flows, links) {
    const pairs = byPair(flows);
    const hub = hubOf(pairs, links);
    const narrow = this.svg.clientWidth < 560;
    const shape = JSON.stringify([[...pairs.keys()], hub, narrow]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.build(pairs, hub, narrow);
    }
    for (const [id, pair] of pairs) this.show(this.arrows.get(id), pair);
    this.text.textContent = [...pairs.values()]
      .map((pair) => `${pair.source} to ${pair.target}: ${pair.state}, ${pair.lag} records behind.`)
      .join(" ");
  }

  build(pairs, hub, narrow) {
    const names = [...new Set([...pairs.values()].flatMap((pair) => [pair.source, pair.target]))];
    const places = layout(names, hub, narrow);
    const { node, label, letters } = narrow ? NARROW : WIDE;
    const taken = [...places.values()].map((at) => ({ ...at, ...node }));
    this.narrow = narrow;
    this.arrows.clear();
    const lines = drawing("g");
    const labels = drawing("g");
    const clusters = drawing("g");
    for (const [id, pair] of pairs) {
      const both = pairs.has(`${pair.target}->${pair.source}`);
      const way = route(places.get(pair.source), places.get(pair.target), {
        both,
        around: hub && pair.source !== hub && pair.target !== hub ? places.get(hub) : null,
        bend: pair.source < pair.target ? (narrow ? 150 : 100) : (narrow ? 66 : 10),
        node,
      });
      taken.push({ ...way.label, ...label });
      const arrow = {
        group: drawing("g", { class: "arrow" }),
        base: drawing("path", { class: "base", d: way.path }),
        moving: drawing("path", { class: "moving", d: way.path }),
        head: drawing("path", { class: "head", d: way.head }),
        label: drawing("g", { class: "label", transform: `translate(${way.label.x} ${way.label.y})` }),
        first: drawing("text", { y: -3 }),
        second: drawing("text", { y: 12, class: "quiet" }),
      };
      arrow.group.append(arrow.base, arrow.moving, arrow.head);
      arrow.label.append(drawing("rect", { x: -label.width / 2, y: -label.height / 2, ...label, rx: 9 }), arrow.first, arrow.second);
      lines.append(arrow.group);
      labels.append(arrow.label);
      this.arrows.set(id, arrow);
    }
    for (const [name, { x, y }] of places) {
      clusters.append(drawing(
        "g", { class: "cluster", transform: `translate(${x} ${y})` },
        drawing("rect", { x: -node.width / 2, y: -node.height / 2, ...node, rx: 12 }),
        drawing("text", { y: 5, text: name.length > letters ? `${name.slice(0, letters - 1)}…` : name }, drawing("title", { text: name })),
      ));
    }
    this.svg.setAttribute("viewBox", frame(taken));
    this.svg.replaceChildren(lines, clusters, labels);
  }

  show(arrow, pair) {
    arrow.group.dataset.state = pair.state;
    arrow.group.dataset.moving = String(pair.state !== "failed" && pair.rate > 0);
    arrow.label.dataset.state = pair.state;
    arrow.first.textContent = pair.rate > 0 ? `${rate(pair.rate)} rec/s` : pair.state;
    const behind = `${count(pair.lag)} behind`;
    const age = this.narrow ? "" : ` · ${seconds(pair.lagSeconds)}`;
    arrow.second.textContent = pair.lag > 0 ? behind + age : "caught up";
    if (pair.lag == null) arrow.second.textContent = "lag unknown";
  }
}

function byPair(flows) {
  const pairs = new Map();
  for (const flow of flows) {
    const pair = pairs.get(flow.flow) ?? {
      source: flow.source, target: flow.target, states: [], rate: 0, lag: null, lagSeconds: null,
    };
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

function layout(names, hub, narrow) {
  const outer = names.filter((name) => name !== hub);
  const half = narrow ? { x: 132, y: outer.length === 2 && !hub ? 105 : 190 } : { x: 370, y: 130 + outer.length * 8 };
  const places = new Map(hub ? [[hub, { x: 0, y: 0 }]] : []);
  // A phone is tall: two clusters stand above each other there, and beside each other elsewhere.
  const start = outer.length === 2 ? (narrow ? -Math.PI / 2 : Math.PI) : -Math.PI / 2;
  outer.forEach((name, index) => {
    const angle = start + (2 * Math.PI * index) / outer.length;
    places.set(name, { x: half.x * Math.cos(angle), y: half.y * Math.sin(angle) });
  });
  if (outer.length === 4) {
    const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]];
    outer.forEach((name, index) => places.set(name, { x: half.x * corners[index][0], y: half.y * corners[index][1] }));
  }
  return places;
}

// The view box that just holds every node and label.
function frame(boxes) {
  const left = Math.min(...boxes.map((box) => box.x - box.width / 2)) - 8;
  const top = Math.min(...boxes.map((box) => box.y - box.height / 2)) - 8;
  const right = Math.max(...boxes.map((box) => box.x + box.width / 2)) + 8;
  const bottom = Math.max(...boxes.map((box) => box.y + box.height / 2)) + 8;
  return `${left} ${top} ${right - left} ${bottom - top}`;
}

// Two ways between the same clusters bend apart. Beside a hub both bend away from it, one further.
function route(from, to, { both, around, bend: aroundBend, node }) {
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const length = Math.hypot(dx, dy) || 1;
  let normal = { x: dy / length, y: -dx / length };
  const centre = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
  let bend = both ? Math.min(54, 20 + length * 0.09) * 1.5 : 0;
  if (around) {
    const away = (centre.x - around.x) * normal.x + (centre.y - around.y) * normal.y;
    if (away < 0) normal = { x: -normal.x, y: -normal.y };
    bend = aroundBend;
  }
  const middle = { x: centre.x + normal.x * bend, y: centre.y + normal.y * bend };
  const start = edge(from, middle, node);
  const end = edge(to, middle, node);
  const back = Math.hypot(end.x - middle.x, end.y - middle.y) || 1;
  const along = { x: (end.x - middle.x) / back, y: (end.y - middle.y) / back };
  const tail = { x: end.x - along.x * 11, y: end.y - along.y * 11 };
  const wing = { x: -along.y * 6, y: along.x * 6 };
  return {
    path: `M${start.x} ${start.y} Q${middle.x} ${middle.y} ${tail.x} ${tail.y}`,
    head: `M${end.x} ${end.y} L${tail.x + wing.x} ${tail.y + wing.y} L${tail.x - wing.x} ${tail.y - wing.y} Z`,
    label: {
      x: 0.25 * start.x + 0.5 * middle.x + 0.25 * end.x,
      y: 0.25 * start.y + 0.5 * middle.y + 0.25 * end.y,
    },
  };
}

// Where the line from a node's centre towards a point leaves the node's box.
function edge(centre, towards, node) {
  const dx = towards.x - centre.x;
  const dy = towards.y - centre.y;
  const scale = Math.min(
    (node.width / 2 + 5) / (Math.abs(dx) || 1e-9),
    (node.height / 2 + 5) / (Math.abs(dy) || 1e-9),
  );
  return { x: centre.x + dx * Math.min(1, scale), y: centre.y + dy * Math.min(1, scale) };
}
