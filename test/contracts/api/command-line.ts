import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { type CliEnd, cliHere } from '../../cli/cli-support.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { aName, aTemplateOf, FILLED_MS, type RunningService } from './running-service.ts';
import { line } from '../../support/harness/line.ts';

const AWAY = /cannot be reached; try again/;
const GOES_ON = /^sandpool: .* cannot be reached; .*; retrying\n/gm;

/**
 * That the command line leads an owner and an admin through all of a pool's life, each command at
 * the next daemon.
 */
export const commandLineSuite = (name: string, service: () => RunningService): void => {
  describe(`the command line against ${name}`, function () {
    let folder: string;
    let key: string;
    let turn = 0;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'sandpool-cli-suite-'));
      key = await service().keyOf(aName('team'), 'ada');
      await eventually(
        async () => (await ran(key, ['quotas'])).code === 0,
        'what is used is counted',
      );
    });
    after(() => rmSync(folder, { recursive: true }));

    const ran = (apiKey: string, args: readonly string[]): Promise<CliEnd> => {
      const { ports } = service();
      turn += 1;
      return cliHere([...args, '--server', `http://127.0.0.1:${ports[turn % ports.length] ?? 0}`], {
        SANDPOOL_API_KEY: apiKey,
      });
    };
    /** Again where a replica has no time; a command that watches says so each time, and goes on. */
    const as = async (apiKey: string, args: readonly string[]): Promise<string> => {
      let end: CliEnd = { code: null, stdout: '', stderr: '' };
      await eventually(
        async () => (end = await ran(apiKey, args)).code === 0 || !AWAY.test(end.stderr),
        `an answer to ${args.join(' ')}`,
      );
      expect([end.code, end.stderr.replace(GOES_ON, '')], args.join(' ')).to.deep.equal([0, '']);
      return end.stdout;
    };
    const sandpool = (...args: readonly string[]): Promise<string> => as(key, args);
    const admin = (...args: readonly string[]): Promise<string> => as(service().adminKey, args);
    const aFile = (document: object): string => {
      const file = join(folder, `${aName('file')}.yaml`);
      writeFileSync(file, stringify(document));
      return file;
    };

    it('creates a template and a pool from files, rolls out a change, and deletes both', async () => {
      const [template, pool] = [aName('template'), aName('pool')];
      await admin(
        ...line`templates create -f`,
        aFile({
          apiVersion: 'sandpool.dev/v1alpha1',
          kind: 'SandboxTemplate',
          metadata: { name: template },
          spec: aTemplateOf(service()),
        }),
      );
      expect(await sandpool('templates', 'get', template, '--manifest')).to.include(
        `name: ${template}`,
      );
      await sandpool(
        ...line`pools create -f`,
        aFile({
          name: pool,
          templateName: template,
          replicas: 1, // of more, the first of a rollout is first to live for 10 s
          updateStrategy: { autoUpdate: false },
        }),
      );
      await sandpool(...line`wait pool/${pool} --for ready --timeout`, `${FILLED_MS / 1_000}s`);

      await sandpool('pools', 'update', pool, '--memory', '80Mi');
      expect(await sandpool('pools', 'sync-template', pool, '--preview')).to.include(
        'memory: 80Mi',
      );
      await sandpool('pools', 'sync-template', pool);
      expect(
        await sandpool(
          ...line`pools rollout status ${pool} --watch --timeout`,
          `${FILLED_MS / 1_000}s`,
        ),
      ).to.match(new RegExp(`${pool} is rolled out: \\d of revision \\w+\n$`));
      expect(JSON.parse(await sandpool('pools', 'get', pool, '-o', 'json'))).to.include({
        memory: '80Mi',
      });

      await sandpool('pools', 'delete', pool);
      await eventually(
        async () => (await ran(service().adminKey, ['templates', 'delete', template])).code === 0,
        'the template goes, once its pool has gone',
      );
    });

    it('creates an env with two members, changes it and its sizing, and deletes it', async () => {
      const [template, env, small, big] = [
        aName('template'),
        aName('env'),
        aName('small'),
        aName('big'),
      ];
      const timeout = ['--timeout', `${FILLED_MS / 1_000}s`];
      await admin(
        ...line`templates create -f`,
        aFile({
          apiVersion: 'sandpool.dev/v1alpha1',
          kind: 'SandboxTemplate',
          metadata: { name: template },
          spec: aTemplateOf(service()),
        }),
      );
      await sandpool('envs', 'create', env, '--template', template);
      await sandpool(
        ...line`envs members add ${env} --name ${small} --replicas 1 --max-replicas 4`,
      );
      await sandpool(
        ...line`envs members add ${env} --name ${big} --replicas 1 --group ${small} --priority -1`,
      );
      expect(await sandpool('envs', 'status', env, '--watch', ...timeout)).to.match(
        new RegExp(`${env} is in its wanted state: \\d idle, 0 running\n$`),
      );

      await sandpool('envs', 'update', env, '--idle-timeout', '20m', '--label', 'for=tests');
      expect(await sandpool('envs', 'sync', env)).to.equal(
        `${env}: 2 members synced with template ${template}\n`,
      );
      await sandpool('envs', 'groups', 'set', env, small, '--mode', 'Moderate', '--enabled', 'off');
      await sandpool('envs', 'status', env, '--watch', ...timeout);
      expect(await sandpool('envs', 'explain', env))
        .to.include(`env ${env} should have 2 instances`)
        .and.include(`group ${small} is off`);
      expect((await ran(key, ['pools', 'update', small, '--memory', '80Mi'])).stderr).to.include(
        `sandpool envs members update ${env} ${small}`,
      );

      await sandpool('envs', 'members', 'remove', env, big);
      await sandpool('envs', 'delete', env, '--force');
      await eventually(
        async () => (await ran(service().adminKey, ['templates', 'delete', template])).code === 0,
        'the template goes, once all of the env has gone',
      );
    });

    it('shows the available choices and the quotas', async () => {
      for (const command of ['instance-types', 'volumes', 'clusters', 'features', 'quotas'])
        expect(await sandpool(command), command).to.match(/^[A-Z]+ /);
      expect(await admin('stats')).to.match(/^all +\d+$/m);
    });
  });
};
