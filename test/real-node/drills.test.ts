import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REAL_NODE, realNodeImage } from '../../local-cluster/real-node.ts';
import { FakeClock, noFakeTime } from '../support/chaos/faults/clock-jump.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient, type HttpAnswer } from '../support/harness/http-client.ts';
import { onReplicas } from '../support/cluster/on-replicas.ts';
import { rejection } from '../support/harness/rejection.ts';
import { realTemplate } from '../support/cluster/real-pods.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

const HOUR_S = 3_600;
/**
 * What takes too long for every run, or room on the disk: the kubelet stands still for 90 s, a disk
 * is full, and 110 Pods, which is what a node takes by default.
 */
const LONG = process.env['TEST_LONG'] !== undefined;
/** What a disk that fills loses, twice what lacked to its limit. */
const FILLING = 2 * 2 ** 30;
const PODS = LONG ? 110 : 20;
const or = (whole: string, part: string): string =>
  LONG ? whole : `${part} (with TEST_LONG=1: ${whole})`;

/** Flags for Pods of no controller, and for the agent's volume. */
const EVERYTHING = ['--force', '--delete-emptydir-data'] as const;

describe('drills on a real node', function () {
  const cluster = onTheRealNode();
  const clock = noFakeTime === undefined ? new FakeClock() : undefined;
  const replicas = onReplicas(cluster, {
    count: 1,
    own: clock ? () => ({ env: clock.env }) : undefined,
  });
  let client: HttpClient;

  before(async () => {
    await cluster().apply(
      realTemplate(
        'waits',
        ['sh', '-c', 'trap exit TERM; while :; do sleep 1000 & wait $!; done'],
        { image: 'busybox' },
      ),
    );
    client = new HttpClient(replicas().replica(0).port, await replicas().tenant('tenant', 'alice'));
  });
  after(() => {
    client.close();
    clock?.remove();
  });

  const kubectl = (...args: readonly string[]): Promise<string> => cluster().kubectl(...args);
  const exec = (id: string, command = 'echo there'): Promise<HttpAnswer> =>
    client.post(`/sandboxes/${id}/exec`, { command });
  const runs = async (id: string): Promise<void> => {
    const { status, text, json } = await untilAnswered(200, () => exec(id));
    expect(json.stdout, `${status} ${text}`).to.equal('there\n');
  };
  const claim = (poolName: string): Promise<HttpAnswer> => client.post('/sandboxes', { poolName });
  const claimed = async (poolName: string): Promise<string> =>
    idOf(await untilAnswered(201, () => claim(poolName)));
  const idOf = ({ json }: HttpAnswer): string => String(json.sandbox?.['sandboxId']);
  const shows = (id: string, status: string): Promise<void> =>
    eventually(
      async () => (await client.get(`/sandboxes/${id}`)).json.sandbox?.['status'] === status,
      `${id} is ${status}`,
    );
  const pool = (name: string, replicaCount: number, part: object = {}): Promise<HttpAnswer> =>
    untilAnswered(201, () =>
      client.post('/sandboxpools', {
        name,
        templateName: 'waits',
        replicas: replicaCount,
        ...part,
      }),
    );
  const remove = (name: string): Promise<HttpAnswer> =>
    untilAnswered(200, () => client.delete(`/sandboxpools/${name}?force=true`));
  interface Status {
    readonly phase: string;
    readonly idleReplicas: number;
    readonly conditions: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly message: string;
    }[];
  }
  const statusOf = async (name: string): Promise<Status> =>
    (await client.get(`/sandboxpools/${name}`)).json.template?.['status'] as Status;
  const isDegraded = async (name: string, reason: string, words: string): Promise<void> => {
    let last: Status | undefined;
    await eventually(
      async () => {
        last = await statusOf(name);
        return (
          last.phase === 'Degraded' &&
          last.conditions.some(
            (one) =>
              one.type === 'Degraded' && one.reason === reason && one.message.includes(words),
          )
        );
      },
      `${name} is Degraded: ${reason}: ${words}`,
      () => last,
    );
  };
  const isFull = (name: string, idle: number): Promise<void> =>
    eventually(
      async () => (await statusOf(name)).idleReplicas === idle,
      `${name} has ${idle} idle`,
    );
  /** Claims from a pool that has nothing idle until the scheduler's words are told. */
  const isRefused = async (poolName: string, words: string): Promise<HttpAnswer> => {
    let last: HttpAnswer | undefined;
    await eventually(
      async () => {
        last = await claim(poolName);
        return last.status === 429 && String(last.json.detail?.['problem']).includes(words);
      },
      `a claim is refused: ${words}`,
      () => last?.text,
    );
    const { conditions } = await statusOf(poolName);
    expect(conditions.find(({ type }) => type === 'Degraded')?.status).to.equal('True');
    return last!; // it was seen
  };
  const isHonest = ({ status, headers, text }: HttpAnswer): void => {
    expect([429, 503], text).to.include(status);
    expect(Number(headers['retry-after']), text).to.be.greaterThan(0);
  };

  it(`refuse commands with 503 and hand out no idle sandbox of a hanging kubelet, for ${or('90 s', 'a moment')}`, async () => {
    await pool('still', 3);
    const id = await claimed('still');
    await isFull('still', 2);
    const { realNode } = cluster();
    await realNode.halt('kubelet');
    try {
      isHonest(await exec(id));
      isHonest(await claim('still'));
      if (LONG) {
        const begun = performance.now();
        const readiness = (): Promise<string> =>
          kubectl(
            'get',
            'node',
            REAL_NODE,
            '-o',
            'jsonpath={.status.conditions[?(@.type=="Ready")].status}',
          );
        await eventually(async () => (await readiness()) === 'Unknown', 'its node is not ready');
        isHonest(await claim('still'));
        isHonest(await exec(id));
        await eventually(() => performance.now() - begun > 90_000, '90 s are over');
      }
      await shows(id, 'Running');
    } finally {
      await realNode.goOn('kubelet');
    }
    await runs(id);
    const others = [await claimed('still'), await claimed('still')];
    expect(new Set([id, ...others]).size).to.equal(3);
    for (const one of others) await runs(one);
    await remove('still');
  });

  it('keep a claimed sandbox through a drain, and report its end without a budget', async () => {
    await pool('drained', 2);
    const id = await claimed('drained');
    try {
      const kept = await rejection(kubectl('drain', REAL_NODE, ...EVERYTHING, '--timeout=5s'));
      expect(kept.message).to.contain('disruption budget');
      await runs(id);
      await eventually(
        async () => (await client.get(`/sandboxes/${id}/events`)).text.includes('NodeLeaving'),
        'its owner is told',
      );
      const namespace = replicas().namespaceOf('tenant');
      await kubectl('delete', 'poddisruptionbudgets', '--all', '--namespace', namespace);
      await kubectl('drain', REAL_NODE, ...EVERYTHING, '--timeout=60s');
      await eventually(
        async () => (await ended(id))?.['endReason'] === 'killed',
        'it is told to have been killed',
      );
      const refused = await isRefused('drained', 'unschedulable');
      expect(refused.json.detail?.['hint']).to.contain('nodes accept no new Pods');
    } finally {
      await kubectl('uncordon', REAL_NODE);
    }
    const next = await claimed('drained');
    expect(next).to.not.equal(id);
    await runs(next);
    await remove('drained');
  });
  const ended = async (id: string): Promise<Readonly<Record<string, unknown>> | undefined> =>
    (await client.get('/sandboxes?phase=Completed')).json.items?.find(
      (item) => item['sandboxId'] === id,
    );

  it('explain an image that no registry has, and recover after an edit', async () => {
    await pool('misspelt', 2, { overrides: { image: 'sandpool.test/bussybox:1' } });
    await isDegraded('misspelt', 'ImageUnavailable', 'bussybox');
    const refused = await claim('misspelt');
    expect(refused.status).to.equal(429);
    expect(refused.json.detail?.['problem']).to.contain('bussybox');
    expect(refused.json.detail?.['hint']).to.contain('overrides.image');

    const mended = await client.put('/sandboxpools/misspelt', {
      overrides: { image: realNodeImage('busybox') },
    });
    expect(mended.status, mended.text).to.equal(200);
    await runs(await claimed('misspelt'));
    await eventually(async () => (await statusOf('misspelt')).phase !== 'Degraded', 'it is well');
    await remove('misspelt');
  });

  it('hand out idle sandboxes under disk pressure, explain failed starts, and refill the pool', async () => {
    await pool('pressed', 3);
    const id = await claimed('pressed');
    await isFull('pressed', 2);
    const pressure = {
      type: 'DiskPressure',
      status: 'True',
      reason: 'KubeletHasDiskPressure',
      message: 'kubelet has disk pressure',
    };
    const press = (): Promise<string> =>
      kubectl(
        ...['patch', 'node', REAL_NODE, '--subresource=status', '--type=strategic'],
        ...['-p', JSON.stringify({ status: { conditions: [pressure] } })],
      );
    const shown = (path: string): Promise<string> =>
      kubectl('get', 'node', REAL_NODE, '-o', `jsonpath=${path}`);
    const stands = (type: string): Promise<string> =>
      shown(`{.status.conditions[?(@.type=="${type}")].status}`);
    const taints = (): Promise<string> => shown('{.spec.taints[*].key}');
    // Written for the kubelet, which does not write its status meanwhile: one that evicts removes
    // images too, and no registry has those of this node. What it writes as it begins takes it back.
    await kubeletWith({ nodeStatusUpdateFrequency: '1h', nodeStatusReportFrequency: '1h' }, press);
    try {
      await eventually(
        async () =>
          `${await stands('DiskPressure')} ${await stands('Ready')} ${await taints()}` ===
          'False True ',
        'its kubelet has written how it stands',
      );
      await runs(id);
      await press();
      await eventually(async () => (await taints()).includes('disk-pressure'), 'it is tainted');
      const others = [await claimed('pressed'), await claimed('pressed')];
      expect(new Set([id, ...others]).size).to.equal(3);
      expect((await client.delete(`/sandboxes/${others.pop()}`)).status).to.equal(200);
      await isDegraded('pressed', 'Unschedulable', 'untolerated taint');
      const refused = await claim('pressed');
      expect(refused.status).to.equal(429);
      expect(refused.json.detail?.['problem']).to.contain('untolerated taint');
      for (const one of [id, ...others]) await shows(one, 'Running');
    } finally {
      await kubeletWith({});
    }
    await claimed('pressed');
    await remove('pressed');
  });

  if (LONG)
    it('report to the owner that a full disk ended the sandbox, and refill the pool', async () => {
      await pool('full', 3);
      const id = await claimed('full');
      await isFull('full', 2);
      const { bavail, bsize } = statfsSync(tmpdir());
      const limit = String(bavail * bsize - FILLING / 2);
      await kubeletWith({
        // With its isolation a kubelet tells how full disks are. It removes no image: no registry has those
        // of this node.
        localStorageCapacityIsolation: true,
        imageMinimumGCAge: '1h',
        evictionHard: { 'nodefs.available': limit },
        evictionPressureTransitionPeriod: '1s',
      });
      await runs(id);
      const filling = join(tmpdir(), `sandpool-filling-${process.pid}`);
      try {
        execFileSync('fallocate', ['--length', String(FILLING), filling]);
        const isTold = async (): Promise<boolean> => (await ended(id))?.['endReason'] === 'killed';
        await eventually(isTold, 'it is told to have been killed');
        // The kubelet ends one Pod after another, and refuses some that were on their way to it.
        await isFull('full', 0);
        await isRefused('full', 'untolerated taint');
      } finally {
        rmSync(filling, { force: true });
        await kubeletWith({});
      }
      await runs(await claimed('full'));
      await remove('full');
    });
  const kubeletWith = async (
    changes: object,
    meanwhile: () => Promise<unknown> = async () => undefined,
  ): Promise<void> => {
    const { realNode } = cluster();
    realNode.configure(changes);
    await realNode.end('kubelet');
    await meanwhile();
    await realNode.begin('kubelet');
  };

  it("end nothing and show true times if a replica's clock is an hour ahead of the node's", async function () {
    const fake = clock ?? skipBecause(this, noFakeTime ?? '');
    await pool('timed', 2);
    const before = await claimed('timed');
    fake.set(HOUR_S);
    try {
      await eventually(
        async () =>
          Date.parse(String((await client.get('/sandboxes')).headers['date'])) - Date.now() >
          HOUR_S * 900,
        'its clock is off',
      );
      const answer = await untilAnswered(201, () => claim('timed'));
      expect(
        Math.abs(Date.parse(String(answer.json.sandbox?.['claimedAt'])) - Date.now()),
      ).to.be.lessThan(HOUR_S * 500);
      for (const id of [before, idOf(answer)]) {
        await runs(id);
        await shows(id, 'Running');
      }
    } finally {
      fake.set(0);
    }
    await shows(before, 'Running');
    await remove('timed');
  });

  it(`fill a pool of ${or('110', String(PODS))} at once, and hand out each instance to one caller only`, async () => {
    await pool('many', PODS);
    await isFull('many', PODS);
    const answers = await Promise.all(Array.from({ length: PODS }, () => claim('many')));
    const ids = answers.filter(({ status }) => status === 201).map(idOf);
    expect(new Set(ids).size).to.equal(ids.length);
    for (const answer of answers) if (answer.status !== 201) isHonest(answer);
    await remove('many');
  });
});
