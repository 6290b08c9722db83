// A picture under a wipe: zoom and pan by mouse, touch and keys. It knows regions and layers, not where pixels come from.

const LARGEST = 32; // device pixels for a pixel of the picture
const WAIT = 60; // ms without a movement before a new part is asked for
const KEYS_STEP = 60;

export class Viewer {
  // fetchLayer(name, region, signal, closeness) → { bitmap, x, y, w, h, step, black, white }: at first as soon as can
  // be, then "exact", as fine as asked for. onChange() after each drawing.
  constructor(element, fetchLayer, onChange = () => {}) {
    this.canvas = element.querySelector("canvas");
    this.slider = element.querySelector(".wipe");
    this.fetchLayer = fetchLayer;
    this.onChange = onChange;
    this.mode = "wipe";
    this.wipe = 0.5;
    this.size = null;
    this.layers = {};
    this.timer = null; // of the next question
    this.asking = 0; // questions under way
    new ResizeObserver(() => this.resized()).observe(this.canvas);
    this.slider.addEventListener("input", () => this.setWipe(this.slider.value / 1000));
    this.listen();
  }

  setPicture(width, height) {
    this.size = { width, height };
    for (const layer of Object.values(this.layers)) layer.stop?.abort();
    this.layers = {};
    this.fitted = true;
    this.resized();
  }

  setMode(mode) {
    this.mode = mode;
    this.slider.hidden = mode !== "wipe";
    this.draw();
    this.update();
  }

  setWipe(part) {
    this.wipe = Math.min(1, Math.max(0, part));
    this.slider.value = Math.round(1000 * this.wipe);
    this.draw();
  }

  // New pixels of these layers are wanted; what is shown stays until they come.
  renew(names) {
    for (const name of names) {
      const layer = this.layers[name];
      if (layer) layer.version += 1;
    }
    return this.update();
  }

  get shownLayers() {
    return this.mode === "wipe" ? ["noisy", "denoised"] : [this.mode];
  }

  // Whether what is shown will change by itself: pixels are under way, or about to be asked for.
  get isBusy() {
    return this.asking > 0 || this.timer !== null;
  }

  get ratio() {
    return this.canvas.width / this.canvas.clientWidth || 1;
  }

  // device pixels for a pixel of the picture
  get zoom() {
    return this.scale;
  }

  resized() {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(this.canvas.clientHeight * ratio);
    if (!this.size || !this.canvas.width) return;
    if (this.fitted || !this.scale) this.fit();
    else this.moved();
  }

  fitScale() {
    return Math.min(this.canvas.width / this.size.width, this.canvas.height / this.size.height);
  }

  fit() {
    this.scale = Math.min(this.fitScale(), 8);
    this.x = (this.size.width - this.canvas.width / this.scale) / 2;
    this.y = (this.size.height - this.canvas.height / this.scale) / 2;
    this.fitted = true;
    this.moved();
  }

  // Zoom so that the point (px, py) of the canvas, by default its middle, stays where it is.
  zoomTo(scale, px = this.canvas.width / 2, py = this.canvas.height / 2) {
    const wanted = Math.min(LARGEST, Math.max(Math.min(this.fitScale(), 1), scale));
    this.x += px / this.scale - px / wanted;
    this.y += py / this.scale - py / wanted;
    this.scale = wanted;
    this.fitted = false;
    this.moved();
  }

  panBy(dx, dy) {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.fitted = false;
    this.moved();
  }

  moved() {
    const across = this.canvas.width / this.scale;
    const down = this.canvas.height / this.scale;
    const { width, height } = this.size;
    this.x = across >= width ? (width - across) / 2 : Math.min(Math.max(this.x, 0), width - across);
    this.y = down >= height ? (height - down) / 2 : Math.min(Math.max(this.y, 0), height - down);
    this.later(WAIT);
    this.draw();
  }

  later(wait) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.update(), wait);
  }

  region() {
    const step = 2 ** Math.min(6, Math.max(0, Math.floor(Math.log2(1 / this.scale + 1e-6))));
    const x = Math.max(0, Math.floor(this.x / step) * step);
    const y = Math.max(0, Math.floor(this.y / step) * step);
    const right = Math.min(this.size.width, Math.ceil(this.x + this.canvas.width / this.scale));
    const bottom = Math.min(this.size.height, Math.ceil(this.y + this.canvas.height / this.scale));
    return { x, y, w: right - x, h: bottom - y, step };
  }

  // Ask for what is seen and not there. One question of each layer at a time; the newest is asked next. What only refines
  // what is seen already, and may take longer, ends when something else is wanted.
  async update() {
    clearTimeout(this.timer);
    this.timer = null;
    if (!this.size || !this.canvas.width) return this.onChange();
    await Promise.all(this.shownLayers.map((name) => this.load(name)));
    this.onChange();
  }

  async load(name) {
    const layer = (this.layers[name] ??= { version: 0, pieces: [], asked: null });
    const region = this.region();
    const lacks = !layer.pieces.some((piece) => piece.version === layer.version && covers(piece, region));
    if (!lacks || region.w <= 0 || region.h <= 0) return;
    const { asked, version } = layer;
    if (asked) {
      layer.again = true;
      if (asked.refines && (asked.version !== version || !covers(asked, region))) layer.stop.abort();
      return;
    }
    layer.stop = new AbortController();
    const seen = layer.pieces.filter((piece) => piece.version === version);
    const refines = seen.some((piece) => covers(piece, { ...region, step: 64 }));
    const closeness = refines ? "exact" : "";
    layer.asked = { ...region, version, refines };
    this.asking += 1;
    this.onChange();
    try {
      const piece = await this.fetchLayer(name, region, layer.stop.signal, closeness);
      if (this.layers[name] !== layer) return;
      piece.version = version;
      piece.whole = piece.w >= this.size.width && piece.h >= this.size.height;
      const kept = layer.pieces.filter((other) => other.version === version && other.whole && !piece.whole);
      layer.pieces = [...kept.slice(-1), piece];
      if (piece.step > region.step) layer.again = true; // a first, coarse look: now the fine one
      this.draw();
    } catch (error) {
      const isStale = this.layers[name] !== layer || error.name === "AbortError" || error.constructor.name === "Superseded";
      if (!isStale) this.onError?.(error);
    } finally {
      layer.asked = null;
      this.asking -= 1;
    }
    if (layer.again && this.layers[name] === layer) {
      layer.again = false;
      await this.load(name);
    }
  }

  draw() {
    if (!this.size) return;
    const context = this.canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const split = Math.round(this.wipe * this.canvas.width);
    if (this.mode === "wipe") {
      this.paint(context, "noisy", 0, this.canvas.width);
      if (this.layers.denoised?.pieces.length) this.paint(context, "denoised", split, this.canvas.width);
      context.fillStyle = "rgb(0 0 0 / 60%)";
      context.fillRect(split - 1.5 * this.ratio, 0, 3 * this.ratio, this.canvas.height);
      context.fillStyle = "#fff";
      context.fillRect(split - 0.5 * this.ratio, 0, this.ratio, this.canvas.height);
    } else {
      this.paint(context, this.mode, 0, this.canvas.width);
      if (this.mode === "noisy") this.mask?.draw(context, -this.x * this.scale, -this.y * this.scale, this.scale);
    }
    this.onChange();
  }

  paint(context, name, from, to) {
    context.save();
    context.beginPath();
    context.rect(from, 0, to - from, this.canvas.height);
    context.clip();
    for (const piece of this.layers[name]?.pieces ?? []) {
      context.imageSmoothingEnabled = this.scale * piece.step < 2 || (piece.size ?? piece.step) > 1;
      context.imageSmoothingQuality = "high";
      const { bitmap, x, y } = piece;
      const size = (piece.size ?? piece.step) * this.scale; // of a pixel of the bitmap
      const left = (x - this.x) * this.scale;
      const top = (y - this.y) * this.scale;
      context.drawImage(bitmap, left, top, bitmap.width * size, bitmap.height * size);
    }
    context.restore();
  }

  ends() {
    const piece = this.layers[this.mode]?.pieces.at(-1);
    return piece ? [piece.black, piece.white] : null;
  }

  listen() {
    const { canvas } = this;
    const fingers = new Map();
    const place = (event) => ({ x: event.offsetX * this.ratio, y: event.offsetY * this.ratio });
    const brush = (event, begins) => {
      const { x, y } = place(event);
      this.mask.stroke(this.x + x / this.scale, this.y + y / this.scale, begins);
      this.draw();
    };
    let grip = null; // "wipe" while the line is dragged, "paint" while a mask is painted
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.size) return;
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, place(event));
      const near = Math.abs(place(event).x - this.wipe * canvas.width) < 8 * this.ratio;
      grip = this.mode === "wipe" && near ? "wipe" : this.mode === "noisy" && this.mask?.paints ? "paint" : "pan";
      if (grip === "paint") brush(event, true);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) return;
      const before = fingers.get(event.pointerId);
      const now = place(event);
      fingers.set(event.pointerId, now);
      if (grip === "wipe" && fingers.size === 1) return this.setWipe(now.x / canvas.width);
      if (grip === "paint" && fingers.size === 1) return brush(event, false);
      if (fingers.size === 1) return this.panBy(now.x - before.x, now.y - before.y);
      const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
      const stretch = Math.hypot(now.x - other.x, now.y - other.y) / (Math.hypot(before.x - other.x, before.y - other.y) || 1);
      this.zoomTo(this.scale * stretch, (now.x + other.x) / 2, (now.y + other.y) / 2);
      this.panBy((now.x - before.x) / 2, (now.y - before.y) / 2);
    });
    for (const end of ["pointerup", "pointercancel"])
      canvas.addEventListener(end, (event) => {
        if (fingers.delete(event.pointerId) && grip === "paint") this.mask?.changed();
        grip = null;
      });
    canvas.addEventListener("wheel", (event) => {
      if (!this.size) return;
      event.preventDefault();
      const { x, y } = place(event);
      this.zoomTo(this.scale * 2 ** (-event.deltaY / 240), x, y);
    }, { passive: false });
    canvas.addEventListener("dblclick", (event) => {
      const { x, y } = place(event);
      if (this.fitted) this.zoomTo(1, x, y);
      else this.fit();
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (!this.size || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      "+": () => this.zoomTo(this.scale * 1.5),
      "=": () => this.zoomTo(this.scale * 1.5),
      "-": () => this.zoomTo(this.scale / 1.5),
      0: () => this.fit(),
      1: () => this.zoomTo(1),
      ArrowLeft: () => this.panBy(KEYS_STEP, 0),
      ArrowRight: () => this.panBy(-KEYS_STEP, 0),
      ArrowUp: () => this.panBy(0, KEYS_STEP),
      ArrowDown: () => this.panBy(0, -KEYS_STEP),
      ",": () => this.setWipe(this.wipe - 0.05),
      ".": () => this.setWipe(this.wipe + 0.05),
    };
    const action = actions[event.key] ?? this.moreKeys?.[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}

function covers(piece, { x, y, w, h, step }) {
  return piece.step <= step && piece.x <= x && piece.y <= y && piece.x + piece.w >= x + w && piece.y + piece.h >= y + h;
}
