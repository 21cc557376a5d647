'use strict';
// `display(value)`: shows a value to the user, in its richest form.

const { EventEmitter } = require('events');
const { inspect } = require('util');
const blocks = require('./blocks.cjs');
const link = require('./link.cjs');

const OWN_FORM = Symbol.for('Jupyter.display'); // a method of notebook libraries that returns a MIME bundle
const LONG = 300; // characters
const IMAGES = { 'image/png': [0x89, 0x50, 0x4e, 0x47], 'image/jpeg': [0xff, 0xd8, 0xff] };

/** Build the value's forms, by MIME type. */
async function forms(value) {
  if (typeof value?.[OWN_FORM] === 'function') return value[OWN_FORM]();
  const plain = { 'text/plain': text(value) };
  if (!(value instanceof Uint8Array)) return plain;
  for (const [mime, start] of Object.entries(IMAGES)) {
    if (start.every((byte, at) => value[at] === byte)) return { [mime]: base64(value), ...plain };
  }
  return plain;
}

function text(value) {
  const whole = inspect(value, { showProxy: true });
  // The properties of a server, a socket or a child process are long and tell little.
  return whole.length > LONG && value instanceof EventEmitter ? inspect(value, { depth: -1 }) : whole;
}

function base64(bytes) {
  return typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('base64');
}

function send(data) {
  const block = blocks.owner();
  if (block && !block.cancelled) link.send({ event: 'display', block: block.number, data });
}

async function display(value) {
  send(await forms(value));
}

display.html = (html) => send({ 'text/html': String(html), 'text/plain': '[HTML, shown to the user]' });
display.svg = (svg) => send({ 'image/svg+xml': String(svg), 'text/plain': '[SVG, shown to the user]' });
display.markdown = (text) => send({ 'text/markdown': String(text) });
display.json = (value) => send({ 'application/json': value });
display.png = (bytes) => send({ 'image/png': base64(bytes) });
display.jpeg = (bytes) => send({ 'image/jpeg': base64(bytes) });

/** Check for the result of setTimeout and the like, which a script that ends with one does not mean to show. */
function isTimer(value) {
  return ['Timeout', 'Immediate'].includes(value?.constructor?.name) && typeof value.hasRef === 'function';
}

/** Show the value of a block's last expression, as node's console does. */
async function showResult(block, value) {
  if (value === undefined || isTimer(value)) return;
  const data = await forms(value);
  if (Object.keys(data).join() !== 'text/plain') send(data);
  else link.sendStream(block.number, 'stdout', `${data['text/plain']}\n`);
}

module.exports = { display, showResult };
