import type { PortConnection } from '../../contracts/sandbox-driver.ts';
import type { ChannelSocket } from './channel-socket.ts';
import { KeptTunnels } from './kept-tunnels.ts';
import type { PodLinks } from './pod-links.ts';
import { enterWhileLooking, type PodTarget } from '../sandboxes/pods/pod-presence.ts';
import { portOverChannels } from './port-channels.ts';
import { PortTunnel } from './port-tunnel.ts';

const TUNNEL = 'SPDY-3.1+portforward.k8s.io';

/**
 * Connections to ports of Pods' own loopbacks, through the API server and kubelet: to no other
 * address can these lead. Opening such a link takes several times as long as a connection over it,
 * so that a few are kept. A link stays in the Pod that it was opened into: no later Pod of that
 * name, or with that address, is reached by it.
 */
export class PodPorts {
  readonly #links: PodLinks;
  readonly #kept = new KeptTunnels();

  constructor(links: PodLinks) {
    this.#links = links;
  }

  /** Over a link that is there. Whether the Pod runs is not read: the link ends with it. */
  dialKept(uid: string, port: number, signal: AbortSignal): PortConnection | undefined {
    return signal.aborted ? undefined : this.#kept.take(uid)?.connect(port, signal);
  }

  /** The Pod is over. */
  gone(uid: string): void {
    this.#kept.gone(uid);
  }

  /** Over a new link. Rejects, and fails, as `SandboxDriver.dial`. */
  async dial(target: PodTarget, port: number, signal: AbortSignal): Promise<PortConnection> {
    signal.throwIfAborted();
    const socket = await this.#open(target, port);
    const silent = (): void => {
      this.#links.silent(target);
    };
    const { answerWithinMs } = this.#links;
    if (socket.subprotocol !== TUNNEL) {
      if (signal.aborted) socket.close();
      signal.throwIfAborted();
      return portOverChannels(socket, { port, signal, silent, answerWithinMs });
    }
    const tunnel = new PortTunnel(socket, {
      freed: (free) => {
        this.#kept.keep(target.uid, free);
      },
      silent,
      answerWithinMs,
    });
    this.#links.background(
      tunnel.closed.then(() => {
        this.#kept.drop(tunnel);
      }),
    );
    if (signal.aborted) this.#kept.keep(target.uid, tunnel);
    signal.throwIfAborted();
    return tunnel.connect(port, signal);
  }

  #open(target: PodTarget, port: number): Promise<ChannelSocket> {
    // An API server older than 1.31 takes the second one, by which a link has a single connection.
    const opening = this.#links.open(target, {
      what: `portforward?ports=${port}`,
      subprotocols: [TUNNEL, 'v4.channel.k8s.io'],
    });
    return enterWhileLooking(this.#links, target, opening);
  }
}
