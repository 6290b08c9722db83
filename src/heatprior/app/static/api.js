// Questions to the server: always with the token; a refusal is an Error whose message is the server's one line.

const token = new URLSearchParams(location.search).get("token") ?? "";
let tab = "";
const whenLost = [];

export class Superseded extends Error {}

export const onLost = (tell) => whenLost.push(tell);

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(`/api${path}`, { ...options, headers: { "x-heatprior-token": token, ...options.headers } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    for (const tell of whenLost) tell();
    throw new Error("the server cannot be reached");
  }
  if (answer.status === 204) throw new Superseded();
  if (!answer.ok) {
    const { error } = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
    throw new Error(error);
  }
  return answer;
}

const inTab = (path) => `/tabs/${tab}${path}`;
export const get = async (path) => (await ask(path)).json();
export const post = async (path, body = {}) =>
  (await ask(path, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } })).json();

export async function openTab() {
  ({ tab } = await post("/tabs"));
  addEventListener("pagehide", (event) => {
    if (!event.persisted) navigator.sendBeacon(`/api${inTab("/close")}?token=${encodeURIComponent(token)}`);
  });
  setInterval(() => get(inTab("")).catch(() => {}), 20_000);
}

export async function givePicture(file) {
  const answer = await ask(inTab(`/pictures?name=${encodeURIComponent(file.name)}`), { method: "PUT", body: file });
  return answer.json();
}
export const giveSample = () => post(inTab("/sample"));
export const giveMask = (picture, png) => ask(inTab(`/pictures/${picture}/mask`), { method: "PUT", body: png });
export const dropPicture = (picture) => ask(inTab(`/pictures/${picture}`), { method: "DELETE" });
export const noiseAtOnce = (picture, frame, noise) => get(inTab(`/pictures/${picture}/noise?${new URLSearchParams({ frame, noise })}`));
export const keep = (picture, body) => post(inTab(`/pictures/${picture}/keep`), body);
export const ofPicture = (picture, path) => get(inTab(`/pictures/${picture}${path}`));

// A part of a layer: its pixels, where they are, the values of black and white, and whether a closer look sees more.
export async function look(picture, wanted, signal) {
  const answer = await ask(inTab(`/pictures/${picture}/view?${new URLSearchParams(wanted)}`), { signal });
  const [x, y, w, h, step] = answer.headers.get("x-region").split(",").map(Number);
  const [black, white] = answer.headers.get("x-ends").split(",").map(Number);
  return { bitmap: await createImageBitmap(await answer.blob()), x, y, w, h, step, black, white };
}

// A long job: begin it, hear of its progress, cancel it. `finished` resolves with its last news.
export async function beginJob(picture, body, onNews = () => {}) {
  let news = await post(inTab(`/pictures/${picture}/jobs`), body);
  const cancel = () => post(inTab(`/jobs/${news.job}/cancel`)).catch(() => {});
  const follow = async () => {
    while (!["done", "failed", "cancelled"].includes(news.state)) {
      onNews(news);
      const seen = `${news.state} ${news.progress.toFixed(2)}`;
      news = await get(inTab(`/jobs/${news.job}?wait=15&seen=${encodeURIComponent(seen)}`));
    }
    onNews(news);
    return news;
  };
  return { cancel, finished: follow() };
}

export function saveBlob(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
const download = async (path, name) => saveBlob(await (await ask(path)).blob(), name);
export const save = (picture, result, name) =>
  download(inTab(`/pictures/${picture}/save?${new URLSearchParams({ result, name })}`), name);
export const dropSaved = () => ask(inTab("/saved.zip"), { method: "DELETE" });
export const saveAll = () => download(inTab("/saved.zip"), "denoised.zip");

export async function pngOf(path) {
  return createImageBitmap(await (await ask(path)).blob());
}
