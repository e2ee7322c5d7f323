// A graph that moves and zooms. Far away it is a few long paths; near, only what is in sight has elements of its own, made
// for a margin around it, so that moving is one change of a transform.
const FAR = 0.42, BUCKET = 400;

class GraphPane {
  constructor(index, which, host, title) {
    this.index = index;
    this.model = models[index];
    this.graph = this.model[which];
    this.which = which;
    this.title = title;
    this.k = 1; this.x = 0; this.y = 0;
    this.near = s("g"); this.far = s("g");
    this.world = s("g", {}, this.far, this.near);
    this.svg = s("svg", { tabindex: 0, role: "application", "aria-label": `${title}: graph; arrows move, plus and minus zoom` }, this.world);
    this.pane = h("div", { class: "pane", "data-pane": which, "data-model": index }, this.svg, h("div", { class: "name" }, title), this.buttons());
    host.append(this.pane);
    this.makeBuckets();
    this.listen();
    this.fit(true);
    onSelect((from) => { this.mark(); if (from !== this) this.show(selection); });
    new ResizeObserver(() => this.place()).observe(this.pane);
  }
  buttons() {
    const button = (text, label, act) => h("button", { title: label, "aria-label": label, onclick: act }, text);
    return h("div", { class: "zoom" }, button("+", "zoom in", () => this.zoom(1.4)), button("−", "zoom out", () => this.zoom(1 / 1.4)),
      button("fit", "whole graph", () => this.fit(false)), button("1:1", "readable", () => this.fit(true)));
  }
  size() { return { w: this.svg.clientWidth || 800, h: this.svg.clientHeight || 600 }; }
  fit(readable) {
    const { w, h: height } = this.size(), g = this.graph;
    const whole = Math.min(w / g.width, height / g.height);
    this.k = readable ? Math.max(whole, Math.min(1.15, w / g.width, 1.15)) : Math.min(whole, 2);
    if (readable && this.k < 0.5) this.k = Math.max(whole, Math.min(1, 0.75));
    this.x = (w - g.width * this.k) / 2;
    this.y = readable ? Math.max(44, (height - g.height * this.k) / 2) : (height - g.height * this.k) / 2;
    if (readable && g.width * this.k > w) this.x = w / 2 - this.firstX() * this.k;
    this.place();
  }
  firstX() { const b = this.graph.nodes.length ? this.graph.nodes[0].box : [0, 0, 0, 0]; return b[0] + b[2] / 2; }
  zoom(factor, cx, cy) {
    const { w, h: height } = this.size(), k = Math.min(4, Math.max(0.01, this.k * factor));
    cx ??= w / 2; cy ??= height / 2;
    this.x = cx - (cx - this.x) * k / this.k;
    this.y = cy - (cy - this.y) * k / this.k;
    this.k = k;
    this.place();
  }
  move(dx, dy) {  // false: there is nothing further that way
    const { w, h: height } = this.size(), g = this.graph, edge = 60;
    const x = Math.min(w - edge, Math.max(edge - g.width * this.k, this.x + dx));
    const y = Math.min(height - edge, Math.max(edge - g.height * this.k, this.y + dy));
    const moved = Math.abs(x - this.x) > 0.5 || Math.abs(y - this.y) > 0.5;
    this.x = x; this.y = y;
    this.place();
    return moved;
  }
  listen() {
    const svg = this.svg;
    svg.addEventListener("wheel", (e) => {
      if (e.ctrlKey || e.metaKey) { this.zoom(Math.exp(-e.deltaY * 0.004), e.offsetX, e.offsetY); e.preventDefault(); }
      else if (document.activeElement === svg && this.move(-e.deltaX, -e.deltaY)) e.preventDefault();
    }, { passive: false });
    let held = null, apart = 0;
    const fingers = new Map();
    svg.addEventListener("pointerdown", (e) => {
      fingers.set(e.pointerId, e);
      held = { x: e.clientX, y: e.clientY, moved: false };
      svg.setPointerCapture(e.pointerId);
      svg.focus({ preventScroll: true });
    });
    svg.addEventListener("pointermove", (e) => {
      if (!held) return;
      fingers.set(e.pointerId, e);
      if (fingers.size === 2) {
        const [a, b] = [...fingers.values()], now = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
        if (apart) this.zoom(now / apart);
        apart = now; held.moved = true;
        return;
      }
      const dx = e.clientX - held.x, dy = e.clientY - held.y;
      if (!held.moved && Math.hypot(dx, dy) < 4) return;
      held = { x: e.clientX, y: e.clientY, moved: true };
      svg.classList.add("drag");
      this.move(dx, dy);
    });
    const release = (e) => {
      fingers.delete(e.pointerId);
      apart = 0;
      svg.classList.remove("drag");
      if (held && !held.moved && e.type === "pointerup") this.click(e);
      held = null;
    };
    svg.addEventListener("pointerup", release);
    svg.addEventListener("pointercancel", release);
    svg.addEventListener("dblclick", (e) => this.zoom(1.6, e.offsetX, e.offsetY));
    svg.addEventListener("keydown", (e) => {
      const step = 60, moves = { ArrowUp: [0, step], ArrowDown: [0, -step], ArrowLeft: [step, 0], ArrowRight: [-step, 0] };
      if (moves[e.key]) this.move(...moves[e.key]);
      else if (e.key === "+" || e.key === "=") this.zoom(1.3);
      else if (e.key === "-") this.zoom(1 / 1.3);
      else if (e.key === "0") this.fit(false);
      else return;
      e.preventDefault(); e.stopPropagation();
    });
  }
  click(e) {
    const box = this.svg.getBoundingClientRect();
    const px = (e.clientX - box.left - this.x) / this.k, py = (e.clientY - box.top - this.y) / this.k;
    const inside = ({ box: b }) => px >= b[0] && px <= b[0] + b[2] && py >= b[1] && py <= b[1] + b[3];
    const bucket = this.buckets.get(Math.floor(py / BUCKET)) || { nodes: [], frames: [], edges: [] };
    const node = bucket.nodes.find((n) => inside(this.graph.nodes[n]));
    if (node != null) return select(this.index, { unit: this.graph.nodes[node].unit, node: { which: this.which, at: node } }, this);
    const frame = bucket.frames.find((f) => inside(this.graph.frames[f]));
    if (frame != null) return select(this.index, { unit: this.graph.frames[frame].unit }, this);
  }
  /// What lies in each horizontal strip.
  makeBuckets() {
    this.buckets = new Map();
    const put = (kind, item, from, to) => {
      for (let b = Math.floor(from / BUCKET); b <= Math.floor(to / BUCKET); ++b) {
        if (!this.buckets.has(b)) this.buckets.set(b, { nodes: [], frames: [], edges: [] });
        this.buckets.get(b)[kind].push(item);
      }
    };
    this.graph.nodes.forEach((n, i) => put("nodes", i, n.box[1], n.box[1] + n.box[3]));
    this.graph.frames.forEach((f, i) => put("frames", i, f.box[1], f.box[1] + f.box[3]));
    this.graph.edges.forEach((e, i) => {
      let low = Infinity, high = -Infinity;
      for (let p = 1; p < e.points.length; p += 2) { low = Math.min(low, e.points[p]); high = Math.max(high, e.points[p]); }
      put("edges", i, low, high);
    });
  }
  edgePath(e) {
    const p = e.points;
    let d = `M${p[0]} ${p[1]}`;
    for (let i = 2; i < p.length; i += 2) {
      const middle = ((p[i - 1] + p[i + 1]) / 2).toFixed(1);
      d += p[i] === p[i - 2] ? `V${p[i + 1]}` : `C${p[i - 2]} ${middle} ${p[i]} ${middle} ${p[i]} ${p[i + 1]}`;
    }
    return d;
  }
  place() {
    this.world.setAttribute("transform", `translate(${this.x.toFixed(2)} ${this.y.toFixed(2)}) scale(${this.k.toFixed(4)})`);
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.draw(); });
  }
  draw() {
    const far = this.k < FAR;
    this.far.style.display = far ? "" : "none";
    this.near.style.display = far ? "none" : "";
    if (far) return this.drawFar();
    const { w, h: height } = this.size();
    const sight = [-this.x / this.k, -this.y / this.k, (w - this.x) / this.k, (height - this.y) / this.k];
    const r = this.rendered;
    if (r && sight[0] >= r[0] && sight[1] >= r[1] && sight[2] <= r[2] && sight[3] <= r[3]) return;
    const margin = (sight[3] - sight[1]) * 0.5, side = (sight[2] - sight[0]) * 0.5;
    this.rendered = [sight[0] - side, sight[1] - margin, sight[2] + side, sight[3] + margin];
    this.drawNear();
  }
  drawFar() {
    if (this.far.childNodes.length) return;
    const box = ([x, y, w, height]) => `M${x} ${y}h${w}v${height}h${-w}z`;
    const path = (cls, d) => d && this.far.append(s("path", { class: cls, d, "vector-effect": "non-scaling-stroke" }));
    path("frame", this.graph.frames.map((f) => box(f.box)).join(""));
    path("edge", this.graph.edges.map((e) => this.edgePath(e)).join(""));
    const classes = new Map();
    for (const n of this.graph.nodes) {
      const cls = this.classOf(n);
      classes.set(cls, (classes.get(cls) || "") + box(n.box));
    }
    for (const [cls, d] of classes) path(cls, d);
    this.farMark = s("path", { class: "node on", fill: "none", "fill-opacity": 0, "vector-effect": "non-scaling-stroke" });
    this.far.append(this.farMark);
    this.mark();
  }
  classOf(n) {
    if (n.kind !== "node") return "node io";
    if (n.unit < 0) return "node alone";
    return "node heat" + heatOf(this.model, n.unit);
  }
  inside(kind, [left, top, right, bottom]) {
    const found = new Set();
    for (let b = Math.floor(top / BUCKET); b <= Math.floor(bottom / BUCKET); ++b)
      for (const i of (this.buckets.get(b) || { [kind]: [] })[kind]) {
        const box = this.graph[kind][i].box;
        if (!box || (box[0] <= right && box[0] + box[2] >= left)) found.add(i);
      }
    return found;
  }
  drawNear() {
    this.near.replaceChildren(...this.partsIn(this.rendered));
    this.mark();
  }
  /// Elements of what lies in `area` (left, top, right, bottom).
  partsIn(area) {
    const g = this.graph, parts = [];
    for (const i of this.inside("frames", area)) {
      const f = g.frames[i], [x, y, w, height] = f.box, ms = unitMs(this.model, f.unit);
      const title = f.title + (ms == null ? "" : "  " + msText(ms));
      parts.push(s("rect", { class: "frame", x, y, width: w, height, rx: 6, "data-unit": f.unit }),
        s("text", { class: "frame-title", x: x + 8, y: y + 14 }, title.length * 6.4 > w - 12 ? title.slice(0, Math.floor((w - 12) / 6.4)) : title));
    }
    for (const i of this.inside("edges", area))
      parts.push(s("path", { class: "edge", d: this.edgePath(g.edges[i]), "data-edge": i }, s("title", {}, this.edgeTitle(g.edges[i]))));
    for (const i of this.inside("nodes", area)) parts.push(this.nodeElement(i));
    return parts;
  }
  edgeTitle(e) { const v = this.graph.values[e.value]; return `${v.name} ${v.type} ${v.bytes == null ? "" : bytesText(v.bytes)}`; }
  nodeElement(i) {
    const n = this.graph.nodes[i], [x, y, w, height] = n.box, cls = this.classOf(n), heat = cls.slice(-1);
    const middle = x + w / 2, on = heat === "3" ? " on3" : heat === "4" ? " on4" : "";
    const ms = this.which === "after" ? unitMs(this.model, n.unit) : null;
    return s("g", { "data-node": i, "data-unit": n.unit },
      s("rect", { class: cls, x, y, width: w, height, rx: 5, "data-unit": n.unit, "data-box": i }),
      s("title", {}, `${n.name}\n${n.operator} ${n.text}${ms == null ? "" : "\n" + msText(ms)}`),
      s("text", { class: "node-title" + on, x: middle, y: y + (n.subtitle ? 15 : 22) }, n.title),
      n.subtitle && s("text", { class: "node-sub" + on, x: middle, y: y + 28 }, n.subtitle));
  }
  mark() {
    const here = selection.model === this.index, node = selection.node;
    const chosen = (n) => here && (node && node.which === this.which ? n === node.at : isSelected(this.index, this.graph.nodes[n].unit));
    for (const e of this.near.querySelectorAll("rect.frame")) e.classList.toggle("on", isSelected(this.index, +e.dataset.unit));
    for (const e of this.near.querySelectorAll("rect.node")) e.classList.toggle("on", chosen(+e.dataset.box));
    for (const e of this.near.querySelectorAll("path.edge")) {
      const edge = this.graph.edges[e.dataset.edge];
      e.classList.toggle("on", chosen(edge.from) || chosen(edge.to));
    }
    if (this.farMark) this.farMark.setAttribute("d", this.graph.nodes.map((n, i) => chosen(i) ? `M${n.box[0]} ${n.box[1]}h${n.box[2]}v${n.box[3]}h${-n.box[2]}z` : "").join(""));
  }
  /// Brings the selected unit or node into the middle.
  show({ model, unit, node }) {
    if (model !== this.index) return;
    const at = node && node.which === this.which ? node.at : this.graph.nodes.findIndex((n) => unit >= 0 && n.unit === unit);
    if (at < 0) return;
    const b = this.graph.nodes[at].box, { w, h: height } = this.size();
    this.k = Math.max(this.k, 0.8);
    this.x = w / 2 - (b[0] + b[2] / 2) * this.k;
    this.y = height / 2 - (b[1] + b[3] / 2) * this.k;
    this.rendered = null;
    this.place();
  }
}
