import { expect } from 'chai';
import { unavailable } from '../../src/model/refusals.ts';
import { hangs } from '../support/harness/engine-operations.ts';
import { onACliDaemon, startCli, startCliInTerminal } from './cli-support.ts';

describe('sandpool wait', () => {
  const { daemon, sandpool } = onACliDaemon();

  const claimed = async (): Promise<string> =>
    (await sandpool('sandboxes', 'create')).stdout.trim();

  it('ends at once if the condition holds already', async () => {
    const id = await claimed();
    expect(await sandpool('wait', `sandbox/${id}`, '--for', 'running')).to.deep.equal({
      code: 0,
      stdout: `sandbox/${id} Running\n`,
      stderr: '',
    });
    expect(await sandpool('wait', 'pool/default', '--for', 'ready')).to.deep.equal({
      code: 0,
      stdout: 'pool/default Ready\n',
      stderr: '',
    });
  });

  it('waits until a sandbox has ended, silently in a pipe', async () => {
    const id = await claimed();
    const waiting = startCli(['wait', `sandbox/${id}`, '--for', 'ended'], {
      SANDPOOL_DATA_DIR: daemon().dataDir,
    });
    await sandpool('sandboxes', 'delete', id);
    expect(await waiting.ended).to.deep.equal({
      code: 0,
      stdout: `sandbox/${id} ended\n`,
      stderr: '',
    });
  });

  it('shows on a terminal what it waits for, and removes the line', async () => {
    const id = await claimed();
    const waiting = startCliInTerminal(
      ['wait', `sandbox/${id}`, '--for', 'ended'],
      { SANDPOOL_DATA_DIR: daemon().dataDir },
      { cols: 200, rows: 30 },
    );
    await waiting.shows('to be ended; it is Running');
    await sandpool('sandboxes', 'delete', id);
    expect(await waiting.ended).to.equal(0);
    expect(waiting.output()).to.match(new RegExp(String.raw`\x1b\[Ksandbox/${id} ended`));
  });

  it('ends with 1 after the timeout, and shows the state', async () => {
    const id = await claimed();
    const end = await sandpool('wait', `sandbox/${id}`, '--for', 'ended', '--timeout', '0.1s');
    expect(end).to.deep.equal({
      code: 1,
      stdout: '',
      stderr: 'sandpool: after 0.1s it is Running, not ended\n',
    });
  });

  it('ends with 1 at once if the condition cannot come true', async () => {
    daemon().operations.records.pools.remove = hangs;
    await sandpool('pools', 'delete', 'default');
    expect((await sandpool('wait', 'pool/default', '--for', 'ready')).stderr).to.equal(
      'sandpool: pool default is being deleted\n',
    );
    expect((await sandpool('wait', 'pool/none', '--for', 'ready')).stderr).to.include(
      'POOL_NOT_FOUND',
    );
    expect(
      (await sandpool('wait', 'sandbox/0190d4a5-7b1e-7c3a-9f00-00000000dead', '--for', 'running'))
        .stderr,
    ).to.include('SANDBOX_NOT_FOUND');
    expect(
      (await sandpool('wait', 'sandbox/0190d4a5-7b1e-7c3a-9f00-00000000dead', '--for', 'ended'))
        .stderr,
    ).to.include('SANDBOX_NOT_FOUND');
  });

  it('continues after a short outage of the daemon, and reports it, but not if it never answered', async () => {
    const { getPool } = daemon().operations;
    let looks = 0;
    const answers = (away: (look: number) => boolean) =>
      Object.assign(daemon().operations, {
        getPool: async (...asked: Parameters<typeof getPool>) => {
          looks += 1;
          if (away(looks)) throw unavailable('the store is away');
          return {
            ...(await getPool(...asked)),
            phase: looks === 1 ? ('Pending' as const) : ('Ready' as const),
          };
        },
      });
    answers((look) => look === 2 || look === 3);
    expect(await sandpool('wait', 'pool/default', '--for', 'ready')).to.deep.equal({
      code: 0,
      stdout: 'pool/default Ready\n',
      stderr: 'sandpool: the store is away; retrying\n',
    });

    answers(() => true);
    expect((await sandpool('wait', 'pool/default', '--for', 'ready')).code).to.not.equal(0);
  });

  it('refuses impossible conditions', async () => {
    expect((await sandpool('wait', 'default', '--for', 'ready')).stderr).to.include(
      'sandbox/ID or pool/NAME',
    );
    expect((await sandpool('wait', 'pool/default', '--for', 'ended')).stderr).to.include(
      '--for ready',
    );
    expect((await sandpool('wait', 'sandbox/x', '--for', 'ready')).stderr).to.include(
      '--for running',
    );
  });
});
