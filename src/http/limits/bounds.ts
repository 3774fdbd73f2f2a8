export interface PortBounds {
  /** Until the last header, and the last byte of the body. */
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** Must exceed the keep-alive timeout of a load balancer in front. */
  readonly keepAliveTimeoutMs: number;
  readonly maxConnections: number;
}

export interface AdmissionBounds extends PortBounds {
  /** Trusted proxies are exempt. */
  readonly maxConnectionsPerAddress: number;
  /** More are refused. */
  readonly maxInFlight: number;
  readonly maxPipelined: number;
  /** Then an unread answer is cut. */
  readonly answerStallMs: number;
  /** Beyond these, the oldest incomplete bodies are refused. */
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
