// Sections, details, search, keys. Sections are drawn when they come near.
const main = document.getElementById("main"), detail = document.getElementById("detail");
for (const m of models) {
  m.launches.forEach((l, i) => { l.id = i; });
  (m.missed || []).forEach((r, i) => { r.rank = i + 1; });
}

function cards(index) {
  const m = models[index], p = m.profile, card = (value, name) => h("div", { class: "card" }, h("b", {}, value), h("span", {}, name));
  const kernels = new Set(m.launches.map((l) => l.kernel)).size, total = (f) => m.launches.reduce((sum, l) => sum + f(l), 0);
  const floor = p ? total((l) => l.floor_ms || 0) : 0, groups = m.units.filter((u) => u.nodes.length > 1 && u.pattern).length;
  const w = m.work;
  return h("div", { class: "cards" },
    card(p ? msText(p.latency_ms ?? p.recorded_ms) : "-", p ? `a run, mean (${m.target}, ${plural(p.limits.threads, "thread")})` : whyNot(m)),
    card(p ? percentText(floor / p.sum_ms) : "-", p ? "of the roof, all launches together" : "share of the roof: " + NONE),
    card(w ? `${w.source_nodes} → ${m.launches.length}` : String(m.launches.length), w ? "nodes of the model → launches" : "launches"),
    card(String(kernels), "different kernels"),
    card(String(groups), "groups of several nodes"),
    w && card(`${bytesText(w.activation_bytes.before)} → ${bytesText(w.activation_bytes.after)}`, "activations read and written, before → after"),
    card(flopText(total((l) => l.flop)), `work of a run, moving ${bytesText(total(launchBytes))}`),
    card(bytesText(m.memory.arena_bytes), `arena; ${bytesText(m.memory.intermediate_bytes)} without sharing`),
    card(bytesText(m.memory.constant_bytes), `constants; code ${bytesText(m.memory.code_bytes)}`),
    card(m.proof ? (m.proof.ok ? "equal" : "NOT EQUAL") : "-", m.proof ? `proven: ${m.proof.groups} groups, ${m.proof.outputs.map((o) => `${o.name} off by ${errorText(o.relative)} of max`).join(", ")}` : "not proven in this report (--compare)"));
}

function graphs(host) {
  const drawable = models.filter((m) => m.before).length;
  if (!drawable) { host.append(h("p", { class: "none" }, models.map((m) => m.no_graph).join("; "))); return; }
  const bar = h("div", { class: "bar" }), cols = h("div", { class: "cols two" });
  const modes = models.length > 1 ? ["before", "after"] : ["both", "before", "after"];
  const draw = (mode) => {
    cols.replaceChildren();
    panes.length = 0;
    cols.classList.toggle("two", models.length > 1 || mode === "both");
    for (const b of bar.querySelectorAll("button")) b.setAttribute("aria-pressed", b.textContent === mode);
    models.forEach((m, i) => {
      if (!m.before) { cols.append(h("p", { class: "none" }, m.no_graph)); return; }
      for (const which of mode === "both" ? ["before", "after"] : [mode]) {
        const col = h("div", { class: "col" });
        cols.append(col);
        const g = m[which], name = `${models.length > 1 ? m.short + ", " : ""}${which}: ${g.nodes.filter((n) => n.kind === "node").length} nodes`;
        panes.push(new GraphPane(i, which, col, name));
      }
    });
  };
  for (const mode of modes) bar.append(h("button", { onclick: () => draw(mode) }, mode));
  host.append(bar, cols, h("div", { class: "legend" }, [0, 1, 2, 3, 4].map((i) => h("span", {}, h("i", { style: `background:var(--h${i})` }), ["up to 20 %", "40 %", "60 %", "80 %", "of the slowest group's time"][i])),
    h("span", {}, "dashed: nothing computes it (folded, removed, or only a shape)")));
  draw(models.length > 1 || innerWidth < 900 ? "before" : "both");
}
const panes = [];

function machine(host) {
  const r = report.machine, row = (name, value) => [h("dt", {}, name), h("dd", {}, value)];
  const limits = models.filter((m) => m.profile).map((m) => m.profile.limits)[0];
  host.append(h("div", { class: "scroll" }, h("table", {}, h("tbody", {}, [
    ["processor", r.processor], ["system", r.system], ["features", r.cpu_features.join(", ")], ["threads", `${r.threads} available`],
    ["multiply-adds", limits ? limits.fma_gflop_per_s ? `${digits(limits.fma_gflop_per_s)} GFLOP/s in registers, ${limits.vector_bytes * 8} bits, ${plural(limits.threads, "thread")}` : NONE : whyNot(models[0])],
    ["reads", limits ? limits.reads.map((l) => `${digits(l.gb_per_s)} GB/s up to ${bytesText(l.bytes)}`).join(", ") : whyNot(models[0])],
    ["opfuse", report.opfuse], ["made", report.made], ["command", report.command],
    ...models.map((m) => [m.name, `target ${m.target}, seed ${m.seed}, dims ${JSON.stringify(m.dims)}${m.profile ? `, ${plural(m.profile.runs, "recorded run")}` : ""}; from ${m.source.name || m.name} ${m.source.hash}`]),
  ].map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "w" }, value)))))));
  for (const m of models) if (m.notes.length) host.append(h("details", {}, h("summary", {}, `${plural(m.notes.length, "note")} of the compiler on ${m.short}`), h("ul", {}, m.notes.map((n) => h("li", {}, n)))));
}

const perModel = (make) => (host) => {
  const cols = h("div", { class: models.length > 1 ? "cols two" : "cols" });
  models.forEach((m, i) => cols.append(h("div", { class: "col" }, models.length > 1 ? h("h3", {}, m.name) : null, make(i))));
  host.append(cols);
};
const SECTIONS = [
  { id: "summary", name: "Summary", draw: perModel(cards) },
  { id: "graph", name: "Graph", lead: "Before: the model's nodes, a frame around those that became one group. After: the groups. A click shows what is known of a node, here and in every chart.", draw: graphs, height: 700 },
  { id: "missed", name: "Not fused", lead: "What is stored and read again, or was nearly fused, by the bytes that costs. At read limit: these bytes at the measured rate of the memory that holds them, the most that fusing could gain.", draw: perModel(missedTable), height: 500 },
  { id: "launches", name: "Launches", lead: "Every kernel launch in its order. A row opens its schedule, its source nodes and its assembly.", draw: perModel(launchTable), height: 600 },
  { id: "roofline", name: "Roofline", lead: "Where each launch stands between what memory and arithmetic allow; both were measured in the same run.", draw: perModel(roofline), height: 480 },
  { id: "timeline", name: "Timeline", lead: "Which worker ran which part, and when. Gaps are waiting.", draw: perModel(timeline), height: 200 },
  { id: "memory", name: "Memory", draw: perModel(memoryChart), height: 400 },
  { id: "precision", name: "Precision", lead: "Types of what each launch reads and stores, how convolutions are computed, and with --compare the error of each group against the interpreter in doubles.", draw: perModel(precisionTable), height: 500 },
  { id: "machine", name: "Machine", draw: machine, height: 200 },
];

const nav = document.getElementById("nav"), sections = new Map();
function drawSection(id) {
  const section = sections.get(id);
  if (section.drawn) return;
  section.drawn = true;
  section.element.style.minHeight = "";
  section.draw(section.element);
  if (selection.unit >= 0) for (const listener of listeners) listener(null);
}
for (const [i, section] of SECTIONS.entries()) {
  const element = h("section", { id: section.id, "aria-labelledby": section.id + "-name", style: `min-height:${section.height || 0}px` },
    h("h2", { id: section.id + "-name" }, section.name), section.lead ? h("p", { class: "lead" }, section.lead) : null);
  sections.set(section.id, { ...section, element, drawn: false });
  main.append(element);
  nav.append(h("a", { href: "#" + section.id, title: `key ${i + 1}` }, section.name));
}
const nearby = new IntersectionObserver((entries) => { for (const e of entries) if (e.isIntersecting) { drawSection(e.target.id); nearby.unobserve(e.target); } }, { rootMargin: "400px" });
const current = new IntersectionObserver((entries) => {
  for (const e of entries) if (e.isIntersecting) for (const a of nav.children) a.setAttribute("aria-current", a.hash === "#" + e.target.id);
}, { rootMargin: "-100px 0px -70% 0px" });
for (const { element } of sections.values()) { nearby.observe(element); current.observe(element); }

function go(id) { drawSection(id); document.getElementById(id).scrollIntoView(); }

// details
function valueList(m, which, list, others) {
  const g = m[which];
  return h("ul", {}, list.map((v) => {
    const value = g.values[v], why = (m.missed || []).find((r) => r.kind === "tensor" && r.what === value.name);
    return h("li", {}, value.name, " ", h("code", {}, value.type), value.constant ? " constant" : "", value.bytes == null ? "" : ` ${bytesText(value.bytes)}`,
      others && why ? h("div", { class: "lead" }, "not fused with its readers: ", h("code", {}, why.code), " ", why.message) : null);
  }));
}
function definition(rows) { return h("dl", {}, rows.filter((r) => r && r[1] != null && r[1] !== "").map(([k, v]) => [h("dt", {}, k), h("dd", {}, v)])); }

function launchDetail(index, id) {
  const m = models[index], l = m.launches[id];
  return [h("h3", {}, "Launch ", id, ": ", l.name), definition([
    ["time", l.ms == null ? whyNot(m) : `${msText(l.ms)}, ${percentText(l.share)} of the run`],
    ["roof", l.share_of_roof == null ? null : `${percentText(l.share_of_roof)}; ${msText(l.floor_ms)} possible, bound by ${l.bound === "fma" ? "multiply-adds" : "memory"}`],
    ["work", `${flopText(l.flop)}${l.ms ? `, ${digits(l.flop / l.ms * 1e-6)} GFLOP/s` : ""}`],
    ["moves", `${bytesText(l.bytes_read)} read, ${bytesText(l.bytes_written)} written${l.ms ? `, ${digits(launchBytes(l) / l.ms * 1e-6)} GB/s` : ""}`],
    ["parts", l.parts], ["scratch", l.scratch_bytes ? bytesText(l.scratch_bytes) + " per thread" : null],
    ["pattern", l.pattern || "a single operator"], ["schedule", h("code", {}, l.schedule)], ["kernel", h("code", {}, l.kernel)],
    ["types", l.precision ? `reads ${l.precision.inputs.join(", ") || "-"}, constants ${l.precision.constants.join(", ") || "-"}, stores ${l.precision.outputs.join(", ") || "-"}` : null],
    ["algorithm", l.algorithm ? `${l.algorithm.name}: ${l.algorithm.reason}` : null],
    ["error", l.error ? `${errorText(l.error.relative)} of max, ${digits(l.error.of_bound)} of its bound, ${l.error.ok ? "ok" : "FAILED " + l.error.problem}` : null],
  ]), textButton(m, l)];
}

function showDetail() {
  const { model: index, unit, launch, node } = selection, m = models[index];
  const parts = [h("button", { class: "close", "aria-label": "close details", onclick: closeDetail }, "Close")];
  const viewNode = node ? m[node.which].nodes[node.at] : null;
  parts.push(h("h2", {}, unit >= 0 ? m.units[unit].pattern || m.units[unit].label : viewNode ? viewNode.operator || viewNode.name : "Launch"));
  if (launch >= 0) parts.push(...launchDetail(index, launch));
  if (viewNode && node.which === "before") {
    parts.push(h("h3", {}, "Node ", viewNode.name), definition([["operator", viewNode.operator || "not kept in an .opf"], ["attributes", viewNode.text], ["runs in", viewNode.kind !== "node" ? null : unit < 0 ? "nothing: folded into constants, removed, or only a shape" : m.units[unit].label]]),
      viewNode.reads.length ? [h("b", {}, "reads"), valueList(m, "before", viewNode.reads)] : null, viewNode.results.length ? [h("b", {}, "stores"), valueList(m, "before", viewNode.results)] : null);
  }
  if (unit >= 0) {
    const u = m.units[unit], after = m.after ? m.after.nodes.find((n) => n.unit === unit) : null;
    parts.push(h("h3", {}, u.nodes.length > 1 ? "Group " : "Unit ", u.label), definition([["saves", u.bytes_saved ? bytesText(u.bytes_saved) + " of stores and loads inside" : null],
      ["launches", u.launches.length > 1 ? u.launches.map((l) => h("button", { class: "link", onclick: () => select(index, { launch: l, unit }, "detail") }, `#${l} `)) : u.launches.length ? null : "none: it moves nothing"]]));
    if (after) parts.push(h("b", {}, "reads"), valueList(m, "after", after.reads), h("b", {}, "stores"), valueList(m, "after", after.results, true));
    parts.push(h("b", {}, plural(u.nodes.length, "source node")), h("ul", {}, u.nodes.map((name) => {
      const at = m.before ? m.before.nodes.findIndex((n) => n.name === name && n.kind === "node") : -1;
      return h("li", {}, at < 0 ? name : h("button", { class: "link", onclick: () => select(index, { unit, node: { which: "before", at } }, "detail") }, name));
    })));
  }
  if (viewNode && viewNode.kind === "node" && m.missed && m.name) parts.push(h("h3", {}, "Why it is fused as it is"), commandLine(m, "opfuse explain MODEL --node " + shellQuoted(viewNode.name)));
  detail.replaceChildren(...parts.flat(Infinity).filter((p) => p));
  detail.hidden = false;
  document.body.classList.add("open");
}
function closeDetail() {
  detail.hidden = true;
  document.body.classList.remove("open");
}
onSelect(() => showDetail());

// search
const search = document.getElementById("search"), found = document.getElementById("found");
let hits = [], chosen = 0;
function findAll(word) {
  const words = word.toLowerCase().split(/\s+/).filter(Boolean), list = [];
  const fits = (text) => { const low = text.toLowerCase(); return words.every((w) => low.includes(w)); };
  if (!words.length) return list;
  models.forEach((m, model) => {
    const tag = models.length > 1 ? m.short + " " : "";
    m.launches.forEach((l, launch) => { if (fits(`${l.name} ${l.pattern} ${l.kernel}`)) list.push({ text: l.name, kind: tag + "launch", go: () => select(model, { launch }, "search") }); });
    if (m.before) m.before.nodes.forEach((n, at) => {
      if (fits(`${n.name} ${n.operator} ${n.results.map((v) => m.before.values[v].name).join(" ")}`)) list.push({ text: n.name, kind: `${tag}${n.operator || "node"}`, go: () => select(model, { unit: n.unit, node: { which: "before", at } }, "search") });
    });
  });
  return list;
}
function showHits() {
  found.hidden = !hits.length && !search.value;
  search.setAttribute("aria-expanded", !found.hidden);
  const most = 60;
  found.replaceChildren(...hits.slice(0, most).map((hit, i) => h("li", { role: "option", id: "hit" + i, "aria-selected": i === chosen, onclick: () => take(i) }, hit.text, h("small", {}, hit.kind))),
    ...(hits.length > most ? [h("li", { class: "none" }, `and ${hits.length - most} more`)] : []), ...(!hits.length ? [h("li", { class: "none" }, "nothing found")] : []));
  if (hits.length) search.setAttribute("aria-activedescendant", "hit" + chosen);
}
function take(i) {
  const hit = hits[i];
  found.hidden = true;
  if (!hit) return;
  go("graph");
  hit.go();
}
search.addEventListener("input", () => { hits = findAll(search.value); chosen = 0; showHits(); if (!search.value) found.hidden = true; });
search.addEventListener("keydown", (e) => {
  if (e.key === "ArrowDown" || e.key === "ArrowUp") { chosen = Math.max(0, Math.min(hits.length - 1, chosen + (e.key === "ArrowDown" ? 1 : -1))); showHits(); document.getElementById("hit" + chosen)?.scrollIntoView({ block: "nearest" }); e.preventDefault(); }
  else if (e.key === "Enter") take(chosen);
  else if (e.key === "Escape") { found.hidden = true; search.blur(); }
  e.stopPropagation();
});
document.addEventListener("click", (e) => { if (!found.contains(e.target) && e.target !== search) found.hidden = true; });

// theme, download, keys
function nextTheme() {
  const root = document.documentElement, order = ["", "dark", "light"], now = order.indexOf(root.dataset.theme || "");
  const next = order[(now + 1) % 3];
  if (next) root.dataset.theme = next; else delete root.dataset.theme;
  document.getElementById("theme").textContent = next ? "Theme: " + next : "Theme";
}
document.getElementById("theme").addEventListener("click", nextTheme);
document.getElementById("help").addEventListener("click", () => document.getElementById("keys").showModal());
document.getElementById("download").addEventListener("click", () => {
  const url = URL.createObjectURL(new Blob([document.getElementById("data").textContent], { type: "application/json" }));
  h("a", { href: url, download: "report.json" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
});
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || /INPUT|SELECT|TEXTAREA/.test(e.target.tagName)) return;
  const step = (d) => { const m = models[selection.model], n = m.launches.length; select(selection.model, { launch: Math.max(0, Math.min(n - 1, selection.launch < 0 ? 0 : selection.launch + d)) }, "key"); };
  if (e.key === "/") { search.focus(); search.select(); }
  else if (e.key === "?") document.getElementById("keys").showModal();
  else if (e.key === "j") step(1);
  else if (e.key === "k") step(-1);
  else if (e.key === "t") nextTheme();
  else if (e.key === "a") document.getElementById("show-text")?.click();
  else if (e.key === "Escape") closeDetail();
  else if (e.key >= "1" && e.key <= "9") go(SECTIONS[+e.key - 1].id);
  else return;
  e.preventDefault();
});

document.getElementById("title").textContent = models.map((m) => m.name).join("  and  ");
drawSection("summary");
requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.ready = performance.now().toFixed(0); }));
