// The task "Deblur, fill in, enlarge": settings of `hp.restore`, a mask that is painted, begun when asked to.

import * as api from "./api.js";
import { Mask } from "./mask.js";
import { capital, id } from "./words.js";

const FIELDS = ["blur", "width", "length", "degrees", "factor", "restore-sigma"];
const OF_TASK = { deblur: ["blur", "width", "length", "degrees"], inpaint: [], upscale: ["factor"] };
const TOO_LARGE = "this picture is too large to paint on; use heatprior inpaint";
const DOING = {
  deblur: ["Deblurring", "Deblurred", "Deblur it"],
  inpaint: ["Filling in", "Filled in", "Fill it in"],
  upscale: ["Enlarging", "Enlarged", "Enlarge it"],
};

export class Restore {
  constructor(bench) {
    this.bench = bench;
    this.result = null;
    this.mask = new Mask(() => this.maskChanged());
    for (const radio of document.querySelectorAll("[name=task]")) radio.addEventListener("change", () => this.changed());
    for (const name of FIELDS) id(name).addEventListener("input", () => this.changed());
    for (const radio of document.querySelectorAll("[name=brush-tool]"))
      radio.addEventListener("change", () => this.toolChanged(radio.value));
    id("brush").addEventListener("input", () => this.brushChanged());
    id("mask-clear").addEventListener("click", () => this.mask.clear());
    id("mask-choose").addEventListener("click", () => id("mask-file").click());
    id("mask-file").addEventListener("change", () => {
      const [file] = id("mask-file").files;
      id("mask-file").value = "";
      if (file) this.mask.take(file).catch((error) => bench.problem(error));
    });
    id("mask-save").addEventListener("click", async () => api.saveBlob(await this.mask.png(), "mask.png"));
    id("restore-settings").addEventListener("submit", (event) => event.preventDefault());
    this.settingsShown();
  }

  get name() {
    return document.querySelector("[name=task]:checked").value;
  }

  get words() {
    const [doing, done, start] = DOING[this.name];
    const paint = this.mask.isTooLarge ? `${capital(TOO_LARGE)}.` : "Paint over what is to be filled in.";
    const idle = this.name === "inpaint" && this.mask.isEmpty ? paint : this.name === "deblur" ? "You see a preview." : "Press the button to start.";
    const missing = { wipe: `${start} first`, denoised: `${start} first`, difference: `${start} first` };
    if (this.bench.current?.factor > 1) missing.difference = "A picture of another size has no difference";
    return { before: "before", after: "restored", difference: "changed", doing, done, start, idle, missing };
  }

  forget({ width, height }) {
    id("restore-sigma").value = ""; // it was in the units of another picture
    this.mask.reset(width, height);
    for (const name of ["mask-clear", "mask-choose", "mask-save"]) id(name).disabled = this.mask.isTooLarge;
    this.sent = -1; // the version of the mask that the server has
    this.brushChanged();
  }

  begin() {
    this.painting(this.name === "inpaint");
  }

  leave() {
    this.painting(false);
  }

  modes() {
    const { current, factor } = this.bench;
    return current || this.name === "deblur" ? ["wipe", "noisy", "denoised", ...(factor === 1 ? ["difference"] : [])] : ["noisy"];
  }

  values() {
    const { name } = this;
    const values = { task: name, sigma: id("restore-sigma").value };
    for (const field of OF_TASK[name]) values[field] = id(field).value;
    return values;
  }

  get looks() {
    return this.name === "deblur";
  }

  asked() {
    return this.values();
  }

  key() {
    return JSON.stringify([this.values(), this.name === "inpaint" ? this.mask.version : 0]);
  }

  async job(picture) {
    if (this.name === "inpaint" && this.mask.isTooLarge) throw new Error(TOO_LARGE);
    if (this.name === "inpaint" && !this.mask.isEmpty && this.sent !== this.mask.version) {
      await api.giveMask(picture.picture, await this.mask.png());
      this.sent = this.mask.version;
    }
    return { kind: "restore", ...this.values() };
  }

  finished() {
    this.bench.setMode("wipe");
  }

  changed() {
    this.settingsShown();
    this.bench.changed();
    this.begin();
  }

  maskChanged() {
    this.bench.changed();
    this.bench.viewer.draw();
  }

  settingsShown() {
    const { name } = this;
    for (const part of document.querySelectorAll("[data-for]"))
      part.hidden = part.dataset.for !== name && part.dataset.for !== `${name} ${id("blur").value}`;
    id("restore-sigma").placeholder = name === "inpaint" ? "keep other pixels" : "estimated";
    id("degrees-value").textContent = `${id("degrees").value}°`;
  }

  toolChanged(tool) {
    this.mask.tool = tool;
    this.begin();
  }

  brushChanged() {
    const { width = 512, height = 512 } = this.bench.picture ?? {};
    const share = 2 ** (id("brush").value / 10 - 10); // of the longer side: from a thousandth to an eighth
    this.mask.brush = Math.max(1, Math.round(Math.max(width, height) * share));
    id("brush-value").textContent = `${this.mask.brush} pixels`;
    id("brush").setAttribute("aria-valuetext", id("brush-value").textContent);
  }

  // The stage is painted on while something is filled in and the picture is seen as it was.
  painting(fills) {
    const { viewer } = this.bench;
    viewer.mask = fills ? this.mask : null;
    viewer.canvas.classList.toggle("paints", fills && this.mask.paints);
    viewer.draw();
  }
}
