export const POOL_CONDITIONS = ['Progressing', 'Degraded', 'TemplateResolved'] as const;

/**
 * `reason` is in CamelCase; `since` is the last change of `status` in milliseconds since the epoch.
 */
export interface PoolCondition {
  readonly type: (typeof POOL_CONDITIONS)[number];
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  readonly since: number;
}

/** Whether it reports a current fault of the pool. */
export const isDegraded = ({ type, status }: Pick<PoolCondition, 'type' | 'status'>): boolean =>
  type === 'Degraded' && status === 'True';
