import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { watchedFolder } from '../../../../local-cluster/watched-folder.ts';
import type { Fault } from './fault.ts';

const LIBRARY = readdirSync('/usr/lib')
  .map((folder) => `/usr/lib/${folder}/faketime/libfaketime.so.1`)
  .find((file) => existsSync(file));

export const noFakeTime =
  LIBRARY === undefined ? 'needs libfaketime: script/bootstrap --tests installs it' : undefined;

/** Keeps the monotonic clock. */
export class FakeClock {
  readonly #folder = watchedFolder('clock');

  constructor() {
    this.set(0);
  }

  get env(): Readonly<Record<string, string>> {
    if (LIBRARY === undefined) throw new Error(noFakeTime);
    return {
      LD_PRELOAD: LIBRARY,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }

  /** Within about a second. */
  set(offsetSeconds: number): void {
    writeFileSync(this.#file, `${offsetSeconds < 0 ? '' : '+'}${offsetSeconds}\n`);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #file(): string {
    return join(this.#folder, 'offset');
  }
}

export class ClockJump implements Fault {
  readonly kind = 'clock jump';
  readonly victim: string;
  readonly others = 'lead';
  readonly lastsMs: number;
  readonly #clock: FakeClock;
  readonly #seconds: number;

  constructor(
    clock: FakeClock,
    {
      victim,
      seconds,
      lastsMs,
    }: { readonly victim: string; readonly seconds: number; readonly lastsMs: number },
  ) {
    [this.#clock, this.victim, this.#seconds, this.lastsMs] = [clock, victim, seconds, lastsMs];
  }

  async begin(): Promise<void> {
    this.#clock.set(this.#seconds);
  }
  async end(): Promise<void> {
    this.#clock.set(0);
  }
}
