import { expect } from 'chai';
import { Instance, type InstanceDeps } from '../../../src/embedded/spawner/sandbox/instance.ts';
import type { StartTerms } from '../../../src/embedded/spawner/protocol.ts';
import type { Vitals } from '../../../src/model/sandbox.ts';
import { eventually } from '../../support/harness/eventually.ts';

const TERMS = {
  tenant: 'alpha/alpha/alice',
  definition: { containers: [{ cpuCores: 1, memoryBytes: 1 }] },
} as unknown as StartTerms;

const noSpace = (): never => {
  throw Object.assign(
    new Error("ENOSPC: no space left on device, mkdir '/sys/fs/cgroup/docker/0123/tenant-4567'"),
    { code: 'ENOSPC' },
  );
};

describe('a failed start of a sandbox', () => {
  let said: Vitals[];
  let logged: unknown[];

  const start = (part: Partial<InstanceDeps>): void => {
    said = [];
    logged = [];
    Instance.start('one', TERMS, {
      cgroups: { create: () => [] },
      terms: { bootId: '', bwrapPath: '', pidsMax: 0, bare: false, outputOf: () => '' },
      rootfs: { launcher: '/nowhere/launcher' },
      watcher: { drop: () => undefined },
      notes: { remove: async () => undefined },
      log: {
        info: () => undefined,
        warn: (_event: string, fields: unknown) => logged.push(fields),
        error: (_event: string, fields: unknown) => logged.push(fields),
      },
      report: (_id: string, vitals: Vitals) => said.push(vitals),
      ...part,
    } as unknown as InstanceDeps);
  };
  const reason = async (): Promise<string> => {
    await eventually(() => said.length > 0, 'it is gone');
    const [vitals] = said;
    return vitals?.kind === 'gone' ? vitals.reason : '';
  };

  it('shows paths of the host to the daemon only, not to the tenant', async () => {
    start({ cgroups: { create: noSpace } as unknown as InstanceDeps['cgroups'] });
    expect(await reason()).to.equal('it could not be started (ENOSPC)');
    expect(JSON.stringify(logged)).to.include('/sys/fs/cgroup/docker/0123');
  });

  it('does not show the path of the launcher', async () => {
    start({});
    expect(await reason()).to.equal('the launcher could not be started');
  });

  it('shows faults of the template', async () => {
    start({
      cgroups: {
        create: () => {
          throw new Error('the volume for /data is away');
        },
      } as unknown as InstanceDeps['cgroups'],
    });
    expect(await reason()).to.equal('the volume for /data is away');
  });
});
