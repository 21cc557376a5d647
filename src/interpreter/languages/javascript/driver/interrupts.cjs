'use strict';
// Ends code that blocks the main thread with V8's termination, which keeps the state.

const { AsyncLocalStorage } = require('async_hooks');
const { Session } = require('inspector');
const { clearTimeout, setTimeout } = require('timers');
const { promiseHooks } = require('v8');
const { DOOMED, INTERRUPT, PLACES } = require('./shared.cjs');

const shared = new Int32Array(new SharedArrayBuffer(4 * PLACES));
const running = new AsyncLocalStorage(); // the block that the running code belongs to
const hooks = new Set(); // other hooks that watch callbacks at the moment
const session = new Session();
session.connect();

// Termination inside one of node's hooks would leave its records inconsistent, so that the process aborts later;
// while node loads one of its modules, it would leave half a module.
const NOT_NOW = /(emit\w*|\w*[hH]ook\w*|AsyncHook\.\w+) \(node:(internal\/)?(async|promise)_hooks|compileForInternal/;
// Code that waits for a child continues when Ctrl-C has ended the child. Node aborts if code is terminated just as the
// child ends, so the code gets a moment.
const AWAITS_CHILD = /node:(internal\/)?child_process/;
const DEPTH = 40;
const HUNT = 50; // milliseconds
let ended = 0; // the newest block that has ended
let held = 0;
let wanted = false; // an interrupt came while terminations were held back
let given = 0; // the block that was given a moment to end with its child
let terminated = false;

/** Prepare for a termination. The reader's thread calls this while code runs; on 'ready' it terminates that code. */
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

/** Disable hooks, which check records that termination upsets. The next block's start enables ours again. */
function prepare() {
  terminated = true;
  running.disable();
  for (const hook of hooks) hook.disable();
}

/** Prevent terminations until release(). */
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

/** Wait for a pending termination. */
function yieldToTermination() {
  while (Atomics.load(shared, DOOMED));
}

/** Mark a block as ended, so that it is not terminated any more. */
function dismiss(block) {
  ended = block;
  wanted = false;
}

/** Terminate the next code of this block that continues after an `await`. Calls back with whether any did in time. */
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

/** Clean up after a termination. Returns false if there was none. */
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
