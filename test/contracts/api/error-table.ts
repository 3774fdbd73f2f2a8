import { expect } from 'chai';
import { isDeepStrictEqual } from 'node:util';
import { v7 as uuidV7 } from 'uuid';
import {
  type DocumentedOperation,
  documentedOperations,
} from '../../support/harness/documented-answers.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { untilAnswered } from '../../support/harness/until-answered.ts';
import type { HttpAnswer, HttpClient } from '../../support/harness/http-client.ts';
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
import { LEAST_BODIES, LEAST_QUERIES } from './least-requests.ts';

const NO_KEY = {
  error: 'API key required for this operation',
  errorCode: 'API_KEY_REQUIRED',
  detail: null,
};
const BAD_KEY = { error: 'invalid API key', errorCode: 'INVALID_API_KEY' };
const SANDBOX_GONE = {
  error: 'sandbox not found or already terminated',
  errorCode: 'SANDBOX_NOT_FOUND',
};
const POOL_GONE = { error: 'pool not found', errorCode: 'POOL_NOT_FOUND' };
const TEMPLATE_GONE = {
  error: 'sandbox template not found',
  errorCode: 'SANDBOX_TEMPLATE_NOT_FOUND',
};
const MOST_BYTES = 2 ** 20;

/**
 * Each error of the contract that a request alone can bring about: status, message, code and
 * detail, field by field.
 */
export const errorTableSuite = (name: string, service: () => RunningService): void => {
  describe(`the errors of the API: ${name}`, function () {
    const clients = new Clients(service);
    let tenant: Tenant;
    let ask: () => HttpClient;
    const admin = (): HttpClient => clients.admin;
    const pool = aName('pool');
    const unknown = (): string => uuidV7();
    let addresses = 0;
    /** From an address of its own: after 20 rejected keys one is told to wait. */
    const fromElsewhere = (): Readonly<Record<string, string>> => ({
      'X-Forwarded-For': `192.0.2.${(addresses += 1) % 250}`,
    });

    before(async () => {
      tenant = await aTenantOf(service(), clients, 'errors');
      ({ ask } = tenant);
      await aPoolOf(ask, pool, { replicas: 1, template: aTemplateOf(service()) });
      await filled(ask, pool, 1);
    });
    after(async () => {
      await ask().delete(`/sandboxpools/${pool}?force=true`);
      clients.close();
    });

    describe('401 and 403', () => {
      for (const documented of documentedOperations.filter(({ operation }) =>
        JSON.stringify(operation['security']).includes('KeyAuth'),
      )) {
        it(`${documented.method} ${documented.path} needs a valid key`, async () => {
          const without = await sendTo(clients.anyone, documented);
          expect([without.status, bodyOf(without)]).to.deep.equal([401, NO_KEY]);
          for (const key of ['nonsense', `${tenant.key}0`]) {
            const bad = await sendTo(clients.with(key), documented, fromElsewhere());
            expect([bad.status, bodyOf(bad)]).to.deep.equal([401, BAD_KEY]);
            expect(bad.headers).to.include.keys('www-authenticate', 'x-request-id');
          }
        });
      }

      for (const documented of documentedOperations.filter(({ operation }) =>
        JSON.stringify(operation['security']).includes('Admin'),
      )) {
        it(`${documented.method} ${documented.path} needs an admin's key`, async () => {
          const { status, text } = await sendTo(ask(), documented);
          expect([status, JSON.parse(text)]).to.deep.equal([
            403,
            {
              error: 'this operation needs a key with the admin role',
              errorCode: 'ADMIN_REQUIRED',
            },
          ]);
        });
      }

      it('a decision needs a console session, and a key is refused with that reason', async () => {
        const path = `/approvals/${uuidV7()}/decision`;
        for (const client of [ask(), admin()]) {
          const { status, json } = await client.post(path, { decision: 'approve' });
          expect([status, json.errorCode]).to.deep.equal([403, 'CONSOLE_SESSION_REQUIRED']);
        }
        const without = await clients.anyone.post(path, { decision: 'approve' });
        expect([without.status, bodyOf(without)]).to.deep.equal([401, NO_KEY]);
      });

      it('an expired and a revoked key get the same answer as an unknown one', async () => {
        const made = async (more: () => object) =>
          (await untilAnswered(201, () => ask().post('/api-keys', more()))).json;
        const revoked = await made(() => ({}));
        let briefMs = 2_000;
        const brief = await made(() => {
          briefMs *= 2; // longer each time that it was over when the daemon read of it
          return { expiresAt: new Date(Date.now() + briefMs).toISOString() };
        });
        await ask().delete(`/api-keys/${revoked.keyId}`);
        for (const { apiKey = '' } of [revoked, brief]) {
          await eventually(
            async () =>
              (await clients.with(apiKey).get('/sandboxes', { headers: fromElsewhere() }))
                .status === 401,
            'it is refused',
          );
          for (const _ of service().ports) {
            await eventually(
              async () =>
                (await clients.with(apiKey).get('/sandboxes', { headers: fromElsewhere() }))
                  .status === 401,
              'so it is everywhere',
            );
            expect(
              bodyOf(await clients.with(apiKey).get('/sandboxes', { headers: fromElsewhere() })),
            ).to.deep.equal(BAD_KEY);
          }
        }
      });

      it('filters and fields for admins are named in the refusal', async () => {
        for (const [field, answer] of [
          ['all', await ask().get('/sandboxes?all=true')],
          ['namespace', await ask().get('/sandboxes?namespace=x')],
          ['team', await ask().get('/sandboxes?team=x')],
          ['user', await ask().get('/sandboxes?user=x')],
          ['all', await ask().get('/sandboxpools?all=true')],
          ['role', await ask().post('/api-keys', { role: 'admin' })],
        ] as const) {
          expect([answer.status, answer.json.errorCode, answer.json.detail], field).to.deep.equal([
            403,
            'ADMIN_REQUIRED',
            { field },
          ]);
        }
      });

      it('too many invalid keys from one address get 429, and valid ones still work', async () => {
        const headers = { 'X-Forwarded-For': '198.51.100.7' };
        const bad = clients.with('nonsense');
        let answer = await bad.get('/sandboxes', { headers });
        for (let n = 0; n < 30 && answer.status !== 429; n += 1)
          answer = await bad.get('/sandboxes', { headers });
        expectRetry(answer, 429, 'RATE_LIMITED');
        expect((await ask().get('/sandboxes', { headers })).status).to.equal(200);
      });
    });

    describe('400 and other refusals of the request', () => {
      it('a claim without poolName gets the error of the contract, without detail', async () => {
        for (const body of [{}, { poolName: '' }, undefined]) {
          const answer = await ask().post('/sandboxes', body);
          expect([answer.status, bodyOf(answer)]).to.deep.equal([
            400,
            { error: 'poolName is required', errorCode: 'INVALID_ARGUMENT' },
          ]);
        }
      });

      it('an invalid field is named, with the valid choices', async () => {
        for (const [answer, detail] of [
          [await ask().post('/sandboxes', { poolName: 7 }), { field: 'poolName' }],
          [
            await ask().post('/sandboxes', { poolName: pool, waitTimeoutSeconds: 301 }),
            { field: 'waitTimeoutSeconds' },
          ],
          [
            await ask().post('/sandboxes', { poolName: `local::${pool}//image` }),
            { field: 'poolName' },
          ],
          [await ask().get('/sandboxes?limit=0'), { field: 'limit' }],
          [await ask().get('/sandboxes?limit=1001'), { field: 'limit' }],
          [await ask().get('/sandboxes?offset=-1'), { field: 'offset' }],
          [
            await ask().post('/sandboxpools', {
              name: aName('pool'),
              replicas: -1,
              templateName: 'x',
            }),
            { field: 'replicas' },
          ],
          [await ask().post('/sandboxpools', { name: aName('pool') }), { field: 'templateName' }],
          [
            await ask().post('/sandboxpools', {
              name: aName('pool'),
              template: aTemplateOf(service()),
              overrides: { podCreationImagePolicy: 'Never' },
            }),
            {
              field: 'overrides.podCreationImagePolicy',
              allowed: ['PoolDefaultImage', 'EnvOverrideImage'],
            },
          ],
          [
            await admin().post('/admin/api-keys', { team: 'x', user: 'y', role: 'boss' }),
            { field: 'role', allowed: ['user', 'admin'] },
          ],
          [await admin().put('/admin/quotas/x/y', { sandboxes: -1 }), { field: 'sandboxes' }],
        ] as const) {
          expect(
            [answer.status, answer.json.errorCode, answer.json.detail],
            answer.text,
          ).to.deep.equal([400, 'INVALID_ARGUMENT', detail]);
        }
      });

      it('405 lists the allowed methods; 413, 415, 422 and 412 have their own errors', async () => {
        const patched = await ask().send('PATCH', '/sandboxes');
        expect([
          patched.status,
          patched.json.errorCode,
          patched.headers['allow']?.split(', ').sort(),
        ]).to.deep.equal([405, 'METHOD_NOT_ALLOWED', ['GET', 'HEAD', 'POST']]);
        const large = await ask().post('/sandboxes', undefined, {
          raw: `{"poolName":"${'x'.repeat(MOST_BYTES)}"}`,
        });
        expect([large.status, large.json.errorCode]).to.deep.equal([413, 'PAYLOAD_TOO_LARGE']);
        const largeDocument = await admin().post('/admin/sandbox-templates', {
          crdJson: ' '.repeat(256 * 1_024 + 1),
        });
        expect([largeDocument.status, largeDocument.json.errorCode]).to.deep.equal([
          413,
          'PAYLOAD_TOO_LARGE',
        ]);
        const typed = await ask().post('/sandboxes', undefined, {
          raw: '<poolName/>',
          headers: { 'Content-Type': 'application/xml' },
        });
        expect([typed.status, typed.json.errorCode]).to.deep.equal([415, 'UNSUPPORTED_MEDIA_TYPE']);
        const headers = { 'Idempotency-Key': aName('once') };
        const {
          json: { keyId },
        } = await ask().post('/api-keys', { name: aName('key') }, { headers });
        const reused = await ask().post('/api-keys', { name: aName('key') }, { headers });
        expect([reused.status, reused.json.errorCode]).to.deep.equal([
          422,
          'IDEMPOTENCY_KEY_REUSED',
        ]);
        await ask().delete(`/api-keys/${keyId}`);
        const stale = await ask().put(
          `/sandboxpools/${pool}`,
          { replicas: 1 },
          { headers: { 'If-Match': '"another-000000"' } },
        );
        expect([stale.status, stale.json.errorCode]).to.deep.equal([412, 'PRECONDITION_FAILED']);
      });

      it('a feature that this deployment lacks gets 501 with the field', async () => {
        const body = {
          name: aName('pool'),
          template: aTemplateOf(service()),
          instanceType: 'small',
        };
        for (const answer of [
          await ask().post('/sandboxpools', body),
          await ask().put(`/sandboxpools/${pool}`, { instanceType: 'small' }),
        ]) {
          expect([answer.status, bodyOf(answer)]).to.deep.equal([
            501,
            {
              error: 'instanceType: this deployment has no instance types',
              errorCode: 'FEATURE_DISABLED',
              detail: { field: 'instanceType' },
            },
          ]);
        }
      });
    });

    describe('404', () => {
      for (const documented of documentedOperations.filter(({ path }) =>
        path.includes('{sandboxId}'),
      )) {
        it(`${documented.method} ${documented.path} of an unknown sandbox`, async () => {
          for (const id of [unknown(), `local.${unknown()}`, 'nonsense', 'x'.repeat(300)]) {
            const answer = await sendTo(ask(), documented, {}, { sandboxId: id });
            expect([answer.status, bodyOf(answer)], id).to.deep.equal([404, SANDBOX_GONE]);
          }
          const far = await sendTo(ask(), documented, {}, { sandboxId: `faraway.${unknown()}` });
          expect([far.status, far.json.errorCode], far.text).to.deep.equal([
            404,
            'CLUSTER_NOT_FOUND',
          ]);
        });
      }

      for (const documented of documentedOperations.filter(({ path }) =>
        path.startsWith('/sandboxpools/{name}'),
      )) {
        it(`${documented.method} ${documented.path} of an unknown pool`, async () => {
          for (const of of [aName('pool'), `local::${aName('pool')}`, 'No_Label']) {
            const answer = await sendTo(ask(), documented, {}, { name: of });
            const { error, errorCode, detail } = answer.json;
            expect([answer.status, { error, errorCode }], of).to.deep.equal([404, POOL_GONE]);
            expect(detail?.['poolName'], of).to.equal(of.replace('local::', ''));
          }
          const far = await sendTo(ask(), documented, {}, { name: `faraway::${pool}` });
          expect([far.status, far.json.errorCode], far.text).to.deep.equal([
            404,
            'CLUSTER_NOT_FOUND',
          ]);
        });
      }

      for (const documented of documentedOperations.filter(({ path }) =>
        path.includes('sandbox-templates/{name}'),
      )) {
        it(`${documented.method} ${documented.path} of an unknown template`, async () => {
          const answer = await sendTo(admin(), documented, {}, { name: aName('none') });
          expect([answer.status, bodyOf(answer)]).to.deep.equal([404, TEMPLATE_GONE]);
        });
      }

      for (const documented of documentedOperations.filter(({ path }) =>
        /api-keys\/\{/.test(path),
      )) {
        it(`${documented.method} ${documented.path} of an unknown key`, async () => {
          const answer = await sendTo(
            admin(),
            documented,
            {},
            {
              keyId: 'AAAAAAAAAAAAAAAA',
              name: 'errors/none',
              namespace: 'errors',
              shortName: 'none',
            },
          );
          expect([answer.status, bodyOf(answer)]).to.deep.equal([
            404,
            { error: 'API key not found', errorCode: 'API_KEY_NOT_FOUND' },
          ]);
        });
      }

      it('a claim from an unknown pool lists the existing pools, with a hint', async () => {
        const { namespace } = (await ask().get(`/sandboxpools/${pool}`)).json.template ?? {};
        await eventually(async () => {
          const unknown = aName('pool');
          const answer = await ask().post('/sandboxes', { poolName: unknown });
          const { hint, poolName, ...detail } = answer.json.detail ?? {};
          expect([
            answer.status,
            { error: answer.json.error, errorCode: answer.json.errorCode },
          ]).to.deep.equal([404, POOL_GONE]);
          expect(poolName).to.equal(unknown);
          expect(hint).to.be.a('string').that.includes('/v1/');
          return isDeepStrictEqual(detail, {
            availablePools: [{ name: pool, namespace, idle: 1, running: 0, starting: 0 }],
          });
        }, 'its own pool is named, with its counts');
        const far = await ask().post('/sandboxes', { poolName: `faraway::${pool}` });
        expect([far.status, far.json.errorCode]).to.deep.equal([404, 'CLUSTER_NOT_FOUND']);
      });

      it('a pool with an unknown template lists the existing templates, with a hint', async () => {
        const template = aName('template');
        await admin().post('/admin/sandbox-templates', {
          crdJson: templateDocument(template, service()),
        });
        await eventually(async () => {
          const answer = await ask().post('/sandboxpools', {
            name: aName('pool'),
            templateName: aName('none'),
          });
          const { hint, availableTemplates, ...rest } = answer.json.detail ?? {};
          expect([
            answer.status,
            { error: answer.json.error, errorCode: answer.json.errorCode },
            rest,
          ]).to.deep.equal([404, TEMPLATE_GONE, {}]);
          expect(hint).to.be.a('string').that.is.not.empty;
          const found = (availableTemplates as readonly Readonly<Record<string, unknown>>[]).find(
            (each) => each['name'] === template,
          );
          if (found) expect(found).to.deep.equal({ name: template, description: 'made over REST' });
          return found !== undefined;
        }, 'the new one is among them');
        await admin().delete(`/admin/sandbox-templates/${template}`);
      });
    });

    describe('409, 429 and 503', () => {
      it('creating a pool, key or template that exists', async () => {
        const again = await ask().post('/sandboxpools', {
          name: pool,
          template: aTemplateOf(service()),
        });
        expect([again.status, bodyOf(again)]).to.deep.equal([
          409,
          { error: 'pool already exists', errorCode: 'ALREADY_EXISTS' },
        ]);
        const key = aName('key');
        const {
          json: { keyId },
        } = await ask().post('/api-keys', { name: key });
        const second = await ask().post('/api-keys', { name: key });
        expect([second.status, second.json.errorCode]).to.deep.equal([409, 'ALREADY_EXISTS']);
        await ask().delete(`/api-keys/${keyId}`);
        const template = aName('template');
        const document = { crdJson: templateDocument(template, service()) };
        await admin().post('/admin/sandbox-templates', document);
        const other = await admin().post('/admin/sandbox-templates', document);
        expect([other.status, other.json.errorCode]).to.deep.equal([409, 'ALREADY_EXISTS']);
        await admin().delete(`/admin/sandbox-templates/${template}`);
      });

      it('commands and tokens for a sandbox that is not Running', async () => {
        let idle: readonly Readonly<Record<string, unknown>>[] = [];
        await eventually(async () => {
          const { json } = await ask().get(`/sandboxes?phase=Idle&poolName=${pool}`);
          return (idle = json.items ?? []).length === 1;
        }, 'an idle one is listed');
        const path = `/sandboxes/${String(idle[0]?.['sandboxId'])}`;
        for (const answer of [
          await ask().post(`${path}/exec`, { command: 'true' }),
          await ask().post(`${path}/exec-token`),
          await ask().put(`${path}/idle-timeout`, { idleTimeout: '5m' }),
          await ask().put(`${path}/state`, { state: 'running' }),
        ]) {
          expect([answer.status, bodyOf(answer)]).to.deep.equal([
            409,
            { error: 'the sandbox is Idle, not Running', errorCode: 'SANDBOX_NOT_RUNNING' },
          ]);
        }
      });

      it('a claim without an idle instance gets counts, hint and Retry-After; a repetition is in flight', async () => {
        const id = await claimedFrom(ask, pool);
        await eventually(async () => {
          const answer = await ask().post('/sandboxes', { poolName: pool });
          const { hint, action, poolName, ...counts } = answer.json.detail ?? {};
          expectRetry(answer, 429, 'POOL_EXHAUSTED');
          expect(poolName).to.equal(pool);
          expect(answer.json.error).to.equal('no idle pods available in pool');
          expect(hint).to.be.a('string').that.includes('/v1/');
          expect(action).to.deep.equal({ type: 'enlarge-pool', poolName });
          return isDeepStrictEqual(counts, {
            idle: 0,
            running: 1,
            starting: 0,
            stopping: 0,
            failed: 0,
          });
        }, 'its counts are these');

        const headers = { 'Idempotency-Key': aName('once') };
        const body = { poolName: pool, waitTimeoutSeconds: 60 };
        // Where it comes while the other one below is answered, it is refused, too.
        const waits = async (): Promise<HttpAnswer> => {
          const answer = await ask().post('/sandboxes', body, { headers });
          return answer.status === 422 ? await waits() : answer;
        };
        const waiting = waits();
        await eventually(
          async () =>
            (await ask().post('/sandboxes', { poolName: pool }, { headers })).status === 422,
          'it waits',
        );
        expectRetry(
          await ask().post('/sandboxes', body, { headers }),
          409,
          'IDEMPOTENCY_IN_FLIGHT',
        );
        await ask().delete(`/sandboxes/${id}`);
        const served = await waiting;
        expect(served.status, served.text).to.equal(201);
        await ask().delete(`/sandboxes/${served.json.sandbox?.['sandboxId']}`);
        await filled(ask, pool, 1);
      });

      it('a used-up quota of sandboxes, with retryAfter, and of pools and replicas, without', async () => {
        const quotas = `/admin/quotas/${tenant.team}/${tenant.user}`;
        expect(
          (await admin().put(quotas, { sandboxes: 0, pools: 1, replicas: 1 })).status,
        ).to.equal(200);
        // each goes by it then
        for (const _ of service().ports) await untilAnswered(200, () => admin().get(quotas));
        const claim = await ask().post('/sandboxes', { poolName: pool });
        expectRetry(claim, 429, 'QUOTA_EXCEEDED');
        expect(claim.json.error).to.equal('scale failed');
        expect(claim.json.detail)
          .to.have.all.keys('errCode', 'message', 'retryAfter')
          .and.include({
            errCode: 'QUOTA_EXCEEDED',
            retryAfter: Number(claim.headers['retry-after']),
          });
        const body = { name: aName('pool'), replicas: 0, template: aTemplateOf(service()) };
        for (const answer of [
          await ask().post('/sandboxpools', body),
          await ask().put(`/sandboxpools/${pool}`, { replicas: 2 }),
        ]) {
          expectRetry(answer, 429, 'QUOTA_EXCEEDED');
          expect(bodyOf(answer)).to.deep.equal({
            error: 'scale failed',
            errorCode: 'QUOTA_EXCEEDED',
            detail: { errCode: 'QUOTA_EXCEEDED' },
          });
        }
        await admin().put(quotas, { sandboxes: 100, pools: 50, replicas: 100 });
      });

      it('env errors: missing, taken, managed by the env, or still running', async () => {
        const [template, env, member] = [aName('template'), aName('env'), aName('member')];
        await untilAnswered(201, () =>
          admin().post('/admin/sandbox-templates', {
            crdJson: templateDocument(template, service()),
          }),
        );
        const shell = { name: env, templateRef: { name: template }, mode: 'WarmPool' };
        await untilAnswered(201, () => ask().post('/envs', shell));
        await untilAnswered(201, () =>
          ask().post(`/envs/${env}/sandboxpools`, { name: member, replicas: 1 }),
        );

        for (const [answer, status, body] of [
          [
            await ask().get('/envs/none'),
            404,
            { error: 'env not found', errorCode: 'ENV_NOT_FOUND' },
          ],
          [
            await ask().put(`/envs/${env}/sandboxpools/none`, {}),
            404,
            { error: 'env member not found', errorCode: 'ENV_MEMBER_NOT_FOUND' },
          ],
          [
            await ask().get(`/envs/${env}/autoscaling/groups/none`),
            404,
            { error: 'autoscaling group not found', errorCode: 'AUTOSCALING_GROUP_NOT_FOUND' },
          ],
          [
            await ask().post('/envs', shell),
            409,
            { error: 'env already exists', errorCode: 'ALREADY_EXISTS' },
          ],
          [
            await ask().post(`/envs/${env}/sandboxpools`, { name: member }),
            409,
            { error: 'pool already exists', errorCode: 'ALREADY_EXISTS' },
          ],
          [
            await ask().post(`/envs/${env}/sandboxpools`, { clusterID: 'elsewhere' }),
            404,
            { error: 'cluster not found', errorCode: 'CLUSTER_NOT_FOUND' },
          ],
          [
            await ask().put(`/sandboxpools/${member}`, { labels: { a: 'b' } }),
            409,
            {
              error: `the pool is a member of env ${env}; change it there`,
              errorCode: 'CONFLICT',
              detail: { env, member },
            },
          ],
          [
            await ask().post(`/sandboxpools/${member}/sync-template`),
            409,
            {
              error: `the pool is a member of env ${env}; change it there`,
              errorCode: 'CONFLICT',
              detail: { env, member },
            },
          ],
        ] as const)
          expect([answer.status, bodyOf(answer)]).to.deep.equal([status, body]);
        for (const [body, field] of [
          [{ ...shell, mode: 'Other' }, 'mode'],
          [{ ...shell, templateRef: {} }, 'templateRef.name'],
          [{ ...shell, name: 'A' }, 'name'],
          [{ ...shell, overrides: { gateway: { enabled: 1 } } }, 'overrides.gateway.enabled'],
        ] as const) {
          const { status, json } = await ask().post('/envs', body);
          expect([status, json.errorCode, json.detail?.['field']]).to.deep.equal([
            400,
            'INVALID_ARGUMENT',
            field,
          ]);
        }
        const running = await claimedFrom(ask, member);
        await eventually(async () => {
          // each replica is asked
          const seen = await Promise.all(service().ports.map(() => ask().get(`/envs/${env}`)));
          return seen.every(({ text }) => text.includes('"runningReplicas":1'));
        }, 'each knows that it runs');
        const refused = await ask().delete(`/envs/${env}`);
        expect([refused.status, bodyOf(refused)]).to.deep.equal([
          409,
          {
            error: 'sandboxes of the env are running; delete them first, or use force',
            errorCode: 'ENV_HAS_RUNNING_SANDBOXES',
            detail: { running: 1 },
          },
        ]);
        expect((await ask().get(`/sandboxes/${running}`)).status).to.equal(200);
        expect((await ask().delete(`/envs/${env}?force=true`)).status).to.equal(200);
        await eventually(
          async () => (await ask().get(`/envs/${env}`)).status === 404,
          'it is gone',
        );
      });

      it('a promotion without a connected worker cluster', async () => {
        const { name: keyName, keyId } = (await ask().post('/api-keys', {})).json;
        const answer = await admin().post(`/admin/api-keys/${keyName}/promote`);
        expectRetry(answer, 503, 'CLUSTER_UNAVAILABLE');
        expect(answer.json.error).to.equal('no worker cluster is connected');
        await ask().delete(`/api-keys/${keyId}`);
      });

      it('a claim during the deletion of its pool succeeds, or gets 409 or 404', async () => {
        const going = aName('pool');
        await aPoolOf(ask, going, { replicas: 2, template: aTemplateOf(service()) });
        await filled(ask, going, 2);
        const [deleted, ...claims] = await Promise.all([
          ask().delete(`/sandboxpools/${going}?force=true`),
          ...Array.from({ length: 8 }, () => ask().post('/sandboxes', { poolName: going })),
        ]);
        expect([deleted.status, deleted.json.status]).to.deep.equal([200, 'Deleting']);
        for (const answer of claims) {
          expect(answer.status, answer.text).to.be.oneOf([201, 404, 409, 429]);
          if (answer.status === 409)
            expect(bodyOf(answer)).to.deep.equal({
              error: 'pool is being deleted',
              errorCode: 'CONFLICT',
            });
        }
      });
    });
  });
};

const bodyOf = ({ text }: HttpAnswer): unknown => JSON.parse(text);

const expectRetry = (
  { status, json, headers, text }: HttpAnswer,
  expected: number,
  code: string,
): void => {
  expect([status, json.errorCode], text).to.deep.equal([expected, code]);
  expect(headers['retry-after']).to.match(/^[1-9]\d*$/);
};

const BODIES: Readonly<Record<string, object>> = {
  ...LEAST_BODIES,
  createTemplate: { crdJson: '{}' },
  createApiKeyForTenant: { team: 'x', user: 'y' },
};
const SOMETHING: Readonly<Record<string, string>> = {
  sandboxId: uuidV7(),
  processId: 'none',
  approvalId: uuidV7(),
  name: 'none',
  keyId: 'AAAAAAAAAAAAAAAA',
  namespace: 'none',
  shortName: 'none',
  team: 'none',
  user: 'none',
  pool: 'none',
  groupName: 'none',
  kind: 'sandbox',
  key: 'none',
};

/** With these in its path, and a body that it takes. */
const sendTo = (
  client: HttpClient,
  { method, path, operation }: DocumentedOperation,
  headers: Readonly<Record<string, string>> = {},
  ids: Readonly<Record<string, string>> = {},
): Promise<HttpAnswer> => {
  const query = LEAST_QUERIES[String(operation['operationId'])] ?? '';
  const target = path
    .replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(ids[name] ?? SOMETHING[name] ?? ''),
    )
    .concat(query);
  const body = operation['requestBody']
    ? (BODIES[String(operation['operationId'])] ?? {})
    : undefined;
  return client.send(method, target, body === undefined ? { headers } : { body, headers });
};
