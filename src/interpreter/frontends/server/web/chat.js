// The conversation: what was said, code with its output, questions, and the box to write in.

import { Component } from "./vendor/preact.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./vendor/hooks.js";
import { attempt, changed, get, html, request, set, tell, useAnswer, useHtml } from "./store.js";
import { FileCard, readableSize, theme, uploadFiles } from "./files.js";
import { Icon } from "./icons.js";

const MAX_OUTPUT = 20000; // characters of output that are shown at first

// -- entries -------------------------------------------------------------------------------------------------------------

const VIEWS = { user: UserMessage, said: Said, reasoning: Reasoning, block: Block, note: Note, error: ErrorNote, question: QuestionCard };

// Draws an entry again only if it has changed.
class Entry extends Component {
  shouldComponentUpdate(next) {
    return this.version !== next.item.version;
  }

  render({ item, session }) {
    this.version = item.version;
    return html`<div class=${`entry ${item.undone ? "undone" : ""}`} data-kind=${item.kind}>
      <${VIEWS[item.kind]} item=${item} session=${session} />
    </div>`;
  }
}

export function Conversation({ session }) {
  const scroller = useRef();
  const column = useRef();
  const follows = useRef(true);
  const before = useRef(0); // where it was scrolled to
  const [behind, setBehind] = useState(false);
  useEffect(() => {
    // Pictures and frames grow when they are loaded; a reader at the end stays there.
    const observer = new ResizeObserver(() => follows.current && scroller.current?.scrollTo({ top: scroller.current?.scrollHeight }));
    observer.observe(column.current);
    observer.observe(scroller.current);
    return () => observer.disconnect();
  }, []);
  const onScroll = () => {
    const box = scroller.current;
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
    if (atEnd) follows.current = true;
    else if (box.scrollTop < before.current - 2) follows.current = false;
    before.current = box.scrollTop;
    setBehind(!follows.current);
  };
  const toEnd = () => {
    follows.current = true;
    scroller.current.scrollTo({ top: scroller.current.scrollHeight, behavior: "smooth" });
  };
  const entries = session.entries.length ? session.entries : session.earlier || [];
  const empty = !entries.length && session.caughtUp;
  return html`<div class="scroller" ref=${scroller} onScroll=${onScroll} tabindex="0" role="log" aria-label="Conversation">
      <div class="column" ref=${column}>
        ${empty && !session.running && html`<${Welcome} session=${session} />`}
        ${entries.map((item) => html`<${Entry} key=${item.key} item=${item} session=${session} />`)}
        ${session.running && !session.questions.length && html`<div class="working" role="status"><span class="dots" aria-hidden="true"><i></i><i></i><i></i></span>${session.status || "Working"}…</div>`}
      </div>
    </div>
    ${behind && html`<button class="to-end" onClick=${toEnd} aria-label="Go to the newest message"><${Icon} name="down" /></button>`}`;
}

// What to ask about a file, by the end of its name; none of files that don't exist.
const IDEAS = [
  [/\.(csv|tsv|xlsx|parquet)$/i, "Look at my data", (name) => `Tell me what is in ${name}.`],
  [/\.(csv|tsv|xlsx|parquet)$/i, "Draw a chart", (name) => `Draw the chart that says most about ${name}.`],
  [/\.(csv|tsv)$/i, "Clean up a file", (name) => `Look for mistakes in ${name}, and save a clean copy under a new name.`],
  [/\.(pdf|docx|txt|md)$/i, "Read a document", (name) => `Summarize ${name} in a few sentences.`],
  [/\.(log|json|jsonl|db|sqlite)$/i, "Look into a file", (name) => `Tell me what is in ${name}, and what is unusual about it.`],
  [/\.(png|jpe?g|webp)$/i, "Work on pictures", (name) => `Make a copy of ${name} that is half as large.`],
  [/\.(py|js|ts|go|rs|java|rb|r|ipynb|toml)$/i, "Explain this project", () => "Explain what the code in this folder does, and how to run it."],
];
const WITHOUT_FILES = [
  ["Draw a chart", "Plot a sine wave and save it as wave.png."],
  ["Calculate", "How much is a loan of 20,000 at 4 % over 10 years per month? Show the first year as a table."],
];
const MAX_IDEAS = 4;

function ideasFor(files) {
  const names = files.filter((file) => file.kind === "file" && /^[^.\p{C}][^\p{C}]{0,59}$/u.test(file.name)).map((file) => file.name);
  const fitting = IDEAS.map(([kind, title, words]) => [title, names.find((name) => kind.test(name)), words]).filter(([, name]) => name);
  return (fitting.length ? fitting.map(([title, name, words]) => [title, words(name)]) : WITHOUT_FILES).slice(0, MAX_IDEAS);
}

function Welcome({ session }) {
  const { found, problem } = useAnswer(`${session.path}/files?path=`, session.filesStamp);
  const ideas = found || problem ? ideasFor(found?.files || []) : [];
  return html`<section class="welcome">
    <h2>What should we do?</h2>
    <p>I write code and run it in <code>${session.info?.folder || "your folder"}</code>. ${session.info?.mode === "auto" ? "Code runs without asking." : "I'll ask before running any code, and you can undo it."}</p>
    <div class="ideas">${ideas.map(([title, words]) => html`<button onClick=${() => { session.draft = words; set({}); focusComposer(); }}><b>${title}</b><span>${words}</span></button>`)}</div>
  </section>`;
}

function UserMessage({ item }) {
  return html`<article class="you" aria-label="You said">
    ${item.text && html`<div class="bubble">${item.text}</div>`}
    ${item.images?.map((image) => html`<img class="sent" src=${source(image)} alt="A picture that you sent" />`)}
  </article>`;
}

export function Markdown({ text }) {
  const { made } = useHtml("markdown", text);
  const box = useRef();
  useEffect(() => {
    for (const link of box.current.querySelectorAll("a[href]")) Object.assign(link, { target: "_blank", rel: "noopener noreferrer" });
    for (const pre of box.current.querySelectorAll("pre")) pre.tabIndex = 0;
  }, [made]);
  if (!made) return html`<div class="prose plain" ref=${box}>${text}</div>`;
  return html`<div class="prose" ref=${box} dangerouslySetInnerHTML=${{ __html: made }} />`;
}

function Said({ item }) {
  return html`<article class="said" aria-label="Answer"><${Markdown} text=${item.text} /></article>`;
}

function Reasoning({ item }) {
  return html`<details class="reasoning"><summary>${item.open ? "Thinking…" : "Thoughts"}</summary><div>${item.text}</div></details>`;
}

function Note({ item }) {
  return html`<p class="note">${item.text}${item.details?.map((line) => html`<span> ${line}</span>`)}</p>`;
}

function ErrorNote({ item }) {
  return html`<p class="note bad" role="alert"><${Icon} name="warning" /> ${item.text}</p>`;
}

// -- code ----------------------------------------------------------------------------------------------------------------

const STATES = {
  writing: "writing", asked: "waiting for you", approved: "starting", running: "running", done: "", refused: "not run",
  error: "failed", interrupted: "stopped", timed_out: "took too long", died: "crashed", background: "in the background",
};

export function Code({ text, language, line }) {
  const last = useHtml("code", text, language);
  const body = last.made && text.startsWith(last.text)
    ? html`<code><span dangerouslySetInnerHTML=${{ __html: last.made }} />${text.slice(last.text.length)}</code>`
    : html`<code>${text}</code>`;
  return html`<div class="code-box">
    ${line > 0 && html`<span class="active-line" style=${{ top: `calc(${line - 1} * var(--line-height) + .7rem)` }} aria-hidden="true" />`}
    <pre class="code" tabindex="0" aria-label=${`${language} code`}>${body}</pre>
  </div>`;
}

function Block({ item, session }) {
  const question = session.openQuestion(item.question);
  const failed = ["error", "died", "timed_out"].includes(item.state);
  const seconds = item.ended && item.began ? item.ended - item.began : 0;
  const copy = () => copyText(item.code, "Code copied.");
  const [editing, setEditing] = useState(null);
  useEffect(() => {
    if (!question) setEditing(null);
  }, [question?.id]);
  const editor = question && editing !== null;
  return html`<section class=${`block ${question ? "asks" : ""}`} aria-label=${`${item.language} block`}>
    <header>
      <span class="language">${item.own ? `${item.language || "code"} · run by you` : item.language}</span>
      <span class=${`state ${failed ? "bad" : ""} ${item.state}`}>${question ? "waiting for you" : STATES[item.state] ?? item.state}${!question && item.state === "done" && seconds >= 0.1 ? `${seconds.toFixed(1)} s` : ""}</span>
      ${item.code && html`<button class="quiet" onClick=${copy} title="Copy the code" aria-label="Copy the code"><${Icon} name="copy" /></button>`}
    </header>
    ${editor
      ? html`<textarea class="editor" aria-label="Edit the code" spellcheck=${false} value=${editing} rows=${Math.min(24, editing.split("\n").length + 1)} onInput=${(event) => setEditing(event.target.value)} ref=${(box) => { if (box && !box.dataset.seen) { box.dataset.seen = "1"; box.focus(); } }} />`
      : item.code && html`<${Code} text=${item.code} language=${item.language} line=${item.state === "running" ? item.line : 0} />`}
    ${question && html`<${Approval} key=${question.id} question=${question} session=${session} editing=${editing} setEditing=${setEditing} code=${item.code} />`}
    ${item.decision && item.decision.outcome !== "approved" && item.decision.outcome !== "edited" && html`<p class="decision">${decided(item.decision)}</p>`}
    <${Outputs} item=${item} session=${session} />
    ${item.files.length > 0 && html`<div class="cards">${item.files.slice(0, 12).map((file) => html`<${FileCard} key=${file.path} session=${session} file=${file} point=${item.point} />`)}${item.files.length > 12 && html`<p class="note">and ${item.files.length - 12} more files</p>`}</div>`}
  </section>`;
}

function decided({ outcome, by, reason }) {
  if (outcome === "declined") return reason ? `You said no: ${reason}` : "You said no.";
  return `Not allowed to run${by === "user" ? "" : ` (${by})`}${reason ? `: ${reason}` : "."}`;
}

function Approval({ question, session, editing, setEditing, code }) {
  const [trial, setTrial] = useState(null); // a dry run: "running", or what it did
  const [rule, setRule] = useState(null); // that would always allow this
  const offers = question.offers || [];
  const tryIt = async () => {
    setTrial("running");
    setTrial((await session.dryRun(question)) || null);
  };
  const discard = () => {
    setTrial(null);
    session.discard(question);
  };
  const always = async () => setRule((await attempt(() => get(`${session.path}/questions/${question.id}/rule`))) || null);
  const effects = (question.effects || []).filter((line) => !/^undoable$/i.test(line));
  const risky = question.undo && question.undo.kind !== "reversible";
  const viewer = session.ownedByOther;
  const saveEdit = () => session.answer(question, "edit", { text: editing });
  return html`<div class="approval" role="group" aria-label="Approval">
    <h3>Run this code?</h3>
    <ul class="effects">
      ${effects.map((line) => html`<li>${line}</li>`)}
      ${question.reason && html`<li class="bad">${question.reason}</li>`}
      ${(question.findings || []).map((found) => html`<li class="bad">${found.line ? `Line ${found.line}, ` : ""}${found.severity}: ${found.message} (${found.tool} ${found.rule})</li>`)}
      ${question.widening?.length > 0 && html`<li class="bad">Wants ${question.widening.join(", ")}, which the sandbox does not allow</li>`}
    </ul>
    ${question.undo && html`<p class=${`undo-line ${risky ? "bad" : ""}`}><${Icon} name=${risky ? "warning" : "undo"} /> ${risky ? `Undo may not restore everything${question.undo.reasons.length ? ": " : ""}${question.undo.reasons.join("; ")}.` : "You can undo this."}</p>`}
    ${trial === "running" && html`<p class="note" role="status">Dry run: nothing is saved, network off…</p>`}
    ${trial?.changes && html`<${DryRun} trial=${trial} />`}
    ${question.diff && !trial && html`<${Diff} text=${question.diff} />`}
    ${rule && html`<div class="dry-run"><p>${rule.sentence}</p><details><summary>The rule as YAML</summary><pre>${rule.rule}</pre></details></div>`}
    ${!viewer && trial !== "running" && (trial
      ? html`<div class="buttons">
          <button class="primary" data-key="approve" title="a" disabled=${!trial.can_apply || trial.only_failed} onClick=${() => session.answer(question, "approve", { preview: trial.id })}>Apply these changes</button>
          <button data-key="refuse" title="r" onClick=${discard}>Discard</button>
        </div>`
      : rule
      ? html`<div class="buttons">
          <button class="primary" data-key="approve" title="a" onClick=${() => session.answer(question, "approve", { rule: rule.digest })}>Save this rule and run the code</button>
          ${rule.wider && html`<button data-key="always" title="w" onClick=${() => setRule(rule.wider)}>Wider rule…</button>`}
          <button data-key="refuse" title="r" onClick=${() => setRule(null)}>Back</button>
        </div>`
      : editing !== null
      ? html`<div class="buttons"><button class="primary" onClick=${saveEdit} disabled=${editing === code}>Use this code</button><button onClick=${() => setEditing(null)}>Cancel</button></div>`
      : html`<div class="buttons">
          ${question.choices.includes("grant")
            ? html`<button class="primary" data-key="approve" onClick=${() => session.answer(question, "grant", { scope: "block" })}>Allow for this block</button><button onClick=${() => session.answer(question, "grant", { scope: "session" })}>Allow for the session</button>`
            : html`<button class="primary" data-key="approve" title="a" onClick=${() => session.answer(question, "approve")}>Approve</button>`}
          <button data-key="refuse" title="r" onClick=${() => session.answer(question, "refuse")}>Refuse</button>
          <button data-key="edit" title="e" onClick=${() => setEditing(code)}>Edit</button>
          ${offers.includes("preview") && html`<button data-key="preview" title="p" onClick=${tryIt}>Dry run</button>`}
          ${offers.includes("always") && html`<button data-key="always" title="w" onClick=${always}>Always allow…</button>`}
          <button class="quiet" data-key="tell" title="t" onClick=${focusComposer}>Say what to change</button>
        </div>`)}
  </div>`;
}

const SIGNS = { created: "+", deleted: "−", renamed: ">" };

// What a dry run printed and would change.
function DryRun({ trial }) {
  const printed = trial.output.filter((message) => message.type === "console").map((message) => message.content).join("");
  return html`<div class="dry-run" role="region" aria-label="Dry run">
    <p class="note">Dry run: nothing is saved, network off.</p>
    ${printed && html`<pre class="output" tabindex="0" aria-label="Output of the dry run">${coloured(settled(printed))}</pre>`}
    ${trial.output.filter((message) => message.type === "image").map((image, at) => html`<${Figure} src=${source(image)} name=${`dry-run-${at + 1}`} />`)}
    ${trial.changes.map((change) => {
      const words = html`${SIGNS[change.what] || "~"} ${change.what} <b>${change.from ? `${change.from} → ` : ""}${change.path}</b>`;
      return change.diff ? html`<details open=${trial.changes.length < 4}><summary>${words}</summary><${Diff} text=${change.diff} /></details>` : html`<p>${words}</p>`;
    })}
    ${!trial.changes.length && html`<p>It changes no files.</p>`}
    ${trial.denied.length > 0 && html`<p class="bad">Denied: ${trial.denied.join(", ")}.</p>`}
    ${trial.read_only.length > 0 && html`<p>Read-only in a dry run, but not in a real run: ${trial.read_only.join(", ")}.</p>`}
    ${trial.lost.length > 0 && html`<p class="bad">Would be lost: ${trial.lost.join(", ")}.</p>`}
    ${trial.only_failed && html`<p>It failed, so there is nothing to apply.</p>`}
    ${!trial.can_apply && html`<p class="bad">Can't apply this: the process it ran in has ended.</p>`}
  </div>`;
}

export function Diff({ text }) {
  const lines = text.replace(/\n$/, "").split("\n");
  const kind = (line) => ({ "+": "added", "-": "removed", "@": "place" })[line[0]] || "";
  return html`<pre class="diff" tabindex="0" aria-label="Difference">${lines.map((line) => html`<span class=${kind(line)}>${line}${"\n"}</span>`)}</pre>`;
}

// -- text questions and input ----------------------------------------------------------------------------------------------

const CHOICES = { approve: "Yes", refuse: "No", keep: "Keep my changes", grant: "Allow" };

function QuestionCard({ item, session }) {
  const question = session.openQuestion(item.question);
  const [text, setText] = useState("");
  const words = item.input ? item.question.content : item.question.content?.content || "";
  const shown = typeof words === "string" ? words : JSON.stringify(words, null, 1);
  if (!question) {
    const answer = item.answer ? (item.answer === "answer" ? "Answered." : `${CHOICES[item.answer] || item.answer}.`) : "No longer open.";
    return html`<p class="note">${shown.trim()} <b>${answer}</b></p>`;
  }
  const secret = item.question.password || question.kind === "password";
  const focusOnce = (box) => {
    if (!box || box.dataset.seen) return;
    box.dataset.seen = "1";
    if (!session.draft && matchMedia("(hover: hover)").matches) box.focus();
  };
  const send = (event) => {
    event.preventDefault();
    session.answer(question, "answer", { text });
  };
  return html`<form class="question asks" onSubmit=${send}>
    <h3>${item.input ? (secret ? "The code asks for a password" : "The code asks you something") : "A question"}</h3>
    <p class="asked-words">${shown.trim() || "It waits for a line of text."}</p>
    ${session.ownedByOther ? null : item.input
      ? html`<div class="buttons"><input type=${secret ? "password" : "text"} autocomplete="off" aria-label=${shown.trim() || "Answer"} value=${text} onInput=${(event) => setText(event.target.value)} data-key="answer" ref=${focusOnce} /><button class="primary">Answer</button></div>`
      : html`<div class="buttons">${question.choices.map((choice, at) => html`<button type="button" class=${at ? "" : "primary"} data-key=${choice} title=${{ approve: "a", refuse: "r" }[choice]} onClick=${() => session.answer(question, choice)}>${CHOICES[choice] || choice}</button>`)}
          ${question.offers?.includes("session") && html`<button type="button" data-key="session" onClick=${() => session.answer(question, "approve", { scope: "session" })}>Yes, for this session</button>`}</div>`}
  </form>`;
}

// -- output ------------------------------------------------------------------------------------------------------------------

function Outputs({ item, session }) {
  const shown = item.outputs.filter((output, at) => !(output.also && ["html", "image", "svg", "markdown"].includes(item.outputs[at + 1]?.kind)));
  if (!shown.length) return null;
  return html`<div class="outputs">${shown.map((output, at) => html`<${Output} key=${at} output=${output} session=${session} length=${output.text?.length} />`)}</div>`;
}

// Lines with gaps in them, one below the other: a printed table, whose lines are not broken.
const ALIGNED = /(^|\n).*\S {2,}\S.*\n.*\S {2,}\S/;

function Output({ output, session }) {
  const [whole, setWhole] = useState(false);
  switch (output.kind) {
    case "image":
      return html`<${Figure} src=${source({ format: output.format, content: output.text })} name=${`figure-${output.number}`} data=${output.data} />`;
    case "svg":
      return html`<${Figure} src=${`data:image/svg+xml;charset=utf-8,${encodeURIComponent(output.text)}`} name=${`figure-${output.number}`} />`;
    case "html":
      return html`<${Frame} src=${`${session.path}/html/${output.number}?theme=${theme()}`} title="What the code displayed" />`;
    case "markdown":
      return html`<${Markdown} text=${output.text} />`;
    default: {
      const text = settled(output.text);
      const cut = !whole && text.length > MAX_OUTPUT;
      return html`<pre class=${`output ${output.stream === "stderr" ? "stderr" : ALIGNED.test(text) ? "aligned" : ""}`} tabindex="0" aria-label="Output">${cut && html`<button class="quiet" onClick=${() => setWhole(true)}>Show all ${readableSize(text.length)}</button>`}${coloured(cut ? text.slice(-MAX_OUTPUT) : text)}</pre>`;
    }
  }
}

// Output as it looks at the end: a carriage return begins its line again, as progress bars do.
function settled(text) {
  if (!text.includes("\r") && !text.includes("\b")) return text;
  return text.replace(/\r+\n/g, "\n").split("\n").map((line) => line.slice(line.lastIndexOf("\r", line.length - 2) + 1).replace(/\r$/, "")).join("\n");
}

const ANSI = /\x1b(?:\[([0-9;]*)m|\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])/g;

// The colours of a terminal as classes; its other controls are left out.
function coloured(text) {
  if (!text.includes("\x1b")) return text;
  const parts = [];
  let at = 0;
  let classes = new Set();
  const push = (piece) => piece && parts.push(classes.size ? html`<span class=${[...classes].join(" ")}>${piece}</span>` : piece);
  for (const match of text.matchAll(ANSI)) {
    push(text.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[1] === undefined) continue;
    for (const code of (match[1] || "0").split(";").map(Number)) {
      if (code === 0) classes = new Set();
      else if (code === 1) classes.add("bold");
      else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) {
        classes = new Set([...classes].filter((name) => !name.startsWith("fg")));
        classes.add(`fg${code % 10}`);
      } else if (code === 39) classes = new Set([...classes].filter((name) => !name.startsWith("fg")));
    }
  }
  push(text.slice(at));
  return parts;
}

export function source(image) {
  const kind = /jpe?g/.test(image.format) ? "jpeg" : "png";
  return image.content.startsWith("data:") ? image.content : `data:image/${kind};base64,${image.content}`;
}

export function Figure({ src, name, data }) {
  const extension = /^data:image\/(\w+)/.exec(src)?.[1] || "png";
  const file = `${name}.${extension}`;
  return html`<figure>
    <button class="figure" onClick=${() => set({ dialog: { kind: "figure", src, file } })} aria-label=${`Zoom ${name}`}><img src=${src} alt=${name.replace("-", " ")} /></button>
    <figcaption>${data && html`<button class="quiet" onClick=${() => set({ dialog: { kind: "data", data, name } })}><${Icon} name="table" /> Data</button>`}<a class="quiet" href=${src} download=${file}><${Icon} name="download" /> Save</a></figcaption>
  </figure>`;
}

// HTML that code made runs in a frame with a separate origin; all it can send us is its height.
export function Frame({ src, title }) {
  const frame = useRef();
  const [height, setHeight] = useState(120);
  useEffect(() => {
    const heard = (event) => {
      const told = Number(event.data?.height);
      if (event.source === frame.current?.contentWindow && told >= 0) setHeight(Math.min(640, Math.max(40, Math.ceil(told) + 2)));
    };
    addEventListener("message", heard);
    return () => removeEventListener("message", heard);
  }, []);
  return html`<iframe ref=${frame} src=${src} title=${title} sandbox="allow-scripts" loading="lazy" style=${{ height: `${height}px` }} />`;
}

// -- the box to write in -------------------------------------------------------------------------------------------------------

export function focusComposer() {
  const box = document.getElementById("composer");
  if (box) box.focus();
  else setTimeout(() => document.getElementById("composer")?.focus(), 50);
}

export function Plan({ session }) {
  const steps = session.plan;
  if (!steps?.length) return null;
  const done = steps.filter((step) => ["done", "skipped"].includes(step.state)).length;
  const now = steps.find((step) => step.state === "running");
  return html`<details class="plan"><summary>Plan: ${done} of ${steps.length} done${now ? ` · ${now.text}` : ""}</summary>
    <ol>${steps.map((step) => html`<li class=${step.state}>${step.text} <small>${step.state === "pending" ? "" : step.state}</small></li>`)}</ol></details>`;
}

export function Composer({ session }) {
  const box = useRef();
  const picker = useRef();
  session.draft ??= "";
  session.added ??= [];
  session.images ??= [];
  const approval = session.questions.find((each) => each.kind === "block");
  const busy = Boolean(session.running);
  const [sending, setSending] = useState(false);
  useLayoutEffect(() => {
    box.current.style.height = "auto";
    box.current.style.height = `${Math.min(box.current.scrollHeight + 2, innerHeight * 0.4)}px`;
  });
  useEffect(() => {
    if (matchMedia("(hover: hover)").matches) box.current.focus();
  }, [session.id]);
  if (session.ownedByOther) return html`<p class="composer note" ref=${box}>You can read this session, not change it.</p>`;

  const send = async () => {
    const text = session.draft.trim();
    if (sending || (busy && !approval) || (!text && !session.added.length && !session.images.length)) return;
    if (approval) {
      if (!text) return;
      session.draft = "";
      if (!(await session.answer(approval, "refuse", { text }))) session.draft ||= text;
      changed();
      return;
    }
    const names = session.added.map((each) => each.path);
    const content = [text || "Look at what I added.", names.length ? `Files I added to the folder: ${names.join(", ")}` : ""].filter(Boolean).join("\n\n");
    setSending(true);
    const sent = await attempt(async () => {
      await session.say(content, session.images);
      return true;
    });
    setSending(false);
    if (sent) Object.assign(session, { draft: "", added: [], images: [] });
    changed();
  };
  const onKey = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape") event.target.blur();
  };
  const onPaste = (event) => {
    const files = [...(event.clipboardData?.files || [])];
    if (files.length) {
      event.preventDefault();
      addFiles(session, files);
    }
  };
  const hint = approval ? "Say what to change…" : busy ? "Working…" : "What should I do?";
  return html`<div class="composer">
    ${(session.added.length > 0 || session.images.length > 0) && html`<div class="chips">
      ${session.added.map((each) => html`<span class="chip"><${Icon} name="file" /> ${each.path} <button class="quiet" aria-label=${`Don't mention ${each.path}`} onClick=${() => { session.added = session.added.filter((other) => other !== each); set({}); }}>×</button></span>`)}
      ${session.images.map((each) => html`<span class="chip"><img src=${source(each)} alt="A picture to send" /><button class="quiet" aria-label="Remove the picture" onClick=${() => { session.images = session.images.filter((other) => other !== each); set({}); }}>×</button></span>`)}
    </div>`}
    <div class="writing">
      <button class="quiet" onClick=${() => picker.current.click()} title="Add files" aria-label="Add files"><${Icon} name="attach" /></button>
      <input type="file" multiple hidden ref=${picker} onChange=${(event) => { addFiles(session, [...event.target.files]); event.target.value = ""; }} />
      <textarea id="composer" ref=${box} rows="1" placeholder=${hint} aria-label="Message" value=${session.draft} onInput=${(event) => { session.draft = event.target.value; changed(); }} onKeyDown=${onKey} onPaste=${onPaste} />
      ${busy && html`<button class="stop" onClick=${() => session.stop()} title="Stop (Ctrl+.)" aria-label="Stop"><${Icon} name="stop" /> <span>Stop</span></button>`}
      ${(!busy || approval) && html`<button class="primary send" onClick=${send} disabled=${sending || !(session.draft.trim() || session.added.length || session.images.length)} aria-label="Send" title="Send (Enter)"><${Icon} name="send" /></button>`}
    </div>
  </div>`;
}

export async function addFiles(session, files) {
  for (const file of files) {
    if (/^image\/(png|jpeg)$/.test(file.type) && file.size < 4_000_000) session.images = [...(session.images || []), await asImage(file)];
  }
  const stored = await uploadFiles(session, files);
  session.added = [...(session.added || []), ...stored];
  session.filesStamp += 1;
  set({});
}

function asImage(file) {
  return new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done({ format: file.type === "image/png" ? "base64.png" : "base64.jpeg", content: reader.result.split(",")[1] });
    reader.readAsDataURL(file);
  });
}

export async function copyText(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    tell(said);
  } catch {
    tell("The browser didn't allow copying.", "error");
  }
}

export async function copyAsMarkdown(session) {
  const answer = await attempt(() => request("GET", `${session.path}/export?form=markdown`, undefined, { raw: true }));
  if (answer) await copyText(await answer.text(), "Copied as Markdown.");
}
