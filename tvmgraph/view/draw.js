// What ELK expects of its surroundings: a timer that may as well fire at once.
globalThis.self = globalThis;
globalThis.setTimeout = (f) => { Promise.resolve().then(f); return 0; };
globalThis.clearTimeout = () => {};

var result = "";

/** Lays a model out, with boxes open up to a number of visible nodes; `result` says how it went. */
function draw(model, visible) {
  const boxes = View.tree(model);
  const open = View.openUpTo(boxes, visible);
  new ELK().layout(View.layoutInput(model, boxes, open)).then(
    (laid) => { result = "ok" + View.svg(laid); },
    (e) => { result = "no" + e; },
  );
}
