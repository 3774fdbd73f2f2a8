import { createActor, type Actor } from 'xstate';
import type {
  GroupContext,
  GroupEvent,
  GroupIntent,
  GroupSpec,
} from '../src/machines/autoscaling/group-events.ts';
import {
  autoscalingGroupMachine,
  EVALUATION_MS,
} from '../src/machines/autoscaling/group-machine.ts';
import type { ScalingDecision } from '../src/model/envs/scaling-decision.ts';
import type { SimulatedPool } from './simulated-pool.ts';

/** The group's machine over simulated pools: what it asks for is done at once. */
export class SimulatedGroup {
  readonly decisions: ScalingDecision[] = [];
  readonly #actor: Actor<typeof autoscalingGroupMachine>;
  readonly #pools: readonly SimulatedPool[];
  readonly #asked: GroupIntent[] = [];
  #context: GroupContext;

  constructor(words: GroupSpec, pools: readonly SimulatedPool[], now: number) {
    this.#pools = pools;
    this.#actor = createActor(autoscalingGroupMachine, { input: words });
    this.#actor.on('*', (intent) => {
      this.#asked.push(intent);
    });
    this.#actor.start();
    this.#context = this.#actor.getSnapshot().context;
    this.#send({ type: 'LEAD', now });
  }

  get context(): GroupContext {
    return this.#context;
  }

  /** When it is to be looked at: as where something always stirs; a disabled one never. */
  get deadline(): number {
    const { deadline, memory } = this.#context;
    return deadline === undefined
      ? Number.POSITIVE_INFINITY
      : Math.min(deadline, memory.seenAt + EVALUATION_MS);
  }

  look(now: number): void {
    const protectionMs = this.#context.group.scaleDownPolicy.protectionWindowSeconds * 1_000;
    this.#send({
      type: 'OBSERVED',
      members: this.#pools.map((pool) => pool.observed(now, protectionMs)),
      now,
    });
  }

  wake(now: number): void {
    this.#send({ type: 'WAKE', now });
  }

  /** The owner has another word. */
  edit(words: Partial<GroupSpec>, now: number): void {
    const { group, rules, saved } = this.#context;
    this.#send({ type: 'RECORD', group, rules, memory: saved, ...words, now });
  }

  #send(event: GroupEvent): void {
    this.#actor.send(event);
    this.#context = this.#actor.getSnapshot().context;
    for (let intent = this.#asked.shift(); intent; intent = this.#asked.shift())
      this.#carryOut(intent, event.type === 'FOLLOW' ? 0 : event.now);
  }

  #carryOut(intent: GroupIntent, now: number): void {
    switch (intent.type) {
      case 'save':
        return this.#send({ type: 'SAVED', id: intent.id, now });
      case 'apply': {
        const pool = this.#pools.find(({ name }) => name === intent.change.member);
        if (pool && pool.decided < intent.id && pool.replicas === intent.change.from) {
          pool.replicas = intent.change.to;
          pool.decided = intent.id;
          pool.replan(now);
        }
        return this.#send({
          type: 'CHANGED',
          id: intent.id,
          member: intent.change.member,
          outcome: { kind: 'done' },
          now,
        });
      }
      case 'tell':
        this.decisions.push(intent.decision);
        return;
      case 'remember':
        return; // nobody takes over
    }
  }
}
