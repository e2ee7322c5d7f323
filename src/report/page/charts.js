// Roofline, timeline, memory.
const W = 1000;

function ticks(low, high) {  // powers of ten between
  const list = [];
  for (let p = Math.ceil(Math.log10(low)); p <= Math.floor(Math.log10(high)); ++p) list.push(10 ** p);
  return list;
}

function roofline(index) {
  const m = models[index];
  if (!m.profile) return h("p", { class: "none" }, whyNot(m));
  const limits = m.profile.limits, reads = limits.reads.filter((r) => r.gb_per_s > 0), H = 460, left = 62, bottom = 40;
  const dots = m.launches.filter((l) => l.ms > 0 && l.flop > 0 && launchBytes(l) > 0)
    .map((l) => ({ l, x: l.flop / launchBytes(l), y: l.flop / l.ms * 1e-6 }));
  if (!dots.length || !reads.length) return h("p", { class: "none" }, "no launch computes and moves something, or no read rate was measured");
  const top = Math.max(limits.fma_gflop_per_s || 0, ...dots.map((d) => d.y)) * 1.6, least = Math.min(...dots.map((d) => d.y)) / 2;
  const x0 = Math.min(...dots.map((d) => d.x)) / 2, x1 = Math.max(...dots.map((d) => d.x), (limits.fma_gflop_per_s || 1) / reads[reads.length - 1].gb_per_s) * 2;
  const X = (v) => left + (W - left - 14) * Math.log(v / x0) / Math.log(x1 / x0), Y = (v) => H - bottom - (H - bottom - 12) * Math.log(v / least) / Math.log(top / least);
  const svg = s("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "roofline: GFLOP/s against FLOP per byte" });
  for (const t of ticks(x0, x1)) svg.append(s("line", { class: "grid", x1: X(t), x2: X(t), y1: 12, y2: H - bottom }), s("text", { class: "axis", x: X(t), y: H - bottom + 16, "text-anchor": "middle" }, t));
  for (const t of ticks(least, top)) svg.append(s("line", { class: "grid", x1: left, x2: W - 14, y1: Y(t), y2: Y(t) }), s("text", { class: "axis", x: left - 6, y: Y(t) + 4, "text-anchor": "end" }, t));
  svg.append(s("text", { class: "axis", x: W - 14, y: H - 6, "text-anchor": "end" }, "FLOP per byte read and written"), s("text", { class: "axis", x: 6, y: 10 }, "GFLOP/s"));
  const peak = limits.fma_gflop_per_s || top;
  for (const [i, r] of reads.entries()) {
    if (i + 1 < reads.length && r.gb_per_s < reads[i + 1].gb_per_s * 1.15) continue;  // the next level is as fast
    const from = Math.max(x0, least / r.gb_per_s), to = Math.min(x1, peak / r.gb_per_s);
    if (to <= from) continue;
    svg.append(s("line", { class: "roof level", x1: X(from), y1: Y(from * r.gb_per_s), x2: X(to), y2: Y(to * r.gb_per_s) }));
    const at = Math.exp(Math.log(from) * 0.5 + Math.log(to) * 0.5), slope = Math.atan2(Y(to * r.gb_per_s) - Y(from * r.gb_per_s), X(to) - X(from)) * 180 / Math.PI;
    svg.append(s("text", { class: "axis", x: 0, y: 0, transform: `translate(${X(at)} ${Y(at * r.gb_per_s) - 4}) rotate(${slope.toFixed(1)})`, "text-anchor": "middle" }, `${digits(r.gb_per_s)} GB/s up to ${bytesText(r.bytes)}`));
  }
  if (limits.fma_gflop_per_s) svg.append(s("line", { class: "roof", x1: X(Math.max(x0, peak / reads[0].gb_per_s)), x2: X(x1), y1: Y(peak), y2: Y(peak) }), s("text", { class: "axis", x: X(x1), y: Y(peak) - 5, "text-anchor": "end" }, `multiply-adds in registers: ${digits(peak)} GFLOP/s`));
  const marks = dots.sort((a, b) => b.l.share - a.l.share).map(({ l, x, y }) => {
    const r = 3 + 22 * Math.sqrt(l.share), title = s("title", {}, `${l.name}\n${msText(l.ms)}, ${percentText(l.share_of_roof)} of its roof, bound by ${l.bound}`);
    const choose = () => select(index, { launch: l.id }, "chart");
    const mark = l.bound === "memory" ? s("circle", { class: "dot", cx: X(x), cy: Y(y), r, onclick: choose }, title)
      : s("rect", { class: "dot fma", x: X(x) - r * 0.9, y: Y(y) - r * 0.9, width: r * 1.8, height: r * 1.8, onclick: choose }, title);
    svg.append(mark);
    return { mark, l };
  });
  onSelect(() => { for (const { mark, l } of marks) mark.classList.toggle("on", selection.model === index && selection.launch === l.id); });
  return h("div", {}, svg, h("div", { class: "legend" },
    h("span", {}, s("svg", { viewBox: "0 0 12 12" }, s("circle", { class: "dot", cx: 6, cy: 6, r: 5 })), " bound by memory"),
    h("span", {}, s("svg", { viewBox: "0 0 12 12" }, s("rect", { class: "dot fma", x: 1, y: 1, width: 10, height: 10 })), " bound by multiply-adds"),
    h("span", {}, "area: share of the time"), h("span", {}, "Winograd counts the FLOP of direct convolution and may pass the roof")));
}

function timeline(index) {
  const m = models[index], t = m.timeline;
  if (!t) return h("p", { class: "none" }, whyNot(m));
  const rows = Math.max(1, t.threads), left = 74, row = 30, H = 46 + (rows + 1) * row;
  const parts = t.parts.map((p) => ({ launch: p[0], worker: p[1], part: p[2], begin: p[3], end: p[4], busy: p[5] }));
  const calls = [];
  for (const p of parts) {
    const last = calls[calls.length - 1];
    if (last && last.launch === p.launch) last.end = Math.max(last.end, p.end);
    else calls.push({ launch: p.launch, begin: p.begin, end: p.end, worker: -1 });
  }
  if (!parts.length) t.launch_ns.reduce((at, ns, launch) => (calls.push({ launch, begin: at, end: at + ns, worker: -1 }), at + ns), 0);
  let from = 0, to = t.total_ns;
  const svg = s("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, tabindex: 0, role: "img", "aria-label": `timeline of one run, ${msText(t.total_ns * 1e-6)}, ${t.threads} threads` });
  const X = (ns) => left + (W - left - 8) * (ns - from) / (to - from), Y = (worker) => 8 + (worker + 1) * row;
  function draw() {
    const paths = { part0: "", part1: "", partsel: "" }, labels = [];
    for (const p of [...calls, ...parts]) {
      if (p.end < from || p.begin > to) continue;
      const x = Math.max(left, X(p.begin)), w = Math.max(0.4, Math.min(W - 8, X(p.end)) - x);
      const cls = selection.model === index && selection.launch === p.launch ? "partsel" : "part" + p.launch % 2;
      paths[cls] += `M${x.toFixed(2)} ${Y(p.worker)}h${w.toFixed(2)}v${row - 6}h${(-w).toFixed(2)}z`;
      if (p.worker < 0 && w > 60) labels.push(s("text", { x: x + 3, y: Y(-1) + 16, style: "pointer-events:none" }, m.launches[p.launch].name.slice(0, Math.floor(w / 6.5))));
    }
    const names = ["launches", ...Array.from({ length: t.threads }, (_, i) => "worker " + i)].map((name, i) => s("text", { class: "axis", x: 4, y: Y(i - 1) + 16 }, name));
    const marks = [];
    for (let i = 0; i <= 5; ++i) {
      const ns = from + (to - from) * i / 5;
      marks.push(s("line", { class: "grid", x1: X(ns), x2: X(ns), y1: 4, y2: H - 30 }), s("text", { class: "axis", x: X(ns), y: H - 12, "text-anchor": i === 5 ? "end" : "middle" }, msText(ns * 1e-6)));
    }
    svg.replaceChildren(...marks, ...Object.entries(paths).map(([cls, d]) => s("path", { class: cls, d })), ...labels, ...names);
  }
  const spot = (e) => {
    const box = svg.getBoundingClientRect(), x = (e.clientX - box.left) * W / box.width, y = (e.clientY - box.top) * W / box.width;
    return { ns: from + (to - from) * (x - left) / (W - left - 8), worker: Math.floor((y - 8) / row) - 1 };
  };
  const at = (e) => { const { ns, worker } = spot(e); return (worker < 0 ? calls : parts).find((p) => p.worker === worker && p.begin <= ns && ns <= p.end); };
  const zoom = (factor, centre) => {
    const length = Math.min(t.total_ns, Math.max(200, (to - from) * factor)), share = (centre - from) / (to - from);
    from = Math.max(0, Math.min(t.total_ns - length, centre - share * length));
    to = from + length;
    draw();
  };
  svg.addEventListener("wheel", (e) => { if (e.ctrlKey || e.metaKey) { zoom(Math.exp(e.deltaY * 0.003), spot(e).ns); e.preventDefault(); } }, { passive: false });
  svg.addEventListener("click", (e) => { const p = at(e); if (p) select(index, { launch: p.launch }, "chart"); });
  const told = h("span", { class: "lead", "aria-live": "polite" });
  svg.addEventListener("mousemove", (e) => {
    const p = at(e);
    told.textContent = p ? `${m.launches[p.launch].name}: ${p.part == null ? "" : (t.merged ? "parts, " : "part " + p.part + ", ")}${msText((p.end - p.begin) * 1e-6)}${p.busy == null ? "" : " (" + msText(p.busy * 1e-6) + " busy)"}` : "waiting";
  });
  svg.addEventListener("keydown", (e) => {
    const middle = (from + to) / 2, step = (to - from) * 0.2;
    if (e.key === "+" || e.key === "=") zoom(0.6, middle);
    else if (e.key === "-") zoom(1 / 0.6, middle);
    else if (e.key === "0") { from = 0; to = t.total_ns; draw(); }
    else if (e.key === "ArrowLeft" || e.key === "ArrowRight") { const d = e.key === "ArrowLeft" ? -Math.min(step, from) : Math.min(step, t.total_ns - to); from += d; to += d; draw(); }
    else return;
    e.preventDefault(); e.stopPropagation();
  });
  onSelect(draw);
  draw();
  const busy = Array(rows).fill(0);
  for (const p of parts) busy[p.worker] += p.busy ?? p.end - p.begin;
  const button = (text, label, act) => h("button", { title: label, "aria-label": label, onclick: act }, text);
  return h("div", {}, h("div", { class: "bar" }, button("+", "zoom in", () => zoom(0.6, (from + to) / 2)), button("−", "zoom out", () => zoom(1 / 0.6, (from + to) / 2)),
    button("all", "whole run", () => { from = 0; to = t.total_ns; draw(); }), told), svg,
  h("p", { class: "lead" }, parts.length ? `One run of ${msText(t.total_ns * 1e-6)}, the median of those recorded part by part; ${t.recorded_parts} parts` +
    (t.merged ? ", those of a launch on one worker drawn as one (--timeline-parts)" : "") + `. Busy: ${busy.map((b, i) => `worker ${i} ${percentText(b / t.total_ns)}`).join(", ")}.`
    : "Parts are not recorded on this device: launches one after the other, by the device's own clock."));
}

function memoryChart(index) {
  const m = models[index], memory = m.memory, count = m.launches.length, H = 340, left = 74, bottom = 34;
  if (!memory.arena_bytes) return h("p", { class: "none" }, "The model needs no memory between its launches.");
  const X = (l) => left + (W - left - 8) * l / count, Y = (b) => H - bottom - (H - bottom - 10) * b / memory.arena_bytes;
  const svg = s("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "arena: buffers by address over the launches" });
  for (let i = 0; i <= 4; ++i) {
    const b = memory.arena_bytes * i / 4;
    svg.append(s("line", { class: "grid", x1: left, x2: W - 8, y1: Y(b), y2: Y(b) }), s("text", { class: "axis", x: left - 6, y: Y(b) + 4, "text-anchor": "end" }, bytesText(b)));
  }
  const group = s("g");
  const choose = (b) => select(index, { launch: b.first }, "chart");
  for (const b of memory.blocks)
    group.append(s("rect", { class: "block", x: X(b.first), width: Math.max(1, X(b.last + 1) - X(b.first)), y: Y(b.offset + b.bytes), height: Math.max(1, Y(b.offset) - Y(b.offset + b.bytes)),
      "data-first": b.first, onclick: () => choose(b) }, s("title", {}, `${b.name}: ${bytesText(b.bytes)} at ${b.offset}, launches ${b.first} to ${b.last}`)));
  let d = "";
  memory.live.forEach((bytes, l) => { d += `${l ? "L" : "M"}${X(l).toFixed(1)} ${Y(bytes).toFixed(1)}H${X(l + 1).toFixed(1)}`; });
  svg.append(group, s("path", { class: "live", d }), s("text", { class: "axis", x: W - 8, y: H - 6, "text-anchor": "end" }, `${count} launches in their order`));
  onSelect(() => { for (const e of group.childNodes) e.classList.toggle("on", selection.model === index && +e.dataset.first === selection.launch); });
  const peak = Math.max(...memory.live);
  return h("div", {}, svg, h("p", { class: "lead" }, `Boxes are buffers: across, the launches that need them; up, their addresses. The line is what is in use: ${bytesText(peak)} at most, of an arena of ` +
    `${bytesText(memory.arena_bytes)}; without sharing ${bytesText(memory.intermediate_bytes)}. Constants ${bytesText(memory.constant_bytes)}, code ${bytesText(memory.code_bytes)}.`));
}
