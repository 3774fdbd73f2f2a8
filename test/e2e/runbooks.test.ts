import { expect } from 'chai';
import { execFile, execFileSync } from 'node:child_process';
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { aTemplateFolder, claim, clear, stocked } from '../support/harness/on-a-daemon.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { line } from '../support/harness/line.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PAGE = readFileSync(join(ROOT, 'docs/operating.md'), 'utf8');

/** The commands with which a runbook begins, and what it says of them. */
const runbookOf = (alert: string): { readonly line: string; readonly commands: string[] } => {
  const [, line = ''] = new RegExp(`\\n### ${alert}\\n\\n([^\\n]+)`).exec(PAGE) ?? [];
  return { line, commands: [...line.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text) };
};

/** What the commands of docs/operating.md print on one machine where what they are for is so. */
describe('the runbooks on a failing daemon', function () {
  let templates: ReturnType<typeof aTemplateFolder>;
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let admin: HttpClient;

  before(async () => {
    templates = aTemplateFolder({
      broken: {
        description: 'ends at once',
        containers: [{ name: 'main', image: 'host', command: ['/no/such/program'] }],
      },
    });
    daemon = await DaemonUnderTest.start(line`--default-pool-replicas 2
      --templates-dir ${templates.folder} --breaker-failures 1`);
    client = daemon.client();
    admin = daemon.client(daemon.adminKey);
    await stocked(client, 2);
  });
  after(async () => {
    await daemon.dispose();
    templates.remove();
  });

  /** Types the command of a runbook that begins so, with this in place of what it leaves open. */
  const types = async (
    alert: string,
    start: string,
    filled: Readonly<Record<string, string>> = {},
    dataDir = daemon.dataDir,
  ): Promise<string> => {
    const { commands, line } = runbookOf(alert);
    let command = commands.find((text) => text.startsWith(start)) ?? '';
    expect(command, line).to.not.equal('');
    for (const [open, text] of Object.entries(filled)) command = command.replaceAll(open, text);
    const { stdout, stderr } = await promisify(execFile)(
      'bash',
      ['-c', command.replaceAll(/^sandpool /g, `"$SANDPOOL" `)],
      {
        env: {
          ...process.env,
          SANDPOOL: join(ROOT, 'bin/sandpool'),
          SANDPOOL_DATA_DIR: dataDir,
          TERM: 'dumb',
        },
      },
    ).catch((error: { stdout: string; stderr: string }) => error);
    return stdout + stderr;
  };
  const aPool = async (name: string, part: object): Promise<void> => {
    const made = await client.post('/sandboxpools', { name, templateName: 'default', ...part });
    expect(made.status, made.text).to.equal(201);
  };

  it('SandpoolPoolsCannotStart, SandpoolStartsFail: show a pool with a missing command', async () => {
    await aPool('drill', { templateName: 'broken', replicas: 1 });
    await within('it gives up', async () =>
      (await client.get('/sandboxpools/drill')).json.template?.['status'] &&
      (await types('SandpoolPoolsCannotStart', 'sandpool top --broken')).includes('drill')
        ? true
        : undefined,
    );
    for (const alert of ['SandpoolPoolsCannotStart', 'SandpoolStartsFail']) {
      const lines = (await types(alert, 'sandpool top --broken')).trim().split('\n');
      const below = lines.slice(lines.findIndex((line) => / CAUSE *$/.test(line)) + 1);
      expect(below, lines.join('\n')).to.have.length(1);
      expect(below[0]).to.match(/drill .*\/no\/such\/program/);
    }
    const failed = await types('SandpoolPoolsCannotStart', 'sandpool pools list --phase Failed');
    expect(failed.trim().split('\n')).to.have.length(2);
    expect(failed).to.match(/^drill /m);
    await client.delete('/sandboxpools/drill?force=true');
  });

  it('SandpoolClaimsFindNone: shows a used-up pool', async () => {
    await aPool('empty', { replicas: 0 });
    expect((await client.post('/sandboxes', { poolName: 'empty' })).status).to.equal(429);
    const shown = await types('SandpoolClaimsFindNone', 'sandpool top');
    const heads = /^.*\bIDLE\b.*$/m.exec(shown)?.[0] ?? shown;
    expect(heads).to.include('STARTING');
    const row = /^.*\bempty\b.*$/m.exec(shown)?.[0] ?? shown;
    expect(row.slice(heads.indexOf('IDLE')).trim().split(/ +/)[0]).to.equal('0');
    await client.delete('/sandboxpools/empty');
  });

  it('SandpoolQuotasReached: shows a used-up quota of one', async () => {
    await claim(client);
    await admin.put('/admin/quotas/default/default', { sandboxes: 1 });
    expect((await client.post('/sandboxes', { poolName: 'default' })).status).to.equal(429);
    expect(await types('SandpoolQuotasReached', 'sandpool stats')).to.include('default');
    const shown = await types('SandpoolQuotasReached', 'sandpool quotas get', {
      TEAM: 'default',
      USER: 'default',
    });
    const heads = /^.*REMAINING.*$/m.exec(shown)?.[0] ?? shown;
    const row = /^.*sandboxes.*$/m.exec(shown)?.[0] ?? shown;
    expect(row.slice(heads.indexOf('REMAINING')).trim()).to.match(/^0\b/);
    await admin.put('/admin/quotas/default/default', { sandboxes: 100 });
    await clear(client);
  });

  it('SandpoolShardsWithoutLeader, SandpoolClaimsSlow, SandpoolOutboxStuck: show leaders and pending work', async () => {
    expect(await types('SandpoolShardsWithoutLeader', 'sandpool replicas')).to.match(
      / SHARDS *\n.* 0 1 2 .* 15 *\n$/,
    );
    for (const alert of ['SandpoolClaimsSlow', 'SandpoolOutboxStuck'])
      expect(await types(alert, 'sandpool replicas')).to.match(/^REPLICA .*UNDER WAY/);
  });

  it("SandpoolLoopLate, SandpoolDeadlinesLate: show the daemon's process", async () => {
    for (const alert of ['SandpoolLoopLate', 'SandpoolDeadlinesLate']) {
      const { commands } = runbookOf(alert);
      const [, found = ''] = /\$\((pgrep [^)]*'\([^)]*\)[^)]*)\)/.exec(commands[0] ?? '') ?? [];
      expect(found, commands[0]).to.not.equal('');
      const { stdout } = await promisify(execFile)('bash', ['-c', found]);
      expect(stdout.trim().split(',')).to.include(String(daemon.run.process.pid));
    }
  });

  it('SandpoolMachineBroken: leaves no broken actor', async () => {
    const shown = await types('SandpoolMachineBroken', 'curl', {
      $KEY: daemon.adminKey,
      'http://ADDRESS': daemon.run.address,
    });
    expect(JSON.parse(shown)).to.deep.include({ items: [] });
  });

  it('SandpoolKeyEnds: shows when each key expires', async () => {
    const shown = await types('SandpoolKeyEnds', 'sandpool keys list');
    const heads = /^.*EXPIRES.*$/m.exec(shown)?.[0] ?? shown;
    const row = /^.*default.*$/m.exec(shown)?.[0] ?? shown;
    expect(row.slice(heads.indexOf('EXPIRES'))).to.match(/^\d{4}-\d\d-\d\dT/);
  });

  it("SandpoolRequestsFail, SandpoolClaimsFail, SandpoolTurnsAway: show the daemon's log", async () => {
    const filters = ['SandpoolRequestsFail', 'SandpoolClaimsFail', 'SandpoolTurnsAway'].map(
      (alert) => /grep '?([^'`]+)'?$/.exec(runbookOf(alert).commands[0] ?? '')?.[1] ?? alert,
    );
    await client.get('/sandboxes/none');
    const line = await within('a refusal is in the log', () =>
      daemon.run
        .stderr()
        .split('\n')
        .find((text) => text.includes('SANDBOX_NOT_FOUND')),
    );
    expect(filters).to.deep.equal(['"status":5', '"status":50', 'keyId']);
    // with a selector kubectl shows ten lines of each replica unless told
    expect(
      PAGE.match(/`kubectl logs -l [^`]*`/g)?.filter((text) => !text.includes('--tail')),
    ).to.deep.equal([]);
    expect(JSON.parse(line)).to.include.keys('status', 'errorCode', 'keyId');
    expect(line).to.include('"status":404');
  });

  it('SandpoolAuditLost: shows existing and lost lines', async () => {
    expect(await types('SandpoolAuditLost', 'sandpool audit verify')).to.include(
      'the chain is complete',
    );
    const folder = join(daemon.dataDir, 'audit');
    await client.post('/sandboxes', { poolName: 'nowhere' });
    await daemon.stop();
    renameSync(folder, `${folder}-away`);
    expect(await types('SandpoolAuditLost', 'sandpool audit verify')).to.not.include(
      'the chain is complete',
    );
    renameSync(`${folder}-away`, folder);
    const last = join(
      folder,
      readdirSync(folder)
        .filter((name) => name.endsWith('.jsonl'))
        .at(-1) ?? '',
    );
    const lines = readFileSync(last, 'utf8').trimEnd().split('\n');
    writeFileSync(last, `${lines.toSpliced(1, 1).join('\n')}\n`);
    expect(await types('SandpoolAuditLost', 'sandpool audit verify')).to.match(/^missing /m);
    writeFileSync(last, `${lines.join('\n')}\n`);
    await daemon.start();
  });

  it('SandpoolStoreFails: shows a full disk', async function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'only root may mount a small disk');
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-full-'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]);
    try {
      writeFileSync(join(folder, 'all'), Buffer.alloc(1 << 20));
    } catch {
      // that is all that there is room for
    }
    const shown = await types('SandpoolStoreFails', 'sandpool doctor', {}, folder);
    execFileSync('umount', [folder]);
    rmdirSync(folder);
    expect(shown)
      .to.match(/^problem +disk +.* at /m)
      .and.include('→ make room');
  });

  it('SandpoolDown, SandpoolStoreFails, SandpoolNotReady: show a missing and a ready daemon', async () => {
    expect(await types('SandpoolStoreFails', 'sandpool doctor')).to.match(/^ok +disk +/m);
    expect(
      JSON.parse(await types('SandpoolNotReady', 'curl', { 'http://ADDRESS': daemon.run.address })),
    ).to.deep.include({ problems: [] });
    expect(await types('SandpoolDown', 'sandpool doctor')).to.match(/^ok +daemon +http/m);
    await daemon.stop();
    expect(await types('SandpoolDown', 'sandpool doctor')).to.match(/daemon +(none|no) /m);
    await daemon.start();
  });
});
