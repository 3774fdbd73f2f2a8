import { expect } from 'chai';
import { DaemonUnderTest, within } from '../support/a-daemon.ts';
import type { HttpAnswer, HttpClient } from '../support/http-client.ts';
import { aTenant, claim, stocked } from '../support/on-a-daemon.ts';

/**
 * What the hint of a refusal advises works: each request that it names is carried out, with a body
 * that says what it says.
 */
describe('what hints advise', () => {
  let daemon: DaemonUnderTest;
  let tenant: HttpClient;
  let colleague: HttpClient;

  before(async function () {
    this.timeout(40_000);
    daemon = await DaemonUnderTest.start(['--default-pool-replicas', '0']);
    tenant = await aTenant(daemon, 'hinted', 'ann');
    colleague = await aTenant(daemon, 'hinted', 'bob');
  });

  after(async function () {
    this.timeout(40_000);
    await daemon.dispose();
  });

  interface Refused {
    readonly hint: string;
    readonly problem?: string;
    readonly problemSince?: string;
  }

  /** Until a claim is refused for good: what was freed a moment ago may start anew. */
  const exhausted = async (
    client: HttpClient,
    poolName: string,
    when: (detail: Refused) => boolean = ({ hint }) => !hint.startsWith('instances are starting'),
  ): Promise<Refused> => {
    let detail: Refused | undefined;
    await within(20_000, `claims from ${poolName} are refused`, async () => {
      const answer = await client.post('/sandboxes', { poolName });
      if (answer.status !== 429) return false;
      detail = (JSON.parse(answer.text) as { readonly detail: Refused }).detail;
      return when(detail);
    });
    return detail ?? expect.fail('it was not refused');
  };

  /**
   * Carries out each request that the hint names; the bodies by method and the last name of the
   * collection.
   */
  const carryOut = async (
    client: HttpClient,
    hint: string,
    bodies: Readonly<Record<string, object>>,
    sandboxId = '',
  ): Promise<readonly string[]> => {
    const requests = [...hint.matchAll(/\b(GET|PUT|PATCH|DELETE) \/v1(\/[^\s;,]+)/g)].map(
      ([, method = '', path = '']) => [method, path.replace('{sandboxId}', sandboxId)] as const,
    );
    for (const [method, path] of requests) {
      const answer: HttpAnswer = await client.send(
        method,
        path,
        bodies[method] === undefined ? {} : { body: bodies[method] },
      );
      expect(answer.status, `${method} ${path}: ${answer.text}`).to.equal(200);
    }
    return requests.map(([method, path]) => `${method} ${path}`);
  };

  it("works for a pool of one's own", async () => {
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

  it("works for an env's pool, which is not changed as a pool is", async () => {
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
      (await tenant.post('/sandboxes', { poolName: 'small', waitTimeoutSeconds: 20 })).status,
      'waitTimeoutSeconds',
    ).to.equal(201);
  });

  it('names who can enlarge a pool that is shared with the caller', async () => {
    await tenant.post('/sandboxpools', {
      name: 'shared',
      templateName: 'default',
      replicas: 0,
      access: 'team',
    });
    const { hint } = await exhausted(colleague, 'shared');
    expect(hint).to.include('have hinted/ann, whose pool it is, enlarge it').and.not.include('PUT');
  });

  it('works where starts fail, and says why and since when', async () => {
    const broken = {
      name: 'broken',
      replicas: 1,
      template: {
        containers: [{ name: 'main', image: 'host', command: ['/bin/sh', '-c', 'exit 3'] }],
      },
    };
    const made = await tenant.post('/sandboxpools', broken);
    expect(made.status, made.text).to.equal(201);
    const { hint, problem, problemSince } = await exhausted(
      tenant,
      'broken',
      (detail) => detail.problem !== undefined && detail.problemSince !== undefined,
    );
    expect(problem).to.match(/3/);
    expect(Date.parse(problemSince ?? '')).to.be.closeTo(Date.now(), 60_000);
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

  it('names the field of the request that names a template', async () => {
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
});
