import type { SandpoolClient } from '../client/sandpool-client.ts';
import type { CliContext } from './context.ts';

/** Resolves with the exit code. */
type Work<Options> = (
  context: CliContext,
  operands: readonly unknown[],
  options: Options,
) => Promise<number>;

/** Explains a thrown error and exits with `failureExit`. */
export type Action = <Options>(
  failureExit: number,
  work: Work<Options>,
) => (...args: unknown[]) => Promise<void>;

/** For commands with a call or two; a failure exits with 1. */
export type ServiceAction = <Options>(
  work: (
    service: { readonly api: SandpoolClient; readonly context: CliContext },
    operands: readonly unknown[],
    options: Options,
  ) => Promise<void>,
) => (...args: unknown[]) => Promise<void>;

export interface Actions {
  readonly action: Action;
  readonly serviceAction: ServiceAction;
}
