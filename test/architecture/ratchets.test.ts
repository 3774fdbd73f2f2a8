import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readSentences } from '../../script/plain-english.ts';
import { RATCHETS } from './ratchets.ts';
import { readSourceTree } from './source-tree.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Limits at which the linter counts a function. */
const LIMITS = {
  'eslint/complexity': ['error', { max: 15 }],
  'eslint/max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
  'eslint/max-params': ['error', { max: 3 }],
};

interface Finding {
  readonly code: string;
  readonly message: string;
}

/** What the linter finds in src/ with these limits. */
const findings = (): readonly Finding[] => {
  const folder = mkdtempSync(join(tmpdir(), 'ratchets-'));
  try {
    const config = join(folder, 'limits.json');
    writeFileSync(
      config,
      JSON.stringify({
        categories: { correctness: 'off' },
        rules: LIMITS,
        ignorePatterns: ['**/generated/**'],
      }),
    );
    const linter = join(ROOT, 'node_modules/oxlint/bin/oxlint');
    const printed = execFileSync(
      'sh',
      [
        '-c',
        '"$0" "$@" || [ $? -eq 1 ]',
        process.execPath,
        linter,
        '-c',
        config,
        '-f',
        'json',
        'src',
      ],
      { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 26 },
    );
    return (JSON.parse(printed) as { readonly diagnostics: readonly Finding[] }).diagnostics;
  } finally {
    rmSync(folder, { recursive: true });
  }
};

/** The folder of a file, two levels deep at most: `http/router`. */
const folderOf = (path: string): string => path.split('/').slice(0, -1).slice(0, 2).join('/');

/** Pairs of folders, two levels deep, that import each other. */
const mutualFolders = (): readonly string[] => {
  const arrows = new Set(
    readSourceTree().flatMap(({ path, imports }) =>
      imports.map((target) => `${folderOf(path)} ${folderOf(target)}`),
    ),
  );
  return [...arrows]
    .map((arrow) => arrow.split(' ') as [string, string])
    .filter(([from, to]) => from < to && arrows.has(`${to} ${from}`))
    .map(([from, to]) => `${from} ⇄ ${to}`)
    .toSorted();
};

const stiltedPercent = (kind: 'comments' | 'tests' | 'docs'): number => {
  const all = readSentences(kind);
  return (100 * all.filter(({ found }) => found.length > 0).length) / all.length;
};

describe('ratchets', () => {
  it('hold complexity, length and parameters of functions', () => {
    const found = findings();
    const count = (rule: string): number =>
      found.filter(({ code }) => code === `eslint(${rule})`).length;
    const complexities = found
      .filter(({ code }) => code === 'eslint(complexity)')
      .map(({ message }) => Number(/complexity of (\d+)/.exec(message)?.[1]));

    expect(Math.max(...complexities)).to.be.at.most(RATCHETS.highestComplexity);
    expect(complexities).to.have.length.at.most(RATCHETS.functionsOverComplexity15);
    expect(count('max-lines-per-function')).to.be.at.most(RATCHETS.functionsOver60Lines);
    expect(count('max-params')).to.be.at.most(RATCHETS.functionsOver3Parameters);
  });

  it('hold the pairs of folders that import each other', () => {
    const found = mutualFolders();
    const added = found.filter((pair) => !RATCHETS.mutualFolders.includes(pair));
    const gone = RATCHETS.mutualFolders.filter((pair) => !found.includes(pair));

    expect(added).to.deep.equal([]);
    expect(gone, 'delete these from ratchets.ts').to.deep.equal([]);
  });

  it('hold the share of stilted sentences', () => {
    for (const kind of ['comments', 'tests', 'docs'] as const)
      expect(stiltedPercent(kind), kind).to.be.at.most(RATCHETS.stiltedPercent[kind]);
  });
});
