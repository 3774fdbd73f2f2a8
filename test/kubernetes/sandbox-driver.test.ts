import { expect } from 'chai';
import { RecordConflict } from '../../src/contracts/sandbox-driver.ts';
import { apiServer } from '../../src/k8s/api/api-client.ts';
import type { ApiClient, ApiServer } from '../../src/k8s/api/api-calls.ts';
import { readClusterAccess, type ClusterAccess } from '../../src/k8s/api/cluster-access.ts';
import { KubernetesSandboxDriver } from '../../src/k8s/sandboxes/sandbox-driver.ts';
import type { PodStreams } from '../../src/k8s/sandboxes/instance-access.ts';
import { podPath } from '../../src/k8s/sandboxes/pods/pod-resource.ts';
import { POOL_LABEL } from '../../src/k8s/sandboxes/sandbox-resource.ts';
import { ServerClock } from '../../src/k8s/api/server-clock.ts';
import { podNameOf } from '../../src/model/identifiers.ts';
import type { LaunchOrder } from '../../src/model/sandbox.ts';
import { installCustomResources } from '../../local-cluster/custom-resources.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { FactLog } from '../support/harness/fact-log.ts';
import { aClaim, aDefinition, anOrder, permitted } from '../support/builders/instance-orders.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';
import { WritesRefused } from '../support/chaos/faults/writes-refused.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { testSeals } from '../support/builders/test-seals.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';
import { testAgents } from '../support/builders/test-agents.ts';

const unused = (): never => {
  throw new Error('nothing of this suite goes into a Pod');
};
const hardOfHearing = (api: ApiServer, hears: (path: string) => boolean): ApiServer => ({
  ...api,
  lane: (name) => {
    const lane = api.lane(name);
    const watch: ApiClient['watch'] = async function* (path, query, signal) {
      for await (const event of lane.watch(path, query, signal)) if (hears(path)) yield event;
    };
    return {
      get: (...of) => lane.get(...of),
      list: (...of) => lane.list(...of),
      create: (...of) => lane.create(...of),
      replace: (...of) => lane.replace(...of),
      patch: (...of) => lane.patch(...of),
      remove: (...of) => lane.remove(...of),
      watch,
    };
  },
});

const NO_STREAMS: PodStreams = {
  exec: unused,
  openAgent: unused,
  pause: unused,
  attach: unused,
  logs: unused,
  followLogs: unused,
  dial: unused,
  whenSilent: () => {},
  gone: () => {},
  stop: async () => {},
};

describe('sandboxes as Pods of a real API server', function () {
  const controlPlane = onTheControlPlane();
  let access: ClusterAccess;
  let namespace: string;
  const replicas: Replica[] = [];

  interface Replica {
    readonly api: ApiServer;
    readonly driver: KubernetesSandboxDriver;
    readonly log: FactLog;
  }

  /** `hears`: what its watches tell it of. */
  const aReplica = async ({
    hears = (): boolean => true,
    streams = NO_STREAMS,
  }: {
    readonly hears?: (path: string) => boolean;
    readonly streams?: PodStreams;
  } = {}): Promise<Replica> => {
    const clock = new ServerClock();
    const api = apiServer({ metrics: silentMetrics, access, version: '0', clock });
    const driver = new KubernetesSandboxDriver({
      metrics: silentMetrics,
      api: hardOfHearing(api, hears),
      streams,
      volumes: { provided: false, list: async () => [] },
      pods: { agents: testAgents, runAsUser: 65_532, terminationGraceSeconds: 0 },
      clock,
      log: quietLog,
      outdated: () => undefined,
      seals: testSeals,
      teamOf: (namespace) => namespace,
    });
    const replica = { api, driver, log: new FactLog() };
    replicas.push(replica);
    await driver.watch(replica.log.report);
    return replica;
  };
  const anOrderHere = (): LaunchOrder => {
    const { record, definition } = anOrder(aDefinition({ image: 'busybox' }));
    return { record: { ...record, poolOwner: { ...record.poolOwner, namespace } }, definition };
  };
  const aClaimHere = (claimedAt = 1_000): ReturnType<typeof aClaim> => {
    const claim = aClaim({ claimedAt });
    return { ...claim, owner: { ...claim.owner, namespace } };
  };
  const launched = async ({ driver, log }: Replica) => {
    const record = await driver.launch(anOrderHere(), permitted);
    await log.when(record.id, 'available');
    return record;
  };

  before(async () => {
    await installCustomResources(controlPlane());
    access = await readClusterAccess(
      { kubeconfig: controlPlane().kubeconfig('sandpool') },
      quietLog,
    );
    namespace = await controlPlane().namespace();
  });
  afterEach(async () => {
    for (const { driver, api } of replicas.splice(0)) {
      await driver.stop();
      await api.close();
    }
  });

  it('are claimed once, even by several replicas at the same time', async () => {
    const [one, two, three] = [await aReplica(), await aReplica(), await aReplica()];
    const { id } = await launched(one);
    for (const { log } of [two, three]) await log.when(id, 'available');
    const seen = await Promise.all(
      [one, two, three].map(async ({ driver }) => (await driver.read(id)).record),
    );
    const results = await Promise.allSettled(
      [one, two, three].map(({ driver }, index) =>
        driver.claim(seen[index] ?? expect.fail(), aClaimHere(index + 1)),
      ),
    );
    const won = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    expect(won).to.have.lengthOf(1);
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).to.be.instanceOf(RecordConflict);
    for (const { driver } of [one, two, three])
      expect((await driver.read(id)).record?.claim).to.deep.equal(won[0]?.claim);
  });

  it('drop the managed fields of a claimed object, which would make each claim a fifth more expensive', async () => {
    const one = await aReplica();
    const { id } = await launched(one);
    await one.driver.claim((await one.driver.read(id)).record ?? expect.fail(), aClaimHere());
    const { metadata } = JSON.parse(
      await controlPlane().kubectl(
        'get',
        '--raw',
        `/apis/sandpool.dev/v1alpha1/namespaces/${namespace}/sandboxes/${podNameOf(id)}`,
      ),
    ) as { readonly metadata: object };
    expect(metadata).to.not.have.property('managedFields');
  });

  it('are seen as claimed and as gone by the other replicas', async () => {
    const [one, two] = [await aReplica(), await aReplica()];
    const record = await launched(one);
    await two.log.when(record.id, 'available');
    await one.driver.claim(record, aClaimHere());
    await eventually(
      async () => two.log.of(record.id).at(-1)?.record?.state === 'claimed',
      'the other replica knows of the claim',
    );
    await two.driver.release(record.id, { reason: 'deleted', exitCode: null });
    for (const { log } of [one, two]) await log.when(record.id, 'gone');
    await one.driver.forget(record.id);
    await eventually(
      async () => two.log.of(record.id).at(-1)?.record === undefined,
      'the record is gone everywhere',
    );
    expect((await two.driver.confirm(record.id, namespace)).record).to.equal(undefined);
  });

  it('are retired only at the given revision', async () => {
    const [one, two] = [await aReplica(), await aReplica()];
    const record = await launched(one);
    await two.log.when(record.id, 'available');
    const claimed = await two.driver.claim(
      (await two.driver.read(record.id)).record ?? expect.fail(),
      aClaimHere(),
    );
    expect(
      await rejection(one.driver.retire(record.id, record.revision, namespace)),
    ).to.be.instanceOf(RecordConflict);
    expect((await one.driver.read(record.id)).record?.claim).to.deep.equal(claimed.claim);
    const idle = await launched(one);
    await one.driver.retire(idle.id, idle.revision, namespace);
    expect((await two.driver.confirm(idle.id, namespace)).record).to.equal(undefined);
    await two.log.when(idle.id, 'gone');
  });

  it('become one Pod when one id is launched twice', async () => {
    const replica = await aReplica();
    const order = anOrderHere();
    const [first, second] = await Promise.all([
      replica.driver.launch(order, permitted),
      replica.driver.launch(order, permitted),
    ]);
    expect(second.revision).to.equal(first.revision);
    const pods = await controlPlane().kubectl('get', 'pods', '-n', namespace, '-o', 'name');
    expect(
      pods.split('\n').filter((name) => name === `pod/${podNameOf(order.record.id)}`),
    ).to.have.lengthOf(1);
  });

  it('are not launched by a former leader', async () => {
    const replica = await aReplica();
    const order = anOrderHere();
    const before = await rejection(replica.driver.launch(order, () => false));
    expect(before.name).to.equal('LeaseLost');
    expect((await replica.driver.confirm(order.record.id, namespace)).record).to.equal(undefined);
    let asked = 0;
    await rejection(replica.driver.launch(order, () => ++asked === 1));
    expect((await replica.driver.confirm(order.record.id, namespace)).record?.state).to.equal(
      'idle',
    );
    expect(
      (await controlPlane().kubectl('get', 'pods', '-n', namespace, '-o', 'name')).includes(
        order.record.id,
      ),
    ).to.equal(false);
  });

  it('appear in an uncached list of idle ones until they are claimed', async () => {
    const replica = await aReplica();
    const order = anOrderHere();
    const record = await replica.driver.launch(order, permitted);
    await replica.log.when(record.id, 'available');
    expect(
      (await replica.driver.idle(record.poolUid, namespace, 1)).map(({ id }) => id),
    ).to.include(record.id);
    await replica.driver.claim(record, aClaimHere());
    expect(
      (await replica.driver.idle(record.poolUid, namespace, 1)).map(({ id }) => id),
    ).to.not.include(record.id);
  });

  it('survive the removal of the label of their Pods, which is restored', async () => {
    const [one, other] = [await aReplica(), await aReplica()];
    const record = await launched(one);
    await one.driver.claim(record, aClaimHere());
    await other.log.when(record.id, 'available');
    const path = podPath(namespace, podNameOf(record.id));
    const admin = apiServer({
      metrics: silentMetrics,
      access: await readClusterAccess({ kubeconfig: controlPlane().kubeconfig('admin') }, quietLog),
      version: '0',
    });

    await admin.lane('claims').patch(path, {
      metadata: { labels: { [POOL_LABEL]: null } },
    });

    const labels = async () =>
      (
        (await admin.lane('claims').get(path)) as {
          readonly metadata: { readonly labels?: Record<string, string> };
        }
      ).metadata.labels;
    await eventually(
      async () => (await labels())?.[POOL_LABEL] === record.poolUid,
      'the label is back',
    );
    for (const { driver } of [one, other]) {
      await driver.caughtUp();
      expect((await driver.read(record.id)).vitals.kind).to.equal('available');
    }
    await admin.lane('claims').remove(path, { gracePeriodSeconds: 0 });
    for (const { log } of [one, other]) await log.when(record.id, 'gone');
    await admin.close();
  });

  it('that lost their Pod while no replica watched are found to be gone', async () => {
    const first = await aReplica();
    const record = await launched(first);
    await first.driver.claim(record, aClaimHere());
    await first.driver.stop();
    await controlPlane().kubectl(
      'delete',
      'pod',
      podNameOf(record.id),
      '-n',
      namespace,
      '--grace-period=0',
      '--force',
    );
    const second = await aReplica();
    await second.log.when(record.id, 'gone');
  });

  it('can be used on a replica whose watch has not shown their Pod yet', async () => {
    const outcome = {
      stdout: Buffer.of(),
      stderr: Buffer.of(),
      exitCode: 0,
      timedOut: false,
      truncated: false,
      durationMs: 1,
    };
    const [one, late] = [
      await aReplica(),
      await aReplica({
        hears: (path) => !path.endsWith('/pods'),
        streams: { ...NO_STREAMS, exec: async () => outcome },
      }),
    ];
    const record = await launched(one);
    const claimed = new Promise<void>((resolve) => {
      late.log.onFact = (fact) => {
        if (fact.id === record.id && fact.record?.state === 'claimed') resolve();
      };
    });
    await one.driver.claim(record, aClaimHere());
    await claimed; // of which it goes and looks for the Pod by itself
    expect(
      await late.driver.exec(
        record.id,
        { argv: ['true'], timeoutMs: NEVER_COMES_MS, outputLimit: 1 },
        new AbortController().signal,
      ),
    ).to.equal(outcome);
  });

  it("work while another tenant's RoleBinding is missing, whose sandboxes return with it", async () => {
    const one = await aReplica();
    const { id: here } = await launched(one);
    const order = anOrderHere();
    const elsewhere = await controlPlane().namespace();
    const poolOwner = { ...order.record.poolOwner, namespace: elsewhere };
    const { id: there } = await one.driver.launch(
      { ...order, record: { ...order.record, poolOwner } },
      permitted,
    );
    await one.log.when(there, 'available');
    const rights = { namespace: elsewhere, refused: 'right', lastsMs: 0 } as const;
    const missing = new WritesRefused(controlPlane(), rights);
    await missing.begin();
    const two = await aReplica();
    await two.log.when(here, 'available');
    expect(two.log.of(there).at(-1)?.vitals).to.deep.include({ nodeInTrouble: true });
    await two.driver.caughtUp();
    const { problems, warnings } = two.driver.describe();
    expect(problems).to.deep.equal([]);
    expect(warnings.join()).to.include(elsewhere).and.to.include('RoleBinding');
    await missing.end();

    await two.log.when(there, 'available');
    expect(two.driver.describe().warnings).to.deep.equal([]);
  });

  it('include all earlier writes after catching up', async () => {
    const [one, two] = [await aReplica(), await aReplica()];
    const record = await one.driver.launch(anOrderHere(), permitted);
    await two.driver.caughtUp();
    expect(two.log.of(record.id).at(-1)?.record?.id).to.equal(record.id);
  });
});
