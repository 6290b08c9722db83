// The task "Denoise": the noise of a picture in words, its strength, a quick look at once, the whole behind it.

import * as api from "./api.js";
import { capital, element, id, number } from "./words.js";

const SOON = 700; // ms after the last change until the whole picture is begun
const MOST_AT_ONCE = 40e6; // values of a picture that is denoised as a whole without being asked

export class Denoise {
  words = {
    before: "noisy",
    after: "denoised",
    difference: "removed",
    doing: "Denoising",
    done: "Denoised",
    start: "Denoise all of it",
    idle: "You see a preview.",
    missing: {
      noise: "The noise of the whole picture is still being estimated",
      error: "Tick “Estimate the error of each pixel”, and wait for the whole picture",
    },
  };

  constructor(bench) {
    this.bench = bench;
    this.result = null; // of the whole picture
    this.known = false; // whether the noise map is there
    id("settings").addEventListener("submit", (event) => event.preventDefault());
    id("strength").addEventListener("input", () => {
      performance.mark("strength moved");
      bench.movedStrength = true;
      this.changed();
    });
    id("reset").addEventListener("click", () => {
      id("strength").value = 0;
      id("sigma").value = "";
      this.changed();
    });
    id("kind").addEventListener("change", () => {
      this.changed();
      if (bench.picture) this.frameChanged();
    });
    for (const name of ["sigma", "quality", "error"]) id(name).addEventListener("change", () => this.changed());
  }

  forget(_, keeps) {
    if (!keeps) {
      id("sigma").value = "";
      id("strength").value = 0;
      id("kind").value = "auto";
    }
    this.noise = null;
    this.known = false;
    id("noise-headline").textContent = "estimating…";
    id("noise-sentences").replaceChildren();
    id("doubts").replaceChildren();
    this.strengthShown();
    this.lastKey = this.key();
  }

  begin() {
    if (this.known) this.soon();
    else this.frameChanged();
  }

  leave() {
    clearTimeout(this.timer);
    this.stopEstimating();
  }

  stopEstimating() {
    this.estimating?.cancel();
    this.estimating = null;
  }

  modes() {
    const maps = [this.known && "noise", this.bench.current?.errors && "error"].filter(Boolean);
    return ["wipe", "noisy", "denoised", "difference", ...maps];
  }

  choice() {
    const strength = 2 ** (id("strength").value / 50);
    return {
      sigma: id("sigma").value,
      noise: id("kind").value,
      strength: strength === 1 ? 1 : Number(strength.toPrecision(4)),
      quality: id("quality").value,
      error: id("error").checked,
    };
  }

  key() {
    return JSON.stringify(this.choice());
  }

  job() {
    clearTimeout(this.timer);
    return { kind: "denoise", ...this.choice() };
  }

  // The quick look does not depend on the quality.
  asked() {
    const { sigma, noise, strength } = this.choice();
    return { sigma, noise, strength };
  }

  // ---- noise

  async frameChanged() {
    const { bench } = this;
    const { picture, frame } = bench;
    const noise = id("kind").value;
    this.known = false;
    this.stopEstimating();
    bench.updateModes();
    const isOld = () => bench.picture !== picture || bench.frame !== frame || bench.task !== this || id("kind").value !== noise;
    try {
      const first = await api.noiseAtOnce(picture.picture, frame, noise);
      if (isOld()) return;
      this.tellNoise(first);
      const job = await api.beginJob(picture.picture, { kind: "estimate", frame, noise });
      if (isOld()) return job.cancel();
      this.estimating = job;
      const news = await job.finished;
      if (this.estimating === job) this.estimating = null;
      if (isOld()) return;
      if (news.state === "failed") bench.problem(new Error(news.error));
      if (news.state !== "done") return;
      this.tellNoise(news.noise, news.warnings);
      this.known = true;
      bench.updateModes();
      bench.viewer.renew(["noise", ...(bench.current ? [] : ["denoised", "difference"])]);
      this.soon();
    } catch (error) {
      if (!isOld()) bench.problem(error);
    }
  }

  tellNoise(noise, warnings = []) {
    this.noise = noise;
    id("noise-headline").textContent = noise.headline;
    id("noise-sentences").replaceChildren(...noise.sentences.map((text) => element("p", text)));
    id("doubts").replaceChildren(...[...noise.doubts, ...warnings].map((text) => element("li", capital(text))));
    this.strengthShown();
  }

  // ---- settings

  // A field that loses the focus says so too, with the value that it had: no reason to begin again.
  changed() {
    const key = this.key();
    if (key === this.lastKey) return;
    this.lastKey = key;
    this.strengthShown();
    this.bench.changed();
    this.soon();
  }

  strengthShown() {
    const { sigma, strength } = this.choice();
    const { sigma: found = 0, floor = 0 } = this.noise ?? {};
    const more = Math.max(0, strength - 1) * Math.max(0, floor - found); // as the library does it
    const level = sigma ? sigma * strength : found * strength + more;
    id("kind").disabled = Boolean(sigma);
    const times = strength === 1 ? (sigma ? "as given" : "as estimated") : `× ${strength.toPrecision(2)}`;
    id("strength-value").textContent = level ? `${times}, σ ${number(level)}` : times;
    id("strength").setAttribute("aria-valuetext", id("strength-value").textContent);
  }

  soon() {
    clearTimeout(this.timer);
    const { bench } = this;
    if (!bench.picture || bench.picture.values > MOST_AT_ONCE || bench.current) return;
    this.timer = setTimeout(() => bench.task === this && bench.whole.isWanted && bench.whole.run(), SOON);
  }
}
