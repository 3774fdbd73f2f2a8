import type { TemplateState } from '../model/fleet/cluster.ts';
import type { Caller } from '../model/tenant.ts';

/** A worker's managers, and whether they are cut off. */
export interface ManagersView {
  /** Addresses from the settings. */
  readonly addresses: readonly string[];
  /** Time of the cut-off in ms; undefined if they are not cut off. */
  readonly cutOffAt: number | undefined;
  /** Number of the answering replica's links. */
  readonly links: number;
}

/** Use cases of a worker's managers, for its own admins. */
export interface ManagersOperations {
  readonly getManagers: () => ManagersView;
  /** Durable when it resolves. */
  readonly setManagers: (
    caller: Caller,
    change: { readonly cutOff: boolean },
  ) => Promise<ManagersView>;
}

/** A cluster's state of a global template of its manager. */
export interface TemplateClusterView {
  readonly clusterId: string;
  readonly state: TemplateState;
  /** Version on the cluster; undefined if it has none or does not report it. */
  readonly version: string | undefined;
  readonly message: string | undefined;
  /**
   * Time of the report, or of the cluster's last message, in ms; undefined if there was neither
   * since the daemon started.
   */
  readonly at: number | undefined;
}
