// Which cluster has which role, in words: on the map and at the head of each link.

import { ago, element } from "./format.js";

// By cluster: what its box says, what its tooltip says, and the kind that styles it.
export function rolesOf(links, hub) {
  const found = new Map();
  const add = (cluster, link, kind) => {
    if (!found.has(cluster)) found.set(cluster, []);
    found.get(cluster).push({ link, kind });
  };
  for (const link of links) {
    if (link.active == null) continue;
    for (const cluster of clustersOf(link)) add(cluster, link, cluster === link.active ? "active" : "passive");
  }
  const roles = new Map();
  for (const [cluster, held] of found) {
    const active = held.filter((one) => one.kind === "active");
    const kind = active.length ? "active" : "passive";
    const sign = kind === "active" ? "●" : "○";
    const mixed = active.length && active.length < held.length;
    const changing = held.map((one) => one.link.state).find((state) => state && state !== "mirroring");
    roles.set(cluster, {
      kind,
      short: `${sign} ${mixed ? `active ${active.length} of ${held.length}` : kind}${changing ? `, ${changing}` : ""}`,
      long: held.map((one) => `${one.kind} for ${one.link.link}`).join(", "),
    });
  }
  if (hub && !roles.has(hub)) roles.set(hub, { kind: "hub", short: "hub", long: "the hub" });
  return roles;
}

// The line at the head of a link.
export function roleLine(link, flows) {
  if (link == null) return [];
  const parts = [element("span", { text: link.shape })];
  if (link.active != null) {
    parts.push(element("span", { class: "role-chip", "data-role": "active" }, "● active ", element("b", { text: link.active })));
    const other = clustersOf(link, flows).filter((cluster) => cluster !== link.active);
    if (other.length) {
      parts.push(element("span", { class: "role-chip", "data-role": "passive" }, "○ passive ", element("b", { text: other.join(", ") })));
    }
  }
  if (link.state && link.state !== "mirroring") {
    parts.push(element("span", { class: "role-chip", "data-role": "changing", text: `◒ ${link.state}` }));
  }
  if (link.epoch) parts.push(element("span", { text: `epoch ${link.epoch}` }));
  if (link.since) parts.push(element("span", {}, "since ", ago(link.since)));
  if (link.by) parts.push(element("span", { text: `by ${link.by}` }));
  if (link.reason) parts.push(element("span", { text: link.reason }));
  return parts;
}

function clustersOf(link, flows = []) {
  const named = link.clusters ?? flows.flatMap((flow) => [flow.source, flow.target]);
  return [...new Set(named)];
}
