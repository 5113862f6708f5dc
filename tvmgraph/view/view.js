// Turns the model of a graph into an ELK graph, and a laid out ELK graph into SVG.
// The same code runs in the browser (the viewer) and inside Python (graph.draw()).
"use strict";
const View = (() => {
  const CHAR = 6.8; // width of a character of the 11px monospace font
  const LINE = 16;
  const LIMIT = 100; // direct children of a box; more are put into boxes of their own
  const esc = (s) =>
    String(s).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

  // The boxes: one per Cell scope (or per kernel), nested.
  function tree(model) {
    const root = box("", "", null);
    const groups = new Map([["", root]]);
    for (const node of model.nodes) {
      let at = root, id = "";
      for (const part of node.path) {
        id += "/" + part;
        if (!groups.has(id)) {
          const inner = box(id, part.replace(/ #\d+$/, ""), at); // the number told equal names apart
          groups.set(id, inner);
          at.items.push(inner);
        }
        at = groups.get(id);
      }
      at.items.push(node);
    }
    for (const [id, share] of Object.entries(model.shares || {})) {
      for (const group of groups.values()) if (group.id.endsWith("/" + id)) group.share = share;
    }
    split(root, groups);
    count(root);
    const parent = new Map();
    for (const group of groups.values()) for (const item of group.items) parent.set(item.id, group);
    return { root, groups, parent };
  }

  function box(id, label, up) {
    return { id, label, up, items: [], isBox: true, size: 0 };
  }

  function count(group) {
    group.size = group.items.reduce((n, i) => n + (i.isBox ? count(i) : 1), 0);
    return group.size;
  }

  function split(group, groups) {
    if (group.items.length > LIMIT) {
      const items = group.items, step = Math.ceil(items.length / Math.ceil(items.length / LIMIT));
      const width = Math.max(step, Math.ceil(items.length / LIMIT));
      group.items = [];
      for (let i = 0; i < items.length; i += width) {
        const part = items.slice(i, i + width);
        const inner = box(group.id + "/#" + i, `${i + 1} to ${i + part.length}`, group);
        inner.items = part;
        for (const item of part) if (item.isBox) item.up = inner;
        groups.set(inner.id, inner);
        group.items.push(inner);
      }
    }
    for (const item of group.items) if (item.isBox) split(item, groups);
  }

  const counted = (n) => `${n} ${n === 1 ? "node" : "nodes"}`;

  function size(lines) {
    const width = Math.max(...lines.map((l) => l.length)) * CHAR + 16;
    return { width: Math.max(40, width), height: lines.length * LINE + 8 };
  }

  // The ELK graph of what is visible when the boxes in `open` are open.
  function layoutInput(model, boxes, open) {
    const shown = new Map(); // node id -> id of what stands for it
    const build = (item) => {
      if (!item.isBox) {
        shown.set(item.id, item.id);
        return { id: item.id, ...size(item.lines), item };
      }
      if (!open.has(item.id)) {
        const mark = (i) => (i.isBox ? i.items.forEach(mark) : shown.set(i.id, item.id));
        mark(item);
        return { id: item.id, ...size([`+ ${item.label}`, counted(item.size)]), item, closed: true };
      }
      return {
        id: item.id, item, children: item.items.map(build),
        labels: [{ text: item.label, width: item.label.length * CHAR, height: LINE }],
        layoutOptions: { "elk.padding": "[top=28,left=10,bottom=10,right=10]" },
      };
    };
    const children = boxes.root.items.map(build);
    const edges = new Map();
    for (const [from, to, type] of model.edges) {
      const a = shown.get(from), b = shown.get(to);
      if (a === b) continue;
      const key = a + " " + b;
      const known = edges.get(key);
      if (known) known.types.add(type);
      else edges.set(key, { id: "e" + edges.size, sources: [a], targets: [b], types: new Set([type]) });
    }
    const list = [...edges.values()].map((e) => {
      const text = e.types.size > 1 ? `${e.types.size} tensors` : [...e.types][0];
      return { id: e.id, sources: e.sources, targets: e.targets,
        labels: [{ text, width: text.length * 5.6, height: 12 }] };
    });
    return {
      id: "root", children, edges: list,
      layoutOptions: {
        "elk.algorithm": "layered", "elk.direction": "DOWN", "elk.edgeRouting": "ORTHOGONAL",
        "elk.hierarchyHandling": "INCLUDE_CHILDREN", "elk.json.edgeCoords": "ROOT",
        "elk.json.shapeCoords": "ROOT", "elk.spacing.nodeNode": "24",
        "elk.layered.spacing.nodeNodeBetweenLayers": "30", "elk.edgeLabels.inline": "false",
      },
    };
  }

  const STYLE =
    ".n rect{fill:#fff;stroke:#57606a}.n.product rect{fill:#ffe8d6;stroke:#bc4c00}" +
    ".n.reduce rect{fill:#fff0f6;stroke:#bf3989}.n.move rect{fill:#f6f8fa;stroke:#8c959f}" +
    ".n.input rect{fill:#ddf4ff;stroke:#0969da}.n.parameter rect{fill:#fff8c5;stroke:#9a6700}" +
    ".n.state rect{fill:#fff8c5;stroke:#9a6700}.n.const rect{fill:#f6f8fa;stroke:#8c959f}" +
    ".n.output rect{fill:#dafbe1;stroke:#1a7f37}.n.control rect{fill:#ffd8b5;stroke:#bc4c00;rx:12}" +
    ".b>rect{fill:#8250df08;stroke:#8250df}.b.closed>rect{fill:#f3eefc}" +
    ".b.control>rect{fill:#bc4c000a;stroke:#bc4c00;stroke-dasharray:6 3}" +
    ".b.kernel>rect{fill:#1a7f370d;stroke:#1a7f37;stroke-dasharray:4 2}" +
    "text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#1f2328}.n text+text{fill:#57606a}" +
    ".e path{fill:none;stroke:#57606a}.e text{font-size:9px;fill:#57606a}" +
    ".b>text{font-weight:600}.b>text,.e text{paint-order:stroke;stroke:#fff;stroke-width:3px}" +
    ".n.sel>rect,.b.sel>rect{stroke:#cf222e;stroke-width:3}";

  // How much of all kernel time a box takes, as the strength of its colour.
  function heat(item) {
    return item.share ? ` style="fill:rgba(207,34,46,${(0.04 + 0.4 * item.share).toFixed(3)})"` : "";
  }

  function kindOf(item) {
    if (item.id.includes("/kernel ")) return "kernel";
    return /\/(if_|while_|while_grad)[^/]* #\d+(\/[^/]*)?$/.test(item.id) ? "control" : "";
  }

  function shortened(text, width) {
    const fits = Math.floor((width - 14) / CHAR);
    return text.length > fits ? text.slice(0, fits - 1) + "\u2026" : text;
  }

  function shape(node) {
    const kind = node.item.isBox
      ? `b ${node.closed ? "closed" : ""} ${kindOf(node.item)}`
      : `n ${node.item.kind}`;
    const lines = node.children ? [shortened(node.item.label, node.width)]
      : node.closed ? [`+ ${node.item.label}`, counted(node.item.size)] : node.item.lines;
    const text = lines.map((l, i) =>
      `<text x="${node.x + 8}" y="${node.y + 15 + i * LINE}">${esc(l)}</text>`).join("");
    const title = node.item.isBox ? node.item.label : node.item.source || "";
    const rect = `<rect x="${node.x}" y="${node.y}" width="${node.width}" height="${node.height}" rx="4"${heat(node.item)}/>`;
    const own = `<g class="${kind}" data-id="${esc(node.id)}"><title>${esc(title)}</title>${rect}${text}</g>`;
    return own + (node.children || []).map(shape).join("");
  }

  function line(edge) {
    const path = (edge.sections || []).map((s) =>
      [s.startPoint, ...(s.bendPoints || []), s.endPoint].map((p, i) => `${i ? "L" : "M"}${p.x} ${p.y}`).join(""));
    const text = (edge.labels || []).map((l) =>
      `<text x="${l.x}" y="${l.y + 9}">${esc(l.text)}</text>`).join("");
    return `<g class="e"><path d="${path.join("")}" marker-end="url(#arrow)"/>${text}</g>`;
  }

  function svg(laid) {
    const w = Math.ceil(laid.width), h = Math.ceil(laid.height);
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}">` +
      `<style>${STYLE}</style><defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" ` +
      `markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="#57606a"/></marker></defs>` +
      (laid.children || []).map(shape).join("") + (laid.edges || []).map(line).join("") + "</svg>";
  }

  // Boxes to open so that about `budget` things are visible, outermost first.
  function openUpTo(boxes, budget) {
    const open = new Set();
    let visible = boxes.root.items.length;
    const queue = boxes.root.items.filter((i) => i.isBox);
    while (queue.length) {
      const group = queue.shift();
      if (visible + group.items.length > budget) continue;
      visible += group.items.length;
      open.add(group.id);
      queue.push(...group.items.filter((i) => i.isBox));
    }
    return open;
  }

  return { tree, layoutInput, svg, openUpTo, esc };
})();
