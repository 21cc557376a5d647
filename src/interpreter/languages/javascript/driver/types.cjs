'use strict';
// From TypeScript to JavaScript: by Node itself (22.13 and later), else by esbuild or typescript, from npm.

const { createRequire, stripTypeScriptTypes } = require('module');
const path = require('path');

const MISSING = 'TypeScript needs Node.js 22.13 or later, or esbuild: npm install -g esbuild';

function withoutTypes(code) {
  if (stripTypeScriptTypes) return stripTypeScriptTypes(code, { mode: 'transform' });
  const esbuild = findQuietly('esbuild');
  if (esbuild) {
    const tsconfigRaw = { compilerOptions: { verbatimModuleSyntax: true } };
    return esbuild.transformSync(code, { loader: 'ts', target: 'esnext', tsconfigRaw }).code;
  }
  const typescript = find('typescript');
  if (!typescript) throw new Error(MISSING);
  const compilerOptions = { target: 'esnext', module: 'esnext', verbatimModuleSyntax: true };
  return typescript.transpileModule(code, { compilerOptions }).outputText;
}

/** Load a package from the working directory, from NODE_PATH, or from the global packages. */
function find(name) {
  const prefix = path.dirname(path.dirname(process.execPath));
  for (const place of [process.cwd(), path.join(prefix, 'lib'), '/usr/local/lib']) {
    try {
      return createRequire(path.join(place, 'x.js'))(name);
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  return undefined;
}

/** Load esbuild without leaving a trace in the program's environment. */
function findQuietly(name) {
  const before = process.env.ESBUILD_WORKER_THREADS;
  process.env.ESBUILD_WORKER_THREADS = '0'; // else esbuild starts a process that an interrupt would kill
  try {
    return find(name);
  } finally {
    if (before === undefined) delete process.env.ESBUILD_WORKER_THREADS;
    else process.env.ESBUILD_WORKER_THREADS = before;
  }
}

module.exports = { withoutTypes };
