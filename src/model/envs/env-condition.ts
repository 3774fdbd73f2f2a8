export const ENV_CONDITIONS = [
  'Ready',
  'TemplateResolved',
  'MembersSynced',
  'QuotaOk',
  'Progressing',
  'ScalingLimited',
] as const;

/** `since` in ms since the epoch. */
export interface EnvCondition {
  readonly type: (typeof ENV_CONDITIONS)[number];
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  readonly since: number;
}
