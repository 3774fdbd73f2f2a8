import { expect } from 'chai';
import { CopyMirror } from '../../src/actors/env/copy-mirror.ts';
import type { MirrorFollower } from '../../src/actors/runtime/record-mirror.ts';
import { Deferred } from '../../src/lib/deferred.ts';
import { copyWordOf, type EnvCopy } from '../../src/model/envs/env-copy.ts';
import type { EnvMember, EnvRecord } from '../../src/model/envs/env.ts';
import { ClusterBusy, clusterUnavailable } from '../../src/model/fleet/cluster-refusals.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const aMember = (name: string, clusterId: string): EnvMember => ({
  name,
  clusterId,
  createdAt: 1,
  replicas: 1,
  config: {},
  deleting: false,
});

const env: EnvRecord = {
  uid: 'u',
  revision: '1',
  name: 'e',
  owner: { namespace: 'team-blue', team: 'blue', user: 'ada' },
  createdAt: 1,
  labels: {},
  annotations: {},
  templateRef: { name: 't' },
  mode: 'WarmPool',
  overrides: {},
  members: [aMember('m', 'west'), aMember('own', 'hub')],
  groups: [],
  scaling: {},
  conditions: [],
  deleting: false,
};

const copied = (name: string, config: object = {}): EnvCopy['members'][number] => ({
  name,
  config,
  state: 'Active',
  idle: 1,
  running: 0,
  desired: 1,
  current: 1,
  pending: 0,
  headroom: 0,
  updated: 1,
});

const aCopy = (part: Partial<EnvCopy> = {}): EnvCopy => ({
  tag: '1',
  word: copyWordOf(env),
  members: [copied('m')],
  ...part,
});

const aMirror = () => {
  const clock = new TestClock();
  const state = {
    env,
    read: async (): Promise<EnvCopy | undefined> => aCopy(),
    follower: undefined as MirrorFollower<EnvRecord> | undefined,
  };
  const mirror = new CopyMirror({
    copies: { isRemoved: () => false, latencyOf: () => 1, read: () => state.read() },
    envs: {
      get: () => state.env,
      follow: (follower) => {
        state.follower = follower;
      },
    },
    clusterId: 'hub',
    clock,
    log: quietLog,
  });
  mirror.start({ changed: () => undefined, counted: () => undefined });
  const tell = (kind: 'put' | 'gone'): void => state.follower?.({ kind, record: env }, undefined);
  tell('put');
  return { mirror, clock, state, tell };
};

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

describe('the mirror of env copies on other clusters', () => {
  it('keeps its last state if it may not ask, and reports clusters that do not answer', async () => {
    const { mirror, state } = aMirror();
    await mirror.look('u', 'west');
    for (const [refusal, reachable] of [
      [new ClusterBusy('west'), true],
      [clusterUnavailable('west', 'gave no answer'), false],
    ] as const) {
      state.read = () => Promise.reject(refusal);
      expect(await mirror.look('u', 'west').catch((error: unknown) => error)).to.equal(refusal);
      expect(mirror.seen('u', 'west')?.reachable).to.equal(reachable);
    }
  });

  it('keeps only the members that the env itself has', async () => {
    const { mirror, state } = aMirror();
    const labels = { long: 'x'.repeat(100_000) };
    const said = { ...copyWordOf(env), labels };
    state.read = async () =>
      aCopy({ word: said, members: [copied('m', { labels }), copied('own'), copied('other')] });
    await mirror.look('u', 'west');
    const kept = mirror.seen('u', 'west')?.copy;
    expect(kept?.members.map(({ name }) => name)).to.deep.equal(['m']);
    expect(JSON.stringify(kept).length).to.be.lessThan(1_000);
    const pool = mirror.factOf(env, env.members[0])?.pool;
    expect(pool).to.deep.equal({ leaving: false, synced: false });
    // where the env itself is as long the copy is kept as it is
    const member = { ...aMember('m', 'west'), config: { labels } };
    state.env = { ...env, labels, members: [member] };
    await mirror.look('u', 'west');
    expect(mirror.factOf(state.env, member)?.pool).to.deep.equal({ leaving: false, synced: true });
  });

  it('polls each copy once per round, even if an env leaves a cluster and returns', async () => {
    const { clock, state, tell } = aMirror();
    const reads: Deferred<EnvCopy | undefined>[] = [];
    state.read = () => {
      const read = new Deferred<EnvCopy | undefined>();
      reads.push(read);
      return read.promise;
    };
    clock.advance(0);
    tell('gone');
    tell('put');
    clock.advance(0);
    expect(reads).to.have.length(2);
    for (const read of reads) {
      read.resolve(aCopy());
      await turn();
    }
    expect(clock.waiting).to.equal(1);
  });
});
