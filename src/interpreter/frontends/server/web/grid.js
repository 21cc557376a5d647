// Live variables, and a grid over a live table: only the rows and columns that are visible leave the runtime.

import { useEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
import { get, html, set, useAnswer } from "./store.js";
import { Icon } from "./icons.js";
import { copyText, source } from "./chat.js";

const ROW = 29; // pixels
const COLUMN = 150; // until its texts are known
const NARROWEST = 64;
const WIDEST = 420;
const PADDING = 22; // of a cell, with its border
const SORT_SIGN = 14;
const HEAD = 64;
const PAGE_ROWS = 100;
const PAGE_COLUMNS = 20;
const HIGHEST = 8000000; // pixels; browsers end somewhere beyond this, so larger tables scroll in larger steps
const TABLES = /frame|table|array|series|list|dict|tuple|result/i;

export function VariablesPane({ session }) {
  const { found, problem } = useAnswer(`${session.path}/variables`, session.variablesStamp);
  const [words, setWords] = useState("");
  const sought = words.toLowerCase();
  const groups = Object.entries(found?.variables || {}).map(([language, rows]) => [language, rows.filter((row) => `${row.name} ${row.type}`.toLowerCase().includes(sought))]);
  const empty = found && groups.every(([, rows]) => !rows.length);
  return html`<div class="list">
    <input class="search" type="search" placeholder="Find a variable" aria-label="Find a variable" value=${words} onInput=${(event) => setWords(event.target.value)} />
    ${(problem || !found) && html`<p class=${`note ${problem ? "bad" : ""}`}>${problem || "Reading…"}</p>`}
    ${empty && html`<p class="note">${words ? "Nothing found." : "No variables yet. They appear here when code has run."}</p>`}
    ${groups.map(([language, rows]) => rows.length > 0 && html`<h3>${language}</h3>${rows.map((row) => html`<button class="variable" onClick=${() => show(session, language, row)}>
      <span class="name">${row.name}</span><span class="type">${row.type}${row.shape ? ` · ${row.shape}` : ""}</span>
      <span class="value">${row.preview}</span>
    </button>`)}`)}
  </div>`;
}

function show(session, language, row) {
  set({ dialog: { kind: "value", session, language: language.toLowerCase(), name: row.name, type: row.type, tabular: TABLES.test(row.type) } });
}

// A live value in a dialog: a grid, a picture or text.
export function LiveValue({ session, language, name }) {
  const path = `${session.path}/variables/${encodeURIComponent(language)}/${encodeURIComponent(name)}`;
  const { found: value, problem } = useAnswer(`${path}?rows=1&columns=1`, session.variablesStamp);
  if (problem) return html`<p class="note bad">${problem}</p>`;
  if (!value) return html`<p class="note">Reading…</p>`;
  if (value.kind === "table") return html`<${Grid} session=${session} path=${path} name=${name} type=${value.type} language=${language} />`;
  if (value.kind === "picture") {
    const image = value.data["image/png"] || value.data["image/jpeg"];
    if (image) return html`<img class="preview-picture" alt=${name} src=${source({ format: value.data["image/png"] ? "png" : "jpeg", content: image })} />`;
    return html`<pre class="output" tabindex="0">${value.data["text/plain"] || ""}</pre>`;
  }
  return html`<pre class="output" tabindex="0">${value.text}</pre>`;
}

function Grid({ session, path, name, type, language }) {
  const [view, setView] = useState({ sort: "", descending: false, filter: "", find: "" });
  const [draft, setDraft] = useState({ filter: "", find: "" });
  const [facts, setFacts] = useState(null); // rows, columns, total
  const [problem, setProblem] = useState("");
  const [code, setCode] = useState(false);
  const [, draw] = useState(0);
  const [corner, setCorner] = useState({ top: 0, left: 0, height: 400, width: 800 });
  const box = useRef();
  const query = new URLSearchParams(Object.entries(view).filter(([, value]) => value)).toString();
  // The pages of one view of the table as it is now; another view begins with none.
  const pages = useMemo(() => ({ cells: new Map(), charts: new Map(), widths: new Map(), stop: new AbortController() }), [path, query, session.variablesStamp]);
  useEffect(() => () => pages.stop.abort(), [pages]);

  const load = async (map, key, address) => {
    if (map.has(key)) return;
    map.set(key, null);
    try {
      const found = await get(address, { signal: pages.stop.signal });
      map.set(key, found);
      if (map === pages.cells) {
        measureTexts(pages.widths, found, Number(key.split(":")[1]) * PAGE_COLUMNS, getComputedStyle(box.current).font);
        setFacts({ rows: found.rows, columns: found.columns, total: found.total, head: found.header.length });
        setProblem("");
      }
    } catch (error) {
      if (error.name === "AbortError") return; // else it stays without an answer, and isn't asked for again
      if (map === pages.cells) setProblem(error.message);
    }
    draw((count) => count + 1);
  };

  const height = (facts?.rows || 0) * ROW;
  const scale = Math.max(1, height / HIGHEST);
  const first = Math.max(0, Math.floor((corner.top * scale) / ROW));
  const last = Math.min(facts?.rows ?? PAGE_ROWS, first + Math.ceil(corner.height / ROW) + 2);
  const widest = Math.max(COLUMN, Math.min(WIDEST, corner.width * 0.6));
  const indexWidth = Math.min(pages.widths.get("index") ?? NARROWEST, Math.max(NARROWEST, corner.width * 0.55));
  const wanted = Array.from({ length: facts?.columns ?? PAGE_COLUMNS }, (_, column) => pages.widths.get(column) ?? COLUMN);
  let spare = wanted.reduce((room, width) => room - Math.min(width, widest), corner.width - indexWidth);
  const edges = [indexWidth]; // where each column begins, and where the last one ends
  for (const width of wanted) {
    const more = Math.max(0, Math.min(width - widest, spare)); // no column is cut beside empty room
    spare -= more;
    edges.push(edges.at(-1) + Math.min(width, widest) + more);
  }
  const left = Math.max(0, edges.findLastIndex((edge) => edge <= corner.left + indexWidth));
  const beyond = edges.findIndex((edge) => edge > corner.left + corner.width);
  const right = Math.min(facts?.columns ?? PAGE_COLUMNS, beyond < 0 ? edges.length - 1 : beyond + 1);
  const place = (column) => ({ left: `${edges[column]}px`, width: `${edges[column + 1] - edges[column]}px` });
  useEffect(() => {
    for (let row = Math.floor(first / PAGE_ROWS); row <= Math.floor(Math.max(first, last - 1) / PAGE_ROWS); row++)
      for (let column = Math.floor(left / PAGE_COLUMNS); column <= Math.floor(Math.max(left, right - 1) / PAGE_COLUMNS); column++) {
        const window = `row=${row * PAGE_ROWS}&rows=${PAGE_ROWS}&column=${column * PAGE_COLUMNS}&columns=${PAGE_COLUMNS}`;
        load(pages.cells, `${row}:${column}`, `${path}?${window}&${query}`);
        if (facts) load(pages.charts, column, `${path}/histograms?column=${column * PAGE_COLUMNS}&columns=${PAGE_COLUMNS}&${query}`);
      }
  });
  useEffect(() => {
    const measure = () => box.current && setCorner((old) => ({ ...old, height: box.current.clientHeight, width: box.current.clientWidth }));
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const onScroll = () => setCorner({ top: box.current.scrollTop, left: box.current.scrollLeft, height: box.current.clientHeight, width: box.current.clientWidth });

  const pageOf = (row, column) => pages.cells.get(`${Math.floor(row / PAGE_ROWS)}:${Math.floor(column / PAGE_COLUMNS)}`);
  const cellAt = (row, column) => pageOf(row, column)?.cells[column % PAGE_COLUMNS]?.[row % PAGE_ROWS];
  const anyPage = (column) => [...pages.cells].find(([key, page]) => page && key.endsWith(`:${Math.floor(column / PAGE_COLUMNS)}`))?.[1];
  const sortBy = (column) => {
    box.current.scrollTop = 0;
    if (view.sort !== column) setView({ ...view, sort: column, descending: false });
    else if (!view.descending) setView({ ...view, descending: true });
    else setView({ ...view, sort: "", descending: false });
  };
  const apply = (event) => {
    event.preventDefault();
    box.current.scrollTop = 0;
    setView({ ...view, ...draft });
  };
  const columns = Array.from({ length: Math.max(0, right - left) }, (_, at) => left + at);
  const rows = Array.from({ length: Math.max(0, last - first) }, (_, at) => first + at);
  const top = first * ROW - (scale > 1 ? corner.top * (scale - 1) : 0);
  const words = facts && `${facts.rows === facts.total ? "" : `${facts.rows.toLocaleString()} of `}${facts.total.toLocaleString()} rows · ${facts.columns.toLocaleString()} columns`;
  return html`<div class="grid">
    <form class="grid-bar" onSubmit=${apply}>
      <input type="search" placeholder="Filter: price > 100 and city == 'Oslo'" aria-label="Filter" value=${draft.filter} onInput=${(event) => setDraft({ ...draft, filter: event.target.value })} />
      <input type="search" class="find" placeholder="Find text" aria-label="Find text" value=${draft.find} onInput=${(event) => setDraft({ ...draft, find: event.target.value })} />
      <button>Apply</button>
      <span class="facts" role="status">${words}</span>
      <button type="button" class="quiet" aria-expanded=${code} onClick=${() => setCode(!code)}><${Icon} name="code" /> Give me the code</button>
    </form>
    ${problem && html`<p class="note bad" role="alert">${problem}</p>`}
    ${code && html`<div class="grid-code"><pre class="code" tabindex="0">${viewCode(name, type, view, language)}</pre><button onClick=${() => copyText(viewCode(name, type, view, language), "Code copied.")}><${Icon} name="copy" /> Copy</button></div>`}
    <div class="grid-box" ref=${box} onScroll=${onScroll} tabindex="0" role="table" aria-label=${name} aria-rowcount=${facts?.rows ?? -1} aria-colcount=${facts?.columns ?? -1}>
      <div class="grid-space" role="presentation" style=${{ height: `${height / scale + HEAD}px`, width: `${facts ? edges.at(-1) : indexWidth}px` }}>
        <div class="grid-head" role="row">
          <span class="grid-corner" role="columnheader" aria-label="Row" style=${{ width: `${indexWidth}px` }}></span>
          ${columns.map((column) => {
            const header = anyPage(column)?.header[column % PAGE_COLUMNS];
            if (header === undefined) return null;
            const order = view.sort === header ? (view.descending ? "descending" : "ascending") : "none";
            return html`<div class="grid-name" role="columnheader" aria-sort=${order} key=${column} style=${place(column)}>
              <button class="quiet" onClick=${() => sortBy(header)} title=${`Sort by ${header}`} aria-label=${`Sort by ${header}`}>${header}<i>${order === "ascending" ? "▲" : order === "descending" ? "▼" : ""}</i></button>
              <${Chart} of=${pages.charts.get(Math.floor(column / PAGE_COLUMNS))?.histograms?.[column % PAGE_COLUMNS]} />
            </div>`;
          })}
        </div>
        <div class="grid-body" role="rowgroup" style=${{ transform: `translateY(${top}px)` }}>
          ${rows.map((row) => html`<div class="grid-row" role="row" key=${row} aria-rowindex=${row + 1}>
            <span class="grid-index" role="rowheader" style=${{ width: `${indexWidth}px` }}>${pageOf(row, left)?.index[row % PAGE_ROWS] ?? "…"}</span>
            ${columns.map((column) => html`<span role="cell" key=${column} class=${pageOf(row, column)?.numeric[column % PAGE_COLUMNS] ? "number" : ""} style=${place(column)}>${cellAt(row, column) ?? ""}</span>`)}
          </div>`)}
        </div>
      </div>
    </div>
  </div>`;
}

const pen = document.createElement("canvas").getContext("2d");

// Makes columns as wide as their texts. What is known only grows, so that scrolling moves no column to the left.
function measureTexts(widths, page, first, font) {
  pen.font = font;
  const wide = (texts) => Math.ceil(Math.max(0, ...texts.map((text) => pen.measureText(text).width))) + PADDING;
  const grow = (key, width) => widths.set(key, Math.max(NARROWEST, width, widths.get(key) ?? 0));
  grow("index", wide(page.index));
  page.header.forEach((name, at) => grow(first + at, Math.max(wide(page.cells[at]), wide([name]) + SORT_SIGN)));
}

// What a column holds, small: a bar for each range of numbers, or its most frequent texts.
function Chart({ of }) {
  if (!of) return html`<span class="chart" />`;
  if (of.bins) {
    const most = Math.max(...of.bins, 1);
    return html`<svg class="chart" viewBox="0 0 ${of.bins.length * 8} 24" preserveAspectRatio="none" role="img" aria-label=${`From about ${of.low} to ${of.high}`}><title>${`About ${of.low} to ${of.high}`}</title>
      ${of.bins.map((count, at) => html`<rect x=${at * 8 + 0.5} width="7" y=${24 - (count / most) * 23} height=${(count / most) * 23} />`)}</svg>`;
  }
  return html`<span class="chart words" title=${of.words}>${of.words}</span>`;
}

// The code that makes the view, for pandas or polars.
export function viewCode(name, type, view, language) {
  if (language !== "python") return name;
  if (/polars/i.test(type)) {
    const parts = [view.filter && `.filter(pl.sql_expr(${quoted(view.filter.replaceAll("==", "="))}))`, view.sort && `.sort(${quoted(view.sort)}, descending=${view.descending ? "True" : "False"})`];
    return `${name}${parts.filter(Boolean).join("")}`;
  }
  const steps = [];
  if (view.filter) steps.push(`.query(${quoted(view.filter)})`);
  if (view.find) steps.push(`\n  .loc[lambda rows: rows.astype(str).apply(lambda column: column.str.contains(${quoted(view.find)}, case=False, regex=False)).any(axis=1)]\n  `);
  if (view.sort) steps.push(`.sort_values(${quoted(view.sort)}${view.descending ? ", ascending=False" : ""})`);
  const whole = `${name}${steps.join("")}`.trimEnd();
  return whole.includes("\n") ? `(${whole})` : whole;
}

const quoted = (text) => JSON.stringify(text);
