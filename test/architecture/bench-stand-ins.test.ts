import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { STAND_INS } from '../../bench/lean-assembly.ts';

describe('what stands in for modules of the daemon in measurements', () => {
  const all = STAND_INS.flatMap((standIns) => Object.entries(standIns));

  it('is JavaScript', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-stand-ins-'));
    try {
      for (const [n, [, text]] of all.entries()) {
        const file = join(folder, `${n}.mjs`);
        writeFileSync(file, text);
        execFileSync(process.execPath, ['--check', file], { stdio: 'pipe' });
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('is in the place of modules that are there, and imports such', () => {
    for (const [module, text] of all) {
      expect(existsSync(join('src', `${module}.ts`)), module).to.equal(true);
      for (const [, path = ''] of text.matchAll(/from '(\.[^']*)\.js'/g)) {
        const source = join('src', dirname(module), `${path.replace(/-whole$/, '')}.ts`);
        expect(existsSync(source), `${path} of ${module}`).to.equal(true);
      }
    }
  });
});
