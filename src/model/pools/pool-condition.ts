export const POOL_CONDITIONS = ['Progressing', 'Degraded', 'TemplateResolved'] as const;

/** `since` in ms since the epoch. */
export interface PoolCondition {
  readonly type: (typeof POOL_CONDITIONS)[number];
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  readonly since: number;
}

export const isDegraded = ({ type, status }: Pick<PoolCondition, 'type' | 'status'>): boolean =>
  type === 'Degraded' && status === 'True';
