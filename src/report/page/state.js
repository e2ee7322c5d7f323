// The document, what is selected, and who wants to know.
const report = JSON.parse(document.getElementById("data").textContent);
const models = report.models;
const selection = { model: 0, unit: -1, launch: -1, node: null };
const listeners = [];

/// Selects a unit (with its first launch), a launch (with its unit), or a node of a view.
function select(model, what, from) {
  const m = models[model];
  let unit = what.unit ?? -1, launch = what.launch ?? -1;
  if (launch >= 0 && unit < 0) unit = m.launches[launch].unit;
  if (unit >= 0 && launch < 0 && m.units[unit].launches.length) launch = m.units[unit].launches[0];
  Object.assign(selection, { model, unit, launch, node: what.node ?? null });
  for (const listener of listeners) listener(from);
}
/// What is done once before the page is printed, when all sections are drawn.
const beforePrint = [];
const onSelect = (listener) => listeners.push(listener);
const isSelected = (model, unit) => unit >= 0 && selection.model === model && selection.unit === unit;

/// Time of a unit: of all its launches; null where nothing was measured.
function unitMs(m, unit) {
  if (unit < 0 || !m.profile) return null;
  return m.units[unit].launches.reduce((sum, l) => sum + m.launches[l].ms, 0);
}
for (const m of models) {
  m.slowest = Math.max(0, ...m.units.map((_, u) => unitMs(m, u) || 0));
  m.short = m.name.split("/").pop();
}
/// 0 to 4, of the slowest unit's time.
function heatOf(m, unit) {
  const ms = unitMs(m, unit);
  return !ms || !m.slowest ? 0 : Math.min(4, Math.floor(5 * ms / m.slowest * 0.999));
}
const launchBytes = (l) => l.bytes_read + l.bytes_written;
const whyNot = (m) => m.not_measured ? `${NONE}: ${m.not_measured}` : NONE;
