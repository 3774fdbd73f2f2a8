import { expect } from 'chai';
import { isDeepStrictEqual } from 'node:util';
import { v7 } from 'uuid';
import {
  RecordExists,
  type RecordChange,
  type Records,
  type RecordStore,
} from '../../src/contracts/record-store.ts';
import { RecordConflict } from '../../src/contracts/sandbox-driver.ts';
import type { ApiKeyRecord } from '../../src/model/api-key.ts';
import type { ApprovalRecord } from '../../src/model/approvals/approval.ts';
import type { EnvRecord } from '../../src/model/envs/env.ts';
import type { ClusterRecord } from '../../src/model/fleet/cluster.ts';
import type { UserQuota } from '../../src/model/pools/quota.ts';
import { groupFor } from '../../src/model/envs/autoscaling-group.ts';
import { type PoolRecord } from '../../src/model/pools/pool.ts';
import type { TemplateRecord } from '../../src/model/templates/template.ts';
import { tenantKey } from '../../src/model/tenant.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';

export interface RecordStoreUnderTest {
  readonly store: RecordStore;
  close(): Promise<void>;
}

type Draft<T> = Omit<T, 'revision'>;

const aTemplate = ({
  name = `t-${v7()}`,
  ...part
}: Partial<TemplateRecord> = {}): Draft<TemplateRecord> => ({
  name,
  version: '1',
  createdAt: 1_700_000_000_000,
  ...part,
  document: {
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name },
    spec: {
      description: 'ä"\u0001',
      containers: [{ name: 'main', image: 'host', command: ['sleep', 'infinity'] }],
    },
  },
});

const aFullPool = (part: Partial<PoolRecord> = {}): Draft<PoolRecord> =>
  aPool({
    name: `p-${v7()}`,
    createdAt: 1_700_000_000_000,
    source: { templateName: 'small' },
    labels: { a: 'b' },
    ...part,
    unresolved: { reason: 'SourceInvalid', message: 'cpu: too much', templateVersion: '2' },
    conditions: [
      {
        type: 'Degraded',
        status: 'True',
        reason: 'StartsFail',
        message: 'no such image',
        since: 1_700_000_000_000,
      },
    ],
  });

const anEnv = (part: Partial<EnvRecord> = {}): Draft<EnvRecord> => ({
  uid: v7(),
  name: `e-${v7()}`,
  owner: ALICE,
  createdAt: 1_700_000_000_000,
  mark: { key: 'k', body: 'b' },
  labels: { a: 'b' },
  annotations: {},
  envDocs: '# ä',
  templateRef: { name: 'small', version: '3' },
  mode: 'WarmPool',
  overrides: {
    image: 'busybox',
    gateway: { enabled: false },
    updateStrategy: { autoUpdate: false },
  },
  members: [
    {
      name: 'm',
      clusterId: 'local',
      createdAt: 1_700_000_000_001,
      mark: { key: 'm', body: 'b' },
      replicas: 3,
      config: { scalingGroup: 'm', labels: { 'Not a label!': 'x' }, multiplier: 1.5, priority: -2 },
      deleting: false,
    },
    {
      name: 'n',
      clusterId: 'other',
      createdAt: 1_700_000_000_002,
      replicas: 0,
      asked: 4,
      config: { inlineResources: { limits: { cpu: '2' } } },
      deleting: 'force',
    },
  ],
  groups: [groupFor('m', { replicas: 3 })],
  scaling: { m: { memory: { samples: [1, 2.5], note: 'x' } } },
  conditions: [
    {
      type: 'Ready',
      status: 'False',
      reason: 'MemberPending',
      message: 'm',
      since: 1_700_000_000_003,
    },
  ],
  deleting: false,
  ...part,
});

const anApiKey = (part: Partial<ApiKeyRecord> = {}): Draft<ApiKeyRecord> => ({
  keyId: v7().replaceAll('-', ''),
  namespace: 'alpha',
  shortName: `k-${v7()}`,
  team: 'alpha',
  user: 'alice',
  role: 'user',
  description: '',
  hash: 'ab'.repeat(32),
  verifier: 'A/+b'.repeat(20),
  promotedBy: 'f'.repeat(43),
  confirmedAt: 1_700_000_000_005,
  createdBy: 'c'.repeat(16),
  issuedAt: 1_700_000_000_000,
  expiresAt: 1_800_000_000_000,
  ...part,
});

const aUserQuota = (part: Partial<UserQuota> = {}): Draft<UserQuota> => ({
  namespace: 'alpha',
  team: 'alpha',
  user: `u-${v7()}`,
  limits: { sandboxes: 3, replicas: 0 },
  ...part,
});

const anApproval = (part: Partial<ApprovalRecord> = {}): Draft<ApprovalRecord> => ({
  id: v7(),
  principal: {
    namespace: 'alpha',
    team: 'alpha',
    user: 'alice',
    keyId: 'AbCdEfGhIjKl',
    role: 'user',
    persons: ['alice', 'root'],
  },
  sessionId: 'run-7',
  operation: 'deletePool',
  onceOnly: true,
  method: 'DELETE',
  path: '/sandboxpools/web',
  namespace: 'alpha',
  query: 'force=true',
  route: 'REST DELETE /sandboxpools/{name}',
  ignored: ['replica'],
  headers: { 'x-session-id': 'run-7' },
  summary: 'ä"\u0001',
  binding: 'b'.repeat(43),
  content: 'AAAA',
  createdAt: 1_700_000_000_000,
  expiresAt: 1_700_000_900_000,
  status: 'pending',
  ...part,
});

const aCluster = (part: Partial<ClusterRecord> = {}): Draft<ClusterRecord> => ({
  clusterId: `c-${v7()}`,
  joinHash: 'ab'.repeat(32),
  joinEndsAt: 1_700_000_000_000,
  ...part,
});

/** What every store of records promises. `make` gives an empty one. */
export const recordStoreSuite = (name: string, make: () => Promise<RecordStoreUnderTest>): void => {
  describe(`RecordStore: ${name}`, () => {
    let under: RecordStoreUnderTest;

    beforeEach(async () => {
      under = await make();
    });
    afterEach(() => under.close());

    recordsSuite<TemplateRecord>('templates', {
      records: () => under.store.templates,
      draft: aTemplate,
      keyOf: ({ name }) => name,
      changed: (record) => ({
        ...record,
        version: '2',
        sourceHash: 'f00',
        globalId: 'an-id-of-template',
        managedBy: 'a-manager',
        earlier: [{ version: '1', spec: '{"containers":[]}' }],
      }),
      clashes: { name: ({ name: taken }) => aTemplate({ name: taken }) },
      neighbours: {},
    });
    recordsSuite<PoolRecord>('pools', {
      records: () => under.store.pools,
      draft: aFullPool,
      keyOf: ({ owner, name }) => `${owner.namespace}/${name}`,
      changed: (record) => ({
        ...record,
        access: 'team',
        replicas: 9,
        decided: { id: 1_700_000_000_001, sparesMs: 120_000 },
        deleting: 'force',
      }),
      clashes: {
        'namespace and name': ({ name: taken }) =>
          aFullPool({ name: taken, owner: { ...ALICE, user: 'other' } }),
        uid: ({ uid }) => aFullPool({ uid }),
      },
      neighbours: {
        'the same name in another namespace': ({ name: taken }) =>
          aFullPool({ name: taken, owner: { ...ALICE, namespace: 'beta' } }),
      },
    });
    recordsSuite<EnvRecord>('envs', {
      records: () => under.store.envs,
      draft: anEnv,
      keyOf: ({ owner, name }) => `${owner.namespace}/${name}`,
      changed: (record) => ({
        ...record,
        access: 'team',
        members: [],
        scaling: {},
        deleting: 'keep-running',
      }),
      clashes: {
        'namespace and name': ({ name: taken }) =>
          anEnv({ name: taken, owner: { ...ALICE, user: 'other' } }),
        uid: ({ uid }) => anEnv({ uid }),
      },
      neighbours: {
        'the same name in another namespace': ({ name: taken }) =>
          anEnv({ name: taken, owner: { ...ALICE, namespace: 'beta' } }),
      },
    });
    recordsSuite<ApiKeyRecord>('apiKeys', {
      records: () => under.store.apiKeys,
      draft: anApiKey,
      keyOf: ({ keyId }) => keyId,
      changed: (record) => ({ ...record, expiresAt: 5 }),
      clashes: {
        keyId: ({ keyId }) => anApiKey({ keyId }),
        'namespace and shortName': ({ shortName }) => anApiKey({ shortName }),
      },
      neighbours: {
        'the same shortName in another namespace': ({ shortName }) =>
          anApiKey({ shortName, namespace: 'beta' }),
      },
    });
    recordsSuite<ApprovalRecord>('approvals', {
      records: () => under.store.approvals,
      draft: anApproval,
      keyOf: ({ id, principal }) => `${principal.namespace}/${id}`,
      changed: ({ content: _content, ...record }) => ({
        ...record,
        status: 'consumed',
        scope: 'once',
        decidedBy: 'olga',
        decidedAt: 1_700_000_000_001,
        reason: 'fine',
        use: { at: 1_700_000_000_002, attempt: 1, settled: true },
      }),
      clashes: { id: ({ id }) => anApproval({ id }) },
      neighbours: {},
    });
    recordsSuite<UserQuota>('quotas', {
      records: () => under.store.quotas,
      draft: aUserQuota,
      keyOf: tenantKey,
      changed: (record) => ({ ...record, limits: { pools: 1 } }),
      clashes: { user: ({ user }) => aUserQuota({ user, limits: {} }) },
      neighbours: {
        'a user of the same name of another team': ({ user }) => aUserQuota({ user, team: 'beta' }),
        'one in another namespace': ({ user }) => aUserQuota({ user, namespace: 'beta' }),
      },
    });
    recordsSuite<ClusterRecord>('clusters', {
      records: () => under.store.clusters,
      draft: aCluster,
      keyOf: ({ clusterId }) => clusterId,
      changed: ({ clusterId, revision }) => ({
        clusterId,
        revision,
        publicKey: 'MCowBQYDK2VwAyEA',
        joinedAt: 1_700_000_000_001,
        cutOffAt: 1_700_000_000_002,
      }),
      clashes: { id: ({ clusterId }) => aCluster({ clusterId }) },
      neighbours: {},
    });

    it('reads an API key by its name too', async () => {
      const record = await under.store.apiKeys.create(anApiKey());

      expect(await under.store.apiKeys.get(`alpha/${record.shortName}`)).to.deep.equal(record);
      expect(await under.store.apiKeys.get(`beta/${record.shortName}`)).to.equal(undefined);
      expect(await under.store.apiKeys.get(`alpha/${record.keyId}`)).to.equal(undefined);
    });
  });
};

interface Kind<T extends { readonly revision: string }> {
  readonly records: () => Records<T>;
  readonly draft: () => Draft<T>;
  /** What `get` takes. */
  readonly keyOf: (record: T) => string;
  readonly changed: (record: T) => T;
  /** By what is taken: a draft that must be refused beside the record. */
  readonly clashes: Readonly<Record<string, (record: T) => Draft<T>>>;
  readonly neighbours: Readonly<Record<string, (record: T) => Draft<T>>>;
}

const recordsSuite = <T extends { readonly revision: string }>(
  kind: string,
  { records, draft, keyOf, changed, clashes, neighbours }: Kind<T>,
): void => {
  describe(kind, () => {
    const refused = async (attempt: Promise<unknown>) =>
      expect(await rejection(attempt)).to.be.instanceOf(RecordConflict);

    it('lists created records completely', async () => {
      const [first, second] = [draft(), draft()];

      const made = [await records().create(first), await records().create(second)];

      expect(made[0]).to.deep.equal({ ...first, revision: made[0]?.revision });
      expect(await records().list()).to.have.deep.members(made);
    });

    it('reads the current record by its key', async () => {
      const record = await records().create(draft());
      await records().create(draft());

      expect(await records().get(keyOf(record))).to.deep.equal(record);
      const second = await records().update(changed(record));
      expect(await records().get(keyOf(record))).to.deep.equal(second);
      await records().remove(second);
      expect(await records().get(keyOf(record))).to.equal(undefined);
    });

    it('reports all records, then each change, to each watcher', async () => {
      const standing = await records().create(draft());
      const [one, two] = [new Map<string, T>(), new Map<string, T>()];
      const keptIn =
        (mirror: Map<string, T>) =>
        ({ kind, record }: RecordChange<T>): void => {
          if (kind === 'put') mirror.set(keyOf(record), record);
          else mirror.delete(keyOf(record));
        };

      await records().watch(keptIn(one));
      expect([...one.values()]).to.deep.equal([standing]);
      const made = await records().create(draft());
      const second = await records().update(changed(made));
      await records().watch(keptIn(two));
      await records().remove(standing);
      const wanted = await records().list();

      for (const mirror of [one, two])
        await eventually(
          () => isDeepStrictEqual([...mirror.values()], wanted),
          'the mirror shows what the store does',
        );
      expect(wanted).to.deep.equal([second]);
    });

    it('has reported all earlier writes once it has caught up', async () => {
      const told = new Set<string>();
      await records().watch(({ kind, record }) => {
        told.add(`${kind} ${record.revision}`);
      });
      const made = await Promise.all(Array.from({ length: 10 }, () => records().create(draft())));
      const second = await records().update(changed(made[0] ?? expect.fail()));
      await records().remove(second);

      await records().caughtUp();

      expect([...told]).to.include.members(made.slice(1).map(({ revision }) => `put ${revision}`));
      expect([...told].some((change) => change.startsWith('gone '))).to.equal(true);
    });

    it('reports all writes during its first read', async () => {
      for (let i = 0; i < 20; i += 1) await records().create(draft());
      const mirror = new Map<string, T>();

      const watching = records().watch(({ kind, record }) => {
        if (kind === 'put') mirror.set(keyOf(record), record);
        else mirror.delete(keyOf(record));
      });
      await Promise.all(
        (await records().list()).map(async (record, index) => {
          const second = await records().update(changed(record));
          if (index % 2 === 0) await records().remove(second);
        }),
      );
      await watching;

      const revisions = (all: Iterable<T>): string[] =>
        [...all].map(({ revision }) => revision).sort();
      const wanted = revisions(await records().list());
      expect(wanted).to.have.length(10);
      await eventually(
        () => isDeepStrictEqual(revisions(mirror.values()), wanted),
        'the mirror shows what the store does',
      );
    });

    it('continues to report after a listener has thrown', async () => {
      const told: string[] = [];
      await records().watch(({ record }) => {
        told.push(record.revision);
        throw new Error('not taken in');
      });

      const first = await records().create(draft());
      const second = await records().create(draft());

      await eventually(() => told.includes(second.revision), 'the second record is told');
      expect(told).to.include(first.revision);
    });

    for (const [what, clash] of Object.entries(clashes)) {
      it(`refuses another record with the same ${what}, and keeps the first`, async () => {
        const first = await records().create(draft());

        expect(await rejection(records().create(clash(first)))).to.be.instanceOf(RecordExists);

        expect(await records().list()).to.deep.equal([first]);
      });
    }

    for (const [what, neighbour] of Object.entries(neighbours)) {
      it(`accepts ${what}`, async () => {
        const first = await records().create(draft());

        await records().create(neighbour(first));

        expect(await records().list()).to.have.length(2);
      });
    }

    it('accepts exactly one of 16 simultaneous creations of a record', async () => {
      const wanted = draft();

      const outcomes = await Promise.allSettled(
        Array.from({ length: 16 }, () => records().create(wanted)),
      );

      expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
      expect(await records().list()).to.have.length(1);
    });

    it('updates at the given revision, and advances it', async () => {
      const first = await records().create(draft());

      const second = await records().update(changed(first));

      expect(second).to.deep.equal({ ...changed(first), revision: second.revision });
      expect(second.revision).to.not.equal(first.revision);
      expect(await records().list()).to.deep.equal([second]);
    });

    it('refuses to update or remove a record at an old revision', async () => {
      const first = await records().create(draft());
      const second = await records().update(changed(first));

      await refused(records().update(first));
      await refused(records().remove(first));

      expect(await records().list()).to.deep.equal([second]);
    });

    it('accepts exactly one of 16 updates at the same revision', async () => {
      const first = await records().create(draft());

      const outcomes = await Promise.allSettled(
        Array.from({ length: 16 }, () => records().update(changed(first))),
      );

      expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
    });

    it('removes a record at the given revision, for every reader', async () => {
      const record = await records().create(draft());

      await records().remove(record);

      await refused(records().remove(record));
      await refused(records().update(record));
      expect(await records().list()).to.deep.equal([]);
    });

    it('never mistakes a recreated record for the removed one', async () => {
      const wanted = draft();
      const first = await records().create(wanted);
      await records().remove(first);

      const again = await records().create(wanted);

      await refused(records().update(first));
      await refused(records().remove(first));
      expect(await records().list()).to.deep.equal([again]);
    });
  });
};
