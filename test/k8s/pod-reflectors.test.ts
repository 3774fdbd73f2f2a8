import { expect } from 'chai';
import fc from 'fast-check';
import { PodMirrors } from '../../src/k8s/sandboxes/pods/pod-mirrors.ts';
import { PodReflectors } from '../../src/k8s/sandboxes/pods/pod-reflectors.ts';
import { podPath, podsPath } from '../../src/k8s/sandboxes/pods/pod-resource.ts';
import { POOL_LABEL } from '../../src/k8s/sandboxes/sandbox-resource.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { runs } from '../support/harness/runs.ts';
import { aDriver, anInstance, anUnwatchedDriver } from './a-driver.ts';
import { MemoryApi } from './a-memory-api.ts';

const TEAMS = ['alpha', 'beta', 'gamma'] as const;
const LOOK_EVERY_MS = 60_000;

/** A driver over one instance in the namespace of each team. */
const teamsOf = async (api: MemoryApi, teams: readonly string[] = TEAMS) => {
  const { driver: maker } = anUnwatchedDriver(api);
  const instances = new Map<string, Awaited<ReturnType<typeof anInstance>>>();
  for (const namespace of teams)
    instances.set(namespace, await anInstance(api, maker, { claimed: false, namespace }));
  return instances;
};

describe('the Pods of tenants', () => {
  it('are read in namespaces with records, and never cluster-wide', async () => {
    const api = new MemoryApi();
    api.forbid(podsPath());
    const instances = await teamsOf(api);
    const { driver, last } = await aDriver(api);

    for (const { id } of instances.values()) expect(last(id)?.vitals.kind).to.equal('available');
    expect(
      driver.reflectors().map(({ name, namespace = '' }) => `${namespace}/${name}`),
    ).to.have.members(['/sandboxes', '/nodes', ...TEAMS.map((team) => `${team}/pods`)]);
    await driver.caughtUp();
    await driver.stop();
  });

  it('are watched in a namespace from its first record on', async () => {
    const api = new MemoryApi();
    const { driver, last } = await aDriver(api);
    const { id, podAt } = (await teamsOf(api, ['late'])).get('late') ?? expect.fail();
    await eventually(() => last(id)?.vitals.kind === 'available', 'its Pod is known');

    api.remove(podAt);

    await eventually(() => last(id)?.vitals.kind === 'gone', 'its end is told');
    expect(driver.describe().problems).to.deep.equal([]);
    await driver.stop();
  });

  it('are no longer watched two minutes after the last record of a namespace', async () => {
    const api = new MemoryApi();
    const { driver, clock, last } = await aDriver(api);
    const { id, podAt, recordAt } = (await teamsOf(api, ['alpha'])).get('alpha') ?? expect.fail();
    await eventually(() => last(id)?.vitals.kind === 'available', 'its Pod is known');
    const follows = (): boolean =>
      driver.reflectors().some(({ namespace }) => namespace === 'alpha');
    api.remove(recordAt);
    api.remove(podAt);
    await eventually(() => last(id)?.record === undefined, 'its end is told');

    clock.advance(LOOK_EVERY_MS);
    expect(follows(), 'a minute later').to.equal(true);
    clock.advance(LOOK_EVERY_MS);
    expect(follows(), 'two minutes later').to.equal(false);

    const again = (await teamsOf(api, ['alpha'])).get('alpha') ?? expect.fail();
    await eventually(() => last(again.id)?.vitals.kind === 'available', 'the next one is known');
    await driver.stop();
  });

  it('that cannot be read name the RoleBinding, delay no other tenant, and appear once readable', async () => {
    const api = new MemoryApi();
    const instances = await teamsOf(api);
    const idOf = (team: string): string => instances.get(team)?.id ?? '';
    api.forbid(podsPath('beta'));
    const { driver, last } = await aDriver(api);
    await driver.caughtUp();

    expect(last(idOf('alpha'))?.vitals.kind).to.equal('available');
    expect(last(idOf('gamma'))?.vitals.kind).to.equal('available');
    // Not as one that was never launched, which a leader clears away.
    expect(last(idOf('beta'))?.vitals).to.deep.include({
      kind: 'unavailable',
      nodeInTrouble: true,
    });
    const { problems, warnings } = driver.describe();
    expect(problems).to.deep.equal([]);
    expect(warnings).to.have.lengthOf(1);
    expect(warnings[0]).to.include('namespace beta').and.to.include('RoleBinding');

    api.allow(podsPath('beta'));
    await eventually(() => last(idOf('beta'))?.vitals.kind === 'available', 'beta is known');
    expect(driver.describe().warnings).to.deep.equal([]);
    await driver.stop();
  });

  it('count as failing while they cannot be read for long', async () => {
    const api = new MemoryApi();
    const told: (string | undefined)[] = [];
    const reflectors = new PodReflectors({
      api: api.server,
      clock: new TestClock(),
      log: quietLog,
      mirrors: new PodMirrors({ report: () => undefined }),
      inUse: () => new Set(['alpha']),
      changed: (namespace) => void told.push(reflectors.trouble(namespace)),
      tuning: { timings: { firstPauseMs: 1, longestPauseMs: 2, silenceMs: 20 } },
    });
    reflectors.start();
    await reflectors.settled();
    expect(told).to.deep.equal([]);

    api.forbid(podsPath('alpha'));
    await eventually(() => told.length === 1, 'the loss of rights is told');
    expect(told[0]).to.include('has no right to read the Pods');
    api.allow(podsPath('alpha'));
    await eventually(() => told.length === 2, 'the rights are told');
    expect(told[1]).to.equal(undefined);
    await reflectors.stop();
  });

  it('are known to a new leader even if it has just seen the first record of a namespace', async () => {
    const api = new MemoryApi();
    const { driver, last } = await aDriver(api);
    api.hold('sandboxes');
    const { id } = (await teamsOf(api, ['late'])).get('late') ?? expect.fail();
    const caughtUp = driver.caughtUp();
    api.letGo();
    await caughtUp;

    // A leader clears away at once what seems never to have been launched.
    expect(last(id)?.vitals.kind).to.equal('available');
    await driver.stop();
  });

  it('match the store after any order of lost and granted rights, creations and ends', async () => {
    const step = fc.tuple(
      fc.constantFrom('forbid', 'allow', 'create', 'remove', 'catch up'),
      fc.constantFrom(...TEAMS),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const api = new MemoryApi();
        const shown = new Set<string>();
        const mirrors = new PodMirrors({
          report: ({ type, key }) => {
            if (type === 'put') shown.add(key);
            else shown.delete(key);
          },
        });
        const reflectors = new PodReflectors({
          api: api.server,
          clock: new TestClock(),
          log: quietLog,
          mirrors,
          inUse: () => new Set(TEAMS),
          changed: () => undefined,
          tuning: { timings: { firstPauseMs: 1, longestPauseMs: 2 } },
        });
        reflectors.start();
        const standing = new Set<string>();
        for (const [index, [what, team]] of steps.entries()) {
          if (what === 'forbid') api.forbid(podsPath(team));
          if (what === 'allow') api.allow(podsPath(team));
          if (what === 'catch up') await reflectors.caughtUp(LOOK_EVERY_MS);
          if (what === 'create') {
            standing.add(`${team}/sb-${index}`);
            api.put(podPath(team, `sb-${index}`), aPod(team, `sb-${index}`));
          }
          const last = [...standing].findLast((key) => key.startsWith(`${team}/`));
          if (what !== 'remove' || last === undefined) continue;
          standing.delete(last);
          api.remove(podPath(team, last.split('/')[1] ?? ''));
        }
        for (const team of TEAMS) api.allow(podsPath(team));

        await eventually(
          () => shown.size === standing.size && [...standing].every((key) => shown.has(key)),
          'the mirrors show what stands',
        );
        await eventually(() => reflectors.warnings().length === 0, 'no warning stays');
        expect(reflectors.stale).to.equal(undefined);
        await reflectors.stop();
      }),
      { numRuns: runs(100) },
    );
  });
});

const aPod = (namespace: string, name: string): object => ({
  metadata: {
    name,
    namespace,
    labels: { [POOL_LABEL]: 'pool' },
    ownerReferences: [{ kind: 'Sandbox', name, uid: `uid-${name}` }],
  },
  spec: { nodeName: 'n1' },
  status: { phase: 'Running' },
});
