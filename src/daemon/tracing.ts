import type { Config } from '../config/config.ts';
import type { Clock } from '../contracts/clock.ts';
import type { Log } from '../contracts/log.ts';
import type { Tracer } from '../contracts/tracing.ts';
import { version } from '../process/version.ts';

/** Undefined where no collector is configured; then none of it is loaded. */
export const openTracing = async (
  { tracing: { endpoint, samplePercent } }: Config,
  deps: { readonly log: Log; readonly clock: Clock; readonly replica: string },
): Promise<(Tracer & { stop(): Promise<void> }) | undefined> => {
  if (endpoint === undefined) return undefined;
  const { OtlpTracer } = await import('../tracing/otlp-tracer.ts');
  return new OtlpTracer({ ...deps, endpoint, samplePercent, version: version() });
};
