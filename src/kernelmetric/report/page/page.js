"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const paint = []; // what must be drawn again when colours or sizes change

  // --- colours: the page's own, light or dark ---------------------------------------------------
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const classColour = (code) => colour(`--c${code % 8}`);
  function setTheme(name) {
    root.dataset.theme = name;
    paint.forEach((draw) => draw());
  }
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click", () =>
    setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
  root.dataset.theme = dark.matches ? "dark" : "light";
  let shown = root.dataset.theme; // paper is light
  addEventListener("beforeprint", () => { shown = root.dataset.theme; setTheme("light"); });
  addEventListener("afterprint", () => setTheme(shown));

  // --- small tools --------------------------------------------------------------------------------
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "tooltip");
  document.body.append(tip);
  function showTip(event, lines) {
    tip.hidden = false;
    tip.replaceChildren(...lines.flatMap((line, i) => (i ? [document.createElement("br"), line] : [line])));
    const x = event.clientX + 14, y = event.clientY + 14;
    tip.style.left = `${Math.min(x, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(y, innerHeight - tip.offsetHeight - 8)}px`;
  }
  const hideTip = () => { tip.hidden = true; };
  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...children);
    return made;
  }
  function fitted(canvas) { // a context whose unit is one CSS pixel
    const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    return [context, box.width, box.height];
  }

  // --- points ---------------------------------------------------------------------------------------
  const P = data.points, n = P.codes.length;
  const state = { hovered: -1, picked: -1, other: -1, part: "all", hidden: new Set() };
  const held = (i) => i >= data.nTrain;
  const label = (i) => (data.values ? data.values[i] : data.classes.length ? data.classes[P.codes[i]] : "");
  const name = (i) => (typeof P.rows[i] === "number" ? `row ${P.rows[i]}` : P.rows[i]);
  const visible = (i) => !state.hidden.has(P.codes[i]) && (state.part === "all" || held(i));
  const predicted = (side, i) => (held(i) && data.classes.length ? data.classes[P[side].said[i - data.nTrain]] : null);

  // Shares of the columns in the distance of two points that were clicked one after the other.
  const compared = data.pairs.points, placeOf = new Map(compared.map((i, k) => [i, k]));
  function between(i, j) {
    if (i === j || !placeOf.has(i) || !placeOf.has(j)) return null;
    const [a, b] = [placeOf.get(i), placeOf.get(j)].sort((x, y) => x - y), m = compared.length;
    const k = a * m - (a * (a + 1)) / 2 + (b - a - 1);
    return { shares: data.pairs.shares[k], distance: data.pairs.distances[k] };
  }

  function mark(context, x, y, size, code) { // a shape for each class, for eyes that see no colours
    context.beginPath();
    const shape = Math.floor(code / 8) + code;
    if (shape % 4 === 0) context.arc(x, y, size, 0, 2 * Math.PI);
    else if (shape % 4 === 1) context.rect(x - 0.88 * size, y - 0.88 * size, 1.76 * size, 1.76 * size);
    else {
      const corners = shape % 4 === 2 ? [[0, -1.25], [1.15, 0.8], [-1.15, 0.8]] : [[0, -1.3], [1.15, 0], [0, 1.3], [-1.15, 0]];
      corners.forEach(([a, b], i) => context[i ? "lineTo" : "moveTo"](x + a * size, y + b * size));
      context.closePath();
    }
  }

  class Plane {
    constructor(side) {
      this.side = side;
      this.canvas = document.getElementById(`plane-${side}`);
      // The window of 96 points in 100, widened; the few beyond it are drawn at the edge.
      const ends = [0, 1].map((axis) => {
        const sorted = P[side].xy.map((p) => p[axis]).sort((a, b) => a - b), cut = Math.floor(0.02 * (n - 1));
        return [sorted[cut], sorted[n - 1 - cut]];
      });
      this.middle = ends.map(([low, high]) => (low + high) / 2);
      this.reach = 0.65 * Math.max(...ends.map(([low, high]) => high - low)) || 1;
      this.canvas.addEventListener("mousemove", (event) => this.hover(event));
      this.canvas.addEventListener("mouseleave", () => { hideTip(); hover(-1); });
      this.canvas.addEventListener("click", (event) => { const i = this.at(event); if (i >= 0) pick(i); });
      this.canvas.addEventListener("keydown", (event) => step(event));
      paint.push(() => this.draw());
    }
    place(i) {
      const half = this.size / 2, scale = (half - 16) / this.reach, [x, y] = P[this.side].xy[i];
      const inside = (at) => Math.min(Math.max(at, 8), this.size - 8);
      return [inside(half + scale * (x - this.middle[0])), inside(half - scale * (y - this.middle[1]))];
    }
    at(event) {
      const box = this.canvas.getBoundingClientRect();
      const x = event.clientX - box.left, y = event.clientY - box.top;
      let best = -1, nearest = 14 * 14;
      for (let i = 0; i < n; i++) {
        if (!visible(i)) continue;
        const [a, b] = this.place(i), d = (a - x) ** 2 + (b - y) ** 2;
        if (d < nearest) { nearest = d; best = i; }
      }
      return best;
    }
    hover(event) {
      const i = this.at(event);
      hover(i);
      if (i < 0) return hideTip();
      const lines = [`${name(i)}${held(i) ? ", held out" : ""}`];
      if (data.classes.length) lines.push(`${data.label}: ${label(i)}`);
      const said = predicted(this.side, i);
      if (said !== null) lines.push(`predicted: ${said}`);
      showTip(event, lines);
    }
    draw() {
      const [context, width] = fitted(this.canvas);
      this.size = width;
      context.clearRect(0, 0, width, width);
      const ink = colour("--ink"), paper = colour("--card"), focus = state.picked;
      const order = [...Array(n).keys()].filter(visible).sort((a, b) => held(a) - held(b));
      for (const i of order) {
        const [x, y] = this.place(i);
        context.globalAlpha = focus >= 0 ? 0.22 : held(i) || data.nTrain === n ? 0.95 : 0.38;
        context.fillStyle = classColour(P.codes[i]);
        mark(context, x, y, held(i) || data.nTrain === n ? 4 : 3, P.codes[i]);
        context.fill();
        if (held(i)) { context.strokeStyle = paper; context.lineWidth = 1; context.stroke(); }
      }
      context.globalAlpha = 1;
      context.strokeStyle = ink;
      context.lineWidth = 1;
      for (const i of compared.filter(visible)) {
        context.beginPath(); context.arc(...this.place(i), 6.5, 0, 2 * Math.PI); context.stroke();
      }
      if (focus >= 0) this.web(context, focus, ink, paper);
      if (focus >= 0 && state.other >= 0) this.join(context, focus, state.other, ink, paper);
      if (state.hovered >= 0 && state.hovered !== focus) this.ring(context, state.hovered, ink, paper, 6);
    }
    web(context, focus, ink, paper) { // the picked point and lines to its neighbours
      const [x, y] = this.place(focus);
      for (const i of P[this.side].neighbors[focus]) {
        if (i < 0) continue;
        const [a, b] = this.place(i);
        context.strokeStyle = data.values || P.codes[i] === P.codes[focus] ? ink : colour("--warn");
        context.lineWidth = 1.2;
        context.beginPath(); context.moveTo(x, y); context.lineTo(a, b); context.stroke();
      }
      for (const i of P[this.side].neighbors[focus]) if (i >= 0) this.ring(context, i, paper, paper, 5);
      this.ring(context, focus, ink, paper, 8);
    }
    join(context, i, j, ink, paper) { // the two that are compared
      context.strokeStyle = ink;
      context.lineWidth = 2.5;
      context.setLineDash([6, 4]);
      context.beginPath(); context.moveTo(...this.place(i)); context.lineTo(...this.place(j)); context.stroke();
      context.setLineDash([]);
      [i, j].forEach((k) => this.ring(context, k, ink, paper, 8));
    }
    ring(context, i, edge, gap, size) {
      const [x, y] = this.place(i);
      context.fillStyle = classColour(P.codes[i]);
      mark(context, x, y, size, P.codes[i]);
      context.strokeStyle = gap; context.lineWidth = 5; context.stroke();
      context.fill();
      context.strokeStyle = edge; context.lineWidth = 2; context.stroke();
    }
  }

  const planes = [new Plane("before"), new Plane("after")];
  const redraw = () => planes.forEach((plane) => plane.draw());
  function hover(i) { if (i !== state.hovered) { state.hovered = i; redraw(); } }
  function step(event) { // arrows walk through the points, Enter and Escape end the walk
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") return pick(-1);
    if (!by) return undefined;
    event.preventDefault();
    let i = state.picked;
    for (let tried = 0; tried < n; tried++) { i = (i + by + n) % n; if (visible(i)) return pick(i); }
    return undefined;
  }

  // --- the picked point -----------------------------------------------------------------------------
  const panel = document.getElementById("picked");
  const invitation = panel.cloneNode(true);
  function cellOf(value) { // a text, or a drawing above its text; as an image, it cannot run a script
    if (typeof value === "string") return [value];
    const picture = element("img", { class: "drawn", src: `data:image/svg+xml,${encodeURIComponent(value.svg)}`, alt: value.text });
    return [picture, element("span", { class: "note", title: value.text }, value.text)];
  }
  function neighborTable(side, title, i) {
    const head = element("tr", {}, element("th", { scope: "col" }, "neighbour"));
    if (data.classes.length) head.append(element("th", { scope: "col" }, data.label));
    data.columns.forEach((column) => head.append(element("th", { scope: "col" }, column)));
    head.append(element("th", { scope: "col", class: "n" }, "distance"));
    const why = side === "after" ? data.why[i] : undefined;
    const body = element("tbody");
    P[side].neighbors[i].forEach((j, rank) => {
      if (j < 0) return;
      const row = element("tr", { "data-point": j }, element("td", {}, name(j)));
      if (data.classes.length) row.append(element("td", {}, label(j)));
      data.cells[j].forEach((cell) => row.append(element("td", {}, ...cellOf(cell))));
      row.append(element("td", { class: "n" }, P[side].distances[i][rank].toPrecision(3)));
      if (data.classes.length && !data.values && P.codes[j] !== P.codes[i]) row.classList.add("wrong");
      row.addEventListener("click", () => pick(j));
      body.append(row);
      if (!why || !why[rank].length) return;
      const named = (sign) => why[rank].filter(([, share]) => sign * share > 0)
        .map(([c, share]) => `${data.whyColumns[c]} ${sign * share}\u00a0%`).join(", ");
      const reasons = [["apart by", named(1)], ["nearer by", named(-1)]].filter(([, list]) => list).map((part) => part.join(" ")).join("; ");
      row.classList.add("reasoned");
      body.append(element("tr", { class: "why" }, element("td", { colspan: head.childElementCount }, reasons)));
    });
    return element("div", { class: "scroll", tabindex: 0, id: `neighbors-${side}` }, element("h3", {}, title),
      element("table", {}, element("thead", {}, head), body));
  }
  function pairPanel(i, j) {
    const found = between(i, j);
    const body = element("tbody");
    found.shares.forEach(([c, share]) => {
      const bar = element("span", { class: share < 0 ? "share nearer" : "share", style: `width: ${Math.abs(share)}%` });
      body.append(element("tr", {}, element("td", {}, data.whyColumns[c]), element("td", { class: "bars" }, bar),
        element("td", { class: "n" }, `${share}\u00a0%`)));
    });
    const rest = 100 - found.shares.reduce((sum, [, share]) => sum + Math.abs(share), 0);
    const note = `Parts of the squared distance, of the sum of their sizes; negative ones bring the two nearer.${rest > 0 ? ` All other columns: ${rest}\u00a0%.` : ""}`;
    return element("div", { id: "pair" },
      element("h3", {}, `${name(i)} and ${name(j)}: distance ${found.distance.toPrecision(3)}`),
      element("table", {}, body), element("p", { class: "note" }, note));
  }
  function pick(i) {
    state.other = i >= 0 && between(state.picked, i) ? state.picked : -1;
    state.picked = i;
    redraw();
    if (i < 0) return panel.replaceChildren(...invitation.cloneNode(true).childNodes);
    const facts = [`${name(i)}${held(i) ? ", held out" : ", a training row"}`];
    if (data.classes.length) facts.push(`${data.label}: ${label(i)}`);
    const drawn = data.cells[i].filter((cell) => typeof cell !== "string").flatMap(cellOf);
    data.columns.forEach((column, j) => typeof data.cells[i][j] === "string" && facts.push(`${column}: ${data.cells[i][j]}`));
    const clear = element("button", { type: "button" }, "Clear");
    clear.addEventListener("click", () => pick(-1));
    const pair = state.other >= 0 ? [pairPanel(state.other, i)] : [];
    panel.replaceChildren(...pair, element("h3", {}, facts.join(" · "), " ", clear), ...drawn,
      element("div", { class: "two" }, neighborTable("before", "Nearest before", i), neighborTable("after", "Nearest after", i)));
    return undefined;
  }
  document.querySelectorAll("table.hard tr[data-point]").forEach((row) => {
    const choose = () => {
      pick(Number(row.dataset.point));
      document.getElementById("map").scrollIntoView({ behavior: "smooth" });
    };
    row.tabIndex = 0;
    row.addEventListener("click", choose);
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(); });
  });

  // --- legend and part ------------------------------------------------------------------------------
  const legend = document.getElementById("legend");
  data.classes.forEach((text, code) => {
    const swatch = element("span", { class: "swatch", style: `background: var(--c${code % 8})` });
    const button = element("button", { type: "button", "aria-pressed": "true" }, swatch, text);
    button.addEventListener("click", () => {
      state.hidden[state.hidden.has(code) ? "delete" : "add"](code);
      button.setAttribute("aria-pressed", String(!state.hidden.has(code)));
      redraw();
    });
    legend.append(element("li", {}, button));
  });
  const part = document.getElementById("part");
  part.parentElement.hidden = data.nTrain === n; // no row was held out
  part.addEventListener("change", () => { state.part = part.value; redraw(); });

  // --- Gram matrices --------------------------------------------------------------------------------
  class Gram {
    constructor(side) {
      this.canvas = document.getElementById(`gram-${side}`);
      this.levels = Uint8Array.from(atob(data.gram[side]), (c) => c.charCodeAt(0));
      this.canvas.addEventListener("mousemove", (event) => this.hover(event));
      this.canvas.addEventListener("mouseleave", hideTip);
      paint.push(() => this.draw());
    }
    draw() {
      const m = data.gram.n, edge = Math.max(2, Math.round(m / 50));
      this.edge = edge;
      this.canvas.width = this.canvas.height = m + edge;
      const context = this.canvas.getContext("2d"), image = context.createImageData(m, m);
      const [cold, mid, hot] = ["--cold", "--mid", "--hot"].map((c) => colour(c).split(" ").map(Number));
      this.levels.forEach((level, i) => {
        const t = (level - 128) / 127, end = t < 0 ? cold : hot;
        for (let c = 0; c < 3; c++) image.data[4 * i + c] = mid[c] + Math.abs(t) * (end[c] - mid[c]);
        image.data[4 * i + 3] = 255;
      });
      context.putImageData(image, edge, edge);
      data.gram.codes.forEach((code, i) => {
        context.fillStyle = data.classes.length ? classColour(code) : colour("--muted");
        context.fillRect(edge + i, 0, 1, edge - 1);
        context.fillRect(0, edge + i, edge - 1, 1);
      });
    }
    hover(event) {
      const box = this.canvas.getBoundingClientRect(), all = data.gram.n + this.edge;
      const at = (part) => Math.floor(part * all) - this.edge;
      const i = at((event.clientY - box.top) / box.height), j = at((event.clientX - box.left) / box.width);
      if (i < 0 || j < 0 || i >= data.gram.n || j >= data.gram.n) return hideTip();
      const [a, b] = [data.gram.points[i], data.gram.points[j]];
      const level = (this.levels[i * data.gram.n + j] - 128) / 127;
      const texts = [a, b].map((p) => (data.classes.length ? `${name(p)} (${label(p)})` : name(p)));
      return showTip(event, [texts.join(" and "), `${level.toFixed(2)} of the scale`]);
    }
  }
  ["before", "after"].forEach((side) => new Gram(side));

  let waiting = 0;
  addEventListener("resize", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(redraw); });
  paint.forEach((draw) => draw());
  root.dataset.ready = "true";
})();
