/**
 * Which of the ways to grow a group takes: from what keeps cost low to what keeps waiting short.
 */
export const SCALE_UP_MODES = ['Conservative', 'Moderate', 'Aggressive'] as const;
export type ScaleUpMode = (typeof SCALE_UP_MODES)[number];

/** All in whole seconds. */
export interface ScaleUpPolicy {
  readonly mode: ScaleUpMode;
  readonly cooldownSeconds: number;
  readonly idleThresholdSeconds: number;
  /** 0: grows at idle 0 whether or not a claim came. */
  readonly idleZeroQuietWindowSeconds: number;
  readonly saturationCooldownSeconds: number;
}

/** All in whole seconds. */
export interface ScaleDownPolicy {
  /** 0: never scales down. */
  readonly idleTimeoutSeconds: number;
  readonly stabilizationSeconds: number;
  readonly protectionWindowSeconds: number;
}

/**
 * Keeps the members that name it as their `scalingGroup` sized to demand. Its bounds are over all
 * of them.
 */
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

/**
 * For how long one who was refused counts as asking, in ms. Where the quiet window is off it still
 * ends some time.
 */
export const askingMs = ({ idleZeroQuietWindowSeconds }: ScaleUpPolicy): number =>
  (idleZeroQuietWindowSeconds || DEFAULT_SCALE_UP_POLICY.idleZeroQuietWindowSeconds) * 1_000;

/** The group that comes with a member. */
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

/** A change of a group; what is not named stays. */
export interface GroupChange extends Partial<
  Pick<AutoscalingGroup, 'enabled' | 'minReplicas' | 'maxReplicas'>
> {
  readonly scaleUpPolicy?: Partial<ScaleUpPolicy>;
  readonly scaleDownPolicy?: Partial<ScaleDownPolicy>;
}
