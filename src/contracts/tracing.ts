import type { TraceParent } from '../model/trace-context.ts';

/** A step of a request, between two values of `performance.now()`. */
export type OnStep = (name: string, began: number, ended: number) => void;

/** A request to another service on behalf of a request of ours. */
export interface OutgoingCall {
  /** The header of that name (W3C Trace Context). */
  readonly traceparent: string;
  /** Call it once. `attributes` as in a request. */
  ended(outcome: 'good' | 'failed', attributes: Readonly<Record<string, string | number>>): void;
}

/** A trace that continues in other services. */
export interface OngoingTrace {
  /** Begins a request to another service. `name` has few values. */
  call(name: string): OutgoingCall;
}

/**
 * Identifies the request for which a call to another service is made. Costs nothing if no request
 * is traced.
 */
export interface TraceScope {
  /**
   * Runs `work` as part of the trace until it settles. Work that it leaves behind is not part of
   * the trace.
   */
  within(trace: OngoingTrace, work: () => Promise<void>): Promise<void>;
  /** Undefined if the work belongs to no request, or to an untraced request. */
  current(): OngoingTrace | undefined;
}

/** One request as a span of a trace. */
export interface RequestSpan extends OngoingTrace {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Whether the span is recorded; if not, the other methods do nothing. */
  readonly sampled: boolean;
  readonly step: OnStep;
  /** `attributes` must not contain client-supplied text except ids. */
  end(
    name: string,
    attributes: Readonly<Record<string, string | number>>,
    outcome: 'good' | 'failed',
  ): void;
}

/**
 * Records the steps of requests for a trace collector. Methods never throw or wait, and do no I/O
 * during a request.
 */
export interface Tracer {
  /**
   * Begins a span in the client's trace, recorded if the client records it; else in a new trace.
   */
  begin(parent: TraceParent | undefined): RequestSpan;
}
