// Files of the workspace: cards, previews, uploads, and the list.

import { useEffect, useState } from "./vendor/hooks.js";
import { attempt, get, html, request, set, tell, useAnswer, useHtml } from "./store.js";
import { Icon } from "./icons.js";
import { Diff, Frame } from "./chat.js";

const MAX_PREVIEW = 400000; // bytes of a text
const MAX_PICTURE = 20000000;
const PICTURES = { png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp", svg: "image/svg+xml", avif: "image/avif", bmp: "image/bmp" };
const TABLES = { csv: ",", tsv: "\t" };
const LANGUAGES = { py: "python", js: "javascript", ts: "typescript", sh: "shell", rb: "ruby", r: "r", sql: "sql", json: "json", html: "html", css: "css", yaml: "yaml", yml: "yaml", toml: "toml", java: "java", c: "c", cpp: "cpp", rs: "rust", go: "go", xml: "xml", ipynb: "json" };
const BINARY = new Set(["zip", "gz", "tar", "pdf", "xlsx", "xls", "parquet", "docx", "pptx", "mp4", "mp3", "wav", "sqlite", "db", "pkl", "npy", "npz", "bin", "exe", "so"]);

export function readableSize(bytes) {
  if (bytes == null) return "";
  for (const unit of ["bytes", "kB", "MB", "GB"]) {
    if (bytes < 1000 || unit === "GB") return unit === "bytes" ? `${bytes} bytes` : `${bytes.toPrecision(3)} ${unit}`;
    bytes /= 1000;
  }
  return "";
}

export function theme() {
  const chosen = document.documentElement.dataset.theme;
  return chosen || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

const extension = (path) => path.split(".").pop().toLowerCase();
const address = (session, path) => `${session.path}/files/${path.split("/").map(encodeURIComponent).join("/")}`;

const CHANGES = { created: "new", mode: "new mode", touched: "new date" };

export function FileCard({ session, file, point }) {
  const gone = file.what === "deleted";
  const facts = [CHANGES[file.what] || file.what, file.data, readableSize(file.after?.bytes)].filter(Boolean).join(" · ");
  return html`<div class=${`card ${gone ? "gone" : ""}`}>
    <span class="card-icon"><${Icon} name=${TABLES[extension(file.path)] ? "table" : "file"} /></span>
    <span class="card-text"><b title=${file.path}>${file.path}</b><small>${facts}</small></span>
    <span class="card-buttons">${point && file.what !== "created" && html`<button class="quiet" aria-label=${`What changed in ${file.path}`} title="What changed" onClick=${() => set({ dialog: { kind: "diff", session, path: file.path, point } })}><${Icon} name="diff" /></button>`}
    ${!gone && html`
      ${previewable(file.path) && html`<button class="quiet" aria-label=${`Preview ${file.path}`} title="Preview" onClick=${() => preview(session, file.path)}><${Icon} name="eye" /></button>`}
      <a class="quiet button" href=${address(session, file.path)} download=${file.path.split("/").pop()} aria-label=${`Download ${file.path}`} title="Download"><${Icon} name="download" /></a>`}</span>
  </div>`;
}

const previewable = (path) => !BINARY.has(extension(path));

export function preview(session, path) {
  set({ dialog: { kind: "file", session, path } });
}

async function firstBytes(path, most) {
  const answer = await get(path, { raw: true });
  const reader = answer.body.getReader();
  const pieces = [];
  let size = 0;
  while (size < most) {
    const { done, value } = await reader.read();
    if (done) return { blob: new Blob(pieces), whole: true };
    pieces.push(value);
    size += value.length;
  }
  reader.cancel();
  return { blob: new Blob(pieces), whole: false };
}

export function FilePreview({ session, path }) {
  const [found, setFound] = useState(null);
  const kind = extension(path);
  useEffect(() => {
    let url = "";
    setFound(null);
    attempt(async () => {
      if (kind === "html" || kind === "htm") return setFound({ frame: `${session.path}/preview/${path.split("/").map(encodeURIComponent).join("/")}?theme=${theme()}` });
      const { blob, whole } = await firstBytes(address(session, path), PICTURES[kind] ? MAX_PICTURE : MAX_PREVIEW);
      if (PICTURES[kind]) {
        url = URL.createObjectURL(new Blob([blob], { type: PICTURES[kind] }));
        return setFound({ picture: url });
      }
      return setFound({ text: await blob.text(), whole });
    }).then(() => undefined);
    return () => url && URL.revokeObjectURL(url);
  }, [session, path]);
  if (!found) return html`<p class="note">Reading…</p>`;
  if (found.frame) return html`<${Frame} src=${found.frame} title=${path} />`;
  if (found.picture) return html`<img class="preview-picture" src=${found.picture} alt=${path} />`;
  const rest = !found.whole && html`<p class="note">This is the beginning. Download the file to see all of it.</p>`;
  if (found.text.includes("\0")) return html`<p class="note">This is not a text. Download it to open it.</p>`;
  if (TABLES[kind]) return html`<${TextTable} rows=${separated(found.text, TABLES[kind], 500)} />${rest}`;
  if (kind === "md") return html`<${PreviewHtml} kind="markdown" text=${found.text} box="div" class="prose" />${rest}`;
  return html`<${PreviewHtml} kind="code" text=${found.text} language=${LANGUAGES[kind] || "text"} box="pre" class="code" />${rest}`;
}

export function FileDiff({ session, path, point }) {
  const { found, problem } = useAnswer(`${session.path}/timeline/${point}/diff?path=${encodeURIComponent(path)}`);
  if (problem || !found) return html`<p class=${`note ${problem ? "bad" : ""}`}>${problem || "Reading…"}</p>`;
  return found.diff ? html`<${Diff} text=${found.diff} />` : html`<p class="note">There is no difference in lines to show.</p>`;
}

export function FigureData({ data, name }) {
  const rows = separated(data, ",", 500);
  return html`<p class="note">The points, lines and bars that the figure shows. <a href=${`data:text/csv;charset=utf-8,${encodeURIComponent(data)}`} download=${`${name}.csv`}>Save as CSV</a></p>
    <${TextTable} rows=${rows} />${rows.length > 500 && html`<p class="note">These are the first rows. Save the file to see all of them.</p>`}`;
}

function PreviewHtml({ kind, text, language, box, class: name }) {
  const { made } = useHtml(kind, text, language);
  return !made ? html`<${box} class=${name} tabindex="0">${text}</${box}>` : html`<${box} class=${name} tabindex="0" dangerouslySetInnerHTML=${{ __html: made }} />`;
}

// The first rows of a CSV file, with quoted cells.
export function separated(text, mark, most) {
  const rows = [[]];
  let cell = "";
  let quoted = false;
  for (let at = 0; at < text.length && rows.length <= most; at++) {
    const letter = text[at];
    if (quoted) {
      if (letter === '"' && text[at + 1] === '"') cell += text[++at];
      else if (letter === '"') quoted = false;
      else cell += letter;
    } else if (letter === '"' && !cell) quoted = true;
    else if (letter === mark || letter === "\n") {
      rows.at(-1).push(cell.replace(/\r$/, ""));
      cell = "";
      if (letter === "\n") rows.push([]);
    } else cell += letter;
  }
  if (cell) rows.at(-1).push(cell);
  return rows.filter((row) => row.length);
}

function TextTable({ rows }) {
  const [head = [], ...body] = rows;
  return html`<div class="table-box" tabindex="0" role="region" aria-label="Table"><table><thead><tr>${head.map((cell) => html`<th scope="col">${cell}</th>`)}</tr></thead>
    <tbody>${body.map((row) => html`<tr>${row.map((cell) => html`<td class=${cell !== "" && !Number.isNaN(Number(cell)) ? "number" : ""}>${cell}</td>`)}</tr>`)}</tbody></table></div>`;
}

// -- uploads -----------------------------------------------------------------------------------------------------------------

export async function uploadFiles(session, files) {
  const stored = [];
  for (const file of files) {
    const path = file.name || "pasted";
    if (file.size > 1e6) tell(`Adding ${path}…`, "busy");
    const done = await attempt(() => request("PUT", address(session, path), new Blob([file])));
    if (done) stored.push({ path, size: file.size });
  }
  if (stored.length) tell(stored.length === 1 ? `${stored[0].path} is in the folder now.` : `${stored.length} files are in the folder now.`);
  return stored;
}

// -- the pane ------------------------------------------------------------------------------------------------------------------

export function FilesPane({ session }) {
  const [place, setPlace] = useState("");
  const { found, problem } = useAnswer(`${session.path}/files?path=${encodeURIComponent(place)}`, session.filesStamp);
  const files = problem ? [] : found?.files;
  const above = place.split("/").slice(0, -1).join("/");
  return html`<div class="list">
    ${place && html`<button class="row" onClick=${() => setPlace(above)}><${Icon} name="undo" /> <span>${place}</span></button>`}
    ${problem && html`<p class="note bad">${problem}</p>`}
    ${found?.files.length === 0 && !problem && html`<p class="note">This folder is empty. Drop files on the page to add some.</p>`}
    ${files?.map((file) => {
      const path = place ? `${place}/${file.name}` : file.name;
      if (file.kind === "folder") return html`<button class="row" onClick=${() => setPlace(path)}><${Icon} name="folder" /> <span>${file.name}</span></button>`;
      return html`<div class="row-pair"><button class="row" disabled=${file.kind !== "file"} onClick=${() => preview(session, path)}><${Icon} name="file" /> <span>${file.name}</span><small>${readableSize(file.size)}</small></button>
        ${file.kind === "file" && html`<a class="quiet button" href=${address(session, path)} download=${file.name} aria-label=${`Download ${file.name}`}><${Icon} name="download" /></a>`}</div>`;
    })}
    ${found?.more > 0 && html`<p class="note">and ${found.more.toLocaleString()} more</p>`}
  </div>`;
}
