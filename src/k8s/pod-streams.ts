import type { Duplex } from 'node:stream';
import type { Log } from '../contracts/log.ts';
import type { ExecOutcome, ExecRequest, Terminal, TerminalRequest } from '../contracts/sandbox-driver.ts';
import type { ApiClient } from './api-client.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { PodLinks } from './pod-command.ts';
import { dialInPod } from './pod-dial.ts';
import { execInPod } from './pod-exec.ts';
import type { PodTarget } from './pod-presence.ts';
import { attachToPod } from './pod-terminal.ts';

export interface PodStreamsDeps {
  readonly access: ClusterAccess;
  /** Reads Pods, before anything goes into one. */
  readonly api: ApiClient;
  readonly log: Log;
  /** Of Sandpool, for the user agent. */
  readonly version: string;
  /** A link without an answer to two pings is dead; 15 s between them where unset. */
  readonly pingEveryMs?: number;
}

/**
 * What goes into Pods and comes out of them, as the methods of SandboxDriver promise it, for a Pod whose uid is known. That
 * uid is read right before; exec and port-forward can't make it a condition.
 */
export class PodStreams {
  readonly #links: PodLinks;
  readonly #background = new Set<Promise<void>>();

  constructor({ access, api, log, version, pingEveryMs }: PodStreamsDeps) {
    this.#links = {
      access, api, log, agent: `sandpool/${version}`, ...(pingEveryMs === undefined ? {} : { pingEveryMs }),
      background: (work) => { this.#inBackground(work); },
    };
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

  /** Resolves once what was to be ended in Pods has been, or can't be. */
  async stop(): Promise<void> {
    await Promise.all(this.#background);
  }

  #inBackground(work: Promise<void>): void {
    const kept = work.finally(() => { this.#background.delete(kept); });
    this.#background.add(kept);
  }
}

const meant = (pod: PodTarget, container: string | undefined): PodTarget => (container === undefined ? pod : { ...pod, container });
