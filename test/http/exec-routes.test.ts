import { expect } from 'chai';
import { once } from 'node:events';
import type { ExecRequest } from '../../src/contracts/sandbox-driver.ts';
import { v7 } from 'uuid';
import { aServer, type TestServer } from './a-server.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';

describe('commands in a sandbox over HTTP', () => {
  let server: TestServer;
  let id: string;
  beforeEach(async () => {
    server = await aServer();
    await server.makeShells(2);
    id = (await server.tenant.post('/sandboxes', { poolName: 'shells' })).json.sandbox!.sandboxId!;
  });
  afterEach(() => server.stop());

  describe('POST /sandboxes/{sandboxId}/exec', () => {
    it('returns the outcome, even a non-zero exit', async () => {
      server.operations.driver.onExec = async () => ({
        stdout: Buffer.from('héllo\n'),
        stderr: Buffer.from('oops'),
        exitCode: 3,
        durationMs: 12.4,
      });
      const answer = await server.tenant.post(`/sandboxes/${id}/exec`, {
        command: 'echo héllo; exit 3',
      });
      expect(answer.status).to.equal(200);
      expect(answer.json).to.deep.equal({
        stdout: 'héllo\n',
        stderr: 'oops',
        exitCode: 3,
        timedOut: false,
        truncated: false,
        durationMs: 12,
      });
    });

    it('passes text to a shell, and an array directly', async () => {
      let asked: Partial<ExecRequest> = {};
      server.operations.driver.onExec = async (_id, { gathered, ...request }) => {
        expect(gathered).to.be.a('function');
        asked = request;
        return {};
      };
      await server.tenant.post(`/sandboxes/${id}/exec`, { command: 'echo $HOME | cat' });
      expect(asked).to.deep.equal({
        argv: ['/bin/sh', '-c', 'echo $HOME | cat'],
        timeoutMs: 300_000,
        outputLimit: 1_048_576,
      });
      await server.tenant.post(`/sandboxes/${id}/exec`, {
        command: ['printf', '%s', 'a b'],
        timeoutSeconds: 5,
        cwd: '/tmp',
        env: { LANG: 'C' },
        stdin: 'in',
        container: 'main',
      });
      expect(asked).to.deep.equal({
        argv: ['printf', '%s', 'a b'],
        timeoutMs: 5_000,
        outputLimit: 1_048_576,
        cwd: '/tmp',
        env: { LANG: 'C' },
        stdin: 'in',
        container: 'main',
      });
    });

    it('is marked as deprecated, with its successor', async () => {
      for (const path of [`/sandboxes/${id}/exec`, `/sandboxes/${v7()}/exec`]) {
        const answer = await server.tenant.post(path, { command: 'true' });
        expect(answer.headers.deprecation).to.match(/^@[0-9]+$/);
        expect(answer.headers.link).to.equal(
          `<${path.replace(/exec$/, 'processes')}>; rel="successor-version"`,
        );
      }
    });

    it('shows bytes that are not UTF-8 as U+FFFD', async () => {
      server.operations.driver.onExec = async () => ({
        stdout: Buffer.from([0x61, 0xff, 0x62]),
        stderr: Buffer.from([0xe2, 0x82]),
      });
      const { json } = await server.tenant.post(`/sandboxes/${id}/exec`, { command: 'x' });
      expect(json).to.include({ stdout: 'a\ufffdb', stderr: '\ufffd' });
    });

    it('truncates each stream at 1 MiB, between characters', async () => {
      server.operations.driver.onExec = async () => ({
        stdout: Buffer.from(`x${'é'.repeat(600_000)}`),
        stderr: Buffer.alloc(2_000_000, 'y'),
      });
      const { json } = await server.tenant.post(`/sandboxes/${id}/exec`, { command: 'x' });
      expect(json.truncated).to.equal(true);
      expect(json.stdout).to.equal(`x${'é'.repeat(524_287)}`);
      expect(json.stderr).to.have.length(1_048_576);
    });

    it('aborts the command when the client disconnects', async () => {
      const seen: Promise<AbortSignal> = new Promise((resolve) => {
        server.operations.driver.onExec = async (_id, _request, signal) => {
          resolve(signal);
          await once(signal, 'abort', { signal: AbortSignal.timeout(NEVER_COMES_MS) });
          return {};
        };
      });
      const leaving = new AbortController();
      const answer = server.tenant
        .post(`/sandboxes/${id}/exec`, { command: 'sleep 300' }, { signal: leaving.signal })
        .catch(() => 'gone');
      const signal = await seen;
      expect(signal.aborted).to.equal(false);
      leaving.abort();
      expect(await answer).to.equal('gone');
      if (!signal.aborted)
        await once(signal, 'abort', { signal: AbortSignal.timeout(NEVER_COMES_MS) });
    });

    it('aborts the command when its key is revoked, with 401', async () => {
      const {
        json: { apiKey = '', keyId = '' },
      } = await server.tenant.post('/api-keys', {});
      const seen: Promise<void> = new Promise((resolve) => {
        server.operations.driver.onExec = (_id, _request, signal) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => {
              reject(signal.reason as Error);
            });
            resolve();
          });
      });
      const answer = server.tenant.post(
        `/sandboxes/${id}/exec`,
        { command: 'sleep 300' },
        { key: apiKey },
      );
      await seen;
      await server.tenant.delete(`/api-keys/${keyId}`);
      expect(await answer).to.deep.include({
        status: 401,
        json: { error: 'invalid API key', errorCode: 'INVALID_API_KEY' },
      });
    });

    it('does not abort an answered command', async () => {
      let seen: AbortSignal | undefined;
      server.operations.driver.onExec = async (_id, _request, signal) => {
        seen = signal;
        return {};
      };
      const {
        json: { apiKey = '', keyId = '' },
      } = await server.tenant.post('/api-keys', {});
      await server.tenant.post(
        `/sandboxes/${id}/exec`,
        { command: 'true' },
        { key: apiKey, headers: { Connection: 'close' } },
      );
      await server.tenant.delete(`/api-keys/${keyId}`);
      expect(seen?.aborted).to.equal(false);
    });

    for (const [body, field] of [
      [{}, 'command'],
      [{ command: '' }, 'command'],
      [{ command: [] }, 'command'],
      [{ command: [7] }, 'command'],
      [{ command: null }, 'command'],
      [{ command: 'a\0b' }, 'command'],
      [{ command: ['a', 'b\0'] }, 'command[1]'],
      [{ command: 'x'.repeat(131_072) }, 'command'],
      [{ command: 'x', timeoutSeconds: 0 }, 'timeoutSeconds'],
      [{ command: 'x', timeoutSeconds: 301 }, 'timeoutSeconds'],
      [{ command: 'x', timeoutSeconds: 1.5 }, 'timeoutSeconds'],
      [{ command: 'x', timeoutSeconds: '5' }, 'timeoutSeconds'],
      [{ command: 'x', cwd: 'tmp' }, 'cwd'],
      [{ command: 'x', cwd: '/\0' }, 'cwd'],
      [{ command: 'x', env: { 'A-B': 'c' } }, 'env'],
      [{ command: 'x', env: [] }, 'env'],
      [{ command: 'x', env: { A: 1 } }, 'env.A'],
      [{ command: 'x', env: { A: '\0' } }, 'env.A'],
      [{ command: 'x', stdin: 5 }, 'stdin'],
      [{ command: 'x', container: '../x' }, 'container'],
    ] as const) {
      it(`refuses ${JSON.stringify(body).slice(0, 60)}`, async () => {
        const answer = await server.tenant.post(`/sandboxes/${id}/exec`, body);
        expect(answer.status).to.equal(400);
        expect(answer.json.errorCode).to.equal('INVALID_ARGUMENT');
        expect(answer.json.detail!.field).to.equal(field);
      });
    }
  });

  describe('POST /sandboxes/{sandboxId}/exec-token', () => {
    it('returns a token that is never cached', async () => {
      const answer = await server.tenant.post(`/sandboxes/${id}/exec-token`);
      expect(answer.status).to.equal(200);
      expect(answer.json).to.have.all.keys('token');
      expect(answer.json.token).to.be.a('string').that.is.not.empty;
      expect(answer.headers['cache-control']).to.equal('no-store');
    });
  });

  describe('PUT /sandboxes/{sandboxId}/idle-timeout', () => {
    it('returns the sandbox with its new timeout and its end time', async () => {
      for (const body of [{ idleTimeout: '1h30m' }, { idleTimeoutSeconds: 5_400 }]) {
        const answer = await server.tenant.put(`/sandboxes/${id}/idle-timeout`, body);
        expect(answer.status).to.equal(200);
        expect(answer.json).to.deep.equal({
          sandbox: {
            sandboxId: id,
            namespace: 'team-blue',
            poolName: 'shells',
            podName: `sb-${id}`,
            status: 'Running',
            claimedAt: '2026-03-01T12:00:00.000Z',
            team: 'blue',
            user: 'ada',
            idleTimeout: '1h30m',
            idleExpiresAt: '2026-03-01T13:30:00.000Z',
          },
        });
      }
    });

    for (const body of [
      { idleTimeout: '0' },
      { idleTimeout: 0 },
      { idleTimeout: null },
      { idleTimeoutSeconds: 0 },
      { idleTimeoutSeconds: null },
    ]) {
      it(`can be turned off by ${JSON.stringify(body)}`, async () => {
        const answer = await server.tenant.put(`/sandboxes/${id}/idle-timeout`, body);
        expect(answer.status).to.equal(200);
        expect(answer.json.sandbox).to.have.property('idleTimeout', '0s');
        expect(answer.json.sandbox).not.to.have.property('idleExpiresAt');
      });
    }

    for (const [body, field] of [
      [{}, 'idleTimeout'],
      [undefined, 'idleTimeout'],
      [{ idleTimeout: '30' }, 'idleTimeout'],
      [{ idleTimeout: 30 }, 'idleTimeout'],
      [{ idleTimeout: '999999h' }, 'idleTimeout'],
      [{ idleTimeoutSeconds: '30' }, 'idleTimeoutSeconds'],
      [{ idleTimeoutSeconds: -1 }, 'idleTimeoutSeconds'],
      [{ idleTimeoutSeconds: 0.5 }, 'idleTimeoutSeconds'],
      [{ idleTimeoutSeconds: 400_000_000 }, 'idleTimeoutSeconds'],
      [{ idleTimeout: '5m', idleTimeoutSeconds: 300 }, 'idleTimeoutSeconds'],
    ] as const) {
      it(`refuses ${JSON.stringify(body)}`, async () => {
        const answer = await server.tenant.put(`/sandboxes/${id}/idle-timeout`, body);
        expect([answer.status, answer.json.errorCode]).to.deep.equal([400, 'INVALID_ARGUMENT']);
        expect(answer.json.detail!.field).to.equal(field);
      });
    }
  });
});
