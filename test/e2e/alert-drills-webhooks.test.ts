import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cliHere } from '../cli/cli-support.ts';
import { approvalIdOf } from '../http/an-approving-server.ts';
import { atConsole } from '../support/harness/a-console-session.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient, type HttpAnswer } from '../support/harness/http-client.ts';
import { AlertWatch } from '../support/harness/prometheus/alert-watch.ts';
import { aReceiver, isSigned, SECRET, status, type Receiver } from '../webhooks/webhook-support.ts';
import { line } from '../support/harness/line.ts';

const ALERT = 'SandpoolWebhookGivenUp';

describe('webhooks of a real daemon', function () {
  let folder: string;
  let receiver: Receiver;
  let daemon: DaemonUnderTest;
  let client: HttpClient;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'webhooks-'));
    const secretFile = join(folder, 'secret');
    writeFileSync(secretFile, SECRET);
    receiver = await aReceiver();
    const config = join(folder, 'sandpool.yaml'); // an address is as good as a password
    writeFileSync(
      config,
      `approvals:\n  webhooks:\n    - '${receiver.url} secretFile=${secretFile}'\n`,
    );
    daemon = await DaemonUnderTest.start([
      ...line`--config ${config} --default-pool-replicas 0 --approvals-rules`,
      'require operation=createPool',
      '--approvals-webhooks-for',
      '10s',
      '--log-level',
      'error',
    ]);
    client = daemon.client();
  });
  after(async () => {
    await daemon?.dispose();
    await receiver?.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(() => {
    receiver.received.length = 0;
    receiver.answers.length = 0;
  });

  const ask = (name: string): Promise<HttpAnswer> =>
    client.post('/sandboxpools', { name, templateName: 'default', replicas: 0 });
  const sandpool = (...args: readonly string[]) =>
    cliHere(args, { SANDPOOL_DATA_DIR: daemon.dataDir });
  const letters = async (): Promise<string> => (await sandpool('webhooks', 'list')).stdout;

  it('send a receiver the progress of a request, signed, and again after a failure', async () => {
    receiver.answers.push(status(500));
    const id = approvalIdOf(await ask('told'));
    const browser = new HttpClient(daemon.run.port);
    const owner = await atConsole(daemon, browser);
    await receiver.got(2);
    expect((await owner.approve(id)).status).to.equal(200);
    browser.close();
    expect((await ask('told')).status).to.equal(201);
    await receiver.got(4);

    expect(receiver.ids().slice(0, 2)).to.deep.equal([`${id}.requested`, `${id}.requested`]);
    expect(
      receiver.received.slice(1).map(({ headers }) => headers['x-sandpool-event']),
    ).to.have.members(['approval.requested', 'approval.decided', 'approval.consumed']);
    for (const message of receiver.received) {
      expect(isSigned(message)).to.equal(true);
      expect(JSON.parse(message.body).approval).to.include({ id, path: '/sandboxpools' });
    }
    expect(await letters()).to.equal('no dead letters\n');
  });

  it('SandpoolWebhookGivenUp: fires for a receiver that fails until a message expires', async () => {
    const watch = new AlertWatch({ a: () => daemon.metrics() });
    expect(await watch.look(ALERT)).to.equal(false);
    receiver.answers.push(...Array.from({ length: 20 }, () => status(500)));
    const id = approvalIdOf(await ask('untold'));
    await watch.fires('SandpoolWebhookGivenUp');
    await eventually(async () => (await letters()).includes(`${id}.requested`), 'it is kept');
    expect(await letters())
      .to.include('status 500')
      .and.not.include('secret-token');

    await daemon.kill();
    await daemon.start();
    receiver.received.length = 0;
    receiver.answers.length = 0;
    expect(await letters(), 'it is there after a restart').to.include(`${id}.requested`);
    expect((await sandpool('webhooks', 'retry', 'another.requested')).stderr).to.include(
      'there is no dead letter another.requested',
    );
    expect((await sandpool('webhooks', 'retry')).code).to.equal(1);
    expect((await sandpool('webhooks', 'retry', '--all')).stdout).to.equal('sent again: 1\n');
    await receiver.got(1);
    await eventually(async () => (await letters()) === 'no dead letters\n', 'it is taken');
    expect(receiver.ids()).to.include(`${id}.requested`);
    await watch.anHourLater();
    await watch.clears('SandpoolWebhookGivenUp');
  });
});
