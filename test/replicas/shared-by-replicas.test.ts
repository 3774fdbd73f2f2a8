import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { commandDaemon } from '../../src/cli/common/control.ts';
import { formatApiKey } from '../../src/model/api-key-text.ts';
import { approvalIdOf } from '../http/an-approving-server.ts';
import { aReceiver, isSigned, SECRET, status, type Receiver } from '../webhooks/webhook-support.ts';
import { EventReader } from '../support/harness/event-reader.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { HttpClient, type HttpAnswer } from '../support/harness/http-client.ts';
import { aPodTemplate } from '../../local-cluster/replicas.ts';
import { onReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

describe('state shared by three replicas', function () {
  let folder: string | undefined;
  const controlPlane = onTheControlPlane();
  let receiver: Receiver;
  const env: Record<string, string> = {
    SANDPOOL_APPROVALS_RULES: 'require operation=createEnv',
    SANDPOOL_APPROVALS_WEBHOOKS_FOR: '10s',
  };
  before(async () => {
    receiver = await aReceiver();
    folder = mkdtempSync(join(tmpdir(), 'webhooks-'));
    const secretFile = join(folder, 'secret');
    writeFileSync(secretFile, SECRET);
    env['SANDPOOL_APPROVALS_WEBHOOKS'] = `${receiver.url} secretFile=${secretFile}`;
  });
  const replicas = onReplicas(controlPlane, { env });
  after(async () => {
    await receiver?.stop();
    if (folder !== undefined) rmSync(folder, { recursive: true, maxRetries: 5 });
  });
  let tenant: string;

  before(async () => {
    tenant = await replicas().tenant('blue', 'bea');
    await controlPlane().apply(aPodTemplate('shared-pod'));
    const pool = { name: 'p', templateName: 'shared-pod', replicas: 2 };
    await eventually(
      async () => [201, 409].includes((await at(0).post('/sandboxpools', pool)).status),
      'the pool is made',
    );
  });

  const opened: HttpClient[] = [];
  const at = (replica: number, key = tenant): HttpClient => {
    const client = new HttpClient(replicas().replica(replica).port, key);
    opened.push(client);
    return client;
  };
  afterEach(() => {
    for (const client of opened.splice(0)) client.close();
  });
  const idOf = ({ json }: HttpAnswer): string => json.sandbox?.['sandboxId'] ?? '';
  const claimed = (
    replica: number,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<HttpAnswer> =>
    untilAnswered(201, () => at(replica).post('/sandboxes', { poolName: 'p' }, { headers }));

  it('includes one stream of events, which a client can continue on another replica', async () => {
    const follow = async (replica: number, after?: string): Promise<EventReader> =>
      (
        await EventReader.open(replicas().replica(replica).port, '/events', {
          'SERVICE-API-KEY': tenant,
          ...(after === undefined ? {} : { 'Last-Event-ID': after }),
        })
      ).read();
    const of = (reader: EventReader, id: string) =>
      reader.events
        .filter(({ data }) => data['sandboxId'] === id)
        .map(({ data }) => data['reason']);
    const [here, there] = [await follow(0), await follow(1)];
    const id = idOf(await claimed(1));
    // Each replica tells of what it did itself, so any order is right.
    const isTold = (reader: EventReader, ...reasons: readonly string[]): boolean =>
      reasons.every((reason) => of(reader, id).includes(reason));
    await eventually(
      () => [here, there].every((reader) => isTold(reader, 'Claimed')),
      'both are told',
    );
    const last = here.events.at(-1)?.id ?? '';
    here.close();

    expect((await at(2).delete(`/sandboxes/${id}`)).status).to.equal(200);
    const again = await follow(2, last);
    await eventually(
      () => [again, there].every((reader) => isTold(reader, 'Killing', 'Completed')),
      'its end is told',
    );

    // when it started is told apart from its claim, before or after
    expect(
      of(again, id)
        .map(String)
        .filter((reason) => reason !== 'Started')
        .toSorted(),
    ).to.deep.equal(['Completed', 'Killing']);
    expect(
      of(there, id).filter(
        (reason) => reason === 'Claimed' || reason === 'Completed' || reason === 'Killing',
      ),
    ).to.have.length(3);
    expect(again.events.some(({ event }) => event === 'reset')).to.equal(false);
    expect(
      again.events.find(({ data }) => data['sandboxId'] === id && data['reason'] === 'Completed')
        ?.data,
    ).to.include({ endReason: 'deleted' });
    for (const replica of [0, 1, 2]) {
      const reasons = async () =>
        ((await at(replica).get(`/sandboxes/${id}/events`)).json.items ?? []).map(({ reason }) =>
          String(reason),
        );
      await eventually(
        async () => (await reasons()).join().includes('Claimed,Killing,Completed'),
        'its own list, everywhere',
      ).catch(async (error: unknown) => {
        throw new Error(`${String(error)}: replica ${replica} shows ${(await reasons()).join()}`);
      });
    }
    there.close();
    again.close();
  });

  it('includes the order of waiting claims, which get one instance each as the pool grows', async () => {
    const name = 'waited-for';
    await untilAnswered(201, () =>
      at(0).post('/sandboxpools', { name, templateName: 'shared-pod', replicas: 0 }),
    );
    const waiting = [0, 1, 2, 0, 1, 2].map((replica) =>
      untilAnswered(201, () =>
        at(replica).post('/sandboxes', {
          poolName: name,
          waitTimeoutSeconds: NEVER_COMES_MS / 1_000,
        }),
      ),
    );
    await untilAnswered(200, () => at(1).put(`/sandboxpools/${name}`, { replicas: 6 }));
    const ids = (await Promise.all(waiting)).map(idOf);

    expect(new Set(ids).size).to.equal(6);
    expect((await at(2).post('/sandboxes', { poolName: name })).json.errorCode).to.equal(
      'POOL_EXHAUSTED',
    );
    await at(0).delete(`/sandboxpools/${name}?force=true`);
  });

  it('includes the effect of a request whose replica was killed', async () => {
    const headers = { 'Idempotency-Key': 'over-there' };
    const first = await claimed(0, headers);
    const kept = await at(1).post('/sandboxes', { poolName: 'p' }, { headers });
    expect([kept.status, kept.text]).to.deep.equal([201, first.text]);

    await eventually(
      async () =>
        Object((await at(0).get('/sandboxpools/p')).json.template?.['status'])['idleReplicas'] ===
        1,
      'there is another',
    );
    const under = { 'Idempotency-Key': 'cut-off' };
    const cut = at(0)
      .post('/sandboxes', { poolName: 'p' }, { headers: under })
      .then(
        (answer) => (answer.status === 201 ? idOf(answer) : undefined),
        () => undefined,
      );
    await eventually(
      async () => ((await at(1).get('/sandboxes?phase=Running')).json.total ?? 0) >= 2,
      'it is claimed',
    );
    await replicas().replica(0).kill();
    const known = await cut;
    const again = idOf(await claimed(1, under));
    expect(again).to.equal(known ?? again);
    await eventually(
      async () => (await at(2).get('/sandboxes?phase=Running')).json.total === 2,
      'there are two, and no third',
    );
    await replicas().replica(0).start();
  });

  it('includes the valid keys, at once', async () => {
    const made = await at(0).post('/api-keys', {});
    const key = made.json.apiKey ?? '';
    expect((await at(1, key).get('/sandboxes')).status).to.equal(200);
    expect((await at(2).delete(`/api-keys/${made.json.keyId ?? ''}`)).status).to.equal(200);

    for (const replica of [0, 1, 2])
      await eventually(
        async () => (await at(replica, key).get('/sandboxes')).status === 401,
        'it is refused',
      );
  });

  it('includes the number of rejected keys per address', async () => {
    const bad = formatApiKey({ keyId: 'aaaaaaaaaaaaaaaa', secret: 'b'.repeat(43) });
    const statuses = [];
    for (let n = 0; n < 24; n += 1) statuses.push((await at(n % 3, bad).get('/sandboxes')).status);

    expect(statuses).to.include(401);
    for (const replica of [0, 1, 2])
      expect((await at(replica, bad).get('/sandboxes')).status).to.equal(429);
    expect((await at(0).get('/sandboxes')).status).to.equal(200);
  });

  it('includes dead letters of webhooks, which any replica lists and sends again', async () => {
    receiver.answers.push(...Array.from({ length: 20 }, () => status(500)));
    const id = approvalIdOf(
      await at(0).post('/envs', { name: 'e', templateRef: { name: 'shared-pod' } }),
    );
    const ask = (replica: number, path: string) =>
      commandDaemon(replicas().replica(replica).dataDir, path, {});
    const lists = async (replica: number): Promise<boolean> =>
      JSON.stringify(await ask(replica, '/webhooks/list')).includes(`${id}.requested`);
    await eventually(
      async () => (await Promise.all([0, 1, 2].map(lists))).every(Boolean),
      'all list it',
    );
    receiver.answers.length = 0;
    receiver.received.length = 0;
    await ask(1, '/webhooks/retry');
    await receiver.got(1);
    await eventually(
      async () => !(await Promise.all([0, 1, 2].map(lists))).some(Boolean),
      'none lists it',
    );

    expect(receiver.ids()).to.include(`${id}.requested`);
    expect(receiver.received.every((message) => isSigned(message))).to.equal(true);
  });
});
