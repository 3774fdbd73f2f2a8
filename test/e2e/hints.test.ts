import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { carryOut } from '../support/harness/hints.ts';
import type { HttpAnswer, HttpClient } from '../support/harness/http-client.ts';
import { aTenant, claim, stocked } from '../support/harness/on-a-daemon.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { line } from '../support/harness/line.ts';

/**
 * What the hint of a refusal advises works: each request that it names is carried out, with a body
 * that says what it says.
 */
describe('advice in hints', () => {
  let daemon: DaemonUnderTest;
  let tenant: HttpClient;
  let colleague: HttpClient;
  let folder: string;

  before(async function () {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-hints-'));
    writeFileSync(join(folder, 'file'), 'no folder');
    daemon = await DaemonUnderTest.start(line`--default-pool-replicas 0
      --volumes-directories hinted/data=${folder}`);
    tenant = await aTenant(daemon, 'hinted', 'ann');
    colleague = await aTenant(daemon, 'hinted', 'bob');
  });

  after(async function () {
    await daemon.dispose();
    rmSync(folder, { recursive: true });
  });

  interface Refused {
    readonly hint: string;
    readonly action: { readonly type: string };
    readonly problem?: string;
    readonly problemSince?: string;
  }

  /** Until a claim is refused for good: what was freed a moment ago may start anew. */
  const exhausted = async (
    client: HttpClient,
    poolName: string,
    when: (detail: Refused) => boolean = ({ action: { type } }) =>
      type !== 'retry' && type !== 'wait',
  ): Promise<Refused> => {
    let detail: Refused | undefined;
    await within(`claims from ${poolName} are refused`, async () => {
      const answer = await client.post('/sandboxes', { poolName });
      if (answer.status !== 429) return false;
      detail = (JSON.parse(answer.text) as { readonly detail: Refused }).detail;
      return when(detail);
    });
    return detail ?? expect.fail('it was not refused');
  };

  it("works for a user's own pool", async () => {
    await tenant.post('/sandboxpools', { name: 'own', templateName: 'default', replicas: 1 });
    await stocked(tenant, 1, 'own');
    const id = await claim(tenant, 'own');
    await tenant.put('/sandboxpools/own', { replicas: 0 });
    const { hint } = await exhausted(tenant, 'own');
    expect(await carryOut(tenant, hint, { PUT: { replicas: 1 } }, id)).to.deep.equal([
      `DELETE /sandboxes/${id}`,
      'PUT /sandboxpools/own',
    ]);
    await stocked(tenant, 1, 'own');
  });

  it("works for an env's pool, which cannot be changed directly", async () => {
    await tenant.post('/envs', { name: 'web', templateRef: { name: 'default' } });
    expect(
      (await tenant.post('/envs/web/sandboxpools', { name: 'small', replicas: 1, maxReplicas: 1 }))
        .status,
    ).to.equal(201);
    await stocked(tenant, 1, 'small');
    const id = await claim(tenant, 'small');
    const { hint } = await exhausted(tenant, 'small');
    expect(
      (await tenant.put('/sandboxpools/small', { replicas: 2 })).status,
      'what it must not advise',
    ).to.equal(409);
    expect(await carryOut(tenant, hint, { PUT: { maxReplicas: 4 } }, id)).to.deep.equal([
      `DELETE /sandboxes/${id}`,
      'PUT /envs/web/sandboxpools/small',
      'GET /envs/web',
    ]);
    expect(
      (
        await tenant.post('/sandboxes', {
          poolName: 'small',
          waitTimeoutSeconds: NEVER_COMES_MS / 1_000,
        })
      ).status,
      'waitTimeoutSeconds',
    ).to.equal(201);
  });

  it('names the user who can enlarge a shared pool', async () => {
    await tenant.post('/sandboxpools', {
      name: 'shared',
      templateName: 'default',
      replicas: 0,
      access: 'team',
    });
    const { hint } = await exhausted(colleague, 'shared');
    expect(hint)
      .to.include('ask hinted/ann, who owns the pool, to enlarge it')
      .and.not.include('PUT');
  });

  it('works for failing starts, with the reason and the time', async () => {
    const broken = {
      name: 'broken',
      replicas: 1,
      template: {
        containers: [{ name: 'main', image: 'host', command: ['/no/such-program'] }],
      },
    };
    const before = Date.now();
    const made = await tenant.post('/sandboxpools', broken);
    expect(made.status, made.text).to.equal(201);
    const { hint, problem, problemSince } = await exhausted(
      tenant,
      'broken',
      (detail) => detail.problem !== undefined && detail.problemSince !== undefined,
    );
    expect(problem).to.contain('/no/such-program');
    expect(Date.parse(problemSince ?? '')).to.be.within(before - 1_000, Date.now() + 1_000);
    const works = {
      template: {
        containers: [{ name: 'main', image: 'host', command: ['/bin/sh', '-c', 'sleep 1000'] }],
      },
    };
    expect(await carryOut(tenant, hint, { PUT: works })).to.deep.equal([
      'PUT /sandboxpools/broken',
    ]);
    await stocked(tenant, 1, 'broken');
  });

  it('names the request field with the template', async () => {
    for (const [path, field, body] of [
      [
        '/sandboxpools',
        'templateName',
        (name: string) => ({ name: 'named', templateName: name, replicas: 0 }),
      ],
      ['/envs', 'templateRef.name', (name: string) => ({ name: 'named', templateRef: { name } })],
    ] as const) {
      const refused = await tenant.post(path, body('no-such'));
      const {
        availableTemplates: [choice],
        hint,
      } = (
        JSON.parse(refused.text) as {
          readonly detail: {
            readonly availableTemplates: readonly [{ readonly name: string }];
            readonly hint: string;
          };
        }
      ).detail;
      expect(hint).to.equal(`name one of availableTemplates as ${field}`);
      expect((await tenant.post(path, body(choice.name))).status, path).to.equal(201);
    }
  });

  it('works for an env whose instances do not start', async () => {
    const made = await tenant.post('/envs', {
      name: 'stuck',
      templateRef: { name: 'default' },
      overrides: { volumes: [{ claimName: 'data', mountPath: '/data', subPath: 'file' }] },
    });
    expect(made.status, made.text).to.equal(201);
    const added = await tenant.post('/envs/stuck/sandboxpools', { name: 'stuck-in', replicas: 1 });
    expect(added.status, added.text).to.equal(201);
    const { hint, problem } = await exhausted(
      tenant,
      'stuck-in',
      (detail) => detail.problem !== undefined,
    );
    expect(problem).to.contain('the folder file of the volume: Not a directory');
    expect(await carryOut(tenant, hint, { PATCH: { overrides: { volumes: null } } })).to.deep.equal(
      ['PATCH /envs/stuck'],
    );
    await stocked(tenant, 1, 'stuck-in');
  });

  /** What a refusal says, and its detail. */
  const refused = async (
    answer: Promise<HttpAnswer>,
    status: number,
  ): Promise<{
    readonly error: string;
    readonly detail: Readonly<Record<string, unknown>> & { readonly hint: string };
  }> => {
    const { status: answered, text } = await answer;
    expect(answered, text).to.equal(status);
    return JSON.parse(text);
  };

  it('works for a claim from an unknown pool', async () => {
    const first = await aTenant(daemon, 'newcomers', 'eva');
    const { detail: none } = await refused(first.post('/sandboxes', { poolName: 'x' }), 404);
    expect(none.hint).to.equal('create a pool of your own with POST /v1/sandboxpools');
    const made = await first.post('/v1/sandboxpools', {
      name: 'mine',
      templateName: 'default',
      replicas: 1,
    });
    expect(made.status, made.text).to.equal(201);
    await stocked(first, 1, 'mine');

    const { detail: some } = await refused(first.post('/sandboxes', { poolName: 'x' }), 404);
    expect(some.hint).to.equal(
      'claim from one of availablePools, or create a pool with POST /v1/sandboxpools',
    );
    const [{ name: poolName = '' } = {}] = some['availablePools'] as { name?: string }[];
    expect((await first.post('/sandboxes', { poolName })).status, poolName).to.equal(201);
  });

  it('works for the name of a key in use', async () => {
    expect((await tenant.post('/api-keys', { name: 'laptop' })).status).to.equal(201);
    const { detail } = await refused(colleague.post('/api-keys', { name: 'laptop' }), 409);
    expect(detail.hint).to.equal('names are unique in a team; choose another');
    expect((await colleague.post('/api-keys', { name: 'other' })).status).to.equal(201);
  });

  it('works for a pool that its env manages, and names the env', async () => {
    const change = { replicas: 1, labels: { a: 'b' } };
    const { error, detail } = await refused(tenant.put('/sandboxpools/small', change), 409);
    expect(error).to.equal('the pool is a member of env web; change it there');
    expect(detail).to.deep.equal({ env: 'web', member: 'small' });
    expect(await refused(tenant.delete('/sandboxpools/small'), 409)).to.include({ error });
    const there = `/envs/${String(detail['env'])}/sandboxpools/${String(detail['member'])}`;
    expect((await tenant.put(there, { labels: { a: 'b' } })).status).to.equal(200);
  });

  it('works for an env with running sandboxes, by ending them or by force', async () => {
    const { error } = await refused(tenant.delete('/envs/web'), 409);
    expect(error).to.equal('sandboxes of the env are running; delete them first, or use force');
    expect((await tenant.delete('/envs/web?force=true')).status).to.equal(200);
  });

  it('works for a template used by pools', async () => {
    const admin = daemon.client(daemon.adminKey);
    const spec = { containers: [{ name: 'main', image: 'host' }] };
    const made = await admin.post('/admin/sandbox-templates', {
      crdJson: JSON.stringify({
        apiVersion: 'sandpool.dev/v1alpha1',
        kind: 'SandboxTemplate',
        metadata: { name: 'used' },
        spec,
      }),
    });
    expect(made.status, made.text).to.equal(201);
    await tenant.post('/sandboxpools', { name: 'user', templateName: 'used', replicas: 0 });
    const { error, detail } = await refused(admin.delete('/admin/sandbox-templates/used'), 409);
    expect(error).to.equal('pools are made from this sandbox template; delete them first');
    for (const pool of detail['pools'] as { name: string; namespace: string }[]) {
      const path = `/sandboxpools/${pool.name}?namespace=${pool.namespace}`;
      expect((await admin.delete(path)).status, path).to.equal(200);
    }
    await within(
      'the template goes',
      async () => (await admin.delete('/admin/sandbox-templates/used')).status === 200,
    );
  });

  it("works for another user's pool, by a pool of one's own", async () => {
    await tenant.post('/sandboxpools', { name: 'private', templateName: 'default', replicas: 1 });
    const { error } = await refused(colleague.post('/sandboxes', { poolName: 'private' }), 403);
    expect(error).to.equal('pool belongs to another team/user; create in a pool of your own');
    const own = { name: 'bobs', templateName: 'default', replicas: 1 };
    expect((await colleague.post('/sandboxpools', own)).status).to.equal(201);
    await claim(colleague, 'bobs');
  });

  it('works for a used-up quota, by deleting a sandbox', async () => {
    const admin = daemon.client(daemon.adminKey);
    const limited = await aTenant(daemon, 'hinted', 'cyd');
    const set = await admin.put('/admin/quotas/hinted/cyd', { sandboxes: 1 });
    expect(set.status, set.text).to.equal(200);
    await limited.post('/sandboxpools', { name: 'few', templateName: 'default', replicas: 2 });
    const id = await claim(limited, 'few');
    await stocked(limited, 1, 'few');
    const { detail } = await refused(limited.post('/sandboxes', { poolName: 'few' }), 429);
    expect(detail['message']).to.equal(
      'the quota of 1 sandboxes is used up; delete a sandbox first',
    );
    expect((await limited.delete(`/sandboxes/${id}`)).status).to.equal(200);
    await untilAnswered(201, () => limited.post('/sandboxes', { poolName: 'few' }));
  });
});
