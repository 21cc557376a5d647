'use strict';
// The global scope of code: everything that node's own console offers, and everything that a script would have.

const Module = require('module');
const path = require('path');
const { display } = require('./display.cjs');
const { lookFrom } = require('./imports.cjs');

const main = new Module('.');

function install() {
  process.argv = [process.argv[0]];
  process.mainModule = undefined;
  for (const file of Object.keys(require.cache)) delete require.cache[file]; // the program must not see our modules
  for (const name of Module.builtinModules) if (/^[a-z]\w*$/.test(name) && !(name in globalThis)) offer(name);
  define('display', { value: display, writable: true });
  define('module', { value: main, writable: true });
  define('exports', { value: main.exports, writable: true });
  compute('__dirname', () => process.cwd());
  compute('__filename', () => path.join(process.cwd(), 'block.js'));
}

/** Define one of node's modules under its name; it is loaded on first use. */
function offer(name) {
  compute(name, () => {
    const value = require(name);
    define(name, { value, writable: true });
    return value;
  });
}

/** Define a global whose value is computed on use, and that can be reassigned. */
function compute(name, get) {
  define(name, { get, set: (value) => define(name, { value, writable: true }) });
}

function define(name, attributes) {
  Object.defineProperty(globalThis, name, { configurable: true, ...attributes });
}

/** Set the folder from which `require` and imports resolve. */
function settleIn(cwd) {
  main.paths = Module._nodeModulePaths(cwd);
  lookFrom(cwd, main);
}

module.exports = { install, settleIn };
