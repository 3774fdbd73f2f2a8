import { Sandbox } from '@e2b/code-interpreter';
import { expect } from 'chai';
import { existsSync } from 'node:fs';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { stepsByDomain } from '../e2b/by-domain.ts';
import { INTERPRETER_STEPS } from '../e2b/interpreter-steps.ts';
import { impatientWay, type Way } from '../e2b/ways.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { poolStatus } from '../support/harness/on-a-daemon.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

const TEMPLATE = 'code-interpreter-v1';

describe("E2B's unmodified code interpreter on a daemon", function () {
  let daemon: DaemonUnderTest;
  let sandbox: Sandbox;
  let atRest: Awaited<ReturnType<typeof poolStatus>>;
  let claimed: number;
  /** One whose address is another than that of the control API. */
  let apart: Sandbox | undefined;
  let way: Way | undefined;
  let byDomain: ReturnType<typeof stepsByDomain> | undefined;

  before(async function () {
    if (!existsSync('/usr/bin/python3')) return skipBecause(this, 'there is no /usr/bin/python3');
    daemon = await DaemonUnderTest.start([
      ...['--compatible-api-listen', '127.0.0.1:0', '--interpreter-pool-max-replicas', '8'],
      ...['--compatible-api-wait', '50s'],
    ]);
    const tenant = daemon.client();
    atRest = await poolStatus(tenant, TEMPLATE);
    const claim = { poolName: TEMPLATE, waitTimeoutSeconds: NEVER_COMES_MS / 1_000 };
    const url = daemon.compatibleUrl;
    const key = toCompatibleForm(daemon.tenantKey);
    way = await impatientWay(url);
    const create = (sandboxUrl: string): Promise<Sandbox> =>
      Sandbox.create({
        ...{ apiKey: key, apiUrl: url, sandboxUrl },
        envs: { OF_CLAIM: 'claim', LONG: 'é'.repeat(20_000) },
      });
    [sandbox, { status: claimed }] = await Promise.all([
      create(url),
      tenant.post('/sandboxes', claim),
    ]);
    apart = await create(`http://127.0.0.1:${way.port}`);
    // It goes on beside the others.
    byDomain = stepsByDomain('interpreter', { url, key });
    byDomain.catch(() => {});
  });
  after(async () => {
    await byDomain?.catch(() => {});
    way?.stop();
    await daemon?.dispose();
  });

  it('starts in the first pool, which has no instance until a claim waits', () => {
    expect(atRest).to.include({ phase: 'Ready', idleReplicas: 0, startingReplicas: 0 });
    expect(claimed, 'a claim over REST, at the same time').to.equal(201);
  });

  for (const ports of ['one port', 'two ports'])
    describe(`by two URLs of ${ports}`, () => {
      const under = (): Sandbox => {
        const found = ports === 'one port' ? sandbox : apart;
        if (!found) throw new Error('there is no such sandbox');
        return found;
      };
      for (const [title, step] of Object.entries(INTERPRETER_STEPS)) it(title, () => step(under()));
    });

  it('has all variables of the claim, of any length', async () => {
    const code = "import os\n(os.environ['OF_CLAIM'], len(os.environ['LONG']))";
    expect((await sandbox.runCode(code)).text).to.equal("('claim', 20000)");
  });

  it('works with a domain over TLS', async function () {
    const steps = await byDomain;
    if (!steps) return skipBecause(this, 'there is no openssl to make a certificate with');

    expect(steps.filter(({ why }) => why !== null)).to.deep.equal([]);
    expect(steps.map(({ step }) => step)).to.deep.equal(Object.keys(INTERPRETER_STEPS));
  });

  it('reports an invalid request', async () => {
    const url = daemon.compatibleUrl;
    const headers = {
      'E2b-Sandbox-Id': sandbox.sandboxId,
      'E2b-Sandbox-Port': '49999',
      'E2b-Traffic-Access-Token': sandbox.trafficAccessToken ?? '',
    };
    const ask = async (path: string, body: string): Promise<string> => {
      const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body });
      return `${answer.status} ${((await answer.json()) as { message: string }).message}`;
    };

    expect([
      await ask('/execute', '{'),
      await ask('/execute', '['.repeat(100_000)),
      await ask('/execute', '{}'),
      await ask('/execute', '{"code":"1","context_id":7}'),
      await ask('/execute', '{"code":"1","context_id":"a","language":"python"}'),
      await ask('/execute', '{"code":"1","env_vars":{"A=":"b"}}'),
      await ask('/execute', '{"code":"1","language":"r"}'),
      await ask('/contexts', '{"cwd":"/none"}'),
      await ask('/contexts/x/restart', ''),
      await ask('/nothing', ''),
      await ask('/execute', ' '.repeat(8_388_609)),
    ]).to.deep.equal([
      '400 the body is not JSON',
      '400 the body is not JSON',
      '400 code: is required',
      '400 context_id: must be text',
      '400 language: the context has one already',
      '400 env_vars: a name is empty, or holds = or a NUL',
      '400 language: r is not provided, only python',
      '400 cwd: there is no folder /none',
      '404 there is no context x',
      '404 there is nothing at this path',
      '413 the body may have 8388608 bytes',
    ]);
  });
});
