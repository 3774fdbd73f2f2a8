import { OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import { ByteQueue } from '../../lib/streams/byte-queue.ts';
import type { PodTarget } from '../sandboxes/pods/pod-presence.ts';
import type { PodLinks } from './pod-links.ts';
import { awaitEnd, type PodScript } from './pod-script.ts';
import { ScriptChannel } from './script-channel.ts';

export interface PodQuestion {
  readonly script: PodScript;
  readonly input: Buffer;
  /** Longest that it takes; 25 s where unset. */
  readonly withinMs?: number;
  /** Bytes of the answer; more is a failure. 64 KiB where unset. */
  readonly limit?: number;
  /** Ends it, and rejects with its reason. */
  readonly signal?: AbortSignal;
}

/** With what comes before and after, an answer takes 30 s at most. */
const WITHIN_MS = 25_000;
const LIMIT = 64 << 10;

/**
 * Runs a script to its end, and answers what it printed. Rejects as `ScriptChannel.open`, or with
 * OutcomeUnknown where the way is lost or it takes too long; then it is ended.
 */
export const askPod = async (
  links: PodLinks,
  target: PodTarget,
  { script, input, withinMs = WITHIN_MS, limit = LIMIT, signal }: PodQuestion,
): Promise<string> => {
  signal?.throwIfAborted();
  const whole = Buffer.concat([awaitEnd(), script]);
  const channel = await ScriptChannel.open(links, target, whole, input);
  channel.endInput();
  let late: Error | undefined;
  const end = (why: Error): void => {
    late ??= why;
    channel.close({ kill: true });
  };
  const timer = setTimeout(() => {
    end(new OutcomeUnknown('what was begun in the sandbox takes too long'));
  }, withinMs);
  const abort = (): void => {
    end(signal?.reason instanceof Error ? signal.reason : new Error('called off'));
  };
  signal?.addEventListener('abort', abort, { once: true });
  if (signal?.aborted) abort();
  const pieces = new ByteQueue();
  let length = 0;
  try {
    for await (const piece of channel.output) {
      pieces.push(piece);
      length += piece.length;
      if (length > limit) end(new OutcomeUnknown('the sandbox answers more than it may'));
      channel.hold(length);
    }
  } catch (error) {
    throw late ?? error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
    channel.close();
  }
  if (late) throw late;
  return pieces.takeAll().toString('utf8');
};
