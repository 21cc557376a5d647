'use strict';
// The line to the host. Frames go out synchronously, so that nothing is lost when the process dies; a thread of its
// own reads what comes in, so that an interrupt is seen while the main thread is busy.

const { readSync, writeSync } = require('fs'); // kept, as others here: a program may replace them
const path = require('path');
const { setImmediate } = require('timers');
const { MessageChannel, Worker, SHARE_ENV, receiveMessageOnPort } = require('worker_threads');
const { ASKED, ENDED, MAIL, WRITTEN } = require('./shared.cjs');
const interrupts = require('./interrupts.cjs');

const NEWLINE = 10;
const PIECE = 256 * 1024; // characters of one stream frame
const LONE_SURROGATE = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g; // as it is escaped
const { shared } = interrupts;
const { port1: port, port2: theirs } = new MessageChannel();
let fd;
let later = []; // what came while an answer was awaited
let receive; // called with each frame

/** Tell the host that we are there, and hand every frame to `receiver` from now on. */
function open(descriptor, greeting, receiver) {
  fd = descriptor;
  receive = receiver;
  send(greeting);
  const workerData = { shared, port: theirs };
  const options = { workerData, transferList: [theirs], env: SHARE_ENV, execArgv: [] };
  new Worker(path.join(__dirname, 'reader.cjs'), options);
  const { frame, rest } = firstFrame();
  port.on('message', receive);
  port.postMessage({ fd, rest });
  setImmediate(receive, frame);
}

/** Read the first frame here: the reader's thread takes as long to start as node itself. */
function firstFrame() {
  const buffer = Buffer.allocUnsafe(64 * 1024);
  const pieces = [];
  for (;;) {
    const piece = Buffer.from(buffer.subarray(0, readSync(fd, buffer)));
    if (!piece.length) process.exit(0);
    const end = piece.indexOf(NEWLINE);
    if (end >= 0) {
      pieces.push(piece.subarray(0, end));
      return { frame: JSON.parse(Buffer.concat(pieces)), rest: piece.subarray(end + 1) };
    }
    pieces.push(piece);
  }
}

function send(frame) {
  write(json(frame));
}

/** Send text of a stream, long text in pieces that do not cut a character in two. */
function sendStream(block, name, text) {
  const head = `{"event":"stream","block":${block},"name":"${name}","text":`;
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + PIECE, text.length);
    if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end -= 1;
    const piece = text.length <= PIECE ? text : text.slice(start, end);
    write(head + json(piece) + '}');
    start = end;
  }
}

/** As JSON; a lone surrogate, which UTF-8 cannot hold, is replaced. */
function json(value) {
  const text = JSON.stringify(value);
  return text.includes('\\ud') ? text.replace(LONE_SURROGATE, '$1\ufffd') : text;
}

function write(line) {
  const data = Buffer.from(line + '\n');
  interrupts.hold(); // half a frame would be worse than a late interrupt
  try {
    writeAll(data);
  } finally {
    interrupts.release();
  }
}

function writeAll(data) {
  let sent = 0;
  while (sent < data.length) {
    const ticket = Atomics.load(shared, WRITTEN);
    try {
      sent += writeSync(fd, data, sent);
    } catch (error) {
      if (error.code === 'EPIPE') return; // the host is gone, and soon we are
      if (error.code !== 'EAGAIN') throw error;
      port.postMessage({ write: data.subarray(sent) });
      Atomics.wait(shared, WRITTEN, ticket); // the reader's thread can wait for the socket, we cannot
      return;
    }
  }
}

/** Have the host read what children wrote so far, so that it stays before what we write next. */
function sync() {
  send({ event: 'sync' });
  for (;;) {
    const ticket = Atomics.load(shared, MAIL);
    const mail = receiveMessageOnPort(port);
    if (!mail) Atomics.wait(shared, MAIL, ticket);
    else if (mail.message.op === 'synced') break;
    else later.push(mail.message);
  }
  const kept = later;
  later = [];
  for (const frame of kept) interrupts.running.exit(setImmediate, receive, frame);
}

/** Let the reader's thread know that a block needs no more interrupting. */
function ended(block) {
  Atomics.store(shared, ENDED, block);
}

/** Have the reader's thread ask once more, when the main thread is free again. */
function askAgain(block) {
  port.postMessage({ again: block });
}

/** Whether the host wants the block to end, also when that message has not been read yet. */
function asked(block) {
  return Atomics.load(shared, ASKED) === block;
}

module.exports = { askAgain, asked, ended, open, send, sendStream, sync };
