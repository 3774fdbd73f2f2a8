/** What goes over the wire, as the API shows it. Timestamps are ISO 8601 in UTC; what is absent was left out. */

export interface Sandbox {
  readonly sandboxId: string;
  readonly namespace: string;
  readonly poolName: string;
  readonly podName: string;
  readonly status: string;
  readonly claimedAt?: string;
  readonly startedAt?: string;
  readonly terminatedAt?: string;
  readonly recycledAt?: string;
  readonly durationSeconds?: number;
  readonly cpu?: string;
  readonly memory?: string;
  readonly team: string;
  readonly user: string;
  readonly endpoints?: Readonly<Record<string, string>>;
  readonly containerImages?: Readonly<Record<string, string>>;
  readonly endReason?: string;
  readonly idleTimeout?: string;
  readonly idleExpiresAt?: string;
}

export interface SandboxDeletion {
  readonly sandboxId: string;
  readonly namespace: string;
  readonly poolName: string;
  readonly podName: string;
  readonly status: string;
}

export interface Pool {
  readonly name: string;
  readonly namespace: string;
  readonly cpu: string;
  readonly memory: string;
  readonly team: string;
  readonly user: string;
  readonly templateVersion?: string;
  readonly createdAt?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec: { readonly replicas: number };
  readonly status: {
    readonly phase: string;
    readonly idleReplicas: number;
    readonly unavailableIdleReplicas: number;
    readonly runningReplicas: number;
    readonly startingReplicas: number;
    readonly stoppingReplicas: number;
    readonly failedReplicas: number;
  };
}

export interface PoolDeletion {
  readonly name: string;
  readonly namespace: string;
  readonly status: string;
}

export interface ExecRequest {
  /** Text for a non-interactive shell, or arguments for no shell. */
  readonly command: string | readonly string[];
  /** 1 to 300, 300 unless told. */
  readonly timeoutSeconds?: number;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly container?: string;
}

export interface ExecResult {
  readonly stdout: string;
  readonly stderr: string;
  /** 124 when timed out. */
  readonly exitCode: number;
  readonly timedOut: boolean;
  readonly truncated: boolean;
  readonly durationMs: number;
}

export interface ApiKeyRequest {
  readonly name?: string;
  readonly description?: string;
  readonly expiresAt?: string;
}

export interface AdminApiKeyRequest extends ApiKeyRequest {
  readonly team: string;
  readonly user: string;
  readonly role?: 'user' | 'admin';
}

export interface ApiKey {
  readonly keyId: string;
  readonly name: string;
  readonly user: string;
  readonly team: string;
  readonly role: string;
  readonly description: string;
  readonly issuedAt: string;
  readonly expiresAt: string;
}

/** The secret `apiKey` is shown this once. */
export interface IssuedApiKey extends ApiKey {
  readonly apiKey: string;
}

export interface ApiKeyDeletion {
  readonly keyId: string;
  readonly status: string;
}

export interface Readiness {
  readonly status: string;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  readonly isolation: string;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly total: number;
  readonly limit: number;
  readonly offset: number;
}

export interface PageRequest {
  readonly limit?: number;
  readonly offset?: number;
}

export interface SandboxFilter extends PageRequest {
  readonly poolName?: string;
  readonly phase?: string;
  /** These four are an admin's. */
  readonly namespace?: string;
  readonly team?: string;
  readonly user?: string;
  readonly all?: boolean;
}
