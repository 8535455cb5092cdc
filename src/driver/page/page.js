/* The page: reads the documents that the compiler wrote and shows them. `window.lathePage.check()` looks for what must
   not be: boxes that overlap, edges behind boxes, anything wider than the window. */
"use strict";

const KINDS = ["conv2d", "matmul", "pool", "element-wise", "softmax and norms", "layout and copies", "regions", "other"];

function kindNumber(k) {
  const kind = k.kind;
  if (k.on || k.symbol)
    return 6;
  if (/conv/.test(kind))
    return 0;
  if (/matmul|dense|gemm|attention/.test(kind))
    return 1;
  if (/pool|mean/.test(kind))
    return 2;
  if (/softmax|norm|rsqrt|variance/.test(kind))
    return 4;
  if (/layout|transpose|concat|gather|take|slice|pad|reshape|copy|split/.test(kind))
    return 5;
  if (/^(qnn\.)?(nn\.)?(add|subtract|multiply|divide|relu|sigmoid|tanh|gelu|erf|clip|maximum|minimum|cast|quantize|dequantize|requantize|exp|sqrt|power|where|equal|less|not)/.test(kind))
    return 3;
  return 7;
}

/* Three digits, without an exponent. */
function numberText(n) {
  return n >= 1000 ? Math.round(n).toLocaleString("en") : String(Number(n.toPrecision(3)));
}

/* Milliseconds, in the unit that reads best. */
function durationText(ms) {
  const [size, unit] = ms >= 1 || ms === 0 ? [1, "ms"] : ms >= 1e-3 ? [1e-3, "µs"] : [1e-6, "ns"];
  return numberText(ms / size) + " " + unit;
}

/* A document with what the page asks of it. */
class Page {
  constructor(data) {
    Object.assign(this, data);
    this.compiled = Array.isArray(data.kernels);
    if (!this.compiled)
      return;
    this.how = this.timeline.how || (this.timeline.unit === "ms" ? "measured" : "estimated");
    this.known = this.how !== "estimated"; // somebody ran it
    this.kinds = this.kernels.map(kindNumber);
    this.times = this.kernels.map(k => this.how === "measured" ? k.measured.ms : this.how === "counted" ? k.measured.instructions : k.estimate.amount / Math.max(1, Math.min(k.parts, this.timeline.workers)));
    this.total = this.times.reduce((a, b) => a + b, 0);
    const live = this.kernels.map(k => this.memory.used[k.layer]);
    this.scales = { time: { of: i => this.times[i], scale: Math.max(...this.times, 0), text: n => this.amountText(n) },
                    memory: { of: i => live[i], scale: Math.max(...live, 0), text: bytesText },
                    kind: { of: i => this.kinds[i] } };
    this.clock = this.timeline.unit === "instructions" ? 0.08 : 3;
    this.open = () => {};
  }

  kindOf(i) { return this.kinds[i]; }
  share(i) { return this.total > 0 ? this.times[i] / this.total : 0; }

  /* A time, or what stands for it. */
  amountText(n) {
    const unit = this.timeline.unit;
    if (unit === "ms")
      return durationText(n);
    const [size, letter] = n >= 1e9 ? [1e9, "G"] : n >= 1e6 ? [1e6, "M"] : n >= 1e3 ? [1e3, "K"] : [1, ""];
    return (n / size).toPrecision(3).replace(/\.0+$/, "") + (letter ? " " + letter : "") + " " + unit;
  }

  timeText(i) {
    const percent = 100 * this.share(i);
    return (percent < 0.1 ? "under 0.1" : percent.toFixed(percent < 10 ? 1 : 0)) + ` % of the ${this.amount}` + (this.known ? "" : ", estimated");
  }

  get amount() { return this.how === "counted" ? "instructions" : "time"; }
  milliseconds(n) { return this.how === "measured" ? n : n / (this.clock * 1e6); }

  /* Whether the times of the other build are of the same kind. */
  comparable(other) { return this.timeline.unit === other.timeline.unit && this.known === other.known; }

  /* "conv1, relu1" of a kernel, else what it computes. */
  label(i) {
    const k = this.kernels[i];
    return shortened(namesOf(this, k), 60);
  }

  link(i, before) {
    return make("span", {}, before || "", make("a", { href: "#kernel-" + i, click: e => { e.preventDefault(); this.open(i); } }, this.label(i)));
  }

  get ram() { return this.verdict.workspace_bytes + this.verdict.table_bytes; }
}

function section(id, title, ...children) {
  return make("section", { id }, make("h2", {}, title), ...children);
}

/* --- verdict --- */

function figure(label, value, ...notes) {
  return make("div", { class: "figure" }, make("div", { class: "label" }, label), make("div", { class: "value" }, value),
    notes.filter(Boolean).map(n => typeof n === "string" ? make("div", { class: "note" }, n) : n));
}

function meter(used, limit) {
  return make("div", { class: "meter" + (used > limit ? " over" : "") }, make("div", { style: `width:${Math.min(100, 100 * used / limit)}%` }));
}

function ramFigure(page) {
  const v = page.verdict, limit = v.ram_limit;
  const fits = limit ? (page.ram <= limit ? "fits in " : "does not fit in ") + bytesText(limit) : null;
  return figure("RAM", bytesText(page.ram), limit ? meter(page.ram, limit) : null, fits,
    `workspace ${exact(v.workspace_bytes)}, tables ${v.table_bytes.toLocaleString("en")}`,
    (v.stack_bytes ? `stack at most ${v.stack_bytes.toLocaleString("en")}; ` : "") + `inputs and outputs of the caller ${v.caller_bytes.toLocaleString("en")}`);
}

function flashFigure(page) {
  return figure("Flash", bytesText(page.verdict.constant_bytes), `${exact(page.verdict.constant_bytes)} of constants`,
    "the code comes on top: its size is known when the C is built");
}

function timeFigure(page, redo) {
  const t = page.timeline, instructions = t.unit === "instructions", counted = page.how === "counted";
  if (page.how === "measured")
    return figure("Time of a run, measured", durationText(page.total), `in ${page.kernels.length} kernels, each by its busiest of ${t.workers} workers`);
  const clock = make("input", { type: "number", min: 0.001, step: "any", value: page.clock, "aria-label": "Clock in GHz",
    change: e => { page.clock = Math.max(0.001, Number(e.target.value) || page.clock); redo(); } });
  const ms = `${counted || !instructions ? "≈" : "≤"} ${durationText(page.milliseconds(t.length))}`;
  const elsewhere = new Set(page.kernels.map(k => k.on).filter(Boolean));
  if (counted)
    return figure("Instructions of a run, counted", page.amountText(t.length), `in the emulator ${t.counted_by}`,
      make("div", { class: "note clock" }, `${ms} at `, clock, " GHz and one instruction a cycle"));
  return figure("Time of a run, estimated", ms, make("div", { class: "note clock" }, page.amountText(t.length) + " at ", clock, " GHz"),
    instructions ? "an upper limit, at one instruction per cycle; a run takes less" : `from the instructions and bytes of each kernel on ${t.workers} worker${t.workers === 1 ? "" : "s"}; nothing ran`,
    elsewhere.size ? `what runs on ${[...elsewhere].join(", ")} counts as if the CPU ran it` : null,
    instructions ? "lathe verify --target qemu-… --json counts what runs; inspect --profile shows it" : "lathe bench --profile --json measures; inspect --profile shows it");
}

function slowFindings(page) {
  const v = page.verdict, list = [];
  const names = kernels => kernels.slice(0, 4).flatMap((k, i) => [i ? ", " : "", page.link(k)]).concat(kernels.length > 4 ? ` and ${kernels.length - 4} more` : "");
  if (v.quantized_in_float > 0)
    list.push(make("li", {}, make("span", { class: "warn" }, "Float: "), v.quantized_in_float === 1 ? "1 quantized operator computes in float." : `${v.quantized_in_float} quantized operators compute in float.`));
  for (const s of v.slow)
    list.push(make("li", {}, make("span", { class: "warn" }, s.what.replace(/_/g, " ") + ": "), `${s.help}, in `, ...names(s.kernels)));
  const groups = new Map();
  for (const r of v.remarks) {
    const text = (r.pass === "use-integers" ? "stayed in float" : r.pass) + ": " + r.remark;
    groups.set(text, [...(groups.get(text) || []), r.node || "%" + r.value]);
  }
  for (const [text, nodes] of groups)
    list.push(make("li", {}, make("span", { class: "warn" }, nodes.length + " node" + (nodes.length > 1 ? "s " : " ")), text + " (" + nodes.slice(0, 3).map(n => shortened(n, 40)).join(", ") + (nodes.length > 3 ? ", …" : "") + ")"));
  const stayed = new Map();
  for (const s of page.stayed || [])
    stayed.set(s.operator + ": " + s.why, [...(stayed.get(s.operator + ": " + s.why) || []), s.node]);
  for (const [text, nodes] of stayed)
    list.push(make("li", {}, make("span", { class: "warn" }, "On the CPU: "), `${nodes.length} ${text} (${[...new Set(nodes)].slice(0, 3).map(n => shortened(n, 40)).join(", ")})`));
  return list;
}

function verdictSentence(page, findings) {
  const v = page.verdict, t = page.target, parts = [];
  const needs = `needs ${bytesText(page.ram)} of RAM and ${bytesText(v.constant_bytes)} of flash for its constants`;
  parts.push(make("b", {}, page.file), ` on ${t.name} `, v.ram_limit ? `${page.ram <= v.ram_limit ? "fits" : "does not fit"} in ${bytesText(v.ram_limit)} of RAM: it ${needs}. ` : needs + ". ");
  parts.push(page.how === "measured" ? `A run takes ${durationText(page.total)}, measured. `
    : page.how === "counted" ? `A run takes ${page.amountText(page.timeline.length)}, counted in the emulator ${page.timeline.counted_by}. `
    : page.timeline.unit === "instructions" ? `A run takes at most ${page.amountText(page.timeline.length)}, by estimate. `
    : `A run takes about ${durationText(page.milliseconds(page.timeline.length))} at ${page.clock} GHz, by estimate. `);
  const top = page.times.map((n, i) => i).sort((a, b) => page.times[b] - page.times[a]).slice(0, 1);
  if (top.length && page.kernels.length > 1)
    parts.push("The largest part goes to ", page.link(top[0]), ` (${(100 * page.share(top[0])).toFixed(0)} %). `);
  parts.push(findings.length === 0 ? make("span", { class: "good" }, v.quantized ? "Nothing stayed slow or in float." : "Nothing stayed slow.") : make("span", { class: "warn" }, `${findings.length} thing${findings.length > 1 ? "s" : ""} could be better, below.`));
  return make("p", { class: "verdict" }, ...parts);
}

function memoryFigures(page) {
  return (page.verdict.memories || []).map(m => figure("Memory " + m.name, bytesText(m.used), meter(m.used, m.bytes),
    `${m.used <= m.bytes ? "fits in" : "is above"} ${bytesText(m.bytes)}`));
}

function verdictSection(page) {
  const box = section("verdict", "Verdict"), body = make("div", {});
  const fill = () => {
    if (!page.compiled)
      return body.replaceChildren(...modelVerdict(page));
    const findings = slowFindings(page);
    body.replaceChildren(verdictSentence(page, findings), make("div", { class: "figures" }, ramFigure(page), flashFigure(page), timeFigure(page, fill), ...memoryFigures(page)),
      findings.length ? make("ul", { class: "findings" }, findings) : "");
  };
  fill();
  box.append(body);
  return box;
}

function modelVerdict(page) {
  const m = page.model, ops = new Map();
  m.nodes.forEach(n => ops.set(n.op, (ops.get(n.op) || 0) + 1));
  const most = [...ops].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([op, n]) => `${n} ${op}`).join(", ");
  const out = [make("p", { class: "verdict" }, make("b", {}, page.file), " as it was read. ",
    page.problems.length ? make("span", { class: "warn" }, "It does not compile; the reasons are below.") : "")];
  out.push(make("div", { class: "figures" }, figure("Nodes", String(m.nodes.length), most), figure("Weights", bytesText(m.weight_bytes), exact(m.weight_bytes)),
    figure("Inputs", String(m.inputs.length), ...m.inputs.map(v => m.values[v].name + ": " + m.values[v].type)),
    figure("Outputs", String(m.outputs.length), ...m.outputs.map(v => m.values[v].name + ": " + m.values[v].type))));
  const unknown = [...new Set(m.nodes.filter(n => n.unread === "unknown operator").map(n => n.op))];
  if (unknown.length)
    out.push(make("p", { style: "margin-top:12px" }, make("span", { class: "bad" }, unknown.length === 1 ? "Unknown operator: " : "Unknown operators: "), unknown.join(", ") + ". ",
      "Their boxes are dashed, as are those of nodes that could not be read because of them."));
  if (page.problems.length)
    out.push(make("ul", { class: "findings" }, page.problems.map(p => make("li", {}, make("span", { class: "bad" }, p.where ? p.where + ": " : ""), p.text, p.hint ? make("div", { class: "soft small" }, p.hint) : ""))));
  return out;
}

/* --- graph --- */

function legendOf(page, by) {
  if (by === "kind")
    return make("div", { class: "legend" }, KINDS.map((name, i) => page.kinds.includes(i) ? make("span", {}, make("i", { class: "swatch", style: `background:var(--k${i})` }), name) : null));
  const { scale, text } = page.scales[by];
  const label = by === "time" ? `${page.amount} of the kernel, ${page.how}` : "workspace in use while it runs";
  return make("div", { class: "legend" }, label + ":", [0, 1, 2, 3, 4, 5].map(i => make("span", {}, make("i", { class: "swatch", style: `background:var(--s${i})` }),
    i === 0 ? "below " + text(scale / 36) : "from " + text(scale * (i / 6) ** 2))));
}

function choice(options, chosen, pick) {
  const buttons = options.map(([value, text]) => make("button", { type: "button", "aria-pressed": String(value === chosen), click: () => {
    buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(options[i][0] === value)));
    pick(value);
  } }, text));
  return make("div", { class: "group", role: "group" }, buttons);
}

function graphSection(page) {
  const panel = make("aside", { class: "panel", hidden: true, "aria-label": "Details" }), holder = make("div", { class: "graph" });
  const legend = make("div", {}), found = make("span", { class: "soft small", role: "status" });
  const choose = box => {
    panel.hidden = !box || (box.kernel === undefined && box.node === undefined && box.kind !== "io");
    holder.classList.toggle("open", !panel.hidden);
    if (!panel.hidden)
      panel.replaceChildren(make("div", { class: "bar" }, make("b", { class: "name" }, shortened(box.title, 60)), make("button", { type: "button", click: () => view.drop() }, "Close")), boxDetails(page, box));
  };
  const view = new GraphView(page, choose);
  const search = make("input", { type: "search", id: "search", placeholder: "Search nodes ( / )", "aria-label": "Search nodes",
    input: () => look(), keydown: e => { if (e.key === "Enter") look(); } });
  const look = () => { const n = view.search(search.value); found.textContent = search.value ? n + " found" : ""; };
  const bar = make("div", { class: "bar" });
  const modes = [page.compiled && ["kernels", "Kernels"], page.compiled && page.model && ["both", "Kernels and nodes"], page.model && ["model", "Model"]].filter(Boolean);
  const first = modes[0][0];
  const colours = page.compiled ? choice([["time", "Time"], ["memory", "Memory"], ["kind", "Kind"]], "time", by => { view.colour(by); legend.replaceChildren(legendOf(page, by)); }) : null;
  const colourBox = colours ? make("span", { class: "bar", style: "margin:0" }, "Color by", colours) : null;
  bar.append(choice(modes, first, mode => { view.show(mode); choose(null); look(); if (colourBox) colourBox.hidden = legend.hidden = mode === "model"; }), search, found);
  if (colourBox)
    bar.append(colourBox);
  holder.append(view.canvas, panel);
  if (page.compiled) {
    legend.append(legendOf(page, "time"));
    page.open = kernel => {
      if (view.mode === "model")
        bar.querySelector("button").click();
      document.getElementById("graph").scrollIntoView();
      view.pickKernel(kernel);
    };
  }
  view.start = () => view.show(first);
  graphSection.view = view;
  return section("graph", "Graph", make("p", { class: "soft small" }, "Drag to move, + and − or Ctrl and the wheel to zoom. Blue edges pass by other boxes: residuals and other joins. ",
    "Click a box for its schedule, loops, C and nodes."), bar, holder, legend);
}

/* --- details of a kernel, a node, an end --- */

function copyButton(text) {
  const button = make("button", { type: "button", class: "copy", click: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(button.parentElement.querySelector("pre"));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  } }, "Copy");
  return button;
}

function textBox(text) {
  return make("div", { class: "text" }, make("pre", { tabindex: 0 }, text), copyButton(text));
}

function tabs(list) {
  const body = make("div", {}), shown = list.filter(([, text]) => text);
  if (shown.length === 0)
    return body;
  const buttons = shown.map(([name, text]) => make("button", { type: "button", role: "tab", click: () => pick(name, text) }, name));
  const pick = (name, text) => {
    buttons.forEach((b, i) => b.setAttribute("aria-selected", String(shown[i][0] === name)));
    body.replaceChildren(textBox(text));
  };
  pick(...shown[0]);
  return make("div", {}, make("div", { class: "tabs", role: "tablist" }, buttons), body);
}

function facts(rows) {
  return make("dl", { class: "facts" }, rows.filter(([, text]) => text !== undefined && text !== null && text !== "").flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]));
}

function nodeText(page, n) {
  const m = page.model, v = i => m.values[i].name + ": " + m.values[i].type;
  return `${n.op} ${n.name ? '"' + n.name + '"' : ""}\n` + n.inputs.map(i => "  in      " + v(i) + "\n").join("") +
    n.weights.map(w => "  weight  " + w.name + ": " + w.type + "\n").join("") + n.outputs.map(i => "  out     " + v(i) + "\n").join("") +
    n.text.split("\n").map(line => "  graph   " + line).join("\n") + "\n";
}

function valueText(page, v) {
  const x = page.values[v];
  return `${x.name}: ${x.type}, ${exact(x.bytes)}, ${x.storage}`;
}

/* How near a kernel is to what the machine can do at most, and what holds it. */
function boundOf(page, i) {
  const k = page.kernels[i], words = { sums: "compute", bytes: "bandwidth" };
  if (page.how === "measured")
    return { share: k.measured.share_of_peak, by: words[k.measured.bound] || k.measured.bound };
  if (k.estimate.sums === undefined || !(k.estimate.amount > 0) || k.on)
    return null;
  const least = Math.max(k.estimate.sums, k.estimate.bytes);
  return { share: least / k.estimate.amount, by: k.estimate.sums >= k.estimate.bytes ? "compute" : "bandwidth" };
}

function boundText(page, i) {
  const b = boundOf(page, i);
  if (b)
    return `${(100 * b.share).toFixed(0)} % of ${b.by}`;
  const k = page.kernels[i];
  return k.macs > 0 && page.timeline.unit === "instructions" ? (k.macs / Math.max(page.times[i], 1)).toFixed(2) + " MACs each" : "";
}

function lossOf(page, k) {
  const loss = page.loss;
  if (!loss)
    return "";
  const names = new Set(k.outputs.map(v => page.values[v].name).concat(k.nodes.map(n => page.model.nodes[n].name), k.nodes.flatMap(n => page.model.nodes[n].outputs.map(v => page.model.values[v].name))));
  return loss.values.filter(v => names.has(v.name)).map(v => `${v.name}: ${(100 * v.error).toFixed(2)} % off`).join("; ");
}

function kernelDetails(page, i) {
  const k = page.kernels[i], code = page.code[k.code], source = page.sources.find(s => s.target === k.on);
  const nodes = page.model ? k.nodes.map(n => nodeText(page, page.model.nodes[n])).join("\n") : "";
  return make("div", {}, facts([
    ["kernel", k.kernel], ["computes", shortKind(k.kind)], ["nodes", namesOf(page, k)], ["runs on", k.on || ""], ["declined", k.declined || ""],
    [`${page.amount}, ${page.how}`, page.amountText(page.times[i]) + ", " + (100 * page.share(i)).toFixed(1) + " %"],
    ["of the bound", boundText(page, i)], ["multiply-adds", k.macs.toLocaleString("en")], ["layer", String(k.layer)],
    ["parts", String(k.parts)], ["quantizing", lossOf(page, k)], ["reads", make("span", {}, k.inputs.map(v => make("div", { class: "mono" }, valueText(page, v))))],
    ["writes", make("span", {}, k.outputs.map(v => make("div", { class: "mono" }, valueText(page, v))))],
  ]), tabs([["Schedule", k.schedule ? "// " + (k.schedule.from === "rule" ? "chosen by a rule" : "from " + k.schedule.from) + "\n" + k.schedule.text : ""],
    ["Loops", code && code.loops], ["C", code && code.c], ["Nodes", nodes], ["Source", source && source.text]]));
}

function boxDetails(page, box) {
  if (box.kernel !== undefined)
    return kernelDetails(page, box.kernel);
  if (box.node !== undefined)
    return make("div", {}, facts([["name", page.model.nodes[box.node].name], ["operator", page.model.nodes[box.node].op], ["in kernels", kernelsOf(page, box.node)]]), textBox(nodeText(page, page.model.nodes[box.node])));
  return facts([[box.title, box.line], ["type", box.note]]);
}

function kernelsOf(page, node) {
  if (!page.compiled)
    return "";
  const list = page.kernels.map((k, i) => i).filter(i => page.kernels[i].nodes.includes(node));
  return list.length ? make("span", {}, list.flatMap((i, n) => [n ? ", " : "", page.link(i)])) : "none: folded into others, or a view";
}

/* --- kernels --- */

function kernelRow(page, i) {
  const k = page.kernels[i], width = page.scales.time.scale > 0 ? 100 * page.times[i] / page.scales.time.scale : 0;
  const row = make("details", { id: "kernel-" + i, toggle: () => {
    if (row.open && row.children.length === 1)
      row.append(make("div", { class: "body" }, kernelDetails(page, i)));
  } }, make("summary", {}, make("span", { class: "soft" }, String(i)),
    make("span", { class: "name" }, make("b", {}, shortened(shortKind(k.kind), 80)), make("div", { class: "soft small" }, shortened(namesOf(page, k), 90))),
    make("span", { class: "track", title: page.timeText(i) }, make("div", { class: page.known ? "solid" : "hatched", style: `width:${width}%` })),
    make("span", { class: "num" }, (100 * page.share(i)).toFixed(1) + " %"), make("span", { class: "num wide" }, boundText(page, i)),
    make("span", { class: "num wide" }, bytesText(k.inputs.concat(k.outputs).reduce((n, v) => n + page.values[v].bytes, 0)))));
  return row;
}

function kernelsSection(page) {
  const list = make("div", {}), order = { time: (a, b) => page.times[b] - page.times[a], run: (a, b) => a - b };
  const fill = by => list.replaceChildren(...page.kernels.map((k, i) => i).sort(order[by]).map(i => rows[i]));
  const rows = page.kernels.map((k, i) => kernelRow(page, i));
  fill("time");
  const head = make("details", { class: "head-row" }, make("summary", { class: "head", tabindex: -1, click: e => e.preventDefault() }, make("span", {}, "#"), make("span", {}, "kernel"),
    make("span", { class: "wide" }, `${page.amount}, ${page.how}`), make("span", { class: "num" }, "share"), make("span", { class: "num wide" }, "of the bound"), make("span", { class: "num wide" }, "bytes")));
  return section("kernels", "Kernels", make("div", { class: "bar" }, make("span", {}, "Order"), choice([["time", "By time"], ["run", "As they run"]], "time", fill),
    make("span", { class: "legend" }, make("span", {}, make("i", { class: "swatch " + (page.known ? "solid" : "hatched") }), page.known ? page.how : "estimated, nothing ran"))),
    make("div", { class: "kernels" }, head, list));
}

/* --- memory, timeline, quantising --- */

function memorySection(page) {
  const m = page.memory, said = make("p", { class: "said", role: "status" }, "Point at a block to see what it is.");
  const peak = m.used[m.peak_layer] || 0, makers = page.kernels.map((k, i) => i).filter(i => page.kernels[i].layer === m.peak_layer);
  return section("memory", "Memory", make("p", {}, `The workspace has ${exact(m.bytes)}. If the kernels run one after the other, no order of them needs less than ${m.lower_bound.toLocaleString("en")}. `,
    peak ? `The peak is ${exact(peak)} in layer ${m.peak_layer}, while ` : "", peak ? makers.slice(0, 3).flatMap((i, n) => [n ? ", " : "", page.link(i)]) : "", peak ? (makers.length === 1 ? " runs." : " run.") : ""),
    make("div", { class: "legend" }, [["var(--s1)", "value"], ["var(--s3)", "input"]].map(([c, text]) => make("span", {}, make("i", { class: "swatch", style: "background:" + c }), text)),
      make("span", {}, make("i", { class: "swatch", style: "background:radial-gradient(var(--edge) 1px, var(--sunk) 1.5px) 0 0/5px 5px" }), "scratch of a kernel"),
      make("span", {}, make("i", { class: "swatch", style: "border:2px solid var(--warn)" }), "there at the peak")),
    memoryChart(page, said), said, make("h3", {}, "At the peak"), peakTable(page));
}

function timelineSection(page) {
  const t = page.timeline, said = make("p", { class: "said", role: "status" }, "Point at a bar to see what it is.");
  const used = t.length > 0 ? 100 * t.used / (t.length * t.workers) : 100;
  let stretch = 1;
  const holder = make("div", { class: "scroll" });
  const fill = () => { const c = timelineChart(page, said, () => stretch); c.style.width = "100%"; holder.replaceChildren(c); };
  fill();
  return section("timeline", "Timeline", make("p", {}, make("b", {}, { measured: "Measured. ", counted: `Counted in the emulator ${t.counted_by}. `, estimated: "Estimated: nothing ran. " }[page.how]),
    `${page.amountText(t.length)} on ${t.workers} worker${t.workers > 1 ? "s" : ""}, in ${page.layers} layers; the workers are busy for ${used.toFixed(0)} % of it${page.known ? "" : ", by the estimate"}. A layer begins when the one before has ended.`),
    make("div", { class: "bar" }, make("span", {}, "Stretch"), choice([[1, "1×"], [4, "4×"], [16, "16×"]], 1, n => { stretch = n; fill(); }), legendOf(page, "kind")), holder, said,
    page.steps ? make("ol", { start: 0 }, page.steps.map((s, i) => make("li", {}, s.to === undefined ? `layers ${s.first_layer} to ${s.end_layer - 1}` : `${s.to <= i ? "back to" : "on to"} step ${s.to}${s.unless ? " unless " + s.unless : ""}`))) : "");
}

function lossSection(page) {
  const loss = page.loss, most = Math.max(...loss.values.map(v => v.error), 1e-12);
  const bar = n => make("div", { class: "meter", style: "width:140px" }, make("div", { style: `width:${100 * n / most}%` }));
  return section("quantizing", "What quantizing cost", make("p", {}, `${loss.quantized} of ${loss.nodes} nodes were quantized, on ${loss.samples} samples`,
    loss.same_answer !== undefined ? `; ${loss.same_answer} of them have the same answer as in float.` : "."),
    make("div", { class: "scroll" }, make("table", {}, make("tr", {}, ["value", "operator", "error", "", "cut off", "scale"].map((h, i) => make("th", { class: i === 2 || i > 3 ? "num" : "" }, h))),
      [...loss.values].sort((a, b) => b.error - a.error).map(v => make("tr", {}, make("td", { class: "mono" }, v.name), make("td", {}, v.operator),
        make("td", { class: "num" }, (100 * v.error).toFixed(2) + " %"), make("td", {}, bar(v.error)), make("td", { class: "num" }, (100 * v.saturated).toFixed(2) + " %"), make("td", { class: "num" }, v.scale.toPrecision(3)))))));
}

/* --- two builds --- */

function change(a, b) {
  if (b === 0 || a === b)
    return make("td", { class: "num soft" }, a === b ? "equal" : "");
  const percent = 100 * (a - b) / b;
  return make("td", { class: "num " + (a < b ? "good" : "bad") }, `${percent > 0 ? "+" : "−"}${Math.abs(percent).toFixed(Math.abs(percent) < 10 ? 1 : 0)} %, ${a < b ? "less" : "more"}`);
}

/* Kernels of both builds that have nodes of the model in common. */
function matched(page, other) {
  const parent = new Map();
  const find = x => { while (parent.has(x) && parent.get(x) !== x) x = parent.get(x); return x; };
  const names = p => p.kernels.map(k => (k.nodes.length && p.model ? k.nodes.map(n => p.model.nodes[n].name + " " + p.model.nodes[n].op + " " + n) : [k.source + " " + k.kind]));
  const sides = [names(page), names(other)];
  sides.forEach((side, s) => side.forEach((list, i) => list.forEach(n => {
    const a = find("k" + s + " " + i), b = find("n" + n);
    parent.set(a, b);
    parent.set(b, b);
  })));
  const groups = new Map();
  sides.forEach((side, s) => side.forEach((_, i) => {
    const root = find("k" + s + " " + i), g = groups.get(root) || { kernels: [[], []] };
    g.kernels[s].push(i);
    groups.set(root, g);
  }));
  return [...groups.values()];
}

function compareRows(page, other) {
  const time = p => p.how === "measured" ? p.total : p.timeline.length;
  const rows = [["RAM", page.ram, other.ram, exact], ["workspace", page.verdict.workspace_bytes, other.verdict.workspace_bytes, exact],
    ["constants", page.verdict.constant_bytes, other.verdict.constant_bytes, exact]];
  rows.push([`${page.amount}, ${page.how}`, time(page), time(other), (n, p) => p.amountText(n), page.comparable(other)]);
  rows.push(["kernels", page.kernels.length, other.kernels.length, n => String(n)], ["layers", page.layers, other.layers, n => String(n)],
    ["multiply-adds", macs(page), macs(other), n => n.toLocaleString("en")], ["quantized operators in float", page.verdict.quantized_in_float, other.verdict.quantized_in_float, n => String(n)]);
  return rows.map(([name, a, b, text, fits]) => make("tr", {}, make("td", {}, name), make("td", { class: "num" }, text(a, page)), make("td", { class: "num" }, text(b, other)),
    fits === false ? make("td", { class: "soft" }, "of different kinds") : change(a, b)));
}

function macs(page) {
  return page.kernels.reduce((n, k) => n + k.macs, 0);
}

function kernelChanges(page, other) {
  const sum = (p, list) => list.reduce((n, i) => n + p.times[i], 0);
  const rows = matched(page, other).map(g => ({ ...g, a: sum(page, g.kernels[0]), b: sum(other, g.kernels[1]) }));
  const most = Math.max(...rows.map(r => Math.max(r.a, r.b)), 1e-12);
  const bar = (n, p, second) => make("div", { class: "track" }, make("div", { class: (p.known ? "solid" : "hatched") + (second ? " other" : ""), style: `width:${100 * n / most}%` }));
  const kinds = (p, list) => list.map(i => shortKind(p.kernels[i].kind)).join(" | ") || "nothing";
  return make("div", { class: "scroll" }, make("table", { class: "kernels", style: "display:table;width:100%" }, make("tr", {}, ["kernels", "time", "this", "other", "change"].map((h, i) => make("th", { class: i > 1 ? "num" : "" }, h))),
    rows.sort((x, y) => Math.abs(y.a - y.b) - Math.abs(x.a - x.b)).slice(0, 60).map(r => {
      const a = kinds(page, r.kernels[0]), b = kinds(other, r.kernels[1]);
      const label = r.kernels[0].length ? page.link(r.kernels[0][0]) : shortened(other.label(r.kernels[1][0]), 60);
      return make("tr", {}, make("td", {}, label, make("div", { class: "soft small" }, a === b ? shortened(a, 100) : `${shortened(a, 70)}, was ${shortened(b, 70)}`)),
        make("td", { style: "min-width:150px" }, bar(r.a, page, false), make("div", { style: "height:3px" }), bar(r.b, other, true)), make("td", { class: "num" }, page.amountText(r.a)), make("td", { class: "num" }, other.amountText(r.b)), change(r.a, r.b));
    })));
}

function compareMemory(page, other) {
  const most = Math.max(page.memory.bytes, other.memory.bytes);
  return chart(width => {
    const x = n => layer => LEFT + (width - LEFT - RIGHT) * layer / Math.max(n, 1), svg = draw("svg", { height: 150, role: "img", "aria-label": "Workspace of both builds over time" });
    svg.append(draw("text", { x: 0, y: 18 }, bytesText(most)), draw("text", { x: 0, y: 130 }, "0"));
    svg.append(usedCurve(page.memory.used, most, x(page.layers), 10, 120, "curve"), usedCurve(other.memory.used, most, x(other.layers), 10, 120, "curve second"));
    return svg;
  });
}

function compareSection(page, other) {
  const named = p => `${p.file} for ${p.target.name}, ${p.target.workers} worker${p.target.workers === 1 ? "" : "s"}, -O${p.target.opt_level}`;
  return section("compare", "Against another build", make("p", {}, "This: ", make("b", {}, named(page)), ". Other: ", make("b", {}, named(other)), "."),
    make("div", { class: "scroll" }, make("table", {}, make("tr", {}, ["", "this", "other", "change"].map((h, i) => make("th", { class: i ? "num" : "" }, h))), compareRows(page, other))),
    make("h3", {}, "Workspace in use, from the first layer to the last"), make("div", { class: "legend" }, make("span", {}, make("i", { class: "swatch", style: "background:var(--shade);border-color:var(--accent)" }), "this"),
      make("span", {}, make("i", { class: "swatch", style: "border:2px dashed var(--k1)" }), "other")), compareMemory(page, other),
    make("h3", {}, "Kernels, the largest change first"),
    page.comparable(other) ? kernelChanges(page, other) : make("p", { class: "soft" }, `Times of this build are ${page.how}, in ${page.timeline.unit}; those of the other are ${other.how}, in ${other.timeline.unit}. They cannot be compared.`));
}

/* --- the frame --- */

function themeButton() {
  const root = document.documentElement, button = document.getElementById("theme"), dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try {
    chosen = localStorage.getItem("lathe-theme");
  } catch { /* a file may have no storage */ }
  const apply = () => {
    const now = chosen || (dark.matches ? "dark" : "light");
    root.dataset.theme = now;
    button.textContent = now === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", "Switch to the " + button.textContent.toLowerCase() + " theme");
  };
  button.addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("lathe-theme", chosen);
    } catch { /* it holds until the page is closed */ }
    apply();
  });
  dark.addEventListener("change", apply);
  apply();
}

function keysDialog() {
  const dialog = document.getElementById("keys"), rows = [["/", "search the graph"], ["← ↑ → ↓", "move the graph"], ["+ −", "zoom"], ["0", "show the whole graph"],
    ["n p", "next and previous box"], ["Enter", "open the box"], ["Esc", "close"], ["t", "light or dark"], ["?", "this list"]];
  dialog.append(make("h2", {}, "Keys"), make("p", { class: "soft small" }, "Those that move about work while the graph has the focus."),
    make("table", {}, rows.map(([key, text]) => make("tr", {}, make("td", {}, key.split(" ").map(k => [make("kbd", {}, k), " "])), make("td", {}, text)))),
    make("form", { method: "dialog", class: "bar" }, make("button", {}, "Close")));
  document.getElementById("help").addEventListener("click", () => dialog.showModal());
  document.addEventListener("keydown", e => {
    if (e.target.matches("input, textarea, select") || e.ctrlKey || e.metaKey || e.altKey)
      return;
    if (e.key === "?")
      dialog.showModal();
    else if (e.key === "t")
      document.getElementById("theme").click();
    else if (e.key === "/") {
      e.preventDefault();
      document.getElementById("search").focus();
    }
  });
}

function read(id) {
  const element = document.getElementById(id);
  return element ? JSON.parse(element.textContent) : null;
}

function start() {
  const page = new Page(read("document")), other = read("other");
  page.loss = read("loss");
  document.getElementById("title").textContent = page.file;
  document.getElementById("subtitle").textContent = page.compiled
    ? `for ${page.target.name}, ${page.target.workers} worker${page.target.workers === 1 ? "" : "s"}, port ${page.target.port}; ${page.kernels.length} kernels in ${page.layers} layers`
    : "the model as it was read";
  themeButton();
  keysDialog();
  const main = document.getElementById("main"), sections = [verdictSection(page)];
  if (other && page.compiled)
    sections.push(compareSection(page, new Page(other)));
  sections.push(graphSection(page));
  if (page.compiled)
    sections.push(kernelsSection(page), memorySection(page), timelineSection(page));
  if (page.loss)
    sections.push(lossSection(page));
  main.append(...sections);
  document.getElementById("nav").append(...sections.map(s => make("a", { href: "#" + s.id }, s.querySelector("h2").textContent)));
  graphSection.view.start();
  window.lathePage = { page, view: graphSection.view, check };
}

/* --- what must not be --- */

function check() {
  const view = graphSection.view, { boxes, edges, place } = view, wrong = [];
  const area = boxes.map((b, i) => ({ x0: place.nodes[i].x - b.w / 2, x1: place.nodes[i].x + b.w / 2, y0: place.nodes[i].y - b.h / 2, y1: place.nodes[i].y + b.h / 2 }));
  const sorted = area.map((a, i) => i).sort((i, k) => area[i].y0 - area[k].y0);
  sorted.forEach((i, n) => {
    for (let m = n + 1; m < sorted.length && area[sorted[m]].y0 < area[i].y1 - 0.5; m++) {
      const a = area[i], b = area[sorted[m]];
      if (a.x0 < b.x1 - 0.5 && b.x0 < a.x1 - 0.5)
        wrong.push(`the boxes '${boxes[i].title}' and '${boxes[sorted[m]].title}' overlap`);
    }
  });
  edges.forEach(e => {
    const length = e.element.getTotalLength();
    for (let at = 0; at <= length; at += 4) {
      const p = e.element.getPointAtLength(at), hit = area.findIndex((a, i) => i !== e.from && i !== e.to && p.x > a.x0 + 0.5 && p.x < a.x1 - 0.5 && p.y > a.y0 + 0.5 && p.y < a.y1 - 0.5);
      if (hit >= 0) {
        wrong.push(`the edge '${e.name}' passes behind '${boxes[hit].title}'`);
        break;
      }
    }
  });
  const labels = edges.map((e, i) => [e, place.edges[i]]).filter(([e, p]) => p.x !== undefined && e.text);
  edges.forEach(e => {
    const length = e.element.getTotalLength();
    for (let at = 0; at <= length; at += 4) {
      const p = e.element.getPointAtLength(at), hit = labels.find(([l, q]) => l !== e && Math.abs(p.x - q.x) < l.w / 2 - 3 && Math.abs(p.y - q.y) < 5);
      if (hit) {
        wrong.push(`the edge '${e.name}' crosses the label of '${hit[0].name}'`);
        break;
      }
    }
  });
  for (const svg of document.querySelectorAll(".chart svg")) {
    const texts = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
    texts.forEach(([a, p], i) => texts.slice(i + 1).forEach(([b, q]) => {
      if (p.left < q.right && q.left < p.right && p.top + 2 < q.bottom && q.top + 2 < p.bottom)
        wrong.push(`the texts '${a}' and '${b}' of a chart overlap`);
    }));
  }
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width)
    wrong.push(`the page is ${document.documentElement.scrollWidth} pixels wide in a window of ${width}`);
  for (const element of document.querySelectorAll("section, section > *, .figure, .bar > *, .panel"))
    if (element.getBoundingClientRect().right > width + 0.5)
      wrong.push(`${element.tagName.toLowerCase()}.${element.className} ends at ${element.getBoundingClientRect().right}, the window at ${width}`);
  return wrong;
}

start();
