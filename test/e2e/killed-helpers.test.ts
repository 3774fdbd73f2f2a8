import { expect } from 'chai';
import { spawnerPid } from '../support/chaos/kill-rounds.ts';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { killIfAlive } from '../support/harness/kill-if-alive.ts';
import { claim } from '../support/harness/on-a-daemon.ts';

interface Shown {
  readonly processId: string;
  readonly pid: number;
  readonly status: string;
  readonly exitCode?: number;
}

/** Jobs of each of the two sandboxes. */
const JOBS = 50;

describe('programs of sandboxes', () => {
  let daemon: DaemonUnderTest;

  beforeEach(async () => {
    daemon = await DaemonUnderTest.start();
  });
  afterEach(() => daemon.dispose());

  const listed = async (id: string): Promise<readonly Shown[]> => {
    const { text } = await daemon.client().get(`/sandboxes/${id}/processes`);
    const { items } = JSON.parse(text) as { readonly items: readonly Shown[] };
    return items.toSorted((one, other) => one.pid - other.pid);
  };
  const start = async (id: string, n: number): Promise<void> => {
    const command = ['sh', '-c', 'read line; exit "$line"'];
    const job = { command, stdin: true, tty: n % 5 === 0 };
    const answer = await daemon.client().post(`/sandboxes/${id}/processes`, job);
    expect(answer.status, answer.text).to.equal(201);
  };

  it('all survive a kill -9 of the daemon and the spawner, and take input after it', async () => {
    const ids = [await claim(daemon.client()), await claim(daemon.client())];
    for (let n = 0; n < JOBS; n += 1) await Promise.all(ids.map((id) => start(id, n)));
    const before = await Promise.all(ids.map(listed));

    const spawner = await within('a spawner', () => spawnerPid(daemon.dataDir));
    killIfAlive(spawner);
    await daemon.kill();
    await daemon.start();

    const after = await Promise.all(ids.map(listed));
    expect(after).to.deep.equal(before);
    expect(after.flat().filter(({ status }) => status === 'Running')).to.have.length(2 * JOBS);
    const [job] = after[1] ?? [];
    const path = `/sandboxes/${ids[1] ?? ''}/processes/${job?.processId ?? ''}`;
    const written = await daemon.client().post(`${path}/stdin`, { data: '7\n' });
    expect(written.status, written.text).to.equal(200);
    await within('its end', async () => {
      const { text } = await daemon.client().get(path);
      const { process } = JSON.parse(text) as { readonly process: Shown };
      return process.exitCode === 7 || undefined;
    });
  });
});
