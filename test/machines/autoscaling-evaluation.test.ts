import { expect } from 'chai';
import type { ScaleUpMode } from '../../src/model/envs/autoscaling-group.ts';
import {
  AGroup,
  aGroup,
  aMember,
  aMemory,
  aRule,
  sizesOf,
  type GroupParts,
} from './autoscaling-examples.ts';

/** Looks for as long as it takes until too few have been idle for long enough. */
const afterThreshold = (subject: AGroup, ...members: readonly ReturnType<typeof aMember>[]) =>
  subject.watch(10, ...members);

describe('a growing autoscaling group', () => {
  const cases: readonly (readonly [
    string,
    ScaleUpMode,
    Parameters<typeof aMember>[0],
    number | undefined,
  ])[] = [
    [
      'Conservative wants one idle, and adds a tenth',
      'Conservative',
      { running: 20, pending: 9 },
      22,
    ],
    ['Conservative adds one at least', 'Conservative', { running: 3, pending: 9 }, 4],
    [
      'Conservative waits while instances are starting',
      'Conservative',
      { running: 20, desired: 21, pending: 9 },
      undefined,
    ],
    [
      'Conservative is content with one that is idle',
      'Conservative',
      { running: 20, idle: 1 },
      undefined,
    ],
    ['Moderate wants a tenth idle', 'Moderate', { running: 20 }, 22],
    ['Moderate wants one idle where few run', 'Moderate', { running: 3 }, 4],
    ['Moderate at most doubles', 'Moderate', { running: 3, pending: 50 }, 6],
    ['Moderate adds two at least', 'Moderate', { running: 1, pending: 9 }, 3],
    ['Moderate counts what is starting', 'Moderate', { running: 20, desired: 21, pending: 1 }, 23],
    [
      'Moderate adds nothing where what is starting is enough',
      'Moderate',
      { running: 20, desired: 23, pending: 1 },
      undefined,
    ],
    ['Aggressive wants a quarter idle', 'Aggressive', { running: 20 }, 25],
    ['Aggressive wants two idle where few run', 'Aggressive', { running: 1, idle: 1 }, 3],
    ['Aggressive adds all that is missing', 'Aggressive', { running: 3, pending: 50 }, 55],
    [
      'what is unavailable is not there',
      'Moderate',
      { running: 20, unavailable: 2, desired: 22 },
      24,
    ],
  ];
  for (const [fact, mode, seen, size] of cases) {
    it(fact, () => {
      const end = afterThreshold(new AGroup({ group: aGroup({ up: { mode } }) }), aMember(seen));

      expect(sizesOf(end)['a']).to.equal(size);
    });
  }

  it('waits until too few instances have been idle for idleThresholdSeconds', () => {
    const subject = new AGroup();

    expect(subject.look(0, aMember({ running: 20 })).decision).to.equal(undefined);
    expect(subject.look(9, aMember({ running: 20 })).outlook.limitedBy).to.deep.equal([
      'too few instances are idle, for less than 10 s',
    ]);
    expect(subject.look(1, aMember({ running: 20 })).decision?.cause).to.equal('demand');
  });

  it('restarts the threshold when enough instances are idle again', () => {
    const subject = new AGroup();
    subject.look(0, aMember({ running: 20 }));
    subject.look(5, aMember({ running: 20, idle: 2 }));

    expect(subject.look(5, aMember({ running: 20 })).decision).to.equal(undefined);
  });

  it('skips the threshold in mode Aggressive', () => {
    expect(
      sizesOf(
        new AGroup({ group: aGroup({ up: { mode: 'Aggressive' } }) }).look(
          0,
          aMember({ running: 4 }),
        ),
      ),
    ).to.deep.equal({ a: 6 });
  });

  it('waits for the cooldown between two scale-ups', () => {
    const subject = new AGroup();
    afterThreshold(subject, aMember({ running: 4, pending: 20 }));

    expect(subject.look(59, aMember({ running: 8, pending: 20 })).outlook.limitedBy).to.deep.equal([
      'cooldown: 1 s left of 60 s',
    ]);
    expect(sizesOf(subject.look(1, aMember({ running: 8, pending: 20 })))).to.deep.equal({ a: 16 });
  });

  it('skips the cooldown in mode Aggressive if demand exceeds the starting instances', () => {
    const subject = new AGroup({ group: aGroup({ up: { mode: 'Aggressive' } }) });
    subject.look(0, aMember({ running: 4, pending: 2 }));

    expect(
      subject.look(5, aMember({ running: 4, desired: 8, pending: 4 })).outlook.limitedBy,
      'as many as are starting',
    ).to.deep.equal(['cooldown: 55 s left of 60 s']);
    expect(sizesOf(subject.look(5, aMember({ running: 4, desired: 8, pending: 5 })))).to.deep.equal(
      { a: 11 },
    );
  });

  for (const mode of ['Conservative', 'Moderate', 'Aggressive'] as const) {
    it(`starts one instance for each waiting claim at once, even in the cooldown, and no extra ones: ${mode}`, () => {
      const subject = new AGroup({
        group: aGroup({ up: { mode } }),
        memory: aMemory({ coolingFrom: 9_999_000, seenAt: 9_999_000 }),
      });

      expect(
        sizesOf(subject.look(0, aMember({ running: 4, pending: 30, waiting: 30 }))),
      ).to.deep.equal({ a: mode === 'Aggressive' ? 36 : 34 });
      const { decision } = subject.look(
        5,
        aMember({ running: 4, desired: 34, pending: 30, waiting: 30 }),
      );
      expect(decision, 'what is starting is for them').to.equal(undefined);
      expect(
        sizesOf(subject.look(5, aMember({ running: 4, desired: 34, pending: 33, waiting: 33 }))),
      ).to.deep.equal({ a: mode === 'Aggressive' ? 39 : 37 });
    });
  }

  it("makes room for waiting claims when other members' idle instances fill the group's maximum", () => {
    const end = (b: Parameters<typeof aMember>[0], least = 0) =>
      new AGroup({
        group: aGroup({ maxReplicas: 6 }),
        rules: [aRule(), aRule({ name: 'b', minReplicas: least })],
      }).look(0, aMember({ idle: 2, pending: 3, waiting: 3 }), aMember({ name: 'b', ...b }));

    const { decision } = end({ idle: 4, settled: 0 });
    expect(decision).to.deep.include({
      cause: 'demand',
      changes: [
        { member: 'a', from: 2, to: 3 },
        { member: 'b', from: 4, to: 3 },
      ],
    });
    expect(decision?.reason).to.contain('b makes room for claims that wait on another member');
    expect(sizesOf(end({ desired: 4 })), 'what only starts goes as well').to.deep.equal({
      a: 3,
      b: 3,
    });
    expect(sizesOf(end({ running: 4 })), 'what runs stays').to.deep.equal({});
    expect(
      sizesOf(end({ idle: 4, pending: 4, waiting: 4 })),
      'so does what its own claims wait for',
    ).to.deep.equal({});
    expect(sizesOf(end({ idle: 4 }, 4)), "and a member's least").to.deep.equal({});
  });

  it('keeps the bounds when it starts instances for waiting claims', () => {
    const waiting = aMember({ running: 18, pending: 9, waiting: 9 });
    const end = (parts: Parameters<typeof aGroup>[0], member = waiting) =>
      new AGroup({ group: aGroup(parts) }).look(0, member);

    expect(sizesOf(end({ maxReplicas: 20 }))).to.deep.equal({ a: 20 });
    expect(sizesOf(end({}, { ...waiting, quota: 3 }))).to.deep.equal({ a: 21 });
    expect(
      sizesOf(end({}, { ...waiting, pending: 10, waiting: 1 })),
      'those who were refused wait for the rules',
    ).to.deep.equal({ a: 19 });
  });

  it('does not grow without claims in the quiet window, even if nothing is idle', () => {
    const subject = new AGroup();
    const quiet = aMember({ running: 4, claimedAt: subject.now - 60_001 });

    expect(afterThreshold(subject, quiet).outlook.limitedBy).to.deep.equal([
      'no instance is idle, and no claim came for 60 s',
    ]);
    expect(
      sizesOf(subject.look(5, { ...quiet, pending: 1 })),
      'one that waits is a claim',
    ).to.deep.equal({ a: 6 });
  });

  it('grows at idle 0 without any claims if the quiet window is off', () => {
    const subject = new AGroup({ group: aGroup({ up: { idleZeroQuietWindowSeconds: 0 } }) });

    expect(sizesOf(afterThreshold(subject, aMember({ running: 4, claimedAt: 0 })))).to.deep.equal({
      a: 5,
    });
  });

  it('wants no idle instances after a whole idle timeout without use', () => {
    const subject = new AGroup({ group: aGroup({ up: { mode: 'Aggressive' }, minReplicas: 1 }) });

    expect(
      sizesOf(subject.look(0, aMember({ idle: 1, claimedAt: 0 }))),
      'a new group',
    ).to.deep.equal({ a: 2 });
    subject.watch(1_000, aMember({ idle: 2, claimedAt: 0 }));
    expect(subject.watch(3_600, aMember({ idle: 1, claimedAt: 0 })).decision).to.equal(undefined);
    expect(sizesOf(subject.look(5, aMember({ running: 1, claimedAt: subject.now })))).to.deep.equal(
      { a: 3 },
    );
  });

  it('stays at zero until the first claim', () => {
    const subject = new AGroup();

    expect(subject.watch(3_600, aMember({ claimedAt: 0 })).decision).to.equal(undefined);
    expect(
      sizesOf(subject.look(5, aMember({ claimedAt: subject.now, pending: 1 })))['a'],
      'at once: none was idle for long',
    ).to.equal(2);
  });
});

describe('the bounds of an autoscaling group', () => {
  const sized = (
    parts: GroupParts,
    rules: readonly ReturnType<typeof aRule>[],
    ...members: readonly ReturnType<typeof aMember>[]
  ) => sizesOf(new AGroup({ group: aGroup(parts), rules }).look(0, ...members));

  it('grow the group to its minimum at once, even in the cooldown', () => {
    const subject = new AGroup({
      group: aGroup({ minReplicas: 4 }),
      memory: aMemory({ coolingFrom: 9_999_000, grewAt: 9_999_000, seenAt: 9_999_000 }),
    });

    expect(sizesOf(subject.look(0, aMember({ idle: 1 })))).to.deep.equal({ a: 4 });
    expect(subject.memory.coolingFrom, 'and begins no cooldown').to.equal(9_999_000);
  });

  it('never let the group exceed its maximum', () => {
    const end = afterThreshold(
      new AGroup({ group: aGroup({ maxReplicas: 21 }) }),
      aMember({ running: 20, pending: 9 }),
    );

    expect(sizesOf(end)).to.deep.equal({ a: 21 });
    expect(end.decision?.limitedBy).to.deep.equal(["the group's maximum is 21"]);
  });

  it('never let a member exceed its maximum', () => {
    const subject = new AGroup({ rules: [aRule({ maxReplicas: 20 })] });
    const end = subject.look(0, aMember({ running: 20, pending: 9 }));

    expect(sizesOf(end)).to.deep.equal({});
    expect(subject.watch(60, aMember({ running: 20, pending: 9 })).decision).to.equal(undefined);
    expect(end.decision?.limitedBy).to.deep.equal(['a has its maximum, 20']);
  });

  it('shrink the group at once when its maximum is lowered', () => {
    expect(sized({ maxReplicas: 6 }, [aRule()], aMember({ running: 2, idle: 8 }))).to.deep.equal({
      a: 6,
    });
    expect(sized({}, [aRule({ maxReplicas: 6 })], aMember({ running: 2, idle: 8 }))).to.deep.equal({
      a: 6,
    });
  });

  it('remove idle instances before running ones are counted off', () => {
    expect(
      sized(
        { maxReplicas: 10 },
        [aRule(), aRule({ name: 'b' })],
        aMember({ running: 9 }),
        aMember({ name: 'b', idle: 5 }),
      ),
    ).to.deep.equal({ b: 1 });
  });

  it("prefer a member's minimum to the group's maximum", () => {
    expect(
      sized(
        { maxReplicas: 3 },
        [aRule({ minReplicas: 4 }), aRule({ name: 'b', minReplicas: 2 })],
        aMember({ idle: 1 }),
        aMember({ name: 'b', idle: 1 }),
      ),
    ).to.deep.equal({ a: 4, b: 2 });
  });

  it("prefer a member's minimum to its maximum", () => {
    expect(
      sized({}, [aRule({ minReplicas: 4, maxReplicas: 2 })], aMember({ idle: 1 })),
    ).to.deep.equal({ a: 4 });
  });

  it('add no more instances than the quota allows', () => {
    const end = afterThreshold(new AGroup(), aMember({ running: 20, pending: 9, quota: 3 }));

    expect(sizesOf(end)).to.deep.equal({ a: 23 });
    expect(end.outlook.headroom).to.deep.equal({ a: 0 });
  });
});

describe('the members of an autoscaling group', () => {
  const two = (b: Parameters<typeof aRule>[0] = {}) => [aRule(), aRule({ name: 'b', ...b })];

  it('grow in order of priority, higher numbers first', () => {
    const end = afterThreshold(
      new AGroup({ rules: two({ scaleUpPriority: 1, maxReplicas: 12 }) }),
      aMember({ running: 10 }),
      aMember({ name: 'b', running: 10 }),
    );

    expect(sizesOf(end)).to.deep.equal({ b: 12 });
  });

  it('pass growth on to the next member if the first is full', () => {
    const end = afterThreshold(
      new AGroup({ rules: two({ scaleUpPriority: 1, maxReplicas: 11 }) }),
      aMember({ running: 10 }),
      aMember({ name: 'b', running: 10 }),
    );

    expect(sizesOf(end)).to.deep.equal({ a: 11, b: 11 });
  });

  it('grow by headroom, then by name, if priorities are equal', () => {
    expect(
      sizesOf(
        afterThreshold(
          new AGroup({ rules: two({ maxReplicas: 200 }) }),
          aMember({ running: 10 }),
          aMember({ name: 'b', running: 10 }),
        ),
      ),
    ).to.deep.equal({ b: 12 });
    expect(
      sizesOf(
        afterThreshold(
          new AGroup({ rules: two() }),
          aMember({ running: 10 }),
          aMember({ name: 'b', running: 10 }),
        ),
      ),
    ).to.deep.equal({ a: 12 });
  });

  it('grow if their claims are refused, even if another member has idle instances', () => {
    const end = afterThreshold(
      new AGroup({ rules: two({ scaleUpPriority: -1 }) }),
      aMember({ idle: 10 }),
      aMember({ name: 'b', running: 2, pending: 1 }),
    );

    expect(sizesOf(end)).to.deep.equal({ b: 3 });
  });

  it('share one quota', () => {
    const quota = 3;
    const end = afterThreshold(
      new AGroup({ rules: two({ scaleUpPriority: 1, maxReplicas: 12 }) }),
      aMember({ running: 10, pending: 9, quota }),
      aMember({ name: 'b', running: 10, pending: 9, quota }),
    );

    expect(sizesOf(end)).to.deep.equal({ a: 11, b: 12 });
    expect(end.decision?.limitedBy).to.include('the quota is used up');
  });

  it('ignore members that are unreachable', () => {
    const end = afterThreshold(
      new AGroup({ rules: two() }),
      aMember({ running: 10, reachable: false }),
      aMember({ name: 'b', running: 10 }),
    );

    expect(sizesOf(end)).to.deep.equal({ b: 12 });
    expect(end.outlook.headroom['a']).to.equal(0);
  });

  it('shrink by priority, then by the number of idle instances', () => {
    const shrunk = (down: number) => {
      const subject = new AGroup({
        group: aGroup({ maxReplicas: 11 }),
        rules: two({ scaleDownPriority: down }),
      });
      return sizesOf(subject.look(0, aMember({ idle: 8 }), aMember({ name: 'b', idle: 6 })));
    };

    expect(shrunk(0)).to.deep.equal({ a: 5 });
    expect(shrunk(1)).to.deep.equal({ b: 3 });
  });
});

describe('a member that fails to start instances', () => {
  const trouble = (count: number, since: number) => ({
    reason: 'unschedulable' as const,
    count,
    since,
  });
  const rules = [aRule({ scaleUpPriority: 1 }), aRule({ name: 'b' })];

  it('shrinks by the failed instances, and the next member grows at once', () => {
    const subject = new AGroup({ rules });
    afterThreshold(subject, aMember({ running: 10 }), aMember({ name: 'b' }));
    const end = subject.look(
      5,
      aMember({ running: 10, desired: 11, trouble: trouble(1, subject.now) }),
      aMember({ name: 'b' }),
    );

    expect(sizesOf(end)).to.deep.equal({ a: 10, b: 1 });
    expect(end.decision?.cause).to.equal('failure');
    expect(end.decision?.reason).to.match(/^a: 1 could not start \(unschedulable\)/);
    expect(subject.memory.saturated['a']?.until).to.equal(subject.now + 120_000);
  });

  it('does not grow for saturationCooldownSeconds, then grows again', () => {
    const subject = new AGroup({ rules: [aRule()] });
    subject.look(0, aMember({ running: 10, desired: 12, trouble: trouble(2, subject.now) }));

    const waiting = subject.look(60, aMember({ running: 10, pending: 1 }));
    expect(waiting.decision).to.equal(undefined);
    expect(waiting.outlook.limitedBy).to.deep.equal(['a is saturated for 60 s (unschedulable)']);
    expect(waiting.outlook.headroom).to.deep.equal({ a: 0 });
    expect(sizesOf(subject.look(60, aMember({ running: 10, pending: 1 })))).to.deep.equal({
      a: 12,
    });
  });

  it('is not saturated by failures from before its scale-up', () => {
    const subject = new AGroup({ rules: [aRule()] });
    const before = subject.now - 1;
    afterThreshold(subject, aMember({ running: 10 }));

    expect(
      subject.look(5, aMember({ running: 10, desired: 11, trouble: trouble(1, before) })).decision,
    ).to.equal(undefined);
    expect(subject.memory.saturated).to.deep.equal({});
  });

  it('keeps its minimum, while other members make up for its missing instances', () => {
    const subject = new AGroup({
      rules: [aRule({ minReplicas: 4, scaleUpPriority: 1 }), aRule({ name: 'b' })],
    });
    const end = afterThreshold(
      subject,
      aMember({ desired: 4, trouble: trouble(4, subject.now + 10_000) }),
      aMember({ name: 'b', pending: 1 }),
    );

    expect(sizesOf(end)).to.deep.equal({ b: 2 });
  });
});

describe('a shrinking autoscaling group', () => {
  it('removes instances that stayed idle through both windows, except for the buffer', () => {
    const subject = new AGroup();

    expect(subject.watch(895, aMember({ running: 10, idle: 8 })).decision).to.equal(undefined);
    const end = subject.look(5, aMember({ running: 10, idle: 8 }));
    expect(sizesOf(end)).to.deep.equal({ a: 11 });
    expect(end.decision?.cause).to.equal('surplus');
  });

  it('uses the lowest idle count in the window', () => {
    const subject = new AGroup();
    subject.watch(600, aMember({ running: 12, idle: 6 }));
    subject.look(5, aMember({ running: 14, idle: 4 }));

    expect(sizesOf(subject.watch(330, aMember({ running: 12, idle: 6 })))).to.deep.equal({ a: 16 });
  });

  it('shrinks only to the highest recommendation in the stabilization window', () => {
    const subject = new AGroup({ group: aGroup({ down: { idleTimeoutSeconds: 10 } }) });
    subject.watch(280, aMember({ running: 12, idle: 6 }));
    subject.look(5, aMember({ running: 14, idle: 4 }));

    expect(sizesOf(subject.watch(30, aMember({ running: 12, idle: 6 })))).to.deep.equal({ a: 16 });
  });

  it('removes nothing soon after a scale-up', () => {
    const subject = new AGroup({
      group: aGroup({ down: { idleTimeoutSeconds: 10, stabilizationSeconds: 10 } }),
    });
    afterThreshold(subject, aMember({ running: 10 }));

    const end = subject.watch(115, aMember({ running: 1, idle: 10 }));
    expect(end.decision).to.equal(undefined);
    expect(end.outlook.limitedBy).to.deep.equal(['no scale-down for 120 s after a scale-up']);
    expect(sizesOf(subject.look(5, aMember({ running: 1, idle: 10 })))).to.deep.equal({ a: 2 });
  });

  it('keeps instances that started within the protection window', () => {
    const subject = new AGroup({
      group: aGroup({ down: { idleTimeoutSeconds: 10, stabilizationSeconds: 10 } }),
    });

    const end = subject.watch(20, aMember({ running: 1, idle: 10, settled: 3 }));

    expect(sizesOf(end)).to.deep.equal({ a: 8 });
    expect(end.decision?.limitedBy).to.deep.equal([
      "6 more instances are younger than 120 s, or within a member's minimum",
    ]);
  });

  it('keeps instances for waiting claims even if their own member is full', () => {
    const subject = new AGroup({ rules: [aRule(), aRule({ name: 'b', maxReplicas: 5 })] });

    expect(
      subject.watch(1_800, aMember({ idle: 2 }), aMember({ name: 'b', running: 5, pending: 1 }))
        .decision,
    ).to.equal(undefined);
  });

  it("keeps them at the group's maximum too, while another member refuses claims", () => {
    const subject = new AGroup({
      group: aGroup({ maxReplicas: 6 }),
      rules: [aRule(), aRule({ name: 'b' })],
    });
    const members = [aMember({ pending: 1 }), aMember({ name: 'b', idle: 6 })] as const;
    expect(subject.look(0, ...members).decision?.limitedBy).to.deep.equal([
      "the group's maximum is 6",
    ]);

    const { decision } = subject.watch(900, ...members);
    expect(decision).to.deep.include({
      cause: 'surplus',
      changes: [{ member: 'b', from: 6, to: 2 }],
    });
  });

  it('never shrinks with an idle timeout of 0', () => {
    expect(
      new AGroup({ group: aGroup({ down: { idleTimeoutSeconds: 0 } }) }).watch(
        7_200,
        aMember({ idle: 10 }),
      ).decision,
    ).to.equal(undefined);
  });

  it('keeps the buffer and the minimum', () => {
    expect(
      sizesOf(new AGroup({ group: aGroup({ minReplicas: 7 }) }).watch(900, aMember({ idle: 10 }))),
    ).to.deep.equal({ a: 7 });
    expect(new AGroup().watch(3_600, aMember({ idle: 1 })).decision).to.equal(undefined);
  });

  it('shrinks to its minimum, which may be zero, after a whole window without claims', () => {
    const subject = new AGroup({ memory: aMemory({ firstAt: 1 }) });

    expect(
      sizesOf(subject.watch(900, aMember({ idle: 4, claimedAt: subject.now - 1_000 }))),
    ).to.deep.equal({ a: 0 });
  });

  it('keeps the buffer of an unused group if the quiet window is off', () => {
    const subject = new AGroup({ group: aGroup({ up: { idleZeroQuietWindowSeconds: 0 } }) });

    expect(sizesOf(subject.watch(900, aMember({ idle: 4, claimedAt: 0 })))).to.deep.equal({ a: 1 });
  });

  it('restarts its windows after a gap in its evaluations', () => {
    const subject = new AGroup();
    subject.watch(890, aMember({ running: 10, idle: 8 }));

    expect(subject.look(91, aMember({ running: 10, idle: 8 })).decision).to.equal(undefined);
    expect(subject.watch(800, aMember({ running: 10, idle: 8 })).decision).to.equal(undefined);
  });

  it('continues after a restart from the saved state', () => {
    const subject = new AGroup();
    subject.watch(895, aMember({ running: 10, idle: 8 }));
    subject.memory = JSON.parse(JSON.stringify(subject.memory));

    expect(sizesOf(subject.look(5, aMember({ running: 10, idle: 8 })))).to.deep.equal({ a: 11 });
  });
});

describe('an autoscaling decision', () => {
  it('records observed, wanted and applied sizes, and the limit that stopped it', () => {
    const subject = new AGroup();
    const { decision } = afterThreshold(subject, aMember({ running: 3, pending: 5 }));

    expect(decision).to.deep.equal({
      id: subject.now,
      at: subject.now,
      cause: 'demand',
      changes: [{ member: 'a', from: 3, to: 6 }],
      seen: { desired: 3, running: 3, idle: 0, starting: 0, pending: 5 },
      wanted: 9,
      reason: '3 running, 0 idle, 0 starting, 5 requested; Moderate wants 1 idle',
      limitedBy: ['Moderate adds 3 at a time'],
    });
  });

  it('has a higher number than all decisions that its members know', () => {
    const subject = new AGroup();

    expect(
      afterThreshold(subject, aMember({ running: 3, decided: 99_000_000 })).decision?.id,
    ).to.equal(99_000_001);
  });
});

describe("a limit on a group's growth", () => {
  const full = aMember({ running: 4, pending: 2 });
  const told = (end: ReturnType<AGroup['look']>) => end.decision?.limitedBy;

  it('is recorded once, as a decision without changes', () => {
    const subject = new AGroup({ group: aGroup({ maxReplicas: 4 }) });
    const first = subject.look(0, full);

    expect(first.decision).to.deep.equal({
      id: subject.now,
      at: subject.now,
      cause: 'demand',
      changes: [],
      seen: { desired: 4, running: 4, idle: 0, starting: 0, pending: 2 },
      wanted: 7,
      reason: '4 running, 0 idle, 0 starting, 2 requested; Moderate wants 1 idle',
      limitedBy: ["the group's maximum is 4"],
      limits: [{ reason: 'MaxReplicasReached', message: "the group's maximum is 4" }],
    });
    expect(subject.watch(3_600, full).decision, 'for an hour').to.equal(undefined);
  });

  it("is a quota, a member's maximum, failing starts, or an unreachable member", () => {
    const reasonsOf = (...[first, ...others]: readonly Parameters<typeof aMember>[0][]) =>
      new AGroup({ rules: [aRule({ maxReplicas: first?.running === 9 ? 9 : 100 })] })
        .look(0, ...[first, ...others].map((parts) => aMember({ pending: 1, ...parts })))
        .decision?.limits?.map(({ reason }) => reason);

    expect(reasonsOf({ running: 4, quota: 0 })).to.deep.equal(['QuotaReached']);
    expect(reasonsOf({ running: 9 })).to.deep.equal(['MaxReplicasReached']);
    expect(reasonsOf({ running: 4, reachable: false })).to.deep.equal(['MemberUnreachable']);
    const trouble = (reason: 'quota' | 'unschedulable' | 'start failures') =>
      reasonsOf({ desired: 4, trouble: { reason, count: 4, since: 9_000_000 } });
    expect(trouble('quota')).to.deep.equal(['QuotaReached']);
    expect(trouble('unschedulable')).to.deep.equal(['MemberUnschedulable']);
    expect(trouble('start failures')).to.deep.equal(['MemberStartFailures']);
  });

  it('is reported with the growth that it cuts short, and not again', () => {
    const subject = new AGroup({
      group: aGroup({ maxReplicas: 5, up: { mode: 'Aggressive' } }),
    });

    expect(subject.look(0, aMember({ running: 4, pending: 2 })).decision).to.deep.include({
      changes: [{ member: 'a', from: 4, to: 5 }],
      limitedBy: ["the group's maximum is 5"],
    });
    expect(subject.watch(60, aMember({ running: 5, pending: 2 })).decision).to.equal(undefined);
  });

  it('is reported again after another limit, or after five minutes without it', () => {
    const subject = new AGroup({ group: aGroup({ maxReplicas: 4 }) });
    expect(told(subject.look(0, full))).to.deep.equal(["the group's maximum is 4"]);
    expect(told(subject.look(5, { ...full, quota: 0 }))).to.deep.equal([
      "the group's maximum is 4",
      'the quota is used up',
    ]);

    const content = aMember({ running: 3, idle: 1 });
    subject.watch(60, content);
    expect(subject.watch(60, full).decision, 'it was away for a minute').to.equal(undefined);
    subject.watch(300, content);
    expect(told(subject.look(5, full))).to.deep.equal(["the group's maximum is 4"]);
  });

  it('is not reported without demand, or if the group only waits', () => {
    const quiet = new AGroup({ group: aGroup({ maxReplicas: 4 }) });
    expect(quiet.watch(60, aMember({ running: 4, claimedAt: 1 })).decision).to.equal(undefined);

    const patient = new AGroup({ group: aGroup({ up: { idleThresholdSeconds: 3_600 } }) });
    const { decision, outlook } = patient.watch(60, aMember({ running: 4 }));
    expect(decision).to.equal(undefined);
    expect(outlook.limits).to.deep.equal([]);
  });

  it('is remembered in bounded memory', () => {
    const subject = new AGroup();
    for (let most = 4; most < 104; most++) {
      subject.group = aGroup({ maxReplicas: most });
      subject.look(1, aMember({ running: most, pending: 2 }));
    }
    expect(Object.keys(subject.memory.limited)).to.have.length(64);
  });
});
