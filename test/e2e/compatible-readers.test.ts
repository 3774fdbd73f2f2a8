import { expect } from 'chai';
import { instanceIdOf } from '../../src/http/e2b/sandbox-id.ts';
import { RpcStream, type Json } from '../e2b/services/rpc-client.ts';
import { spawnerPid } from '../support/chaos/kill-rounds.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { eventually } from '../support/harness/eventually.ts';
import { processProbe } from '../support/harness/process-probe.ts';
import {
  initOf,
  processesBeside,
  residentOf,
  statusField,
  withCommand,
} from '../support/harness/seen-from-the-host.ts';

const MOST_HELD = 64 * 2 ** 20;

describe("stalled readers of the API of E2B's SDKs on the built daemon", () => {
  const probe = processProbe();
  let daemon: DaemonUnderTest;
  before(async () => {
    const flags = ['--compatible-api-listen', '127.0.0.1:0'];
    daemon = await DaemonUnderTest.start(flags, undefined, { env: probe.env });
  });
  after(async () => {
    await daemon.dispose();
    probe.remove();
  });

  it('use at most 64 MiB of memory, if 64 of them stall during `yes`', async () => {
    const client = daemon.compatibleClient();
    const made = await client.post('/v2/sandboxes', { templateID: 'base', timeout: 600 });
    const { sandboxID = '', envdAccessToken = '' } = JSON.parse(made.text) as Record<
      string,
      string
    >;
    const port = Number(new URL(daemon.compatibleUrl).port);
    const headers = { 'X-Access-Token': envdAccessToken };
    const open = async (method: string, body: object): Promise<RpcStream> => {
      const stream = await RpcStream.open(port, `/process.Process/${method}`, body, headers);
      await stream.until(({ event }) => 'start' in (event as Json));
      return stream;
    };
    const [pid, spawner] = [daemon.run.process.pid ?? 0, spawnerPid(daemon.dataDir) ?? 0];
    const held = async (): Promise<number> => (await probe.of(pid)).heldBytes + residentOf(spawner);
    /** What is held while all of them stall, beyond what was held before. */
    const growth = async (): Promise<number> => {
      const before = await held();
      const first = await open('Start', { process: { cmd: 'yes', args: [] }, tag: 'yes' });
      const streams = [first];
      for (let reader = 1; reader < 64; reader += 1)
        streams.push(await open('Connect', { process: { tag: 'yes' } }));
      const inside = processesBeside(initOf(daemon.dataDir, instanceIdOf(sandboxID) ?? ''));
      const yes = withCommand(inside, 'yes') ?? 0;
      let [looks, seen] = [0, ''];
      await eventually(() => {
        const now = `${statusField(yes, 'State')} ${statusField(yes, 'voluntary_ctxt_switches')}`;
        looks = now === seen && now.startsWith('S') ? looks + 1 : 0;
        seen = now;
        return looks > 10;
      }, 'nobody takes what it prints');
      const grown = (await held()) - before;
      for (const stream of streams) stream.leave();
      const killed = { process: { tag: 'yes' }, signal: 'SIGNAL_SIGKILL' };
      await client.post('/process.Process/SendSignal', killed, { headers });
      return grown;
    };
    await growth(); // until the code is compiled

    // What the spawner has not collected yet counts too, and is not there every time.
    let least = Infinity;
    for (let round = 0; round < 6 && least >= MOST_HELD; round += 1)
      least = Math.min(least, await growth());
    expect(least).to.be.below(MOST_HELD);
    await client.delete(`/sandboxes/${sandboxID}`);
  });
});
