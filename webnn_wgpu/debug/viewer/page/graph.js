// The graph on a canvas: only what is in sight is drawn, and less of it from farther away.

const camera = { x: 0, y: 0, scale: 1 };
const canvas = byId("canvas");
const FONT = 'system-ui, "DejaVu Sans", sans-serif';
const MONO = 'ui-monospace, "DejaVu Sans Mono", monospace';

// What drawing needs of a picture beyond its data, made once.
const prepared = new Map();
function prepare(shown) {
  if (prepared.has(shown)) return prepared.get(shown);
  const ready = { lines: [], stubs: new Map(), near: shown.boxes.map(() => ({ above: [], below: [] })) };
  shown.lines.forEach(([from, to, type, points], index) => {
    ready.near[from].below.push(to);
    ready.near[to].above.push(from);
    if (!points.length) {
      ready.stubs.set(to, [...(ready.stubs.get(to) || []), from]);
      return;
    }
    const path = new Path2D();
    let [left, right] = [points[0], points[0]];
    path.moveTo(points[0], points[1]);
    for (let i = 2; i < points.length; i += 2) {
      const [x0, y0, x1, y1] = points.slice(i - 2, i + 2);
      const bend = (y1 - y0) / 2;
      if (x0 === x1) path.lineTo(x1, y1);
      else path.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
      left = Math.min(left, x1);
      right = Math.max(right, x1);
    }
    const tip = points.slice(-2);
    const kernels = shown.boxes[from].kernels || [];
    const grouped = kernels.some((kernel) => (shown.boxes[to].kernels || []).includes(kernel));
    ready.lines.push({ index, from, to, type, path, tip, grouped, left, right, top: points[1], bottom: tip[1] });
  });
  prepared.set(shown, ready);
  return ready;
}

// Colors of boxes ------------------------------------------------------------------------------------------------

function measure(box) {
  if (state.color === "time") return box.kernels ? kernelTime(box.kernels) : null;
  return state.color === "error" ? (box.error ?? null) : null;
}

// What the last color stands for. An error within what is tolerated is no reason for alarm.
function endOfScale() {
  return Math.max(state.color === "error" ? 1 : 0, ...picture().boxes.map((box) => measure(box) || 0));
}

const scales = new Map();
function shareOf(box) {
  const value = measure(box);
  if (value === null) return null;
  const key = `${state.graph} ${state.view === "built"} ${state.color}`;
  if (!scales.has(key)) scales.set(key, endOfScale());
  const most = scales.get(key);
  if (!most) return 0;
  return state.color === "time" ? Math.sqrt(value / most) : Math.min(1, Math.log10(1 + value) / Math.log10(1 + most));
}

const familyOf = (box) => (box.kind === "op" ? box.family : box.kind);

// Drawing ---------------------------------------------------------------------------------------------------------

function sharp(target) {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = target;
  if (target.width !== Math.round(width * ratio) || target.height !== Math.round(height * ratio)) {
    target.width = Math.round(width * ratio);
    target.height = Math.round(height * ratio);
  }
  const context = target.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height, ratio };
}

function drawGraph() {
  const { context, width, height, ratio } = sharp(canvas);
  const shown = picture();
  const ready = prepare(shown);
  context.fillStyle = color("back");
  context.fillRect(0, 0, width, height);
  const { scale } = camera;
  context.setTransform(
    ratio * scale,
    0,
    0,
    ratio * scale,
    ratio * (width / 2 - camera.x * scale),
    ratio * (height / 2 - camera.y * scale),
  );
  const sight = {
    left: camera.x - width / 2 / scale,
    right: camera.x + width / 2 / scale,
    top: camera.y - height / 2 / scale,
    bottom: camera.y + height / 2 / scale,
  };
  drawLines(context, ready, sight, scale);
  let drawn = 0;
  shown.boxes.forEach((box, index) => {
    if (
      box.x + box.w / 2 < sight.left ||
      box.x - box.w / 2 > sight.right ||
      box.y + box.h < sight.top ||
      box.y - box.h > sight.bottom
    )
      return;
    drawBox(context, box, index, scale, ready);
    drawn += 1;
  });
  document.documentElement.dataset.drawn = drawn;
  drawOverview(sight);
}

function drawLines(context, ready, sight, scale) {
  const lines = ready.lines.filter(
    (line) =>
      line.right >= sight.left - 60 &&
      line.left <= sight.right + 60 &&
      line.bottom >= sight.top &&
      line.top <= sight.bottom,
  );
  const strokes = [
    [(line) => line.grouped, color("group"), Math.max(5, 3 / scale)],
    [() => true, color("edge"), Math.max(1.2, 0.7 / scale)],
    [
      (line) => line.from === state.selected || line.to === state.selected,
      color("accent"),
      Math.max(2.4, 1.5 / scale),
    ],
  ];
  for (const [wanted, tone, thickness] of strokes) {
    const path = new Path2D();
    const tips = new Path2D();
    for (const line of lines.filter(wanted)) {
      path.addPath(line.path);
      const [x, y] = line.tip;
      tips.addPath(new Path2D(`M${x - 4} ${y - 7}L${x} ${y}L${x + 4} ${y - 7}Z`));
    }
    context.strokeStyle = context.fillStyle = tone;
    context.lineWidth = thickness;
    context.stroke(path);
    if (scale > 0.3 && tone !== color("group")) context.fill(tips);
  }
}

// As much of a text as there is room for: its beginning, or its end where that says more, as of paths.
function cut(context, text, width, keepEnd = false) {
  if (context.measureText(text).width <= width) return text;
  const part = (length) => (keepEnd ? "…" + text.slice(text.length - length) : text.slice(0, length) + "…");
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(part(middle)).width <= width) low = middle;
    else high = middle - 1;
  }
  return part(low);
}

function drawBox(context, box, index, scale, ready) {
  const [left, top] = [box.x - box.w / 2, box.y - box.h / 2];
  const share = state.color === "family" ? null : shareOf(box);
  const tone = share === null ? null : ramp(share);
  const faded = box.kind === "op" && box.fate !== "";
  const radius = box.kind === "op" ? 8 : box.h / 2;
  context.globalAlpha = faded ? 0.55 : 1;
  const outline = (dx, dy) => {
    context.beginPath();
    context.roundRect(left + dx, top + dy, box.w, box.h, radius);
  };
  context.lineWidth = 1.2;
  context.strokeStyle = color("box-line");
  if (box.members?.length && scale > 0.25) {
    // a fused group is a pile
    outline(5, 5);
    context.fillStyle = color("box");
    context.fill();
    context.stroke();
  }
  outline(0, 0);
  context.fillStyle = tone ? `rgb(${tone})` : color("box");
  context.fill();
  const family = color(familyOf(box));
  if (state.color === "family") {
    context.save();
    context.clip();
    context.fillStyle = family;
    if (scale < 0.3) {
      context.globalAlpha *= 0.85;
      context.fillRect(left, top, box.w, box.h);
    } else if (box.kind === "op") context.fillRect(left, top, 6, box.h);
    else {
      context.globalAlpha *= 0.18;
      context.fillRect(left, top, box.w, box.h);
    }
    context.restore();
    outline(0, 0);
  }
  if (faded) context.setLineDash([5, 4]);
  if (index === state.selected) {
    context.strokeStyle = color("accent");
    context.lineWidth = Math.max(3, 2 / scale);
  } else if (isMarked(box)) {
    context.strokeStyle = color("accent");
    context.lineWidth = Math.max(2, 1.2 / scale);
  }
  context.stroke();
  context.setLineDash([]);
  if (scale > 0.3) drawText(context, box, index, scale, tone, left, top, ready);
  context.globalAlpha = 1;
}

const isMarked = (box) => state.kernel >= 0 && (box.kernels || []).includes(state.kernel);

function drawText(context, box, index, scale, tone, left, top, ready) {
  const dark = tone && isDarkTone(tone);
  const ink = !tone ? color("ink") : dark ? "#ffffff" : "#1c2230";
  const muted = !tone ? color("muted") : ink;
  const room = box.w - 22;
  const at = box.kind === "op" ? left + 14 : left + 12;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillStyle = ink;
  context.font = `600 13px ${FONT}`;
  context.fillText(cut(context, box.title, room), at, top + (box.kind === "op" ? 13 : 12));
  if (scale < 0.45) return;
  context.fillStyle = muted;
  context.font = `11px ${FONT}`;
  if (box.kind === "op") context.fillText(cut(context, box.label, room, true), at, top + 29);
  context.font = `10.5px ${MONO}`;
  context.fillText(cut(context, box.type, room), at, top + box.h - 11);
  const far = ready.stubs.get(index);
  if (far) {
    context.fillStyle = color("muted");
    context.font = `10.5px ${FONT}`;
    const names = far
      .map((from) => picture().boxes[from])
      .map((from) => (from.kind === "op" ? from.label : from.title));
    context.fillText(cut(context, `↑ ${names.join(", ")}`, box.w + 60), left, top - 9);
  }
}

// The overview ----------------------------------------------------------------------------------------------------

const overview = byId("overview");
let small = null;

function drawOverview(sight) {
  const shown = picture();
  const key = `${state.graph} ${state.view} ${state.color} ${state.theme} ${canvas.clientHeight}`;
  if (small?.key !== key) {
    const factor = Math.min(110 / shown.width, (canvas.clientHeight - 60) / shown.height);
    const [width, height] = [Math.max(44, shown.width * factor), Math.max(30, shown.height * factor)];
    const [fx, fy] = [width / Math.max(1, shown.width), height / Math.max(1, shown.height)];
    Object.assign(overview.style, { width: `${width + 12}px`, height: `${height + 12}px` });
    small = { key, fx, fy, image: document.createElement("canvas") };
    const ratio = window.devicePixelRatio || 1;
    small.image.width = Math.ceil((width + 12) * ratio);
    small.image.height = Math.ceil((height + 12) * ratio);
    const context = small.image.getContext("2d");
    context.setTransform(ratio * fx, 0, 0, ratio * fy, 6 * ratio, 6 * ratio);
    for (const box of shown.boxes) {
      const share = state.color === "family" ? null : shareOf(box);
      context.fillStyle =
        share !== null ? `rgb(${ramp(share)})` : state.color === "family" ? color(familyOf(box)) : color("box-line");
      const [w, h] = [Math.max(box.w, 2 / fx), Math.max(box.h, 1.4 / fy)];
      context.fillRect(box.x - w / 2, box.y - h / 2, w, h);
    }
  }
  const { context, width, height, ratio } = sharp(overview);
  context.clearRect(0, 0, width, height);
  context.drawImage(small.image, 0, 0, small.image.width / ratio, small.image.height / ratio);
  context.strokeStyle = color("accent");
  context.lineWidth = 1.5;
  const [x, y] = [6 + Math.max(-4, sight.left * small.fx), 6 + Math.max(-4, sight.top * small.fy)];
  const right = Math.min(width - 2, 6 + sight.right * small.fx);
  const bottom = Math.min(height - 2, 6 + sight.bottom * small.fy);
  context.strokeRect(x, y, Math.max(3, right - x), Math.max(3, bottom - y));
}

// The camera ------------------------------------------------------------------------------------------------------

function fit() {
  const shown = picture();
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  camera.scale = Math.min(1.1, (width - 60) / Math.max(1, shown.width), (height - 60) / Math.max(1, shown.height));
  camera.x = shown.width / 2;
  camera.y = shown.height / 2;
}

// All of a graph if that can be read, else its beginning.
function begin() {
  fit();
  if (camera.scale >= 0.5) return;
  const first = picture().boxes[0];
  camera.scale = 0.8;
  camera.x = first ? first.x : 0;
  camera.y = canvas.clientHeight / 2 / camera.scale - 40;
}

function lookAt(index) {
  const box = picture().boxes[index];
  if (!box) return;
  camera.scale = Math.max(camera.scale, 0.8);
  camera.x = box.x;
  camera.y = box.y;
}

function boxAt(event) {
  const bounds = canvas.getBoundingClientRect();
  const x = camera.x + (event.clientX - bounds.left - bounds.width / 2) / camera.scale;
  const y = camera.y + (event.clientY - bounds.top - bounds.height / 2) / camera.scale;
  return picture().boxes.findIndex((box) => Math.abs(box.x - x) <= box.w / 2 && Math.abs(box.y - y) <= box.h / 2);
}
