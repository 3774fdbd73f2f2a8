import type { Config } from './config/config.ts';
import type { Clock } from '../contracts/clock.ts';
import type { Log } from '../contracts/log.ts';
import type { Tracer } from '../contracts/tracing.ts';
import { version } from './process/version.ts';

/** Undefined without a collector; OpenTelemetry's SDK is not loaded then. */
export const openTracing = async (
  { tracing }: Config,
  { log, clock, replica }: { readonly log: Log; readonly clock: Clock; readonly replica: string },
): Promise<(Tracer & { stop(): Promise<void> }) | undefined> => {
  const { endpoint, samplePercent, compression, headers, serviceName } = tracing;
  if (endpoint === undefined) return undefined;
  const { OtelTracer } = await import('./tracing/otel-tracer.ts');
  return new OtelTracer({
    endpoint,
    headers: recordOf(headers),
    compression: compression ?? 'none',
    resource: {
      'service.name': 'sandpool',
      'service.version': version(),
      'service.instance.id': replica,
      ...recordOf(tracing.resourceAttributes),
      ...(serviceName === undefined ? {} : { 'service.name': serviceName }),
    },
    samplePercent,
    version: version(),
    log,
    clock,
  });
};

const recordOf = (
  all: readonly { readonly name: string; readonly value: string }[] = [],
): Readonly<Record<string, string>> =>
  Object.fromEntries(all.map(({ name, value }) => [name, value]));
