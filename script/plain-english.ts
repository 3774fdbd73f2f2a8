/**
 * Finds stilted sentences by patterns; a match is no verdict.
 * Usage: node --import tsx script/plain-english.ts [--list N] [--in PATH] [comments|tests|docs]
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const PATTERNS: Readonly<Record<string, RegExp>> = {
  'where for if or when':
    /(?<!file |folder |place |path |know |from |every|any|else|no)\bwhere (?:it|that|there|one|nobody|somebody|nothing|something|the|a|an|its|no|this|they|he|who)\b|^where\b/i,
  'tell, hear, word of':
    /\b(?:is|are|was|were|be|been|gets?) told\b|\btells? (?:of|what|who|that|how|whether|nobody|each|all|it)\b|\bhears? of\b|\bthe word (?:of|that)\b|\bknows? (?:of|nothing)\b/i,
  'two relative clauses':
    /\b(?:that|which|who|whose|whom)\b[^.;:]{3,80}\b(?:that|which|who|whose|whom)\b/i,
  'clause as subject':
    /^(?:what|whoever|whatever|who|that which|whichever)\b(?! (?:is|are) (?:the|this)\?)/i,
  'negated noun':
    /\b(?:is|are|was|were|be|has|have|had) (?:no|none|nothing|nobody)\b(?! (?:longer|more|such|one|way|need|effect|limit|other))/i,
  'anew, meanwhile, likewise':
    /\b(?:anew|meanwhile|likewise|by then|thereby|therein|afresh|hitherto|as it stands|at rest)\b/i,
  'undefined: nobody': /\b(?:undefined|absent|null|none|empty): /i,
  'so long, so many':
    /\b(?:for|after|in) so (?:long|many|much|often)\b|^so (?:long|many|much|often)\b/i,
  'postposed alone': /\w alone(?:[.,;:)]|$| (?:is|are|was|may|can))/i,
  'has X do':
    /\b(?:has|have|had|lets?) (?:a|an|the|it|them|each|all|its|one|others?|sandboxes|pools) (?:\w+ )?(?:be|go|do|stand|wait|end|begin|take|say|show|look|count|pass)\b/i,
  'as X has it': /\bas (?:the|its|a|an) \w+ (?:has|says|shows|knows|wants|asks) (?:it|them|so)\b/i,
  'is to be had':
    /\b(?:is|are|was|were) (?:not )?to be (?:had|told|seen|found|made|read)\b|\bit is (?:that|of which|by which)\b/i,
};
const MOST_WORDS = 32;
const LEAST_WORDS = 3;

interface Sentence {
  readonly file: string;
  readonly text: string;
  readonly found: readonly string[];
}

const wordsIn = (text: string): number => text.split(' ').length;

export const patternsIn = (sentence: string): readonly string[] => [
  ...Object.keys(PATTERNS).filter((name) => PATTERNS[name]?.test(sentence)),
  ...(wordsIn(sentence) > MOST_WORDS ? [`over ${MOST_WORDS} words`] : []),
];

const sentencesOf = (prose: string): readonly string[] =>
  prose
    .replace(/`[^`]*`/g, 'X')
    .replace(/\s+/g, ' ')
    .split(/(?<=[.!?:;])\s+(?=[A-Z`"'(])|\n{2,}/)
    .map((sentence) => sentence.trim());

const commentsOf = (source: string): readonly string[] =>
  [
    ...[...source.matchAll(/\/\*\*?([\s\S]*?)\*\//g)].map(([, body = '']) =>
      body.replace(/^\s*\*\s?/gm, ''),
    ),
    ...[...source.matchAll(/(?:^[ \t]*\/\/.*\n?)+/gm)].map(([run]) =>
      run.replace(/^[ \t]*\/\/ ?/gm, ''),
    ),
  ].flatMap(sentencesOf);

const testNamesOf = (source: string): readonly string[] =>
  [...source.matchAll(/\b(?:it|describe)\(\s*(['"`])((?:\\.|(?!\1).)*)\1/g)].map(
    ([, , name = '']) => name,
  );

const proseOf = (page: string): readonly string[] =>
  sentencesOf(
    page
      .replace(/```[\s\S]*?```/g, '')
      .replace(/^\s*[|#>-].*\|?$/gm, (line) => line.replace(/[|#>*-]+/g, '. '))
      .replace(/\]\([^)]*\)/g, ']'),
  );

interface Kind {
  readonly globs: readonly string[];
  readonly without: RegExp;
  readonly read: (text: string) => readonly string[];
}

const KINDS: Readonly<Record<'comments' | 'tests' | 'docs', Kind>> = {
  comments: {
    globs: ['src/*.ts', 'native/*.c', 'native/*.h', 'bench/*.ts', 'script/*.ts'],
    without: /generated|\.d\.ts$/,
    read: commentsOf,
  },
  tests: { globs: ['test/*.ts'], without: /\.d\.ts$/, read: testNamesOf },
  docs: {
    globs: ['*.md'],
    without: /CHANGELOG/,
    read: proseOf,
  },
};

export const readSentences = (kind: keyof typeof KINDS, below = ''): readonly Sentence[] => {
  const { globs, without, read } = KINDS[kind];
  return execFileSync('git', ['ls-files', '--', ...globs], { encoding: 'utf8' })
    .split('\n')
    .filter((file) => file !== '' && file.startsWith(below) && !without.test(file))
    .flatMap((file) =>
      read(readFileSync(file, 'utf8'))
        .filter((text) => wordsIn(text) >= LEAST_WORDS)
        .map((text) => ({ file, text, found: patternsIn(text) })),
    );
};

const main = (): void => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { list: { type: 'string' }, in: { type: 'string' } },
  });
  for (const kind of Object.keys(KINDS) as (keyof typeof KINDS)[]) {
    if (positionals.length > 0 && !positionals.includes(kind)) continue;
    const all = readSentences(kind, values.in);
    const stilted = all.filter(({ found }) => found.length > 0);
    const share = (100 * stilted.length) / Math.max(1, all.length);
    console.log(`${kind}: ${stilted.length} of ${all.length} sentences (${share.toFixed(1)} %)`);
    const worst = stilted.toSorted((a, b) => b.found.length - a.found.length);
    for (const { file, text, found } of worst.slice(0, Number(values.list ?? 0)))
      console.log(`  ${file}: ${text.slice(0, 220)}  [${found.join(', ')}]`);
  }
};

if (import.meta.filename === process.argv[1]) main();
