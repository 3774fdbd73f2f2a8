import { inspectedApprovals } from '../actors/inspection/approval-actors.ts';
import { inspectedGroups, inspectedMembers } from '../actors/inspection/env-actors.ts';
import type { InspectedKinds } from '../actors/inspection/inspected-actors.ts';
import { inspectedPools } from '../actors/inspection/pool-actors.ts';
import { inspectedSandboxes } from '../actors/inspection/sandbox-actors.ts';
import type { Supervisor } from '../actors/sandbox/supervisor.ts';
import type { ApprovalsOfDaemon } from './assembly/approvals.ts';
import type { Assembly } from './assembly/assembly.ts';
import type { EnvParts } from './envs.ts';

export interface InspectionParts {
  readonly parts: Pick<Assembly, 'driver'> & {
    readonly records: Pick<Assembly['records'], 'pools' | 'envs'>;
  };
  readonly supervisor: Supervisor;
  readonly envs: Pick<EnvParts, 'mirror' | 'members' | 'groups'>;
  readonly approvals: Pick<ApprovalsOfDaemon, 'mirror' | 'host'>;
}

export const inspectedKinds = ({
  parts: { driver, records },
  supervisor,
  envs: { mirror, members, groups },
  approvals,
}: InspectionParts): InspectedKinds => {
  const { pools } = supervisor;
  const ofEnvs = { envs: mirror, records: records.envs, pools };
  return {
    sandbox: inspectedSandboxes({ supervisor, driver }),
    pool: inspectedPools({ pools, records: records.pools }),
    member: inspectedMembers({ ...ofEnvs, members }),
    group: inspectedGroups({ ...ofEnvs, groups }),
    approval: inspectedApprovals(approvals),
  };
};
