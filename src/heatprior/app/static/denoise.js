// The view "Denoise": one picture, its noise in words, a quick look at once, the whole picture behind it, save.

import * as api from "./api.js";
import { Queue } from "./queue.js";
import { Viewer } from "./viewer.js";

const id = (name) => document.getElementById(name);
const SOON = 700; // ms after the last change until the whole picture is begun
const MOST_AT_ONCE = 40e6; // values of a picture that is denoised as a whole without being asked
const say = (text) => (id("say").textContent = text);

export class Denoise {
  constructor() {
    this.picture = null;
    this.frame = 0;
    this.result = null; // { name, key } of the whole picture
    this.viewer = new Viewer(id("viewer"), (...asked) => this.fetchLayer(...asked), () => this.shown());
    this.viewer.onError = (error) => this.problem(error);
    this.queue = new Queue((file) => this.open(file), () => this.choice(), (text) => say(text));
    this.listenFiles();
    this.listenTools();
    this.listenSettings();
  }

  // ---- files

  listenFiles() {
    id("choose").addEventListener("click", () => id("files").click());
    id("choose-folder").addEventListener("click", () => id("folder").click());
    id("close").addEventListener("click", () => id("files").click());
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
      performance.mark("dropped");
      this.take(await filesOf(event.dataTransfer));
    });
  }

  take(files) {
    if (files.length === 0) return;
    if (files.length === 1 && !this.queue.entries.length) return this.open(files[0]);
    this.queue.add(files);
    if (!this.picture) this.queue.show(0);
  }

  // A file, or null for the example.
  async open(file) {
    this.cancelAll();
    this.problem(null);
    performance.mark("given");
    id("busy").hidden = false;
    say(`Opening ${file?.name ?? "the example"}`);
    try {
      const about = file ? await api.givePicture(file) : await api.giveSample();
      if (this.picture) api.dropPicture(this.picture.picture).catch(() => {});
      this.begin(about);
    } catch (error) {
      id("busy").hidden = true;
      this.problem(error);
    }
  }

  begin(about) {
    this.picture = about;
    this.frame = 0;
    this.result = null;
    this.noise = null;
    this.first = true;
    id("drop").hidden = true;
    for (const name of ["viewer", "tools", "keys", "file-card", "noise-card", "settings", "whole-card"]) id(name).hidden = false;
    id("name").textContent = about.name;
    id("description").textContent = about.description;
    id("frames").hidden = about.frames < 2;
    id("frame").max = about.frames;
    id("frame").value = 1;
    id("frame-number").textContent = `1 of ${about.frames}`;
    id("sigma").value = "";
    id("strength").value = 0;
    id("viewer").querySelector("canvas").setAttribute("aria-label", `${about.name}: ${about.description}`);
    this.strengthShown();
    this.wholeState("On the screen is a quick look.");
    id("noise-headline").textContent = "looking…";
    id("noise-sentences").replaceChildren();
    id("doubts").replaceChildren();
    this.viewer.setPicture(about.width, about.height);
    this.setMode("wipe");
    this.frameChanged();
  }

  problem(error) {
    id("problem").hidden = !error;
    id("problem").textContent = error ? capital(error.message) : "";
  }

  // ---- noise

  async frameChanged() {
    const { picture, frame } = this;
    this.noiseMode(false);
    try {
      this.tellNoise(await api.noiseAtOnce(picture.picture, frame));
      this.estimating = await api.beginJob(picture.picture, { kind: "estimate", frame });
      const news = await this.estimating.finished;
      if (this.picture !== picture || this.frame !== frame) return;
      if (news.state === "failed") this.problem(new Error(news.error));
      if (news.state !== "done") return;
      this.tellNoise(news.noise, news.warnings);
      this.noiseMode(true);
      if (!this.sourceOf("denoised").result) this.viewer.renew(["denoised", "difference", "noise"]);
      this.soon();
    } catch (error) {
      if (this.picture === picture) this.problem(error);
    }
  }

  tellNoise(noise, warnings = []) {
    this.noise = noise;
    id("noise-headline").textContent = noise.headline;
    id("noise-sentences").replaceChildren(...noise.sentences.map((text) => element("p", text)));
    id("doubts").replaceChildren(...[...noise.doubts, ...warnings].map((text) => element("li", capital(text))));
    this.strengthShown();
  }

  noiseMode(known) {
    const button = document.querySelector('[data-mode="noise"]');
    button.disabled = !known;
    if (!known && this.viewer.mode === "noise") this.setMode("wipe");
  }

  // ---- what is shown

  choice() {
    const strength = 2 ** (id("strength").value / 50);
    return { sigma: id("sigma").value, strength: strength === 1 ? 1 : Number(strength.toPrecision(4)), pains: id("pains").value };
  }

  key() {
    return JSON.stringify(this.choice());
  }

  sourceOf() {
    return this.result?.key === this.key() ? { result: this.result.name } : {};
  }

  async fetchLayer(layer, region, signal, exact) {
    const { picture, frame } = this;
    const { sigma, strength } = this.choice();
    const computed = layer === "denoised" || layer === "difference";
    const wanted = { layer, frame, ...region, exact: exact ? 1 : 0, ...(computed ? { sigma, strength, ...this.sourceOf() } : {}) };
    const piece = await api.look(picture.picture, wanted, signal);
    if (computed) requestAnimationFrame(() => this.measured());
    return piece;
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
    id("zoom").textContent = `${Math.round(100 * viewer.zoom)} %`;
    id("busy").hidden = viewer.busy === 0;
    const single = viewer.mode !== "wipe";
    const corners = id("viewer").querySelectorAll(".corner");
    corners[0].textContent = single ? { noisy: "noisy", denoised: "denoised", difference: "removed", noise: "noise level" }[viewer.mode] : "noisy";
    corners[0].hidden = !single && viewer.wipe < 0.12;
    corners[1].hidden = single || viewer.wipe > 0.88;
    corners[1].textContent = this.sourceOf().result ? "denoised" : "denoised, quick look";
    const ends = viewer.ends();
    const legend = id("legend");
    legend.hidden = !ends || !["difference", "noise"].includes(viewer.mode);
    if (!legend.hidden) {
      legend.classList.toggle("grey", viewer.mode === "difference");
      id("legend-low").textContent = number(ends[0]);
      id("legend-high").textContent = number(ends[1]);
    }
  }

  setMode(mode) {
    for (const button of document.querySelectorAll("[data-mode]")) {
      button.setAttribute("aria-checked", button.dataset.mode === mode);
      button.tabIndex = button.dataset.mode === mode ? 0 : -1;
    }
    this.viewer.setMode(mode);
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
    viewer.moreKeys = { w: by("wipe"), n: by("noisy"), d: by("denoised"), x: by("difference"), m: by("noise") };
    id("zoom-in").addEventListener("click", () => viewer.zoomTo(viewer.scale * 1.5));
    id("zoom-out").addEventListener("click", () => viewer.zoomTo(viewer.scale / 1.5));
    id("fit").addEventListener("click", () => viewer.fit());
    id("one").addEventListener("click", () => viewer.zoomTo(1));
    id("frame").addEventListener("input", () => {
      this.frame = id("frame").value - 1;
      id("frame-number").textContent = `${this.frame + 1} of ${this.picture.frames}`;
      viewer.renew(["noisy", "denoised", "difference", "noise"]);
    });
    id("frame").addEventListener("change", () => this.frameChanged());
  }

  // ---- settings and the whole picture

  listenSettings() {
    id("settings").addEventListener("submit", (event) => event.preventDefault());
    id("strength").addEventListener("input", () => {
      performance.mark("strength moved");
      this.movedStrength = true;
      this.changed();
    });
    id("reset").addEventListener("click", () => {
      id("strength").value = 0;
      id("sigma").value = "";
      this.changed();
    });
    id("sigma").addEventListener("change", () => this.changed());
    id("pains").addEventListener("change", () => this.changed());
    id("whole").addEventListener("click", () => this.whole());
    id("cancel").addEventListener("click", () => {
      this.running?.cancel();
      id("whole-state").textContent = "Cancelling…";
    });
    id("save").addEventListener("click", () => this.save());
  }

  changed() {
    this.strengthShown();
    this.problem(null);
    if (!this.picture) return;
    this.running?.cancel();
    if (this.result && this.result.key !== this.key()) this.wholeState("On the screen is a quick look.");
    if (this.result?.key === this.key()) this.wholeDone();
    this.viewer.renew(["denoised", "difference"]);
    this.soon();
  }

  strengthShown() {
    const { sigma, strength } = this.choice();
    const level = (sigma || this.noise?.sigma || 0) * strength;
    const times = strength === 1 ? (sigma ? "as given" : "as estimated") : `× ${strength.toPrecision(2)}`;
    id("strength-value").textContent = level ? `${times}, σ ${number(level)}` : times;
    id("strength").setAttribute("aria-valuetext", id("strength-value").textContent);
  }

  soon() {
    clearTimeout(this.timer);
    if (!this.picture || this.picture.values > MOST_AT_ONCE || this.result?.key === this.key()) return;
    this.timer = setTimeout(() => this.whole(), SOON);
  }

  async whole() {
    clearTimeout(this.timer);
    this.running?.cancel();
    const { picture } = this;
    const key = this.key();
    id("save").disabled = true;
    id("whole").hidden = true;
    id("progress-row").hidden = false;
    id("progress").value = 0;
    let unwanted = false;
    const mine = { cancel: () => (unwanted = true) }; // until the server has told the job's number
    this.running = mine;
    try {
      const job = await api.beginJob(picture.picture, { kind: "denoise", ...this.choice() }, (news) => {
        if (this.running === mine) this.tellProgress(news);
      });
      mine.cancel = job.cancel;
      if (unwanted) job.cancel();
      const news = await job.finished;
      if (this.running !== mine) return;
      this.running = null;
      if (news.state === "done") {
        this.result = { name: news.result, key, seconds: news.seconds, command: news.command };
        this.wholeDone();
        this.viewer.renew(["denoised", "difference"]);
      } else {
        this.wholeState(news.state === "cancelled" ? "Cancelled. On the screen is a quick look." : "It did not work:");
        if (news.state === "failed") this.problem(new Error(news.error));
      }
    } catch (error) {
      if (this.running !== mine) return;
      this.running = null;
      this.wholeState("It did not work:");
      this.problem(error);
    }
  }

  tellProgress({ state, progress, left }) {
    id("progress").value = progress;
    const rest = left == null ? "" : `, about ${duration(left)} to go`;
    id("whole-state").textContent =
      state === "waiting" ? "Waiting for its turn…" : state === "cancelling" ? "Cancelling…" : `Denoising, ${Math.round(100 * progress)} %${rest}`;
  }

  wholeState(text) {
    id("whole-state").textContent = text;
    id("progress-row").hidden = true;
    id("whole").hidden = false;
    id("save").disabled = true;
    id("command-box").hidden = true;
  }

  wholeDone() {
    this.wholeState(`Denoised as a whole, in ${duration(this.result.seconds)}.`);
    id("whole").hidden = true;
    id("save").disabled = false;
    id("command-box").hidden = !this.result.command;
    id("command").textContent = this.result.command ?? "";
    say("The whole picture is denoised.");
  }

  async save() {
    try {
      await api.save(this.picture.picture, this.result.name, this.picture.target);
      say(`Saved ${this.picture.target}`);
    } catch (error) {
      this.problem(error);
    }
  }

  cancelAll() {
    clearTimeout(this.timer);
    this.running?.cancel();
    this.estimating?.cancel();
    this.running = null;
  }
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const number = (value) => String(Number(value.toPrecision(3)));
const duration = (seconds) => (seconds < 90 ? `${Math.max(0.1, seconds).toFixed(seconds < 9.95 ? 1 : 0)} s` : `${Math.round(seconds / 60)} min`);

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

// Files that were dropped, those inside folders too, with their places in `place`.
async function filesOf(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((entry) => entry.isDirectory)) return [...transfer.files];
  const found = [];
  const walk = async (entry) => {
    if (entry.isFile) {
      const file = await new Promise((done, failed) => entry.file(done, failed));
      file.place = entry.fullPath.replace(/^\//, "");
      found.push(file);
    } else {
      const reader = entry.createReader();
      for (;;) {
        const some = await new Promise((done, failed) => reader.readEntries(done, failed));
        if (!some.length) break;
        for (const each of some) await walk(each);
      }
    }
  };
  for (const entry of entries) await walk(entry);
  return found.filter((file) => !file.name.startsWith("."));
}
