'use strict';
// Timers belong to the block that set them: the block waits for those about to fire, and an interrupt clears them all.

const timers = require('timers');
const blocks = require('./blocks.cjs');

const { clearImmediate, clearTimeout, setImmediate, setInterval, setTimeout } = timers;

function install() {
  for (const original of [setTimeout, setInterval, setImmediate]) {
    const wrapped = wrap(original);
    Object.defineProperties(wrapped, Object.getOwnPropertyDescriptors(original)); // name, length, promisify
    timers[original.name] = globalThis[original.name] = wrapped;
  }
}

function wrap(original) {
  const repeats = original === setInterval;
  const delayed = original !== setImmediate;
  return function (callback, ...rest) {
    const block = blocks.owner();
    if (!block || typeof callback !== 'function') return original(callback, ...rest);
    const timer = original(function (...values) {
      if (!repeats) forget(block, timer);
      return callback.apply(this, values);
    }, ...rest);
    if (block.cancelled) clearAny(timer); // an interrupted loop ends at its next pause
    else block.timers.set(timer, Date.now() + (delayed ? Number(rest[0]) || 0 : 0));
    if (block.timers.size > block.prune) prune(block);
    return timer;
  };
}

function forget(block, timer) {
  block.timers.delete(timer);
  block.changed();
}

/** Forget the timers that the program itself has cleared. */
function prune(block) {
  for (const timer of block.timers.keys()) if (timer._destroyed) block.timers.delete(timer);
  block.prune = 2 * block.timers.size + 256; // so that the cost stays linear in the number of timers
}

/** Check whether a timer of the block fires before this time. */
function due(block, deadline) {
  prune(block);
  return [...block.timers].some(([timer, time]) => time <= deadline && timer.hasRef());
}

function clear(block) {
  for (const timer of block.timers.keys()) clearAny(timer);
  block.timers.clear();
}

function clearAny(timer) {
  clearTimeout(timer);
  clearImmediate(timer);
}

module.exports = { clear, clearTimeout, due, install, setImmediate, setTimeout };
