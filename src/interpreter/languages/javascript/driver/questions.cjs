'use strict';
// Answers questions between blocks: which variables exist, what a value looks like, and how code can be completed.
// This runs no code of the user's: no getters, proxy traps or inspection methods.

const { inspect, types } = require('util');
const vm = require('vm');
const { session } = require('./interrupts.cjs');

const MOST = 500; // variables
const OFFERED = 200; // completions
const LONGEST = 100; // characters of a preview
const LONGEST_TEXT = 200000;
const CAUTIOUS = { customInspect: false, getters: false, showProxy: true, breakLength: Infinity };
const SHORT = { ...CAUTIOUS, depth: 1, maxArrayLength: 6, maxStringLength: LONGEST };
const WHOLE = { ...CAUTIOUS, depth: 6, maxArrayLength: 2000, maxStringLength: LONGEST_TEXT, breakLength: 100 };
const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;
const MISSING = Symbol('missing');
const KEYWORDS =
  'async await break case catch class const continue debugger default delete do else export extends false finally ' +
  'for function if import in instanceof let new null return static super switch this throw true try typeof undefined ' +
  'var void while with yield';
let ours = new Set(); // the properties of the global object before the first block

function install() {
  ours = new Set([...Object.getOwnPropertyNames(globalThis), 'require']);
}

function answer(frame) {
  try {
    if (frame.op === 'complete') return completions(frame.code, frame.cursor);
    if (frame.name === undefined) return listed();
    return page(frame);
  } catch (error) {
    return { failed: String(error) };
  }
}

/** List the names that blocks have declared: on the global object, and with let, const and class. */
function names() {
  const declared = [];
  session.post('Runtime.globalLexicalScopeNames', {}, (error, found) => error || declared.push(...found.names));
  return [...Object.getOwnPropertyNames(globalThis).filter((name) => !ours.has(name)), ...declared];
}

function valueOf(name) {
  if (!IDENTIFIER.test(name)) return MISSING;
  const property = Object.getOwnPropertyDescriptor(globalThis, name);
  if (property?.get && !ours.has(name)) return MISSING;
  try {
    return vm.runInThisContext(name);
  } catch {
    return MISSING; // declared without a value
  }
}

function listed() {
  const all = names().filter((name) => !name.startsWith('_'));
  const variables = all.slice(0, MOST).map((name) => describe(name, valueOf(name)));
  return { variables };
}

function describe(name, value) {
  if (value === MISSING) return { name, type: '', preview: '' };
  const shape = types.isProxy(value) ? undefined : lengthOf(value);
  const size = ArrayBuffer.isView(value) || value instanceof ArrayBuffer ? value.byteLength : undefined;
  const line = inspect(value, SHORT).replace(/\s+/g, ' ');
  const preview = line.length > LONGEST ? `${line.slice(0, LONGEST - 3)}...` : line;
  return { name, type: kindOf(value), preview, ...(shape !== undefined && { shape }), ...(size !== undefined && { size }) };
}

function lengthOf(value) {
  if (typeof value === 'string' || Array.isArray(value) || ArrayBuffer.isView(value)) return String(value.length ?? '');
  if (types.isMap(value) || types.isSet(value)) return String(value.size);
  return undefined;
}

function kindOf(value) {
  if (value === null) return 'null';
  if (types.isProxy(value)) return 'Proxy';
  if (typeof value === 'function') return /^class\b/.test(Function.prototype.toString.call(value)) ? 'class' : 'function';
  if (typeof value !== 'object') return typeof value;
  const maker = property(value, 'constructor');
  return typeof maker === 'function' ? String(property(maker, 'name')) || 'object' : 'object';
}

/** Read a property's value if that runs no code. */
function property(owner, name) {
  if ((typeof owner !== 'object' && typeof owner !== 'function') || types.isProxy(owner)) owner = prototypeOf(owner);
  for (let at = owner; at && !types.isProxy(at); at = Object.getPrototypeOf(at)) {
    const found = Object.getOwnPropertyDescriptor(at, name);
    if (found) return 'value' in found ? found.value : MISSING;
  }
  return MISSING;
}

function prototypeOf(value) {
  if (value === null || value === undefined || types.isProxy(value)) return null;
  return Object.getPrototypeOf(Object(value));
}

/** Return the value of `a`, `a.b` or `a[0]["b"]`. */
function resolve(path) {
  const steps = path.trim().match(/^[\p{ID_Start}$_][\p{ID_Continue}$]*|\.[\p{ID_Start}$_][\p{ID_Continue}$]*|\[(?:\d+|"[^"]*"|'[^']*')\]/gu);
  if (!steps || steps.join('') !== path.trim()) return MISSING;
  let value = valueOf(steps[0]);
  for (const step of steps.slice(1)) {
    if (value === MISSING) break;
    value = property(value, step.replace(/^\.|^\[['"]?|['"]?\]$/g, ''));
  }
  return value;
}

function page({ name, rows = [0, 50], columns = [0, 50] }) {
  const value = resolve(name);
  if (value === MISSING) return { failed: `${name} is not defined, or not the name of a value` };
  if (isRecords(value)) return { type: kindOf(value), ...table(value, rows, columns) };
  const text = typeof value === 'string' ? value : typeof value === 'function' ? Function.prototype.toString.call(value) : inspect(value, WHOLE);
  return { type: kindOf(value), kind: 'text', text: text.slice(0, LONGEST_TEXT) };
}

function isPlain(row) {
  return typeof row === 'object' && row !== null && !types.isProxy(row) && !Array.isArray(row) && Object.keys(row).length > 0;
}

function isRecords(value) {
  return Array.isArray(value) && !types.isProxy(value) && value.length > 1 && value.slice(0, 50).every(isPlain);
}

function table(value, [top, bottom], [left, right]) {
  const all = [...new Set(value.slice(0, 200).flatMap((row) => (isPlain(row) ? Object.keys(row) : [])))];
  const header = all.slice(left, right);
  const part = value.slice(top, Math.min(bottom, top + 500));
  const column = (name) => part.map((row) => (isPlain(row) ? property(row, name) : MISSING));
  const cells = header.map(column);
  return {
    kind: 'table',
    rows: value.length,
    columns: all.length,
    index: part.map((row, at) => String(top + at)),
    header,
    numeric: cells.map((values) => values.every((each) => ['number', 'bigint'].includes(typeof each))),
    cells: cells.map((values) => values.map(cell)),
  };
}

function cell(value) {
  if (value === MISSING || value === null || value === undefined) return '';
  const text = typeof value === 'string' ? value : inspect(value, SHORT);
  return text.replace(/\s+/g, ' ').slice(0, 200);
}

function completions(code, cursor) {
  const found = /((?:[\p{ID_Start}$_][\p{ID_Continue}$]*\s*\.\s*)*)([\p{ID_Start}$_][\p{ID_Continue}$]*)?$/u.exec(code.slice(0, cursor));
  const part = found[2] ?? '';
  const matches = found[1] ? members(resolve(found[1].replace(/\s/g, '').slice(0, -1))) : globals(part);
  const fitting = matches.filter(([name]) => name.startsWith(part) && IDENTIFIER.test(name));
  fitting.sort(([one], [other]) => (one.startsWith('_') - other.startsWith('_')) || (one < other ? -1 : 1));
  return { start: cursor - part.length, matches: fitting.slice(0, OFFERED) };
}

function globals(part) {
  const declared = names().map((name) => [name, kindOf(valueOf(name))]);
  if (!part) return declared;
  return [...declared, ...[...ours].map((name) => [name, '']), ...KEYWORDS.split(' ').map((name) => [name, 'keyword'])];
}

function members(owner) {
  const found = new Map();
  const start = typeof owner === 'object' || typeof owner === 'function' ? owner : prototypeOf(owner);
  for (let at = start; at && at !== MISSING && !types.isProxy(at) && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (!found.has(name)) found.set(name, 'value' in property ? kindOf(property.value) : '');
    }
  }
  return [...found];
}

module.exports = { answer, install };
