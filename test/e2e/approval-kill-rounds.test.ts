import { expect } from 'chai';
import { setTimeout as pause } from 'node:timers/promises';
import { atConsole } from '../support/harness/a-console-session.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { HttpClient, type HttpAnswer } from '../support/harness/http-client.ts';
import { clear, stocked } from '../support/harness/on-a-daemon.ts';

const ROUNDS = 8;
const CLAIMS = 8;

describe('approved claims and kill -9', function () {
  this.timeout(180_000);
  let daemon: DaemonUnderTest;

  before(async () => {
    daemon = await DaemonUnderTest.start([
      '--default-pool-replicas',
      `${CLAIMS}`,
      '--approvals-rules',
      'require operation=claimSandbox',
      '--log-level',
      'error',
    ]);
  });
  after(() => daemon?.dispose());

  const ask = (name: string): Promise<HttpAnswer | undefined> =>
    daemon
      .client()
      .post(
        '/sandboxes',
        { poolName: 'default', metadata: { name } },
        { signal: AbortSignal.timeout(10_000) },
      )
      .catch(() => undefined);

  /** Sessions of one machine end with the daemon: a person logs in to each run of it. */
  const approve = async (ids: readonly string[]): Promise<void> => {
    const client = new HttpClient(daemon.run.port);
    const owner = await atConsole(daemon, client);
    for (const id of ids) {
      const decided = await owner.approve(id);
      expect(decided.status, decided.text).to.equal(200);
    }
    client.close();
  };

  it('have one effect for each grant, whenever the daemon is killed', async () => {
    let unanswered = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      await stocked(daemon.client(), CLAIMS);
      const names = Array.from({ length: CLAIMS }, (_, n) => `${round}-${n}`);
      const held = await Promise.all(names.map(ask));
      const ids = held.map((answer) => String(answer?.json.detail?.['approvalId']));
      expect(held.map((answer) => answer?.json.errorCode)).to.deep.equal(
        names.map(() => 'APPROVAL_REQUIRED'),
      );
      await approve(ids);

      const asked = names.map(ask);
      // Some are answered, or some are under way.
      if (round % 2 === 0) await Promise.race(asked);
      else await pause(2 * round);
      await daemon.kill();
      unanswered += (await Promise.all(asked)).filter((answer) => answer === undefined).length;
      await daemon.start();
      const again = await Promise.all(names.map(ask));

      for (const answer of again) expect(answer?.status, answer?.text).to.equal(201);
      for (const [n, name] of names.entries()) {
        const running = await daemon.client().get(`/sandboxes?metadata.name=${name}`);
        expect(running.json.total, name).to.equal(1);
        const { json } = await daemon.client().get(`/approvals/${ids[n]}`);
        expect(Object(json)['status'], name).to.equal('consumed');
      }
      expect((await daemon.client().get('/sandboxes?phase=Running')).json.total).to.equal(CLAIMS);
      await clear(daemon.client());
    }
    expect(unanswered, 'some were under way at a kill').to.be.greaterThan(0);
  });
});
