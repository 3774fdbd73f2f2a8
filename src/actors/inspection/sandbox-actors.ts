import type { SandboxDriver } from '../../contracts/sandbox-driver.ts';
import { idOfPodName, isInstanceId } from '../../model/identifiers.ts';
import type { Supervisor } from '../sandbox/supervisor.ts';
import { inspectBroken } from './inspect-broken.ts';
import { inspectSandbox, shownInstance } from './inspect-sandbox.ts';
import type { InspectedActors } from './inspected-actors.ts';

export const inspectedSandboxes = ({
  supervisor,
  driver,
}: {
  readonly supervisor: Supervisor;
  readonly driver: Pick<SandboxDriver, 'read'>;
}): InspectedActors => ({
  transitions: supervisor.actors.transitions,
  keyOf: (text) => [text, idOfPodName(text)].find((id) => id !== undefined && isInstanceId(id)),
  ofPool: (poolUid) => ({ group: poolUid }),
  inspect: (id) => {
    const snapshot = supervisor.sandbox(id);
    const { since = 0, group: shardKey = '' } = supervisor.actors.transitions.current(id) ?? {};
    if (snapshot) return inspectSandbox(snapshot, since);
    const named = { kind: 'sandbox', key: id, name: `sb-${id}`, shardKey } as const;
    return supervisor.actors.rebuilds.isBroken(id) ? inspectBroken(named, since) : undefined;
  },
  durable: async (id) => {
    const { record } = await driver.read(id);
    return record && shownInstance(record);
  },
  pendingOf: (id) => supervisor.actors.pendingOf(id),
  rebuild: (id) => supervisor.rebuild(id),
});
