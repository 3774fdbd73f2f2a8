import { expect } from 'chai';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import type { HttpAnswer, HttpClient } from '../support/harness/http-client.ts';
import { aTenant, claim, run, stocked } from '../support/harness/on-a-daemon.ts';

/** Each NUL is six bytes of the answer. */
const MOST_NULS = 'head -c 1048576 /dev/zero; head -c 1048576 /dev/zero >&2';
const NULS = '\0'.repeat(1_048_576);

describe("a tenant whose commands print more than the daemon's memory", function () {
  let daemon: DaemonUnderTest;
  let loud: HttpClient;
  let other: HttpClient;

  before(async () => {
    const options = process.env['NODE_OPTIONS'];
    process.env['NODE_OPTIONS'] = '--max-old-space-size=160';
    daemon = await DaemonUnderTest.start(['--default-pool-replicas', '1']).finally(() => {
      if (options === undefined) delete process.env['NODE_OPTIONS'];
      else process.env['NODE_OPTIONS'] = options;
    });
    loud = daemon.client();
    other = await aTenant(daemon, 'blue', 'ada');
    await other.post('/sandboxpools', { name: 'quiet', templateName: 'default', replicas: 1 });
    await stocked(other, 1, 'quiet');
  });

  after(() => daemon.dispose());

  it('is refused beyond its share, without an effect on others', async () => {
    const [id, others] = [await claim(loud), await claim(other, 'quiet')];
    const answers: HttpAnswer[] = [];
    const commands = Array.from({ length: 32 }, async () => {
      answers.push(await loud.post(`/sandboxes/${id}/exec`, { command: MOST_NULS }));
    });
    const all = Promise.all(commands);
    for (let round = 0; round < 5; round += 1) {
      expect((await run(other, others, `echo ${round}`)).stdout).to.equal(`${round}\n`);
    }
    await all;

    expect(daemon.run.process.exitCode).to.equal(null);
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.length).to.be.above(0);
    for (const { status, headers, json } of refused) {
      expect([status, json.errorCode]).to.deep.equal([429, 'RATE_LIMITED']);
      expect(Number(headers['retry-after'])).to.be.at.least(1);
    }
    for (const { json } of answers.filter(({ status }) => status === 200)) {
      expect(json.stdout === NULS && json.stderr === NULS, 'an answer is whole').to.equal(true);
    }
    const again = await within('its command has room again', async () => {
      const answer = await loud.post(`/sandboxes/${id}/exec`, { command: MOST_NULS });
      return answer.status === 429 ? undefined : answer;
    });
    expect(again.json).to.include({ exitCode: 0, truncated: false });
    await within(
      'all room is given back',
      async () => /^sandpool_answer_bytes 0$/m.test(await daemon.metrics()) || undefined,
    );
  });
});
