import { expect } from 'chai';
import type { SandboxSpec } from '../../src/k8s/sandboxes/sandbox-resource.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aDriver, anInstance } from './a-driver.ts';
import { MemoryApi } from './a-memory-api.ts';

describe('a claim that is reverted', () => {
  const aRunning = async () => {
    const api = new MemoryApi();
    const { driver, last } = await aDriver(api, { terminationGraceSeconds: 5 });
    const { id, recordAt, podAt } = await anInstance(api, driver);
    await eventually(() => last(id)?.record?.claim !== undefined, 'it is claimed');
    const ends = (): boolean => api.objects.get(podAt)?.metadata.deletionTimestamp !== undefined;
    return { api, driver, last, id, recordAt, ends };
  };

  it('is marked as reverted on its record, and ends', async () => {
    const { api, driver, last, id, recordAt, ends } = await aRunning();
    await driver.release(id, { reason: 'claim-failed', exitCode: null });
    const { spec } = api.objects.get(recordAt) as unknown as { readonly spec: SandboxSpec };

    expect(spec).to.deep.include({ format: 1, end: { reason: 'claim-failed' } });
    expect(ends()).to.equal(true);
    await eventually(() => last(id)?.record?.end?.reason === 'claim-failed', 'others read it');
    await driver.stop();
  });
});
