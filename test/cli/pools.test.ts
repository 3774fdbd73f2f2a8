import { expect } from 'chai';
import { hangs } from '../support/harness/engine-operations.ts';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PoolRecord } from '../../src/model/pools/pool.ts';
import type { PoolCondition } from '../../src/model/pools/pool-condition.ts';
import { SandboxTemplateSchema } from '../../src/model/templates/template.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aCliDaemon, cli, cliHere, startCli, type CliDaemon, type CliEnd } from './cli-support.ts';
import { line } from '../support/harness/line.ts';

describe('sandpool pools', () => {
  let daemon: CliDaemon;
  let folder: string;
  let sandpool: (...args: readonly string[]) => Promise<CliEnd>;
  beforeEach(async () => {
    daemon = await aCliDaemon({ images: ['other'] });
    daemon.operations.types.push({
      ...{ name: 'small', showName: 'Small', description: '', maxMultiplier: 4 },
      ...{ extensions: {}, baseResources: { requests: {}, limits: { cpu: '1' } } },
    });
    folder = mkdtempSync(join(tmpdir(), 'sandpool-pools-'));
    sandpool = (...args) => cliHere(args, { SANDPOOL_DATA_DIR: daemon.dataDir });
  });
  afterEach(async () => {
    rmSync(folder, { recursive: true });
    await daemon.close();
  });

  const aFile = (text: string, name = 'pool.yaml'): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const recordOf = (name: string): PoolRecord | undefined =>
    daemon.operations.pools.get(`team-default/${name}`);

  it('get and delete reach the pools of others by --namespace, for an admin', async () => {
    const namespace = 'team-default';
    expect(await sandpool('pools', 'get', 'default', '--admin')).to.deep.include({ code: 1 });
    expect((await sandpool('pools', 'get', 'default', '--admin', '--namespace', namespace)).stdout)
      .to.include(namespace)
      .and.match(/^network: +none$/m);
    expect((await sandpool('pools', 'get', 'default', '--namespace', namespace)).stderr).to.include(
      'namespace needs a key with the admin role',
    );
    expect(
      await sandpool('pools', 'delete', 'default', '--admin', '--namespace', namespace),
    ).to.deep.include({ code: 0 });
  });

  describe('create and update', () => {
    it('take a YAML file and a JSON file', async () => {
      const yaml = await sandpool(
        ...line`pools create -f`,
        aFile(
          'name: big\ntemplateName: default\nreplicas: 3\noverrides:\n  defaultIdleTimeout: 5m\n',
        ),
      );
      expect([yaml.code, yaml.stderr]).to.deep.equal([0, '']);
      expect(yaml.stdout).to.match(/^pool: +big$/m);
      expect(recordOf('big'))
        .to.deep.include({ replicas: 3 })
        .and.have.deep.nested.property('source.overrides', { defaultIdleTimeout: '5m' });

      expect(
        (await sandpool('pools', 'update', '-f', aFile('{"name":"big","replicas":7}', 'pool.json')))
          .code,
      ).to.equal(0);
      expect(recordOf('big')?.replicas).to.equal(7);
    });

    it('can name the cluster of the pool', async () => {
      const create = (...of: readonly string[]) =>
        sandpool('pools', 'create', 'big', '--template', 'default', ...of);
      expect((await create('--cluster', 'elsewhere')).stderr).to.include('cluster not found');
      expect((await create('--cluster', 'local')).code).to.equal(0);
      expect(recordOf('big')).not.to.equal(undefined);
      const file = aFile('name: small\ntemplateName: default\nclusterID: elsewhere\n');
      expect((await sandpool('pools', 'create', '-f', file)).stderr).to.include('not found');
    });

    it('take standard input', async () => {
      const end = await cli(
        ['pools', 'create', 'big', '-f', '-'],
        { SANDPOOL_DATA_DIR: daemon.dataDir },
        'templateName: default\n',
      );
      expect([end.code, end.stderr]).to.deep.equal([0, '']);
      expect(recordOf('big')?.source).to.deep.include({ templateName: 'default' });
    });

    it('prefer options to the file, field by field in objects', async () => {
      const file = aFile(
        'templateName: default\nreplicas: 3\ncpu: 250m\noverrides: { image: host, defaultIdleTimeout: 5m }\n',
      );
      await sandpool(
        ...line`pools create big -f ${file} --replicas 4 --image other --max-unavailable 50%
          --auto-update off`,
      );
      const record = recordOf('big');
      expect(record?.replicas).to.equal(4);
      expect(record?.source).to.deep.include({
        cpu: '250m',
        overrides: { image: 'other', defaultIdleTimeout: '5m' },
      });

      await sandpool(
        ...line`pools update big --auto-update off --max-unavailable 2 --memory 512Mi
          --instance-type small --multiplier 1.5`,
      );
      expect(recordOf('big')?.updateStrategy).to.deep.equal({
        autoUpdate: false,
        maxUnavailable: '2',
      });
      expect(recordOf('big')?.source).to.deep.include({
        memory: '512Mi',
        instanceType: 'small',
        multiplier: 1.5,
      });
    });

    it('name an unknown field of a file', async () => {
      const end = await sandpool(
        ...line`pools create -f ${aFile('name: big\ntemplateName: default\nreplcas: 3\n')}`,
      );
      expect([end.code, end.stderr]).to.deep.equal([
        0,
        'sandpool: unknown field replcas; it was ignored\n',
      ]);
    });

    for (const [what, text, says] of [
      ['no object', '- a\n- b\n', 'does not contain an object'],
      ['nothing', '', 'does not contain an object'],
      ['neither YAML nor JSON', 'a: [1\nb', 'is neither YAML nor JSON'],
      ['several documents', 'a: 1\n---\nb: 2\n', 'one file for each document'],
      ['one field twice', 'name: a\nname: b\n', 'is neither YAML nor JSON'],
      [
        'what grows beyond all bounds',
        `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [${'*a,'.repeat(99)}]\nc: [${'*b,'.repeat(99)}]\n`,
        'can’t be read',
      ],
      ['too much', 'x'.repeat(1_100_000), 'larger than 1 MiB'],
      ['another name', 'name: other\ntemplateName: default\n', 'describes other, not big'],
      ['nothing of what instances are made from', 'replicas: 3\n', '--template NAME'],
      ['a wrong field', 'templateName: default\nreplicas: many\n', 'replicas'],
    ] as const) {
      it(`refuse a file that contains ${what}, with the remedy`, async () => {
        const end = await sandpool('pools', 'create', 'big', '-f', aFile(text));
        expect([end.code, end.stdout]).to.deep.equal([1, '']);
        expect(end.stderr).to.include(says);
        expect(recordOf('big')).to.equal(undefined);
      });
    }

    it('refuse a call without a name, a file or any change', async () => {
      expect((await sandpool('pools', 'create', '--template', 'default')).stderr).to.include(
        'no name was given',
      );
      expect(
        (await sandpool('pools', 'create', 'big', '-f', join(folder, 'none.yaml'))).stderr,
      ).to.match(/none\.yaml can’t be read: ENOENT/);
      expect(await sandpool('pools', 'update', 'default'))
        .to.deep.include({ code: 1 })
        .and.property('stderr')
        .include('there is nothing to change');
    });
  });

  describe('sync-template', () => {
    it('shows what it would apply, and applies it', async () => {
      const preview = await sandpool('pools', 'sync-template', 'default', '--preview');
      expect(preview.stdout).to.include('image: host');
      expect(
        JSON.parse(
          (await sandpool('pools', 'sync-template', 'default', '--preview', '-o', 'json')).stdout,
        ),
      ).to.deep.equal({ specYaml: preview.stdout, version: '1' });
      expect((await sandpool('pools', 'sync-template', 'default')).stdout).to.match(
        /^pool: +default$/m,
      );
    });
  });

  describe('rollout status', () => {
    /** What is shown of the pool, in place of how it stands. */
    let shown: Partial<PoolRecord>;
    beforeEach(() => {
      shown = {};
      const { getPool } = daemon.operations;
      daemon.operations.getPool = async (...call) => {
        const { record, conditions, ...view } = await getPool(...call);
        const changed = { ...record, ...shown };
        return { ...view, record: changed, conditions: changed.conditions ?? conditions };
      };
    });
    const say = (reason: string, message: string, more: Partial<PoolCondition> = {}): void => {
      shown = {
        ...shown,
        conditions: [{ type: 'Progressing', status: 'False', reason, message, since: 0, ...more }],
      };
    };

    it('shows the progress', async () => {
      const end = await sandpool('pools', 'rollout', 'status', 'default');
      expect([end.code, end.stderr]).to.deep.equal([0, '']);
      expect(end.stdout)
        .to.match(/^rollout: +done$/m)
        .and.match(/^revision: +f539b027c9c74344$/m)
        .and.match(/^max unavailable: +25%$/m);
      expect(
        JSON.parse((await sandpool('pools', 'rollout', 'status', 'default', '-o', 'json')).stdout),
      ).to.include({ name: 'default' });
      say('RollingOut', 'instances are replaced', { status: 'True' });
      expect((await sandpool('pools', 'rollout', 'status', 'default')).stdout).to.match(
        /^rollout: +under way$/m,
      );
    });

    it('watched, shows each change until the end', async () => {
      say('RollingOut', 'instances are replaced', { status: 'True' });
      const watching = startCli(['pools', 'rollout', 'status', 'default', '--watch'], {
        SANDPOOL_DATA_DIR: daemon.dataDir,
      });
      await eventually(() => watching.text.stdout !== '', 'it shows the first line');
      say('RolloutComplete', '');
      const end = await watching.ended;
      expect([end.code, end.stderr]).to.deep.equal([0, '']);
      expect(end.stdout).to.equal(
        'default: 2 of revision f539b027c9c74344, 0 starting, 0 to be replaced\ndefault is rolled out: 2 of revision f539b027c9c74344\n',
      );
    });

    it('waits until the pool has the latest version of its template, or shows why it cannot', async () => {
      const document = SandboxTemplateSchema.parse({
        apiVersion: 'sandpool.dev/v1alpha1',
        kind: 'SandboxTemplate',
        metadata: { name: 'default' },
        spec: { containers: [{ name: 'main', image: 'host' }] },
      });
      const { templates } = daemon.operations.records; // which nobody reports to the pool
      const record = { ...templates.records.get('default')!, version: '2', document };
      templates.records.set('default', record);
      const change = (part: Partial<PoolRecord>): void => {
        shown = { ...shown, ...part };
      };
      const watching = startCli(['pools', 'rollout', 'status', 'default', '--watch'], {
        SANDPOOL_DATA_DIR: daemon.dataDir,
      });
      await eventually(
        () => watching.text.stdout.includes('0 to be replaced'),
        'it shows the first line',
      );
      change({ templateVersion: '2' });
      expect((await watching.ended).stdout).to.match(
        /0 to be replaced\ndefault is rolled out: 2 of revision f539b027c9c74344\n$/,
      );

      change({ templateVersion: '1', updateStrategy: { autoUpdate: false, maxUnavailable: '1' } });
      expect((await sandpool('pools', 'rollout', 'status', 'default')).stdout).to.match(
        /^rollout: +done$/m,
      );
      change({
        updateStrategy: { autoUpdate: true, maxUnavailable: '1' },
        source: { ...recordOf('default')!.source, templateVersion: '1' },
      }); // it is there
      expect((await sandpool('pools', 'rollout', 'status', 'default')).stdout, 'pinned').to.match(
        /^rollout: +done$/m,
      );
      change({
        unresolved: { reason: 'SourceInvalid', message: 'no such volume', templateVersion: '2' },
      });
      say('SourceInvalid', 'no such volume', { type: 'TemplateResolved' });
      const end = await sandpool('pools', 'rollout', 'status', 'default', '--watch');
      expect([end.code, end.stderr.split('\n')[0]]).to.deep.equal([
        1,
        'sandpool: default cannot use its template: no such volume',
      ]);
    });

    it('watched as JSON, prints the pool on a line each', async () => {
      const [first, ...rest] = (
        await sandpool('pools', 'rollout', 'status', 'default', '-w', '-o', 'json')
      ).stdout.split('\n');
      expect(JSON.parse(first ?? '')).to.include({ name: 'default' });
      expect(rest).to.deep.equal(['']);
    });

    for (const [reason, message, type, says] of [
      [
        'RolloutBlocked',
        'revision x does not start: no such image',
        'Progressing',
        /has stopped: revision x does not start: no such image\n {2}change the pool/,
      ],
      [
        'UpdateHeld',
        'what changed waits',
        'Progressing',
        /waits: what changed waits\n.*--preview\n.*sandpool pools sync-template default\n/,
      ],
      ['StartsFail', 'no such image', 'Degraded', /do not start: no such image\n/],
    ] as const) {
      it(`ends with 1 and the explanation if the reason is ${reason}`, async () => {
        say(reason, message, { type });
        for (const watch of [[], ['--watch']]) {
          const end = await sandpool('pools', 'rollout', 'status', 'default', ...watch);
          expect(end.code).to.equal(1);
          expect(end.stderr).to.match(says);
        }
      });
    }

    it('watched, ends with 1 after the timeout or when the pool is deleted', async () => {
      say('RollingOut', 'instances are replaced', { status: 'True' });
      const end = await sandpool(...line`pools rollout status default --watch --timeout 0.5s`);
      expect(end.stderr).to.include('was not done within 0.5s');
      expect(end.stdout).to.match(/^default: [^\n]*\n$/);
      daemon.operations.records.pools.remove = hangs;
      await sandpool('pools', 'delete', 'default');
      expect(
        (await sandpool('pools', 'rollout', 'status', 'default', '--watch')).stderr,
      ).to.include('is being deleted');
    });
  });
});
