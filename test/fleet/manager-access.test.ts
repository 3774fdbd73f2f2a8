import { expect } from 'chai';
import { sqliteRecordStore } from '../../src/embedded/store/record-store.ts';
import type { Caller } from '../../src/model/tenant.ts';
import { ManagerAccess, managers } from '../../src/fleet/replication/manager-access.ts';
import type { ManagersOperations } from '../../src/services/fleet-views.ts';
import { aDatabase } from '../embedded/store/a-database.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { rejection } from '../support/harness/rejection.ts';

const ADMIN: Caller = { namespace: 'n', team: 't', user: 'u', role: 'admin', keyId: 'own' };
const [OF_MANAGER, OVER_LINK] = ['promoted', 'linked'].map((keyId) => ({ ...ADMIN, keyId })) as [
  Caller,
  Caller,
];

describe('disconnecting managers', () => {
  const clock = new TestClock();
  let store: ReturnType<typeof sqliteRecordStore>;
  let close: () => Promise<void>;

  beforeEach(async () => {
    const opened = await aDatabase();
    close = opened.close;
    store = sqliteRecordStore(opened.database, quietLog);
  });
  afterEach(() => close());

  /** A replica of the worker, which is started once it returns. */
  const aReplica = async (): Promise<{ access: ManagerAccess; heard: boolean[] }> => {
    const access = new ManagerAccess({ clusters: store.clusters, clock, clusterId: 'west' });
    const heard: boolean[] = [];
    access.follow((isCutOff) => heard.push(isCutOff));
    await access.start();
    return { access, heard };
  };
  const asked = (access: ManagerAccess, addresses = ['wss://hub']): ManagersOperations =>
    managers({
      ...{ access, addresses, links: () => 0 },
      apiKeys: {
        find: (keyId) => (keyId === 'promoted' ? ({ promotedBy: 'hub' } as never) : undefined),
      },
      isLinked: ({ keyId }) => keyId === 'linked',
    });

  it('takes effect on every replica, over restarts, until they are accepted again', async () => {
    const [one, other] = [await aReplica(), await aReplica()];
    await store.clusters.create({ clusterId: 'east', joinHash: 'a'.repeat(64) }); // another's
    const { setManagers, getManagers } = asked(one.access);
    const cutOffAt = clock.now();
    expect(await setManagers(ADMIN, { cutOff: true })).to.include({ cutOffAt });
    clock.advance(1_000);
    expect(await setManagers(ADMIN, { cutOff: true })).to.include({ cutOffAt }); // as it was
    const again = await aReplica();
    expect([one, other, again].map(({ heard }) => heard)).to.deep.equal([[true], [true], [true]]);
    expect(again.access.cutOffAt).to.equal(cutOffAt);
    expect(await asked(other.access).setManagers(ADMIN, { cutOff: false })).to.deep.equal({
      ...{ addresses: ['wss://hub'], cutOffAt: undefined, links: 0 },
    });
    await setManagers(ADMIN, { cutOff: false });
    expect(getManagers().cutOffAt).to.equal(undefined);
    expect([one, other].map(({ heard }) => heard)).to.deep.equal([
      [true, false],
      [true, false],
    ]);
    expect((await store.clusters.list()).map(({ clusterId }) => clusterId)).to.deep.equal(['east']);
  });

  it('is refused to managers, in any form, and to workers without a manager', async () => {
    const { access } = await aReplica();
    for (const caller of [OF_MANAGER, OVER_LINK])
      for (const cutOff of [true, false])
        expect(await rejection(asked(access).setManagers(caller, { cutOff }))).to.include({
          code: 'FORBIDDEN',
        });
    expect(await rejection(asked(access, []).setManagers(ADMIN, { cutOff: true }))).to.deep.include(
      { code: 'INVALID_ARGUMENT', detail: { field: 'cutOff' } },
    );
    expect(access.isCutOff).to.equal(false);
  });

  it('fails if the store cannot keep the setting', async () => {
    const { clusters } = store;
    const forgetful = new ManagerAccess({
      ...{ clock, clusterId: 'west' },
      clusters: {
        ...{ get: (key: string) => clusters.get(key), remove: clusters.remove.bind(clusters) },
        ...{ list: clusters.list.bind(clusters), caughtUp: clusters.caughtUp.bind(clusters) },
        ...{ update: clusters.update.bind(clusters), watch: clusters.watch.bind(clusters) },
        create: ({ clusterId }) => clusters.create({ clusterId }), // by definitions of before
      },
    });
    await forgetful.start();
    expect(await rejection(forgetful.set(true))).to.include({ code: 'UNAVAILABLE' });
  });
});
