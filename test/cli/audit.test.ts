import { expect } from 'chai';
import { readFileSync, writeFileSync } from 'node:fs';
import { AuditUnderTest } from '../audit/an-audit.ts';
import { chainLine, CHAIN_START } from '../../src/services/audit/audit-chain.ts';
import { unavailable } from '../../src/model/refusals.ts';
import { eventually } from '../support/harness/eventually.ts';
import { cliHere, onACliDaemon, startCli } from './cli-support.ts';

describe('sandpool audit verify', () => {
  let audit: AuditUnderTest;
  beforeEach(async () => {
    audit = new AuditUnderTest();
    await audit.run(2);
  });
  afterEach(async () => {
    await audit.remove();
  });

  const file = (): string => audit.files[0] ?? '';
  const forge = (): void => {
    writeFileSync(
      file(),
      readFileSync(file(), 'utf8').replace('"requestId":"r-1"', '"requestId":"r-2"'),
    );
  };
  const last = (): string => String(audit.lines.at(-1)?.['hash']);

  it("reports that a folder's chain is complete, and its end", async () => {
    const end = await cliHere(['audit', 'verify', audit.folder]);

    expect(end).to.deep.equal({
      code: 0,
      stderr: '',
      stdout: `1 file, 4 lines: lines 1 to 4, the last with hash ${last()}\nthe chain is complete\n`,
    });
    expect((await cliHere(['audit', 'verify', file()])).code).to.equal(0);
  });

  it("finds the folder by the daemon's settings", async () => {
    expect(
      (await cliHere(['audit', 'verify'], { SANDPOOL_AUDIT_FOLDER: audit.folder })).code,
    ).to.equal(0);
  });

  it('reports its findings with positions, and ends with 1', async () => {
    forge();
    const end = await cliHere(['audit', 'verify', audit.folder]);
    const json = await cliHere(['audit', 'verify', audit.folder, '-o', 'json']);

    expect(end.code).to.equal(1);
    expect(end.stdout)
      .to.include(`${file()}:3`)
      .and.include('line 3 was changed')
      .and.include('1 finding\n');
    expect(json.code).to.equal(1);
    expect(
      (JSON.parse(json.stdout) as { readonly findings: readonly unknown[] }).findings,
    ).to.deep.equal([
      {
        kind: 'changed',
        file: file(),
        line: 3,
        problem: 'line 3 was changed: its hash differs',
      },
    ]);
  });

  it('compares the chain with a hash stored elsewhere', async () => {
    expect((await cliHere(['audit', 'verify', file(), '--head', `4:${last()}`])).code).to.equal(0);
    expect((await cliHere(['audit', 'verify', file(), '--head', `5:${last()}`])).stdout).to.include(
      'known to have reached line 5',
    );
    expect((await cliHere(['audit', 'verify', file(), '--head', '4:nonsense'])).code).to.equal(2);
  });

  it('ends with 3 without lines to verify', async () => {
    const none = await cliHere(['audit', 'verify', '--data-dir', '/nowhere']);

    expect([none.code, none.stderr.includes('/nowhere/audit')]).to.deep.equal([3, true]);
    expect((await cliHere(['audit', 'verify', '/nowhere/audit.jsonl'])).code).to.equal(3);
  });
});

describe('sandpool audit', function () {
  const { daemon, sandpool } = onACliDaemon();
  let end = CHAIN_START;
  const write = (requestId: string, more: object = {}): void => {
    const next = chainLine(end, {
      time: '2026-01-01T00:00:00.000Z',
      replica: 'r',
      kind: 'write',
      requestId,
      team: 'blue',
      user: 'ada',
      keyId: 'k1',
      operation: 'claimSandbox',
      status: 201,
      ...more,
    });
    end = next.end;
    daemon().operations.recentAudit.add([next.line]);
  };

  it('shows who changed what, oldest first', async () => {
    write('r-1', { target: { poolName: 'p', sandboxId: 's' } });
    write('r-2', { user: 'bob', status: 404, errorCode: 'POOL_NOT_FOUND' });

    const shown = await sandpool('audit', '--admin');
    expect(shown.stdout).to.match(
      /^TIME +WHO +WHAT +OUTCOME +OF\n2026-01-01T00:00:00Z +blue\/ada +claimSandbox +201 +p s\n2026-01-01T00:00:00Z +blue\/bob +claimSandbox +POOL_NOT_FOUND +-\n$/,
    );
    expect((await sandpool('audit', 'list', '--admin', '--user', 'bob', '-o', 'wide')).stdout)
      .to.include('r-2')
      .and.not.include('r-1');
    expect(
      JSON.parse((await sandpool('audit', '--limit', '1', '--admin', '-o', 'json')).stdout),
    ).to.have.nested.property('items[0].requestId', 'r-2');
    expect((await sandpool('audit')).stderr)
      .to.include('ADMIN_REQUIRED')
      .and.include('--admin');
  });

  it('follows new lines', async () => {
    write('r-1');
    const following = startCli(['audit', '-f', '--admin', '-o', 'json'], {
      SANDPOOL_DATA_DIR: daemon().dataDir,
    });
    await eventually(() => following.text.stdout.includes('r-1'), 'what was there');
    write('r-2');
    await eventually(() => following.text.stdout.includes('r-2'), 'what came');
    following.child.kill('SIGINT');
    await following.ended;

    expect(following.text.stdout.match(/"requestId":"[^"]*"/g)).to.deep.equal([
      '"requestId":"r-1"',
      '"requestId":"r-2"',
    ]);
  });

  it('continues after a short outage of the service', async () => {
    const { recentAudit: audit } = daemon().operations;
    write('r-1');
    const following = startCli(['audit', '-f', '--admin', '-o', 'json'], {
      SANDPOOL_DATA_DIR: daemon().dataDir,
    });
    await eventually(() => following.text.stdout.includes('r-1'), 'what was there');
    const before = audit.before.bind(audit);
    audit.before = async () => {
      audit.before = before;
      throw unavailable('the store is away');
    };
    write('r-2');
    await eventually(() => following.text.stdout.includes('r-2'), 'what came');
    following.child.kill('SIGINT');
    await following.ended;

    expect(following.text.stderr).to.equal('sandpool: the store is away; retrying\n');
  });
});

describe('sandpool log-level', () => {
  const { sandpool } = onACliDaemon();

  it('shows and changes the level', async () => {
    expect((await sandpool('log-level', '--admin')).stdout).to.equal('info (one)\n');
    expect((await sandpool('log-level', 'debug', '--for', '10m', '--admin')).stdout).to.match(
      /^debug, until .*Z; info in the settings \(one\)\n$/,
    );
    expect((await sandpool('log-level', 'warn', '--admin')).stdout).to.equal(
      'warn, until a restart; info in the settings (one)\n',
    );
    expect((await sandpool('log-level', 'loud', '--admin')).code).to.equal(2);
    expect((await sandpool('log-level', 'debug')).stderr).to.include('ADMIN_REQUIRED');
  });
});
