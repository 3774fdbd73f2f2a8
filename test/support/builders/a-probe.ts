import type { ProbeAction, ReadinessProbe } from '../../../src/model/templates/readiness-probe.ts';

/** Kubernetes' defaults. */
export const aProbe = (
  action: ProbeAction,
  part: Partial<ReadinessProbe> = {},
): ReadinessProbe => ({
  action,
  initialDelayMs: 0,
  periodMs: 10_000,
  timeoutMs: 1_000,
  successThreshold: 1,
  failureThreshold: 3,
  ...part,
});

export const execProbe = (
  argv: readonly string[],
  part: Partial<ReadinessProbe> = {},
): ReadinessProbe => aProbe({ kind: 'exec', argv }, part);
export const tcpProbe = (port: number, part: Partial<ReadinessProbe> = {}): ReadinessProbe =>
  aProbe({ kind: 'tcp', port }, part);
export const httpProbe = (
  port: number,
  path: string,
  part: Partial<ReadinessProbe> = {},
): ReadinessProbe =>
  aProbe({ kind: 'http', port, path, secure: false, headers: [['X-Of-Probe', '1']] }, part);
