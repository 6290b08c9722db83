// One picture on the stage: opened, looked at, worked on by one of the tasks (denoise, restore), saved.

import * as api from "./api.js";
import { filesOf } from "./dropped.js";
import { Queue } from "./queue.js";
import { Viewer } from "./viewer.js";
import { Whole } from "./whole.js";
import { capital, id, number, say } from "./words.js";

const SHOWN_WITH_A_PICTURE = ["viewer", "tools", "keys", "file-card", "whole-card"];
const ORIGINAL = ["noisy", "noise"]; // layers of the file itself, not of a result
const COMPUTED = ["denoised", "difference", "error"];

export class Workbench {
  // A task has: words { before, after, difference, doing, done, start, idle }, modes(), key(), job(picture), asked() →
  // what is sent for a look, `result` once there is one; forget(picture, keepsSettings) for a new picture, begin() and leave() when it
  // comes onto the stage and goes, and perhaps frameChanged() and finished().
  constructor() {
    this.picture = null;
    this.frame = 0;
    this.opening = null; // the file that is being opened
    this.factor = 1; // how much larger than the file what is shown is
    this.viewer = new Viewer(id("viewer"), (...asked) => this.fetchLayer(...asked), () => this.shown());
    this.viewer.onError = (error) => this.problem(error);
    this.whole = new Whole(this);
    this.listenFiles();
    this.listenTools();
  }

  setTasks(tasks) {
    this.tasks = tasks;
    this.queue = new Queue((file, keeps) => this.open(file, keeps), () => tasks.denoise.choice(), (text) => say(text));
    this.setTask("denoise");
  }

  setTask(name) {
    if (this.task === this.tasks[name]) return;
    if (this.picture) this.whole.abandon();
    this.task?.leave();
    this.task = this.tasks[name];
    for (const card of document.querySelectorAll("[data-task]")) card.dataset.off = card.dataset.task !== name;
    for (const [mode, text] of Object.entries({ noisy: this.task.words.before, denoised: this.task.words.after }))
      document.querySelector(`[data-mode=${mode}]`).textContent = capital(text);
    for (const mode of ["noise", "error"]) document.querySelector(`[data-mode=${mode}]`).hidden = name !== "denoise";
    if (!this.picture) return;
    this.refresh();
    this.task.begin();
  }

  // ---- files

  listenFiles() {
    id("choose").addEventListener("click", () => id("files").click());
    id("choose-folder").addEventListener("click", () => id("folder").click());
    id("close").addEventListener("click", () => id("files").click());
    id("close-folder").addEventListener("click", () => id("folder").click());
    for (const name of ["files", "folder"])
      id(name).addEventListener("change", () => {
        this.take([...id(name).files]);
        id(name).value = "";
      });
    id("sample").addEventListener("click", () => this.open(null));
    const stage = document.body;
    stage.addEventListener("dragover", (event) => {
      event.preventDefault();
      stage.classList.add("dragging");
    });
    stage.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) stage.classList.remove("dragging");
    });
    stage.addEventListener("drop", async (event) => {
      event.preventDefault();
      stage.classList.remove("dragging");
      this.take(await filesOf(event.dataTransfer));
    });
  }

  take(files) {
    if (files.length === 0) return;
    if (files.length === 1 && !this.queue.entries.length) return this.open(files[0]);
    const before = this.queue.entries.length;
    this.queue.add(files);
    const isOne = this.queue.entries.length === before + 1; // one more is looked at, of several only the first at all
    if (this.queue.entries.length > before && (isOne || !this.picture)) this.queue.show(before);
  }

  // A file, or null for the example; the settings for the noise are kept if it belongs with the one before.
  async open(file, keeps = false) {
    this.problem(null);
    performance.mark("given");
    const mine = (this.opening = {});
    this.tellBusy();
    say(`Opening ${file?.name ?? "the example"}`);
    try {
      const about = file ? await api.givePicture(file) : await api.giveSample();
      const unwanted = this.opening === mine ? this.picture : about; // a later file may have come first
      if (unwanted) api.dropPicture(unwanted.picture).catch(() => {});
      if (this.opening !== mine) return;
      this.opening = null;
      this.begin(about, keeps);
    } catch (error) {
      if (this.opening !== mine) return;
      this.opening = null;
      this.problem(error);
    }
    this.tellBusy();
  }

  begin(about, keeps) {
    this.whole.abandon();
    this.task.leave();
    this.picture = about;
    this.frame = 0;
    this.first = true;
    for (const task of Object.values(this.tasks)) {
      task.result = null;
      task.forget(about, keeps);
    }
    id("drop").hidden = true;
    for (const name of SHOWN_WITH_A_PICTURE) id(name).hidden = false;
    for (const card of document.querySelectorAll("[data-task]:not(#queue)")) card.hidden = false;
    id("name").textContent = about.name;
    id("description").textContent = about.description;
    id("frames").hidden = about.frames < 2;
    id("frame").max = about.frames;
    id("frame").value = 1;
    id("frame-number").textContent = `1 of ${about.frames}`;
    id("viewer").querySelector("canvas").setAttribute("aria-label", `${about.name}: ${about.description}`);
    this.factor = 0; // a new picture has a new size
    this.refresh();
    this.setMode(this.task.modes()[0]);
    this.task.begin();
  }

  problem(error) {
    id("problem").hidden = !error;
    id("problem").textContent = error ? capital(error.message) : "";
    if (error) id("problem").scrollIntoView({ block: "nearest" });
  }

  // ---- what is shown

  // The result of what is chosen now, if it is there.
  get current() {
    return this.task.result?.key === this.task.key() ? this.task.result : null;
  }

  // Something was chosen: what belongs to the old choice is no longer shown as if it belonged to the new one.
  refresh() {
    const factor = this.current?.factor ?? 1;
    if (factor !== this.factor) {
      this.factor = factor;
      this.viewer.setPicture(factor * this.picture.width, factor * this.picture.height);
    }
    if (this.current) this.whole.done();
    else if (!this.whole.running) this.whole.idle();
    this.updateModes();
    this.viewer.renew(COMPUTED);
  }

  changed() {
    this.problem(null);
    if (!this.picture) return;
    this.whole.abandon();
    this.refresh();
  }

  finished() {
    this.refresh();
    this.task.finished?.();
  }

  async fetchLayer(layer, region, signal, closeness) {
    const { picture, frame, factor } = this;
    const computed = COMPUTED.includes(layer);
    const smaller = factor > 1 && ORIGINAL.includes(layer);
    const place = smaller ? reduced(region, factor) : region;
    const looks = this.current || this.task.looks !== false; // a task without a quick look shows the noisy picture until it is done
    if (!looks) layer = "noisy";
    const asked = { layer, frame, ...place, closeness };
    if (layer !== "noisy") Object.assign(asked, computed && this.current ? { result: this.current.name } : this.task.asked());
    const piece = await api.look(picture.picture, asked, signal);
    if (computed && this.picture === picture) requestAnimationFrame(() => this.measured());
    return smaller ? enlarged(piece, factor, region.step) : piece;
  }

  // For whoever wants to know how long things take: entries of the browser's own performance timeline.
  measured() {
    if (this.first) {
      this.first = false;
      performance.measure("given to first view", "given");
    }
    if (this.movedStrength) {
      this.movedStrength = false;
      performance.measure("strength to view", "strength moved");
    }
  }

  shown() {
    const { viewer } = this;
    if (!viewer?.size) return;
    const { before, after } = this.task.words;
    id("zoom").textContent = `${Math.round(100 * viewer.zoom * this.factor)} %`;
    this.tellBusy();
    const single = viewer.mode !== "wipe";
    const corners = id("viewer").querySelectorAll(".corner");
    const names = { noisy: before, denoised: after, difference: this.task.words.difference, noise: "noise level σ", error: "standard error" };
    corners[0].textContent = single ? names[viewer.mode] : before;
    corners[0].hidden = !single && viewer.wipe < 0.12;
    corners[1].hidden = single || viewer.wipe > 0.88;
    corners[1].textContent = this.current ? after : `${after}, preview`;
    const ends = viewer.ends();
    const legend = id("legend");
    legend.hidden = !ends || !["difference", "noise", "error"].includes(viewer.mode);
    if (!legend.hidden) {
      legend.classList.toggle("grey", viewer.mode === "difference");
      id("legend-low").textContent = number(ends[0]);
      id("legend-high").textContent = number(ends[1]);
    }
  }

  tellBusy() {
    id("busy").hidden = !this.opening && this.viewer.asking === 0;
    id("viewer").setAttribute("aria-busy", Boolean(this.opening || this.viewer.isBusy));
  }

  // ---- tools

  setMode(mode) {
    for (const button of document.querySelectorAll("[data-mode]")) {
      button.setAttribute("aria-checked", button.dataset.mode === mode);
      button.tabIndex = button.dataset.mode === mode ? 0 : -1;
    }
    this.viewer.setMode(mode);
  }

  updateModes() {
    const modes = this.task.modes();
    for (const button of document.querySelectorAll("[data-mode]")) {
      button.disabled = !modes.includes(button.dataset.mode);
      button.title = button.disabled ? (this.task.words.missing[button.dataset.mode] ?? "") : "";
    }
    if (!modes.includes(this.viewer.mode)) this.setMode(modes[0]);
  }

  listenTools() {
    const { viewer } = this;
    const buttons = [...document.querySelectorAll("[data-mode]")];
    for (const button of buttons) {
      button.addEventListener("click", () => this.setMode(button.dataset.mode));
      button.addEventListener("keydown", (event) => {
        const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (!way) return;
        event.preventDefault();
        const able = buttons.filter((other) => !other.disabled);
        const next = able[(able.indexOf(button) + way + able.length) % able.length];
        next.focus();
        this.setMode(next.dataset.mode);
      });
    }
    const by = (mode) => () => document.querySelector(`[data-mode="${mode}"]`).disabled || this.setMode(mode);
    viewer.moreKeys = { w: by("wipe"), n: by("noisy"), d: by("denoised"), x: by("difference"), m: by("noise"), e: by("error") };
    id("zoom-in").addEventListener("click", () => viewer.zoomTo(viewer.scale * 1.5));
    id("zoom-out").addEventListener("click", () => viewer.zoomTo(viewer.scale / 1.5));
    id("fit").addEventListener("click", () => viewer.fit());
    id("one").addEventListener("click", () => viewer.zoomTo(1));
    id("frame").addEventListener("input", () => {
      this.frame = id("frame").value - 1;
      id("frame-number").textContent = `${this.frame + 1} of ${this.picture.frames}`;
      viewer.renew([...ORIGINAL, ...COMPUTED]);
    });
    id("frame").addEventListener("change", () => this.task.frameChanged?.());
  }
}

// The region of the file that lies behind a region of a result which is `factor` times as large.
function reduced({ x, y, w, h, step }, factor) {
  const [left, top] = [Math.floor(x / factor), Math.floor(y / factor)];
  const [right, bottom] = [Math.ceil((x + w) / factor), Math.ceil((y + h) / factor)];
  return { x: left, y: top, w: right - left, h: bottom - top, step: 2 ** Math.max(0, Math.floor(Math.log2(step / factor))) };
}

// A piece of the file, as a piece of that result; there is nothing finer to ask for.
function enlarged(piece, factor, step) {
  const { x, y, w, h } = piece;
  return { ...piece, x: factor * x, y: factor * y, w: factor * w, h: factor * h, step, size: factor * piece.step };
}
