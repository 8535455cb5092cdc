/* Where the boxes and edges of a graph go. dagre does the work where the page has it (the build takes it from the
   system); without it, and for pieces that are too large for it, boxes stand in one column with the other edges in lanes
   beside them.

   dagre takes quadratic time, and networks are long chains of small blocks: the graph is cut at every node that no edge
   passes by, each piece is laid out alone, and the pieces hang one below the other by the nodes that they share. */
"use strict";

const Layout = (() => {
  const GAP = { node: 26, rank: 34 };
  const TOO_LARGE = 450; // nodes of one piece

  /* nodes: [{w, h}] in an order in which edges go forwards; edges: [{from, to, w, h}], w and h of the label.
     Returns {width, height, nodes: [{x, y}] (centres), edges: [{points, x, y}]} (x, y: the label's centre). */
  function layout(nodes, edges) {
    const out = { nodes: nodes.map(() => ({ x: 0, y: 0 })), edges: edges.map(() => ({ points: [] })) };
    if (nodes.length === 0)
      return { ...out, width: 0, height: 0 };
    let shared = null;
    for (const piece of pieces(nodes, edges)) {
      const place = arrange(piece, nodes, edges);
      hang(place, shared, out, piece);
      shared = piece.last;
    }
    return toOrigin(nodes, edges, out);
  }

  /* Runs of nodes between two that no edge passes by, both included. */
  function pieces(nodes, edges) {
    const passing = new Int32Array(nodes.length + 1), at = nodes.map(() => []);
    for (const [i, e] of edges.entries()) {
      at[e.from].push(i);
      passing[e.from + 1]++;
      passing[e.to]--;
    }
    const list = [];
    let first = 0, sum = 0;
    for (let i = 0; i < nodes.length; i++) {
      sum += passing[i];
      if ((sum > 0 || i === 0) && i < nodes.length - 1)
        continue;
      if (i > first || nodes.length === 1) {
        const inside = [];
        for (let n = first; n < Math.max(i, 1) && n < nodes.length; n++)
          inside.push(...at[n]);
        list.push({ first, last: i, edges: inside });
      }
      first = i;
    }
    return list;
  }

  function arrange(piece, nodes, edges) {
    if (typeof dagre === "undefined" || piece.last - piece.first > TOO_LARGE)
      return column(piece, nodes, edges);
    const g = new dagre.graphlib.Graph({ multigraph: true });
    g.setGraph({ nodesep: GAP.node, ranksep: GAP.rank, edgesep: 16, ranker: "network-simplex" });
    const sources = new Set(), sinks = new Set();
    for (let i = piece.first; i <= piece.last; i++) {
      g.setNode(String(i), { width: nodes[i].w, height: nodes[i].h });
      sources.add(i);
      sinks.add(i);
    }
    for (const i of piece.edges) {
      const e = edges[i];
      g.setEdge(String(e.from), String(e.to), { width: e.w, height: e.h, labelpos: "r", labeloffset: 6 }, "e" + i);
      sinks.delete(e.from);
      sources.delete(e.to);
    }
    keepEnds(g, piece, sources, sinks);
    dagre.layout(g);
    const place = { nodes: new Map(), edges: new Map() };
    for (let i = piece.first; i <= piece.last; i++)
      place.nodes.set(i, { x: g.node(String(i)).x, y: g.node(String(i)).y });
    const half = halfHeights(piece, nodes, place), end = i => ({ ...place.nodes.get(i), w: nodes[i].w, h: nodes[i].h });
    for (const i of piece.edges) {
      const e = g.edge({ v: String(edges[i].from), w: String(edges[i].to), name: "e" + i });
      place.edges.set(i, { ...downright(e.points, half, end(edges[i].from), end(edges[i].to)), x: e.x, y: e.y });
    }
    return place;
  }

  /* Half the height of each row of boxes, by the height at which it lies. */
  function halfHeights(piece, nodes, place) {
    const half = new Map();
    for (let i = piece.first; i <= piece.last; i++) {
      const y = Math.round(place.nodes.get(i).y);
      half.set(y, Math.max(half.get(y) || 0, nodes[i].h / 2));
    }
    return half;
  }

  /* Where an edge leaves, passes or reaches a row of boxes it goes straight down: what it has to go sideways it goes
     between rows. */
  function downright(points, half, from, to) {
    let passes = false;
    const row = y => half.get(Math.round(y)), within = (x, box) => Math.max(box.x - box.w / 2 + 8, Math.min(box.x + box.w / 2 - 8, x));
    const inner = points.slice(1, -1).flatMap(p => {
      const h = row(p.y);
      if (h === undefined)
        return [{ x: p.x, y: p.y }];
      passes = true;
      return [{ x: p.x, y: p.y - h }, { x: p.x, y: p.y + h }];
    });
    const a = within(points[0].x, from), b = within(points[points.length - 1].x, to);
    const all = [{ x: a, y: from.y + from.h / 2 }, { x: a, y: from.y + row(from.y) }, ...inner,
                              { x: b, y: to.y - row(to.y) }, { x: b, y: to.y - to.h / 2 }];
    return { passes, points: all.filter((p, i) => i === 0 || p.x !== all[i - 1].x || p.y !== all[i - 1].y) };
  }

  /* The first node of a piece stands above all others and the last one below them, by edges that nobody sees: so the
     pieces above and below do not meet. */
  function keepEnds(g, piece, sources, sinks) {
    const hidden = { width: 0, height: 0, weight: 0 };
    for (const i of sources)
      if (i !== piece.first)
        g.setEdge(String(piece.first), String(i), { ...hidden }, "top");
    for (const i of sinks)
      if (i !== piece.last && i !== piece.first)
        g.setEdge(String(i), String(piece.last), { ...hidden }, "bottom");
  }

  /* One column; edges that pass by a box go down a lane to its right. */
  function column(piece, nodes, edges) {
    const place = { nodes: new Map(), edges: new Map() };
    let y = 0, half = 0;
    for (let i = piece.first; i <= piece.last; i++) {
      place.nodes.set(i, { x: 0, y: y + nodes[i].h / 2 });
      y += nodes[i].h + GAP.rank + 14;
      half = Math.max(half, nodes[i].w / 2);
    }
    for (const i of piece.edges)
      if (edges[i].to === edges[i].from + 1)
        half = Math.max(half, 8 + edges[i].w); // lanes do not cross labels
    const ends = []; // of each lane: the node that its last edge ends at
    for (const i of [...piece.edges].sort((a, b) => edges[a].from - edges[b].from)) {
      const { from, to } = edges[i], a = place.nodes.get(from), b = place.nodes.get(to);
      if (to === from + 1) {
        const top = a.y + nodes[from].h / 2, bottom = b.y - nodes[to].h / 2;
        place.edges.set(i, { points: [{ x: 0, y: top }, { x: 0, y: bottom }],
                             x: 8 + edges[i].w / 2, y: (top + bottom) / 2 });
        continue;
      }
      let lane = ends.findIndex(end => end <= from);
      lane = lane < 0 ? ends.length : lane;
      ends[lane] = to;
      const x = half + 24 + 18 * lane, out = nodes[from].h / 4, into = -nodes[to].h / 4;
      place.edges.set(i, { straight: true, passes: true, x: undefined, y: undefined, points: [
        { x: nodes[from].w / 2, y: a.y + out }, { x, y: a.y + out }, { x, y: b.y + into },
        { x: nodes[to].w / 2, y: b.y + into }] });
    }
    return place;
  }

  /* Moves a piece so that its first node lies where the piece before left it. */
  function hang(place, shared, out, piece) {
    const at = place.nodes.get(piece.first), to = shared === null ? { x: 0, y: 0 } : out.nodes[shared];
    const dx = to.x - at.x, dy = to.y - at.y;
    for (const [i, p] of place.nodes)
      out.nodes[i] = { x: p.x + dx, y: p.y + dy };
    for (const [i, e] of place.edges)
      out.edges[i] = { ...e, points: e.points.map(p => ({ x: p.x + dx, y: p.y + dy })),
                       x: e.x === undefined ? undefined : e.x + dx, y: e.y === undefined ? undefined : e.y + dy };
  }

  function toOrigin(nodes, edges, out) {
    let left = Infinity, top = Infinity, right = -Infinity, bottom = -Infinity;
    const reach = (x0, y0, x1, y1) => {
      left = Math.min(left, x0); top = Math.min(top, y0);
      right = Math.max(right, x1); bottom = Math.max(bottom, y1);
    };
    out.nodes.forEach((p, i) => reach(p.x - nodes[i].w / 2, p.y - nodes[i].h / 2, p.x + nodes[i].w / 2, p.y + nodes[i].h / 2));
    out.edges.forEach((e, i) => {
      e.points.forEach(p => reach(p.x, p.y, p.x, p.y));
      if (e.x !== undefined)
        reach(e.x - edges[i].w / 2, e.y, e.x + edges[i].w / 2, e.y);
    });
    const move = p => { p.x -= left; p.y -= top; };
    out.nodes.forEach(move);
    for (const e of out.edges) {
      e.points.forEach(move);
      if (e.x !== undefined)
        move(e);
    }
    return { ...out, width: right - left, height: bottom - top };
  }

  return { layout };
})();
