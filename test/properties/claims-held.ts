import { expect } from 'chai';
import { OutcomeUnknown, RecordConflict } from '../../src/contracts/sandbox-driver.ts';
import type { Coordination } from '../../src/contracts/coordination.ts';
import { requestOperations } from '../../src/actors/request/request-operations.ts';
import { answerOnce } from '../../src/http/corridor/idempotency.ts';
import { unavailable } from '../../src/model/refusals.ts';
import { claimSandbox } from '../../src/actors/claim/claim-sandbox.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { limitsOf } from '../support/fakes/memory-quotas.ts';
import { noEnvs } from '../support/fakes/no-envs.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { testClaimEnv } from '../support/builders/test-claim-env.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

export const KEYS = ['k1', 'k2'] as const;

/** `at` chooses an object. */
export type ClaimStep =
  | { readonly do: 'claim'; readonly waits: boolean; readonly key: number }
  | { readonly do: 'reservations' | 'writes'; readonly are: 'slow' | 'answered' }
  | { readonly do: 'reservation' | 'write'; readonly fails: 'refused' | 'unknown' | 'conflict' }
  | {
      readonly do: 'unavailable' | 'available' | 'dies' | 'throws' | 'retired' | 'cancel';
      readonly at: number;
    }
  | { readonly do: 'time'; readonly ms: number };

/** With everything that may happen between a claim's pick and its end. */
export const aClaimWorld = async () => {
  const world = await aSupervisor({ pool: { replicas: 3 } });
  const { supervisor, driver, clock, coordination, pendingRequests, pool } = world;
  const counts = () => supervisor.pools.get(pool.uid)?.counts;
  await eventually(() => counts()?.idle === 3, 'filled');
  const settle = async () => {
    for (let turn = 0; turn < 25; turn++)
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
  };

  /** By key: the instance of the last admission. */
  const named = new Map<string, string>();
  const faults: ('refused' | 'unknown' | 'conflict')[] = [];
  let gate: { readonly open: Promise<void>; readonly letGo: () => void } | undefined;
  const misnamed: string[] = [];
  const slow: Coordination = {
    ...coordination,
    admitClaim: async (entry) => {
      await gate?.open;
      const fault = faults.shift();
      // A request is opened before any fault, so one in flight here is never this claim's.
      if (entry.request && entry.open && (fault === 'refused' || fault === 'conflict')) {
        const opened = await coordination.openRequest(entry.request, entry.open);
        if (opened.kind !== 'new') return { opened };
      }
      if (fault === 'refused') throw unavailable('the coordination is away');
      if (fault === 'conflict') return 'full';
      const admission = await coordination.admitClaim(entry);
      if (typeof admission === 'object') return admission;
      if (admission === 'admitted' && entry.request) named.set(entry.request.key, entry.instance);
      if (fault === 'unknown') throw unavailable('its answer was lost');
      return admission;
    },
  };
  const write = driver.claim.bind(driver);
  driver.claim = async (seen, claim) => {
    const key = KEYS.find((each) => each === claim.mark?.key);
    if (key !== undefined && named.get(key) !== seen.id) misnamed.push(`${key}: ${seen.id}`);
    return await write(seen, claim);
  };
  const work = new Set<Promise<void>>();
  const claim = claimSandbox({
    metrics: silentMetrics,
    envs: noEnvs,
    supervisor,
    driver,
    claimEnv: testClaimEnv,
    coordination: slow,
    clock,
    pendingRequests,
    quotaLimits: limitsOf({ sandboxes: 50 }),
    background: (_name, each) => {
      const settled = each.catch(() => undefined).then(() => void work.delete(settled));
      work.add(settled);
    },
  });

  const open = new Set<AbortController>();
  const answered: { readonly key: string | undefined; readonly id: string }[] = [];
  const begin = (waits: boolean, key: string | undefined): void => {
    const client = new AbortController();
    open.add(client);
    const request = { poolName: 'default', waitMs: waits ? 20_000 : undefined };
    const carried =
      key === undefined
        ? claim(alice, request, client.signal).then(({ id }) => id)
        : answerOnce(
            { operations: requestOperations(slow), log: quietLog },
            {
              mark: { key, body: 'body' },
              caller: alice,
              credential: 'secret',
              opensItself: true,
              isElsewhere: false,
              earlier: undefined,
              pendingOutcome: () => pendingRequests.settled({ key, body: 'body' }),
              settle: async () => undefined,
              carryOut: async (opening) => ({
                status: 201,
                headers: {},
                text: (await claim(alice, { ...request, opening }, client.signal)).id,
                secret: false,
              }),
            },
          ).then(({ text }) => text);
    void carried
      .then(
        (id) => {
          answered.push({ key, id });
        },
        () => undefined,
      )
      .finally(() => {
        open.delete(client);
      });
  };
  const unclaimed = () => supervisor.index.list({ phase: 'Idle' }, 0, 100).ids;
  const one = <T>(all: readonly T[], at: number): T | undefined =>
    all[at % Math.max(1, all.length)];

  const take = async (step: ClaimStep): Promise<void> => {
    const id = 'at' in step ? one(unclaimed(), step.at) : undefined;
    switch (step.do) {
      case 'claim':
        begin(step.waits, KEYS[step.key]);
        break;
      case 'reservations':
        gate?.letGo();
        gate = step.are === 'slow' ? aGate() : undefined;
        break;
      case 'writes':
        driver.letGo('claim');
        if (step.are === 'slow') driver.hold('claim');
        break;
      case 'reservation':
        faults.push(step.fails);
        break;
      case 'write':
        driver.failNext(
          'claim',
          step.fails === 'conflict' ? new RecordConflict() : new OutcomeUnknown(),
        );
        break;
      case 'unavailable':
        if (id !== undefined && driver.running().includes(id)) driver.becomeUnavailable(id);
        break;
      case 'available':
        if (id !== undefined && driver.running().includes(id)) driver.becomeAvailable(id);
        break;
      case 'dies':
        if (id !== undefined) driver.end(id);
        break;
      case 'retired':
        if (id !== undefined) supervisor.send(id, { type: 'RETIRE', now: clock.now() });
        break;
      case 'throws':
        if (id !== undefined)
          supervisor.send(id, {
            type: 'FACT',
            now: clock.now(),
            get fact(): never {
              throw new Error('poison');
            },
          });
        break;
      case 'cancel':
        one([...open], step.at)?.abort(new Error('its client has gone'));
        break;
      case 'time':
        clock.advance(step.ms);
        break;
    }
    await settle();
    const held = supervisor.ids().filter((each) => supervisor.index.isHeld(each)).length;
    expect(held, 'held by claims that are over').to.be.at.most(open.size + work.size);
  };

  /** Ends all faults and claims. */
  const calm = async (): Promise<void> => {
    gate?.letGo();
    gate = undefined;
    faults.length = 0;
    for (const operation of ['claim', 'retire', 'read'] as const) {
      driver.letGo(operation);
      driver.heal(operation);
    }
    for (const id of driver.running())
      if (supervisor.sandbox(id)?.state === 'idle') driver.becomeAvailable(id);
    for (let round = 0; round < 400 && (open.size > 0 || work.size > 0 || round < 60); round++) {
      clock.advance(500);
      await settle();
    }
  };
  return { ...world, claim, take, calm, settle, counts, open, answered, misnamed };
};

const aGate = () => {
  let letGo = (): void => undefined;
  const open = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  return {
    open,
    letGo: () => {
      letGo();
    },
  };
};
