import { expect } from 'chai';
import {
  documentedOperations,
  type DocumentedOperation,
} from '../../support/harness/documented-answers.ts';
import {
  type GeneratedRequest,
  type Known,
  requestsTo,
} from '../../support/builders/generated-requests.ts';
import { HttpClient } from '../../support/harness/http-client.ts';
import { PatientClient } from '../../support/harness/patient-client.ts';
import { untilAnswered } from '../../support/harness/until-answered.ts';
import { aTenantOf, type Tenant } from './belongings.ts';
import {
  aName,
  aPoolOf,
  aTemplateOf,
  claimedFrom,
  Clients,
  type RunningService,
} from './running-service.ts';

const SEED = Number(process.env['HOSTILE_SEED'] ?? Date.now() % 1_000_000_000);
/** Made up anew each time. */
const REQUESTS_EACH = process.env['TEST_LONG'] === '1' ? 60 : 8;
const AT_ONCE = 4;
/** These would wait for an instance, or run what was made up. */
const LEFT_OUT: ReadonlySet<string> = new Set(['claimSandbox', 'execInSandbox']);

/**
 * They name any team: one that has no namespace on a cluster, or whose usage is still being
 * counted, is told to come again.
 */
const OF_ANY_TEAM: ReadonlySet<string> = new Set([
  'createApiKeyForTenant',
  'getQuotasOf',
  'setQuotasOf',
]);

/**
 * What comes through the checks of HTTP meets the store, the cluster's own rules and the renderer:
 * none of it is a fault of ours.
 */
export const hostileServiceSuite = (name: string, service: () => RunningService): void => {
  describe(`hostile requests: ${name}`, function () {
    const clients = new Clients(service, PatientClient);
    const impatient = new Clients(service, HttpClient);
    let tenant: Tenant;
    let known: Known;
    const template = aName('template');

    before(async () => {
      console.info(`    HOSTILE_SEED=${SEED}`);
      tenant = await aTenantOf(service(), clients, 'hostile');
      const pool = aName('pool');
      await aPoolOf(tenant.ask, pool, { replicas: 1, template: aTemplateOf(service()) });
      const sandboxId = await claimedFrom(tenant.ask, pool);
      await tenant.ask().delete(`/sandboxpools/${pool}`);
      // A pool that is made up starts nothing.
      await untilAnswered(200, () =>
        clients.admin.put(`/admin/quotas/${tenant.team}/${tenant.user}`, {
          replicas: 0,
          pools: 1_000,
        }),
      );
      const document = JSON.stringify({
        apiVersion: 'sandpool.dev/v1alpha1',
        kind: 'SandboxTemplate',
        metadata: { name: template },
        spec: aTemplateOf(service()),
      });
      await untilAnswered(201, () =>
        clients.admin.post('/admin/sandbox-templates', { crdJson: document }),
      );
      const empty = aName('pool');
      await aPoolOf(tenant.ask, empty, { replicas: 0, template: aTemplateOf(service()) });
      known = {
        path: {
          sandboxId: [sandboxId],
          name: [empty, template],
          keyId: ['none'],
          namespace: ['hostile'],
          shortName: ['none'],
          team: [aName('team')],
          user: ['made-up'],
          kind: ['sandbox', 'pool'],
          key: [sandboxId, empty],
        },
        fields: { poolName: [empty], templateName: [template], crdJson: [document] },
      };
    });
    after(async () => {
      const { items = [] } = (await tenant.ask().get('/sandboxpools?limit=1000')).json;
      for (const item of items)
        await tenant.ask().delete(`/sandboxpools/${String(item['name'])}?force=true`);
      for (const id of known.path['sandboxId'] ?? []) await tenant.ask().delete(`/sandboxes/${id}`);
      await clients.admin.delete(`/admin/sandbox-templates/${template}`);
      clients.close();
      impatient.close();
    });

    for (const [place, documented] of documentedOperations.entries()) {
      if (LEFT_OUT.has(String(documented.operation['operationId']))) continue;
      it(`to ${documented.method} ${documented.path} are answered without a fault`, async () => {
        const isOfAnyTeam = OF_ANY_TEAM.has(String(documented.operation['operationId']));
        const client = (): HttpClient =>
          isOfAnyTeam ? impatient.admin : isAdmins(documented) ? clients.admin : tenant.ask();
        const requests = requestsTo(documented, known, { seed: SEED + place, count: REQUESTS_EACH })
          .filter(({ headers }) => headers['SERVICE-API-KEY'] === undefined)
          .map(startsNothing);
        await sendAll(client, requests, isOfAnyTeam ? [...NO_FAULTS, 'UNAVAILABLE'] : NO_FAULTS);
        await untilAnswered(200, () => clients.anyone.get('/readyz'));
      });
    }
  });
};

const isAdmins = ({ operation }: DocumentedOperation): boolean =>
  JSON.stringify(operation['security']).includes('Admin');

/** Said of what there is not here, and of a promotion without a worker cluster. */
const NO_FAULTS: readonly string[] = ['FEATURE_DISABLED', 'CLUSTER_UNAVAILABLE'];

const sendAll = async (
  client: () => HttpClient,
  requests: readonly GeneratedRequest[],
  noFaults: readonly string[],
): Promise<void> => {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let request = requests[next++]; request; request = requests[next++]) {
      const { method, target, headers, raw } = request;
      const answer = await client().send(
        method,
        target,
        raw === undefined ? { headers } : { raw, headers },
      );
      // of a sandbox that is ending, say
      const isReport = answer.status === 503 && answer.json.ready === false;
      const isFault =
        answer.status >= 500 && !isReport && !noFaults.includes(answer.json.errorCode ?? '');
      expect(
        isFault,
        `HOSTILE_SEED=${SEED} ${method} ${target} ${String(raw)}: ${answer.text}`,
      ).to.equal(false);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
};

const startsNothing = (request: GeneratedRequest): GeneratedRequest => {
  const text = request.raw?.toString();
  if (text === undefined || !text.startsWith('{"')) return request;
  try {
    const {
      replicas: _replicas,
      minReplicas: _least,
      ...body
    } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    return {
      ...request,
      raw: Buffer.from(JSON.stringify('name' in body ? { ...body, replicas: 0 } : body)),
    };
  } catch {
    return request;
  }
};
