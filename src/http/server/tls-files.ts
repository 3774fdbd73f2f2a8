import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { TlsIdentity } from './listener.ts';

const LOOK_EVERY_MS = 10_000;
/** Public: file and cause go only to the log. */
const NOT_USED =
  'the new certificate and its key cannot be used, and the previous certificate is still ' +
  'served; see the log';

export interface TlsFilesDeps {
  readonly certFile: string;
  readonly keyFile: string;
  readonly log: Log;
}

/**
 * Reads certificate and key again every 10 s. A new matching pair applies to new connections. An
 * invalid pair is reported by `problem`, and the old pair stays. The constructor throws if it can't
 * read the files.
 */
export class TlsFiles {
  readonly #deps: TlsFilesDeps;
  #identity: TlsIdentity;
  /** Hash of the last invalid files, or `unreadable`: each is logged once. */
  #refused = '';
  #problem: string | undefined;
  #cancel: () => void = () => undefined;
  #stopped = false;

  constructor(deps: TlsFilesDeps) {
    this.#deps = deps;
    this.#identity = {
      cert: readFileSync(deps.certFile, 'utf8'),
      key: readFileSync(deps.keyFile, 'utf8'),
    };
  }

  get identity(): TlsIdentity {
    return this.#identity;
  }

  /** In ms. */
  get endsAt(): number {
    return Date.parse(new X509Certificate(this.#identity.cert).validTo);
  }

  /** A readiness warning; undefined if the current files are in use. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Until `stop`. */
  start(clock: Clock, changed: (identity: TlsIdentity) => void): void {
    this.#cancel = clock.at(clock.now() + LOOK_EVERY_MS, () => {
      void this.look(changed).finally(() => {
        if (!this.#stopped) this.start(clock, changed);
      });
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  /** Never rejects. */
  async look(changed: (identity: TlsIdentity) => void): Promise<void> {
    const { certFile, keyFile, log } = this.#deps;
    let seen = 'unreadable';
    try {
      const [cert, key] = await Promise.all([
        readFile(certFile, 'utf8'),
        readFile(keyFile, 'utf8'),
      ]);
      seen = createHash('sha256').update(cert).update('\0').update(key).digest('hex');
      if (cert === this.#identity.cert && key === this.#identity.key) return this.#isWell();
      if (seen === this.#refused) return;
      createSecureContext({ cert, key });
      changed({ cert, key });
      this.#identity = { cert, key };
      this.#isWell();
      log.info({ certFile, until: new X509Certificate(cert).validTo }, 'serves-new-certificate');
    } catch (error) {
      if (seen === this.#refused) return;
      this.#refused = seen;
      this.#problem = NOT_USED;
      log.error({ certFile, keyFile, error }, 'new-certificate-not-used');
    }
  }

  #isWell(): void {
    this.#refused = '';
    this.#problem = undefined;
  }
}
