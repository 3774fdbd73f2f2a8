import type { PortTunnel } from './port-tunnel.ts';

/** A link that nobody uses is kept for so long … */
const KEPT_MS = 30_000;
/** … so many of them for a Pod, and for all together. */
const MOST_OF_POD = 4;
const MOST = 256;

/**
 * Links into Pods that wait for the next connection. Nothing in a Pod sees them. They end with
 * their Pod: `PodLinks` cuts them.
 */
export class KeptTunnels {
  readonly #ofPod = new Map<string, PortTunnel[]>();
  /** The oldest first, with what closes each in time. */
  readonly #all = new Map<PortTunnel, { readonly uid: string; readonly timer: NodeJS.Timeout }>();

  /** The one that was used last. */
  take(uid: string): PortTunnel | undefined {
    const tunnel = this.#ofPod.get(uid)?.at(-1);
    if (tunnel) this.#forget(tunnel);
    return tunnel;
  }

  keep(uid: string, tunnel: PortTunnel): void {
    const ofPod = this.#ofPod.get(uid) ?? [];
    if (ofPod.length >= MOST_OF_POD) return tunnel.close();
    this.#ofPod.set(uid, [...ofPod, tunnel]);
    this.#all.set(tunnel, {
      uid,
      timer: setTimeout(() => {
        this.#close(tunnel);
      }, KEPT_MS).unref(),
    });
    const [oldest] = this.#all.keys();
    if (oldest && this.#all.size > MOST) this.#close(oldest);
  }

  /** The Pod is over. */
  gone(uid: string): void {
    for (const tunnel of this.#ofPod.get(uid) ?? []) this.#close(tunnel);
  }

  /** It is over. */
  drop(tunnel: PortTunnel): void {
    if (this.#all.has(tunnel)) this.#close(tunnel);
  }

  #close(tunnel: PortTunnel): void {
    this.#forget(tunnel);
    tunnel.close();
  }

  #forget(tunnel: PortTunnel): void {
    const kept = this.#all.get(tunnel);
    if (!kept) return;
    clearTimeout(kept.timer);
    this.#all.delete(tunnel);
    const others = (this.#ofPod.get(kept.uid) ?? []).filter((each) => each !== tunnel);
    if (others.length > 0) this.#ofPod.set(kept.uid, others);
    else this.#ofPod.delete(kept.uid);
  }
}
