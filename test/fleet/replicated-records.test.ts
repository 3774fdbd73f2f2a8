import type { GlobalTemplate } from '../../src/contracts/fleet/global-templates.ts';
import type { PromotedKey } from '../../src/contracts/fleet/promoted-keys.ts';
import type { ToldVisit } from '../../src/contracts/fleet/told-records.ts';
import { replicatedRecordsContract, type ReplicaLink } from '../contracts/replicated-records.ts';
import { ALONE_MS, ClusterKeys } from './a-promoting-fleet.ts';
import { aDocument, ClusterTemplates } from './a-templated-cluster.ts';

const FULL = (): Promise<never> => Promise.reject(new Error('the disk is full'));

/** Returns what has the writes of a store fail, or not any more. */
const breaking = () => {
  const broken = new Map<object, object>();
  return <Store extends { create: unknown; update: unknown; remove: unknown }>(
    store: Store,
    isBroken: boolean,
  ): void => {
    const { create, update, remove } = store;
    if (isBroken && !broken.has(store)) {
      broken.set(store, { create, update, remove });
      Object.assign(store, { create: FULL, update: FULL, remove: FULL });
    } else if (!isBroken) {
      Object.assign(store, broken.get(store));
      broken.delete(store);
    }
  };
};

const linkOf = <Change>(
  visit: ToldVisit<Change>,
  change: (
    numbers: readonly number[],
    terms: { readonly isWhole: boolean; readonly isGone: boolean },
  ) => Change,
): ReplicaLink => ({
  report: (numbers, { isWhole }) => visit.take(change(numbers, { isWhole, isGone: false })),
  gone: (numbers) => visit.take(change(numbers, { isWhole: false, isGone: true })),
  caughtUp: () => visit.caughtUp(new Set()),
  left: () => visit.left(),
  end: () => visit.end(),
});

replicatedRecordsContract('promoted keys', async (clock) => {
  const hub = await ClusterKeys.start(1, clock);
  const west = await ClusterKeys.start(2, clock);
  const keys: PromotedKey[] = [];
  for (let n = 0; n < 10; n += 1) {
    const { record } = await hub.mint({ lifetimeMs: 10 * ALONE_MS });
    await hub.promote(record);
    keys.push(hub.keys.find(record.keyId)!);
  }
  const breaks = breaking();
  return {
    leadsTo: (address, manager) => west.copies.leadsTo(address, manager),
    begin: (manager) =>
      linkOf(west.copies.begin(manager), (numbers, { isGone }) => {
        const meant = numbers.map((number) => keys[number]!);
        const now = clock.now();
        return isGone
          ? { keys: [], gone: meant.map(({ keyId }) => keyId), now }
          : { keys: meant, gone: [], now };
      }),
    cutOff: () => west.copies.cutOff(),
    stop: () => west.copies.stop(),
    restart: () => {
      west.copies.stop();
      return west.restart();
    },
    kept: () => [...keys.keys()].filter((number) => west.store.records.has(keys[number]!.keyId)),
    stored: () => west.store.records.size,
    breakStore: (isBroken) => breaks(west.store, isBroken),
  };
});

replicatedRecordsContract('global templates', async (clock) => {
  const west = await ClusterTemplates.start(clock);
  const told = (number: number): GlobalTemplate => ({
    ...{ globalId: `an-id-of-template-${number}`, name: `t${number}`, version: '1', createdAt: 1 },
    document: aDocument(`t${number}`),
  });
  const breaks = breaking();
  let isBroken = false;
  return {
    leadsTo: (address, manager) => west.copies.leadsTo(address, manager),
    begin: (manager) =>
      linkOf(west.copies.begin(manager), (numbers, { isWhole, isGone }) => ({
        templates: isGone ? [] : numbers.map(told),
        gone: isGone ? numbers.map((number) => told(number).globalId) : [],
        ...(isWhole ? { whole: 'more' as const } : {}),
      })),
    cutOff: () => west.copies.cutOff(),
    stop: () => west.copies.stop(),
    restart: async () => {
      await west.restart();
      breaks(west.store, isBroken);
    },
    kept: () =>
      [...Array(10).keys()].filter((number) => {
        const { managedBy = '' } = west.get(`t${number}`) ?? {};
        return managedBy !== '';
      }),
    stored: () => west.store.records.size,
    breakStore: (broken) => {
      isBroken = broken;
      breaks(west.store, broken);
    },
  };
});
