"use strict";
// Numbers in words, and elements in one line.
const SVG = "http://www.w3.org/2000/svg";
const NONE = "not measured";

function digits(x) {  // three significant digits, no exponent
  if (x === 0) return "0";
  const places = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(x))));
  return x.toFixed(Math.min(places, 9));
}
function scaled(x, units) {
  let at = 0;
  while (at + 1 < units.length && Math.abs(x) >= 1000) { x /= 1000; ++at; }
  return (at === 0 ? String(Math.round(x)) : digits(x)) + " " + units[at];
}
const bytesText = (x) => x == null ? "unknown" : scaled(x, ["B", "kB", "MB", "GB", "TB"]);
const flopText = (x) => x == null ? "unknown" : scaled(x, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"]);
const msText = (x) => x == null ? NONE : x === 0 ? "0 ms" : x < 0.001 ? digits(x * 1e6) + " ns" : x < 1 ? digits(x * 1e3) + " us" : digits(x) + " ms";
const percentText = (x) => x == null ? NONE : (100 * x).toFixed(100 * x >= 10 ? 0 : 1) + " %";
const errorText = (x) => x == null ? NONE : x === 0 ? "0" : x.toExponential(1);
const plural = (n, word) => n + " " + word + (n === 1 ? "" : word.endsWith("ch") ? "es" : "s");

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value == null || value === false) continue;
    if (key.startsWith("on") && typeof value === "function") element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity))
    if (child != null && child !== false) element.append(child);
  return element;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const shellQuoted = (word) => /^[\w\-+=.\/:,@%]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";
