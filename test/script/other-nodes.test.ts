import { expect } from 'chai';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ON_OTHER_NODES, onOtherNodes } from '../../script/other-nodes.ts';

const TESTS = fileURLToPath(new URL('..', import.meta.url));

describe('the list for other Node versions', () => {
  const all = readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => join(TESTS, file));

  it('is part of the tests, with at least one file per entry', () => {
    const chosen = onOtherNodes(all);

    expect(chosen.length).to.be.within(1, all.length / 2);
    for (const beginning of ON_OTHER_NODES)
      expect(
        chosen.some((file) => file.startsWith(join(TESTS, beginning))),
        beginning,
      ).to.equal(true);
  });
});
