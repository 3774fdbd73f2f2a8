import type { ChannelSocket } from './channel-socket.ts';
import type { PodLinks } from './pod-links.ts';
import { AGENT } from '../sandboxes/pods/pod-agent.ts';
import type { PodTarget } from '../sandboxes/pods/pod-presence.ts';

export const STDIN = 0;
export const STDOUT = 1;
export const STDERR = 2;
export const STATUS = 3;
export const RESIZE = 4;

export interface Command {
  readonly argv: readonly string[];
  readonly stdin: boolean;
  readonly tty: boolean;
  readonly ends?: boolean;
}

/**
 * Hazard: its arguments are in the URL, which API servers write to their audit logs, so they must
 * not be secret. Rejects as ChannelSocket.open.
 */
export const openCommand = (
  links: PodLinks,
  target: PodTarget,
  command: Command,
): Promise<ChannelSocket> => {
  const query = new URLSearchParams([
    ['container', target.container],
    ['stdin', String(command.stdin)],
    ['stdout', 'true'],
    ['stderr', String(!command.tty)],
    ['tty', String(command.tty)],
    ...command.argv.map((argument): [string, string] => ['command', argument]),
  ]);
  return links.open(target, {
    what: `exec?${query.toString()}`,
    subprotocol: 'v5.channel.k8s.io',
    ends: command.ends ?? false,
  });
};

export type CommandStatus = { readonly exitCode: number } | { readonly failure: string };

interface StatusObject {
  readonly status?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly details?: {
    readonly causes?: readonly { readonly reason?: unknown; readonly message?: unknown }[];
  } | null;
}

const LONGEST_STATUS = 64 << 10;

export class StatusReader {
  #text = '';

  push(bytes: Buffer): CommandStatus | undefined {
    this.#text = (this.#text + bytes.toString('utf8')).slice(0, LONGEST_STATUS);
    let status: StatusObject;
    try {
      status = JSON.parse(this.#text) as StatusObject;
    } catch {
      return this.#text.length < LONGEST_STATUS
        ? undefined
        : { failure: this.#text.slice(0, 1_000) };
    }
    if (status.status === 'Success') return { exitCode: 0 };
    const code = Number(
      status.details?.causes?.find(({ reason }) => reason === 'ExitCode')?.message,
    );
    if (status.reason === 'NonZeroExitCode' && Number.isInteger(code)) return { exitCode: code };
    return {
      failure:
        typeof status.message === 'string' ? status.message.slice(0, 1_000) : 'no reason given',
    };
  }
}

const DEADLINE_MS = 15_000;

/** Undefined if the agent could not run or takes longer than 15 s. */
export const runAgent = async (
  links: PodLinks,
  target: PodTarget,
  args: readonly string[],
): Promise<number | undefined> => {
  const reader = new StatusReader();
  let status: CommandStatus | undefined;
  let finish = (): void => {};
  const over = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const timer = setTimeout(finish, DEADLINE_MS);
  try {
    const socket = await openCommand(links, target, {
      argv: [AGENT, ...args],
      stdin: false,
      tty: false,
      ends: true,
    });
    socket.listen({
      data: (channel, bytes) => {
        if (channel === STATUS) status ??= reader.push(bytes);
        if (status) finish();
      },
      closed: () => {
        finish();
      },
    });
    await over;
    socket.close();
    return status && 'exitCode' in status ? status.exitCode : undefined;
  } catch (error) {
    links.log.debug({ pod: target.name, error }, 'pod-command-failed');
    return undefined;
  } finally {
    clearTimeout(timer);
  }
};
