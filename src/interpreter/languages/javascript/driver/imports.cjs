'use strict';
// `require`, `import()` and `import ... from` in a block, all resolved from the working directory.
//
// Code that V8 evaluates the way its console does cannot import. So `import` in `import(...)` becomes a name of the
// same length, and an import statement becomes an equivalent declaration on the same lines. V8's own parser decides
// whether something that looks like an import is one, and not part of a string.

const Module = require('module');
const path = require('path');
const { pathToFileURL } = require('url');
const { Script } = require('vm');

const NAME = '\u0131mport';
const NO_TOKEN = '\u0001'; // allowed in strings, comments and regular expressions; an error anywhere else
const CALL = /(?<!(?<!\.\.)\.\s*)\bimport(?=\s*\()/g;
const STATEMENT = new RegExp(
  /(?<=^|;)(?<gap>[ \t]*)import\b\s*/.source +
    /(?:(?<main>[\w$]+)\s*(?:,\s*)?)?(?:\*\s*as\s+(?<all>[\w$]+)\s*|\{(?<some>[^{}]*)\}\s*)?(?:\bfrom\s*)?/.source +
    /(?<from>"[^"\n]*"|'[^'\n]*')(?:\s*(?:with|assert)\s*(?<attributes>\{[^{}]*\}))?/.source,
  'gm',
);
let folder;
let load;

/** Rewrite the imports of code to a form that V8 accepts here. */
function withImports(code) {
  if (!/\bimport\b/.test(code)) return code;
  const declared = replaced(code, STATEMENT, (match) => declaration(match.groups, match[0]), 'null;');
  return replaced(declared, CALL, () => NAME, '(0)');
}

/** Replace the matches that are code of the same kind as `example`; none if the code cannot be parsed. */
function replaced(code, pattern, form, example) {
  const matches = [...code.matchAll(pattern)];
  const chosen = new Set(matches);
  const source = (odd, instead) => {
    let text = '';
    let end = 0;
    for (const match of matches) {
      text += code.slice(end, match.index);
      text += match === odd ? instead : chosen.has(match) ? form(match) : match[0];
      end = match.index + match[0].length;
    }
    return text + code.slice(end);
  };
  if (!matches.length || !parses(source())) return code;
  for (const match of matches) {
    if (parses(source(match, NO_TOKEN)) || !parses(source(match, example))) chosen.delete(match);
  }
  return source();
}

function parses(code) {
  try {
    new Script(`(async () => {${code}\n})`);
    return true;
  } catch {
    return false;
  }
}

function declaration({ gap, main, all, some, from, attributes }, statement) {
  const loaded = `await ${NAME}(${from}${attributes ? `, {with: ${attributes}}` : ''})`;
  const names = some?.replace(/\s+as\s+/g, ': ').replace(/\s+/g, ' ');
  const parts = [main && `default: ${main}`, names].filter(Boolean).join(', ');
  let form = loaded;
  if (all) form = `const ${all} = ${loaded}${main ? `, {default: ${main}} = ${all}` : ''}`;
  else if (main || some !== undefined) form = `const {${parts}} = ${loaded}`;
  return `${gap}${form};` + '\n'.repeat(statement.split('\n').length - 1);
}

/** Make `require` and imports resolve from this folder. */
function lookFrom(cwd, main) {
  if (cwd === folder) return;
  folder = cwd;
  const file = path.join(cwd, 'block.cjs');
  const holder = new Module(file);
  holder.filename = file;
  holder.paths = Module._nodeModulePaths(cwd);
  holder._compile('module.exports = (from, options) => import(from, options);', file);
  const { resolve } = Module.createRequire(file);
  load = async (from, options) => {
    try {
      return await holder.exports(from, options);
    } catch (error) {
      if (error?.code !== 'ERR_MODULE_NOT_FOUND') throw error;
      let found;
      try {
        found = resolve(from); // also searches the folder of the session's packages, as `require` does
      } catch {
        throw error;
      }
      return holder.exports(pathToFileURL(found).href, options);
    }
  };
  if (globalThis.require !== undefined && !globalThis.require[ours]) return; // the program has replaced it
  const require = Module.createRequire(file);
  require[ours] = true;
  require.main = main;
  Object.defineProperty(globalThis, 'require', { value: require, configurable: true, writable: true });
}
const ours = Symbol('ours');

Object.defineProperty(globalThis, NAME, { value: (from, options) => load(from, options) });

module.exports = { lookFrom, withImports };
