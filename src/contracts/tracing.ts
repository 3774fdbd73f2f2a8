import type { TraceParent } from '../model/trace-context.ts';

/** Times are values of `performance.now()`. */
export type OnStep = (name: string, began: number, ended: number) => void;

export interface OutgoingCall {
  /** W3C Trace Context. */
  readonly traceparent: string;
  /** Call it once. `attributes` as in a request. */
  ended(outcome: 'good' | 'failed', attributes: Readonly<Record<string, string | number>>): void;
}

export interface OngoingTrace {
  /** `name` has few values. */
  call(name: string): OutgoingCall;
}

/**
 * Finds the request for which a call to another service is made. Costs nothing if no request is
 * traced.
 */
export interface TraceScope {
  /** Work that `work` leaves behind is not part of the trace. */
  within(trace: OngoingTrace, work: () => Promise<void>): Promise<void>;
  /** Undefined if the work belongs to no request, or to an untraced request. */
  current(): OngoingTrace | undefined;
}

export interface RequestSpan extends OngoingTrace {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** If false, the other methods do nothing. */
  readonly sampled: boolean;
  readonly step: OnStep;
  /** `attributes` must not contain client-supplied text except ids. */
  end(
    name: string,
    attributes: Readonly<Record<string, string | number>>,
    outcome: 'good' | 'failed',
  ): void;
}

/** Methods never throw or wait, and do no I/O during a request. */
export interface Tracer {
  /** In the client's trace, recorded if the client records it; else in a new trace. */
  begin(parent: TraceParent | undefined): RequestSpan;
}
