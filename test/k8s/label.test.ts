import { expect } from 'chai';
import { POOL_LABEL } from '../../src/k8s/sandboxes/sandbox-resource.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aDriver, anInstance } from './a-driver.ts';
import { MemoryApi, type StoredObject } from './a-memory-api.ts';

const labelsOf = (object: StoredObject | undefined) => object?.metadata.labels ?? {};

describe('a label taken off the Pod of a running sandbox', () => {
  const running = async () => {
    const api = new MemoryApi();
    const parts = await aDriver(api);
    const instance = await anInstance(api, parts.driver);
    await eventually(
      () =>
        parts.last(instance.id)?.record?.claim !== undefined &&
        parts.last(instance.id)?.vitals.kind === 'available',
      'it runs',
    );
    const vitals = (): string | undefined => parts.last(instance.id)?.vitals.kind;
    const unlabel = (): void => {
      const pod = api.objects.get(instance.podAt);
      if (pod)
        api.put(instance.podAt, {
          ...pod,
          metadata: { ...pod.metadata, labels: { 'sandpool.dev/network': 'none' } },
        });
    };
    return { api, ...parts, ...instance, vitals, unlabel };
  };

  it('does not end the sandbox, and is restored so that its watch continues', async () => {
    const { api, driver, id, podAt, unlabel, vitals, facts } = await running();
    unlabel();
    await eventually(() => POOL_LABEL in labelsOf(api.objects.get(podAt)), 'the label is back');
    expect(vitals()).to.equal('available');
    expect(facts.some((fact) => fact.vitals.kind === 'gone')).to.equal(false);

    const pod = api.objects.get(podAt);
    api.put(podAt, {
      ...pod,
      metadata: { ...pod?.metadata, name: pod?.metadata.name ?? '' },
      status: { phase: 'Failed', reason: 'Evicted' },
    });
    await eventually(() => vitals() === 'gone', 'its end is told by the watch');
    expect(labelsOf(api.objects.get(podAt))['sandpool.dev/network']).to.equal('none');
    await driver.stop();
    expect(id).to.be.a('string');
  });

  it('does not end the sandbox if the API server is silent or refuses to restore the label', async () => {
    const { api, driver, clock, unlabel, vitals, podAt } = await running();
    const { get, patch } = api.client;
    let reads = 0;
    api.client.get = async () => {
      reads += 1;
      throw new Error('cut');
    };
    api.client.patch = async () => {
      throw new Error('forbidden');
    };
    unlabel();
    await eventually(() => reads === 1, 'it is looked at');
    api.client.get = async (...of) => {
      reads += 1;
      return await get(...of);
    };
    for (let again = 2; again < 5; again += 1) {
      await eventually(() => {
        clock.advance(1_000);
        return reads >= again;
      }, 'the next evaluation');
      expect(vitals()).to.equal('available');
    }
    api.remove(podAt); // which no watch tells
    await eventually(() => {
      clock.advance(1_000);
      return vitals() === 'gone';
    }, 'a look finds none');
    api.client.patch = patch;
    await driver.stop();
  });

  it('is distinguished from an end by one read', async () => {
    const { api, driver, vitals, podAt } = await running();
    const before = api.asked.length;
    api.remove(podAt);
    await eventually(() => vitals() === 'gone', 'it has ended');
    expect(api.asked.slice(before)).to.deep.equal([`GET ${podAt}`]);
    await driver.stop();
  });

  it('causes no read if the watch has shown the end of the Pod', async () => {
    const { api, driver, vitals, podAt } = await running();
    const pod = api.objects.get(podAt);
    api.put(podAt, {
      ...pod,
      metadata: {
        ...pod?.metadata,
        name: pod?.metadata.name ?? '',
        deletionTimestamp: '2026-01-01T00:00:00Z',
      },
    });
    const before = api.asked.length;
    api.remove(podAt);
    await eventually(() => vitals() === 'gone', 'it has ended');
    expect(api.asked.slice(before)).to.deep.equal([]);
    await driver.stop();
  });

  it('is noticed at a start, too', async () => {
    const { api, driver, unlabel, podAt, id } = await running();
    await driver.stop();
    unlabel();
    const { driver: next, last } = await aDriver(api);
    await eventually(() => POOL_LABEL in labelsOf(api.objects.get(podAt)), 'the label is back');
    await eventually(() => last(id)?.vitals.kind === 'available', 'it runs');
    await next.stop();
  });
});
