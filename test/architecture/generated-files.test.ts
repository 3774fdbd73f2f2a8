import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { staleFiles, writeFiles } from '../../script/generated-files.ts';
import { GENERATORS, staleLines } from '../../script/generators.ts';

describe('the generated files', function () {
  // test/simulation and test/kubernetes compare the files of the generators that are apart
  it('match their sources', async () => {
    const inGit = GENERATORS.filter(({ apart, atBuild }) => apart === undefined && !atBuild);
    expect(await staleLines(inGit)).to.deep.equal([]);
  });

  it('count as stale if one is missing or differs, until they are written', async () => {
    const root = mkdtempSync(join(tmpdir(), 'generated-files-'));
    const files = new Map([
      ['docs/a.md', 'a'],
      ['docs/b.md', 'b'],
      ['c.md', 'c'],
    ]);
    try {
      writeFiles(files, root);
      expect(staleFiles(files, root)).to.deep.equal([]);
      writeFileSync(join(root, 'docs/a.md'), 'old');
      rmSync(join(root, 'docs/b.md'));
      expect(await staleLines([{ name: 'letters', files: () => files }], root)).to.deep.equal([
        'docs/a.md is stale: script/generate letters writes it',
        'docs/b.md is stale: script/generate letters writes it',
      ]);
      expect(writeFiles(files, root)).to.deep.equal(['docs/a.md', 'docs/b.md']);
      expect(staleFiles(files, root)).to.deep.equal([]);
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});
