'use strict';
// After its last expression, a block waits a while for what it left running: timers about to fire, requests, child
// processes. Anything that takes longer keeps running, and its later output still belongs to that block.

const { createHook } = require('async_hooks');
const blocks = require('./blocks.cjs');
const { hooks } = require('./interrupts.cjs');
const link = require('./link.cjs');
const timers = require('./timers.cjs');

const LINGER = 2000; // milliseconds
// Timers are tracked more precisely elsewhere, and these resources are permanent.
const STAYING = new Set(['Timeout', 'Immediate', 'TCPServerWrap', 'UDPWrap', 'FSEventWrap', 'StatWatcher']);
const SOCKETS = new Set(['TCPSocketWrap', 'TCPWrap', 'TLSWrap']);

/** Resolve when nothing is left to wait for. */
async function linger(block) {
  await new Promise((resolve) => timers.setImmediate(resolve)); // lets node report unhandled rejections first
  const deadline = Date.now() + LINGER;
  if (link.asked(block.number) || !pending(block, deadline)) return; // after a termination no hook may be enabled
  await new Promise((resolve) => {
    const enough = () => block.ended || (block.late ? !block.questions.size && !block.calls.size : !pending(block, deadline));
    const check = () => {
      checking = false;
      if (!enough()) return;
      block.watchers.delete(recheck);
      hooks.delete(hook);
      hook.disable();
      timers.clearTimeout(timeout);
      resolve();
    };
    let checking = false;
    const recheck = () => {
      if (!checking) blocks.outside(() => timers.setImmediate(check));
      checking = true;
    };
    block.watchers.add(recheck);
    const timeout = blocks.outside(() => timers.setTimeout(expire, LINGER, block));
    // Everything that ends does so in a callback; our own callbacks belong to no block.
    const hook = createHook({ after: () => blocks.inside() && recheck() });
    hooks.add(hook);
    hook.enable();
  });
}

function expire(block) {
  block.late = true;
  block.changed();
}

function pending(block, deadline) {
  if (block.questions.size || block.calls.size || block.stdin?.waits() || timers.due(block, deadline)) return true;
  const now = blocks.activeKinds();
  const serving = now.has('TCPServerWrap'); // its connections stay open for a while
  for (const [kind, count] of now) {
    if (STAYING.has(kind) || (serving && SOCKETS.has(kind))) continue;
    if (count > (block.active.get(kind) ?? 0)) return true;
  }
  return false;
}

module.exports = { linger };
