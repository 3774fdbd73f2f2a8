import { expect } from 'chai';
import { type EnvStory, explainEnv } from '../../src/cli/show/explain-env.ts';
import type {
  AutoscalingGroup,
  Env,
  ObservedMember,
  ScalingDecision,
} from '../../src/cli/client/wire.ts';
import {
  DEFAULT_SCALE_DOWN_POLICY,
  DEFAULT_SCALE_UP_POLICY,
} from '../../src/model/envs/autoscaling-group.ts';

const NOW = '2026-01-02T03:04:05.000Z';
const before = (seconds: number): string =>
  new Date(Date.parse(NOW) - seconds * 1_000).toISOString();

const aMember = (more: Partial<ObservedMember> = {}): ObservedMember => ({
  name: 'small',
  state: 'Active',
  idleCount: 2,
  runningCount: 3,
  desiredReplicas: 6,
  currentReplicas: 6,
  pendingRequests: 0,
  scalingGroup: 'small',
  autoscalingEnabled: true,
  scaleUpHeadroom: 4,
  updateRevision: 'abc',
  updatedReplicas: 6,
  templateVersion: '1',
  ...more,
});

const aGroup = (more: Partial<AutoscalingGroup> = {}): AutoscalingGroup => ({
  name: 'small',
  enabled: true,
  minReplicas: 1,
  maxReplicas: 10,
  scaleUpPolicy: { ...DEFAULT_SCALE_UP_POLICY, mode: 'Moderate' },
  scaleDownPolicy: { ...DEFAULT_SCALE_DOWN_POLICY },
  ...more,
});

const aChange = (from: number, to: number): ScalingDecision['changes'][number] => ({
  member: 'small',
  from,
  to,
  outcome: 'done',
});

const aDecision = (more: Partial<ScalingDecision> = {}): ScalingDecision => ({
  id: 7,
  at: before(40),
  cause: 'demand',
  changes: [aChange(3, 6)],
  wanted: 8,
  seen: { desired: 3, running: 3, idle: 0, starting: 0, pendingRequests: 1 },
  reason: '3 running, 0 idle, 0 starting, 1 requested; Moderate wants 1 idle',
  limitedBy: [],
  ...more,
});

const aStory = ({
  members = [aMember()],
  groups = [aGroup()],
  decisions = [],
  conditions = [],
}: {
  readonly members?: readonly ObservedMember[];
  readonly groups?: readonly AutoscalingGroup[];
  readonly decisions?: readonly ScalingDecision[];
  readonly conditions?: Env['status']['conditions'];
} = {}): EnvStory => {
  const sum = (of: (member: ObservedMember) => number): number =>
    members.reduce((total, member) => total + of(member), 0);
  const env: Env = {
    name: 'web',
    namespace: 'team-blue',
    labels: {},
    team: 'blue',
    user: 'ada',
    createdAt: before(3_600),
    spec: {
      templateRef: { name: 'default' },
      mode: 'WarmPool',
      defaults: {},
      clusters: [],
      autoscaling: { groups: [...groups] },
      overrides: {},
    },
    status: {
      conditions,
      clusters: [
        { clusterID: 'local', isLocal: true, lastSnapshotTime: NOW, observedMembers: [...members] },
      ],
      scalingGroups: [],
      memberCount: members.length,
      desiredReplicas: sum(({ desiredReplicas }) => desiredReplicas),
      runningReplicas: sum(({ runningCount }) => runningCount),
      idleReplicas: sum(({ idleCount }) => idleCount),
    },
  };
  return { env, decisions: new Map([['small', decisions]]) };
};

describe('sandpool envs explain', () => {
  it('shows the state of a group and its inputs', () => {
    const text = explainEnv(aStory());
    expect(text).to.match(
      /^env web should have 6 instances: 3 are running, 2 idle\n\ngroup small sizes small to demand: Moderate, 1 to 10\n {2}now it has 6: 3 running, 2 idle, 1 on the way\n/,
    );
    expect(text).to.include(
      'it removes instances that were idle for all of the last 10m, down to the highest size that it wanted in the last 5m',
    );
    expect(text).to.include('it has decided nothing yet');
  });

  it('shows the last decision, its reason and its limits', () => {
    const text = explainEnv(
      aStory({
        decisions: [
          aDecision({ limitedBy: ['Moderate adds 3 at a time'] }),
          aDecision({
            at: before(2 * 86_400),
            cause: 'surplus',
            changes: [aChange(5, 3)],
            reason: 'not needed for 600 s',
          }),
        ],
      }),
    );
    expect(text).to.include(
      '  last, 40s ago: small from 3 to 6: 3 running, 0 idle, 0 starting, 1 requested; Moderate wants 1 idle; not more: Moderate adds 3 at a time\n',
    );
    expect(text).to.include(
      '  before that, at 2025-12-31T03:04:05Z: small from 5 to 3: not needed for 600 s\n',
    );
  });

  it('shows how long a group cools down and keeps its instances', () => {
    expect(explainEnv(aStory({ decisions: [aDecision()] })))
      .to.include('it does not grow again for 20s (1m in all)')
      .and.include('no instance is removed for 1m20s: until 2m after the last growth');
    expect(explainEnv(aStory({ decisions: [aDecision({ at: before(61) })] }))).to.not.include(
      'is cooling down',
    );
    expect(
      explainEnv(aStory({ decisions: [aDecision({ cause: 'limits' })] })),
      'the owner’s bounds are kept without one',
    ).to.not.include('is cooling down');
    expect(
      explainEnv(
        aStory({ decisions: [aDecision({ cause: 'surplus', changes: [aChange(8, 6)] })] }),
      ),
    ).to.not.include('is cooling down');
    expect(
      explainEnv(aStory({ decisions: [aDecision({ cause: 'limits' }), aDecision()] })),
      'nor do they end one',
    ).to.include('is cooling down');
    expect(
      explainEnv(
        aStory({
          groups: [aGroup({ scaleUpPolicy: { ...DEFAULT_SCALE_UP_POLICY, mode: 'Aggressive' } })],
          decisions: [aDecision()],
        }),
      ),
    ).to.include('(1m in all), unless demand exceeds what is starting');
  });

  it('shows no cooldown after a failed scale-up', () => {
    const refused = aDecision({
      changes: [{ ...aChange(3, 6), outcome: 'refused', refusedFor: 'quota' }],
    });
    expect(explainEnv(aStory({ decisions: [refused] })))
      .to.include(': small from 3 to 6 (refused: quota): ')
      .and.not.include('is cooling down');
    expect(
      explainEnv(
        aStory({
          decisions: [aDecision({ cause: 'failure', changes: [aChange(6, 4)] }), aDecision()],
        }),
      ),
    ).to.not.include('is cooling down');
  });

  it('shows the limiting setting', () => {
    expect(explainEnv(aStory({ groups: [aGroup({ maxReplicas: 6 })] }))).to.include(
      'that is its maximum; raise it: sandpool envs groups set web small --max N',
    );
    expect(explainEnv(aStory({ groups: [aGroup({ minReplicas: 6 })] }))).to.include(
      'that is its minimum',
    );
    expect(explainEnv(aStory({ members: [aMember({ scaleUpHeadroom: 0 })] }))).to.include(
      'none of its members may grow further',
    );
    expect(
      explainEnv(
        aStory({
          conditions: [
            {
              type: 'ScalingLimited',
              status: 'True',
              reason: 'Contradiction',
              message: 'the least of small is above the most of its group',
              lastTransitionTime: NOW,
            },
          ],
        }),
      ),
    ).to.include('  the least of small is above the most of its group\n');
  });

  it('shows why a group could not grow', () => {
    const text = explainEnv(
      aStory({
        decisions: [aDecision({ changes: [], limitedBy: ['the quota is used up'] })],
        conditions: [
          {
            type: 'QuotaOk',
            status: 'False',
            reason: 'QuotaReached',
            message: 'group small: the quota is used up',
            lastTransitionTime: NOW,
          },
        ],
      }),
    );

    expect(text)
      .to.include('  group small: the quota is used up\n')
      .and.include('last, 40s ago: it could not grow: 3 running, 0 idle, 0 starting')
      .and.include('; not more: the quota is used up');
  });

  it('shows saturated, unreachable and leaving members, and the number of waiting claims', () => {
    const until = new Date(Date.parse(NOW) + 90_000).toISOString();
    const text = explainEnv(
      aStory({
        members: [
          aMember({ state: 'Saturated', saturatedUntil: until, pendingRequests: 1 }),
          aMember({ name: 'big', state: 'Draining' }),
        ],
      }),
    );
    expect(text)
      .to.include(
        'member small is saturated: its last instances could not start, and it is skipped for 1m30s',
      )
      .and.include('member big is Draining')
      .and.include('; 1 claim waiting or refused');
  });

  it('identifies a disabled group, one that never shrinks, and a member without a group', () => {
    expect(explainEnv(aStory({ groups: [aGroup({ enabled: false })] })))
      .to.include('group small is off: its members keep their size')
      .and.not.include('decided');
    expect(
      explainEnv(
        aStory({
          groups: [
            aGroup({ scaleDownPolicy: { ...DEFAULT_SCALE_DOWN_POLICY, idleTimeoutSeconds: 0 } }),
          ],
        }),
      ),
    ).to.include('it never shrinks');
    const { scalingGroup: _none, ...alone } = aMember();
    expect(explainEnv(aStory({ members: [alone] })))
      .to.include('member small is in no group: it keeps the 6')
      .and.include('group small has no members');
  });

  it('gives the next step for an env without members', () => {
    expect(explainEnv(aStory({ members: [], groups: [] }))).to.equal(
      'env web has no members; add one: sandpool envs members add web\n',
    );
  });

  it('escapes control sequences in foreign text', () => {
    expect(explainEnv(aStory({ decisions: [aDecision({ reason: 'a\u001b[2Jb' })] }))).to.include(
      'a?[2Jb',
    );
  });
});
