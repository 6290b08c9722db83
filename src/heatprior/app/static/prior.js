// The view "The prior": the paper to play with. One slider for sigma moves everything; each curve is asked of the prior.

import * as api from "./api.js";
import { plot } from "./plots.js";

const SIGMA_MAX = 0.4;
const TICKS = 100; // of the slider; sigma = SIGMA_MAX (tick / TICKS)², fine where little noise changes much

const PAGE = `
<h2 class="unseen">The prior</h2>
<div class="prior-bar">
  <label>Prior <select class="names"></select></label>
  <label class="sigma-label"><span>Noise level <output class="sigma-value"></output></span>
    <input type="range" class="sigma" min="0" max="${TICKS}" value="30"></label>
</div>
<p class="hint intro">The model says: the responses of a patch to these filters are independent, and each follows a mixture of Gaussians. Noise of level σ widens every mixture by a known amount, and nothing else: so the density of noisy patches is exact at every σ. Move the slider and watch.</p>
<div class="prior-grid">
  <section class="card wide" aria-labelledby="filters-title"><div class="row spread"><h3 id="filters-title">Filters, by rising norm, above their potentials −log ψ</h3><span class="hint facts"></span></div>
    <div class="filters" role="listbox" aria-label="Filters" tabindex="-1"></div></section>
  <section class="card" aria-labelledby="potential-title"><h3 id="potential-title">Potential of filter <span class="which">1</span></h3><div class="potential"></div><p class="hint">Dotted: without noise. Diffusion fills the well and flattens the walls.</p></section>
  <section class="card" aria-labelledby="score-title"><h3 id="score-title">Score of a response</h3><div class="score"></div><p class="hint">d/du log ψ: where a response is pushed, and how hard. Times σ²‖k‖² it is what denoising takes off.</p></section>
  <section class="card" aria-labelledby="samples-title"><div class="row spread"><h3 id="samples-title">Samples at this σ</h3><button type="button" class="again">Draw again</button></div><canvas class="samples" role="img" aria-label="Sixty patches drawn from the prior"></canvas><p class="hint">Exact draws, each in its own contrast. Brightness is not modelled.</p></section>
  <section class="card" aria-labelledby="likelihood-title"><h3 id="likelihood-title">How likely is the picture at hand?</h3><div class="likelihood"></div><p class="hint likelihood-words">Open a picture under Denoise; here appears how likely the prior finds it at each noise level.</p></section>
</div>`;

const potentialsOf = (name, sigma) => api.get(`/priors/${name}/potentials?sigma=${sigma}`);

export class Prior {
  constructor(place, pictureAtHand) {
    this.place = place;
    this.pictureAtHand = pictureAtHand;
    this.seed = 1;
    this.chosen = 0;
    addEventListener("view", ({ detail }) => detail === "prior" && this.shown());
  }

  find(name) {
    return this.place.querySelector(`.${name}`);
  }

  async shown() {
    this.loaded ??= this.begin();
    await this.loaded;
    await this.likelihood();
  }

  async begin() {
    this.place.innerHTML = PAGE;
    this.listen();
    try {
      const { names } = await api.get("/priors");
      this.find("names").replaceChildren(...names.map((name) => new Option(name, name)));
    } catch (error) {
      this.problem(error);
    }
    await this.load();
  }

  problem(error) {
    this.find("intro").textContent = error.message;
  }

  get sigma() {
    return SIGMA_MAX * (this.find("sigma").value / TICKS) ** 2;
  }

  listen() {
    this.find("names").addEventListener("change", async () => (await this.load()) && this.likelihood());
    this.find("sigma").addEventListener("input", () => this.moved());
    this.find("again").addEventListener("click", () => {
      this.seed += 1;
      this.moved();
    });
    this.find("filters").addEventListener("keydown", (event) => {
      const across = Math.max(1, Math.round(this.find("filters").clientWidth / 74));
      const way = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across }[event.key];
      if (!way) return;
      event.preventDefault();
      this.choose(Math.min(this.about.filters.length - 1, Math.max(0, this.chosen + way)), true);
    });
  }

  // The prior that is chosen; whether it came, and is still the one that is chosen.
  async load() {
    const name = this.find("names").value;
    try {
      const [about, quiet] = await Promise.all([api.get(`/priors/${name}`), potentialsOf(name, 0)]);
      if (this.find("names").value !== name) return false;
      Object.assign(this, { about, quiet });
    } catch (error) {
      this.problem(error);
      return false;
    }
    const { filters, norms, size, facts } = this.about;
    this.find("facts").textContent = `${facts["patch size"]}, ${facts.parameters} parameters`;
    this.find("filters").replaceChildren(...filters.map((values, number) => this.cell(values, norms[number], size, number)));
    this.choose(Math.min(this.chosen, filters.length - 1));
    await this.moved();
    return true;
  }

  cell(values, norm, size, number) {
    const cell = document.createElement("div");
    cell.className = "filter";
    cell.setAttribute("role", "option");
    cell.setAttribute("aria-label", `Filter ${number + 1}, norm ${norm.toPrecision(2)}`);
    cell.title = `norm ${norm.toPrecision(2)}`;
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = size;
    const context = canvas.getContext("2d");
    const pixels = context.createImageData(size, size);
    const most = Math.max(...values.map(Math.abs));
    values.forEach((value, k) => pixels.data.set([...Array(3).fill(127.5 + (127.5 * value) / most), 255], 4 * k));
    context.putImageData(pixels, 0, 0);
    const curve = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    curve.setAttribute("viewBox", "0 0 64 40");
    curve.setAttribute("aria-hidden", "true");
    cell.append(canvas, curve);
    cell.addEventListener("click", () => this.choose(number, true));
    return cell;
  }

  // Everything for the sigma of the slider; while an answer is under way only the newest position counts.
  async moved() {
    const { sigma } = this;
    this.find("sigma-value").textContent = `σ = ${sigma.toFixed(3)} of full scale (${(255 * sigma).toFixed(1)} of 255)`;
    this.find("sigma").setAttribute("aria-valuetext", this.find("sigma-value").textContent);
    if (this.underWay || !this.about) {
      this.stale = true;
      return;
    }
    this.underWay = true;
    try {
      do {
        this.stale = false;
        const { sigma: now, about } = this;
        const { potentials } = await potentialsOf(about.name, now);
        if (this.about !== about) continue; // another prior was chosen meanwhile
        this.curves(potentials);
        await Promise.all([this.expert(now), this.samples(now)]);
      } while (this.stale);
    } catch (error) {
      this.problem(error);
    } finally {
      this.underWay = false;
    }
  }

  curves(potentials) {
    const cells = this.find("filters").children;
    potentials.forEach((values, number) => {
      if (!cells[number]) return;
      const low = Math.min(...values);
      const line = (each, floor) =>
        each.map((value, k) => `${k ? "L" : "M"}${((64 * k) / (each.length - 1)).toFixed(1)} ${Math.max(1, 38 - 3.2 * (value - floor)).toFixed(1)}`).join("");
      const before = this.quiet.potentials[number];
      cells[number].lastChild.innerHTML = `<path class="ghost" d="${line(before, Math.min(...before))}"/><path class="curve" d="${line(values, low)}"/>`;
    });
  }

  choose(number, ask = false) {
    this.chosen = number;
    [...this.find("filters").children].forEach((cell, k) => {
      cell.setAttribute("aria-selected", k === number);
      cell.tabIndex = k === number ? 0 : -1;
    });
    this.find("which").textContent = number + 1;
    if (ask) {
      this.find("filters").children[number].focus();
      this.moved();
    }
  }

  async expert(sigma) {
    const { about, chosen } = this;
    const path = (level) => `/priors/${about.name}/expert?filter=${chosen}&sigma=${level}`;
    const [now, before] = await Promise.all([api.get(path(sigma)), api.get(path(0))]);
    const floor = (values) => values.map((value) => value - Math.min(...values));
    plot(this.find("potential"), {
      x: now.responses,
      lines: [{ y: floor(before.potential), ghost: true }, { y: floor(now.potential) }],
      xLabel: "response u",
      yLabel: "−log ψ",
      yMax: 14,
      words: `Potential of filter ${chosen + 1} at sigma ${sigma.toFixed(3)}`,
    });
    const most = 1.15 * Math.max(...now.score.map(Math.abs));
    plot(this.find("score"), {
      x: now.responses,
      lines: [{ y: before.score, ghost: true }, { y: now.score }],
      xLabel: "response u",
      yLabel: "score",
      yMin: -most,
      yMax: most,
      words: `Score of filter ${chosen + 1} at sigma ${sigma.toFixed(3)}`,
    });
  }

  async samples(sigma = this.sigma) {
    const bitmap = await api.pngOf(`/priors/${this.about.name}/samples?sigma=${sigma}&seed=${this.seed}`);
    const canvas = this.find("samples");
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
  }

  async likelihood() {
    const { picture, frame } = this.pictureAtHand() ?? {};
    if (!picture || !this.about) return;
    const words = this.find("likelihood-words");
    words.textContent = "Computing…";
    try {
      const found = await api.ofPicture(picture.picture, `/likelihood?prior=${this.about.name}&frame=${frame}`);
      const most = Math.max(...found.values);
      plot(this.find("likelihood"), {
        x: found.sigmas,
        lines: [{ y: found.values }],
        logX: true,
        xLabel: `σ, of ${found.white}`,
        yLabel: "log f",
        yMin: Math.max(Math.min(...found.values), most - 120),
        mark: found.best,
        words: `Log-likelihood over sigma, highest at ${found.best.toPrecision(3)}`,
      });
      words.textContent = `${picture.name}, ${found.channel}: the mean log-density of ${found.patches} patches is highest at σ = ${found.best.toPrecision(3)}. That is the noise level this prior believes in; the estimate under Denoise also lets the contrast of the picture vary.`;
    } catch (error) {
      words.textContent = error.message;
    }
  }
}
