import type { TraceParent } from '../model/trace-context.ts';

/** A part of what a request took, between two moments of `performance.now()`. */
export type TellStep = (name: string, began: number, ended: number) => void;

/** One request as a span of a trace. */
export interface RequestSpan {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 of them. */
  readonly spanId: string;
  /** Whether it is recorded; if not, the rest does nothing. */
  readonly sampled: boolean;
  readonly step: TellStep;
  /** `attributes` hold nothing that a client made up but ids. */
  end(name: string, attributes: Readonly<Record<string, string | number>>, outcome: 'good' | 'failed'): void;
}

/** Records what requests took, for a collector of traces. Nothing of it throws, waits, or does I/O on the way of a request. */
export interface Tracer {
  /** Within the client's trace, and recorded where the client records; else in a trace of its own. */
  begin(parent: TraceParent | undefined): RequestSpan;
}
