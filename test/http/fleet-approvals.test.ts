import { expect } from 'chai';
import { EffectIsOver } from '../../src/model/approvals/approval-refusals.ts';
import type { IdempotentRequest } from '../../src/actors/request/idempotent-request.ts';
import type { SandboxView } from '../../src/actors/views.ts';
import {
  anApprovingServer,
  approvalIdOf,
  TERMS,
  type ApprovingServer,
} from './an-approving-server.ts';
import { aFleetOfServers, type FleetOfServers } from './fleet-support.ts';

const WITHOUT_AND_WITH_KEY: readonly Readonly<Record<string, string>>[] = [
  {},
  { 'Idempotency-Key': 'k' },
];

describe('an approval for another cluster', () => {
  let servers: FleetOfServers;
  let approving: ApprovingServer;

  const claim = (poolName: string, headers: Readonly<Record<string, string>> = {}) =>
    servers.manager.tenant.post('/sandboxes', { poolName }, { headers });
  const granted = async (...asked: Parameters<typeof claim>): Promise<string> => {
    const id = approvalIdOf(await claim(...asked));
    expect((await approving.approve(id)).status).to.equal(200);
    return id;
  };
  const claimed = async (): Promise<number> => {
    const { json } = await servers.workers['w1']!.tenant.get('/sandboxes');
    return (json as { readonly total?: number }).total ?? -1;
  };

  beforeEach(async () => {
    servers = await aFleetOfServers(['w1'], async (ofFleet) => {
      approving = await anApprovingServer(
        ['require operation=claimSandbox|execInSandbox|deletePool|deleteSandbox'],
        {
          ofFleet,
        },
      );
      return approving.server;
    });
    const { tenant } = servers.workers['w1']!;
    await tenant.post('/sandboxpools', { name: 'p', templateName: 'default', replicas: 3 });
    servers.manager.operations.claimPlaces = (_caller, name) =>
      name === 'e' ? [{ clusterId: 'w1', poolName: 'p', took: () => undefined }] : [];
  });
  afterEach(() => servers.stop());

  for (const poolName of ['w1::p', 'e'])
    it(`allows one claim from ${poolName}`, async () => {
      await granted(poolName);
      const [first, again] = [await claim(poolName), await claim(poolName)];

      expect([first.status, again.status]).to.deep.equal([201, 201]);
      expect(again.text).to.equal(first.text);
      expect(again.headers['idempotency-replayed']).to.equal('true');
      expect(await claimed()).to.equal(1);
      approving.clock.advance(TERMS.grantMs);
      expect((await claim(poolName)).json.errorCode).to.equal('APPROVAL_REQUIRED');
    });

  for (const poolName of ['w1::p', 'e'])
    it(`allows one claim from ${poolName} with a key, which can be repeated without another`, async () => {
      const key = { 'Idempotency-Key': 'k' };
      await granted(poolName, key);
      const first = await claim(poolName, key);
      for (const later of [0, TERMS.grantMs]) {
        approving.clock.advance(later);
        const again = await claim(poolName, key);
        expect([again.status, again.text]).to.deep.equal([201, first.text]);
      }
      expect(await claimed()).to.equal(1);
      expect((await claim('w1::q', key)).json.errorCode).to.equal('IDEMPOTENCY_KEY_REUSED');
      expect((await claim(poolName, { 'Idempotency-Key': 'l' })).status).to.equal(403);
    });

  it('allows one attempt of a command, with a key or without, like on one cluster', async () => {
    const { json } = await servers.workers['w1']!.tenant.post('/sandboxes', { poolName: 'p' });
    const path = `/sandboxes/w1.${String(json.sandbox?.['sandboxId'])}/exec`;
    for (const headers of WITHOUT_AND_WITH_KEY) {
      const run = () => servers.manager.tenant.post(path, { command: 'true' }, { headers });
      expect((await approving.approve(approvalIdOf(await run()))).status).to.equal(200);
      expect([(await run()).status, (await run()).json.errorCode]).to.deep.equal([200, 'CONFLICT']);
      approving.clock.advance(10_000);
      approvalIdOf(await run());
    }
  });

  /** Has the manager claim from `e` here, be gone before it says so, and find it again or not. */
  const claimUnreported = async (clusters: readonly string[], found: 'found' | 'over') => {
    const { operations, tenant } = servers.manager;
    await tenant.post('/sandboxpools', { name: 'e', templateName: 'default', replicas: 3 });
    const places = (...ids: readonly string[]): void => {
      operations.claimPlaces = (_caller, name) =>
        (name === 'e' ? ids : []).map((clusterId) => ({
          ...{ clusterId, poolName: clusterId === 'w1' ? 'p' : 'e' },
          took: () => undefined,
        }));
    };
    const { claimSandbox } = operations;
    const claims = new Map<string, SandboxView>();
    const earlier = ({ mark, mayBeDone }: IdempotentRequest): SandboxView | undefined => {
      const claim = claims.get(mark.key);
      if (claim && found === 'over' && mayBeDone) throw new EffectIsOver();
      return found === 'over' ? undefined : claim;
    };
    Object.assign(operations, {
      claimedBefore: async (...[, opening]: Parameters<typeof operations.claimedBefore>) => {
        await opening.open();
        return earlier(opening);
      },
      claimSandbox: async (...of: Parameters<typeof claimSandbox>) => {
        const [, { opening }] = of;
        const before = opening && earlier(opening);
        if (before) return before;
        const claimed = await claimSandbox(...of);
        claims.set(opening?.mark.key ?? '', claimed);
        throw new Error('this replica is gone');
      },
    });
    places(...clusters);
    await granted('e');
    expect((await claim('e')).status).to.equal(500);
    places('w1', 'hub');
    return [...claims.values()].map(({ id }) => `hub.${id}`);
  };

  for (const [title, clusters] of Object.entries({
    'all its members here': [],
    'members on other clusters too': ['hub', 'w1'],
  })) {
    it(`allows one claim, that was not reported, of an env with ${title}`, async () => {
      const ids = await claimUnreported(clusters, 'found');
      const { status, json } = await claim('e');

      expect([status, json.sandbox?.['sandboxId']]).to.deep.equal([201, ids[0]]);
      expect(await claimed()).to.equal(0);
    });

    it(`is used up by a sandbox that has ended, of an env with ${title}`, async () => {
      await claimUnreported(clusters, 'over');

      expect((await claim('e')).json.errorCode).to.equal('CONFLICT');
      expect(await claimed()).to.equal(0);
      expect(servers.manager.operations.sandboxes.size).to.equal(1);
    });
  }

  it('is returned if the cluster refuses', async () => {
    const { tenant } = servers.workers['w1']!;
    await tenant.put('/sandboxpools/p', { replicas: 0 });
    await granted('w1::p');
    expect((await claim('w1::p')).json.errorCode).to.equal('POOL_EXHAUSTED');
    await tenant.put('/sandboxpools/p', { replicas: 3 });

    expect((await claim('w1::p')).status).to.equal(201);
  });

  it('is not requested for resources that the other cluster lacks or hides from the tenant', async () => {
    const { tenant, stranger } = servers.manager;
    const { json } = await servers.workers['w1']!.tenant.post('/sandboxes', { poolName: 'p' });
    const own = `/sandboxes/w1.${json.sandbox?.['sandboxId']}`;
    const none = '/sandboxes/w1.0190d4a5-7b1e-7c3a-9f00-00000000ffff';
    for (const [client, path, code] of [
      [tenant, none, 'SANDBOX_NOT_FOUND'],
      [stranger, own, 'SANDBOX_NOT_FOUND'],
      [tenant, '/sandboxpools/w1::none', 'POOL_NOT_FOUND'],
    ] as const) {
      const answer = await client.delete(path);
      expect([answer.status, answer.json.errorCode], path).to.deep.equal([404, code]);
    }
    expect(approving.records.records.size).to.equal(0);
    for (const path of [own, '/sandboxpools/w1::p']) approvalIdOf(await tenant.delete(path));
  });
});
