// The page: its views, its theme, and what it says when the server has gone.

import { onLost, openTab } from "./api.js";
import { Denoise } from "./denoise.js";
import { Prior } from "./prior.js";
import { Restore } from "./restore.js";
import { Workbench } from "./workbench.js";
import { id } from "./words.js";

const THEMES = { auto: "system", light: "light", dark: "dark" };
const SECTIONS = { denoise: "workbench", restore: "workbench", prior: "view-prior" };

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  localStorage.setItem("theme", name);
  id("theme").querySelector(".theme-name").textContent = `Theme: ${THEMES[name]}`;
}

function show(view) {
  for (const button of document.querySelectorAll("[data-view]")) {
    if (button.dataset.view === view) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  }
  for (const section of new Set(Object.values(SECTIONS))) id(section).hidden = section !== SECTIONS[view];
  dispatchEvent(new CustomEvent("view", { detail: view }));
}

const names = Object.keys(THEMES);
setTheme(names.includes(localStorage.getItem("theme")) ? localStorage.getItem("theme") : "auto");
id("theme").addEventListener("click", () => {
  const now = localStorage.getItem("theme");
  setTheme(names[(names.indexOf(now) + 1) % names.length]);
});
for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => show(button.dataset.view));

onLost(() => {
  id("lost").textContent = "The server has ended. Start heatprior app again, and open the URL that it prints.";
  id("lost").hidden = false;
});

try {
  await openTab();
  const bench = new Workbench();
  bench.setTasks({ denoise: new Denoise(bench), restore: new Restore(bench) });
  addEventListener("view", ({ detail }) => detail in bench.tasks && bench.setTask(detail));
  new Prior(id("view-prior"), () => bench.picture && { picture: bench.picture, frame: bench.frame });
  document.documentElement.dataset.ready = "true";
} catch (error) {
  id("lost").textContent = error.message;
  id("lost").hidden = false;
}
