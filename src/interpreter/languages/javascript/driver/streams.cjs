'use strict';
// Sends what code prints as frames: process.stdout, process.stderr, console, and writes to the descriptors 1 and 2.

const fs = require('fs');
const { Console } = require('console');
const { Writable } = require('stream');
const { StringDecoder } = require('string_decoder');
const blocks = require('./blocks.cjs');
const link = require('./link.cjs');

class Output extends Writable {
  constructor(name, fd) {
    super({ decodeStrings: false, autoDestroy: false, emitClose: false }); // it is never closed
    this.name = name;
    this.fd = fd;
  }

  // Written at once, so that output is not lost in a queue when the program dies.
  write(chunk, encoding, done) {
    if (typeof encoding === 'function') [encoding, done] = [undefined, encoding];
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) return super.write(chunk, encoding, done);
    const block = blocks.owner();
    if (block && !block.cancelled) {
      const text = this.text(block, chunk, encoding);
      if (text) link.sendStream(block.number, this.name, text);
    }
    if (done) process.nextTick(done);
    return true;
  }

  text(block, chunk, encoding) {
    if (typeof chunk === 'string' && /^(utf-?8|)$/i.test(encoding ?? '')) return chunk;
    const decoder = (block.decoders[this.name] ??= new StringDecoder('utf8'));
    return decoder.write(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk);
  }

  end(chunk, encoding, done) {
    if (chunk !== undefined && chunk !== null && typeof chunk !== 'function') this.write(chunk, encoding);
    const last = [chunk, encoding, done].find((item) => typeof item === 'function');
    if (last) process.nextTick(last);
    process.nextTick(() => this.emit('finish')); // but it stays open
    return this;
  }

  _destroy() {}
}

/** Send the rest of a character that was written in pieces. */
function flush(block) {
  for (const [name, decoder] of Object.entries(block.decoders)) {
    const text = decoder.end();
    if (text) link.sendStream(block.number, name, text);
  }
}

const stdout = new Output('stdout', 1);
const stderr = new Output('stderr', 2);

function install() {
  for (const [name, value] of Object.entries({ stdout, stderr })) {
    Object.defineProperty(process, name, { value, configurable: true, enumerable: true, writable: true });
  }
  // Node's own console also sends every line to the inspector, which costs time and memory.
  const console = new Console({ stdout, stderr, ignoreErrors: false, colorMode: false });
  for (const name of ['profile', 'profileEnd', 'timeStamp']) console[name] = () => {};
  Object.defineProperty(globalThis, 'console', { value: console, configurable: true, writable: true });
  patchDescriptors();
}

/** Capture direct writes to the descriptors, as loggers make them. */
function patchDescriptors() {
  const { write, writeSync } = fs;
  const streams = { 1: stdout, 2: stderr };
  fs.writeSync = function (fd, data, ...rest) {
    return streams[fd] ? direct(streams[fd], data, rest) : writeSync.call(fs, fd, data, ...rest);
  };
  fs.write = function (fd, data, ...rest) {
    const done = rest.at(-1);
    if (!streams[fd] || typeof done !== 'function') return write.call(fs, fd, data, ...rest);
    const written = direct(streams[fd], data, rest.slice(0, -1));
    return process.nextTick(done, null, written, data);
  };
  Object.defineProperties(fs.write, Object.getOwnPropertyDescriptors(write));
}

function direct(stream, data, [offset, length]) {
  if (typeof data === 'string') {
    stream.write(data, length);
    return Buffer.byteLength(data, length);
  }
  const start = offset?.offset ?? offset ?? 0;
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const part = bytes.subarray(start, start + (offset?.length ?? length ?? bytes.length - start));
  stream.write(part);
  return part.length;
}

module.exports = { flush, install, stderr, stdout };
