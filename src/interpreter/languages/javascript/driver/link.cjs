'use strict';
// The connection to the host. Frames are sent synchronously, so that nothing is lost when the process dies; a separate
// thread reads incoming frames, so that an interrupt is noticed while the main thread is busy.

const { readSync, writeSync } = require('fs'); // kept, like others here, because a program may replace them
const path = require('path');
const { setImmediate } = require('timers');
const { MessageChannel, Worker, SHARE_ENV, receiveMessageOnPort } = require('worker_threads');
const { ASKED, ENDED, MAIL, WRITTEN } = require('./shared.cjs');
const interrupts = require('./interrupts.cjs');

const NEWLINE = 10;
const PIECE = 256 * 1024; // characters of one stream frame
const LONE_SURROGATE = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g; // in its escaped form
const { shared } = interrupts;
const { port1: port, port2: theirs } = new MessageChannel();
let fd;
let later = []; // frames that came while an answer was awaited
let receive; // called with each frame

/** Report ready to the host, and pass every frame to `receiver` from now on. */
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

/** Read the first frame in this thread, because the reader's thread takes as long to start as node itself. */
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

/** Send text of a stream; long text in pieces that do not split a character. */
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

/** Convert to JSON, replacing lone surrogates, which UTF-8 cannot represent. */
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
      if (error.code === 'EPIPE') return; // the host is gone, and we will be ended soon
      if (error.code !== 'EAGAIN') throw error;
      port.postMessage({ write: data.subarray(sent) });
      Atomics.wait(shared, WRITTEN, ticket); // the reader's thread can wait for the socket, but we cannot
      return;
    }
  }
}

/** Make the host read what children wrote so far, so that it comes before our next output. */
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

/** Tell the reader's thread that a block needs no more interrupts. */
function ended(block) {
  Atomics.store(shared, ENDED, block);
}

/** Make the reader's thread ask again once the main thread is free. */
function askAgain(block) {
  port.postMessage({ again: block });
}

/** Check whether the host wants the block to end, even if that frame has not been read yet. */
function asked(block) {
  return Atomics.load(shared, ASKED) === block;
}

module.exports = { askAgain, asked, ended, open, send, sendStream, sync };
