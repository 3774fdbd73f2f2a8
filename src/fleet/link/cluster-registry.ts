import { timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../contracts/clock.ts';
import type { InvitedCluster } from '../../contracts/fleet/cluster-links.ts';
import { RecordExists, type Records } from '../../contracts/record-store.ts';
import { RecordConflict } from '../../contracts/sandbox-driver.ts';
import { MOST_CLUSTERS, type ClusterRecord } from '../../model/fleet/cluster.ts';
import { DNS_LABEL_FORM, isDnsLabel } from '../../model/identifiers.ts';
import { clusterNotFound, invalidArgument, Refusal, unavailable } from '../../model/refusals.ts';
import { joinHashOf, newJoinToken } from './fleet-keys.ts';

export const JOIN_TOKEN_MS = 3_600_000;

export interface ClusterRegistryDeps {
  readonly clusters: Records<ClusterRecord>;
  readonly clock: Clock;
  /** A worker may not use this id. */
  readonly ownClusterId: string;
  readonly managerKey: string;
}

/** Limits concurrent reads for unknown workers, since anybody may ask. */
const MOST_READS = 4;
const ATTEMPTS = 3;

export class ClusterRegistry {
  readonly #deps: ClusterRegistryDeps;
  readonly #byId = new Map<string, ClusterRecord>();
  readonly #followers = new Set<(clusterId: string, publicKey: string | undefined) => void>();
  #reads = 0;
  #isForgetting = false;

  constructor(deps: ClusterRegistryDeps) {
    this.#deps = deps;
  }

  async start(): Promise<void> {
    await this.#deps.clusters.watch(({ kind, record }) => {
      const { clusterId } = record;
      if (clusterId === this.#deps.ownClusterId) return; // left from when this cluster was a worker
      if (kind === 'put') this.#byId.set(clusterId, record);
      else this.#byId.delete(clusterId);
      const { publicKey } = this.#byId.get(clusterId) ?? {};
      for (const follower of this.#followers) follower(clusterId, publicKey);
    });
  }

  /** The key is undefined if the cluster may not link. */
  follow(follower: (clusterId: string, publicKey: string | undefined) => void): void {
    this.#followers.add(follower);
  }

  joined(): readonly ClusterRecord[] {
    return this.#records.filter(({ publicKey }) => publicKey !== undefined);
  }

  invited(): readonly InvitedCluster[] {
    return this.#records.flatMap(({ clusterId, publicKey, joinEndsAt }) =>
      publicKey === undefined && joinEndsAt !== undefined ? { clusterId, endsAt: joinEndsAt } : [],
    );
  }

  get #records(): readonly ClusterRecord[] {
    return [...this.#byId.values()].sort((a, b) => (a.clusterId < b.clusterId ? -1 : 1));
  }

  /**
   * Deletes clusters whose token expired unused. Never rejects: a failed deletion waits for the
   * next call.
   */
  async forgetEnded(): Promise<void> {
    if (this.#isForgetting) return;
    this.#isForgetting = true;
    try {
      const { clusters, clock } = this.#deps;
      const now = clock.now();
      const ended = this.#records.filter(
        ({ publicKey, joinEndsAt = Infinity }) => publicKey === undefined && joinEndsAt <= now,
      );
      // conditional: the cluster may have joined or been invited again
      for (const record of ended) await clusters.remove(record).catch(() => undefined);
    } finally {
      this.#isForgetting = false;
    }
  }

  find(clusterId: string): ClusterRecord | undefined {
    return this.#byId.get(clusterId);
  }

  /**
   * Makes a token that joins this cluster once, within an hour, and invalidates the previous one.
   * Durable when it resolves.
   */
  async invite(clusterId: string): Promise<{ readonly token: string; readonly endsAt: number }> {
    const { clusters, clock, ownClusterId, managerKey } = this.#deps;
    if (!isDnsLabel(clusterId)) throw invalidArgument('clusterID', DNS_LABEL_FORM);
    if (clusterId === ownClusterId)
      throw invalidArgument('clusterID', "is the manager's own id; choose another for the worker");
    const { text: token } = newJoinToken(managerKey);
    const endsAt = clock.now() + JOIN_TOKEN_MS;
    const terms = { joinHash: joinHashOf(token), joinEndsAt: endsAt };
    const known = await clusters.get(clusterId);
    if (!known && this.#byId.size >= MOST_CLUSTERS)
      throw new Refusal('CONFLICT', `there are ${MOST_CLUSTERS} clusters, which is the maximum`);
    try {
      if (known) await clusters.update({ ...known, ...terms });
      else await clusters.create({ clusterId, ...terms });
    } catch (error) {
      if (!(error instanceof RecordConflict || error instanceof RecordExists)) throw error;
      throw unavailable('another request is changing this cluster; try again');
    }
    return { token, endsAt };
  }

  /** Durable when it resolves. Rejects with CLUSTER_NOT_FOUND. */
  async remove(clusterId: string): Promise<void> {
    const known = isDnsLabel(clusterId) ? await this.#deps.clusters.get(clusterId) : undefined;
    if (!known) throw clusterNotFound();
    try {
      await this.#deps.clusters.remove(known);
    } catch (error) {
      if (!(error instanceof RecordConflict)) throw error;
      throw unavailable('another request is changing this cluster; try again');
    }
  }

  /**
   * Admits the owner of a proved key, by the key or by a join token, which it uses up on all
   * replicas. Resolves with the reason of a refusal. Rejects if that cannot be known now.
   */
  async admit(candidate: Candidate): Promise<string | undefined> {
    const { clusterId, publicKey } = candidate;
    if (this.#byId.get(clusterId)?.publicKey === publicKey) return undefined;
    // another replica may have just made the token, or admitted the cluster
    if (this.#reads >= MOST_READS) throw new Error('too many unknown clusters are connecting');
    this.#reads += 1;
    try {
      for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
        const outcome = await this.#join(candidate);
        if (outcome !== 'moved') return outcome;
      }
      throw new Error('another request is changing this cluster');
    } finally {
      this.#reads -= 1;
    }
  }

  /** Resolves with `moved` if another write came first. */
  async #join({ clusterId, publicKey, joinToken }: Candidate): Promise<string | undefined> {
    const { clusters, clock } = this.#deps;
    const record = isDnsLabel(clusterId) ? await clusters.get(clusterId) : undefined;
    if (!record) return UNKNOWN;
    if (record.publicKey === publicKey) return undefined;
    if (joinToken === undefined) return UNKNOWN;
    const { joinHash, joinEndsAt = 0, ...rest } = record;
    if (joinHash === undefined || !sameHash(joinHash, joinHashOf(joinToken)))
      return 'the join token is not valid for this cluster, or was already used';
    const now = clock.now();
    if (joinEndsAt <= now) return 'the join token has expired; create another token';
    try {
      // conditional: if two bring the same token, the first joins
      await clusters.update({ ...rest, publicKey, joinedAt: now });
    } catch (error) {
      if (error instanceof RecordConflict) return 'moved';
      throw error;
    }
    return undefined;
  }
}

export interface Candidate {
  readonly clusterId: string;
  readonly publicKey: string;
  readonly joinToken: string | undefined;
}

/** An unknown cluster and a wrong key get the same answer. */
const UNKNOWN = 'no cluster with this id and key has joined; it needs a valid join token';

const sameHash = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
