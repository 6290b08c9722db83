// A small line plot as SVG: axes with a few round ticks, lines, perhaps a mark. Colours come from the style sheet.

const WIDTH = 420;
const HEIGHT = 230;
const PAD = { left: 46, right: 12, top: 10, bottom: 36 };

export function plot(place, { x, lines, xLabel, yLabel, yMin, yMax, logX = false, mark, words }) {
  const all = lines.flatMap((line) => line.y);
  const low = yMin ?? Math.min(...all);
  const high = yMax ?? Math.max(...all);
  const along = logX ? Math.log : (value) => value;
  const [start, end] = [along(x[0]), along(x.at(-1))];
  const px = (value) => PAD.left + ((along(value) - start) / (end - start)) * (WIDTH - PAD.left - PAD.right);
  const py = (value) => PAD.top + (1 - (value - low) / (high - low || 1)) * (HEIGHT - PAD.top - PAD.bottom);
  const path = ({ y, ghost }) => {
    const points = y.map((value, k) => `${k ? "L" : "M"}${px(x[k]).toFixed(1)} ${py(value).toFixed(1)}`).join("");
    return `<path class="${ghost ? "ghost" : "curve"}" d="${points}"/>`;
  };
  const xTicks = logX ? decades(x[0], x.at(-1)) : rounded(x[0], x.at(-1), 5);
  const yTicks = rounded(low, high, 4);
  place.innerHTML = `<svg class="plot" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${words}">
    <defs><clipPath id="clip-${place.className}"><rect x="${PAD.left}" y="${PAD.top}" width="${WIDTH - PAD.left - PAD.right}" height="${HEIGHT - PAD.top - PAD.bottom}"/></clipPath></defs>
    ${yTicks.map((t) => `<path class="grid" d="M${PAD.left} ${py(t)}H${WIDTH - PAD.right}"/><text class="tick" text-anchor="end" x="${PAD.left - 6}" y="${py(t) + 4}">${label(t)}</text>`).join("")}
    ${xTicks.map((t) => `<path class="grid" d="M${px(t)} ${PAD.top}V${HEIGHT - PAD.bottom}"/><text class="tick" text-anchor="middle" x="${px(t)}" y="${HEIGHT - PAD.bottom + 15}">${label(t)}</text>`).join("")}
    <g clip-path="url(#clip-${place.className})">${lines.map(path).join("")}
    ${mark ? `<path class="mark" d="M${px(mark)} ${PAD.top}V${HEIGHT - PAD.bottom}"/>` : ""}</g>
    ${mark ? `<text class="mark-text" text-anchor="${px(mark) > WIDTH / 2 ? "end" : "start"}" x="${px(mark) + (px(mark) > WIDTH / 2 ? -6 : 6)}" y="${HEIGHT - PAD.bottom - 8}">${label(Number(mark.toPrecision(3)))}</text>` : ""}
    <text class="axis" text-anchor="middle" x="${(PAD.left + WIDTH - PAD.right) / 2}" y="${HEIGHT - 4}">${xLabel}</text>
    <text class="axis" text-anchor="middle" transform="translate(11 ${(PAD.top + HEIGHT - PAD.bottom) / 2}) rotate(-90)">${yLabel}</text>
  </svg>`;
}

const label = (value) => String(Number(value.toPrecision(3))).replace("-", "−");

function rounded(low, high, count) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high + 1e-9; k += 1) ticks.push(k * step);
  return ticks;
}

function decades(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1)
    for (const digit of [1, 3]) {
      const value = digit * 10 ** power;
      if (value >= low && value <= high) ticks.push(value);
    }
  return ticks;
}
