import { expect } from 'chai';
import type { Tenant } from '../../src/model/tenant.ts';
import { LinkedCallers } from '../../src/fleet/routing/linked-clients.ts';
import { ApiKeyMirror } from '../../src/services/keys/api-keys.ts';
import { mintApiKey } from '../../src/services/keys/mint-api-key.ts';
import { createExecToken, openTerminal } from '../../src/actors/sandbox/commands/terminals.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { MemoryApiKeys } from '../support/fakes/memory-api-keys.ts';
import { rejection } from '../support/harness/rejection.ts';
import { testClaimEnv } from '../support/builders/test-claim-env.ts';

const PEPPER = Buffer.alloc(32, 1);
const LIFETIME_MS = 60_000;

describe('terminals', () => {
  const aWorld = async () => {
    const world = await aSupervisor({ pool: { replicas: 1 } });
    const { supervisor, pool, claim, clock, coordination } = world;
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    const { id } = await claim(alice, { poolName: 'default' });
    const store = new MemoryApiKeys();
    const apiKeys = new ApiKeyMirror({ apiKeys: store, clock, revocations: coordination });
    await apiKeys.start();
    const tenant: Tenant = ALICE;
    const spec = {
      tenant,
      role: 'user' as const,
      shortName: 'k',
      description: '',
      issuedAt: clock.now(),
      expiresAt: clock.now() + LIFETIME_MS,
    };
    const key = await apiKeys.create(mintApiKey(spec, PEPPER).record);
    const deps = { ...world, apiKeys, clusterId: 'local', mostOfTenant: 3 };
    const token = (): Promise<string> => createExecToken(deps)({ ...alice, keyId: key.keyId }, id);
    const opening = openTerminal(deps);
    const open = async (given: string) =>
      opening({ clusterId: 'local', sandboxId: id, token: given, cols: 80, rows: 24 });
    return { ...world, apiKeys, store, key, id, token, open, deps };
  };

  it('end when their key is revoked, and their tokens become invalid', async () => {
    const { open, token, apiKeys, key } = await aWorld();
    const [opened, unused] = [await open(await token()), await token()];

    await apiKeys.remove(key);

    expect(await opened.ended).to.equal('key-revoked');
    expect(await rejection(open(unused))).to.have.property('code', 'INVALID_TOKEN');
    opened.close();
  });

  it('are limited per tenant, and a refused token works once another terminal is closed', async () => {
    const { open, token } = await aWorld();
    const opened = [
      await open(await token()),
      await open(await token()),
      await open(await token()),
    ];
    const given = await token();

    const refused = await rejection(open(given));
    expect(refused).to.have.property('code', 'TOO_MANY_TERMINALS');
    expect(refused).to.have.property(
      'message',
      'you have 3 open terminals, which is the maximum; close one first',
    );

    opened[0]?.close();
    (await open(given)).close();
    for (const one of opened) one.close();
  });

  it('open on any replica for a caller from a link whose key only the manager knows', async () => {
    const { apiKeys, id, deps } = await aWorld();
    const linked = { ...alice, keyId: 'of-the-manager' };
    const [one, two] = [new LinkedCallers(), new LinkedCallers()];
    one.remember(linked);
    const token = await createExecToken({ ...deps, apiKeys: one.besides(apiKeys) })(linked, id);

    const opened = await openTerminal({ ...deps, apiKeys: two.besides(apiKeys) })({
      ...{ clusterId: 'local', sandboxId: id, token, cols: 80, rows: 24, overLink: true },
    });

    expect(opened.linkedKeyId).to.equal('of-the-manager');
    expect(opened.caller).to.include({ user: linked.user, keyId: 'of-the-manager' });
    opened.close();
  });

  it("with a manager's key open only over a link, and end when the manager revokes the key", async () => {
    const { apiKeys, id, deps, key } = await aWorld();
    const callers = new LinkedCallers();
    const linked = { ...deps, apiKeys: callers.besides(apiKeys) };
    const opening = openTerminal(linked);
    const open = (token: string, overLink = false) =>
      opening({ clusterId: 'local', sandboxId: id, token, cols: 80, rows: 24, overLink });
    const tokenOf = (keyId: string): Promise<string> => {
      callers.remember({ ...alice, keyId });
      return createExecToken(linked)({ ...alice, keyId }, id);
    };

    const refused = await rejection(open(await tokenOf('of-the-manager')));
    expect(refused).to.have.property('code', 'INVALID_TOKEN');

    // promoted: its copy is a key of this cluster, and came over a link besides
    const [token, late] = [await tokenOf(key.keyId), await tokenOf(key.keyId)];
    const opened = await open(token);
    await apiKeys.remove(key);
    expect(await opened.ended).to.equal('key-revoked');
    opened.close();
    expect(await rejection(open(late))).to.have.property('code', 'INVALID_TOKEN');
    (await open(late, true)).close();
  });

  it('end when their key expires', async () => {
    const { open, token, clock } = await aWorld();
    const opened = await open(await token());
    const late = await token();

    clock.advance(LIFETIME_MS);

    expect(await opened.ended).to.equal('key-revoked');
    expect(await rejection(open(late))).to.have.property('code', 'INVALID_TOKEN');
    opened.close();
  });

  it('open by a token of a key that this replica does not show yet', async () => {
    const { open, token, store, coordination, clock, supervisor, driver, id } = await aWorld();
    const given = await token();
    const apiKeys = new ApiKeyMirror({ apiKeys: store, clock, revocations: coordination });

    const opened = await openTerminal({
      supervisor,
      driver,
      coordination,
      clock,
      apiKeys,
      clusterId: 'local',
      mostOfTenant: 3,
      claimEnv: testClaimEnv,
    })({ clusterId: 'local', sandboxId: id, token: given, cols: 80, rows: 24 });

    opened.close();
    expect(await opened.ended).to.equal('sandbox-ended');
    void open;
  });

  it('end with the sandbox if it ends first, and stop following the key', async () => {
    const { open, token, supervisor, id, clock, apiKeys, key } = await aWorld();
    const waiting = clock.waiting;
    const opened = await open(await token());
    supervisor.send(id, { type: 'END', reason: 'deleted', now: clock.now() });

    expect(await opened.ended).to.equal('sandbox-ended');
    opened.close();
    await apiKeys.remove(key);
    expect(clock.waiting).to.be.at.most(waiting + 1);
  });
});
