import type { TemplateState } from '../model/fleet/cluster.ts';
import type { Caller } from '../model/tenant.ts';

export interface ManagersView {
  readonly addresses: readonly string[];
  /** In ms; undefined if the managers are not cut off. */
  readonly cutOffAt: number | undefined;
  /** Counts those of the answering replica. */
  readonly links: number;
}

/** For a worker's own admins. */
export interface ManagersOperations {
  readonly getManagers: () => ManagersView;
  /** Durable when it resolves. */
  readonly setManagers: (
    caller: Caller,
    change: { readonly cutOff: boolean },
  ) => Promise<ManagersView>;
}

export interface TemplateClusterView {
  readonly clusterId: string;
  readonly state: TemplateState;
  /** Undefined if the cluster lacks the template or does not report it. */
  readonly version: string | undefined;
  readonly message: string | undefined;
  /**
   * Time of the report, or of the cluster's last message, in ms; undefined if there was neither
   * since the daemon started.
   */
  readonly at: number | undefined;
}
