import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Attributes,
  type Context,
  type Span,
  type Tracer as OtelApiTracer,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { CompressionAlgorithm } from '@opentelemetry/otlp-exporter-base';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  type ReadableSpan,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { OutgoingCall, RequestSpan, Tracer } from '../../contracts/tracing.ts';
import { traceParentText, type TraceParent } from '../../model/trace-context.ts';

export interface OtelTracerDeps {
  /** Such as `http://127.0.0.1:4318`. Spans go to `/v1/traces` below it. */
  readonly endpoint: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly compression?: 'none' | 'gzip';
  /** `service.name` and others. */
  readonly resource: Readonly<Record<string, string>>;
  readonly samplePercent: number;
  readonly version: string;
  readonly log: Log;
  readonly clock: Clock;
  readonly delayMs?: number;
}

const MOST_STEPS = 32;
const MOST_CALLS = 32;
const MOST_WAITING = 4_096;
const MOST_IN_A_BATCH = 512;
const DELAY_MS = 2_000;
const EXPORT_MS = 5_000;
const LAST_EXPORT_MS = 2_000;

export class OtelTracer implements Tracer {
  readonly #provider: BasicTracerProvider;
  readonly #tracer: OtelApiTracer;
  readonly #clock: Clock;

  constructor({ samplePercent, version, resource, clock, ...deps }: OtelTracerDeps) {
    this.#provider = new BasicTracerProvider({
      resource: defaultResource().merge(resourceFromAttributes(resource)),
      sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(samplePercent / 100) }),
      spanProcessors: [processorTo(deps)],
    });
    this.#clock = clock;
    this.#tracer = this.#provider.getTracer('sandpool', version);
  }

  begin(parent: TraceParent | undefined): RequestSpan {
    const tracer = this.#tracer;
    const [wall, began] = [this.#clock.now(), performance.now()];
    // Spans of one request share one origin, or their order within a millisecond would be lost.
    const at = (moment: number): number => wall + moment - began;
    const span = tracer.startSpan(
      'request',
      { kind: SpanKind.SERVER, startTime: wall },
      contextOf(parent),
    );
    const { traceId, spanId, traceFlags } = span.spanContext();
    const sampled = (traceFlags & TraceFlags.SAMPLED) !== 0;
    const within = trace.setSpan(ROOT_CONTEXT, span);
    let [steps, calls] = [0, 0];
    return {
      traceId,
      spanId,
      sampled,
      step: (name, from, to) => {
        if (!sampled || ++steps > MOST_STEPS) return;
        tracer.startSpan(name, { startTime: at(from) }, within).end(at(to));
      },
      call: (name) => {
        if (!sampled) return callOf(span);
        const call = tracer.startSpan(
          name,
          { kind: SpanKind.CLIENT, startTime: at(performance.now()) },
          within,
        );
        return {
          ...callOf(call),
          // A mirror may see a write, and the request may be answered, before the write's own
          // answer.
          ended: (outcome, attributes) => {
            if (++calls > MOST_CALLS) return;
            withOutcome(call, outcome, attributes).end(at(performance.now()));
          },
        };
      },
      end: (name, attributes, outcome) => {
        withOutcome(span.updateName(name), outcome, attributes).end(at(performance.now()));
      },
    };
  }

  async stop(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LAST_EXPORT_MS);
    });
    // The exporter has logged the collector's refusals.
    await Promise.race([this.#provider.shutdown().catch(() => undefined), over]);
    clearTimeout(timer);
  }
}

const processorTo = ({
  endpoint,
  headers,
  compression,
  log,
  delayMs,
}: Pick<
  OtelTracerDeps,
  'endpoint' | 'headers' | 'compression' | 'log' | 'delayMs'
>): BatchSpanProcessor => {
  const url = `${endpoint.replace(/\/$/, '')}/v1/traces`;
  const exporter = new OTLPTraceExporter({
    url,
    timeoutMillis: EXPORT_MS,
    ...(headers ? { headers } : {}),
    compression: compression === 'gzip' ? CompressionAlgorithm.GZIP : CompressionAlgorithm.NONE,
  });
  return new BatchSpanProcessor(new ReportedExporter(exporter, { collector: url, log }), {
    maxQueueSize: MOST_WAITING,
    maxExportBatchSize: MOST_IN_A_BATCH,
    scheduledDelayMillis: delayMs ?? DELAY_MS,
    exportTimeoutMillis: EXPORT_MS,
  });
};

const contextOf = (parent: TraceParent | undefined): Context =>
  parent
    ? trace.setSpanContext(ROOT_CONTEXT, {
        traceId: parent.traceId,
        spanId: parent.parentId,
        traceFlags: parent.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
        isRemote: true,
      })
    : ROOT_CONTEXT;

/** Propagates this span but does not end it. */
const callOf = (span: Span): OutgoingCall => {
  const { traceId, spanId, traceFlags } = span.spanContext();
  const sampled = (traceFlags & TraceFlags.SAMPLED) !== 0;
  return {
    traceparent: traceParentText({ traceId, parentId: spanId, sampled }),
    ended: () => undefined,
  };
};

const withOutcome = (span: Span, outcome: 'good' | 'failed', attributes: Attributes): Span => {
  span.setAttributes(attributes);
  return outcome === 'failed' ? span.setStatus({ code: SpanStatusCode.ERROR }) : span;
};

type Result = Parameters<Parameters<SpanExporter['export']>[1]>[0];

/** Logs once when exports start to fail, and once when they work again. */
class ReportedExporter implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #collector: string;
  readonly #log: Log;
  #failing = false;

  constructor(
    exporter: SpanExporter,
    { collector, log }: { readonly collector: string; readonly log: Log },
  ) {
    this.#exporter = exporter;
    this.#collector = collector;
    this.#log = log;
  }

  export(spans: ReadableSpan[], done: (result: Result) => void): void {
    this.#exporter.export(spans, (result) => {
      this.#report(result.error);
      done(result);
    });
  }

  async shutdown(): Promise<void> {
    await this.#exporter.shutdown();
  }

  async forceFlush(): Promise<void> {
    await this.#exporter.forceFlush?.();
  }

  #report(error: Error | undefined): void {
    const collector = this.#collector;
    if ((error !== undefined) === this.#failing) return;
    this.#failing = error !== undefined;
    if (error) this.#log.warn({ collector, failure: failureOf(error) }, 'traces-not-accepted');
    else this.#log.info({ collector }, 'traces-accepted-again');
  }
}

/** Gives only the collector's status, since its answer is not logged. */
const failureOf = (error: Error): string =>
  'code' in error && typeof error.code === 'number' ? `it answered ${error.code}` : error.message;
