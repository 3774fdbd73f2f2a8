import { expect } from 'chai';
import { existsSync } from 'node:fs';
import { skipBecause } from '../support/harness/skip-because.ts';
import { pythonWithPackages, resultChecksOf, startChecksOf } from './python/packages.ts';

const PYTHON = '/usr/bin/python3';

describe('the code interpreter', () => {
  it('shows output of matplotlib, IPython and values', async function () {
    const python = pythonWithPackages();
    if ('why' in python) return skipBecause(this, python.why);
    const checks = await resultChecksOf(python.path);

    expect(checks.filter(({ why }) => why !== null)).to.deep.equal([]);
    expect(checks).to.have.lengthOf(15);
  });

  it('continues without free threads and processes', async function () {
    if (!existsSync(PYTHON)) return skipBecause(this, `there is no ${PYTHON}`);
    const checks = await startChecksOf(PYTHON);

    expect(checks.filter(({ why }) => why !== null)).to.deep.equal([]);
    expect(checks).to.have.lengthOf(3);
  });
});
