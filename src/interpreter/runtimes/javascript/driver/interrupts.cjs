'use strict';
// Ends code that blocks the main thread, through V8's termination; the session's state is kept.

const { AsyncLocalStorage } = require('async_hooks');
const { Session } = require('inspector');
const { clearTimeout, setTimeout } = require('timers');
const { promiseHooks } = require('v8');
const { DOOMED, INTERRUPT, PLACES } = require('./shared.cjs');

const shared = new Int32Array(new SharedArrayBuffer(4 * PLACES));
const running = new AsyncLocalStorage(); // the block to which the running code belongs
const hooks = new Set(); // others that watch callbacks at the moment
const session = new Session();
session.connect();

// Inside a hook of node's own, termination would leave its books half written and the process aborts later; inside
// the loading of one of its own modules, a half of that.
const NOT_NOW = /(emit\w*|\w*[hH]ook\w*|AsyncHook\.\w+) \(node:(internal\/)?(async|promise)_hooks|compileForInternal/;
// Code that waits for a child goes on by itself when Ctrl-C has ended that. Node aborts if code is terminated just as
// it ends, so it gets a moment.
const AWAITS_CHILD = /node:(internal\/)?child_process/;
const DEPTH = 40;
const HUNT = 50; // milliseconds
let ended = 0; // the newest block that has ended
let held = 0;
let wanted = false; // while it was held
let given = 0; // the block that was given a moment to end with its child
let terminated = false;

/** Called by the reader's thread while code runs; after 'ready' it terminates that code. */
function interrupt(block) {
  if (block <= ended) return 'over';
  if (held) {
    wanted = true;
    return 'soon';
  }
  const where = stack();
  if (NOT_NOW.test(where)) return 'again';
  if (AWAITS_CHILD.test(where) && given !== block) {
    given = block;
    return 'again';
  }
  prepare();
  Atomics.store(shared, DOOMED, 1);
  return 'ready';
}
Object.defineProperty(globalThis, INTERRUPT, { value: interrupt });

function stack() {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = DEPTH;
  const text = String(new Error().stack);
  Error.stackTraceLimit = limit;
  return text;
}

/** Hooks check a bookkeeping that termination upsets: switch them off, the next block's start brings ours back. */
function prepare() {
  terminated = true;
  running.disable();
  for (const hook of hooks) hook.disable();
}

/** From here to release() nothing is terminated. */
function hold() {
  yieldToTermination();
  held += 1;
}

function release() {
  held -= 1;
  if (held || !wanted) return;
  wanted = false;
  prepare();
  session.post('Runtime.terminateExecution');
}

/** Wait for a termination that is on its way. */
function yieldToTermination() {
  while (Atomics.load(shared, DOOMED));
}

/** The block has ended: it is not to be terminated any more. */
function dismiss(block) {
  ended = block;
  wanted = false;
}

/** Terminate the next code of this block that continues after an `await`, and call back whether any did soon. */
function hunt(block, done) {
  const timeout = setTimeout(end, HUNT, false);
  const unhook = promiseHooks.onBefore(() => {
    if (running.getStore() !== block) return;
    end(true);
    prepare();
    session.post('Runtime.terminateExecution');
    for (;;);
  });
  function end(caught) {
    clearTimeout(timeout);
    unhook();
    done(caught);
  }
}

class ResetCallbacks extends Error {}

/** After a termination, and only then true: put things in order. */
function recover() {
  if (!terminated) return false;
  terminated = false;
  for (const [file, module] of Object.entries(require.cache)) if (!module.loaded) delete require.cache[file];
  // An uncaught exception makes node clear its record of callbacks within callbacks.
  process.nextTick(() => {
    throw new ResetCallbacks();
  });
  return true;
}

module.exports = {
  ResetCallbacks,
  dismiss,
  hold,
  hooks,
  hunt,
  recover,
  release,
  running,
  session,
  shared,
  yieldToTermination,
};
