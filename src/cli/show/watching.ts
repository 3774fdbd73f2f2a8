import { parseDuration } from '../../model/durations.ts';
import { type CliContext, print } from '../common/context.ts';
import { CliFailure } from '../common/failure.ts';
import { lasting } from '../common/retrying.ts';
import type { OutputOptions } from '../common/output.ts';

/** `stopped`: nothing changes without help; `hints` are the cure. */
export type Standing =
  | { readonly kind: 'done' | 'going' }
  | { readonly kind: 'stopped'; readonly why: string; readonly hints: readonly string[] };

export interface Looked {
  readonly value: unknown;
  readonly text: string;
  readonly standing: Standing;
}

export interface WatchOptions extends OutputOptions {
  readonly timeout: string;
}

const LOOK_EVERY_MS = 200;

/**
 * Rejects if progress has stopped, and with `late` after the deadline. Survives a daemon that is
 * unreachable for a while.
 */
export const watch = async (
  context: CliContext,
  options: WatchOptions,
  { look, late }: { readonly look: () => Promise<Looked>; readonly late: () => CliFailure },
): Promise<void> => {
  const deadline = performance.now() + (parseDuration(options.timeout) ?? 0);
  const next = lasting(context, look);
  let told = '';
  for (;;) {
    const { value, text, standing } = await next();
    if (text !== told)
      await print(
        context.stdout,
        options.output === 'json' || options.output === 'yaml'
          ? `${JSON.stringify(value)}\n`
          : text,
      );
    told = text;
    if (standing.kind === 'done') return;
    failWhereStopped(standing);
    if (context.stdout.destroyed) return;
    const left = deadline - performance.now();
    if (left <= 0) throw late();
    await new Promise((resolve) => {
      setTimeout(resolve, Math.min(LOOK_EVERY_MS, left));
    });
  }
};

export const failWhereStopped = (standing: Standing): void => {
  if (standing.kind === 'stopped') throw new CliFailure(standing.why, standing.hints);
};
