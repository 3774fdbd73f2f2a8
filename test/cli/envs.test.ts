import { expect } from 'chai';
import { hangs } from '../support/harness/engine-operations.ts';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { EnvCondition } from '../../src/model/envs/env-condition.ts';
import type { ObservedMember } from '../../src/actors/views.ts';
import type { EnvRecord } from '../../src/model/envs/env.ts';
import { envHasRunningSandboxes, envSyncPartial, poolOfEnv } from '../../src/model/refusals.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aCliDaemon, cliHere, startCli, type CliDaemon, type CliEnd } from './cli-support.ts';
import { line } from '../support/harness/line.ts';

const KEY = 'team-default/web';

describe('sandpool envs', () => {
  let daemon: CliDaemon;
  let folder: string;
  let sandpool: (...args: readonly string[]) => Promise<CliEnd>;
  beforeEach(async () => {
    daemon = await aCliDaemon({ images: ['python', 'node'] });
    daemon.operations.types.push({
      ...{ name: 'large', showName: 'Large', description: '', maxMultiplier: 4 },
      ...{ extensions: {}, baseResources: { requests: {}, limits: { cpu: '8', memory: '8Gi' } } },
    });
    const volume = {
      ...{ displayName: '', capacity: '1Gi', accessModes: ['ReadWriteMany'] },
      ...{ storageClass: 'fast', phase: 'Bound' as const },
    };
    const claims = ['data', 'models'].map((claimName) => ({ ...volume, claimName }));
    daemon.operations.volumesOf.set('team-default', claims);
    folder = mkdtempSync(join(tmpdir(), 'sandpool-envs-'));
    sandpool = (...args) => cliHere(args, { SANDPOOL_DATA_DIR: daemon.dataDir });
  });
  afterEach(async () => {
    rmSync(folder, { recursive: true });
    await daemon.close();
  });

  const aFile = (text: string, name = 'env.yaml'): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const record = (): EnvRecord =>
    daemon.operations.records.envs.records.get(KEY) ?? expect.fail('there is no env web');
  const done = async (...args: readonly string[]): Promise<string> => {
    const end = await sandpool(...args);
    expect([end.code, end.stderr]).to.deep.equal([0, '']);
    return end.stdout;
  };
  const withMember = async (): Promise<void> => {
    await done('envs', 'create', 'web', '--template', 'default');
    await done(...line`envs members add web --name small --replicas 4 --max-replicas 10`);
  };
  /** What is shown of the env, and of each member, in place of how it stands. */
  let shown: { conditions?: EnvRecord['conditions']; member?: Partial<ObservedMember> };
  beforeEach(() => {
    shown = {};
    const { getEnv } = daemon.operations;
    daemon.operations.getEnv = async (...call) => {
      const view = await getEnv(...call);
      const observed = view.observed.map((each) => ({ ...each, ...shown.member }));
      return { ...view, observed, conditions: shown.conditions ?? view.conditions };
    };
  });
  const observe = (member: Partial<ObservedMember>): void => {
    shown.member = member;
  };
  const say = (
    ...conditions: readonly Pick<EnvCondition, 'type' | 'status' | 'reason' | 'message'>[]
  ): void => {
    shown.conditions = conditions.map((condition) => ({ ...condition, since: 0 }));
  };

  describe('create and update', () => {
    /** Changes the template until it is of that version. */
    const untilVersion = async (version: number): Promise<void> => {
      for (let last = 1; last < version; last += 1)
        await done(
          ...line`templates update default --description ${`version ${last + 1}`} --admin`,
        );
    };

    it('take options', async () => {
      await untilVersion(3);
      const shown = await done(
        ...line`envs create web --template default --template-version 3 --image python
          --image-policy EnvOverrideImage --startup-timeout 90s --idle-timeout 30m --gateway on
          --verbose off --auto-update off --max-unavailable 2 --volume data:/data
          --volume models:/models:ro --label for=tests --annotation by=me
          --docs ${aFile('# Web\n', 'web.md')}`,
      );
      expect(shown)
        .to.match(/^env: +web$/m)
        .and.match(/^override image: +python$/m);
      expect(record()).to.deep.include({
        templateRef: { name: 'default', version: '3' },
        mode: 'WarmPool',
        labels: { for: 'tests' },
        annotations: { by: 'me' },
        envDocs: '# Web\n',
        overrides: {
          image: 'python',
          podCreationImagePolicy: 'EnvOverrideImage',
          defaultStartupTimeout: '90s',
          defaultIdleTimeout: '30m',
          gateway: { enabled: true },
          envd: { verbose: false },
          updateStrategy: { autoUpdate: false, maxUnavailable: '2' },
          volumes: [
            { claimName: 'data', mountPath: '/data' },
            { claimName: 'models', mountPath: '/models', readOnly: true },
          ],
        },
      });
    });

    it('take a file, and prefer options to its fields', async () => {
      await done(
        ...line`envs create -f`,
        aFile(
          'name: web\ntemplateRef: { name: default }\noverrides:\n  image: python\n  defaultIdleTimeout: 5m\n',
        ),
        '--image',
        'node',
      );
      expect(record().overrides).to.deep.equal({ image: 'node', defaultIdleTimeout: '5m' });
      await done(
        ...line`envs update
          -f ${aFile('{"name":"web","overrides":{"defaultIdleTimeout":null}}', 'env.json')}
          --label for=tests`,
      );
      expect(record()).to.deep.include({ overrides: { image: 'node' }, labels: { for: 'tests' } });
    });

    it('change named fields and keep the rest', async () => {
      await done(...line`envs create web --template default --image python --idle-timeout 5m`);
      await done('envs', 'update', 'web', '--idle-timeout', '1h');
      expect(record().overrides).to.deep.equal({ image: 'python', defaultIdleTimeout: '1h' });
      await done('envs', 'update', 'web', '--unset', 'image', 'defaultIdleTimeout');
      expect(record().overrides).to.deep.equal({});
    });

    it('pin a version of the template, follow it again, and change other fields', async () => {
      await untilVersion(4);
      await done(...line`envs create web --template default --image python --label for=tests`);
      await done('envs', 'update', 'web', '--template-version', '4');
      expect(record()).to.deep.include({
        templateRef: { name: 'default', version: '4' },
        overrides: { image: 'python' },
        labels: { for: 'tests' },
      });
      await done('envs', 'update', 'web', '--template-version', 'latest', '--image', 'node');
      expect(record()).to.deep.include({
        templateRef: { name: 'default' },
        overrides: { image: 'node' },
        labels: { for: 'tests' },
      });
    });

    it('print the changeable fields, as a file for update', async () => {
      await done('envs', 'create', 'web', '--template', 'default', '--image', 'python');
      const file = aFile(await done('envs', 'get', 'web', '--editable'));
      expect(readFileSync(file, 'utf8')).to.include('image: python');
      writeFileSync(file, readFileSync(file, 'utf8').replace('image: python', 'image: node'));
      await done('envs', 'update', '-f', file);
      expect(record().overrides).to.deep.equal({ image: 'node' });
      expect(
        JSON.parse(await done('envs', 'get', 'web', '--editable', '-o', 'json')),
      ).to.deep.include({ name: 'web', mode: 'WarmPool' });
    });

    for (const [args, says] of [
      [['create', 'web'], '--template NAME'],
      [['create', '--template', 'default'], 'no name was given'],
      [['update', 'web'], 'there is nothing to change'],
      [['update', 'web', '--unset', 'colour'], 'colour is not an override'],
      [['update', 'web', '--image', 'python'], 'sandpool envs list'],
    ] as const) {
      it(`refuse ${args.join(' ')} with the remedy`, async () => {
        const end = await sandpool('envs', ...args);
        expect([end.code, end.stdout]).to.deep.equal([1, '']);
        expect(end.stderr).to.include(says);
      });
    }

    for (const args of [
      ['--volume', 'data'],
      ['--volume', ':/data'],
      ['--gateway', 'perhaps'],
      ['--image-policy', 'Other'],
    ]) {
      it(`end with 2 for ${args.join(' ')}`, async () => {
        expect(
          (await sandpool('envs', 'create', 'web', '--template', 'default', ...args)).code,
        ).to.equal(2);
      });
    }
  });

  it('are listed and shown', async () => {
    await withMember();
    expect(await done('envs', 'list')).to.match(
      /^ENV +READY +MEMBERS +DESIRED +IDLE +RUNNING +TEMPLATE\nweb +True +1 +4 +4 +0 +default\n$/,
    );
    expect(await done('envs', 'get', 'web'))
      .to.match(/^members: +1$/m)
      .and.match(/^desired: +4$/m);
    expect(JSON.parse(await done('envs', 'get', 'web', '-o', 'json'))).to.include({ name: 'web' });
  });

  it('are deleted', async () => {
    await done('envs', 'create', 'web', '--template', 'default');
    daemon.operations.records.envs.remove = hangs;
    expect(await done('envs', 'delete', 'web')).to.equal('web Deleting\n');
    expect(record().deleting).to.equal('keep-running');
  });

  it('explain the remedy if they have running sandboxes', async () => {
    Object.assign(daemon.operations, {
      deleteEnv: async () => {
        throw envHasRunningSandboxes(3);
      },
    });
    expect((await sandpool('envs', 'delete', 'web')).stderr).to.include(
      'sandpool envs delete ENV --force',
    );
  });

  describe('sync', () => {
    it('reports the synced members', async () => {
      await withMember();
      expect(await done('envs', 'sync', 'web')).to.equal(
        'web: 1 member synced with template default\n',
      );
    });

    it('reports the failed members', async () => {
      Object.assign(daemon.operations, {
        syncEnv: async () => {
          throw envSyncPartial(
            ['small'],
            [{ member: 'big', clusterID: 'local', error: 'no such image' }],
          );
        },
      });
      const end = await sandpool('envs', 'sync', 'web');
      expect(end.code).to.equal(1);
      expect(end.stderr)
        .to.include('big: no such image')
        .and.include('sync the others: sandpool envs sync ENV');
    });
  });

  describe('members', () => {
    it('are added, listed, changed and removed', async () => {
      await withMember();
      expect(await done('envs', 'members', 'list', 'web')).to.match(/^small +\w+ +4 /m);
      expect(
        await done(...line`envs members update web small --max-replicas 20 --priority -3`),
      ).to.match(/^pool: +small$/m);
      expect(record().members[0]?.config).to.deep.include({
        maxReplicas: 20,
        priority: -3,
        scalingGroup: 'small',
      });
      expect(await done('envs', 'members', 'remove', 'web', 'small')).to.equal('small Deleting\n');
      expect(record().members).to.deep.equal([]);
    });

    it('take every option, and a file', async () => {
      await withMember();
      const big = aFile(
        'name: big\nreplicas: 2\ninlineResources: { limits: { cpu: "2", memory: 1Gi } }\n',
      );
      await done(
        ...line`envs members add web -f ${big} --instance-type large --multiplier 1.5 --cpu 4 --min-replicas 1 --group small
          --priority 2 --scale-up-priority 3 --scale-down-priority 4 --auto-update off
          --max-unavailable 50% --label for=tests`,
      );
      expect(record().members[1]).to.deep.include({
        name: 'big',
        replicas: 2,
        config: {
          instanceType: 'large',
          multiplier: 1.5,
          inlineResources: { requests: { cpu: '4' }, limits: { cpu: '4', memory: '1Gi' } },
          minReplicas: 1,
          scalingGroup: 'small',
          priority: 2,
          scaleUpPriority: 3,
          scaleDownPriority: 4,
          updateStrategy: { autoUpdate: false, maxUnavailable: '50%' },
          labels: { for: 'tests' },
        },
      });
    });

    it('report what is missing', async () => {
      await withMember();
      expect((await sandpool('envs', 'members', 'update', 'web', 'small')).stderr).to.include(
        'there is nothing to change',
      );
      expect(
        (await sandpool('envs', 'members', 'update', 'web', 'none', '--replicas', '1')).stderr,
      ).to.include('sandpool envs members list ENV');
      expect((await sandpool('envs', 'members', 'add', 'web', '--priority', '1001')).code).to.equal(
        2,
      );
      Object.assign(daemon.operations, {
        updatePool: async () => {
          throw poolOfEnv('web', 'small');
        },
      });
      expect((await sandpool('pools', 'update', 'small', '--replicas', '1')).stderr).to.include(
        'sandpool envs members update web small',
      );
    });
  });

  describe('groups', () => {
    it('are listed, shown, set and deleted', async () => {
      await withMember();
      expect(await done('envs', 'groups', 'list', 'web')).to.match(
        /^small +on +Conservative +0 +10 +1m +10m$/m,
      );
      expect(await done('envs', 'groups', 'get', 'web', 'small')).to.match(/^stabilization: +5m$/m);
      await done(
        ...line`envs groups set web small --enabled off --min 1 --max 64 --mode Aggressive
          --cooldown 10s --idle-threshold 0 --quiet-window 2m --saturation-cooldown 30s
          --idle-timeout 0 --stabilization 1m --protection 5s`,
      );
      expect(record().groups[0]).to.deep.equal({
        name: 'small',
        enabled: false,
        minReplicas: 1,
        maxReplicas: 64,
        scaleUpPolicy: {
          mode: 'Aggressive',
          cooldownSeconds: 10,
          idleThresholdSeconds: 0,
          idleZeroQuietWindowSeconds: 120,
          saturationCooldownSeconds: 30,
        },
        scaleDownPolicy: {
          idleTimeoutSeconds: 0,
          stabilizationSeconds: 60,
          protectionWindowSeconds: 5,
        },
      });
      expect(await done('envs', 'groups', 'delete', 'web', 'small')).to.equal('small deleted\n');
    });

    it('take a file, whose policy fields options can override', async () => {
      await withMember();
      await done(
        ...line`envs groups set web
          -f ${aFile('name: small\nscaleUpPolicy: { mode: Moderate, cooldownSeconds: 5 }\n')}
          --cooldown 7s`,
      );
      expect(record().groups[0]?.scaleUpPolicy).to.deep.include({
        mode: 'Moderate',
        cooldownSeconds: 7,
        idleThresholdSeconds: 10,
      });
    });

    it('report what is missing', async () => {
      await withMember();
      expect((await sandpool('envs', 'groups', 'set', 'web', 'small')).stderr).to.include(
        'there is nothing to set',
      );
      expect((await sandpool('envs', 'groups', 'get', 'web', 'none')).stderr).to.include(
        'sandpool envs groups list ENV',
      );
      expect(
        (await sandpool('envs', 'groups', 'set', 'web', 'small', '--cooldown', '1.5s')).code,
      ).to.equal(2);
    });
  });

  describe('status', () => {
    it('shows the state of members', async () => {
      await withMember();
      observe({
        state: 'Saturated',
        idle: 1,
        running: 3,
        pending: 2,
        saturatedUntil: Date.parse('2030-01-01T00:00:00Z'),
      });
      const shown = await done('envs', 'status', 'web');
      expect(shown)
        .to.match(/^running: +3$/m)
        .and.match(/^small +Saturated +1 +3 +4 +4 +2 +2030-01-01T00:00:00Z +small$/m);
      expect(await done('envs', 'status', 'web', '-o', 'wide')).to.match(
        /HEADROOM +REVISION +UPDATED/,
      );
    });

    it('watched, shows each change until members are settled', async () => {
      await withMember();
      observe({
        state: 'Active',
        idle: 1,
        running: 1,
        desired: 4,
        current: 2,
      });
      const watching = startCli(['envs', 'status', 'web', '--watch'], {
        SANDPOOL_DATA_DIR: daemon.dataDir,
      });
      await eventually(() => watching.text.stdout !== '', 'it shows the first line');
      observe({
        state: 'Active',
        idle: 3,
        running: 1,
        desired: 4,
        current: 4,
      });
      const end = await watching.ended;
      expect([end.code, end.stderr]).to.deep.equal([0, '']);
      expect(end.stdout).to.equal(
        'small: Active, 1 idle, 1 running, 2 of 4\nweb is in its wanted state: 3 idle, 1 running\n',
      );
    });

    it('watched as JSON, prints the env on a line each', async () => {
      await withMember();
      const [first, ...rest] = (await done('envs', 'status', 'web', '-w', '-o', 'json')).split(
        '\n',
      );
      expect(JSON.parse(first ?? '')).to.include({ name: 'web' });
      expect(rest).to.deep.equal(['']);
    });

    for (const [type, message, says] of [
      [
        'TemplateResolved',
        'there is no usable template default',
        /there is no usable template default\n {2}use another template: sandpool envs update web --template NAME/,
      ],
      [
        'QuotaOk',
        'small',
        /quota is too small for small\n {2}see your usage and limits: sandpool quotas/,
      ],
    ] as const) {
      it(`ends with 1 and the reason if ${type} is False`, async () => {
        await withMember();
        say({ type, status: 'False', reason: 'Because', message });
        for (const watch of [[], ['--watch']]) {
          const end = await sandpool('envs', 'status', 'web', ...watch);
          expect(end.code).to.equal(1);
          expect(end.stderr).to.match(says);
        }
      });
    }

    it("ends well if a group is limited only by its owner's quota", async () => {
      await withMember();
      say({ type: 'QuotaOk', status: 'False', reason: 'QuotaReached', message: 'group small: no' });
      expect(await sandpool('envs', 'status', 'web', '--watch')).to.have.property('code', 0);
    });

    it('ends with 1 if the env is being deleted', async () => {
      await withMember();
      say({ type: 'Ready', status: 'False', reason: 'Deleting', message: '' });
      expect(await sandpool('envs', 'status', 'web', '--watch'))
        .to.deep.include({ code: 1 })
        .and.property('stderr')
        .include('env web is being deleted');
    });

    it('ends with 1 if a member cannot work, and after the timeout', async () => {
      await withMember();
      observe({ state: 'Error' });
      say({
        type: 'MembersSynced',
        status: 'False',
        reason: 'NameTaken',
        message: 'small: the name is taken',
      });
      expect(await sandpool('envs', 'status', 'web'))
        .to.deep.include({ code: 1 })
        .and.property('stderr')
        .include('small: the name is taken');
      observe({ state: 'Pending', current: 0 });
      say({ type: 'Progressing', status: 'True', reason: 'MembersMoving', message: 'small' });
      expect((await sandpool('envs', 'status', 'web', '--watch', '--timeout', '0.5s')).stderr)
        .to.include('within 0.5s')
        .and.include('sandpool envs explain web');
    });
  });

  it('are explained', async () => {
    await withMember();
    observe({ idle: 1, running: 3, headroom: 6 });
    expect(await done('envs', 'explain', 'web')).to.match(
      /^group small sizes small to demand: Conservative, 0 to 10\n {2}now it has 4: 3 running, 1 idle, 0 on the way$/m,
    );
    expect(JSON.parse(await done('envs', 'explain', 'web', '-o', 'json'))).to.have.nested.property(
      'env.name',
      'web',
    );
  });

  it('complete the names of envs, members and groups', async () => {
    await withMember();
    const answer = async (...words: readonly string[]): Promise<readonly string[]> =>
      (await done('__complete', '--', ...words))
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => line.split('\t')[0] ?? '');
    /** A TAB offers nothing where the daemon has no time for a moment. */
    const offers = (name: string, ...words: readonly string[]): Promise<void> =>
      eventually(
        async () => isDeepStrictEqual(await answer(...words), [name]),
        `${words.join(' ')} offers ${name}`,
      );
    await offers('web', 'envs', 'get', '');
    await offers('small', 'envs', 'members', 'update', 'web', '');
    await offers('small', 'envs', 'groups', 'set', 'web', 's');
    expect(await answer('envs', 'groups', 'get', 'none', '')).to.deep.equal([]);
    expect(await answer('envs', 'groups', 'set', 'web', 'small', '--mode', 'M')).to.deep.equal([
      'Moderate',
    ]);
  });
});
