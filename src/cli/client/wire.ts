import type * as api from './generated/api.ts';

export type * from './generated/api.ts';

export type Sandbox = api.Sandbox &
  Partial<
    Omit<
      api.SandboxRecord & api.SandboxWithEndpoints & api.SandboxWithIdleTimeout,
      keyof api.Sandbox
    >
  >;

export interface Page<T> {
  readonly items: readonly T[];
  readonly total: number;
  readonly limit: number;
  readonly offset: number;
}
