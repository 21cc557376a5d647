'use strict';
// The reader's thread: passes the host's frames to the main thread, and interrupts code that blocks the main thread.

const { Session } = require('inspector');
const { Socket } = require('net');
const { workerData } = require('worker_threads');
const { ASKED, DOOMED, ENDED, INTERRUPT, MAIL, WRITTEN } = require('./shared.cjs');

const { port, shared } = workerData;
const NOTICE_WITHIN = 25; // milliseconds for an idle main thread to notice the frame
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

/** Give the main thread time to end the block, then force it. */
function press(block) {
  pressing = block;
  setTimeout(force, NOTICE_WITHIN, block);
}

/** Call the interrupt function of the busy main thread. */
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
  if (!error) Atomics.store(shared, DOOMED, 0); // else an earlier termination is still pending
}

function relax() {
  session?.disconnect(); // node would report an open session on stderr at exit
  session = undefined;
  pressing = 0;
}
