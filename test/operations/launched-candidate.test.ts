import { expect } from 'chai';
import { v7 } from 'uuid';
import { orderWithImage } from '../../src/actors/sandbox/launch-order.ts';
import { NoPlace } from '../../src/contracts/sandbox-driver.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { alice, aPolicy, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import {
  aReplica,
  sharedStores,
  type SharedReplica,
} from '../support/harness/shared-supervisors.ts';

const IMAGE = { name: 'registry.test/tool:1', field: 'templateID' };
const CLAIM = { poolName: 'default', waitMs: 10_000, image: IMAGE };
const IDLE_ONLY = aPolicy({ replicaSemantics: 'idle' });

describe('a claim of an image that its pool does not have', () => {
  const aFilledPool = async (options: Parameters<typeof aSupervisor>[0] = {}) => {
    const world = await aSupervisor({
      pool: { replicas: 1 },
      policy: IDLE_ONLY,
      images: [IMAGE.name],
      ...options,
    });
    const { supervisor, pool, driver } = world;
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    driver.startsByItself = false;
    const counts = () => supervisor.pools.get(pool.uid)?.counts;
    const launched = async (): Promise<string> => {
      let found: string | undefined;
      await eventually(() => {
        found = supervisor.ids().find((id) => supervisor.sandbox(id)?.tags.has('awaited'));
        return found !== undefined;
      }, 'a launch');
      return found ?? '';
    };
    return { ...world, counts, launched };
  };

  it('gets an extra instance that is launched for it', async () => {
    const { supervisor, driver, claim, counts, launched } = await aFilledPool();
    const claiming = claim(alice, CLAIM);
    const id = await launched();
    const stocked = await claim(alice, { poolName: 'default' });
    const second = await rejection(claim(alice, { poolName: 'default' }));

    driver.becomeAvailable(id);
    const claimed = await claiming;

    expect(claimed.id).to.equal(id);
    expect(claimed.containerImages).to.deep.equal({ main: IMAGE.name });
    expect(stocked.containerImages).to.not.deep.equal(claimed.containerImages);
    expect((second as { code?: string }).code).to.equal('POOL_EXHAUSTED');
    expect(supervisor.sandbox(id)?.state).to.equal('running');
    expect(counts()?.running).to.equal(2);
  });

  it('discards the launched instance if its client has left', async () => {
    const { supervisor, coordination, claim, launched, driver } = await aFilledPool();
    const client = new AbortController();
    const claiming = rejection(claim(alice, CLAIM, client.signal));
    const id = await launched();

    client.abort(new Error('the client left'));

    expect((await claiming).message).to.equal('the client left');
    await eventually(() => supervisor.sandbox(id) === undefined, 'retired');
    expect(driver.calls).to.include(`retire ${id}`);
    expect((await coordination.used(alice)).sandboxes).to.equal(0);
  });

  it('is refused before a launch if its image is not available', async () => {
    const { supervisor, claim } = await aFilledPool({ images: ['registry.test/other:1'] });
    const before = supervisor.ids();

    const refused = await rejection(claim(alice, CLAIM));

    expect(refused).to.include({ code: 'INVALID_ARGUMENT' });
    expect(refused.message).to.match(/^templateID: its image /);
    expect(supervisor.ids()).to.deep.equal(before);
  });

  it('is refused if the instance does not start, without an effect on the pool', async () => {
    const { supervisor, pool, driver, claim, launched, counts } = await aFilledPool();
    const claiming = rejection(claim(alice, CLAIM));
    driver.end(await launched());

    expect((await claiming).message).to.match(/^templateID: no sandbox with its image starts/);
    expect(supervisor.pools.whole(pool.uid)?.context.breaker.failures).to.equal(0);
    expect(counts()).to.deep.include({ idle: 1, starting: 0, failed: 0 });
  });

  it('is refused if the start takes too long, and the start ends', async () => {
    const { supervisor, clock, claim, launched } = await aFilledPool();
    const claiming = rejection(claim(alice, CLAIM));
    const id = await launched();

    clock.advance(CLAIM.waitMs);

    expect(await claiming).to.include({ code: 'POOL_EXHAUSTED', retryAfter: 5 });
    await eventually(() => supervisor.sandbox(id) === undefined, 'retired');
  });

  it('is refused as retryable if its start is postponed or its instance is gone', async () => {
    const { supervisor, driver, clock, claim, launched } = await aFilledPool();
    driver.failNext('launch', new NoPlace('too many sandboxes wait'));
    const deferred = await rejection(claim(alice, CLAIM));
    const claiming = rejection(claim(alice, CLAIM));
    supervisor.send(await launched(), { type: 'RETIRE', now: clock.now() });

    expect(deferred).to.include({ code: 'POOL_EXHAUSTED', retryAfter: 5 });
    expect(deferred.message).to.match(/too many sandboxes wait/);
    expect(await claiming).to.include({ code: 'POOL_EXHAUSTED', retryAfter: 5 });
  });

  it('waits for a second pull of its image, but not for a third', async () => {
    const { supervisor, driver, claim, launched } = await aFilledPool();
    const claiming = rejection(claim(alice, CLAIM));
    const id = await launched();
    driver.hinder(id, 'ImageUnavailable', 'ErrImagePull: a registry did not answer');
    const reasonOf = () => supervisor.sandbox(id)?.context.unready;
    await eventually(() => reasonOf()?.startsWith('ErrImagePull') === true, 'one pull failed');
    expect(supervisor.sandbox(id)?.state).to.equal('starting');
    driver.hinder(id, 'ImageUnavailable', 'ImagePullBackOff: not found');

    expect((await claiming).message).to.match(/no sandbox with its image starts: ImagePullBackOff/);
  });

  it('is refused as unavailable when the daemon stops, like later claims', async () => {
    const { supervisor, claim, launched } = await aFilledPool();
    const claiming = rejection(claim(alice, CLAIM));
    const id = await launched();
    supervisor.launches.stop();

    expect(await claiming).to.include({ code: 'UNAVAILABLE' });
    await eventually(() => supervisor.sandbox(id) === undefined, 'retired');
    expect(await rejection(claim(alice, CLAIM))).to.include({ code: 'UNAVAILABLE' });
    expect(supervisor.ids()).to.have.length(1);
  });

  it('is refused once its pool is deleted', async () => {
    const { supervisor, pool, claim, launched } = await aFilledPool();
    const claiming = rejection(claim(alice, CLAIM));
    await launched();
    await supervisor.pools.change(pool.uid, (record) => ({ ...record, deleting: 'keep-running' }));

    expect(await claiming).to.include({ code: 'CONFLICT' });
  });

  it('leaves no sandbox behind if its pool is deleted by force in the meantime', async () => {
    const { supervisor, pool, driver, claim, launched } = await aFilledPool();
    const claiming = rejection(claim(alice, CLAIM));
    const id = await launched();
    driver.hold('claim');
    driver.becomeAvailable(id);
    await eventually(() => driver.calls.includes(`claim ${id}`), 'about to be claimed');
    await supervisor.pools.change(pool.uid, (record) => ({ ...record, deleting: 'force' }));
    driver.letGo('claim');

    expect(await claiming).to.include({ code: 'CONFLICT' });
    await eventually(() => supervisor.sandbox(id) === undefined, 'ended');
  });

  it('is admitted after a search for the sandbox of an earlier request', async () => {
    const { driver, coordination, claim, launched } = await aFilledPool();
    const admitClaim = coordination.admitClaim.bind(coordination);
    coordination.admitClaim = async (entry) =>
      entry.looked ? await admitClaim(entry) : 'look-first';
    const claiming = claim(alice, CLAIM);
    const id = await launched();
    driver.becomeAvailable(id);

    expect((await claiming).id).to.equal(id);
  });

  it("counts towards its pool's limit of running sandboxes from its launch on", async () => {
    const { supervisor, driver, claim, launched, counts } = await aFilledPool({
      policy: aPolicy(),
    });
    const claiming = rejection(claim(alice, CLAIM));
    const id = await launched();
    expect(await rejection(claim(alice, CLAIM))).to.include({ code: 'POOL_EXHAUSTED' });
    const stocked = await claim(alice, { poolName: 'default' });
    driver.becomeAvailable(id);

    expect(await claiming).to.include({ code: 'POOL_EXHAUSTED' });
    await eventually(() => supervisor.sandbox(id) === undefined, 'retired');
    expect(supervisor.sandbox(stocked.id)?.state).to.equal('running');
    expect(counts()?.running).to.equal(1);
  });

  it('launches nothing beyond the quota', async () => {
    const { driver, claim } = await aFilledPool({ sandboxLimit: 1 });
    await claim(alice, { poolName: 'default' });
    const launches = (): number => driver.calls.filter((call) => call.startsWith('launch')).length;
    const before = launches();

    expect(await rejection(claim(alice, CLAIM))).to.include({ code: 'QUOTA_EXCEEDED' });
    expect(launches() - before).to.be.at.most(1); // the pool's own replacement
  });

  it('is limited to eight starts at once', async () => {
    const { claim, supervisor } = await aFilledPool();
    const clients = new AbortController();
    const many = Array.from({ length: 9 }, () => rejection(claim(alice, CLAIM, clients.signal)));

    expect(await Promise.race(many)).to.include({ code: 'TOO_MANY_WAITING' });
    clients.abort(new Error('the clients left'));
    await Promise.all(many);
    await eventually(() => supervisor.ids().length === 1, 'all given back');
  });
});

describe('an instance launched for one claim, with several replicas', () => {
  const aPair = async (): Promise<{
    readonly stores: Awaited<ReturnType<typeof sharedStores>>;
    readonly leader: SharedReplica;
    readonly other: SharedReplica;
  }> => {
    const stores = await sharedStores({
      pool: { replicas: 1 },
      startsByItself: false,
      images: [IMAGE.name],
    });
    const shared = aCoordination(stores.clock);
    const leader = await aReplica(stores, shared);
    leader.lead();
    return { stores, leader, other: await aReplica(stores, shared) };
  };

  it('is launched by the replica with the request, not by the leader', async () => {
    const { stores, leader, other } = await aPair();
    const claiming = other.claim(alice, CLAIM);
    const launched = (): string | undefined =>
      leader.supervisor
        .ids()
        .find((id) => leader.supervisor.sandbox(id)?.context.record?.claimBy !== undefined);
    await eventually(() => launched() !== undefined, 'seen by the leader');
    const id = launched() ?? '';
    stores.truth.becomeAvailable(id);

    expect((await claiming).id).to.equal(id);
    await eventually(() => leader.supervisor.sandbox(id)?.state === 'running', 'seen as claimed');
  });

  it('is not retired by the leader until its claim deadline, ready or not', async () => {
    const { stores, leader } = await aPair();
    const { clock, truth, pool } = stores;
    const claimBy = clock.now() + 9_000;
    const launch = (id: string, permitted: () => boolean): Promise<unknown> =>
      truth.launch(
        orderWithImage(pool, id, { image: IMAGE.name, now: clock.now(), claimBy }),
        permitted,
      );
    const [ready, recordAlone] = [v7(), v7()];
    await launch(ready, () => true);
    truth.becomeAvailable(ready);
    truth.betweenWrites = () => new Promise(() => undefined); // its replica died there
    void launch(recordAlone, () => true);
    const stateOf = (id: string) => leader.supervisor.sandbox(id)?.state;
    await eventually(() => stateOf(ready) === 'idle', 'one is ready');
    await eventually(() => stateOf(recordAlone) === 'starting', 'one is a record alone');

    expect(await rejection(leader.claim(alice, { poolName: 'default' }))).to.include({
      code: 'POOL_EXHAUSTED',
    });
    clock.advance(8_000);
    expect([stateOf(ready), stateOf(recordAlone)]).to.deep.equal(['idle', 'starting']);
    clock.advance(1_000);

    await eventually(
      () => stateOf(ready) === undefined && stateOf(recordAlone) === undefined,
      'both are retired',
    );
  });
});
