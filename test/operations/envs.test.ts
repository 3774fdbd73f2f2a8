import { expect } from 'chai';
import { groupFor } from '../../src/model/envs/autoscaling-group.ts';
import { wordRevisionOf, type EnvMember, type EnvRecord } from '../../src/model/envs/env.ts';
import { RecordExists } from '../../src/contracts/record-store.ts';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { SandboxTemplateSchema } from '../../src/model/templates/template.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aTemplate, anEnvWorld } from '../support/harness/an-env-world.ts';
import { rejection } from '../support/harness/rejection.ts';

type World = Awaited<ReturnType<typeof anEnvWorld>>;

const LARGE = SandboxTemplateSchema.parse({
  apiVersion: 'sandpool.dev/v1alpha1',
  kind: 'SandboxTemplate',
  metadata: { name: 'large' },
  spec: { containers: [{ name: 'main', image: 'host', resources: { limits: { cpu: '2' } } }] },
});
const add = (world: World, name: string, more: object = {}) =>
  world.addMember(alice, 'e', { name, config: {}, ...more });
const refusedWith = async (attempt: Promise<unknown>): Promise<readonly [string, unknown]> => {
  const refusal = await rejection(attempt);
  if (!(refusal instanceof Refusal)) throw refusal;
  return [refusal.code, refusal.detail];
};
const aMember = (part: Partial<EnvMember> = {}): EnvMember => ({
  name: 'm',
  clusterId: 'local',
  createdAt: 1,
  replicas: 2,
  config: { scalingGroup: 'm' },
  deleting: false,
  ...part,
});
const aRecord = (part: Partial<EnvRecord> = {}): Omit<EnvRecord, 'revision'> => ({
  uid: 'e1',
  name: 'e',
  owner: { namespace: alice.namespace, team: alice.team, user: alice.user },
  createdAt: 1,
  labels: {},
  annotations: {},
  templateRef: { name: 't' },
  mode: 'WarmPool',
  overrides: {},
  members: [aMember()],
  groups: [groupFor('m', { replicas: 2 })],
  scaling: { m: {} },
  conditions: [],
  deleting: false,
  ...part,
});

describe('envs', () => {
  it('are created without members, and only once per name', async () => {
    const world = await anEnvWorld();

    const { record, conditions } = await world.made();

    expect([record.members, record.groups]).to.deep.equal([[], []]);
    expect(conditions.find(({ type }) => type === 'Ready')).to.include({
      status: 'True',
      reason: 'NoMembers',
    });
    expect(await refusedWith(world.made())).to.deep.equal(['ALREADY_EXISTS', undefined]);
  });

  it('refuse unknown templates and versions by their fields', async () => {
    const world = await anEnvWorld();
    const make = (templateRef: EnvRecord['templateRef']) =>
      world.createEnv(alice, {
        name: 'x',
        templateRef,
        mode: 'WarmPool',
        overrides: {},
        labels: {},
        annotations: {},
      });

    expect((await refusedWith(make({ name: 'none' })))[0]).to.equal('SANDBOX_TEMPLATE_NOT_FOUND');
    expect(await refusedWith(make({ name: 't', version: '7' }))).to.deep.equal([
      'INVALID_ARGUMENT',
      { field: 'templateRef.version' },
    ]);
  });

  it('store registry passwords separately, until a patch replaces or removes them', async () => {
    const world = await anEnvWorld();
    const registries = [{ registry: 'r', username: 'u', password: 'hunter2' }];
    await world.createEnv(alice, {
      name: 'e',
      templateRef: { name: 't' },
      mode: 'WarmPool',
      overrides: {},
      labels: {},
      annotations: {},
      registries,
    });

    expect(world.kept[0]).to.equal(registries);
    expect(JSON.stringify(world.env()))
      .to.contain('imagePullSecretConfigured')
      .and.not.contain('hunter2');
    await world.replaceEnv(alice, 'e', {
      templateRef: { name: 't' },
      overrides: {},
      labels: {},
      annotations: {},
    });
    expect(world.env()?.overrides).to.deep.equal({ imagePullSecretConfigured: true });
    await world.patchEnv(alice, 'e', { patch: {}, registries: [] });
    expect(world.env()?.overrides).to.deep.equal({});
  });

  it('leave a note of their passwords if the replica dies before the record is written', async () => {
    const world = await anEnvWorld();
    const registries = [{ registry: 'r', username: 'u', password: 'p' }];
    const make = (name: string) =>
      world.createEnv(alice, {
        name,
        templateRef: { name: 't' },
        mode: 'WarmPool',
        overrides: {},
        labels: {},
        annotations: {},
        registries,
      });
    const noted = (uid: string) => world.coordination.stillReserved(alice, 'pools', { name: uid });
    const { create } = world.envs;
    const during: boolean[] = [];
    const creating = (end: () => Promise<EnvRecord>) => {
      world.envs.create = async (draft) => {
        during.push(await noted(draft.uid));
        world.envs.create = create;
        return await end();
      };
    };
    const before = await world.coordination.used(alice);

    creating(() => Promise.reject(new OutcomeUnknown('cut')));
    expect(await rejection(make('cut'))).to.be.instanceOf(OutcomeUnknown);
    expect([during, await noted('u1'), world.kept.length]).to.deep.equal([[true], true, 1]);
    creating(() => Promise.reject(new RecordExists('taken')));
    expect((await refusedWith(make('taken')))[0]).to.equal('ALREADY_EXISTS');
    expect([during[1], await noted('u2'), world.kept.length]).to.deep.equal([true, false, 3]);
    const {
      record: { uid },
    } = await make('made');
    expect(await noted(uid)).to.equal(false);
    expect(await world.coordination.used(alice)).to.deep.equal(before);
  });

  it('cannot change name or mode, and do not write an unchanged patch', async () => {
    const world = await anEnvWorld();
    await world.made({ envd: { verbose: true } });
    const { writes } = world.envs;

    expect(
      (
        await refusedWith(
          world.replaceEnv(alice, 'e', {
            name: 'f',
            templateRef: { name: 't' },
            overrides: {},
            labels: {},
            annotations: {},
          }),
        )
      )[1],
    ).to.deep.equal({ field: 'name' });
    await world.patchEnv(alice, 'e', { patch: { overrides: { envd: { verbose: true } } } });
    expect(world.envs.writes).to.equal(writes);
  });

  it('are deleted with their members, but only by force while sandboxes run', async () => {
    const world = await anEnvWorld();
    await world.made();
    await add(world, 'm', { replicas: 1 });
    const uid = world.pool('m')?.uid ?? '';
    await eventually(() => world.supervisor.pools.get(uid)?.counts.idle === 1, 'one is idle');
    await world.claim(alice, { poolName: 'm' });

    expect(await refusedWith(world.deleteEnv(alice, 'e', { force: false }))).to.deep.equal([
      'ENV_HAS_RUNNING_SANDBOXES',
      { running: 1 },
    ]);
    await world.deleteEnv(alice, 'e', { force: true });
    await eventually(
      () => world.env() === undefined && world.pool('m') === undefined,
      'env and pool are gone',
    );
  });
});

describe('env members', () => {
  it('are pools that name the env, each with a group of its bounds', async () => {
    const world = await anEnvWorld();
    await world.made({ defaultIdleTimeout: '5m' });

    const { pool } = await add(world, 'm', {
      replicas: 2,
      config: { minReplicas: 1, maxReplicas: 9, labels: { a: 'b' } },
    });

    if (!('record' in pool)) throw new Error('it is of this cluster');
    expect(pool.record).to.deep.include({
      name: 'm',
      replicas: 2,
      env: { uid: world.env()?.uid, name: 'e' },
      labels: { a: 'b' },
    });
    expect(pool.record.definition.idleTimeoutMs).to.equal(300_000);
    expect(world.env()?.groups).to.deep.equal([
      groupFor('m', { replicas: 2, minReplicas: 1, maxReplicas: 9 }),
    ]);
  });

  it('leave nothing behind if the quota is used up or the name is taken', async () => {
    const world = await anEnvWorld({ pools: 2 });
    await world.made();
    await add(world, 'first');
    const { members } = world.env() ?? {};

    expect((await refusedWith(add(world, 'second')))[0]).to.equal('QUOTA_EXCEEDED');
    expect((await refusedWith(add(world, 'default')))[0]).to.equal('ALREADY_EXISTS');
    expect(world.env()?.members).to.deep.equal(members);
  });

  it('follow a patch of the env automatically, with one write each', async () => {
    const world = await anEnvWorld();
    await world.made();
    await add(world, 'a');
    await add(world, 'b');
    const written = new Map<string, Set<string>>();
    await world.pools.watch(({ record: { name, source, definition, updateRevision } }) => {
      written.set(
        name,
        (written.get(name) ?? new Set()).add(JSON.stringify([source, definition, updateRevision])),
      );
    });

    await world.patchEnv(alice, 'e', { patch: { overrides: { defaultIdleTimeout: '7m' } } });

    await eventually(
      () => ['a', 'b'].every((name) => world.pool(name)?.definition.idleTimeoutMs === 420_000),
      'both follow',
    );
    // as it was, and the one write
    expect(['a', 'b'].map((name) => written.get(name)?.size)).to.deep.equal([2, 2]);
  });

  it("keep their template if their owner's quota is too small, and report it", async () => {
    const world = await anEnvWorld({ cpu: 3 });
    await world.made();
    await add(world, 'm', { config: { minReplicas: 2 } });
    expect(await rejection(add(world, 'more', { config: { minReplicas: 2 } }))).to.include({
      code: 'QUOTA_EXCEEDED',
    });

    const refused = await rejection(
      world.updateMember(
        alice,
        { env: 'e', member: 'm' },
        {
          config: { inlineResources: { limits: { cpu: '2' } } },
        },
      ),
    );
    expect(refused)
      .to.have.property('detail')
      .that.deep.equals({ errCode: 'QUOTA_EXCEEDED', resource: 'cpu' });
    expect([
      world.env()?.members[0]?.config.inlineResources,
      (await world.coordination.used(alice)).cpu,
    ]).to.deep.equal([undefined, 2_000]);

    await world.templateRecords.create({
      name: 'large',
      version: '1',
      createdAt: 1,
      document: LARGE,
    });
    await world.replaceEnv(alice, 'e', {
      templateRef: { name: 'large' },
      overrides: {},
      labels: {},
      annotations: {},
    });
    await eventually(() => world.pool('m')?.unresolved?.reason === 'QuotaExceeded', 'it says so');
    expect([
      world.pool('m')?.definition.cpu,
      (await world.coordination.used(alice)).cpu,
    ]).to.deep.equal(['1', 2_000]);

    await world.replaceEnv(alice, 'e', {
      templateRef: { name: 't' },
      overrides: {},
      labels: {},
      annotations: {},
    });
    await world.updateMember(
      alice,
      { env: 'e', member: 'm' },
      {
        config: { inlineResources: { limits: { cpu: '1500m' } } },
      },
    );
    await eventually(() => world.pool('m')?.definition.cpu === '1500m', 'it follows');
    expect([world.pool('m')?.unresolved, (await world.coordination.used(alice)).cpu]).to.deep.equal(
      [undefined, 3_000],
    );
  });

  it('without autoUpdate wait for a sync', async () => {
    const world = await anEnvWorld();
    await world.made({ updateStrategy: { autoUpdate: false } });
    await add(world, 'm');
    await world.patchEnv(alice, 'e', { patch: { overrides: { defaultIdleTimeout: '7m' } } });
    await eventually(() => world.pool('m')?.unrendered === true, 'it is asked');
    expect(world.pool('m')?.definition.idleTimeoutMs).to.equal(60_000);

    await world.syncEnv(alice, 'e');

    expect(world.pool('m')?.definition.idleTimeoutMs).to.equal(420_000);
  });

  it('that cannot be synced are reported, and the others are synced', async () => {
    const world = await anEnvWorld({ leads: false });
    await world.made();
    await add(world, 'good');
    await add(world, 'bad');
    const env = world.env();
    if (!env) throw new Error('no env');
    await world.envs.update({
      ...env,
      members: env.members.map((member) =>
        member.name === 'bad'
          ? { ...member, config: { ...member.config, instanceType: 'none' } }
          : member,
      ),
      overrides: { defaultIdleTimeout: '9m' },
    });

    const [code, detail] = await refusedWith(world.syncEnv(alice, 'e'));

    expect(code).to.equal('ENV_SYNC_PARTIAL');
    expect(detail).to.deep.equal({
      synced: ['good'],
      failed: [
        {
          member: 'bad',
          clusterID: 'local',
          error: 'instanceType: this deployment has no instance types',
        },
      ],
    });
    expect(world.pool('good')?.definition.idleTimeoutMs).to.equal(540_000);
  });

  it('follow their template, unless the env is pinned to a version', async () => {
    const world = await anEnvWorld();
    await world.made();
    await add(world, 'm');
    await world.replaceEnv(alice, 'e', {
      templateRef: { name: 't', version: '1' },
      overrides: {},
      labels: {},
      annotations: {},
    });
    await eventually(() => world.pool('m')?.source.templateVersion === '1', 'it is pinned');

    const template = await world.templateRecords.get('t');
    if (!template) throw new Error('no template');
    await world.templateRecords.update({
      ...template,
      version: '2',
      document: aTemplate('3m'),
      earlier: [{ version: '1', spec: JSON.stringify(template.document.spec) }],
    });
    expect(
      (await world.syncEnv(alice, 'e')).conditions.find(({ type }) => type === 'TemplateResolved'),
    ).to.include({ reason: 'Pinned' });
    expect(world.pool('m')).to.deep.include({ templateVersion: '1' });

    await world.replaceEnv(alice, 'e', {
      templateRef: { name: 't' },
      overrides: {},
      labels: {},
      annotations: {},
    });
    await eventually(() => world.pool('m')?.definition.idleTimeoutMs === 180_000, 'it follows');
  });

  it('have pools that users cannot change directly, except for replicas without a group', async () => {
    const world = await anEnvWorld();
    await world.made();
    await add(world, 'm', { config: { maxReplicas: 3 } });

    for (const change of [
      { labels: { a: 'b' } },
      { source: { memory: '64Mi' } },
      { replicas: 2 },
    ]) {
      expect(await refusedWith(world.updatePool(alice, 'm', change))).to.deep.equal([
        'CONFLICT',
        { env: 'e', member: 'm' },
      ]);
    }
    expect(await refusedWith(world.syncPool(alice, 'm'))).to.deep.equal([
      'CONFLICT',
      { env: 'e', member: 'm' },
    ]);
    await world.updatePool(alice, 'm', {});
    expect(
      (
        await refusedWith(
          world.updateGroup(
            alice,
            { env: 'e', group: 'm' },
            { enabled: false, ifMatch: new Set(['another']) },
          ),
        )
      )[0],
    ).to.equal('PRECONDITION_FAILED');
    await world.updateGroup(alice, { env: 'e', group: 'm' }, { enabled: false });
    expect((await world.updatePool(alice, 'm', { replicas: 2 })).record.replicas).to.equal(2);
    expect((await refusedWith(world.updatePool(alice, 'm', { replicas: 4 })))[1]).to.deep.equal({
      field: 'replicas',
    });
  });

  it('can be changed by If-Match after a write of their leader, but not after one of the owner', async () => {
    const env: EnvRecord = { ...aRecord(), revision: '1' };
    const word = wordRevisionOf(env);

    expect(
      wordRevisionOf({
        ...env,
        revision: '2',
        scaling: { m: { last: 7 } },
        conditions: [
          { type: 'Ready', status: 'True', reason: 'AsExpected', message: '', since: 5 },
        ],
      }),
    ).to.equal(word);
    for (const change of [
      { labels: { a: 'b' } },
      { members: [] },
      { groups: [] },
      { deleting: 'force' as const },
    ]) {
      expect(
        wordRevisionOf({ ...env, revision: '2', ...change }),
        Object.keys(change).join(),
      ).not.to.equal(word);
    }

    const world = await anEnvWorld();
    const { record } = await world.made();
    await world.envs.update({ ...record, scaling: { m: { last: 7 } } });
    const ifMatch = new Set([wordRevisionOf(record)]);
    expect(
      (await world.patchEnv(alice, 'e', { ifMatch, patch: { labels: { a: 'b' } } })).record.labels,
    ).to.deep.equal({ a: 'b' });
    expect(
      (
        await refusedWith(world.patchEnv(alice, 'e', { ifMatch, patch: { labels: { a: 'c' } } }))
      )[0],
    ).to.equal('PRECONDITION_FAILED');
  });

  it('with a group that the env lacks are refused alike when added and when changed', async () => {
    const world = await anEnvWorld();
    await world.made();
    await add(world, 'a');
    const config = { scalingGroup: 'nobody' };

    const added = await rejection(add(world, 'b', { config }));
    const changed = await rejection(
      world.updateMember(alice, { env: 'e', member: 'a' }, { config }),
    );

    expect(added).to.include({ code: 'INVALID_ARGUMENT' });
    expect([Reflect.get(changed, 'code'), changed.message]).to.deep.equal([
      'INVALID_ARGUMENT',
      added.message,
    ]);
  });

  it('end with their pool, and so does their group if it has no other member', async () => {
    const world = await anEnvWorld();
    await world.made();
    await add(world, 'a');
    await add(world, 'b', { config: { scalingGroup: 'a' } });
    await add(world, 'c');

    await world.deleteMember(alice, { env: 'e', member: 'a' }, { force: false });
    await world.deleteMember(alice, { env: 'e', member: 'c' }, { force: false });

    await eventually(() => world.env()?.members.length === 1, 'two are forgotten');
    expect(world.env()?.groups.map(({ name }) => name)).to.deep.equal(['a']);
    expect([world.pool('a'), world.pool('c')]).to.deep.equal([undefined, undefined]);
  });

  it('keep their pool during a deletion, like a pool without an env', async () => {
    const world = await anEnvWorld();
    await world.made();
    await add(world, 'a');

    expect(await refusedWith(world.deletePool(alice, 'a', { force: true }))).to.deep.equal([
      'CONFLICT',
      { env: 'e', member: 'a' },
    ]);
    expect(world.env()?.members[0]?.deleting).to.equal(false);
    expect(world.pool('a')?.deleting).to.equal(false);
  });

  it('keep their initial size if they are deleted and created again', async () => {
    const { namespace, team, user } = alice;
    const owner = { namespace, team, user };
    const first = { owner, name: 'e', replicas: 2, maxReplicas: 8 };
    const other = { owner, name: 'other', replicas: 0, maxReplicas: 64 };
    const world = await anEnvWorld({ firstMembers: [other, first] });
    await world.made();
    const sizes = ({ pool, env }: Awaited<ReturnType<typeof add>>, of: string) => {
      const group = env.groups.find(({ name }) => name === of);
      return [
        'record' in pool && pool.record.replicas,
        group?.minReplicas,
        group?.maxReplicas,
        group?.scaleUpPolicy.mode,
      ];
    };

    expect(sizes(await add(world, 'e'), 'e')).to.deep.equal([2, 2, 8, 'Moderate']);
    expect(sizes(await add(world, 'other'), 'other')).to.deep.equal([1, 0, 1, 'Conservative']);
    const another = await anEnvWorld({ firstMembers: [other, first] });
    await another.made();
    const sized = await add(another, 'e', { config: { maxReplicas: 3 } });
    expect(sizes(sized, 'e'), 'what is asked for').to.deep.equal([1, 0, 3, 'Conservative']);
  });

  it('keep their size when their group is deleted', async () => {
    const world = await anEnvWorld();
    await world.made();
    await add(world, 'm', { replicas: 2 });

    await world.deleteGroup(alice, 'e', 'm');

    expect(world.env()).to.deep.include({ groups: [] });
    expect(world.env()?.members[0]?.config).to.deep.equal({});
    expect(world.pool('m')?.replicas).to.equal(2);
    expect(await refusedWith(world.getGroup(alice, 'e', 'm'))).to.deep.equal([
      'AUTOSCALING_GROUP_NOT_FOUND',
      undefined,
    ]);
  });
});

describe('recovery of an env after a crash', () => {
  it('creates the missing pool of a member once its creator has had time to', async () => {
    const world = await anEnvWorld();
    await world.envs.create(aRecord({ members: [aMember({ createdAt: world.clock.now() })] }));
    expect(world.pool('m')).to.equal(undefined);

    world.clock.advance(10_000);

    await eventually(() => world.pool('m')?.env?.uid === 'e1', 'its pool is made');
    expect(world.pool('m')?.replicas).to.equal(2);
  });

  it('deletes a pool that its env does not list', async () => {
    const world = await anEnvWorld();
    await world.envs.create(aRecord({ members: [], groups: [] }));

    await world.pools.create(aPool({ name: 'left', replicas: 0, env: { uid: 'e1', name: 'e' } }));

    await eventually(() => world.pool('left') === undefined, 'it is gone');
  });

  it('deletes a pool whose env is gone', async () => {
    const world = await anEnvWorld();

    await world.pools.create(
      aPool({ name: 'left', replicas: 0, env: { uid: 'gone', name: 'gone' } }),
    );

    await eventually(() => world.pool('left') === undefined, 'it is gone');
  });

  it('removes a member in deletion when a new leader starts', async () => {
    const world = await anEnvWorld({ leads: false });
    await world.pools.create(aPool({ name: 'm', replicas: 0, env: { uid: 'e1', name: 'e' } }));
    await world.envs.create(aRecord({ members: [aMember({ deleting: 'keep-running' })] }));
    expect(world.pool('m')?.deleting).to.equal(false);

    world.lead();

    await eventually(
      () => world.env()?.members.length === 0 && world.pool('m') === undefined,
      'both are gone',
    );
  });

  it('applies the env to an outdated pool when a new leader starts', async () => {
    const world = await anEnvWorld({ leads: false });
    await world.made();
    await add(world, 'm');
    await world.patchEnv(alice, 'e', { patch: { overrides: { defaultIdleTimeout: '7m' } } });
    expect(world.pool('m')?.definition.idleTimeoutMs).to.equal(60_000);

    world.lead();

    await eventually(() => world.pool('m')?.definition.idleTimeoutMs === 420_000, 'it is settled');
  });

  it('reports a member whose name is taken, and creates its pool once the name is free', async () => {
    const world = await anEnvWorld();
    const other = await world.pools.create(aPool({ name: 'm', replicas: 0 }));
    await world.envs.create(aRecord());

    await eventually(() => world.members.member('e1', 'm')?.state === 'Error', 'it is in trouble');
    expect(
      (await world.getEnv(alice, 'e')).conditions.find(({ type }) => type === 'MembersSynced'),
    ).to.include({ status: 'False', reason: 'NameTaken' });
    await world.pools.remove(other);
    world.clock.advance(60_000);

    await eventually(() => world.members.member('e1', 'm')?.state === 'Active', 'it is there');
  });

  it('saves conditions at most every ten seconds, with a new time only if the status changes', async () => {
    const world = await anEnvWorld();
    await world.made();
    world.clock.advance(1_000);
    await eventually(() => world.env()?.conditions.length === 6, 'they are saved');
    const since = world.env()?.conditions.find(({ type }) => type === 'TemplateResolved')?.since;
    const { writes } = world.envs;
    await add(world, 'm');
    world.clock.advance(5_000);
    expect(world.envs.writes).to.equal(writes + 1); // the member alone

    world.clock.advance(10_000);

    expect(
      (await world.getEnv(alice, 'e')).conditions.find(({ type }) => type === 'TemplateResolved')
        ?.since,
    ).to.equal(since);
  });
});
