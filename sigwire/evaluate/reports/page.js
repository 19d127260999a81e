"use strict";
// The table of a report: search, filters, sort, pages, drill-down, and its state in the hash of the address.
// Values are untrusted: they become text nodes, and no element, attribute or style.
const data = JSON.parse(document.getElementById("data").textContent);
const PAGE_ROWS = 200, MOST_SHOWN = 20000, FOLDED = 1200;

const visible = (text) => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (each) =>
  "\n\t\u200c\u200d".includes(each) ? each : escaped(each.codePointAt(0).toString(16)));
// Return Python's escape of a character, from the digits of its code.
const escaped = (digits) => digits.length < 3 ? "\\x" + digits.padStart(2, "0") : digits.length < 5 ? "\\u" + digits.padStart(4, "0") : "\\U" + digits.padStart(8, "0");
const plain = (value) => value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
const short = (value, most = 200) => {
  const text = plain(value);
  return visible(text.length > most ? text.slice(0, most - 1) + "…" : text);
};
const fixed = (value, digits) => typeof value === "number" ? value.toFixed(digits) : "";
const number = (value) => typeof value === "number" ? value.toLocaleString("en") : "";
// Return a number with its noun, US dollars and a duration, as sigwire/show/numbers.py writes them.
const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
function money(cost, digits = 2) {
  if (typeof cost !== "number") return "cost unknown";
  if (!cost) return "$0";
  const size = Math.abs(cost), places = digits > 2 || size < 0.01 ? Math.max(2, digits - 1 - Math.floor(Math.log10(size))) : 2;
  const [whole, rest] = cost.toFixed(Math.min(places, 100)).split(".");
  return `$${whole.replace(/\B(?=(\d{3})+$)/g, ",")}.${rest.replace(/^(\d\d\d*?)0+$/, "$1")}`;
}
function duration(seconds) {
  for (const [factor, unit] of [[1e6, "µs"], [1e3, "ms"]]) {
    const value = factor * seconds;
    if (value > 0 && value < 999.5) return `${value.toFixed(value < 9.95 ? 1 : 0).replace(/\.0$/, "")} ${unit}`;
  }
  if (seconds < 59.5) return seconds ? `${seconds.toFixed(seconds < 9.95 ? 1 : 0)} s` : "0 ms";
  const whole = Math.round(seconds), two = (value) => String(value).padStart(2, "0");
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole % 3600 / 60);
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

// Return an element. `name` is a tag with class names: "td.n". Children are elements, or values that become text.
function element(name, ...children) {
  const [tag, ...classes] = name.split(".");
  const made = document.createElement(tag);
  if (classes.length) made.className = classes.join(" ");
  for (const child of children.flat(Infinity)) {
    if (child instanceof Node) made.append(child);
    else if (child !== null && child !== undefined && child !== "") made.append(visible(String(child)));
  }
  return made;
}
function withAttributes(made, attributes) {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
// Return a whole value: text as it is, other values as indented JSON; a long one is folded.
function whole(value) {
  if (value === undefined) return element("small", "none");
  const isText = typeof value === "string";
  const line = isText ? value : JSON.stringify(value);
  const all = isText || line.length <= 100 ? line : JSON.stringify(value, null, 1);
  const cut = all.length > MOST_SHOWN ? all.slice(0, MOST_SHOWN) + `\n… ${number(all.length - MOST_SHOWN)} more characters` : all;
  const shown = element(isText ? "span" : "code", cut);
  if (cut.length <= FOLDED) return shown;
  return element("details", element("summary", short(cut, 160)), shown);
}
function folded(title, ...children) {
  return element("details", element("summary", title), ...children);
}
// Return a folded part whose content is made when it is opened first.
function foldedLater(title, make) {
  const made = folded(title);
  made.addEventListener("toggle", () => made.append(...[make()].flat(Infinity)), { once: true });
  return made;
}
function section(title, ...children) {
  return children.flat().length ? [element("h3", title), ...children.flat()] : [];
}

// --- the table. A view has rows ({id, ...}), columns, filters, `detail(row)`, `searched(row)` (values) and the first sort;
// `whose`: the program that the filters are about, if there are several. A column without a value is not shown.
const state = { show: "all", q: "", sort: "", page: 1, open: new Set() };
let view, tools, body, pages;

function start(made) {
  const isFilled = ({ value }) => made.rows.some((row) => !isUnknown(value(row)));
  view = { ...made, columns: made.columns.filter(isFilled) };
  const box = document.getElementById("rows");
  readState();
  tools = makeTools();
  const head = element("tr", view.columns.map(headCell));
  body = element("tbody");
  pages = element("div.pages");
  box.append(tools.box, element("div.wide", element("table.main", element("thead", head), body)), pages);
  box.hidden = false;
  if (!isListening) {
    addEventListener("hashchange", () => { readState(); draw(); showOpened(); });
    addEventListener("keydown", onKey);
    isListening = true;
  }
  draw();
  showOpened();
}
let isListening = false;
function showOpened() {
  body.querySelector("[aria-expanded=true]")?.scrollIntoView({ block: "start" });
}

function readState() {
  const found = new URLSearchParams(location.hash.slice(1));
  state.show = view.filters.some(({ key }) => key === found.get("show")) ? found.get("show") : "all";
  state.q = found.get("q") || "";
  state.sort = found.get("sort") || "";
  state.open = new Set(found.getAll("open"));
  state.page = Math.max(1, parseInt(found.get("page"), 10) || pageOfOpened());
}
// Return the page of the first open row: a link to a row names no page.
function pageOfOpened() {
  const place = state.open.size ? foundRows().findIndex(({ id }) => state.open.has(id)) : 0;
  return Math.floor(Math.max(place, 0) / PAGE_ROWS) + 1;
}
function writeState() {
  const made = new URLSearchParams();
  if (state.show !== "all") made.set("show", state.show);
  for (const name of ["q", "sort"]) if (state[name]) made.set(name, state[name]);
  if (state.page > 1) made.set("page", state.page);
  for (const id of state.open) made.append("open", id);
  view.writeState?.(made);
  history.replaceState(null, "", "#" + made);
}
function change(values, keepsPage) {
  Object.assign(state, keepsPage ? {} : { page: 1 }, values);
  writeState();
  draw();
}

function makeTools() {
  const search = withAttributes(element("input"), { type: "search", placeholder: "Search  /", "aria-label": "Search in all values" });
  let waiting;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => change({ q: search.value }), 120);
  });
  const whose = view.whose ? element("span.whose", `${short(view.whose, 40)}:`) : "";
  const filters = view.filters.map(({ key, label }) => {
    const made = element("button", label);
    if (view.whose && key !== "all") made.setAttribute("aria-label", visible(`${view.whose}: ${label}`));
    made.addEventListener("click", () => change({ show: key }));
    return [key, made];
  });
  const count = element("span.count");
  count.setAttribute("role", "status");
  const box = element("div.tools", search, filters.slice(0, 1).map(([, made]) => made), whose, filters.slice(1).map(([, made]) => made), view.tools?.() ?? [], count);
  return { box, search, filters, count };
}
function headCell({ key, label, kind }) {
  const press = element("button", label);
  press.addEventListener("click", () => {
    const first = kind === "n" ? "-" + key : key;
    const second = kind === "n" ? key : "-" + key;
    change({ sort: state.sort === first ? second : state.sort === second ? "" : first });
  });
  return withAttributes(element(kind === "n" ? "th.n" : "th", press), { scope: "col", "data-key": key });
}

function foundRows() {
  const test = view.filters.find(({ key }) => key === state.show).test;
  const wanted = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  const kept = view.rows.filter((row) => test(row) && wanted.every((word) => searched(row).includes(word)));
  const sort = state.sort || view.sort;
  const column = view.columns.find(({ key }) => key === sort.replace(/^-/, ""));
  if (!column) return kept;
  const sign = sort.startsWith("-") ? -1 : 1;
  return kept.map((row) => [column.value(row), row]).sort(([a], [b]) => order(a, b, sign)).map(([, row]) => row);
}
// Return the texts and numbers of a row that a person sees in it, without names of fields.
function searched(row) {
  return row.text ??= leaves(view.searched(row)).join("\n").toLowerCase();
}
function leaves(value) {
  if (isUnknown(value) || typeof value === "boolean") return [];
  return typeof value === "object" ? Object.values(value).flatMap(leaves) : [String(value)];
}
function isUnknown(value) {
  return value === null || value === undefined || value === "";
}
function order(a, b, sign) {
  const unknown = [a, b].map(isUnknown);
  if (unknown[0] || unknown[1]) return unknown[0] - unknown[1]; // last in both directions
  return sign * (typeof a === "number" && typeof b === "number" ? a - b : plain(a).localeCompare(plain(b), "en", { numeric: true }));
}

function draw() {
  const rows = foundRows(), last = Math.max(1, Math.ceil(rows.length / PAGE_ROWS));
  const page = Math.min(state.page, last), shown = rows.slice((page - 1) * PAGE_ROWS, page * PAGE_ROWS);
  if (document.activeElement !== tools.search) tools.search.value = state.q;
  for (const [key, press] of tools.filters) press.setAttribute("aria-pressed", key === state.show);
  tools.count.textContent = `${number(rows.length)} of ${number(view.rows.length)}`;
  const sort = state.sort || view.sort;
  for (const cell of body.parentNode.querySelectorAll("thead th")) {
    const key = cell.dataset.key;
    cell.setAttribute("aria-sort", sort === key ? "ascending" : sort === "-" + key ? "descending" : "none");
  }
  body.replaceChildren(...shown.flatMap(drawRow));
  if (!shown.length) body.append(element("tr", withAttributes(element("td", "Nothing is found."), { colspan: view.columns.length })));
  drawPages(page, last);
}
function drawRow(row) {
  const isOpen = state.open.has(row.id);
  const line = element("tr.row", view.columns.map((column) => drawCell(row, column)));
  withAttributes(line, { tabindex: 0, "aria-expanded": isOpen });
  line.addEventListener("click", () => { if (!String(getSelection())) toggle(row, line); });
  line.addEventListener("keydown", (event) => {
    if (event.target === line && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); toggle(row, line); }
  });
  return isOpen ? [line, drawDetail(row)] : [line];
}
function drawCell(row, { label, kind, value, cell }) {
  const content = (cell ?? ((each) => short(value(each))))(row);
  const made = element("td" + (kind ? "." + kind : ""), kind === "v" || kind === "id" ? element("span", content) : content);
  return withAttributes(made, { "data-label": label });
}
function drawDetail(row) {
  const cell = element("td", element("div.inside", view.detail(row)));
  return element("tr.detail", withAttributes(cell, { colspan: view.columns.length }));
}
function toggle(row, line) {
  const isOpen = !state.open.delete(row.id);
  if (isOpen) { state.open.add(row.id); line.after(drawDetail(row)); } else line.nextSibling.remove();
  line.setAttribute("aria-expanded", isOpen);
  writeState();
}
function drawPages(page, last) {
  const step = (label, to) => {
    const press = element("button", label);
    press.disabled = to < 1 || to > last;
    press.addEventListener("click", () => { change({ page: to }, true); tools.box.scrollIntoView(); });
    return press;
  };
  pages.replaceChildren(...(last > 1 ? [step("previous", page - 1), element("span", `page ${page} of ${last}`), step("next", page + 1)] : []));
}

// j, k and arrows go from row to row; / goes to the search; Escape leaves the search or closes all rows.
function onKey(event) {
  const isTyping = ["INPUT", "SELECT"].includes(event.target.tagName);
  if (event.key === "Escape") {
    if (isTyping) event.target.blur(); else if (state.open.size) change({ open: new Set() }, true);
  } else if (!isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (event.key === "/") { event.preventDefault(); tools.search.focus(); }
    else if (step && (event.key.length === 1 || document.activeElement.classList.contains("row"))) move(step, event);
  }
}
function move(step, event) {
  const lines = [...body.querySelectorAll(".row")];
  const next = lines[lines.indexOf(document.activeElement) + step] ?? (step > 0 ? null : lines[0]);
  if (next) { event.preventDefault(); next.focus(); }
}
