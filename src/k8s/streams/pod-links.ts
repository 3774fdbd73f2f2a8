import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../contracts/log.ts';
import type { ApiClient } from '../api/api-calls.ts';
import { ChannelSocket, type ChannelSocketTerms, type Subprotocol } from './channel-socket.ts';
import type { ClusterAccess } from '../api/cluster-access.ts';
import type { PodTarget } from '../sandboxes/pods/pod-presence.ts';
import { GatheredBytes } from './gathered-bytes.ts';
import { podPath } from '../sandboxes/pods/pod-resource.ts';

export interface PodLinksDeps {
  readonly access: ClusterAccess;
  readonly api: ApiClient;
  readonly log: Log;
  readonly agent: string;
  readonly pingEveryMs?: number;
  readonly openWithinMs?: ChannelSocketTerms['openWithinMs'];
  readonly answerWithinMs?: number;
}

export interface PodWay {
  readonly what: string;
  readonly subprotocol: Subprotocol;
  readonly ends?: boolean;
}

const STOPS = 'the daemon stops';

export class PodLinks {
  readonly api: ApiClient;
  readonly log: Log;
  readonly answerWithinMs: number | undefined;
  readonly gathered = new GatheredBytes();
  readonly #terms: Pick<ChannelSocketTerms, 'access' | 'agent' | 'pingEveryMs' | 'openWithinMs'>;
  readonly #open = new Map<string, Set<ChannelSocket>>();
  readonly #background = new Set<Promise<void>>();
  #silent: (node: string) => void = () => {};
  readonly #stopping = new AbortController();

  constructor({
    access,
    api,
    log,
    agent,
    pingEveryMs,
    openWithinMs,
    answerWithinMs,
  }: PodLinksDeps) {
    this.answerWithinMs = answerWithinMs;
    this.api = api;
    this.log = log;
    this.#terms = { access, agent, pingEveryMs, openWithinMs };
  }

  /**
   * `what` follows the Pod's path. Rejects as ChannelSocket.open. While the daemon stops, cuts a
   * new link at once, unless it `ends` something.
   */
  async open(
    { namespace, name, uid }: PodTarget,
    { what, subprotocol, ends = false }: PodWay,
  ): Promise<ChannelSocket> {
    const socket = await ChannelSocket.open({
      ...this.#terms,
      path: `${podPath(namespace, name)}/${what}`,
      subprotocol,
    });
    if (this.#stopping.signal.aborted && !ends) socket.cut(STOPS);
    const sockets = this.#open.get(uid) ?? new Set();
    this.#open.set(uid, sockets.add(socket));
    this.background(
      socket.closed.then(() => {
        sockets.delete(socket);
        if (sockets.size === 0 && this.#open.get(uid) === sockets) this.#open.delete(uid);
      }),
    );
    return socket;
  }

  whenSilent(told: (node: string) => void): void {
    this.#silent = told;
  }

  readonly silent = ({ node }: PodTarget): void => {
    if (node !== undefined) this.#silent(node);
  };

  /** Called when a Pod is gone, since its kubelet may be gone too. */
  cut(uid: string): void {
    for (const socket of this.#open.get(uid) ?? []) socket.cut('the sandbox ended');
  }

  /** `work` must not reject. */
  background(work: Promise<void>): void {
    const kept = work.finally(() => {
      this.#background.delete(kept);
    });
    this.#background.add(kept);
  }

  /** False, at once, if the daemon stops. */
  async pause(ms: number): Promise<boolean> {
    const { signal } = this.#stopping;
    return await sleep(ms, true, { signal }).catch(() => false);
  }

  /** Resolves once the background work in Pods is done. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const sockets of this.#open.values()) for (const socket of sockets) socket.cut(STOPS);
    while (this.#background.size > 0) await Promise.all(this.#background);
  }
}
