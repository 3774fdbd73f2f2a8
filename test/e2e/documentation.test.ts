import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  masked,
  type PageLine,
  pageLines,
  showsAs,
  withoutSecrets,
} from '../../script/page-lines.ts';
import { loadExamples } from '../../src/http/openapi/examples.ts';
import { AS_SHIPPED, DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { at, documentedOperations, isObject } from '../support/harness/documented-answers.ts';
import { stocked } from '../support/harness/on-a-daemon.ts';
import { PageSession } from '../support/harness/page-session.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PAGES = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => join('docs', path))
    .sort(),
]
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))
  .filter(({ text }) => pageLines(text).length > 0);

/** What the page has from the line on, its prompts within included. */
const expectedOf = ({ shows, inside }: PageLine): string =>
  [...shows, ...inside.flatMap(({ typed, shows: below }) => [`bash-0$ ${typed}`, ...below])].join(
    '\n',
  );

describe('the commands in the documentation', function () {
  it('are found', () => {
    expect(PAGES.map(({ path }) => path)).to.include.members([
      'README.md',
      'docs/api-by-example.md',
    ]);
  });

  for (const { path, text } of PAGES) {
    it(`work, with the output that ${path} shows`, async () => {
      const daemon = await DaemonUnderTest.start(AS_SHIPPED);
      const session = new PageSession({
        dataDir: daemon.dataDir,
        host: `127.0.0.1:${daemon.run.port}`,
      });
      try {
        await stocked(daemon.client(), 4);
        for (const line of pageLines(text)) {
          const shown = withoutSecrets(await session.run(line));
          const expected = expectedOf(line);
          if (!showsAs(shown, expected))
            expect(masked(shown), `${path}:${line.at}: ${line.command}`).to.equal(masked(expected));
        }
      } finally {
        await session.close();
        await daemon.dispose();
      }
    });
  }
});

describe('the examples in the OpenAPI document', () => {
  const page = readFileSync(join(ROOT, 'docs/api-by-example.md'), 'utf8');

  /**
   * A daemon that no worker is connected to, that has no manager, and whose rules hold nothing, has
   * no good answer to these.
   */
  const unanswered: readonly unknown[] = [
    'promoteApiKey',
    'promoteApiKeyByFullName',
    'setManagers',
    'getApproval',
    'decideApproval',
  ];

  it('exist for every operation with a JSON answer (npx tsx script/api-examples.ts writes them)', () => {
    const without = documentedOperations.filter(
      ({ operation, pointer }) =>
        loadExamples()[String(operation['operationId'])] === undefined &&
        answersJson(pointer) &&
        !unanswered.includes(operation['operationId']),
    );

    expect(without.map(({ operation }) => operation['operationId'])).to.deep.equal([]);
  });

  it('are the same as in docs/api-by-example.md', () => {
    for (const [id, { answer }] of Object.entries(loadExamples()))
      expect(page, id).to.include(JSON.stringify(answer));
  });
});

const answersJson = (pointer: string): boolean => {
  const responses = at(`${pointer}/responses`) ?? {};
  const success = Object.keys(responses).find((status) => status.startsWith('2'));
  const content = at(`${pointer}/responses/${success}`)?.['content'];
  return isObject(content) && 'application/json' in content;
};
