import { expect } from 'chai';
import type { Env } from '../../src/cli/client/wire.ts';
import { AS_SHIPPED, DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { aTenant, poolStatus } from '../support/harness/on-a-daemon.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { onTheSharedDaemon } from '../support/harness/shared-daemon.ts';
import { line } from '../support/harness/line.ts';

const LEAST = 1;
const MOST = 5;

describe('an env under load', function () {
  const shared = onTheSharedDaemon();
  let daemon: DaemonUnderTest;
  let client: HttpClient;

  before(async () => {
    daemon = shared();
    client = daemon.client();
    const done = async (...args: readonly string[]): Promise<void> => {
      const { code, stderr } = await daemon.cli(['envs', ...args]);
      expect(code, stderr).to.equal(0);
    };
    await done('create', 'web', '--template', 'default');
    await done(
      ...line`members add web --name web --replicas ${LEAST}
        --max-replicas ${MOST}`,
    );
    await done(
      ...line`groups set web web --min ${LEAST} --max ${MOST} --mode Moderate
        --cooldown 1s --idle-threshold 0 --quiet-window 10s --saturation-cooldown 1s
        --idle-timeout 2s --stabilization 2s --protection 1s`,
    );
    await done('status', 'web', '--watch', '--timeout', '2m');
  });
  after(() => client.delete('/envs/web?force=true'));

  const sizeOf = async (): Promise<number> => {
    const { stdout, stderr } = await daemon.cli(['envs', 'get', 'web', '-o', 'json']);
    expect(stderr).to.equal('');
    return (JSON.parse(stdout) as Env).status.desiredReplicas;
  };

  it('grows for waiting and refused claims up to its maximum, and shrinks again', async () => {
    const ids: string[] = [];
    const waiting = await Promise.all(
      [1, 2, 3].map(() =>
        client.post('/sandboxes', { poolName: 'web', waitTimeoutSeconds: NEVER_COMES_MS / 1_000 }),
      ),
    );
    for (const { status, text, json } of waiting) {
      expect(status, text).to.equal(201);
      ids.push(json.sandbox?.['sandboxId'] ?? '');
    }
    expect(await sizeOf()).to.be.within(3, MOST);

    // Each is asked for until there is one; what is refused makes the next.
    for (; ids.length < MOST;) {
      ids.push(
        await within(`claim ${ids.length + 1}`, async () => {
          const { status, json } = await client.post('/sandboxes', { poolName: 'web' });
          return status === 201 ? json.sandbox?.['sandboxId'] : undefined;
        }),
      );
    }
    expect((await client.post('/sandboxes', { poolName: 'web' })).json.errorCode).to.equal(
      'POOL_EXHAUSTED',
    );
    expect(await sizeOf()).to.equal(MOST);
    await within(
      'it says why',
      async () =>
        /that is its maximum[^]*\n {2}last, .*: it could not grow: [^]*\n {2}before that, .*: web from \d to 5: /.test(
          (await daemon.cli(['envs', 'explain', 'web'])).stdout,
        ) || undefined,
    );

    for (const id of ids) await client.delete(`/sandboxes/${id}`);
    await within('it is as small as it was', async () => (await sizeOf()) === LEAST || undefined);
    await within(
      'and has an instance to claim',
      async () => (await poolStatus(client, 'web'))['idleReplicas'] === LEAST || undefined,
    );
  });
});

describe('a group of two members at its maximum', function () {
  const daemon = onTheSharedDaemon();

  it('serves waiting claims on one member even if idle instances of the other use it up', async () => {
    const client = await aTenant(daemon(), 'growing', 'ann');
    const made = async (answer: ReturnType<typeof client.post>, wanted = 201): Promise<void> => {
      const { status, text } = await answer;
      expect(status, text).to.equal(wanted);
    };
    await made(client.post('/envs', { name: 'two', templateRef: { name: 'default' } }));
    for (const name of ['front', 'back'])
      await made(
        client.post('/envs/two/sandboxpools', {
          name,
          scalingGroup: name === 'front' ? undefined : 'front',
          replicas: name === 'front' ? 0 : 3,
          minReplicas: 0,
          maxReplicas: 3,
        }),
      );
    await made(
      client.put('/envs/two/autoscaling/groups/front', { minReplicas: 3, maxReplicas: 3 }),
      200,
    );
    await within(
      'the back has it all',
      async () => (await poolStatus(client, 'back'))['idleReplicas'] === 3 || undefined,
    );

    for (const answer of [1, 2, 3].map(() =>
      client.post('/sandboxes', { poolName: 'front', waitTimeoutSeconds: NEVER_COMES_MS / 1_000 }),
    ))
      await made(answer);
  });
});

describe('the env created at the first start', function () {
  let daemon: DaemonUnderTest;
  before(async () => {
    daemon = await DaemonUnderTest.start(AS_SHIPPED);
  });
  after(() => daemon.dispose());

  it('serves 30 waiting claims at once, by REST and by the command line', async () => {
    const client = daemon.client();
    const [answers, ends] = await Promise.all([
      Promise.all(
        Array.from({ length: 27 }, () =>
          client.post('/sandboxes', {
            poolName: 'default',
            waitTimeoutSeconds: NEVER_COMES_MS / 1_000,
          }),
        ),
      ),
      Promise.all(Array.from({ length: 3 }, () => daemon.cli(['sandboxes', 'create']))),
    ]);

    expect(answers.filter(({ status }) => status !== 201).map(({ text }) => text)).to.deep.equal(
      [],
    );
    expect(ends.map(({ code, stderr }) => [code, stderr])).to.deep.equal(Array(3).fill([0, '']));
  });
});
