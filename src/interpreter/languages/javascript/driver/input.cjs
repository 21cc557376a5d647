'use strict';
// process.stdin and readline: asks the host for a line whenever the program really waits for one.

const readline = require('readline');
const readlinePromises = require('readline/promises');
const { Readable } = require('stream');
const { promisify } = require('util');
const blocks = require('./blocks.cjs');
const link = require('./link.cjs');
const { setImmediate } = require('./timers.cjs');

class EndOfInput extends Error {
  constructor() {
    super('No answer: end of input');
  }
}

/** Ask the host, and return a promise of the line, or of null for the end of input. */
function ask(block, prompt) {
  if (!block || block.ended || block.questions.size) return Promise.resolve(null);
  link.send({ event: 'input_request', block: block.number, prompt, password: false });
  return new Promise((resolve) => block.questions.set(prompt, resolve));
}

/** Handle the host's answer. */
function answered(block, { text, eof }) {
  const [[prompt, resolve]] = block.questions;
  block.questions.delete(prompt);
  resolve(eof ? null : text.replace(/\r?\n$/, ''));
  block.changed();
}

class Input extends Readable {
  constructor(block) {
    super();
    this.block = block;
    this.fd = 0;
    this.wanted = false;
    this.interfaces = new Set(); // readline's interfaces, which listen even when no code waits for a line
    this.on('resume', () => this.consider());
    this.on('newListener', () => this.consider());
  }

  _read() {
    this.wanted = true;
    this.consider();
  }

  consider() {
    if (this.wanted) setImmediate(() => this.askForLine());
  }

  async askForLine() {
    if (!this.waits() || this.block.questions.size) return;
    this.wanted = false;
    const line = await ask(this.block, '');
    this.push(line === null ? null : `${line}\n`);
  }

  /** Check whether the program waits for a line. */
  waits() {
    if (!this.wanted) return false;
    if (this.listenerCount('readable')) return true;
    if (this.isPaused()) return false;
    const lines = [...this.interfaces].some((one) => one.listenerCount('line'));
    return lines || this.listenerCount('data') > this.interfaces.size;
  }

  adopt(one) {
    this.interfaces.add(one);
    one.on('newListener', () => this.consider());
    one.once('close', () => this.interfaces.delete(one));
  }
}

function install() {
  const get = () => {
    const block = blocks.owner();
    if (block) block.stdin ??= new Input(block);
    return block?.stdin;
  };
  Object.defineProperty(process, 'stdin', { get, configurable: true, enumerable: true });
  for (const kind of [readline, readlinePromises]) {
    const { createInterface } = kind;
    kind.createInterface = (...args) => {
      const one = createInterface(...args);
      if (one.input instanceof Input) one.input.adopt(one);
      return one;
    };
  }
  patchQuestion(readline.Interface.prototype, withCallback);
  patchQuestion(readlinePromises.Interface.prototype, withPromise);
}

function patchQuestion(prototype, ours) {
  const original = prototype.question;
  prototype.question = function (...args) {
    const asks = this.input instanceof Input && !this.closed;
    return asks ? ours(this, ...args) : original.apply(this, args);
  };
  const promised = original[promisify.custom];
  if (promised) prototype.question[promisify.custom] = promised;
}

function withCallback(one, query, options, callback = options) {
  ask(one.input.block, query).then((line) => (line === null ? one.close() : callback.call(one, line)));
}

async function withPromise(one, query) {
  const line = await ask(one.input.block, query);
  if (line !== null) return line;
  one.close();
  throw new EndOfInput(); // node would leave the promise pending forever
}

module.exports = { answered, install };
