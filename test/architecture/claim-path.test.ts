import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { RATCHETS } from './ratchets.ts';

const SCRIPT = fileURLToPath(new URL('../../script/claim-path.ts', import.meta.url));

describe('the path of a claim', () => {
  it('includes no more files than before', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', SCRIPT]);
    const files = stdout.split('\n').filter((line) => line.endsWith('.ts'));

    expect(files).to.include('machines/sandbox/setup.ts');
    expect(files).to.have.length.at.most(RATCHETS.claimPath);
  });
});
