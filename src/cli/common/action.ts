import type { SandpoolClient } from '../client/sandpool-client.ts';
import type { CliContext } from './context.ts';

/**
 * A command's work: resolves with the exit code. Operands come as commander passes them: text,
 * lists of text, or undefined.
 */
type Work<Options> = (
  context: CliContext,
  operands: readonly unknown[],
  options: Options,
) => Promise<number>;

/**
 * Turns a command's work into an action for commander. Explains a thrown error and exits with
 * `failureExit`.
 */
export type Action = <Options>(
  failureExit: number,
  work: Work<Options>,
) => (...args: unknown[]) => Promise<void>;

/** Turns the work of a command with only a call or two into an action. A failure exits with 1. */
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
