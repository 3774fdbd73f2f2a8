import type { Duplex } from 'node:stream';
import type { ExecOutcome, ExecRequest, Terminal, TerminalRequest } from '../contracts/sandbox-driver.ts';
import { dialInPod } from './pod-dial.ts';
import { execInPod } from './pod-exec.ts';
import { PodLinks, type PodLinksDeps } from './pod-links.ts';
import type { PodTarget } from './pod-presence.ts';
import { attachToPod } from './pod-terminal.ts';

/**
 * What goes into Pods and comes out of them, as the methods of SandboxDriver promise it, for a Pod whose uid is known. That
 * uid is read right before; exec and port-forward can't make it a condition.
 */
export class PodStreams {
  readonly #links: PodLinks;

  constructor(deps: PodLinksDeps) {
    this.#links = new PodLinks(deps);
  }

  exec(pod: PodTarget, request: ExecRequest, signal: AbortSignal): Promise<ExecOutcome> {
    return execInPod(this.#links, meant(pod, request.container), request, signal);
  }

  attach(pod: PodTarget, request: TerminalRequest): Promise<Terminal> {
    return attachToPod(this.#links, meant(pod, request.container), request);
  }

  dial(pod: PodTarget, port: number, signal: AbortSignal): Promise<Duplex> {
    return dialInPod(this.#links, pod, port, signal);
  }

  /** The Pod is no more: commands, terminals and connections into it end now, whether its kubelet says so or not. */
  gone(uid: string): void {
    this.#links.cut(uid);
  }

  /** Cuts commands, terminals and connections. Resolves once what they ran has been ended, or can't be; at most some 15 s. */
  async stop(): Promise<void> {
    await this.#links.stop();
  }
}

const meant = (pod: PodTarget, container: string | undefined): PodTarget => (container === undefined ? pod : { ...pod, container });
