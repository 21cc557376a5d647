'use strict';
// Runs code as V8's own console does: let, const and class stay and can be declared again, await works at the top
// level, and the value of the last expression comes back, all without touching the code.

const { promiseHooks } = require('v8');
const { session } = require('./interrupts.cjs');

const RESULT = '.repl_result'; // where V8 puts the value
const unsettled = new Set(); // V8 crashes when it answers for a promise that was collected, so none may be

class BlockSyntaxError extends Error {}

/** The promise of what the code's last expression gives. */
async function evaluate(code, name) {
  return (await start(code, name))[RESULT];
}

function start(code, name) {
  let promise;
  let details;
  let answered = false;
  const stop = promiseHooks.onInit((first) => {
    promise = first; // V8 makes the promise of the whole before it runs the code
    stop();
  });
  const expression = `${code}\n//# sourceURL=${name}`;
  const options = { expression, replMode: true, silent: true, objectGroup: name };
  session.post('Runtime.evaluate', options, (error, answer) => {
    answered = true;
    details = answer?.exceptionDetails;
    unsettled.delete(promise);
    session.post('Runtime.releaseObjectGroup', { objectGroup: name });
  });
  if (!promise) {
    stop();
    throw new BlockSyntaxError(located(details, code, name));
  }
  if (!answered) unsettled.add(promise);
  return promise;
}

/** The message of a syntax error, with the line it is in, as node shows it. */
function located({ exception, lineNumber, columnNumber }, code, name) {
  const [message] = exception.description.split('\n');
  const line = code.split('\n')[lineNumber];
  if (line === undefined) return `Uncaught ${message}`;
  return `${name}:${lineNumber + 1}\n${line}\n${' '.repeat(columnNumber)}^\n\nUncaught ${message}`;
}

module.exports = { BlockSyntaxError, evaluate };
