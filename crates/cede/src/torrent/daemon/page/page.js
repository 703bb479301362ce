// The page of `cede torrent daemon`: it gives the same orders as Transmission's tools do.
"use strict";

const $ = (id) => document.getElementById(id);
const EVERY_MS = 1500;
const FIELDS = ["hashString", "name", "status", "percentDone", "sizeWhenDone", "leftUntilDone", "rateDownload", "rateUpload",
  "peersConnected", "uploadRatio", "eta", "error", "errorString", "recheckProgress", "metadataPercentComplete", "isFinished"];
const MORE = ["hashString", "files", "wanted", "priorities", "peers", "downloadDir", "magnetLink", "trackerStats"];

/// When a file is fetched: Transmission's number for it, and what an order calls it.
const TURNS = { first: [1, "priority-high"], usual: [0, "priority-normal"], last: [-1, "priority-low"] };

let session = "";
/// The torrent whose files and peers are shown, by its hash, as all are named here: the daemon numbers them anew when it begins anew, and
/// an order that was meant for one would be carried out with another.
let opened = null;

async function order(method, args = {}) {
  for (let tries = 0; tries < 2; tries++) {
    const answer = await fetch("/transmission/rpc", {
      method: "POST",
      headers: { "X-Transmission-Session-Id": session },
      body: JSON.stringify({ method, arguments: args }),
    });
    if (answer.status === 409) {
      session = answer.headers.get("X-Transmission-Session-Id");
      continue;
    }
    if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
    const told = await answer.json();
    if (told.result !== "success") throw new Error(told.result);
    return told.arguments;
  }
  throw new Error("the daemon takes no order from here");
}

/// Gives an order and looks at once what came of it; what goes wrong is said.
async function act(method, args) {
  try {
    await order(method, args);
    $("trouble").hidden = true;
  } catch (error) {
    say(error);
  }
  await look();
}

function say(error) {
  $("trouble").textContent = error.message;
  $("trouble").hidden = false;
}

function amount(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  for (; bytes >= 1000 && at < units.length - 1; at++) bytes /= 1000;
  return `${at && bytes < 100 ? bytes.toPrecision(3) : Math.round(bytes)} ${units[at]}`;
}

const rate = (bytes) => (bytes ? `${amount(bytes)}/s` : "–");

function span(seconds) {
  if (seconds < 0) return "";
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours ? `${hours} h ${minutes} min left` : minutes ? `${minutes} min left` : `${seconds} s left`;
}

function state(torrent) {
  switch (torrent.status) {
    case 0: return torrent.isFinished ? "given as asked" : "stopped";
    case 1: return "waits for its check";
    case 3: return "waits for its turn";
    case 2: return `checks, ${Math.floor(100 * torrent.recheckProgress)} %`;
    case 4: return torrent.metadataPercentComplete ? ["fetches", span(torrent.eta)].filter(Boolean).join(", ") : "looks for the torrent";
    default: return "gives";
  }
}

function element(name, parts = [], attributes = {}) {
  const made = document.createElement(name);
  Object.assign(made, attributes);
  made.append(...[parts].flat());
  return made;
}

function button(words, press, title = words) {
  const made = element("button", words, { type: "button", title });
  made.addEventListener("click", press);
  return made;
}

/// What was in use stays so when all is drawn anew: the element with the same key, and how far lists were scrolled.
function draw(rows) {
  const key = document.activeElement?.dataset.key;
  const scrolled = [...document.querySelectorAll(".more ul")].map((list) => list.scrollTop);
  $("torrents").replaceChildren(...rows);
  document.querySelectorAll(".more ul").forEach((list, at) => { list.scrollTop = scrolled[at] ?? 0; });
  if (key) document.querySelector(`[data-key="${key}"]`)?.focus();
}

function row(torrent) {
  const id = torrent.hashString;
  const part = torrent.percentDone;
  const fill = element("i");
  fill.style.width = `${100 * part}%`;
  const bar = element("div", [fill, element("span", `${(Math.floor(1000 * part) / 10).toFixed(1)} %`)], { className: "bar" });
  const open = button(torrent.name, () => { opened = opened === id ? null : id; look(); }, "files and peers");
  open.className = "name";
  const turn = torrent.status === 0
    ? button("Start", () => act("torrent-start", { ids: [id] }))
    : button("Stop", () => act("torrent-stop", { ids: [id] }));
  const remove = button("Remove", () => {
    if (confirm(`Forget “${torrent.name}”? Its files stay.`)) act("torrent-remove", { ids: [id] });
  }, "forget it, and keep its files");
  const wipe = button("Delete", () => {
    if (confirm(`Forget “${torrent.name}” and delete its files?`)) act("torrent-remove", { ids: [id], "delete-local-data": true });
  }, "forget it, and delete its files");
  const ratio = torrent.uploadRatio < 0 ? "–" : torrent.uploadRatio.toFixed(2);
  const number = (text) => element("td", text, { className: "number" });
  [open, turn, remove, wipe].forEach((it, at) => { it.dataset.key = `${id}-${at}`; });
  return element("tr", [
    element("td", open),
    element("td", [state(torrent), element("div", torrent.errorString, { className: "bad" })]),
    element("td", bar, { className: "wide" }),
    number(amount(torrent.sizeWhenDone)), number(rate(torrent.rateDownload)), number(rate(torrent.rateUpload)),
    number(String(torrent.peersConnected)), number(ratio),
    element("td", [turn, " ", remove, " ", wipe], { className: "acts" }),
  ]);
}

function details(torrent) {
  const files = torrent.files.map((file, at) => {
    const box = element("input", [], { type: "checkbox", checked: Boolean(torrent.wanted[at]) });
    box.dataset.key = `${torrent.hashString}-file-${at}`;
    box.addEventListener("change", () => act("torrent-set", { ids: [torrent.hashString], [box.checked ? "files-wanted" : "files-unwanted"]: [at] }));
    const [turns, now] = [Object.keys(TURNS), torrent.priorities[at]];
    const place = turns.findIndex((it) => TURNS[it][0] === now);
    const [, next] = TURNS[turns[(place + 1) % turns.length]];
    const turn = button(turns[place], () => act("torrent-set", { ids: [torrent.hashString], [next]: [at] }), "when it is fetched: first, as usual, or last");
    turn.disabled = !torrent.wanted[at] || file.bytesCompleted === file.length;
    turn.dataset.key = `${torrent.hashString}-turn-${at}`;
    return element("li", [turn, " ", element("label", [box, ` ${file.name}, ${amount(file.bytesCompleted)} of ${amount(file.length)}`])]);
  });
  const peers = torrent.peers.map((peer) => element("li",
    `${peer.address}:${peer.port} ${peer.isUTP ? "uTP" : "TCP"}${peer.isEncrypted ? " enciphered" : ""} `
    + `${peer.clientName}, has ${Math.floor(100 * peer.progress)} %, down ${rate(peer.rateToClient)}, up ${rate(peer.rateToPeer)}`));
  const trackers = torrent.trackerStats.map((tracker) => element("li", `${tracker.announce}: ${tracker.lastAnnounceResult || "not heard yet"}`));
  const list = (title, items) => [element("b", title), element("ul", items.length ? items : element("li", "none"))];
  const cell = element("td", [
    `in ${torrent.downloadDir} · `, element("a", "magnet link", { href: torrent.magnetLink }), element("br"),
    ...list("Files", files), ...list("Peers", peers), ...list("Trackers", trackers),
  ], { colSpan: 9 });
  return element("tr", cell, { className: "more" });
}

let looking = null;
/// A button is held down: where it was drawn anew before it is let go, nobody would hear of the click.
let isPressed = false;

/// Looks how everything stands; never twice at a time.
async function look() {
  clearTimeout(looking);
  looking = null;
  try {
    const { torrents } = await order("torrent-get", { fields: FIELDS });
    const more = opened === null ? [] : (await order("torrent-get", { fields: MORE, ids: [opened] })).torrents;
    const rows = torrents.flatMap((torrent) => [row(torrent), ...more.filter((it) => it.hashString === torrent.hashString).map(details)]);
    if (!isPressed) draw(rows);
    $("none").hidden = torrents.length > 0;
    const sum = (field) => torrents.reduce((total, torrent) => total + torrent[field], 0);
    const [down, up] = [sum("rateDownload"), sum("rateUpload")];
    const count = torrents.length === 1 ? "1 torrent" : `${torrents.length} torrents`;
    $("sums").textContent = `${count}, down ${rate(down)}, up ${rate(up)}`;
    document.title = down ? `${rate(down)} – Cede` : "Cede";
  } catch (error) {
    $("sums").textContent = `no answer: ${error.message}`;
  }
  clearTimeout(looking);
  looking = setTimeout(look, EVERY_MS);
}

/// What is wrong with one file is still said where the next one is a torrent.
async function addFiles(files) {
  const troubles = [];
  for (const file of files) {
    try {
      const octets = new Uint8Array(await file.arrayBuffer());
      let text = "";
      for (const octet of octets) text += String.fromCharCode(octet);
      await order("torrent-add", { metainfo: btoa(text) });
    } catch (error) {
      troubles.push(`${file.name}: ${error.message}`);
    }
  }
  say(new Error(troubles.join("; ")));
  $("trouble").hidden = troubles.length === 0;
  await look();
}

async function showLimits() {
  const told = await order("session-get", { fields: ["speed-limit-down", "speed-limit-down-enabled", "speed-limit-up", "speed-limit-up-enabled"] });
  for (const way of ["down", "up"]) $(way).value = told[`speed-limit-${way}-enabled`] ? told[`speed-limit-${way}`] : "";
}

$("add").addEventListener("submit", async (event) => {
  event.preventDefault();
  const filename = $("what").value.trim();
  if (!filename) return;
  $("what").value = "";
  await act("torrent-add", { filename });
});
$("file").addEventListener("change", async () => {
  await addFiles($("file").files);
  $("file").value = "";
});
$("limits").addEventListener("submit", (event) => {
  event.preventDefault();
  const args = {};
  for (const way of ["down", "up"]) {
    const value = Number($(way).value);
    args[`speed-limit-${way}-enabled`] = value > 0;
    if (value > 0) args[`speed-limit-${way}`] = Math.round(value);
  }
  act("session-set", args);
});
document.addEventListener("pointerdown", (event) => { isPressed = Boolean(event.target.closest("button, label")); }, true);
for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => { isPressed = false; }, true);
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  addFiles(event.dataTransfer.files);
});
showLimits().catch(say);
look();
