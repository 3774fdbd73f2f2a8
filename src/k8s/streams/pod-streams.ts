import type {
  ExecOutcome,
  ExecRequest,
  LogBatch,
  LogRequest,
  LogTail,
  PortConnection,
  Terminal,
  TerminalRequest,
} from '../../contracts/sandbox-driver.ts';
import { AgentStream } from './agent-stream.ts';
import { execInPod } from './pod-exec.ts';
import { PodLinks, type PodLinksDeps } from './pod-links.ts';
import { PodLogs, type PodLogsDeps } from '../logs/pod-logs.ts';
import { type PodTarget, enterWhileLooking } from '../sandboxes/pods/pod-presence.ts';
import { attachToPod } from './pod-terminal.ts';
import type { ChannelSocket } from './channel-socket.ts';
import { PortStream, type PortStreamTerms } from './port-stream.ts';

export interface PodStreamsDeps
  extends Omit<PodLinksDeps, 'agent'>, Pick<PodLogsDeps, 'silenceMs'> {
  readonly version: string;
}

/**
 * Checks the Pod's uid right before each stream, since exec, port-forward and log take no uid as a
 * precondition.
 */
export class PodStreams {
  readonly #links: PodLinks;
  readonly #logs: PodLogs;

  constructor({ version, ...deps }: PodStreamsDeps) {
    const agent = `sandpool/${version}`;
    this.#links = new PodLinks({ ...deps, agent });
    this.#logs = new PodLogs({ ...deps, agent });
  }

  whenSilent(told: (node: string) => void): void {
    this.#links.whenSilent(told);
  }

  exec(pod: PodTarget, request: ExecRequest, signal: AbortSignal): Promise<ExecOutcome> {
    return execInPod(this.#links, meant(pod, request.container), { request, signal });
  }

  openAgent(pod: PodTarget): Promise<AgentStream> {
    return AgentStream.open(this.#links, pod);
  }

  pause(ms: number): Promise<boolean> {
    return this.#links.pause(ms);
  }

  attach(pod: PodTarget, request: TerminalRequest): Promise<Terminal> {
    return attachToPod(this.#links, meant(pod, request.container), request);
  }

  dial(pod: PodTarget, port: number, signal: AbortSignal): Promise<PortConnection> {
    return dialPort(this.#links, pod, { port, signal });
  }

  /** Rejects with NotJoinable if the log is unreadable now. */
  logs(pod: PodTarget, request: LogRequest): Promise<LogTail> {
    return this.#logs.tail(meant(pod, request.container), request);
  }

  followLogs(pod: PodTarget, after: string, signal: AbortSignal): AsyncIterable<LogBatch> {
    return this.#logs.follow(pod, after, signal);
  }

  /** Ends everything into an ended Pod, even if its kubelet is silent. Its logs end soon. */
  gone(uid: string): void {
    this.#logs.gone(uid);
    this.#links.cut(uid);
  }

  /** Resolves once the cut processes have ended or are unreachable, after at most some 15 s. */
  async stop(): Promise<void> {
    await Promise.all([this.#links.stop(), this.#logs.stop()]);
  }
}

const meant = (pod: PodTarget, container: string | undefined): PodTarget =>
  container === undefined ? pod : { ...pod, container };

const DATA = 0;
const FAILURE = 1;
/** Both channels begin with the port number. */
const PREFIX_BYTES = 2;
const LONGEST_FAILURE = 1_024;

type PortTerms = Omit<PortStreamTerms, 'carrier' | 'channel'> &
  Pick<PortStreamTerms['carrier'], 'silent'>;

/**
 * Connects to a port on a Pod's loopback; no other address is reachable this way. The link stays in
 * this Pod and never reaches a later one of its name or address. Rejects and fails as
 * `SandboxDriver.dial`.
 */
const dialPort = async (
  links: PodLinks,
  target: PodTarget,
  { port, signal }: { readonly port: number; readonly signal: AbortSignal },
): Promise<PortConnection> => {
  signal.throwIfAborted();
  const opening = links.open(target, {
    what: `portforward?ports=${port}`,
    subprotocol: 'v4.channel.k8s.io',
  });
  const socket = await enterWhileLooking(links, target, opening);
  if (signal.aborted) socket.close();
  signal.throwIfAborted();
  const silent = (): void => links.silent(target);
  return portOver(socket, { port, signal, silent, answerWithinMs: links.answerWithinMs });
};

const portOver = (socket: ChannelSocket, { silent, ...terms }: PortTerms): PortStream => {
  const carrier = {
    send: socket.send.bind(socket),
    pause: () => {
      socket.pause();
    },
    resume: () => {
      socket.resume();
    },
    roundTrip: () => socket.roundTrip(),
    left: () => {
      socket.close();
    },
    silent,
  };
  const stream = new PortStream({ carrier, channel: DATA, ...terms });
  const prefixes = { [DATA]: PREFIX_BYTES, [FAILURE]: PREFIX_BYTES };
  const heard = (channel: number, bytes: Buffer): void => {
    if (channel !== DATA && channel !== FAILURE) return;
    const skipped = Math.min(prefixes[channel], bytes.length);
    prefixes[channel] -= skipped;
    if (skipped > 0 && prefixes[DATA] + prefixes[FAILURE] === 0) stream.begun();
    const rest = bytes.subarray(skipped);
    if (rest.length === 0) return;
    if (channel === DATA) stream.arrived(rest);
    else stream.refuse(rest.toString('utf8', 0, LONGEST_FAILURE));
  };
  const closed = (why: string, clean: boolean): void => {
    if (clean && prefixes[DATA] + prefixes[FAILURE] === 0) stream.push(null);
    else stream.refuse(clean ? why : `the link was lost: ${why}`);
  };
  socket.listen({ data: heard, closed });
  return stream;
};
