// The state of the page. Everything in it comes from the server: the list of sessions, and the numbered event log of the
// session that is open, read over a WebSocket from the last position on, so that a reconnect misses and repeats nothing.

import { h } from "./vendor/preact.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);

const DECLINED = "I have declined to run this code."; // what the messages say for the user when they decline a block

// -- a value that views watch ------------------------------------------------------------------------------------------

const watchers = new Set();
let drawing = 0;

export function watch(draw) {
  watchers.add(draw);
  return () => watchers.delete(draw);
}

export function changed() {
  // A hidden page has no animation frames, not even those it has asked for, and its title must still change.
  if (!drawing) requestAnimationFrame(redraw);
  drawing ||= setTimeout(redraw, 100);
}

function redraw() {
  if (!drawing) return;
  clearTimeout(drawing);
  drawing = 0;
  for (const draw of watchers) draw();
}

export const state = {
  me: null,
  sessions: [],
  listed: false, // whether the list has all sessions, or the server still reads some
  query: "",
  open: null, // the session on the page, a Session
  pane: "", // variables, files or timeline
  menu: false,
  drawer: false,
  dialog: null,
  toast: null,
  signedOut: false,
};

export function set(values) {
  Object.assign(state, values);
  changed();
}

let toastTimer = 0;

export function tell(text, kind = "note") {
  clearTimeout(toastTimer);
  if (kind !== "busy") toastTimer = setTimeout(() => set({ toast: null }), kind === "error" ? 8000 : 3500);
  set({ toast: { text, kind } });
}

// -- requests ------------------------------------------------------------------------------------------------------------

export class Refused extends Error {
  constructor(status, error) {
    super(error?.message || `The server answered ${status}.`);
    this.status = status;
    this.type = error?.type;
  }
}

export async function request(method, path, body, { raw = false, signal } = {}) {
  const options = { method, signal, headers: {} };
  if (body instanceof Blob) {
    options.body = body;
    options.headers["Content-Type"] = "application/octet-stream";
  } else if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { message: "The server can't be reached. I'll keep trying." });
  }
  if (answer.status === 401) set({ signedOut: true });
  if (!answer.ok) throw new Refused(answer.status, (await answer.json().catch(() => ({}))).error);
  if (raw) return answer;
  return answer.status === 204 ? null : answer.json();
}

export const get = (path, options) => request("GET", path, undefined, options);
export const post = (path, body) => request("POST", path, body);

// Do something for the user and say what went wrong, if it does.
export async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    tell(error.message, "error");
    return undefined;
  }
}

// What the server answers to a GET, asked again when `stamp` changes: `{ found, problem }`. Until there is a new answer,
// the old one for the same address stays.
export function useAnswer(path, stamp) {
  const [answer, setAnswer] = useState({});
  useEffect(() => {
    const asked = new AbortController();
    get(path, { signal: asked.signal }).then(
      (found) => setAnswer({ path, found }),
      (error) => asked.signal.aborted || setAnswer({ path, problem: error.message }),
    );
    return () => asked.abort();
  }, [path, stamp]);
  return answer.path === path ? answer : {};
}

// -- Markdown and code as HTML, made by the server -------------------------------------------------------------------------

const wanted = new Map(); // by the view that wants it: only its newest text counts
let rendering = false;
let pause = 60;

// The HTML of a text that grows: `{ text, made }` of the newest text that the server has rendered. The view is drawn
// again when there is more.
export function useHtml(kind, text, language = "") {
  const view = useRef({ text: "", made: "" }).current;
  const [, draw] = useState(0);
  view.draw = draw;
  if (view.text !== text || view.language !== language) {
    wanted.set(view, { kind, text, language });
    if (!rendering) {
      rendering = true;
      setTimeout(renderWanted, pause);
    }
  }
  useEffect(() => () => wanted.delete(view), []);
  return view;
}

async function renderWanted() {
  const batch = [];
  let size = 0;
  for (const [view, item] of wanted) {
    if (batch.length && (size + item.text.length > 300000 || batch.length >= 100)) break;
    size += item.text.length;
    batch.push([view, item]);
    wanted.delete(view);
  }
  const began = performance.now();
  try {
    const made = await post("/api/render", { items: batch.map(([, item]) => item) });
    batch.forEach(([view, { text, language }], at) => {
      Object.assign(view, { text, language, made: made.html[at] });
      view.draw((count) => count + 1);
    });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.status === 0 || error.status === 429) for (const [view, item] of batch) if (!wanted.has(view)) wanted.set(view, item);
    await new Promise((done) => setTimeout(done, 1000));
  }
  pause = Math.min(1000, Math.max(60, 3 * (performance.now() - began))); // a long text is not rendered all the time
  rendering = wanted.size > 0;
  if (rendering) setTimeout(renderWanted, pause);
}

// -- one session -----------------------------------------------------------------------------------------------------------

let nextKey = 1;

function entry(kind, fields = {}) {
  return { key: nextKey++, version: 0, kind, ...fields };
}

export class Session {
  constructor(id) {
    this.id = id;
    this.path = `/api/sessions/${id}`;
    this.entries = [];
    this.title = "";
    this.info = null; // as the server summarizes it
    this.running = "";
    this.questions = [];
    this.timeline = null;
    this.plan = null;
    this.cost = 0;
    this.unpriced = false;
    this.status = ""; // what the session is doing, in a few words
    this.connection = "connecting"; // connecting, open, waiting, closed
    this.caughtUp = false;
    this.undone = false;
    this.variablesStamp = 0; // changes when variables may have
    this.filesStamp = 0;
    this.gone = false;
    this._position = "0";
    this._texts = new Map();
    this._blocks = new Map();
    this._retry = 0;
    this._refreshes = 0;
    this._connect();
  }

  get ownedByOther() {
    return state.me?.role === "viewer" || Boolean(this.info?.shared_by);
  }

  // -- the connection ----------------------------------------------------------------------------------------------------

  _connect() {
    clearTimeout(this._timer);
    this._socket?.close();
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}${this.path}/events?after=${this._position}`);
    this._socket = socket;
    const mine = () => this._socket === socket && !this.closed;
    socket.onopen = () => {
      if (!mine()) return;
      this._retry = 0;
      this._opened = Date.now();
      this.connection = "open";
      this.refresh();
      changed();
    };
    socket.onmessage = (message) => {
      if (!mine()) return;
      const event = JSON.parse(message.data);
      if (event.error) tell(event.error.message, "error");
      else if (after(event.position, this._position)) {
        this._position = event.position;
        this.apply(event);
        // What happened before says nothing about now.
        if (Date.now() - this._opened < 2000 || Date.now() / 1000 - event.time > 5) this._refreshSoon();
        changed();
      }
    };
    socket.onclose = () => mine() && this._reconnect();
  }

  _reconnect() {
    this.connection = "waiting";
    const delay = Math.min(10000, 250 * 2 ** this._retry++) * (0.8 + 0.4 * Math.random());
    this._timer = setTimeout(() => this._check(), delay);
    changed();
  }

  async _check() {
    // A WebSocket doesn't say why it was refused, a request does.
    try {
      await get(this.path);
    } catch (error) {
      if (this.closed) return;
      if (error.status === 404) {
        this.gone = true;
        this.connection = "closed";
        changed();
        return;
      }
      if (error.status !== 401) this._reconnect();
      return;
    }
    if (!this.closed) this._connect();
  }

  // After a sleep, a connection may be dead without knowing it.
  wake() {
    if (this.closed || this.gone) return;
    this._retry = 0;
    this._connect();
  }

  close() {
    this.closed = true;
    clearTimeout(this._timer);
    clearTimeout(this._soon);
    this._socket?.close();
  }

  // What events don't say: whether something runs, and which questions are open. Questions of an earlier run of the
  // server have no answer in the log, and are not open either.
  async refresh() {
    const mine = ++this._refreshes;
    try {
      const [info, asked] = await Promise.all([get(this.path), get(`${this.path}/questions`)]);
      if (mine !== this._refreshes) return; // something has happened since
      this.info = info;
      this.title = info.title;
      this.running = info.running;
      this.questions = asked.questions;
      this.caughtUp = true;
      if (!this.running) this._settle();
      if (info.live && !info.last && !this.entries.length) this.earlier = asEntries((await get(`${this.path}/messages`)).messages);
      if (info.live || this.undone) await this.readTimeline();
      this._touchQuestions();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
    changed();
  }

  async readTimeline() {
    this.timeline = await get(`${this.path}/timeline`).catch(() => this.timeline);
    markUndone(this);
    changed();
  }

  _refreshSoon() {
    clearTimeout(this._soon);
    this._soon = setTimeout(() => this.connection === "open" && this.refresh(), 30);
  }

  // -- events into entries ------------------------------------------------------------------------------------------------

  apply(event) {
    const { kind, data } = event;
    const handler = this[`on_${kind}`];
    if (handler) handler.call(this, event, data);
    else if (data.role === "computer") this._output(event, data);
  }

  add(item, event) {
    Object.assign(item, { turn: event.turn, time: event.time });
    this.entries.push(item);
    return item;
  }

  _turn(event, data) {
    if (data.state === "begun") this._begin();
    if (data.state !== "ended") return;
    this._settle();
    if (data.outcome === "error") this.add(entry("error", { text: data.text || "Something went wrong." }), event);
    else if (data.reason === "stopped") this.add(entry("note", { text: "Stopped." }), event);
  }

  on_message(event, data) {
    if (data.role === "user" && (data.declined || data.content === DECLINED)) return this._declined();
    if (data.role === "user") this._settleEarlier();
    this._text(event, data, () => {
      if (data.role === "computer") return entry("note", { text: "" });
      return entry(data.role === "user" ? "user" : "said", { text: "", images: [] });
    });
    if (data.role === "assistant") this.status = "Writing";
  }

  on_reasoning(event, data) {
    this._text(event, data, () => entry("reasoning", { text: "" }));
    this.status = "Thinking";
  }

  on_code(event, data) {
    if (data.role === "computer") return this._output(event, data);
    const own = data.role === "user" && this._blocks.get(event.action); // code that the user runs
    if (own) this._texts.set(event.number, own);
    this.status = "Writing code";
    this._text(event, data, () => entry("block", block(data.format)), "code");
    return undefined;
  }

  on_image(event, data) {
    if (data.role === "computer") return this._output(event, data);
    const last = this.entries.at(-1);
    if (data.content && data.role === "user") {
      const image = { format: data.format, content: data.content };
      if (last?.kind === "user" && last.turn === event.turn) last.images.push(image);
      else this.add(entry("user", { text: "", images: [image] }), event);
    }
    return undefined;
  }

  on_action(event, data) {
    if (data.kind === "turn") this._turn(event, data);
    let found = this._blocks.get(event.action);
    if (data.state === "begun" && data.kind === "preview") this._blocks.set(event.action, null); // the card shows its output
    if (data.state === "begun" && data.kind === "block") {
      found = this.entries.find((each) => each.kind === "block" && each.turn === event.turn && !each.action && event.turn);
      found ||= this.add(entry("block", { ...block(data.language), own: true }), event);
      found.action = event.action;
      this._blocks.set(event.action, found);
    }
    if (found) {
      if (data.state === "running") {
        Object.assign(found, { state: "running", began: event.time });
        this.status = "Running";
      } else if (data.state === "ended") {
        Object.assign(found, { state: data.outcome || "done", ended: event.time, line: null });
        this.variablesStamp += 1;
        this.status = "Thinking";
      }
      found.version += 1;
    }
    if (data.state === "ended" || data.kind === "turn") this._refreshSoon();
  }

  on_confirmation(event, data) {
    const found = this._blocks.get(event.action);
    const asked = { ...data, number: event.number };
    this.questions = this.questions.filter((each) => each.id !== data.question);
    if (found && data.content?.type === "code") {
      Object.assign(found, { code: data.content.content, question: asked, state: "asked" });
      found.version += 1;
    } else {
      this.add(entry("question", { question: asked, action: event.action }), event);
    }
    this._refreshSoon();
  }

  on_input_request(event, data) {
    this.add(entry("question", { question: { ...data, number: event.number }, action: event.action, input: true }), event);
    this._refreshSoon();
  }

  on_answer(event, data) {
    this.questions = this.questions.filter((each) => each.id !== data.question);
    const found = this.entries.findLast((each) => each.question?.question === data.question);
    if (found) {
      found.answer = data.choice;
      if (found.kind === "block" && data.choice === "approve") found.state = "approved";
      found.version += 1;
    }
  }

  on_decision(event, data) {
    const found = this._blocks.get(event.action);
    if (found) {
      found.decision = { outcome: data.format, ...data.content };
      found.version += 1;
    }
  }

  on_plan(event, data) {
    this.plan = data.steps || data.plan || null;
  }

  on_undone(event, data) {
    const files = data.files?.restored || [];
    const words = data.back ? "Undone" : "Redone";
    const count = files.length ? `: ${files.slice(0, 4).join(", ")}${files.length > 4 ? " and more" : ""}` : "";
    this.add(entry("note", { text: `${words}${count}.`, details: data.told || [] }), event);
    this.variablesStamp += 1;
    this.filesStamp += 1;
    this.undone = true;
    this._refreshSoon();
  }

  on_status(event, data) {
    const content = data.content || {};
    const note = (text) => text && this.add(entry("note", { text }), event);
    switch (data.format) {
      case "usage":
        if (content.cost == null) this.unpriced = true;
        else this.cost += content.cost;
        this.tokens = (content.input_tokens || 0) + (content.output_tokens || 0);
        break;
      case "files": {
        const found = this._blocks.get(event.action);
        if (found && content.changed?.length) {
          Object.assign(found, { files: content.changed, point: content.block });
          found.version += 1;
        }
        this.filesStamp += 1;
        break;
      }
      case "notice":
        note(content.text);
        break;
      case "compacted":
        note("Older messages were replaced by a short note, to make room.");
        break;
      case "fallback":
        note(`Switched to ${content.to || content.model || "another model"}.`);
        break;
      case "redacted":
        note("A secret was left out of what the model reads.");
        break;
      case "retry":
        this.status = "The model doesn't answer. Trying again";
        break;
      case "waiting":
        this.status = "Waiting";
        break;
      case "loading":
        this.status = "Loading the model";
        break;
      case "installing":
        if (content.packages) this.status = `Installing ${content.packages.join(", ")}`;
        else this.status = content.step ? `Installing: ${String(content.step).slice(0, 60)}` : "Running";
        break;
      case "scanning":
        this.status = "Scanning the code";
        break;
      case "preparing":
        this.status = content.progress ? `Installing data packages: ${content.progress}` : "Running";
        break;
    }
  }

  _text(event, data, make, field = "text") {
    let item = this._texts.get(event.number) || this._texts.get(data.continues);
    if (!item) item = this.add(make(), event);
    this._texts.set(event.number, item);
    if (data.omitted) item[field] += `\n[… ${data.omitted} characters are only in the record …]\n`;
    if (typeof data.content === "string") item[field] += data.content;
    item.open = !data.end;
    item.version += 1;
  }

  _output(event, data) {
    let found = this._blocks.get(event.action);
    if (found === null) return;
    if (!found && !event.action) found = this.entries.findLast((each) => each.kind === "block");
    if (!found) {
      if (data.start || data.end || !data.content) return;
      found = this.add(entry("block", { ...block(""), own: true, action: event.action }), event);
      this._blocks.set(event.action, found);
    }
    if (data.format === "active_line") {
      found.line = data.content;
      found.version += 1;
      return;
    }
    if (typeof data.content !== "string" || !data.content) return;
    const last = found.outputs.at(-1);
    const kind = outputKind(data);
    if (kind === "html") {
      if (last?.number !== event.number) found.outputs.push({ kind, number: event.number, size: 0 });
    } else if (kind === "text" && last?.kind === "text" && last.stream === data.stream && !last.also) {
      last.text += data.content;
      last.also = data.also && last.text === data.content;
    } else if (kind === "markdown" && last?.number === event.number) {
      last.text += data.content;
    } else {
      found.outputs.push({ kind, number: event.number, text: data.content, stream: data.stream, format: data.format, also: data.also, data: data.data });
    }
    if (data.omitted) found.outputs.push({ kind: "text", text: "[… the beginning is only in the record …]\n" });
    found.version += 1;
  }

  // In the messages the user says it; here it is the state of the block before it.
  _declined() {
    const found = this.entries.findLast((each) => each.kind === "block");
    if (!found) return;
    found.decision ||= { outcome: "declined", by: "user" };
    found.version += 1;
  }

  // A copy begins with the messages of the first session; their blocks have no actions here.
  _settleEarlier() {
    for (const each of this.entries) {
      if (each.kind === "block" && !each.action) {
        Object.assign(each, { action: "earlier", state: "done" });
        each.version += 1;
      }
    }
  }

  // Nothing runs any more: what the log left open is over.
  _settle() {
    this.running = "";
    this.status = "";
    for (const each of this.entries) {
      if (each.kind === "block" && ["running", "asked", "approved", "writing"].includes(each.state)) {
        each.state = each.action && each.state !== "asked" ? "interrupted" : "refused";
        each.version += 1;
      }
      if (each.open) {
        each.open = false;
        each.version += 1;
      }
    }
  }

  _touchQuestions() {
    for (const each of this.entries) if (each.question) each.version += 1;
  }

  openQuestion(asked) {
    return asked && this.questions.find((each) => each.id === asked.question && (!asked.digest || each.digest === asked.digest));
  }

  // -- what the user does ---------------------------------------------------------------------------------------------------

  // Before the request: the events of a quick turn can be here before its answer.
  async say(content, images) {
    this._begin();
    try {
      await post(`${this.path}/messages`, { content, ...(images?.length ? { images } : {}) });
    } catch (error) {
      this.running = this.status = "";
      this._refreshSoon();
      throw error;
    } finally {
      changed();
    }
  }

  _begin() {
    this.running = "A turn";
    this.status = "Thinking";
    this._refreshes += 1; // an answer that is on its way is about the time before
    changed();
  }

  async answer(question, choice, more = {}) {
    this.questions = this.questions.filter((each) => each !== question);
    this._touchQuestions();
    changed();
    const done = await attempt(() => post(`${this.path}/questions/${question.id}`, { choice, digest: question.digest, ...more }));
    this._refreshSoon();
    return done;
  }

  // A dry run of the code that waits: what it would change, or nothing if that can't be done.
  dryRun(question) {
    return attempt(() => post(`${this.path}/questions/${question.id}/preview`, { digest: question.digest }));
  }

  discard(question) {
    return attempt(() => request("DELETE", `${this.path}/questions/${question.id}/preview`));
  }

  async stop() {
    await attempt(() => post(`${this.path}/cancel`));
    this._refreshSoon();
  }

  async travel(verb, body) {
    const done = await attempt(() => post(`${this.path}/${verb}`, body));
    if (done?.notes?.length) tell(done.notes.join(" "));
    return done;
  }
}

// The entries of messages that no event has told of yet.
function asEntries(messages) {
  const made = Object.assign(Object.create(Session.prototype), { entries: [], _texts: new Map(), _blocks: new Map() });
  messages.forEach((message, at) => made.apply({ number: at + 1, kind: message.type, data: { ...message, end: true }, turn: "", action: "" }));
  made._settleEarlier();
  return made.entries;
}

function block(language) {
  return { language, code: "", outputs: [], state: "writing", line: null, files: [], question: null };
}

function outputKind(data) {
  if (data.type === "image") return "image";
  if (data.type === "code") return data.format === "html" ? "html" : "text";
  if (data.mime === "image/svg+xml") return "svg";
  if (data.mime === "text/markdown" || data.mime === "text/latex") return "markdown";
  return "text";
}

function after(one, two) {
  const [first, offset] = one.split(":").map(Number);
  const [other, end] = two.split(":").map(Number);
  return first > other || (first === other && (end === undefined || offset > end || (offset === end && offset === 0)));
}

// A turn is undone if the timeline has its point behind the present place, or has forgotten it. A point belongs to the
// turn that began at about its time: each is the nearest to the other.
function markUndone(session) {
  const { points: all, places } = session.timeline || {};
  if (!all) return;
  const points = all.map((point, place) => ({ ...point, place })).filter((point) => point.kind === "turn");
  const begins = new Map();
  for (const each of session.entries) if (each.turn && !begins.has(each.turn)) begins.set(each.turn, { turn: each.turn, time: each.time });
  const turns = [...begins.values()];
  const nearest = (list, time) => list.reduce((best, each) => (best && Math.abs(best.time - time) <= Math.abs(each.time - time) ? best : each), undefined);
  let first = Infinity;
  for (const point of points) {
    const turn = nearest(turns, point.time);
    if (!turn || nearest(points, turn.time) !== point) continue;
    turn.inForce = point.place < places.conversation;
    first = Math.min(first, turn.time);
  }
  for (const each of session.entries) {
    const turn = begins.get(each.turn);
    const undone = Boolean(turn) && turn.time >= first && !(turn.inForce ?? !session.undone);
    if (each.undone !== undone && each.kind !== "note") {
      each.undone = undone;
      each.version += 1;
    }
  }
}

// -- the list ----------------------------------------------------------------------------------------------------------------

export const MAX_LISTED = 200;
let listing = 0;
let listAgain = 0;

export async function listSessions() {
  const mine = ++listing;
  clearTimeout(listAgain);
  const found = await get(`/api/sessions?limit=${MAX_LISTED}&q=${encodeURIComponent(state.query)}`).catch((error) => error);
  if (mine !== listing || state.signedOut) return;
  if (!(found instanceof Error)) set({ sessions: found.sessions, listed: found.complete });
  else if (!state.listed) tell(found.message, "error");
  // Sessions that run elsewhere may ask something, and a long list is read bit by bit.
  const busy = state.sessions.some((row) => (row.running || row.waiting) && row.id !== state.open?.id);
  if (busy || !state.listed) listAgain = setTimeout(listSessions, busy ? 5000 : 1000);
}

export async function createSession() {
  const made = await attempt(() => post("/api/sessions", {}));
  if (made) {
    await listSessions();
    location.hash = made.id;
  }
  return made;
}

export function openSession(wanted) {
  const id = /^[0-9a-f]{8,32}$/.test(wanted) ? wanted : ""; // it becomes part of addresses
  if (state.open?.id === id) return;
  state.open?.close();
  set({ open: id ? new Session(id) : null, drawer: false, menu: false });
  if (id) get(`/api/sessions/${id}`).catch((error) => error.status === 404 && (location.hash = ""));
}
