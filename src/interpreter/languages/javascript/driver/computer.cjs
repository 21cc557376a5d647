'use strict';
// `computer` and `tools` in the user's code: each use of a tool is a call to the host that returns a promise.

const { writeFileSync } = require('fs');
const { inspect } = require('util');
const blocks = require('./blocks.cjs');
const link = require('./link.cjs');

const NO_BLOCK = 'Only a running block can use the computer, and the block that this belongs to has ended.';
const INTERRUPTED = 'The call was interrupted.';
const AS_VALUE = new Set(['then', 'catch', 'finally', 'constructor', 'toJSON', 'inspect']); // looked up on any value
let calls = 0;

class ComputerError extends Error {}
ComputerError.prototype.name = 'ComputerError';
const kinds = new Map(); // error classes by their names on the host

/** A picture from the computer: PNG, and where it is on the screen. */
class Picture {
  constructor({ png, ...about }) {
    Object.assign(this, about);
    Object.defineProperty(this, 'png', { value: Buffer.from(png, 'base64'), enumerable: false });
  }

  get base64() {
    return this.png.toString('base64');
  }

  save(path) {
    writeFileSync(path, this.png);
  }

  [Symbol.for('Jupyter.display')]() {
    return { 'image/png': this.base64, 'text/plain': inspect(this) };
  }

  [inspect.custom]() {
    return `<Picture ${this.width} x ${this.height}>`;
  }
}

/** Call the host, and return a promise of the result. */
function ask(how, path, args) {
  const block = blocks.owner();
  if (!block || block.ended || block.cancelled) return Promise.reject(new ComputerError(NO_BLOCK));
  let given;
  try {
    given = args.map((value) => pack(value));
  } catch (error) {
    return Promise.reject(error);
  }
  const call = ++calls;
  return new Promise((resolve, reject) => {
    block.calls.set(call, { resolve, reject });
    link.send({ event: 'call', block: block.number, call, how, path, ...withOptions(given) });
  });
}

/** Take named arguments from an object in the last place, as in `click('Save', { button: 'right' })`. */
function withOptions(given) {
  const last = given[given.length - 1];
  const named = last && typeof last === 'object' && !Array.isArray(last) && !Object.keys(last).some((key) => key[0] === '$');
  return named ? { args: given.slice(0, -1), kwargs: last } : { args: given };
}

/** Handle a reply of the host; replies to abandoned calls are ignored. */
function answered({ call, value, error }) {
  const block = blocks.current();
  const waiting = block?.calls.get(call);
  if (!waiting) return;
  block.calls.delete(call);
  if (error) waiting.reject(unpackError(error));
  else waiting.resolve(unpack(value));
  block.changed();
}

/** Abandon the calls of an interrupted block. */
function callOff(block) {
  for (const [call, { reject }] of block.calls) {
    link.send({ event: 'call_off', block: block.number, call });
    reject(new ComputerError(INTERRUPTED));
  }
  block.calls.clear();
}

function unpackError({ type, words }) {
  if (!type || type === 'Exception') return new ComputerError(words);
  if (!kinds.has(type)) kinds.set(type, kindOf(type));
  return new (kinds.get(type))(words);
}

function kindOf(name) {
  const kind = class extends ComputerError {};
  Object.defineProperty(kind, 'name', { value: name });
  Object.defineProperty(kind.prototype, 'name', { value: name });
  return kind;
}

// -- values --

function pack(value) {
  if (value === undefined || value === null) return null;
  if (typeof value === 'bigint') return Number(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value : { $float: String(value).replace('Infinity', 'inf') };
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (value instanceof Picture) return { $picture: { ...value, png: value.base64 } };
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString('base64') };
  if (value instanceof Date) return { $datetime: value.toISOString().replace('Z', '+00:00') };
  if (Array.isArray(value) || value instanceof Set) return [...value].map(pack);
  if (value instanceof Map) return { $dict: [...value].map(([key, each]) => [pack(key), pack(each)]) };
  if (typeof value === 'object') {
    const entries = Object.entries(value).map(([key, each]) => [key, pack(each)]);
    return entries.some(([key]) => key[0] === '$') ? { $dict: entries } : Object.fromEntries(entries);
  }
  throw new TypeError(`Can't pass a ${typeof value} to the computer.`);
}

function unpack(value) {
  if (Array.isArray(value)) return value.map(unpack);
  if (value === null || typeof value !== 'object') return value;
  const [key] = Object.keys(value);
  if (key === '$picture') return new Picture(unpack(value[key]));
  if (key === '$bytes') return Buffer.from(value[key], 'base64');
  if (key === '$float') return Number(value[key].replace('inf', 'Infinity'));
  if (key === '$dict') return new Map(unpack(value[key]));
  if (key === '$kept') {
    const [kept, raw] = value[key].map(unpack);
    return kept && typeof kept === 'object' ? Object.defineProperty(kept, 'raw', { value: raw }) : kept;
  }
  if (key === '$link') {
    const [fields, server] = value[key].map(unpack);
    return Object.defineProperty(fields, 'read', { value: () => ask('call', `tools.${server}.read`, [fields.uri]) });
  }
  if (key === '$part') return part(value[key], false);
  if (['$datetime', '$date', '$time'].includes(key)) return key === '$time' ? value[key] : new Date(value[key]);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, unpack(each)]));
}

// -- names --

/** Make a name below the computer: it can be called, awaited, or extended with another name. */
function part(path, awaitable = path.includes('.')) {
  const handler = {
    get(target, name) {
      if (typeof name === 'symbol') return target[name];
      if (name === 'then' && awaitable) return (...hooks) => ask('get', path, []).then(...hooks);
      if (AS_VALUE.has(name)) return target[name];
      return part(path ? `${path}.${name}` : name);
    },
    set(target, name, value) {
      ask('set', `${path}.${String(name)}`, [value]).catch(() => {}); // an assignment cannot report errors
      return true;
    },
    apply: (target, self, args) => ask('call', path, args),
  };
  const target = function () {};
  target[inspect.custom] = () => (/^tools(\.|$)/.test(path) ? path : path ? `computer.${path}` : 'computer');
  return new Proxy(target, handler);
}

function install() {
  Object.defineProperty(globalThis, 'computer', { value: part(''), writable: true, configurable: true });
  Object.defineProperty(globalThis, 'tools', { value: part('tools', false), writable: true, configurable: true });
}

module.exports = { answered, callOff, install };
