import { expect } from 'chai';
import type { Coordination } from '../../src/contracts/coordination.ts';
import type { QuotaEntry, ReservedName } from '../../src/contracts/coordination/quotas.ts';
import type { PullSecrets } from '../../src/contracts/pull-secrets.ts';
import type { RegistryCredentials } from '../../src/model/pools/pool-source.ts';
import type { QuotaResource } from '../../src/model/pools/quota.ts';
import { OutcomeUnknown, RecordConflict } from '../../src/contracts/sandbox-driver.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { SandboxTemplateSchema } from '../../src/model/templates/template.ts';
import type { Tenant } from '../../src/model/tenant.ts';
import { createPool } from '../../src/actors/pool/commands/create-pool.ts';
import { instanceTypes } from '../../src/services/templates/instance-types.ts';
import { updatePool } from '../../src/actors/pool/commands/update-pool.ts';
import { requireReserved } from '../../src/actors/sandbox/commands/reservations.ts';
import { MemoryTemplates } from '../support/fakes/memory-templates.ts';
import { TemplateCatalog } from '../../src/actors/pool/template-catalog.ts';
import { VolumeDirectories } from '../../src/embedded/driver/volume-directories.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { noEnvs } from '../support/fakes/memory-envs.ts';
import { limitsOf } from '../support/fakes/memory-quotas.ts';
import { noPullSecrets } from '../support/fakes/no-pull-secrets.ts';
import { rejection } from '../support/harness/rejection.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const codeOf = (error: unknown): string => (error instanceof Refusal ? error.code : String(error));

/** KiB of an instance of the pool that is there, and of the template. */
const OF_ONE = 128 * 1_024;
const OF_TEMPLATE = 256 * 1_024;

const PASSWORDS = { registries: [{ registry: 'r.example', username: 'u', password: 'p' }] };

describe('a quota reservation', () => {
  it('is repeated before a write more than a second later', async () => {
    const clock = new TestClock();
    const asked: string[] = [];
    let counts = true;
    const coordination = {
      stillReserved: async (_tenant: Tenant, resource: QuotaResource, { name }: ReservedName) => {
        asked.push(`${resource} ${name}`);
        return counts;
      },
    };
    const check = () =>
      requireReserved(
        { coordination, clock },
        { tenant: ALICE, name: 'x', resources: ['pools', 'replicas'], since },
      );
    const since = clock.now();

    clock.advance(1_000);
    await check();
    expect(asked).to.deep.equal([]);
    clock.advance(1);
    await check();
    expect(asked).to.deep.equal(['pools x', 'replicas x']);
    counts = false;
    expect(codeOf(await rejection(check()))).to.equal('UNAVAILABLE');
  });

  it('of a claim is checked again if its write waited too long', async () => {
    const { claim, driver, clock, supervisor, pool } = await aSupervisor({ pool: { replicas: 1 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    driver.hold('claim');
    const claimed = claim(alice, { poolName: 'default' });
    await eventually(
      () => driver.calls.some((call) => call.startsWith('claim')),
      'it waits for its turn',
    );
    clock.advance(1_100);
    driver.letGo('claim');
    await eventually(() => {
      clock.advance(100);
      return driver.calls.filter((call) => call.startsWith('claim')).length === 2;
    }, 'it is tried again');

    expect(await claimed).to.have.property('poolName', 'default');
  });

  describe('for a pool', () => {
    /** A coordination that takes so long, and then may have forgotten. */
    const aWorld = async (takesMs: number, pullSecrets: PullSecrets = noPullSecrets) => {
      const world = await aSupervisor({ pool: { replicas: 1 } });
      const reserved: string[] = [];
      const released: string[] = [];
      const confirmed: string[] = [];
      const coordination: Coordination = {
        ...world.coordination,
        reserve: async (tenant: Tenant, resource: QuotaResource, entry: QuotaEntry) => {
          world.clock.advance(takesMs);
          reserved.push(`${resource} ${entry.amount}`);
          return await world.coordination.reserve(tenant, resource, entry);
        },
        release: async (tenant, resource, name) => {
          released.push(resource);
          await world.coordination.release(tenant, resource, name);
        },
        withdraw: async (tenant, resource, reserved) => {
          released.push(resource);
          await world.coordination.withdraw(tenant, resource, reserved);
        },
        confirm: async (tenant, resource, confirmation) => {
          confirmed.push(`${resource} ${confirmation.amount}`);
          await world.coordination.confirm(tenant, resource, confirmation);
        },
        stillReserved: async () => false,
      };
      const templates = new TemplateCatalog({
        templates: new MemoryTemplates(),
        clock: world.clock,
      });
      const document = SandboxTemplateSchema.parse({
        apiVersion: 'sandpool.dev/v1alpha1',
        kind: 'SandboxTemplate',
        metadata: { name: 't' },
        spec: { containers: [{ name: 'main', image: 'host' }] },
      });
      templates.learn({
        kind: 'put',
        record: { name: 't', revision: '1', version: '1', createdAt: 1, document },
      });
      const quotaLimits = limitsOf({ pools: 10, replicas: 10 });
      const deps = {
        ...world,
        coordination,
        templates,
        types: instanceTypes(undefined),
        volumes: new VolumeDirectories([]),
        pullSecrets,
        background: () => undefined,
        envs: noEnvs(world.clock),
      };
      const create = createPool({ ...deps, newUid: () => 'u1', quotaLimits });
      return {
        ...world,
        reserved,
        released,
        confirmed,
        create: (passwords: { readonly registries?: readonly RegistryCredentials[] } = {}) =>
          create(alice, {
            name: 'more',
            source: { templateName: 't' },
            replicas: 3,
            labels: {},
            annotations: {},
            ...passwords,
          }),
        update: (replicas: number) =>
          updatePool({ ...deps, quotaLimits })(alice, 'default', { replicas }),
      };
    };

    it('creates no pool if the reservation was lost in the meantime', async () => {
      const { create, pools, released } = await aWorld(600);

      expect(codeOf(await rejection(create()))).to.equal('UNAVAILABLE');
      expect(pools.records.has('u1')).to.equal(false);
      expect(released).to.deep.equal(['pools', 'replicas', 'cpu', 'memory']);
    });

    it('is made after the passwords are stored, however long that takes', async () => {
      let waited = (): void => undefined;
      const { create, pools, clock } = await aWorld(1, {
        ...noPullSecrets,
        keep: async () => {
          waited();
        },
      });
      waited = () => {
        clock.advance(5_000);
      };

      expect(codeOf(await rejection(create(PASSWORDS)))).to.equal('UNAVAILABLE');
      expect(pools.records.has('u1')).to.equal(false);
    });

    it('stays if passwords could not be removed, which are settled later', async () => {
      const { create, pools, released } = await aWorld(1, {
        ...noPullSecrets,
        forget: async () => {
          throw new Error('out of reach');
        },
      });
      pools.create = async () => {
        throw new Refusal('UNAVAILABLE', 'out of reach');
      };

      expect(codeOf(await rejection(create(PASSWORDS)))).to.equal('UNAVAILABLE');
      expect(released).to.deep.equal([]);
    });

    it('is repeated for each attempt, and changes no pool if all attempts are late', async () => {
      const { update, pools, pool, reserved, released, coordination } = await aWorld(1_100);

      expect(codeOf(await rejection(update(5)))).to.equal('UNAVAILABLE');
      expect(pools.records.get(pool.uid)?.replicas).to.equal(1);
      expect([new Set(reserved), released]).to.deep.equal([
        new Set(['replicas 5', 'cpu 5000', `memory ${5 * OF_ONE}`]),
        ['replicas', 'cpu', 'memory'],
      ]);
      expect((await coordination.used(ALICE)).replicas).to.equal(1);
    });

    it('becomes the size in the record once the pool is created, grown or shrunk', async () => {
      const { create, update, confirmed, reserved, coordination } = await aWorld(1);
      await create();
      await update(5);
      await update(2);

      const made = ['pools 1', 'replicas 3', 'cpu 3000', `memory ${3 * OF_TEMPLATE}`];
      expect(reserved).to.deep.equal([...made, 'replicas 5', 'cpu 5000', `memory ${5 * OF_ONE}`]);
      expect(confirmed).to.deep.equal([
        ...made,
        'replicas 5',
        'cpu 5000',
        `memory ${5 * OF_ONE}`,
        'replicas 2',
        'cpu 2000',
        `memory ${2 * OF_ONE}`,
      ]);
      expect(await coordination.used(ALICE)).to.deep.equal({
        sandboxes: 0,
        pools: 2,
        replicas: 5,
        cpu: 5_000,
        memory: 3 * OF_TEMPLATE + 2 * OF_ONE,
      });
    });

    it('is released if another change of the pool came first', async () => {
      const { update, pools, pool, released, coordination } = await aWorld(1);
      pools.update = async () => {
        throw new RecordConflict('moved');
      };

      expect(codeOf(await rejection(update(5)))).to.equal('UNAVAILABLE');
      expect([pools.records.get(pool.uid)?.replicas, released]).to.deep.equal([
        1,
        ['replicas', 'cpu', 'memory'],
      ]);
      expect((await coordination.used(ALICE)).replicas).to.equal(1);
    });

    it('stays if the pool may have been created or changed', async () => {
      const { create, update, pools, released, reserved } = await aWorld(1);
      pools.create = async () => {
        throw new OutcomeUnknown('cut');
      };
      pools.update = async () => {
        throw new OutcomeUnknown('cut');
      };

      expect(await rejection(create())).to.be.instanceOf(OutcomeUnknown);
      reserved.length = 0;
      expect(await rejection(update(5))).to.be.instanceOf(OutcomeUnknown);
      expect([reserved, released]).to.deep.equal([
        ['replicas 5', 'cpu 5000', `memory ${5 * OF_ONE}`],
        [],
      ]);
    });
  });
});
