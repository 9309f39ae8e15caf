// Figures and elements for people. Text is only ever set as text: nothing a cluster says is markup.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const unknown = "–";

export function exact(value) {
  return value == null ? unknown : whole.format(value);
}

export function count(value) {
  if (value == null) return unknown;
  return value < 10000 ? whole.format(value) : compact.format(value).replace("K", "k");
}

export function rate(value) {
  if (value == null) return unknown;
  if (value > 0 && value < 10) return value.toFixed(1);
  return count(Math.round(value));
}

export function bytes(value) {
  if (value == null) return unknown;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${size < 10 && unit > 0 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

export function seconds(value) {
  if (value == null) return unknown;
  if (value === 0) return "0 s";
  if (value < 1) return `${Math.max(1, Math.round(value * 1000))} ms`;
  if (value < 60) return `${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
  if (value < 3600) return `${Math.floor(value / 60)} m ${Math.round(value % 60)} s`;
  if (value < 86400) return `${Math.floor(value / 3600)} h ${Math.round((value % 3600) / 60)} m`;
  return `${Math.floor(value / 86400)} d ${Math.round((value % 86400) / 3600)} h`;
}

export function element(name, properties = {}, ...children) {
  return fill(document.createElement(name), properties, children);
}

export function drawing(name, properties = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), properties, children);
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value == null || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

// A mark beside the colour, so that a state is never told by colour alone.
const marks = {
  replicating: "●", seeding: "◐", waiting: "○", paused: "❚❚", draining: "◒", stopped: "■", failed: "▲",
  synced: "●", pending: "◐", "no positions": "○", "at work on the target": "◆", refused: "▲", deleted: "×",
  done: "✓", pass: "✓", passed: "✓", fail: "✗", "rolled back": "↩", open: "◐",
};
const order = ["failed", "stopped", "paused", "draining", "seeding", "waiting", "replicating"];

export function mark(state) {
  return marks[state] ?? "?";
}

// The row of a flow, as a place to go to.
export function anchor(flow) {
  return `flow-${flow.link}-${flow.source}-${flow.target}`;
}

// A moment as people speak of it; exact in the tooltip. Takes milliseconds or ISO 8601.
export function ago(moment) {
  const at = new Date(moment);
  if (Number.isNaN(at.getTime())) return document.createTextNode(unknown);
  const passed = (Date.now() - at.getTime()) / 1000;
  const steps = [[60, 1, "s"], [3600, 60, "min"], [172800, 3600, "h"], [Infinity, 86400, "days"]];
  const [, size, unit] = steps.find(([limit]) => passed < limit);
  const text = passed < 5 ? "just now" : `${Math.floor(passed / size)} ${unit} ago`;
  return element("time", { datetime: at.toISOString(), title: at.toLocaleString(), text });
}

export function pill(state) {
  return showState(element("span", { class: "pill" }), state);
}

export function showState(node, state) {
  if (node.dataset.state !== state) {
    node.dataset.state = state;
    node.replaceChildren(
      element("span", { "aria-hidden": "true", class: "mark", text: mark(state) }),
      document.createTextNode(state),
    );
  }
  return node;
}

export function worst(states) {
  return order.find((state) => states.includes(state)) ?? states[0] ?? "waiting";
}
