'use strict';
// `share('rows')` or `share({ rows })`: give values to the other languages of the session, and take what they share.

const { runInThisContext } = require('vm');
const blocks = require('./blocks.cjs');
const link = require('./link.cjs');

const NAME = /^[A-Za-z][A-Za-z0-9_]{0,99}$/;
const WHAT_CAN = 'Texts, numbers, booleans, null, dates, and arrays and objects of these can be shared; an array of flat objects is a table.';
const PLACE = Symbol('shared');
let most = 0;

function share(...given) {
  for (const each of given) {
    const values = typeof each === 'string' ? { [each]: valueOf(each) } : each;
    if (!values || typeof values !== 'object') throw new TypeError("share('name') or share({ name }) shares a variable.");
    for (const [name, value] of Object.entries(values)) send(name, value);
  }
}

function valueOf(name) {
  if (!NAME.test(name)) throw new TypeError(`${name} is not a name that other languages know.`);
  return runInThisContext(name);
}

function send(name, value) {
  const data = JSON.stringify(isTable(value) ? { table: columns(value) } : { value: checked(value, name, []) });
  if (data.length > most) {
    throw new RangeError(`${name} is too large to share: ${data.length} characters, the limit (computer.max_shared) is ${most}.`);
  }
  link.send({ event: 'share', block: blocks.owner().number, name, data });
}

/** Check that JSON can represent everything in a value, and return it. */
function checked(value, name, above) {
  if (value === undefined || value === null) return null;
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)) return value;
  const isPlain = Array.isArray(value) || (typeof value === 'object' && [Object.prototype, null].includes(Object.getPrototypeOf(value)));
  if (!isPlain || above.includes(value)) {
    const what = above.includes(value) ? 'it contains itself' : `it has a ${value?.constructor?.name ?? typeof value} (${String(value)})`;
    throw new TypeError(`${name} can't be shared: ${what}. ${WHAT_CAN}`);
  }
  const inside = [...above, value];
  if (Array.isArray(value)) return value.map((each) => checked(each, name, inside));
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, checked(each, name, inside)]));
}

// -- tables --

function typeOf(value) {
  if (value instanceof Date) return 'datetime';
  if (Number.isInteger(value)) return 'integer';
  if (Number.isFinite(value)) return 'number';
  return { string: 'string', boolean: 'boolean' }[typeof value];
}

/** Check for an array of flat objects. */
function isTable(value) {
  if (!Array.isArray(value) || !value.length) return false;
  return value.every((row) => row && Object.getPrototypeOf(row) === Object.prototype && Object.keys(row).length) && columns(value) !== undefined;
}

/** Convert a table to columns; undefined if one has values of different types. */
function columns(rows) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const made = names.map((name) => {
    const values = rows.map((row) => row[name] ?? null);
    const types = new Set(values.filter((value) => value !== null).map(typeOf));
    if (types.has('integer') && types.has('number')) types.delete('integer');
    if (types.size > 1 || types.has(undefined)) return undefined;
    return { name, type: [...types][0] ?? 'string', values };
  });
  return made.includes(undefined) ? undefined : made;
}

function rowsOf(table) {
  const read = (type) => (['datetime', 'date'].includes(type) ? (value) => value && new Date(value) : (value) => value);
  const parts = table.map(({ name, type, values }) => [name, values.map(read(type))]);
  return table[0].values.map((_, at) => Object.fromEntries(parts.map(([name, values]) => [name, values[at]])));
}

/** Set the variables that other languages share. */
function take(shared, limit) {
  most = limit;
  for (const [name, text] of shared) {
    const content = JSON.parse(text);
    globalThis[PLACE] = 'table' in content ? rowsOf(content.table) : content.value;
    try {
      runInThisContext(`(place) => { ${name} = globalThis[place]; }`)(PLACE); // also works if `let` has declared it
    } catch (error) {
      link.sendStream(blocks.owner().number, 'stderr', `${name}, which another language shares, could not be set: ${error.message}\n`);
    }
    delete globalThis[PLACE];
  }
}

function install() {
  Object.defineProperty(globalThis, 'share', { value: share, writable: true, configurable: true });
}

module.exports = { install, take };
