'use strict';
// The driver of a JavaScript runtime: `node main.cjs FD`, where FD is the socket to the host.

const { isPromise } = require('util').types;
const blocks = require('./blocks.cjs');
const children = require('./children.cjs');
const computer = require('./computer.cjs');
const { showResult } = require('./display.cjs');
const { evaluate } = require('./evaluate.cjs');
const globals = require('./globals.cjs');
const { withImports } = require('./imports.cjs');
const input = require('./input.cjs');
const interrupts = require('./interrupts.cjs');
const { linger } = require('./lingering.cjs');
const link = require('./link.cjs');
const questions = require('./questions.cjs');
const { causes, missing, uncaught } = require('./report.cjs');
const sharing = require('./sharing.cjs');
const streams = require('./streams.cjs');
const timers = require('./timers.cjs');
const { withoutTypes } = require('./types.cjs');

const EXIT_CODES = { ok: 0, error: 1, interrupted: 130 };

function receive(frame) {
  interrupts.yieldToTermination();
  const block = blocks.current();
  const concerned = block && frame.block === block.number;
  if (frame.op === 'run') run(frame);
  else if (frame.op === 'close') process.exit(0);
  else if (frame.op === 'input' && concerned && block.questions.size) input.answered(block, frame);
  else if (frame.op === 'reply') computer.answered(frame);
  else if (frame.op === 'interrupt' && concerned) stop(block);
  else if (frame.op === 'inspect' || frame.op === 'complete') reply(frame);
}

function reply(frame) {
  link.send({ event: 'answer', query: frame.query, ...questions.answer(frame) });
}

function run(frame) {
  const block = blocks.begin(frame);
  interrupts.running.run(block, execute, block, frame);
}

async function execute(block, frame) {
  try {
    prepare(frame);
    if (frame.active_lines) link.send({ event: 'active_line', block: block.number, line: 1 });
    let value = await evaluate(withImports(frame.typescript ? withoutTypes(frame.code) : frame.code), block.name);
    if (isPromise(value)) value = await value; // a script's `main()` is part of the block
    await showResult(block, value);
  } catch (error) {
    fail(block, error);
  }
  await linger(block);
  finish(block, block.failed ? 'error' : 'ok');
}

function prepare({ cwd, env = {}, shared = [], max_shared: most = 0 }) {
  for (const [name, value] of Object.entries(env)) {
    if (value === null) delete process.env[name];
    else process.env[name] = value;
  }
  if (cwd) process.chdir(cwd);
  globals.settleIn(whereWeAre() ?? '/');
  sharing.take(shared, most);
}

function whereWeAre() {
  try {
    return process.cwd();
  } catch {
    return undefined; // the folder was deleted
  }
}

/** Report an error that the program did not catch. */
function fail(block, error) {
  if (!block || block.cancelled) return;
  // The end of a child by Ctrl-C may arrive before the frame about the interrupt, which the host sent earlier.
  if (!block.ended && (error?.signal === 'SIGINT' || error?.status === 130)) link.sync();
  if (link.asked(block.number)) return;
  block.failed = true;
  block.errors.push(...causes(error));
  block.missing ??= missing(error);
  link.sendStream(block.number, 'stderr', uncaught(error));
}

/** End the block. Its children got the signal, too, and the host kills those that ignore it. */
function stop(block) {
  block.cancelled = true;
  computer.callOff(block);
  timers.clear(block);
  const again = () => link.askAgain(block.number);
  if (interrupts.recover()) return again(); // queued code may continue and block again
  link.ended(block.number);
  if (block.hunts > 0) return hunt(block, again);
  if (block.stopping || !block.children.size) return finish(block, 'interrupted');
  block.stopping = true;
  for (const child of block.children) child.kill('SIGINT'); // a child that was just starting has missed the signal
  block.watchers.add(() => block.children.size || finish(block, 'interrupted'));
}

/** Terminate code until none continues: a loop that awaits files or the network would never end. */
function hunt(block, again) {
  interrupts.hunt(block, (caught) => {
    block.hunts = caught ? block.hunts - 1 : 0;
    again();
  });
}

function finish(block, status) {
  if (block.ended || (status !== 'interrupted' && link.asked(block.number))) return; // stop() will run soon
  interrupts.hold();
  block.ended = true;
  block.questions.clear();
  block.changed();
  streams.flush(block);
  ignoreSignals();
  const cwd = whereWeAre();
  const errors = block.errors.slice(0, 8);
  const outcome = { status, exit_code: EXIT_CODES[status], ...(cwd && { cwd }), ...(errors.length && { errors }) };
  if (block.missing) outcome.missing = block.missing.slice(0, 200);
  link.send({ event: 'done', block: block.number, ...outcome });
  link.ended(block.number);
  interrupts.dismiss(block.number);
  interrupts.release();
}

/** Remove a block's listeners for Ctrl-C when it ends: they would react to the interrupts of later blocks. */
function ignoreSignals() {
  if (!process.listeners('SIGINT').includes(ignore)) process.on('SIGINT', ignore);
  for (const listener of process.listeners('SIGINT')) if (listener !== ignore) process.off('SIGINT', listener);
}

function ignore() {} // the frame sent with the signal names the block

function reportUncaught(error, event) {
  if (error instanceof interrupts.ResetCallbacks) return;
  if (process.listenerCount(event) > 1) return; // the program handles it
  fail(blocks.owner(), error);
}

ignoreSignals();
process.on('uncaughtException', (error) => reportUncaught(error, 'uncaughtException'));
process.on('unhandledRejection', (error) => reportUncaught(error, 'unhandledRejection'));
const descriptor = Number(process.argv[2]);
timers.install();
streams.install();
children.install();
input.install();
globals.install();
computer.install();
sharing.install();
questions.install();
link.open(descriptor, { event: 'ready', language: 'javascript', version: process.versions.node }, receive);
