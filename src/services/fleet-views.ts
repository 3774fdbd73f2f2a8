import type { TemplateState } from '../model/fleet/cluster.ts';
import type { Caller } from '../model/tenant.ts';

/** Shows a worker's managers, and whether it lets them in. */
export interface ManagersView {
  /** Addresses, as the settings have them. */
  readonly addresses: readonly string[];
  /** Since when they are cut off, in ms; undefined: they are not. */
  readonly cutOffAt: number | undefined;
  /** Counts the links of the replica that answers. */
  readonly links: number;
}

/** The use cases of a worker's managers, for its own admins. */
export interface ManagersOperations {
  readonly getManagers: () => ManagersView;
  /** Durable when it resolves. */
  readonly setManagers: (
    caller: Caller,
    change: { readonly cutOff: boolean },
  ) => Promise<ManagersView>;
}

/** Shows how one cluster stands to a global template of its manager. */
export interface TemplateClusterView {
  readonly clusterId: string;
  readonly state: TemplateState;
  /** The one that it has; undefined: none, or it does not say. */
  readonly version: string | undefined;
  readonly message: string | undefined;
  /** When it said so, or was heard of last, in ms; undefined: never since the daemon started. */
  readonly at: number | undefined;
}
