// The page: its views, its theme, and what it says when the server has gone.

import { onLost, openTab } from "./api.js";
import { Denoise } from "./denoise.js";
import { Prior } from "./prior.js";

const THEMES = { auto: "as the system", light: "light", dark: "dark" };
const id = (name) => document.getElementById(name);

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  localStorage.setItem("theme", name);
  id("theme").setAttribute("aria-label", `Theme: ${THEMES[name]}`);
  id("theme").querySelector(".theme-name").textContent = name[0].toUpperCase() + name.slice(1);
}

function show(view) {
  for (const button of document.querySelectorAll("[data-view]")) {
    if (button.dataset.view === view) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
    id(`view-${button.dataset.view}`).hidden = button.dataset.view !== view;
  }
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
  const denoise = new Denoise();
  new Prior(id("view-prior"), () => denoise.picture && { picture: denoise.picture, frame: denoise.frame });
  document.documentElement.dataset.ready = "true";
} catch (error) {
  id("lost").textContent = error.message;
  id("lost").hidden = false;
}
