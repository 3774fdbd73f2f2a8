import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { Forwarder } from './forwarder.ts';
import type { JoinPlace } from '../sandbox/instance.ts';

/** The instance is not there to be reached. */
export class NothingThere extends Error {
  override readonly name = 'NothingThere';
}

/** The forwarders of all sandboxes: started when they are first asked for, one at most each. */
export class Forwarders {
  readonly #folder: string;
  readonly #launcherPath: () => string;
  readonly #placeOf: (id: string) => JoinPlace | undefined;
  readonly #forwarders = new Map<string, Forwarder>();

  constructor(options: {
    readonly folder: string;
    readonly launcherPath: () => string;
    readonly placeOf: (id: string) => JoinPlace | undefined;
  }) {
    this.#folder = options.folder;
    this.#launcherPath = options.launcherPath;
    this.#placeOf = options.placeOf;
  }

  /** Removes what a former process left. */
  prepare(): void {
    rmSync(this.#folder, { recursive: true, force: true });
    mkdirSync(this.#folder, { mode: 0o700 });
  }

  /**
   * A socket that takes connections to the sandbox's ports. Rejects with NothingThere unless it
   * runs.
   */
  async socketOf(id: string): Promise<string> {
    let forwarder = this.#forwarders.get(id);
    if (!forwarder) {
      const place = this.#placeOf(id);
      if (!place) throw new NothingThere('the sandbox is not running');
      forwarder = this.#start(id, place);
    }
    try {
      await forwarder.ready;
      return forwarder.socket;
    } catch (error) {
      throw this.#placeOf(id) ? error : new NothingThere('the sandbox ended', { cause: error });
    }
  }

  stop(): void {
    for (const forwarder of this.#forwarders.values()) forwarder.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #start(id: string, place: JoinPlace): Forwarder {
    // Never used twice, so that a name that somebody kept leads nowhere and not to another sandbox.
    const name = randomBytes(6).toString('base64url');
    const forwarder = new Forwarder({
      launcherPath: this.#launcherPath(),
      place,
      folder: this.#folder,
      name,
    });
    this.#forwarders.set(id, forwarder);
    void forwarder.ended.then(() => {
      if (this.#forwarders.get(id) === forwarder) this.#forwarders.delete(id);
    });
    return forwarder;
  }
}
