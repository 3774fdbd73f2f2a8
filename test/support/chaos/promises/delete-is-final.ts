import { isAcknowledged, said, type Case } from '../case.ts';

/** No replica shows the sandbox as running, runs a command in it, or hands it out. */
export const deleteIsFinal = ({ about }: Case): readonly string[] =>
  [...about.values()].flatMap((calls) => {
    const over = Math.min(
      Infinity,
      ...calls
        .filter((call) => call.asked.what === 'delete' && isAcknowledged(call))
        .map(({ completed }) => completed),
    );
    return calls
      .filter((call) => call.invoked > over && isAlive(call.asked.what, call.answer))
      .map((call) => `after its delete was acknowledged at ${over.toFixed(0)}: ${said(call)}`);
  });

/** A repeated claim returns the old answer. */
const isAlive = (
  what: string,
  answer: { readonly status: number; readonly shows?: string } | undefined,
): boolean =>
  (what === 'get' && answer?.status === 200 && answer.shows === 'Running') ||
  (what === 'exec' && answer?.status === 200);
