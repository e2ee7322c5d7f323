// A graph on paper: cut into strips that stand side by side like the columns of a newspaper, at a size that can be read.
// Where that takes more than MOST_SHEETS, it is drawn smaller; where names would be dust, they are left out, and a line says so.
const SHEET = { width: 690, height: 830, gap: 14 };  // of A4 and of letter, in CSS pixels, without margins, heading and legend
const READABLE = 0.66, NAMES = 0.3, MOST_SHEETS = 4;

/// Strips of at most `height`, cut between rows of nodes where there is room.
function strips(graph, height) {
  const list = [];
  for (let from = 0; from < graph.height;) {
    let to = Math.min(from + height, graph.height);
    for (let hit; to < graph.height && (hit = graph.nodes.find(({ box: [, y, , h] }) => y - 3 < to && to < y + h + 3)) && hit.box[1] - 4 > from + height / 2;)
      to = hit.box[1] - 4;
    list.push([from, to]);
    from = to;
  }
  return list;
}

/// A strip as [left, top, right, bottom], as wide as what lies in it.
function trimmed(pane, [from, to]) {
  const area = [0, from, pane.graph.width, to], held = (kind) => [...pane.inside(kind, area)].map((i) => pane.graph[kind][i]);
  const boxes = [...held("nodes"), ...held("frames")].map(({ box }) => box).filter(([, y, , h]) => y < to && y + h > from);
  const edges = held("edges").flatMap((e) => e.points.filter((_, i) => i % 2 === 0 && e.points[i + 1] >= from && e.points[i + 1] <= to));
  return [Math.min(...boxes.map((b) => b[0]), ...edges) - 4, from, Math.max(...boxes.map((b) => b[0] + b[2]), ...edges) + 4, to];
}

/// Sheets of strips side by side, and their scale.
function sheetsOf(pane) {
  for (let k = READABLE; ; k *= 0.9) {
    const sheets = [];
    let room = -1;
    for (const strip of strips(pane.graph, SHEET.height / k).map((ends) => trimmed(pane, ends))) {
      const width = (strip[2] - strip[0]) * k;
      if (width > room) { sheets.push([]); room = SHEET.width; }
      sheets[sheets.length - 1].push(strip);
      room -= width + SHEET.gap;
    }
    if ((sheets.length <= MOST_SHEETS && pane.graph.width * k <= SHEET.width) || k < 0.01) return { k, sheets };
  }
}

function paperOf(pane) {
  const { k, sheets } = sheetsOf(pane);
  const drawn = ([left, top, right, bottom]) => s("svg", { viewBox: `${left} ${top} ${right - left} ${bottom - top}`, width: (right - left) * k,
    height: (bottom - top) * k }, pane.partsIn([left, top, right, bottom]));
  const how = k < NAMES ? ": too large for names on paper; opfuse report --format svg --node NAME draws a part" : sheets.flat().length > 1 ? ": read down each column" : "";
  return h("div", { class: k < NAMES ? "paper far" : "paper" }, h("p", { class: "lead" }, pane.title + how), sheets.map((sheet) => h("div", { class: "sheet" }, sheet.map(drawn))));
}

const papers = [];
addEventListener("beforeprint", () => {
  for (const id of sections.keys()) drawSection(id);
  for (const act of beforePrint) act();
  for (const pane of panes) {
    papers.push(paperOf(pane));
    pane.pane.after(papers[papers.length - 1]);
  }
});
addEventListener("afterprint", () => { for (const paper of papers.splice(0)) paper.remove(); });
