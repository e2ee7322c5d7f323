// Tables: sorted by a click on a heading, rows that select.
/// columns: { head, cell(row) -> text or element, value(row) for sorting, n: numbers, w: wide }. rowOf(row): { model, unit, launch }.
const ROWS_ON_PAPER = 200;
function table(columns, rows, options = {}) {
  let order = rows, at = options.sort ?? -1, down = true, most = options.most ?? Infinity;
  const body = h("tbody");
  const head = h("tr", {}, columns.map((c, i) => h("th", { class: c.n ? "n" : null, scope: "col" },
    c.value ? h("button", { onclick: () => { down = at === i ? !down : !!c.n; at = i; draw(); } }, c.head) : c.head)));
  const cut = h("p", { class: "none on-paper" }), more = h("button", { onclick: () => { most = Infinity; draw(); } });
  const box = h("div", {}, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": options.label }, h("table", {}, h("thead", {}, head), body)), more, cut);
  function draw() {
    order = rows.slice();
    if (at >= 0) {
      const value = columns[at].value;
      order.sort((a, b) => { const x = value(a) ?? -Infinity, y = value(b) ?? -Infinity; return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1); });
      head.childNodes.forEach((th, i) => i === at ? th.setAttribute("aria-sort", down ? "descending" : "ascending") : th.removeAttribute("aria-sort"));
    }
    body.replaceChildren(...order.slice(0, most).map((row) => {
      const target = options.rowOf && options.rowOf(row);
      const choose = () => target && select(target.model, target, "table");
      return h("tr", target ? { tabindex: 0, "data-launch": target.launch, "data-unit": target.unit, "data-model": target.model, onclick: choose,
        onkeydown: (e) => { if (e.key === "Enter" && e.target.tagName === "TR") choose(); } } : {},
        columns.map((c) => h("td", { class: c.n ? "n" : c.w ? "w" : null }, c.cell(row))));
    }));
    more.hidden = order.length <= most;
    more.textContent = `all ${order.length} rows`;
    cut.textContent = more.hidden ? "" : `${most} of ${order.length} rows; the page on a screen has all of them`;
    mark();
  }
  function mark() {
    for (const tr of body.children) {
      const on = tr.dataset.model != null && +tr.dataset.model === selection.model &&
        (tr.dataset.launch != null ? +tr.dataset.launch === selection.launch : isSelected(selection.model, +tr.dataset.unit));
      tr.classList.toggle("on", on);
    }
  }
  onSelect((from) => {
    mark();
    const on = from !== "table" && body.querySelector("tr.on"), scroll = box.firstChild;
    if (on) scroll.scrollTop = on.offsetTop - scroll.clientHeight / 2;
  });
  beforePrint.push(() => { most = Math.max(most, ROWS_ON_PAPER); draw(); });
  draw();
  box.setRows = (now) => { rows = now; draw(); };
  return box;
}

function launchTable(index) {
  const m = models[index], widest = Math.max(...m.launches.map((l) => l.share || 0), 1e-9);
  const columns = [
    { head: "#", n: true, cell: (l) => l.id, value: (l) => l.id },
    { head: "time", n: true, cell: (l) => l.ms == null ? "-" : msText(l.ms), value: (l) => l.ms },
    { head: "share", cell: (l) => l.share == null ? "-" : [h("span", { class: "share", style: `width:${(60 * l.share / widest).toFixed(1)}px` }), percentText(l.share)], value: (l) => l.share, n: true },
    { head: "kernel", w: true, cell: (l) => l.name, value: (l) => l.name },
    { head: "bytes", n: true, cell: (l) => bytesText(launchBytes(l)), value: launchBytes },
    { head: "FLOP", n: true, cell: (l) => flopText(l.flop), value: (l) => l.flop },
    { head: "of roof", n: true, cell: (l) => l.share_of_roof == null ? "-" : percentText(l.share_of_roof), value: (l) => l.share_of_roof },
    { head: "bound", cell: (l) => l.bound || "-", value: (l) => l.bound },
    { head: "nodes", n: true, cell: (l) => l.nodes.length, value: (l) => l.nodes.length },
  ];
  return table(columns, m.launches, { label: "launches", rowOf: (l) => ({ model: index, launch: l.id, unit: l.unit }), most: 400 });
}

function commandLine(m, command) {
  const text = command.replace("MODEL", shellQuoted(m.name.replace(/ \(unfused\)$/, "")));
  const copy = h("button", { title: "copy", onclick: async (e) => {
    e.stopPropagation();
    try { await navigator.clipboard.writeText(text); copy.textContent = "copied"; } catch { getSelection().selectAllChildren(code); copy.textContent = "selected"; }
  } }, "copy");
  const code = h("code", {}, text);
  return h("div", { class: "command" }, code, copy);
}

const KINDS = { tensor: "stored and read again", candidate: "group declined", near: "pattern nearly matched", launches: "launches left apart" };
function missedTable(index) {
  const m = models[index];
  if (!m.missed) return h("p", { class: "none" }, "An .opf has its verdicts, but no sizes: give the model it was compiled from.");
  if (/ \(unfused\)$/.test(m.name)) return h("p", { class: "none" }, "Compiled without fusion, to compare: a launch for each operator.");
  if (!m.missed.length) return h("p", {}, "Nothing: every edge is inside a group.");
  const kinds = Object.keys(KINDS).filter((k) => m.missed.some((r) => r.kind === k)), on = new Set(kinds);
  const unitOf = new Map();
  m.units.forEach((u, i) => u.nodes.forEach((n) => unitOf.has(n) || unitOf.set(n, i)));
  const columns = [
    { head: "rank", n: true, cell: (r) => r.rank, value: (r) => -r.rank },
    { head: "costs", n: true, cell: (r) => r.bytes ? bytesText(r.bytes) : "no bytes", value: (r) => r.bytes },
    { head: "at read limit", n: true, cell: (r) => r.ms_at_read_limit == null || !r.bytes ? "-" : msText(r.ms_at_read_limit), value: (r) => r.ms_at_read_limit },
    { head: "what", w: true, cell: (r) => [h("span", { class: "tag" }, KINDS[r.kind]), " ", r.what] },
    { head: "why", w: true, cell: (r) => [h("code", {}, r.code), ": ", r.message, r.evidence.length ? h("details", { onclick: (e) => e.stopPropagation() }, h("summary", {}, plural(r.evidence.length, "detail")), h("ul", {}, r.evidence.map((e) => h("li", {}, e)))) : null], value: (r) => r.code },
    { head: "command", w: true, cell: (r) => r.command ? [h("span", { class: "tag" }, r.changes ? "changes it" : "explains it"), commandLine(m, r.command)] : "-" },
  ];
  const rows = () => m.missed.filter((r) => on.has(r.kind));
  const list = table(columns, rows(), { label: "not fused", most: 40, rowOf: (r) => ({ model: index, unit: unitOf.get(r.nodes[0]) ?? -1 }) });
  const filters = h("div", { class: "bar" }, kinds.map((k) => h("button", { "aria-pressed": "true", onclick: (e) => {
    on.has(k) ? on.delete(k) : on.add(k);
    e.target.setAttribute("aria-pressed", on.has(k));
    list.setRows(rows());
  } }, `${KINDS[k]} (${m.missed.filter((r) => r.kind === k).length})`)));
  return h("div", {}, filters, list);
}

function precisionTable(index) {
  const m = models[index], types = (l, k) => l.precision ? l.precision[k].join(", ") || "-" : "unknown";
  const columns = [
    { head: "#", n: true, cell: (l) => l.id, value: (l) => l.id },
    { head: "kernel", w: true, cell: (l) => l.name, value: (l) => l.name },
    { head: "reads", cell: (l) => types(l, "inputs"), value: (l) => types(l, "inputs") },
    { head: "constants", cell: (l) => types(l, "constants"), value: (l) => types(l, "constants") },
    { head: "stores", cell: (l) => types(l, "outputs"), value: (l) => types(l, "outputs") },
    { head: "algorithm", cell: (l) => l.algorithm ? l.algorithm.name : "-", value: (l) => l.algorithm ? l.algorithm.name : "" },
  ];
  if (m.proof) columns.push(
    { head: "error of max", n: true, cell: (l) => l.error ? errorText(l.error.relative) : "-", value: (l) => l.error && l.error.relative },
    { head: "of its bound", n: true, cell: (l) => l.error ? digits(l.error.of_bound) : "-", value: (l) => l.error && l.error.of_bound },
    { head: "verdict", cell: (l) => l.error ? l.error.ok ? "ok" : h("span", { class: "bad" }, "FAILED " + l.error.problem) : "not judged", value: (l) => l.error && l.error.ok ? 1 : 0 });
  return table(columns, m.launches, { label: "precision", rowOf: (l) => ({ model: index, launch: l.id, unit: l.unit }), most: 100 });
}
