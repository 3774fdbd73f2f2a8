/** Connection limits of one port. */
export interface PortBounds {
  /** Time in ms until the last header, and until the last byte of the body, must have arrived. */
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** In ms. Must exceed the keep-alive timeout of a load balancer in front. */
  readonly keepAliveTimeoutMs: number;
  readonly maxConnections: number;
}

/** Client limits of each port, and of all ports together. */
export interface AdmissionBounds extends PortBounds {
  /** Trusted proxies are exempt. */
  readonly maxConnectionsPerAddress: number;
  /** Concurrent operations. Further requests are refused. */
  readonly maxInFlight: number;
  /** Unanswered requests on one connection. */
  readonly maxPipelined: number;
  /** An answer is cut if its client reads nothing for this long, in ms. */
  readonly answerStallMs: number;
  /** Total bytes of incomplete bodies. Beyond it, the oldest are refused. */
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
