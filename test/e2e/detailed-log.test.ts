import { expect } from 'chai';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { stocked } from '../support/harness/on-a-daemon.ts';

type Line = Readonly<Record<string, unknown>>;

describe('a detailed log', function () {
  let daemon: DaemonUnderTest;
  before(async () => {
    daemon = await DaemonUnderTest.start(['--default-pool-replicas', '2', '--log-level', 'trace']);
  });
  after(() => daemon.dispose());

  /** The last is still being written, perhaps. */
  const lines = (): readonly Line[] =>
    daemon.run
      .stderr()
      .split('\n')
      .slice(0, -1)
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Line);

  it('links each move of a sandbox to its request, and no other', async () => {
    const client = daemon.client();
    await stocked(client, 2);
    const claimed = await client.post(
      '/sandboxes',
      { poolName: 'default' },
      { headers: { 'X-Request-Id': 'the-claim' } },
    );
    const id = String(claimed.json.sandbox?.['sandboxId']);
    await client.delete(`/sandboxes/${id}`, { headers: { 'X-Request-Id': 'the-end' } });

    const moves = await within('its end is written', () => {
      const found = lines().filter((line) => line['id'] === id && line['msg'] === 'actor moved');
      return Promise.resolve(found.some(({ to }) => to === 'completed') ? found : undefined);
    });
    expect(moves.every(({ entity }) => entity === 'sandbox')).to.equal(true);
    expect(
      moves
        .filter(({ event }) => event === 'CLAIM' || event === 'CLAIMED')
        .map(({ requestId }) => requestId),
    ).to.deep.equal(['the-claim', 'the-claim']);
    expect(moves.find(({ event }) => event === 'END')).to.include({ requestId: 'the-end' });
    expect(moves[0]).to.not.have.property('requestId'); // its birth
    const traced = lines().filter(({ level }) => level === 'trace');
    expect(
      traced.find(({ msg, requestId }) => msg === 'request began' && requestId === 'the-claim'),
    ).to.include({ method: 'POST', path: '/sandboxes' });
    expect(
      traced.find(
        ({ msg, intent, requestId }) =>
          msg === 'intent' && intent === 'claim' && requestId === 'the-claim',
      ),
    ).to.include({ of: `s${id}` });
  });
});
