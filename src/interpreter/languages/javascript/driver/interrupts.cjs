'use strict';
// Ending code that does not let go of the main thread, by V8's own termination, with the session's state kept.

const { AsyncLocalStorage } = require('async_hooks');
const { Session } = require('inspector');
const { INTERRUPT } = require('./shared.cjs');

const running = new AsyncLocalStorage(); // the block to which the running code belongs
const hooks = new Set(); // others that watch callbacks at the moment
const session = new Session();
session.connect();

// Inside a hook of node's own, termination would leave its books half written and the process aborts later.
const IN_A_HOOK = /(emit\w*|\w*[hH]ook\w*|AsyncHook\.\w+) \(node:(internal\/)?(async|promise)_hooks/;
const DEPTH = 20;
let held = 0;
let wanted = false; // while it was held
let terminated = false;

/** Called by the reader's thread at any moment. */
function interrupt() {
  if (!held && IN_A_HOOK.test(stack())) return 'again';
  if (held) wanted = true;
  else terminate();
  return 'done';
}
Object.defineProperty(globalThis, INTERRUPT, { value: interrupt });

function terminate() {
  terminated = true;
  // Hooks check a bookkeeping that termination upsets; the next block switches this one on again.
  running.disable();
  for (const hook of hooks) hook.disable();
  session.post('Runtime.terminateExecution');
}

function stack() {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = DEPTH;
  const text = String(new Error().stack);
  Error.stackTraceLimit = limit;
  return text;
}

/** Until release(), no termination. */
function hold() {
  held += 1;
}

function release() {
  held -= 1;
  if (held || !wanted) return;
  wanted = false;
  terminate();
}

/** What was to be terminated has ended by itself. */
function dismiss() {
  wanted = false;
}

class Aftermath extends Error {}

/** After a termination: an uncaught exception makes node put its bookkeeping of callbacks in order. */
function recover() {
  if (!terminated) return;
  terminated = false;
  process.nextTick(() => {
    throw new Aftermath();
  });
}

module.exports = { Aftermath, dismiss, hold, hooks, recover, release, running, session };
