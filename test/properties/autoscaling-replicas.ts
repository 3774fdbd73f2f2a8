import { expect } from 'chai';
import { isSameSpec } from '../../src/actors/env/group-spec.ts';
import type { GroupIntent, GroupSpec } from '../../src/machines/autoscaling/group-events.ts';
import { NO_MEMORY, samePending, type GroupMemory } from '../../src/machines/autoscaling/memory.ts';
import type { MemberRules } from '../../src/machines/autoscaling/observation.ts';
import type { AutoscalingGroup } from '../../src/model/envs/autoscaling-group.ts';
import { AnAutoscalingGroup } from '../machines/an-autoscaling-group.ts';
import { CountedPool } from './counted-pool.ts';

export type ReplicaStep =
  | {
      readonly do: 'carry out';
      readonly by: number;
      readonly pick: number;
      readonly answered: boolean;
      readonly done: boolean;
    }
  | { readonly do: 'look' | 'hear' | 'lead' | 'follow' | 'crash' | 'deadline'; readonly by: number }
  | { readonly do: 'claim' | 'end' | 'settle'; readonly to: number }
  | { readonly do: 'edit'; readonly group: AutoscalingGroup }
  | { readonly do: 'time'; readonly ms: number };

/**
 * Each may believe to lead. Requests may be late, lost or unanswered, and crashes forget
 * everything. A decision is carried out at most once per pool.
 */
export class AutoscalingReplicas {
  now = 50_000_000;
  readonly pools: readonly CountedPool[];
  applied = 0;
  readonly #rules: readonly MemberRules[];
  #group: AutoscalingGroup;
  #saved: string = JSON.stringify(NO_MEMORY);
  readonly #replicas: Replica[];
  readonly #done = new Set<string>();

  constructor(group: AutoscalingGroup, rules: readonly MemberRules[]) {
    [this.#group, this.#rules] = [group, rules];
    this.pools = rules.map(({ name }) => new CountedPool(name, 2));
    this.#replicas = [0, 1].map(() => new Replica(this.#words));
  }

  take(step: ReplicaStep): void {
    const replica = 'by' in step ? this.#replicas[step.by % 2] : undefined;
    const pool = 'to' in step ? this.pools[step.to % this.pools.length] : undefined;
    switch (step.do) {
      case 'carry out':
        return replica && this.#carryOut(replica, step);
      case 'look':
        return replica && this.#look(replica);
      case 'hear':
        return replica?.hear(this.#words, this.now);
      // A new leader's barrier: its state is no older than its lease.
      case 'lead':
        return replica?.lead(this.#words, this.now);
      case 'follow':
        replica?.actor.send({ type: 'FOLLOW' });
        return;
      case 'crash':
        return this.#crash(step.by % 2);
      case 'deadline':
        replica?.actor.send({ type: 'DEADLINE', now: this.now });
        return;
      case 'claim':
        return pool?.claim(this.now);
      case 'end':
        return pool?.end();
      case 'settle':
        return pool?.settle(this.now);
      case 'edit':
        this.#group = step.group;
        return;
      case 'time':
        this.now += step.ms;
    }
  }

  /** It must come to rest, whatever was saved. */
  calmDown(): void {
    this.#crash(1);
    const replica = this.#replicas[0];
    if (!replica) return;
    replica.actor.send({ type: 'FOLLOW' });
    replica.asked.length = 0;
    replica.lead(this.#words, this.now);
    for (let round = 0; round < 40; round++) {
      for (let count = 0; replica.asked.length > 0; count++) {
        if (count > 200) expect.fail('asks without end');
        this.#carryOut(replica, { pick: 0, answered: true, done: true });
      }
      this.now += 5_000;
      replica.hear(this.#words, this.now);
      this.#look(replica);
      for (const pool of this.pools) pool.settle(this.now);
    }
    expect(
      replica.asked.map(({ type }) => type),
      'still decides, though nothing happens',
    ).to.not.include('save');
    if (this.#group.enabled) expect(replica.actor.state).to.match(/^enabled\.resting/);
    else expect(replica.actor.state).to.equal('disabled');
    const desired = this.pools.reduce((sum, { replicas }) => sum + replicas, 0);
    if (this.#group.enabled)
      expect(desired, 'within bounds').to.be.within(
        Math.min(this.#group.minReplicas, this.#group.maxReplicas),
        this.#group.maxReplicas,
      );
  }

  get #words(): GroupSpec {
    return { group: this.#group, rules: this.#rules, memory: this.#memory };
  }

  get #memory(): GroupMemory {
    return JSON.parse(this.#saved) as GroupMemory;
  }

  #look(replica: Replica): void {
    const { deadline } = replica.actor.context;
    if (deadline === undefined || deadline > this.now) return;
    const members = this.pools.map((pool) =>
      pool.observed(this.now, this.#group.scaleDownPolicy.protectionWindowSeconds * 1_000),
    );
    replica.actor.send({ type: 'OBSERVED', members, now: this.now });
    replica.gather();
  }

  #crash(index: number): void {
    this.#replicas[index] = new Replica(this.#words);
  }

  #carryOut(
    replica: Replica,
    {
      pick,
      answered,
      done,
    }: { readonly pick: number; readonly answered: boolean; readonly done: boolean },
  ): void {
    replica.gather();
    const [asked] = replica.asked.splice(pick % Math.max(1, replica.asked.length), 1);
    if (!asked) return;
    switch (asked.type) {
      case 'save': {
        const lands = done && this.#save(asked);
        if (answered)
          replica.actor.send({
            type: lands ? 'SAVED' : 'SAVE_LOST',
            id: asked.id,
            now: this.now,
          });
        break;
      }
      case 'remember':
        if (done && this.#memory.last === asked.last) this.#saved = JSON.stringify(asked.memory);
        break;
      case 'apply': {
        const kind = done ? this.#apply(asked) : undefined;
        if (kind && answered)
          replica.actor.send({
            type: 'CHANGED',
            id: asked.id,
            member: asked.change.member,
            outcome: { kind },
            now: this.now,
          });
        break;
      }
      case 'tell':
        break;
    }
    replica.gather();
  }

  #save(intent: Extract<GroupIntent, { type: 'save' }>): boolean {
    const stored = this.#memory;
    if (samePending(stored, intent.memory)) return true;
    if (stored.last !== intent.last || !isSameSpec(intent.by, this.#words)) return false;
    this.#saved = JSON.stringify(intent.memory);
    return true;
  }

  #apply({
    id,
    change: { member, from, to },
  }: Extract<GroupIntent, { type: 'apply' }>): 'done' | 'overtaken' {
    const pool = this.pools.find(({ name }) => name === member);
    if (!pool) return 'overtaken';
    if (pool.decided === id) return 'done';
    if (pool.decided > id || pool.replicas !== from) return 'overtaken';
    const before = pool.running;
    expect(this.#done.has(`${id}/${member}`), 'carried out twice').to.equal(false);
    this.#done.add(`${id}/${member}`);
    this.applied += 1;
    [pool.replicas, pool.decided] = [to, id];
    pool.settle(this.now);
    expect(pool.running, 'a running one was removed').to.be.at.least(before);
    return 'done';
  }
}

class Replica {
  readonly actor: AnAutoscalingGroup;
  readonly asked: GroupIntent[] = [];

  constructor(words: GroupSpec) {
    this.actor = new AnAutoscalingGroup(words);
  }

  hear(words: GroupSpec, now: number): void {
    this.actor.send({ type: 'RECORD', ...words, now });
    this.gather();
  }

  lead(words: GroupSpec, now: number): void {
    this.hear(words, now);
    this.actor.send({ type: 'LEAD', now });
    this.gather();
  }

  gather(): void {
    this.asked.push(...this.actor.taken());
    this.asked.splice(0, Math.max(0, this.asked.length - 50));
  }
}
