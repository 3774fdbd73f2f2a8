import { expect } from 'chai';
import { callsOf, failing, hangs, happens } from '../support/harness/engine-operations.ts';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { sandboxNotRunning } from '../../src/model/refusals.ts';
import { onACliDaemon } from './cli-support.ts';
import { line } from '../support/harness/line.ts';

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

describe('the commands about the service', () => {
  const { daemon, sandpool } = onACliDaemon();

  const claimed = async (): Promise<string> =>
    (await sandpool('sandboxes', 'create')).stdout.trim();

  describe('events', () => {
    it('shows the events of a pool', async () => {
      const owner = { namespace: 'team-default', team: 'default', user: 'default' };
      const base = { at: daemon().operations.clock.now(), owner, poolName: 'default' };
      happens(daemon().operations, { ...base, reason: 'StartFailed', why: 'no such command' });

      const { stdout, code } = await sandpool('events', 'pool', 'default');
      expect(code).to.equal(0);
      expect(stdout.split('\n').map((line) => line.replace(/^\S+ +/, ''))).to.deep.equal([
        'TYPE     REASON       MESSAGE',
        'Normal   Created      pool default was created',
        'Normal   Filled       pool default has all its 2 instances',
        'Warning  StartFailed  an instance of pool default did not start: no such command',
        '',
      ]);
      const spelledAsForWait = await sandpool('events', 'pool/default');
      expect(spelledAsForWait.stdout).to.equal(stdout);
    });

    it('suggests another command for resources without events', async () => {
      const said = async (...args: string[]) => {
        const { stderr, code } = await sandpool('events', ...args);
        expect(code).to.equal(1);
        return stderr;
      };
      expect(await said()).to.include('sandpool events pool NAME');
      expect(await said('pool')).to.include('name the pool');
      expect(await said('pool', 'nothing'))
        .to.include('pool nothing not found')
        .and.include('sandpool pools create nothing --template');
      expect(await said('env', 'shells'))
        .to.include('sandpool envs explain shells')
        .and.include('sandpool envs groups decisions shells GROUP');
      expect(await said('key', 'x')).to.include('key x has no list of events');
    });
  });

  describe('sandboxes', () => {
    it('create prints the id only, for scripts', async () => {
      const end = await sandpool('sandboxes', 'create', '--idle-timeout', '5m');
      expect(end.code).to.equal(0);
      expect(end.stdout.trim()).to.match(ID);
      expect(end.stderr).to.equal('');
      expect(daemon().operations.sandboxes.get(end.stdout.trim())?.idleTimeoutMs).to.equal(300_000);
    });

    it('get shows a finished sandbox as in the list', async () => {
      const id = (await sandpool('sandboxes', 'create')).stdout.trim();
      await sandpool('sandboxes', 'delete', id);
      await claimed();

      const end = await sandpool('sandboxes', 'get', id);
      expect([end.code, end.stderr]).to.deep.equal([0, '']);
      expect(end.stdout)
        .to.match(/status: +Completed\n/)
        .and.match(/end: +deleted\n/);
      const unknown = await sandpool('sandboxes', 'get', id.replace(/.{4}$/, 'ffff'));
      expect(unknown.code).to.equal(1);
      expect(unknown.stderr).to.include('sandpool sandboxes list --phase Completed');
    });

    it('create waits for the given time', async () => {
      const claims = callsOf(daemon().operations, 'claimSandbox');
      expect((await sandpool('sandboxes', 'create', '--wait', '30s')).code).to.equal(0);
      expect(claims.map(([, { waitMs }]) => waitMs)).to.deep.equal([30_000]);
    });

    it('create passes variables from files, options and the environment, and metadata', async () => {
      const claims = callsOf(daemon().operations, 'claimSandbox');
      const folder = mkdtempSync(join(tmpdir(), 'sandpool-cli-'));
      const file = join(folder, 'secrets.env');
      writeFileSync(file, '# note\n\nA=from a file\nB="as it stands" #=\r\nC=\n');
      const end = await sandpool(
        ...['sandboxes', 'create', '--env-file', file, '-e', 'A=1=2', '--env', 'HOME'],
        ...['--metadata', 'job=42', '--metadata', 'a.b=c d'],
      );
      rmSync(folder, { recursive: true });

      expect(end.stderr).to.equal('');
      expect(claims.at(-1)?.[1].env).to.deep.equal({
        A: '1=2',
        B: '"as it stands" #=',
        C: '',
        HOME: tmpdir(),
      });
      const id = end.stdout.trim();
      expect((await sandpool('sandboxes', 'get', id)).stdout).to.match(/metadata job: +42\n/);
      await claimed();
      const { stdout } = await sandpool('sandboxes', 'list', '--metadata', 'a.b=c d', '-o', 'json');
      expect(stdout).to.include(id).and.include('"total": 1');
    });

    it('create uploads files with their local permissions', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'sandpool-cli-'));
      const claims = callsOf(daemon().operations, 'claimSandbox');
      const [script, bytes] = [join(folder, 'run:me'), join(folder, 'bytes')];
      writeFileSync(script, '#!/bin/sh\n', { mode: 0o700 });
      writeFileSync(bytes, Buffer.from([0, 255]), { mode: 0o644 });
      const end = await sandpool(
        ...['sandboxes', 'create', '--file', `${script}:/tmp/run`],
        ...['--file', `${bytes}:/tmp/a:/b`],
      );
      rmSync(folder, { recursive: true });

      expect(end.stderr).to.equal('');
      expect(claims.at(-1)?.[1].files).to.deep.equal([
        { path: Buffer.from('/tmp/run'), content: Buffer.from('#!/bin/sh\n'), mode: 0o700 },
        { path: Buffer.from('/tmp/a:/b'), content: Buffer.from([0, 255]), mode: 0o644 },
      ]);
    });

    it('create names a file that it cannot read', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'sandpool-cli-'));
      const claims = callsOf(daemon().operations, 'claimSandbox');
      const large = join(folder, 'large');
      writeFileSync(large, Buffer.alloc((256 << 10) + 1));
      const many = Array.from({ length: 17 }, () => ['--file', `${folder}/x:/x`]).flat();
      for (const [args, said] of [
        [['--file', 'no-path'], 'an absolute path must follow the colon'],
        [['--file', ':/tmp/a'], 'an absolute path must follow the colon'],
        [['--file', `${folder}:/tmp/a`], 'is a folder'],
        [['--file', `${folder}/no:/tmp/a`], 'does not exist'],
        [['--file', `${large}:/tmp/a`], '256 KiB together'],
        [many, 'the maximum is 16'],
      ] as const) {
        const { stderr, code } = await sandpool('sandboxes', 'create', ...args);
        expect([code, stderr.includes(said)], stderr).to.deep.equal([1, true]);
      }
      rmSync(folder, { recursive: true });
      expect(claims).to.have.length(0);
    });

    it('create names an invalid variable without its value', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'sandpool-cli-'));
      const file = join(folder, 'secrets.env');
      for (const [text, said] of [
        ['A=1\nexport B=canary\n', 'line 2 of'],
        ['canary\n', 'line 1 of'],
        ['=canary\n', 'line 1 of'],
      ] as const) {
        writeFileSync(file, text);
        const { stderr, code } = await sandpool('sandboxes', 'create', '--env-file', file);
        expect([code, stderr.includes(said), stderr.includes('canary')], text).to.deep.equal([
          1,
          true,
          false,
        ]);
      }
      rmSync(folder, { recursive: true });
      for (const [args, said] of [
        [['--env', 'NO_SUCH_VARIABLE_HERE'], 'this variable is not set here'],
        [['--env', 'A-B=canary'], 'letters, digits and underscores'],
        [['--env-file', file], 'can’t be read'],
      ] as const) {
        const { stderr, code } = await sandpool('sandboxes', 'create', ...args);
        expect([code, stderr.includes('canary')], stderr).to.deep.equal([1, false]);
        expect(stderr).to.include(said);
      }
    });

    it('pause and resume print the new status of each sandbox', async () => {
      const [first, second] = [await claimed(), await claimed()];
      const paused = await sandpool('pause', first, second);
      expect([paused.code, paused.stdout]).to.deep.equal([
        0,
        `${first} paused\n${second} paused\n`,
      ]);
      expect((await sandpool('sandboxes', 'get', first)).stdout).to.include('Running, paused');
      expect((await sandpool('sandboxes', 'list')).stdout).to.include('Running, paused');
      const { stdout } = await sandpool('wait', `sandbox/${first}`, '--for', 'running');
      expect(stdout).to.equal(`sandbox/${first} Running, paused\n`);
      expect((await sandpool('resume', first)).stdout).to.equal(`${first} running\n`);
      expect((await sandpool('sandboxes', 'get', first)).stdout).to.not.include('paused');
    });

    it('list shows an aligned table', async () => {
      const first = await claimed();
      daemon().operations.clock.advance(1);
      const second = await claimed();
      const { stdout, code } = await sandpool('sandboxes', 'list');
      const lines = stdout.trimEnd().split('\n');
      expect(code).to.equal(0);
      expect(lines[0]).to.match(/^SANDBOX +POOL +STATUS +CLAIMED +DURATION +END$/);
      expect(lines.slice(1).map((line) => line.split(/ +/).slice(0, 3))).to.deep.equal([
        [second, 'default', 'Running'],
        [first, 'default', 'Running'],
      ]);
      const column = lines[0]?.indexOf('POOL') ?? -1;
      for (const line of lines.slice(1)) expect(line.slice(column)).to.match(/^default /);
    });

    it('list filters, pages, and reports that there are more', async () => {
      const both = [await claimed(), await claimed()]; // at the same time
      const lists = callsOf(daemon().operations, 'listSandboxes');
      const end = await sandpool(...line`sandboxes list --phase Running --pool default --limit 1`);
      expect(end.stdout.trim().split('\n')).to.have.length(2);
      expect(both.filter((id) => end.stdout.includes(id))).to.have.length(1);
      expect(end.stderr).to.equal(
        'sandpool: 1 of 2 shown; see the others with --limit and --offset\n',
      );
      expect(lists.at(-1)?.[1]).to.deep.include({
        poolName: 'default',
        phase: 'Running',
      });
      expect((await sandpool('sandboxes', 'list', '--offset', '1')).stderr).to.equal('');
    });

    it("list as JSON prints the service's own answer", async () => {
      const id = await claimed();
      const page = JSON.parse((await sandpool('sandboxes', 'list', '-o', 'json')).stdout);
      expect(page).to.deep.include({ total: 1, limit: 20, offset: 0 });
      expect(page.items[0]).to.deep.include({ sandboxId: id, status: 'Running' });
    });

    it('list shows more columns on request', async () => {
      await claimed();
      const { stdout } = await sandpool('sandboxes', 'list', '-o', 'wide');
      expect(stdout.split('\n')[0]).to.match(/ +NAMESPACE +OWNER +TERMINATED +CPU +MEMORY +IMAGE$/);
      expect(stdout).to.match(/team-default +default\/default +- +500m +256Mi +host$/m);
    });

    it('list as YAML has the same content as JSON', async () => {
      await claimed();
      const [yaml, json] = [
        (await sandpool('sandboxes', 'list', '-o', 'yaml')).stdout,
        (await sandpool('sandboxes', 'list', '-o', 'json')).stdout,
      ];
      expect(parse(yaml)).to.deep.equal(JSON.parse(json));
    });

    it('list of all needs an admin', async () => {
      const refused = await sandpool('sandboxes', 'list', '--all');
      expect(refused.code).to.equal(1);
      const allowed = await sandpool(
        ...line`sandboxes list --all --key-file`,
        join(daemon().dataDir, 'keys/admin.key'),
      );
      expect(allowed.code).to.equal(0);
    });

    it('get shows a sandbox', async () => {
      const id = await claimed();
      const { stdout } = await sandpool('sandboxes', 'get', id);
      expect(stdout)
        .to.match(new RegExp(`^sandbox: +${id}$`, 'm'))
        .and.match(/^status: +Running$/m)
        .and.match(/^owner: +default\/default$/m);
      expect(JSON.parse((await sandpool('sandboxes', 'get', id, '-o', 'json')).stdout)).to.include({
        sandboxId: id,
      });
    });

    it('delete gives back each named sandbox', async () => {
      const ids = [await claimed(), await claimed()];
      const end = await sandpool('sandboxes', 'delete', ...ids);
      expect(end.stdout).to.equal(ids.map((id) => `${id} Stopping\n`).join(''));
      expect(daemon().left()).to.deep.equal([]);
    });

    it("commands on an unknown sandbox fail with 1 and the service's message", async () => {
      const end = await sandpool('sandboxes', 'get', '0190d4a5-7b1e-7c3a-9f00-00000000dead');
      expect(end).to.deep.equal({
        code: 1,
        stdout: '',
        stderr:
          'sandpool: sandbox not found or already terminated (SANDBOX_NOT_FOUND)\n' +
          '  list recently finished sandboxes: sandpool sandboxes list --phase Completed\n',
      });
    });
  });

  describe('pools', () => {
    it('create makes a pool from a template, with labels', async () => {
      const end = await sandpool(
        ...line`pools create big --template default --replicas 20 --label a=1 --label b=2=3`,
      );
      expect(end.code).to.equal(0);
      expect(end.stdout)
        .to.match(/^pool: +big$/m)
        .and.match(/^replicas: +20$/m)
        .and.match(/^template: +default$/m);
      expect(daemon().operations.pools.get('team-default/big')).to.deep.include({
        replicas: 20,
        labels: { a: '1', b: '2=3' },
      });
    });

    it('create lists the existing templates', async () => {
      const end = await sandpool('pools', 'create', 'big', '--template', 'nope');
      expect(end.code).to.equal(1);
      expect(end.stderr).to.include('sandbox template not found').and.include('available: default');
    });

    it('list shows an aligned table', async () => {
      await claimed();
      const [heading, row] = (await sandpool('pools', 'list')).stdout.trimEnd().split('\n');
      expect(heading).to.match(
        /^POOL +PHASE +REPLICAS +IDLE +STARTING +RUNNING +FAILED +CPU +MEMORY$/,
      );
      expect(row?.split(/ +/)).to.deep.equal([
        'default',
        'Ready',
        '2',
        '1',
        '0',
        '1',
        '0',
        '500m',
        '256Mi',
      ]);
    });

    it("get shows a pool, and prints the service's own answer as JSON", async () => {
      expect((await sandpool('pools', 'get', 'default')).stdout).to.match(/^idle: +2$/m);
      expect(
        JSON.parse((await sandpool('pools', 'get', 'default', '-o', 'json')).stdout),
      ).to.deep.include({ name: 'default', spec: { replicas: 2 } });
    });

    it('update resizes a pool', async () => {
      expect((await sandpool('pools', 'update', 'default', '--replicas', '7')).stdout).to.match(
        /^replicas: +7$/m,
      );
    });

    it('delete keeps running sandboxes unless it is forced', async () => {
      daemon().operations.records.pools.remove = hangs;
      expect((await sandpool('pools', 'delete', 'default')).stdout).to.equal('default Deleting\n');
      expect(daemon().operations.pools.get('team-default/default')?.deleting).to.equal(
        'keep-running',
      );
      await sandpool('pools', 'create', 'other', '--template', 'default');
      await sandpool('pools', 'delete', 'other', '--force');
      expect(daemon().operations.pools.get('team-default/other')?.deleting).to.equal('force');
    });
  });

  describe('exec', () => {
    it('runs in the named sandbox, which stays', async () => {
      const id = await claimed();
      const end = await sandpool('exec', id, '--', 'sh', '-c', 'echo hi; exit 3');
      expect(end).to.deep.equal({ code: 3, stdout: 'hi\n', stderr: '' });
      expect(daemon().left()).to.deep.equal([id]);
    });

    it('ends with 125 if Sandpool refuses', async () => {
      const id = await claimed();
      failing(daemon().operations, sandboxNotRunning('Stopping'), 'execInSandbox');
      const end = await sandpool('exec', id, 'true');
      expect([end.code, end.stderr]).to.deep.equal([
        125,
        'sandpool: the sandbox is Stopping, not Running (SANDBOX_NOT_RUNNING)\n',
      ]);
    });

    it('ends with 125 without a sandbox or a command', async () => {
      expect((await sandpool('exec')).code).to.equal(125);
      expect((await sandpool('exec', 'some-id')).code).to.equal(125);
    });
  });

  it('show no foreign control characters in a table', async () => {
    await claimed();
    const { listSandboxes } = daemon().operations;
    daemon().operations.listSandboxes = async (...call) => {
      const page = await listSandboxes(...call);
      const poolName = 'evil\x1b[2J\npool';
      return { ...page, items: page.items.map((view) => ({ ...view, poolName })) };
    };
    const { stdout } = await sandpool('sandboxes', 'list');
    expect(stdout).to.include('evil?[2J?pool');
  });
});
