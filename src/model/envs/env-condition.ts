export const ENV_CONDITIONS = [
  'Ready',
  'TemplateResolved',
  'MembersSynced',
  'QuotaOk',
  'Progressing',
  'ScalingLimited',
] as const;

/**
 * `reason` is in CamelCase; `since` is the last change of `status` in milliseconds since the epoch.
 */
export interface EnvCondition {
  readonly type: (typeof ENV_CONDITIONS)[number];
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  readonly since: number;
}
