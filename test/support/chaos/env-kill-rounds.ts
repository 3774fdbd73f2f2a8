import { expect } from 'chai';
import type { Env } from '../../../src/cli/client/wire.ts';
import { DaemonUnderTest, within } from '../harness/a-daemon.ts';
import { Dice } from '../builders/hostile-values.ts';
import type { HttpAnswer, HttpClient } from '../harness/http-client.ts';
import { NEVER_COMES_MS } from '../harness/eventually.ts';
import { line } from '../harness/line.ts';

export interface EnvRounds {
  readonly rounds: number;
  readonly seed: number;
  readonly onRound?: (round: number, held: number) => void;
}

const CLIENTS = 4;
const MOST = 6;
const MEMBERS = ['a', 'b'] as const;
/** However busy the machine is. */
const CALL_MS = NEVER_COMES_MS;

class Acknowledged {
  readonly held = new Set<string>();
  /** The last acknowledged label; a later one may have landed. */
  label = 0;
  tried = 0;
}

/**
 * Kills the daemon with -9 during claims and changes of an env. Rejects if an acknowledged one was
 * lost, bounds or counts are violated, or sizing has stopped.
 */
export const envKillRounds = async ({ rounds, seed, onRound }: EnvRounds): Promise<void> => {
  const dice = new Dice(seed);
  const daemon = await DaemonUnderTest.start(line`--default-pool-replicas 0 --log-level error`);
  try {
    await anEnv(daemon.client());
    const known = new Acknowledged();
    for (let round = 0; round < rounds; round += 1) {
      const load = new Load(daemon.client(), known);
      await new Promise((resolve) => {
        setTimeout(resolve, 50 + dice.below(600));
      });
      await daemon.kill();
      await load.end();
      await daemon.start();
      await judge(daemon.client(), known);
      onRound?.(round, known.held.size);
      for (const id of await runningOf(daemon.client()))
        if (!known.held.has(id) || dice.chance(0.6)) await ended(daemon.client(), known, id);
    }
    await servesAgain(daemon.client(), known);
  } finally {
    await daemon.dispose();
  }
};

const anEnv = async (client: HttpClient): Promise<void> => {
  expect(
    (await client.post('/envs', { name: 'e', templateRef: { name: 'default' } })).status,
  ).to.equal(201);
  for (const name of MEMBERS) {
    const { status, text } = await client.post('/envs/e/sandboxpools', {
      name,
      scalingGroup: name === MEMBERS[0] ? undefined : MEMBERS[0],
      minReplicas: 0,
      maxReplicas: MOST,
    });
    expect(status, text).to.equal(201);
  }
  const group = {
    minReplicas: 0,
    maxReplicas: MOST,
    scaleUpPolicy: { mode: 'Aggressive', cooldownSeconds: 1 },
    scaleDownPolicy: { idleTimeoutSeconds: 2, stabilizationSeconds: 0, protectionWindowSeconds: 0 },
  };
  expect((await client.put('/envs/e/autoscaling/groups/a', group)).status).to.equal(200);
};

class Load {
  readonly #work: Promise<unknown>;
  #over = false;

  constructor(client: HttpClient, known: Acknowledged) {
    const again = async (act: (turn: number) => Promise<void>): Promise<void> => {
      for (let turn = 0; !this.#over; turn += 1)
        await act(turn).catch(
          () =>
            new Promise((resolve) => {
              setTimeout(resolve, 5);
            }),
        ); // cut off: nothing was acknowledged
    };
    this.#work = Promise.all([
      ...Array.from({ length: CLIENTS }, (_, n) =>
        again(async (turn) => {
          const { status, json } = await sent(client, 'POST', '/sandboxes', {
            poolName: MEMBERS[(n + turn) % 2],
            waitTimeoutSeconds: turn % 3,
          });
          if (status === 201) known.held.add(json.sandbox?.['sandboxId'] ?? '');
        }),
      ),
      again(async () => {
        const label = (known.tried += 1);
        if (
          (await sent(client, 'PATCH', '/envs/e', { labels: { turn: String(label) } })).status ===
          200
        )
          known.label = label;
      }),
      again(async (turn) => {
        await sent(client, 'PUT', '/envs/e/autoscaling/groups/a', { minReplicas: turn % 3 });
      }),
    ]);
  }

  async end(): Promise<void> {
    this.#over = true;
    await this.#work;
  }
}

const sent = (
  client: HttpClient,
  method: string,
  path: string,
  body: object,
): Promise<HttpAnswer> => client.send(method, path, { body, signal: AbortSignal.timeout(CALL_MS) });

const allRun = async (client: HttpClient, ids: Iterable<string>): Promise<void> => {
  for (const id of ids) {
    const { status, json, text } = await client.get(`/sandboxes/${id}`);
    expect([status, json.sandbox?.['status']], text).to.deep.equal([200, 'Running']);
  }
};

const judge = async (client: HttpClient, known: Acknowledged): Promise<void> => {
  await allRun(client, known.held);
  const { env } = await envOf(client);
  const label = Number(env.labels['turn'] ?? 0);
  expect(label, 'the last change that was acknowledged, or a later one').to.be.within(
    known.label,
    known.tried,
  );
  let seen = {};
  await within('what the env counts is what there is', async () => {
    const running = (await runningOf(client)).length;
    const { runningReplicas, desiredReplicas } = (await envOf(client)).env.status;
    seen = { running, runningReplicas, desiredReplicas };
    expect(desiredReplicas).to.be.at.most(MOST);
    return (runningReplicas === running && desiredReplicas >= running) || undefined;
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${JSON.stringify(seen)}`);
  });
  await allRun(client, known.held);
  const { items = [] } = (await client.get('/envs/e/autoscaling/groups/a/decisions')).json;
  const ids = items.map((item) => Number(item['id']));
  expect(ids, 'the newest first, each once').to.deep.equal(
    [...new Set(ids)].sort((one, other) => other - one),
  );
};

const envOf = async (client: HttpClient): Promise<{ readonly env: Env }> =>
  JSON.parse((await client.get('/envs/e')).text) as { readonly env: Env };

const runningOf = async (client: HttpClient): Promise<readonly string[]> =>
  ((await client.get('/sandboxes?phase=Running&limit=1000')).json.items ?? []).map(
    ({ sandboxId }) => String(sandboxId),
  );

const ended = async (client: HttpClient, known: Acknowledged, id: string): Promise<void> => {
  expect((await client.delete(`/sandboxes/${id}`)).status).to.equal(200);
  known.held.delete(id);
};

/** The env grows by claims to its maximum, and shrinks to its minimum without them. */
const servesAgain = async (client: HttpClient, known: Acknowledged): Promise<void> => {
  for (const id of await runningOf(client)) await ended(client, known, id);
  const claims = await Promise.all(
    Array.from({ length: MOST / 2 }, () =>
      client.post('/sandboxes', { poolName: 'a', waitTimeoutSeconds: 50 }),
    ),
  );
  expect(claims.filter(({ status }) => status !== 201).map(({ text }) => text)).to.deep.equal([]);
  for (const { json } of claims) await client.delete(`/sandboxes/${json.sandbox?.['sandboxId']}`);
  expect((await client.put('/envs/e/autoscaling/groups/a', { minReplicas: 0 })).status).to.equal(
    200,
  );
  await within(
    'it is small again',
    async () => (await envOf(client)).env.status.desiredReplicas <= 2 || undefined,
  );
};
