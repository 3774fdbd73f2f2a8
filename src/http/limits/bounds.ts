/** Bounds the connections of one port. */
export interface PortBounds {
  /** Until the last header is in, and until the last byte of the body is. Milliseconds. */
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** Longer than a balancer in front keeps its own. */
  readonly keepAliveTimeoutMs: number;
  readonly maxConnections: number;
}

/** Bounds what clients may take of each port, and of all ports together. */
export interface AdmissionBounds extends PortBounds {
  /** Connections of one address at most; a trusted proxy has no such share. */
  readonly maxConnectionsPerAddress: number;
  /** Operations under way at once; more requests are turned away. */
  readonly maxInFlight: number;
  /** Requests of one connection that may wait for their answers at once. */
  readonly maxPipelined: number;
  /** An answer whose client reads nothing of it for so long is cut. Milliseconds. */
  readonly answerStallMs: number;
  /** Bounds what all bodies that are still arriving may hold together; the oldest are refused. */
  readonly maxArrivingBytes: number;
}

export const DEFAULT_BOUNDS: AdmissionBounds = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 65_000,
  maxConnections: 10_000,
  maxConnectionsPerAddress: 2_500,
  maxInFlight: 2_048,
  maxPipelined: 32,
  answerStallMs: 30_000,
  maxArrivingBytes: 128 * 1024 * 1024,
};
