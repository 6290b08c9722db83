// The whole picture: one job at a time, its progress and its end in words, and the file that it gives.

import * as api from "./api.js";
import { duration, id, say } from "./words.js";

const FAILED = "This failed, for the reason above.";

export class Whole {
  // bench: { picture, task, problem(error), finished(news) }
  constructor(bench) {
    this.bench = bench;
    id("whole").addEventListener("click", () => this.run());
    id("cancel").addEventListener("click", () => {
      this.declined = this.bench.task.key();
      this.running?.cancel();
      id("whole-state").textContent = "Cancelling…";
    });
    id("save").addEventListener("click", () => this.save());
  }

  // Whether the whole is to be begun for what is chosen now: not if it is under way already, or was cancelled.
  get isWanted() {
    const key = this.bench.task.key();
    return this.running?.key !== key && this.declined !== key;
  }

  // Whatever is under way belongs to a picture or a task that is no longer there.
  abandon() {
    this.running?.cancel();
    this.running = this.declined = null;
    this.idle();
  }

  async run() {
    this.running?.cancel();
    this.declined = null;
    const { picture, task } = this.bench;
    const key = task.key();
    id("save").disabled = true;
    id("whole").hidden = true;
    id("progress-row").hidden = false;
    id("progress").value = 0;
    let unwanted = false;
    const mine = { key, cancel: () => (unwanted = true) }; // until the server has told the job's number
    this.running = mine;
    try {
      const body = await task.job(picture);
      const job = await api.beginJob(picture.picture, body, (news) => {
        if (this.running === mine) this.tellProgress(news);
      });
      mine.cancel = job.cancel;
      if (unwanted) job.cancel();
      const news = await job.finished;
      if (this.running !== mine) return;
      this.running = null;
      if (news.state === "done") {
        task.result = { ...news, name: news.result, key, target: news.target ?? picture.target };
        this.bench.finished();
      } else {
        this.idle(news.state === "cancelled" ? `Cancelled. ${task.words.idle}` : FAILED);
        if (news.state === "failed") this.bench.problem(new Error(news.error));
      }
    } catch (error) {
      if (this.running !== mine) return;
      this.running = null;
      this.idle(FAILED);
      this.bench.problem(error);
    }
  }

  tellProgress({ state, progress, left }) {
    id("progress").value = progress;
    const rest = left == null ? "" : `, about ${duration(left)} to go`;
    const { doing } = this.bench.task.words;
    id("whole-state").textContent =
      state === "waiting" ? "Waiting for its turn…" : state === "cancelling" ? "Cancelling…" : `${doing}, ${Math.round(100 * progress)} %${rest}`;
  }

  idle(text = this.bench.task.words.idle) {
    const { words } = this.bench.task;
    id("whole-state").textContent = text;
    id("progress-row").hidden = true;
    id("whole").textContent = words.start;
    id("whole").hidden = false;
    id("save").disabled = true;
    id("command-box").hidden = true;
  }

  done() {
    const { words, result } = this.bench.task;
    const psnr = result.predicted ? ` Expected PSNR: ${result.predicted}.` : "";
    this.idle(`${words.done} (${duration(result.seconds)}).${psnr}`);
    id("whole").hidden = true;
    id("save").disabled = false;
    id("command-box").hidden = !result.command;
    id("command").textContent = result.command ?? "";
    say(`${words.done}.`);
  }

  async save() {
    const { picture, task } = this.bench;
    try {
      await api.save(picture.picture, task.result.name, task.result.target);
      say(`Saved ${task.result.target}`);
    } catch (error) {
      this.bench.problem(error);
    }
  }
}
