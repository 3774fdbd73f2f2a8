import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadScripts, OPERATIONS } from '../../src/redis/script.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

const LUA = new URL('../../src/redis/lua/', import.meta.url);
const HEADER =
  /^-- [A-Z][^]*?\n--\n-- KEYS: [^]*?\n-- ARGV: deadline[^]*?\n-- Returns:[^]*?\n-- Guarantees: [^]*?\n\n--- @include "deadline"\n/;

const filesOf = (folder: string): readonly string[] =>
  readdirSync(new URL(folder, LUA)).map((name) => `${folder}/${name}`);

/** The names that files of `include/` define for others. */
const includedNames = (): readonly string[] =>
  filesOf('include').flatMap((file) =>
    [
      ...readFileSync(new URL(file, LUA), 'utf8').matchAll(/^local (?:function )?([\w, ]+)/gm),
    ].flatMap(([, names = '']) => names.split(/, */)),
  );

describe('Redis scripts', () => {
  it('are complete, with a file per operation', () => {
    const folders = readdirSync(LUA).filter((name) => name !== 'include');

    expect(folders.flatMap(filesOf).sort()).to.deep.equal(
      Object.entries(OPERATIONS)
        .flatMap(([folder, operations]) => operations.map((name) => `${folder}/${name}.lua`))
        .sort(),
    );
  });

  it('state their keys, arguments, answers and guarantees, and check the deadline first', () => {
    const without = Object.keys(OPERATIONS)
      .flatMap(filesOf)
      .filter((file) => !HEADER.test(readFileSync(new URL(file, LUA), 'utf8')));

    expect(without).to.deep.equal([]);
  });

  it('have their includes in place, once', () => {
    for (const { operation, lua } of loadScripts()) {
      expect(lua, operation).to.not.contain('@include');
      expect(lua.match(/^local now = /gm), operation).to.have.length(1);
      expect(lua.match(/^local run = /gm) ?? [], operation).to.have.length.at.most(1);
    }
  });

  it('pass luacheck', function () {
    if (spawnSync('luacheck', ['--version']).status !== 0)
      skipBecause(this, 'luacheck is not installed (Debian: lua-check)');

    const folder = mkdtempSync(join(tmpdir(), 'scripts-'));
    try {
      for (const { operation, lua } of loadScripts())
        writeFileSync(join(folder, `${operation}.lua`), lua);
      const { stdout, stderr } = spawnSync(
        'luacheck',
        [
          ...['--std', 'lua51', '--read-globals', 'redis', 'cjson', 'KEYS', 'ARGV'],
          ...['--max-line-length', '100', '--formatter', 'plain'],
          // what an include defines is not used by all who include it
          ...includedNames().flatMap((name) => ['--ignore', `211/${name}`]),
          ...['--', folder],
        ],
        { encoding: 'utf8' },
      );
      expect(stderr + stdout).to.equal('');
    } finally {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    }
  });
});
