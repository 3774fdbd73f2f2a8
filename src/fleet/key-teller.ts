import type { ClientHttp2Session } from 'node:http2';
import type { Clock } from '../contracts/clock.ts';
import type { PromotedKey, PromotedKeySource } from '../contracts/fleet/promoted-keys.ts';
import type { FleetKey } from './fleet-keys.ts';
import { ask } from './link-calls.ts';
import { KEYS_OF_WORD, KeysTaken, signedKeys } from './promoted-words.ts';

export interface KeyTellerTerms {
  readonly session: ClientHttp2Session;
  readonly source: PromotedKeySource;
  readonly key: FleetKey;
  /** The text that the manager signed at the beginning of the link. */
  readonly transcript: string;
  readonly clock: Clock;
  /** The worker does not answer, or not what it should. */
  readonly failed: (why: string) => void;
}

/** For a worker to have a word hold. */
const TOLD_MS = 5_000;

/** Tells one worker of promoted keys: all of them first, then each change, one word at a time. */
export class KeyTeller {
  readonly #terms: KeyTellerTerms;
  readonly #changed = new Set<string>();
  readonly #unfollow: () => void;
  #number = 0;
  #isCaughtUp = false;
  #telling: Promise<void> | undefined;
  #over = false;

  constructor(terms: KeyTellerTerms) {
    this.#terms = terms;
    // before all are read, so that no change falls between
    this.#unfollow = terms.source.follow((keyId) => {
      this.#changed.add(keyId);
      if (this.#isCaughtUp) this.#tell();
    });
  }

  /** Resolves once the worker knows all. Rejects where it says anything else. */
  async tellAll(): Promise<void> {
    const keys = await this.#terms.source.list();
    for (let next = 0; ; next += KEYS_OF_WORD) {
      const part = keys.slice(next, next + KEYS_OF_WORD);
      const isLast = next + KEYS_OF_WORD >= keys.length;
      await this.#say({ keys: part, gone: [], whole: isLast ? 'end' : 'more' });
      if (isLast) break;
    }
    this.#isCaughtUp = true;
    this.#tell();
  }

  /** Resolves once the worker knows what changed before this call, or the link is over. */
  async settled(): Promise<void> {
    while (this.#telling && !this.#over) await this.#telling;
  }

  stop(): void {
    this.#over = true;
    this.#unfollow();
  }

  #tell(): void {
    this.#telling ??= this.#tellChanges()
      .catch((error: unknown) => {
        this.#terms.failed(error instanceof Error ? error.message : String(error));
      })
      .finally(() => {
        this.#telling = undefined;
        if (this.#changed.size > 0 && !this.#over) this.#tell();
      });
  }

  async #tellChanges(): Promise<void> {
    const { source, clock, failed } = this.#terms;
    while (this.#changed.size > 0 && !this.#over) {
      const told = [...this.#changed].slice(0, KEYS_OF_WORD);
      for (const keyId of told) this.#changed.delete(keyId);
      const keys = told.flatMap((keyId) => source.find(keyId) ?? []);
      const gone = told.filter((keyId) => !source.find(keyId));
      const callOff = clock.at(clock.now() + TOLD_MS, () => {
        failed('it does not say that it knows of a key');
      });
      try {
        await this.#say({ keys, gone });
      } finally {
        callOff();
      }
    }
  }

  async #say(said: {
    readonly keys: readonly PromotedKey[];
    readonly gone: readonly string[];
    readonly whole?: 'more' | 'end';
  }): Promise<void> {
    const { session, clock, key, transcript } = this.#terms;
    this.#number += 1;
    const text = JSON.stringify({ ...said, number: this.#number, now: clock.now() });
    const signature = key.sign(signedKeys(transcript, text));
    const answer = KeysTaken.parse(await ask(session, '/keys', { text, signature }));
    if (answer.number !== this.#number) throw new Error('it claims what it was not told');
  }
}
