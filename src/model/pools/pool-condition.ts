export const POOL_CONDITIONS = ['Progressing', 'Degraded', 'TemplateResolved'] as const;

/**
 * `reason` is a word in CamelCase; `since` when `status` last changed, in milliseconds since the
 * epoch.
 */
export interface PoolCondition {
  readonly type: (typeof POOL_CONDITIONS)[number];
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  readonly since: number;
}

/** Whether it says that something of the pool is at fault now. */
export const isDegraded = ({ type, status }: Pick<PoolCondition, 'type' | 'status'>): boolean =>
  type === 'Degraded' && status === 'True';
