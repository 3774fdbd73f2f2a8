import { expect } from 'chai';
import type { HttpClient } from '../../support/harness/http-client.ts';
import { clientOf } from '../../support/harness/patient-client.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { untilAnswered } from '../../support/harness/until-answered.ts';
import {
  aName,
  aPoolOf,
  aTemplateOf,
  claimedFrom,
  type Clients,
  filled,
  type RunningService,
  templateDocument,
} from './running-service.ts';

export interface Tenant {
  readonly team: string;
  readonly user: string;
  readonly key: string;
  readonly ask: () => HttpClient;
}

export const aTenantOf = async (
  service: RunningService,
  clients: Clients,
  team: string,
): Promise<Tenant> => {
  const user = aName('user');
  const key = await service.keyOf(team, user);
  return { team, user, key, ask: () => clients.with(key) };
};

/** What a tenant has, of each kind that the API knows ids of. */
export interface Belongings {
  readonly pool: string;
  readonly env: string;
  /** Of the env, with a group of its name. */
  readonly member: string;
  readonly running: string;
  readonly idle: string;
  /** Of the running one; known to nobody where there are no processes. */
  readonly processId: string;
  readonly finished: string;
  readonly keyId: string;
  readonly keyName: string;
  readonly namespace: string;
}

/** A pool with an idle instance, a running and a finished sandbox, and a key. */
export const belongingsOf = async (
  service: RunningService,
  { ask }: Tenant,
): Promise<Belongings> => {
  const pool = aName('pool');
  await aPoolOf(ask, pool, {
    replicas: 3,
    template: aTemplateOf(service),
    labels: { marked: `${pool}-label` },
  });
  const [running, finished] = [await claimedFrom(ask, pool), await claimedFrom(ask, pool)];
  expect((await ask().delete(`/sandboxes/${finished}`)).status).to.equal(200);
  await eventually(
    async () => (await listed(ask, 'Completed')).some(({ sandboxId }) => sandboxId === finished),
    'it is finished',
  );
  await filled(ask, pool, 2);
  let idle: Readonly<Record<string, unknown>> | undefined;
  await eventually(
    async () => ([idle] = await listed(ask, 'Idle')) && idle !== undefined,
    'an idle one is listed',
  );
  const { json: key } = await untilAnswered(201, () =>
    ask().post('/api-keys', { name: aName('key') }),
  );
  const { namespace } = (await ask().get(`/sandboxpools/${pool}`)).json.template ?? {};
  const { env, member } = await anEnvOf(service, ask);
  const started = await ask().post(`/sandboxes/${running}/processes`, { command: 'sleep 1000' });
  const { process } = started.json as { readonly process?: { readonly processId: string } };
  return {
    pool,
    env,
    member,
    running,
    finished,
    processId: process?.processId ?? 'none',
    idle: String(idle?.['sandboxId']),
    keyId: key.keyId ?? '',
    keyName: key.name ?? '',
    namespace: String(namespace),
  };
};

/** An env with a member of no instances. */
const anEnvOf = async (
  service: RunningService,
  ask: () => HttpClient,
): Promise<{ readonly env: string; readonly member: string }> => {
  const [template, env, member] = [aName('template'), aName('env'), aName('member')];
  const admin = new (clientOf(service))(service.ports[0] ?? 0, service.adminKey);
  try {
    const made = await admin.post('/admin/sandbox-templates', {
      crdJson: templateDocument(template, service),
    });
    expect(made.status, made.text).to.equal(201);
  } finally {
    admin.close();
  }
  await untilAnswered(201, () =>
    ask().post('/envs', {
      name: env,
      templateRef: { name: template },
      mode: 'WarmPool',
      labels: { marked: `${env}-label` },
    }),
  );
  await untilAnswered(201, () =>
    ask().post(`/envs/${env}/sandboxpools`, { name: member, replicas: 0, maxReplicas: 3 }),
  );
  return { env, member };
};

/** Fails where something of it was changed. */
export const expectUnharmed = async (
  { ask }: Tenant,
  { pool, env, member, running, idle, keyId }: Belongings,
): Promise<void> => {
  const { sandbox } = (await ask().get(`/sandboxes/${running}`)).json;
  expect(sandbox).to.include({ status: 'Running', idleTimeout: '0s' });
  expect((await ask().get(`/sandboxes/${idle}`)).json.sandbox).to.include({ status: 'Idle' });
  await filled(ask, pool, 2);
  const { template } = (await ask().get(`/sandboxpools/${pool}`)).json;
  expect(template?.['spec']).to.have.all.keys('replicas', 'template').and.include({ replicas: 3 });
  expect(template?.['labels']).to.deep.equal({ marked: `${pool}-label` });
  const shell = JSON.parse((await ask().get(`/envs/${env}`)).text) as {
    readonly env: {
      readonly labels: unknown;
      readonly spec: {
        readonly clusters: unknown;
        readonly overrides: unknown;
        readonly autoscaling: { readonly groups: readonly object[] };
      };
    };
  };
  expect(shell.env.labels).to.deep.equal({ marked: `${env}-label` });
  expect(shell.env.spec.overrides).to.deep.equal({});
  expect(shell.env.spec.clusters).to.deep.equal([
    {
      clusterID: 'local',
      members: [{ name: member, config: { maxReplicas: 3, scalingGroup: member } }],
    },
  ]);
  expect(shell.env.spec.autoscaling.groups).to.have.length(1);
  expect(shell.env.spec.autoscaling.groups[0]).to.include({
    name: member,
    enabled: true,
    minReplicas: 0,
    maxReplicas: 3,
  });
  expect(
    (await ask().get('/api-keys?limit=1000')).json.items?.map((item) => item['keyId']),
  ).to.include(keyId);
};

const listed = async (
  ask: () => HttpClient,
  phase: string,
): Promise<readonly Readonly<Record<string, unknown>>[]> =>
  (await ask().get(`/sandboxes?phase=${phase}&limit=1000`)).json.items ?? [];
