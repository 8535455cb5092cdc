/* The charts of a page: the workspace over time, the workers' timeline. They are drawn anew when their width changes. */
"use strict";

/* draw(width) makes the picture for a width. */
function chart(drawFor) {
  const box = make("div", { class: "chart" });
  let width = 0;
  const again = () => {
    const now = Math.floor(box.clientWidth);
    if (now > 0 && now !== width) {
      width = now;
      box.replaceChildren(drawFor(now));
    }
  };
  new ResizeObserver(again).observe(box);
  return box;
}

function bytesText(n) {
  if (n < 1024)
    return n + " bytes";
  const [unit, size] = n < 1024 ** 2 ? ["KB", 1024] : n < 1024 ** 3 ? ["MB", 1024 ** 2] : ["GB", 1024 ** 3];
  return (n / size).toPrecision(n / size < 1000 ? 3 : 4).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "") + " " + unit;
}

function exact(n) {
  return n.toLocaleString("en") + " bytes";
}

const SMALL = '11px system-ui, "Segoe UI", Roboto, sans-serif'; // .chart text

/* Text that stays inside of a rectangle: what does not fit is left out. */
function insideText(text, x, y, width, height) {
  let most = Math.min(text.length, Math.floor((width - 8) / 4));
  while (most >= 4 && widthOf(shortened(text, most), SMALL) > width - 8)
    most--;
  if (most < Math.min(4, text.length) || height < 12)
    return null;
  return draw("text", { class: "inside", x: x + 4, y: y + height / 2 + 4 }, shortened(text, most));
}

/* --- memory --- */

const LEFT = 64, RIGHT = 8;

/* said: an element that tells of the block under the pointer. */
function memoryChart(page, said) {
  const m = page.memory, layers = Math.max(page.layers, 1);
  return chart(width => {
    const w = width - LEFT - RIGHT, curve = 64, top = 18, height = Math.max(220, Math.min(420, width * 0.45)), map = curve + top + 26;
    const x = layer => LEFT + w * layer / layers, y = offset => map + height * offset / Math.max(m.bytes, 1);
    const svg = draw("svg", { height: map + height + 26, role: "img", "aria-label": "The workspace over time" },
      draw("defs", {}, draw("pattern", { id: "dots", width: 5, height: 5, patternUnits: "userSpaceOnUse" },
        draw("rect", { width: 5, height: 5, fill: "var(--sunk)" }), draw("circle", { cx: 2.5, cy: 2.5, r: 1, fill: "var(--edge)" }))));
    svg.append(usedCurve(m.used, m.bytes, x, top, curve, "curve"));
    svg.append(draw("text", { x: 0, y: top + 8 }, bytesText(m.bytes)), draw("text", { x: 0, y: top + curve }, "0 in use"));
    svg.append(draw("text", { x: 0, y: map + 10 }, "offset 0"), draw("text", { x: 0, y: map + height }, bytesText(m.bytes)));
    svg.append(draw("rect", { x: LEFT, y: map, width: w, height, fill: "none", class: "axis" }));
    const blocks = m.blocks.map(b => blockOf(page, b, x, y, height, said));
    svg.append(...blocks.map(([rect]) => rect), ...apart(blocks.flatMap(([, text]) => text || [])));
    markPeak(svg, page, x, top, map + height);
    svg.append(draw("text", { x: LEFT, y: map + height + 18 }, "layer 0"),
               draw("text", { x: LEFT + w, y: map + height + 18, "text-anchor": "end" }, "layer " + (layers - 1)));
    return svg;
  });
}

/* Of names in a chart those that meet no other one before them. Values that share a place have blocks that overlap. */
function apart(texts) {
  const kept = [];
  for (const text of texts) {
    const x = Number(text.getAttribute("x")), y = Number(text.getAttribute("y")), end = x + widthOf(text.textContent, SMALL);
    if (kept.every(k => x > k.end || end < k.x || Math.abs(y - k.y) > 12))
      kept.push({ text, x, y, end });
  }
  return kept.map(k => k.text);
}

function usedCurve(used, most, x, top, height, name) {
  const y = n => top + height * (1 - n / Math.max(most, 1));
  let d = `M${x(0)} ${y(0)}`;
  used.forEach((n, i) => { d += `L${x(i).toFixed(1)} ${y(n).toFixed(1)}L${x(i + 1).toFixed(1)} ${y(n).toFixed(1)}`; });
  return draw("path", { class: name, d: d + `L${x(used.length)} ${y(0)}` });
}

function blockText(page, b) {
  const who = b.kernel === undefined ? "" : b.kind === "scratch" ? ", scratch of " + page.label(b.kernel) : ", made by " + page.label(b.kernel);
  return `${b.name}: ${exact(b.bytes)} at ${b.offset.toLocaleString("en")}, layer${b.first === b.last ? " " + b.first : "s " + b.first + " to " + b.last}${who}`;
}

function blockOf(page, b, x, y, height, said) {
  const left = x(b.first), w = Math.max(x(b.last + 1) - left, 1), top = y(b.offset);
  const h = Math.max(y(b.offset + b.bytes) - top, 0.75), peak = b.first <= page.memory.peak_layer && page.memory.peak_layer <= b.last;
  const tell = () => { said.textContent = blockText(page, b); };
  const rect = draw("rect", { class: "block " + b.kind + (peak ? " at-peak" : ""), x: left, y: top, width: w, height: h,
    mouseenter: tell, click: () => b.kernel !== undefined && page.open(b.kernel) }, draw("title", {}, blockText(page, b)));
  return [rect, insideText(b.name, left, top, w, h)];
}

function markPeak(svg, page, x, top, bottom) {
  const m = page.memory, at = m.peak_layer, used = m.used[at];
  if (used === undefined)
    return;
  const middle = (x(at) + x(at + 1)) / 2, right = middle > (x(0) + x(m.used.length)) / 2;
  svg.append(draw("rect", { class: "peak", x: x(at), y: top, width: Math.max(x(at + 1) - x(at), 1.5), height: bottom - top, "pointer-events": "none" }));
  svg.append(draw("text", { x: middle, y: 11, "text-anchor": right ? "end" : "start", style: "fill:var(--warn);font-weight:600" },
    `peak: ${bytesText(used)} in layer ${at}`));
}

/* What is there at the peak, largest first. */
function peakTable(page) {
  const m = page.memory, rows = m.blocks.filter(b => b.first <= m.peak_layer && m.peak_layer <= b.last).sort((a, b) => b.bytes - a.bytes);
  return make("div", { class: "scroll" }, make("table", {},
    make("tr", {}, ...["value", "bytes", "made by", "layers"].map((h, i) => make("th", { class: i === 1 ? "num" : "" }, h))),
    rows.map(b => make("tr", {}, make("td", { class: "mono" }, b.name), make("td", { class: "num" }, b.bytes.toLocaleString("en")),
      make("td", {}, b.kernel === undefined ? "the caller" : page.link(b.kernel, b.kind === "scratch" ? "scratch of " : "")),
      make("td", { class: "short" }, b.first === b.last ? String(b.first) : b.first + " to " + b.last)))));
}

/* --- timeline --- */

function timelineChart(page, said, stretch) {
  const t = page.timeline, row = 26;
  return chart(visible => {
    const width = Math.max(visible, 1) * stretch(), w = width - LEFT - RIGHT, height = t.workers * row + 30;
    const x = at => LEFT + w * at / Math.max(t.length, 1e-9);
    const svg = draw("svg", { style: `width:${width}px`, height, role: "img", "aria-label": "What the workers do when" });
    for (let k = 0; k < t.workers; k++)
      svg.append(draw("text", { x: 0, y: 20 + k * row }, "worker " + k),
                 draw("line", { class: "axis", x1: LEFT, x2: LEFT + w, y1: 3 + (k + 1) * row, y2: 3 + (k + 1) * row }));
    for (const [worker, start, length, kernel] of merged(t.tasks)) {
      const left = x(start), wide = Math.max(x(start + length) - left, 0.6), top = 5 + worker * row;
      const text = page.label(kernel) + ": " + page.amountText(length) + " from " + page.amountText(start);
      svg.append(draw("rect", { class: "task", x: left, y: top, width: wide, height: row - 6, fill: `var(--k${page.kindOf(kernel)})`,
        "fill-opacity": page.known ? 1 : 0.55, mouseenter: () => { said.textContent = text; }, click: () => page.open(kernel) },
        draw("title", {}, text)));
      const name = insideText(shortKind(page.kernels[kernel].kind), left, top, wide, row - 6);
      if (name) {
        name.classList.toggle("on-solid", page.known);
        svg.append(name);
      }
    }
    const ticks = w < 360 ? 1 : w < 560 ? 2 : 4; // as many as do not touch
    for (let i = 0; i <= ticks; i++)
      svg.append(draw("text", { x: x(t.length * i / ticks), y: height - 8, "text-anchor": i === 0 ? "start" : i === ticks ? "end" : "middle" },
        page.amountText(t.length * i / ticks)));
    return svg;
  });
}

/* Parts of one kernel that one worker takes one behind the other are one bar. */
function merged(tasks) {
  const out = [], last = new Map();
  for (const [worker, start, length, kernel] of tasks) {
    const before = last.get(worker);
    if (before && before[3] === kernel && Math.abs(before[1] + before[2] - start) < 1e-6 * (1 + start)) {
      before[2] += length;
      continue;
    }
    const bar = [worker, start, length, kernel];
    last.set(worker, bar);
    out.push(bar);
  }
  return out;
}
