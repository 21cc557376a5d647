'use strict';
// The blocks: which one is running, and which one the code that is running now belongs to.

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
    this.pipes = { 1: stdout, 2: stderr }; // for its child processes
    this.decoders = {};
    this.timers = new Map(); // those that have not fired, each with the time when it will
    this.prune = 256; // timers, before those that are gone are sought out
    this.children = new Set();
    this.questions = new Map(); // to the person, not answered yet
    this.calls = new Map(); // to the computer's tools, not answered yet
    this.active = activeKinds(); // what was active before it started
    this.failed = false;
    this.errors = []; // the uncaught ones in which the system denied something
    this.cancelled = false; // interrupted: what it still does counts for nothing
    this.hunts = 20; // at most, for code that continues after an interrupt
    this.stopping = false; // interrupted, and waiting for its children
    this.ended = false;
    this.late = false; // it has waited long enough for what it left running
    this.watchers = new Set(); // called when something that it started is over
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

/** The block that the running code belongs to, also when that has long ended. */
function owner() {
  return running.getStore() ?? newest;
}

/** Whether the running code belongs to any block. */
function inside() {
  return running.getStore() !== undefined;
}

/** Call something that belongs to no block. */
function outside(callback) {
  return running.exit(callback);
}

/** How many of each kind of thing keep node from exiting. */
function activeKinds() {
  const kinds = new Map();
  for (const kind of process.getActiveResourcesInfo()) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  return kinds;
}

module.exports = { Interrupted, activeKinds, begin, current, inside, outside, owner };
