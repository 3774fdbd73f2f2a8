import { expect } from 'chai';
import { buffer } from 'node:stream/consumers';
import { rulesOf } from '../../http/an-approving-server.ts';
import { ANSWER_BYTES, caller, onAServedSandbox } from './a-served-sandbox.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { call, RpcStream, sent, type Json, type RpcAnswer } from './rpc-client.ts';

describe("calls to E2B's services", function () {
  const served = onAServedSandbox();
  beforeEach(() => {
    served().audited.length = 0;
    served().counted.length = 0;
  });
  afterEach(() => Object.assign(served(), { rules: [], caller }));

  const processes = (method: string, body: unknown) =>
    call(served().port, `/process.Process/${method}`, body);
  const files = (method: string, body: unknown) =>
    call(served().port, `/filesystem.Filesystem/${method}`, body);
  const readFile = async (path: string): Promise<number | undefined> => {
    const answer = await sent(served().port, `/files?path=${path}`, { method: 'GET' });
    await buffer(answer);
    return answer.statusCode;
  };
  const hold = (...rules: readonly string[]): void => {
    served().rules = rulesOf(...rules);
  };

  it('are audited if a rule refuses them, including reads', async () => {
    hold('deny operation=readFile', 'require operation=listFiles', 'deny operation=followProcess');
    const pid = await started();
    expect(await readFile('/etc/passwd')).to.equal(403);
    expect((await files('ListDir', { path: '/' })).status).to.equal(403);
    const stream = await RpcStream.open(served().port, '/process.Process/Connect', {
      process: { pid },
    });
    expect((await stream.end())['error']).to.include({ code: 'permission_denied' });
    await processes('SendSignal', { process: { pid }, signal: 9 });

    const told = served().audited.map(({ operation, status, errorCode }) => ({
      ...{ operation, status, errorCode },
    }));
    for (const operation of ['readFile', 'listFiles', 'followProcess'])
      expect(told).to.deep.include({ operation, status: 403, errorCode: 'APPROVAL_DENIED' });
  });

  it('that read are counted for an admin, and for nobody else', async () => {
    const { sandboxId } = served();
    const read = async (): Promise<void> => {
      expect(await readFile('/etc/passwd')).to.equal(200);
      expect((await files('Stat', { path: '/' })).status).to.equal(200);
    };
    await read();
    expect(served().counted).to.deep.equal([]);

    const admin = { ...caller, user: 'root', role: 'admin' } as const;
    served().caller = admin;
    await read();

    const params = { sandboxId };
    expect(served().counted).to.deep.equal([
      { kind: 'read', caller: admin, operation: 'readFile', params },
      { kind: 'read', caller: admin, operation: 'listFiles', params },
    ]);
    expect(served().audited).to.deep.equal([]);
  });

  it('can be gated by a rule on one process', async () => {
    const [one, other] = [await started(), await started()];
    const listed = served().driver.driver.processes;
    const facts = await listed.list(served().sandboxId);
    const { processId } = facts.find(({ pid }) => pid === one) ?? {};
    const { sandboxId } = served();
    hold(`deny path=/sandboxes/${sandboxId}/processes/${processId}/signal`);

    const kill = (pid: number): Promise<RpcAnswer> =>
      processes('SendSignal', { process: { pid }, signal: 9 });
    expect((await kill(one)).json).to.include({ code: 'permission_denied' });
    expect(served().audited.at(-1)).to.deep.include({
      operation: 'signalProcess',
      params: { sandboxId, processId },
      errorCode: 'APPROVAL_DENIED',
    });
    expect((await kill(other)).status).to.equal(200);

    hold(`allow path=/sandboxes/*/processes/${processId}/*`, 'deny operation=signalProcess');
    expect((await kill(one)).status).to.equal(200);
  });

  it("are refused for a long list beyond the tenant's memory for answers", async () => {
    const { answers, sandboxId, driver } = served();
    await driver.sh(sandboxId, 'mkdir /tmp/long; cd /tmp/long; touch $(seq 1000)');
    const list = (path: string) => files('ListDir', { path });
    const tenant = `${caller.namespace}/${caller.team}/${caller.user}`;
    const mine = answers.room(tenant);
    mine.hold(ANSWER_BYTES / 2 - 65_536);
    await started(['600', ...Array.from({ length: 30 }, () => `1e-${'0'.repeat(3_000)}`)]);

    const running = await processes('List', {});
    expect([running.status, running.json['code']]).to.deep.equal([429, 'resource_exhausted']);
    const refused = await list('/tmp/long');
    expect([refused.status, refused.json['code']]).to.deep.equal([429, 'resource_exhausted']);
    expect((await list('/')).status).to.equal(200);
    mine.release();
    const { status, json } = await list('/tmp/long');
    expect([status, (json['entries'] as Json[]).length]).to.deep.equal([200, 1_000]);
    // All of it is given back.
    await eventually(() => {
      const all = answers.room(tenant);
      try {
        all.hold(ANSWER_BYTES / 2);
        return true;
      } catch {
        return false;
      } finally {
        all.release();
      }
    }, 'the room is given back');
  });

  /** Starts a process that goes on, and returns its number. */
  const started = async (args: readonly string[] = ['600']): Promise<number> => {
    const stream = await RpcStream.open(served().port, '/process.Process/Start', {
      process: { cmd: 'sleep', args },
    });
    const message = await stream.until(({ event }) => 'start' in (event as Json));
    stream.leave();
    return ((message['event'] as Json)['start'] as { readonly pid: number }).pid;
  };
});
