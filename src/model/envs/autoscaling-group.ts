export const SCALE_UP_MODES = ['Conservative', 'Moderate', 'Aggressive'] as const;
export type ScaleUpMode = (typeof SCALE_UP_MODES)[number];

export interface ScaleUpPolicy {
  readonly mode: ScaleUpMode;
  readonly cooldownSeconds: number;
  readonly idleThresholdSeconds: number;
  /** 0 grows at idle 0 even without a recent claim. */
  readonly idleZeroQuietWindowSeconds: number;
  readonly saturationCooldownSeconds: number;
}

export interface ScaleDownPolicy {
  /** 0 never scales down. */
  readonly idleTimeoutSeconds: number;
  readonly stabilizationSeconds: number;
  readonly protectionWindowSeconds: number;
}

/** Its bounds apply to the sum of its members. */
export interface AutoscalingGroup {
  readonly name: string;
  readonly enabled: boolean;
  readonly minReplicas: number;
  readonly maxReplicas: number;
  readonly scaleUpPolicy: ScaleUpPolicy;
  readonly scaleDownPolicy: ScaleDownPolicy;
}

export const DEFAULT_SCALE_UP_POLICY: ScaleUpPolicy = {
  mode: 'Conservative',
  cooldownSeconds: 60,
  idleThresholdSeconds: 10,
  idleZeroQuietWindowSeconds: 60,
  saturationCooldownSeconds: 120,
};

export const DEFAULT_SCALE_DOWN_POLICY: ScaleDownPolicy = {
  idleTimeoutSeconds: 600,
  stabilizationSeconds: 300,
  protectionWindowSeconds: 120,
};

/** A refused claimant counts as demand this long, even if the quiet window is off. */
export const askingMs = ({ idleZeroQuietWindowSeconds }: ScaleUpPolicy): number =>
  (idleZeroQuietWindowSeconds || DEFAULT_SCALE_UP_POLICY.idleZeroQuietWindowSeconds) * 1_000;

export const groupFor = (
  name: string,
  bounds: {
    readonly replicas: number;
    readonly minReplicas?: number;
    readonly maxReplicas?: number;
    readonly mode?: ScaleUpMode;
  },
): AutoscalingGroup => ({
  name,
  enabled: true,
  minReplicas: bounds.minReplicas ?? 0,
  maxReplicas: bounds.maxReplicas ?? bounds.replicas,
  scaleUpPolicy: bounds.mode
    ? { ...DEFAULT_SCALE_UP_POLICY, mode: bounds.mode }
    : DEFAULT_SCALE_UP_POLICY,
  scaleDownPolicy: DEFAULT_SCALE_DOWN_POLICY,
});

/** Absent fields stay. */
export interface GroupChange extends Partial<
  Pick<AutoscalingGroup, 'enabled' | 'minReplicas' | 'maxReplicas'>
> {
  readonly scaleUpPolicy?: Partial<ScaleUpPolicy>;
  readonly scaleDownPolicy?: Partial<ScaleDownPolicy>;
}
