// Where clusters stand and which way arrows go. Pure: numbers in, numbers out.

export const WIDE = { node: { width: 156, height: 60 }, label: { width: 124, height: 38 }, letters: 16 };
export const NARROW = { node: { width: 104, height: 52 }, label: { width: 92, height: 36 }, letters: 11 };

// With more arrows than this, words on each would hide the arrows: they go below the map then.
const MOST_LABELS = { wide: 8, star: 7, twoWayStar: 4, narrow: 4 };

export function plan(pairs, hub, narrow) {
  const names = [...new Set([...pairs.values()].flatMap((pair) => [pair.source, pair.target]))];
  const star = hub && [...pairs.values()].every((pair) => pair.source === hub || pair.target === hub);
  const twoWay = [...pairs.values()].some((pair) => pairs.has(`${pair.target}->${pair.source}`));
  const most = narrow ? MOST_LABELS.narrow : star ? (twoWay ? MOST_LABELS.twoWayStar : MOST_LABELS.star) : MOST_LABELS.wide;
  const dense = pairs.size > most || (narrow && names.length > 3);
  const sizes = narrow ? NARROW : WIDE;
  return { dense, sizes, places: placesOf(names, hub, narrow, dense) };
}

function placesOf(names, hub, narrow, dense) {
  const outer = names.filter((name) => name !== hub);
  const places = new Map(hub ? [[hub, { x: 0, y: 0 }]] : []);
  if (hub && !narrow) return columns(places, outer);
  if (outer.length <= 2 && !hub) {
    const far = narrow ? { x: 0, y: 112 } : { x: 330, y: 0 };
    outer.forEach((name, at) => places.set(name, { x: far.x * (at ? 1 : -1), y: far.y * (at ? 1 : -1) }));
    return places;
  }
  if (outer.length === 3 && !hub && !narrow) {
    const corners = [[-360, -95], [360, -95], [0, 150]];
    outer.forEach((name, at) => places.set(name, { x: corners[at][0], y: corners[at][1] }));
    return places;
  }
  const half = narrow ? { x: 118, y: 84 + outer.length * 24 } : { x: 400, y: dense ? 215 : 150 };
  const start = outer.length === 4 && !narrow ? -Math.PI * 0.75 : -Math.PI / 2;
  outer.forEach((name, at) => {
    const angle = start + (2 * Math.PI * at) / outer.length;
    places.set(name, { x: half.x * Math.cos(angle), y: half.y * Math.sin(angle) });
  });
  return places;
}

// A hub in the middle, its spokes in a column on either side: lines are long and level there.
function columns(places, spokes) {
  const left = spokes.filter((_, at) => at % 2 === 0);
  const right = spokes.filter((_, at) => at % 2 === 1);
  for (const [column, side] of [[left, -1], [right, 1]]) {
    column.forEach((name, at) => {
      const y = (at - (column.length - 1) / 2) * 118;
      places.set(name, { x: side * (430 - Math.min(60, Math.abs(y) / 6)), y });
    });
  }
  return places;
}

// Two ways between the same clusters bend apart. Beside a hub both bend away from it, one further.
export function route(from, to, { both, around, node, label, dense, clearance }) {
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const length = Math.hypot(dx, dy) || 1;
  let normal = { x: dy / length, y: -dx / length };
  const centre = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
  // Words stand at half the bend, so both ways bend by what keeps their words apart.
  const apart = (Math.abs(normal.x) * label.width + Math.abs(normal.y) * label.height) / 2 + 3;
  let bend = both ? (dense ? 16 : Math.max(40, apart / 0.65)) : 0;
  if (around) {
    const away = (centre.x - around.x) * normal.x + (centre.y - around.y) * normal.y;
    const outwards = away < 0 || (away === 0 && normal.y > 0);
    if (outwards) normal = { x: -normal.x, y: -normal.y };
    bend = Math.max(0, clearance - Math.abs(away)) + (both && outwards ? (dense ? 34 : 64) : 0);
  }
  const middle = { x: centre.x + normal.x * bend * 1.3, y: centre.y + normal.y * bend * 1.3 };
  const start = edge(from, middle, node);
  const end = edge(to, middle, node);
  const back = Math.hypot(end.x - middle.x, end.y - middle.y) || 1;
  const along = { x: (end.x - middle.x) / back, y: (end.y - middle.y) / back };
  const tail = { x: end.x - along.x * 11, y: end.y - along.y * 11 };
  const wing = { x: -along.y * 6, y: along.x * 6 };
  return {
    path: `M${round(start)} Q${round(middle)} ${round(tail)}`,
    head: `M${round(end)} L${round({ x: tail.x + wing.x, y: tail.y + wing.y })} L${round({ x: tail.x - wing.x, y: tail.y - wing.y })} Z`,
    label: {
      x: 0.25 * start.x + 0.5 * middle.x + 0.25 * end.x,
      y: 0.25 * start.y + 0.5 * middle.y + 0.25 * end.y,
    },
  };
}

// The view box that just holds every box.
export function frame(boxes) {
  const left = Math.min(...boxes.map((box) => box.x - box.width / 2)) - 8;
  const top = Math.min(...boxes.map((box) => box.y - box.height / 2)) - 8;
  const right = Math.max(...boxes.map((box) => box.x + box.width / 2)) + 8;
  const bottom = Math.max(...boxes.map((box) => box.y + box.height / 2)) + 8;
  return [left, top, right - left, bottom - top].map((value) => Math.round(value)).join(" ");
}

function round({ x, y }) {
  return `${x.toFixed(1)} ${y.toFixed(1)}`;
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
