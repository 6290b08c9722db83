// A folder, or several files: denoised one after the other by the same settings; a bad one is told, the rest is done.

import * as api from "./api.js";
import { id } from "./words.js";

export class Queue {
  constructor(open, choice, say) {
    this.entries = []; // { file, place, state, reason, settings: those it was done by }
    this.open = open;
    this.choice = choice;
    this.say = say;
    id("queue-start").addEventListener("click", () => this.run());
    id("queue-cancel").addEventListener("click", () => this.cancel());
    id("queue-clear").addEventListener("click", () => this.clear());
    id("queue-save").addEventListener("click", () => api.saveAll().catch((error) => this.say(error.message)));
  }

  add(files) {
    for (const file of files.filter((each) => !each.name.startsWith(".")))
      this.entries.push({ file, place: this.placeFor(file), state: "", reason: "" });
    id("queue").hidden = this.entries.length === 0;
    this.draw();
  }

  // Where its result goes in the archive: where it lay in its folder; a second file of one name has a number.
  placeFor(file) {
    const place = file.place || file.webkitRelativePath || file.name;
    const [, stem, suffix] = place.match(/^(.*?[^/])(\.[^/]*)?$/s);
    const isFree = (name) => this.entries.every((entry) => entry.place !== name);
    let free = place;
    for (let number = 2; !isFree(free); number += 1) free = `${stem}-${number}${suffix ?? ""}`;
    return free;
  }

  // Whoever goes from one picture of the queue to the next keeps the settings, which are for all of them.
  show(number) {
    const keeps = this.current !== undefined;
    this.current = number;
    this.draw();
    return this.open(this.entries[number].file, keeps);
  }

  async clear() {
    this.entries = [];
    this.current = undefined;
    this.add([]);
    id("queue-save").disabled = true;
    await api.dropSaved().catch((error) => this.say(error.message));
  }

  async run() {
    this.stopped = false;
    this.running(true);
    const choice = this.choice();
    const settings = JSON.stringify(choice);
    // What was done with other settings must not be saved with the rest, even if this run is cancelled.
    if (!this.entries.some((entry) => entry.settings === settings && entry.state === "done"))
      await api.dropSaved().catch((error) => this.say(error.message));
    for (const entry of this.entries) if (entry.settings !== settings) Object.assign(entry, { state: "", reason: "" });
    this.draw();
    for (const entry of this.entries) {
      if (this.stopped) break;
      entry.settings = settings;
      if (entry.state !== "done") await this.one(entry, choice);
    }
    this.running(false);
    const done = this.entries.filter((entry) => entry.state === "done").length;
    id("queue-save").disabled = done === 0;
    this.say(`${done} of ${this.entries.length} pictures are denoised.`);
  }

  running(isRunning) {
    for (const name of ["queue-start", "queue-clear"]) id(name).hidden = isRunning;
    id("queue-cancel").hidden = !isRunning;
    id("queue-save").disabled = true;
  }

  async one(entry, choice) {
    let picture = null;
    const tell = (state, reason = "") => {
      Object.assign(entry, { state, reason });
      this.draw();
    };
    try {
      tell("opening");
      ({ picture } = await api.givePicture(entry.file));
      this.job = await api.beginJob(picture, { kind: "denoise", ...choice }, ({ state, progress }) =>
        tell(state === "waiting" ? "waiting" : `${Math.round(100 * progress)} %`),
      );
      const news = await this.job.finished;
      if (news.state === "failed") throw new Error(news.error);
      if (news.state === "cancelled") return tell("cancelled");
      await api.keep(picture, { result: news.result, place: entry.place });
      tell("done");
    } catch (error) {
      tell("failed", error.message);
    } finally {
      this.job = null;
      if (picture) api.dropPicture(picture).catch(() => {});
    }
  }

  cancel() {
    this.stopped = true;
    this.job?.cancel();
  }

  draw() {
    const done = this.entries.filter((entry) => entry.state === "done").length;
    id("queue-count").textContent = `${done} of ${this.entries.length} done`;
    const list = id("queue-list");
    const focused = [...list.querySelectorAll("button")].indexOf(document.activeElement);
    list.replaceChildren(
      ...this.entries.map((entry, number) => {
        const line = document.createElement("li");
        const button = document.createElement("button");
        button.type = "button";
        button.classList.toggle("failed", entry.state === "failed");
        if (number === this.current) button.setAttribute("aria-current", "true");
        for (const [name, text] of [["where", entry.place], ["state", entry.state], ["reason", entry.reason]]) {
          if (name === "reason" && !text) continue;
          const part = document.createElement("span");
          part.className = name;
          part.textContent = text;
          button.append(part);
        }
        button.addEventListener("click", () => this.show(number));
        line.append(button);
        return line;
      }),
    );
    list.querySelectorAll("button")[focused]?.focus({ preventScroll: true }); // whoever was there stays there
  }
}
