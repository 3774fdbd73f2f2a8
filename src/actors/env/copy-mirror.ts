import { isSameData } from '../../lib/plain-data.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { CopyPlace, EnvCopies } from '../../contracts/fleet/env-copies.ts';
import type { Log } from '../../contracts/log.ts';
import type { AwayFact } from '../../machines/env/member-events.ts';
import {
  askedOf,
  awayPoolOf,
  copiedIn,
  isCopyOf,
  keptOf,
  copyWordOf,
  type EnvCopy,
  type CopiedMember,
} from '../../model/envs/env-copy.ts';
import type { EnvMember, EnvRecord } from '../../model/envs/env.ts';
import { ClusterBusy } from '../../model/fleet/cluster-refusals.ts';
import type { EnvMirror } from '../runtime/record-mirror.ts';
import type { Trouble } from '../../machines/autoscaling/observation.ts';

export interface CopyMirrorDeps {
  readonly copies: Pick<EnvCopies, 'isRemoved' | 'latencyOf' | 'read'>;
  readonly envs: Pick<EnvMirror, 'follow' | 'get'>;
  readonly clusterId: string;
  readonly clock: Clock;
  readonly log: Log;
}

export interface SeenCopy {
  readonly at: number;
  readonly reachable: boolean;
  /** Undefined if the cluster lacked a copy. */
  readonly copy: EnvCopy | undefined;
  /** Whether the observation followed the last known change of its members' requested sizes. */
  readonly current: boolean;
}

export interface CopyFollowers {
  readonly changed: (envUid: string) => void;
  readonly counted: (envUid: string) => void;
}

interface Watched {
  at: number;
  answers: boolean;
  copy: EnvCopy | undefined;
  told: readonly (AwayFact | undefined)[];
  readonly members: Map<string, MemberWatch>;
  taken: Map<string, number>;
  asked: readonly number[];
  changes: number;
  seenChanges: number;
  /** The later of two concurrent reads wins. */
  looks: number;
}

/** The pause is at least EVERY_MS, and REST times the last round. */
const EVERY_MS = 2_000;
const REST = 4;
const AT_ONCE = 8;

/**
 * Reads the env copies of each cluster every 2 s, but at most a fifth of the time. Keeps the last
 * observation while a cluster is disconnected.
 */
export class CopyMirror {
  readonly #deps: CopyMirrorDeps;
  readonly #watched = new Map<string, Map<string, Watched>>();
  readonly #callOffs = new Map<string, () => void>();
  #followers: CopyFollowers = { changed: () => {}, counted: () => {} };
  #stopped = false;

  constructor(deps: CopyMirrorDeps) {
    this.#deps = deps;
  }

  /** The mirror of envs must be loaded. */
  start(followers: CopyFollowers): void {
    this.#followers = followers;
    this.#deps.envs.follow(({ kind, record }) => {
      this.#learn(record.uid, kind === 'put' ? record.members : []);
      // other followers of the env have already read these facts
      for (const [clusterId, envs] of this.#watched) {
        const watched = envs.get(record.uid);
        if (!watched) continue;
        watched.told = this.#factsOf(record, clusterId);
        const asked = record.members
          .filter((member) => member.clusterId === clusterId)
          .map(askedOf);
        if (!isSameData(asked, watched.asked)) watched.changes += 1;
        watched.asked = asked;
      }
    });
  }

  stop(): void {
    this.#stopped = true;
    for (const callOff of this.#callOffs.values()) callOff();
    this.#callOffs.clear();
  }

  /** Undefined if it was not observed since this daemon's start. */
  seen(envUid: string, clusterId: string): SeenCopy | undefined {
    const watched = this.#watched.get(clusterId)?.get(envUid);
    if (!watched || watched.at === 0) return undefined;
    const { at, answers, copy, changes, seenChanges } = watched;
    const current = changes === seenChanges;
    return {
      at,
      copy,
      current,
      reachable: answers && this.#deps.copies.latencyOf(clusterId) !== undefined,
    };
  }

  /** Undefined for a local member, and for one never observed. */
  factOf(env: EnvRecord | undefined, member: EnvMember | undefined): AwayFact | undefined {
    if (!env || !member || member.clusterId === this.#deps.clusterId) return undefined;
    if (this.#deps.copies.isRemoved(member.clusterId))
      return { reachable: false, pool: undefined, removed: true };
    const seen = this.seen(env.uid, member.clusterId);
    return seen && { reachable: seen.reachable, pool: awayPoolOf(seen.copy, env, member) };
  }

  watch(envUid: string, { clusterId, name }: EnvMember): MemberWatch | undefined {
    return this.#watched.get(clusterId)?.get(envUid)?.members.get(name);
  }

  took(
    envUid: string,
    clusterId: string,
    { name, count }: { readonly name: string; readonly count: number },
  ): void {
    const taken = this.#watched.get(clusterId)?.get(envUid)?.taken;
    taken?.set(name, (taken.get(name) ?? 0) + count);
  }

  taken(envUid: string, clusterId: string, name: string): number {
    return this.#watched.get(clusterId)?.get(envUid)?.taken.get(name) ?? 0;
  }

  /** Reads one copy now. Rejects if its cluster does not answer. */
  async look(envUid: string, clusterId: string): Promise<EnvCopy | undefined> {
    const env = this.#deps.envs.get(envUid);
    const watched = this.#watched.get(clusterId)?.get(envUid);
    if (!env || !watched) return undefined;
    watched.looks += 1;
    const turn = watched.looks;
    const { changes } = watched;
    try {
      const found = await this.#deps.copies.read(placeOf(env, clusterId), { isLook: true });
      const copy = found && isCopyOf(found, env) ? found : undefined;
      const kept = copy && keptOf(copy, this.#deps.envs.get(envUid) ?? env, clusterId);
      if (turn === watched.looks) {
        watched.seenChanges = changes;
        this.#saw(envUid, watched, kept);
      }
      return copy;
    } catch (error) {
      // a rate limit here shows nothing about the cluster
      if (turn === watched.looks && !(error instanceof ClusterBusy)) watched.answers = false;
      throw error;
    } finally {
      this.#tell(envUid, clusterId, watched);
    }
  }

  #saw(envUid: string, watched: Watched, copy: EnvCopy | undefined): void {
    const now = this.#deps.clock.now();
    const before = watched.copy?.members;
    Object.assign(watched, { at: now, answers: true, copy, taken: new Map() });
    for (const name of [...watched.members.keys()])
      if (!copy || !copiedIn(copy, name)) watched.members.delete(name);
    for (const member of copy?.members ?? []) {
      const watch = watched.members.get(member.name) ?? new MemberWatch();
      watched.members.set(member.name, watch);
      watch.saw(member, now);
    }
    if (!isSameData(before, copy?.members)) this.#followers.counted(envUid);
  }

  #tell(envUid: string, clusterId: string, watched: Watched): void {
    const env = this.#deps.envs.get(envUid);
    if (!env || this.#stopped) return;
    const facts = this.#factsOf(env, clusterId);
    if (isSameData(facts, watched.told)) return;
    watched.told = facts;
    this.#followers.changed(envUid);
  }

  #factsOf(env: EnvRecord, clusterId: string): Watched['told'] {
    return env.members
      .filter((member) => member.clusterId === clusterId)
      .map((member) => this.factOf(env, member));
  }

  #learn(envUid: string, members: readonly EnvMember[]): void {
    const clusters = new Set(members.map(({ clusterId }) => clusterId));
    clusters.delete(this.#deps.clusterId);
    for (const [clusterId, envs] of this.#watched) {
      if (clusters.has(clusterId) || !envs.delete(envUid) || envs.size > 0) continue;
      this.#watched.delete(clusterId);
      this.#callOffs.get(clusterId)?.();
      this.#callOffs.delete(clusterId);
    }
    for (const clusterId of clusters) {
      const envs = this.#watched.get(clusterId) ?? new Map<string, Watched>();
      this.#watched.set(clusterId, envs);
      if (!envs.has(envUid))
        envs.set(envUid, {
          at: 0,
          answers: false,
          copy: undefined,
          told: [],
          asked: [],
          changes: 0,
          seenChanges: 0,
          members: new Map(),
          taken: new Map(),
          looks: 0,
        });
      if (!this.#callOffs.has(clusterId)) this.#arm(clusterId, 0);
    }
  }

  #arm(clusterId: string, inMs: number): void {
    const { clock, log } = this.#deps;
    if (this.#stopped || !this.#watched.has(clusterId)) return;
    // a timer exists if the cluster was removed and returned during a round
    this.#callOffs.get(clusterId)?.();
    this.#callOffs.set(
      clusterId,
      clock.at(clock.now() + inMs, () => {
        const began = clock.now();
        this.#round(clusterId)
          .catch((error: unknown) => log.error({ clusterId, error }, 'cluster-envs-not-read'))
          .finally(() => {
            if (this.#callOffs.has(clusterId))
              this.#arm(clusterId, Math.max(EVERY_MS, REST * (clock.now() - began)));
          });
      }),
    );
  }

  async #round(clusterId: string): Promise<void> {
    const waiting = [...(this.#watched.get(clusterId)?.keys() ?? [])];
    const next = async (): Promise<void> => {
      for (let uid = waiting.pop(); uid !== undefined && !this.#stopped; uid = waiting.pop())
        // the observation shows a missing answer
        await this.look(uid, clusterId).catch(() => undefined);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
  }
}

export const placeOf = (env: EnvRecord, clusterId: string): CopyPlace => ({
  clusterId,
  owner: env.owner,
  name: env.name,
  members: env.members.filter((member) => member.clusterId === clusterId).length,
  bytes: Buffer.byteLength(JSON.stringify(copyWordOf(env))),
});

const STUCK_MS = 60_000;
/** Per member, against bad reports. */
const MOST_MOMENTS = 256;

/** Earlier times are unknown, so nothing counts as old at first. */
export class MemberWatch {
  readonly #idle: { since: number; count: number }[] = [];
  #last: CopiedMember | undefined;
  #claimedAt = 0;
  /** Since when the member has not grown although it lacks instances. */
  #lackingSince: number | undefined;

  saw(member: CopiedMember, now: number): void {
    const before = this.#last;
    this.#last = member;
    this.#sawIdle(member.idle, now);
    if (member.pending > 0 || (before && member.running > before.running)) this.#claimedAt = now;
    const there = member.idle + member.running;
    const isLacking = there < member.desired;
    const grew = before !== undefined && there > before.idle + before.running;
    this.#lackingSince = isLacking ? ((grew ? undefined : this.#lackingSince) ?? now) : undefined;
  }

  settled(forMs: number, now: number): number {
    return countOf(this.#idle.filter(({ since }) => since <= now - forMs));
  }

  /** Removes the youngest first. Above MOST_MOMENTS, restarts the time of the youngest. */
  #sawIdle(idle: number, now: number): void {
    let surplus = countOf(this.#idle) - idle;
    for (let last = this.#idle.at(-1); last && surplus > 0; last = this.#idle.at(-1)) {
      const gone = Math.min(surplus, last.count);
      surplus -= gone;
      last.count -= gone;
      if (last.count === 0) this.#idle.pop();
    }
    if (surplus >= 0) return;
    const merged = this.#idle.length < MOST_MOMENTS ? undefined : this.#idle.pop();
    this.#idle.push({ since: now, count: (merged?.count ?? 0) - surplus });
  }

  get claimedAt(): number {
    return this.#claimedAt;
  }

  trouble(now: number): Trouble | undefined {
    if (!this.#last || this.#lackingSince === undefined || now - this.#lackingSince < STUCK_MS)
      return undefined;
    const { desired, idle, running } = this.#last;
    return { reason: 'start failures', count: desired - idle - running, since: now };
  }
}

const countOf = (some: readonly { readonly count: number }[]): number =>
  some.reduce((sum, { count }) => sum + count, 0);
