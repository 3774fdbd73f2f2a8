import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { skipBecause } from '../support/harness/skip-because.ts';

const UNIT = fileURLToPath(new URL('../../deploy/systemd/sandpool.service', import.meta.url));
const text = readFileSync(UNIT, 'utf8');
const valuesOf = (name: string): readonly string[] =>
  [...text.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].flatMap(([, value = '']) =>
    value.split(' '),
  );

describe('the systemd unit', () => {
  it('is accepted by systemd without a warning', function () {
    if (spawnSync('systemd-analyze', ['--version']).status !== 0)
      skipBecause(this, 'there is no systemd-analyze');
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-unit-'));
    try {
      // The program is not installed here.
      writeFileSync(
        join(folder, 'sandpool.service'),
        text.replace('/opt/sandpool/bin/sandpool', '/bin/true'),
      );
      const { stdout, stderr } = spawnSync(
        'systemd-analyze',
        ['verify', '--man=no', join(folder, 'sandpool.service')],
        { encoding: 'utf8' },
      );

      expect(
        (stdout + stderr).split('\n').filter((line) => line.includes('sandpool.service')),
      ).to.deep.equal([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('keeps sandboxes when the daemon stops', () => {
    expect([valuesOf('KillMode'), valuesOf('Delegate'), valuesOf('OOMPolicy')]).to.deep.equal([
      ['process'],
      ['yes'],
      ['continue'],
    ]);
  });

  it('has no restriction that prevents sandboxes', () => {
    for (const name of [
      'RestrictNamespaces',
      'ProtectKernelTunables',
      'ProtectKernelLogs',
      'ProtectProc',
      'ProcSubset',
      'ProtectHostname',
      'ProtectControlGroups',
      'PrivateUsers',
      'MemoryDenyWriteExecute',
    ]) {
      expect(valuesOf(name), name).to.deep.equal([]);
    }
  });
});
