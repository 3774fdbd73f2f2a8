import { expect } from 'chai';
import { v7 as uuidV7 } from 'uuid';
import { documentedOperations, operationAt } from '../../support/harness/documented-answers.ts';
import { filesInFull } from './files-in-full.ts';
import { ProcessSocket } from '../../support/harness/process-socket.ts';
import { EventReader, type ReadEvent } from '../../support/harness/event-reader.ts';
import { eventually, NEVER_COMES_MS } from '../../support/harness/eventually.ts';
import type { HttpAnswer, HttpAsk, HttpClient } from '../../support/harness/http-client.ts';
import { needsAllTests } from '../../support/harness/sampled.ts';
import { untilAnswered } from '../../support/harness/until-answered.ts';
import { aTenantOf, type Tenant } from './belongings.ts';
import {
  aName,
  aPoolOf,
  aTemplateOf,
  claimedFrom,
  Clients,
  filled,
  type RunningService,
  templateDocument,
} from './running-service.ts';

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const SANDBOX = [
  'sandboxId',
  'namespace',
  'poolName',
  'podName',
  'status',
  'claimedAt',
  'team',
  'user',
];
const SANDBOX_RECORD = [
  ...SANDBOX,
  'startedAt',
  'durationSeconds',
  'cpu',
  'memory',
  'containerImages',
];
const POOL = [
  'name',
  'namespace',
  'cpu',
  'memory',
  'containerImages',
  'network',
  'ports',
  'team',
  'user',
  'createdAt',
  'labels',
  'annotations',
  'spec',
  'status',
];
const POOL_STATUS = [
  'phase',
  'idleReplicas',
  'unavailableIdleReplicas',
  'runningReplicas',
  'startingReplicas',
  'stoppingReplicas',
  'failedReplicas',
];
const TEMPLATE = [
  'name',
  'version',
  'description',
  'createdAt',
  'cpu',
  'memory',
  'containerImages',
  'network',
  'ports',
  'docs',
  'crdYaml',
  'poolSizing',
];
const ENV = [
  'name',
  'namespace',
  'labels',
  'team',
  'user',
  'createdAt',
  'spec',
  'status',
  'poolSizing',
];
const OBSERVED_NARROW = [
  'name',
  'state',
  'idleCount',
  'runningCount',
  'desiredReplicas',
  'currentReplicas',
  'scalingGroup',
  'autoscalingEnabled',
  'templateVersion',
];
const KEY = [
  'keyId',
  'name',
  'user',
  'team',
  'role',
  'description',
  'createdBy',
  'issuedAt',
  'expiresAt',
];
const EVENT = [
  'time',
  'type',
  'reason',
  'message',
  'sandboxId',
  'poolName',
  'namespace',
  'team',
  'user',
];
const PROCESS = ['processId', 'pid', 'command', 'status', 'startedAt', 'tag', 'tty', 'stdin'];
const GATES = [
  'volumes',
  'instanceType',
  'approvals',
  'envs',
  'autoscaling',
  'multiCluster',
  'terminal',
  'exec',
  'files',
  'processes',
  'pause',
  'logs',
  'quotas',
  'compatibleApi',
  'console',
];

type Fields = Readonly<Record<string, unknown>>;

/**
 * Every operation of the API is carried out, and its answer has the contract's fields, none
 * missing.
 */
export const operationsInFullSuite = (name: string, service: () => RunningService): void => {
  describe(`the operations of the API: ${name}`, function () {
    const clients = new Clients(service);
    /** What was answered with a good status. */
    const carriedOut = new Set<string>();
    let tenant: Tenant;
    const pool = aName('pool');
    const ask = (): HttpClient => tenant.ask();
    const admin = (): HttpClient => clients.admin;

    /** Fails unless it has this status. */
    const does = async (
      client: HttpClient,
      line: string,
      body?: unknown,
      expected = 200,
    ): Promise<HttpAnswer> => {
      const [method = '', path = ''] = line.split(' ');
      const asked: HttpAsk = body === undefined ? {} : { body };
      const answer = await client.send(method, path, asked);
      expect(answer.status, `${line}: ${answer.text}`).to.equal(expected);
      carriedOut.add(
        String(operationAt(method, path.split('?')[0] ?? '')?.operation['operationId']),
      );
      return answer;
    };
    const fieldsOf = ({ text }: HttpAnswer): Fields => JSON.parse(text) as Fields;
    const listOf = ({ text }: HttpAnswer): readonly Fields[] =>
      (JSON.parse(text) as { readonly items: readonly Fields[] }).items;
    const expectPage = (answer: HttpAnswer): void =>
      void expect(fieldsOf(answer))
        .to.have.all.keys('items', 'total', 'limit', 'offset')
        .and.include({ limit: 20, offset: 0 });

    before(async () => {
      tenant = await aTenantOf(service(), clients, 'in-full');
      await aPoolOf(ask, pool, { replicas: 2, template: aTemplateOf(service()) });
      await filled(ask, pool, 2);
    });
    after(async () => {
      await ask().delete(`/sandboxpools/${pool}?force=true`);
      clients.close();
    });

    it('claim, show, list, delete and remember sandboxes', async () => {
      const id = await claimedFrom(ask, pool);
      const claimed = (await does(ask(), 'POST /sandboxes', { poolName: pool }, 201)).json;
      expect(claimed).to.have.all.keys('sandbox');
      expect(claimed.sandbox)
        .to.have.all.keys(SANDBOX)
        .and.include({ poolName: pool, status: 'Running', team: tenant.team, user: tenant.user });
      expect(claimed.sandbox?.['podName']).to.equal(`sb-${claimed.sandbox?.['sandboxId']}`);
      expect(claimed.sandbox?.['claimedAt']).to.match(TIMESTAMP);

      const shown = (await does(ask(), `GET /sandboxes/${id}`)).json;
      expect(shown).to.have.all.keys('sandbox');
      expect(shown.sandbox).to.have.all.keys([...SANDBOX, 'endpoints', 'idleTimeout']);
      expect((shown.sandbox as unknown as Fields)['endpoints']).to.have.all.keys('web');

      await eventually(
        async () => (await ask().get(`/sandboxes?poolName=${pool}`)).json.total === 2,
        'both are listed',
      );
      const list = await does(ask(), `GET /sandboxes?poolName=${pool}`);
      expectPage(list);
      for (const record of listOf(list)) expect(record).to.have.all.keys(SANDBOX_RECORD);

      const deleted = fieldsOf(await does(ask(), `DELETE /sandboxes/${id}`));
      expect(deleted).to.deep.equal({
        sandboxId: id,
        namespace: claimed.sandbox?.['namespace'],
        poolName: pool,
        podName: `sb-${id}`,
        status: 'Stopping',
      });
      await does(ask(), `DELETE /sandboxes/${claimed.sandbox?.['sandboxId']}`);
      await eventually(async () => {
        const finished = listOf(
          await ask().get(`/sandboxes?phase=Completed&poolName=${pool}`),
        ).find((record) => record['sandboxId'] === id);
        if (finished)
          expect(finished)
            .to.have.all.keys([...SANDBOX_RECORD, 'terminatedAt', 'recycledAt', 'endReason'])
            .and.include({ status: 'Completed', endReason: 'deleted' });
        return finished !== undefined;
      }, 'it is remembered');
    });

    it('run commands, issue tokens, change the idle timeout, and read logs and events of a sandbox', async () => {
      await filled(ask, pool, 2);
      const reader = (
        await EventReader.open(service().ports[0] ?? 0, '/events', {
          'SERVICE-API-KEY': tenant.key,
        })
      ).read();
      const id = await claimedFrom(ask, pool);
      const ran = await does(ask(), `POST /sandboxes/${id}/exec`, {
        command: 'echo out; echo err >&2; exit 3',
        timeoutSeconds: 60,
      });
      const { durationMs, ...outcome } = fieldsOf(ran);
      expect(outcome).to.deep.equal({
        stdout: 'out\n',
        stderr: 'err\n',
        exitCode: 3,
        timedOut: false,
        truncated: false,
      });
      expect(durationMs).to.be.a('number');
      expect(ran.headers).to.include.keys('deprecation', 'link');

      const token = await does(ask(), `POST /sandboxes/${id}/exec-token`);
      expect(fieldsOf(token)).to.have.all.keys('token');
      expect(token.headers['cache-control']).to.equal('no-store');

      for (const body of [{ idleTimeout: '30m' }, { idleTimeoutSeconds: 1_800 }]) {
        const { sandbox } = (await does(ask(), `PUT /sandboxes/${id}/idle-timeout`, body)).json;
        expect(sandbox)
          .to.have.all.keys([...SANDBOX, 'idleTimeout', 'idleExpiresAt'])
          .and.include({ idleTimeout: '30m' });
      }
      expect(
        (await does(ask(), `PUT /sandboxes/${id}/state`, { state: 'running' })).json.sandbox,
      ).to.have.all.keys(SANDBOX);
      expect(
        (await does(ask(), `PUT /sandboxes/${id}/idle-timeout`, { idleTimeout: '0' })).json.sandbox,
      ).to.have.all.keys([...SANDBOX, 'idleTimeout']);

      const logs = fieldsOf(await does(ask(), `GET /sandboxes/${id}/logs`));
      expect(logs)
        .to.have.all.keys('sandboxId', 'podName', 'container', 'logs', 'truncated')
        .and.include({ sandboxId: id, podName: `sb-${id}`, container: 'main' });

      const events = await does(ask(), `GET /sandboxes/${id}/events`);
      expect(fieldsOf(events)).to.have.all.keys('items', 'total');
      for (const event of listOf(events)) expect(event).to.include.all.keys(EVENT);
      await eventually(
        async () =>
          listOf(await ask().get(`/sandboxes/${id}/events`)).some(
            (event) => event['reason'] === 'Claimed',
          ),
        'the claim is among them',
      );

      await eventually(
        () =>
          reader.events.some(
            ({ data }) => data['sandboxId'] === id && data['reason'] === 'Claimed',
          ),
        'the stream tells of the claim',
      );
      carriedOut.add('followEvents');
      await does(ask(), `DELETE /sandboxes/${id}`);
    });

    it('read and write files of a sandbox, or report that it has none', async () => {
      await filled(ask, pool, 2);
      const id = await claimedFrom(ask, pool);
      const { files } = fieldsOf(await does(ask(), 'GET /feature-gates'));
      await filesInFull(files === true, `/sandboxes/${id}/files`, (line, { body, good }) =>
        does(ask(), line, body, files === true ? good : 501),
      );
      for (const operation of ['readFile', 'watchFiles']) carriedOut.add(operation);
      await does(ask(), `DELETE /sandboxes/${id}`);
    });

    it('answer readiness with 200 while probes pass, and 503 of the same shape otherwise', async () => {
      const probed = aName('pool');
      const broken = `/tmp/${aName('broken')}`;
      const readinessProbe = {
        exec: { command: ['/usr/bin/test', '!', '-e', broken] },
        timeoutSeconds: NEVER_COMES_MS / 1_000,
      };
      await aPoolOf(ask, probed, {
        replicas: 1,
        template: aTemplateOf(service(), {
          endpoints: [
            { name: 'web', port: 8080, readinessProbe },
            { name: 'free', port: 8081 },
          ],
        }),
      });
      const id = await claimedFrom(ask, probed);

      const ready = await does(ask(), `GET /sandboxes/${id}/is_ready`);
      expect(ready.headers).to.include.keys('deprecation', 'link');
      expect(fieldsOf(ready))
        .to.have.all.keys('sandboxId', 'ready', 'endpoints')
        .and.include({ sandboxId: id, ready: true });
      for (const endpoint of Object.values(
        fieldsOf(ready)['endpoints'] as Readonly<Record<string, Fields>>,
      ))
        expect(endpoint).to.have.all.keys('ready', 'message').and.include({ ready: true });
      try {
        await does(ask(), `POST /sandboxes/${id}/exec`, { command: ['/bin/touch', broken] });
        const not = await does(ask(), `GET /sandboxes/${id}/is_ready`, undefined, 503);
        const { endpoints, ...rest } = fieldsOf(not) as {
          readonly endpoints: Readonly<Record<string, Fields>>;
        };
        expect(rest).to.deep.equal({ sandboxId: id, ready: false });
        expect(endpoints['web']).to.have.all.keys('ready', 'message').and.include({ ready: false });
        expect(endpoints['free']).to.include({ ready: true });
      } finally {
        await ask().post(`/sandboxes/${id}/exec`, { command: ['/bin/rm', '-f', broken] });
        await ask().delete(`/sandboxpools/${probed}?force=true`);
      }
    });

    it('start, list, show, feed, read, signal and delete processes', async () => {
      const id = await claimedFrom(ask, pool);
      const at = `/sandboxes/${id}/processes`;
      const body = { command: ['cat'], stdin: true, tag: 'mine' };
      const made = fieldsOf(await does(ask(), `POST ${at}`, body, 201))['process'] as Fields;
      expect(made)
        .to.have.all.keys(PROCESS)
        .and.include({ status: 'Running', tag: 'mine', tty: false, stdin: true });
      const one = `${at}/${String(made['processId'])}`;
      const list = fieldsOf(await does(ask(), `GET ${at}`));
      expect(list).to.deep.equal({ items: [made], total: 1 });
      expect(fieldsOf(await does(ask(), `GET ${one}`))).to.deep.equal({ process: made });
      await does(ask(), `POST ${one}/stdin`, { data: 'hello' });
      const reader = await EventReader.open(service().ports[0] ?? 0, `${one}/output`, {
        'SERVICE-API-KEY': tenant.key,
      });
      carriedOut.add('followProcess');
      const printed = (events: readonly ReadEvent[]): string =>
        events.map(({ event, data }) => (event === 'stdout' ? String(data['data']) : '')).join('');
      await reader.read().until((events) => printed(events) === 'hello', 'it prints');
      await does(ask(), `POST ${one}/signal`, { signal: 'TERM' });
      const events = await reader.until((seen) => seen.at(-1)?.event === 'end', 'it has ended');
      expect(events.at(-1)?.data['process'])
        .to.have.all.keys([...PROCESS, 'exitCode', 'signal', 'endedAt'])
        .and.include({ status: 'Exited', exitCode: 143, signal: 'TERM' });
      reader.close();
      expect(fieldsOf(await does(ask(), `DELETE ${one}`))).to.deep.equal({
        processId: made['processId'],
        status: 'deleted',
      });
      await does(ask(), `DELETE /sandboxes/${id}`);
    });

    it('resize processes, and attach to them by a WebSocket', async () => {
      const id = await claimedFrom(ask, pool);
      const at = `/sandboxes/${id}/processes`;
      const start = async (body: Fields): Promise<string> => {
        const { process } = fieldsOf(await does(ask(), `POST ${at}`, body, 201));
        return `${at}/${String((process as Fields)['processId'])}`;
      };
      const onTerminal = await start({ command: ['/bin/sh', '-c', 'read line'], tty: true });
      await does(ask(), `POST ${onTerminal}/resize`, { cols: 100, rows: 30 });
      await does(ask(), `DELETE ${onTerminal}`);
      const counts = await start({
        command: ['/bin/sh', '-c', 'wc -c; echo of it >&2'],
        stdin: true,
      });

      const socket = new ProcessSocket(service().ports[0] ?? 0, `${counts}/output`, tenant.key);
      socket.send(Buffer.alloc(60_000, 'x'));
      socket.send(Buffer.alloc(60_000, 'y'));
      socket.send('{"type":"eof"}');

      expect(await socket.closed).to.deep.equal([1000, 'the process ended']);
      expect(socket.printed('stdout').trim()).to.equal('120000');
      expect(socket.printed('stderr')).to.equal('of it\n');
      expect(socket.texts).to.deep.equal(['{"type":"exit","exitCode":0}']);
      await does(ask(), `DELETE /sandboxes/${id}`);
    });

    it('create, show, list, change, sync and delete pools', async () => {
      const template = aName('template');
      await does(
        admin(),
        'POST /admin/sandbox-templates',
        { crdJson: templateDocument(template, service()) },
        201,
      );
      const made = aName('pool');
      const answer = await untilAnswered(201, () =>
        ask().post('/sandboxpools', { name: made, templateName: template, replicas: 1 }),
      );
      carriedOut.add('createPool');
      const withVersion = [...POOL, 'templateVersion'];
      expect(fieldsOf(answer)).to.have.all.keys('template');
      expect(answer.json.template).to.have.all.keys(withVersion).and.include({
        name: made,
        cpu: '100m',
        memory: '64Mi',
        team: tenant.team,
        user: tenant.user,
        templateVersion: '1',
      });
      expect(answer.json.template?.['annotations']).to.deep.equal({
        'sandpool.dev/template-name': template,
      });
      await filled(ask, made, 1);
      const told = (reason: string): Promise<void> =>
        eventually(
          async () =>
            (await ask().get(`/sandboxpools/${made}/events`)).json.items?.some(
              (event) => event['reason'] === reason,
            ) === true,
          `${reason} is told`,
        );
      await told('Filled'); // its leader may see later than others that it is
      await eventually(async () => {
        // each replica is asked
        const seen = await Promise.all(
          service().ports.map(() => ask().get(`/sandboxpools/${made}`)),
        );
        return seen.every(
          ({ text }) => text.includes('"phase":"Ready"') && text.includes('"idleReplicas":1'),
        );
      }, 'each shows that it is');

      const shown = (await does(ask(), `GET /sandboxpools/${made}`)).json.template ?? {};
      expect(shown).to.have.all.keys(withVersion);
      expect(shown['spec']).to.deep.equal({ replicas: 1 });
      expect(shown['status'])
        .to.include.all.keys(POOL_STATUS)
        .and.include({ phase: 'Ready', idleReplicas: 1 });
      const list = await does(ask(), 'GET /sandboxpools');
      expectPage(list);
      await eventually(
        async () => listOf(await ask().get('/sandboxpools')).some((each) => each['name'] === made),
        'it is listed',
      );

      const changed = (
        await does(ask(), `PUT /sandboxpools/${made}`, {
          replicas: 0,
          overrides: { image: service().image },
        })
      ).json.template;
      expect(changed?.['spec']).to.deep.equal({
        replicas: 0,
        overrides: { image: service().image },
      });
      const preview = fieldsOf(
        await does(ask(), `POST /sandboxpools/${made}/sync-template/preview`),
      );
      expect(preview).to.have.all.keys('specYaml', 'version').and.include({ version: '1' });
      const synced = await does(ask(), `POST /sandboxpools/${made}/sync-template`);
      expect(synced.json.template).to.have.all.keys(withVersion);
      expect(synced.headers).to.include.keys('deprecation', 'link');
      const events = await does(ask(), `GET /sandboxpools/${made}/events`);
      expect(fieldsOf(events)).to.have.all.keys('items', 'total');
      for (const event of listOf(events)) {
        expect(event).to.include.all.keys(EVENT.filter((field) => field !== 'sandboxId'));
        expect(event).to.not.have.property('sandboxId');
      }
      await told('Emptied'); // of one that goes while something idles it never is
      expect(fieldsOf(await does(ask(), `DELETE /sandboxpools/${made}`))).to.deep.equal({
        name: made,
        namespace: shown['namespace'],
        status: 'Deleting',
      });
      let reasons: readonly string[] = [];
      await eventually(async () => {
        // 404 at a replica that knows the pool no more while what is kept of it is on its way
        const kept = await ask().get(`/sandboxpools/${made}/events`);
        if (kept.status !== 200) return false;
        reasons = listOf(kept).map((event) => String(event['reason']));
        return reasons.at(-1) === 'Deleted';
      }, 'what happened to it is known when it is gone');
      expect(reasons.filter((reason) => !['Changed', 'RolledOut'].includes(reason))).to.deep.equal([
        'Created',
        'Filled',
        'Resized',
        'Emptied',
        'Deleting',
        'Deleted',
      ]);
      await untilAnswered(200, () => admin().delete(`/admin/sandbox-templates/${template}`));
    });

    it('create, show, list, change, sync and delete envs with a member', async () => {
      const template = aName('template');
      await does(
        admin(),
        'POST /admin/sandbox-templates',
        { crdJson: templateDocument(template, service(), { poolSizing: 'billed' }) },
        201,
      );
      const [env, member] = [aName('env'), aName('member')];
      const made = await untilAnswered(201, () =>
        ask().post('/envs', {
          name: env,
          templateRef: { name: template },
          mode: 'WarmPool',
          overrides: {},
          labels: { a: 'b' },
        }),
      );
      carriedOut.add('createEnv');
      expect(fieldsOf(made)).to.have.all.keys('env', 'editable');
      expect(fieldsOf(made)['env'])
        .to.have.all.keys(ENV)
        .and.include({ name: env, team: tenant.team, user: tenant.user, poolSizing: 'billed' });
      expect(fieldsOf(made)['editable']).to.deep.equal({
        name: env,
        templateRef: { name: template },
        mode: 'WarmPool',
        overrides: {},
        labels: { a: 'b' },
        annotations: {},
      });

      const added = await untilAnswered(201, () =>
        ask().post(`/envs/${env}/sandboxpools`, {
          name: member,
          replicas: 1,
          minReplicas: 0,
          maxReplicas: 4,
          labels: { 'quota.example.com/url': 'https://q.example.com' },
        }),
      );
      carriedOut.add('addMember');
      expect(fieldsOf(added)).to.have.all.keys('template', 'editable');
      expect(fieldsOf(added)['editable']).to.deep.equal({
        name: member,
        clusterID: 'local',
        replicas: 1,
        minReplicas: 0,
        maxReplicas: 4,
        scalingGroup: member,
        labels: { 'quota.example.com/url': 'https://q.example.com' },
      });
      await filled(ask, member, 1);

      await eventually(async () => {
        // each replica is asked
        const seen = await Promise.all(service().ports.map(() => ask().get(`/envs/${env}`)));
        return seen.every(
          ({ text }) => text.includes('"idleReplicas":1') && text.includes('"state":"Active"'),
        );
      }, 'each shows it');
      const shown = fieldsOf(await does(ask(), `GET /envs/${env}`))['env'] as {
        readonly spec: Fields;
        readonly status: Fields & { readonly clusters: readonly Fields[] };
      };
      expect(shown.spec).to.have.all.keys(
        'templateRef',
        'mode',
        'defaults',
        'clusters',
        'autoscaling',
        'overrides',
      );
      expect(shown.status)
        .to.have.all.keys(
          'conditions',
          'clusters',
          'scalingGroups',
          'memberCount',
          'desiredReplicas',
          'runningReplicas',
          'idleReplicas',
        )
        .and.include({ memberCount: 1, desiredReplicas: 1, idleReplicas: 1 });
      const {
        observedMembers: [observed],
        ...cluster
      } = shown.status.clusters[0] as Fields & { readonly observedMembers: readonly Fields[] };
      expect(cluster)
        .to.have.all.keys('clusterID', 'isLocal', 'lastSnapshotTime')
        .and.include({ clusterID: 'local', isLocal: true });
      expect(observed)
        .to.have.all.keys(
          OBSERVED_NARROW.concat(
            'pendingRequests',
            'scaleUpHeadroom',
            'updateRevision',
            'updatedReplicas',
          ),
        )
        .and.include({ name: member, state: 'Active', idleCount: 1, autoscalingEnabled: true });
      expectPage(await does(ask(), 'GET /envs'));
      expect(
        listOf(await does(ask(), `GET /envs/${env}/sandboxpools`)).map((pool) => pool['name']),
      ).to.deep.equal([member]);
      expect(
        listOf(await does(ask(), `GET /envs/${env}/autoscaling/groups`)).map(
          (group) => group['name'],
        ),
      ).to.deep.equal([member]);
      const group = fieldsOf(await does(ask(), `GET /envs/${env}/autoscaling/groups/${member}`));
      expect(group).to.have.all.keys('group', 'editable');
      expect(group['group']).to.have.all.keys(
        'name',
        'enabled',
        'minReplicas',
        'maxReplicas',
        'scaleUpPolicy',
        'scaleDownPolicy',
      );

      await does(ask(), `PUT /envs/${env}/autoscaling/groups/${member}`, { minReplicas: 2 });
      await eventually(
        async () =>
          (await ask().get(`/envs/${env}/autoscaling/groups/${member}/decisions`)).json.total === 1,
        'it decides',
      );
      const [decision = {}] = listOf(
        await does(ask(), `GET /envs/${env}/autoscaling/groups/${member}/decisions`),
      );
      expect(decision)
        .to.have.all.keys('id', 'at', 'cause', 'seen', 'wanted', 'changes', 'reason', 'limitedBy')
        .and.include({ cause: 'limits' });
      expect(decision['changes']).to.deep.equal([{ member, from: 1, to: 2, outcome: 'done' }]);
      expect(decision['seen']).to.have.all.keys(
        'desired',
        'running',
        'idle',
        'starting',
        'pendingRequests',
      );
      await filled(ask, member, 2);

      expect(
        fieldsOf(
          await does(ask(), `PUT /envs/${env}/autoscaling/groups/${member}`, { enabled: false }),
        )['group'],
      ).to.include({ enabled: false, maxReplicas: 4 });
      await does(ask(), `PUT /envs/${env}/sandboxpools/${member}`, { replicas: 0 });
      await does(ask(), `PATCH /envs/${env}`, {
        overrides: { defaultIdleTimeout: '5m' },
        labels: { a: null },
      });
      const { editable } = fieldsOf(await does(ask(), `GET /envs/${env}`));
      expect(editable).to.deep.equal({
        name: env,
        templateRef: { name: template },
        mode: 'WarmPool',
        overrides: { defaultIdleTimeout: '5m' },
        labels: {},
        annotations: {},
      });
      await does(ask(), `PUT /envs/${env}`, editable);
      const synced = fieldsOf(await does(ask(), `POST /envs/${env}/sync-template`));
      expect(synced).to.have.all.keys('env');
      const narrow = synced['env'] as {
        readonly status: {
          readonly clusters: readonly { readonly observedMembers: readonly Fields[] }[];
        };
      };
      expect(narrow.status.clusters[0]?.observedMembers[0]).to.have.all.keys(OBSERVED_NARROW);

      expect(
        fieldsOf(await does(ask(), `DELETE /envs/${env}/autoscaling/groups/${member}`)),
      ).to.deep.equal({ name: member, status: 'deleted' });
      const { namespace } = fieldsOf(made)['env'] as Fields;
      expect(
        fieldsOf(await does(ask(), `DELETE /envs/${env}/sandboxpools/${member}`)),
      ).to.deep.equal({ name: member, namespace, status: 'Deleting' });
      expect(fieldsOf(await does(ask(), `DELETE /envs/${env}`))).to.deep.equal({
        name: env,
        namespace,
        status: 'Deleting',
      });
      await eventually(async () => (await ask().get(`/envs/${env}`)).status === 404, 'it is gone');
      expect((await ask().get(`/sandboxpools/${member}`)).status).to.equal(404);
      await untilAnswered(200, () => admin().delete(`/admin/sandbox-templates/${template}`));
    });

    it('create, show, list, change and delete templates', async () => {
      const template = aName('template');
      const made = await does(
        admin(),
        'POST /admin/sandbox-templates',
        { crdJson: templateDocument(template, service(), { docs: '# It', poolSizing: 'billed' }) },
        201,
      );
      expect(fieldsOf(made)).to.have.all.keys('template');
      expect(made.json.template).to.have.all.keys(TEMPLATE).and.include({
        name: template,
        version: '1',
        cpu: '100m',
        memory: '64Mi',
        poolSizing: 'billed',
      });
      expect((await does(ask(), `GET /sandbox-templates/${template}`)).json.template).to.deep.equal(
        made.json.template,
      );
      expectPage(await does(ask(), 'GET /sandbox-templates'));
      expect(
        (await does(admin(), `PUT /admin/sandbox-templates/${template}`, { description: 'other' }))
          .json.template,
      )
        .to.have.all.keys(TEMPLATE)
        .and.include({ version: '2', description: 'other' });
      const clusters = `GET /admin/sandbox-templates/${template}/clusters`;
      expect(fieldsOf(await does(admin(), clusters))).to.deep.equal({ total: 0, items: [] });
      expect(
        fieldsOf(await does(admin(), `DELETE /admin/sandbox-templates/${template}`)),
      ).to.deep.equal({ name: template, status: 'deleted' });
    });

    it('create, list and revoke keys, for owners and admins', async () => {
      const made = (await does(ask(), 'POST /api-keys', {}, 201)).json;
      expect(made)
        .to.have.all.keys(['apiKey', ...KEY])
        .and.include({ team: tenant.team, user: tenant.user, role: 'user' });
      const list = await does(ask(), 'GET /api-keys');
      expectPage(list);
      // What the daemon made knows no maker.
      for (const key of listOf(list)) expect({ createdBy: '', ...key }).to.have.all.keys(KEY);
      expect(fieldsOf(await does(ask(), `DELETE /api-keys/${made.keyId}`))).to.deep.equal({
        keyId: made.keyId,
        status: 'deleted',
      });

      const { team, user } = tenant;
      for (const spelled of [(full: string) => full, (full: string) => full.replace('/', '%2F')]) {
        const theirs = (
          await does(admin(), 'POST /admin/api-keys', { team, user, description: 'for them' }, 201)
        ).json;
        expect(theirs)
          .to.have.all.keys(['apiKey', ...KEY])
          .and.include({ team, user, role: 'user', description: 'for them' });
        expect(
          fieldsOf(await does(admin(), `DELETE /admin/api-keys/${spelled(theirs.name ?? '')}`)),
        ).to.deep.equal({ keyId: theirs.keyId, status: 'deleted' });
      }
      expectPage(await does(admin(), 'GET /admin/api-keys'));

      const parent = (await does(ask(), 'POST /api-keys', {}, 201)).json;
      const child = (
        await untilAnswered(201, () => clients.with(parent.apiKey ?? '').post('/api-keys', {}))
      ).json;
      expect((child as { readonly createdBy?: string }).createdBy).to.equal(parent.keyId);
      expect(
        fieldsOf(await does(ask(), `DELETE /api-keys/${parent.keyId}?cascade=true`)),
      ).to.deep.equal({ keyId: parent.keyId, status: 'deleted', revoked: 2 });
      const other = { team, user: aName('leaver') };
      for (let n = 0; n < 2; n += 1) await does(admin(), 'POST /admin/api-keys', other, 201);
      expect(
        fieldsOf(await does(admin(), `DELETE /admin/api-keys?team=${team}&user=${other.user}`)),
      ).to.deep.equal({ ...other, status: 'deleted', revoked: 2 });
    });

    it("show a user's own quotas, and let admins see and set them", async () => {
      const own = await does(ask(), 'GET /quotas');
      expect(fieldsOf(own)).to.have.all.keys('items', 'total').and.include({ total: 3 });
      for (const quota of listOf(own))
        expect(quota)
          .to.have.all.keys('name', 'resource', 'limit', 'used', 'remaining')
          .and.include({ name: `${tenant.team}/${tenant.user}` });
      expect(listOf(own).map((quota) => quota['resource'])).to.have.members([
        'sandboxes',
        'pools',
        'replicas',
      ]);
      const path = `/admin/quotas/${tenant.team}/${tenant.user}`;
      const set = await does(admin(), `PUT ${path}`, { sandboxes: 900 });
      expect(listOf(set).find((quota) => quota['resource'] === 'sandboxes')).to.include({
        limit: 900,
      });
      const atOnce = await Promise.all(
        Array.from({ length: 8 }, () => admin().put(path, { sandboxes: 900 })),
      );
      expect(atOnce.map(({ status, text }) => (status === 200 ? 'set' : text))).to.deep.equal(
        atOnce.map(() => 'set'),
      );
      expect(
        listOf(await does(admin(), `GET ${path}`)).map((quota) => quota['limit']),
      ).to.deep.equal(listOf(set).map((quota) => quota['limit']));
    });

    it("show the catalogue, statistics and the daemon's own state", async () => {
      for (const path of ['/instancetypes', '/volumes'])
        expect(fieldsOf(await does(ask(), `GET ${path}`))).to.deep.equal({ total: 0, items: [] });
      const gates = fieldsOf(await does(ask(), 'GET /feature-gates'));
      expect(gates).to.have.all.keys(GATES).and.include({ instanceType: false, exec: true });
      const [cluster] = listOf(await does(ask(), 'GET /clusters'));
      expect(cluster)
        .to.have.all.keys('clusterID', 'isLocal', 'status', 'lastHeartbeat')
        .and.include({ clusterID: 'local', isLocal: true, status: 'Connected' });
      const { statistics } = fieldsOf(await does(admin(), 'GET /admin/statistics/sandboxes')) as {
        readonly statistics: Fields;
      };
      expect(statistics).to.have.all.keys('total', 'byStatus', 'byNamespace');
      await does(admin(), 'GET /debug/shards');
      for (const line of [
        'GET /debug/machines/pool',
        'GET /debug/queues',
        'GET /debug/driver',
        'GET /debug/reflectors',
      ])
        await does(admin(), line);
      await does(admin(), 'GET /debug/actors?kind=pool&limit=1');
      const { namespace } = (await ask().get(`/sandboxpools/${pool}`)).json.template ?? {};
      const actor = `/debug/actors/pool/${encodeURIComponent(`${String(namespace)}/${pool}`)}`;
      await does(admin(), `GET ${actor}`);
      // not while it waits for an answer
      await untilAnswered(200, () => admin().post(`${actor}/rebuild`));
      carriedOut.add('rebuildActor');
      carriedOut.add('followActor'); // looking-inside.ts
      expect(
        fieldsOf(await does(admin(), 'PUT /debug/log-level', { level: 'debug', forSeconds: 1 })),
      ).to.have.all.keys('replica', 'level', 'configured', 'until');
      expect(fieldsOf(await does(admin(), 'GET /debug/log-level'))).to.include.all.keys(
        'replica',
        'level',
        'configured',
      );
      expect(fieldsOf(await does(admin(), 'GET /admin/managers'))).to.deep.equal({
        ...{ addresses: [], cutOff: false, links: 0 },
      });
      const none = await does(admin(), 'PUT /admin/managers', { cutOff: true }, 400);
      expect(none.json.errorCode).to.equal('INVALID_ARGUMENT');
    });

    it('show the audit log of all these operations', async () => {
      const written = [
        'seq',
        'time',
        'replica',
        'kind',
        'requestId',
        'namespace',
        'team',
        'user',
        'role',
        'keyId',
        'operation',
        'status',
        'prev',
        'hash',
      ];
      await does(ask(), `DELETE /sandboxes/${await claimedFrom(ask, pool)}`);
      // A key of its own: of one that was refused often in this minute the next refusal is counted.
      const { apiKey = '' } = (await ask().post('/api-keys', {})).json;
      await untilAnswered(409, () =>
        clients
          .with(apiKey)
          .post(
            '/sandboxpools',
            { name: pool, ...{ template: aTemplateOf(service()) } },
            { headers: { 'X-Request-Id': `${pool}-again` } },
          ),
      );
      const query = `user=${tenant.user}&team=${tenant.team}`;
      const created = `GET /admin/audit?${query}&operation=createPool`;
      await eventually(
        async () =>
          listOf(await does(admin(), `${created}&limit=1`))[0]?.['requestId'] === `${pool}-again`,
        'the last write shows',
      );
      const all = listOf(await does(admin(), created));
      for (const record of all)
        expect(record)
          .to.include.all.keys(written)
          .and.include({ kind: 'write', user: tenant.user });
      expect(all[0])
        .to.include({ status: 409, errorCode: 'ALREADY_EXISTS' })
        .and.to.have.property('target')
        .that.includes({ name: pool });
      const claims = `GET /admin/audit?${query}&outcome=done&operation=claimSandbox`;
      await eventually(
        async () => listOf(await does(admin(), claims)).length > 0,
        'its claim shows',
      );
    });

    it('list no pending approvals without an approval rule', async () => {
      const page = await does(ask(), 'GET /approvals');
      expectPage(page);
      expect(listOf(page)).to.deep.equal([]);
    });

    it('show health and readiness', async () => {
      await does(clients.anyone, 'GET /healthz');
      await untilAnswered(200, () => clients.anyone.get('/readyz'));
      carriedOut.add('getReadiness');
    });

    needsAllTests(
      it('are all covered, except a promotion and approvals', () => {
        const all = documentedOperations.map(({ operation }) => String(operation['operationId']));
        expect(all.filter((each) => !carriedOut.has(each))).to.have.members([
          'promoteApiKey',
          'promoteApiKeyByFullName',
          'getApproval',
          'decideApproval',
        ]);
      }),
    );

    it('are the same under /v1', async () => {
      const [plain, versioned] = [
        await ask().get(`/sandboxpools/${pool}`),
        await ask().get(`/v1/sandboxpools/${pool}`),
      ];
      expect(versioned.json.template?.['name']).to.equal(plain.json.template?.['name']);
      const unknown = uuidV7();
      expect((await ask().get(`/v1/sandboxes/${unknown}`)).text).to.equal(
        (await ask().get(`/sandboxes/${unknown}`)).text,
      );
    });
  });
};
