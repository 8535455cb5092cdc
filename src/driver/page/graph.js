/* The graph of a page: boxes for kernels, for nodes of the model, or for both beside each other; edges with types; zoom,
   pan, search; colours by time, memory or kind. */
"use strict";

const SVG = "http://www.w3.org/2000/svg";

/* An element: make("p", {class: "soft"}, "text", child, ...); a function among the attributes is a listener. */
function make(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function draw(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {}))
    if (typeof value === "function")
      element.addEventListener(name, value);
    else if (value !== undefined && value !== null && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  element.append(...children.flat().filter(c => c !== null && c !== undefined && c !== false));
  return element;
}

/* The middle of a long name goes: paths differ at their ends. */
function shortened(text, most) {
  if (text.length <= most)
    return text;
  const tail = Math.ceil((most - 1) * 0.6);
  return text.slice(0, most - 1 - tail) + "…" + text.slice(text.length - tail);
}

const measure = document.createElement("canvas").getContext("2d");
function widthOf(text, font) {
  measure.font = font;
  return measure.measureText(text).width;
}
const FONT = '12px system-ui, "Segoe UI", Roboto, sans-serif', BOLD = "600 " + FONT;
const MONO = '11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace';

/* --- what the graph is made of --- */

const FAR = 24, MANY = 4; // a value with so many readers is named at those that are so far from its maker

/* Boxes and edges of the kernels, or of the model's nodes. An edge: {from, to, type, name}. */
class GraphParts {
  constructor() {
    this.boxes = [];
    this.edges = [];
  }

  add(box) {
    this.boxes.push(box);
    return this.boxes.length - 1;
  }

  /* Of kernels: a value may lie in another one, and then its maker is whoever wrote there before. */
  static ofKernels(page, withNodes) {
    const parts = new GraphParts(), { kernels, values } = page, makers = new Map();
    const root = v => values[v].in === undefined ? v : values[v].in;
    const write = (v, box) => {
      for (const key of new Set([v, "in" + root(v)]))
        makers.set(key, [...(makers.get(key) || []), box]);
    };
    const makersOf = v => makers.get(v) || makers.get("in" + root(v)) || [];
    const readers = countReaders(kernels);
    const read = (v, to) => {
      for (const from of new Set(makersOf(v)))
        parts.join(from, to, values[v].type, values[v].name, readers.get(v));
    };
    for (const [i, k] of kernels.entries()) {
      for (const v of k.inputs)
        if (values[root(v)].storage === "input" && makersOf(v).length === 0) {
          const at = parts.add({ kind: "io", title: "input", line: values[root(v)].name, note: values[root(v)].type });
          makers.set("in" + root(v), [at]);
        }
      const at = parts.add(kernelBox(page, k, i, withNodes));
      k.inputs.forEach(v => read(v, at));
      k.outputs.forEach(v => write(v, at));
    }
    for (const o of page.outputs) {
      const at = parts.add({ kind: "io", title: "output", line: o.name, note: values[o.value].type });
      read(o.value, at);
    }
    return parts.withTags();
  }

  static ofModel(model) {
    const parts = new GraphParts(), makers = new Map(), readers = countReaders(model.nodes), inputs = new Set(model.inputs);
    const read = (v, to) => {
      if (makers.has(v))
        parts.join(makers.get(v), to, model.values[v].type === "?" ? "" : model.values[v].type, model.values[v].name, readers.get(v));
    };
    const needInput = v => {
      if (inputs.has(v) && !makers.has(v))
        makers.set(v, parts.add({ kind: "io", title: "input", line: model.values[v].name, note: model.values[v].type }));
    };
    for (const [i, n] of model.nodes.entries()) {
      n.inputs.forEach(needInput);
      const at = parts.add({ kind: n.unread ? "model unread" : "model", node: i, title: n.op, line: n.name, note: n.unread || weightsOf(n) });
      n.inputs.forEach(v => read(v, at));
      n.outputs.forEach(v => makers.set(v, at));
    }
    for (const v of model.outputs) {
      needInput(v);
      read(v, parts.add({ kind: "io", title: "output", line: model.values[v].name, note: model.values[v].type }));
    }
    return parts.withTags();
  }

  join(from, to, type, name, readers) {
    if (from < to && !this.edges.some(e => e.to === to && e.from === from && e.name === name))
      this.edges.push({ from, to, type, name, readers });
  }

  /* A value that many read far away, such as a mask of a transformer, would be an edge beside everything: each far
     reader has a tag with its name instead. */
  withTags() {
    const order = [], tags = new Map();
    for (const e of this.edges)
      if (e.readers >= MANY && e.to - e.from > FAR)
        tags.set(e.to, [...(tags.get(e.to) || []), e]);
    if (tags.size === 0)
      return this;
    const out = new GraphParts();
    this.boxes.forEach((box, i) => {
      for (const e of tags.get(i) || [])
        e.tag = out.add({ kind: "tag", title: "from " + shortened(e.name, 28), target: e.from });
      order[i] = out.add(box);
    });
    for (const box of out.boxes)
      if (box.kind === "tag")
        box.target = order[box.target];
    for (const e of this.edges)
      out.edges.push({ ...e, from: e.tag === undefined ? order[e.from] : e.tag, to: order[e.to] });
    return out;
  }
}

function countReaders(users) {
  const n = new Map();
  for (const u of users)
    for (const v of new Set(u.inputs))
      n.set(v, (n.get(v) || 0) + 1);
  return n;
}

function weightsOf(node) {
  return node.weights.length ? node.weights.map(w => w.type).slice(0, 2).join(", ") + (node.weights.length > 2 ? ", …" : "") : "";
}

function shortKind(kind) {
  return kind.split("+").map(k => k.replace(/^nn\./, "")).join(" + ");
}

/* What a kernel is called: the names of its nodes, each once. Some exporters join all names that a node ever had by
   semicolons: the first one will do. */
function namesOf(page, k) {
  const nodes = page.model ? k.nodes.map(n => page.model.nodes[n]).map(n => n.name || n.op) : [];
  const names = (nodes.length ? nodes : (k.source || k.kernel).split(", ")).map(n => n.length > 40 ? n.split(";")[0] : n);
  return [...new Set(names)].join(", ");
}

function kernelBox(page, k, i, withNodes) {
  const box = { kind: "kernel", kernel: i, title: shortKind(k.kind), line: namesOf(page, k),
                note: page.timeText(i) + (k.on ? " on " + k.on : "") };
  if (withNodes && page.model)
    box.side = k.nodes.map(n => page.model.nodes[n]).map(n => n.op + (n.name ? "  " + n.name : ""));
  return box;
}

/* --- sizes and drawing --- */

const SIDE_LINES = 7;

function sizeBox(box) {
  const lines = [[shortened(box.title, 38), BOLD], [shortened(box.line || "", 42), FONT], [shortened(box.note || "", 42), FONT]];
  box.lines = lines.filter(([text]) => text);
  box.main = Math.max(...box.lines.map(([text, font]) => widthOf(text, font)), 40) + 20;
  box.w = box.main;
  box.h = 12 + 16 * box.lines.length;
  if (box.kind === "tag")
    box.h = 22;
  if (box.side && box.side.length) {
    const shown = box.side.slice(0, SIDE_LINES).map(s => shortened(s, 40));
    if (box.side.length > SIDE_LINES)
      shown.push("and " + (box.side.length - SIDE_LINES) + " more");
    box.shown = shown;
    box.w += Math.max(...shown.map(s => widthOf(s, FONT))) + 24;
    box.h = Math.max(box.h, 12 + 16 * shown.length);
  }
}

function sizeEdge(e) {
  e.text = shortened(e.type, 34);
  e.w = widthOf(e.text, MONO) + 4;
  e.h = 14;
}

/* With the tangents upright a curve stays between the points that the layout chose, which lie between the boxes. */
function pathOf(edge) {
  const [first, ...rest] = edge.points;
  let d = `M${first.x.toFixed(1)} ${first.y.toFixed(1)}`, at = first;
  for (const p of rest) {
    const middle = ((at.y + p.y) / 2).toFixed(1);
    d += edge.straight || Math.abs(at.x - p.x) < 0.5
      ? `L${p.x.toFixed(1)} ${p.y.toFixed(1)}`
      : `C${at.x.toFixed(1)} ${middle} ${p.x.toFixed(1)} ${middle} ${p.x.toFixed(1)} ${p.y.toFixed(1)}`;
    at = p;
  }
  return d;
}

class GraphView {
  /* choose(box): somebody picked a box, or none. */
  constructor(page, choose) {
    this.page = page;
    this.choose = choose;
    this.world = draw("g");
    this.svg = draw("svg", { role: "application", tabindex: 0, "aria-label":
      "Graph. Arrows move it, + and - zoom, n and p go from box to box, Enter opens one, 0 shows all." },
      draw("defs", {}, draw("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 10, markerHeight: 10,
        markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" }, draw("path", { d: "M0 0L8 4L0 8z", fill: "var(--edge)" }))), this.world);
    this.canvas = make("div", { class: "canvas" }, this.svg, make("div", { class: "zoom" },
      make("button", { type: "button", title: "Zoom in", click: () => this.zoom(1.3) }, "+"),
      make("button", { type: "button", title: "Zoom out", click: () => this.zoom(1 / 1.3) }, "−"),
      make("button", { type: "button", title: "Show the whole graph", click: () => this.fit() }, "All")));
    this.at = { x: 0, y: 0, scale: 1 };
    this.listen();
  }

  show(mode) {
    this.mode = mode;
    const parts = mode === "model" ? GraphParts.ofModel(this.page.model) : GraphParts.ofKernels(this.page, mode === "both");
    this.boxes = parts.boxes;
    this.edges = parts.edges;
    this.boxes.forEach(sizeBox);
    this.edges.forEach(sizeEdge);
    this.place = Layout.layout(this.boxes, this.edges);
    this.world.replaceChildren();
    this.edges.forEach((e, i) => this.drawEdge(e, this.place.edges[i]));
    this.boxes.forEach((b, i) => this.drawBox(b, this.place.nodes[i], i));
    this.edges.forEach((e, i) => this.drawLabel(e, this.place.edges[i]));
    this.colour(this.by || "time");
    this.chosen = null;
    this.begin();
  }

  drawEdge(e, place) {
    e.element = draw("path", { class: place.passes ? "edge long" : "edge", d: pathOf(place),
                               "marker-end": "url(#arrow)" }, draw("title", {}, e.type ? e.name + ": " + e.type : e.name));
    this.world.append(e.element);
  }

  drawLabel(e, place) {
    if (place.x !== undefined && e.to !== e.from)
      this.world.append(draw("text", { class: "shape", x: (place.x - e.w / 2 + 2).toFixed(1), y: (place.y + 4).toFixed(1) }, e.text));
  }

  drawBox(b, p, i) {
    const x = p.x - b.w / 2, y = p.y - b.h / 2;
    const g = draw("g", { class: "node " + b.kind, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
                          click: () => this.pick(i) });
    g.append(draw("title", {}, [b.title, b.line, b.note].filter(Boolean).join("\n")));
    if (b.shown)
      g.append(draw("rect", { class: "side", x: b.main - 8, y: 0.5, width: b.w - b.main + 8, height: b.h - 1, rx: 6 }));
    g.append(draw("rect", { class: "box", width: b.main, height: b.h }));
    const top = (b.h - 16 * b.lines.length) / 2 + 12;
    b.lines.forEach(([text], k) => g.append(draw("text", { x: 10, y: top + 16 * k, class: k === 0 ? "title" : "" }, text)));
    (b.shown || []).forEach((text, k) => g.append(draw("text", { class: "side", x: b.main + 10, y: 18 + 16 * k }, text)));
    b.element = g;
    this.world.append(g);
  }

  /* --- colours --- */

  colour(by) {
    this.by = by;
    if (!this.page.compiled)
      return;
    const { scale, of } = this.page.scales[by];
    for (const b of this.boxes) {
      if (b.kind !== "kernel")
        continue;
      b.element.setAttribute("class", "node kernel" + (b === this.chosen ? " chosen" : ""));
      const box = b.element.querySelector("rect.box");
      box.removeAttribute("style");
      if (by === "kind") {
        b.element.classList.add("kind");
        box.setAttribute("style", `stroke:var(--k${of(b.kernel)});stroke-width:4`);
      } else {
        b.element.classList.add("fill" + stepOf(of(b.kernel), scale));
      }
    }
  }

  /* --- moving about --- */

  apply() {
    const { x, y, scale } = this.at;
    this.world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
  }

  size() {
    return { w: this.svg.clientWidth || 800, h: this.svg.clientHeight || 500 };
  }

  fit() {
    const { w, h } = this.size(), margin = 20;
    const scale = Math.min((w - 2 * margin) / Math.max(this.place.width, 1), (h - 2 * margin) / Math.max(this.place.height, 1), 1.2);
    this.at = { scale, x: (w - this.place.width * scale) / 2, y: Math.max(margin, (h - this.place.height * scale) / 2) };
    this.apply();
  }

  /* The top of the graph, at a size that can be read. */
  begin() {
    const { w } = this.size(), scale = Math.max(0.55, Math.min(1, (w - 40) / this.place.width));
    const first = this.place.nodes[0];
    this.at = { scale, x: this.place.width * scale < w ? (w - this.place.width * scale) / 2 : w / 2 - first.x * scale, y: 20 };
    this.apply();
  }

  zoom(by, px, py) {
    const { w, h } = this.size(), x = px === undefined ? w / 2 : px, y = py === undefined ? h / 2 : py;
    const scale = Math.max(0.02, Math.min(4, this.at.scale * by)), ratio = scale / this.at.scale;
    this.at = { scale, x: x - (x - this.at.x) * ratio, y: y - (y - this.at.y) * ratio };
    this.apply();
  }

  move(dx, dy) {
    this.at.x += dx;
    this.at.y += dy;
    this.apply();
  }

  reveal(i) {
    const { w, h } = this.size(), p = this.place.nodes[i];
    this.at.scale = Math.max(this.at.scale, 0.7);
    this.at.x = w / 2 - p.x * this.at.scale;
    this.at.y = h / 2 - p.y * this.at.scale;
    this.apply();
  }

  /* A tag leads to what it stands for. */
  pick(i, quietly) {
    const b = this.boxes[i];
    if (b.kind === "tag") {
      this.reveal(b.target);
      return this.pick(b.target, quietly);
    }
    if (this.chosen)
      this.chosen.element.classList.remove("chosen");
    this.chosen = b;
    b.element.classList.add("chosen");
    this.edges.forEach(e => e.element.classList.toggle("lit", e.from === i || e.to === i));
    if (!quietly)
      this.choose(b);
  }

  drop() {
    if (this.chosen)
      this.chosen.element.classList.remove("chosen");
    this.edges.forEach(e => e.element.classList.remove("lit"));
    this.chosen = null;
    this.choose(null);
  }

  step(by) {
    const n = this.boxes.length, now = this.chosen ? this.boxes.indexOf(this.chosen) : by > 0 ? -1 : n;
    for (let k = 1; k <= n; k++) {
      const i = (now + by * k + n * k) % n;
      if (this.boxes[i].kind !== "tag") {
        this.reveal(i);
        return this.pick(i, true);
      }
    }
  }

  pickKernel(kernel) {
    const i = this.boxes.findIndex(b => b.kernel === kernel);
    if (i >= 0) {
      this.reveal(i);
      this.pick(i);
    }
  }

  /* Returns how many boxes have the text in a name. */
  search(text) {
    const want = text.toLowerCase(), found = [];
    this.boxes.forEach((b, i) => {
      const hit = want !== "" && b.kind !== "tag" && [b.title, b.line, b.note, ...(b.side || [])].some(s => s && s.toLowerCase().includes(want));
      b.element.classList.toggle("found", hit);
      if (hit)
        found.push(i);
    });
    if (found.length)
      this.reveal(found[this.next = ((this.next || 0) + 1) % found.length]);
    return found.length;
  }

  listen() {
    const pointers = new Map();
    let gap = 0;
    this.svg.addEventListener("wheel", e => {
      if (!e.ctrlKey && !e.metaKey && document.activeElement !== this.svg)
        return; // the page scrolls on
      e.preventDefault();
      const box = this.svg.getBoundingClientRect();
      this.zoom(Math.exp(-e.deltaY / 400), e.clientX - box.left, e.clientY - box.top);
    }, { passive: false });
    this.svg.addEventListener("pointerdown", e => pointers.set(e.pointerId, { x: e.clientX, y: e.clientY }));
    this.svg.addEventListener("pointermove", e => {
      const p = pointers.get(e.pointerId);
      if (!p)
        return;
      if (pointers.size === 1)
        this.move(e.clientX - p.x, e.clientY - p.y);
      pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
      if (pointers.size === 2) {
        const [a, b] = [...pointers.values()], now = Math.hypot(a.x - b.x, a.y - b.y);
        if (gap > 0)
          this.zoom(now / gap);
        gap = now;
      }
    });
    for (const name of ["pointerup", "pointercancel", "pointerleave"])
      this.svg.addEventListener(name, e => { pointers.delete(e.pointerId); gap = 0; });
    this.svg.addEventListener("keydown", e => this.key(e));
  }

  key(e) {
    const keys = { ArrowLeft: () => this.move(60, 0), ArrowRight: () => this.move(-60, 0), ArrowUp: () => this.move(0, 60),
                   ArrowDown: () => this.move(0, -60), "+": () => this.zoom(1.3), "=": () => this.zoom(1.3),
                   "-": () => this.zoom(1 / 1.3), 0: () => this.fit(), n: () => this.step(1), p: () => this.step(-1),
                   Enter: () => this.chosen && this.choose(this.chosen), Escape: () => this.drop() };
    if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key])
      return;
    e.preventDefault();
    keys[e.key]();
  }
}

/* Step 0 to 5 of a scale whose largest number is `most`: steps are narrow where most numbers are, near 0. */
function stepOf(n, most) {
  return most > 0 ? Math.min(5, Math.floor(6 * Math.sqrt(Math.max(0, n) / most))) : 0;
}
