// Small things that several parts of the page need: elements by id, text, numbers and times as people read them.

export const id = (name) => document.getElementById(name);
export const say = (text) => (id("say").textContent = text);
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
export const number = (value) => String(Math.abs(value) < 1000 ? Number(value.toPrecision(3)) : Math.round(value)).replace("-", "−");
export const duration = (seconds) =>
  seconds < 90 ? `${Math.max(0.1, seconds).toFixed(seconds < 9.95 ? 1 : 0)} s` : `${Math.round(seconds / 60)} min`;

export function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
