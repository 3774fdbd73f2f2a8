import { evaluateGroup, type Evaluation } from '../../src/machines/autoscaling/evaluation.ts';
import { deciding, NO_MEMORY, type GroupMemory } from '../../src/machines/autoscaling/memory.ts';
import type { MemberObservation, MemberRules } from '../../src/machines/autoscaling/observation.ts';
import {
  groupFor,
  type AutoscalingGroup,
  type ScaleDownPolicy,
  type ScaleUpPolicy,
} from '../../src/model/envs/autoscaling-group.ts';

export interface GroupParts {
  readonly enabled?: boolean;
  readonly minReplicas?: number;
  readonly maxReplicas?: number;
  readonly up?: Partial<ScaleUpPolicy>;
  readonly down?: Partial<ScaleDownPolicy>;
}

/** A Moderate group of 0 to 100, with the defaults' seconds. */
export const aGroup = ({ up, down, ...parts }: GroupParts = {}): AutoscalingGroup => {
  const made = groupFor('g', { replicas: 4, minReplicas: 0, maxReplicas: 100 });
  return {
    ...made,
    ...parts,
    scaleUpPolicy: { ...made.scaleUpPolicy, mode: 'Moderate', ...up },
    scaleDownPolicy: { ...made.scaleDownPolicy, ...down },
  };
};

export const aRule = (parts: Partial<MemberRules> = {}): MemberRules => ({
  name: 'a',
  minReplicas: 0,
  maxReplicas: 100,
  scaleUpPriority: 0,
  scaleDownPriority: 0,
  ...parts,
});

/** A member that has all that it should, all of it long since; a claim came just now. */
export const aMember = (parts: Partial<MemberObservation> = {}): MemberObservation => {
  const { running = 0, idle = 0 } = parts;
  return {
    name: 'a',
    desired: running + idle,
    running,
    idle,
    unavailable: 0,
    settled: idle,
    pending: 0,
    claimedAt: Number.MAX_SAFE_INTEGER,
    reachable: true,
    decided: 0,
    ...parts,
  };
};

export const aMemory = (parts: Partial<GroupMemory> = {}): GroupMemory => ({
  ...NO_MEMORY,
  ...parts,
});

/** A group that is looked at again and again; what it decides is not carried out. */
export class AGroup {
  memory: GroupMemory;
  group: AutoscalingGroup;
  readonly rules: readonly MemberRules[];
  now = 10_000_000;

  constructor({
    group = aGroup(),
    rules = [aRule()],
    memory = NO_MEMORY,
  }: {
    readonly group?: AutoscalingGroup;
    readonly rules?: readonly MemberRules[];
    readonly memory?: GroupMemory;
  } = {}) {
    [this.group, this.rules, this.memory] = [group, rules, memory];
  }

  /** Looks once, after so many seconds; what is decided is remembered. */
  look(seconds: number, ...members: readonly MemberObservation[]): Evaluation {
    this.now += seconds * 1_000;
    const evaluation = evaluateGroup({ ...this, members });
    this.memory = evaluation.decision
      ? deciding(evaluation.memory, evaluation.decision)
      : evaluation.memory;
    return evaluation;
  }

  /** Looks every 5 s for so long, or until it decides, and gives the last. */
  watch(seconds: number, ...members: readonly MemberObservation[]): Evaluation {
    let last = this.look(0, ...members);
    for (let passed = 0; passed < seconds && !last.decision; passed += 5)
      last = this.look(5, ...members);
    return last;
  }
}

/** What a decision makes of each member, by name. */
export const sizesOf = ({ decision }: Evaluation): Readonly<Record<string, number>> =>
  Object.fromEntries(decision?.changes.map(({ member, to }) => [member, to]) ?? []);
