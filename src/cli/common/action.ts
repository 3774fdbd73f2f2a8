import type { SandpoolClient } from '../client/sandpool-client.ts';
import type { CliContext } from './context.ts';

/**
 * The work of a command: resolves with its exit code. Operands as commander hands them: text, lists
 * of text, or undefined.
 */
type Work<Options> = (
  context: CliContext,
  operands: readonly unknown[],
  options: Options,
) => Promise<number>;

/**
 * Makes commander's action of a command's work; what it throws is explained, and ends with
 * `failureExit`.
 */
export type Action = <Options>(
  failureExit: number,
  work: Work<Options>,
) => (...args: unknown[]) => Promise<void>;

/**
 * Makes commander's action of a command that only makes a call or two of the service; a failure
 * ends it with exit code 1.
 */
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
