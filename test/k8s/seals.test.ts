import { expect } from 'chai';
import fc from 'fast-check';
import { apiKeyResource } from '../../src/k8s/records/api-key-resource.ts';
import { envResource } from '../../src/k8s/records/env-resource.ts';
import { poolResource } from '../../src/k8s/records/pool-resource.ts';
import { type ResolvedPool } from '../../src/k8s/records/pool-resource.ts';
import type { Reading, Resource, ResourceObject } from '../../src/k8s/api/resource.ts';
import { laterSandboxOf } from '../../src/k8s/sandboxes/later-sandbox.ts';
import { templateResource } from '../../src/k8s/records/template-resource.ts';
import { workerClusterResource } from '../../src/k8s/records/worker-cluster-resource.ts';
import { userQuotaResource } from '../../src/k8s/records/user-quota-resource.ts';
import type { ClusterRecord } from '../../src/model/fleet/cluster.ts';
import type { ApiKeyRecord } from '../../src/model/api-key.ts';
import { type PoolRecord } from '../../src/model/pools/pool.ts';
import { grantsAll } from '../support/fakes/grants-all.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { aDefinition } from '../support/builders/instance-orders.ts';
import { othersSeals, testSeals } from '../support/builders/test-seals.ts';

const BORN = Date.parse('2026-01-01T00:00:00Z');
const LONG_AFTER = '2026-02-01T00:00:00Z';
const teamOf = (namespace: string): string | undefined =>
  namespace === 'alpha' ? 'alpha' : undefined;

const pools = (seals = testSeals): Resource<PoolRecord> =>
  poolResource({
    template: () => undefined,
    instanceType: () => undefined,
    check: () => undefined,
    teamOf,
    seals,
    grants: grantsAll,
    now: () => BORN,
  });
const keys = (seals = testSeals): Resource<ApiKeyRecord> =>
  apiKeyResource({ seals, teamOf, now: () => BORN });

const POOL = aPool({
  uid: '019a0000-0000-7000-8000-000000000001',
  name: 'p',
  createdAt: BORN,
  source: { overrides: { image: 'busybox' } },
  definition: aDefinition({ image: 'busybox' }),
});
const aKey: Omit<ApiKeyRecord, 'revision'> = {
  keyId: 'k'.repeat(16),
  namespace: 'alpha',
  shortName: 'k',
  team: 'alpha',
  user: 'alice',
  role: 'user',
  description: '',
  hash: '0'.repeat(64),
  issuedAt: BORN,
  expiresAt: BORN + 1,
};

interface Made {
  readonly uid?: string;
  readonly at?: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** As the API server stores what is written, under a name of its own if need be. */
const stored = (
  kind: string,
  body: object,
  { uid = 'uid-1', at = '2026-01-01T00:00:00Z', namespace = 'alpha', name = 'p' }: Made = {},
): ResourceObject =>
  JSON.parse(
    JSON.stringify({
      ...body,
      apiVersion: 'v',
      kind,
      metadata: { name, namespace, uid, resourceVersion: '1', creationTimestamp: at },
    }),
  ) as ResourceObject;
const poolObject = (made?: Made, resource = pools()): ResourceObject =>
  stored('SandboxPool', resource.write(POOL), made);
/** With its seal bound to it, as after the second write. */
const boundPool = (resource = pools()): ResourceObject =>
  stored('SandboxPool', resource.write(POOL, poolObject({}, resource)));
const boundKey = (part: Partial<ApiKeyRecord> = {}, resource = keys()): ResourceObject => {
  const first = stored('ApiKey', resource.write({ ...aKey, ...part }), { name: 'k' });
  return stored('ApiKey', resource.write({ ...aKey, ...part }, first), { name: 'k' });
};
const resolvedOf = (object: ResourceObject): ResolvedPool => object.resolved as ResolvedPool;
const withResolved = (object: ResourceObject, part: object): ResourceObject => ({
  ...object,
  resolved: { ...resolvedOf(object), ...part },
});
const withoutSeal = (object: ResourceObject): ResourceObject => {
  const { seal: _seal, ...rest } = resolvedOf(object);
  return { ...object, resolved: rest };
};
const keyWith = (object: ResourceObject, part: object): ResourceObject => ({
  ...object,
  spec: { ...(object.spec as object), ...part },
});
const saidOf = (reading: Reading<unknown>): string =>
  reading.kind === 'wrong' ? `${reading.kind} ${reading.fault.reason}` : reading.kind;

describe('sealed records', () => {
  it('are trusted before and after the object has a uid', () => {
    expect(saidOf(pools().read(poolObject()))).to.equal('record');
    expect(pools().read(poolObject())).to.have.property('unbound');
    expect(pools().read(boundPool()))
      .to.deep.include({ kind: 'record' })
      .and.not.have.property('unbound');
    expect(keys().read(boundKey()))
      .to.deep.include({ kind: 'record' })
      .and.not.have.property('unbound');
  });

  it('protect the definition of a pool from any change', () => {
    const open = { definition: { ...aDefinition({ image: 'busybox' }), network: 'open' } };

    expect(saidOf(pools().read(withResolved(boundPool(), open)))).to.equal('wrong NotSealed');
    expect(saidOf(pools().read(withResolved(withoutSeal(boundPool()), open)))).to.equal(
      'wrong NotSealed',
    );
    expect(saidOf(pools().read(withResolved(boundPool(), { seal: '' })))).to.equal(
      'wrong NotSealed',
    );
    expect(saidOf(pools().read(boundPool(pools(othersSeals))))).to.equal('wrong NotSealed');
  });

  it('protect every field that a daemon wrote', () => {
    const object = boundPool();
    const fields = Object.keys(resolvedOf(object)).filter(
      (field) => !['seal', 'format'].includes(field),
    );
    fc.assert(
      fc.property(fc.constantFrom(...fields), fc.jsonValue(), (field, value) => {
        const before = (resolvedOf(object) as Readonly<Record<string, unknown>>)[field];
        fc.pre(JSON.stringify(before) !== JSON.stringify(value));
        expect(pools().read(withResolved(object, { [field]: value })).kind).to.not.equal('record');
      }),
    );
  });

  it('are invalid for a copy of a pool and for a new pool of the same name', () => {
    expect(saidOf(pools().read(stored('SandboxPool', boundPool(), { name: 'q' })))).to.equal(
      'uninitialized',
    );
    expect(
      saidOf(pools().read(stored('SandboxPool', boundPool(), { uid: 'uid-2', at: LONG_AFTER }))),
    ).to.equal('uninitialized');
    expect(
      saidOf(pools().read(stored('SandboxPool', poolObject(), { uid: 'uid-2', at: LONG_AFTER }))),
    ).to.equal('uninitialized');
    expect(saidOf(pools().read(stored('SandboxPool', boundPool(), { uid: 'uid-2' })))).to.equal(
      'wrong NotSealed',
    );
  });

  it('are created when a replica initializes an object made by hand', () => {
    const byHand = stored('SandboxPool', {
      spec: { overrides: { image: 'busybox' }, replicas: 1 },
    });
    const settled = pools().initialize?.(byHand) ?? { reason: '', message: '' };

    expect(pools().read({ ...byHand, ...settled }))
      .to.deep.include({ kind: 'record' })
      .and.not.have.property('unbound');
  });

  it('are checked with any content, even an invalid time', () => {
    expect(pools().read(withResolved(boundPool(), { bornAt: { toString: '' } })).kind).to.not.equal(
      'record',
    );
  });

  it('protect API keys, so nobody becomes admin with a hash of their own', () => {
    const own = { hash: 'a'.repeat(64), role: 'admin' };

    expect(saidOf(keys().read(keyWith(boundKey(), own)))).to.equal('wrong NotSealed');
    expect(saidOf(keys().read(keyWith(boundKey(), { role: 'admin' })))).to.equal('wrong NotSealed');
    expect(saidOf(keys().read(keyWith(boundKey(), { seal: undefined })))).to.equal(
      'wrong NotSealed',
    );
    for (const field of [
      'keyId',
      'team',
      'user',
      'role',
      'hash',
      'issuedAt',
      'expiresAt',
      'bornAt',
      'description',
      'createdBy',
    ]) {
      expect(saidOf(keys().read(keyWith(boundKey(), { [field]: LONG_AFTER }))), field).to.equal(
        'wrong NotSealed',
      );
    }
    expect(saidOf(keys().read(stored('ApiKey', boundKey(), { name: 'other' })))).to.equal(
      'wrong NotSealed',
    );
  });

  it('are valid for old keys without a creator and for new ones', () => {
    for (const key of [aKey, { ...aKey, createdBy: 'm'.repeat(16) }]) {
      const reading = keys().read(
        stored('ApiKey', keys().write(key), { name: 'k', at: new Date(BORN).toISOString() }),
      );
      expect(reading.kind === 'record' && reading.record.createdBy).to.equal(
        'createdBy' in key ? key.createdBy : undefined,
      );
    }
  });

  it('do not restore a revoked key', () => {
    expect(saidOf(keys().read(stored('ApiKey', boundKey(), { name: 'k', uid: 'uid-2' })))).to.equal(
      'wrong NotSealed',
    );
    const first = stored('ApiKey', keys().write(aKey), { name: 'k', uid: 'uid-2', at: LONG_AFTER });
    expect(saidOf(keys().read(first))).to.equal('wrong NotSealed');
  });

  it('survive a store that writes only valid Unicode', () => {
    const odd = { ...POOL, definition: aDefinition({ image: 'busybox', env: { A: '\ud800' } }) };
    const text = JSON.stringify(pools().write(odd)).replaceAll(String.raw`\ud800`, '\ufffd');

    expect(saidOf(pools().read(stored('SandboxPool', JSON.parse(text) as object)))).to.equal(
      'record',
    );
  });
});

describe('an object in a later format', () => {
  const LATER = { format: 3 };

  it('belongs to a later version if it is sealed, and is otherwise unusable', () => {
    const sealed = testSeals.sealed(
      'SandboxPool',
      { namespace: 'alpha', name: 'p' },
      { uid: 'uid-1', content: { ...resolvedOf(boundPool()), ...LATER, unheardOf: [1] } },
    );

    expect(pools().read({ ...boundPool(), resolved: sealed })).to.deep.equal({
      kind: 'too-new',
      format: 3,
    });
    expect(saidOf(pools().read(withResolved(boundPool(), LATER)))).to.equal('wrong LaterFormat');
    expect(saidOf(keys().read(keyWith(boundKey(), LATER)))).to.equal('wrong LaterFormat');
    const key = testSeals.sealed(
      'ApiKey',
      { namespace: 'alpha', name: 'k' },
      { uid: 'uid-1', content: { ...(boundKey().spec as object), ...LATER, seal: undefined } },
    );
    expect(saidOf(keys().read({ ...boundKey(), spec: key }))).to.equal('too-new');
  });

  it('has no effect on other objects if its kind is not sealed: templates and quotas', () => {
    const template = stored('SandboxTemplate', { spec: {}, resolved: LATER });
    const quota = stored('UserQuota', { spec: { ...LATER, team: 'alpha', user: 'alice' } });

    expect(saidOf(templateResource({ check: () => undefined }).read(template))).to.equal(
      'wrong LaterFormat',
    );
    expect(saidOf(userQuotaResource({ teamOf }).read(quota))).to.equal('wrong LaterFormat');
  });

  it('is ignored in a namespace without a tenant', () => {
    const foreign = { namespace: 'kube-system' };
    const envs = envResource({ teamOf, seals: testSeals, clusterId: 'local', now: () => BORN });

    expect(
      pools().read(stored('SandboxPool', withResolved(boundPool(), LATER), foreign)),
    ).to.deep.equal({ kind: 'ignored' });
    expect(keys().read(stored('ApiKey', keyWith(boundKey(), LATER), foreign))).to.deep.equal({
      kind: 'ignored',
    });
    expect(envs.read(stored('SandboxEnv', { spec: {}, resolved: LATER }, foreign))).to.deep.equal({
      kind: 'ignored',
    });
    expect(
      userQuotaResource({ teamOf }).read(stored('UserQuota', { spec: LATER }, foreign)),
    ).to.deep.equal({ kind: 'ignored' });
  });

  it('is reported for a sandbox only if it is sealed', () => {
    const LATER = { format: 4 };
    const sandbox = (spec: object): ResourceObject => stored('Sandbox', { spec });
    const sealed = testSeals.sealed(
      'Sandbox',
      { namespace: 'alpha', name: 'p' },
      { uid: 'uid-1', content: { ...LATER, poolUid: 'u', seal: undefined } },
    );

    expect(laterSandboxOf(sandbox(sealed), testSeals)).to.deep.include({
      key: 'alpha/p',
      uid: 'uid-1',
      laterFormat: 4,
    });
    expect(laterSandboxOf(sandbox({ ...LATER, poolUid: 'u' }), testSeals)).to.equal(undefined);
    expect(laterSandboxOf(sandbox({ format: 1, poolUid: 'u' }), testSeals)).to.equal(undefined);
  });
});

describe('the record of a disconnected manager', () => {
  it('is valid under another pepper, since it grants no access', () => {
    const [ours, others] = [testSeals, othersSeals].map((seals) =>
      workerClusterResource({ seals }),
    );
    const read = (record: Partial<ClusterRecord>): string =>
      ours!.read({
        metadata: { name: 'w1', uid: 'u', resourceVersion: '1', creationTimestamp: LONG_AFTER },
        ...others!.write({ clusterId: 'w1', ...record }),
      } as ResourceObject).kind;

    expect(read({ cutOffAt: BORN })).to.equal('record');
    expect(read({ cutOffAt: BORN, publicKey: 'k' })).to.equal('ignored');
    expect(read({ joinHash: 'h' })).to.equal('ignored');
  });
});
