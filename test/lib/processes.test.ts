import { expect } from 'chai';
import { printedWithFewDescriptors } from '../support/harness/few-descriptors.ts';

const REFUSED = 'no process can be started: too many descriptors are open';

/**
 * What the code says, in a process of its own whose descriptors are all in use, and whether that
 * lives on: an error event that nobody hears would end it.
 */
const withoutDescriptors = (name: string, code: string): string => {
  const module = JSON.stringify(new URL(`../../src/${name}.ts`, import.meta.url).href);
  const program = `
    import { spawn } from 'node:child_process';
    import { openSync } from 'node:fs';
    import * as ours from ${module};
    const held = [];
    try { for (;;) held.push(openSync('/dev/null', 'r')); } catch {}
    const said = await (async () => { ${code} })().catch((error) => error.message);
    await new Promise((resolve) => setImmediate(resolve));
    console.log(said + ', and lives');
  `;
  return printedWithFewDescriptors(100, program);
};

describe('a process without free descriptors', function () {
  for (const [what, name, code] of [
    ['a program with pipes', 'lib/processes', "return ours.withPipes(spawn('/bin/true')).pid;"],
    [
      'the unpacker of an image',
      'embedded/images/unpacker-process',
      "return ours.runUnpacker({ bwrapPath: '/bin/true', command: [] }, { folder: '/' }, {}).ended;",
    ],
    [
      'the program that takes the head of the audit',
      'services/audit/audit-anchor',
      "return ours.anchorPlace('command:/bin/true')('a line', new AbortController().signal);",
    ],
  ] as const)
    it(`cannot start ${what}, and survives`, () => {
      expect(withoutDescriptors(name, code)).to.equal(`${REFUSED}, and lives`);
    });
});
