// The page of a deployment: draws what cm sends each second, or, as a report, what is in the file itself. Whatever
// comes from elsewhere is put in as text only.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);
const report = $("report") ? JSON.parse($("report").textContent) : null;

function make(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

function svg(tag, attributes) {
  const e = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) e.setAttribute(name, value);
  return e;
}

function say(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// ---- units ----

function known(v) {
  return typeof v === "number" && isFinite(v);
}

function bytes(v) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  if (!known(v)) return "–";
  while (v >= 1024 && i < units.length - 1) { v /= 1024; i++; }
  return `${i ? v.toFixed(v < 10 ? 2 : v < 100 ? 1 : 0) : Math.round(v)} ${units[i]}`;
}

const figure = (v) => v === undefined ? 0 : v; // what is 0 is left out; null is not known
const rate = (v) => known(v) ? `${bytes(v)}/s` : "–";
const percent = (v) => known(v) ? `${(v * 100).toFixed(1)} %` : "–";
const count = (v) => !known(v) ? "–" : v >= 100 || Number.isInteger(v) ? Math.round(v).toLocaleString("en") : v.toFixed(1);

function seconds(v) {
  if (!known(v)) return "–";
  if (v < 1e-3) return `${Math.round(v * 1e6)} µs`;
  if (v < 1) return `${(v * 1e3).toFixed(v < 0.1 ? 1 : 0)} ms`;
  return `${v.toFixed(1)} s`;
}

function lasted(s) {
  if (!known(s)) return "";
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} days`;
}

const clock = (t, withSeconds) => new Date(t * 1000).toLocaleTimeString("en-GB",
  withSeconds ? {} : { hour: "2-digit", minute: "2-digit" });

// ---- rows that stay where they are ----

// One element for each item of the list, found again by its key (of equal ones by its number, too), in the list's order.
function keep(parent, items, key, create, update) {
  const old = new Map(), times = new Map();
  for (const e of parent.children) old.set(e.memKey, e);
  let before = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item)), n = times.get(name) || 0, k = `${name} #${n}`;
    times.set(name, n + 1);
    let e = old.get(k);
    old.delete(k);
    if (!e) { e = create(item); e.memKey = k; }
    update(e, item);
    if (e === before) before = before.nextElementSibling;
    else parent.insertBefore(e, before);
  }
  for (const e of old.values()) e.remove();
}

function newRow(columns) {
  const row = make("tr");
  for (const c of columns) {
    const cell = row.appendChild(make("td", c === "num" ? "num" : ""));
    if (c === "bar") {
      cell.append(make("span"), make("span", "bar"));
      cell.lastChild.append(make("i"));
      cell.lastChild.setAttribute("aria-hidden", "true");
    }
  }
  return row;
}

function setBar(cell, text, share, full) {
  say(cell.firstChild, text);
  cell.lastChild.classList.toggle("full", Boolean(full));
  cell.lastChild.firstChild.style.width = `${Math.min(100, Math.max(0, share * 100 || 0))}%`;
}

// ---- curves ----

const charts = [
  { title: "Memory", unit: bytes, lines: [["used", "used", 1], ["for data", "capacity", 2], ["given", "allocated", 3]] },
  { title: "Utilization", unit: percent, most: 1, lines: [["used of capacity", "utilization", 1]], limits: true },
  { title: "Nodes", unit: count, whole: true, lines: [["nodes", "nodes", 1], ["moves", "moves", 2]] },
  { title: "Throughput of links", unit: rate, lines: [["in", "in", 1], ["out", "out", 2]] },
  { title: "Operations", unit: (v) => known(v) ? `${count(v)}/s` : "–", lines: [["of all mounts", "operations", 1]] },
  { title: "Latency of operations", unit: seconds, lines: [["99 of 100 below", "p99", 1]] },
];
const W = 400, H = 150, LEFT = 62, RIGHT = 6, TOP = 8, BOTTOM = 20;
const past = { hour: null, day: null, nodes: new Map() };
let range = "hour", limits = [], marks = [];
const stages = new Map(); // when each began, s, and its name (cm mark)

function shape(curve, span) {
  if (!curve || !curve.used) return null;
  const used = curve.used, capacity = curve.capacity;
  curve.utilization = used.map((v, i) => v === null || !capacity[i] ? null : v / capacity[i]);
  curve.span = span;
  return curve;
}

function take(all) {
  past.hour = shape(all.hour, 3600);
  past.day = shape(all.day, 86400);
  past.nodes = new Map((all.nodes || []).map((n) => [n.name, n.curve]));
}

// What has just come belongs to the end of the curves, as a mean of what belongs to the same place. Where cm's clock has
// gone back, or far ahead, it does not, and only cm knows the curves.
function isPlaced(curve, point) {
  if (!curve) return true;
  const at = Math.floor((point.time - curve.first) / curve.step), ahead = at - curve.used.length;
  return ahead >= -1 && ahead <= curve.span / curve.step;
}

function extend(curve, point) {
  if (!curve) return false;
  const at = Math.floor((point.time - curve.first) / curve.step);
  const names = Object.keys(curve).filter((n) => Array.isArray(curve[n]));
  const fresh = at >= curve.used.length;
  if (!curve.sums || curve.sums.at !== at) curve.sums = { at: at, of: {} };
  for (const n of names) {
    const list = curve[n];
    while (list.length <= at) list.push(null);
    if (!known(point[n])) continue;
    const sum = curve.sums.of[n] = curve.sums.of[n] || { n: 0, all: 0 };
    sum.n++;
    sum.all += point[n];
    list[at] = sum.all / sum.n;
  }
  const extra = curve.used.length - Math.ceil(curve.span / curve.step);
  if (extra > 0) {
    for (const n of names) curve[n].splice(0, extra);
    curve.first += extra * curve.step;
    curve.sums.at -= extra;
  }
  return fresh;
}

// How much of the past is shown: all of the range, or, in a young deployment, what there is.
function spanOf(curve) {
  const known = curve ? curve.nodes.findIndex((v) => v !== null) : -1;
  const there = known < 0 ? 0 : (curve.nodes.length - known) * curve.step;
  const least = range === "hour" ? 300 : 7200;
  return Math.min(range === "hour" ? 3600 : 86400, Math.max(least, there * 1.05));
}

// 1, 2 or 5 times a power of ten (of 1024, for bytes), so that steps of it are round.
function roundUp(v, ofBytes) {
  if (!(v > 0)) return 1;
  const base = ofBytes ? 1024 ** Math.floor(Math.log(v) / Math.log(1024)) : 1;
  const power = 10 ** Math.floor(Math.log10(v / base));
  for (const m of [1, 2, 4, 5, 10]) if (v / base <= m * power * 1.0001) return m * power * base;
  return v;
}

function buildChart(c) {
  const figure = $("charts").appendChild(make("figure"));
  const caption = figure.appendChild(make("figcaption"));
  caption.append(make("b", "", c.title));
  c.values = c.lines.map(([label, , color]) => {
    const key = caption.appendChild(make("span", `key c${color}`, label));
    return { key, label };
  });
  c.svg = figure.appendChild(svg("svg", { viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", role: "img", tabindex: 0 }));
  c.table = figure.appendChild(make("details", "numbers"));
  c.table.append(make("summary", "", `${c.title} as a table`), make("table"));
  c.table.addEventListener("toggle", () => tabulate(c));
  c.svg.addEventListener("pointermove", (e) => {
    const box = c.svg.getBoundingClientRect();
    point(c, (e.clientX - box.left) / box.width * c.width);
  });
  c.svg.addEventListener("pointerleave", () => point(c, null));
  c.svg.addEventListener("blur", () => point(c, null));
  c.svg.addEventListener("keydown", (e) => {
    const by = { ArrowLeft: -6, ArrowRight: 6 }[e.key];
    if (!by) return;
    e.preventDefault();
    point(c, Math.max(LEFT, Math.min(c.width - RIGHT, (c.at === null ? c.width - RIGHT : c.at) + by)));
  });
  c.at = null;
}

// What a curve tells to those who do not see it: of each line the newest, the least and the most.
function describe(c, curve, from) {
  const parts = c.lines.map(([label, name]) => {
    const list = ((curve && curve[name]) || []).slice(from).filter(known);
    return list.length ? `${label} ${c.unit(list[list.length - 1])}, ${c.unit(Math.min(...list))} to ${c.unit(Math.max(...list))}` : `${label} not known`;
  });
  c.svg.setAttribute("aria-label", `${c.title}, last ${lasted(spanOf(curve))}: ${parts.join("; ")}. Arrow keys show single values.`);
}

// The curve as some 12 rows of means.
function tabulate(c) {
  if (!c.table.open) return;
  const curve = past[range], table = c.table.lastChild, rows = 12;
  table.replaceChildren();
  const head = table.appendChild(make("tr"));
  for (const text of ["From", ...c.lines.map(([label]) => label)]) head.appendChild(make("th", text === "From" ? "" : "num", text)).scope = "col";
  if (!curve) return;
  const n = Math.min(curve.used.length, Math.ceil(spanOf(curve) / curve.step)), each = Math.max(1, Math.ceil(n / rows));
  for (let i = curve.used.length - n; i < curve.used.length; i += each) {
    const row = table.appendChild(make("tr"));
    row.appendChild(make("th", "", clock(curve.first + i * curve.step, range === "hour"))).scope = "row";
    for (const [, name] of c.lines) {
      const list = (curve[name] || []).slice(i, i + each).filter(known);
      row.appendChild(make("td", "num", c.unit(list.length ? list.reduce((a, v) => a + v, 0) / list.length : null)));
    }
  }
}

function point(c, x) {
  c.at = x;
  drawCursor(c);
}

function drawCursor(c) {
  const curve = past[range];
  if (c.cursor) c.cursor.remove();
  c.cursor = null;
  if (!curve) return;
  let i = curve.used.length - 1;
  if (c.at !== null && c.at >= LEFT) {
    const end = curve.first + curve.used.length * curve.step;
    const span = spanOf(curve);
    const t = end - span + (c.at - LEFT) / (c.width - LEFT - RIGHT) * span;
    i = Math.floor((t - curve.first) / curve.step);
    c.cursor = c.svg.appendChild(svg("path", { class: "cursor", d: `M${c.at} ${TOP}V${H - BOTTOM}` }));
    c.title_ = ` at ${clock(curve.first + i * curve.step, range === "hour")}`;
  } else {
    c.title_ = "";
    while (i > 0 && curve.used[i] === null) i--;
  }
  say(c.svg.parentNode.querySelector("b"), c.title + c.title_);
  c.lines.forEach(([label, name], k) => {
    const v = curve[name] && i >= 0 && i < curve[name].length ? curve[name][i] : null;
    say(c.values[k].key, `${label} ${c.unit(v)}`);
  });
}

// From place `from` on.
function line(list, x, y, from) {
  let d = "", pen = false;
  list.forEach((v, i) => {
    if (i < from || v === null || v === undefined) { pen = false; return; }
    d += `${pen ? "L" : "M"}${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
    if (!pen && (list[i + 1] === null || list[i + 1] === undefined)) d += "h1.5";
    pen = true;
  });
  return d;
}

function draw(c) {
  const curve = past[range];
  c.width = Math.max(240, Math.round(c.svg.getBoundingClientRect().width) || W);
  c.svg.setAttribute("viewBox", `0 0 ${c.width} ${H}`);
  c.svg.replaceChildren();
  c.cursor = null;
  const end = curve ? curve.first + curve.used.length * curve.step : Math.floor(Date.now() / 1000);
  const span = spanOf(curve), step = curve ? curve.step : 4;
  const inner = c.width - LEFT - RIGHT, tall = H - TOP - BOTTOM;
  let most = 0;
  for (const [, name] of c.lines) for (const v of (curve && curve[name]) || []) if (v > most) most = v;
  most = c.most || roundUp(c.whole ? Math.max(most, 4) : most, c.unit === bytes || c.unit === rate);
  const y = (v) => TOP + tall * (1 - Math.min(v / most, 1));
  const xt = (t) => LEFT + inner * (1 - (end - t) / span);
  for (const part of [0, 0.5, 1]) {
    c.svg.append(svg("path", { class: "grid", d: `M${LEFT} ${y(most * part)}H${c.width - RIGHT}` }));
    const text = c.svg.appendChild(svg("text", { x: LEFT - 6, y: y(most * part) + 4, "text-anchor": "end" }));
    text.textContent = c.unit(most * part);
  }
  const tick = [60, 300, 900, 3600, 10800, 21600].find((t) => span / t <= 5.01) || 21600, zone = new Date().getTimezoneOffset() * 60;
  for (let t = Math.ceil((end - span - zone) / tick) * tick + zone; t <= end; t += tick) {
    if (xt(t) < LEFT + 16 || xt(t) > c.width - 18) continue;
    const text = c.svg.appendChild(svg("text", { x: xt(t), y: H - 4, "text-anchor": "middle" }));
    text.textContent = clock(t, false);
  }
  if (c.limits) for (const v of limits) c.svg.append(svg("path", { class: "c4", "stroke-dasharray": "5 4", d: `M${LEFT} ${y(v)}H${c.width - RIGHT}` }));
  if (c.whole) for (const m of marks) if (m >= end - span && m <= end) c.svg.append(svg("path", { class: "mark", d: `M${xt(m).toFixed(1)} ${TOP}V${H - BOTTOM}` }));
  for (const [t, name] of stages) {
    if (t < end - span || t > end) continue;
    const mark = c.svg.appendChild(svg("path", { class: "stage", d: `M${xt(t).toFixed(1)} ${TOP}V${H - BOTTOM}` }));
    mark.appendChild(svg("title")).textContent = `${name}, ${clock(t, true)}`;
    const late = xt(t) > c.width - 80, text = c.svg.appendChild(svg("text", { class: "stage", x: xt(t) + (late ? -3 : 3), y: TOP + 8, "text-anchor": late ? "end" : "start" }));
    text.textContent = [...name].length > 12 ? `${[...name].slice(0, 11).join("")}…` : name;
  }
  if (curve) {
    for (const [, name, color] of [...c.lines].reverse()) {
      const list = curve[name] || [], d = line(list, (i) => xt(curve.first + (i + 0.5) * step), y, Math.max(0, list.length - Math.ceil(span / step)));
      if (d) c.svg.append(svg("path", { class: `c${color}`, d }));
    }
  }
  describe(c, curve, Math.max(0, (curve ? curve.used.length : 0) - Math.ceil(span / step)));
  tabulate(c);
  drawCursor(c);
}

const drawAll = () => charts.forEach(draw);

function choose(which) {
  range = which;
  for (const id of ["hour", "day"]) $(id).setAttribute("aria-pressed", String(id === which));
  drawAll();
}

// ---- what there is just now ----

function tiles(list) {
  keep($("tiles"), list, (t) => t[0], (t) => {
    const e = make("div");
    e.append(make("dt", "", t[0]), make("dd"));
    e.lastChild.append(make("span"), make("small"));
    return e;
  }, (e, t) => {
    say(e.lastChild.firstChild, t[1]);
    say(e.lastChild.lastChild, t[2] || "");
  });
}

const good = ["running", "up"], busy = ["starting", "scaling", "stopping", "leaving"];

function setState(e, state) {
  say(e, state);
  e.className = `badge ${good.includes(state) ? "good" : busy.includes(state) ? "busy" : "bad"}`;
}

function showHead(d) {
  const s = d.status;
  say($("name"), s.name);
  setState($("state"), s.state);
  say($("facts"), [`policy ${s.policy || "none"}`, `epoch ${s.epoch || 0}`, s.version ? `version ${s.version}` : "",
    `cm runs for ${lasted(s.uptime_s)}`].filter(Boolean).join(" · "));
  const title = `${s.name}: ${s.state}`;
  if (document.title !== title) document.title = title;
}

function showTiles(d) {
  const s = d.status, p = d.now;
  const up = s.nodes.filter((n) => n.state === "up").length;
  tiles([
    ["Nodes", String(s.nodes.length), up === s.nodes.length ? "all up" : `${up} up`],
    ["Memory used", bytes(p.used), `of ${bytes(p.capacity)} for data`],
    ["Utilization", percent(p.capacity ? p.used / p.capacity : null),
      d.scale_out_at || d.scale_in_at ? ["acts", d.scale_out_at ? `above ${percent(d.scale_out_at)}` : "", d.scale_in_at ? `below ${percent(d.scale_in_at)}` : ""].filter(Boolean).join(" ") : "no policy acts on it"],
    ["Links", rate(p.in), `in; ${rate(p.out)} out`],
    ["Operations", known(p.operations) ? `${count(p.operations)}/s` : "–", `${seconds(p.p99)} for 99 of 100`],
    ["Moves", String((s.moves || []).length), d.changing ? "a change is under way" : "nothing changes"],
  ]);
}

// What a node has used in the last hour, against what it may.
function drawSpark(cell, n) {
  const curve = past.nodes.get(n.name), list = (curve && curve.used) || [], most = n.memory_capacity || 1;
  const d = line(list, (i) => i / Math.max(1, list.length - 1) * 100, (v) => 21 - Math.min(1, v / most) * 20, 0);
  if (!cell.firstChild) {
    cell.append(svg("svg", { class: "spark c1", viewBox: "0 0 100 22", preserveAspectRatio: "none", "aria-hidden": "true" }));
    cell.firstChild.append(svg("path", { class: "grid", d: "M0 21.5H100" }), svg("path", {}));
  }
  if (cell.firstChild.lastChild.getAttribute("d") !== d) cell.firstChild.lastChild.setAttribute("d", d);
}

function showNodes(d) {
  const links = d.status.nodes.map((n) => Math.max(n.bandwidth_in || 0, n.bandwidth_out || 0, n.bandwidth_capacity || 0));
  const most = Math.max(1, ...links);
  keep($("nodes").tBodies[0], d.status.nodes, (n) => n.name, () => newRow(["", "", "bar", "", "bar", "bar", "num", "num"]), (row, n) => {
    const c = row.cells, used = figure(n.memory_used), share = n.memory_capacity ? used / n.memory_capacity : 0;
    const link = n.bandwidth_capacity || most;
    say(c[0], `${n.name} ${n.address || ""}`);
    setState(c[1], n.state);
    setBar(c[2], `${bytes(used)} of ${bytes(n.memory_capacity || 0)}`, share, share > 0.95);
    drawSpark(c[3], n);
    setBar(c[4], rate(figure(n.bandwidth_in)), (n.bandwidth_in || 0) / link);
    setBar(c[5], rate(figure(n.bandwidth_out)), (n.bandwidth_out || 0) / link);
    say(c[6], String(n.partitions || 0));
    say(c[7], known(n.share) ? n.share.toFixed(2) : "–");
  });
}

function showMap(d) {
  const s = d.status, of = new Map(s.nodes.map((n) => [n.name, []])), moves = s.moves || [];
  const name = new Map(s.nodes.map((n) => [n.id || 0, n.name]));
  const moving = new Map(moves.map((m) => [m.partition, m]));
  const most = Math.max(1, ...(s.placement || []).map((p) => p.bytes || 0));
  for (const p of s.placement || []) if (of.has(p.node)) of.get(p.node).push(p);
  const rows = [];
  for (const [node, list] of of) rows.push([node, "label", list], [node, "cells", list]);
  keep($("map"), rows, (r) => `${r[1]} ${r[0]}`, (r) => make("div", r[1] === "cells" ? "cells" : ""), (e, r) => {
    if (r[1] === "label") { say(e, r[0]); return; }
    keep(e, r[2], (p) => p.partition, () => { const cell = make("span", "cell"); cell.append(make("i")); return cell; }, (cell, p) => {
      const text = `partition ${p.partition}: ${bytes(figure(p.bytes))}${p.replica ? `, replica at ${p.replica}` : ""}`;
      if (cell.title !== text) cell.title = text;
      cell.classList.toggle("moves", moving.has(p.partition));
      cell.firstChild.style.opacity = String(0.12 + 0.88 * (p.bytes || 0) / most);
    });
    e.setAttribute("role", "img");
    e.setAttribute("aria-label", `${r[2].length} partitions, ${bytes(r[2].reduce((a, p) => a + (p.bytes || 0), 0))}`);
  });
  keep($("moves"), moves, (m) => m.partition, () => make("li"), (e, m) => say(e,
    `partition ${m.partition}: ${name.get(m.from || 0) || m.from} → ${name.get(m.to || 0) || m.to}, ${m.step}, ${bytes(m.bytes || 0)} of ${bytes(m.bytes_total || 0)}`));
}

const seen = new Map();

const mountKey = (m) => `${m.node} ${m.path} ${m.session || m.pid}`;

// Mounts tell each few seconds: the rate is over the time between two that differ.
function mountRate(m, time) {
  const key = mountKey(m), at = time - (m.age_ms || 0) / 1000;
  const was = seen.get(key), operations = m.operations || 0;
  if (!was) { seen.set(key, { at, operations, rate: null }); return null; }
  if (at - was.at > 1.5 && operations >= was.operations) {
    was.rate = (operations - was.operations) / (at - was.at);
    was.at = at;
    was.operations = operations;
  }
  return was.rate;
}

function showMounts(d) {
  const there = new Set(d.mounts.map(mountKey));
  for (const key of seen.keys()) if (!there.has(key)) seen.delete(key);
  keep($("mounts").tBodies[0], d.mounts, mountKey, () => newRow(["", "", "num", "num", "num", "num", "num", "num"]), (row, m) => {
    const texts = [m.path, m.node, count(mountRate(m, d.now.time)), count(m.operations || 0), count(m.errors || 0),
      bytes(m.read_bytes || 0), bytes(m.written_bytes || 0), m.operations ? seconds(m.p99) : "–"];
    texts.forEach((t, i) => say(row.cells[i], t));
  });
}

function showLosses(s) {
  const parts = [];
  if (s.lost_partitions) parts.push(`${s.lost_partitions} partitions began empty, with ${bytes(s.lost_bytes || 0)} that they had held, since cm began`);
  if (s.silent_partitions) parts.push(`${s.silent_partitions} partitions do not answer${s.unknown_partitions ? `, and nothing is known of ${s.unknown_partitions}` : ""}`);
  if (s.will_lose) parts.push(`${bytes(s.will_lose)} of nodes that end have no room elsewhere`);
  if (s.unprotected) parts.push(`${s.unprotected} partitions lack their replica`);
  if (s.restarts) parts.push(`${s.restarts} processes of partitions ended unasked for`);
  say($("losses"), parts.length ? `${parts.join("; ")}. Which files have lost bytes, "memefs lost" says.` : "None that cm knows of.");
}

function showEvents(list) {
  keep($("events"), [...list].reverse(), (e) => `${e.time} ${e.who} ${e.what} ${e.text}`, (e) => {
    const item = make("li"), time = make("time", "", new Date(e.time).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" }));
    time.dateTime = e.time;
    item.append(time, make("span", "", e.who), make("span", "", e.what), make("span", "", e.text));
    return item;
  }, () => {});
  for (const e of list) if (e.what === "mark") stages.set(Math.floor(Date.parse(e.time) / 1000), e.text);
  if (!report) for (const t of stages.keys()) if (t < Date.now() / 1000 - 86400) stages.delete(t);
  marks = list.filter((e) => /scal|node-|lost|failover|moved/.test(e.what)).map((e) => Date.parse(e.time) / 1000);
}

// ---- what cm doctor finds ----

const doctor = { time: 0 };

async function fetchDoctor(time) {
  doctor.time = time;
  try {
    const answer = await fetch("/ui/doctor.json");
    if (!answer.ok) { doctor.time = 0; return; }
    showDoctor(await answer.json());
  } catch (e) {
    doctor.time = 0; // the next second asks again
  }
}

function showDoctor(d) {
  const list = (d.findings || []).filter((f) => f.status !== "ok"), all = (d.findings || []).length;
  const at = `cm doctor looked at ${clock(d.time, true)}`;
  say($("looked"), !d.findings ? `${at}, without a result: ${d.error}` : list.length ? `${at}: ${list.length} of ${all} checks found something. It looks again each minute.` : `${at}: all ${all} checks are fine. It looks again each minute.`);
  keep($("doctor"), list, (f) => `${f.status} ${f.check} ${f.found} ${f.advice}`, (f) => {
    const item = make("li");
    item.append(make("span", `badge ${f.status === "FAIL" ? "bad" : "busy"}`, f.status), ` ${f.check}: ${f.found}`);
    if (f.advice) item.append(make("p", "", `→ ${f.advice}`));
    return item;
  }, () => {});
}

function show(d) {
  d.status.nodes = d.status.nodes || [];
  d.mounts = (d.told && d.told.clients) || [];
  d.now.utilization = d.now.capacity ? d.now.used / d.now.capacity : null;
  limits = [d.scale_out_at, d.scale_in_at].filter((v) => v > 0);
  showHead(d);
  showTiles(d);
  showNodes(d);
  showChange(d);
  showMap(d);
  showMounts(d);
  showLosses(d.status);
  showEvents(d.events || []);
  if (d.doctor && d.doctor !== doctor.time) fetchDoctor(d.doctor);
  if (!past.hour && known(d.now.used)) fetchHistory(); // it was asked for before there was any
  const placed = isPlaced(past.hour, d.now) && isPlaced(past.day, d.now);
  if (!placed && Date.now() - fetched > 10000) fetchHistory();
  const hour = placed && extend(past.hour, d.now), day = placed && extend(past.day, d.now);
  if (range === "hour" ? hour : day) drawAll();
  else charts.forEach(drawCursor);
}

// ---- changes, where cm takes them ----

const policies = ["none", ...["cso", "nso", "aso"].flatMap((out) => ["", "+csi", "+asi"].map((into) => out + into))];
const change = { key: null, body: null };

const questions = {
  scale: (s) => {
    const to = Number($("to").value), from = s.nodes.length;
    return to >= 1 && to !== from && { ask: `Scale from ${from} to ${to} nodes?${to < from ? " The nodes that leave give their partitions to the others." : ""}`, yes: "Scale", body: { do: "scale", nodes: to, from } };
  },
  drain: (s) => $("node").value && { ask: `Drain ${$("node").value}? It gives its partitions to the other ${s.nodes.length - 1} nodes, and leaves.`, yes: "Drain", body: { do: "drain", node: $("node").value } },
  policy: (s) => $("policy").value !== s.policy && { ask: `Follow policy ${$("policy").value} instead of ${s.policy}?`, yes: "Set policy", body: { do: "policy", name: $("policy").value, from: s.policy } },
};

function ask(what) {
  const q = last && questions[what](last.status);
  if (!$("token").value) { say($("changed"), "The token is needed."); $("token").focus(); return; }
  if (!q) { say($("changed"), "That would change nothing."); return; }
  change.body = q.body;
  say($("question"), q.ask);
  say($("yes"), q.yes);
  $("sure").returnValue = "no";
  $("sure").showModal();
}

// What answers at this address after cm was away may be another program: it is shown no token that was meant for cm.
function dropToken() {
  if (!$("token").value) return;
  $("token").value = "";
  if ($("sure").open) $("sure").close("no");
  say($("changed"), "The connection to cm was lost: give the token again.");
}

const RETRIES = 6, RETRY = 1000; // ms: a cm that has just begun waits for its nodes' first figures

async function send() {
  if ($("sure").returnValue !== "yes" || !change.body) return;
  const body = JSON.stringify(change.body);
  change.body = null;
  say($("changed"), "asking …");
  try {
    let answer;
    for (let i = 0; i < RETRIES && $("token").value && (!answer || answer.status === 503); i++) {
      if (answer) await new Promise((done) => setTimeout(done, RETRY));
      answer = await fetch("/ui/change", { method: "POST", body, headers: { "Content-Type": "application/json",
        "Authorization": `Bearer ${$("token").value.trim()}`, "X-Memefs-Key": change.key } });
    }
    say($("changed"), `${answer.ok ? "" : "Refused: "}${(await answer.text()).trim()}`);
  } catch (e) {
    say($("changed"), "cm does not answer.");
  }
}

// cm gives each page a key, where it takes changes at all; another cm gives another.
async function fetchKey() {
  change.key = "";
  try {
    const answer = await fetch("/ui/key");
    change.key = answer.ok ? (await answer.text()).trim() : null;
  } catch (e) {
    change.key = null; // the next second asks again
  }
}

function showChange(d) {
  const s = d.status;
  $("change").hidden = !d.writes;
  say($("foot"), d.writes ? "Times are this browser's." : "Nothing can be changed here. Times are this browser's.");
  if (!d.writes) return;
  if (change.key === null) fetchKey();
  if (!$("policy").length) policies.forEach((p) => $("policy").append(make("option", "", p)));
  keep($("node"), s.nodes, (n) => n.name, () => make("option"), (e, n) => say(e, n.name));
  if (!$("to").value) $("to").value = s.nodes.length;
  if ($("policy").dataset.was !== s.policy) $("policy").value = $("policy").dataset.was = s.policy;
}

// ---- the connection ----

const SOON = 5000, LATE = 60000; // ms between two tries
let source = null, heard = 0, last = null, fetched = 0, wait = SOON, tried = 0, why = "";

function setLink(lost, text) {
  $("link").classList.toggle("lost", lost);
  say($("link"), text);
}

// 0: cm does not answer.
async function fetchHistory() {
  fetched = Date.now();
  try {
    const answer = await fetch("/ui/history.json");
    if (!answer.ok) return answer.status;
    take(await answer.json());
    drawAll();
    return answer.status;
  } catch (e) {
    return 0; // the stream tells that cm is away
  }
}

// A stream that was refused does not say why.
async function askWhy() {
  const status = await fetchHistory();
  if (status === 401) location.reload(); // it asks for the token
  why = status === 200 || status === 503 ? "as many as may watch do so already" : "";
  wait = why ? LATE : SOON;
}

function connect() {
  if (source) source.close();
  tried = Date.now();
  source = new EventSource("/ui/stream");
  source.onopen = () => { fetchHistory(); change.key = null; };
  source.onmessage = (e) => {
    heard = Date.now();
    wait = SOON;
    why = "";
    last = JSON.parse(e.data);
    setLink(false, "live");
    if (!document.hidden) show(last);
  };
  source.onerror = () => { dropToken(); if (source.readyState === EventSource.CLOSED) askWhy(); };
}

function watch() {
  const now = Date.now();
  if (now - heard < 5000) return;
  setLink(true, why || (last ? `connection to cm lost at ${clock(heard / 1000, true)}, trying again …` : "cm does not answer, trying again …"));
  if (now - tried < (source.readyState === EventSource.CLOSED ? wait : Math.max(wait, 15000))) return;
  wait = Math.min(LATE, wait * 1.5);
  connect();
}

// ---- a report ----

// Nodes over time against as many as there were at most, all the time: those that are paid for, also while they come, go
// or do not answer.
function nodeHours(curve) {
  const list = curve ? (curve.paid || curve.nodes).filter((v) => v !== null) : [];
  const hours = list.length * (curve ? curve.step : 0) / 3600;
  const most = Math.max(0, ...list);
  return { used: list.reduce((a, v) => a + v, 0) / Math.max(1, list.length) * hours, fixed: most * hours, most, hours };
}

// Each from its mark to the next one.
function showStages(list) {
  $("stages").hidden = !list.length;
  for (const s of list) stages.set(s.from, s.stage);
  keep($("stages").querySelector("tbody"), list, (s) => `${s.from} ${s.stage}`, () => newRow(["", "", "", "num", "num", "num", "num", "num", "num"]), (row, s) => {
    const texts = [s.stage, clock(s.from, true), clock(s.to, true), lasted(s.to - s.from), bytes(s.written), bytes(s.read),
      bytes(s.memory_most), known(s.nodes_most) ? count(Math.round(s.nodes_most)) : "–", known(s.node_hours) ? s.node_hours.toFixed(3) : "–"];
    texts.forEach((t, i) => say(row.cells[i], t));
  });
}

function showReport(r) {
  for (const e of document.querySelectorAll("[data-live]")) e.remove();
  take(r.history);
  showEvents(r.events);
  showStages(r.stages);
  say($("name"), r.name);
  document.title = `${r.name}: report`;
  $("state").remove();
  say($("facts"), `report of ${new Date(r.time * 1000).toLocaleString("en-GB")}`);
  $("link").remove();
  say($("foot"), "This file is whole in itself. Times are this browser's.");
  const long = past.day && past.day.nodes.filter((v) => v !== null).length > 60;
  const curve = (long ? past.day : past.hour) || {};
  const n = nodeHours(long ? past.day : past.hour);
  const peak = (name) => Math.max(0, ...(curve[name] || []).filter(known));
  tiles([
    ["Time", lasted(n.hours * 3600), "that is known of"],
    ["Nodes at most", count(Math.round(n.most)), ""],
    ["Node-hours", n.used.toFixed(2), `with ${Math.round(n.most)} nodes all the time ${n.fixed.toFixed(2)}`],
    ["Saved", percent(n.fixed ? 1 - n.used / n.fixed : null), "of the node-hours"],
    ["Memory used at most", bytes(peak("used")), `of ${bytes(peak("capacity"))} for data`],
    ["Throughput at most", rate(peak("in")), `in; ${rate(peak("out"))} out, ${long ? "by the minute" : "by 4 s"}`],
  ]);
  choose(n.hours > 1 ? "day" : "hour");
}

charts.forEach(buildChart);
for (const id of ["hour", "day"]) $(id).addEventListener("click", () => choose(id));
window.addEventListener("resize", drawAll);
drawAll();
if (report) {
  showReport(report);
} else {
  heard = Date.now();
  for (const b of document.querySelectorAll("[data-do]")) b.addEventListener("click", () => ask(b.dataset.do));
  $("changes").addEventListener("submit", (e) => e.preventDefault());
  $("sure").addEventListener("close", send);
  connect();
  setInterval(watch, 1000);
  setInterval(() => { if (!document.hidden) fetchHistory(); }, 60000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && last) { show(last); fetchHistory(); } });
}
