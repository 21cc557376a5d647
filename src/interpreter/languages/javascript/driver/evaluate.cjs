'use strict';
// Runs code as V8's own console does: let, const and class stay and can be declared again, await works at the top
// level, and the last expression's value is returned, all without changing the code.

const { promiseHooks } = require('v8');
const { session } = require('./interrupts.cjs');

const RESULT = '.repl_result'; // where V8 stores the value
const unsettled = new Set(); // kept alive, because V8 crashes when it settles a promise that was garbage-collected

class BlockSyntaxError extends Error {}

/** Return a promise of the value of the code's last expression. */
async function evaluate(code, name) {
  return (await start(code, name))[RESULT];
}

function start(code, name) {
  let promise;
  let details;
  let answered = false;
  const stop = promiseHooks.onInit((first) => {
    promise = first; // V8 makes the promise for the whole code before it runs it
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

/** Format the message of a syntax error with its line, as node shows it. */
function located({ exception, lineNumber, columnNumber }, code, name) {
  const [message] = exception.description.split('\n');
  const line = code.split('\n')[lineNumber];
  if (line === undefined) return `Uncaught ${message}`;
  return `${name}:${lineNumber + 1}\n${line}\n${' '.repeat(columnNumber)}^\n\nUncaught ${message}`;
}

module.exports = { BlockSyntaxError, evaluate };
