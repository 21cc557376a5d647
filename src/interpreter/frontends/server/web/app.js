// The page around the conversation: the list of sessions, the header, the panes, dialogs and keys.

import { render } from "./vendor/preact.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import { MAX_LISTED, attempt, changed, createSession, get, html, listSessions, openSession, post, request, set, state, tell, watch } from "./store.js";
import { Composer, Conversation, Plan, addFiles, copyAsMarkdown, focusComposer } from "./chat.js";
import { FigureData, FileDiff, FilePreview, FilesPane } from "./files.js";
import { LiveValue, VariablesPane } from "./grid.js";
import { Icon } from "./icons.js";

// -- the list of sessions ---------------------------------------------------------------------------------------------------

function Sidebar() {
  const groups = byAge(state.sessions);
  const titles = new Set();
  const repeated = new Set(state.sessions.map(titleOf).filter((title) => titles.has(title) || !titles.add(title)));
  const search = (event) => {
    state.query = event.target.value;
    changed();
    listSessions();
  };
  return html`<nav class=${`sidebar ${state.drawer ? "shown" : ""}`} aria-label="Sessions">
    <div class="brand"><img src="/web/icon.svg" alt="" /><span>Open Interpreter</span>
      <button class="quiet only-narrow" aria-label="Close the list" onClick=${() => set({ drawer: false })}><${Icon} name="close" /></button></div>
    ${state.me?.role !== "viewer" && html`<button class="new" onClick=${newSession}><${Icon} name="plus" /> New session</button>`}
    <input id="search" class="search" type="search" placeholder="Search sessions" aria-label="Search sessions" value=${state.query} onInput=${search} />
    <div class="sessions">
      ${groups.map(([age, rows]) => html`<h2>${age}</h2>${rows.map((row) => html`<${SessionRow} key=${row.id} row=${row} isRepeated=${repeated.has(titleOf(row))} />`)}`)}
      ${!state.sessions.length && html`<p class="note">${state.query ? "Nothing found." : "No sessions yet."}</p>`}
      ${!state.listed && state.sessions.length > 0 && html`<p class="note">Reading older sessions…</p>`}
      ${state.listed && state.sessions.length >= MAX_LISTED && html`<p class="note">Search to find older sessions.</p>`}
    </div>
    ${window.Notification?.permission === "default" && html`<button class="quiet notify" onClick=${() => Notification.requestPermission().then(changed)}>Notify me when a question waits</button>`}
    <div class="foot"><button class="quiet" onClick=${() => set({ dialog: { kind: "keys" } })}><${Icon} name="keyboard" /> Keys</button>
      <button class="quiet" onClick=${switchTheme}><${Icon} name="sun" /> Light or dark</button></div>
  </nav>`;
}

const titleOf = (row) => (state.open?.id === row.id && state.open.title) || row.title || "New session";

function whereAndWhen(row) {
  const updated = new Date(row.updated * 1000);
  const day = updated.toDateString() === new Date().toDateString() ? "" : `${updated.toLocaleDateString(undefined, { month: "short", day: "numeric" })}, `;
  return `${(row.folder || "").split(/[\\/]/).pop()} · ${day}${updated.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" })}`;
}

function SessionRow({ row, isRepeated }) {
  const here = state.open?.id === row.id;
  return html`<a class=${`session ${here ? "here" : ""}`} href=${`#${row.id}`} aria-current=${here ? "page" : undefined} onClick=${() => set({ drawer: false })}>
    <span class="title">${titleOf(row)}${isRepeated && html`<small title=${row.folder}>${whereAndWhen(row)}</small>`}</span>${row.shared_by && html`<small>${row.shared_by}</small>`}
    ${waits(row) ? html`<span class="badge" title="A question waits">?</span>` : !here && row.running && html`<span class="badge" title="Running">…</span>`}
  </a>`;
}

const waits = (row) => (row.id === state.open?.id ? state.open.questions.length > 0 : row.waiting > 0);

function byAge(rows) {
  const today = new Date().setHours(0, 0, 0, 0) / 1000;
  const ages = [["Today", today], ["Yesterday", today - 86400], ["Last seven days", today - 7 * 86400], ["Earlier", -Infinity]];
  const groups = ages.map(([age, from], at) => [age, rows.filter((row) => row.updated >= from && (at === 0 || row.updated < ages[at - 1][1]))]);
  return groups.filter(([, found]) => found.length);
}

async function newSession() {
  if (state.me?.role === "viewer") return;
  await createSession();
  focusComposer();
}

// -- the header ---------------------------------------------------------------------------------------------------------------

function Header({ session }) {
  const [renaming, setRenaming] = useState(null);
  const info = session.info || {};
  const save = async (event) => {
    event?.preventDefault();
    const title = renaming?.trim();
    setRenaming(null);
    if (title && title !== session.title) await rename(session, title);
  };
  state.rename = () => setRenaming(session.title);
  const pane = (name) => () => set({ pane: state.pane === name ? "" : name });
  return html`<header class="top">
    <button class="quiet only-narrow" aria-label="Show the sessions" onClick=${() => set({ drawer: true })}><${Icon} name="menu" /></button>
    ${renaming === null
      ? html`<h1><button class="title quiet" title="Rename" onClick=${() => !session.ownedByOther && setRenaming(session.title)}>${session.title || "New session"}</button></h1>`
      : html`<form class="rename" onSubmit=${save}><input aria-label="Title" value=${renaming} onInput=${(event) => setRenaming(event.target.value)} onBlur=${save} onKeyDown=${(event) => event.key === "Escape" && setRenaming(null)} ref=${(box) => box && document.activeElement !== box && box.select()} /></form>`}
    <${Facts} session=${session} info=${info} />
    <div class="tools">
      <button class="quiet" title="Undo the last turn (u)" aria-label="Undo the last turn" disabled=${Boolean(session.running) || session.ownedByOther} onClick=${() => session.travel("undo", {})}><${Icon} name="undo" /></button>
      <button class="quiet" title="Redo (Shift+U)" aria-label="Redo" disabled=${Boolean(session.running) || session.ownedByOther || !canRedo(session)} onClick=${() => session.travel("redo", {})}><${Icon} name="redo" /></button>
      <span class="divider"></span>
      <button class="quiet" title="Variables (v)" aria-label="Variables" aria-pressed=${state.pane === "variables"} onClick=${pane("variables")}><${Icon} name="table" /></button>
      <button class="quiet" title="Files (f)" aria-label="Files" aria-pressed=${state.pane === "files"} onClick=${pane("files")}><${Icon} name="folder" /></button>
      <button class="quiet" title="Timeline (h)" aria-label="Timeline" aria-pressed=${state.pane === "timeline"} onClick=${pane("timeline")}><${Icon} name="clock" /></button>
      ${!session.ownedByOther && html`<${Menu} session=${session} />`}
    </div>
  </header>`;
}

const CONNECTIONS = { open: "Connected", connecting: "Connecting", waiting: "Reconnecting", closed: "Disconnected" };

function Facts({ session, info }) {
  const cost = info.cost ?? (session.unpriced ? null : session.cost);
  const { used, window } = info.context || {};
  const share = window ? Math.round((100 * used) / window) : null;
  return html`<div class="facts">
    <span class=${`connection ${session.connection}`} role="status"><i aria-hidden="true"></i><span class=${session.connection === "open" ? "hidden" : ""}>${CONNECTIONS[session.connection]}</span></span>
    ${info.model && html`<button class="quiet fact" title="Change the model" disabled=${session.ownedByOther} onClick=${() => set({ dialog: { kind: "settings", session } })}>${info.model}</button>`}
    ${info.mode === "plan" && html`<span class="fact tag">plan</span>`}
    ${cost != null && cost > 0 && html`<span class="fact" title="What this session has cost">$${cost < 0.995 ? cost.toFixed(3) : cost.toFixed(2)}</span>`}
    ${share !== null && used > 0 && html`<span class="fact context" title=${`${used.toLocaleString()} of ${window.toLocaleString()} tokens`}><meter min="0" max="100" value=${share} aria-label="Context used"></meter>${share}%</span>`}
  </div>`;
}

const canRedo = ({ timeline }) => timeline && Math.min(...Object.values(timeline.places)) < timeline.points.length;

async function rename(session, title) {
  const changedTo = await attempt(() => request("PATCH", session.path, { title }));
  if (changedTo) {
    session.title = changedTo.title;
    listSessions();
  }
}

function Menu({ session }) {
  const box = useRef();
  useEffect(() => {
    if (!state.menu) return undefined;
    box.current?.querySelector("[role=menuitem]")?.focus();
    const outside = (event) => !box.current?.contains(event.target) && set({ menu: false });
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [state.menu]);
  const item = (icon, words, action) => html`<button role="menuitem" onClick=${() => { set({ menu: false }); action(); }}><${Icon} name=${icon} /> ${words}</button>`;
  const move = (event) => {
    const items = [...box.current.querySelectorAll("[role=menuitem]")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      items.at((items.indexOf(document.activeElement) + step) % items.length).focus();
    } else if (event.key === "Escape") set({ menu: false });
  };
  const forms = Object.entries(state.me?.exports || {}).filter(([form]) => form !== "markdown"); // that is copied
  return html`<span class="menu-box" ref=${box} onKeyDown=${move}>
    <button class="quiet" aria-label="More" title="More (m)" aria-haspopup="menu" aria-expanded=${state.menu} onClick=${() => set({ menu: !state.menu })}><${Icon} name="more" /></button>
    ${state.menu && html`<div class="menu" role="menu">
      ${item("copy", "Copy as Markdown", () => copyAsMarkdown(session))}
      ${forms.map(([form, label]) => item("download", `Export as ${label}`, () => downloadExport(session, form)))}
      <hr />
      ${item("pencil", "Rename", () => state.rename())}
      ${item("fork", "Continue in a copy", () => fork(session))}
      ${item("share", "Share", () => set({ dialog: { kind: "share", session } }))}
      ${item("keyboard", "Settings", () => set({ dialog: { kind: "settings", session } }))}
      ${item("trash", "Delete", () => set({ dialog: { kind: "delete", session } }))}
    </div>`}
  </span>`;
}

async function downloadExport(session, form) {
  const answer = await attempt(() => get(`${session.path}/export?form=${form}`, { raw: true }));
  if (!answer) return;
  const name = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition"))?.[1] || "session";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

async function fork(session) {
  const made = await attempt(() => post(`${session.path}/fork`));
  if (made) {
    await listSessions();
    location.hash = made.id;
    tell("Working in a copy. The first session stays as it is.");
  }
}

// -- panes ------------------------------------------------------------------------------------------------------------------------

const PANES = { variables: ["Variables", VariablesPane], files: ["Files", FilesPane], timeline: ["Timeline", TimelinePane] };

function Pane({ session }) {
  const [title, View] = PANES[state.pane];
  return html`<aside class="pane" aria-label=${title}>
    <header><h2>${title}</h2><button class="quiet" aria-label="Close" onClick=${() => set({ pane: "" })}><${Icon} name="close" /></button></header>
    <${View} session=${session} />
  </aside>`;
}

function TimelinePane({ session }) {
  useEffect(() => {
    session.readTimeline();
  }, [session.id]);
  const { points = [], places = {} } = session.timeline || {};
  const here = Math.max(0, ...Object.values(places));
  const busy = Boolean(session.running) || session.ownedByOther;
  return html`<div class="list timeline">
    <div class="buttons">
      <button disabled=${busy || !points.length} onClick=${() => session.travel("undo", {})}>Undo turn</button>
      <button disabled=${busy || !points.length} onClick=${() => session.travel("undo", { blocks: true })}>Undo block</button>
      <button disabled=${busy || !canRedo(session)} onClick=${() => session.travel("redo", {})}>Redo</button>
    </div>
    ${!points.length && html`<p class="note">Nothing to undo yet.</p>`}
    <ol class="points">
      ${points.map((point, place) => html`<li class=${`point-${point.kind} ${place >= here ? "undone" : ""}`}>
        <span class="label">${point.label || (point.kind === "turn" ? "A turn" : "A block")}</span>
        <small>${new Date(point.time * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}${point.language ? ` · ${point.language}` : ""}${point.files.length ? ` · ${point.files.slice(0, 3).join(", ")}${point.files.length > 3 ? " …" : ""}` : ""}</small>
        <button class="quiet" disabled=${busy || place === here} onClick=${() => session.travel("restore", { point: point.id })}>Go back to just before this</button>
      </li>`)}
      ${points.length > 0 && html`<li class=${`now ${here === points.length ? "" : "undone"}`}><span class="label">Now</span></li>`}
    </ol>
  </div>`;
}

// -- dialogs -------------------------------------------------------------------------------------------------------------------------

const KEYS = [
  ["?", "Show these keys"], ["n", "New session"], ["/", "Search sessions"], ["[ and ]", "Previous and next session"],
  ["c", "Write a message"], ["Enter", "Send; Shift+Enter begins a new line"], ["Esc", "Leave a box, close a dialog"], ["Ctrl+.", "Stop"],
  ["a", "Approve"], ["r", "Refuse"], ["e", "Edit the code"], ["p", "Dry run"], ["w", "Always allow"], ["t", "Say what to change"],
  ["u and Shift+U", "Undo and redo the last turn"], ["v, f, h", "Variables, files, timeline"], ["m", "More: copy, export, rename, delete"], ["d", "Light or dark"],
];

function Dialog() {
  const box = useRef();
  const dialog = state.dialog;
  useEffect(() => {
    if (dialog && !box.current.open) box.current.showModal();
  }, [dialog]);
  if (!dialog) return null;
  const close = () => set({ dialog: null });
  const wide = ["figure", "file", "value", "diff", "data"].includes(dialog.kind);
  const titles = { keys: "Keys", figure: dialog.file, file: dialog.path, diff: `What changed in ${dialog.path}`, data: `Data of ${dialog.name}`, value: dialog.name, delete: "Delete this session?", settings: "Settings", share: "Share this session" };
  const title = titles[dialog.kind];
  return html`<dialog ref=${box} class=${`${wide ? "wide" : ""} of-${dialog.kind}`} aria-label=${title} onClose=${close} onClick=${(event) => event.target === box.current && close()}>
    <header><h2>${title}</h2>${dialog.kind === "figure" && html`<a class="button" href=${dialog.src} download=${dialog.file}><${Icon} name="download" /> Save</a>`}
      <button class="quiet" aria-label="Close" onClick=${close}><${Icon} name="close" /></button></header>
    <div class="dialog-body">
      ${dialog.kind === "keys" && html`<dl class="keys">${KEYS.map(([key, words]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${words}</dd></div>`)}</dl>`}
      ${dialog.kind === "figure" && html`<${Zoom} src=${dialog.src} name=${dialog.file} />`}
      ${dialog.kind === "file" && html`<${FilePreview} session=${dialog.session} path=${dialog.path} />`}
      ${dialog.kind === "diff" && html`<${FileDiff} session=${dialog.session} path=${dialog.path} point=${dialog.point} />`}
      ${dialog.kind === "data" && html`<${FigureData} data=${dialog.data} name=${dialog.name} />`}
      ${dialog.kind === "value" && html`<${LiveValue} session=${dialog.session} language=${dialog.language} name=${dialog.name} />`}
      ${dialog.kind === "share" && html`<${Share} session=${dialog.session} close=${close} />`}
      ${dialog.kind === "settings" && html`<${Settings} session=${dialog.session} close=${close} />`}
      ${dialog.kind === "delete" && html`<p>“${dialog.session.title || "New session"}” and its record go away. ${state.me?.name === "local" ? "Files in the folder stay." : "The folder that was made for it goes, too."}</p>
        <div class="buttons"><button class="danger" onClick=${() => { close(); remove(dialog.session); }}>Delete</button><button onClick=${close}>Keep it</button></div>`}
    </div>
  </dialog>`;
}

function Zoom({ src, name }) {
  const [scale, setScale] = useState(0); // 0 fits the window
  const change = (step) => setScale((now) => Math.min(8, Math.max(0.25, (now || 1) * step)));
  return html`<div class="zoom">
    <div class="zoom-box" tabindex="0" role="region" aria-label="Picture"><img src=${src} alt=${name} class=${scale ? "" : "fits"} style=${{ zoom: scale || 1 }} onClick=${() => setScale(scale ? 0 : 2)} /></div>
    <div class="buttons"><button onClick=${() => change(1 / 1.5)} aria-label="Smaller">−</button><button onClick=${() => setScale(0)}>Fit</button><button onClick=${() => change(1.5)} aria-label="Larger">+</button></div>
  </div>`;
}

function Settings({ session, close }) {
  const [model, setModel] = useState(session.info?.model || "");
  const [mode, setMode] = useState(session.info?.mode || "ask");
  const save = async (event) => {
    event.preventDefault();
    const settings = {};
    if (model.trim() && model !== session.info?.model) settings.model = model.trim();
    if (mode !== session.info?.mode) settings.mode = mode;
    if (Object.keys(settings).length && !(await attempt(() => request("PATCH", session.path, { settings })))) return;
    close();
    session.refresh();
  };
  return html`<form class="settings" onSubmit=${save}>
    <label>Model<input value=${model} onInput=${(event) => setModel(event.target.value)} spellcheck=${false} autocomplete="off" /></label>
    <label>Mode<select value=${mode} onChange=${(event) => setMode(event.target.value)}>
      ${!["ask", "plan"].includes(mode) && html`<option value=${mode}>${mode}: as the server was started</option>`}
      <option value="ask">Ask before code runs</option><option value="plan">Plan: look, change nothing</option></select></label>
    <dl class="about"><div><dt>Folder</dt><dd>${session.info?.folder}</dd></div><div><dt>Sandbox</dt><dd>${session.info?.sandbox || "off"}</dd></div></dl>
    <div class="buttons"><button class="primary">Save</button><button type="button" onClick=${close}>Cancel</button></div>
  </form>`;
}

function Share({ session, close }) {
  const [names, setNames] = useState((session.info?.shared_with || []).join(", "));
  const save = async (event) => {
    event.preventDefault();
    const users = names.split(/[\s,]+/).filter(Boolean);
    const done = await attempt(() => request("PUT", `${session.path}/share`, { users }));
    if (!done) return;
    close();
    session.refresh();
    tell(users.length ? `${users.join(", ")} can read this session.` : "No one else can read this session.");
  };
  return html`<form class="settings" onSubmit=${save}>
    <label>Users who may read it<input value=${names} onInput=${(event) => setNames(event.target.value)} placeholder="anna, bert" spellcheck=${false} autocomplete="off" /></label>
    <p class="note">They see the conversation, the variables and all files of its folder, and change nothing. <code>interpreter --server_token anna:viewer</code> makes a user.</p>
    <div class="buttons"><button class="primary">Save</button><button type="button" onClick=${close}>Cancel</button></div>
  </form>`;
}

async function remove(session) {
  const next = state.sessions.find((row) => row.id !== session.id);
  if ((await attempt(() => request("DELETE", session.path))) === undefined) return;
  location.hash = next ? next.id : "";
  if (!next) openSession("");
  await listSessions();
}

// -- the page --------------------------------------------------------------------------------------------------------------------------

function App() {
  const [, draw] = useState(0);
  const [dropping, setDropping] = useState(false);
  useEffect(() => watch(() => draw((count) => count + 1)), []);
  const session = state.open;
  if (state.signedOut) return html`<main class="alone"><img src="/web/icon.svg" alt="" /><h1>You are signed out</h1><p>Open the link that <code>interpreter --serve</code> or <code>interpreter --web</code> printed when it started, or start it again.</p></main>`;
  const drag = {
    onDragOver: (event) => {
      if (session && !session.ownedByOther && [...event.dataTransfer.types].includes("Files")) {
        event.preventDefault();
        setDropping(true);
      }
    },
    onDragLeave: (event) => event.relatedTarget === null && setDropping(false),
    onDrop: (event) => {
      event.preventDefault();
      setDropping(false);
      if (session) addFiles(session, [...event.dataTransfer.files]);
    },
  };
  return html`<div class=${`app ${state.pane && session ? "with-pane" : ""}`} ...${drag}>
    <${Sidebar} />
    ${state.drawer && html`<div class="shade" onClick=${() => set({ drawer: false })}></div>`}
    <main>
      ${session && !session.gone
        ? html`<${Header} session=${session} /><div class="middle"><${Conversation} session=${session} key=${session.id} /></div><${Plan} session=${session} /><${Composer} session=${session} key=${`composer ${session.id}`} />`
        : html`<header class="top"><button class="quiet only-narrow" aria-label="Show the sessions" onClick=${() => set({ drawer: true })}><${Icon} name="menu" /></button><h1 class="hidden">Open Interpreter</h1></header>
          <div class="alone"><img src="/web/icon.svg" alt="" /><h2>${session?.gone ? "This session no longer exists" : "Nothing is open"}</h2><p>${state.me?.role === "viewer" ? "Pick a session from the list." : "Start a session, or pick one from the list."}</p>${state.me?.role !== "viewer" && html`<button class="primary" onClick=${newSession}>New session</button>`}</div>`}
    </main>
    ${state.pane && session && html`<${Pane} session=${session} />`}
    ${dropping && html`<div class="drop" role="status">Drop files to add them to the folder</div>`}
    <${Dialog} />
    <${Toast} />
  </div>`;
}

// A short message. As a popover, it is above dialogs, too.
function Toast() {
  const box = useRef();
  useEffect(() => {
    box.current.hidePopover?.();
    box.current.showPopover?.();
  }, [state.toast, state.dialog]);
  return html`<div class="toasts" popover="manual" role="status" aria-live="polite" ref=${box}>${state.toast && html`<p class=${`toast ${state.toast.kind}`}>${state.toast.text}</p>`}</div>`;
}

function switchTheme() {
  const root = document.documentElement;
  const now = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
  drawFrames();
}

// Frames have a separate theme.
function drawFrames() {
  for (const each of state.open?.entries || []) each.version += 1;
  changed();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawFrames);

// -- keys ---------------------------------------------------------------------------------------------------------------------------------

function press(name) {
  const button = [...document.querySelectorAll(`[data-key=${name}]`)].at(-1);
  button?.click();
  return Boolean(button);
}

function neighbour(step) {
  const at = state.sessions.findIndex((row) => row.id === state.open?.id);
  const next = state.sessions[at + step];
  if (next) location.hash = next.id;
}

const canChange = () => state.open && !state.open.running && !state.open.ownedByOther;

const ACTIONS = {
  "?": () => set({ dialog: { kind: "keys" } }),
  n: newSession,
  "/": () => { set({ drawer: true }); setTimeout(() => document.getElementById("search").focus()); },
  "[": () => neighbour(-1),
  "]": () => neighbour(1),
  c: focusComposer,
  a: () => press("approve"),
  r: () => press("refuse"),
  e: () => press("edit"),
  p: () => press("preview"),
  w: () => press("always"),
  t: () => press("tell"),
  u: () => canChange() && state.open.travel("undo", {}),
  U: () => canChange() && state.open.travel("redo", {}),
  v: () => set({ pane: state.pane === "variables" ? "" : "variables" }),
  f: () => set({ pane: state.pane === "files" ? "" : "files" }),
  h: () => set({ pane: state.pane === "timeline" ? "" : "timeline" }),
  m: () => state.open && !state.open.ownedByOther && set({ menu: true }),
  d: switchTheme,
};

addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === ".") {
    event.preventDefault();
    state.open?.stop();
    return;
  }
  if (event.key === "Escape" && !state.dialog) {
    if (state.menu || state.drawer) set({ menu: false, drawer: false });
    return;
  }
  const writing = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (writing || event.ctrlKey || event.metaKey || event.altKey || state.dialog || event.isComposing) return;
  const action = ACTIONS[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
});

// -- questions that wait ---------------------------------------------------------------------------------------------------------------------

const told = new Map(); // by session, the question that the user was notified of

function notice() {
  const session = state.open;
  const title = session?.title || "Open Interpreter";
  const waiting = state.sessions.filter(waits);
  if (session?.questions.length && !waiting.some((row) => row.id === session.id)) waiting.push(session);
  document.title = waiting.length ? `(?) ${title}` : session?.running ? `… ${title}` : title;
  for (const { id, title: body } of waiting) {
    const question = id === session?.id ? session.questions[0].id : "";
    if (!document.hidden || told.get(id) === question || window.Notification?.permission !== "granted") continue;
    told.set(id, question);
    const shown = new Notification("A question waits for you", { body, tag: id });
    shown.onclick = () => {
      window.focus();
      location.hash = id;
    };
  }
  for (const id of told.keys()) if (!waiting.some((each) => each.id === id)) told.delete(id);
}

watch(notice);

// -- waking up --------------------------------------------------------------------------------------------------------------------------------

let seen = Date.now();
setInterval(() => {
  if (Date.now() - seen > 20000) state.open?.wake(); // the machine slept
  seen = Date.now();
}, 5000);
addEventListener("online", () => state.open?.wake());
addEventListener("pageshow", (event) => event.persisted && state.open?.wake());
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  listSessions();
  if (state.open && state.open.connection !== "open") state.open.wake();
});

// -- start --------------------------------------------------------------------------------------------------------------------------------------

let runningBefore = "";
watch(() => {
  const running = state.open?.running || "";
  if (runningBefore && !running) listSessions(); // its title and its place may have changed
  runningBefore = running;
});

addEventListener("hashchange", () => openSession(location.hash.slice(1)));

async function start() {
  const theme = localStorage.getItem("theme");
  if (theme) document.documentElement.dataset.theme = theme;
  const root = document.getElementById("app");
  root.textContent = "";
  render(html`<${App} />`, root);
  const me = await attempt(() => get("/api/me"));
  set({ me: me || null });
  await listSessions();
  const wanted = location.hash.slice(1);
  if (wanted) openSession(wanted);
  else if (state.sessions.length) location.hash = state.sessions[0].id;
  else if (me?.role === "owner") await newSession();
}

start();
