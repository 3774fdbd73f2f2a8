import fc from 'fast-check';
import { runs } from '../support/harness/runs.ts';
import { comesRight } from '../properties/after-faults.ts';
import { PlayedReplicas, type ReplicaStep } from './promoted-replicas.ts';

const ofLink = (does: 'open' | 'say' | 'hear' | 'talk' | 'cut' | 'leave') =>
  fc.record({ does: fc.constant(does), link: fc.nat(3) });
const atReplica = (does: 'promote' | 'revoke' | 'watch' | 'restart' | 'mislead') =>
  fc.record({ does: fc.constant(does), at: fc.nat(15) });

const steps: fc.Arbitrary<readonly ReplicaStep[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: ofLink('open') },
    { weight: 12, arbitrary: ofLink('say') },
    { weight: 8, arbitrary: ofLink('hear') },
    { weight: 12, arbitrary: ofLink('talk') },
    { weight: 3, arbitrary: ofLink('cut') },
    { weight: 1, arbitrary: ofLink('leave') },
    { weight: 4, arbitrary: atReplica('promote') },
    { weight: 3, arbitrary: atReplica('revoke') },
    { weight: 5, arbitrary: atReplica('watch') },
    { weight: 1, arbitrary: atReplica('restart') },
    { weight: 1, arbitrary: atReplica('mislead') },
    { weight: 1, arbitrary: fc.constant({ does: 'wait' as const }) },
  ),
  { minLength: 5, maxLength: 60 },
);

const at = (does: 'open' | 'say' | 'hear' | 'talk' | 'cut', link: number): ReplicaStep => ({
  ...{ does, link },
});
/** A key is promoted, and told by one replica, while another one's empty list is on its way. */
const LATE_END: readonly ReplicaStep[] = [
  ...[at('talk', 0), at('open', 2), at('say', 2), at('say', 2)],
  ...[{ does: 'promote', at: 0 } as const, at('talk', 0), at('hear', 2)],
];
/** A key that ended by one replica's list is told once more by another, which was late. */
const LATE_WORD: readonly ReplicaStep[] = [
  ...[{ does: 'promote', at: 0 } as const, at('talk', 2), at('open', 0), at('say', 0)],
  ...[at('say', 0), at('cut', 2), { does: 'revoke', at: 1 } as const, at('talk', 2)],
  ...[at('hear', 0), at('cut', 0), at('cut', 2)],
];

describe('promoted keys with replicas of manager and worker', function () {
  it('are refused once a replica knows their end, and valid on each after the last fault', () =>
    comesRight(steps, () => PlayedReplicas.start(), {
      ...{ numRuns: runs(400), examples: [[LATE_END], [LATE_WORD]] },
    }));
});
