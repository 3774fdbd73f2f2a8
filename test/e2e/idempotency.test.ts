import { expect } from 'chai';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import type { HttpAnswer } from '../support/harness/http-client.ts';
import { clear, stocked } from '../support/harness/on-a-daemon.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { runs } from '../support/harness/runs.ts';
import { line } from '../support/harness/line.ts';

/** Of a kill each; `TEST_RUNS` multiplies it. */
const ROUNDS = runs(3);
const CLAIMS = 8;
/** One for each claim, for the one before them, and some to spare. */
const STOCK = 12;

describe('an Idempotency-Key under kill -9', function () {
  let daemon: DaemonUnderTest;

  before(async () => {
    daemon = await DaemonUnderTest.start(line`--default-pool-replicas ${STOCK} --log-level error`);
  });
  after(() => daemon.dispose());

  const asked = (
    key: string,
    path: string,
    body: Readonly<Record<string, unknown>>,
  ): Promise<HttpAnswer | undefined> =>
    daemon
      .client()
      .post(path, body, {
        headers: { 'Idempotency-Key': key },
        signal: AbortSignal.timeout(NEVER_COMES_MS),
      })
      .catch(() => undefined);
  const claim = (key: string) => asked(key, '/sandboxes', { poolName: 'default' });
  const makePool = (name: string) =>
    asked(name, '/sandboxpools', { name, templateName: 'default', replicas: 0 });

  it('finds claims and resources from before the crash, and creates them once', async () => {
    let foundAfterACrash = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      await stocked(daemon.client(), STOCK);
      await claim(`warm-${round}`);
      const keys = Array.from({ length: CLAIMS }, (_, n) => `${round}-${n}`);
      const pool = `made-${round}`;
      const [claims, made] = [keys.map(claim), makePool(pool)];
      if (round % 2 === 0) await Promise.race(claims); // some are answered, some are under way
      else
        await new Promise<void>((resolve) => {
          setTimeout(resolve, round);
        });
      await daemon.kill();
      const [first] = await Promise.all([Promise.all(claims), made]);
      await daemon.start();

      const again = await Promise.all(keys.map(claim));

      expect(again.map((answer) => answer?.status)).to.deep.equal(keys.map(() => 201));
      expect((await daemon.client().get('/sandboxes?phase=Running')).json.total).to.equal(
        CLAIMS + 1,
      );
      for (const [place, answer] of first.entries()) {
        if (answer) expect(again[place]?.text).to.equal(answer.text);
        else if (again[place]?.headers['idempotency-replayed'] === 'true') foundAfterACrash += 1;
      }
      expect((await makePool(pool))?.status).to.equal(201);
      expect((await daemon.client().get(`/sandboxpools/${pool}`)).status).to.equal(200);
      await clear(daemon.client());
    }
    console.log(
      `      ${foundAfterACrash} of ${ROUNDS * CLAIMS} were claimed before the crash and unanswered`,
    );
  });

  it('returns the same API key after a restart', async () => {
    const ask = () => asked('k', '/api-keys', { name: 'kept' });
    const first = await ask();
    await daemon.kill();
    await daemon.start();

    expect([first?.status, (await ask())?.text]).to.deep.equal([201, first?.text]);
  });
});
