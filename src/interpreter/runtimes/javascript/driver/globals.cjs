'use strict';
// What code finds in its global scope: what node's own console offers, and what a script would.

const Module = require('module');
const path = require('path');
const { display } = require('./display.cjs');
const { lookFrom } = require('./imports.cjs');

const main = new Module('.');

function install() {
  process.argv = [process.argv[0]];
  process.mainModule = undefined;
  for (const file of Object.keys(require.cache)) delete require.cache[file]; // ours are not the program's
  for (const name of Module.builtinModules) if (/^[a-z]\w*$/.test(name) && !(name in globalThis)) offer(name);
  define('display', { value: display, writable: true });
  define('module', { value: main, writable: true });
  define('exports', { value: main.exports, writable: true });
  compute('__dirname', () => process.cwd());
  compute('__filename', () => path.join(process.cwd(), 'block.js'));
}

/** A module of node's under its own name, loaded when it is first used. */
function offer(name) {
  compute(name, () => {
    const value = require(name);
    define(name, { value, writable: true });
    return value;
  });
}

/** A global whose value is found when it is used, and that can be given another one. */
function compute(name, get) {
  define(name, { get, set: (value) => define(name, { value, writable: true }) });
}

function define(name, attributes) {
  Object.defineProperty(globalThis, name, { configurable: true, ...attributes });
}

/** The folder from which `require` and imports start. */
function settleIn(cwd) {
  main.paths = Module._nodeModulePaths(cwd);
  lookFrom(cwd, main);
}

module.exports = { install, settleIn };
