import { signalNumber } from '../../lib/signal-names.ts';
import { ContainerGone, InstanceGone } from '../../contracts/sandbox-driver.ts';
import { runAgent } from './pod-command.ts';
import type { PodLinks } from './pod-links.ts';
import { requireJoinable, type PodTarget } from '../sandboxes/pods/pod-presence.ts';

export interface Leftover {
  readonly pid: string;
  readonly signal: 'HUP' | 'KILL';
}

const FIRST_PAUSE_MS = 500;

const LONGEST_PAUSE_MS = 5_000;

/** Over some 50 s, in which a restarting kubelet or API server is back. */
const MOST_ATTEMPTS = 12;

/**
 * Ends a command or terminal with all its processes. Resolves after the first attempt and goes on
 * in the background, since the fault that cut it off may also block this attempt.
 */
export const endTree = async (
  links: PodLinks,
  target: PodTarget,
  left: Leftover,
): Promise<void> => {
  if (!(await isEnded(links, target, left))) links.background(endLater(links, target, left));
};

const endLater = async (links: PodLinks, target: PodTarget, left: Leftover): Promise<void> => {
  let pauseMs = FIRST_PAUSE_MS;
  for (let attempt = 2; attempt <= MOST_ATTEMPTS && (await links.pause(pauseMs)); attempt++) {
    if ((await isOver(links, target)) || (await isEnded(links, target, left))) return;
    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
  }
  links.log.info({ pod: target.name, pid: left.pid }, 'command-not-ended');
};

const isEnded = async (
  links: PodLinks,
  target: PodTarget,
  { pid, signal }: Leftover,
): Promise<boolean> => (await runAgent(links, target, ['end', pid, signalNumber(signal)])) === 0;

const isOver = ({ api }: PodLinks, target: PodTarget): Promise<boolean> =>
  requireJoinable(api, target).then(
    () => false,
    (error: unknown) => error instanceof InstanceGone || error instanceof ContainerGone,
  );
