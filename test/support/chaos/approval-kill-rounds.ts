import { expect } from 'chai';
import { DaemonUnderTest } from '../harness/a-daemon.ts';
import { Dice } from '../builders/hostile-values.ts';
import { HttpClient, type HttpAnswer } from '../harness/http-client.ts';
import { stocked } from '../harness/on-a-daemon.ts';
import { atConsole } from '../harness/a-console-session.ts';
import { NEVER_COMES_MS } from '../harness/eventually.ts';
import { line } from '../harness/line.ts';

export interface ApprovalRounds {
  readonly rounds: number;
  readonly seed: number;
  readonly onRound?: (round: number, unanswered: number) => void;
}

const CLAIMS = 8;
const CALL_MS = NEVER_COMES_MS;
/** In ms after the requests were sent; some are answered by then. */
const KILL_WITHIN_MS = 120;

/**
 * Kills the daemon with -9 during approved claims and deletes, and repeats them. Rejects if a grant
 * had no effect or several, or a repetition another answer. Resolves with the number of unanswered
 * requests.
 */
export const approvalKillRounds = async ({
  rounds,
  seed,
  onRound,
}: ApprovalRounds): Promise<number> => {
  const dice = new Dice(seed);
  const daemon = await DaemonUnderTest.start([
    ...line`--default-pool-replicas ${CLAIMS} --approvals-rules`,
    'require role=user operation=claimSandbox|deleteSandbox',
    '--log-level',
    'error',
  ]);
  let unanswered = 0;
  try {
    for (let round = 0; round < rounds; round += 1) {
      const held = new Held(daemon, dice);
      await stocked(daemon.client(), CLAIMS);
      const names = Array.from({ length: CLAIMS }, (_, n) => `${round}-${n}`);
      const claimed = await held.approvedAndKilled(
        names.map(
          (name) => (client: HttpClient) =>
            sent(client, 'POST', '/sandboxes', { poolName: 'default', metadata: { name } }),
        ),
      );
      const ids = claimed.map(sandboxIdOf);
      for (const answer of claimed) expect(answer.status, answer.text).to.equal(201);
      await expectRunning(daemon.client(), names, ids);

      const ended = await held.approvedAndKilled(
        ids.map((id) => (client: HttpClient) => sent(client, 'DELETE', `/sandboxes/${id}`)),
      );
      for (const answer of ended) expect(answer.status, answer.text).to.be.oneOf([200, 404]);
      await expectRunning(daemon.client(), [], []);
      unanswered += held.unanswered;
      onRound?.(round, held.unanswered);
    }
  } finally {
    await daemon.dispose();
  }
  return unanswered;
};

type Request = (client: HttpClient) => Promise<HttpAnswer>;

class Held {
  unanswered = 0;
  readonly #daemon: DaemonUnderTest;
  readonly #dice: Dice;

  constructor(daemon: DaemonUnderTest, dice: Dice) {
    [this.#daemon, this.#dice] = [daemon, dice];
  }

  /** Earlier answers were the same. */
  async approvedAndKilled(requests: readonly Request[]): Promise<readonly HttpAnswer[]> {
    const daemon = this.#daemon;
    const asked = await this.#all(requests);
    const approvals = asked.map((answer) => {
      expect(answer?.json.errorCode, answer?.text).to.equal('APPROVAL_REQUIRED');
      return String(answer?.json.detail?.['approvalId']);
    });
    await this.#approve(approvals);
    const underWay = this.#all(requests);
    await new Promise((resolve) => {
      setTimeout(resolve, this.#dice.below(KILL_WITHIN_MS));
    });
    await daemon.kill();
    const before = await underWay;
    await daemon.start();

    const after = await Promise.all(requests.map((request) => request(daemon.client())));
    for (const [n, answer] of after.entries()) {
      const first = before[n];
      if (!first) this.unanswered += 1;
      else if (answer.status === 201) expect(sandboxIdOf(answer)).to.equal(sandboxIdOf(first));
      const { json } = await daemon.client().get(`/approvals/${approvals[n]}`);
      expect(Object(json)['status'], answer.text).to.equal('consumed');
    }
    return after;
  }

  /** Undefined if the answer was lost. */
  #all(requests: readonly Request[]): Promise<readonly (HttpAnswer | undefined)[]> {
    const client = this.#daemon.client();
    return Promise.all(requests.map((request) => request(client).catch(() => undefined)));
  }

  /** On one machine sessions end with the daemon, so a person logs in to each run. */
  async #approve(approvals: readonly string[]): Promise<void> {
    const client = new HttpClient(this.#daemon.run.port);
    try {
      const operator = await atConsole(this.#daemon, client);
      for (const id of approvals) {
        const { status, text } = await operator.approve(id);
        expect(status, text).to.equal(200);
      }
    } finally {
      client.close();
    }
  }
}

const sent = (
  client: HttpClient,
  method: string,
  path: string,
  body?: object,
): Promise<HttpAnswer> => client.send(method, path, { body, signal: AbortSignal.timeout(CALL_MS) });

const sandboxIdOf = ({ json }: HttpAnswer): string => json.sandbox?.['sandboxId'] ?? '';

const expectRunning = async (
  client: HttpClient,
  names: readonly string[],
  ids: readonly string[],
): Promise<void> => {
  for (const [n, name] of names.entries()) {
    const { json } = await client.get(`/sandboxes?phase=Running&metadata.name=${name}`);
    expect(
      json.items?.map(({ sandboxId }) => sandboxId),
      name,
    ).to.deep.equal([ids[n]]);
  }
  expect((await client.get('/sandboxes?phase=Running')).json.total).to.equal(ids.length);
};
