import { expect } from 'chai';
import { within } from '../support/harness/a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { claim, finished, run, stocked } from '../support/harness/on-a-daemon.ts';
import { aTenantWithPool, onTheSharedDaemon } from '../support/harness/shared-daemon.ts';

describe('the contract: commands, tokens and idle timeouts', () => {
  const daemon = onTheSharedDaemon();
  let client: HttpClient;
  let id: string;

  before(async function () {
    client = await aTenantWithPool(daemon(), 'running', 3);
    await stocked(client, 3);
    id = await claim(client);
  });

  const processes = async (of = id): Promise<readonly string[]> =>
    (
      await run(client, of, 'for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline; echo; done')
    ).stdout
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');

  it('a command can name its container, and gets 400 with the valid names otherwise', async () => {
    expect((await run(client, id, 'echo in', { container: 'main' })).stdout).to.equal('in\n');
    const other = await client.post(`/sandboxes/${id}/exec`, {
      command: 'true',
      container: 'sidecar',
    });
    expect(other.status).to.equal(400);
    expect(other.json.errorCode).to.equal('INVALID_ARGUMENT');
    expect(other.json.detail).to.deep.equal({ field: 'container', allowed: ['main'] });
  });

  it('a command in a sandbox that is being deleted gets an answer', async () => {
    const other = await claim(client);
    const asked = client.post(`/sandboxes/${other}/exec`, { command: 'echo begun; sleep 4005' });
    await within(
      'it runs, and has printed',
      async () => (await processes(other)).includes('sleep 4005') || undefined,
    );
    await client.delete(`/sandboxes/${other}`);
    const answer = await asked;
    expect(answer.status, answer.text).to.be.oneOf([200, 404, 409, 503]);
    if (answer.status === 200) expect(answer.json).to.include({ stdout: 'begun\n' });
  });

  it('each of 32 simultaneous idle timeouts is accepted, and one stays in effect', async () => {
    const answers = await Promise.all(
      Array.from({ length: 32 }, (_, at) =>
        client.put(`/sandboxes/${id}/idle-timeout`, { idleTimeoutSeconds: 600 + at }),
      ),
    );
    expect(
      new Set(answers.map(({ status, text }) => (status === 200 ? 'taken' : text))),
    ).to.deep.equal(new Set(['taken']));
    await client.put(`/sandboxes/${id}/idle-timeout`, { idleTimeout: '0' });
  });

  it('a claim can set its own idle timeout, which a running command postpones', async () => {
    const other = await claim(client, 'default', { idleTimeout: '5s' });
    expect((await run(client, other, 'sleep 6; echo still')).stdout).to.equal('still\n');
    expect((await client.get(`/sandboxes/${other}`)).status).to.equal(200);
    expect(await finished(client, other)).to.include({ endReason: 'idle-timeout' });
    expect(
      (await client.post('/sandboxes', { poolName: 'default', idleTimeout: 'soon' })).json.detail?.[
        'field'
      ],
    ).to.equal('idleTimeout');
  });
});
