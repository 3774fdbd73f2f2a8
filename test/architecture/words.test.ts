import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readSourceTree, type SourceFile } from './source-tree.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Words that the project once had for what others know by another name, and that name. */
const STANDARD: Readonly<Record<string, string>> = {
  alongside: 'participant',
  bear: 'create, launch',
  birth: 'launch order, creation',
  births: 'launch orders, Pod creator',
  census: 'statistics',
  drawer: 'store',
  freshen: 'refresh',
  happening: 'lifecycle event',
  happenings: 'lifecycle events',
  joiner: 'launcher',
  joiners: 'launcher pool',
  putback: 'release, restore',
  seat: 'reservation, semaphore',
  seats: 'reservations, semaphore',
  settler: 'initializer',
  shelf: 'idle set',
  shelves: 'idle sets',
  tallies: 'counts',
  tally: 'counts',
  tellable: 'public message',
  trail: 'transition history',
  trails: 'transition history',
  unsettled: 'outcome unknown, pending',
  untold: 'unreported',
  wish: 'spec',
  wishes: 'spec',
};

/** The audit trail is called so everywhere. */
const isAudit = (path: string, name: string): boolean => /audit/i.test(path) || /audit/i.test(name);

/** `terminalWasPutBack` has the words terminal, was, put, back, terminalwas, wasput and putback. */
const wordsOf = (name: string): readonly string[] => {
  const parts = name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split('_');
  return [...parts, ...parts.slice(1).map((part, n) => `${parts[n]}${part}`)];
};

const oldWordsIn = (path: string, code: string): readonly string[] => [
  ...new Set(
    [...code.matchAll(/[A-Za-z_$][\w$]*/g)].flatMap(([name]) =>
      wordsOf(name).flatMap((word) => {
        const standard = Object.hasOwn(STANDARD, word) ? STANDARD[word] : undefined;
        if (standard === undefined || (word.startsWith('trail') && isAudit(path, name))) return [];
        return [`${path}: ${name}: say ${standard}`];
      }),
    ),
  ),
];

/** A doc comment by which a function that returns something would be one that answers a request. */
const ANSWERS =
  /\/\*\*\s*(?:\*\s*)?Answers (?:an?|the|whether|what|how|why|if|all|those|undefined)\b/;

/** A doc comment without a verb: its subject is somewhere else. */
const FRAGMENT = /\/\*\*\s*(?:\*\s*)?(?:Of|What|The same)\b/g;

describe('words', () => {
  const files = ['src', 'test'].flatMap((folder) =>
    readSourceTree(folder)
      .filter(({ path }) => !path.includes('generated/'))
      .map((file): SourceFile => ({ ...file, path: join(folder, file.path) })),
  );

  it('in identifiers come from docs/glossary.md or the field', () => {
    const wrong = files.flatMap(({ path, codeOnly }) => oldWordsIn(path, codeOnly));

    // this file names the old ones
    expect(wrong.filter((each) => !each.startsWith('test/architecture/words.'))).to.deep.equal([]);
  });

  it('in doc comments say that a function returns something', () => {
    const wrong = files.filter(({ path }) => ANSWERS.test(readFileSync(join(ROOT, path), 'utf8')));

    expect(wrong.map(({ path }) => path)).to.deep.equal([]);
  });

  it('in doc comments begin with more than a fragment', () => {
    const wrong = files
      .filter(({ path }) => path.startsWith('src/'))
      .flatMap(({ path, text }) =>
        [...text.matchAll(FRAGMENT)].map(
          ({ index }) => `${path}:${text.slice(0, index).split('\n').length}`,
        ),
      );

    expect(wrong).to.deep.equal([]);
  });

  it('are found in every form of an identifier', () => {
    const code = 'takeSeat IdleShelf MOST_WISHES #birthOf wasPutBack trailsOf seated AuditTrail x';

    expect(oldWordsIn('src/a.ts', code).map((each) => each.split(': ')[1])).to.deep.equal([
      'takeSeat',
      'IdleShelf',
      'MOST_WISHES',
      'birthOf',
      'wasPutBack',
      'trailsOf',
    ]);
    expect(ANSWERS.test('/**\n * Answers whether it is so. */')).to.equal(true);
    expect(ANSWERS.test('/** Answers GET /metrics. */')).to.equal(false);
  });
});
