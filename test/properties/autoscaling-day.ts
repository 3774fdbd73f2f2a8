import { expect } from 'chai';
import { evaluateGroup, type Evaluation } from '../../src/machines/autoscaling/evaluation.ts';
import { deciding, NO_MEMORY, type GroupMemory } from '../../src/machines/autoscaling/memory.ts';
import { bufferOf } from '../../src/machines/autoscaling/modes.ts';
import type { MemberObservation, MemberRules } from '../../src/machines/autoscaling/observation.ts';
import type { AutoscalingGroup } from '../../src/model/envs/autoscaling-group.ts';
import type { ScalingDecision, TroubleReason } from '../../src/model/envs/scaling-decision.ts';
import { CountedPool } from './counted-pool.ts';

export type DayStep =
  | { readonly do: 'claim' | 'end'; readonly to: number; readonly count: number }
  | { readonly do: 'settle'; readonly to: number }
  | { readonly do: 'wait'; readonly to: number; readonly waits: boolean }
  | { readonly do: 'break'; readonly to: number; readonly why: TroubleReason | undefined }
  | { readonly do: 'quota'; readonly to: number; readonly left: number | undefined }
  | { readonly do: 'bounds'; readonly least: number; readonly most: number }
  | {
      readonly do: 'member bounds';
      readonly to: number;
      readonly least: number;
      readonly most: number;
    }
  | { readonly do: 'pass'; readonly looks: number };

/** Less what was taken away since. */
interface Look {
  readonly at: number;
  idle: number;
}

const LOOK_MS = 5_000;
const LATER_MS = [5_000, 60_000, 700_000, 86_400_000];

/** One group over counted pools, evaluated every 5 s. Decisions take effect at once. */
export class AutoscalingDay {
  now = 50_000_000;
  group: AutoscalingGroup;
  rules: readonly MemberRules[];
  readonly pools: readonly CountedPool[];
  decisions = 0;
  rests = 0;
  #memory: GroupMemory = NO_MEMORY;
  readonly #looks: Look[] = [];
  #grewAt = Number.NEGATIVE_INFINITY;
  #cooledFrom = Number.NEGATIVE_INFINITY;

  constructor(group: AutoscalingGroup, rules: readonly MemberRules[]) {
    [this.group, this.rules] = [group, rules];
    this.pools = rules.map(({ name }) => new CountedPool(name, 2));
  }

  take(step: DayStep): void {
    const pool = 'to' in step ? this.pools[step.to % this.pools.length] : undefined;
    switch (step.do) {
      case 'claim':
        for (let count = 0; count < step.count; count++) pool?.claim(this.now);
        return;
      case 'end':
        for (let count = 0; count < step.count; count++) pool?.end();
        return;
      case 'settle':
        return pool?.settle(this.now);
      case 'wait':
        if (pool) pool.waits = step.waits;
        return;
      case 'break':
        if (pool) pool.broken = step.why;
        return;
      case 'quota':
        if (pool) pool.quota = step.left;
        return;
      case 'bounds':
        this.group = {
          ...this.group,
          minReplicas: step.least,
          maxReplicas: Math.max(step.least, step.most),
        };
        return;
      case 'member bounds':
        this.rules = this.rules.map((rule) =>
          rule.name === pool?.name
            ? { ...rule, minReplicas: step.least, maxReplicas: step.most }
            : rule,
        );
        return;
      case 'pass':
        for (let look = 0; look < step.looks; look++) this.look();
    }
  }

  /**
   * Claims wait at one pool, and must be served if there is room, even if other members' idle
   * instances occupy it.
   */
  calmDown(to: number): void {
    const pool = this.pools[to % this.pools.length];
    if (!pool) return;
    this.rules = this.rules.map((rule) => ({ ...rule, maxReplicas: 500 }));
    for (const one of this.pools) [one.broken, one.quota, one.pending] = [undefined, undefined, 0];
    while (pool.idle.length > 0) pool.claim(this.now);
    pool.waits = true;
    this.group = { ...this.group, maxReplicas: this.#kept() + 1 };
    const before = pool.running;
    for (let look = 0; look < 80; look++) {
      if (pool.pending === 0) pool.claim(this.now);
      this.look();
      for (const one of this.pools) one.settle(this.now);
      if (pool.running > before) return;
    }
    expect.fail(`stuck: ${JSON.stringify(pool)}, ${JSON.stringify(this.#memory)}`);
  }

  /** What no decision may take away. */
  #kept(): number {
    return sum(this.rules, ({ name, minReplicas }) =>
      Math.max(minReplicas, this.pools.find((pool) => pool.name === name)?.running ?? 0),
    );
  }

  look(): Evaluation {
    this.now += LOOK_MS;
    const members = this.pools.map((pool) =>
      pool.observed(this.now, this.group.scaleDownPolicy.protectionWindowSeconds * 1_000),
    );
    const input = { group: this.group, rules: this.rules, members, now: this.now };
    const evaluation = evaluateGroup({ ...input, memory: this.#memory });
    expect(
      evaluateGroup({ ...input, memory: readBack(this.#memory) }),
      'as after a restart',
    ).to.deep.equal(evaluation);
    if (evaluation.outlook.atRest) this.#checkRest(evaluation.memory);
    this.#looks.push({ at: this.now, idle: sum(members, ({ idle }) => idle) });
    const { decision, memory } = evaluation;
    if (decision?.changes.length === 0) this.#checkTold(decision);
    this.#checkBounded(memory);
    // Other members are tried at once if one turned out to be unable.
    if (
      Object.entries(memory.saturated).some(
        ([name, { until }]) => this.#memory.saturated[name]?.until !== until,
      )
    )
      this.#cooledFrom = Number.NEGATIVE_INFINITY;
    this.#memory = decision ? deciding(memory, decision) : memory;
    if (decision) this.#carryOut(decision, members);
    return evaluation;
  }

  /** At rest, time changes nothing. */
  #checkRest(memory: GroupMemory): void {
    this.rests += 1;
    for (const later of LATER_MS) {
      const now = this.now + later;
      const members = this.pools.map((pool) =>
        pool.observed(now, this.group.scaleDownPolicy.protectionWindowSeconds * 1_000),
      );
      expect(
        evaluateGroup({ group: this.group, rules: this.rules, members, memory, now }).decision,
        `at rest ${later} ms before`,
      ).to.equal(undefined);
    }
  }

  /** Each reason not to grow is reported once. */
  #checkTold({ limits = [] }: ScalingDecision): void {
    expect(
      limits.some(({ message }) => !(message in this.#memory.limited)),
      'a decision that says nothing new',
    ).to.equal(true);
  }

  #carryOut(decision: ScalingDecision, members: readonly MemberObservation[]): void {
    this.decisions += 1;
    const { changes, seen } = decision;
    const up = changes.filter(({ from, to }) => to > from);
    const tooMuchRuns = this.#tooMuchRuns();
    for (const { member, from, to } of changes) {
      const pool = this.pools.find(({ name }) => name === member);
      const rule = this.rules.find(({ name }) => name === member);
      if (!pool || !rule) throw new Error(`no ${member}`);
      const ceiling = Math.max(rule.minReplicas, rule.maxReplicas);
      expect(pool.replicas).to.equal(from);
      expect(decision.id, 'ids go up').to.be.above(pool.decided);
      if (to > from) expect(to, 'above its most').to.be.at.most(ceiling);
      else if (!tooMuchRuns)
        expect(to, 'below what runs').to.be.at.least(Math.min(pool.running, ceiling));
      if (to > from && pool.quota !== undefined)
        expect(to - from, 'above the quota').to.be.at.most(pool.quota);
      [pool.replicas, pool.decided] = [to, decision.id];
    }
    const desired = sum(this.pools, ({ replicas }) => replicas);
    const most = Math.max(
      this.group.maxReplicas,
      sum(this.rules, ({ minReplicas }) => minReplicas),
    );
    if (up.length > 0) expect(desired, "above the group's most").to.be.at.most(most);
    if (up.length > 0)
      this.#checkGrowth(
        decision,
        members,
        sum(
          up,
          ({ member, from, to }) =>
            to - Math.max(from, this.pools.find(({ name }) => name === member)?.running ?? 0),
        ),
      );
    if (decision.cause === 'surplus')
      this.#checkShrinkage(
        decision,
        members,
        sum(changes, ({ from, to }) => from - to),
      );
    if (up.length > 0) this.#grewAt = this.now;
    if (up.length > 0 && decision.cause !== 'limits') this.#cooledFrom = this.now;
    expect(seen, 'a recount').to.include({
      running: sum(members, ({ running }) => running),
      idle: sum(members, ({ idle }) => idle),
      pending: sum(members, ({ pending }) => pending),
    });
  }

  /** Running and required instances exceed the group's maximum. */
  #tooMuchRuns(): boolean {
    const held = sum(this.rules, ({ name, minReplicas, maxReplicas }) =>
      Math.max(
        minReplicas,
        Math.min(
          this.pools.find((pool) => pool.name === name)?.running ?? 0,
          Math.max(minReplicas, maxReplicas),
        ),
      ),
    );
    return (
      held >
      Math.max(
        this.group.maxReplicas,
        sum(this.rules, ({ minReplicas }) => minReplicas),
      )
    );
  }

  #checkGrowth(
    decision: ScalingDecision,
    members: readonly MemberObservation[],
    added: number,
  ): void {
    if (decision.cause === 'limits') return;
    const {
      seen: { running, idle, starting, pending },
    } = decision;
    const { mode, cooldownSeconds } = this.group.scaleUpPolicy;
    const lacking = pending + bufferOf(mode, running) - idle - starting;
    const unanswered = sum(members, (member) =>
      Math.max(
        0,
        member.pending -
          member.idle -
          Math.max(0, member.desired - member.running - member.idle - (member.trouble?.count ?? 0)),
      ),
    );
    const repaired = sum(this.rules, ({ minReplicas }) => minReplicas) + this.group.minReplicas;
    expect(added, 'grown for what is only starting').to.be.at.most(
      Math.max(lacking, unanswered) + repaired,
    );
    const unserved = sum(members, (member) =>
      Math.max(
        0,
        (member.waiting ?? 0) -
          member.idle -
          Math.max(0, member.desired - member.running - member.idle - (member.trouble?.count ?? 0)),
      ),
    );
    if (
      decision.cause === 'demand' &&
      mode !== 'Aggressive' &&
      !decision.reason.startsWith('bounds') &&
      added > unserved
    ) {
      expect(this.now - this.#cooledFrom, 'grown in the cooldown').to.be.at.least(
        cooldownSeconds * 1_000,
      );
    }
  }

  #checkShrinkage(
    decision: ScalingDecision,
    members: readonly MemberObservation[],
    taken: number,
  ): void {
    const { idleTimeoutSeconds, protectionWindowSeconds } = this.group.scaleDownPolicy;
    expect(taken).to.be.above(0);
    for (const { name, pending } of members)
      if (decision.changes.some(({ member }) => member === name))
        expect(pending, 'shrunk where claims wait').to.equal(0);
    expect(this.now - this.#grewAt, 'shrunk so soon after a scale-up').to.be.at.least(
      protectionWindowSeconds * 1_000,
    );
    const window = this.#looks.filter(({ at }) => at >= this.now - idleTimeoutSeconds * 1_000);
    expect(
      this.now - (this.#looks[0]?.at ?? this.now),
      'shrunk before the window was over',
    ).to.be.at.least(idleTimeoutSeconds * 1_000);
    expect(Math.min(...window.map(({ idle }) => idle)), 'shrunk by what was needed').to.be.at.least(
      taken,
    );
    expect(
      sum(this.pools, ({ replicas }) => replicas),
      'below its least',
    ).to.be.at.least(this.group.minReplicas);
    for (const look of this.#looks) look.idle -= taken;
  }

  #checkBounded(memory: GroupMemory): void {
    expect(JSON.stringify(memory).length, 'what is remembered').to.be.below(4_000);
  }
}

const readBack = (memory: GroupMemory): GroupMemory =>
  JSON.parse(JSON.stringify(memory)) as GroupMemory;

const sum = <T>(all: readonly T[], of: (one: T) => number): number =>
  all.reduce((total, one) => total + of(one), 0);
