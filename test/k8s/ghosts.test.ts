import { expect } from 'chai';
import { eventually } from '../support/harness/eventually.ts';
import { aDriver, anInstance } from './a-driver.ts';
import { MemoryApi } from './a-memory-api.ts';

describe('a sandbox that ends while it is read', () => {
  it('does not reappear if its record was read before the watch reported its end', async () => {
    const api = new MemoryApi();
    const { driver, last } = await aDriver(api);
    const { id, namespace, recordAt, podAt } = await anInstance(api, driver);
    await eventually(
      () => last(id)?.record?.claim !== undefined && last(id)?.vitals.kind === 'available',
      'it runs',
    );
    const record = api.holdRead(recordAt);
    const read = driver.confirm(id, namespace);
    await record.begun;

    api.remove(podAt);
    api.remove(recordAt);
    await eventually(() => last(id)?.record === undefined, 'its end is told');
    record.letGo();

    expect((await read).record).to.equal(undefined);
    expect(last(id)?.record).to.equal(undefined);
    await driver.stop();
  });

  it('does not reappear in an uncached list of idle sandboxes', async () => {
    const api = new MemoryApi();
    const { driver, last } = await aDriver(api);
    const one = await anInstance(api, driver, { claimed: false });
    const other = await anInstance(api, driver, { claimed: false });
    for (const { id } of [one, other])
      await eventually(() => last(id)?.vitals.kind === 'available', 'both are idle');
    api.hold('pods');
    api.remove(other.podAt); // so that the look has one to read
    await driver.confirm(other.id, other.namespace);
    const held = api.holdRead(other.podAt);
    const looking = driver.idle(last(one.id)?.record?.poolUid ?? '', one.namespace, 1);
    await held.begun;

    api.remove(one.recordAt);
    api.remove(one.podAt); // of which the mirror is not told before the look is over
    await eventually(() => last(one.id)?.record === undefined, 'one has ended');
    held.letGo();

    expect((await looking).map(({ id }) => id)).to.deep.equal([]);
    api.letGo();
    await driver.stop();
  });

  it('stays gone if a late watch event shows its Pod during an uncached read that finds none', async () => {
    const api = new MemoryApi();
    const { driver } = await aDriver(api);
    const { driver: behind } = await aDriver(api);
    api.hold('pods');
    const { id, namespace, podAt } = await anInstance(api, driver);
    const alive = api.objects.get(podAt)?.metadata.resourceVersion ?? '';
    api.remove(podAt);
    const held = api.holdRead(podAt);
    const looking = behind.confirm(id, namespace);
    await held.begun;
    api.letGoUntil('pods', alive);
    for (let turn = 0; turn < 20; turn++)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    held.letGo();

    expect((await looking).vitals.kind).to.equal('gone');
    api.letGo();
    await Promise.all([driver.stop(), behind.stop()]);
  });

  it('can be retired before the mirror shows it', async () => {
    const api = new MemoryApi();
    const { driver } = await aDriver(api);
    const { driver: behind } = await aDriver(api);
    api.hold('sandboxes');
    const { id, namespace, recordAt } = await anInstance(api, driver, { claimed: false });

    await behind.retire(id, api.objects.get(recordAt)?.metadata.resourceVersion ?? '', namespace);

    expect(api.objects.has(recordAt)).to.equal(false);
    api.letGo();
    await Promise.all([driver.stop(), behind.stop()]);
  });

  it('appears if it is created during a read that found nothing', async () => {
    const api = new MemoryApi();
    const { driver, last } = await aDriver(api);
    const known = await anInstance(api, driver, { claimed: false });
    const [record, pod] = [api.objects.get(known.recordAt), api.objects.get(known.podAt)];
    api.remove(known.recordAt);
    api.remove(known.podAt);
    await eventually(() => last(known.id)?.record === undefined, 'it has ended');
    const held = api.holdRead(known.recordAt);
    const read = driver.confirm(known.id, known.namespace);
    await held.begun;
    const again = api.put(known.recordAt, {
      ...record,
      metadata: { ...record?.metadata, uid: 'made-again' },
    });
    api.put(known.podAt, {
      ...pod,
      metadata: {
        ...pod?.metadata,
        name: pod?.metadata.name ?? '',
        uid: 'pod-again',
        ownerReferences: [{ kind: 'Sandbox', uid: 'made-again' }],
      },
    });
    await eventually(
      () => last(known.id)?.record?.revision === again.metadata.resourceVersion,
      'it is told',
    );
    held.letGo();
    await read;

    expect(last(known.id)?.record?.revision).to.equal(again.metadata.resourceVersion);
    await driver.stop();
  });
});
