// A folder, or several files: denoised one after the other by the same settings; a bad one is told, the rest is done.

import * as api from "./api.js";
import { id } from "./words.js";

const placeOf = (file) => file.place || file.webkitRelativePath || file.name;

export class Queue {
  constructor(open, choice, say) {
    this.entries = []; // { file, state, reason }
    this.open = open;
    this.choice = choice;
    this.say = say;
    id("queue-start").addEventListener("click", () => this.run());
    id("queue-cancel").addEventListener("click", () => this.cancel());
    id("queue-save").addEventListener("click", () => api.saveAll().catch((error) => this.say(error.message)));
  }

  add(files) {
    for (const file of files.filter((each) => !each.name.startsWith("."))) this.entries.push({ file, state: "", reason: "" });
    id("queue").hidden = false;
    this.draw();
  }

  show(number) {
    this.current = number;
    this.draw();
    return this.open(this.entries[number].file);
  }

  async run() {
    this.stopped = false;
    id("queue-start").hidden = true;
    id("queue-cancel").hidden = false;
    const choice = this.choice();
    for (const entry of this.entries) {
      if (this.stopped) break;
      if (entry.state !== "done") await this.one(entry, choice);
    }
    id("queue-start").hidden = false;
    id("queue-cancel").hidden = true;
    const done = this.entries.filter((entry) => entry.state === "done").length;
    id("queue-save").disabled = done === 0;
    this.say(`${done} of ${this.entries.length} pictures are denoised.`);
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
      await api.keep(picture, { result: news.result, place: placeOf(entry.file) });
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
    id("queue-list").replaceChildren(
      ...this.entries.map((entry, number) => {
        const line = document.createElement("li");
        const button = document.createElement("button");
        button.type = "button";
        button.classList.toggle("failed", entry.state === "failed");
        if (number === this.current) button.setAttribute("aria-current", "true");
        for (const [name, text] of [["where", placeOf(entry.file)], ["state", entry.state], ["reason", entry.reason]]) {
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
  }
}
