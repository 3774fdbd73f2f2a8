import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newFleetKey, newJoinToken } from '../../src/fleet/link/fleet-keys.ts';
import { WorkerCredentials } from '../../src/fleet/link/worker-credentials.ts';

describe('the credentials of a worker', () => {
  let dataDir: string;

  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'sandpool-worker-'));
  });
  afterEach(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));

  const aToken = (managerKey: string): string => {
    const file = join(dataDir, 'join.token');
    writeFileSync(file, newJoinToken(managerKey).text);
    return file;
  };
  const none = (): string => join(dataDir, 'there-is-none');

  it('include the token file until a manager has admitted the cluster', () => {
    expect(() => new WorkerCredentials({ dataDir, joinTokenFile: none() })).to.throw(
      'joinTokenFile cannot be read',
    );
    const { publicKey } = newFleetKey();
    const first = new WorkerCredentials({ dataDir, joinTokenFile: aToken(publicKey) });
    first.joined(publicKey);
    const again = new WorkerCredentials({ dataDir, joinTokenFile: none() });
    expect([again.key.publicKey, again.trusts(publicKey)]).to.deep.equal([
      first.key.publicKey,
      true,
    ]);
  });

  it('include the recent managers, in a bounded number', () => {
    const managers = Array.from({ length: 20 }, () => newFleetKey().publicKey);
    const credentials = new WorkerCredentials({ dataDir, joinTokenFile: undefined });
    for (const manager of managers) credentials.joined(manager);
    const again = new WorkerCredentials({ dataDir, joinTokenFile: undefined });
    expect(managers.filter((manager) => again.trusts(manager))).to.deep.equal(managers.slice(4));
  });

  it('can be given if replicas share them, and then trust only by the token', () => {
    const [key, { publicKey }] = [newFleetKey(), newFleetKey()];
    const joinTokenFile = aToken(publicKey);
    for (let start = 0; start < 2; start += 1) {
      const credentials = new WorkerCredentials({ dataDir, joinTokenFile, key });
      expect([credentials.key.publicKey, credentials.trusts(publicKey)]).to.deep.equal([
        key.publicKey,
        true,
      ]);
      rmSync(join(dataDir, 'fleet'), { recursive: true, force: true, maxRetries: 5 });
    }
  });
});
