import { expect } from 'chai';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { bodyOf, claim, clear, finished, run, stocked } from '../support/harness/on-a-daemon.ts';

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

describe('the contract: commands, tokens and idle timeouts', () => {
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let id: string;

  before(async function () {
    daemon = await DaemonUnderTest.start(['--default-pool-replicas', '3']);
    client = daemon.client();
    await stocked(client, 3);
    id = await claim(client);
  });

  after(async function () {
    await daemon.dispose();
  });

  const processes = async (of = id): Promise<readonly string[]> =>
    (
      await run(client, of, 'for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline; echo; done')
    ).stdout
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');

  it('exec answers stdout, stderr, exit code and what became of it, and says that it is deprecated', async () => {
    const answer = await client.post(`/sandboxes/${id}/exec`, {
      command: 'echo out; echo err >&2; exit 3',
    });
    expect(answer.status).to.equal(200);
    const { durationMs, ...rest } = bodyOf(answer) as Record<string, unknown>;
    expect(rest).to.deep.equal({
      stdout: 'out\n',
      stderr: 'err\n',
      exitCode: 3,
      timedOut: false,
      truncated: false,
    });
    expect(durationMs).to.be.a('number').within(0, 20_000);
    expect(answer.headers['deprecation']).to.match(/^@\d+$/);
    expect(answer.headers['link']).to.equal(
      `</sandboxes/${id}/processes>; rel="successor-version"`,
    );
  });

  it('a text goes to a shell, an array to no shell', async () => {
    expect((await run(client, id, 'echo $((1 + 2)) *')).stdout).to.match(/^3 /);
    expect((await run(client, id, ['/bin/echo', '$((1 + 2))', '*', 'a  b', ''])).stdout).to.equal(
      '$((1 + 2)) * a  b \n',
    );
    expect((await run(client, id, ['echo', 'by PATH'])).stdout).to.equal('by PATH\n');
  });

  it('a command that is not there, or may not be run, ends as in a shell', async () => {
    expect((await run(client, id, ['/no/such/command'])).exitCode).to.equal(127);
    expect((await run(client, id, ['no-such-command'])).exitCode).to.equal(127);
    expect((await run(client, id, ['/etc/passwd'])).exitCode).to.equal(126);
    expect((await run(client, id, 'kill -9 $$')).exitCode).to.equal(137);
    expect((await run(client, id, 'kill -15 $$')).exitCode).to.equal(143);
  });

  it("cwd, env and stdin are the command's; without them it has its own and no input", async () => {
    expect((await run(client, id, 'pwd', { cwd: '/tmp' })).stdout).to.equal('/tmp\n');
    expect((await run(client, id, 'pwd')).stdout).to.equal('/home/sandbox\n');
    expect(
      (await run(client, id, 'echo "$A $B"; echo "$HOME"', { env: { A: 'x y', B: 'é"\n' } }))
        .stdout,
    ).to.equal('x y é"\n\n/home/sandbox\n');
    expect((await run(client, id, 'cat', { stdin: 'käse\n\u0000\u0001' })).stdout).to.equal(
      'käse\n\u0000\u0001',
    );
    expect(await run(client, id, 'cat; echo end')).to.include({ stdout: 'end\n', exitCode: 0 });
    const large = 'x'.repeat(700_000);
    expect((await run(client, id, 'wc -c', { stdin: large })).stdout.trim()).to.equal('700000');
    const missing = await run(client, id, 'pwd', { cwd: '/no/such/folder' });
    expect(missing.exitCode).to.not.equal(0);
    expect(missing.stderr).to.include('/no/such/folder');
  });

  it('on its timeout the whole process group is killed, and the answer is 200 with what there was', async () => {
    const startedAt = performance.now();
    const answer = await client.post(`/sandboxes/${id}/exec`, {
      command: 'echo early; echo too >&2; sleep 4001 & sleep 4002 & sleep 4003',
      timeoutSeconds: 3, // a slow machine has printed by then
    });
    expect(performance.now() - startedAt).to.be.within(2_900, 30_000);
    expect(answer.status).to.equal(200);
    expect(answer.json).to.include({
      stdout: 'early\n',
      stderr: 'too\n',
      exitCode: 124,
      timedOut: true,
      truncated: false,
    });
    await within(
      'all of the group are gone',
      async () => !(await processes()).some((line) => line.includes('sleep 400')) || undefined,
    );
  });

  it('a command that ignores all requests to end is killed at its timeout too', async () => {
    const ran = await run(
      client,
      id,
      'trap "" TERM INT HUP; echo deaf; while :; do sleep 0.1; done',
      { timeoutSeconds: 3 },
    );
    expect(ran).to.include({ stdout: 'deaf\n', exitCode: 124, timedOut: true });
    await within(
      'it is gone',
      async () => !(await processes()).some((line) => line.includes('trap')) || undefined,
    );
  });

  it('a client that goes away takes its command with it', async () => {
    const leaving = new AbortController();
    const asked = client
      .post(`/sandboxes/${id}/exec`, { command: 'sleep 5001' }, { signal: leaving.signal })
      .then(
        () => 'answered',
        () => 'left',
      );
    await within(
      'it runs',
      async () => (await processes()).some((line) => line.includes('sleep 5001')) || undefined,
    );
    leaving.abort();
    expect(await asked).to.equal('left');
    await within(
      'it is gone',
      async () => !(await processes()).some((line) => line.includes('sleep 5001')) || undefined,
    );
  });

  it('each stream is cut at 1 MiB, and truncated says so', async () => {
    const over = await run(
      client,
      id,
      'head -c 1048577 /dev/zero | tr "\\0" x; head -c 2000000 /dev/zero | tr "\\0" y >&2; exit 5',
    );
    expect([over.stdout.length, over.stderr.length]).to.deep.equal([1_048_576, 1_048_576]);
    expect(over).to.include({ truncated: true, exitCode: 5, timedOut: false });
    const exact = await run(client, id, 'head -c 1048576 /dev/zero | tr "\\0" x');
    expect(exact.stdout.length).to.equal(1_048_576);
    expect(exact).to.include({ truncated: false, exitCode: 0 });
    const endless = await run(client, id, 'yes', { timeoutSeconds: 3 });
    expect(endless.stdout.length).to.equal(1_048_576);
    expect(endless).to.include({ truncated: true, exitCode: 124, timedOut: true });
  });

  it('bytes that are not UTF-8 become U+FFFD', async () => {
    expect((await run(client, id, 'printf "a\\377\\303\\050b\\303\\251"')).stdout).to.equal(
      'a\ufffd\ufffd(bé',
    );
  });

  it('container may be the one there is; another is 400 and names those there are', async () => {
    expect((await run(client, id, 'echo in', { container: 'main' })).stdout).to.equal('in\n');
    const other = await client.post(`/sandboxes/${id}/exec`, {
      command: 'true',
      container: 'sidecar',
    });
    expect(other.status).to.equal(400);
    expect(other.json.errorCode).to.equal('INVALID_ARGUMENT');
    expect(other.json.detail).to.deep.equal({ field: 'container', allowed: ['main'] });
  });

  it('fields out of bounds are 400 and named', async () => {
    for (const [body, field] of [
      [{}, 'command'],
      [{ command: '' }, 'command'],
      [{ command: [] }, 'command'],
      [{ command: ['a', 7] }, 'command'],
      [{ command: 'a\u0000b' }, 'command'],
      [{ command: null }, 'command'],
      [{ command: 'true', timeoutSeconds: 0 }, 'timeoutSeconds'],
      [{ command: 'true', timeoutSeconds: 301 }, 'timeoutSeconds'],
      [{ command: 'true', timeoutSeconds: 1.5 }, 'timeoutSeconds'],
      [{ command: 'true', timeoutSeconds: '1' }, 'timeoutSeconds'],
      [{ command: 'true', cwd: 'tmp' }, 'cwd'],
      [{ command: 'true', env: { 'A=B': 'x' } }, 'env'],
      [{ command: 'true', env: [] }, 'env'],
      [{ command: 'true', stdin: 7 }, 'stdin'],
    ] as const) {
      const answer = await client.post(`/sandboxes/${id}/exec`, body);
      expect(answer.status, JSON.stringify(body)).to.equal(400);
      expect(answer.json.errorCode).to.equal('INVALID_ARGUMENT');
      expect(String(answer.json.detail?.['field']), JSON.stringify(body)).to.match(
        new RegExp(`^${field}`),
      );
    }
  });

  it('40 commands at once each get their own output', async () => {
    const outputs = await Promise.all(
      Array.from({ length: 40 }, async (_, at) => (await run(client, id, `echo ${at}`)).stdout),
    );
    expect(outputs).to.deep.equal(Array.from({ length: 40 }, (_, at) => `${at}\n`));
  });

  it('a command of one that is deleted meanwhile is answered, not left hanging', async () => {
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

  it('exec-token answers a token alone, never the same, for no cache', async () => {
    const tokens = new Set<string>();
    for (const body of [undefined, {}]) {
      const answer = await client.post(`/sandboxes/${id}/exec-token`, body);
      expect(answer.status).to.equal(200);
      expect(answer.headers['cache-control']).to.equal('no-store');
      expect(bodyOf(answer)).to.have.all.keys('token');
      expect(answer.json.token).to.match(/^[\x21-\x7e]{20,512}$/);
      tokens.add(answer.json.token ?? '');
    }
    expect(tokens.size).to.equal(2);
  });

  it('PUT idle-timeout takes text, seconds, and zero or null for never', async () => {
    for (const [body, shown] of [
      [{ idleTimeout: '30m' }, '30m'],
      [{ idleTimeoutSeconds: 1800 }, '30m'],
      [{ idleTimeout: '1h30m' }, '1h30m'],
      [{ idleTimeout: '0' }, '0s'],
      [{ idleTimeoutSeconds: 0 }, '0s'],
      [{ idleTimeout: null }, '0s'],
      [{ idleTimeoutSeconds: null }, '0s'],
    ] as const) {
      const answer = await client.put(`/sandboxes/${id}/idle-timeout`, body);
      expect(answer.status, answer.text).to.equal(200);
      const { sandbox } = bodyOf(answer) as { sandbox: Record<string, string> };
      expect(sandbox).to.include({ sandboxId: id, status: 'Running', idleTimeout: shown });
      if (shown === '0s') expect(sandbox).to.not.have.property('idleExpiresAt');
      else expect(sandbox['idleExpiresAt']).to.match(TIMESTAMP);
    }
    for (const body of [
      {},
      { idleTimeout: 'soon' },
      { idleTimeout: 30 },
      { idleTimeoutSeconds: -1 },
      { idleTimeoutSeconds: '5' },
      { idleTimeoutSeconds: 1e12 },
      { idleTimeout: '1m', idleTimeoutSeconds: 60 },
    ]) {
      const answer = await client.put(`/sandboxes/${id}/idle-timeout`, body);
      expect(answer.status, JSON.stringify(body)).to.equal(400);
      expect(answer.json.detail?.['field']).to.match(/^idleTimeout/);
    }
  });

  it('of 32 idle timeouts set at once each is taken, and one of them stands', async () => {
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

  it('a claim takes an idle timeout of its own; a command under way holds it off', async () => {
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

  it('after its end exec, exec-token and idle-timeout are 404', async () => {
    await clear(client);
    await within(
      'it is gone',
      async () => (await client.get(`/sandboxes/${id}`)).status === 404 || undefined,
    );
    for (const [method, path, body] of [
      ['POST', 'exec', { command: 'true' }],
      ['POST', 'exec-token', {}],
      ['PUT', 'idle-timeout', { idleTimeout: '1m' }],
    ] as const) {
      const answer = await client.send(method, `/sandboxes/${id}/${path}`, { body });
      expect(answer.status, path).to.equal(404);
      expect(answer.json.error).to.equal('sandbox not found or already terminated');
    }
  });
});
