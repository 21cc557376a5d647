'use strict';
// Formats values and errors as node's own console does, with stacks reduced to the program's frames.

const path = require('path');
const { inspect } = require('util');
const { BlockSyntaxError } = require('./evaluate.cjs');

const FRAME = /^\s+at /;

/** Format an uncaught error. */
function uncaught(error) {
  if (error instanceof BlockSyntaxError) return `${error.message}\n`;
  return `Uncaught ${cut(inspected(error))}\n`;
}

function inspected(error) {
  try {
    return inspect(error);
  } catch (reason) {
    return `a value that cannot be shown (${reason?.constructor?.name})`; // its own formatting code failed
  }
}

/** Remove the frames of node and of this driver. */
function cut(text) {
  const lines = [];
  for (const line of text.split('\n')) {
    if (!FRAME.test(line) || !(line.includes('node:') || line.includes(__dirname + path.sep))) lines.push(line);
    else if (line.endsWith(' {') && lines.length) lines.push(lines.pop() + ' {'); // the error's properties follow
  }
  return lines.join('\n');
}

/** List the system error numbers in an error and its causes; the host may know why the system denied something. */
function causes(error, depth = 0) {
  if (!error || typeof error !== 'object' || depth > 8) return [];
  const found = [...causes(error.cause, depth + 1)];
  if (Array.isArray(error.errors)) for (const each of error.errors) found.push(...causes(each, depth + 1));
  if (typeof error.errno !== 'number') return found;
  const kind = error.syscall === 'getaddrinfo' ? 'gaierror' : error.code;
  for (const name of [error.path ?? '', error.dest]) {
    if (typeof name === 'string') found.push({ number: -error.errno, path: name && path.resolve(name), kind });
  }
  return found;
}

/** Return the package that an import did not find; nothing for a file. */
function missing(error) {
  if (!['MODULE_NOT_FOUND', 'ERR_MODULE_NOT_FOUND'].includes(error?.code)) return undefined;
  return /Cannot find (?:module|package) '((?:@[\w.-]+\/)?[\w-][\w.-]*)(?:\/[^']*)?'/.exec(String(error.message))?.[1];
}

module.exports = { causes, missing, uncaught };
