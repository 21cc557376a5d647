'use strict';
// Child processes that share our stdout and stderr write into the pipes of the block that starts them: each block has
// separate pipes, so that a child's late output does not appear in a later block.

const childProcess = require('child_process');
const { closeSync, constants, openSync } = require('fs');
const { syncBuiltinESMExports } = require('module');
const blocks = require('./blocks.cjs');
const interrupts = require('./interrupts.cjs');
const link = require('./link.cjs');

const { O_NONBLOCK, O_WRONLY } = constants;

function install() {
  const { spawn } = childProcess.ChildProcess.prototype;
  childProcess.ChildProcess.prototype.spawn = function (options) {
    return spawned(this, options, (own) => spawn.call(this, own));
  };
  for (const name of ['spawnSync', 'execSync', 'execFileSync']) {
    const original = childProcess[name];
    childProcess[name] = { [name]: (...args) => runSync(original, args) }[name];
  }
  syncBuiltinESMExports();
}

function spawned(child, options, spawn) {
  const block = blocks.owner();
  if (block?.cancelled) throw new blocks.Interrupted();
  const pipes = new Pipes(block, options?.stdio);
  try {
    if (pipes.used) syncNow(block);
    return spawn(pipes.used ? { ...options, stdio: pipes.stdio } : options);
  } finally {
    pipes.close();
    if (block && child.pid !== undefined) watch(child, block, pipes.used);
  }
}

function watch(child, block, shares) {
  block.children.add(child);
  child.prependOnceListener('exit', () => {
    block.children.delete(child);
    if (shares) syncNow(block);
    block.changed();
  });
}

function runSync(original, args) {
  const block = blocks.owner();
  // Wait for a pending interrupt first: it could not reach us while we wait for a child.
  while (block && !block.ended && link.asked(block.number));
  interrupts.yieldToTermination();
  const at = args.findIndex((arg) => arg !== null && typeof arg === 'object' && !Array.isArray(arg));
  const pipes = new Pipes(block, args[at]?.stdio);
  if (!pipes.used) return original(...args);
  try {
    syncNow(block);
    return original(...args.map((arg, i) => (i === at ? { ...arg, stdio: pipes.stdio } : arg)));
  } finally {
    pipes.close();
    syncNow(block);
  }
}

/** Keep our output and a child's in order: sync before it starts and after it ends. */
function syncNow(block) {
  if (block && block === blocks.current()) link.sync();
}

/** A child's stdio option, with the block's pipes in place of 'inherit', 1, 2 or process.stdout. */
class Pipes {
  constructor(block, stdio) {
    this.opened = new Map();
    const entries = stdio === 'inherit' ? ['inherit', 'inherit', 'inherit'] : stdio;
    this.stdio = Array.isArray(entries) && block ? entries.map((entry, at) => this.own(block, entry, at)) : stdio;
    this.used = this.opened.size > 0;
  }

  own(block, entry, at) {
    const fd = entry === 'inherit' ? at : (entry?.fd ?? entry);
    const path = block.pipes[fd];
    if (path === undefined) return entry;
    if (!this.opened.has(fd)) this.opened.set(fd, openPipe(path));
    return this.opened.get(fd);
  }

  close() {
    for (const fd of this.opened.values()) if (typeof fd === 'number') closeSync(fd);
  }
}

/** Open a blocking writing end, as children expect it; 'ignore' if the host no longer reads. */
function openPipe(path) {
  let probe;
  try {
    probe = openSync(path, O_WRONLY | O_NONBLOCK); // fails at once, while a plain open would wait for a reader
    return openSync(path, O_WRONLY);
  } catch (error) {
    if (error.code !== 'ENXIO' && error.code !== 'ENOENT') throw error;
    return 'ignore';
  } finally {
    if (probe !== undefined) closeSync(probe);
  }
}

module.exports = { install };
