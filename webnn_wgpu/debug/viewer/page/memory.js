// The slots over a run: what lies where, from the dispatch that writes it to the last that reads it.

const PLOT = { left: 84, right: 24, top: 38, curve: 130, gap: 46 };
let placed = []; // rectangles of the values, as drawn last

function drawMemory() {
  const { context, width, height } = sharp(canvas);
  context.fillStyle = color("back");
  context.fillRect(0, 0, width, height);
  placed = [];
  const memory = scene().memory;
  context.textBaseline = "middle";
  context.font = `13px ${FONT}`;
  context.fillStyle = color("muted");
  context.textAlign = "left";
  if (!memory || !memory.values.length) {
    context.fillText(
      memory ? "No slots: every value is an input, an output or a constant." : "The numpy reference plans no memory.",
      40,
      60,
    );
    return;
  }
  const count = memory.live.length;
  const x = (dispatch) => PLOT.left + (dispatch / count) * (width - PLOT.left - PLOT.right);
  drawCurve(context, memory, x, count);
  drawSlots(context, memory, x, width, height);
}

function drawCurve(context, memory, x, count) {
  const total = memory.slots.reduce((sum, size) => sum + size, 0);
  const most = Math.max(total, ...memory.live);
  const [top, bottom] = [PLOT.top, PLOT.top + PLOT.curve];
  const y = (size) => bottom - (size / most) * PLOT.curve;
  context.fillText(
    `Bytes of values that are needed, dispatch by dispatch (most: ${bytes(Math.max(...memory.live))}); slots take ${bytes(total)}, without sharing it would be ${bytes(memory.unshared)}`,
    PLOT.left,
    18,
  );
  const curve = new Path2D();
  curve.moveTo(x(0), bottom);
  memory.live.forEach((size, i) => {
    curve.lineTo(x(i), y(size));
    curve.lineTo(x(i + 1), y(size));
  });
  curve.lineTo(x(count), bottom);
  context.fillStyle = color("accent");
  context.globalAlpha = 0.25;
  context.fill(curve);
  context.globalAlpha = 1;
  context.strokeStyle = color("accent");
  context.lineWidth = 1.4;
  context.stroke(curve);
  context.setLineDash([6, 4]);
  context.strokeStyle = color("muted");
  context.beginPath();
  context.moveTo(x(0), y(total));
  context.lineTo(x(count), y(total));
  context.stroke();
  context.setLineDash([]);
  context.fillStyle = color("muted");
  context.textAlign = "right";
  for (const size of [0, most / 2, most]) context.fillText(bytes(size), PLOT.left - 10, y(size));
  context.textAlign = "center";
  const step = Math.max(1, Math.ceil(count / 12));
  for (let i = 0; i < count; i += step) context.fillText(String(i), (x(i) + x(i + 1)) / 2, bottom + 14);
}

function drawSlots(context, memory, x, width, height) {
  const top = PLOT.top + PLOT.curve + PLOT.gap;
  const space = height - top - 30;
  const shares = memory.slots.map((size) => Math.sqrt(size));
  const whole = shares.reduce((sum, share) => sum + share, 0);
  let at = top;
  const rows = memory.slots.map((size, i) => {
    const row = { at, size, height: Math.max(3, (shares[i] / whole) * (space - 6 * memory.slots.length)) };
    at += row.height + 6;
    return row;
  });
  rows.forEach((row, i) => {
    context.fillStyle = color("panel");
    context.fillRect(x(0), row.at, width - PLOT.left - PLOT.right, row.height);
    context.fillStyle = color("muted");
    context.textAlign = "right";
    if (row.height > 11)
      context.fillText(`slot ${i}`, PLOT.left - 10, row.at + row.height / 2 - (row.height > 28 ? 7 : 0));
    if (row.height > 28) context.fillText(bytes(row.size), PLOT.left - 10, row.at + row.height / 2 + 9);
  });
  const families = new Map(
    scene()
      .run.boxes.filter((box) => box.kind === "op")
      .map((box) => [box.label, box.family]),
  );
  context.textAlign = "left";
  for (const [label, type, slot, offset, size, first, last] of memory.values) {
    const row = rows[slot];
    const rectangle = {
      label,
      text: `${label}\n${type}\n${bytes(size)} in slot ${slot} at ${bytes(offset)}\ndispatches ${first} to ${last}`,
      x: x(first),
      y: row.at + (offset / row.size) * row.height,
      w: x(last + 1) - x(first),
      h: Math.max(2, (size / row.size) * row.height),
    };
    placed.push(rectangle);
    const chosen = state.selected >= 0 && scene().run.boxes[state.selected]?.label === label;
    context.fillStyle = color(families.get(label) || "other");
    context.globalAlpha = chosen ? 1 : 0.72;
    context.fillRect(rectangle.x, rectangle.y, Math.max(1, rectangle.w - 1), Math.max(1, rectangle.h - 1));
    context.globalAlpha = 1;
    if (chosen) {
      context.strokeStyle = color("ink");
      context.lineWidth = 2;
      context.strokeRect(rectangle.x, rectangle.y, rectangle.w - 1, rectangle.h - 1);
    }
    if (rectangle.w > 60 && rectangle.h > 14) {
      context.fillStyle = state.theme === "dark" ? "#0c1018" : "#ffffff";
      context.font = `11px ${FONT}`;
      context.fillText(cut(context, label, rectangle.w - 12, true), rectangle.x + 6, rectangle.y + rectangle.h / 2);
      context.font = `13px ${FONT}`;
    }
  }
}

function valueAt(event) {
  const bounds = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
  return placed.find((each) => x >= each.x && x <= each.x + each.w && y >= each.y && y <= each.y + each.h);
}
