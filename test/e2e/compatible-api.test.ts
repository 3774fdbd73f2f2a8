import { expect } from 'chai';
import { Sandbox as LatestSandbox } from 'e2b-2-51-0';
import { readPidFile } from '../../src/daemon/process/pid-file.ts';
import { SDKS, type SdkOptions } from '../e2b/a-sdk.ts';
import { instanceIdOf } from '../../src/http/e2b/sandbox-id.ts';
import { RpcStream, type Json } from '../e2b/services/rpc-client.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { eventually } from '../support/harness/eventually.ts';
import { processProbe } from '../support/harness/process-probe.ts';
import { stocked } from '../support/harness/on-a-daemon.ts';

describe("the API of E2B's SDKs on the built daemon", () => {
  const probe = processProbe();
  let daemon: DaemonUnderTest;
  let options: SdkOptions;
  before(async () => {
    const flags = ['--compatible-api-listen', '127.0.0.1:0'];
    daemon = await DaemonUnderTest.start(flags, undefined, { env: probe.env });
    const { code, stdout, stderr } = await daemon.cli(['keys', 'create', '--form', 'e2b']);
    expect(code, stderr).to.equal(0);
    options = optionsWith(stdout.trim());
  });
  after(async () => {
    await daemon.dispose();
    probe.remove();
  });

  const optionsWith = (apiKey: string): SdkOptions => {
    const url = readPidFile(daemon.dataDir)?.compatibleAddress ?? '';
    return { apiKey, apiUrl: url, sandboxUrl: url };
  };

  it('is enabled by its feature gate', async () => {
    const { text } = await daemon.client().get('/feature-gates');

    expect(JSON.parse(text)).to.deep.include({ compatibleApi: true });
  });

  for (const [version, Sandbox] of SDKS)
    it(`serves e2b ${version} from creation to end`, async () => {
      await stocked(daemon.client(), 4);
      const began = performance.now();
      const sandbox = await Sandbox.create('base', {
        ...options,
        timeoutMs: 600_000,
        metadata: { version },
      });
      await sandbox.setTimeout(90_000);
      const tookMs = performance.now() - began;

      const { startedAt, endAt, metadata } = await sandbox.getInfo();
      const listed = await Sandbox.list({
        ...options,
        query: { metadata: { version } },
      }).nextItems();
      expect(endAt.getTime() - startedAt.getTime()).to.be.within(90_000, 90_000 + tookMs + 1);
      expect(metadata).to.deep.equal({ version });
      expect(listed.map(({ sandboxId }) => sandboxId)).to.deep.equal([sandbox.sandboxId]);
      expect(await sandbox.isRunning()).to.equal(true);
      expect(await Sandbox.kill(sandbox.sandboxId, options)).to.equal(true);
      expect(await Sandbox.kill(sandbox.sandboxId, options)).to.equal(false);
      expect(await sandbox.isRunning()).to.equal(false);
    });

  it("ends sandboxes within a second of their end time, by the daemon's clock", async () => {
    const client = daemon.client();
    await stocked(client, 4);
    const pid = daemon.run.process.pid ?? 0;
    await probe.of(pid);
    /** Milliseconds between the moment that was asked for and the event that says that it ends. */
    const lateBy = async (seconds: number): Promise<number> => {
      const given = { ...options, timeoutMs: seconds * 1_000 };
      const { sandboxId } = await LatestSandbox.create('base', given);
      const told = new Map<unknown, number>();
      await eventually(async () => {
        const { json } = await client.get(`/sandboxes/${instanceIdOf(sandboxId)}/events`);
        for (const { reason, time } of json.items ?? []) told.set(reason, Date.parse(String(time)));
        return told.has('Killing');
      }, 'it ends');
      return (told.get('Killing') ?? NaN) - (told.get('Claimed') ?? NaN) - given.timeoutMs;
    };

    const late = await Promise.all([1, 2, 3].map(lateBy));
    // A machine with other work may stand still.
    const { stoodMs } = await probe.of(pid);
    expect(Math.max(...late) - stoodMs, `${String(late)}, ${stoodMs}`).to.be.at.most(1_000);
  });

  it('ends a sandbox on time even if the daemon was killed in the meantime', async () => {
    const Sandbox = [...SDKS.values()].at(-1)!; // there are four
    const kept = await Sandbox.create('base', { ...options, timeoutMs: 600_000 });
    const short = await Sandbox.create('base', { ...options, timeoutMs: 4_000 });
    const before = await kept.getInfo();

    await daemon.kill();
    await daemon.start();
    const again = optionsWith(options.apiKey);
    const after = await Sandbox.getInfo(kept.sandboxId, again);
    await eventually(
      async () =>
        (await Sandbox.list(again).nextItems()).every(
          ({ sandboxId }) => sandboxId !== short.sandboxId,
        ),
      'it has ended',
    );

    expect(after.endAt.getTime()).to.equal(before.endAt.getTime());
    expect(await Sandbox.kill(short.sandboxId, again)).to.equal(false);
    expect(await Sandbox.kill(kept.sandboxId, again)).to.equal(true);
  });

  it('pauses a sandbox in place of its end, and resumes it at a connection or a command', async () => {
    const lifecycle = { onTimeout: 'pause', autoResume: true } as const;
    const sandbox = await LatestSandbox.create('base', {
      ...optionsWith(options.apiKey),
      timeoutMs: 8_000,
      lifecycle,
    });
    const isPaused = async (): Promise<boolean> => (await sandbox.getInfo()).state === 'paused';
    expect((await sandbox.getInfo()).lifecycle).to.deep.equal(lifecycle);
    await sandbox.files.write('/tmp/kept', 'kept');
    await eventually(isPaused, 'paused at its moment');

    await sandbox.connect({ timeoutMs: 8_000 });
    expect(await isPaused()).to.equal(false);
    await eventually(isPaused, 'paused again');
    expect(await sandbox.files.read('/tmp/kept')).to.equal('kept');
    expect(await isPaused()).to.equal(false);
    await sandbox.kill();
  });

  it('ends streams with `unavailable` when the daemon stops', async () => {
    const port = Number(new URL(daemon.compatibleUrl).port);
    const body = { templateID: 'base', timeout: 600 };
    const { text } = await daemon.compatibleClient().post('/v2/sandboxes', body);
    const { envdAccessToken } = JSON.parse(text) as Json;
    const headers = { 'X-Access-Token': String(envdAccessToken) };
    const process = { cmd: 'sleep', args: ['100'] };
    const path = '/process.Process/Start';
    const stream = await RpcStream.open(port, path, { process, stdin: false }, headers);
    await stream.until(({ event }) => 'start' in (event as Json));

    const [last] = await Promise.all([stream.end(), daemon.stop()]);
    expect(last).to.have.nested.property('error.code', 'unavailable');
  });

  it('is absent while its feature gate is off', async () => {
    await daemon.stop();
    await daemon.start(['--compatible-api-listen', 'none']);

    expect(readPidFile(daemon.dataDir)).to.not.have.property('compatibleAddress');
    const { text } = await daemon.client().get('/feature-gates');
    expect(JSON.parse(text)).to.deep.include({ compatibleApi: false });
  });
});
