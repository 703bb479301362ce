"use strict";
(() => {
  // Numbers in four digits, as the axes print them.
  const show = (v) => {
    const a = Math.abs(v);
    if (a !== 0 && (a < 1e-4 || a >= 1e9)) return v.toExponential(2).replace("-", "\u2212");
    const digits = a === 0 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(a)));
    return v.toLocaleString("en-US", { maximumFractionDigits: digits }).replace("-", "\u2212");
  };
  const withUnit = (v, axis) => show(v) + (axis[4] ? " " + axis[4] : "");
  const share = (v, [lo, hi, log]) =>
    log ? Math.log(v / lo) / Math.log(hi / lo) : (v - lo) / (hi - lo);

  // Index of the last x not beyond v, or -1.
  const before = (xs, v) => {
    let lo = 0, hi = xs.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (xs[mid] <= v) lo = mid + 1; else hi = mid;
    }
    return lo - 1;
  };
  const nearest = (s, panel, px) => {
    const at = (i) => panel.r[0] + share(s.x[i], panel.x) * panel.r[2];
    let i = -1, best = Infinity;
    for (const k of around(s, panel, px)) {
      const far = Math.abs(at(k) - px);
      if (s.y[k] !== null && far < best) { best = far; i = k; }
    }
    return { i, far: best };
  };
  const value = (panel, px) => {
    const t = (px - panel.r[0]) / panel.r[2], [lo, hi, log] = panel.x;
    return log ? lo * Math.pow(hi / lo, t) : lo + t * (hi - lo);
  };
  const around = (s, panel, px) => {
    const i = before(s.x, value(panel, px));
    return [i, i + 1].filter((k) => k >= 0 && k < s.x.length);
  };
  // The point of a series that belongs to an x: the value held there, or the nearest point if it is near.
  const pick = (s, panel, px) => {
    const found = nearest(s, panel, px);
    if (s.k) {
      const i = before(s.x, value(panel, px) * (1 + 1e-9));
      return i >= 0 && s.y[i] !== null ? i : -1;
    }
    return found.far <= Math.max(6, panel.r[2] / 60) ? found.i : -1;
  };

  const svgElement = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    return element;
  };

  const readOut = (figure) => {
    const svg = figure.querySelector("svg");
    const data = JSON.parse(figure.querySelector("script").textContent);
    const marks = svg.appendChild(svgElement("g", { "pointer-events": "none" }));
    const box = figure.appendChild(document.createElement("div"));
    box.className = "readout";
    box.hidden = true;
    const hide = () => { box.hidden = true; marks.replaceChildren(); };

    const row = (s, text) => {
      const line = document.createElement("span");
      const swatch = line.appendChild(document.createElement("i"));
      swatch.style.background = `var(--p-s${s.c})`;
      line.append(s.n || "value");
      line.appendChild(document.createElement("em")).textContent = text;
      return line;
    };

    const tell = (panel, px, event) => {
      // Settle on the nearest x of all series, then ask each for its value there.
      let settled = null;
      for (const s of panel.s) {
        const found = nearest(s, panel, px);
        if (found.i >= 0 && (!settled || found.far < settled.far)) settled = { far: found.far, x: s.x[found.i] };
      }
      if (!settled) return hide();
      const [left, top, width, height] = panel.r;
      const x = left + share(settled.x, panel.x) * width;
      const head = document.createElement("b");
      head.textContent = (panel.x[3] ? panel.x[3] + " " : "") + withUnit(settled.x, panel.x);
      const rows = [], shapes = [svgElement("path", {
        d: `M${x} ${top}V${top + height}`, style: "stroke:var(--p-frame)", "stroke-width": 1 })];
      for (const s of panel.s) {
        const i = pick(s, panel, x);
        if (i < 0) continue;
        rows.push(row(s, withUnit(s.y[i], panel.y)));
        const cy = top + height - share(s.y[i], panel.y) * height;
        const cx = s.k ? x : left + share(s.x[i], panel.x) * width;
        if (cy >= top - 1 && cy <= top + height + 1)
          shapes.push(svgElement("circle", {
            cx, cy, r: 3.6, style: `fill:var(--p-s${s.c});stroke:var(--p-paper)`, "stroke-width": 1.5 }));
      }
      marks.replaceChildren(...shapes);
      box.replaceChildren(head, ...rows);
      box.hidden = false;
      const area = figure.getBoundingClientRect();
      const room = area.width - box.offsetWidth, at = event.clientX - area.left;
      box.style.left = Math.max(0, at + 16 <= room ? at + 16 : at - 16 - box.offsetWidth) + "px";
      box.style.top = Math.max(0, event.clientY - area.top - box.offsetHeight - 12) + "px";
    };

    const look = (event) => {
      const matrix = svg.getScreenCTM();
      if (!matrix) return;
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
      const panel = data.p.find(({ r }) =>
        at.x >= r[0] && at.x <= r[0] + r[2] && at.y >= r[1] && at.y <= r[1] + r[3]);
      if (panel) tell(panel, at.x, event); else hide();
    };
    svg.addEventListener("pointermove", look);
    svg.addEventListener("pointerdown", look);
    svg.addEventListener("pointerleave", hide);
  };

  const copyButton = (block) => {
    const code = block.querySelector("code");
    const button = block.appendChild(document.createElement("button"));
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    const select = () => getSelection().selectAllChildren(code);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        select();
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1600);
    });
  };

  document.querySelectorAll("figure.plot").forEach(readOut);
  document.querySelectorAll(".code").forEach(copyButton);
})();
