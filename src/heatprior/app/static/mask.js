// A mask painted over the picture: what is covered is filled in. As large as the picture, so that it is exact.

const COLOUR = "#ff5a1f";
const SHOWN = 0.55; // how much of it is seen over the picture
const MOST_PIXELS = 40e6; // a canvas takes four bytes for each

export class Mask {
  constructor(onChange) {
    this.onChange = onChange;
    this.canvas = document.createElement("canvas");
    this.tool = "paint"; // or "erase", or "move": the picture instead
    this.brush = 20; // pixels of the picture across
    this.reset(0, 0);
  }

  reset(width, height) {
    this.isTooLarge = width * height > MOST_PIXELS;
    Object.assign(this.canvas, this.isTooLarge ? { width: 0, height: 0 } : { width, height });
    this.context = this.canvas.getContext("2d", { willReadFrequently: true });
    this.isEmpty = true;
    this.version = 0;
    this.last = null;
  }

  clear() {
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.isEmpty = true;
    this.changed();
  }

  changed() {
    this.version += 1;
    this.onChange();
  }

  get paints() {
    return this.tool !== "move" && !this.isTooLarge;
  }

  // A stroke from where the last one ended, in pixels of the picture.
  stroke(x, y, begins) {
    if (begins) this.last = { x, y };
    const { context } = this;
    context.globalCompositeOperation = this.tool === "erase" ? "destination-out" : "source-over";
    Object.assign(context, { lineCap: "round", lineJoin: "round", lineWidth: this.brush, strokeStyle: COLOUR });
    context.beginPath();
    context.moveTo(this.last.x, this.last.y);
    context.lineTo(x, y + 1e-3); // a point is a stroke too
    context.stroke();
    this.last = { x, y };
    if (this.tool !== "erase") this.isEmpty = false;
  }

  draw(context, left, top, scale) {
    if (this.isEmpty) return;
    context.save();
    context.globalAlpha = SHOWN;
    context.imageSmoothingEnabled = scale < 2;
    context.drawImage(this.canvas, left, top, this.canvas.width * scale, this.canvas.height * scale);
    context.restore();
  }

  // A file: brighter than half is covered.
  async take(file) {
    const bitmap = await createImageBitmap(file).catch(() => {
      throw new Error(`${file.name} is no picture that the browser reads; give the mask as a PNG`);
    });
    const { width, height } = this.canvas;
    if (bitmap.width !== width || bitmap.height !== height)
      throw new Error(`the mask has ${bitmap.height}×${bitmap.width} pixels but the picture ${height}×${width}; give one of the same size`);
    this.context.globalCompositeOperation = "source-over";
    this.context.drawImage(bitmap, 0, 0);
    const pixels = this.context.getImageData(0, 0, width, height);
    const { data } = pixels;
    for (let k = 0; k < data.length; k += 4) {
      const covered = 0.299 * data[k] + 0.587 * data[k + 1] + 0.114 * data[k + 2] > 127.5;
      data.set(covered ? [255, 90, 31, 255] : [0, 0, 0, 0], k);
    }
    this.context.putImageData(pixels, 0, 0);
    this.isEmpty = false;
    this.changed();
  }

  // White where it is covered, black elsewhere: a PNG as `heatprior inpaint --mask` reads it.
  async png() {
    const { width, height } = this.canvas;
    const pixels = this.context.getImageData(0, 0, width, height);
    const { data } = pixels;
    for (let k = 0; k < data.length; k += 4) data.fill(data[k + 3] > 127 ? 255 : 0, k, k + 3), (data[k + 3] = 255);
    const target = Object.assign(document.createElement("canvas"), { width, height });
    target.getContext("2d").putImageData(pixels, 0, 0);
    return new Promise((done) => target.toBlob(done, "image/png"));
  }
}
