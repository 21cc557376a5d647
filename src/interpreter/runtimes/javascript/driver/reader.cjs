'use strict';
// The reader's thread: hands the host's frames to the main thread, and ends what keeps the main thread busy.

const { Session } = require('inspector');
const { Socket } = require('net');
const { workerData } = require('worker_threads');
const { ASKED, DOOMED, ENDED, INTERRUPT, MAIL, WRITTEN } = require('./shared.cjs');

const { port, shared } = workerData;
const NOTICE_WITHIN = 25; // milliseconds for a main thread that is idle to notice by itself
const expression = (block) => `globalThis[Symbol.for(${JSON.stringify(INTERRUPT.description)})](${block})`;
let socket;
let pieces = [];
let pressing = 0; // the block that is being interrupted
let session;

port.on('message', ({ again, fd, rest, write }) => {
  if (write) return socket.write(write, () => bump(WRITTEN));
  if (again) return port.postMessage({ op: 'interrupt', block: again });
  socket = new Socket({ fd, readable: true, writable: true });
  socket.on('data', take).on('error', () => {}).on('close', () => hand({ op: 'close' }));
  take(Buffer.from(rest));
});

function take(data) {
  let start = 0;
  for (let end = data.indexOf(10); end >= 0; end = data.indexOf(10, start)) {
    pieces.push(data.subarray(start, end));
    hand(JSON.parse(Buffer.concat(pieces)));
    pieces = [];
    start = end + 1;
  }
  if (start < data.length) pieces.push(data.subarray(start));
}

function hand(frame) {
  if (frame.op === 'interrupt' && pressing === frame.block) return;
  if (frame.op === 'interrupt') Atomics.store(shared, ASKED, frame.block);
  port.postMessage(frame);
  bump(MAIL);
  if (frame.op === 'interrupt') press(frame.block);
}

function bump(place) {
  Atomics.add(shared, place, 1);
  Atomics.notify(shared, place);
}

/** The main thread was asked to end the block: force it if it does not hear. */
function press(block) {
  pressing = block;
  setTimeout(force, NOTICE_WITHIN, block);
}

/** Call the main thread's interrupt function, while it is busy. */
function force(block) {
  if (Atomics.load(shared, ENDED) >= block) return relax();
  if (!session) {
    session = new Session();
    session.connectToMainThread();
  }
  session.post('Runtime.evaluate', { expression: expression(block), returnByValue: true }, (error, reply) => {
    const answer = reply?.result?.value;
    if (answer === 'again') return setTimeout(force, 1, block);
    if (answer === 'ready') session.post('Runtime.terminateExecution', terminated);
    port.postMessage({ op: 'interrupt', block });
    return press(block);
  });
}

function terminated(error) {
  if (!error) Atomics.store(shared, DOOMED, 0); // else an earlier one is still on its way
}

function relax() {
  session?.disconnect(); // a session that stays would be announced on stderr at exit
  session = undefined;
  pressing = 0;
}
