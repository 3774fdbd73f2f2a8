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
import { dialPort } from './pod-dial.ts';
import { execInPod } from './pod-exec.ts';
import { PodLinks, type PodLinksDeps } from './pod-links.ts';
import { PodLogs, type PodLogsDeps } from '../logs/pod-logs.ts';
import type { PodTarget } from '../sandboxes/pods/pod-presence.ts';
import { attachToPod } from './pod-terminal.ts';

export interface PodStreamsDeps
  extends Omit<PodLinksDeps, 'agent'>, Pick<PodLogsDeps, 'silenceMs'> {
  /** Sandpool's version, for the user agent. */
  readonly version: string;
}

/**
 * Carries what goes into Pods and comes out of them, as the methods of SandboxDriver promise it,
 * for a Pod whose uid is known. That uid is read right before; exec, port-forward and log can't
 * make it a condition.
 */
export class PodStreams {
  readonly #links: PodLinks;
  readonly #logs: PodLogs;

  constructor({ version, ...deps }: PodStreamsDeps) {
    const agent = `sandpool/${version}`;
    this.#links = new PodLinks({ ...deps, agent });
    this.#logs = new PodLogs({ ...deps, agent });
  }

  /**
   * `told` is called with a node whenever it did not answer, also where whoever asked has left by
   * then.
   */
  whenSilent(told: (node: string) => void): void {
    this.#links.whenSilent(told);
  }

  exec(pod: PodTarget, request: ExecRequest, signal: AbortSignal): Promise<ExecOutcome> {
    return execInPod(this.#links, meant(pod, request.container), { request, signal });
  }

  /** Begins a call of the agent in the Pod's container. As `AgentStream.open`. */
  openAgent(pod: PodTarget): Promise<AgentStream> {
    return AgentStream.open(this.#links, pod);
  }

  /** As `PodLinks.pause`. */
  pause(ms: number): Promise<boolean> {
    return this.#links.pause(ms);
  }

  attach(pod: PodTarget, request: TerminalRequest): Promise<Terminal> {
    return attachToPod(this.#links, meant(pod, request.container), request);
  }

  dial(pod: PodTarget, port: number, signal: AbortSignal): Promise<PortConnection> {
    return dialPort(this.#links, pod, { port, signal });
  }

  /** As `SandboxDriver.logs`; rejects with NotJoinable where it can't be read now. */
  logs(pod: PodTarget, request: LogRequest): Promise<LogTail> {
    return this.#logs.tail(meant(pod, request.container), request);
  }

  followLogs(pod: PodTarget, after: string, signal: AbortSignal): AsyncIterable<LogBatch> {
    return this.#logs.follow(pod, after, signal);
  }

  /**
   * The Pod is over: commands, terminals and connections into it end now, whether its kubelet says
   * so or not, and logs soon.
   */
  gone(uid: string): void {
    this.#logs.gone(uid);
    this.#links.cut(uid);
  }

  /**
   * Cuts commands, terminals and connections. Resolves once what they ran has been ended, or can't
   * be; at most some 15 s.
   */
  async stop(): Promise<void> {
    await Promise.all([this.#links.stop(), this.#logs.stop()]);
  }
}

const meant = (pod: PodTarget, container: string | undefined): PodTarget =>
  container === undefined ? pod : { ...pod, container };
