'use strict';
// Blocks: which one is running, and which one the current code belongs to.

const { running } = require('./interrupts.cjs');

class Interrupted extends Error {
  constructor() {
    super('The block was interrupted');
  }
}

let count = 0;

class Block {
  constructor({ block, stdout, stderr }) {
    this.number = block;
    this.name = `block-${++count}.js`;
    this.pipes = { 1: stdout, 2: stderr }; // of its child processes
    this.decoders = {};
    this.timers = new Map(); // pending timers, each with the time when it fires
    this.prune = 256; // the number of timers from which fired ones are removed
    this.children = new Set();
    this.questions = new Map(); // unanswered questions to the user
    this.calls = new Map(); // unanswered calls of the computer's tools
    this.active = activeKinds(); // what was active before it started
    this.failed = false;
    this.errors = []; // uncaught errors in which the system denied something
    this.cancelled = false; // interrupted: its further effects are dropped
    this.hunts = 20; // attempts left to catch code that continues after an interrupt
    this.stopping = false; // interrupted, and waiting for its children
    this.ended = false;
    this.late = false; // whether it has waited long enough for what it left running
    this.watchers = new Set(); // called when something that it started has ended
  }

  changed() {
    for (const watcher of this.watchers) watcher();
  }
}

let newest;

function begin(frame) {
  newest = new Block(frame);
  return newest;
}

/** The newest block, if it is still running. */
function current() {
  return newest && !newest.ended ? newest : undefined;
}

/** The block that the running code belongs to, even if that block has ended. */
function owner() {
  return running.getStore() ?? newest;
}

/** Whether the running code belongs to any block. */
function inside() {
  return running.getStore() !== undefined;
}

/** Call a function outside of every block. */
function outside(callback) {
  return running.exit(callback);
}

/** Count, by kind, the resources that stop node from exiting. */
function activeKinds() {
  const kinds = new Map();
  for (const kind of process.getActiveResourcesInfo()) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  return kinds;
}

module.exports = { Interrupted, activeKinds, begin, current, inside, outside, owner };
