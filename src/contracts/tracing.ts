import type { TraceParent } from '../model/trace-context.ts';

/** A part of what a request took, between two moments of `performance.now()`. */
export type OnStep = (name: string, began: number, ended: number) => void;

/** A request to another service, made for one of ours. */
export interface OutgoingCall {
  /** Its header of that name (W3C Trace Context). */
  readonly traceparent: string;
  /** To be called once. `attributes` as those of a request. */
  ended(outcome: 'good' | 'failed', attributes: Readonly<Record<string, string | number>>): void;
}

/** A trace that goes on in other services. */
export interface OngoingTrace {
  /** Begins a request to another one. `name` is one of a few. */
  call(name: string): OutgoingCall;
}

/**
 * Says, where a request to another service is made, which request of ours it is made for. Costs
 * nothing as long as none is traced.
 */
export interface TraceScope {
  /**
   * Does `work` as a part of the trace until it has settled; what it leaves behind is no part of
   * it.
   */
  within(trace: OngoingTrace, work: () => Promise<void>): Promise<void>;
  /** Undefined: for nobody's request, or for one that is not traced. */
  current(): OngoingTrace | undefined;
}

/** One request as a span of a trace. */
export interface RequestSpan extends OngoingTrace {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 of them. */
  readonly spanId: string;
  /** Whether it is recorded; if not, the rest does nothing. */
  readonly sampled: boolean;
  readonly step: OnStep;
  /** `attributes` hold nothing that a client made up but ids. */
  end(
    name: string,
    attributes: Readonly<Record<string, string | number>>,
    outcome: 'good' | 'failed',
  ): void;
}

/**
 * Records what requests took, for a collector of traces. Nothing of it throws, waits, or does I/O
 * on the way of a request.
 */
export interface Tracer {
  /**
   * Within the client's trace, and recorded where the client records; else in a trace of its own.
   */
  begin(parent: TraceParent | undefined): RequestSpan;
}
