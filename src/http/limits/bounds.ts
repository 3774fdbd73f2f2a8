/** Connection limits of one port. */
export interface PortBounds {
  /** In ms, until the last header and the last byte of the body. */
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** In ms; must exceed the keep-alive timeout of a load balancer in front. */
  readonly keepAliveTimeoutMs: number;
  readonly maxConnections: number;
}

/** Limits of each port, and of all together. */
export interface AdmissionBounds extends PortBounds {
  /** Trusted proxies are exempt. */
  readonly maxConnectionsPerAddress: number;
  /** Concurrent operations; more are refused. */
  readonly maxInFlight: number;
  /** Unanswered requests of a connection. */
  readonly maxPipelined: number;
  /** In ms; then an unread answer is cut. */
  readonly answerStallMs: number;
  /** Total bytes of incomplete bodies; beyond it, the oldest are refused. */
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
